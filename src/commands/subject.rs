//! Naming the server that is meant.

use std::collections::BTreeMap;
use std::path::Path;

use dsh_e2e::Target;
use dsh_e2e::catalogue::Entry;
use dsh_e2e::install::{InstallError, InstallOptions, LocateError, Progress, Reporter};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::output::complain;
use crate::progress::{self, Line};
use crate::shell::Shell;
use crate::signals::Interruption;

/// The longest extension, in bytes: a file has to fit its name around it.
const LONGEST_EXTENSION: usize = 100;

/// `.foo=foolang`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extension {
    extension: String,
    language: String,
}

impl std::str::FromStr for Extension {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || {
            format!(
                "{text:?} maps no extension to a language; write .ext=language, .rs=rust for instance"
            )
        };
        let (extension, language) = text.split_once('=').ok_or_else(fault)?;
        let bare = extension.strip_prefix('.').unwrap_or(extension);
        if bare.is_empty() || bare.contains(['.', '/', '\\']) || language.trim().is_empty() {
            return Err(fault());
        }
        if bare.len() > LONGEST_EXTENSION {
            return Err(format!(
                "the extension has {} bytes; at most {LONGEST_EXTENSION} are taken",
                bare.len()
            ));
        }
        Ok(Self {
            extension: format!(".{}", bare.to_lowercase()),
            language: language.to_owned(),
        })
    }
}

impl Extension {
    /// The extension with its dot, and the language id.
    pub(crate) fn parts(&self) -> (&str, &str) {
        (&self.extension, &self.language)
    }
}

impl std::fmt::Display for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.extension, self.language)
    }
}

/// The mapping that `--ext` options give.
pub(super) fn mapping(extensions: &[Extension]) -> BTreeMap<String, String> {
    extensions
        .iter()
        .map(|known| (known.extension.clone(), known.language.clone()))
        .collect()
}

/// The server of `--command`. A path in it is meant from the working directory.
pub(super) fn of_command(
    shell: &Shell,
    command: &str,
    extensions: &[Extension],
) -> Result<Target, String> {
    let mut argv = shlex::split(command).ok_or_else(|| {
        format!("--command {command:?} has a quote that is not closed; it is read as a shell would split it")
    })?;
    let Some(program) = argv.first_mut() else {
        return Err("--command names no program; give the program and its arguments".to_owned());
    };
    a_program(program)?;
    if program.contains('/') {
        *program = shell.absolute(Path::new(program)).display().to_string();
    }
    let name = name_of(&argv);
    unambiguous(extensions)?;
    Ok(Target::of_command(&name, &argv, mapping(extensions)))
}

/// Programs that run another one, which is what the server is.
const RUNNERS: &[&str] = &[
    "bash", "bun", "bunx", "cscript", "dart", "deno", "dotnet", "env", "escript", "java", "julia",
    "lua", "luajit", "mono", "nice", "node", "npx", "perl", "php", "pipx", "pwsh", "python", "R",
    "Rscript", "racket", "raku", "ruby", "setsid", "sh", "stdbuf", "tsx", "uvx", "zsh",
];

/// What a server is called that was given as a command: its program, and behind one that only runs
/// another what it runs, as in `python3 server.py`. Of paths the last part counts.
fn name_of(words: &[String]) -> String {
    let last = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let Some((program, args)) = words.split_first() else {
        return String::new();
    };
    let program = last(program);
    // python3.12 is python.
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let run = if RUNNERS.contains(&plain) {
        what_runs(&program, args).map(last)
    } else {
        None
    };
    match run {
        // What cannot stand in one line of a report is no name.
        Some(run)
            if !run.is_empty()
                && !run.chars().any(char::is_control)
                && run.len() <= LONGEST_NAME =>
        {
            format!("{program} {run}")
        }
        _ => program,
    }
}

/// The file, module or package that is run by a program of [`RUNNERS`]; none for a text that is run.
fn what_runs<'a>(program: &str, args: &'a [String]) -> Option<&'a str> {
    for word in args {
        if let Some(option) = word.strip_prefix('-') {
            // sh -c, bash -lc, perl -e, node --eval
            let is_text = option == "-eval"
                || (option.len() <= 3 && !option.starts_with('-') && option.ends_with(['c', 'e']));
            if is_text {
                return None;
            }
            continue;
        }
        let is_way = matches!(word.as_str(), "run" | "exec" | "x");
        let sets = program == "env" && word.contains('=');
        if !is_way && !sets {
            return Some(word);
        }
    }
    None
}

/// The longest name of a server, in bytes.
const LONGEST_NAME: usize = 100;

/// A name for the server of `--command`.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.trim() != text || text.chars().any(char::is_control) {
        return Err("give a name in one line, without blanks around it".to_owned());
    }
    if text.len() > LONGEST_NAME {
        let has = text.len();
        return Err(format!(
            "it has {has} bytes; at most {LONGEST_NAME} are taken"
        ));
    }
    Ok(text.to_owned())
}

/// Whether this can be the program of a command.
pub(super) fn a_program(word: &str) -> Result<(), String> {
    if word.trim().is_empty() {
        return Err("--command names no program; give the program and its arguments".to_owned());
    }
    if word.starts_with('-') {
        return Err(format!(
            "--command begins with {word:?}, which is an option and no program; give the program \
             before its arguments, ./{word} for a file of that name"
        ));
    }
    Ok(())
}

/// One language for one extension: of two, neither is meant more than the other.
fn unambiguous(extensions: &[Extension]) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for mapped in extensions {
        match known.insert(&mapped.extension, &mapped.language) {
            Some(other) if *other != mapped.language => {
                return Err(format!(
                    "--ext gives {} two languages, {other} and {}; give one",
                    mapped.extension, mapped.language
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The name of the server that is part of this program.
pub(crate) const BUILT_IN: &str = "built-in";

/// The fake server of this very program, on the rules that answer from a sample's markers.
pub(super) fn built_in(shell: &Shell) -> Target {
    let argv = [
        shell.program.display().to_string(),
        "fake-lsp".to_owned(),
        "--rules".to_owned(),
        "markers".to_owned(),
    ];
    let mut target = Target::of_command(
        BUILT_IN,
        &argv,
        BTreeMap::from([(".fake".to_owned(), "fake".to_owned())]),
    );
    target.origin = dsh_reports::Origin::BuiltIn;
    target.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    target
}

/// Why a server is not there.
pub(super) enum Absent {
    /// It is not here, or could not be installed.
    Missing(String),
    /// The search was interrupted.
    Interrupted,
}

/// Finds a server, or installs it where asked to.
pub(super) async fn find(
    shell: &Shell,
    entry: &Entry,
    install: Option<InstallOptions>,
    line: &Line,
    cancel: &CancellationToken,
) -> Result<Target, Absent> {
    let installer = shell.installer().map_err(Absent::Missing)?;
    let located = match install {
        None => {
            line.say("looking for it");
            installer
                .locate(entry, cancel)
                .await
                .map_err(|error| match error {
                    LocateError::Cancelled => Absent::Interrupted,
                    other => Absent::Missing(other.to_string()),
                })?
        }
        Some(options) => {
            line.say("installing");
            let report = |progress: &Progress<'_>| tell(line, progress);
            installer
                .install(entry, options, Reporter::new(&report), cancel)
                .await
                .map_err(|error| match error {
                    InstallError::Cancelled => Absent::Interrupted,
                    other => Absent::Missing(other.to_string()),
                })?
        }
    };
    Ok(Target::of_entry(entry, &located))
}

/// Finds a server of the catalogue for a command that needs it, or installs it where asked to; what
/// keeps it away is told on stderr.
pub(super) async fn named(
    shell: &Shell,
    name: &str,
    install: bool,
    interruption: &Interruption,
) -> Result<Target, Exit> {
    let refused = |message: String| {
        complain(&format!("error: {message}"));
        Exit::Usage
    };
    let catalogue = shell.catalogue().map_err(refused)?;
    let entry = catalogue
        .entry(name)
        .map_err(|unknown| refused(unknown.to_string()))?;
    let line = progress::Progress::new(shell.stderr_is_terminal, false).line(&entry.name);
    let options = InstallOptions {
        system: false,
        long_builds: !shell.is_ci(),
    };
    let install = install.then_some(options);
    match find(shell, entry, install, &line, &interruption.token).await {
        Ok(target) => Ok(target),
        Err(Absent::Interrupted) => Err(Exit::Interrupted),
        Err(Absent::Missing(reason)) => {
            line.announce(&format!("error: {reason}"));
            Err(Exit::NotCarriedOut)
        }
    }
}

/// Shows the progress of an installation: what passes by is shown and goes, what matters stays.
pub(super) fn tell(line: &Line, progress: &Progress<'_>) {
    match progress {
        Progress::Output { line: output } => line.say(output),
        Progress::Running { .. } => line.keep(&progress.to_string()),
        matters => line.announce(&matters.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_by_what_it_runs() {
        for (command, name) in [
            ("clangd --background-index", "clangd"),
            ("/opt/x/gopls serve", "gopls"),
            ("python3 x.py --stdio", "python3 x.py"),
            ("/usr/bin/python3.12 -u /srv/x.py", "python3.12 x.py"),
            ("python3 -m pylsp", "python3 pylsp"),
            ("java -Xmx1g -jar /opt/server.jar", "java server.jar"),
            ("npx --yes some-server --stdio", "npx some-server"),
            ("env A=1 B=2 my-server", "env my-server"),
            ("node", "node"),
            ("sh -c 'echo hello; cat'", "sh"),
            ("bash -lc 'exec x'", "bash"),
            ("node --eval 1", "node"),
            ("deno run -A x.ts", "deno x.ts"),
            ("bash /opt/my/run.sh --stdio", "bash run.sh"),
            ("node --version", "node"),
        ] {
            let argv = shlex::split(command).unwrap();
            assert_eq!(name_of(&argv), name, "{command}");
        }
    }

    #[test]
    fn a_name_stands_in_one_line_and_a_program_is_no_option() {
        assert_eq!(name("my server").as_deref(), Ok("my server"));
        for text in ["", " ", " a", "a\nb", &"x".repeat(101)] {
            assert!(name(text).is_err(), "{text:?}");
        }
        assert!(a_program("-x").unwrap_err().contains("./-x"));
        assert!(a_program(" ").is_err() && a_program("x").is_ok());
    }

    #[test]
    fn an_extension_is_normalized_or_refused_with_the_form() {
        for text in [".X=x", "x=x", "X=x"] {
            let read: Extension = text.parse().unwrap();
            assert_eq!(read.extension, ".x");
        }
        for text in ["x", ".x=", "=x", ".a.b=x", ".=x"] {
            let error = text.parse::<Extension>().unwrap_err();
            assert!(error.contains(".ext=language"), "{error}");
        }
    }
}
