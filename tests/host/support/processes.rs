//! The subprocess service as the host sees it: this machine's, watched.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::{Cancel, ExecutionWorld};
use dsh_subprocess::{
    ChildExit, ChildIo, ChildProcess, LocalSubprocess, MemberInfo, ProcessControl, ResolveError,
    SpawnError, SpawnSpec, Subprocess, TerminationReport,
};
use dsh_transcript::{EventBody, Recorder};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A process that was started.
#[derive(Clone, Debug)]
pub(crate) struct Spawned {
    pub(crate) spec: SpawnSpec,
    pub(crate) pid: u32,
    /// What ending its tree took, once that is over.
    pub(crate) report: Option<TerminationReport>,
    /// How its leader ended.
    pub(crate) exit: Option<ChildExit>,
}

/// Hands everything on, and keeps what was started and what of it is still held.
pub(crate) struct Processes {
    inner: LocalSubprocess,
    kept: Arc<Kept>,
}

struct Kept {
    recorder: Recorder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    spawned: Vec<Spawned>,
    /// Pipes and controls that were not dropped.
    pipes: usize,
    controls: usize,
    /// The next start fails for this reason.
    fault: Option<String>,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        // Also after a panic: drops must not make it worse.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Processes {
    pub(super) fn new(ambient: BTreeMap<OsString, OsString>, recorder: &Recorder) -> Self {
        let kept = Kept {
            recorder: recorder.clone(),
            state: Mutex::default(),
        };
        Self {
            inner: LocalSubprocess::new(ambient),
            kept: Arc::new(kept),
        }
    }

    /// Makes the next start fail.
    pub(crate) fn fail(&self, reason: &str) {
        self.kept.state().fault = Some(reason.to_owned());
    }

    /// What was started so far, in order.
    pub(crate) fn spawned(&self) -> Vec<Spawned> {
        self.kept.state().spawned.clone()
    }

    /// No pipe and no control of a process is held any more.
    #[track_caller]
    pub(super) fn none_left(&self) {
        let left = {
            let state = self.kept.state();
            (state.pipes, state.controls)
        };
        assert_eq!(left, (0, 0), "pipes and controls that are held");
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
        self.inner.resolve_executable(command, env, cancel).await
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        self.kept
            .recorder
            .emit(None, EventBody::note("spawn", spec.cwd.to_string_lossy()));
        let fault = self.kept.state().fault.take();
        if let Some(reason) = fault {
            return Err(SpawnError {
                executable: spec.executable,
                cwd: spec.cwd,
                reason,
            });
        }
        let ChildProcess { io, control } = self.inner.spawn(spec.clone()).await?;
        let pid = control.pid();
        let place = {
            let mut state = self.kept.state();
            state.pipes += 2;
            state.controls += 1;
            state.spawned.push(Spawned {
                spec,
                pid,
                report: None,
                exit: None,
            });
            state.spawned.len() - 1
        };
        self.kept
            .recorder
            .emit(None, EventBody::note("started", format!("pid {pid}")));
        let pipe = || Pipe(Arc::clone(&self.kept));
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(Watched {
                    inner: io.stdin,
                    _pipe: pipe(),
                }),
                stdout: Box::new(Watched {
                    inner: io.stdout,
                    _pipe: pipe(),
                }),
            },
            control: Arc::new(WatchedControl {
                inner: control,
                kept: Arc::clone(&self.kept),
                place,
            }),
        })
    }
}

/// Counts a pipe for as long as it lives.
struct Pipe(Arc<Kept>);

impl Drop for Pipe {
    fn drop(&mut self) {
        self.0.state().pipes -= 1;
    }
}

struct Watched<T> {
    inner: T,
    _pipe: Pipe,
}

impl AsyncRead for Watched<Box<dyn AsyncRead + Send + Unpin>> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched<Box<dyn AsyncWrite + Send + Unpin>> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

struct WatchedControl {
    inner: Arc<dyn ProcessControl>,
    kept: Arc<Kept>,
    place: usize,
}

#[async_trait]
impl ProcessControl for WatchedControl {
    fn pid(&self) -> u32 {
        self.inner.pid()
    }

    async fn wait(&self) -> ChildExit {
        self.inner.wait().await
    }

    fn exited(&self) -> Option<ChildExit> {
        self.inner.exited()
    }

    async fn stdin_closed(&self) {
        self.inner.stdin_closed().await;
    }

    fn stderr_tail(&self) -> String {
        self.inner.stderr_tail()
    }

    async fn stderr_drained(&self, limit: Duration) {
        self.inner.stderr_drained(limit).await;
    }

    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo> {
        self.inner.wait_tree(limit).await
    }

    async fn terminate_tree(&self, grace: Duration) -> TerminationReport {
        let began = format!("pid {}, grace {} ms", self.pid(), grace.as_millis());
        self.kept
            .recorder
            .emit(None, EventBody::note("terminate", began));
        let report = self.inner.terminate_tree(grace).await;
        self.kept
            .recorder
            .emit(None, EventBody::note("terminated", format!("{report:?}")));
        self.kept.state().spawned[self.place].report = Some(report.clone());
        report
    }
}

impl Drop for WatchedControl {
    fn drop(&mut self) {
        let mut state = self.kept.state();
        state.controls -= 1;
        state.spawned[self.place].exit = self.inner.exited();
    }
}
