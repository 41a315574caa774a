//! `check`.

mod baseline;
mod emit;
mod outcome;
mod selection;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_e2e::install::InstallOptions;
use dsh_e2e::{At, CheckError, CheckOptions, Checked, Ground, Measuring, Step};
use dsh_harness::subprocess::{LocalSubprocess, Subprocess};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::subject::{self, Absent, Extension};
use crate::cli::Global;
use crate::exit::Exit;
use crate::forms::Form;
use crate::output::complain;
use crate::progress::Progress;
use crate::shell::Shell;
use crate::signals::{Interruption, interruptible};
use outcome::Outcome;
use selection::{Chosen, Refused};

/// Check whether language servers work behind a transient-open host
///
/// Each server is driven through open, ask, close with the host of this toolkit, over a recording
/// of the wire, in a copy of a sample workspace with known answers. Without a server named, the
/// built-in one is checked.
///
/// Where a MUST fails with the host's defaults, settings of the host are tried, and those that help
/// are named. Without --at, --command finds places to ask at by itself in the workspace: what is
/// right there is not known, so answers are judged for shape, and whether they agree is told.
#[derive(Clone, Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
#[command(after_help = "\
Examples:
  dsh-conform check
  dsh-conform check --server pyright --server clangd --install
  dsh-conform check --server rust-analyzer --budget 120
  dsh-conform check --command 'my-server --stdio' --ext .foo=foolang
  dsh-conform check --command 'my-server --stdio' --ext .foo=foolang \\
      --workspace ~/project --at src/main.foo:12:7
  dsh-conform check --server pyright --only QUA-4 --format json
  dsh-conform check --server gopls --emit-config > cordis.yml
  dsh-conform check --all --baseline servers.json
  dsh-conform check --server clangd --install --measure only

A server that fails leaves its transcript in target/dsh-conform (or --out).")]
pub(crate) struct Args {
    /// A server of the catalogue, the one on PATH; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["all", "command"])]
    server: Vec<String>,
    /// Every server of the catalogue
    #[arg(long, conflicts_with = "command")]
    all: bool,
    /// Take the pinned servers in the cache, and install what is missing there
    #[arg(long, conflicts_with = "command")]
    install: bool,
    /// Also run recipes of the system's package manager, which are printed otherwise
    #[arg(long, requires = "install")]
    system: bool,
    /// Seconds that each probe may wait for the known answer; below 5 it bounds the shutdown too
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds)]
    budget: Duration,
    /// Any server: its program and arguments, split as a shell would
    #[arg(long, value_name = "CMD", requires = "ext")]
    command: Option<String>,
    /// Extension and language id of what the server of --command serves
    #[arg(long, value_name = ".EXT=LANGUAGE", requires = "command")]
    ext: Vec<Extension>,
    /// The folder the server of --command works in, and may write into; an empty temporary one
    /// without this
    #[arg(long, value_name = "DIR", requires = "command")]
    workspace: Option<PathBuf>,
    /// Where to ask the server of --command; answers are judged for shape
    #[arg(long, value_name = "FILE:LINE:COL", requires = "command")]
    at: Vec<At>,
    /// Judge these clauses only
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// How to report; the first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "text")]
    format: Vec<Form>,
    /// The folder for transcripts and reports, or the file of a single report
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Measure the server without the host too: readiness, ways of a client, ends, odd requests
    ///
    /// It takes a minute at most, in a workspace of its own. With `only`, nothing is judged.
    #[arg(long, value_enum, value_name = "WHETHER", default_value = "yes")]
    measure: Measure,
    /// Keep the temporary workspaces and the transcripts
    #[arg(long)]
    keep: bool,
    /// Fail only on what is worse than this file accepts, or on what it accepts and holds now
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write what is found into the file of --baseline, by server, platform and version
    #[arg(long, requires = "baseline", conflicts_with = "only")]
    update_baseline: bool,
    /// Print a deployment that makes the servers work, as YAML, and nothing else
    #[arg(long, conflicts_with_all = ["format", "only"])]
    emit_config: bool,
    /// Servers that are checked at the same time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
}

/// Whether a server is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Measure {
    /// Behind the judgement, unless --only chooses clauses
    Yes,
    /// Not at all
    No,
    /// Without a judgement
    Only,
}

impl From<Measure> for Measuring {
    fn from(measure: Measure) -> Self {
        match measure {
            Measure::Yes => Self::Yes,
            Measure::No => Self::No,
            Measure::Only => Self::Only,
        }
    }
}

/// The longest time that can be given, in seconds: as many milliseconds as fit into 31 bits, the
/// most that a timeout of a deployment may have.
const LONGEST_S: u64 = 2_147_483;

/// A number of seconds above zero, fractions allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= Duration::from_secs(LONGEST_S))
        .ok_or_else(|| {
            format!(
                "give a number of seconds above 0 and up to {LONGEST_S}, 60 or 2.5 for instance"
            )
        })
}

pub(crate) fn run(shell: &Shell, global: Global, args: Args) -> Exit {
    let chosen = match Chosen::read(shell, &args) {
        Ok(chosen) => chosen,
        Err(Refused { message, exit }) => {
            complain(&format!("error: {message}"));
            return exit;
        }
    };
    let outcome = match Outcome::planned(shell, &args, global.color) {
        Ok(outcome) => outcome,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Exit::Usage;
        }
    };
    interruptible(|interruption| async move {
        let checker = Checker {
            shell: shell.clone(),
            progress: Progress::new(shell.stderr_is_terminal, global.quiet),
            subprocess: Arc::new(LocalSubprocess::new(shell.variables.clone())),
            interruption,
            args,
        };
        checker.all(chosen, outcome).await
    })
}

/// What every check of one invocation shares.
#[derive(Clone)]
struct Checker {
    shell: Shell,
    progress: Progress,
    subprocess: Arc<dyn Subprocess>,
    interruption: Interruption,
    args: Args,
}

impl Checker {
    async fn all(self, chosen: Chosen, mut outcome: Outcome) -> Exit {
        let room = Arc::new(Semaphore::new(usize::from(self.args.jobs)));
        let mut checks = JoinSet::new();
        for (index, server) in chosen.servers.into_iter().enumerate() {
            let (checker, room) = (self.clone(), Arc::clone(&room));
            let only = chosen.only.clone();
            let name = server.name().to_owned();
            outcome.expect(&name);
            checks.spawn(async move {
                let _turn = room.acquire().await;
                (index, checker.one(server, only).await)
            });
        }
        while let Some(done) = checks.join_next().await {
            match done {
                Ok((index, Ok(Some(checked)))) => outcome.take(index, checked),
                Ok((_, Ok(None))) => {}
                Ok((index, Err(error))) => outcome.not_carried_out(index, &error),
                Err(error) => outcome.fault(&error.to_string()),
            }
        }
        let interrupted = self.interruption.exit().is_some();
        outcome.finish(interrupted)
    }

    /// Checks one server; none if that was interrupted before there was anything to report.
    async fn one(
        &self,
        server: selection::Server,
        only: Vec<&'static dsh_e2e::Probe>,
    ) -> Result<Option<Checked>, CheckError> {
        let line = self.progress.line(server.name());
        if self.interruption.cancel.is_cancelled() {
            return Ok(None);
        }
        let reproduce = server.reproduce(&self.args);
        let (target, ground) = match server {
            selection::Server::Ready(target, ground) => (*target, ground),
            selection::Server::Listed { entry, sample } => {
                let install = self.args.install.then(|| InstallOptions {
                    system: self.args.system,
                    long_builds: !self.shell.is_ci(),
                });
                let token = &self.interruption.token;
                match subject::find(&self.shell, entry, install, &line, token).await {
                    Ok(target) => (target, Ground::Sample(sample)),
                    Err(Absent::Interrupted) => return Ok(None),
                    Err(Absent::Missing(reason)) => {
                        return Ok(Some(outcome::absent(&entry.name, &reason)));
                    }
                }
            }
        };
        let options = CheckOptions {
            budget: self.args.budget,
            only,
            keep: self.args.keep,
            temporary: self.shell.temporary.clone(),
            reproduce,
            measure: self.args.measure.into(),
        };
        let Interruption { cancel, stop, .. } = &self.interruption;
        let watch = |step: Step| line.say(&said(step));
        let subprocess = Arc::clone(&self.subprocess);
        match dsh_e2e::qualify(&target, &ground, &options, subprocess, cancel, stop, &watch).await {
            Ok(checked) => Ok(Some(checked)),
            Err(CheckError::Stopped) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn said(step: Step) -> String {
    match step {
        Step::Mounting => "starting".to_owned(),
        Step::Asking(operation) => format!("asking {operation}"),
        Step::AskingAgain(operation) => format!("changed a file, asking {operation}"),
        Step::Ending => "shutting down".to_owned(),
        Step::Trying => "trying settings of the host".to_owned(),
        Step::Measuring(what) => format!("measuring: {what}"),
        _ => String::new(),
    }
}
