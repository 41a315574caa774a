//! Process trees where there is neither `/proc` nor a pidfd: intended, and untested.
//!
//! Weaker than on Linux: ends are looked for at intervals; on Unix the group is ended as a whole
//! and its members are not told by name; on Windows only the leader is ended. What left the group
//! is not found.

use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{PAUSE, exit_of};
use crate::marker::Marker;
use crate::milestone::Milestone;
use crate::service::{ChildExit, MemberInfo, TerminationReport};

/// How long those that are killed when nobody is there to wait are awaited.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// A leader and its group.
#[derive(Debug)]
pub(crate) struct Tree {
    pid: u32,
    leader: Mutex<Leader>,
    exit: Milestone<ChildExit>,
    emptied: Milestone<()>,
}

#[derive(Debug)]
struct Leader {
    child: Child,
    reaped: bool,
}

#[derive(Clone, Copy)]
enum Force {
    Ask,
    Kill,
}

impl Tree {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "it can fail where a tree needs more"
    )]
    pub(crate) fn new(child: Child, _marker: Marker) -> Result<Self, String> {
        Ok(Self {
            pid: child.id(),
            leader: Mutex::new(Leader {
                child,
                reaped: false,
            }),
            exit: Milestone::new(),
            emptied: Milestone::new(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn exit(&self) -> &Milestone<ChildExit> {
        &self.exit
    }

    pub(crate) fn emptied(&self) -> &Milestone<()> {
        &self.emptied
    }

    /// Waits until the leader has ended and its group is empty.
    pub(crate) async fn watch(self: &Arc<Self>) {
        while !self.is_over() {
            pause().await;
        }
        self.emptied.reach(());
    }

    pub(crate) async fn alive(self: &Arc<Self>) -> Vec<MemberInfo> {
        if self.is_over() {
            Vec::new()
        } else {
            vec![self.info()]
        }
    }

    /// Asks the group to end, kills it after the grace, and waits until it is gone.
    pub(crate) async fn terminate(self: &Arc<Self>, grace: Duration) -> TerminationReport {
        let mut report = TerminationReport::default();
        if !self.is_over() {
            report.terminated.push(self.info());
            self.signal(Force::Ask);
            let started = Instant::now();
            while !self.is_over() && started.elapsed() < grace {
                pause().await;
            }
        }
        if !self.is_over() {
            report.killed.push(self.info());
            self.signal(Force::Kill);
            while !self.is_over() {
                pause().await;
            }
        }
        self.emptied.reach(());
        report
    }

    /// Kills at once, blocking, for when nobody is left to wait (DIS-6).
    pub(crate) fn kill_now(&self) {
        if self.is_over() {
            return;
        }
        self.signal(Force::Kill);
        let deadline = Instant::now() + LAST_WAIT;
        while !self.is_over() && Instant::now() < deadline {
            #[expect(
                clippy::disallowed_methods,
                reason = "there is no event to wait for here"
            )]
            std::thread::sleep(PAUSE);
        }
        self.emptied.reach(());
    }

    /// Reaps the leader if it has ended; whether the group is empty then.
    fn is_over(&self) -> bool {
        let mut leader = self.leader();
        if !leader.reaped
            && let Ok(Some(status)) = leader.child.try_wait()
        {
            leader.reaped = true;
            self.exit.reach(exit_of(status));
        }
        leader.reaped && !group_is_alive(self.pid)
    }

    fn signal(&self, force: Force) {
        let mut leader = self.leader();
        signal_group(self.pid, &mut leader, force);
    }

    fn info(&self) -> MemberInfo {
        MemberInfo {
            pid: self.pid,
            name: String::new(),
        }
    }

    fn leader(&self) -> MutexGuard<'_, Leader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill_now();
    }
}

async fn pause() {
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no event to wait for here"
    )]
    tokio::time::sleep(PAUSE).await;
}

#[cfg(unix)]
fn group(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(pid.cast_signed())
}

#[cfg(unix)]
fn group_is_alive(pid: u32) -> bool {
    group(pid).is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}

#[cfg(unix)]
fn signal_group(pid: u32, _leader: &mut Leader, force: Force) {
    use rustix::process::{Signal, kill_process_group};
    let signal = match force {
        Force::Ask => Signal::TERM,
        Force::Kill => Signal::KILL,
    };
    if let Some(group) = group(pid) {
        // Fails if it is empty by now.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn group_is_alive(_pid: u32) -> bool {
    false
}

#[cfg(not(unix))]
fn signal_group(_pid: u32, leader: &mut Leader, _force: Force) {
    if !leader.reaped {
        // Fails if it has ended by now.
        let _ = leader.child.kill();
    }
}
