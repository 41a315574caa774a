//! One configured server as a provider of the seam.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_fs::FileSystem;
use dsh_kernel::Cancel;
use dsh_lsp::{LspError, LspProvider, ProviderQuery, QueryResult};
use dsh_subprocess::{MemberInfo, Subprocess};
use tokio::sync::oneshot;

use crate::config::ServerConfig;
use crate::pool::{Job, Pool};

/// A language server, run once for each workspace that is asked about (CFG-8).
///
/// [`dispose`](Self::dispose) ends its processes gracefully and waits for them. Dropping it without
/// that ends them by force (DIS-6).
pub struct StdioProvider {
    pool: Arc<Pool>,
}

impl StdioProvider {
    /// A provider whose executable has been found (CFG-4). No process is started (CFG-7).
    ///
    /// Fails with [`LspError::ConfigInvalid`] or [`LspError::InvalidProvider`] when the entry breaks
    /// a rule, its command cannot be found, or `files` and `processes` are of different worlds
    /// (HST-9). `cancel` ends the lookup.
    pub async fn load(
        id: impl Into<String>,
        config: ServerConfig,
        files: Arc<dyn FileSystem>,
        processes: Arc<dyn Subprocess>,
        cancel: &Cancel,
    ) -> Result<Arc<Self>, LspError> {
        let id = id.into();
        config.validate(&id)?;
        same_world(&*files, &*processes)?;
        let executable = processes
            .resolve_executable(&config.command, &config.env, cancel)
            .await
            .map_err(|error| LspError::ConfigInvalid(format!("servers.{id}.command: {error}")))?;
        let pool = Arc::new(Pool::new(id, config, executable, files, processes));
        Ok(Arc::new(Self { pool }))
    }

    /// [`load`](Self::load) without a way to end it early.
    pub async fn new(
        id: impl Into<String>,
        config: ServerConfig,
        files: Arc<dyn FileSystem>,
        processes: Arc<dyn Subprocess>,
    ) -> Result<Arc<Self>, LspError> {
        Self::load(id, config, files, processes, &Cancel::new()).await
    }

    /// Stops new work, releases every caller with `LSP_DISPOSED`, ends all processes side by side,
    /// and returns when nothing is left (DIS-1…5). The second call and concurrent ones wait for the
    /// same end.
    pub async fn dispose(&self) -> Result<(), DisposeError> {
        self.pool.close();
        self.pool.tasks.wait().await;
        let failures = self.pool.failures();
        if failures.is_empty() {
            return Ok(());
        }
        Err(DisposeError {
            id: self.pool.id.clone(),
            failures,
        })
    }

    /// How many workspaces have a process, or work that may start one.
    pub fn workspaces(&self) -> usize {
        self.pool.workspaces()
    }
}

/// HST-9: a server must see the files that are read for it.
fn same_world(files: &dyn FileSystem, processes: &dyn Subprocess) -> Result<(), LspError> {
    if files.world() == processes.world() {
        return Ok(());
    }
    Err(LspError::ConfigInvalid(format!(
        "the file system acts in world {:?} and the subprocess service in world {:?}; a language server must see the files that are read for it, so mount both for the same world",
        files.world().to_string(),
        processes.world().to_string(),
    )))
}

#[async_trait]
impl LspProvider for StdioProvider {
    fn id(&self) -> &str {
        &self.pool.id
    }

    fn extension_to_language(&self) -> &BTreeMap<String, String> {
        &self.pool.config.extension_to_language
    }

    async fn query(&self, query: ProviderQuery, cancel: &Cancel) -> Result<QueryResult, LspError> {
        cancel.check()?;
        let (reply, answer) = oneshot::channel();
        self.pool.enqueue(Job::new(query, reply))?;
        // The caller is released at once, whatever the work is doing (CAN-8): that `answer` is
        // dropped here tells it.
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(self.lost())),
            reason = cancel.cancelled() => Err(reason.into()),
            _ = self.pool.disposed.cancelled() => Err(self.pool.disposed_error()),
        }
    }
}

impl StdioProvider {
    /// The error of a query whose work ended without an answer.
    fn lost(&self) -> LspError {
        if self.pool.disposed.is_cancelled() {
            return self.pool.disposed_error();
        }
        LspError::ServerExited(format!(
            "the host of language server {:?} failed; this is a fault of this program, the next query starts afresh",
            self.pool.id
        ))
    }
}

impl Drop for StdioProvider {
    fn drop(&mut self) {
        self.pool.abandoned.cancel();
    }
}

impl fmt::Debug for StdioProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioProvider")
            .field("id", &self.pool.id)
            .finish_non_exhaustive()
    }
}

/// Processes of one workspace's server that could not be accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeardownFailure {
    /// The workspace.
    pub workspace: PathBuf,
    /// Processes that had left the server's tree (ENV-6).
    pub escaped: Vec<MemberInfo>,
}

/// What a disposal could not end cleanly, together (DIS-5). Everything else was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisposeError {
    /// The provider id.
    pub id: String,
    /// Never empty.
    pub failures: Vec<TeardownFailure>,
}

impl std::error::Error for DisposeError {}

impl fmt::Display for DisposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "language server {:?} left processes outside its tree:",
            self.id
        )?;
        for failure in &self.failures {
            for MemberInfo { pid, name } in &failure.escaped {
                let workspace = failure.workspace.display();
                write!(f, " {name} (pid {pid}, workspace {workspace})")?;
            }
        }
        f.write_str("; check that they are gone")
    }
}
