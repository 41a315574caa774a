//! The message, from the pieces that the server sends. Pure.

use std::collections::BTreeMap;

use dsh_agent::{Delta, ModelError, arguments_from_text, model_code as loop_code};
use dsh_session::{AssistantMessage, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::config::Endpoint;
use crate::failure::{code, in_band};

/// The most calls of one message; more than any model makes.
const MAX_CALLS: usize = 512;

/// One piece, leniently: servers add fields, leave out others, and send null for what is not there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    id: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<TokenCounts>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    index: Option<u64>,
    delta: Option<Piece>,
    /// In an answer that is not streamed.
    message: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Piece {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    /// What other servers call it.
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct TokenCounts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// A message in the making.
pub(crate) struct Assembler<'a> {
    endpoint: &'a Endpoint,
    response: Option<String>,
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    /// Which call the server means by an index.
    by_index: BTreeMap<u64, usize>,
    finish: Option<String>,
    done: bool,
    usage: Option<Usage>,
    bytes: usize,
}

impl<'a> Assembler<'a> {
    pub(crate) const fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            endpoint,
            response: None,
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            by_index: BTreeMap::new(),
            finish: None,
            done: false,
            usage: None,
            bytes: 0,
        }
    }

    /// Takes the data of one event. Whether more may follow.
    pub(crate) fn event(
        &mut self,
        data: &str,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<bool, ModelError> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(false);
        }
        if data.is_empty() {
            return Ok(true);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            let begin: String = data.chars().take(80).collect();
            self.bad(&format!(
                "a piece of its stream is no completion chunk ({}): {}",
                place(&error),
                self.endpoint.clean(&begin)
            ))
        })?;
        self.chunk(chunk, tell)?;
        Ok(true)
    }

    /// Takes an answer that came as one object: from a server that does not stream, or one that
    /// has an error to tell.
    pub(crate) fn object(
        &mut self,
        body: &[u8],
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let whole: Chunk = serde_json::from_slice(body).map_err(|error| {
            let begin = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            self.bad(&format!(
                "it sent JSON that is no completion ({}): {}",
                place(&error),
                self.endpoint.clean(&begin)
            ))
        })?;
        let answers = whole
            .choices
            .as_ref()
            .is_some_and(|choices| choices.iter().any(|choice| choice.message.is_some()));
        if whole.error.is_none() && !answers {
            let begin = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            return Err(self.bad(&format!(
                "it sent JSON that holds no answer: {}",
                self.endpoint.clean(&begin)
            )));
        }
        self.chunk(whole, tell)?;
        self.done = true;
        Ok(())
    }

    fn chunk(
        &mut self,
        chunk: Chunk,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        if let Some(error) = chunk.error {
            return Err(in_band(&error, self.endpoint));
        }
        if self.response.is_none() {
            self.response = chunk.id.filter(|id| !id.is_empty());
        }
        if let Some(TokenCounts {
            prompt_tokens: Some(input_tokens),
            completion_tokens: Some(output_tokens),
        }) = chunk.usage
        {
            self.usage = Some(Usage {
                input_tokens,
                output_tokens,
            });
        }
        // Only one answer was asked for: another one is not part of it.
        let first = |choice: &Choice| choice.index.unwrap_or(0) == 0;
        for choice in chunk.choices.into_iter().flatten().filter(first) {
            if let Some(piece) = choice.delta.or(choice.message) {
                self.piece(piece, tell)?;
            }
            if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
                self.finish = Some(finish);
            }
        }
        Ok(())
    }

    fn piece(
        &mut self,
        piece: Piece,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(thought) = some(piece.reasoning_content).or(some(piece.reasoning)) {
            self.grow(thought.len())?;
            self.reasoning.push_str(&thought);
            tell(Delta::Reasoning(thought));
        }
        for text in [some(piece.content), some(piece.refusal)]
            .into_iter()
            .flatten()
        {
            self.grow(text.len())?;
            self.text.push_str(&text);
            tell(Delta::Text(text));
        }
        for call in piece.tool_calls.into_iter().flatten() {
            self.call(call, tell)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        piece: CallPiece,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        let id = piece.id.filter(|id| !id.is_empty());
        let function = piece.function.unwrap_or_default();
        let name = function.name.filter(|name| !name.is_empty());
        let arguments = match function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            // Some servers send the object itself.
            Some(other) => other.to_string(),
        };
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.grow(length(&id) + length(&name) + arguments.len())?;
        let at = self.position(piece.index, id.as_deref(), name.as_deref())?;
        let call = &mut self.calls[at];
        // Servers repeat id and name with each fragment, or send them once.
        if call.id.is_empty()
            && let Some(id) = &id
        {
            call.id.clone_from(id);
        }
        if call.name.is_empty()
            && let Some(name) = &name
        {
            call.name.clone_from(name);
        }
        call.arguments.push_str(&arguments);
        tell(Delta::ToolCall {
            index: at,
            id,
            name,
            arguments,
        });
        Ok(())
    }

    /// Which call a fragment belongs to: the one of its index, unless a new name comes with an id
    /// that is not that one's (servers that number all calls 0); without an index the last one.
    fn position(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
    ) -> Result<usize, ModelError> {
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let same = |at: &usize| {
            let call = &self.calls[*at];
            name.is_none() || call.id.is_empty() || id.is_none_or(|id| id == call.id)
        };
        let renamed = |at: &usize| {
            // Without ids and without an index, a name begins a call.
            index.is_none() && id.is_none() && name.is_some() && !self.calls[*at].name.is_empty()
        };
        if let Some(at) = known.filter(|at| same(at) && !renamed(at)) {
            return Ok(at);
        }
        if self.calls.len() == MAX_CALLS {
            return Err(self.bad(&format!("it made more than {MAX_CALLS} calls at once")));
        }
        let at = self.calls.len();
        self.calls.push(Call::default());
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        Ok(at)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.endpoint.config.max_response_bytes;
        if self.bytes > most {
            return Err(ModelError::fatal(
                loop_code::MODEL_RESPONSE_TOO_LARGE,
                format!(
                    "the answer of {} is larger than {most} bytes; ask for less, or raise \
                     maxResponseBytes",
                    self.endpoint.host()
                ),
            ));
        }
        Ok(())
    }

    /// The message, now that the stream has ended. `serial` makes ids for calls that have none.
    pub(crate) fn finish(self, serial: u64) -> Result<AssistantMessage, ModelError> {
        let host = self.endpoint.host();
        match self.finish.as_deref() {
            None if !self.done => {
                return Err(ModelError::transient(
                    loop_code::MODEL_STREAM_CUT,
                    format!("{host} broke off in the middle of its answer"),
                    None,
                ));
            }
            Some("length") => {
                return Err(ModelError::fatal(
                    code::MODEL_OUTPUT_LIMIT,
                    format!(
                        "the answer of {host} reached the most tokens it may have and is not \
                         whole; raise maxTokens, or ask for less"
                    ),
                ));
            }
            Some("content_filter") => {
                return Err(ModelError::fatal(
                    code::MODEL_FILTERED,
                    format!("{host} held its answer back: its content filter objects"),
                ));
            }
            Some("insufficient_system_resource") => {
                return Err(ModelError::transient(
                    code::MODEL_SERVER,
                    format!("{host} gave up the answer: it is overloaded"),
                    None,
                ));
            }
            _ => {}
        }
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(self.bad("it made a call without a name"));
        }
        let stem = self.response.unwrap_or_else(|| serial.to_string());
        let calls = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| ToolCall {
                id: if call.id.is_empty() {
                    format!("call-{stem}-{at}")
                } else {
                    call.id
                },
                name: call.name,
                arguments: arguments_from_text(&call.arguments),
            });
        Ok(AssistantMessage {
            text: self.text,
            reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
            tool_calls: calls.collect(),
            usage: self.usage,
        })
    }

    /// An answer against the protocol. Servers behind a load balancer do that once in a while.
    fn bad(&self, what: &str) -> ModelError {
        ModelError::transient(
            code::MODEL_BAD_RESPONSE,
            format!(
                "{} does not answer as it should: {what}",
                self.endpoint.host()
            ),
            None,
        )
    }
}

/// Where JSON is wrong, without quoting it.
fn place(error: &serde_json::Error) -> String {
    format!("at column {} of line {}", error.column(), error.line())
}

#[cfg(test)]
mod tests;
