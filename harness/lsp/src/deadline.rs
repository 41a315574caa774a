//! A time budget for callers that want one (SEAM-10).

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use dsh_kernel::{Cancel, CancelReason};

/// Does `work` under a cancellation of its own, which is given with
/// [`CancelReason::Timeout`] when `budget` has passed and with `cancel`'s reason when that comes
/// first. The work itself is awaited to its end, so that it decides what a cancellation means.
pub async fn deadline<F: Future>(
    budget: Duration,
    cancel: &Cancel,
    work: impl FnOnce(Cancel) -> F,
) -> F::Output {
    let limited = cancel.child();
    let mut work = pin!(work(limited.clone()));
    #[expect(
        clippy::disallowed_methods,
        reason = "the duration is the budget the caller asked for"
    )]
    let over = tokio::time::sleep(budget);
    tokio::select! {
        biased;
        output = &mut work => return output,
        () = over => limited.cancel(CancelReason::Timeout(budget)),
    };
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_mins(1);

    /// SEAM-10.
    #[tokio::test(start_paused = true)]
    async fn the_budget_cancels_the_work_with_its_own_reason() {
        let caller = Cancel::new();
        let reason = deadline(
            BUDGET,
            &caller,
            |cancel| async move { cancel.cancelled().await },
        );
        assert_eq!(reason.await, CancelReason::Timeout(BUDGET));
        assert!(!caller.is_cancelled());
    }

    /// SEAM-10.
    #[tokio::test(start_paused = true)]
    async fn the_callers_own_reason_passes_unchanged() {
        let caller = Cancel::new();
        let reason = deadline(BUDGET, &caller, |cancel| {
            caller.cancel(CancelReason::Caller);
            async move { cancel.cancelled().await }
        });
        assert_eq!(reason.await, CancelReason::Caller);
    }

    /// SEAM-10.
    #[tokio::test(start_paused = true)]
    async fn work_within_the_budget_is_left_alone() {
        let before = tokio::time::Instant::now();
        let caller = Cancel::new();
        let cancelled = deadline(
            BUDGET,
            &caller,
            |cancel| async move { cancel.is_cancelled() },
        );
        assert!(!cancelled.await);
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
