//! The request as the model gets it.

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::{ContentBlock, Event, EventBody, ToolCall, ToolSchema};

/// What the model is asked. Its JSON, written without blanks, is the canonical form: the same
/// request is the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// What was said so far.
    pub messages: Vec<Message>,
    /// What it may call.
    pub tools: Vec<ToolSchema>,
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "role",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Message {
    /// Said by the user, or in the user's place.
    User {
        /// What was said.
        content: Vec<ContentBlock>,
    },
    /// Said by the model.
    Assistant {
        /// What it said.
        text: String,
        /// What it thought.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// What it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What a call came to.
    Tool {
        /// The id of the call.
        call_id: String,
        /// Whether it failed.
        is_error: bool,
        /// What the model reads of it.
        content: Vec<ContentBlock>,
    },
}

impl Message {
    /// The message that an event stands for; none if the model does not see it.
    pub fn of(event: &Event) -> Option<Self> {
        match &event.body {
            EventBody::UserMessage { content, .. } => Some(Self::User {
                content: content.clone(),
            }),
            EventBody::Compaction { summary, .. } => Some(Self::User {
                content: summary.clone(),
            }),
            EventBody::AssistantMessage(message) => Some(Self::Assistant {
                text: message.text.clone(),
                reasoning: message.reasoning.clone(),
                tool_calls: message.tool_calls.clone(),
            }),
            EventBody::ToolResult(result) if result.parent.is_none() => Some(Self::Tool {
                call_id: result.call_id.clone(),
                is_error: result.is_error,
                content: result.content.clone(),
            }),
            _ => None,
        }
    }
}

impl ModelRequest {
    /// The canonical bytes.
    pub fn canonical(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and JSON values are always written")
    }

    /// SHA-1 of the canonical bytes, in lower-case hexadecimal.
    pub fn sha1(&self) -> String {
        hex(&Sha1::digest(self.canonical()))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
