//! The threads that scripts run on: each is owned, and joined when its script has ended, or when the
//! plugin is unloaded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

/// What the interpreter's own frames need beside the stack of a script.
const SPARE_STACK: usize = 1 << 20;

/// The most scripts that were given up and run on all the same, in the middle of a built-in function
/// that nothing interrupts. Each of them keeps a processor busy.
const MOST_STUCK: usize = 4;

/// All threads that have not been joined.
#[derive(Clone, Default)]
pub(crate) struct Custody(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    threads: Vec<Thread>,
    /// Set when the plugin is unloaded: no new ones.
    closed: bool,
}

struct Thread {
    handle: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    /// Ends with an error when the thread drops the other side, its last act.
    running: watch::Receiver<()>,
}

impl Thread {
    /// Joins a thread that has done its last act, or will do it soon.
    fn join(self) {
        if self.handle.join().is_err() {
            tracing::error!("the thread of a script panicked");
        }
    }

    fn has_ended(&self) -> bool {
        self.running.has_changed().is_err()
    }

    /// Whether it was given up and runs on.
    fn is_stuck(&self) -> bool {
        self.stop.load(Ordering::Relaxed) && !self.has_ended()
    }
}

impl Custody {
    /// Starts a thread. Threads that have ended meanwhile are joined. There is none while too many
    /// others do not end.
    pub(crate) fn start(
        &self,
        stack: usize,
        stop: Arc<AtomicBool>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), String> {
        self.sweep();
        let mut state = self.state();
        if state.closed {
            return Err("the plugin is being unloaded".to_owned());
        }
        let given_up = state.threads.iter().filter(|thread| thread.is_stuck());
        if given_up.count() >= MOST_STUCK {
            return Err(format!(
                "{MOST_STUCK} scripts that were given up are still in the middle of a built-in \
                 function, and no other is started beside them; do without scripts, or try again \
                 once one of them has ended"
            ));
        }
        let (alive, running) = watch::channel(());
        let handle = Builder::new()
            .name("run_code".to_owned())
            .stack_size(stack + SPARE_STACK)
            .spawn(move || {
                let _alive = alive;
                work();
            })
            .map_err(|error| format!("no thread could be started for the script: {error}"))?;
        state.threads.push(Thread {
            handle,
            stop,
            running,
        });
        Ok(())
    }

    /// Joins the threads that have ended.
    pub(crate) fn sweep(&self) {
        let ended: Vec<Thread> = {
            let mut state = self.state();
            let (ended, running) = std::mem::take(&mut state.threads)
                .into_iter()
                .partition(Thread::has_ended);
            state.threads = running;
            ended
        };
        ended.into_iter().for_each(Thread::join);
    }

    /// How many threads have not been joined.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.state().threads.len()
    }

    /// Waits until every thread that is to end has ended, and joins it.
    #[cfg(test)]
    pub(crate) async fn settled(&self) {
        let running: Vec<_> = {
            let state = self.state();
            state
                .threads
                .iter()
                .map(|thread| thread.running.clone())
                .collect()
        };
        for mut running in running {
            let _ = running.changed().await;
        }
        self.sweep();
    }

    /// Stops all threads and joins them; takes no new ones. A script that does not end within
    /// `patience`, in the middle of a built-in function that runs on and on, is told of.
    pub(crate) async fn close(&self, patience: Duration) -> Result<(), usize> {
        let threads = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        for thread in &threads {
            thread.stop.store(true, Ordering::Relaxed);
        }
        // One moment for all of them: patience does not grow with their number.
        let until = tokio::time::Instant::now() + patience;
        let mut stuck = 0;
        for mut thread in threads {
            let ended = thread.running.changed();
            match tokio::time::timeout_at(until, ended).await {
                Ok(_) => thread.join(),
                Err(_) => stuck += 1,
            }
        }
        if stuck == 0 { Ok(()) } else { Err(stuck) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A list of threads is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
