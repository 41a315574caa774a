//! The arguments, and which command they start.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{
    agent, audit, check, completions, deployment, explain, list, query, report, run, servers,
    subject_worker,
};
use crate::exit::{Exit, statuses};
use crate::limits;
use crate::output::{self, Color, complain};
use crate::shell::Shell;

/// Judges the language-server side of coding agents: language servers by driving them, and what
/// drives them by what it puts on the wire.
#[derive(Debug, Parser)]
#[command(
    name = "dsh-conform",
    version,
    after_help = statuses(),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 80
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    /// Own servers, which count more than built-in ones and those of dsh-conform.toml: a YAML or
    /// TOML file, or a folder of YAML files; may be given several times
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        help_heading = "General options"
    )]
    catalogue: Vec<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// What holds for every command.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "General options")]
pub(crate) struct Global {
    /// When to colour
    #[arg(
        long,
        value_enum,
        default_value_t,
        global = true,
        hide_possible_values = false
    )]
    pub(crate) color: Color,
    /// Show no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Show on stderr what happens inside; `DSH_LOG` selects what, `dsh_lsp_stdio=trace` for
    /// instance
    #[arg(long, short, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Run(run::Args),
    Query(query::Args),
    Agent(agent::Args),
    #[command(subcommand)]
    Servers(servers::Command),
    #[command(subcommand)]
    Deployment(deployment::Command),
    #[command(subcommand)]
    List(list::Command),
    Explain(explain::Args),
    #[command(subcommand)]
    Report(report::Command),
    #[cfg(unix)]
    Tap(crate::commands::tap::Args),
    Audit(audit::Args),
    #[cfg(unix)]
    #[command(hide = true)]
    Tamper(crate::commands::tamper::Args),
    Subject(subject_worker::Args),
    Completions(completions::Args),
    /// The fake server; `check` starts it from here
    #[command(hide = true, disable_help_flag = true)]
    FakeLsp {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// The definition of the arguments, for completions.
pub(crate) fn definition() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Reads the arguments and does what they say.
pub(crate) fn run() -> Exit {
    limits::large_files_are_errors();
    let cli = match Cli::try_parse_from(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, on stdout and with success.
            let there = if error.use_stderr() {
                Ok(())
            } else {
                output::open()
            };
            let printed = there
                .and_then(|()| error.print())
                .and_then(|()| std::io::stdout().flush());
            return match printed {
                _ if error.use_stderr() => Exit::Usage,
                Err(problem) if problem.kind() != std::io::ErrorKind::BrokenPipe => {
                    complain(&format!("error: cannot write to stdout: {problem}"));
                    Exit::NotCarriedOut
                }
                _ => Exit::Fine,
            };
        }
    };
    if let Command::FakeLsp { args } = cli.command {
        return fake_lsp(args);
    }
    #[cfg(unix)]
    if let Command::Tap(args) = cli.command {
        return crate::commands::tap::run(args);
    }
    #[cfg(unix)]
    if let Command::Tamper(args) = cli.command {
        return crate::commands::tamper::run(args);
    }
    let shell = match Shell::read() {
        Ok(shell) => Shell {
            catalogues: cli.catalogue,
            ..shell
        },
        Err(problem) => {
            complain(&format!("error: {problem}"));
            return Exit::NotCarriedOut;
        }
    };
    trace(&shell, cli.global.verbose);
    match cli.command {
        Command::Check(args) => check::run(&shell, cli.global, args),
        Command::Run(args) => run::run(&shell, cli.global, args),
        Command::Query(args) => query::run(&shell, args),
        Command::Agent(args) => agent::run(&shell, cli.global, args),
        Command::Report(command) => report::run(&shell, cli.global, &command),
        Command::Audit(args) => audit::run(&shell, cli.global, &args),
        Command::Servers(command) => servers::run(&shell, cli.global, &command),
        Command::Deployment(command) => deployment::run(&shell, &command),
        Command::List(command) => list::run(&shell, &command),
        Command::Explain(args) => explain::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Subject(args) => subject_worker::run(args),
        Command::FakeLsp { args } => fake_lsp(args),
        #[cfg(unix)]
        Command::Tap(args) => crate::commands::tap::run(args),
        #[cfg(unix)]
        Command::Tamper(args) => crate::commands::tamper::run(args),
    }
}

/// The fake server has statuses of its own, which are not ours to read.
fn fake_lsp(args: Vec<OsString>) -> Exit {
    let code = dsh_fake_lsp::run_from_args(args.into_iter());
    Exit::Own(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Shows events on stderr where asked to.
fn trace(shell: &Shell, verbose: bool) {
    let wanted = shell.variable("DSH_LOG");
    if !verbose && wanted.is_none() {
        return;
    }
    let filter = wanted.unwrap_or("debug");
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(filter);
    let colored = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colored)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .init();
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const WORKFLOW: &str = include_str!("../examples/ci/matrix.yml");

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    /// The command lines of this program in the steps of a job, each as it is typed.
    fn commands(job: &Value) -> Vec<String> {
        let steps = job["steps"].as_array().expect("a job has steps");
        let scripts = steps.iter().filter_map(|step| step["run"].as_str());
        scripts
            .flat_map(str::lines)
            .filter_map(|line| line.trim().strip_prefix("dsh-conform "))
            // What the shell does with the status is not ours.
            .map(|line| line.split(" || ").next().unwrap_or(line).to_owned())
            .collect()
    }

    /// Reads a command line as the program does.
    #[track_caller]
    fn typed(line: &str) -> Command {
        let words = shlex::split(line).expect("a shell can split it");
        let words = std::iter::once("dsh-conform".to_owned()).chain(words);
        match Cli::try_parse_from(words) {
            Ok(cli) => cli.command,
            Err(error) => panic!("dsh-conform {line}\n{error}"),
        }
    }

    #[test]
    fn the_workflow_is_yaml_whose_commands_are_ours_and_whose_shards_are_complete() {
        let workflow: Value = serde_saphyr::from_str(WORKFLOW).expect("it is YAML");
        assert!(workflow["on"].is_object() && workflow["permissions"].is_object());
        // It is copied into other repositories: nothing of this one is there.
        assert!(
            !WORKFLOW.contains("--path"),
            "it builds what is checked out"
        );
        for variable in ["DSH_CONFORM_GIT", "DSH_CONFORM_REV"] {
            let given = format!("${{{{ vars.{variable} }}}}");
            assert_eq!(workflow["env"][variable], given);
        }
        let (check, page) = (&workflow["jobs"]["check"], &workflow["jobs"]["page"]);
        let shards = check["strategy"]["matrix"]["shard"].as_array();
        let shards: Vec<&str> = shards
            .expect("a list of shards")
            .iter()
            .map(|shard| shard.as_str().expect("text"))
            .collect();
        let of = shards.len();
        let complete: Vec<String> = (1..=of).map(|index| format!("{index}/{of}")).collect();
        assert_eq!(shards, complete);

        let checks = commands(check);
        assert_eq!(checks.len(), 1, "{checks:?}");
        for shard in &shards {
            let line = checks[0].replace("${{ matrix.shard }}", shard);
            assert!(line.contains(&format!("--shard {shard}")), "{line}");
            assert!(matches!(typed(&line), Command::Check(_)), "{line}");
        }
        assert_eq!(page["needs"], "check");
        let pages = commands(page);
        let parsed: Vec<Command> = pages.iter().map(|line| typed(line)).collect();
        assert!(parsed.iter().all(|one| matches!(one, Command::Report(_))));
        // Every part is merged, under the name that its job gives it.
        let merge = pages.iter().find(|line| line.starts_with("report merge"));
        let merge = merge.expect("the parts are merged");
        for shard in &shards {
            let part = format!("part-{}.json", shard.replace('/', "-"));
            assert!(merge.split(' ').any(|word| word == part), "{part}");
        }
        assert!(pages.iter().any(|line| line.contains("--format html")));
        for job in [check, page] {
            let steps = job["steps"].as_array().expect("steps");
            let scripts: Vec<&str> = steps.iter().filter_map(|s| s["run"].as_str()).collect();
            let build = scripts
                .iter()
                .find(|text| text.starts_with("cargo install "));
            let build = shlex::split(build.expect("it is built")).expect("a shell can split it");
            let behind = |option: &str| {
                let at = build.iter().position(|word| word == option);
                at.and_then(|at| build.get(at + 1))
                    .cloned()
                    .unwrap_or_default()
            };
            // Without a value, the step ends and says which is missing.
            assert!(
                behind("--git").starts_with("${DSH_CONFORM_GIT:?"),
                "{build:?}"
            );
            assert!(
                behind("--rev").starts_with("${DSH_CONFORM_REV:?"),
                "{build:?}"
            );
            assert!(build.iter().any(|word| word == "--locked"));
            assert_eq!(
                build.last().map(String::as_str),
                Some(env!("CARGO_PKG_NAME"))
            );
        }
        // The catalogue is that of the repository which runs it.
        let steps = check["steps"].as_array().expect("steps");
        assert!(
            steps
                .iter()
                .any(|step| step["uses"] == "actions/checkout@v4")
        );
        // Each job leaves what it made, and takes no silence for it.
        for job in [check, page] {
            let steps = job["steps"].as_array().expect("steps");
            let uploads = steps.iter().filter(|step| {
                let uses = step["uses"].as_str().unwrap_or_default();
                uses.starts_with("actions/upload-artifact@")
                    && step["with"]["if-no-files-found"] == "error"
            });
            assert_eq!(uploads.count(), 1);
        }
    }
}
