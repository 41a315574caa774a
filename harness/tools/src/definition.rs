//! What a tool is (RUN-4).

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, PluginError};
use dsh_session::{ContentBlock, Session};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::token::Nest;
use crate::{ExecToken, ToolResult};

/// The stable codes of the pipeline's own failures. Tools add codes of their own.
pub mod code {
    /// The arguments do not fit the tool's parameters.
    pub const INVALID_ARGS: &str = "INVALID_ARGS";
    /// The tool returned a value that does not fit its output schema.
    pub const INVALID_TOOL_OUTPUT: &str = "INVALID_TOOL_OUTPUT";
    /// The tool's budget ran out (RUN-7).
    pub const TOOL_TIMEOUT: &str = "TOOL_TIMEOUT";
    /// No tool of that name is registered.
    pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
    /// A pre-execute stage, or the person who was asked, said no.
    pub const TOOL_DENIED: &str = "TOOL_DENIED";
    /// A post-execute stage held the result back.
    pub const TOOL_BLOCKED: &str = "TOOL_BLOCKED";
    /// The tool, or a stage, panicked.
    pub const TOOL_PANICKED: &str = "TOOL_PANICKED";
    /// The call was cancelled before or between the stages.
    pub const TOOL_CANCELLED: &str = "TOOL_CANCELLED";
    /// The tool failed without a code of its own.
    pub const TOOL_FAILED: &str = "TOOL_FAILED";
}

/// How a call or a result is shown to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "card", rename_all = "lowercase", deny_unknown_fields)]
pub enum Card {
    /// A title and some places in files.
    Generic {
        /// What sort of work it is, `search` for instance.
        kind: String,
        /// One line.
        title: String,
        /// The places it is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<FileLocation>,
    },
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLocation {
    /// As the tool was given it.
    pub path: String,
    /// One-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// What a tool fails with: a stable code to route on and a message, for the model, that names the
/// thing and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    code: String,
    message: String,
}

impl ToolError {
    /// A failure with a code of its own.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }

    /// A failure without a code of its own: [`code::TOOL_FAILED`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(code::TOOL_FAILED, message)
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

impl From<PluginError> for ToolError {
    fn from(error: PluginError) -> Self {
        Self::new(error.code().unwrap_or(code::TOOL_FAILED), error.to_string())
    }
}

impl From<CancelReason> for ToolError {
    fn from(reason: CancelReason) -> Self {
        Self::new(
            code::TOOL_CANCELLED,
            format!("the call was given up: {reason}"),
        )
    }
}

/// What a call hands to the tool besides its arguments.
#[derive(Clone, Debug)]
pub struct ExecContext {
    /// Given when the caller no longer wants the result, or the tool's budget ran out. Observe it:
    /// a tool that does not is dropped in the middle of its work (RUN-7).
    pub cancel: Cancel,
    /// The conversation the call belongs to.
    pub session: Option<Session>,
    /// The id of the call, as the model gave it.
    pub call_id: String,
    /// The call's own token.
    pub token: ExecToken,
    /// The token of the call of the model's that this one is made under; none if it is that call
    /// (RUN-15).
    pub outer: Option<ExecToken>,
    pub(crate) nest: Nest,
}

impl ExecContext {
    /// What a tool is given that is executed without the pipeline. The token is a new one.
    pub fn new(cancel: Cancel, session: Option<Session>, call_id: impl Into<String>) -> Self {
        Self {
            cancel,
            session,
            call_id: call_id.into(),
            token: ExecToken::next(),
            outer: None,
            nest: Nest::default(),
        }
    }

    /// The same call with another cancellation, for a wrapper that arms one of its own.
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }
}

/// A tool (RUN-4). The schemas are read once, at registration.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The name the model calls it by: 1 to 64 ASCII letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str;

    /// JSON Schema (2020-12) of the arguments, an object schema.
    fn parameters(&self) -> Value;

    /// JSON Schema (2020-12) of the value that `execute` returns.
    fn output(&self) -> Value;

    /// The tool's own check of the arguments, made before the schema's. An error is the whole
    /// message of the `INVALID_ARGS` result.
    ///
    /// The arguments are as the model gave them: any JSON.
    fn check_arguments(&self, _arguments: &Value) -> Result<(), String> {
        Ok(())
    }

    /// A sentence that is added to every `INVALID_ARGS` message made from the schema: the
    /// conventions that a model tends to get wrong.
    fn argument_hint(&self) -> Option<&str> {
        None
    }

    /// Does the work. The arguments have passed both checks.
    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError>;

    /// What the model reads of a value that fits the output schema. Pure.
    fn render(&self, arguments: &Value, value: &Value) -> Vec<ContentBlock>;

    /// The budget of a call, in milliseconds, 1 to 2147483647; enforced by the timeout policy
    /// (RUN-7), never shown to the model. None: no budget.
    fn timeout_ms(&self) -> Option<u64> {
        None
    }

    /// Whether a call with these arguments may overlap with others of one step (RUN-13).
    fn is_concurrency_safe(&self, _arguments: &Value) -> bool {
        false
    }

    /// How a call is shown to a person. Pure; the arguments are as the model gave them.
    fn present_call(&self, _arguments: &Value) -> Option<Card> {
        None
    }

    /// How a result is shown to a person. Pure.
    fn present_result(&self, _arguments: &Value, _result: &ToolResult) -> Option<Card> {
        None
    }
}
