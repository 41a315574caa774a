//! The files and processes of this machine, behind what a case arranged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use dsh_harness::fs::{
    Expected, FileBytes, FileSystem, FsError, FsStat, FsTarget, FsVersion, LocalFileSystem, Source,
    SourceError, SourceRequest, TextStream, Workspace, WorkspaceError,
};
use dsh_harness::kernel::{Cancel, CancelReason, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildProcess, LocalSubprocess, ResolveError, SpawnError, SpawnSpec, Subprocess,
};

use super::arranged::{Arranged, FaultKind, Look};

/// The files of this machine, behind what was arranged.
pub(super) struct Files {
    inner: LocalFileSystem,
    world: ExecutionWorld,
    arranged: Arc<Arranged>,
}

impl Files {
    pub(super) fn new(arranged: Arc<Arranged>) -> Self {
        let world = if arranged.worlds_differ() {
            ExecutionWorld::named("elsewhere")
        } else {
            ExecutionWorld::local()
        };
        Self {
            inner: LocalFileSystem::new(),
            world,
            arranged,
        }
    }

    async fn pass_gate(&self, what: Look, cancel: &Cancel) -> Result<(), FsError> {
        let passed = self.arranged.gate(what, cancel).await;
        passed.map_err(FsError::Cancelled)
    }

    fn unless_faulty(&self, what: Look, path: &Path) -> Result<(), FsError> {
        match self.arranged.fault(what, &path.display().to_string()) {
            None => Ok(()),
            Some(kind) => Err(failed(kind, path)),
        }
    }

    /// Ends the reads that still run, and waits for them.
    pub(super) async fn close(&self) {
        self.inner.close().await;
    }
}

/// What the system would say, by the one who arranged it.
const REASON: &str = "permission denied (arranged by the case)";

#[async_trait]
impl FileSystem for Files {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        let fault = self.arranged.pass(Look::Workspace, root, cancel).await;
        let root = root.to_owned();
        match fault.map_err(WorkspaceError::Cancelled)? {
            None => self.inner.workspace(&root, cancel).await,
            Some(FaultKind::Missing) => Err(WorkspaceError::Missing { root }),
            Some(FaultKind::Inaccessible) => Err(WorkspaceError::Inaccessible {
                root,
                reason: REASON.to_owned(),
            }),
        }
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        let path = request.file_path.clone();
        let fault = self.arranged.pass(Look::Source, &path, cancel).await;
        match fault.map_err(SourceError::Cancelled)? {
            None => self.inner.read_source(request, cancel).await,
            Some(FaultKind::Missing) => Err(SourceError::Missing { path }),
            Some(FaultKind::Inaccessible) => Err(SourceError::Inaccessible {
                path,
                reason: REASON.to_owned(),
            }),
        }
    }

    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        self.pass_gate(Look::Resolve, cancel).await?;
        let target = self.inner.resolve(base, path, cancel).await?;
        self.unless_faulty(Look::Resolve, &target.path)?;
        Ok(target)
    }

    async fn identity(&self, target: &FsTarget, cancel: &Cancel) -> Result<PathBuf, FsError> {
        self.inner.identity(target, cancel).await
    }

    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError> {
        self.pass_gate(Look::Stat, cancel).await?;
        self.unless_faulty(Look::Stat, &target.path)?;
        self.inner.stat(target, cancel).await
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        self.arranged.gate(Look::Stat, cancel).await?;
        let mut found = self.inner.probe(paths, cancel).await?;
        for (found, path) in found.iter_mut().zip(paths) {
            for look in [Look::Resolve, Look::Stat] {
                if let Err(error) = self.unless_faulty(look, path) {
                    *found = Err(error);
                }
            }
        }
        Ok(found)
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
        self.pass_gate(Look::Read, cancel).await?;
        self.unless_faulty(Look::Read, &target.path)?;
        self.inner.read_bytes(target, limit, cancel).await
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        self.pass_gate(Look::Read, cancel).await?;
        self.unless_faulty(Look::Read, &target.path)?;
        self.inner.stream_text(target, cancel).await
    }

    async fn write(
        &self,
        target: &FsTarget,
        bytes: Vec<u8>,
        expected: Expected,
        cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        self.pass_gate(Look::Write, cancel).await?;
        self.unless_faulty(Look::Write, &target.path)?;
        self.inner.write(target, bytes, expected, cancel).await
    }
}

/// What an operation fails with that was arranged to.
fn failed(kind: FaultKind, path: &Path) -> FsError {
    let path = path.display().to_string();
    match kind {
        FaultKind::Missing => FsError::Missing { path },
        FaultKind::Inaccessible => FsError::Inaccessible {
            path,
            reason: REASON.to_owned(),
        },
    }
}

/// The processes of this machine, behind what was arranged.
pub(super) struct Processes {
    inner: LocalSubprocess,
    arranged: Arc<Arranged>,
}

impl Processes {
    pub(super) fn new(inner: LocalSubprocess, arranged: Arc<Arranged>) -> Self {
        Self { inner, arranged }
    }
}

#[async_trait]
impl Subprocess for Processes {
    fn world(&self) -> &ExecutionWorld {
        self.inner.world()
    }

    async fn resolve_executable(
        &self,
        command: &str,
        env: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        let fault = self.arranged.pass(Look::Executable, command, cancel).await;
        let command = command.to_owned();
        match fault {
            Err(_) => Err(ResolveError::Cancelled { command }),
            Ok(None) => self.inner.resolve_executable(&command, env, cancel).await,
            Ok(Some(_)) => Err(ResolveError::Missing {
                command,
                searched: "anywhere (arranged by the case)".to_owned(),
            }),
        }
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let name = spec.executable.display().to_string();
        // A start cannot be cancelled; it is given up by dropping it.
        let never = Cancel::new();
        match self.arranged.pass(Look::Spawn, &name, &never).await {
            Ok(Some(_)) => Err(SpawnError {
                executable: spec.executable,
                cwd: spec.cwd,
                reason: REASON.to_owned(),
            }),
            _ => self.inner.spawn(spec).await,
        }
    }
}
