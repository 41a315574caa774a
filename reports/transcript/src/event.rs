//! The events of a transcript.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::envelope::{Envelope, Id};
use crate::raw::Raw;
use crate::strict::{Body, Deviation, Malformed, WireFrame};
use crate::surrogates;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// Position in the transcript, from 0 without gaps.
    pub seq: u64,
    /// Microseconds of the monotonic clock since the recorder started, stamped where it happened.
    /// An event that came from another process may carry an earlier time than the one before it.
    pub at_us: u64,
    /// The server process it concerns: the first, second, … of the run, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What happened.
    #[serde(rename = "event")]
    pub body: EventBody,
}

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// From the client, into the server's stdin.
    ToServer,
    /// From the server's stdout, to the client.
    ToClient,
}

impl Direction {
    /// The other way.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum EventBody {
    /// A server process was started.
    ProcessStarted {
        /// Process id.
        pid: u32,
        /// Its program and arguments.
        argv: Vec<String>,
        /// Its working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A server process ended: with a code, by a signal, or in a way the system did not tell.
    ProcessEnded {
        /// Exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Number of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// One frame passed.
    Frame(Frame),
    /// Bytes passed that are not part of a readable frame.
    Stray {
        /// Which way they went.
        direction: Direction,
        /// Where the first of them stood in that direction's stream.
        offset: u64,
        /// The bytes kept.
        bytes: Raw,
        /// How many more came that were not kept.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
        /// What made the stream unreadable at this place; none for the bytes after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Malformed>,
    },
    /// A stream ended, or was closed by whoever read it.
    Closed {
        /// Which one.
        direction: Direction,
        /// Bytes that had passed.
        total: u64,
    },
    /// Something was written to the server's stderr.
    Stderr {
        /// The bytes, perhaps only the last ones.
        text: Raw,
    },
    /// A process tree was ended by force or found ended.
    Termination(Termination),
    /// Something was asked of the harness.
    Call {
        /// Names the call within the transcript.
        call: String,
        /// What was asked: an operation, a tool's name.
        name: String,
        /// With what.
        #[serde(default)]
        arguments: Value,
    },
    /// A call ended.
    Result {
        /// The call.
        call: String,
        /// Whether it succeeded.
        ok: bool,
        /// The value, or the error as `{code?, message}`.
        #[serde(default)]
        value: Value,
    },
    /// A file of the workspace was changed by the run.
    FileChanged {
        /// Its path, relative to the workspace where it lies inside.
        path: String,
        /// What was done: `written`, `removed`, `renamed`, `linked`.
        change: String,
    },
    /// Anything else worth keeping, by kind. The fake server's own kinds are in its README.
    Note {
        /// A stable word, such as `rule`, `held`, `order`, `signal`.
        kind: String,
        /// For people.
        message: String,
        /// For judges.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl EventBody {
    /// A note without data.
    pub fn note(kind: &str, message: impl Into<String>) -> Self {
        Self::Note {
            kind: kind.to_owned(),
            message: message.into(),
            data: Value::Null,
        }
    }

    /// The frame, if it is one.
    pub fn frame(&self) -> Option<&Frame> {
        match self {
            Self::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

impl Event {
    /// The frame, if it is one.
    pub fn frame(&self) -> Option<&Frame> {
        self.body.frame()
    }

    /// Whether it is a frame of `direction` whose method is `method` (full or short name).
    pub fn is_message(&self, direction: Direction, method: &str) -> bool {
        self.frame().is_some_and(|frame| {
            frame.direction == direction
                && frame
                    .method()
                    .is_some_and(|m| m == method || crate::short_name(m) == method)
        })
    }
}

/// One process of a tree, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Short command name.
    pub name: String,
}

/// What ending a process tree took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Termination {
    /// Members that were sent SIGTERM.
    pub terminated: Vec<Member>,
    /// Members that were sent SIGKILL.
    pub killed: Vec<Member>,
    /// Processes of this server found outside its tree.
    pub escaped: Vec<Member>,
    /// Members alive when the wait for the tree ended, before any signal.
    pub alive: Vec<Member>,
}

/// One frame of the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Which way it went.
    pub direction: Direction,
    /// Where its first byte stood in that direction's stream.
    pub offset: u64,
    /// The header section as written, final blank line included.
    pub header: Raw,
    /// Bytes of the body, as declared and received.
    pub size: u64,
    /// The body as written; only its start if [`Frame::cut`] is set.
    pub body: Bytes,
    /// Set when `body` is not all: FNV-1a (64 bit) over the whole body.
    pub cut: Option<u64>,
    /// How the header departs from `Content-Length: N`.
    pub deviations: Vec<Deviation>,
    /// What kind of message the whole body was.
    pub envelope: Envelope,
}

impl Frame {
    /// Takes a copy of a frame of which at most `max_body` bytes of body are kept.
    ///
    /// The kind of message is read from the whole body; it is [`Envelope::Other`] where the reader
    /// did not hold the whole.
    pub fn capture(direction: Direction, frame: &WireFrame<'_>, max_body: usize) -> Self {
        let (size, body, cut, envelope) = match frame.body {
            Body::Whole(body) if body.len() <= max_body => (
                body.len() as u64,
                Bytes::copy_from_slice(body),
                None,
                Envelope::of(body),
            ),
            Body::Whole(body) => (
                body.len() as u64,
                Bytes::copy_from_slice(&body[..max_body]),
                Some(crate::strict::hash(body)),
                Envelope::of(body),
            ),
            Body::Cut { size, prefix, hash } => {
                let kept = &prefix[..prefix.len().min(max_body)];
                (
                    size,
                    Bytes::copy_from_slice(kept),
                    Some(hash),
                    Envelope::Other,
                )
            }
        };
        Self {
            direction,
            offset: frame.offset,
            header: Raw::copy(frame.header),
            size,
            body,
            cut,
            deviations: frame.deviations.to_vec(),
            envelope,
        }
    }

    /// A frame written exactly as LSP says, for tests and for those who build transcripts.
    pub fn conforming(direction: Direction, offset: u64, body: &[u8]) -> Self {
        let header = format!("Content-Length: {}\r\n\r\n", body.len());
        let body = Body::Whole(body);
        let frame = WireFrame {
            offset,
            header: header.as_bytes(),
            body,
            deviations: &[],
        };
        Self::capture(direction, &frame, usize::MAX)
    }

    /// The method, if it has one.
    pub fn method(&self) -> Option<&str> {
        self.envelope.method()
    }

    /// The id, if it is a request or response.
    pub fn id(&self) -> Option<&Id> {
        self.envelope.id()
    }

    /// `didOpen` for `textDocument/didOpen`; see [`Envelope::short_name`].
    pub fn short_name(&self) -> Option<&str> {
        self.envelope.short_name()
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        matches!(self.envelope, Envelope::Request { .. })
    }

    /// Whether it is a response.
    pub fn is_response(&self) -> bool {
        matches!(self.envelope, Envelope::Response { .. })
    }

    /// Whether it is a notification.
    pub fn is_notification(&self) -> bool {
        matches!(self.envelope, Envelope::Notification { .. })
    }

    /// The body as JSON, where it is JSON and was kept whole. A half of a surrogate pair, which no
    /// string here can hold, is U+FFFD.
    pub fn json(&self) -> Option<Value> {
        if self.cut.is_some() {
            return None;
        }
        serde_json::from_slice(&self.body)
            .or_else(|error| match surrogates::replaced(&self.body) {
                Some(body) => serde_json::from_slice(&body),
                None => Err(error),
            })
            .ok()
    }

    /// A value inside the body by JSON pointer, such as `/params/textDocument/uri`.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        let mut json = self.json()?;
        json.pointer_mut(pointer).map(Value::take)
    }
}

/// The JSON form of a [`Frame`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FrameForm {
    direction: Direction,
    offset: u64,
    header: Raw,
    size: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deviations: Vec<Deviation>,
    /// The body itself, where it is JSON text that fits in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
    /// The body's bytes otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<CutForm>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CutForm {
    /// FNV-1a (64 bit) over the whole body, in hexadecimal.
    fnv1a: String,
    /// What kind of message the whole body was.
    message: Envelope,
}

/// The body as JSON text that can stand verbatim inside a line of JSON Lines.
fn embeddable(body: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(body).ok()?;
    if memchr::memchr2(b'\n', b'\r', body).is_some() {
        return None;
    }
    let raw = serde_json::from_str::<&RawValue>(text).ok()?;
    // White space around the value would be lost, and null would be read back as absent.
    (raw.get().len() == text.len() && text != "null").then(|| raw.to_owned())
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = if self.cut.is_none() {
            embeddable(&self.body)
        } else {
            None
        };
        FrameForm {
            direction: self.direction,
            offset: self.offset,
            header: self.header.clone(),
            size: self.size,
            deviations: self.deviations.clone(),
            raw: json.is_none().then(|| Raw(self.body.clone())),
            json,
            cut: self.cut.map(|hash| CutForm {
                fnv1a: format!("{hash:016x}"),
                message: self.envelope.clone(),
            }),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = FrameForm::deserialize(deserializer)?;
        let body = match (form.json, form.raw) {
            (Some(json), None) => Bytes::from(String::from(Box::<str>::from(json)).into_bytes()),
            (None, Some(raw)) => raw.0,
            (None, None) => return Err(D::Error::custom("a frame needs `json` or `raw`")),
            (Some(_), Some(_)) => {
                return Err(D::Error::custom(
                    "a frame has either `json` or `raw`, not both",
                ));
            }
        };
        let (cut, envelope) = match form.cut {
            None if body.len() as u64 != form.size => {
                return Err(D::Error::custom(format!(
                    "the frame's size is {}, but its body has {} bytes and no `cut`",
                    form.size,
                    body.len()
                )));
            }
            None => (None, Envelope::of(&body)),
            Some(cut) => {
                let hash = u64::from_str_radix(&cut.fnv1a, 16)
                    .map_err(|error| D::Error::custom(format!("fnv1a: {error}")))?;
                (Some(hash), cut.message)
            }
        };
        Ok(Self {
            direction: form.direction,
            offset: form.offset,
            header: form.header,
            size: form.size,
            body,
            cut,
            deviations: form.deviations,
            envelope,
        })
    }
}

impl JsonSchema for Frame {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Frame".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        /// One frame of the wire; the body is `json` (verbatim) or `raw`.
        #[derive(JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Frame {
            direction: Direction,
            offset: u64,
            header: Raw,
            size: u64,
            #[serde(default)]
            deviations: Vec<Deviation>,
            #[serde(default)]
            json: Value,
            #[serde(default)]
            raw: Option<Raw>,
            #[serde(default)]
            cut: Option<CutForm>,
        }
        <Frame as JsonSchema>::json_schema(generator)
    }
}
