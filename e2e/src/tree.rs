//! The processes of a server as the system shows them: how much memory they hold, and stopping
//! them for a moment.

/// Resident memory of a process and of everything that descends from it or is in its group, in
/// bytes; none where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn resident(leader: u32) -> Option<u64> {
    let members = members(leader);
    if members.is_empty() {
        return None;
    }
    Some(members.into_iter().filter_map(resident_of).sum())
}

/// Resident memory of a process tree: unknown on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident(_leader: u32) -> Option<u64> {
    None
}

/// The leader, its descendants and its process group, as far as they can be seen.
#[cfg(target_os = "linux")]
fn members(leader: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes: Vec<Seen> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Seen::parse(pid, &stat)
        })
        .collect();
    tree(&processes, leader)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn members(leader: u32) -> Vec<u32> {
    vec![leader]
}

/// A process, as far as it says to whom it belongs.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    pid: u32,
    parent: u32,
    group: u32,
}

#[cfg(target_os = "linux")]
impl Seen {
    /// Reads `/proc/PID/stat`; the name in it is in parentheses and may hold anything.
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let (_, behind_name) = stat.rsplit_once(')')?;
        let mut fields = behind_name.split_whitespace().skip(1);
        Some(Self {
            pid,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
        })
    }
}

/// `leader` and what belongs to it among `processes`, each once.
#[cfg(target_os = "linux")]
fn tree(processes: &[Seen], leader: u32) -> Vec<u32> {
    use std::collections::{BTreeMap, BTreeSet};
    if !processes.iter().any(|process| process.pid == leader) {
        return Vec::new();
    }
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in processes {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let in_group = processes
        .iter()
        .filter(|process| process.group == leader)
        .map(|process| process.pid);
    let mut found = BTreeSet::new();
    let mut next: Vec<u32> = std::iter::once(leader).chain(in_group).collect();
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found.into_iter().collect()
}

#[cfg(target_os = "linux")]
fn resident_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn seen(pid: u32, parent: u32, group: u32) -> Seen {
        Seen { pid, parent, group }
    }

    #[test]
    fn a_tree_is_the_descendants_and_the_group() {
        let processes = [
            seen(1, 0, 1),
            seen(10, 1, 10),
            seen(11, 10, 10),
            seen(12, 11, 12),
            // Its parent is gone, its group is the leader's.
            seen(13, 1, 10),
            seen(14, 13, 14),
            seen(20, 1, 20),
        ];
        assert_eq!(tree(&processes, 10), [10, 11, 12, 13, 14]);
        assert_eq!(tree(&processes, 99), Vec::<u32>::new());
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_is_passed_over() {
        let stat = "7 (a) S 1 2 (b) S 41 42 42 0 -1";
        assert_eq!(Seen::parse(7, stat), Some(seen(7, 41, 42)));
        assert_eq!(Seen::parse(7, "7 (a"), None);
    }

    #[test]
    fn a_process_that_is_there_holds_memory_and_one_that_is_not_holds_none() {
        let own = resident(std::process::id()).unwrap();
        assert!(own > 100_000, "{own}");
        assert_eq!(resident(u32::MAX), None);
    }
}
