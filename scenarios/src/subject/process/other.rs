//! The processes below a subject, where they cannot be found: its group is all that is known.

use std::io;

/// Holds a process. Where there are groups, dropping it kills the group.
pub(super) struct Leash {
    #[cfg(unix)]
    leader: rustix::process::Pid,
    over: bool,
}

impl Leash {
    #[cfg(unix)]
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        let leader = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok(Self {
            leader,
            over: false,
        })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "the same on all platforms")]
    pub(super) fn new(_: u32) -> io::Result<Self> {
        Ok(Self { over: false })
    }

    #[expect(clippy::unused_self, reason = "the same on all platforms")]
    pub(super) fn look(&mut self) {}

    pub(super) fn terminate(&self) {
        #[cfg(unix)]
        let _ = rustix::process::kill_process(self.leader, rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        #[cfg(unix)]
        let _ = rustix::process::kill_process_group(self.leader, rustix::process::Signal::KILL);
    }

    /// Never tells: the time is always used up, and then it is killed.
    pub(super) async fn ended(&self) {
        std::future::pending::<()>().await;
    }

    pub(super) async fn all_gone(&self) {}
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}
