//! What has to come of a case: outcomes, events, messages, ends of processes.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Requests, TurnEnd, given};

/// What has to come of something: exactly one kind of outcome, with what is demanded of it.
///
/// Of a query: `locations`, `hover`, `error`. Of a tool call: `text` with what it has to contain,
/// and `error` with the code. Of a turn: `ended`, and `requests` with what reached the model. Of
/// anything: `ok`, `pending`, `any_of`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Success, whatever the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Not settled yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Navigation with exactly these locations, in this order. A location is a text,
    /// `file:line:column` (its start; one-based) or `file:line:column-line:column`, or an object
    /// `{uri, range}` as on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Value>>,
    /// With `locations`: how many there are, where it is too many to list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// With `locations`: the canonical URI of the workspace that comes with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_workspace_uri: Option<String>,
    /// A hover: null, its text, or `{contents, range}`, range being `line:column-line:column` or
    /// null.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub hover: Option<Value>,
    /// Failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCheck>,
    /// Of a turn: how it ended. Left out, it has to have completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TurnEnd>,
    /// Of a turn: the requests that reached the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Of `control: {op: log}`: the types of the session's events, in order. `...` stands for any
    /// events, or none; `a|b` for either; `a?` for one or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Of a tool call: the rendered text, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of a tool call, a hover, or the system prompt: what its text contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Of a tool call, a hover, or the system prompt: what its text does not contain, in any letter
    /// case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Of a tool call: the most UTF-16 code units its text may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// Any result: this is part of it (members of objects are compared where they are given).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Any result: JSON pointer → the names of all members of the object there, in any order.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub keys: IndexMap<String, Vec<String>>,
    /// The same outcome as this one had, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// One of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Outcome>,
    /// The clauses this expectation is about, where not all of the scenario's are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
}

/// What a failure has to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "what it has to say, such as `{code: LSP_CANCELLED}`"
)]
pub struct ErrorCheck {
    /// Its stable code. A foreign subject is held to the codes that come from the seeds; where the
    /// code is the project's own, any failure will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The server's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_code: Option<i64>,
    /// What its message contains: facts, such as a limit, a name, or the server's own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// What its message contains in the words of the built-in harness. A foreign subject has words
    /// of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub says: Vec<String>,
    /// What its message does not contain, in any letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}

/// An event, or those like it. Exactly one of the keys from `received` to `stderr` says what kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Of this server process only, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The nth that matches everything else; by default the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// The server received a request or notification of this method (`textDocument/didOpen`, or
    /// `didOpen`). `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
    /// The client answered a request of the server of this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The server sent a request or notification of this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// The server answered a request of the client of this method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replied: Option<String>,
    /// The server's script holds under this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// A server process was started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// A server process is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// `stdin` of the server ended, or its `stdout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// The server got this signal (as far as it can tell: not SIGKILL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The server's script made a note with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The step of this name was handed to the harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// The step of this name had its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
    /// The server's stderr contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// With `received` or `sent`: part of its params. With `note`: part of its data.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub params: Option<Value>,
    /// With `answered` or `replied`: part of the result.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Value>,
    /// With `answered` or `replied`: part of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// With a message: its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
}

/// The client's messages to one process, by their short names (`didOpen`, `definition`), answers to
/// the server's requests left out: a list, or an object with one member.
///
/// In a list `...` stands for any messages, or none; `a|b` for either; `a?` for one or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Wire {
    /// Exactly these.
    Exactly(Vec<String>),
    /// One of several sequences.
    AnyOf(AnyWire),
}

/// Several sequences that are all right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnyWire {
    /// The sequences.
    pub any_of: Vec<Vec<String>>,
}

/// A demand on messages: those that the pattern selects, how many there are, and what is in each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageCheck {
    /// Which messages: `received`, `answered`, `sent` or `replied`, with what narrows them down.
    /// With `nth` it is that one only, otherwise all of them.
    pub of: Pattern,
    /// How many there have to be; by default at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// JSON pointer → the value there, compared whole: `/params/position/character: 4`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub at: IndexMap<String, Value>,
    /// JSON pointers where nothing may stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// The header section as written, `\r\n` included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The clauses it is about, where not all of the scenario's are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
}

/// How many: a number, or bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Count {
    /// So many.
    Exactly(u64),
    /// Between these, both included.
    Between(Bounds),
}

/// Bounds of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The fewest; by default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The most; by default no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// How a server process ended, as far as it could tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this code; the client sent no signal.
    Exit(i32),
    /// By SIGTERM, or by a script that obeyed it.
    Terminated,
    /// By SIGKILL, or by whatever else leaves it no time to say anything.
    Killed,
    /// In any of these ways.
    AnyOf(Vec<End>),
}

/// A rule that the scenario breaks on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The rule: a clause, or `shape` for a message that does not have the shape LSP gives it,
    /// `framing` for bytes that are no frame.
    pub clause: String,
    /// Who breaks it; by default the server.
    #[serde(default)]
    pub by: Who,
    /// Only in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

/// A side of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The harness.
    Client,
    /// The fake server.
    #[default]
    Server,
}
