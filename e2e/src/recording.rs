//! A subprocess service that records what passes between a host and its servers.
//!
//! It stands in for another provider and hands everything on unchanged and at once: every byte
//! that goes through the two protocol pipes is also given to a [`Tap`], and starts, ends and
//! terminations become events. Neither the host nor the server can tell, so what is judged is what
//! was on the wire. A driver that speaks to a server without a host starts its process through the
//! same provider and is recorded alike.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::evidence::{TERMINATE, UNREAD};
use crate::started::Started;
use async_trait::async_trait;
use dsh_harness::kernel::{Cancel, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildExit, ChildIo, ChildProcess, MemberInfo, ProcessControl, ResolveError, SpawnError,
    SpawnSpec, Subprocess, TerminationReport,
};
use dsh_transcript::{Direction, EventBody, Member, Raw, Recorder, Tap, Termination};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long the end of a process waits for the rest of its stderr before the tail is recorded.
const STDERR_REST: Duration = Duration::from_millis(200);

/// Wraps another provider and records what passes through it, bytes unchanged and at once.
pub struct RecordingSubprocess {
    inner: Arc<dyn Subprocess>,
    recorder: Recorder,
    started: AtomicU32,
    /// Every process that may still be running, for [`RecordingSubprocess::end_all`].
    running: Started,
}

impl RecordingSubprocess {
    /// Records into `recorder` what is started through `inner`.
    pub fn new(inner: Arc<dyn Subprocess>, recorder: Recorder) -> Self {
        Self {
            inner,
            recorder,
            started: AtomicU32::new(0),
            running: Started::default(),
        }
    }

    /// The log it writes to.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Kills every process tree that is still there, without a grace, and waits until they are
    /// gone: for an interruption that must not wait, and for a fault of our own.
    pub async fn end_all(&self) {
        self.running.end_all().await;
    }
}

#[async_trait]
impl Subprocess for RecordingSubprocess {
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
        let mut argv = vec![spec.executable.display().to_string()];
        argv.extend(spec.args.iter().cloned());
        let cwd = Some(spec.cwd.display().to_string());
        let child = self.inner.spawn(spec).await?;
        let process = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let pid = child.control.pid();
        self.recorder
            .emit(Some(process), EventBody::ProcessStarted { pid, argv, cwd });
        self.running.remember(&child.control);
        let order = Arc::new(Mutex::new(()));
        let tap = |direction| Tap::new(self.recorder.clone(), process, direction);
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(TappedWrite {
                    inner: child.io.stdin,
                    tap: tap(Direction::ToServer),
                    order: Arc::clone(&order),
                }),
                stdout: Box::new(TappedRead {
                    inner: child.io.stdout,
                    tap: tap(Direction::ToClient),
                    order,
                    recorder: self.recorder.clone(),
                    process,
                    ended: false,
                }),
            },
            control: Arc::new(RecordingControl {
                inner: child.control,
                recorder: self.recorder.clone(),
                process,
                end_noted: AtomicBool::new(false),
            }),
        })
    }
}

/// Held while bytes are handed to the server and recorded, and while bytes from it are recorded,
/// so that an answer never stands before its question in the log. Nothing waits while it is held.
type Order = Arc<Mutex<()>>;

struct TappedWrite {
    inner: Box<dyn AsyncWrite + Send + Unpin>,
    tap: Tap,
    order: Order,
}

impl AsyncWrite for TappedWrite {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let _order = this.order.lock().unwrap_or_else(PoisonError::into_inner);
        let written = ready!(Pin::new(&mut this.inner).poll_write(cx, buf))?;
        this.tap.bytes(&buf[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let _order = this.order.lock().unwrap_or_else(PoisonError::into_inner);
        let written = ready!(Pin::new(&mut this.inner).poll_write_vectored(cx, bufs))?;
        let mut left = written;
        for buf in bufs {
            let taken = left.min(buf.len());
            this.tap.bytes(&buf[..taken]);
            left -= taken;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        self.tap.end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for TappedWrite {
    fn drop(&mut self) {
        self.tap.end();
    }
}

struct TappedRead {
    inner: Box<dyn AsyncRead + Send + Unpin>,
    tap: Tap,
    order: Order,
    recorder: Recorder,
    process: u32,
    /// Whether the stream was read to its end.
    ended: bool,
}

impl AsyncRead for TappedRead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let room = buf.remaining() > 0;
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        let _order = this.order.lock().unwrap_or_else(PoisonError::into_inner);
        let read = &buf.filled()[before..];
        if read.is_empty() && room {
            this.ended = true;
            this.tap.end();
        } else {
            this.tap.bytes(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for TappedRead {
    fn drop(&mut self) {
        if !self.ended {
            self.recorder.emit(
                Some(self.process),
                EventBody::note(UNREAD, "nothing more of its stdout is read"),
            );
        }
        self.tap.end();
    }
}

struct RecordingControl {
    inner: Arc<dyn ProcessControl>,
    recorder: Recorder,
    process: u32,
    end_noted: AtomicBool,
}

impl RecordingControl {
    fn emit(&self, body: EventBody) {
        self.recorder.emit(Some(self.process), body);
    }

    fn note_end(&self, exit: ChildExit) {
        if self.end_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let (code, signal) = match exit {
            ChildExit::Code(code) => (Some(code), None),
            ChildExit::Signal(signal) => (None, Some(signal)),
            ChildExit::Unknown => (None, None),
        };
        self.emit(EventBody::ProcessEnded { code, signal });
    }

    async fn note_stderr(&self) {
        self.inner.stderr_drained(STDERR_REST).await;
        let tail = self.inner.stderr_tail();
        if !tail.is_empty() {
            self.emit(EventBody::Stderr {
                text: Raw::copy(tail.as_bytes()),
            });
        }
    }
}

#[async_trait]
impl ProcessControl for RecordingControl {
    fn pid(&self) -> u32 {
        self.inner.pid()
    }

    async fn wait(&self) -> ChildExit {
        let exit = self.inner.wait().await;
        self.note_end(exit);
        exit
    }

    fn exited(&self) -> Option<ChildExit> {
        let exit = self.inner.exited();
        if let Some(exit) = exit {
            self.note_end(exit);
        }
        exit
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
        let alive = self.inner.wait_tree(limit).await;
        let members = members(&alive);
        self.emit(EventBody::Termination(Termination {
            alive: members,
            ..Termination::default()
        }));
        alive
    }

    async fn terminate_tree(&self, grace: Duration) -> TerminationReport {
        // A leader that ended by itself is noted as such before anything is done to the tree.
        self.exited();
        self.emit(EventBody::note(
            TERMINATE,
            "what is left of the tree is ended",
        ));
        let report = self.inner.terminate_tree(grace).await;
        self.exited();
        self.emit(EventBody::Termination(Termination {
            terminated: members(&report.terminated),
            killed: members(&report.killed),
            escaped: members(&report.escaped),
            alive: Vec::new(),
        }));
        self.note_stderr().await;
        report
    }
}

fn members(infos: &[MemberInfo]) -> Vec<Member> {
    infos
        .iter()
        .map(|info| Member {
            pid: info.pid,
            name: info.name.clone(),
        })
        .collect()
}
