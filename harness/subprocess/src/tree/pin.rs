//! Processes held by descriptor, so that a signal reaches the one that was meant or none (ENV-6).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::PAUSE;
use super::table::{self, Identity, Process};
use crate::service::MemberInfo;

/// A process that cannot be mistaken for a later one of the same pid.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) process: Process,
    descriptor: OwnedFd,
}

impl Pinned {
    /// Pins a process of the table; `None` if it has ended since.
    ///
    /// The table is looked at again once the descriptor is there: a start that differs means that
    /// the pid was used again in between, and that the descriptor is of a stranger.
    pub(super) fn take(process: &Process) -> io::Result<Option<Self>> {
        let Some(pid) = Pid::from_raw(process.pid) else {
            return Ok(None);
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            // Gone, or its number is a thread's by now.
            Err(Errno::SRCH | Errno::NOENT | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let same = table::read_one(process.pid)?
            .is_some_and(|again| again.identity() == process.identity());
        let pinned = Self {
            process: process.clone(),
            descriptor,
        };
        Ok((same && pinned.is_alive()).then_some(pinned))
    }

    pub(super) fn identity(&self) -> Identity {
        self.process.identity()
    }

    pub(super) fn info(&self) -> MemberInfo {
        MemberInfo {
            pid: self.process.pid.unsigned_abs(),
            name: self.process.name.clone(),
        }
    }

    /// Whether it runs still; a zombie does not.
    pub(super) fn is_alive(&self) -> bool {
        !has_ended(self.descriptor.as_fd())
    }

    /// Sends a signal to this process or, if it has ended, to none. `Err`: it is not ours to end.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Err(Errno::SRCH) => Ok(()),
            outcome => outcome,
        }
    }
}

/// Waits until all of them have ended.
pub(super) async fn all_ended(processes: &[Pinned]) {
    for process in processes {
        ended(process.descriptor.as_fd()).await;
    }
}

/// Waits, blocking, until all of them have ended or `deadline` has passed.
pub(super) fn block_until_ended(processes: &[Pinned], deadline: Instant) {
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        ended_within(process.descriptor.as_fd(), left);
    }
}

/// Waits until the process of the descriptor has ended.
pub(super) async fn ended(descriptor: BorrowedFd<'_>) {
    if has_ended(descriptor) {
        return;
    }
    if let Ok(watched) = watch(descriptor)
        && watched.readable().await.is_ok()
    {
        return;
    }
    while !has_ended(descriptor) {
        #[expect(
            clippy::disallowed_methods,
            reason = "without a descriptor to spare, or on a runtime that is shutting down, there \
                      is no event to wait for"
        )]
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has the runtime tell when the descriptor becomes readable, which is when the process ends.
///
/// Of a duplicate, since the runtime takes each descriptor number once, and several may wait.
fn watch(descriptor: BorrowedFd<'_>) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; this one owns it"
    )]
    AsyncFd::with_interest(descriptor.try_clone_to_owned()?, Interest::READABLE)
}

fn has_ended(descriptor: BorrowedFd<'_>) -> bool {
    ended_within(descriptor, Duration::ZERO)
}

fn ended_within(descriptor: BorrowedFd<'_>, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("limits are seconds");
        match poll(
            &mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)],
            Some(&timeout),
        ) {
            Err(Errno::INTR) => {}
            outcome => return outcome.is_ok_and(|ready| ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> (Self, Process) {
            let child = Command::new("/bin/cat")
                .stdin(Stdio::piped())
                .spawn()
                .expect("started");
            let pid = i32::try_from(child.id()).expect("a pid");
            let process = table::read_one(pid).expect("read").expect("there");
            (Self(child), process)
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// ENV-6: a pid that was used again is known by its start, and is not taken.
    #[test]
    fn a_pid_that_was_used_again_is_not_pinned() {
        let (_sleeper, process) = Sleeper::start();
        assert!(Pinned::take(&process).expect("looked").is_some());
        let before = Process {
            start: process.start - 1,
            ..process
        };
        assert!(Pinned::take(&before).expect("looked").is_none());
    }

    /// ENV-6
    #[test]
    fn a_zombie_is_not_alive_and_is_not_pinned() {
        let (mut sleeper, process) = Sleeper::start();
        let pinned = Pinned::take(&process).expect("looked").expect("alive");
        assert!(pinned.is_alive());
        drop(sleeper.0.stdin.take());
        block_until_ended(
            std::slice::from_ref(&pinned),
            Instant::now() + Duration::from_mins(1),
        );
        assert!(!pinned.is_alive(), "not reaped yet, but ended");
        assert!(
            table::read_one(process.pid).expect("read").is_some(),
            "not reaped yet"
        );
        assert!(Pinned::take(&process).expect("looked").is_none());
        sleeper.0.wait().expect("reaped");
        assert_eq!(pinned.signal(Signal::TERM), Ok(()), "to nobody");
    }

    /// Several wait for one process at the same time, on one runtime.
    #[tokio::test]
    async fn many_may_wait_for_the_same_end() {
        let (mut sleeper, process) = Sleeper::start();
        let pinned = [Pinned::take(&process).expect("looked").expect("alive")];
        let end = async { drop(sleeper.0.stdin.take()) };
        tokio::join!(all_ended(&pinned), all_ended(&pinned), end);
        assert!(!pinned[0].is_alive());
    }
}
