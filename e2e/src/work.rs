//! How much of a check's time is the tool's own work.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_transcript::monotonic_us;

/// The processor time that all measured work of this process has taken in its own tasks, in
/// nanoseconds.
static MEASURED_NS: AtomicU64 = AtomicU64::new(0);

/// What a piece of work took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// From its beginning to its end, in microseconds.
    pub wall_us: u64,
    /// The part of it that was no waiting, in microseconds: the processor time that the work's own
    /// task took, and that the rest of this program took meanwhile; what a child process takes is
    /// not in it. Where several pieces are measured at the same time, what they share counts for
    /// each, so that it is never less than it was.
    pub busy_us: u64,
}

/// Does the work and measures what it takes.
pub async fn measured<T>(work: impl Future<Output = T>) -> (T, Spent) {
    let mut work = pin!(work);
    let began_us = monotonic_us();
    let rest_before = rest_ns();
    let mut own_ns = 0;
    let done = std::future::poll_fn(|context| {
        let before = thread_ns();
        let polled = work.as_mut().poll(context);
        let ran = thread_ns().saturating_sub(before);
        own_ns += ran;
        MEASURED_NS.fetch_add(ran, Ordering::Relaxed);
        polled
    })
    .await;
    let rest = rest_ns().saturating_sub(rest_before);
    let spent = Spent {
        wall_us: monotonic_us().saturating_sub(began_us),
        busy_us: (own_ns + rest) / 1000,
    };
    (done, spent)
}

/// The processor time of this process that no measured work took in its own task.
fn rest_ns() -> u64 {
    process_ns().saturating_sub(MEASURED_NS.load(Ordering::Relaxed))
}

#[cfg(unix)]
fn process_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(unix)]
fn thread_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ThreadCPUTime)
}

#[cfg(unix)]
fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Where no such clock is at hand, the time counts in which the work's own task ran.
#[cfg(not(unix))]
fn process_ns() -> u64 {
    MEASURED_NS.load(Ordering::Relaxed)
}

#[cfg(not(unix))]
fn thread_ns() -> u64 {
    monotonic_us() * 1000
}
