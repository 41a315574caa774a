//! What is done with the harness under test.

use dsh_fake_lsp::Action;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{FileSpec, Outcome, Pattern, SessionSpec, TurnStep, given};

/// One thing that is done. A step has exactly one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a case has some dozens of steps, and each is read where it stands"
)]
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
    /// Path → where a symbolic link leads that stands there from now on, in place of what stood
    /// there: relative to where it stands, or absolute.
    Link(IndexMap<String, String>),
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
    /// All arguments, in place of `operation` and `at`; null too.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub arguments: Option<Value>,
    /// The calling session, where it is not the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionSpec>,
    /// Whether the rendered text is a snapshot beside the scenario.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
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

fn lsp() -> String {
    "lsp".to_owned()
}

fn is_lsp(name: &str) -> bool {
    name == "lsp"
}
