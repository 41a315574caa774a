//! What one server may take: time and memory. What takes more is ended, and its run says so.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use dsh_e2e::Warden;
use dsh_e2e::memory::ProcessTable;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::subprocess::Subprocess;
use dsh_reports::{Conclusion, Run};
use dsh_transcript::monotonic_us;
use tokio_util::sync::CancellationToken;

use crate::signals::Interruption;

/// How long an installation may take: the longest is a build from source.
const INSTALLATION: Duration = Duration::from_hours(1);

/// The bounds of one check, and what is to be ended when one is crossed.
pub(in crate::commands::check) struct Limit {
    pub(in crate::commands::check) warden: Arc<Warden>,
    /// Ends the check in order.
    pub(in crate::commands::check) cancel: Cancel,
    /// The same, for those that know no reasons.
    pub(in crate::commands::check) token: CancellationToken,
    /// Given when the processes have to go at once.
    kill: CancellationToken,
    /// In bytes.
    memory: u64,
    time: Duration,
    /// Since when what runs now runs, and how long it may.
    since: Mutex<(u64, Duration)>,
    crossed: OnceLock<String>,
}

impl Limit {
    pub(in crate::commands::check) fn new(
        subprocess: Arc<dyn Subprocess>,
        interruption: &Interruption,
        memory: u64,
        time: Duration,
    ) -> Self {
        Self {
            warden: Arc::new(Warden::new(subprocess)),
            cancel: interruption.cancel.child(),
            token: interruption.token.child_token(),
            kill: CancellationToken::new(),
            memory,
            time,
            since: Mutex::new((monotonic_us(), INSTALLATION)),
            crossed: OnceLock::new(),
        }
    }

    /// The server is there, and is started now.
    pub(in crate::commands::check) fn begin(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = (monotonic_us(), self.time);
    }

    /// Looks at what the server takes, ends it if that is too much, and gives the memory it holds,
    /// in bytes.
    pub(in crate::commands::check) fn look(&self, table: &ProcessTable) -> u64 {
        let resident = self.warden.resident(table);
        let (since, time) = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = Duration::from_micros(monotonic_us().saturating_sub(since));
        if resident > self.memory {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            self.cross(format!(
                "ended for its memory: it held {} MiB, and {} MiB is the most a server may hold; \
                 --server-memory allows more",
                mib(resident),
                mib(self.memory)
            ));
            self.kill.cancel();
        } else if elapsed > time {
            self.cross(format!(
                "ended for its time: it came to no end within {} s; --server-time allows more",
                time.as_secs_f64()
            ));
        }
        resident
    }

    fn cross(&self, why: String) {
        if self.crossed.set(why).is_ok() {
            self.cancel.cancel(CancelReason::Caller);
            self.token.cancel();
        }
    }

    /// Which bound was crossed, in a sentence.
    pub(in crate::commands::check) fn crossed(&self) -> Option<&str> {
        self.crossed.get().map(String::as_str)
    }

    /// Kills the processes when they have to go at once; never ends by itself.
    pub(in crate::commands::check) async fn enforce(&self) -> std::convert::Infallible {
        self.kill.cancelled().await;
        self.warden.close(self.crossed().unwrap_or_default()).await;
        std::future::pending().await
    }

    /// Says in the run that it was cut, and by what: nothing can be concluded from it.
    pub(in crate::commands::check) fn told(&self, run: &mut Run) {
        if let Some(why) = self.crossed() {
            run.conclusion = Conclusion::Untestable {
                reason: why.to_owned(),
                musts: Vec::new(),
            };
            run.remarks
                .push("What was seen until then is judged; the rest is not known.".to_owned());
        }
    }
}
