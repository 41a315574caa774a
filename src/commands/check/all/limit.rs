//! What one server may take: time and memory. What takes more is ended, and its run says so.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use dsh_e2e::Warden;
use dsh_e2e::memory::ProcessTable;
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::subprocess::Subprocess;
use dsh_reports::{Case, Conclusion, Run, Verdict};
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
    /// Which bound was crossed, and when.
    crossed: OnceLock<(String, u64)>,
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
    /// in bytes. With a table, new processes of it are found.
    pub(in crate::commands::check) fn look(&self, table: Option<&ProcessTable>) -> u64 {
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
        if self.crossed.set((why, monotonic_us())).is_ok() {
            self.cancel.cancel(CancelReason::Caller);
            self.token.cancel();
        }
    }

    /// Which bound was crossed, in a sentence.
    pub(in crate::commands::check) fn crossed(&self) -> Option<&str> {
        self.crossed.get().map(|(why, _)| why.as_str())
    }

    /// Kills the processes when they have to go at once; never ends by itself.
    pub(in crate::commands::check) async fn enforce(&self) -> std::convert::Infallible {
        self.kill.cancelled().await;
        self.warden.close(self.crossed().unwrap_or_default()).await;
        std::future::pending().await
    }

    /// Says in the run that it was cut, and by what. A MUST that had failed by then has failed;
    /// from anything else nothing can be concluded.
    pub(in crate::commands::check) fn told(&self, run: &mut Run) {
        let Some((why, at_us)) = self.crossed.get() else {
            return;
        };
        // What passed since is taken from the end of the recording, whose clock is its own: that is
        // a moment too much, and so nothing that the cut itself has caused counts.
        let since_us = monotonic_us().saturating_sub(*at_us);
        cut(run, why, run.duration_us.saturating_sub(since_us));
    }
}

/// Concludes from a run that was cut at a moment of its recording.
fn cut(run: &mut Run, why: &str, at_us: u64) {
    let rest = "What was seen until then is judged; the rest is not known.";
    let musts = failed_before(run, at_us);
    if musts.is_empty() {
        run.conclusion = Conclusion::Untestable {
            reason: why.to_owned(),
            musts,
        };
        run.remarks.push(rest.to_owned());
    } else {
        run.conclusion = Conclusion::NotQualified { musts };
        run.remarks.push(format!("It was {why}. {rest}"));
    }
}

/// The MUSTs that had failed before a moment of the recording: what decided had happened, and what
/// did not come had its whole budget.
fn failed_before(run: &Run, at_us: u64) -> Vec<String> {
    let Conclusion::NotQualified { musts } = &run.conclusion else {
        return Vec::new();
    };
    let budget_us = run.budget_ms.unwrap_or(0).saturating_mul(1000);
    let before = |case: &Case| {
        let needed = match case.verdict {
            Verdict::Fail | Verdict::Crash => 0,
            Verdict::Timeout => budget_us,
            _ => return false,
        };
        let mut decisive = case.evidence.iter().filter(|event| event.decisive);
        decisive.any(|event| event.at_us.saturating_add(needed) < at_us)
    };
    let failed = |must: &&String| {
        let mut cases = run.cases.iter();
        cases.any(|case| case.clauses.contains(must) && before(case))
    };
    musts.iter().filter(failed).cloned().collect()
}

#[cfg(test)]
mod tests {
    use dsh_reports::{Evidence, Level, Subject, SubjectKind};

    use super::*;

    fn case(clause: &str, verdict: Verdict, at_us: u64) -> Case {
        let mut case = Case::new(clause, Level::Must, "answers", verdict, "x");
        case.clauses = vec![clause.to_owned()];
        case.evidence = vec![Evidence {
            seq: 1,
            at_us,
            text: String::new(),
            decisive: true,
        }];
        case
    }

    #[track_caller]
    fn concluded(cases: Vec<Case>) -> (Conclusion, String) {
        let mut run = Run::new(Subject::named(SubjectKind::Server, "x"));
        run.budget_ms = Some(10_000);
        run.conclusion = Conclusion::NotQualified {
            musts: cases.iter().map(|case| case.clauses[0].clone()).collect(),
        };
        run.cases = cases;
        cut(&mut run, "ended for its time", 30_000_000);
        (run.conclusion, run.remarks.join(" "))
    }

    #[test]
    fn what_had_failed_before_the_cut_has_failed_and_what_the_cut_caused_has_not() {
        let early = [
            case("QUA-6", Verdict::Fail, 1_000_000),
            case("QUA-4", Verdict::Timeout, 19_000_000),
            case("QUA-7", Verdict::Crash, 29_000_000),
        ];
        let late = [
            case("QUA-8", Verdict::Fail, 31_000_000),
            case("QUA-5", Verdict::Timeout, 21_000_000),
            case("QUA-1", Verdict::Crash, 30_000_001),
        ];
        let (conclusion, remarks) = concluded(early.into_iter().chain(late.clone()).collect());
        let musts = ["QUA-6", "QUA-4", "QUA-7"].map(str::to_owned).to_vec();
        assert_eq!(conclusion, Conclusion::NotQualified { musts });
        assert!(
            remarks.starts_with("It was ended for its time. "),
            "{remarks}"
        );
        let (conclusion, remarks) = concluded(late.to_vec());
        let reason = "ended for its time".to_owned();
        let musts = Vec::new();
        assert_eq!(conclusion, Conclusion::Untestable { reason, musts });
        assert!(remarks.contains("the rest is not known"), "{remarks}");
    }
}
