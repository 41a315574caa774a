//! What a program says about itself: pure reading of its output.

use crate::catalogue::VersionProbe;

/// The version in the output of a version probe: behind the text of the probe if it has one, else
/// the first word that starts with a digit.
pub(super) fn read_version(probe: &VersionProbe, output: &str) -> Option<String> {
    let rest = match &probe.after {
        Some(after) => output.split_once(after.as_str())?.1,
        None => output,
    };
    first_version(rest)
}

/// The first word of `output` that starts with a digit.
pub(super) fn first_version(output: &str) -> Option<String> {
    output
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '"'))
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

/// The major version at the front of `version`.
pub(super) fn major(version: &str) -> Option<u32> {
    let digits = version.trim().trim_start_matches('v');
    digits
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// The line of a failed program's output that says most: the first that speaks of an error, else
/// the last one.
pub(super) fn telling_line(output: &str) -> Option<&str> {
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    lines()
        .find(|line| line.to_lowercase().contains("error"))
        .or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(after: Option<&str>, output: &str) -> Option<String> {
        let after = after.map(str::to_owned);
        read_version(
            &VersionProbe {
                command: None,
                args: Vec::new(),
                after,
                package: None,
                optional: false,
            },
            output,
        )
    }

    #[test]
    fn versions_are_read_from_what_real_servers_print() {
        assert_eq!(read(None, "5.3.0\n").as_deref(), Some("5.3.0"));
        assert_eq!(
            read(Some("pyright"), "pyright 1.1.414\n").as_deref(),
            Some("1.1.414")
        );
        let clangd = "clangd version 22.1.1 (https://example.org/llvm 0123abc)\nFeatures: linux\n";
        assert_eq!(
            read(Some("clangd version"), clangd).as_deref(),
            Some("22.1.1")
        );
        let debian = "Debian clangd version 14.0.6\n";
        assert_eq!(
            read(Some("clangd version"), debian).as_deref(),
            Some("14.0.6")
        );
        let rust = "rust-analyzer 1.96.0 (ac68faa2 2026-05-25)";
        assert_eq!(read(Some("rust-analyzer"), rust).as_deref(), Some("1.96.0"));
        assert_eq!(read(None, "v20.20.2").as_deref(), Some("20.20.2"));
    }

    #[test]
    fn output_without_a_version_gives_none() {
        assert_eq!(read(None, "usage: foo"), None);
        assert_eq!(read(Some("clangd version"), "14.0.6"), None);
    }

    #[test]
    fn the_major_version_stands_in_front() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("3.11"), Some(3));
        assert_eq!(major("next"), None);
    }

    #[test]
    fn the_telling_line_is_the_first_error_or_the_last_line() {
        let trace = "starting\nerror: no such thing\n\nStack backtrace:\n  0: foo\n";
        assert_eq!(telling_line(trace), Some("error: no such thing"));
        assert_eq!(telling_line("a\nb\n\n"), Some("b"));
        assert_eq!(telling_line(" \n"), None);
    }
}
