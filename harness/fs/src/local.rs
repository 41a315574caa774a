//! The provider for this machine's files: async shell around the blocking work.

use std::ffi::OsString;
use std::panic;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

use crate::files;
use crate::locate::{self, Located};
use crate::replace::Replacement;
use crate::service::{FileSystem, Source, SourceError, SourceRequest, Workspace, WorkspaceError};
use crate::stream::{self, FileStream};
use crate::target::{Expected, FileBytes, FsError, FsStat, FsTarget, FsVersion, TextStream};
use crate::text::{self, Rejected};
use crate::uri::file_uri;

/// Files of this machine, read on tokio's blocking threads, one hop an operation.
///
/// A caller that cancels is released at once. The thread that serves it may be inside a system
/// call; it ends by itself before the next one, and [`LocalFileSystem::close`] waits for it.
#[derive(Debug)]
pub struct LocalFileSystem {
    world: ExecutionWorld,
    hopper: Hopper,
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
            hopper: Hopper {
                closing: Cancel::new(),
                running: TaskTracker::new(),
            },
        }
    }

    /// Refuses new operations, ends those that run with [`CancelReason::Disposed`], and waits for
    /// the threads that serve them. Idempotent.
    ///
    /// A thread inside a system call that never returns (a dead network mount) is waited for too.
    pub async fn close(&self) {
        self.hopper.closing.cancel(CancelReason::Disposed);
        self.hopper.running.close();
        self.hopper.running.wait().await;
    }
}

/// Runs work on threads that may block, on behalf of one provider. Cloning shares the provider.
#[derive(Clone, Debug)]
pub(crate) struct Hopper {
    closing: Cancel,
    running: TaskTracker,
}

impl Hopper {
    /// Runs `work`, and gives its result, or the reason to stop waiting for it.
    pub(crate) async fn hop<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        work: impl FnOnce(&Stop) -> Result<T, CancelReason> + Send + 'static,
    ) -> Result<T, CancelReason> {
        let mut task = self.start(cancel, work)?;
        tokio::select! {
            biased;
            outcome = &mut task => outcome.unwrap_or_else(|error| Err(lost(error))),
            reason = cancel.cancelled() => Err(reason),
            reason = self.closing.cancelled() => Err(reason),
        }
    }

    /// Runs `work`, and waits until it is certain what came of it.
    pub(crate) async fn hop_to_the_end<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        work: impl FnOnce(&Stop) -> Result<T, CancelReason> + Send + 'static,
    ) -> Result<T, CancelReason> {
        let given_up = GivenUp(cancel.child());
        let outcome = self.start(&given_up.0, work)?.await;
        outcome.unwrap_or_else(|error| Err(lost(error)))
    }

    fn start<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        work: impl FnOnce(&Stop) -> Result<T, CancelReason> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, CancelReason>>, CancelReason> {
        let stop = Stop {
            caller: cancel.clone(),
            closing: self.closing.clone(),
        };
        stop.check()?;
        let running = self.running.token();
        Ok(tokio::task::spawn_blocking(move || {
            let _running = running;
            stop.check()?;
            work(&stop)
        }))
    }
}

/// Stops the work of a caller that is dropped without being cancelled.
struct GivenUp(Cancel);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.cancel(CancelReason::Caller);
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
pub(crate) struct Stop {
    caller: Cancel,
    closing: Cancel,
}

impl Stop {
    pub(crate) fn check(&self) -> Result<(), CancelReason> {
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
        self.hopper
            .hop(cancel, move |_| {
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
        self.hopper
            .hop(cancel, move |stop| Ok(read(&request, stop)))
            .await
            .unwrap_or_else(|reason| Err(SourceError::Cancelled(reason)))
    }

    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        // By letters alone, which takes no thread that may block.
        cancel.check().map_err(FsError::Cancelled)?;
        files::resolve(base, path)
    }

    async fn identity(&self, target: &FsTarget, cancel: &Cancel) -> Result<PathBuf, FsError> {
        let path = target.path.clone();
        let identity = move |_: &Stop| Ok(files::identity(&path));
        let identity = self.hopper.hop(cancel, identity).await;
        identity.map_err(FsError::Cancelled)
    }

    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError> {
        let path = target.path.clone();
        self.hopper
            .hop(cancel, move |_| Ok(files::stat(&path)))
            .await
            .unwrap_or_else(|reason| Err(FsError::Cancelled(reason)))
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        let paths = paths.to_vec();
        let probe = move |stop: &Stop| {
            let mut found = Vec::with_capacity(paths.len());
            for path in &paths {
                stop.check()?;
                found.push(files::stat(path));
            }
            Ok(found)
        };
        self.hopper.hop(cancel, probe).await
    }

    async fn names(
        &self,
        directory: &Path,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError> {
        let directory = directory.to_owned();
        self.hopper
            .hop(cancel, move |_| Ok(files::names(&directory, most)))
            .await
            .unwrap_or_else(|reason| Err(FsError::Cancelled(reason)))
    }

    async fn read_bytes(
        &self,
        target: &FsTarget,
        limit: u64,
        cancel: &Cancel,
    ) -> Result<FileBytes, FsError> {
        let path = target.path.clone();
        let read = move |stop: &Stop| Ok(read_bytes(&path, limit, stop));
        self.hopper
            .hop(cancel, read)
            .await
            .unwrap_or_else(|reason| Err(FsError::Cancelled(reason)))
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        let path = target.path.clone();
        let (file, metadata) = self
            .hopper
            .hop(cancel, move |_| Ok(files::open(&path)))
            .await
            .map_err(FsError::Cancelled)??;
        Ok(Box::new(FileStream::new(
            self.hopper.clone(),
            cancel.clone(),
            target.path.clone(),
            files::version_of(&metadata),
            file,
        )))
    }

    async fn write(
        &self,
        target: &FsTarget,
        bytes: Vec<u8>,
        expected: Expected,
        cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        let path = target.path.clone();
        let write = move |stop: &Stop| {
            let replacement = Replacement {
                target: &path,
                bytes: &bytes,
                expected: &expected,
                stop: &|| stop.check(),
                before: &|_| Ok(()),
            };
            Ok(replacement.run())
        };
        self.hopper
            .hop_to_the_end(cancel, write)
            .await
            .unwrap_or_else(|reason| Err(FsError::Cancelled(reason)))
    }
}

fn read_bytes(path: &Path, limit: u64, stop: &Stop) -> Result<FileBytes, FsError> {
    let (mut file, metadata) = files::open(path)?;
    let bytes = stream::whole(&mut file, path, metadata.len(), limit, &|| stop.check())?;
    Ok(FileBytes {
        bytes,
        version: files::version_of(&metadata),
    })
}

fn workspace_at(path: PathBuf) -> Workspace {
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
