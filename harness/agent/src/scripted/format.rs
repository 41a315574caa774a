//! The form of a script.

use dsh_session::{AssistantMessage, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ScriptError;
use crate::model::arguments_from_text;

/// A script, as a file has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptFile {
    /// One for each request, in order.
    pub(super) replies: Vec<ScriptedReply>,
}

/// One reply, and what the request has to be.
///
/// What is said is streamed in small pieces before the reply ends. A reply ends with its message, or
/// with one of `error`, `cut` and `hang`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedReply {
    /// What the request has to be. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<RequestExpectation>,
    /// What is thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What is said. A reply with no text and no calls is what it says: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptedCall>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ScriptedUsage>,
    /// Fails after what was streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptedError>,
    /// The stream ends after what was streamed, without an end of the message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Nothing comes after what was streamed, until the cancellation is given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hang: bool,
}

impl ScriptedReply {
    /// A reply that says this.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A reply that makes these calls, the ids `call_R_C` after the numbers of the reply and the call.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let call = |(name, arguments): (&str, Value)| ScriptedCall {
            id: None,
            name: name.to_owned(),
            arguments: Some(arguments),
            arguments_raw: None,
        };
        Self {
            tool_calls: calls.into_iter().map(call).collect(),
            ..Self::default()
        }
    }

    /// The same reply, to a request that fits.
    pub fn expecting(self, expect: RequestExpectation) -> Self {
        Self {
            expect: Some(expect),
            ..self
        }
    }

    /// Whether it makes sense; otherwise, what does not.
    pub(super) fn check(&self, number: usize) -> Result<(), ScriptError> {
        let ends = [self.error.is_some(), self.cut, self.hang];
        if ends.into_iter().filter(|is_set| *is_set).count() > 1 {
            return Err(ScriptError::Reply {
                number,
                problem: "it has more than one of `error`, `cut` and `hang`; a reply ends once"
                    .to_owned(),
            });
        }
        for call in &self.tool_calls {
            if call.arguments.is_some() && call.arguments_raw.is_some() {
                return Err(ScriptError::Reply {
                    number,
                    problem: format!(
                        "the call of {:?} has both `arguments` and `arguments_raw`; leave one out",
                        call.name
                    ),
                });
            }
        }
        Ok(())
    }

    /// The whole message.
    pub(super) fn message(&self, number: usize) -> AssistantMessage {
        let call = |(index, call): (usize, &ScriptedCall)| ToolCall {
            id: call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{number}_{}", index + 1)),
            name: call.name.clone(),
            arguments: match (&call.arguments, &call.arguments_raw) {
                (Some(arguments), _) => arguments.clone(),
                (None, raw) => arguments_from_text(raw.as_deref().unwrap_or_default()),
            },
        };
        AssistantMessage {
            text: self.text.clone().unwrap_or_default(),
            reasoning: self.reasoning.clone(),
            tool_calls: self.tool_calls.iter().enumerate().map(call).collect(),
            usage: self.usage.map(Usage::from),
        }
    }
}

/// What a reply costs, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Those of the request.
    pub input_tokens: u64,
    /// Those of the answer.
    pub output_tokens: u64,
}

impl From<ScriptedUsage> for Usage {
    fn from(usage: ScriptedUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

/// One call of a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its id. Default: `call_R_C` after the numbers of the reply and the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments, any value. Default: none, `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments as text, JSON or not, as a model would stream them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_raw: Option<String>,
}

/// A failure of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// The stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the same request may be sent again. The next request takes the next reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// How long the model asks to be left alone before that, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// What a request has to be. What is not mentioned may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestExpectation {
    /// The number of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
    /// The messages after the model's last one, or all before its first: exactly these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Vec<MessageExpectation>>,
    /// Each of these texts stands somewhere in the messages after the model's last one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// None of these texts stands anywhere in the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Each of these texts stands in the system prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system_contains: Vec<String>,
    /// The names of the tools, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// What one message has to be. What is not mentioned may be anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", deny_unknown_fields)]
pub enum MessageExpectation {
    /// Said by the user, or in the user's place.
    User {
        /// The whole text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// A part of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contains: Option<String>,
    },
    /// What a call came to.
    Tool {
        /// The id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        /// The whole text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// A part of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contains: Option<String>,
    },
}
