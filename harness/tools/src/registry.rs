//! The registry: which tools there are, which stages a call passes, and the way in.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_kernel::{Cancel, EventBus};
use dsh_session::{ContextMessage, Session, ToolCall, ToolSchema};
use serde_json::Value;

use crate::pipeline::{self, Ended};
use crate::schema::{Schema, clip, nearest};
use crate::token::Nest;
use crate::{
    Approver, Card, ExecContext, ExecToken, ExecuteWrapper, Invocation, PostExecute, PostExecuted,
    PreExecute, ResultReady, Tool, ToolError, ToolResult, code,
};

/// The largest budget of a tool, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 2_147_483_647;

/// Why a tool was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another tool has the name.
    #[error(
        "tool {name:?} is registered already; unload the plugin that has it, or rename this one"
    )]
    Conflict {
        /// The name.
        name: String,
    },
    /// The definition breaks a rule.
    #[error("tool {name:?} cannot be registered: {reason}")]
    Invalid {
        /// The name, as given.
        name: String,
        /// Which rule, and how to keep it.
        reason: String,
    },
}

impl RegisterError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "TOOL_CONFLICT",
            Self::Invalid { .. } => "TOOL_INVALID",
        }
    }
}

impl From<RegisterError> for dsh_kernel::PluginError {
    fn from(error: RegisterError) -> Self {
        Self::with_code(error.code(), &error)
    }
}

/// A registered tool, its schemas compiled.
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) schema: ToolSchema,
    pub(crate) parameters: Schema,
    pub(crate) output: Schema,
    timeout_ms: Option<u64>,
}

/// The stages as they stand when a call begins.
#[derive(Clone, Default)]
pub(crate) struct Stages {
    pub(crate) pre: Vec<Arc<dyn PreExecute>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) wrappers: Vec<Arc<dyn ExecuteWrapper>>,
    pub(crate) post: Vec<Arc<dyn PostExecute>>,
}

/// The tools service. Cloning shares it.
#[derive(Clone)]
pub struct ToolRegistry(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    events: EventBus,
}

#[derive(Default)]
struct State {
    tools: BTreeMap<String, Arc<Registered>>,
    next_stage: u64,
    pre: Ordered<dyn PreExecute>,
    approvers: Ordered<dyn Approver>,
    wrappers: Ordered<dyn ExecuteWrapper>,
    post: Ordered<dyn PostExecute>,
}

/// Stages by order, then by age.
struct Ordered<T: ?Sized>(BTreeMap<(i32, u64), Arc<T>>);

impl<T: ?Sized> Default for Ordered<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: ?Sized> Ordered<T> {
    fn list(&self) -> Vec<Arc<T>> {
        self.0.values().cloned().collect()
    }
}

#[derive(Clone, Copy)]
enum StageKind {
    Pre,
    Approver,
    Wrapper,
    Post,
}

impl ToolRegistry {
    /// A registry without tools, which tells `events` of every call.
    pub fn new(events: EventBus) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            events,
        }))
    }

    /// Registers a tool until the handle is released or dropped (RUN-4). A call that runs then goes
    /// on.
    ///
    /// Both schemas are compiled here, once.
    #[must_use = "dropping the handle unregisters the tool"]
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<ToolHandle, RegisterError> {
        let registered = Arc::new(define(tool)?);
        let name = registered.schema.name.clone();
        let mut state = self.state();
        if state.tools.contains_key(&name) {
            return Err(RegisterError::Conflict { name });
        }
        state.tools.insert(name.clone(), Arc::clone(&registered));
        Ok(ToolHandle {
            registry: self.clone(),
            name,
            registered,
        })
    }

    /// What the model sees (RUN-5), by name.
    pub fn list(&self) -> Vec<ToolSchema> {
        self.state()
            .tools
            .values()
            .map(|registered| registered.schema.clone())
            .collect()
    }

    /// Adds a stage before execution. Lower orders run first.
    #[must_use = "dropping the handle removes the stage"]
    pub fn before_execute(&self, order: i32, stage: Arc<dyn PreExecute>) -> StageHandle {
        let key = self.stage_key(order);
        self.state().pre.0.insert(key, stage);
        StageHandle {
            registry: self.clone(),
            kind: StageKind::Pre,
            key,
        }
    }

    /// Sets who answers the questions of pre-execute stages; of several, the lowest order.
    #[must_use = "dropping the handle removes the approver"]
    pub fn approve_with(&self, order: i32, approver: Arc<dyn Approver>) -> StageHandle {
        let key = self.stage_key(order);
        self.state().approvers.0.insert(key, approver);
        StageHandle {
            registry: self.clone(),
            kind: StageKind::Approver,
            key,
        }
    }

    /// Adds a wrapper around execution. Lower orders are further out.
    #[must_use = "dropping the handle removes the wrapper"]
    pub fn wrap_execute(&self, order: i32, wrapper: Arc<dyn ExecuteWrapper>) -> StageHandle {
        let key = self.stage_key(order);
        self.state().wrappers.0.insert(key, wrapper);
        StageHandle {
            registry: self.clone(),
            kind: StageKind::Wrapper,
            key,
        }
    }

    /// Adds a stage after execution. Lower orders run first.
    #[must_use = "dropping the handle removes the stage"]
    pub fn after_execute(&self, order: i32, stage: Arc<dyn PostExecute>) -> StageHandle {
        let key = self.stage_key(order);
        self.state().post.0.insert(key, stage);
        StageHandle {
            registry: self.clone(),
            kind: StageKind::Post,
            key,
        }
    }

    /// Calls a tool for the model. Whatever happens is told in the result (RUN-6), and as
    /// `tools/result`.
    ///
    /// Dropping the future drops the call where it stands; then there is no result to tell.
    pub async fn call(
        &self,
        call: ToolCall,
        session: impl Into<Option<Session>>,
        cancel: Cancel,
    ) -> ToolResult {
        let ExecContext {
            cancel,
            session,
            token,
            outer,
            ..
        } = ExecContext::new(cancel, session.into(), "");
        let nest = Nest::top(&call.name, &call.id);
        let invocation = Invocation {
            call,
            session,
            timeout_ms: None,
            cancel,
            token,
            outer,
            nest,
        };
        self.run(invocation, |_| Vec::new()).await
    }

    /// Calls a tool from within another call (RUN-15): the same pipeline, with the session and the
    /// cancellation of that call, and a token of its own under the outer one. Contexts that stages
    /// add are taken out of the result and kept for the outer one, where they come first; if a stage
    /// holds the outer result back, they are dropped.
    ///
    /// A tool that the call is made under already is refused: it would call itself without end.
    pub async fn call_nested(&self, outer: &ExecContext, call: ToolCall) -> ToolResult {
        let token = ExecToken::next();
        let under = outer.outer.unwrap_or(outer.token);
        let refused = outer.nest.contains(&call.name);
        let invocation = Invocation {
            nest: outer.nest.under(&call.name),
            call,
            session: outer.session.clone(),
            timeout_ms: None,
            cancel: outer.cancel.clone(),
            token,
            outer: Some(under),
        };
        if refused {
            let error = within_itself(&invocation.call.name);
            let result = ToolResult::failed(&invocation.call, &error);
            return self.tell(&invocation, result, Vec::new());
        }
        self.run(invocation, |result| {
            let contexts = std::mem::take(&mut result.contexts);
            outer.nest.defer(&contexts);
            contexts
        })
        .await
    }

    /// Ends a call of the model's that is not made, or was dropped before it ended: the failure is
    /// its result, told as `tools/result` like any other (RUN-6).
    pub fn refuse(
        &self,
        call: ToolCall,
        session: impl Into<Option<Session>>,
        error: &ToolError,
    ) -> ToolResult {
        let result = ToolResult::failed(&call, error);
        let invocation = Invocation {
            nest: Nest::top(&call.name, &call.id),
            call,
            session: session.into(),
            timeout_ms: None,
            cancel: Cancel::new(),
            token: ExecToken::next(),
            outer: None,
        };
        self.tell(&invocation, result, Vec::new())
    }

    /// Takes a call through the pipeline. `take` may take contexts out of the result.
    async fn run(
        &self,
        mut invocation: Invocation,
        take: impl FnOnce(&mut ToolResult) -> Vec<ContextMessage>,
    ) -> ToolResult {
        let found = self.state().tools.get(&invocation.call.name).cloned();
        let Ended {
            mut result,
            executed,
        } = match found {
            None => {
                let error = self.unknown(&invocation.call.name);
                Ended {
                    result: ToolResult::failed(&invocation.call, &error),
                    executed: false,
                }
            }
            Some(tool) => {
                invocation.timeout_ms = tool.timeout_ms;
                pipeline::run(&tool, &self.stages(), &invocation).await
            }
        };
        let deferred = take(&mut result);
        if executed {
            self.0.events.emit(&PostExecuted {
                call: invocation.call.clone(),
                session: invocation.session.clone(),
                code: result.code.clone(),
                token: invocation.token,
                outer: invocation.outer,
            });
        }
        self.tell(&invocation, result, deferred)
    }

    fn tell(
        &self,
        invocation: &Invocation,
        result: ToolResult,
        deferred: Vec<ContextMessage>,
    ) -> ToolResult {
        let result = Arc::new(result);
        self.0.events.emit(&ResultReady {
            call: invocation.call.clone(),
            session: invocation.session.clone(),
            result: Arc::clone(&result),
            token: invocation.token,
            outer: invocation.outer,
            parent: invocation.outer.map(|_| invocation.nest.call().to_owned()),
            deferred,
        });
        Arc::unwrap_or_clone(result)
    }

    /// Whether this call may overlap with others of its step (RUN-13). An unknown tool may: nothing
    /// is executed. A tool that panics when it is asked may not.
    pub fn is_concurrency_safe(&self, call: &ToolCall) -> bool {
        let is_known = self.state().tools.contains_key(&call.name);
        self.ask_tool(call, |tool| tool.is_concurrency_safe(&call.arguments))
            .unwrap_or(!is_known)
    }

    /// How the call is shown to a person, if its tool says.
    pub fn present_call(&self, call: &ToolCall) -> Option<Card> {
        self.ask_tool(call, |tool| tool.present_call(&call.arguments))
            .flatten()
    }

    /// How the result of the call is shown to a person, if its tool says.
    pub fn present_result(&self, call: &ToolCall, result: &ToolResult) -> Option<Card> {
        self.ask_tool(call, |tool| tool.present_result(&call.arguments, result))
            .flatten()
    }

    /// Asks a pure question; none if there is no such tool, or it panicked.
    fn ask_tool<T>(&self, call: &ToolCall, ask: impl FnOnce(&dyn Tool) -> T) -> Option<T> {
        let registered = self.state().tools.get(&call.name).cloned()?;
        catch_unwind(AssertUnwindSafe(|| ask(&*registered.tool)))
            .inspect_err(|panic| {
                let panic = dsh_kernel::panic_message(&**panic);
                tracing::error!(tool = call.name, panic, "a tool panicked");
            })
            .ok()
    }

    fn unknown(&self, name: &str) -> ToolError {
        let state = self.state();
        let shown = clip(name, 64);
        let message = match nearest(name, state.tools.keys().map(String::as_str)) {
            Some(near) => format!("there is no tool {shown:?}; did you mean {near:?}?"),
            None if state.tools.is_empty() => {
                format!("there is no tool {shown:?}, and no other one")
            }
            None => {
                let names: Vec<_> = state.tools.keys().map(String::as_str).collect();
                format!(
                    "there is no tool {shown:?}; there are: {}",
                    names.join(", ")
                )
            }
        };
        ToolError::new(code::UNKNOWN_TOOL, message)
    }

    fn stages(&self) -> Stages {
        let state = self.state();
        Stages {
            pre: state.pre.list(),
            approver: state.approvers.0.values().next().cloned(),
            wrappers: state.wrappers.list(),
            post: state.post.list(),
        }
    }

    fn stage_key(&self, order: i32) -> (i32, u64) {
        let mut state = self.state();
        state.next_stage += 1;
        (order, state.next_stage)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No change spans two critical sections, so the state is whole after any panic.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.state().tools.keys()).finish()
    }
}

fn within_itself(name: &str) -> ToolError {
    let message = format!(
        "tool {name:?} cannot be called from within a call of {name:?}. Call what it would call \
         directly."
    );
    ToolError::new(code::TOOL_DENIED, message)
}

fn define(tool: Arc<dyn Tool>) -> Result<Registered, RegisterError> {
    let name = tool.name().to_owned();
    let invalid = |reason: String| RegisterError::Invalid {
        name: name.clone(),
        reason,
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Err(invalid(
            "a name is 1 to 64 ASCII letters, digits, `_` and `-`".to_owned(),
        ));
    }
    let description = tool.description().to_owned();
    if description.trim().is_empty() {
        return Err(invalid(
            "its description is blank; say what the tool does".to_owned(),
        ));
    }
    let timeout_ms = tool.timeout_ms();
    if timeout_ms.is_some_and(|budget| budget == 0 || budget > MAX_TIMEOUT_MS) {
        return Err(invalid(format!(
            "its timeout must be 1 to {MAX_TIMEOUT_MS} ms, or none"
        )));
    }
    let schema = ToolSchema {
        name: name.clone(),
        description,
        parameters: tool.parameters(),
    };
    if schema.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(invalid(
            "its parameters schema must have `type: object`".to_owned(),
        ));
    }
    let parameters = Schema::compile(&schema.parameters, "the arguments")
        .map_err(|error| invalid(format!("its parameters schema is invalid, {error}")))?;
    let output = Schema::compile(&tool.output(), "the value")
        .map_err(|error| invalid(format!("its output schema is invalid, {error}")))?;
    Ok(Registered {
        tool,
        schema,
        parameters,
        output,
        timeout_ms,
    })
}

/// A registered tool; dropping it unregisters the tool.
#[must_use = "dropping the handle unregisters the tool"]
pub struct ToolHandle {
    registry: ToolRegistry,
    name: String,
    registered: Arc<Registered>,
}

impl ToolHandle {
    /// Unregisters the tool. The same as dropping the handle, in words.
    pub fn release(self) {}
}

impl Drop for ToolHandle {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        if state
            .tools
            .get(&self.name)
            .is_some_and(|held| Arc::ptr_eq(held, &self.registered))
        {
            state.tools.remove(&self.name);
        }
    }
}

impl fmt::Debug for ToolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolHandle").field(&self.name).finish()
    }
}

/// A stage in the pipeline; dropping it removes the stage. Calls that have begun keep it.
#[must_use = "dropping the handle removes the stage"]
pub struct StageHandle {
    registry: ToolRegistry,
    kind: StageKind,
    key: (i32, u64),
}

impl StageHandle {
    /// Removes the stage. The same as dropping the handle, in words.
    pub fn release(self) {}
}

impl Drop for StageHandle {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        match self.kind {
            StageKind::Pre => drop(state.pre.0.remove(&self.key)),
            StageKind::Approver => drop(state.approvers.0.remove(&self.key)),
            StageKind::Wrapper => drop(state.wrappers.0.remove(&self.key)),
            StageKind::Post => drop(state.post.0.remove(&self.key)),
        }
    }
}

impl fmt::Debug for StageHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageHandle").finish_non_exhaustive()
    }
}
