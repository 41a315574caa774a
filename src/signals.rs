//! Ctrl-C, SIGTERM, and a terminal that goes away.
//!
//! The first ends the work in order: servers are shut down, what was seen so far is reported. The
//! second ends it at once: processes are killed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dsh_harness::kernel::{Cancel, CancelReason};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::limits;
use crate::output::complain;

/// How the work is ended from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption {
    /// Ends it in order.
    pub(crate) cancel: Cancel,
    /// The same, for those that know no reasons.
    pub(crate) token: CancellationToken,
    /// Ends it at once.
    pub(crate) stop: CancellationToken,
    exit: Arc<OnceLock<Exit>>,
}

impl Interruption {
    /// The status to leave with, if there was an interruption.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.get().copied()
    }

    /// Waits for signals and passes them on; never ends by itself.
    async fn listen(&self) -> std::convert::Infallible {
        let mut signals = match Signals::new() {
            Ok(signals) => signals,
            Err(error) => {
                complain(&format!("warning: signals are not caught: {error}"));
                return std::future::pending().await;
            }
        };
        let first = signals.next().await;
        let _ = self.exit.set(first);
        complain("ending the servers; interrupt again to kill them");
        self.cancel.cancel(CancelReason::Caller);
        self.token.cancel();
        signals.next().await;
        self.stop.cancel();
        loop {
            signals.next().await;
        }
    }
}

/// Runs `work` on a new runtime and listens for signals meanwhile. The status of an interruption
/// counts more than what the work came to.
pub(crate) fn interruptible<F>(work: impl FnOnce(Interruption) -> F) -> Exit
where
    F: Future<Output = Exit>,
{
    on_runtime(&mut Builder::new_multi_thread(), work, |_| {})
}

/// The same for work that does so many things at a time: where one is done, threads that hand each
/// step of it to one another take longer than the step.
pub(crate) fn interruptible_on<F>(threads: usize, work: impl FnOnce(Interruption) -> F) -> Exit
where
    F: Future<Output = Exit>,
{
    let mut builder = Builder::new_multi_thread();
    on_runtime(builder.worker_threads(threads.max(1)), work, |_| {})
}

/// The same for work that reads stdin. A read that blocks is not waited for: there is no way to end
/// it.
pub(crate) fn interruptible_reader<F>(work: impl FnOnce(Interruption) -> F) -> Exit
where
    F: Future<Output = Exit>,
{
    let builder = &mut Builder::new_multi_thread();
    on_runtime(builder, work, Runtime::shutdown_background)
}

fn on_runtime<F>(
    builder: &mut Builder,
    work: impl FnOnce(Interruption) -> F,
    shut_down: impl FnOnce(Runtime),
) -> Exit
where
    F: Future<Output = Exit>,
{
    if let Err(message) = limits::suffice() {
        complain(&format!("error: {message}"));
        return Exit::NotCarriedOut;
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("error: no threads can be started: {error}"));
            return Exit::NotCarriedOut;
        }
    };
    let exit = runtime.block_on(async {
        let interruption = Interruption::default();
        let exit = tokio::select! {
            biased;
            never = interruption.listen() => match never {},
            exit = work(interruption.clone()) => exit,
        };
        // The work may have ended because of it before the signal was heard here.
        interruption.exit().or_else(asked).unwrap_or(exit)
    });
    shut_down(runtime);
    exit
}

/// The status of the signal that came last, as a number; none yet is 0.
static LAST: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Whether a signal has asked this program to end, heard or not: the status to leave with. For those
/// who block, and keep signals from being heard.
pub(crate) fn asked() -> Option<Exit> {
    let last = LAST.get()?.load(Ordering::Relaxed);
    let known = [Exit::Interrupted, Exit::Terminated, Exit::HungUp];
    known
        .into_iter()
        .find(|exit| usize::from(exit.code()) == last)
}

#[cfg(unix)]
fn note(signal: i32, exit: Exit) -> std::io::Result<()> {
    let last = LAST.get_or_init(Arc::default);
    signal_hook::flag::register_usize(signal, Arc::clone(last), exit.code().into())?;
    Ok(())
}

/// The signals that end this program.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// The terminal went away; none where that is ignored, as under `nohup`.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Catches them from now on.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        note(signal_hook::consts::SIGINT, Exit::Interrupted)?;
        note(signal_hook::consts::SIGTERM, Exit::Terminated)?;
        if !hangup_is_ignored() {
            note(signal_hook::consts::SIGHUP, Exit::HungUp)?;
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if hangup_is_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    /// Waits for one, and gives the status to leave with.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            Some(()) = hung_up(&mut self.hangup) => Exit::HungUp,
        }
    }
}

#[cfg(unix)]
async fn hung_up(hangup: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match hangup {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this process was started to outlive its terminal. Where the system does not tell, it
/// was not.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// The signals that end this program.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Catches them from now on.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    /// Waits for one, and gives the status to leave with.
    pub(crate) async fn next(&mut self) -> Exit {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            Err(_) => std::future::pending().await,
        }
    }
}
