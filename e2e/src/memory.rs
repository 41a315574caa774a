//! Resident memory of process trees, and how much of it the machine has. Choosing and parsing are
//! pure; only [`ProcessTable::read`] and [`available`] look at `/proc` and `/sys`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

/// Who runs on this machine, and how much memory each holds resident.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable(Vec<Process>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    /// In pages.
    pages: u64,
}

impl ProcessTable {
    /// Reads the whole table. A process that ends meanwhile may or may not be in it. Where there
    /// is no `/proc` it is an error.
    pub fn read() -> io::Result<Self> {
        let mut all = Vec::with_capacity(256);
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            all.extend(read_one(pid));
        }
        Ok(Self(all))
    }

    /// The processes of these only, by their numbers, as they are now: to look again at a tree
    /// whose members are known costs little.
    pub fn read_some(pids: &BTreeSet<u32>) -> Self {
        Self(pids.iter().copied().filter_map(read_one).collect())
    }

    /// The memory of these processes, in bytes. Pages that they share count for each of them.
    fn sum_of(&self, pids: &BTreeSet<u32>) -> u64 {
        let pages = self.0.iter().filter(|one| pids.contains(&one.pid));
        pages.map(|one| one.pages).sum::<u64>() * page()
    }

    /// The memory of everything in the table, in bytes.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|one| one.pages).sum::<u64>() * page()
    }

    /// The members of the trees of these leaders: each leader, the processes of the group that
    /// bears its number, and everything that descends from one of these.
    pub fn members(&self, leaders: &[u32]) -> BTreeSet<u32> {
        let mut members: BTreeSet<u32> = self
            .0
            .iter()
            .filter(|process| leaders.contains(&process.pid) || leaders.contains(&process.group))
            .map(|process| process.pid)
            .collect();
        // Children mostly stand behind their parents, so that few rounds are needed.
        loop {
            let before = members.len();
            for process in &self.0 {
                if members.contains(&process.parent) {
                    members.insert(process.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        members
    }
}

/// The processes that belonged to some trees when they were looked for last. To find them takes a
/// look at every process of the machine, to look at them again does not.
#[derive(Debug, Default)]
pub(crate) struct Members(BTreeSet<u32>);

impl Members {
    /// The memory of the trees of these leaders, in bytes. With a table who belongs to them is found
    /// anew; without one the leaders and those that were found last are looked at.
    pub(crate) fn look(&mut self, leaders: &[u32], table: Option<&ProcessTable>) -> u64 {
        if let Some(table) = table {
            self.0 = table.members(leaders);
            return table.sum_of(&self.0);
        }
        self.0.extend(leaders);
        ProcessTable::read_some(&self.0).sum()
    }
}

/// Bytes of a page.
fn page() -> u64 {
    #[cfg(unix)]
    let size = rustix::param::page_size() as u64;
    #[cfg(not(unix))]
    let size = 4096;
    size
}

/// A process as it is now; none where it is gone.
fn read_one(pid: u32) -> Option<Process> {
    // The line has 52 numbers and a name of at most 64 bytes, and comes whole in one read.
    let mut line = [0; 2048];
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut line).ok()?;
    parse(&line[..length])
}

/// Reads a line of `/proc/<pid>/stat`; the name in it stands in parentheses and may hold anything.
fn parse(line: &[u8]) -> Option<Process> {
    let line = String::from_utf8_lossy(line);
    let (pid, rest) = line.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    // Behind the name: state, parent, group; resident pages are the 24th of the line.
    let parent = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let pages: i64 = fields.nth(18)?.parse().ok()?;
    Some(Process {
        pid: pid.trim().parse().ok()?,
        parent,
        group,
        pages: u64::try_from(pages).unwrap_or(0),
    })
}

/// How many bytes of memory can be used without taking them from somebody: what the system says is
/// available, or less where this process is confined to less. None where the system does not tell.
pub fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = of_meminfo(&info)?;
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    // Where there is no limit, the file holds `max`.
    let confined = read("memory.max").map(|most| {
        let used = read("memory.current").unwrap_or(0);
        most.saturating_sub(used)
    });
    Some(confined.map_or(free, |confined| confined.min(free)))
}

fn of_meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_is() {
        let line = b"42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1000 321 18446744073709551615";
        let process = parse(line).unwrap();
        assert_eq!((process.pid, process.parent, process.group), (42, 7, 42));
        assert_eq!(process.pages, 321);
        assert_eq!(parse(b"42 (x"), None);
        let line = b"7 (a) S 1 2 (b) S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1000 9 0";
        let process = parse(line).unwrap();
        assert_eq!((process.pid, process.parent, process.group), (7, 41, 42));
    }

    #[test]
    fn a_tree_is_its_group_and_what_descends_from_it() {
        let process = |pid, parent, group, pages| Process {
            pid,
            parent,
            group,
            pages,
        };
        let table = ProcessTable(vec![
            // A grandchild stands before its parent, in a group of its own.
            process(3, 9, 3, 4),
            process(5, 1, 5, 1),
            process(6, 5, 5, 2),
            process(9, 6, 9, 8),
            // Left by its parent, still in the group.
            process(7, 1, 5, 16),
            process(8, 1, 8, 1000),
        ]);
        let resident = |leaders: &[u32]| Members::default().look(leaders, Some(&table));
        assert_eq!(resident(&[5]), 31 * page());
        assert_eq!(resident(&[5, 8]), 1031 * page());
        assert_eq!(resident(&[]), 0);
        assert_eq!(table.members(&[5]), BTreeSet::from([3, 5, 6, 7, 9]));
        assert_eq!(table.members(&[99]), BTreeSet::new());
    }

    #[test]
    fn what_is_available_is_read() {
        let text = "MemTotal:  8 kB\nMemFree: 1 kB\nMemAvailable:    3 kB\n";
        assert_eq!(of_meminfo(text), Some(3072));
        assert_eq!(of_meminfo("MemTotal: 8 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_in_the_table() {
        let table = ProcessTable::read().unwrap();
        let own = Members::default().look(&[std::process::id()], Some(&table));
        assert!(own > 1 << 20, "{own}");
        let again = ProcessTable::read_some(&BTreeSet::from([std::process::id(), 0]));
        assert!(again.sum() > 1 << 20);
        assert!(available().unwrap() > 0);
    }
}
