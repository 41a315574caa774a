//! The command line of the server.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::script::{Base, Script};
use crate::server;

/// A scriptable language server on stdin and stdout.
#[derive(Debug, Parser)]
#[command(
    name = "dsh-fake-lsp",
    version,
    max_term_width = 80,
    about = "A language server that does what its script says",
    long_about = "A language server on stdin and stdout that behaves well, except where its \
                  script says otherwise.",
    after_help = EXAMPLES,
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct Args {
    /// Script to follow, YAML or JSON
    #[arg(long, value_name = "FILE", conflicts_with = "script_inline")]
    script: Option<PathBuf>,

    /// The script itself, YAML or JSON
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    script_inline: Option<String>,

    /// Answers beneath the script: from the facts in the workspace's *.fake files
    #[arg(long, value_name = "NAME")]
    rules: Option<Rules>,

    /// Socket of a runner, which gets all events and releases what is held
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,

    /// Write a transcript of everything to this file (JSON Lines)
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,

    /// Number of this process, for rules with `process`
    #[arg(long, value_name = "N", conflicts_with = "control",
          value_parser = clap::value_parser!(u32).range(1..))]
    process: Option<u32>,

    /// Count the starts in this file; the count is the number of the process
    #[arg(long, value_name = "FILE", conflicts_with_all = ["control", "process"])]
    counter: Option<PathBuf>,

    /// Check the script and end
    #[arg(long)]
    check: bool,

    /// Print the JSON Schema of scripts and end
    #[arg(long)]
    schema: bool,

    /// Accepted since many clients give it; it changes nothing
    #[arg(long)]
    stdio: bool,

    #[arg(long, hide = true)]
    helper: bool,
    #[arg(long, hide = true, requires = "helper")]
    deaf: bool,
    #[arg(long, hide = true, requires = "helper")]
    new_session: bool,
    #[arg(long, hide = true, requires = "helper")]
    orphan: bool,
    #[arg(long, hide = true, requires = "helper", default_value_t = 60_000)]
    life_ms: u64,

    /// Further arguments, which are not looked at (a script can tell them: ${argv})
    #[arg(last = true, value_name = "ARG")]
    rest: Vec<OsString>,
}

/// The built-in rule sets.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rules {
    Markers,
}

const EXAMPLES: &str = "\
Examples:
  Behave well, answering null to everything:
    dsh-fake-lsp

  Answer hovers, and die of the second definition:
    dsh-fake-lsp --script-inline '
      - {on: textDocument/hover, do: [{reply: {contents: hello}}]}
      - {on: textDocument/definition, nth: 2, do: [{kill: SIGKILL}]}'

  Answer from the *.fake files of the workspace, and keep a transcript:
    dsh-fake-lsp --rules markers --transcript log.jsonl

  See whether a script is right:
    dsh-fake-lsp --script rules.yaml --check

Exit status: 0 after shutdown and exit, 1 after exit alone or a broken pipe,
2 for wrong usage or a wrong script, 70 when the control channel is lost.";

/// Runs the server with these arguments (without the program's name, and without the subcommand
/// of a program that contains it) until it ends; returns the exit status.
///
/// It speaks on this process's stdin and stdout, and belongs at the end of `main`.
pub fn run_from_args(args: impl Iterator<Item = OsString>) -> i32 {
    let own: Vec<OsString> = args.collect();
    let prefix = prefix(std::env::args_os().collect(), own.len());
    let named = std::iter::once(OsString::from("dsh-fake-lsp")).chain(own);
    let args = match Args::try_parse_from(named) {
        Ok(args) => args,
        Err(error) => {
            let code = error.exit_code();
            // Nothing more can be done where even this cannot be said.
            let _ = error.print();
            return code;
        }
    };
    match run(args, prefix) {
        Ok(code) => code,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "dsh-fake-lsp: {message}");
            2
        }
    }
}

/// The arguments between the program's name and the last `own` ones.
fn prefix(all: Vec<OsString>, own: usize) -> Vec<OsString> {
    let end = all.len().saturating_sub(own).max(1);
    all.into_iter().take(end).skip(1).collect()
}

fn run(args: Args, prefix: Vec<OsString>) -> Result<i32, String> {
    if args.helper {
        let options = server::HelperOptions {
            deaf: args.deaf,
            new_session: args.new_session,
            orphan: args.orphan,
            life_ms: args.life_ms,
            control: args.control,
        };
        return server::live_as_helper(&options, &prefix).map_err(|error| error.to_string());
    }
    if args.schema {
        print(&crate::script::schema())?;
        return Ok(0);
    }
    let mut script = match (&args.script, &args.script_inline) {
        (Some(path), _) => load(path)?,
        (None, Some(text)) => {
            Script::parse(text, "--script-inline").map_err(|error| error.to_string())?
        }
        (None, None) => Script::default(),
    };
    if let Some(Rules::Markers) = args.rules {
        script.base = Some(Base::Markers);
    }
    if args.check {
        let rules = script.rules.len();
        print(&format!(
            "the script is right: {rules} rule{}\n",
            if rules == 1 { "" } else { "s" }
        ))?;
        return Ok(0);
    }
    let options = server::Options {
        script,
        control: args.control,
        transcript: args.transcript,
        process: args.process,
        counter: args.counter,
        prefix,
    };
    server::serve(options).map_err(|error| error.to_string())
}

fn load(path: &Path) -> Result<Script, String> {
    Script::load(path).map_err(|error| error.to_string())
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_before_its_own_are_found() {
        let all = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            prefix(all(&["dsh-conform", "fake-lsp", "--check"]), 1),
            all(&["fake-lsp"])
        );
        assert_eq!(prefix(all(&["dsh-fake-lsp", "--check"]), 1), all(&[]));
        assert_eq!(prefix(all(&["dsh-fake-lsp"]), 7), all(&[]));
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
