//! Writing to the terminal: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal as _, Write as _};

/// Stdout does not take what is written; the user was told so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten;

/// What became of text for stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// It was written.
    Whole,
    /// The reader is gone.
    Unread,
    /// It cannot be written; the user was told so.
    Failed,
}

/// Writes text to stdout. Everything but a reader that is gone is complained about here, so that no
/// caller can fail in silence.
pub(crate) fn print(text: &str) -> Printed {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Printed::Whole,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Printed::Unread,
        Err(error) => {
            complain(&format!("error: cannot write to stdout: {error}"));
            Printed::Failed
        }
    }
}

/// The same where a reader that is gone, as behind `| head`, is nothing to complain about: what it
/// wanted it has read, and the same can be had again.
pub(crate) fn say(text: &str) -> Result<(), Unwritten> {
    match print(text) {
        Printed::Failed => Err(Unwritten),
        Printed::Whole | Printed::Unread => Ok(()),
    }
}

/// Writes lines in words that came from outside: a terminal takes no commands from them.
pub(crate) fn print_of_others(text: &str) -> Printed {
    if io::stdout().is_terminal() {
        print(&format!("{}\n", harmless(text)))
    } else {
        print(&format!("{text}\n"))
    }
}

/// The text without what moves a cursor, or turns the direction of what is read.
fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}') => {
            '\u{FFFD}'
        }
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Writes one line to stderr. Where that is not possible there is nobody left to tell.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether stdout is coloured.
    pub(crate) fn on_stdout(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_takes_no_commands_from_outside() {
        assert_eq!(
            harmless("a\tb\nc\u{1b}[31m\u{202e}é"),
            "a\tb\nc\u{fffd}[31m\u{fffd}é"
        );
    }
}
