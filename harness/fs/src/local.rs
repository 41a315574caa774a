//! The provider for this machine's files: async shell around the blocking work.

use std::panic;

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use tokio::task::JoinError;
use tokio_util::task::TaskTracker;

use crate::locate::{self, Located};
use crate::service::{FileSystem, Source, SourceError, SourceRequest, Workspace, WorkspaceError};
use crate::text::{self, Rejected};
use crate::uri::file_uri;

/// Files of this machine, read on tokio's blocking threads, one hop an operation.
///
/// A caller that cancels is released at once. The thread that serves it may be inside a system
/// call; it ends by itself before the next one, and [`LocalFileSystem::close`] waits for it.
#[derive(Debug)]
pub struct LocalFileSystem {
    world: ExecutionWorld,
    closing: Cancel,
    running: TaskTracker,
}

impl Default for LocalFileSystem {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalFileSystem {
    /// A provider with nothing running, in the world of this process.
    pub fn new() -> Self {
        Self {
            world: ExecutionWorld::local(),
            closing: Cancel::new(),
            running: TaskTracker::new(),
        }
    }

    /// Refuses new operations, ends those that run with [`CancelReason::Disposed`], and waits for
    /// the threads that serve them. Idempotent.
    ///
    /// A thread inside a system call that never returns (a dead network mount) is waited for too.
    pub async fn close(&self) {
        self.closing.cancel(CancelReason::Disposed);
        self.running.close();
        self.running.wait().await;
    }

    /// Runs `work` on a thread that may block, and gives its result, or the reason to stop waiting
    /// for it.
    async fn hop<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        work: impl FnOnce(&Stop) -> Result<T, CancelReason> + Send + 'static,
    ) -> Result<T, CancelReason> {
        let stop = Stop {
            caller: cancel.clone(),
            closing: self.closing.clone(),
        };
        stop.check()?;
        let running = self.running.token();
        let mut task = tokio::task::spawn_blocking(move || {
            let _running = running;
            stop.check()?;
            work(&stop)
        });
        tokio::select! {
            biased;
            outcome = &mut task => outcome.unwrap_or_else(|error| Err(lost(error))),
            reason = cancel.cancelled() => Err(reason),
            reason = self.closing.cancelled() => Err(reason),
        }
    }
}

/// A blocking task is lost only to a runtime that is shutting down, or to a defect, which goes on
/// as the panic it is.
fn lost(error: JoinError) -> CancelReason {
    match error.try_into_panic() {
        Ok(payload) => panic::resume_unwind(payload),
        Err(_) => CancelReason::Disposed,
    }
}

/// The two reasons to stop, as the blocking side asks for them.
struct Stop {
    caller: Cancel,
    closing: Cancel,
}

impl Stop {
    fn check(&self) -> Result<(), CancelReason> {
        self.caller.check()?;
        self.closing.check()
    }
}

#[async_trait]
impl FileSystem for LocalFileSystem {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        let root = root.to_owned();
        self.hop(cancel, move |_| {
            Ok(locate::workspace(&root).map(workspace_at))
        })
        .await
        .unwrap_or_else(|reason| Err(WorkspaceError::Cancelled(reason)))
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        self.hop(cancel, move |stop| Ok(read(&request, stop)))
            .await
            .unwrap_or_else(|reason| Err(SourceError::Cancelled(reason)))
    }
}

fn workspace_at(path: std::path::PathBuf) -> Workspace {
    Workspace {
        uri: file_uri(&path),
        path,
    }
}

fn read(request: &SourceRequest, stop: &Stop) -> Result<Source, SourceError> {
    let Located {
        workspace,
        path,
        mut file,
        size,
    } = locate::source(request)?;
    let text = text::read_text(&mut file, size, request.max_bytes, &|| stop.check())
        .map_err(|rejected| source_error(request, rejected))?;
    Ok(Source {
        workspace: workspace_at(workspace),
        uri: file_uri(&path),
        path,
        text,
    })
}

fn source_error(request: &SourceRequest, rejected: Rejected) -> SourceError {
    let path = request.file_path.clone();
    match rejected {
        Rejected::TooLarge => SourceError::TooLarge {
            path,
            limit: request.max_bytes,
        },
        Rejected::NotUtf8(offset) => SourceError::NotUtf8 { path, offset },
        Rejected::Nul(offset) => SourceError::NotText { path, offset },
        Rejected::Io(error) => locate::source_error(&path, &error),
        Rejected::Cancelled(reason) => SourceError::Cancelled(reason),
    }
}

#[cfg(test)]
mod tests;
