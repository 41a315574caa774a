//! What enters a step: the chain of pre-step stages (RUN-12).

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_kernel::{Cancel, Event, panic_message};
use dsh_session::Session;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::{AgentError, AgentId, Inbox, UserMessage, code};

/// What a pre-step stage knows of the step.
#[derive(Clone, Copy, Debug)]
pub struct PreStepContext<'a> {
    /// The loop instance. A session that is resumed gets another one.
    pub agent: AgentId,
    /// The conversation.
    pub session: &'a Session,
    /// The agent's queue. What the step has claimed of it can still be replaced and removed.
    pub inbox: &'a Inbox,
    /// The turn, from 1, counted over the session's life.
    pub turn: u64,
    /// The step of the turn, from 1.
    pub step: u64,
    /// Whether a step of this loop instance has entered before.
    pub entered_before: bool,
    /// Given when the turn is to end. Observe it: a stage that does not is dropped.
    pub cancel: &'a Cancel,
}

/// Whether a step is entered.
#[derive(Clone, Debug, PartialEq)]
pub enum PreStepDecision {
    /// With these messages, in this order. At a turn's first step, no message is a rejection; at
    /// later ones the results of the calls are owed to the model, and none are needed.
    Enter(Vec<UserMessage>),
    /// Not; the turn ends. The reason is for people.
    Reject(String),
}

/// A stage of the chain. Each may change what goes in to the rest of it, and what comes out.
#[async_trait]
pub trait PreStep: Send + Sync + 'static {
    /// Decides on a step. The batch is what the step claimed: at a turn's first step its prompt, then
    /// the next-step contexts in the order of the queue. The innermost decision is to enter with
    /// whatever batch arrives there.
    ///
    /// An error, and a panic, fail the turn.
    async fn pre_step(
        &self,
        context: &PreStepContext<'_>,
        batch: Vec<UserMessage>,
        next: PreStepNext<'_>,
    ) -> Result<PreStepDecision, AgentError>;
}

/// The rest of the chain.
pub struct PreStepNext<'a> {
    context: &'a PreStepContext<'a>,
    stages: &'a [Arc<dyn PreStep>],
}

impl<'a> PreStepNext<'a> {
    pub(crate) fn new(context: &'a PreStepContext<'a>, stages: &'a [Arc<dyn PreStep>]) -> Self {
        Self { context, stages }
    }

    /// Runs it. A stage that does not run it decides alone.
    pub fn run(
        self,
        batch: Vec<UserMessage>,
    ) -> BoxFuture<'a, Result<PreStepDecision, AgentError>> {
        let Some((first, rest)) = self.stages.split_first() else {
            return std::future::ready(Ok(PreStepDecision::Enter(batch))).boxed();
        };
        let next = Self::new(self.context, rest);
        let stage = async move { first.pre_step(self.context, batch, next).await };
        AssertUnwindSafe(stage)
            .catch_unwind()
            .map(|outcome| {
                outcome.unwrap_or_else(|panic| {
                    let panic = panic_message(&*panic);
                    Err(AgentError::new(
                        code::PRE_STEP_PANICKED,
                        format!("a pre-step stage panicked: {panic}; this is a bug of its plugin"),
                    ))
                })
            })
            .boxed()
    }
}

impl fmt::Debug for PreStepNext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreStepNext")
            .field("stages", &self.stages.len())
            .finish_non_exhaustive()
    }
}

/// `agent/pre-step`: the chain has decided on a step, and nothing of it is logged yet.
#[derive(Clone, Debug)]
pub struct PreStepped {
    /// The loop instance.
    pub agent: AgentId,
    /// The conversation.
    pub session: Session,
    /// The turn.
    pub turn: u64,
    /// The step.
    pub step: u64,
    /// The decision.
    pub decision: PreStepDecision,
}

impl Event for PreStepped {
    const NAME: &'static str = "agent/pre-step";
}

type Ordered = BTreeMap<(i32, u64), Arc<dyn PreStep>>;

/// The stages by order, then by age. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct PreSteps(Arc<Mutex<(u64, Ordered)>>);

impl PreSteps {
    pub(crate) fn add(&self, order: i32, stage: Arc<dyn PreStep>) -> HookHandle {
        let mut stages = self.stages();
        stages.0 += 1;
        let key = (order, stages.0);
        stages.1.insert(key, stage);
        HookHandle {
            stages: self.clone(),
            key,
        }
    }

    /// The chain as it stands, the outermost first.
    pub(crate) fn list(&self) -> Vec<Arc<dyn PreStep>> {
        self.stages().1.values().cloned().collect()
    }

    fn stages(&self) -> MutexGuard<'_, (u64, Ordered)> {
        // No change spans two critical sections, so the list is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stage of the chain; dropping it removes the stage. Steps that have begun keep it.
#[must_use = "dropping the handle removes the stage"]
pub struct HookHandle {
    stages: PreSteps,
    key: (i32, u64),
}

impl HookHandle {
    /// Removes the stage. The same as dropping the handle, in words.
    pub fn release(self) {}
}

impl Drop for HookHandle {
    fn drop(&mut self) {
        let stage = self.stages.stages().1.remove(&self.key);
        // Outside the lock: what the stage holds may use the service when dropped.
        drop(stage);
    }
}

impl fmt::Debug for HookHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookHandle").finish_non_exhaustive()
    }
}
