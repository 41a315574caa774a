//! The loop of one mount: its sessions, their turns, and what a case can do to them.

mod model;
mod ops;
mod stages;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_harness::Runtime;
use dsh_harness::agent::{
    Agent, HookHandle, LoopOptions, PromptSection, RetryPolicy, ScriptedModel, ScriptedReply,
    SectionHandle, SystemPrompt,
};
use dsh_harness::fs::{FsObserved, Observation};
use dsh_harness::kernel::{Cancel, Subscription};
use dsh_harness::session::{
    ContentBlock, Ending, EventBody, Log, Session, SessionHeader, SessionStore,
};
use dsh_harness::tools::{StageHandle, ToolHandle, ToolRegistry};
use serde_json::{Value, json};

use super::super::{CallError, TurnOutcome, TurnParams};
use super::arranged::{Arranged, lock};
use super::{INVALID_PARAMS, Outcome, nothing, params, refused};
use model::TurnModel;
pub(super) use ops::{NAMES, control};
use stages::Stages;

/// The session of tool calls, and of turns that name none.
pub(super) const MAIN: &str = "main";

/// The loop of one mount.
pub(super) struct Loops {
    runtime: std::sync::Weak<Runtime>,
    arranged: Arc<Arranged>,
    sessions: Mutex<BTreeMap<String, Open>>,
    /// Session → held by whoever has a turn of it, or puts another loop instance in its place.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    stages: Arc<Stages>,
    prompt: Arc<SystemPrompt>,
    tools: Arc<ToolRegistry>,
    sections: Mutex<BTreeMap<String, SectionHandle>>,
    scripted: Mutex<BTreeMap<String, ToolHandle>>,
    observed: Arc<Mutex<Vec<Value>>>,
    /// Where sessions are kept that are resumed.
    temp: PathBuf,
    kept: Mutex<Option<tempfile::TempDir>>,
    _hooks: Vec<HookHandle>,
    _stages: Vec<StageHandle>,
    _observations: Subscription,
}

/// One session, and the loop instance that has it.
#[derive(Clone)]
struct Open {
    session: Session,
    agent: Agent,
    model: Arc<TurnModel>,
    /// How often it was resumed.
    resumed: u64,
}

impl Loops {
    /// The loop of a runtime. `main` is the session that is there from the start; `temp` is where
    /// files may be put until unmounting.
    pub(super) fn new(
        runtime: &Arc<Runtime>,
        arranged: &Arc<Arranged>,
        main: Session,
        temp: PathBuf,
    ) -> Self {
        let tools = runtime.tools();
        let stages = Arc::new(Stages::new(Arc::clone(arranged)));
        let observed = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&observed);
        let observations = runtime.events().subscribe::<FsObserved>(move |event| {
            lock(&seen).push(told(event));
        });
        let this = Self {
            runtime: Arc::downgrade(runtime),
            arranged: Arc::clone(arranged),
            sessions: Mutex::default(),
            turns: Mutex::default(),
            prompt: runtime.system_prompt(),
            sections: Mutex::default(),
            scripted: Mutex::default(),
            observed,
            temp,
            kept: Mutex::default(),
            _hooks: stages.on_steps(&runtime.agents()),
            _stages: stages.on_calls(&tools),
            _observations: observations,
            stages,
            tools,
        };
        let open = this.opened(runtime, main, 0);
        lock(&this.sessions).insert(MAIN.to_owned(), open);
        this
    }

    /// Closes every loop instance, and removes what was kept on disk.
    pub(super) async fn close(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        for open in sessions.values() {
            open.agent.close().await;
        }
        drop(sessions);
        lock(&self.sections).clear();
        lock(&self.scripted).clear();
        let kept = lock(&self.kept).take();
        drop(kept);
    }

    fn opened(&self, runtime: &Runtime, session: Session, resumed: u64) -> Open {
        let model = Arc::new(TurnModel::new(session.clone(), Arc::clone(&self.arranged)));
        let options = LoopOptions {
            retry: RetryPolicy {
                first_delay: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            ..LoopOptions::default()
        };
        let agent = runtime
            .agents()
            .open(session.clone(), Arc::clone(&model) as _, options);
        Open {
            session,
            agent,
            model,
            resumed,
        }
    }

    fn runtime(&self) -> Result<Arc<Runtime>, CallError> {
        self.runtime
            .upgrade()
            .ok_or_else(|| refused(super::NOT_MOUNTED, "the runtime is gone; mount it again"))
    }

    fn turns_of(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(lock(&self.turns).entry(id.to_owned()).or_default())
    }

    /// The session of that id.
    fn session(&self, id: &str) -> Result<Open, CallError> {
        lock(&self.sessions).get(id).cloned().ok_or_else(|| {
            let told = format!("no session {id:?} was begun; a turn begins it");
            refused(INVALID_PARAMS, told)
        })
    }

    /// The session of that id, begun if there is none.
    fn session_or_new(&self, id: &str, cwd: Option<&str>) -> Result<Open, CallError> {
        if let Some(open) = lock(&self.sessions).get(id) {
            return Ok(open.clone());
        }
        let session = Session::new(SessionHeader {
            id: id.to_owned(),
            cwd: cwd.map(str::to_owned),
        });
        let open = self.opened(&*self.runtime()?, session, 0);
        let mut sessions = lock(&self.sessions);
        Ok(sessions.entry(id.to_owned()).or_insert(open).clone())
    }

    /// The session that tool calls belong to.
    pub(super) fn main(&self) -> Option<Session> {
        let sessions = lock(&self.sessions);
        sessions.get(MAIN).map(|open| open.session.clone())
    }

    /// Runs a turn.
    pub(super) async fn turn(&self, params: Value, cancel: Cancel) -> Outcome {
        let TurnParams {
            prompt,
            replies,
            session,
        } = params::read("turn", params)?;
        let id = session["id"].as_str().unwrap_or(MAIN).to_owned();
        let cwd = session["cwd"].as_str();
        let replies: Vec<ScriptedReply> = params::read("turn", Value::Array(replies))?;
        let script = ScriptedModel::from_replies(replies)
            .map_err(|error| refused(INVALID_PARAMS, error.to_string()))?;
        let turns = self.turns_of(&id);
        let _turn = turns.lock().await;
        let open = self.session_or_new(&id, cwd)?;
        open.model.begin(script);
        let ended = open.agent.prompt(prompt, &cancel).await;
        let requests = open.model.end();
        let outcome = match ended {
            Ok(ended) => {
                let (name, code, message) = match ended.ending {
                    Ending::Completed => ("completed", None, None),
                    Ending::Rejected { reason } => ("rejected", None, Some(reason)),
                    Ending::Cancelled { reason } => ("cancelled", None, Some(reason)),
                    Ending::Failed { code, message } => ("failed", Some(code), Some(message)),
                };
                TurnOutcome {
                    requests,
                    ended: name.to_owned(),
                    code,
                    message,
                    text: Some(ended.text),
                }
            }
            Err(error) => TurnOutcome {
                requests,
                ended: "failed".to_owned(),
                code: Some(error.code().to_owned()),
                message: Some(error.message().to_owned()),
                text: None,
            },
        };
        serde_json::to_value(outcome).map_err(|error| refused("PANICKED", error.to_string()))
    }

    /// Puts a summary in the place of all that a session's model sees, but for the last turns.
    async fn compact(&self, id: &str, summary: &str, keep: usize) -> Outcome {
        let open = self.session(id)?;
        let keep_from = open.session.read(|log| {
            let starts = log
                .events()
                .iter()
                .rev()
                .filter_map(|event| match event.body {
                    EventBody::TurnStart { .. } => Some(event.seq),
                    _ => None,
                });
            match keep {
                0 => Some(log.last_seq() + 1),
                keep => starts.take(keep).nth(keep - 1),
            }
        });
        let Some(keep_from) = keep_from else {
            let told = format!("there were no {keep} turns in the session {id:?}");
            return Err(refused(INVALID_PARAMS, told));
        };
        let summary = vec![ContentBlock::text(summary)];
        let compacted = open.agent.compact(summary, keep_from).await;
        compacted.map_err(|error| refused(error.code(), error.message()))?;
        Ok(nothing())
    }

    /// Ends a session's loop instance, keeps the session in a file, and goes on with what a new one
    /// reads there. `between` is done while there is no loop instance.
    async fn resume(
        &self,
        id: &str,
        cwd: Option<String>,
        torn: bool,
        between: impl Future<Output = Result<(), CallError>>,
    ) -> Outcome {
        let turns = self.turns_of(id);
        let _no_turn = turns.lock().await;
        let open = self.session(id)?;
        open.agent.close().await;
        let path = self.kept_as(id, open.resumed)?;
        let unkept = |error: String| refused("SESSION_STORE", error);
        if open.resumed == 0 {
            // A copy is what is kept: the session itself outlives this, and would hold its file.
            let all = open.session.read(Log::last_seq);
            let copy = open.session.fork(all, open.session.header().clone());
            let copy = copy.map_err(|error| unkept(error.to_string()))?;
            SessionStore::attach(&path, &copy)
                .await
                .map_err(|error| unkept(error.to_string()))?;
            copy.sync()
                .await
                .map_err(|error| unkept(error.to_string()))?;
        } else {
            open.session
                .sync()
                .await
                .map_err(|error| unkept(error.to_string()))?;
        }
        let next = self.kept_as(id, open.resumed + 1)?;
        copy(&path, &next, cwd, torn).map_err(|error| unkept(error.to_string()))?;
        between.await?;
        let session = SessionStore::open(&next)
            .await
            .map_err(|error| unkept(error.to_string()))?;
        let same = events_of(&session) == events_of(&open.session);
        let resumed = self.opened(&*self.runtime()?, session, open.resumed + 1);
        lock(&self.sessions).insert(id.to_owned(), resumed);
        Ok(json!({"same": same}))
    }

    fn kept_as(&self, id: &str, times: u64) -> Result<PathBuf, CallError> {
        let mut kept = lock(&self.kept);
        if kept.is_none() {
            let folder = tempfile::Builder::new()
                .prefix("sessions")
                .tempdir_in(&self.temp)
                .map_err(|error| refused("SESSION_STORE", error.to_string()))?;
            *kept = Some(folder);
        }
        let folder = kept.as_ref().map(tempfile::TempDir::path);
        // A name that a case gives is no name of a file.
        let number = lock(&self.turns).keys().position(|other| other == id);
        let name = format!("{}-{times}.jsonl", number.unwrap_or_default());
        Ok(folder.unwrap_or(Path::new("")).join(name))
    }

    /// What a session's log has, and whether each request can be made again from it.
    fn log(&self, id: &str) -> Outcome {
        let open = self.session(id)?;
        let (events, rebuilt) = open.session.read(|log| {
            let requests = log.events().iter().filter_map(|event| match event.body {
                EventBody::StepRequest { .. } => Some(event.seq),
                _ => None,
            });
            let rebuilt = requests.map(|seq| log.rebuild(seq)).all(|one| one.is_ok());
            (json!(log.events()), rebuilt)
        });
        Ok(json!({"events": events, "rebuilt": rebuilt}))
    }

    /// What waits to enter a session's next step.
    fn inbox(&self, id: &str) -> Outcome {
        let pending = self.session(id)?.agent.inbox().pending();
        let pending: Vec<Value> = pending
            .iter()
            .map(|message| {
                json!({
                    "source": message.source,
                    "text": text(&message.content),
                })
            })
            .collect();
        Ok(json!({"pending": pending}))
    }

    fn add_section(&self, section: PromptSection) {
        let name = section.name.clone();
        let handle = self.prompt.add_section(section);
        lock(&self.sections).insert(name, handle);
    }
}

/// The events of a log as they are kept.
fn events_of(session: &Session) -> Value {
    session.read(|log: &Log| json!(log.events()))
}

/// Copies a kept session: with another working directory where one is given, and with half a line
/// at its end where that is asked for.
fn copy(from: &Path, to: &Path, cwd: Option<String>, torn: bool) -> std::io::Result<()> {
    let mut text = std::fs::read_to_string(from)?;
    if let Some(cwd) = cwd
        && let Some((first, rest)) = text.split_once('\n')
    {
        let mut first: Value = serde_json::from_str(first)?;
        first["header"]["cwd"] = cwd.into();
        text = format!("{first}\n{rest}");
    }
    if torn {
        text.push_str(r#"{"seq":"#);
    }
    std::fs::write(to, text)
}

/// The text of a message.
fn text(content: &[ContentBlock]) -> String {
    content.iter().map(ContentBlock::as_text).collect()
}

/// An observation as a case is told it.
fn told(event: &FsObserved) -> Value {
    let kind = match event.observation {
        Observation::Present { .. } => "present",
        Observation::Absent => "absent",
    };
    json!({
        "path": event.target.path.display().to_string(),
        "kind": kind,
        "write": event.write,
        "tool": event.tool,
        "session": event.session,
    })
}
