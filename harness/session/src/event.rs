//! The events of the log (RUN-11).

mod read;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ContentBlock, MessageSource, ToolCall, ToolSchema};

/// One entry of the log. What was logged is never changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// 1, 2, 3, … without gaps.
    pub seq: u64,
    /// When it was logged, in milliseconds since 1970 (UTC), as the writer's clock had it. Nothing
    /// is decided by it.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EventBody {
    /// A turn begins: a prompt was claimed.
    #[serde(rename = "turn/start")]
    TurnStart {
        /// 1 for the first of the session, then one more each.
        turn: u64,
    },
    /// The turn has ended.
    #[serde(rename = "turn/end")]
    TurnEnd {
        /// The open one.
        turn: u64,
        /// How it ended.
        outcome: Ending,
    },
    /// A step begins: one request and the calls that its answer asks for (RUN-12).
    #[serde(rename = "step/start")]
    StepStart {
        /// The open turn.
        turn: u64,
        /// 1 for the first of its turn, then one more each.
        step: u64,
    },
    /// The model is about to be asked. [`Log::rebuild`](crate::Log::rebuild) makes the request again
    /// from the log. Logged once more where the same question is asked again.
    #[serde(rename = "step/request")]
    StepRequest {
        /// The open turn.
        turn: u64,
        /// The open step.
        step: u64,
        /// The system prompt, where it differs from that of the last request logged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
        /// The tools, where they differ from those of the last request logged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<ToolSchema>>,
        /// SHA-1 of the request's canonical bytes, in lower-case hexadecimal.
        sha1: String,
    },
    /// The step has ended. Contexts that are not logged by now are dropped (INS-21).
    #[serde(rename = "step/end")]
    StepEnd {
        /// The open turn.
        turn: u64,
        /// The open step.
        step: u64,
        /// How it ended.
        outcome: Ending,
    },
    /// Something that the model reads as said by the user.
    #[serde(rename = "user/message")]
    UserMessage {
        /// Who really said it.
        source: MessageSource,
        /// What the model reads.
        content: Vec<ContentBlock>,
    },
    /// What the model answered to the step's request.
    #[serde(rename = "assistant/message")]
    AssistantMessage(AssistantMessage),
    /// A call is about to be made: one of those that the model's message asks for, or one that such a
    /// call makes itself (RUN-15).
    #[serde(rename = "tool/call")]
    ToolCall {
        /// The call.
        call: ToolCall,
        /// The id of the call that makes this one; none if the model does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A call has ended.
    #[serde(rename = "tool/result")]
    ToolResult(LoggedResult),
    /// Part of what the model sees is replaced by a summary (RUN-16). The events stay in the log.
    #[serde(rename = "compaction")]
    Compaction {
        /// The first event that is hidden.
        from: u64,
        /// The last one.
        to: u64,
        /// What the model reads in their place.
        summary: Vec<ContentBlock>,
    },
}

impl EventBody {
    /// The name of the type, as the log has it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TurnStart { .. } => "turn/start",
            Self::TurnEnd { .. } => "turn/end",
            Self::StepStart { .. } => "step/start",
            Self::StepRequest { .. } => "step/request",
            Self::StepEnd { .. } => "step/end",
            Self::UserMessage { .. } => "user/message",
            Self::AssistantMessage(_) => "assistant/message",
            Self::ToolCall { .. } => "tool/call",
            Self::ToolResult(_) => "tool/result",
            Self::Compaction { .. } => "compaction",
        }
    }
}

/// How a turn or a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ending {
    /// As it should.
    Completed,
    /// It was not entered.
    Rejected {
        /// Why not.
        reason: String,
    },
    /// It was given up.
    Cancelled {
        /// By whom.
        reason: String,
    },
    /// Something went wrong.
    Failed {
        /// The stable code.
        code: String,
        /// For people; ends in what to do.
        message: String,
    },
}

/// What the model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssistantMessage {
    /// What it says; empty if it only calls.
    pub text: String,
    /// What it thought, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What it wants done, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What it cost, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// The result of a call, as it is logged. Contexts that ride on it are logged as messages of their
/// own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoggedResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Whether the call failed.
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
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// The id of the call that made the call; none if the model did. The model does not see the
    /// result of a call that it did not make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A member that is there, null too.
pub fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
