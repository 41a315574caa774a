//! The scenario file: what a case is made of.
//!
//! A file is YAML. It says what is in the workspace, how the server behaves, what is done with the
//! harness under test, and what has to come of it: on the wire, in the results, and in the life of
//! the processes. Everything that the format leaves out (one server `fake` for files that end in
//! `.ts`, one workspace with a file `a.ts`) has a default that is documented here.
//!
//! Templates in texts, filled in when the case runs: `${workspace}`, `${workspaceUri}`,
//! `${uri:a b.ts}` (the URI of a file of the workspace), `${root}` (the folder the workspace lies
//! in, for what lies beside it), `${seed}` (of the run, for what is drawn at random). In `server`
//! the templates of the fake server's script hold besides, which it fills in itself; `$${` writes
//! `${`.
//!
//! `$(axis)` and `$(axis.member)` stand for values of the matrix, and are filled in before anything
//! else. A text that is one of them and nothing else becomes the value, whatever its type, keys
//! too; inside a longer text stands the value's text. A member of a list that is
//! `$(axis.member...)` becomes the members of that list. `$$(` writes `$(`.

pub(crate) mod check;
pub(crate) mod diagnostic;
mod expand;
mod expect;
pub(crate) mod load;
mod node;
mod request;
mod shape;
mod step;
mod turn;

use std::collections::BTreeMap;

use dsh_fake_lsp::Script;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Profile;

pub use diagnostic::{Diagnostic, Severity};
pub use expect::{
    AnyWire, Bounds, Count, Declaration, End, ErrorCheck, MessageCheck, Outcome, Pattern, Who, Wire,
};
pub use load::{Case, Loaded, load};
pub use request::{MessageSaid, RequestCheck, Requests, Role, Said, TextCheck, TurnEnd};
pub use step::{
    AsStep, CancelReason, CancelStep, ControlStep, PerformStep, QueryStep, RegisterStep,
    RenameStep, Step, ToolStep,
};
pub use turn::{Mounted, Reply, ReplyCall, ReplyError, ToolsSpec, TurnStep};

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
    /// The calling session of tool calls, and of turns that name none; turns call it `main`.
    #[serde(default)]
    pub session: SessionSpec,
    /// Further sessions, by the names that turns give.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub sessions: IndexMap<String, SessionSpec>,
    /// Configuration of the one server, merged over the default: `killGraceMs` and so on. Its
    /// `command` and `args` start the fake server unless given. In the profiles `runtime` and
    /// `instructions` there is no server, and no `lsp` tool, unless one of `host`, `server`,
    /// `servers`, `configuration` and `tool` is given.
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
    /// What the harness has besides: the tools for files, and Code Mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsSpec>,
    /// Configuration of the workspace instructions; left out, they are not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Map<String, Value>>,
    /// Variables of the environment the harness runs in, besides `PATH`, and `HOME`, which is
    /// `${root}/home` in the profiles `runtime` and `instructions` unless given.
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

/// A member that is there, null included.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
