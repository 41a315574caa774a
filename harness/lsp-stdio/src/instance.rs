//! One running process: moves bytes between its pipes and its [`Machine`].
//!
//! An instance is driven by whoever polls it, from one task; it spawns none. Each poll writes what
//! can be written, reads what can be read, and looks at the signs of death and at the one timer,
//! so that a server whose stdin is blocked is still read, and the other way round (SRQ-1).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dsh_lsp::{LspError, Operation};
use dsh_subprocess::{ChildIo, ChildProcess, ProcessControl};
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::Sleep;

use crate::failure::Scene;
use crate::machine::{Machine, Policy, Timer};

/// How long the stderr of a dead process may take to be read to its end. Only a helper that holds
/// it open makes this last.
const STDERR_LIMIT: Duration = Duration::from_millis(100);

pub(crate) struct Instance {
    pub(crate) machine: Machine,
    /// `None` once it was closed.
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    unflushed: bool,
    /// `None` once it has ended.
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Whether output that the machine has no use for is read and dropped.
    draining: bool,
    pub(super) control: Arc<dyn ProcessControl>,
    exit: Option<BoxFuture<'static, ()>>,
    input_closed: Option<BoxFuture<'static, ()>>,
    timer: Option<(Timer, Pin<Box<Sleep>>)>,
}

impl Instance {
    /// Takes a process that was just started.
    pub(crate) fn new(process: ChildProcess, policy: Arc<Policy>) -> Self {
        let ChildProcess {
            io: ChildIo { stdin, stdout },
            control,
        } = process;
        let (leader, reader) = (Arc::clone(&control), Arc::clone(&control));
        Self {
            machine: Machine::new(policy),
            stdin: Some(stdin),
            unflushed: false,
            stdout: Some(stdout),
            draining: false,
            exit: Some(Box::pin(async move {
                leader.wait().await;
            })),
            input_closed: Some(Box::pin(async move { reader.stdin_closed().await })),
            control,
            timer: None,
        }
    }

    /// Moves bytes until `check` has an outcome. `check` is asked whenever something may have
    /// changed.
    pub(crate) async fn until<T>(
        &mut self,
        mut check: impl FnMut(&mut Machine, &mut Context<'_>) -> Option<T>,
    ) -> T {
        poll_fn(|cx| {
            self.poll(cx);
            check(&mut self.machine, cx).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Moves what can be moved now, without waiting.
    pub(crate) async fn turn(&mut self) {
        self.until(|_, _| Some(())).await;
    }

    /// Moves bytes as far as possible and arranges to be woken when more is.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        loop {
            let wrote = self.poll_write(cx);
            let read = self.poll_read(cx);
            if !wrote && !read {
                break;
            }
        }
        self.poll_signs(cx);
        self.poll_timer(cx);
    }

    /// Whether something was written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stdin) = &mut self.stdin else {
            return false;
        };
        let pending = self.machine.pending();
        if pending.is_empty() {
            if self.unflushed {
                self.unflushed = Pin::new(stdin).poll_flush(cx).is_pending();
            }
            return false;
        }
        match Pin::new(stdin).poll_write(cx, pending) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => self
                .machine
                .input_closed(Some("nothing was taken".to_owned())),
            Poll::Ready(Ok(count)) => {
                self.machine.wrote(count);
                self.unflushed = true;
            }
            Poll::Ready(Err(error)) => self.machine.input_closed(Some(error.to_string())),
        }
        true
    }

    /// Whether something was read.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stdout) = &mut self.stdout else {
            return false;
        };
        let wanted = self.machine.wants_input();
        let mut dropped = Vec::new();
        let into = match (wanted, self.draining) {
            (true, _) => self.machine.room(),
            (false, true) => {
                dropped.reserve(4096);
                &mut dropped
            }
            (false, false) => return false,
        };
        match pin!(stdout.read_buf(into)).poll(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0) | Err(_)) => {
                self.stdout = None;
                self.machine.output_closed();
            }
            Poll::Ready(Ok(_)) if wanted => self.machine.received(),
            Poll::Ready(Ok(_)) => {}
        }
        true
    }

    fn poll_signs(&mut self, cx: &mut Context<'_>) {
        if poll_once(&mut self.exit, cx) {
            self.machine.exited();
        }
        if self.stdin.is_some() && poll_once(&mut self.input_closed, cx) {
            self.machine.input_closed(None);
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) {
        while let Some(wanted) = self.machine.timer() {
            if self
                .timer
                .as_ref()
                .is_none_or(|(timer, _)| *timer != wanted)
            {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the durations are the contract's: the grace, and a bound on dying"
                )]
                let sleep = tokio::time::sleep(wanted.after);
                self.timer = Some((wanted, Box::pin(sleep)));
            }
            let over = self
                .timer
                .as_mut()
                .is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
            if !over {
                return;
            }
            self.timer = None;
            self.machine.timer_fired();
            // What the end of the timer brought about may have to be written.
            while self.poll_write(cx) {}
        }
        self.timer = None;
    }

    /// From now on, output that the machine has no use for is read and dropped, so that a process
    /// that is to end is not held up by a full pipe.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Closes the process's stdin; nothing more is written.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
        self.input_closed = None;
    }

    /// The error of the query that this failed instance was serving, with everything that is known
    /// about the end of its process.
    pub(crate) async fn autopsy(
        &mut self,
        id: &str,
        command: &str,
        operation: Operation,
    ) -> LspError {
        let exit = self.control.exited();
        if exit.is_some() {
            self.control.stderr_drained(STDERR_LIMIT).await;
        }
        let stderr = self.control.stderr_tail();
        let Some(failure) = self.machine.failure() else {
            return LspError::ServerExited(format!("language server {id:?} was ended"));
        };
        let partial = self.machine.partial();
        let initialized = self.machine.was_initialized();
        Scene {
            id,
            command,
            operation,
            initialized,
            exit,
            stderr: &stderr,
            partial,
        }
        .error(failure)
    }
}

/// Polls a future that is polled until it ends and not after; whether it ended now.
fn poll_once(slot: &mut Option<BoxFuture<'static, ()>>, cx: &mut Context<'_>) -> bool {
    let ended = slot
        .as_mut()
        .is_some_and(|future| future.as_mut().poll(cx).is_ready());
    if ended {
        *slot = None;
    }
    ended
}
