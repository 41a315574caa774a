//! The processes of a server as the system shows them: how much memory they hold, and stopping
//! them for a moment.

use crate::memory::{Members, ProcessTable};

/// Resident memory of a process and of everything that descends from it or is in its group, looked
/// at over and over. Who belongs to it is found anew every few times only, since that costs more
/// than a question to a server.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    leader: u32,
    members: Members,
    looks: usize,
}

/// Every how many looks the members are found anew.
const SURVEY: usize = 10;

impl Resident {
    /// The bytes that the tree of this leader holds now; none where the system does not tell.
    pub(crate) fn look(&mut self, leader: u32) -> Option<u64> {
        if self.leader != leader {
            (self.leader, self.looks) = (leader, 0);
        }
        let table = if self.looks.is_multiple_of(SURVEY) {
            Some(ProcessTable::read().ok()?)
        } else {
            None
        };
        let bytes = self.members.look(&[leader], table.as_ref());
        self.looks += 1;
        (bytes > 0).then_some(bytes)
    }
}

/// The leader, its descendants and its process group, as far as they can be seen.
#[cfg(unix)]
fn members(leader: u32) -> Vec<u32> {
    match ProcessTable::read() {
        Ok(table) => table.members(&[leader]).into_iter().collect(),
        Err(_) => vec![leader],
    }
}

/// A process tree that stands still until this is dropped.
#[cfg(unix)]
pub(crate) struct Stopped {
    leader: rustix::process::Pid,
    members: Vec<rustix::process::Pid>,
}

#[cfg(unix)]
impl Stopped {
    /// Stops the tree of a process that was started and has not been waited for.
    pub(crate) fn stop(leader: u32) -> Option<Self> {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
        let mut stopped = Self {
            leader: pid(leader)?,
            members: Vec::new(),
        };
        for member in members(leader).into_iter().filter_map(pid) {
            if kill_process(member, Signal::STOP).is_ok() {
                stopped.members.push(member);
            }
        }
        stopped.members.contains(&stopped.leader).then_some(stopped)
    }

    /// Kills the leader, which was stopped and so cannot have ended by itself, and lets the others
    /// go on. False if the system refused.
    pub(crate) fn kill_leader(self) -> bool {
        rustix::process::kill_process(self.leader, rustix::process::Signal::KILL).is_ok()
    }
}

#[cfg(unix)]
impl Drop for Stopped {
    fn drop(&mut self) {
        for member in &self.members {
            // One that is gone needs nothing. A stopped process keeps its number.
            let _gone = rustix::process::kill_process(*member, rustix::process::Signal::CONT);
        }
    }
}

/// Processes cannot be stopped on this platform.
#[cfg(not(unix))]
pub(crate) struct Stopped;

#[cfg(not(unix))]
impl Stopped {
    pub(crate) fn stop(_leader: u32) -> Option<Self> {
        None
    }

    #[expect(clippy::unused_self, reason = "the signature of the other platforms")]
    pub(crate) fn kill_leader(self) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_there_holds_memory_and_one_that_is_not_holds_none() {
        let mut resident = Resident::default();
        for _ in 0..=SURVEY {
            let own = resident.look(std::process::id()).unwrap();
            assert!(own > 100_000, "{own}");
        }
        assert_eq!(resident.look(u32::MAX), None);
        assert!(resident.look(std::process::id()).is_some());
    }
}
