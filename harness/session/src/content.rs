//! What messages are made of, and the calls and tools that they speak of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One piece of what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of the block.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text { text } => text,
        }
    }
}

/// A call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The model's id for it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Any JSON, nested no deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    pub arguments: Value,
}

/// What the model sees of a tool: this and nothing else (RUN-5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSchema {
    /// The name the model calls it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// Where a user message comes from: typed by whoever adds it, and never shown to the model (INS-7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSource {
    /// Which sort of source it is; tells how to read the data.
    pub kind: String,
    /// What the source wants to find again. It has no key `kind`.
    #[serde(flatten)]
    pub data: Map<String, Value>,
}

impl MessageSource {
    /// The kind of what a person, or the program in the person's place, has asked.
    pub const PROMPT: &str = "prompt";

    /// A prompt.
    pub fn prompt() -> Self {
        Self::new(Self::PROMPT, Map::new())
    }

    /// A source of another kind. A key `kind` in the data is dropped: the kind has that place.
    pub fn new(kind: impl Into<String>, mut data: Map<String, Value>) -> Self {
        data.shift_remove("kind");
        Self {
            kind: kind.into(),
            data,
        }
    }
}

/// A message that is added behind the results of a step, or waits for the next step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextMessage {
    /// Where it comes from.
    pub source: MessageSource,
    /// What the model reads.
    pub content: Vec<ContentBlock>,
}
