//! Turns of the loop, and what the scripted model says in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `turn`: the user says something, and a scripted model answers request by request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnStep {
    /// The name by which other steps mean it.
    pub r#as: String,
    /// What the user says.
    pub prompt: String,
    /// What the model answers, one reply for each request. A turn that completed has to have used
    /// all of them, unless `expect` says how many requests there were.
    #[schemars(length(min = 1))]
    pub replies: Vec<Reply>,
    /// The session it belongs to, one of `sessions`; left out, the scenario's own, `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether the messages that reached the model are a snapshot beside the scenario.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
}

/// What the model answers to one request. One that has nothing but `error` answers nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "what the model answers, such as `{text: done}` or `{tool_calls: [{name: read, \
                 arguments: {file_path: a.txt}}]}`"
)]
pub struct Reply {
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tools it calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ReplyCall>,
    /// The model fails in place of an answer, or behind what it said so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ReplyError>,
    /// The stream ends before the answer does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Nothing comes behind what it said, until it is given up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hang: bool,
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyCall {
    /// Its id; left out, one that no other call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(
        default,
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub arguments: Option<Value>,
    /// Its arguments as the text that the model writes, right or wrong, in place of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_raw: Option<String>,
}

/// A failure of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyError {
    /// Its code.
    pub code: String,
    /// What it says.
    pub message: String,
    /// Whether asking again may help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
}

/// What the harness has besides what every profile has: the tools for files, and Code Mode.
///
/// In the profiles `runtime` and `instructions` the tools for files are mounted unless told
/// otherwise; in the others nothing of this is, unless asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsSpec {
    /// Configuration of `read`, `write` and `edit`; `false` for none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Mounted>,
    /// Whether a file has to be read before it is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_before_write: bool,
    /// Configuration of `run_code`; `true` for the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_mode: Option<Mounted>,
}

/// Whether something is mounted, or its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Mounted {
    /// Mounted with its defaults, or not at all.
    Plain(bool),
    /// Mounted with this configuration.
    With(Map<String, Value>),
}

impl Mounted {
    /// Its configuration; null where it is not mounted.
    pub(crate) fn config(&self) -> Value {
        match self {
            Self::Plain(false) => Value::Null,
            Self::Plain(true) => Value::Object(Map::new()),
            Self::With(config) => Value::Object(config.clone()),
        }
    }
}
