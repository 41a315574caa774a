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
//! | `turn` | [`TurnParams`] | [`TurnOutcome`]: what reached the model, and how it ended |
//! | `control` | `{op, …}` | `{}`, or what the operation gives |
//! | `unmount` | | `{}` when everything is quiet |
//!
//! `cancel` is a notification: `{id, reason}`, `id` being that of a `query`, `tool` or `turn` the
//! caller gives up, `reason` `caller` or `timeout`. Queries reach the seam in the order in which
//! their messages stand on the wire. An error is a JSON-RPC error with the stable code in
//! `data.code` (and the server's own in `data.serverCode`); an operation or profile a subject does
//! not have is refused with `data.code` `UNSUPPORTED`. End of stdin ends the subject, which leaves
//! nothing behind.
//!
//! One harness is mounted at a time. A `mount` that is cancelled, or overtaken by `unmount`, ends
//! with an error when everything it had begun is gone. Several `unmount`s may be under way; each is
//! answered at the end. Queries and tool calls after `unmount` go to what a consumer of the harness
//! would still hold in its hands, and fail as that fails.
//!
//! # Operations of `control`
//!
//! A subject has those it lists in `describe`. What is not in its list is `not-applicable` there.
//!
//! Providers on the seam, scripted, without a server (SEAM-2…12, SEAM-14):
//!
//! | op | params → result |
//! |---|---|
//! | `register` | `id`, `extensions`: [[extension, language id], …] as registered; `result`: what its queries give, else a hover whose contents are the JSON of the request the provider got; `hold`: whether they wait. Fails as registering fails (`LSP_INVALID_PROVIDER`, `LSP_CONFLICT`) |
//! | `unregister` | `id`, `nth`: releases the registration of that id, the latest, or the nth there was, from 1; again and again if told so |
//! | `release_provider` | `id`: its queries go on, those to come too |
//! | `wait_provider` | `id`, `times` (1), `ended` (0): waits until so many queries came, and so many of them are over → as `provider_log` |
//! | `provider_log` | `id` → `{queries: [{query, end, reason?}]}`: what the provider got, and whether it is `waiting`, was `answered`, `cancelled` (`reason`: `caller`, `timeout`, `disposed`) or just `dropped` |
//!
//! Between the harness and the machine (CAN-1, CAN-2, CAN-5, OPN-11, HST-3, HST-9, CFG-4, CFG-6,
//! DIS-4). What is arranged while nothing is mounted holds for the next mount; at `unmount`, `drop`
//! and after a mount that failed all of it is forgotten, and the counters begin anew:
//!
//! | op | params → result |
//! |---|---|
//! | `hold_files` | `what`: `workspace` (looking one up), `source` (reading one), `executable` (looking one up, at load), `spawn` (starting a process); `next`: how many are held, else all that come. They wait until released or given up |
//! | `release_files` | `what`, else everything: what waits goes on, and what comes passes |
//! | `wait_files` | `what` (as above, or `cancelled`: held up and then given up), `times` (1): waits until it happened so often since mounting → as `file_looks` |
//! | `file_looks` | → `{workspace, source, executable, spawn, cancelled}`: how often, held up or not |
//! | `file_fault` | `kind`: `missing` or `inaccessible`; `what` (`source`), `path`: as the harness is given it, else any; `times`, else always: such a look fails |
//! | `other_world` | the file system of the next mount says that it is of another world than the processes |
//!
//! The loop (RUN-10…16, INS-1…24); `session` is the id of one, `main` where it is left out. What is
//! held and made to fail is arranged as above, and forgotten likewise:
//!
//! | op | params → result |
//! |---|---|
//! | `compact` | `session`, `summary`, `keep` (0): a summary stands in the place of all that the model saw, but for the last so many turns |
//! | `resume` | `session`, `cwd`, `torn`, `instructions`: the loop instance ends, the session is written to a file, and another one goes on with what it reads there, after a crash within a write if `torn`, with another cwd or configuration of the instructions where given → `{same}`: whether the events are those that were written |
//! | `remount` | `instructions`: unloads the instructions and mounts them again, with this configuration or as before |
//! | `filesystem` | `state`: `absent`, `present`: whether there is a file system service; with nothing mounted, at the next mount |
//! | `provider_fault` | `what`: `resolve`, `stat`, `read`, `write`; `path`: absolute, else any; `kind` (`inaccessible`), `times`, else always |
//! | `reject_step` | `session`, `times` (1), `how`: `reject`, `empty`, `strip`, `fail`, `panic`; `reason`, `kind`, `outer` |
//! | `block_tool` | `name`, `times` (1), `how`: `block`, `deny`, `ask`, `replace`, `context`, `panic_before`, `panic_around`, `panic_after`; `reason`, `value`, `first` |
//! | `hold` | `what`: `model`, `tool`, `tool_result`, `step`, `resolve`, `stat`, `read`, `write`, and those of `hold_files`; `next` |
//! | `release_held` | `what`, else everything |
//! | `wait_held` | `what`, `times` (1): waits until so many were held up since mounting → as `file_looks` |
//! | `register_tool`, `unregister_tool` | `name`, `description`, `parameters`, `output`, `value`, `error`, `panics`, `timeoutMs`, `isConcurrencySafe`: a tool that does nothing |
//! | `add_section`, `remove_section` | `name`, `order`, `text`: of the system prompt |
//! | `log` | `session` → `{events, rebuilt}`: the log, and whether each request in it can be made again |
//! | `inbox` | `session` → `{pending: [{source, text}]}` |
//! | `observations` | → `{observed: [{path, kind, write, tool, session}]}`: the `fs/observed` there were |
//!
//! The runtime:
//!
//! | op | params → result |
//! |---|---|
//! | `load_host` | `name`, `host`: loads another host plugin on the same seam (CFG-4…6). Can be cancelled like a mount |
//! | `unload_host` | `name`: unloads it (SEAM-6, SEAM-12, DIS-1) |
//! | `drop` | `panic`: drops the runtime without disposal, in the course of a panic if told so (DIS-6). Answered when it is dropped; its servers end after that. Nothing is mounted then |
//! | `deployment` | `text`: mounts what a deployment file of this text says, beside whatever is mounted, and disposes of it → `{plugins, tools}`: the names of the plugins, the base first and then in the order of the rows, and those of the tools. Fails as reading or mounting it fails, with the file named `cordis.yml` (RUN-3) |
//! | `describe_tools` | → `{tools: [{name, description, parameters, timeoutMs?}], systemPrompt}`: what the model sees, and the budget it does not see (TOOL-1, TOOL-9, TOOL-10, TOOL-13) |

mod built_in;
mod in_process;
mod lines;
mod pool;
mod process;

use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Profile;

pub use built_in::{ServeError, Server, serve};
pub use in_process::{InProcess, InProcessSource};
pub use pool::Pool;
pub use process::{Launch, Process};

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
#[serde(rename_all = "camelCase", default)]
pub struct MountParams {
    /// Configuration of the host: `{servers: {id: {command, args, extensionToLanguage, …}}}`; null:
    /// it is not mounted.
    pub host: Value,
    /// Configuration of the `lsp` tool: `{maxLocations?, maxResultChars?, timeoutMs?}`; null: it is
    /// not mounted.
    pub tool: Value,
    /// What there is besides: `{files, readBeforeWrite, codeMode}`, the configurations of the tools
    /// for files and of Code Mode, null for what is not mounted. Null for nothing.
    pub tools: Value,
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
    /// What the model answers, request by request: `{text?, reasoning?, tool_calls?: [{id?, name,
    /// arguments | arguments_raw}], error?: {code, message, retry}, cut?}`.
    pub replies: Vec<Value>,
    /// The session it belongs to: `{id, cwd}`. One whose id was not used since mounting is begun.
    pub session: Value,
}

/// What came of a turn, however it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnOutcome {
    /// What reached the model, in order.
    pub requests: Vec<TurnRequest>,
    /// `completed`, `rejected`, `cancelled` or `failed`.
    pub ended: String,
    /// The stable code of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model's last words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A request as it reached the model, in a form that does not depend on whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRequest {
    /// The system prompt.
    pub system: String,
    /// The messages.
    pub messages: Vec<TurnMessage>,
    /// The names of the tools.
    pub tools: Vec<String>,
}

/// A message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnMessage {
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// Its text.
    pub text: String,
    /// Of an assistant's message: the tools it calls, `{id, name, arguments}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Value>,
    /// Of a tool's result: the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Of a tool's result: whether it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Of a user's message: its typed source, which the model does not see. A harness that has no
    /// such thing leaves it out everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Value>,
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
    /// The program cannot be started.
    #[error("the subject `{command}` cannot be started: {reason}; check how its file starts it")]
    NotStarted {
        /// The program and its arguments.
        command: String,
        /// What the system said.
        reason: String,
    },
    /// It did not answer what has to be answered at once.
    #[error("the subject did not answer `{method}` within {} ms", after.as_millis())]
    Silent {
        /// What it was asked.
        method: String,
        /// How long it had.
        after: Duration,
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

    /// Waits until it can no longer be asked anything, and says why. One to which that cannot
    /// happen waits for ever.
    async fn gone(&self) -> CallError {
        std::future::pending().await
    }

    /// Whether it can no longer be asked anything.
    fn is_over(&self) -> bool {
        false
    }

    /// Ends it, whatever it is doing, and waits until it is gone. One that is not used again may
    /// just be dropped instead: then it is ended without anybody waiting.
    async fn end(&self) {}
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
