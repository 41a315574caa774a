//! Calls, results, and the events about them.

use std::sync::Arc;

use dsh_kernel::Event;
use dsh_session::{ContentBlock, ContextMessage, Session, ToolCall, present};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ExecToken, ToolError};

/// How a call ended. The caller and the listeners of `tools/result` see the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Whether the call failed; then there is a code and no value.
    pub is_error: bool,
    /// The stable code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The canonical value. One that is null is a value.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Value>,
    /// What the model reads: the rendered value, or the failure's message.
    pub content: Vec<ContentBlock>,
    /// What post-execute stages added, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<ContextMessage>,
}

impl ToolResult {
    pub(crate) fn failed(call: &ToolCall, error: &ToolError) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            is_error: true,
            code: Some(error.code().to_owned()),
            value: None,
            content: vec![ContentBlock::text(error.message())],
            contexts: Vec::new(),
        }
    }

    /// The text of all blocks, one after the other.
    pub fn text(&self) -> String {
        self.content.iter().map(ContentBlock::as_text).collect()
    }
}

/// `tools/post-execute`: a call was executed, and the post-execute stages have decided.
#[derive(Clone, Debug)]
pub struct PostExecuted {
    /// The call.
    pub call: ToolCall,
    /// The conversation it belongs to.
    pub session: Option<Session>,
    /// The code of the failure; none after a success.
    pub code: Option<String>,
    /// The call's own token.
    pub token: ExecToken,
    /// The token of the call of the model's that this one was made under; none if it is that call.
    pub outer: Option<ExecToken>,
}

impl Event for PostExecuted {
    const NAME: &'static str = "tools/post-execute";
}

/// `tools/result`: a call ended; once for every call, whatever happened to it (RUN-6).
#[derive(Clone, Debug)]
pub struct ResultReady {
    /// The call.
    pub call: ToolCall,
    /// The conversation it belongs to.
    pub session: Option<Session>,
    /// What the caller gets.
    pub result: Arc<ToolResult>,
    /// The call's own token.
    pub token: ExecToken,
    /// The token of the call of the model's that this one was made under; none if it is that call.
    pub outer: Option<ExecToken>,
    /// The id of that call of the model's; none if it is that call.
    pub parent: Option<String>,
    /// What the stages of a nested call added and its caller does not get: it stands among the
    /// contexts of the outer result, if that lets it pass (RUN-15).
    pub deferred: Vec<ContextMessage>,
}

impl Event for ResultReady {
    const NAME: &'static str = "tools/result";
}
