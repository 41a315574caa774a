//! A model that says what a script tells it to, and is strict about what it is asked.
//!
//! A script is YAML (or JSON, which is YAML):
//!
//! ```yaml
//! replies:
//!   - expect: { messages: 1, tools: [read], contains: ["What is in"] }
//!     text: Let me look.
//!     tool_calls:
//!       - { name: read, arguments: { file_path: notes.txt } }
//!   - expect:
//!       new: [{ role: tool, is_error: false, contains: "1: hello" }]
//!     text: It says hello.
//! ```
//!
//! Request N takes reply N. A request that is not what the reply expects, or for which there is no
//! reply, gets an error that names the reply, the expectation and the request, and no further reply
//! is given. [`ScriptedModel::finish`] tells whether all went as the script has it.

mod expect;
mod format;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::Cancel;
use dsh_session::{AssistantMessage, Message, ModelRequest, ToolSchema};

pub use format::{
    MessageExpectation, RequestExpectation, ScriptedCall, ScriptedError, ScriptedReply,
    ScriptedUsage,
};

use crate::model::code as model_code;
use crate::{Delta, Model, ModelError};

/// The stable codes of scripted models.
pub mod code {
    /// The request is not what the reply expects.
    pub const SCRIPT_MISMATCH: &str = "SCRIPT_MISMATCH";
    /// There are more requests than replies.
    pub const SCRIPT_EXHAUSTED: &str = "SCRIPT_EXHAUSTED";
}

/// The most bytes of a script.
const MAX_SCRIPT_BYTES: u64 = 64_000_000;
/// The deepest nesting of a script.
const MAX_DEPTH: usize = 200;
/// The most values of a script.
const MAX_VALUES: usize = 1_000_000;
/// The most bytes of a streamed piece.
const PIECE: usize = 64;

/// Why there is no script, or why it was not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says, or which limit it breaks.
        problem: String,
    },
    /// The text is no script.
    #[error("{}: {problem}", origin.as_ref().map_or_else(|| "the script".to_owned(), |path| path.display().to_string()))]
    Syntax {
        /// The file.
        origin: Option<PathBuf>,
        /// What is wrong, and where.
        problem: String,
    },
    /// A reply makes no sense.
    #[error("reply {number} of the script: {problem}")]
    Reply {
        /// Which one, from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
    /// A request was not what the script has.
    #[error("{0}")]
    Mismatch(String),
    /// There were fewer requests than replies.
    #[error(
        "the script has {replies} replies and {requests} were asked for; reply {} was never given",
        requests + 1
    )]
    Unfinished {
        /// How many there are.
        replies: usize,
        /// How many requests came.
        requests: usize,
    },
}

/// A request that came, as what it has beyond the one before: requests grow, and a copy of each would
/// take the square of the conversation.
struct Kept {
    system: String,
    tools: Vec<ToolSchema>,
    /// How many messages it shares with the one before.
    shared: usize,
    more: Vec<Message>,
}

impl State {
    fn keep(&mut self, request: &ModelRequest) {
        let pairs = self.messages.iter().zip(&request.messages);
        let shared = pairs.take_while(|(before, now)| before == now).count();
        let more = request.messages[shared..].to_vec();
        self.messages.truncate(shared);
        self.messages.extend_from_slice(&more);
        self.requests.push(Kept {
            system: request.system.clone(),
            tools: request.tools.clone(),
            shared,
            more,
        });
    }

    fn requests(&self) -> Vec<ModelRequest> {
        let mut messages = Vec::new();
        let whole = |kept: &Kept| {
            messages.truncate(kept.shared);
            messages.extend_from_slice(&kept.more);
            ModelRequest {
                system: kept.system.clone(),
                messages: messages.clone(),
                tools: kept.tools.clone(),
            }
        };
        self.requests.iter().map(whole).collect()
    }
}

/// A model that follows a script.
pub struct ScriptedModel {
    name: String,
    replies: Vec<ScriptedReply>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: Vec<Kept>,
    /// The messages of the last request.
    messages: Vec<Message>,
    /// The first request that did not fit ends the script.
    mismatch: Option<ModelError>,
}

impl ScriptedModel {
    /// A model that gives these replies.
    pub fn from_replies(replies: Vec<ScriptedReply>) -> Result<Self, ScriptError> {
        for (at, reply) in replies.iter().enumerate() {
            reply.check(at + 1)?;
        }
        Ok(Self {
            name: "scripted".to_owned(),
            replies,
            state: Mutex::default(),
        })
    }

    /// A model that follows the script in a text, YAML or JSON.
    pub fn from_text(text: &str) -> Result<Self, ScriptError> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            // A text that is written as a number or a boolean is told, not taken for one.
            no_schema: true,
            with_snippet: false,
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                max_nodes: MAX_VALUES,
            },
        };
        let file: format::ScriptFile =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                ScriptError::Syntax {
                    origin: None,
                    problem: error.to_string(),
                }
            })?;
        Self::from_replies(file.replies)
    }

    /// A model that follows the script in a file.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |problem: String| ScriptError::Unreadable {
            path: path.to_owned(),
            problem,
        };
        let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable("it is not a regular file".to_owned()));
        }
        if metadata.len() > MAX_SCRIPT_BYTES {
            return Err(unreadable(format!(
                "it has {} bytes, and a script has at most {MAX_SCRIPT_BYTES}",
                metadata.len()
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::from_text(&text).map_err(|error| match error {
            ScriptError::Syntax { problem, .. } => ScriptError::Syntax {
                origin: Some(path.to_owned()),
                problem,
            },
            error => error,
        })
    }

    /// The requests that came, also those that did not fit.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests()
    }

    /// How many requests came.
    pub fn request_count(&self) -> usize {
        self.state().requests.len()
    }

    /// Whether every request fitted and every reply was given.
    pub fn finish(&self) -> Result<(), ScriptError> {
        let state = self.state();
        if let Some(mismatch) = &state.mismatch {
            return Err(ScriptError::Mismatch(mismatch.message.clone()));
        }
        let (replies, requests) = (self.replies.len(), state.requests.len());
        if requests < replies {
            return Err(ScriptError::Unfinished { replies, requests });
        }
        Ok(())
    }

    /// Takes a request in; its number and reply, if it fits.
    fn accept(&self, request: &ModelRequest) -> Result<(usize, &ScriptedReply), ModelError> {
        let mut state = self.state();
        state.keep(request);
        if let Some(mismatch) = &state.mismatch {
            return Err(mismatch.clone());
        }
        let number = state.requests.len();
        let fitting = self.fitting(number, request);
        state.mismatch = fitting.as_ref().err().cloned();
        fitting.map(|reply| (number, reply))
    }

    fn fitting(&self, number: usize, request: &ModelRequest) -> Result<&ScriptedReply, ModelError> {
        let Some(reply) = self.replies.get(number - 1) else {
            let last = request.messages.last().map(expect::describe);
            let message = format!(
                "request {number} came, and the script has {}; the last message of the request is \
                 {}. Add a reply, or find out why the agent goes on",
                count(self.replies.len(), "reply", "replies"),
                last.as_deref().unwrap_or("missing")
            );
            return Err(ModelError::fatal(code::SCRIPT_EXHAUSTED, message));
        };
        let mismatch = reply
            .expect
            .as_ref()
            .and_then(|expect| expect.mismatch(request));
        match mismatch {
            None => Ok(reply),
            Some(mismatch) => {
                let message =
                    format!("request {number} does not fit: reply {number} expects {mismatch}");
                Err(ModelError::fatal(code::SCRIPT_MISMATCH, message))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What came is a list of whole requests after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn respond(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn FnMut(Delta) + Send),
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelError> {
        let (number, reply) = self.accept(request)?;
        let message = reply.message(number);
        stream(reply, &message, deltas);
        if reply.hang {
            let reason = cancel.cancelled().await;
            return Err(ModelError::fatal(
                model_code::MODEL_CANCELLED,
                format!("reply {number} was waited for: {reason}"),
            ));
        }
        if reply.cut {
            return Err(ModelError::transient(
                model_code::MODEL_STREAM_CUT,
                format!("the stream of reply {number} ended in the middle of the message"),
                None,
            ));
        }
        match &reply.error {
            None => Ok(message),
            Some(error) if error.retry => Err(ModelError::transient(
                &error.code,
                &error.message,
                error.after_ms.map(Duration::from_millis),
            )),
            Some(error) => Err(ModelError::fatal(&error.code, &error.message)),
        }
    }
}

/// Tells a message in small pieces.
fn stream(
    reply: &ScriptedReply,
    message: &AssistantMessage,
    deltas: &mut (dyn FnMut(Delta) + Send),
) {
    for piece in pieces(message.reasoning.as_deref().unwrap_or_default()) {
        deltas(Delta::Reasoning(piece.to_owned()));
    }
    for piece in pieces(&message.text) {
        deltas(Delta::Text(piece.to_owned()));
    }
    for (index, (call, scripted)) in message.tool_calls.iter().zip(&reply.tool_calls).enumerate() {
        let arguments = match &scripted.arguments_raw {
            Some(raw) => raw.clone(),
            None => call.arguments.to_string(),
        };
        let mut head = Some((call.id.clone(), call.name.clone()));
        for piece in pieces(&arguments).chain(arguments.is_empty().then_some("")) {
            let (id, name) = head.take().unzip();
            deltas(Delta::ToolCall {
                index,
                id,
                name,
                arguments: piece.to_owned(),
            });
        }
    }
}

/// The text in pieces of a few bytes, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = PIECE.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel")
            .field("replies", &self.replies.len())
            .field("requests", &self.request_count())
            .finish_non_exhaustive()
    }
}
