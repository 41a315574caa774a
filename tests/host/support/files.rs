//! The file system as the host sees it: this machine's, with gates and faults.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use dsh_fs::{
    Expected, FileBytes, FileSystem, FsError, FsStat, FsTarget, FsVersion, LocalFileSystem, Source,
    SourceError, SourceRequest, TextStream, Workspace, WorkspaceError,
};
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use dsh_transcript::{EventBody, Recorder};
use tokio::sync::watch;

/// What can be held up, or made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Looking a workspace up.
    Workspace,
    /// Reading a source.
    Source,
}

/// Each operation is recorded (`fs.workspace`, `fs.source`), then waits at its gate.
pub(crate) struct Files {
    inner: LocalFileSystem,
    world: ExecutionWorld,
    recorder: Recorder,
    closed: watch::Sender<[bool; 2]>,
    /// The next workspace lookup ends with this.
    workspace_fault: Mutex<Option<WorkspaceError>>,
    /// The next read ends with this.
    source_fault: Mutex<Option<SourceError>>,
    /// The next reads give these.
    sources: Mutex<VecDeque<Source>>,
}

impl Files {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            inner: LocalFileSystem::new(),
            world: ExecutionWorld::local(),
            recorder,
            closed: watch::Sender::new([false; 2]),
            workspace_fault: Mutex::default(),
            source_fault: Mutex::default(),
            sources: Mutex::default(),
        }
    }

    /// Holds up what comes from now on.
    pub(crate) fn shut(&self, gate: Gate) {
        self.closed
            .send_modify(|closed| closed[gate as usize] = true);
    }

    /// Lets everything pass.
    pub(crate) fn open(&self, gate: Gate) {
        self.closed
            .send_modify(|closed| closed[gate as usize] = false);
    }

    /// Makes the next lookup of a workspace fail.
    pub(crate) fn fail_workspace(&self, error: WorkspaceError) {
        *self.workspace_fault.lock().expect("no panic inside") = Some(error);
    }

    /// Makes the next read fail.
    pub(crate) fn fail_source(&self, error: SourceError) {
        *self.source_fault.lock().expect("no panic inside") = Some(error);
    }

    /// Serves the next read that is not served yet with this, wherever the file is, at once.
    pub(crate) fn serve_source(&self, source: Source) {
        self.sources
            .lock()
            .expect("no panic inside")
            .push_back(source);
    }

    /// The same files, said to be of another world.
    pub(crate) fn in_world(&self, world: ExecutionWorld) -> Self {
        Self {
            world,
            ..Self::new(self.recorder.clone())
        }
    }

    pub(super) async fn close(&self) {
        self.inner.close().await;
    }

    async fn pass(&self, gate: Gate, name: &str, cancel: &Cancel) -> Result<(), CancelReason> {
        let kind = match gate {
            Gate::Workspace => "fs.workspace",
            Gate::Source => "fs.source",
        };
        self.recorder.emit(None, EventBody::note(kind, name));
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            reason = cancel.cancelled() => {
                self.recorder.emit(None, EventBody::note("fs.cancelled", name));
                Err(reason)
            }
            _ = closed.wait_for(|closed| !closed[gate as usize]) => Ok(()),
        }
    }
}

#[async_trait]
impl FileSystem for Files {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        self.pass(Gate::Workspace, root, cancel)
            .await
            .map_err(WorkspaceError::Cancelled)?;
        let fault = self.workspace_fault.lock().expect("no panic inside").take();
        match fault {
            Some(error) => Err(error),
            None => self.inner.workspace(root, cancel).await,
        }
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        let name = &request.file_path;
        self.pass(Gate::Source, name, cancel)
            .await
            .map_err(SourceError::Cancelled)?;
        let fault = self.source_fault.lock().expect("no panic inside").take();
        if let Some(error) = fault {
            return Err(error);
        }
        let served = self.sources.lock().expect("no panic inside").pop_front();
        match served {
            Some(source) => Ok(source),
            None => self.inner.read_source(request, cancel).await,
        }
    }

    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        self.inner.resolve(base, path, cancel).await
    }

    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError> {
        self.inner.stat(target, cancel).await
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        self.inner.probe(paths, cancel).await
    }

    async fn names(
        &self,
        directory: &Path,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError> {
        self.inner.names(directory, most, cancel).await
    }

    async fn read_bytes(
        &self,
        target: &FsTarget,
        limit: u64,
        cancel: &Cancel,
    ) -> Result<FileBytes, FsError> {
        self.inner.read_bytes(target, limit, cancel).await
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        self.inner.stream_text(target, cancel).await
    }

    async fn write(
        &self,
        target: &FsTarget,
        bytes: Vec<u8>,
        expected: Expected,
        cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        self.inner.write(target, bytes, expected, cancel).await
    }
}
