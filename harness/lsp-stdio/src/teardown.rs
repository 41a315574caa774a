//! How an instance ends: gracefully (DIS-2), or by force alone (CRS-5).

use std::time::Duration;

use dsh_subprocess::TerminationReport;
use tokio::time::{Instant, timeout_at};

use crate::instance::Instance;

/// How long a process that was told to exit may take to end by itself before its stdin is closed.
const BY_ITSELF: Duration = Duration::from_millis(500);

/// The two bounds of an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// `shutdownTimeoutMs`: of everything that is graceful.
    pub(crate) shutdown: Duration,
    /// `killGraceMs`: between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
}

impl Instance {
    /// The graceful end: what is in flight is cancelled and closed, `shutdown` is asked and `exit`
    /// said, stdin is closed if that does not end it, and all of that within one budget. Whoever is
    /// left then, helpers too, is ended by force.
    ///
    /// A process that is not ready to be asked, and one that has failed, is ended by force at once.
    pub(crate) async fn leave(mut self, bounds: Bounds) -> TerminationReport {
        let deadline = Instant::now() + bounds.shutdown;
        self.drain();
        if self.prepare(deadline, bounds).await {
            self.say_goodbye(deadline).await;
            let rest = deadline.saturating_duration_since(Instant::now());
            if self.machine.has_exited() && !rest.is_zero() {
                self.wait_tree(rest).await;
            }
        }
        self.terminate(bounds.grace).await
    }

    /// The end of an instance that is of no further use: no word is said any more (CRS-5).
    pub(crate) async fn discard(mut self, bounds: Bounds) -> TerminationReport {
        self.drain();
        self.terminate(bounds.grace).await
    }

    /// Brings the machine to where it can be shut down; whether that worked.
    async fn prepare(&mut self, deadline: Instant, bounds: Bounds) -> bool {
        if !self.machine.is_serving() {
            return false;
        }
        self.machine.leave(bounds.shutdown / 2);
        let free = self
            .until(|machine, _| (machine.is_free() || machine.failure().is_some()).then_some(()));
        timeout_at(deadline, free).await.is_ok()
            && self.machine.is_serving()
            && !self.machine.is_dying()
    }

    async fn say_goodbye(&mut self, deadline: Instant) {
        self.machine.shutdown();
        let said = self.until(|machine, _| machine.has_said_exit().then_some(()));
        if timeout_at(deadline, said).await.is_err() {
            self.machine.shutdown_expired();
            self.turn().await;
        }
        let by_itself = deadline.min(Instant::now() + BY_ITSELF);
        if !self.exits_before(by_itself).await {
            self.close_stdin();
            self.exits_before(deadline).await;
        }
    }

    async fn exits_before(&mut self, deadline: Instant) -> bool {
        let exited = self.until(|machine, _| machine.has_exited().then_some(()));
        timeout_at(deadline, exited).await.is_ok()
    }

    /// Waits for helpers, unsignalled.
    async fn wait_tree(&mut self, limit: Duration) {
        let control = std::sync::Arc::clone(&self.control);
        tokio::select! {
            _ = control.wait_tree(limit) => {}
            never = self.until(|_, _| None::<std::convert::Infallible>) => match never {},
        }
    }

    /// Ends the whole tree, reading what it still writes.
    async fn terminate(mut self, grace: Duration) -> TerminationReport {
        let control = std::sync::Arc::clone(&self.control);
        tokio::select! {
            report = control.terminate_tree(grace) => report,
            never = self.until(|_, _| None::<std::convert::Infallible>) => match never {},
        }
    }
}
