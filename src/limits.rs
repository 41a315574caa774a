//! What the system lets this process have.
//!
//! A limit that is too low is told before anything is started, with its name and the way out: met
//! later, it ends the work in the middle, and where memory is refused the process is aborted without
//! a word of ours.

pub(crate) use imp::{large_files_are_errors, suffice};

#[cfg(unix)]
mod imp {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

    /// The fewest files that have to be allowed: a check of one server has 18 open.
    const LEAST_FILES: u64 = 20;
    /// As many files as a run of everything has open, on a machine of many cores.
    const FILES: u64 = 1024;
    /// The least address space that has to be allowed, in bytes: that of the threads counts.
    const LEAST_MEMORY: u64 = 256 << 20;

    /// Makes a write beyond the size that a file may have (`ulimit -f`) an error of that write, as a
    /// full disk is. Otherwise a signal ends the process without a word. Programs that are started
    /// have the signal as ever.
    pub(crate) fn large_files_are_errors() {
        let heard = Arc::new(AtomicBool::new(false));
        // Refused for no signal of this kind; without it, things are as they were.
        let _ = signal_hook::flag::register(Signal::XFSZ.as_raw(), heard);
    }

    /// Raises what may be raised, and says what is too low all the same.
    pub(crate) fn suffice() -> Result<(), String> {
        if let Some(files) = raised(Resource::Nofile, FILES)
            && files < LEAST_FILES
        {
            return Err(format!(
                "this process may have {files} files open, and needs at least {LEAST_FILES}; raise \
                 the limit: `ulimit -n {FILES}`"
            ));
        }
        if let Some(memory) = raised(Resource::As, LEAST_MEMORY)
            && memory < LEAST_MEMORY
        {
            let (has, needs) = (memory >> 20, LEAST_MEMORY >> 20);
            return Err(format!(
                "this process may have {has} MiB of address space, and needs at least {needs} MiB; \
                 raise the limit: `ulimit -v {}`. What a server may take is bounded by \
                 --server-memory",
                LEAST_MEMORY >> 9
            ));
        }
        Ok(())
    }

    /// The limit, raised as far as is allowed where it is below `wanted`; none if there is none.
    fn raised(resource: Resource, wanted: u64) -> Option<u64> {
        let limit = getrlimit(resource);
        let current = limit.current?;
        let most = limit.maximum.map_or(wanted, |most| most.min(wanted));
        if current >= most {
            return Some(current);
        }
        let higher = Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        };
        match setrlimit(resource, higher) {
            Ok(()) => Some(most),
            Err(_) => Some(current),
        }
    }
}

#[cfg(not(unix))]
mod imp {
    pub(crate) const fn large_files_are_errors() {}

    pub(crate) const fn suffice() -> Result<(), String> {
        Ok(())
    }
}
