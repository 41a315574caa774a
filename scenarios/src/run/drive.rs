//! Carrying out one case.

mod calls;
mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use dsh_fake_lsp::{Control, ControlError};
use dsh_transcript::{EventBody, Recorder, Subscription};
use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use indexmap::IndexMap;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::checks::Failure;
use super::folder;
use super::judge::{Judgement, Seen, Stop, judge};
use super::left::{self, Left, Marks};
use super::mount::{self, Surroundings};
use super::outcome::Settled;
use super::stage::{Stage, StageError};
use super::trace::Trace;
use super::{CaseResult, Ran, Setup, Tampering};
use crate::format::{Case, Outcome, Scenario, Step};
use crate::scarce::advised;
use crate::subject::{CallError, Description, MountParams, Subject};

/// How long a subject may take to become quiet when a case was cut short. Its servers are gone by
/// then, so that nothing is left for it to wait for.
const QUIET: Duration = Duration::from_secs(3);

/// What the fake server says on stderr when it loses its runner, or cannot find it.
const LOST: [&str; 2] = [
    "dsh-fake-lsp: the control channel is lost",
    "dsh-fake-lsp: cannot reach the runner",
];

/// Carries out one case and judges it.
///
/// The subject has to have nothing mounted. Whatever the case started is ended when this returns,
/// but for what a subject that is not sound may still hold.
pub async fn run_case(
    case: &Case,
    subject: &dyn Subject,
    setup: &Setup,
    tampering: Option<&dyn Tampering>,
) -> Ran {
    let began = Instant::now();
    let mut ran = match refusal(&case.scenario, subject.description(), setup) {
        Some(what) => Ran {
            result: result(
                case,
                judgement_of(&case.scenario, Stop::NotApplicable(what)),
            ),
            sound: true,
            interrupted: false,
        },
        // A case under way is large; whoever waits for it need not be.
        None => match Driver::new(case, subject, setup, tampering)
            .map(|driver| Box::pin(driver.run(case, began)))
        {
            Ok(running) => running.await,
            Err(stop) => Ran {
                result: result(case, judgement_of(&case.scenario, stop)),
                sound: true,
                interrupted: false,
            },
        },
    };
    ran.result.duration = began.elapsed();
    ran
}

/// What a subject does not claim of what a scenario needs.
fn refusal(scenario: &Scenario, subject: &Description, setup: &Setup) -> Option<String> {
    let profile = scenario.profile;
    let claimed = setup.profiles.as_ref().unwrap_or(&subject.profiles);
    if !claimed.contains(&profile) {
        let name = &subject.name;
        return Some(format!("{name} does not claim the profile {profile}"));
    }
    let op = scenario.steps.iter().find_map(|step| match step {
        Step::Register(_) => Some("register").filter(|op| !has(subject, op)),
        Step::Control(step) => Some(step.op.as_str()).filter(|op| !has(subject, op)),
        _ => None,
    })?;
    let name = &subject.name;
    Some(format!("{name} does not offer the control operation {op}"))
}

fn has(subject: &Description, op: &str) -> bool {
    subject.controls.iter().any(|control| control == op)
}

/// A judgement where nothing was seen.
fn judgement_of(scenario: &Scenario, stop: Stop) -> Judgement {
    judge(&Seen {
        scenario,
        trace: &Trace::default(),
        stop: Some(stop),
        left: &Left::default(),
        foreign: false,
    })
}

fn result(case: &Case, judgement: Judgement) -> CaseResult {
    CaseResult {
        expected: judgement.expected,
        got: judgement.got,
        clauses: judgement.clauses,
        watched: judgement.watched,
        decisive: judgement.decisive,
        ..CaseResult::bare(&*case.id, judgement.verdict, judgement.message)
    }
}

impl From<StageError> for Stop {
    fn from(error: StageError) -> Self {
        match error {
            StageError::Impossible { .. } => Self::NotApplicable(error.to_string()),
            error => Self::Fault(format!("the workspace cannot be prepared: {error}")),
        }
    }
}

/// A call to the subject.
struct Called {
    id: Option<u64>,
    method: &'static str,
    params: Value,
    /// The position of its `Result` event.
    seq: Option<u64>,
}

type Answer = (String, Settled);

/// A case under way.
struct Driver<'a> {
    scenario: Scenario,
    subject: &'a dyn Subject,
    setup: &'a Setup,
    tampering: Option<&'a dyn Tampering>,
    stage: Stage,
    control: Control,
    recorder: Recorder,
    news: Subscription,
    trace: Trace,
    mounting: MountParams,
    calls: IndexMap<String, Called>,
    settled: BTreeMap<String, Settled>,
    pending: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// The end of the subject, should it come.
    gone: BoxFuture<'a, CallError>,
    /// The call that mounted what is not disposed yet.
    mounted: Option<String>,
    /// What is waited for, for the message of a timeout.
    waiting: String,
    /// The descriptors of the subject before the case.
    descriptors: Option<std::collections::BTreeSet<String>>,
    left: Left,
    /// What of which step is a snapshot.
    shown: BTreeMap<String, Shown>,
    snapshots: Vec<(String, String)>,
}

/// What of an outcome is a snapshot.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// The rendered text of a tool call.
    Text,
    /// The requests that reached the model.
    Requests,
}

impl<'a> Driver<'a> {
    fn new(
        case: &Case,
        subject: &'a dyn Subject,
        setup: &'a Setup,
        tampering: Option<&'a dyn Tampering>,
    ) -> Result<Self, Stop> {
        if !setup.executable.is_file() {
            let program = setup.executable.display();
            return Err(Stop::Fault(format!(
                "the fake server's program {program} does not exist"
            )));
        }
        let mut stage = Stage::new(&setup.temp, &setup.executable, setup.seed)?;
        let fault = |what: &str, error: String| Stop::Fault(format!("{what}: {error}"));
        let scenario = stage
            .places
            .fill(&case.scenario)
            .map_err(|error| fault("the templates cannot be filled in", error.to_string()))?;
        stage.write(&scenario.workspace)?;
        let recorder = Recorder::new();
        let control = Control::recording_in(recorder.clone(), &setup.temp).map_err(|error| {
            let told = match &error {
                ControlError::Bind(error) => advised(error),
                error => error.to_string(),
            };
            fault("the control channel", told)
        })?;
        let around = Surroundings {
            places: &stage.places,
            control: &control,
            subcommand: &setup.subcommand,
            path: &setup.path,
            tampering,
        };
        let mounting = mount::params(&scenario, &around)
            .map_err(|error| fault("the fake server's script", advised(&error)))?;
        let root = &stage.places.root;
        let shown = scenario.steps.iter().filter_map(|step| match step {
            Step::Tool(step) if step.snapshot => Some((step.r#as.clone(), Shown::Text)),
            Step::Turn(step) if step.snapshot => Some((step.r#as.clone(), Shown::Requests)),
            _ => None,
        });
        let shown = shown.collect();
        let descriptors = subject.pid().map(|pid| left::descriptors(pid, root));
        Ok(Self {
            scenario,
            subject,
            setup,
            tampering,
            news: recorder.subscribe(),
            stage,
            control,
            recorder,
            trace: Trace::default(),
            mounting,
            calls: IndexMap::new(),
            settled: BTreeMap::new(),
            pending: FuturesUnordered::new(),
            gone: subject.gone(),
            mounted: None,
            waiting: String::new(),
            descriptors,
            left: Left::default(),
            shown,
            snapshots: Vec::new(),
        })
    }

    async fn run(mut self, case: &Case, began: Instant) -> Ran {
        let budget = self.setup.budget.of(self.scenario.budget_ms);
        let deadline = began + budget;
        let cancel = self.setup.cancel.clone();
        let stop = {
            let body = pin!(timeout_at(deadline, self.body()));
            match select(body, pin!(cancel.cancelled())).await {
                Either::Left((Ok(Ok(())), _)) => None,
                Either::Left((Ok(Err(stop)), _)) => Some(stop),
                Either::Left((Err(_), _)) => Some(Stop::Timeout(String::new())),
                Either::Right(_) => Some(Stop::Interrupted),
            }
        };
        self.catch_up();
        let stop = stop.map(|stop| self.explained(stop));
        let quiet = stop.is_none();
        let interrupted = stop == Some(Stop::Interrupted);
        let judgement = judge(&Seen {
            scenario: &self.scenario,
            trace: &self.trace,
            stop,
            left: &self.left,
            foreign: self.setup.foreign,
        });
        let mut result = result(case, judgement);
        let keep = result.verdict.is_red() || self.setup.keep_transcripts;
        let keep_folder = self.setup.keep_folders && result.verdict.is_red() && !interrupted;
        let (trace, sound, snapshots, folder) = self.finish(quiet, keep_folder).await;
        result.snapshots = snapshots;
        result.folder = folder;
        if keep {
            result.transcript = trace.into_events();
        }
        Ran {
            result,
            sound,
            interrupted,
        }
    }

    /// Says what a stop is about where only the end of it was seen.
    fn explained(&self, stop: Stop) -> Stop {
        let lost = self.settled.values().find_map(|settled| match settled {
            Err(CallError::Refused { message, data, .. }) => {
                let data = data.to_string();
                LOST.iter()
                    .any(|lost| message.contains(lost) || data.contains(lost))
                    .then(|| message.clone())
            }
            _ => None,
        });
        if let Some(message) = lost {
            return Stop::Fault(format!("a fake server lost its control channel: {message}"));
        }
        match stop {
            Stop::Timeout(_) => Stop::Timeout(format!("{}{}", self.waiting, self.held())),
            stop => stop,
        }
    }

    /// What the servers' scripts hold and nothing released.
    fn held(&self) -> String {
        let mut held: Vec<(Option<u32>, Option<u64>, String)> = Vec::new();
        for event in self.trace.events() {
            let EventBody::Note { kind, data, .. } = &event.body else {
                continue;
            };
            let token = data["token"].as_u64();
            match kind.as_str() {
                "held" => {
                    let name = data["hold"].as_str().unwrap_or_default().to_owned();
                    held.push((event.process, token, name));
                }
                "released" | "dropped" => {
                    held.retain(|(process, held, _)| (*process, *held) != (event.process, token));
                }
                _ => {}
            }
        }
        if held.is_empty() {
            return String::new();
        }
        let names: Vec<String> = held.into_iter().map(|(_, _, name)| name).collect();
        format!("; still held by the script: {}", names.join(", "))
    }

    /// Ends and removes everything, but for the case's folder if that is to be kept; whether the
    /// subject can be used again.
    async fn finish(
        mut self,
        quiet: bool,
        keep: bool,
    ) -> (Trace, bool, Vec<(String, String)>, Option<PathBuf>) {
        let address = self.control.address().to_owned();
        let marks = Marks {
            root: &self.stage.places.root,
            address: &address,
        };
        let mut sound = quiet && self.left == Left::default();
        // Whatever still runs of the fake servers ends with the channel.
        drop(self.control);
        if !quiet {
            let subject = self.subject;
            let rest = async {
                if self.mounted.is_some() {
                    let call = subject.request("unmount", json!({})).await;
                    if call.outcome.await.is_err() {
                        return false;
                    }
                }
                while let Some((_, settled)) = self.pending.next().await {
                    if matches!(
                        settled,
                        Err(CallError::Gone { .. } | CallError::Nonsense { .. })
                    ) {
                        return false;
                    }
                }
                true
            };
            sound = timeout(QUIET, rest).await.unwrap_or(false);
            if !sound {
                subject.end().await;
            }
        }
        if !quiet || !self.left.processes.is_empty() {
            left::end(&left::processes(&marks), &marks);
        }
        let folder = if keep {
            if let Err(error) = folder::keep(&self.setup.temp) {
                tracing::warn!("the folder of the run will not stay: {error}");
            }
            Some(self.stage.keep())
        } else {
            // What cannot be removed now is removed with the folder of the run; it changes no
            // verdict.
            if let Err(error) = self.stage.close() {
                tracing::warn!("a case's folder stays for now: {error}");
            }
            None
        };
        (self.trace, sound, self.snapshots, folder)
    }

    /// The case from mounting to what is left.
    async fn body(&mut self) -> Result<(), Stop> {
        self.mount().await?;
        let steps = std::mem::take(&mut self.scenario.steps);
        let outcome = self.steps(&steps).await;
        self.scenario.steps = steps;
        outcome?;
        self.collect().await?;
        self.dispose_at_the_end().await?;
        self.ends().await?;
        self.look();
        Ok(())
    }

    fn succeeded(&self, name: &str) -> bool {
        self.settled.get(name).is_some_and(Result::is_ok)
    }

    /// Waits for whatever was started.
    async fn collect(&mut self) -> Result<(), Stop> {
        let names: Vec<String> = self.calls.keys().cloned().collect();
        for name in names {
            self.until_settled(&name).await?;
        }
        Ok(())
    }

    /// Disposes what no step did.
    async fn dispose_at_the_end(&mut self) -> Result<(), Stop> {
        // A mount that failed has nothing to be disposed.
        let mounted = self.mounted.take();
        if !mounted.is_some_and(|mount| self.succeeded(&mount)) {
            return Ok(());
        }
        self.call("unmount", "unmount", "unmount", json!({})).await;
        self.until_settled("unmount").await?;
        let check = Outcome {
            clauses: vec!["DIS-4".to_owned()],
            ..succeeds()
        };
        self.expect("unmount", &check)
    }

    /// Waits until the ends of all servers are recorded. One that still runs is left behind, and
    /// not waited for.
    async fn ends(&mut self) -> Result<(), Stop> {
        self.catch_up();
        self.left.processes = left::processes(&Marks {
            root: &self.stage.places.root,
            address: self.control.address(),
        });
        let left: Vec<u32> = self.left.processes.iter().map(|(pid, _)| *pid).collect();
        let mut running: BTreeMap<u32, u32> = BTreeMap::new();
        let mut at = 0;
        loop {
            for event in &self.trace.events()[at..] {
                let Some(process) = event.process else {
                    continue;
                };
                match &event.body {
                    EventBody::ProcessStarted { pid, .. } if !left.contains(pid) => {
                        running.insert(process, *pid);
                    }
                    EventBody::ProcessEnded { .. } => {
                        running.remove(&process);
                    }
                    _ => {}
                }
            }
            at = self.trace.events().len();
            let Some(process) = running.keys().next() else {
                return Ok(());
            };
            self.waiting = format!("the end of process {process}");
            self.more().await?;
        }
    }

    /// Looks at what is left besides processes.
    fn look(&mut self) {
        self.left.files = left::files(&self.stage.tmp());
        if let (Some(before), Some(pid)) = (&self.descriptors, self.subject.pid()) {
            let now = left::descriptors(pid, &self.stage.places.root);
            self.left.descriptors = now.difference(before).cloned().collect();
        }
    }
}

fn succeeds() -> Outcome {
    Outcome {
        ok: Some(true),
        ..Outcome::default()
    }
}

/// What it means that a subject cannot be asked anything any more.
fn over(error: CallError) -> Stop {
    match error {
        CallError::Nonsense { reason } => Stop::Failed(nonsense("", &reason)),
        CallError::Gone { how } => Stop::Gone(format!("the subject ended: {how}")),
        other => Stop::Gone(other.to_string()),
    }
}

fn nonsense(what: &str, reason: &str) -> Failure {
    Failure {
        message: format!("{what}the subject's answer cannot be read: {reason}"),
        expected: "answers as the subject protocol has them".to_owned(),
        got: reason.to_owned(),
        ..Failure::default()
    }
}

fn unknown(name: &str) -> Stop {
    Stop::Fault(format!(
        "the scenario names {name}, which no step before that started"
    ))
}

/// Parameters as JSON; they are plain structs with texts for keys.
fn to_value<T: serde::Serialize>(params: &T) -> Value {
    serde_json::to_value(params).expect("parameters are JSON")
}
