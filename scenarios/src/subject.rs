//! A harness under test: the subject protocol.
//!
//! A subject is a program that speaks JSON-RPC 2.0 on stdio, one message a line, UTF-8. The runner
//! asks; the subject answers each request once, in whatever order the answers come. The requests:
//!
//! | method | params | result |
//! |---|---|---|
//! | `describe` | | [`Description`] |
//! | `mount` | [`MountParams`] | `{}` when everything is mounted |
//! | `query` | [`QueryParams`] | the seam's result: `{kind: "locations", locations, resolvedWorkspaceUri}` or `{kind: "hover", hover}` |
//! | `tool` | [`ToolParams`] | [`ToolOutcome`] |
//! | `turn` | [`TurnParams`] | `{requests}`: what reached the model, in order |
//! | `control` | `{op, …}` | `{}`, or what the operation gives |
//! | `unmount` | | `{}` when everything is quiet |
//!
//! `cancel` is a notification: `{id, reason}`, `id` being that of a `query`, `tool` or `turn` the
//! caller gives up, `reason` `caller` or `timeout`. Queries reach the seam in the order in which
//! their messages stand on the wire. An error is a JSON-RPC error with the stable code in
//! `data.code` (and the server's own in `data.serverCode`); an operation or profile a subject does
//! not have is refused with `data.code` `UNSUPPORTED`. End of stdin ends the subject, which leaves
//! nothing behind.

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Profile;

/// The `data.code` of an error by which a subject says that it does not have something.
pub const UNSUPPORTED: &str = "UNSUPPORTED";

/// Who a subject is and what it claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The profiles it claims to keep.
    pub profiles: Vec<Profile>,
    /// The operations of `control` it has.
    #[serde(default)]
    pub controls: Vec<String>,
}

/// `mount`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MountParams {
    /// Configuration of the host: `{servers: {id: {command, args, extensionToLanguage, …}}}`.
    pub host: Value,
    /// Configuration of the `lsp` tool: `{maxLocations?, maxResultChars?, timeoutMs?}`.
    pub tool: Value,
    /// Configuration of the workspace instructions; null: they are not mounted.
    pub instructions: Value,
    /// The session of tool calls that name none: `{cwd}`, null for one without.
    pub session: Value,
    /// The environment the harness has to take for its own, whole: what is not in here does not
    /// exist for it.
    pub environment: Map<String, Value>,
}

/// `query`: the seam's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryParams {
    /// What is asked.
    pub operation: String,
    /// The file: absolute, or relative to the workspace.
    pub file_path: String,
    /// `{line, character}`, zero-based, UTF-16.
    pub position: Value,
    /// The workspace.
    pub workspace_root: String,
    /// Whether the caller has given up already: the harness gets a signal that is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// `tool`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolParams {
    /// The tool.
    pub name: String,
    /// Its arguments, as a model sent them.
    pub arguments: Value,
    /// The calling session: `{cwd}`; left out, the one of `mount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Value>,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    /// The text the model gets.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// The error's stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The canonical result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What a user interface is shown of the call: `{card, kind, title, locations}` (TOOL-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presentation: Option<Value>,
}

/// `turn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnParams {
    /// What the user says.
    pub prompt: String,
    /// What the model answers, request by request.
    pub replies: Vec<Value>,
}

/// Why a request to a subject has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The subject answered with an error.
    #[error("{message}")]
    Refused {
        /// `data.code`, if there is one.
        code: Option<String>,
        /// What it says.
        message: String,
        /// `data`, whole.
        data: Value,
    },
    /// The subject's process ended, or closed its output, before it answered.
    #[error("the subject ended before it answered: {how}")]
    Gone {
        /// How it ended, with the last of its stderr.
        how: String,
    },
    /// The subject answered with something that is no answer.
    #[error("the subject's answer cannot be read: {reason}")]
    Nonsense {
        /// What is wrong with it.
        reason: String,
    },
}

/// A request under way. Dropping it forgets the answer and cancels nothing.
pub struct PendingCall {
    /// By which `cancel` means it.
    pub id: u64,
    /// The answer.
    pub outcome: BoxFuture<'static, Result<Value, CallError>>,
}

/// A harness under test, mounted by one case at a time.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Who it is.
    fn description(&self) -> &Description;

    /// Hands over a request. It is on its way when this returns, so that the order of calls is the
    /// order in which the harness gets them; the answer comes whenever it comes.
    async fn request(&self, method: &str, params: Value) -> PendingCall;

    /// Says that the caller of a request gives up.
    async fn cancel(&self, id: u64, reason: &str);

    /// The process the harness runs in, for looking at what it leaves open; none where it is ours.
    fn pid(&self) -> Option<u32>;
}

/// Where subjects come from: one for each case in flight.
#[async_trait]
pub trait SubjectSource: Send + Sync {
    /// Who they all are.
    fn description(&self) -> &Description;

    /// One that nobody uses: an idle one, or a new one.
    async fn take(&self) -> Result<std::sync::Arc<dyn Subject>, CallError>;

    /// Gives one back. One that is not `sound` (it died, hangs, leaves things behind) is ended.
    async fn give_back(&self, subject: std::sync::Arc<dyn Subject>, sound: bool);

    /// Ends all of them and waits until they are gone.
    async fn close(&self);
}
