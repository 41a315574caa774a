//! The file of mutants: what one is made of.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::edit::Edit;

/// A file of `scenarios/mutants/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MutantFile {
    /// What they have in common.
    pub title: String,
    /// The mutants.
    #[schemars(length(min = 1))]
    pub mutants: Vec<Mutant>,
}

/// A bad harness: a good one, and what is done to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Its name: what it does, in words joined by hyphens.
    #[schemars(regex(pattern = r"^[a-z0-9]+(-[a-z0-9]+)*$"))]
    pub name: String,
    /// What a harness like it does, in one sentence.
    pub title: String,
    /// The clauses that are broken then.
    #[schemars(length(min = 1))]
    pub breaks: Vec<String>,
    /// What becomes of messages. The first rule that matches a message decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wire: Vec<WireRule>,
    /// What becomes of requests to the harness and of its answers. All rules that match count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<ResultRule>,
    /// What becomes of the server's process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub life: Vec<Life>,
    /// The cases that are run, as patterns of their paths, where it is not all those that name one
    /// of the clauses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
}

/// Which message, and what becomes of it. Exactly one of `client`, `server`, `client_answers`,
/// `server_answers` and `deviates` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WireRule {
    /// Which message.
    #[serde(flatten)]
    pub on: On,
    /// Only the nth that matches, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// From the nth on that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// At most so often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// What is done, in order.
    pub r#do: Vec<Act>,
}

/// A message. Methods are full or short names, `*` is any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct On {
    /// A request or notification of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// A request or notification of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The client's answer to a request of this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_answers: Option<String>,
    /// The server's answer to a request of this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_answers: Option<String>,
    /// A message of the server whose frame is not written as LSP writes it, or whose body is no
    /// message: `header`, `body`, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviates: Option<String>,
    /// Its body is at least so many bytes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// Part of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Value>,
    /// Pointer → a text there that contains this.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub has: IndexMap<String, String>,
}

/// What is done to a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// It does not arrive.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives after the next one of the same direction.
    Swap,
    /// It arrives after this one has passed.
    Hold(Box<On>),
    /// These are written before it.
    Before(Vec<Insert>),
    /// These are written after it.
    After(Vec<Insert>),
    /// Its sender gets this answer, and it does not arrive: an object with `result` or `error`.
    Answer(Value),
    /// Its frame is written in another way.
    Header(Header),
    /// Bytes that nobody can read are written in its place.
    Spoil,
    /// Pointer → a pointer of the first message of the same kind, of which the value is taken.
    FromFirst(IndexMap<String, String>),
    /// The server gets this signal, before the message.
    Kill(String),
    /// The server's stdin is closed, after the message.
    CloseStdin,
    /// This process ends, after the message, and leaves the server where it is.
    Leave,
    /// Its content is another.
    #[serde(untagged)]
    Edit(Edit),
}

/// A message that nobody sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// `client` or `server`; left out, to where the other message goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The message. A text `${/pointer}` in it is the value there in the other message, `${fresh}`
    /// an id that nobody uses; the answer to that is nobody's and does not arrive.
    pub message: Value,
}

/// How a frame is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The field's name; by default `Content-Length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What stands between name and value; by default `: `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// What ends a line; by default CR LF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newline: Option<String>,
    /// Lines before it, without their ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    /// Lines after it, without their ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<String>,
    /// Whether characters are counted in place of bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub characters: bool,
    /// What is added to the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_by: Option<i64>,
    /// Bytes after the body, which the length does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
}

/// Which requests to the harness, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRule {
    /// `mount`, `query`, `tool`, `turn`, `control` or `unmount`.
    pub on: String,
    /// Only the nth that matches, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// From the nth on that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Part of the params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Value>,
    /// Pointer → pattern of the text there in the params (`*` is any run of characters).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub like: IndexMap<String, String>,
    /// Pointer → exactly what stands there in the params.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub exactly: IndexMap<String, Value>,
    /// What the answer has to be for it to be changed.
    #[serde(default)]
    pub got: Got,
    /// Changes of the params, before the harness gets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<Edit>,
    /// The harness does not get it; the answer is an empty success.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swallow: bool,
    /// Changes of the answer: of the value, or of `{code, message, serverCode}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Edit>,
    /// The answer is this success instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeed: Option<Value>,
    /// The answer is this failure instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<Failure>,
    /// The answer is that of the first request of the kind, in place of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_the_first: bool,
}

/// What an answer is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Got {
    /// Anything.
    #[default]
    Anything,
    /// A success that has this in it.
    Success(Value),
    /// A failure with this code; `*` is any.
    Failure(String),
    /// A failure whose message contains this.
    FailureSays(String),
}

/// A failure of the harness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Its code.
    pub code: String,
    /// Its message; left out, the one that was there, or a plain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What becomes of the server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It is started where neither parents, groups nor its environment lead to it.
    Adrift,
    /// It does not see the end of its stdin.
    StdinStaysOpen,
    /// It does not get SIGTERM.
    DeafToSigterm,
    /// It is started in the root directory.
    InRoot,
    /// It is started by a shell that reads the command.
    Shell,
    /// A second one is started beside it, and gets the same.
    Second,
    /// One that dies is started again, and gets what the first got since the last handshake.
    Replayed,
    /// It is started as soon as its command is known.
    AtLoad,
    /// Nobody reads its stderr.
    StderrUnread,
    /// Everything for it is taken at once, whether it reads or not.
    Buffered,
    /// All requests to it have the same id.
    SameId,
    /// Of several messages that are read at once, the first arrives.
    FirstOfARead,
    /// A message that is not read at once is not read.
    WholeOrNothing,
    /// Bytes that are no frame are passed over, and what was asked is answered with null.
    FramesForgiven,
    /// The harness is not told that a caller gave up.
    CancelSwallowed,
}

/// What the process that tampers is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// As of [`Mutant::wire`].
    #[serde(default)]
    pub wire: Vec<WireRule>,
    /// As of [`Mutant::life`].
    #[serde(default)]
    pub life: Vec<Life>,
    /// A file to which a line is added whenever something was tampered with.
    pub report: PathBuf,
}
