//! When a process is gone: not when its end of the channel is closed, which is a little earlier.

#[cfg(target_os = "linux")]
use std::{io, os::fd::OwnedFd, sync::Arc};

#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};

/// How a process is known to be gone. Without a means to know, its closed channel has to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Gone {
    #[cfg(target_os = "linux")]
    pidfd: Option<Arc<OwnedFd>>,
}

impl Gone {
    /// Of a process that is there.
    #[cfg(target_os = "linux")]
    pub(super) fn of(pid: u32) -> Self {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self {
            pidfd: pidfd.map(Arc::new),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_pid: u32) -> Self {
        Self::default()
    }

    /// Whether it is gone.
    #[cfg(target_os = "linux")]
    pub(super) fn now(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(pidfd) = &self.pidfd else {
            return true;
        };
        let mut asked = [PollFd::new(&**pidfd, PollFlags::IN)];
        // One that cannot be asked about is not waited for.
        poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn now(&self) -> bool {
        true
    }

    /// Waits until it is gone, where that can be waited for.
    #[cfg(target_os = "linux")]
    pub(super) async fn wait(&self) {
        if self.now() {
            return;
        }
        if let Some(pidfd) = &self.pidfd
            && let Ok(watched) = watch(Arc::clone(pidfd))
        {
            let _ = watched.readable().await;
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) async fn wait(&self) {}
}

#[cfg(target_os = "linux")]
fn watch(pidfd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; this one owns it"
    )]
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}
