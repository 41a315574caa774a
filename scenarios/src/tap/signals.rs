//! Signals as something that becomes readable.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::{SigId, flag, low_level};

/// Those that are passed on.
const PASSED: [i32; 8] = [
    SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH,
];

/// See the [module](self). Dropping it stops the catching.
#[derive(Debug)]
pub(super) struct Signals {
    stream: UnixStream,
    came: Vec<(i32, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
}

impl Signals {
    /// Catches from now on.
    pub(super) fn catch() -> io::Result<Self> {
        let (stream, writer) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let mut came = Vec::new();
        let mut registered = Vec::new();
        for signal in PASSED {
            let flag = Arc::new(AtomicBool::new(false));
            // The flag first: whoever is woken finds it.
            registered.push(flag::register(signal, Arc::clone(&flag))?);
            came.push((signal, flag));
        }
        for signal in PASSED.into_iter().chain([SIGCHLD]) {
            registered.push(low_level::pipe::register(signal, writer.try_clone()?)?);
        }
        Ok(Self {
            stream,
            came,
            registered,
        })
    }

    /// Readable when a signal came, or a child ended.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The signals that came since the last call; several of one kind count as one.
    pub(super) fn take(&mut self) -> Vec<i32> {
        let mut buffer = [0; 64];
        while self.stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        self.came
            .iter()
            .filter(|(_, flag)| flag.swap(false, Ordering::SeqCst))
            .map(|(signal, _)| *signal)
            .collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}
