//! Carrying out one case.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use dsh_fake_lsp::Control;
use dsh_transcript::{EventBody, Recorder, Subscription};
use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use indexmap::IndexMap;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::checks::{Failure, describe};
use super::judge::{Judgement, Seen, Stop, judge};
use super::left::{self, Left, Marks};
use super::mount::{self, Surroundings};
use super::outcome::{self, Context, Settled};
use super::stage::{Stage, StageError};
use super::trace::Trace;
use super::{CaseResult, Ran, Setup, Tampering, place, redact};
use crate::format::{
    AsStep, CancelStep, Case, ControlStep, Outcome, Pattern, PerformStep, QueryStep, RegisterStep,
    Scenario, SessionSpec, Step, ToolStep, TurnStep,
};
use crate::subject::{
    CallError, Description, MountParams, QueryParams, Subject, ToolParams, TurnParams, UNSUPPORTED,
};

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
        None => match Driver::new(case, subject, setup, tampering) {
            Ok(driver) => driver.run(case, began).await,
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
        id: case.id.clone(),
        verdict: judgement.verdict,
        message: judgement.message,
        expected: judgement.expected,
        got: judgement.got,
        clauses: judgement.clauses,
        decisive: judgement.decisive,
        duration: Duration::ZERO,
        transcript: Vec::new(),
        snapshots: Vec::new(),
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
        let control = Control::recording(recorder.clone())
            .map_err(|error| fault("the control channel", error.to_string()))?;
        let around = Surroundings {
            places: &stage.places,
            control: &control,
            subcommand: &setup.subcommand,
            path: &setup.path,
            tampering,
        };
        let mounting = mount::params(&scenario, &around)
            .map_err(|error| fault("the fake server's script", error.to_string()))?;
        let root = &stage.places.root;
        let shown = scenario.steps.iter().filter_map(|step| match step {
            Step::Tool(step) if step.snapshot => Some((step.r#as.clone(), Shown::Text)),
            Step::Turn(step) => Some((step.r#as.clone(), Shown::Requests)),
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
        let (trace, sound, snapshots) = self.finish(quiet).await;
        result.snapshots = snapshots;
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

    /// Ends and removes everything; whether the subject can be used again.
    async fn finish(mut self, quiet: bool) -> (Trace, bool, Vec<(String, String)>) {
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
        // What cannot be removed is the system's temporary folder's to keep; it changes no verdict.
        if let Err(error) = self.stage.close() {
            tracing::warn!("a case's folder stays: {error}");
        }
        (self.trace, sound, self.snapshots)
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

    async fn mount(&mut self) -> Result<(), Stop> {
        let params = self.mount_params();
        self.mounted = Some("mount".to_owned());
        self.call("mount", "mount", "mount", params).await;
        self.until_settled("mount").await?;
        let check = self.scenario.mount.clone();
        let check = check.unwrap_or_else(succeeds);
        self.expect("mount", &check)
    }

    fn mount_params(&self) -> Value {
        to_value(&self.mounting)
    }

    async fn steps(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Query(step) => self.query(step).await,
            Step::Tool(step) => self.tool(step).await,
            Step::Turn(step) => {
                self.turn(step).await;
                Ok(())
            }
            Step::Cancel(step) => self.cancel(step).await,
            Step::Release(name) => {
                self.control.release(name);
                Ok(())
            }
            Step::Perform(step) => self.perform(step),
            Step::Wait(pattern) => self.wait(pattern).await,
            Step::Write(files) => {
                self.stage.write(files)?;
                for name in files.keys() {
                    self.changed(name, "written");
                }
                Ok(())
            }
            Step::Remove(name) => {
                self.stage.remove(name)?;
                self.changed(name, "removed");
                Ok(())
            }
            Step::Rename(step) => {
                self.stage.rename(&step.from, &step.to)?;
                self.changed(&step.from, "renamed");
                Ok(())
            }
            Step::Dispose(step) => self.dispose(step).await,
            Step::Mount(step) => self.mount_again(step).await,
            Step::Register(step) => self.register(step).await,
            Step::Control(step) => self.control(step).await,
            Step::Expect(checks) => self.expectations(checks).await,
        }
    }

    fn changed(&self, path: &str, change: &str) {
        let body = EventBody::FileChanged {
            path: path.to_owned(),
            change: change.to_owned(),
        };
        self.recorder.emit(None, body);
    }

    fn place(&self, at: &str) -> Result<place::At, Stop> {
        place::read(at, &self.stage.markers).map_err(Stop::Fault)
    }

    async fn query(&mut self, step: &QueryStep) -> Result<(), Stop> {
        let at = self.place(&step.at)?;
        let workspace = &self.stage.places.workspace;
        let workspace = step
            .workspace
            .clone()
            .unwrap_or_else(|| workspace.display().to_string());
        let params = to_value(&QueryParams {
            operation: step.operation.clone(),
            file_path: at.file,
            position: at.place.position(),
            workspace_root: workspace,
            cancelled: step.cancelled,
        });
        self.call(&step.r#as, "query", &step.operation, params)
            .await;
        Ok(())
    }

    async fn tool(&mut self, step: &ToolStep) -> Result<(), Stop> {
        let arguments = match &step.arguments {
            Some(arguments) => arguments.clone(),
            None => {
                let mut arguments = json!({});
                if let Some(operation) = &step.operation {
                    arguments["operation"] = operation.clone().into();
                }
                if let Some(at) = &step.at {
                    let at = self.place(at)?;
                    arguments["file_path"] = at.file.into();
                    arguments["line"] = (at.place.line + 1).into();
                    arguments["character"] = (at.place.character + 1).into();
                }
                arguments
            }
        };
        let session = step
            .session
            .as_ref()
            .map(|SessionSpec { cwd }| json!({"cwd": cwd}));
        let params = to_value(&ToolParams {
            name: step.name.clone(),
            arguments,
            session,
        });
        self.call(&step.r#as, "tool", &step.name, params).await;
        Ok(())
    }

    async fn turn(&mut self, step: &TurnStep) {
        let params = to_value(&TurnParams {
            prompt: step.prompt.clone(),
            replies: step.replies.clone(),
        });
        self.call(&step.r#as, "turn", "turn", params).await;
    }

    async fn cancel(&mut self, step: &CancelStep) -> Result<(), Stop> {
        let (name, reason) = match step {
            CancelStep::Name(name) => (name, "caller"),
            CancelStep::Reason(step) => (&step.name, step.reason.as_str()),
        };
        let Some(called) = self.calls.get(name) else {
            return Err(unknown(name));
        };
        let message = format!("{name} is given up ({reason})");
        self.recorder.emit(None, EventBody::note("cancel", message));
        if let Some(id) = called.id
            && self.tampering.is_none_or(Tampering::cancels)
        {
            self.subject.cancel(id, reason).await;
        }
        Ok(())
    }

    fn perform(&mut self, step: &PerformStep) -> Result<(), Stop> {
        self.control
            .perform(step.process, step.r#do.iter().cloned())
            .map_err(|error| Stop::Untestable(error.to_string()))
    }

    async fn wait(&mut self, pattern: &Pattern) -> Result<(), Stop> {
        self.waiting = describe(pattern);
        let mut fitting = 0;
        let nth = pattern.nth.unwrap_or(1).max(1);
        let mut at = 0;
        loop {
            while at < self.trace.events().len() {
                if self.trace.matches(at, pattern) {
                    fitting += 1;
                    if fitting == nth {
                        return Ok(());
                    }
                }
                at += 1;
            }
            self.more().await?;
        }
    }

    async fn dispose(&mut self, step: &AsStep) -> Result<(), Stop> {
        self.mounted = None;
        let name = step.r#as.as_deref().unwrap_or("dispose");
        self.call(name, "unmount", "unmount", json!({})).await;
        if step.r#as.is_none() {
            self.until_settled(name).await?;
            self.expect(name, &succeeds())?;
        }
        Ok(())
    }

    async fn mount_again(&mut self, step: &AsStep) -> Result<(), Stop> {
        let params = self.mount_params();
        let name = step.r#as.as_deref().unwrap_or("mount");
        self.mounted = Some(name.to_owned());
        self.call(name, "mount", "mount", params).await;
        if step.r#as.is_none() {
            self.until_settled(name).await?;
            self.expect(name, &succeeds())?;
        }
        Ok(())
    }

    async fn register(&mut self, step: &RegisterStep) -> Result<(), Stop> {
        let mut params = to_value(step);
        if let Value::Object(params) = &mut params {
            params.shift_remove("as");
            params.insert("op".to_owned(), "register".into());
        }
        self.controlled(step.r#as.as_deref(), "register", params)
            .await
    }

    async fn control(&mut self, step: &ControlStep) -> Result<(), Stop> {
        let mut params = step.parameters.clone();
        params.insert("op".to_owned(), step.op.clone().into());
        self.controlled(step.r#as.as_deref(), &step.op, params.into())
            .await
    }

    async fn controlled(
        &mut self,
        name: Option<&str>,
        op: &str,
        params: Value,
    ) -> Result<(), Stop> {
        let call = name.unwrap_or(op);
        self.call(call, "control", op, params).await;
        self.until_settled(call).await?;
        if name.is_none() {
            self.expect(call, &succeeds())?;
        }
        Ok(())
    }

    async fn expectations(&mut self, checks: &IndexMap<String, Outcome>) -> Result<(), Stop> {
        for (name, check) in checks {
            if !outcome::may_be_pending(check) {
                self.until_settled(name).await?;
            } else if !self.calls.contains_key(name) {
                return Err(unknown(name));
            }
        }
        for (name, check) in checks {
            self.expect(name, check)?;
        }
        Ok(())
    }

    fn expect(&mut self, name: &str, check: &Outcome) -> Result<(), Stop> {
        let context = Context {
            places: &self.stage.places,
            markers: &self.stage.markers,
            foreign: self.setup.foreign,
            settled: &self.settled,
        };
        let settled = self.settled.get(name);
        outcome::judge(check, settled, context).map_err(|mismatch| {
            Stop::Failed(Failure {
                clauses: check.clauses.clone(),
                message: format!("{name}: {}", outcome::describe(settled)),
                expected: mismatch.expected,
                got: mismatch.got,
                seq: self.calls.get(name).and_then(|called| called.seq),
            })
        })
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

    /// Hands a request to the subject.
    async fn call(&mut self, name: &str, method: &'static str, what: &str, params: Value) {
        // A name that is used again means the later call.
        self.settled.remove(name);
        let body = EventBody::Call {
            call: name.to_owned(),
            name: what.to_owned(),
            arguments: params.clone(),
        };
        self.recorder.emit(None, body);
        let passed = match self.tampering {
            Some(tampering) => tampering.request(method, params.clone()),
            None => Some(params.clone()),
        };
        let key = name.to_owned();
        let id = match passed {
            Some(passed) => {
                let call = self.subject.request(method, passed).await;
                let outcome = call.outcome;
                self.pending
                    .push(Box::pin(async move { (key, outcome.await) }));
                Some(call.id)
            }
            None => {
                self.pending
                    .push(Box::pin(async move { (key, Ok(json!({}))) }));
                None
            }
        };
        let called = Called {
            id,
            method,
            params,
            seq: None,
        };
        self.calls.insert(name.to_owned(), called);
    }

    async fn until_settled(&mut self, name: &str) -> Result<(), Stop> {
        if !self.calls.contains_key(name) {
            return Err(unknown(name));
        }
        while !self.settled.contains_key(name) {
            self.waiting = format!("the outcome of {name}");
            self.more().await?;
        }
        Ok(())
    }

    /// Waits for one piece of news: an event, an answer, or the subject's end.
    async fn more(&mut self) -> Result<(), Stop> {
        enum News {
            Event(Box<dsh_transcript::Event>),
            Answer(Answer),
            Gone(CallError),
        }
        let news = {
            let pending = &mut self.pending;
            let answer = async {
                match pending.next().await {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = self.news.next() => News::Event(Box::new(event)),
                answer = answer => News::Answer(answer),
                error = &mut self.gone => News::Gone(error),
            }
        };
        match news {
            News::Event(event) => {
                self.trace.push(*event);
                Ok(())
            }
            News::Answer((name, settled)) => {
                // What the servers did to bring it about comes first in the transcript.
                self.control.catch_up().await;
                self.catch_up();
                self.settle(name, settled)
            }
            News::Gone(error) => Err(over(error)),
        }
    }

    /// Takes the events that are there.
    fn catch_up(&mut self) {
        while let Some(event) = self.news.try_next() {
            self.trace.push(event);
        }
    }

    fn settle(&mut self, name: String, settled: Settled) -> Result<(), Stop> {
        let Some(called) = self.calls.get_mut(&name) else {
            return Ok(());
        };
        let settled = match self.tampering {
            Some(tampering) => tampering.outcome(called.method, &called.params, settled),
            None => settled,
        };
        let (ok, value) = match &settled {
            Ok(value) => (true, value.clone()),
            Err(CallError::Refused {
                code,
                message,
                data,
            }) => {
                let mut value = json!({"message": message});
                if let Some(code) = code {
                    value["code"] = code.clone().into();
                }
                if !data.is_null() {
                    value["data"] = data.clone();
                }
                (false, value)
            }
            Err(other) => (false, json!({"message": other.to_string()})),
        };
        let body = EventBody::Result {
            call: name.clone(),
            ok,
            value,
        };
        called.seq = Some(self.recorder.emit(None, body));
        let stop = match &settled {
            Err(CallError::Nonsense { reason }) => Some(Stop::Failed(Failure {
                seq: called.seq,
                ..nonsense(&format!("{name}: "), reason)
            })),
            Err(CallError::Refused {
                code: Some(code),
                message,
                ..
            }) if code == UNSUPPORTED => Some(Stop::NotApplicable(format!(
                "the subject does not have `{}`: {message}",
                called.method
            ))),
            Err(CallError::Refused { .. }) | Ok(_) => None,
            Err(error) => Some(over(error.clone())),
        };
        self.snapshot(&name, &settled);
        self.settled.insert(name, settled);
        stop.map_or(Ok(()), Err)
    }

    /// Keeps what a model would see, where the scenario asks for it.
    fn snapshot(&mut self, name: &str, settled: &Settled) {
        let Ok(value) = settled else { return };
        let text = match self.shown.get(name) {
            Some(Shown::Text) => value["text"].as_str().unwrap_or_default().to_owned(),
            Some(Shown::Requests) => {
                serde_json::to_string_pretty(&value["requests"]).unwrap_or_default()
            }
            None => return,
        };
        let started = self.trace.events().iter();
        let mut pids: Vec<u32> = started
            .filter_map(|event| match event.body {
                EventBody::ProcessStarted { pid, .. } => Some(pid),
                _ => None,
            })
            .collect();
        pids.extend(self.subject.pid());
        let varying = redact::Varying {
            places: &self.stage.places,
            home: self.scenario.environment.get("HOME").map(String::as_str),
            pids: &pids,
        };
        let text = redact::redact(&text, varying);
        self.snapshots.push((name.to_owned(), text));
        // Whichever came first: they stand in the order of the steps.
        let calls = &self.calls;
        let place = |(name, _): &(String, String)| calls.get_index_of(name.as_str());
        self.snapshots.sort_by_key(place);
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
