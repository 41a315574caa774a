//! The subprocess service of processes that a test plays.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use dsh_kernel::{Cancel, ExecutionWorld};
use dsh_subprocess::{ChildIo, ChildProcess, ResolveError, SpawnError, SpawnSpec, Subprocess};
use tokio::io::{AsyncRead, DuplexStream, ReadBuf};
use tokio::sync::{Notify, Semaphore};

use super::control::{Control, State};
use super::patiently;
use super::server::Server;

/// Processes that are played by the test.
pub(crate) struct FakeProcesses {
    world: ExecutionWorld,
    state: Mutex<Processes>,
    spawned: Notify,
    pub(crate) resolving: Notify,
    /// One permit for each executable that may be found.
    resolutions: Semaphore,
}

struct Processes {
    started: VecDeque<Server>,
    specs: Vec<SpawnSpec>,
    controls: Vec<Arc<State>>,
    pipe: usize,
    missing: Vec<String>,
    refusals: usize,
    late: bool,
}

impl FakeProcesses {
    pub(crate) fn new(world: &str) -> Self {
        let state = Processes {
            started: VecDeque::new(),
            specs: Vec::new(),
            controls: Vec::new(),
            pipe: 64 * 1024,
            missing: Vec::new(),
            refusals: 0,
            late: false,
        };
        Self {
            world: ExecutionWorld::named(world),
            state: Mutex::new(state),
            spawned: Notify::new(),
            resolving: Notify::new(),
            resolutions: Semaphore::new(Semaphore::MAX_PERMITS),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Processes> {
        self.state.lock().expect("no test panics with the lock")
    }

    /// Pipes hold this many bytes from now on.
    pub(crate) fn pipes_of(&self, bytes: usize) {
        self.lock().pipe = bytes;
    }

    /// What processes write is seen one look later than it is there, as with a pipe that the
    /// runtime has not looked at yet.
    pub(crate) fn read_late(&self) {
        self.lock().late = true;
    }

    /// The next process cannot be started.
    pub(crate) fn refuse_once(&self) {
        self.lock().refusals += 1;
    }

    pub(crate) fn forget_command(&self, command: &str) {
        self.lock().missing.push(command.to_owned());
    }

    pub(crate) fn hold_resolutions(&self) {
        self.resolutions.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn started(&self) -> usize {
        self.lock().specs.len()
    }

    pub(crate) fn spec(&self, index: usize) -> SpawnSpec {
        self.lock().specs[index].clone()
    }

    /// How many processes have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.lock()
            .controls
            .iter()
            .filter(|state| state.is_alive())
            .count()
    }

    /// The next process that was started, and not taken yet.
    pub(crate) async fn next(&self) -> Server {
        loop {
            let spawned = self.spawned.notified();
            if let Some(server) = self.lock().started.pop_front() {
                return server;
            }
            patiently("a process", spawned).await;
        }
    }
}

#[async_trait]
impl Subprocess for FakeProcesses {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn resolve_executable(
        &self,
        command: &str,
        _: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        self.resolving.notify_one();
        let cancelled = || ResolveError::Cancelled {
            command: command.to_owned(),
        };
        tokio::select! {
            biased;
            permit = self.resolutions.acquire() => permit.expect("never closed").forget(),
            _ = cancel.cancelled() => return Err(cancelled()),
        }
        if self.lock().missing.contains(&command.to_owned()) {
            let searched = "on the PATH".to_owned();
            return Err(ResolveError::Missing {
                command: command.to_owned(),
                searched,
            });
        }
        Ok(PathBuf::from(format!("/bin/{command}")))
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let mut processes = self.lock();
        if processes.refusals > 0 {
            processes.refusals -= 1;
            let SpawnSpec {
                executable, cwd, ..
            } = spec;
            return Err(SpawnError {
                executable,
                cwd,
                reason: "out of processes".to_owned(),
            });
        }
        let (stdin, their_stdin) = tokio::io::duplex(processes.pipe);
        let (stdout, their_stdout) = tokio::io::duplex(processes.pipe);
        let pid = u32::try_from(processes.specs.len()).expect("few") + 100;
        let state = Arc::new(State::new(pid));
        processes.specs.push(spec);
        processes.controls.push(Arc::clone(&state));
        let server = Server::new(their_stdin, their_stdout, Arc::clone(&state));
        processes.started.push_back(server);
        let stdout = Late {
            inner: stdout,
            lags: processes.late,
            seen: Vec::new(),
        };
        drop(processes);
        self.spawned.notify_one();
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
            },
            control: Arc::new(Control::new(state)),
        })
    }
}

/// A pipe's reading end that may lag one look behind.
struct Late {
    inner: DuplexStream,
    lags: bool,
    seen: Vec<u8>,
}

impl AsyncRead for Late {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.lags {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        if !self.seen.is_empty() {
            let seen = std::mem::take(&mut self.seen);
            buf.put_slice(&seen);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if buf.filled().len() == before {
            return Poll::Ready(Ok(()));
        }
        self.seen = buf.filled()[before..].to_vec();
        buf.set_filled(before);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
