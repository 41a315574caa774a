//! What a turn fails with.

use dsh_session::{AppendError, StoreError};

/// The stable codes of the loop's own failures. A turn also fails with the codes of its model, see
/// [`ModelError`](crate::ModelError), and of its pre-step stages.
pub mod code {
    /// A turn was to be run, and no prompt is queued.
    pub const NO_PROMPT: &str = "NO_PROMPT";
    /// The agent was closed, or the plugin that provides it was unloaded.
    pub const AGENT_CLOSED: &str = "AGENT_CLOSED";
    /// The turn reached [`LoopOptions::max_steps`](crate::LoopOptions).
    pub const MAX_STEPS: &str = "MAX_STEPS";
    /// A pre-step stage failed without a code of its own.
    pub const PRE_STEP_FAILED: &str = "PRE_STEP_FAILED";
    /// A pre-step stage panicked.
    pub const PRE_STEP_PANICKED: &str = "PRE_STEP_PANICKED";
    /// The session could not be written to its store.
    pub const SESSION_STORE: &str = "SESSION_STORE";
    /// The loop itself panicked.
    pub const LOOP_PANICKED: &str = "LOOP_PANICKED";
    /// Something could not be logged: it does not follow from what is in the log, or cannot be kept.
    pub const SESSION_LOG: &str = "SESSION_LOG";
    /// In a tool's result: the message makes more calls than
    /// [`LoopOptions::max_calls`](crate::LoopOptions).
    pub const TOO_MANY_CALLS: &str = "TOO_MANY_CALLS";
    /// In a tool's result: the result could not be logged.
    pub const RESULT_NOT_KEPT: &str = "RESULT_NOT_KEPT";
    /// A compaction would not leave a session that can go on.
    pub const COMPACTION_INVALID: &str = "COMPACTION_INVALID";
}

/// Why a turn failed, or was not begun: a stable code and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    code: String,
    message: String,
}

impl AgentError {
    /// A failure with a code of its own.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        Self::new(
            code::SESSION_STORE,
            format!("the session cannot be kept: {error}"),
        )
    }
}

impl From<AppendError> for AgentError {
    fn from(error: AppendError) -> Self {
        Self::new(
            code::SESSION_LOG,
            format!("the turn cannot be logged: {error}"),
        )
    }
}

impl From<dsh_kernel::PluginError> for AgentError {
    fn from(error: dsh_kernel::PluginError) -> Self {
        Self::new(
            error.code().unwrap_or(code::PRE_STEP_FAILED),
            error.to_string(),
        )
    }
}
