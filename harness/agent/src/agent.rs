//! An agent: a session, a model, an inbox, and turns one after the other.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_kernel::{Cancel, CancelReason, Event, lock, panic_message};
use dsh_session::{ContentBlock, Ending, EventBody, Session, Usage};

use crate::service::Shared;
use crate::turn::{LoopState, Turn};
use crate::{AgentError, Delta, Inbox, LoopOptions, MessageId, Model, ModelError, code};

/// Identifies a loop instance; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(u64);

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {}", self.0)
    }
}

/// What a turn came to, if it did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Which turn it was, counted over the session's life.
    pub turn: u64,
    /// How many steps it had.
    pub steps: u64,
    /// Completed, rejected or cancelled.
    pub ending: Ending,
    /// What the model said last in the turn; the answer, if the turn completed.
    pub text: String,
    /// What the turn's requests cost together, as far as the model tells.
    pub usage: Usage,
}

/// A piece of a message that is still being made, and of which attempt at which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDelta {
    /// The turn.
    pub turn: u64,
    /// The step.
    pub step: u64,
    /// Which attempt, from 1. What came of an earlier attempt is void.
    pub attempt: u32,
    /// The piece. Calls carry the ids the model gave them.
    pub delta: Delta,
}

/// `agent/retry`: a model failed in a way that may pass, and is asked again.
#[derive(Clone, Debug)]
pub struct ModelRetried {
    /// The loop instance.
    pub agent: AgentId,
    /// The conversation.
    pub session: Session,
    /// The turn.
    pub turn: u64,
    /// The step.
    pub step: u64,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// With what.
    pub error: ModelError,
    /// The pause before the next attempt.
    pub pause: Duration,
}

impl Event for ModelRetried {
    const NAME: &'static str = "agent/retry";
}

/// `agent/closed`: a loop instance has ended; no step of it follows.
#[derive(Clone, Debug)]
pub struct AgentClosed {
    /// The loop instance.
    pub agent: AgentId,
    /// The conversation.
    pub session: Session,
}

impl Event for AgentClosed {
    const NAME: &'static str = "agent/closed";
}

/// An agent: one loop instance on one session. Cloning shares it.
///
/// [`close`](Self::close) it when done. Its turns run in the futures that run them and nowhere else:
/// nothing of it goes on in the background.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) id: AgentId,
    pub(crate) session: Session,
    pub(crate) inbox: Inbox,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) options: LoopOptions,
    pub(crate) shared: Arc<Shared>,
    /// Held by the turn that runs; the agents of one session share it.
    turns: Arc<tokio::sync::Mutex<()>>,
    state: tokio::sync::Mutex<LoopState>,
    closing: Cancel,
    told_closed: AtomicBool,
    listeners: Arc<Mutex<Listeners>>,
}

type Listener = Arc<dyn Fn(&StepDelta) + Send + Sync>;

#[derive(Default)]
struct Listeners {
    next: u64,
    list: Vec<(u64, Listener)>,
}

impl Agent {
    pub(crate) fn new(
        shared: Arc<Shared>,
        session: Session,
        model: Arc<dyn Model>,
        options: LoopOptions,
        turns: Arc<tokio::sync::Mutex<()>>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(Arc::new(Inner {
            id: AgentId(NEXT.fetch_add(1, Ordering::Relaxed)),
            session,
            inbox: Inbox::new(),
            model,
            options,
            shared,
            turns,
            state: tokio::sync::Mutex::default(),
            closing: Cancel::new(),
            told_closed: AtomicBool::new(false),
            listeners: Arc::default(),
        }))
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// What the turns of a session's agents hold.
    pub(crate) fn turns(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.0.turns)
    }

    /// Makes sure that no turn of it ever runs.
    pub(crate) fn refuse(&self) {
        self.0.closing.cancel(CancelReason::Disposed);
    }

    /// The loop instance.
    pub fn id(&self) -> AgentId {
        self.0.id
    }

    /// The conversation.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// What waits to enter it.
    pub fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    /// The model's name.
    pub fn model_name(&self) -> &str {
        self.0.model.name()
    }

    /// Claims the next queued prompt and runs its turn to the end (RUN-12). Turns of one agent run
    /// one after the other; a call waits for the one before.
    ///
    /// The turn ends when the model's message asks for no call. Whatever happens, turn and step are
    /// closed in the log when this returns (RUN-14). A failure is an error here and an
    /// [`Ending::Failed`] in the log. The prompt is spent in every case; one that did not enter is
    /// not in the log.
    ///
    /// Dropping the future drops the turn where it stands; the next one closes it in the log.
    pub async fn run_turn(&self, cancel: &Cancel) -> Result<TurnOutcome, AgentError> {
        self.run(None, cancel).await
    }

    /// Runs a turn for this prompt, before those that are queued.
    pub async fn prompt(
        &self,
        text: impl Into<String>,
        cancel: &Cancel,
    ) -> Result<TurnOutcome, AgentError> {
        let id = self.0.inbox.push_prompt(text);
        let queued = Queued(&self.0.inbox, id);
        let outcome = self.run(Some(id), cancel).await;
        // If the turn did not claim it, or was dropped before it could, the prompt is withdrawn.
        drop(queued);
        outcome
    }

    async fn run(
        &self,
        prompt: Option<MessageId>,
        cancel: &Cancel,
    ) -> Result<TurnOutcome, AgentError> {
        let _turn = self.0.turns.lock().await;
        let mut state = self.0.state.lock().await;
        if self.is_closed() {
            return Err(AgentError::new(
                code::AGENT_CLOSED,
                "the agent was closed; open another one on its session to go on",
            ));
        }
        let Some(prompt) = self.0.inbox.claim_prompt(prompt) else {
            return Err(AgentError::new(
                code::NO_PROMPT,
                "no prompt is queued; push one to the agent's inbox first",
            ));
        };
        // It ends for its caller's reason, or because the agent is closed.
        let cancel = cancel.child();
        let turn = Turn::new(&self.0, &mut state, &cancel).run(prompt);
        let closed = async {
            cancel.cancel(self.0.closing.cancelled().await);
            std::future::pending::<std::convert::Infallible>().await
        };
        tokio::select! {
            biased;
            outcome = turn => outcome,
            never = closed => match never {},
        }
    }

    /// Hides what the model sees up to the event before `keep_from`, and shows it `summary` in its
    /// place (RUN-16). Waits for the turn that runs. `keep_from` is the seq of a `turn/start`, or the
    /// one after the last event: whole turns are hidden.
    ///
    /// Nothing compacts by itself. Whoever wants to compact within a turn, a pre-step stage for
    /// instance, appends [`EventBody::Compaction`] to the session.
    pub async fn compact(
        &self,
        summary: Vec<ContentBlock>,
        keep_from: u64,
    ) -> Result<(), AgentError> {
        let _no_turn_runs = self.0.turns.lock().await;
        let session = &self.0.session;
        let fits = session.read(|log| {
            let starts_turn = |seq| {
                let event = log.event(seq);
                event.is_some_and(|event| matches!(event.body, EventBody::TurnStart { .. }))
            };
            keep_from > 1 && (keep_from == log.last_seq() + 1 || starts_turn(keep_from))
        });
        let invalid = |problem: &dyn fmt::Display| {
            AgentError::new(
                code::COMPACTION_INVALID,
                format!("cannot compact up to event {keep_from}: {problem}"),
            )
        };
        if !fits {
            return Err(invalid(
                &"what is kept must begin with a turn/start, or after the last event",
            ));
        }
        session
            .append(EventBody::Compaction {
                from: 1,
                to: keep_from - 1,
                summary,
            })
            .map_err(|error| invalid(&error))?;
        session.sync().await?;
        Ok(())
    }

    /// Hears of the pieces of messages as they arrive, until the handle is dropped. The listener runs
    /// in the turn: it must be quick. One that panics disturbs nobody.
    #[must_use = "dropping the handle removes the listener"]
    pub fn on_delta(&self, listener: impl Fn(&StepDelta) + Send + Sync + 'static) -> DeltaHandle {
        let listeners = Arc::clone(&self.0.listeners);
        let mut held = lock(&listeners);
        held.next += 1;
        let key = held.next;
        held.list.push((key, Arc::new(listener)));
        drop(held);
        DeltaHandle { listeners, key }
    }

    /// Whether it was closed; a turn may still be ending.
    pub fn is_closed(&self) -> bool {
        self.0.closing.is_cancelled()
    }

    /// Cancels the turn that runs, waits until it has ended, and lets no other one begin. The session
    /// can be used further. Idempotent; every call waits.
    pub async fn close(&self) {
        self.0.closing.cancel(CancelReason::Disposed);
        let state = self.0.state.lock().await;
        drop(state);
        self.0.tell_closed();
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.0.id)
            .field("session", &self.0.session.header().id)
            .field("model", &self.0.model.name())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Tells the listeners of a piece.
    pub(crate) fn tell(&self, delta: &StepDelta) {
        // Copied, since a listener may add or remove listeners.
        let listeners = lock(&self.listeners).list.clone();
        for (_, listener) in listeners {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| listener(delta))) {
                let panic = panic_message(&*panic);
                tracing::error!(panic, "a listener of an agent's deltas panicked");
            }
        }
    }

    pub(crate) fn has_listeners(&self) -> bool {
        !lock(&self.listeners).list.is_empty()
    }

    fn tell_closed(&self) {
        if !self.told_closed.swap(true, Ordering::AcqRel) {
            self.shared.events.emit(&AgentClosed {
                agent: self.id,
                session: self.session.clone(),
            });
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tell_closed();
    }
}

/// A listener of an agent's deltas; dropping this removes it.
#[must_use = "dropping the handle removes the listener"]
pub struct DeltaHandle {
    listeners: Arc<Mutex<Listeners>>,
    key: u64,
}

impl DeltaHandle {
    /// Removes the listener. The same as dropping the handle, in words.
    pub fn release(self) {}
}

impl Drop for DeltaHandle {
    fn drop(&mut self) {
        let mut listeners = lock(&self.listeners);
        let at = listeners.list.iter().position(|(key, _)| *key == self.key);
        let removed = at.map(|at| listeners.list.remove(at));
        drop(listeners);
        // Outside the lock: what the listener holds may use the agent when dropped.
        drop(removed);
    }
}

impl fmt::Debug for DeltaHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaHandle").finish_non_exhaustive()
    }
}

/// A prompt that is withdrawn unless its turn has claimed it.
struct Queued<'a>(&'a Inbox, MessageId);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}
