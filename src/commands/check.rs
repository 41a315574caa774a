//! `check`.

mod all;
mod baseline;
mod emit;
mod outcome;
mod selection;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_e2e::install::InstallOptions;
use dsh_e2e::{At, CheckError, CheckOptions, Measuring, Step};
use dsh_harness::subprocess::{LocalSubprocess, Subprocess};
use dsh_reports::CyclesKind;
use dsh_scenarios::run::RunFolder;

use super::subject::{self, Absent, Extension};
use crate::cli::Global;
use crate::exit::Exit;
use crate::forms::Form;
use crate::output::complain;
use crate::progress::Progress;
use crate::shell::Shell;
use crate::signals::{Interruption, interruptible_on};
use all::{Done, Earlier, Limit};
use outcome::Outcome;
use selection::{Chosen, Refused};

/// Check whether language servers work behind a host that opens a document for one question only
///
/// Each server is driven through open, ask, close with the host of this toolkit (transient-open), over a recording
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

  dsh-conform check --all --install --format markdown --out reports
  dsh-conform check --all --install --shard 2/4 --format json --out shard-2.json
  dsh-conform check --all --resume

A server that fails leaves its transcript in target/dsh-conform (or --out).

With a folder in --out the report is left there in each form of --format, as
JSON in any case. Printed is then the text of the report, of several servers a
line each. Without --out, or with a file there, the report itself is printed,
or written into the file.

Of several servers the finished runs are kept there too, in runs, for --resume.")]
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
    /// What the server of --command is called in reports and baselines; without this by its program,
    /// or as `python3 server.py` is
    #[arg(long, value_name = "NAME", requires = "command", value_parser = subject::name)]
    name: Option<String>,
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
    /// How to report; without --out the first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "text")]
    format: Vec<Form>,
    /// The folder for transcripts and the report in each form, or the file of a single report; made
    /// where it is not there
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Measure the server without the host too: readiness, ways of a client, ends, odd requests
    ///
    /// It takes a minute and a half at most, in a workspace of its own. With `only`, nothing is judged.
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
    /// Print a deployment that makes the servers work, and nothing else: the YAML file that says what
    /// a host mounts
    #[arg(long, conflicts_with_all = ["format", "only"])]
    emit_config: bool,
    #[command(flatten)]
    scale: all::Scale,
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
    let at_a_time = args.scale.places().min(chosen.servers.len());
    interruptible_on(at_a_time, |interruption| async move {
        let checker = Checker {
            shell: shell.clone(),
            progress: Progress::new(shell.stderr_is_terminal, global.quiet),
            subprocess: Arc::new(LocalSubprocess::new(shell.variables.clone())),
            interruption,
            args,
        };
        all::run(checker, chosen, outcome).await
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
    /// Checks one server; none if that was interrupted before there was anything to report.
    async fn one(
        &self,
        server: selection::Server,
        only: Vec<&'static dsh_e2e::Probe>,
        limit: &Limit,
        earlier: &Earlier,
    ) -> Result<Option<Done>, CheckError> {
        let line = self.progress.line(server.name());
        if self.interruption.cancel.is_cancelled() {
            return Ok(None);
        }
        // What was cut is told of this server, and not of the whole.
        let cut = |server: &selection::Server| {
            let reason = limit.crossed();
            Ok(reason.map(|reason| Done::absent(server, reason)))
        };
        let listed = server.clone();
        let reproduce = server.reproduce(&self.shell, &self.args);
        let surprises = server.surprises();
        let (target, ground) = match server {
            selection::Server::Ready(target, ground) => (*target, ground),
            selection::Server::Listed { entry, ground } => {
                let install = self.args.install.then(|| InstallOptions {
                    system: self.args.system,
                    long_builds: !self.shell.is_ci(),
                });
                match subject::find(&self.shell, &entry, install, &line, &limit.token).await {
                    Ok(target) => (target, ground),
                    Err(Absent::Interrupted) => return cut(&listed),
                    Err(Absent::Missing(reason)) => {
                        return Ok(Some(Done::absent(&listed, &reason)));
                    }
                }
            }
        };
        let key = all::key(&self.args, &self.shell.program, &target, &ground);
        if let Some(run) = earlier.find(listed.name(), &key, &line) {
            return Ok(Some(Done::taken_over(run)));
        }
        limit.begin();
        // Everything it leaves is in it, and goes with it; what a check left that was killed goes too.
        let folder = RunFolder::new(&self.shell.temporary)
            .map_err(|error| CheckError::Workspace(error.to_string()))?;
        let options = CheckOptions {
            budget: self.args.budget,
            only,
            // What is part of this program needs no session's worth of rounds to be known.
            rounds: match target.origin {
                dsh_reports::Origin::BuiltIn => 60,
                _ => dsh_e2e::ROUNDS,
            },
            keep: self.args.keep,
            temporary: folder.path().to_owned(),
            reproduce,
            measure: self.args.measure.into(),
            trial: false,
        };
        let (cancel, stop) = (&limit.cancel, &self.interruption.stop);
        let watch = |step: Step| line.say(&said(step));
        let subprocess = Arc::clone(&limit.warden) as Arc<dyn Subprocess>;
        let check = dsh_e2e::qualify(&target, &ground, &options, subprocess, cancel, stop, &watch);
        match Box::pin(dsh_e2e::measured(check)).await {
            (Ok(mut checked), spent) => {
                if checked.workspace.is_some()
                    && let Err(error) = folder.keep()
                {
                    let told = format!("the temporary workspace is not kept: {error}");
                    checked.run.remarks.push(told);
                }
                checked.run.overhead_us = Some(spent.busy_us);
                checked.run.surprises = surprises;
                checked.run.peak_memory = limit.warden.peak();
                limit.told(&mut checked.run);
                Ok(Some(Done {
                    checked,
                    // Neither is what the server comes to when it is left alone.
                    key: (limit.crossed().is_none() && !self.interruption.cancel.is_cancelled())
                        .then_some(key),
                    taken_over: false,
                }))
            }
            (Err(CheckError::Stopped), _) => cut(&listed),
            (Err(error), _) => Err(error),
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
        Step::StartingAgain(operation) => format!("started again, asking {operation}"),
        Step::Cycling(CyclesKind::SameText) => "asking over and over".to_owned(),
        Step::Cycling(CyclesKind::ChangedText) => "asking with changing text".to_owned(),
        Step::Cycling(CyclesKind::ManyFiles) => "asking in many files".to_owned(),
        Step::GivingUp => "giving questions up".to_owned(),
        Step::ChangingOnDisk(operation) => format!("changed another file, asking {operation}"),
        Step::Killing => "killing it, asking its replacement".to_owned(),
        _ => String::new(),
    }
}
