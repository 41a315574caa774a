//! The stages of a call (RUN-6), and what plugins may do in them.
//!
//! 1. **Arguments**: the tool's own check, then the schema's.
//! 2. **Pre-execute**: each [`PreExecute`] allows, denies, or asks; the [`Approver`] answers.
//! 3. **Execute**: the [`ExecuteWrapper`]s around the tool, then the value's check and rendering.
//! 4. **Post-execute**: each [`PostExecute`] accepts, blocks, replaces, or adds context.
//! 5. **Result**: one [`ResultReady`](crate::ResultReady).
//!
//! An error or a panic anywhere is a failed result. A call that is cancelled does not enter another
//! stage, and a pre- or post-execute stage that waits is dropped; the tool itself is awaited, it
//! observes its cancellation or is dropped by the timeout policy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Cancel, panic_message};
use dsh_session::{
    ContentBlock, ContextMessage, MAX_DEPTH, MAX_LINE, Session, ToolCall, is_loggable, is_shallow,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::registry::{Registered, Stages};
use crate::schema::clip;
use crate::token::Nest;
use crate::{ExecContext, ExecToken, ToolError, ToolResult, code};

/// Most characters of what a panic said that a result quotes.
const MAX_PANIC: usize = 300;

/// A call as the stages see it.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The call; its arguments have been checked.
    pub call: ToolCall,
    /// The conversation it belongs to.
    pub session: Option<Session>,
    /// The tool's budget (RUN-7).
    pub timeout_ms: Option<u64>,
    /// Given when the caller no longer wants the result.
    pub cancel: Cancel,
    /// The call's own token.
    pub token: ExecToken,
    /// The token of the call of the model's that this one is made under; none if it is that call
    /// (RUN-15).
    pub outer: Option<ExecToken>,
    pub(crate) nest: Nest,
}

/// What a pre-execute stage decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Do not execute; the reason is for the model.
    Deny(String),
    /// Let the [`Approver`] decide; the question is for a person.
    Ask(String),
}

/// A stage before execution.
#[async_trait]
pub trait PreExecute: Send + Sync + 'static {
    /// Decides on one call. An error is a denial with that error's code and message.
    async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError>;
}

/// Answers the questions of pre-execute stages. Without one, a question is a denial.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Answers for the person.
    async fn ask(&self, invocation: &Invocation, question: &str) -> Result<Approval, ToolError>;
}

/// An [`Approver`]'s answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Go on.
    Granted,
    /// Do not execute; the reason is for the model.
    Refused(String),
}

/// A wrapper around execution.
#[async_trait]
pub trait ExecuteWrapper: Send + Sync + 'static {
    /// Runs `next`, or does not, and returns the call's value. A panic further in arrives as an
    /// error of code [`code::TOOL_PANICKED`].
    async fn around(
        &self,
        invocation: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError>;
}

/// The rest of the execution: further wrappers, then the tool.
pub struct Next<'a> {
    invocation: &'a Invocation,
    tool: &'a Registered,
    wrappers: &'a [Arc<dyn ExecuteWrapper>],
}

impl<'a> Next<'a> {
    /// Runs it. `context` is what the tool gets; a wrapper may pass another cancellation on.
    pub fn run(self, context: ExecContext) -> BoxFuture<'a, Result<Value, ToolError>> {
        let Self {
            invocation,
            tool,
            wrappers,
        } = self;
        let name = &invocation.call.name;
        if let Some((first, rest)) = wrappers.split_first() {
            let next = Next {
                invocation,
                tool,
                wrappers: rest,
            };
            guarded(
                name,
                "an execute wrapper",
                first.around(invocation, context, next),
            )
            .boxed()
        } else {
            let arguments = invocation.call.arguments.clone();
            guarded(name, "its execution", tool.tool.execute(arguments, context)).boxed()
        }
    }
}

/// What a post-execute stage looks at.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The canonical value, or what execution failed with.
    pub outcome: Result<&'a Value, &'a ToolError>,
    /// What the model would read.
    pub content: &'a [ContentBlock],
    /// The contexts of nested calls: they stand first among the result's, unless a stage holds the
    /// result back (RUN-15).
    pub deferred: &'a [ContextMessage],
}

/// What a post-execute stage decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Leave it as it is.
    Accept,
    /// Hold it back; the reason is for the model. Later stages do not run, and the contexts that
    /// earlier ones and nested calls added are dropped.
    Block(String),
    /// Another value in its place, checked against the output schema and rendered anew.
    Replace(Value),
    /// Leave it, and add a message behind the results of the step.
    AddContext(ContextMessage),
}

/// A stage after execution, also after one that failed.
#[async_trait]
pub trait PostExecute: Send + Sync + 'static {
    /// Decides on one result. An error takes the result's place.
    async fn review(
        &self,
        invocation: &Invocation,
        executed: Executed<'_>,
    ) -> Result<Verdict, ToolError>;
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: ToolResult,
    /// Whether execution was entered.
    pub(crate) executed: bool,
}

/// Takes one call of `tool` through stages 1 to 4.
pub(crate) async fn run(tool: &Registered, stages: &Stages, invocation: &Invocation) -> Ended {
    let call = &invocation.call;
    let admitted = async {
        check_arguments(tool, &call.arguments)?;
        admit(stages, invocation).await
    };
    if let Err(error) = admitted.await {
        return Ended {
            result: ToolResult::failed(call, &error),
            executed: false,
        };
    }
    let context = ExecContext {
        cancel: invocation.cancel.clone(),
        session: invocation.session.clone(),
        call_id: call.id.clone(),
        token: invocation.token,
        outer: invocation.outer,
        nest: invocation.nest.clone(),
    };
    let next = Next {
        invocation,
        tool,
        wrappers: &stages.wrappers,
    };
    let outcome = next
        .run(context)
        .await
        .and_then(|value| Rendered::new(tool, call, value));
    let result = match review(tool, stages, invocation, outcome).await {
        Ok((rendered, contexts)) => ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            is_error: false,
            code: None,
            value: Some(rendered.value),
            content: rendered.content,
            contexts,
        },
        Err((error, contexts)) => ToolResult {
            contexts,
            ..ToolResult::failed(call, &error)
        },
    };
    Ended {
        result,
        executed: true,
    }
}

fn check_arguments(tool: &Registered, arguments: &Value) -> Result<(), ToolError> {
    let name = &tool.schema.name;
    if !is_shallow(arguments) {
        let message = format!(
            "the arguments of tool {name:?} nest deeper than {MAX_DEPTH} levels. Call it again with \
             flatter ones."
        );
        return Err(ToolError::new(code::INVALID_ARGS, message));
    }
    let own = guarded_sync(name, "its check of the arguments", || {
        tool.tool.check_arguments(arguments)
    })?;
    own.map_err(|message| ToolError::new(code::INVALID_ARGS, message))?;
    let checked = guarded_sync(name, "its schema", || tool.parameters.check(arguments))?;
    checked.map_err(|faults| {
        let hint = tool.tool.argument_hint().map(|hint| format!(" {hint}")).unwrap_or_default();
        let message = format!(
            "the arguments of tool {name:?} do not fit: {faults}. Correct them and call it again.{hint}"
        );
        ToolError::new(code::INVALID_ARGS, message)
    })
}

async fn admit(stages: &Stages, invocation: &Invocation) -> Result<(), ToolError> {
    let name = &invocation.call.name;
    invocation.cancel.check()?;
    for stage in &stages.pre {
        let decision =
            unless_cancelled(invocation, "a pre-execute stage", stage.decide(invocation)).await?;
        match decision {
            Decision::Allow => {}
            Decision::Deny(reason) => return Err(denied(name, &reason)),
            Decision::Ask(question) => ask(stages, invocation, &question).await?,
        }
    }
    invocation.cancel.check().map_err(ToolError::from)
}

async fn ask(stages: &Stages, invocation: &Invocation, question: &str) -> Result<(), ToolError> {
    let name = &invocation.call.name;
    let Some(approver) = &stages.approver else {
        return Err(denied(
            name,
            &format!("it needs approval ({question}) and nobody can give it"),
        ));
    };
    match unless_cancelled(
        invocation,
        "the approval",
        approver.ask(invocation, question),
    )
    .await?
    {
        Approval::Granted => Ok(()),
        Approval::Refused(reason) => Err(denied(name, &reason)),
    }
}

fn denied(name: &str, reason: &str) -> ToolError {
    let message = format!("the call of tool {name:?} was denied: {reason}. It was not executed.");
    ToolError::new(code::TOOL_DENIED, message)
}

/// A value that fits its schema, and its text.
struct Rendered {
    value: Value,
    content: Vec<ContentBlock>,
}

impl Rendered {
    fn new(tool: &Registered, call: &ToolCall, value: Value) -> Result<Self, ToolError> {
        let name = &call.name;
        if !is_shallow(&value) {
            let message = format!(
                "tool {name:?} returned a value that nests deeper than {MAX_DEPTH} levels. This is a \
                 fault of the tool, not of the arguments."
            );
            return Err(ToolError::new(code::INVALID_TOOL_OUTPUT, message));
        }
        guarded_sync(name, "its output schema", || tool.output.check(&value))?.map_err(
            |faults| {
                let message = format!(
                    "tool {name:?} returned a value that does not fit its own output schema: {faults}. \
                     This is a fault of the tool, not of the arguments."
                );
                ToolError::new(code::INVALID_TOOL_OUTPUT, message)
            },
        )?;
        let content = guarded_sync(name, "its rendering", || {
            tool.tool.render(&call.arguments, &value)
        })?;
        if !is_loggable(&content, Some(&value)) {
            let message = format!(
                "tool {name:?} returned more than can be kept: a result has at most {} MB, nested no \
                 deeper than {MAX_DEPTH} levels. Ask it for less at once.",
                MAX_LINE / 2 / 1_000_000,
            );
            return Err(ToolError::new(code::INVALID_TOOL_OUTPUT, message));
        }
        Ok(Self { value, content })
    }
}

type Reviewed = Result<(Rendered, Vec<ContextMessage>), (ToolError, Vec<ContextMessage>)>;

async fn review(
    tool: &Registered,
    stages: &Stages,
    invocation: &Invocation,
    mut outcome: Result<Rendered, ToolError>,
) -> Reviewed {
    let name = &invocation.call.name;
    // Execution has ended: what a nested call that was left running still adds comes too late.
    let deferred = invocation.nest.close();
    let mut contexts = Vec::new();
    for stage in &stages.post {
        let message;
        let executed = match &outcome {
            Ok(rendered) => Executed {
                outcome: Ok(&rendered.value),
                content: &rendered.content,
                deferred: &deferred,
            },
            Err(error) => {
                message = [ContentBlock::text(error.message())];
                Executed {
                    outcome: Err(error),
                    content: &message,
                    deferred: &deferred,
                }
            }
        };
        let review = stage.review(invocation, executed);
        match unless_cancelled(invocation, "a post-execute stage", review).await {
            Ok(Verdict::Accept) => {}
            Ok(Verdict::AddContext(context)) => contexts.push(context),
            Ok(Verdict::Replace(value)) => {
                outcome = Rendered::new(tool, &invocation.call, value);
            }
            Ok(Verdict::Block(reason)) => {
                let message = format!("the result of tool {name:?} was held back: {reason}");
                return Err((ToolError::new(code::TOOL_BLOCKED, message), Vec::new()));
            }
            // A stage that could not judge holds the result back as well.
            Err(error) => return Err((error, Vec::new())),
        }
    }
    let contexts = deferred.into_iter().chain(contexts).collect();
    match outcome {
        Ok(rendered) => Ok((rendered, contexts)),
        Err(error) => Err((error, contexts)),
    }
}

/// Runs a stage; a panic in it is an error, and so is a cancellation while it waits.
async fn unless_cancelled<T>(
    invocation: &Invocation,
    what: &str,
    stage: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    tokio::select! {
        // First, so that a stage that needs not wait is never cut off.
        biased;
        result = guarded(&invocation.call.name, what, stage) => result,
        reason = invocation.cancel.cancelled() => Err(reason.into()),
    }
}

async fn guarded<T>(
    name: &str,
    what: &str,
    stage: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    AssertUnwindSafe(stage)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(panicked(name, what, &*panic)))
}

fn guarded_sync<T>(name: &str, what: &str, stage: impl FnOnce() -> T) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(stage)).map_err(|panic| panicked(name, what, &*panic))
}

fn panicked(name: &str, what: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let panic = clip(&panic_message(panic), MAX_PANIC);
    tracing::error!(
        tool = name,
        stage = what,
        panic,
        "a stage of a tool call panicked"
    );
    let message = format!(
        "tool {name:?} failed: {what} panicked ({panic}). This is a fault of the tool; try another way."
    );
    ToolError::new(code::TOOL_PANICKED, message)
}
