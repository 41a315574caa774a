//! The model: what is asked for the next message, whoever answers.

use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::Cancel;
use dsh_session::{AssistantMessage, ModelRequest};
use serde_json::Value;

/// The stable codes of a model's failures that the loop itself finds. Models add codes of their own.
pub mod code {
    /// The stream ended before the message was whole.
    pub const MODEL_STREAM_CUT: &str = "MODEL_STREAM_CUT";
    /// The message held neither text nor calls.
    pub const MODEL_EMPTY: &str = "MODEL_EMPTY";
    /// The message was larger than [`LoopOptions::max_response_bytes`](crate::LoopOptions).
    pub const MODEL_RESPONSE_TOO_LARGE: &str = "MODEL_RESPONSE_TOO_LARGE";
    /// The model panicked.
    pub const MODEL_PANICKED: &str = "MODEL_PANICKED";
    /// The model gave up because its cancellation was given.
    pub const MODEL_CANCELLED: &str = "MODEL_CANCELLED";
}

/// Something that answers a request with the next assistant message.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// The model's name for people, `deepseek-chat` for instance.
    fn name(&self) -> &str;

    /// Answers the request. What has arrived is told to `deltas` piece by piece; the message returned
    /// is the whole, and what counts.
    ///
    /// Observe `cancel`: when it is given, end with any error. A model that is deaf to it is dropped
    /// after [`LoopOptions::settle`](crate::LoopOptions). Arguments of a call that are no JSON are
    /// passed on as a string, see [`arguments_from_text`].
    async fn respond(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn FnMut(Delta) + Send),
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelError>;
}

/// A piece of a message that is still being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The next characters of the text.
    Text(String),
    /// The next characters of the reasoning.
    Reasoning(String),
    /// A piece of a call.
    ToolCall {
        /// Which call of the message, from 0.
        index: usize,
        /// The call's id, once known.
        id: Option<String>,
        /// The tool's name, once known.
        name: Option<String>,
        /// The next characters of the arguments' text.
        arguments: String,
    },
}

impl Delta {
    /// How many bytes of the message it brings.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::ToolCall {
                id,
                name,
                arguments,
                ..
            } => {
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                length(id) + length(name) + arguments.len()
            }
        }
    }
}

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Stable, for routing.
    pub code: String,
    /// For people: what happened, and what to do where that is known. Never a key or a secret.
    pub message: String,
    /// Whether the same request may be sent again.
    pub retry: Retry,
}

impl ModelError {
    /// A failure that the same request would meet again.
    pub fn fatal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            retry: Retry::Never,
        }
    }

    /// A failure that may pass. `after` is how long the model asked to be left alone.
    pub fn transient(
        code: impl Into<String>,
        message: impl Into<String>,
        after: Option<Duration>,
    ) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            retry: Retry::After(after),
        }
    }
}

/// Whether a request that failed may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// It may succeed, not sooner than this; none: as the loop's schedule has it.
    After(Option<Duration>),
}

/// The arguments of a call from the text a model sent for them.
///
/// No text at all stands for no arguments, `{}`. Text that is no JSON becomes a JSON string of it, so
/// that it is logged and shown to the model as it was; the call then fails and says so.
pub fn arguments_from_text(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_are_no_json_are_kept_as_text() {
        assert_eq!(arguments_from_text(" \n"), json!({}));
        assert_eq!(arguments_from_text(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(arguments_from_text(r#"{"a":"#), json!(r#"{"a":"#));
        assert_eq!(arguments_from_text("\u{0}\u{fffd}"), json!("\u{0}\u{fffd}"));
        let deep = "[".repeat(100_000);
        assert_eq!(arguments_from_text(&deep), json!(deep));
    }
}
