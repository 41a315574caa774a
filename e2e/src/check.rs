//! One check of one server: a workspace, a mounted runtime, the questions, the end, the verdict.

mod cycles;
mod disturb;
mod found;
mod measuring;
mod questions;
mod report;
mod second;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::lsp::LspService;
use dsh_harness::subprocess::Subprocess;
use dsh_harness::{Deployment, MountError, Runtime};
use dsh_reports::{CyclesKind, Run, Selection};
use dsh_transcript::{Bounds, Event, EventBody, Recorder, jsonl};
use tokio_util::sync::CancellationToken;

use crate::ask::{self, Question, Seam};
use crate::found::Found;
use crate::judge::{Asked, Knowledge, Observed, first_failure, judge};
use crate::life::Life;
use crate::place::At;
use crate::probes::{PROBES, Phase, Phases, Probe};
use crate::readiness::{End, Track};
use crate::recording::RecordingSubprocess;
use crate::samples::{LaidOut, Operation, Sample};
use crate::snapshot::{Difference, Snapshot};
use crate::target::{Limits, Target};
use crate::time::micros;
use workspace::Place;

/// Where the server is asked.
#[derive(Clone, Debug)]
pub enum Ground {
    /// A copy of a sample workspace, with known answers.
    Sample(&'static Sample),
    /// A folder of the user's, at places of the user's choice: answers are judged for shape.
    Given {
        /// The workspace, an absolute path.
        workspace: PathBuf,
        /// Where to ask; nowhere in particular if empty.
        at: Vec<At>,
    },
    /// A folder of the user's, at places that were found without help.
    Found {
        /// The workspace, an absolute path.
        workspace: PathBuf,
        /// Where to ask, and how that was found.
        found: Found,
    },
    /// An empty temporary folder with one file.
    Bare,
}

/// The usual number of rounds: as many as an agent asks in a long session.
pub const ROUNDS: usize = 200;

/// Bytes of one message that are kept, and so can be judged: as many as a host takes by default.
pub(crate) const KEPT: usize = 16_000_000;

/// What goes wrong where nothing is odd is given this part of the budget where something is: it says
/// little then, and mostly comes to the same end.
const DOUBTFUL: u32 = 4;

/// How to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How long each probe may wait for the known answer; a quarter of it where another question of
    /// the same operation had no right answer within the whole.
    pub budget: Duration,
    /// The probes to judge; all if empty.
    pub only: Vec<&'static Probe>,
    /// How many times a document is opened, asked about and closed in a row. The copies of the
    /// stretch over many files are half as many; fewer than 50 do not judge QUA-15.
    pub rounds: usize,
    /// Whether the temporary workspace is kept.
    pub keep: bool,
    /// Where temporary workspaces are made.
    pub temporary: PathBuf,
    /// The command that repeats the check, without `--only`.
    pub reproduce: String,
    /// Whether the server is measured without the host too.
    pub measure: Measuring,
    /// Whether it is a trial of settings: its budget is nobody's choice, and is told as the trial's.
    pub trial: bool,
}

/// Whether a server is measured without the host, by a raw driver: how soon it tells the truth, how
/// it takes other ways of a client, how it ends, what it makes of odd requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measuring {
    /// Behind the judgement, where every probe is judged.
    #[default]
    Yes,
    /// Not at all.
    No,
    /// Nothing is judged: it is only measured.
    Only,
}

/// What the check is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The runtime is being mounted.
    Mounting,
    /// A question is asked; cold servers take their time.
    Asking(Operation),
    /// A file was changed, and is asked about again.
    AskingAgain(Operation),
    /// The server is being shut down.
    Ending,
    /// A MUST failed or may hang on settings, and others are tried.
    Trying,
    /// The server is measured without the host: what is done.
    Measuring(&'static str),
    /// The server is started again, in a workspace of its own, and asked until it answers.
    StartingAgain(Operation),
    /// A question is asked over and over.
    Cycling(CyclesKind),
    /// Questions are given up while the server works on them.
    GivingUp,
    /// Another file was changed on disk, and the question about it is asked.
    ChangingOnDisk(Operation),
    /// The server is killed, and its replacement asked.
    Killing,
}

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// The part of the report.
    pub run: Run,
    /// Everything that was recorded.
    pub events: Vec<Event>,
    /// The workspace, where it was kept.
    pub workspace: Option<PathBuf>,
}

impl Checked {
    /// Has the transcript written to `path` and names it in every case that somebody has to look
    /// at.
    pub fn leave_transcript(
        &mut self,
        path: &Path,
        write: impl FnOnce(&Path, &[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut text = Vec::new();
        jsonl::write(&mut text, &self.events)?;
        write(path, &text)?;
        report::refer_to(&mut self.run, &path.display().to_string());
        Ok(())
    }
}

/// Why a check could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The temporary workspace could not be made.
    #[error("cannot make a temporary workspace: {0}; is there room, and may it be written?")]
    Workspace(String),
    /// It was stopped at once; every process it started is gone.
    #[error("stopped")]
    Stopped,
}

/// Checks a server.
///
/// `cancel` ends it early: the server is shut down in order, and what was seen is reported.
/// `stop` ends it at once: processes are killed, nothing is reported.
pub async fn check(
    target: &Target,
    ground: &Ground,
    options: &CheckOptions,
    subprocess: Arc<dyn Subprocess>,
    cancel: &Cancel,
    stop: &CancellationToken,
    watch: &(dyn Fn(Step) + Sync),
) -> Result<Checked, CheckError> {
    let recorder = Recorder::with_bounds(bounds());
    let recording = Arc::new(RecordingSubprocess::new(subprocess, recorder.clone()));
    let place = Place::make(ground, target, options)?;
    let phases = Phases::of(&options.only);
    let second_place = match ground {
        Ground::Bare => None,
        _ if !phases.second_start() => None,
        _ => Some(Place::make(ground, target, options)?),
    };
    // Some servers leave files in the folder for temporary ones: this one goes with the check.
    let scratch = scratch(options)?;
    let mut target = target.clone();
    if let Some(path) = scratch.path().to_str() {
        target
            .env
            .entry("TMPDIR".to_owned())
            .or_insert_with(|| path.to_owned());
    }
    let work = Check {
        target: &target,
        options,
        recorder,
        place: &place,
        second_place: second_place.as_ref(),
        phases,
        cancel,
        watch,
    };
    let at_once = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work.patience() => {}
        }
    };
    let mut carried_out = Box::pin(work.all(&recording, ground, scratch.path()));
    let checked = tokio::select! {
        biased;
        () = at_once => None,
        checked = &mut carried_out => Some(checked),
    };
    // While the work stands still, so that it starts nothing anew, and before it goes.
    recording.end_all().await;
    drop(carried_out);
    recording.end_all().await;
    let checked = match checked {
        Some(checked) => Ok(checked),
        None if stop.is_cancelled() => Err(CheckError::Stopped),
        None => Ok(work.cut_short()),
    };
    let ended = place.end(options.keep);
    let second_ended = second_place.map(|place| place.end(false)).transpose();
    let mut checked = checked?;
    if let Err(left) = second_ended {
        checked.run.remarks.push(left);
    }
    match ended {
        Ok(workspace) => checked.workspace = workspace,
        Err(left) => checked.run.remarks.push(left),
    }
    Ok(checked)
}

/// What is kept of a conversation: every message whole that the host takes by default.
fn bounds() -> Bounds {
    Bounds {
        body: KEPT,
        ..Bounds::default()
    }
}

/// The folder for the temporary files of a server.
fn scratch(options: &CheckOptions) -> Result<tempfile::TempDir, CheckError> {
    tempfile::Builder::new()
        .prefix("dsh-tmp-")
        .tempdir_in(&options.temporary)
        .map_err(|error| CheckError::Workspace(error.to_string()))
}

struct Check<'a> {
    target: &'a Target,
    options: &'a CheckOptions,
    recorder: Recorder,
    place: &'a Place<'a>,
    /// Where it is started the second time.
    second_place: Option<&'a Place<'a>>,
    phases: Phases,
    cancel: &'a Cancel,
    watch: &'a (dyn Fn(Step) + Sync),
}

/// What asking came to.
#[derive(Default)]
struct Findings {
    questions: Vec<Asked>,
    reopened: Vec<Asked>,
    columns: Vec<Asked>,
    paths: Vec<Asked>,
    life: Life,
    /// What is different in the workspaces, our own changes aside.
    written: Difference,
    /// Where the events of the first start end.
    first_end: u64,
    remarks: Vec<String>,
    /// Why the runtime is not there, where it is not.
    unmounted: Option<String>,
    /// Why the runtime did not end in order.
    undisposed: Option<String>,
}

impl Check<'_> {
    /// Judges the server behind the host, and measures it without, as far as that was asked for.
    async fn all(
        &self,
        recording: &Arc<RecordingSubprocess>,
        ground: &Ground,
        scratch: &Path,
    ) -> Checked {
        let mut checked = match self.options.measure {
            Measuring::Only => self.unjudged(),
            Measuring::Yes | Measuring::No => self.carry_out(Arc::clone(recording)).await,
        };
        let measured = match self.options.measure {
            Measuring::No => false,
            // No clause that can be chosen hangs on what is measured.
            Measuring::Yes => self.options.only.is_empty() && !checked.events.is_empty(),
            Measuring::Only => true,
        };
        if measured && !self.cancel.is_cancelled() {
            self.measure(recording, ground, scratch, &mut checked.run)
                .await;
            let seen = checked.events.len() as u64;
            checked.events.extend(self.recorder.events_from(seen));
            let end_us = checked.events.last().map_or(0, |event| event.at_us);
            checked.run.duration_us = end_us;
        }
        checked
    }

    async fn carry_out(&self, recording: Arc<RecordingSubprocess>) -> Checked {
        let mut findings = Findings::default();
        if self.phases.first_start() {
            self.first(&recording, &mut findings).await;
        }
        findings.first_end = self.recorder.len();
        if self.phases.second_start() && findings.unmounted.is_none() {
            self.again(&recording, &mut findings).await;
        }
        let events = self.recorder.events();
        if findings.unmounted.is_none() && !self.cancel.is_cancelled() {
            findings.unmounted = not_started(&events);
        }
        let run = self.report(&events, &findings);
        Checked {
            run,
            events,
            workspace: None,
        }
    }

    /// What was seen of a server that did not end in the time that an interruption leaves it.
    fn cut_short(&self) -> Checked {
        let events = self.recorder.events();
        let findings = Findings {
            first_end: self.recorder.len(),
            ..Findings::default()
        };
        let run = self.report(&events, &findings);
        Checked {
            run,
            events,
            workspace: None,
        }
    }

    /// A check in which nothing was asked through the host.
    fn unjudged(&self) -> Checked {
        let findings = Findings::default();
        let seen = Observed {
            events: &[],
            whole: &[],
            knowledge: Knowledge::Nothing,
            sample: None,
            questions: &[],
            reopened: &[],
            columns: &[],
            paths: &[],
            life: &findings.life,
            written: &findings.written,
            configured: false,
            rising: false,
            budget_us: 0,
            trial: false,
            grace_us: 0,
        };
        let run = report::assemble(self, &seen, Vec::new(), &findings.told(), Selection::Some);
        Checked {
            run,
            events: Vec::new(),
            workspace: None,
        }
    }

    /// The orderly life: start, questions, end.
    async fn first(&self, recording: &Arc<RecordingSubprocess>, findings: &mut Findings) {
        (self.watch)(Step::Mounting);
        let mut before = match &self.place {
            // It was started once already.
            Place::Found { found, .. } => found.before.clone(),
            _ => None,
        }
        .unwrap_or_else(|| Snapshot::of(Path::new(self.place.root())));
        match self.mount(recording).await {
            Ok(runtime) => {
                match runtime.lsp() {
                    Some(lsp) => self.ask(lsp.as_ref(), &mut before, findings).await,
                    None => {
                        findings.unmounted =
                            Some("the runtime has nothing that could be asked".to_owned());
                    }
                }
                (self.watch)(Step::Ending);
                findings.undisposed = runtime.dispose().await.err().map(|error| error.to_string());
            }
            Err(reason) => findings.unmounted = Some(reason),
        }
        let after = Snapshot::of(Path::new(self.place.root()));
        findings.written.join(before.compare(&after));
    }

    /// The second start, for what would disturb the first.
    async fn again(&self, recording: &Arc<RecordingSubprocess>, findings: &mut Findings) {
        let Some(place) = self.second_place else {
            findings.life.absent = Some("no position is known; give --at FILE:LINE:COL".to_owned());
            return;
        };
        let undecided = self.phases.answers()
            && !(findings.questions.iter()).any(|asked| asked.track.end() == Some(&End::Stable));
        if undecided || self.cancel.is_cancelled() {
            findings.life.absent = Some(none_to_go_on_with(place).to_owned());
            return;
        }
        let mut before = Snapshot::of(Path::new(place.root()));
        match self.mount(recording).await {
            Ok(runtime) => {
                if let Some(lsp) = runtime.lsp() {
                    self.second(lsp.as_ref(), place, &mut before, findings)
                        .await;
                }
                (self.watch)(Step::Ending);
                let disposed = runtime.dispose().await;
                findings.remarks.extend(
                    disposed.err().map(|error| {
                        format!("the end of the second start was not in order: {error}")
                    }),
                );
            }
            Err(reason) if self.phases.first_start() => findings.life.absent = Some(reason),
            Err(reason) => findings.unmounted = Some(reason),
        }
        let after = Snapshot::of(Path::new(place.root()));
        findings.written.join(before.compare(&after));
    }

    fn limits(&self) -> Limits {
        let own = self.target.limits.unwrap_or_default();
        own.within(self.options.budget)
    }

    /// Ends when an interruption has had the time that an end in order may take.
    async fn patience(&self) {
        self.cancel.cancelled().await;
        let limits = self.limits();
        let order = Duration::from_millis(limits.shutdown_ms + limits.kill_grace_ms);
        #[expect(
            clippy::disallowed_methods,
            reason = "the bounds of an interruption are durations of the contract"
        )]
        tokio::time::sleep(order + Duration::from_millis(700)).await;
    }

    async fn mount(&self, recording: &Arc<RecordingSubprocess>) -> Result<Runtime, String> {
        let text = Target {
            limits: Some(self.limits()),
            ..self.target.clone()
        }
        .deployment();
        let origin = format!("(the deployment made for {})", self.target.name);
        let deployment =
            Deployment::parse(&text, &origin).map_err(|error| error.problem().to_owned())?;
        let subprocess: Arc<dyn Subprocess> = Arc::clone(recording) as Arc<dyn Subprocess>;
        Runtime::builder()
            .deployment(deployment)
            .subprocess(subprocess)
            .mount(self.cancel)
            .await
            .map_err(|error| match error {
                MountError::Plugins { failures, .. } => {
                    let all: Vec<String> = failures
                        .iter()
                        .map(|failure| failure.error.to_string())
                        .collect();
                    all.join("; ")
                }
                other => other.to_string(),
            })
    }

    async fn ask(&self, lsp: &dyn LspService, allowed: &mut Snapshot, findings: &mut Findings) {
        let relative = |uri: &str| self.place.relative(uri);
        let step = |operation| (self.watch)(Step::Asking(operation));
        let mut seam = Seam {
            lsp,
            recorder: &self.recorder,
            root: self.place.root(),
            cancel: self.cancel,
            relative: &relative,
            questions: Vec::new(),
            last: Vec::new(),
            reference: None,
            initialized: None,
            watch: &step,
        };
        match self.place {
            Place::Sample {
                sample, laid_out, ..
            } => {
                self.ask_sample(&mut seam, sample, laid_out, allowed, findings)
                    .await;
            }
            Place::Given { at, .. } if !at.is_empty() => {
                self.ask_given(&mut seam, at, findings).await;
            }
            Place::Found { found, .. } => self.ask_found(&mut seam, &found.at, findings).await,
            Place::Given { somewhere, .. } | Place::Bare { somewhere, .. } => {
                self.ask_somewhere(&mut seam, somewhere, findings).await;
            }
        }
    }

    async fn ask_sample<'a>(
        &self,
        seam: &mut Seam<'a>,
        sample: &'a Sample,
        laid_out: &LaidOut<'_>,
        allowed: &mut Snapshot,
        findings: &mut Findings,
    ) {
        if !self.phases.answers() {
            let Some(first) = sample.questions.first() else {
                return;
            };
            self.once(seam, questions::of_sample(first), findings).await;
            return;
        }
        let budget = self.options.budget;
        let (asked, put) = questions::all_of(&sample.questions, budget);
        findings.questions = asked;
        seam.take(put);
        self.go_round(seam, &mut findings.questions).await;
        let further = [
            (Phase::Columns, &sample.columns, &mut findings.columns),
            (Phase::Paths, &sample.paths, &mut findings.paths),
        ];
        for (phase, questions, found) in further {
            let over = self.cancel.is_cancelled() || seam.initialized.is_none();
            if self.phases.has(phase) && !over {
                let (mut asked, put) = questions::all_of(questions, budget);
                for asked in &mut asked {
                    if !is_settled(&findings.questions, asked.operation) {
                        asked.track = Track::new(asked.label.clone(), budget / DOUBTFUL);
                    }
                }
                *found = asked;
                seam.take(put);
                self.go_round(seam, found).await;
            }
        }
        if self.phases.has(Phase::ChangedText) {
            self.ask_changed(seam, sample, laid_out, allowed, findings)
                .await;
        }
    }

    async fn ask_changed<'a>(
        &self,
        seam: &mut Seam<'a>,
        sample: &'a Sample,
        laid_out: &LaidOut<'_>,
        allowed: &mut Snapshot,
        findings: &mut Findings,
    ) {
        let budget = self.options.budget;
        for reopened in &sample.reopened {
            if self.cancel.is_cancelled() || seam.initialized.is_none() {
                return;
            }
            let operation = reopened.question.operation;
            let before = is_settled(&findings.questions, operation);
            let (mut asked, put) = questions::reopened(reopened, budget);
            if before {
                (self.watch)(Step::AskingAgain(operation));
                if let Err(error) = laid_out.write_reopened(reopened) {
                    asked.track.stop(End::Refused(error.to_string()));
                } else {
                    allowed.allow(&reopened.file);
                    let (path, change) = (reopened.file.clone(), "written".to_owned());
                    self.recorder
                        .emit(None, EventBody::FileChanged { path, change });
                    seam.take(vec![put]);
                    self.go_round(seam, std::slice::from_mut(&mut asked)).await;
                }
            }
            findings.reopened.push(asked);
        }
    }

    async fn ask_given(&self, seam: &mut Seam<'_>, at: &[At], findings: &mut Findings) {
        let budget = self.options.budget;
        let (asked, put) = questions::at_all(at, budget);
        findings.questions = asked;
        seam.take(put);
        self.go_round(seam, &mut findings.questions).await;
    }

    /// No answer is known: each operation is asked once, so that there is something on the wire.
    async fn ask_somewhere(&self, seam: &mut Seam<'_>, somewhere: &At, findings: &mut Findings) {
        for operation in Operation::ALL {
            let refused = ask::Field::can_ask(seam, operation) == Some(false);
            if refused || self.cancel.is_cancelled() {
                continue;
            }
            self.once(seam, questions::at(operation, somewhere), findings)
                .await;
            if seam.initialized.is_none() {
                return;
            }
        }
    }

    async fn once<'a>(&self, seam: &mut Seam<'a>, put: Question<'a>, findings: &mut Findings) {
        let operation = put.operation;
        seam.take(vec![put]);
        let reply = ask::Field::ask(seam, 0, self.options.budget).await;
        // Whether it is advertised is known now.
        let asked = ask::Field::can_ask(seam, operation) == Some(true);
        if let Some(reply) = reply.filter(|_| asked)
            && let Some(remark) = questions::remark(operation, &reply, self.options.budget)
        {
            findings.remarks.push(remark);
        }
    }

    async fn go_round(&self, seam: &mut Seam<'_>, asked: &mut [Asked]) {
        let mut tracks: Vec<(Operation, &mut Track)> = asked
            .iter_mut()
            .map(|asked| (asked.operation, &mut asked.track))
            .collect();
        ask::rounds(seam, &mut tracks).await;
    }

    fn report(&self, events: &[Event], findings: &Findings) -> Run {
        let interrupted = self
            .cancel
            .reason()
            .is_some_and(|reason| !matches!(reason, CancelReason::Timeout(_)));
        let knowledge = match self.place {
            Place::Sample { .. } => Knowledge::Known,
            Place::Given { at, .. } if !at.is_empty() => Knowledge::Shape,
            Place::Found { .. } => Knowledge::Found,
            _ => Knowledge::Nothing,
        };
        let first_end = usize::try_from(findings.first_end).unwrap_or(usize::MAX);
        let seen = Observed {
            events: events.get(..first_end).unwrap_or(events),
            whole: events,
            knowledge,
            sample: match self.place {
                Place::Sample { sample, .. } => Some(sample),
                _ => None,
            },
            questions: &findings.questions,
            reopened: &findings.reopened,
            columns: &findings.columns,
            paths: &findings.paths,
            life: &findings.life,
            written: &findings.written,
            configured: !self.target.configuration.is_null(),
            rising: self.target.rising_versions,
            budget_us: micros(self.options.budget),
            trial: self.options.trial,
            grace_us: self.limits().kill_grace_ms.saturating_mul(1_000),
        };
        let chosen =
            |probe: &&Probe| self.options.only.is_empty() || self.options.only.contains(probe);
        let mut cases = Vec::new();
        if findings.unmounted.is_none() {
            for probe in PROBES.iter().filter(chosen) {
                // What an interruption kept from being seen is not judged at all.
                let judged = judge(probe, &seen);
                cases.extend(judged.into_iter().filter(|case| {
                    !interrupted
                        || !matches!(
                            case.verdict,
                            dsh_reports::Verdict::Untestable | dsh_reports::Verdict::Timeout
                        )
                }));
            }
        }
        let selection = match (interrupted, self.options.only.is_empty()) {
            (true, _) => Selection::Interrupted,
            (false, true) => Selection::All,
            (false, false) => Selection::Some,
        };
        report::assemble(self, &seen, cases, &findings.told(), selection)
    }
}

/// Why nothing more was done with a server.
const fn none_to_go_on_with(place: &Place<'_>) -> &'static str {
    match place {
        Place::Sample { .. } => "no question was answered right, so there was none to go on with",
        _ => {
            "no question was answered the same three times running, so there was none to go on with"
        }
    }
}

/// Whether a question of this operation was answered right for good.
fn is_settled(questions: &[Asked], operation: Operation) -> bool {
    questions
        .iter()
        .any(|asked| asked.operation == operation && asked.track.end() == Some(&End::Stable))
}

/// Why no process was started, where the seam was asked and none was: nothing can be said about the
/// server then.
fn not_started(events: &[Event]) -> Option<String> {
    let started = |event: &Event| matches!(event.body, EventBody::ProcessStarted { .. });
    if events.iter().any(started) {
        return None;
    }
    first_failure(events)
}

impl Findings {
    fn told(&self) -> report::Told<'_> {
        report::Told {
            remarks: &self.remarks,
            unmounted: self.unmounted.as_deref(),
            undisposed: self.undisposed.as_deref(),
        }
    }
}
