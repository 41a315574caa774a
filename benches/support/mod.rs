//! What benchmarks share.

/// Keeps the process, and those it starts, on one core, so that a ratio compares like with like.
pub(crate) fn pin_to_one_core() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        if let Some(core) = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)) {
            let mut one = CpuSet::new();
            one.set(core);
            if let Err(error) = sched_setaffinity(None, &one) {
                eprintln!("not pinned to one core: {error}");
            }
        }
    }
}
