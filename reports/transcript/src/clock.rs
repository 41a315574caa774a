//! The clock that stamps events.

/// Microseconds of the system's monotonic clock.
///
/// On Unix the value is comparable between the processes of one machine, so that an event stamped
/// in a server can be placed among those stamped by the runner. Elsewhere it counts from the first
/// use in this process.
#[cfg(unix)]
pub fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000 + nanos / 1_000
}

/// Microseconds of the system's monotonic clock, counted from the first use in this process.
#[cfg(not(unix))]
pub fn monotonic_us() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
