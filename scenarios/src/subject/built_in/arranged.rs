//! What stands between the harness and this machine: gates, faults and counters around the file
//! system and the processes, so that a case can stop the harness in the middle of a look-up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_harness::fs::{
    Expected, FileBytes, FileSystem, FsError, FsStat, FsTarget, FsVersion, LocalFileSystem, Source,
    SourceError, SourceRequest, TextStream, Workspace, WorkspaceError,
};
use dsh_harness::kernel::{Cancel, CancelReason, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildProcess, LocalSubprocess, ResolveError, SpawnError, SpawnSpec, Subprocess,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// What can be held up, counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Look {
    /// Looking a workspace up.
    Workspace,
    /// Reading a source.
    Source,
    /// Looking an executable up, while the host loads.
    Executable,
    /// Starting a process.
    Spawn,
}

impl Look {
    const ALL: [Self; 4] = [Self::Workspace, Self::Source, Self::Executable, Self::Spawn];
}

/// Why an operation fails that was arranged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// Nothing is there.
    Missing,
    /// The system refuses.
    Inaccessible,
}

/// An operation that was arranged to fail.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) what: Look,
    /// What it is about as the harness was given it; none for whatever it is.
    pub(super) path: Option<String>,
    pub(super) kind: FaultKind,
    /// How often it still fails; none for every time.
    pub(super) times: Option<u64>,
}

/// How often the harness looked, and what it gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Looks {
    workspace: u64,
    source: u64,
    executable: u64,
    spawn: u64,
    /// Looks that were held up when their caller gave them up.
    cancelled: u64,
}

impl Looks {
    fn of(&mut self, what: Look) -> &mut u64 {
        match what {
            Look::Workspace => &mut self.workspace,
            Look::Source => &mut self.source,
            Look::Executable => &mut self.executable,
            Look::Spawn => &mut self.spawn,
        }
    }

    /// How often it was looked.
    pub(super) fn count(mut self, what: Look) -> u64 {
        *self.of(what)
    }

    /// How many of them were given up.
    pub(super) const fn given_up(self) -> u64 {
        self.cancelled
    }
}

/// A gate: those that arrive while it holds wait for the next opening.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    holds: bool,
    /// How many it still holds; none for all that come.
    next: Option<u64>,
}

/// Everything that was arranged for one mount.
#[derive(Default)]
pub(super) struct Arranged {
    gates: Mutex<BTreeMap<Look, Gate>>,
    faults: Mutex<Vec<Fault>>,
    /// How often each gate was opened.
    openings: watch::Sender<BTreeMap<Look, u64>>,
    looks: watch::Sender<Looks>,
    other_world: Mutex<bool>,
}

impl Arranged {
    /// Holds up what comes from now on: all, or only the `next` so many.
    pub(super) fn hold(&self, what: Look, next: Option<u64>) {
        lock(&self.gates).insert(what, Gate { holds: true, next });
    }

    /// Lets everything of a kind go on, or of every kind.
    pub(super) fn release(&self, what: Option<Look>) {
        let opened = what.map_or_else(|| Look::ALL.to_vec(), |what| vec![what]);
        let mut gates = lock(&self.gates);
        for look in &opened {
            gates.remove(look);
        }
        // Under the lock, so that who arrives either sees the open gate or waits for this opening.
        self.openings.send_modify(|openings| {
            for look in opened {
                *openings.entry(look).or_default() += 1;
            }
        });
    }

    /// Makes an operation fail.
    pub(super) fn fail(&self, fault: Fault) {
        lock(&self.faults).push(fault);
    }

    /// Says that the files are of another world than the processes.
    pub(super) fn separate_worlds(&self) {
        *lock(&self.other_world) = true;
    }

    /// How often it was looked so far.
    pub(super) fn looks(&self) -> Looks {
        *self.looks.borrow()
    }

    /// Waits until the looks are so.
    pub(super) async fn looked(&self, enough: impl Fn(Looks) -> bool) -> Looks {
        let mut looks = self.looks.subscribe();
        match looks.wait_for(|looks| enough(*looks)).await {
            Ok(looks) => *looks,
            // The sender is `self`.
            Err(_) => self.looks(),
        }
    }

    /// Counts, waits at the gate, and says what to fail with.
    async fn pass(
        &self,
        what: Look,
        path: &str,
        cancel: &Cancel,
    ) -> Result<Option<FaultKind>, CancelReason> {
        let opening = {
            let mut gates = lock(&self.gates);
            let held = gates.get_mut(&what).is_some_and(Gate::takes);
            held.then(|| {
                let openings = self.openings.subscribe();
                let before = openings.borrow().get(&what).copied().unwrap_or_default();
                (openings, before)
            })
        };
        let held = GivenUp {
            arranged: self,
            armed: opening.is_some(),
        };
        self.looks.send_modify(|looks| *looks.of(what) += 1);
        if let Some((mut openings, before)) = opening {
            let opened = openings
                .wait_for(|openings| openings.get(&what).is_some_and(|count| *count > before));
            tokio::select! {
                biased;
                reason = cancel.cancelled() => return Err(reason),
                _ = opened => {}
            }
        }
        held.disarm();
        Ok(self.fault(what, path))
    }

    fn fault(&self, what: Look, path: &str) -> Option<FaultKind> {
        let mut faults = lock(&self.faults);
        let meant = |fault: &Fault| {
            fault.what == what && fault.path.as_deref().is_none_or(|meant| meant == path)
        };
        let at = faults.iter().position(meant)?;
        let kind = faults[at].kind;
        if let Some(times) = &mut faults[at].times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                faults.remove(at);
            }
        }
        Some(kind)
    }
}

impl Gate {
    /// Whether one more is held.
    fn takes(&mut self) -> bool {
        match &mut self.next {
            _ if !self.holds => false,
            None => true,
            Some(0) => false,
            Some(next) => {
                *next -= 1;
                true
            }
        }
    }
}

/// Counts a look that was held up and is no longer waited for, however its caller left it.
struct GivenUp<'a> {
    arranged: &'a Arranged,
    armed: bool,
}

impl GivenUp<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.arranged
                .looks
                .send_modify(|looks| looks.cancelled += 1);
        }
    }
}

/// The files of this machine, behind what was arranged.
pub(super) struct Files {
    inner: LocalFileSystem,
    world: ExecutionWorld,
    arranged: Arc<Arranged>,
}

impl Files {
    pub(super) fn new(arranged: Arc<Arranged>) -> Self {
        let world = if *lock(&arranged.other_world) {
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

/// The lock, also after a panic of another holder: what is guarded here is whole at any moment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
