//! One incoming body, taken apart (FRM-6, FRM-8, SRQ-1, NAV-3). Pure.
//!
//! The text is read once. Ids stay the raw JSON they came as, so that an answer repeats them to the
//! digit; a result is read straight into what the pending request wants of it.

mod surrogates;

use std::borrow::Cow;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::json::{self, Shape, TextMember};
use crate::translate::{
    Answer, ErrorAnswer, ErrorShape, Handshake, HandshakeShape, HoverShape, LocationsShape,
    Malformed,
};

/// What a response's result is to be read as: what the one request in flight asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing is awaited, or nothing but the fact of an answer.
    Anything,
    /// Of `initialize`.
    Handshake,
    /// Of a navigation.
    Locations,
    /// Of a hover.
    Hover,
}

/// A message, by kind.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming<'a> {
    /// To be answered, with this id as it stands.
    Request {
        /// Raw JSON of a string or a number.
        id: &'a str,
        method: Cow<'a, str>,
        /// Raw JSON, if there is any.
        params: Option<&'a str>,
    },
    /// Read and dropped (SRQ-6).
    Notification,
    /// To a request of ours, if the number is that of one.
    Response { id: u64, reply: Reply },
    /// Well-formed JSON that is none of these (FRM-8).
    Other,
}

/// What a response carries.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// Neither a result nor an error.
    Missing,
    /// A result that is not looked into.
    Anything,
    /// The result of `initialize`.
    Handshake(Result<Handshake, Malformed>),
    /// The result of a query.
    Answer(Result<Answer, Malformed>),
    /// An error.
    Error(ErrorAnswer),
}

/// A body that is no JSON text (FRM-6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("a message is not UTF-8 (first invalid byte at offset {0})")]
    NotUtf8(usize),
    #[error("a message is not JSON ({reason}): got {shown:?}")]
    NotJson { reason: String, shown: String },
}

/// Reads one body. `scratch` keeps the text where it had to be mended.
pub(crate) fn read<'a>(
    body: &'a [u8],
    expected: Expected,
    scratch: &'a mut String,
) -> Result<Incoming<'a>, BodyError> {
    let text =
        std::str::from_utf8(body).map_err(|error| BodyError::NotUtf8(error.valid_up_to()))?;
    match json::read(text, MessageShape { expected }) {
        Ok(incoming) => Ok(incoming),
        Err(error) => {
            // JSON's grammar allows half a surrogate pair, Rust's strings do not: one odd character
            // in a log line shall not end a session.
            let mended = surrogates::mend(text).ok_or_else(|| not_json(&error, text))?;
            *scratch = mended;
            json::read(scratch.as_str(), MessageShape { expected })
                .map_err(|error| not_json(&error, text))
        }
    }
}

fn not_json(error: &serde_json::Error, text: &str) -> BodyError {
    const SHOWN_CHARS: usize = 120;
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    BodyError::NotJson {
        reason: error.to_string(),
        shown,
    }
}

/// Reads a message.
#[derive(Clone, Copy)]
struct MessageShape {
    expected: Expected,
}

/// The members that count.
#[derive(Default)]
struct Members<'de> {
    id: Option<&'de str>,
    method: TextMember<'de>,
    params: Option<&'de str>,
    result: Option<Reply>,
    error: Option<ErrorAnswer>,
}

impl<'de> Shape<'de> for MessageShape {
    type Out = Incoming<'de>;

    fn other(self) -> Incoming<'de> {
        Incoming::Other
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Incoming<'de>, A::Error> {
        let mut found = Members::default();
        while let Some(name) = json::name(&mut members)? {
            match &*name {
                "id" => found.id = Some(members.next_value::<&RawValue>()?.get()),
                "method" => found.method = json::text_member(&mut members)?,
                "params" => found.params = Some(members.next_value::<&RawValue>()?.get()),
                "result" => found.result = Some(self.result(&mut members)?),
                "error" => found.error = json::value(ErrorShape, &mut members)?,
                _ => json::skip(&mut members)?,
            }
        }
        Ok(found.into_incoming())
    }
}

impl MessageShape {
    fn result<'de, A: MapAccess<'de>>(self, members: &mut A) -> Result<Reply, A::Error> {
        Ok(match self.expected {
            Expected::Anything => {
                json::skip(members)?;
                Reply::Anything
            }
            Expected::Handshake => Reply::Handshake(json::value(HandshakeShape, members)?),
            Expected::Locations => {
                Reply::Answer(json::value(LocationsShape, members)?.map(Answer::Locations))
            }
            Expected::Hover => Reply::Answer(json::value(HoverShape, members)?.map(Answer::Hover)),
        })
    }
}

impl<'de> Members<'de> {
    fn into_incoming(self) -> Incoming<'de> {
        match (self.method, self.id) {
            (TextMember::Text(method), Some(id)) if is_id(id) => Incoming::Request {
                id,
                method,
                params: self.params,
            },
            // A null id makes a request that nobody could answer.
            (TextMember::Text(_), None | Some("null")) => Incoming::Notification,
            (TextMember::Text(_) | TextMember::NotText, _) => Incoming::Other,
            (TextMember::Absent, id) => {
                let reply = match (self.error, self.result) {
                    (Some(error), _) => Reply::Error(error),
                    (None, Some(reply)) => reply,
                    (None, None) => Reply::Missing,
                };
                match id.and_then(own_id) {
                    Some(id) => Incoming::Response { id, reply },
                    None => Incoming::Other,
                }
            }
        }
    }
}

/// Whether raw JSON is a string or a number.
fn is_id(raw: &str) -> bool {
    raw.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// The number that an id of ours may have come back as.
fn own_id(raw: &str) -> Option<u64> {
    if !is_id(raw) || raw.starts_with('"') {
        return None;
    }
    json::read(raw, json::Natural).ok().flatten()
}

#[cfg(test)]
mod tests;
