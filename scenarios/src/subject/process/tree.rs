//! The processes below a subject, on Linux: found by parent links, held by descriptors that no
//! other process can come to stand for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Holds a process and what is below it. Dropped, it kills all of them.
pub(super) struct Leash {
    leader: Pid,
    watch: AsyncFd<OwnedFd>,
    below: HashMap<u32, AsyncFd<OwnedFd>>,
    over: bool,
}

impl Leash {
    /// Holds a child of this process that leads a group of its own and was not waited for.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        let leader = pid_of(pid).ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok(Self {
            leader,
            watch: watch(pidfd_open(leader, PidfdFlags::empty())?)?,
            below: HashMap::new(),
            over: false,
        })
    }

    /// Looks for processes below it.
    pub(super) fn look(&mut self) {
        let all = all();
        let mut parents = vec![self.leader.as_raw_nonzero().get().unsigned_abs()];
        let mut at = 0;
        while let Some(parent) = parents.get(at).copied() {
            at += 1;
            for found in all.iter().filter(|found| found.parent == parent) {
                parents.push(found.pid);
                if let Entry::Vacant(entry) = self.below.entry(found.pid)
                    && let Some(held) = hold(found)
                {
                    entry.insert(held);
                }
            }
        }
    }

    /// Asks the leader to end.
    pub(super) fn terminate(&self) {
        // One that has ended is no error.
        let _ = pidfd_send_signal(&self.watch, Signal::TERM);
    }

    /// Kills the leader, its group, and everything that was found below it. The leader must not
    /// have been waited for.
    pub(super) fn kill(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        // Stopped, it cannot start another while it is looked for what there is.
        let _ = kill_process_group(self.leader, Signal::STOP);
        self.look();
        let _ = kill_process_group(self.leader, Signal::KILL);
        for below in self.below.values() {
            let _ = pidfd_send_signal(below, Signal::KILL);
        }
    }

    /// Waits until the leader has ended; it is still to be waited for then.
    pub(super) async fn ended(&self) {
        gone(&self.watch).await;
    }

    /// Waits until everything that was found below it is gone.
    pub(super) async fn all_gone(&self) {
        futures::future::join_all(self.below.values().map(gone)).await;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process can be read from, in a way, when it has ended.
async fn gone(process: &AsyncFd<OwnedFd>) {
    // A failure means that nothing can be waited for; the callers have limits of their own.
    if process.readable().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Holds a process, if it still is the one that was found.
fn hold(found: &Found) -> Option<AsyncFd<OwnedFd>> {
    let held = pidfd_open(pid_of(found.pid)?, PidfdFlags::empty()).ok()?;
    // Whatever has the id now, held it is; one that began at another moment is a stranger.
    let is_it = look_at(found.pid)?.begin == found.begin;
    is_it.then(|| watch(held).ok()).flatten()
}

#[expect(
    deprecated,
    reason = "what takes its place is unsafe; the descriptor is owned and closed by its drop only"
)]
fn watch(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// A process as it was seen.
struct Found {
    pid: u32,
    parent: u32,
    /// When it began, in ticks.
    begin: u64,
}

/// All processes.
fn all() -> Vec<Found> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| look_at(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Reads what the system tells of a process: behind its name, which stands in parentheses, the
/// second field is its parent and the twentieth its begin.
fn look_at(pid: u32) -> Option<Found> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let begin = fields.nth(17)?.parse().ok()?;
    Some(Found { pid, parent, begin })
}
