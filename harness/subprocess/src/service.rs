//! The service's vocabulary and traits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::{Cancel, ExecutionWorld};
use tokio::io::{AsyncRead, AsyncWrite};

/// What to start. There is no shell: argv is passed as given (ENV-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnSpec {
    /// Absolute path, as [`Subprocess::resolve_executable`] gave it.
    pub executable: PathBuf,
    /// The arguments, without the program's own name.
    pub args: Vec<String>,
    /// Merged over the scrubbed ambient environment (ENV-1, ENV-2).
    pub env: BTreeMap<String, String>,
    /// The working directory (ENV-4).
    pub cwd: PathBuf,
    /// How many bytes of stderr to keep, the last ones (ENV-5).
    pub max_stderr_bytes: usize,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildExit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// The system did not say.
    Unknown,
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("unknown exit status"),
        }
    }
}

/// One process of a tree, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberInfo {
    /// Process id.
    pub pid: u32,
    /// Short command name.
    pub name: String,
}

/// What ending a tree took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminationReport {
    /// Members that were sent SIGTERM.
    pub terminated: Vec<MemberInfo>,
    /// Members that were sent SIGKILL, since they outlived the grace.
    pub killed: Vec<MemberInfo>,
    /// Processes that carry this child's marker but had left the tree; found at the end (ENV-6)
    /// and ended too where possible.
    pub escaped: Vec<MemberInfo>,
}

/// A started process: its protocol pipes, and the control of its life.
pub struct ChildProcess {
    /// The pipes, to be taken by whoever speaks the protocol.
    pub io: ChildIo,
    /// Watches and ends it; shared, since several may wait for the same end.
    pub control: Arc<dyn ProcessControl>,
}

/// The two protocol pipes of a process. Dropping one closes it.
pub struct ChildIo {
    /// To the process.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// From the process.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
}

/// Control of one started process and of the tree below it.
///
/// Dropping the last handle of a process that was not ended kills its tree at once (DIS-6).
#[async_trait]
pub trait ProcessControl: Send + Sync + 'static {
    /// Process id of the leader.
    fn pid(&self) -> u32;

    /// Waits for the leader to end; any number of callers, at any time.
    async fn wait(&self) -> ChildExit;

    /// How the leader ended, if it has.
    fn exited(&self) -> Option<ChildExit>;

    /// Ends when the process no longer has its stdin open, so that whatever is written from then on
    /// is lost (CRS-1); never while it has, and never where the system cannot tell. A pipe's writer
    /// sees this as an error condition (`POLLERR`) before it writes anything. Waiting must not keep
    /// the pipe open: dropping [`ChildIo::stdin`] still closes it.
    async fn stdin_closed(&self) {
        std::future::pending::<()>().await;
    }

    /// The last bytes of stderr, at most the spec's limit, cut on a UTF-8 boundary (ENV-5).
    fn stderr_tail(&self) -> String;

    /// Waits until stderr has been read to its end, or `limit` has passed, so that the tail of a
    /// process that died is whole.
    async fn stderr_drained(&self, limit: Duration);

    /// Waits, without any signal, until no member of the tree is left or `limit` has passed;
    /// returns the members alive then (QUA-8, ENV-7).
    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo>;

    /// Ends the whole tree: SIGTERM, SIGKILL after `grace`, then waits until every member is gone
    /// (ENV-6). Idempotent; concurrent callers wait for the same end.
    async fn terminate_tree(&self, grace: Duration) -> TerminationReport;
}

/// Why an executable was refused (CFG-4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// A blank name.
    #[error("the command is blank")]
    Blank,
    /// A relative path with a separator: it would depend on the working directory.
    #[error(
        "command {command:?} is a relative path; use the absolute path {suggestion:?}, or a bare name on PATH"
    )]
    Relative {
        /// As configured.
        command: String,
        /// The absolute form.
        suggestion: String,
    },
    /// Not there, or not on the child's PATH.
    #[error("command {command:?} was not found {searched}")]
    Missing {
        /// As configured.
        command: String,
        /// Where was looked, for people.
        searched: String,
    },
    /// It is a directory.
    #[error("command {command:?} is a directory ({path:?})")]
    Directory {
        /// As configured.
        command: String,
        /// What was found.
        path: PathBuf,
    },
    /// It has no execute permission for us.
    #[error(
        "command {command:?} is not executable ({path:?}); make it executable, or name another"
    )]
    NotExecutable {
        /// As configured.
        command: String,
        /// What was found.
        path: PathBuf,
    },
    /// The lookup was cancelled.
    #[error("the lookup of {command:?} was cancelled")]
    Cancelled {
        /// As configured.
        command: String,
    },
}

/// Why a process could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start {executable:?} in {cwd:?}: {reason}")]
pub struct SpawnError {
    /// What was to be started.
    pub executable: PathBuf,
    /// Where.
    pub cwd: PathBuf,
    /// What the system said.
    pub reason: String,
}

/// Processes of one execution world.
#[async_trait]
pub trait Subprocess: Send + Sync + 'static {
    /// The world in which processes run.
    fn world(&self) -> &ExecutionWorld;

    /// Finds the executable that `command` names for a child whose configured environment is `env`
    /// (CFG-4): an absolute path, or a name on the child's PATH, empty segments skipped.
    async fn resolve_executable(
        &self,
        command: &str,
        env: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError>;

    /// Starts a process as the leader of a group of its own.
    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError>;
}
