//! One turn: steps until nothing is owed (RUN-12).
//!
//! The log of a turn reads `turn/start`, then for each step `step/start`, what entered as
//! `user/message`, `step/request`, `assistant/message`, the `tool/call`s, the `tool/result`s in the
//! model's order, the contexts of all results as `user/message`, `step/end`; then `turn/end`.
//! Everything is logged before it is sent, and written to the session's store before the model is
//! asked and when the turn ends. Turn and step are closed however they end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use dsh_kernel::{Cancel, CancelReason, Subscription, panic_message};
use dsh_session::{
    AppendError, AssistantMessage, ContentBlock, ContextMessage, Ending, EventBody, LoggedResult,
    ModelRequest, Session, ToolCall, Usage, is_shallow,
};
use dsh_tools::{ResultReady, ToolError, ToolResult};
use futures::{FutureExt as _, StreamExt as _, stream};

use crate::agent::Inner;
use crate::calls::{CallIds, groups, unfit};
use crate::model::code as model_code;
use crate::pre_step::PreStepNext;
use crate::{
    AgentError, Delta, ModelError, ModelRetried, PreStepContext, PreStepDecision, PreStepped,
    StepDelta, TurnOutcome, UserMessage, code,
};

/// What a loop instance keeps from turn to turn.
#[derive(Default)]
pub(crate) struct LoopState {
    /// Whether a step has entered.
    entered: bool,
    ids: CallIds,
}

/// Why the steps of a turn end before the model has nothing more to ask for.
enum Stop {
    Rejected(String),
    Cancelled(String),
    Failed(AgentError),
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl From<CancelReason> for Stop {
    fn from(reason: CancelReason) -> Self {
        Self::Cancelled(reason.to_string())
    }
}

impl From<AppendError> for Stop {
    fn from(error: AppendError) -> Self {
        Self::Failed(error.into())
    }
}

/// A turn that runs.
pub(crate) struct Turn<'a> {
    agent: &'a Inner,
    state: &'a mut LoopState,
    cancel: &'a Cancel,
    number: u64,
    /// The step that runs or ran last; 0 before the first.
    step: u64,
    text: String,
    usage: Usage,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(agent: &'a Inner, state: &'a mut LoopState, cancel: &'a Cancel) -> Self {
        Self {
            agent,
            state,
            cancel,
            number: 0,
            step: 0,
            text: String::new(),
            usage: Usage::default(),
        }
    }

    /// Runs it for a prompt that was claimed.
    pub(crate) async fn run(mut self, prompt: UserMessage) -> Result<TurnOutcome, AgentError> {
        let session = &self.agent.session;
        // What a turn that was dropped, or a program that ended, has left open.
        session.close_open()?;
        self.number = session.read(dsh_session::Log::next_turn);
        session.append(EventBody::TurnStart { turn: self.number })?;
        let steps = AssertUnwindSafe(self.steps(prompt)).catch_unwind().await;
        let stopped = steps.unwrap_or_else(|panic| {
            let panic = panic_message(&*panic);
            let message = format!("the loop panicked: {panic}; this is a bug of the agent");
            Err(AgentError::new(code::LOOP_PANICKED, message).into())
        });
        let (ending, failure) = match stopped {
            Ok(()) => (Ending::Completed, None),
            Err(Stop::Rejected(reason)) => (Ending::Rejected { reason }, None),
            Err(Stop::Cancelled(reason)) => (Ending::Cancelled { reason }, None),
            Err(Stop::Failed(error)) => (
                Ending::Failed {
                    code: error.code().to_owned(),
                    message: error.message().to_owned(),
                },
                Some(error),
            ),
        };
        let closed = self.close(&ending);
        let kept = session.sync().await;
        if let Some(error) = failure {
            return Err(error);
        }
        closed?;
        kept?;
        Ok(TurnOutcome {
            turn: self.number,
            steps: self.step,
            ending,
            text: self.text,
            usage: self.usage,
        })
    }

    /// Closes the step, if it is open, and the turn (RUN-14).
    fn close(&self, ending: &Ending) -> Result<(), AgentError> {
        let session = &self.agent.session;
        if session.read(dsh_session::Log::open_step).is_some() {
            let closed = session.append(EventBody::StepEnd {
                turn: self.number,
                step: self.step,
                outcome: ending.clone(),
            });
            if closed.is_err() {
                // Calls have no result: only after a panic of the loop.
                session.close_open()?;
                return Ok(());
            }
        }
        session.append(EventBody::TurnEnd {
            turn: self.number,
            outcome: ending.clone(),
        })?;
        Ok(())
    }

    async fn steps(&mut self, prompt: UserMessage) -> Result<(), Stop> {
        let mut prompt = Some(prompt);
        loop {
            self.cancel.check()?;
            let most = self.agent.options.max_steps.max(1);
            if self.step >= most {
                let message = format!(
                    "the turn reached its limit of {most} steps, and the model has not seen the \
                     results of the last one; prompt again to go on, or raise the limit"
                );
                return Err(AgentError::new(code::MAX_STEPS, message).into());
            }
            self.step += 1;
            let (turn, step) = (self.number, self.step);
            self.log(EventBody::StepStart { turn, step })?;
            self.enter(prompt.take()).await?;
            let message = self.ask().await?;
            self.text.clone_from(&message.text);
            self.count(message.usage);
            let calls = message.tool_calls.clone();
            self.log(EventBody::AssistantMessage(message))?;
            let owed = !calls.is_empty();
            self.call_all(calls).await?;
            let outcome = Ending::Completed;
            self.log(EventBody::StepEnd {
                turn,
                step,
                outcome,
            })?;
            if !owed {
                return Ok(());
            }
            self.sync().await?;
        }
    }

    /// Decides what enters the step, and logs it.
    async fn enter(&mut self, prompt: Option<UserMessage>) -> Result<(), Stop> {
        let agent = self.agent;
        let claim = agent.inbox.claim_contexts();
        let is_first = prompt.is_some();
        let batch = prompt.into_iter().chain(claim.contexts().iter().cloned());
        let context = PreStepContext {
            agent: agent.id,
            session: &agent.session,
            inbox: &agent.inbox,
            turn: self.number,
            step: self.step,
            entered_before: self.state.entered,
            cancel: self.cancel,
        };
        let stages = agent.shared.pre_steps.list();
        let chain = PreStepNext::new(&context, &stages).run(batch.collect());
        let settled = settled(self.cancel, agent.options.settle, chain).await?;
        // A stage that went on in spite of the cancellation decides nothing any more (INS-20).
        self.cancel.check()?;
        let decision = settled?;
        agent.shared.events.emit(&PreStepped {
            agent: agent.id,
            session: agent.session.clone(),
            turn: self.number,
            step: self.step,
            decision: decision.clone(),
        });
        let messages = match decision {
            PreStepDecision::Reject(reason) => return Err(Stop::Rejected(reason)),
            PreStepDecision::Enter(messages) if messages.is_empty() && is_first => {
                return Err(Stop::Rejected("nothing was let in".to_owned()));
            }
            PreStepDecision::Enter(messages) => messages,
        };
        claim.spend();
        self.state.entered = true;
        for UserMessage {
            source, content, ..
        } in messages
        {
            self.log(EventBody::UserMessage { source, content })?;
        }
        Ok(())
    }

    /// Asks the model, again where its failure may pass.
    async fn ask(&mut self) -> Result<AssistantMessage, Stop> {
        let agent = self.agent;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let request = agent.session.append_request(
                self.number,
                self.step,
                agent.shared.prompt.assemble(),
                agent.shared.tools.list(),
            )?;
            self.sync().await?;
            let error = match self.attempt(&request, attempt).await? {
                Ok(message) => return Ok(message),
                Err(error) => error,
            };
            let pause = agent.options.retry.pause(attempt, &error);
            let pause = pause.map_err(|give_up| {
                AgentError::new(error.code.clone(), give_up.explain(&error.message))
            })?;
            tracing::warn!(model = agent.model.name(), attempt, %error, ?pause, "asked again");
            agent.shared.events.emit(&ModelRetried {
                agent: agent.id,
                session: agent.session.clone(),
                turn: self.number,
                step: self.step,
                attempt,
                error,
                pause,
            });
            if let Ok(reason) = tokio::time::timeout(pause, self.cancel.cancelled()).await {
                return Err(reason.into());
            }
        }
    }

    /// Asks once.
    async fn attempt(
        &mut self,
        request: &ModelRequest,
        attempt: u32,
    ) -> Result<Result<AssistantMessage, ModelError>, Stop> {
        let agent = self.agent;
        let (turn, step) = (self.number, self.step);
        let most = agent.options.max_response_bytes;
        let cancel = self.cancel.child();
        let mut bytes = 0_usize;
        let mut deltas = |delta: Delta| {
            bytes = bytes.saturating_add(delta.bytes());
            if bytes > most {
                cancel.cancel(CancelReason::Caller);
            } else if agent.has_listeners() {
                agent.tell(&StepDelta {
                    turn,
                    step,
                    attempt,
                    delta,
                });
            }
        };
        let asked = async { agent.model.respond(request, &mut deltas, &cancel).await };
        let asked = AssertUnwindSafe(asked).catch_unwind();
        let settled = settled(&cancel, agent.options.settle, asked).await;
        self.cancel.check()?;
        if bytes > most {
            return Ok(Err(too_large(most)));
        }
        let answered = match settled? {
            Ok(answered) => answered,
            Err(panic) => {
                let panic = panic_message(&*panic);
                let message = format!(
                    "model {} panicked: {panic}; this is a bug of its adapter",
                    agent.model.name()
                );
                Err(ModelError::fatal(model_code::MODEL_PANICKED, message))
            }
        };
        Ok(answered.and_then(|message| self.admit(message)))
    }

    /// Checks a message before it is logged, and sees to it that what it calls can be told apart.
    fn admit(&mut self, mut message: AssistantMessage) -> Result<AssistantMessage, ModelError> {
        let most = self.agent.options.max_response_bytes;
        if size(&message) > most {
            return Err(too_large(most));
        }
        if message.text.trim().is_empty() && message.tool_calls.is_empty() {
            return Err(ModelError::transient(
                model_code::MODEL_EMPTY,
                format!(
                    "model {} returned neither text nor a call",
                    self.agent.model.name()
                ),
                None,
            ));
        }
        if message.tool_calls.is_empty() {
            return Ok(message);
        }
        let ids = &mut self.state.ids;
        self.agent.session.read(|log| ids.catch_up(log));
        for call in &mut message.tool_calls {
            call.id = ids.claim(std::mem::take(&mut call.id));
            if !is_shallow(&call.arguments) {
                // A log that holds them could not be read again.
                call.arguments = call.arguments.to_string().into();
            }
        }
        Ok(message)
    }

    /// Makes the calls of a message, logs their results in the message's order (RUN-13), and what
    /// rides on them behind all of them (INS-23).
    async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<(), Stop> {
        for call in &calls {
            self.log(EventBody::ToolCall {
                call: call.clone(),
                parent: None,
            })?;
        }
        // What a tool does to the world outlives a crash, so that it was asked to has to as well.
        if !calls.is_empty() {
            self.sync().await?;
        }
        let agent = self.agent;
        let overlap: Vec<_> = calls
            .iter()
            .map(|call| agent.shared.tools.is_concurrency_safe(call))
            .collect();
        let _nested = self.log_nested();
        let parallel = agent.options.max_parallel_calls.max(1);
        let mut contexts: Vec<ContextMessage> = Vec::new();
        let mut calls = calls.into_iter().enumerate();
        for group in groups(&overlap) {
            let group: Vec<_> = calls.by_ref().take(group.len()).collect();
            let running = group.into_iter().map(|(at, call)| self.call(at, call));
            let mut running = stream::iter(running).buffered(parallel);
            while let Some(result) = running.next().await {
                contexts.extend(self.log_result(result)?);
            }
        }
        // What rides on the results of a turn that was cancelled is dropped with the step (INS-21).
        self.cancel.check()?;
        for ContextMessage { source, content } in contexts {
            self.log(EventBody::UserMessage { source, content })?;
        }
        Ok(())
    }

    /// Logs the calls that tools make, each with its result when it has one (RUN-15). The model sees
    /// neither; whoever reads the log sees what a script did.
    fn log_nested(&self) -> Subscription {
        let session = self.agent.session.clone();
        self.agent
            .shared
            .events
            .subscribe(move |event: &ResultReady| {
                let own = event
                    .session
                    .as_ref()
                    .is_some_and(|other| other.header().id == session.header().id);
                let Some(parent) = event.parent.clone().filter(|_| own) else {
                    return;
                };
                let call = EventBody::ToolCall {
                    call: event.call.clone(),
                    parent: Some(parent.clone()),
                };
                let logged = session
                    .append(call)
                    .and_then(|_| append_result(&session, &event.result, Some(parent)));
                // It came when the call that made it had its result already, for instance.
                if let Err(error) = logged {
                    tracing::warn!(call = event.call.id, %error, "a nested call is not in the log");
                }
            })
    }

    /// Makes one call, the one of that place in its message.
    async fn call(&self, at: usize, call: ToolCall) -> ToolResult {
        let agent = self.agent;
        let refuse = |code: &str, message: String| {
            let error = ToolError::new(code, message);
            let session = agent.session.clone();
            agent.shared.tools.refuse(call.clone(), session, &error)
        };
        let most = agent.options.max_calls;
        if at >= most {
            let message = format!(
                "at most {most} calls of one message are made, and this is call {}; it was not \
                 executed. Make fewer at once.",
                at + 1
            );
            return refuse(code::TOO_MANY_CALLS, message);
        }
        if let Some(message) = unfit(&call.name, &call.arguments) {
            return refuse(dsh_tools::code::INVALID_ARGS, message);
        }
        let work =
            agent
                .shared
                .tools
                .call(call.clone(), agent.session.clone(), self.cancel.clone());
        let work = AssertUnwindSafe(work).catch_unwind();
        match settled(self.cancel, agent.options.settle, work).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let panic = panic_message(&*panic);
                let message = format!("the call of tool {:?} panicked: {panic}", call.name);
                refuse(dsh_tools::code::TOOL_PANICKED, message)
            }
            Err(reason) => {
                let message = format!(
                    "the call of tool {:?} was given up ({reason}) and did not end by itself; it was \
                     stopped where it stood",
                    call.name
                );
                refuse(dsh_tools::code::TOOL_CANCELLED, message)
            }
        }
    }

    /// Logs a result; what rides on it is still to be logged.
    fn log_result(&self, result: ToolResult) -> Result<Vec<ContextMessage>, Stop> {
        let kept = append_result(&self.agent.session, &result, None)?;
        Ok(if kept { result.contexts } else { Vec::new() })
    }

    fn count(&mut self, usage: Option<Usage>) {
        let Usage {
            input_tokens,
            output_tokens,
        } = usage.unwrap_or_default();
        self.usage.input_tokens = self.usage.input_tokens.saturating_add(input_tokens);
        self.usage.output_tokens = self.usage.output_tokens.saturating_add(output_tokens);
    }

    fn log(&self, body: EventBody) -> Result<(), AppendError> {
        self.agent.session.append(body).map(drop)
    }

    async fn sync(&self) -> Result<(), AgentError> {
        Ok(self.agent.session.sync().await?)
    }
}

/// Logs a result, or, where it is too large or nested too deeply, that it cannot be kept; whether it
/// was kept.
fn append_result(
    session: &Session,
    result: &ToolResult,
    parent: Option<String>,
) -> Result<bool, AppendError> {
    let whole = LoggedResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        is_error: result.is_error,
        code: result.code.clone(),
        value: result.value.clone(),
        content: result.content.clone(),
        parent,
    };
    let parent = whole.parent.clone();
    let Err(error) = session.append(EventBody::ToolResult(whole)) else {
        return Ok(true);
    };
    let message = format!(
        "the result of tool {:?} cannot be kept: {error}. Ask for less at once.",
        result.name
    );
    session.append(EventBody::ToolResult(LoggedResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        is_error: true,
        code: Some(code::RESULT_NOT_KEPT.to_owned()),
        value: None,
        content: vec![ContentBlock::text(message)],
        parent,
    }))?;
    Ok(false)
}

/// Waits for the work; once the cancellation is given, only so long, then drops it.
async fn settled<F: Future>(
    cancel: &Cancel,
    settle: Duration,
    work: F,
) -> Result<F::Output, CancelReason> {
    let mut work = pin!(work);
    let reason = tokio::select! {
        biased;
        output = &mut work => return Ok(output),
        reason = cancel.cancelled() => reason,
    };
    tokio::time::timeout(settle, work).await.map_err(|_| reason)
}

fn too_large(most: usize) -> ModelError {
    ModelError::fatal(
        model_code::MODEL_RESPONSE_TOO_LARGE,
        format!(
            "the model's message is larger than {most} bytes; ask for less, or raise the limit"
        ),
    )
}

/// The bytes of a message: text, reasoning and calls.
fn size(message: &AssistantMessage) -> usize {
    let calls = message.tool_calls.iter();
    let calls =
        calls.map(|call| call.id.len() + call.name.len() + call.arguments.to_string().len());
    message.text.len() + message.reasoning.as_ref().map_or(0, String::len) + calls.sum::<usize>()
}
