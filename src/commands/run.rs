//! `run`.

mod clauses;
mod gathered;
mod power;
mod selection;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dsh_reports::{
    ClauseRef, Conclusion, Origin, Place, Run, Selection, SkipReason, Skipped, Stale, Subject,
    SubjectKind, Watch,
};
use dsh_scenarios::Profile;
use dsh_scenarios::format::Case;
use dsh_scenarios::run::{Known, RunFolder, Setup, Staleness, SubjectFile};
use dsh_scenarios::subject::{
    CallError, Description, InProcessSource, Launch, Pool, SubjectSource,
};
use dsh_scenarios::suite::Shard;

use crate::cli::Global;
use crate::exit::Exit;
use crate::forms::{self, Delivery, Form};
use crate::output::complain;
use crate::progress::Progress;
use crate::shell::Shell;
use crate::signals::{Interruption, interruptible};
pub(super) use gathered::quoted;
use gathered::{Gathered, How};
use power::Mutated;
use selection::{Chosen, Refused, Wanted};

/// Run the scenario suite against a harness
///
/// Each scenario has the harness work with a fake language server of its own, whose every move is
/// in its hands, and judges what comes back and what was on the wire. Without --subject, the
/// harness of this toolkit is judged.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform run
  dsh-conform run cancel/ 'crash/*' --in-process
  dsh-conform run my-scenario.yaml --keep
  dsh-conform run --subject my-subject.yaml --profile transient
  dsh-conform run --shard 1/4 --format json --out shard-1.json
  dsh-conform run --mutants

A failing scenario leaves its transcript in target/dsh-conform (or --out).")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct Args {
    /// Scenarios to run: what their ids begin with, a glob over ids, or a .yaml file or folder;
    /// `dsh-conform list scenarios` lists them. With --mutants: what mutants' names begin with
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// A subject file: how to start another harness, what it claims, what is known to fail
    #[arg(long, value_name = "FILE", conflicts_with = "in_process")]
    subject: Option<PathBuf>,
    /// Mount the built-in harness in this process and not in workers, for debugging
    #[arg(long)]
    in_process: bool,
    /// Run scenarios of these profiles only
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = profile)]
    profile: Vec<Profile>,
    /// Show that the suite notices a broken harness: run each mutant against what could notice it
    #[arg(long)]
    mutants: bool,
    /// Scenarios in flight at the same time; by default four for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// The I-th of N parts of the suite, by a hash of the id
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// The seed of what is random: the order in which scenarios begin
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How to report; several need --out. The first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "text")]
    format: Vec<Form>,
    /// The folder for transcripts and reports, or the file of a single report; made where it is not
    /// there
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// A file for the badge with the counts
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// The scenarios of this folder, in place of those built in
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Write what the cases of the named files and folders, or of --suite, show to their snapshots,
    /// where it is not what these hold; look at the files before they are kept
    #[arg(long, conflicts_with_all = ["mutants", "subject"])]
    accept: bool,
    /// Keep the transcripts of all scenarios, and the folders of those that fail
    #[arg(long)]
    keep: bool,
}

/// A profile that a harness can claim.
fn profile(name: &str) -> Result<Profile, String> {
    const ALL: [Profile; 5] = [
        Profile::LspBase,
        Profile::Transient,
        Profile::Tool,
        Profile::Runtime,
        Profile::Instructions,
    ];
    ALL.into_iter()
        .find(|known| known.to_string() == name)
        .ok_or_else(|| {
            let names = ALL.map(|known| known.to_string());
            format!(
                "there is no such profile; write one of {}",
                names.join(", ")
            )
        })
}

pub(crate) fn run(shell: &Shell, global: Global, args: Args) -> Exit {
    match Plan::read(shell, global, args) {
        Ok(plan) => interruptible(|interruption| async move { plan.carry_out(interruption).await }),
        Err(Refused { message, exit }) => {
            complain(&format!("error: {message}"));
            exit
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    interrupted: bool,
    duration: Duration,
}

/// Everything that is decided before anything is started.
struct Plan {
    shell: Shell,
    progress: Progress,
    args: Args,
    chosen: Chosen,
    mutated: Option<Mutated>,
    delivery: Delivery,
    subject: Option<SubjectFile>,
    seed: u64,
}

impl Plan {
    fn read(shell: &Shell, global: Global, args: Args) -> Result<Self, Refused> {
        let planned = Delivery::planned(&args.format, args.out.as_deref(), global.color);
        let delivery = planned.map_err(Refused::usage)?;
        if delivery.forms() > 1 && args.out.is_none() {
            let message = "several formats need --out: the folder they go into";
            return Err(Refused::usage(message));
        }
        let subject = match &args.subject {
            None => None,
            Some(file) => {
                Some(SubjectFile::read(file).map_err(|error| Refused::usage(error.to_string()))?)
            }
        };
        // With --mutants the filters mean mutants, and the shards are made of them.
        let (filters, shard) = if args.mutants {
            (&[][..], None)
        } else {
            (args.filter.as_slice(), args.shard)
        };
        let mutated = if args.mutants {
            Some(Mutated::read(&args.filter, args.shard)?)
        } else {
            None
        };
        let chosen = Chosen::read(&Wanted {
            filters,
            suite: args.suite.as_deref(),
            profiles: &args.profile,
            shard,
        })?;
        let built_in = |case: &&Arc<Case>| !chosen.read_from.contains_key(&case.id);
        if args.accept
            && args.suite.is_none()
            && let Some(case) = chosen.cases.iter().find(built_in)
        {
            return Err(Refused::usage(format!(
                "--accept writes beside scenario files, and {} is built in; name a file or a \
                 folder, or give the suite's folder with --suite",
                case.id
            )));
        }
        Ok(Self {
            shell: shell.clone(),
            progress: Progress::new(shell.stderr_is_terminal, global.quiet),
            chosen,
            mutated,
            subject,
            delivery: delivery.with_badge(args.badge.clone()),
            seed: args.seed.unwrap_or_else(crate::shell::seed),
            args,
        })
    }

    /// The command that runs in the same way, without the suite and the cases.
    fn repeat(&self) -> String {
        let mut words = vec!["dsh-conform".to_owned(), "run".to_owned()];
        if let Some(file) = &self.args.subject {
            words.extend(["--subject".to_owned(), quoted(&file.display().to_string())]);
        }
        if self.args.in_process {
            words.push("--in-process".to_owned());
        }
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        words.join(" ")
    }

    async fn carry_out(self, interruption: Interruption) -> Exit {
        // Everything a case leaves is in it; it is removed when nothing of the run is there any more.
        let folder = match RunFolder::new(&self.shell.temporary) {
            Ok(folder) => folder,
            Err(error) => {
                complain(&format!("error: {error}"));
                return Exit::NotCarriedOut;
            }
        };
        let source = match self.source().await {
            Ok(source) => source,
            Err(error) => return self.not_started(&error),
        };
        let (run, ended) = tokio::select! {
            biased;
            () = interruption.stop.cancelled() => {
                source.close().await;
                return Exit::Interrupted;
            }
            done = self.work(Arc::clone(&source), folder.path(), &interruption) => done,
        };
        source.close().await;
        let report = forms::report(vec![run], ended.interrupted);
        match self.delivery.deliver(&report) {
            Err(Exit::OurFault) => Exit::OurFault,
            delivered => match (Exit::of(&report), delivered) {
                (Exit::Fine, Err(exit)) | (exit, _) => exit,
            },
        }
    }

    /// Where the subjects come from.
    async fn source(&self) -> Result<Arc<dyn SubjectSource>, CallError> {
        if self.args.in_process {
            return Ok(Arc::new(InProcessSource::new()));
        }
        let launch = match &self.subject {
            Some(file) => file.launch.clone(),
            None => Launch::built_in(self.shell.program.display().to_string()),
        };
        Ok(Arc::new(Pool::start(launch).await?))
    }

    fn setup(&self, folder: &Path, interruption: &Interruption) -> Setup {
        let mut setup = Setup::new(&self.shell.program, folder);
        if let Some(path) = self.shell.variable("PATH") {
            path.clone_into(&mut setup.path);
        }
        setup.foreign = self.subject.as_ref().is_some_and(|file| file.foreign);
        setup.keep_transcripts = self.args.keep;
        // A mutant's cases are red on purpose.
        setup.keep_folders = self.args.keep && self.mutated.is_none();
        setup.profiles = self.subject.as_ref().and_then(|file| file.profiles.clone());
        setup.seed = self.seed;
        setup.cancel = interruption.token.clone();
        setup
    }

    async fn work(
        &self,
        source: Arc<dyn SubjectSource>,
        folder: &Path,
        interruption: &Interruption,
    ) -> (Run, Ended) {
        match &self.mutated {
            Some(mutated) => self.power(mutated, source, folder, interruption).await,
            None => self.cases(source, folder, interruption).await,
        }
    }

    async fn cases(
        &self,
        source: Arc<dyn SubjectSource>,
        folder: &Path,
        interruption: &Interruption,
    ) -> (Run, Ended) {
        let description = self.judged_as(source.description());
        let mut gathered = Gathered::new(
            &self.chosen.cases,
            How {
                artifacts: self.delivery.artifacts.clone(),
                keep: self.args.keep,
                repeat: self.repeat(),
                suite: self.args.suite.clone(),
                read_from: self.chosen.read_from.clone(),
                known: self.known(),
                texts: self.subject.is_none().then(|| self.chosen.texts.clone()),
                accept: self.args.accept,
                line: self.progress.line("scenarios"),
            },
        );
        let (mut cases, unclaimed): (Vec<_>, Vec<_>) = self
            .chosen
            .cases
            .iter()
            .cloned()
            .partition(|case| description.profiles.contains(&case.scenario.profile));
        for case in &unclaimed {
            gathered.unclaimed(case, &description.name);
        }
        shuffle(&mut cases, self.seed);
        let setup = Arc::new(self.setup(folder, interruption));
        let jobs = usize::from(self.args.jobs.unwrap_or_else(default_jobs));
        let summary =
            dsh_scenarios::run::run(cases, source, setup, None, jobs, &mut gathered).await;
        let mut run = self.blank();
        run.stale = self.stale(gathered.known());
        let looked_at = std::mem::take(&mut gathered.watched);
        run.remarks = std::mem::take(&mut gathered.kept);
        run.cases = gathered.cases;
        run.cases.sort_by(|a, b| a.id.cmp(&b.id));
        run.skipped = self.skipped(&run);
        let ended = Ended {
            interrupted: summary.interrupted,
            duration: summary.duration,
        };
        let clauses = clauses::clauses(
            &description.name,
            &description.profiles,
            self.chosen.all.iter().map(|case| &**case),
            &run.skipped,
        );
        let watches = clauses::watches(&description.profiles, &looked_at);
        self.conclude(&mut run, &ended, &description, (&clauses, &watches));
        (run, ended)
    }

    /// The cases that were not run; those that were are in their order.
    fn skipped(&self, run: &Run) -> Vec<Skipped> {
        let mut skipped = self.chosen.skipped.clone();
        let ran = |id: &str| {
            let found = run.cases.binary_search_by(|case| case.id.as_str().cmp(id));
            found.is_ok()
        };
        let ids = self.chosen.cases.iter().map(|case| &case.id);
        let cases: Vec<String> = ids.filter(|id| !ran(id)).cloned().collect();
        if !cases.is_empty() {
            skipped.push(Skipped {
                reason: SkipReason::Interrupted,
                cases,
            });
        }
        skipped
    }

    /// Who the subject says it is, with the profiles that its file has it judged by.
    fn judged_as(&self, description: &Description) -> Description {
        let mut judged = description.clone();
        let file = self.subject.as_ref();
        if let Some(profiles) = file.and_then(|file| file.profiles.as_ref()) {
            judged.profiles.clone_from(profiles);
        }
        judged
    }

    fn ids(&self) -> impl Iterator<Item = &str> + Clone {
        self.chosen.all.iter().map(|case| case.id.as_str())
    }

    /// The subject's known failures.
    fn known(&self) -> Known {
        let file = self.subject.as_ref();
        let mut known = file.map(|file| file.known.clone()).unwrap_or_default();
        known.begin(self.ids());
        known
    }

    fn stale(&self, known: &Known) -> Vec<Stale> {
        let file = self.args.subject.as_ref();
        let stale = |stale: dsh_scenarios::run::Stale| Stale {
            case: stale.entry,
            reason: match stale.why {
                Staleness::Unknown(None) => "no case is called that; take it out".to_owned(),
                Staleness::Unknown(Some(nearest)) => {
                    format!("no case is called that; did you mean {nearest}?")
                }
                Staleness::Passes => {
                    "it is a known failure and does not fail any more; take it out".to_owned()
                }
            },
            source: file.map(|file| Place {
                file: file.display().to_string(),
                line: Some(stale.line),
            }),
        };
        known.stale(self.ids()).into_iter().map(stale).collect()
    }

    /// A run of this subject without any case yet.
    fn blank(&self) -> Run {
        // A subject tells its name when it is started.
        let name = match &self.subject {
            None => "built-in".to_owned(),
            Some(file) => file.path.display().to_string(),
        };
        let mut run = Run::new(Subject::named(SubjectKind::Harness, &name));
        run.seed = Some(self.seed);
        let suite = self.args.suite.as_ref();
        run.suite = suite.map(|folder| folder.display().to_string());
        run.shard = self.args.shard.map(|shard| dsh_reports::Shard {
            index: shard.number(),
            of: shard.of(),
        });
        run
    }

    /// Says who was judged, and draws the conclusion.
    fn conclude(
        &self,
        run: &mut Run,
        ended: &Ended,
        description: &Description,
        (clauses, watches): (&[ClauseRef], &BTreeMap<String, Watch>),
    ) {
        run.subject.name.clone_from(&description.name);
        run.subject.version = Some(description.version.clone());
        match &self.subject {
            None => run.subject.origin = Some(Origin::BuiltIn),
            Some(file) => {
                run.subject.origin = Some(Origin::Command);
                run.subject.command.clone_from(&file.launch.command);
            }
        }
        run.profiles = description
            .profiles
            .iter()
            .map(ToString::to_string)
            .collect();
        run.duration_us = u64::try_from(ended.duration.as_micros()).unwrap_or(u64::MAX);
        let selection = if ended.interrupted {
            Selection::Interrupted
        } else {
            Selection::All
        };
        run.conclude_watched(clauses, watches, selection);
    }

    /// The report of a subject that could not be started.
    fn not_started(&self, error: &CallError) -> Exit {
        let mut run = self.blank();
        run.conclusion = Conclusion::Untestable {
            reason: format!("the subject cannot be used: {error}"),
            musts: Vec::new(),
        };
        let report = forms::report(vec![run], false);
        match self.delivery.deliver(&report) {
            Err(Exit::OurFault) => Exit::OurFault,
            _ => Exit::of(&report),
        }
    }
}

/// Four for each processor: most scenarios wait most of the time.
fn default_jobs() -> u16 {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    u16::try_from(processors * 4).unwrap_or(256).min(64)
}

/// Puts things into an order that follows from the seed alone (splitmix64, Fisher and Yates).
fn shuffle<T>(things: &mut [T], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for last in (1..things.len()).rev() {
        let below = last as u64 + 1;
        let chosen = usize::try_from(next() % below).unwrap_or(last);
        things.swap(last, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_follows_from_the_seed() {
        let order = |seed| {
            let mut all: Vec<u8> = (0..100).collect();
            shuffle(&mut all, seed);
            all
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u8>>());
    }

    #[test]
    fn a_profile_is_named_as_in_data() {
        assert_eq!(profile("lsp-base"), Ok(Profile::LspBase));
        assert!(profile("server").unwrap_err().contains("transient"));
    }
}
