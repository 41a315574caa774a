//! What has to have reached the model.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Count;

/// Demands on the requests of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "demands on requests, such as `{count: 2, last: {contains: [text]}}`"
)]
pub struct Requests {
    /// How many there were. Left out, a turn that completed has to have used all its replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Number, from 1 → what has to be in that request.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nth: IndexMap<u32, RequestCheck>,
    /// What has to be in the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<RequestCheck>,
    /// What has to be in every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<RequestCheck>,
    /// `true`: each begins with all messages of the one before, byte for byte, the first one with
    /// those of the last request of the session's turn before. `false`: one of them does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extending: Option<bool>,
}

/// Demands on one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestCheck {
    /// All its messages, in order. `...` stands for any messages, or none; `user`, `assistant` and
    /// `tool` for one of that role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Said>>,
    /// What it has behind the messages of the request before; in the first request of a turn,
    /// behind those of the last one of the session's turn before. As `messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Vec<Said>>,
    /// Texts that are in some message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Texts that are in no message, in any letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Texts that are there exactly once, in all messages together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
    /// Text → how often it is there, in all messages together.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub times: IndexMap<String, u64>,
    /// Texts that come one behind the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Its system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<TextCheck>,
    /// The names of its tools, all of them, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// A message, or a place in a list of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Said {
    /// `...` for any messages, or a role.
    Any(String),
    /// A message, and what is in it.
    Message(Box<MessageSaid>),
}

/// A message as the model gets it, and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageSaid {
    /// `user`, `assistant` or `tool`.
    pub role: Role,
    /// Its text, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Texts that are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Texts that are not in it, in any letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Texts that are in it exactly once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
    /// Texts that come one behind the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// What it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// What it ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The most bytes it may have, in UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_bytes: Option<u64>,
    /// Of an assistant's message: the names of the tools it calls, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<String>>,
    /// Of a tool's result: whether it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<bool>,
    /// Of a user's message: part of its typed source, which the model does not see. Lists are
    /// compared whole, objects by the members that are given. A foreign subject that tells no
    /// sources is not held to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Value>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the harness in the user's role.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// As it stands in a request.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Demands on a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextCheck {
    /// The text, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Texts that are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Texts that are not in it, in any letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Texts that come one behind the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had the last word and nothing was owed.
    Completed,
    /// A step was not entered.
    Rejected,
    /// Its caller gave it up.
    Cancelled,
    /// It could not go on.
    Failed,
}
