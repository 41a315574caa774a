//! Files and workspaces in memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use dsh_fs::{
    Expected, FileBytes, FileSystem, FsError, FsStat, FsTarget, FsVersion, Source, SourceError,
    SourceRequest, TextStream, Workspace, WorkspaceError,
};
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use tokio::sync::{Notify, Semaphore};

/// Files by path, workspaces by the name they are called.
pub(crate) struct FakeFiles {
    world: ExecutionWorld,
    state: Mutex<Files>,
    /// One permit for each operation that may go on; unlimited unless a test holds them.
    lookups: Semaphore,
    reads: Semaphore,
    pub(crate) waiting: Notify,
}

#[derive(Default)]
struct Files {
    roots: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
    lookups: usize,
    reads: Vec<String>,
    panics: bool,
    /// Roots that resolve to their second place every other time.
    restless: BTreeMap<String, String>,
}

impl FakeFiles {
    pub(crate) fn new() -> Self {
        Self {
            world: ExecutionWorld::named("test"),
            state: Mutex::default(),
            lookups: Semaphore::new(Semaphore::MAX_PERMITS),
            reads: Semaphore::new(Semaphore::MAX_PERMITS),
            waiting: Notify::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Files> {
        self.state.lock().expect("no test panics with the lock")
    }

    pub(crate) fn link(&self, root: &str, canonical: &str) {
        self.lock()
            .roots
            .insert(root.to_owned(), canonical.to_owned());
    }

    /// From now on `root` resolves to where it does and to `other` in turns.
    pub(crate) fn alternate(&self, root: &str, other: &str) {
        self.lock()
            .restless
            .insert(root.to_owned(), other.to_owned());
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        self.lock().texts.insert(file.to_owned(), text.to_owned());
    }

    pub(crate) fn remove(&self, file: &str) {
        self.lock().texts.remove(file);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lock().lookups
    }

    pub(crate) fn reads(&self) -> Vec<String> {
        self.lock().reads.clone()
    }

    /// From now on lookups wait for [`Self::let_lookup`].
    pub(crate) fn hold_lookups(&self) {
        self.lookups.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn let_lookup(&self) {
        self.lookups.add_permits(1);
    }

    /// From now on reads wait for [`Self::let_read`].
    pub(crate) fn hold_reads(&self) {
        self.reads.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn let_read(&self) {
        self.reads.add_permits(1);
    }

    /// From now on nothing waits.
    pub(crate) fn let_all(&self) {
        for held in [&self.lookups, &self.reads] {
            held.add_permits(Semaphore::MAX_PERMITS - held.available_permits());
        }
    }

    /// The next lookup or read panics.
    pub(crate) fn panic_once(&self) {
        self.lock().panics = true;
    }

    fn break_if_told(&self) {
        let broken = std::mem::take(&mut self.lock().panics);
        assert!(!broken, "the file system is broken");
    }

    fn canonical(&self, root: &str) -> Result<Workspace, WorkspaceError> {
        let path = {
            let mut files = self.lock();
            let path = files.roots.get(root).cloned();
            if let Some(other) = files.restless.get(root).cloned() {
                let now = files.roots.insert(root.to_owned(), other);
                files
                    .restless
                    .insert(root.to_owned(), now.expect("it resolves"));
            }
            path
        };
        let path = path.ok_or_else(|| WorkspaceError::Missing {
            root: root.to_owned(),
        })?;
        Ok(Workspace {
            uri: format!("file://{path}"),
            path: PathBuf::from(path),
        })
    }
}

#[async_trait]
impl FileSystem for FakeFiles {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        self.lock().lookups += 1;
        self.waiting.notify_one();
        tokio::select! {
            biased;
            reason = cancel.cancelled() => return Err(WorkspaceError::Cancelled(reason)),
            permit = self.lookups.acquire() => permit.expect("never closed").forget(),
        }
        self.break_if_told();
        self.canonical(root)
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        self.lock().reads.push(request.file_path.clone());
        self.waiting.notify_one();
        tokio::select! {
            biased;
            reason = cancel.cancelled() => return Err(SourceError::Cancelled(reason)),
            permit = self.reads.acquire() => permit.expect("never closed").forget(),
        }
        self.break_if_told();
        let workspace = self.canonical(&request.workspace_root)?;
        let path = workspace.path.join(&request.file_path);
        let missing = || SourceError::Missing {
            path: request.file_path.clone(),
        };
        let text = self
            .lock()
            .texts
            .get(path.to_str().expect("ASCII"))
            .cloned();
        let text = text.ok_or_else(missing)?;
        if text.len() as u64 > request.max_bytes {
            return Err(SourceError::TooLarge {
                path: request.file_path,
                limit: request.max_bytes,
            });
        }
        Ok(Source {
            uri: format!("file://{}", path.display()),
            path,
            text,
            workspace,
        })
    }

    async fn resolve(
        &self,
        _base: Option<&str>,
        path: &str,
        _cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        not_the_host("resolves", path)
    }

    async fn stat(&self, target: &FsTarget, _cancel: &Cancel) -> Result<FsStat, FsError> {
        not_the_host("looks at", &target.display_path)
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        _cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        not_the_host("probes", &format!("{paths:?}"))
    }

    async fn names(
        &self,
        directory: &Path,
        _most: usize,
        _cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError> {
        not_the_host("lists", &directory.to_string_lossy())
    }

    async fn read_bytes(
        &self,
        target: &FsTarget,
        _limit: u64,
        _cancel: &Cancel,
    ) -> Result<FileBytes, FsError> {
        not_the_host("reads", &target.display_path)
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        _cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        not_the_host("streams", &target.display_path)
    }

    async fn write(
        &self,
        target: &FsTarget,
        _bytes: Vec<u8>,
        _expected: Expected,
        _cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        not_the_host("writes", &target.display_path)
    }
}

/// The host asks for workspaces and sources, in one go each. Anything else would be a second way
/// to the files, and fails the test.
#[track_caller]
fn not_the_host(does: &str, path: &str) -> ! {
    panic!("the host {does} {path} by itself")
}
