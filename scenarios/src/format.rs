//! The scenario file: what a case is made of.
//!
//! A file is YAML. It says what is in the workspace, how the server behaves, what is done with the
//! harness under test, and what has to come of it: on the wire, in the results, and in the life of
//! the processes. Everything that the format leaves out (one server `fake` for files that end in
//! `.ts`, one workspace with a file `a.ts`) has a default that is documented here.
//!
//! Templates in texts, filled in when the case runs: `${workspace}`, `${workspaceUri}`,
//! `${uri:a b.ts}` (the URI of a file of the workspace), `${root}` (the folder the workspace lies
//! in, for what lies beside it). In `server` the templates of the fake server's script hold
//! besides, which it fills in itself. `$(axis)` and `$(axis.member)` stand for values of the
//! matrix, and are filled in before anything else, keys and numbers included.

mod check;
pub(crate) mod diagnostic;
mod expand;
pub(crate) mod load;
mod node;
mod shape;

use std::collections::BTreeMap;

use dsh_fake_lsp::{Action, Script};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Profile;

pub use diagnostic::{Diagnostic, Severity};
pub use load::{Case, Loaded, load};

/// One scenario file. With a `matrix` it stands for one case for each combination of its axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What has to hold, in one sentence, for people.
    pub title: String,
    /// Why, where the title does not say it: what goes wrong in the field, what LSP says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The clauses it judges. A failure of an expectation counts against all of them, unless the
    /// expectation names one of its own.
    #[schemars(length(min = 1))]
    pub clauses: Vec<String>,
    /// Which profile a subject has to claim to be judged by it.
    pub profile: Profile,
    /// Axis → name → value. Each combination is a case of its own, `path#name-name`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub matrix: IndexMap<String, IndexMap<String, Value>>,
    /// Combinations (axis → name) that are left out. Each has to match something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<IndexMap<String, String>>,
    /// Path below the workspace → what is there before the harness is mounted. A path may begin
    /// with `../` for what lies beside the workspace. By default `a.ts: "const x = 1\n"`.
    #[serde(default = "default_workspace")]
    pub workspace: IndexMap<String, FileSpec>,
    /// The calling session of tool calls.
    #[serde(default)]
    pub session: SessionSpec,
    /// Configuration of the one server, merged over the default: `killGraceMs` and so on. Its
    /// `command` and `args` start the fake server unless given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
    /// How the one server behaves. Left out: well.
    #[serde(default)]
    pub server: Script,
    /// Several servers in place of the one: provider id → what `host` and `server` say of one.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub servers: IndexMap<String, ServerSpec>,
    /// The whole of the host's configuration, as it is, in place of `host` and `servers`: for
    /// configurations that have to be refused. `${fake}` in a `command` is the fake server's
    /// program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// Configuration of the `lsp` tool.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool: Map<String, Value>,
    /// Configuration of the workspace instructions; left out, they are not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Map<String, Value>>,
    /// Variables of the environment the harness runs in, besides `PATH`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// What has to become of mounting. By default it has to succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<Outcome>,
    /// What is done, in order. At the end whatever was started is collected, and the harness is
    /// disposed if no step did it.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Process → the client's messages to it, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wire: BTreeMap<u32, Wire>,
    /// Single messages and what has to be in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageCheck>,
    /// Events that have to have happened, in this order; others may lie between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Pattern>,
    /// Events that must not have happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<Pattern>,
    /// Events without which the case proves nothing: if one is missing, the verdict is
    /// `untestable` and not `pass`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Pattern>,
    /// How many server processes there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Count>,
    /// Process → how it ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<u32, End>,
    /// Rules that the scenario breaks on purpose, so that no monitor reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declares: Vec<Declaration>,
    /// Where the contract demands less of a foreign subject than of the built-in one, the clauses
    /// whose failure is a note for it. Clauses of source policy need no mention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lenient: Vec<String>,
    /// How long the whole case may take, in milliseconds; by default 10000. It is never waited
    /// for: it turns a hang into the verdict `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 120_000))]
    pub budget_ms: Option<u64>,
}

/// What stands at a path of the workspace before the case: a text, or an object with one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileSpec {
    /// A file with this text. `⟦name⟧` in it marks a position and is not part of the text; `at`
    /// then takes `file@name`.
    Text(String),
    /// Something else.
    Special(SpecialFile),
}

/// What stands at a path of the workspace, where it is not just a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpecialFile {
    /// A file with these bytes, in base64.
    Base64(String),
    /// A file with a text so many times.
    Repeat {
        /// The text.
        text: String,
        /// How often.
        times: u64,
    },
    /// A symbolic link to this path (relative to where it stands, or absolute).
    Link(String),
    /// An empty directory.
    Directory {},
    /// A named pipe.
    Pipe {},
    /// A Unix socket.
    Socket {},
    /// A file with a text that nobody may read. Where the machine lets us read it all the same
    /// (as root), the case is `not-applicable`.
    Unreadable(String),
}

/// The calling session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// Its working directory; null for a session without one.
    #[serde(default = "default_cwd")]
    pub cwd: Option<String>,
}

/// One of several servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Configuration, merged over the default; `extensionToLanguage` has to be given, since the
    /// default's `.ts` can belong to one only.
    #[serde(default)]
    pub host: Map<String, Value>,
    /// How it behaves.
    #[serde(default)]
    pub server: Script,
}

/// One thing that is done. A step has exactly one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Asks the seam. Goes on at once; `expect` collects the result.
    Query(QueryStep),
    /// Calls the model-facing tool. Goes on at once; `expect` collects the result.
    Tool(ToolStep),
    /// Runs a turn of the loop with a scripted model. Goes on at once; `expect` collects it.
    Turn(TurnStep),
    /// Has the caller give up a query, tool call or turn.
    Cancel(CancelStep),
    /// Lets one `hold` of this name in the server's script go on.
    Release(String),
    /// Has a server process carry out actions now, whatever it is doing.
    Perform(PerformStep),
    /// Waits until an event has happened, past ones included.
    Wait(Pattern),
    /// Path → what stands there from now on, in place of what stood there.
    Write(IndexMap<String, FileSpec>),
    /// Removes a file, link or empty directory.
    Remove(String),
    /// Renames.
    Rename(RenameStep),
    /// Disposes the harness. Without `as`, waits for it and demands success.
    Dispose(AsStep),
    /// Mounts the harness again after `dispose`, with the same configuration. Without `as`, waits
    /// for it and demands success.
    Mount(AsStep),
    /// Registers a scripted provider on the seam, beside the configured servers. Waits for it.
    Register(RegisterStep),
    /// Anything else that the subject protocol's `control` offers. Waits for it.
    Control(ControlStep),
    /// Name of a query, tool call or other step with `as` → what has to come of it. Waits for all
    /// of them, except where `pending` is expected.
    Expect(IndexMap<String, Outcome>),
}

/// `query`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryStep {
    /// The name by which other steps mean it.
    pub r#as: String,
    /// `goToDefinition`, `findReferences`, `goToImplementation` or `hover`; anything else is sent
    /// as it is.
    pub operation: String,
    /// `file:line:column`, one-based, in UTF-16 code units; or `file@marker`. The file is handed
    /// to the harness as it stands here, after templates.
    pub at: String,
    /// The workspace that is named; by default `${workspace}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether the caller has given up before it asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Whether the position may lie outside the file; otherwise that is an error of the scenario.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}

/// `tool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolStep {
    /// The name by which other steps mean it.
    pub r#as: String,
    /// The tool; by default `lsp`.
    #[serde(default = "lsp", skip_serializing_if = "is_lsp")]
    pub name: String,
    /// The `operation` argument, with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The `file_path`, `line` and `character` arguments, as in a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// All arguments, in place of `operation` and `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The calling session, where it is not the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionSpec>,
    /// Whether the rendered text is a snapshot beside the scenario.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
}

/// `turn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnStep {
    /// The name by which other steps mean it.
    pub r#as: String,
    /// What the user says.
    pub prompt: String,
    /// What the model answers, request by request.
    pub replies: Vec<Value>,
}

/// `cancel`: the name of what is given up, or an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CancelStep {
    /// Given up by its caller.
    Name(String),
    /// Given up for a stated reason.
    Reason(CancelReason),
}

/// A cancellation with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelReason {
    /// What is given up.
    pub name: String,
    /// `caller`, or `timeout`.
    pub reason: String,
}

/// `perform`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerformStep {
    /// Which process, from 1.
    pub process: u32,
    /// What it does.
    pub r#do: Vec<Action>,
}

/// `rename`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameStep {
    /// What there is.
    pub from: String,
    /// What it is called from now on.
    pub to: String,
}

/// A step that may be given a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AsStep {
    /// The name by which `expect` and patterns mean it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#as: Option<String>,
}

/// `register`: a provider that answers by itself, without any server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterStep {
    /// The name by which `expect` means the outcome; without one, success is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#as: Option<String>,
    /// The provider's id.
    pub id: String,
    /// Extension → language id, as it is registered, in order; pairs, so that one extension may be
    /// given twice.
    pub extensions: Vec<(String, String)>,
    /// The seam's result it gives. Left out: a hover whose contents are the JSON of the request
    /// the provider got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Whether its queries wait until `control: {op: release_provider, id: …}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// `control`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlStep {
    /// The name by which `expect` means the outcome; without one, success is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#as: Option<String>,
    /// The operation's name.
    pub op: String,
    /// Its further parameters.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// What has to come of something: exactly one kind of outcome, with what is demanded of it.
///
/// Of a query: `locations`, `hover`, `error`. Of a tool call: `text` with what it has to contain,
/// and `error` with the code. Of anything: `ok`, `pending`, `any_of`.
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
    /// Of a tool call: the rendered text, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of a tool call, or of a hover: what its text contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Of a tool call, or of a hover: what its text does not contain, in any letter case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Of a tool call: the most UTF-16 code units its text may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// Any result: this is part of it (members of objects are compared where they are given).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorCheck {
    /// Its stable code. A foreign subject is held to the codes that come from the seeds; where the
    /// code is the project's own, any failure will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The server's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_code: Option<i64>,
    /// What its message contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
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

fn default_workspace() -> IndexMap<String, FileSpec> {
    [(
        "a.ts".to_owned(),
        FileSpec::Text("const x = 1\n".to_owned()),
    )]
    .into()
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the default of an optional member"
)]
fn default_cwd() -> Option<String> {
    Some("${workspace}".to_owned())
}

impl Default for SessionSpec {
    fn default() -> Self {
        Self { cwd: default_cwd() }
    }
}

fn lsp() -> String {
    "lsp".to_owned()
}

fn is_lsp(name: &str) -> bool {
    name == "lsp"
}

/// A member that is there, null included.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
