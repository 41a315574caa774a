//! The system's table of processes, and who of it belongs to a tree. Choosing is pure; only
//! [`read`] and [`environment`] look at `/proc`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};

/// A process as `/proc/<pid>/stat` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) name: String,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it was started, in clock ticks since the system was. Together with the pid this names
    /// a process: a pid that is used again has another start.
    pub(super) start: u64,
    /// Whether it is a thread of the kernel, which has no environment.
    pub(super) kernel: bool,
    /// Whether it has ended and waits to be reaped.
    pub(super) zombie: bool,
    /// Whether it waits for an event or is stopped, hence is not in the middle of `exec`.
    pub(super) asleep: bool,
    /// How many bytes its environment block has; unknown in the middle of `exec`, and of processes
    /// that we may not look into.
    pub(super) environment: Option<u64>,
}

/// The flag of a kernel thread (`PF_KTHREAD`).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// What names one process for good: pid and start.
pub(super) type Identity = (i32, u64);

impl Process {
    pub(super) fn identity(&self) -> Identity {
        (self.pid, self.start)
    }
}

/// Reads the whole table. A process that ends meanwhile may or may not be in it.
pub(super) fn read() -> io::Result<Vec<Process>> {
    let mut processes = Vec::with_capacity(256);
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = read_one(pid)? {
            processes.push(process);
        }
    }
    Ok(processes)
}

/// Reads one entry; `None` if there is no such process. Anything else that hides one is an error.
pub(super) fn read_one(pid: i32) -> io::Result<Option<Process>> {
    // The line has 52 numbers and a name of at most 64 bytes.
    let mut line = [0; 2048];
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
    match read {
        Ok(length) => match parse(&line[..length]) {
            None => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a stat line without its fields",
            )),
            process => Ok(process),
        },
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the process ended, or was never to be seen by us.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM)
    )
}

/// What is known of a process's environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Environment {
    /// The block it was started with; empty if there is none to be had.
    Block(Vec<u8>),
    /// Its own user may not look into it: for good, or for a moment of `exec`.
    Denied,
    /// It was looked at across an `exec`, so that what was read is nothing, or a part.
    Changing,
}

/// Reads the environment that a process was started with.
pub(super) fn environment(process: &Process) -> io::Result<Environment> {
    let pid = process.pid;
    let block = match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(block) => block,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_ours(pid) => {
            return Ok(Environment::Denied);
        }
        Err(error) if is_gone(&error) => return Ok(Environment::Block(Vec::new())),
        Err(error) => return Err(error),
    };
    match read_one(pid)? {
        Some(again) if again.identity() == process.identity() && !again.zombie => {
            // During `exec` it has the size zero for a moment.
            let settled = !block.is_empty() || again.asleep;
            let whole = settled && again.environment == Some(block.len() as u64);
            Ok(if whole {
                Environment::Block(block)
            } else {
                Environment::Changing
            })
        }
        _ => Ok(Environment::Block(Vec::new())),
    }
}

/// Whether a process runs as the user we run as.
fn is_ours(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let user = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|users| users.split_whitespace().nth(1));
    user.and_then(|user| user.parse().ok()) == Some(rustix::process::geteuid().as_raw())
}

/// Parses a `stat` line. The name stands in parentheses and may hold anything, parentheses too.
fn parse(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = number(line.get(..open)?.trim_ascii())?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let mut fields = line
        .get(close + 1..)?
        .trim_ascii()
        .split(|byte| *byte == b' ');
    let state = fields.next()?;
    let zombie = matches!(state, b"Z" | b"X");
    let asleep = matches!(state, b"S" | b"T" | b"t");
    let parent = number(fields.next()?)?;
    let group = number(fields.next()?)?;
    // The 9th and the 22nd field of the line; the 5th was read last.
    let flags: u32 = number(fields.nth(3)?)?;
    let start = number(fields.nth(12)?)?;
    let kernel = flags & KERNEL_THREAD != 0;
    // The 50th and the 51st: where the environment begins and ends.
    let from: u64 = fields.nth(27).and_then(number).unwrap_or(0);
    let to: u64 = fields.next().and_then(number).unwrap_or(0);
    let environment = if from == 0 {
        None
    } else {
        to.checked_sub(from)
    };
    Some(Process {
        pid,
        name,
        parent,
        group,
        start,
        kernel,
        zombie,
        asleep,
        environment,
    })
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The members of a tree: `leader`, the processes of the group that bears its pid, and whatever
/// descends from one of these or from one of `known`, by parent links.
///
/// `known` are members seen before: what they started counts even if the link to the leader broke
/// meanwhile. The group counts by its number alone, so the caller must know that the number is
/// still the tree's: it is as long as the leader was not reaped.
pub(super) fn members<'a>(
    processes: &'a [Process],
    leader: Identity,
    known: &HashSet<Identity>,
) -> Vec<&'a Process> {
    let root = |process: &Process| {
        process.identity() == leader
            || process.group == leader.0
            || known.contains(&process.identity())
    };
    let mut members: Vec<&Process> = processes.iter().filter(|process| root(process)).collect();
    let mut seen: HashSet<i32> = members.iter().map(|process| process.pid).collect();
    let mut next = 0;
    while let Some(parent) = members.get(next).map(|process| process.pid) {
        next += 1;
        for process in processes {
            if process.parent == parent && seen.insert(process.pid) {
                members.push(process);
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn process(pid: i32, parent: i32, group: i32) -> Process {
        let start = 1000 + u64::try_from(pid).expect("positive");
        Process {
            pid,
            name: format!("p{pid}"),
            parent,
            group,
            start,
            kernel: false,
            zombie: false,
            asleep: false,
            environment: None,
        }
    }

    #[track_caller]
    fn check(table: &[(i32, i32, i32)], known: &[Identity], expected: &[i32]) {
        let table: Vec<Process> = table
            .iter()
            .map(|(pid, parent, group)| process(*pid, *parent, *group))
            .collect();
        let known = known.iter().copied().collect();
        let mut pids: Vec<i32> = members(&table, (10, 1010), &known)
            .iter()
            .map(|process| process.pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(pids, expected);
    }

    /// ENV-6
    #[test]
    fn group_and_descendants_are_members() {
        check(
            &[
                (1, 0, 1),
                (2, 1, 2),
                (10, 2, 10),
                (11, 10, 10),
                (12, 11, 12), // A group of its own, found by its parent.
                (13, 12, 12),
                (14, 1, 10), // Its parent ended; found by its group.
                (15, 14, 15),
                (16, 2, 2),
            ],
            &[],
            &[10, 11, 12, 13, 14, 15],
        );
    }

    /// ENV-6: a member seen before is one although no link leads to it any more.
    #[test]
    fn what_was_known_stays_a_member_unless_its_pid_was_used_again() {
        check(
            &[(10, 1, 10), (20, 1, 20), (21, 20, 20)],
            &[(20, 1020)],
            &[10, 20, 21],
        );
        check(
            &[(10, 1, 10), (20, 1, 20), (21, 20, 20)],
            &[(20, 999)],
            &[10],
        );
    }

    /// ENV-6: the leader's own pid with another start is a stranger.
    #[test]
    fn a_leader_whose_pid_was_used_again_is_none() {
        let table = [
            Process {
                start: 5000,
                ..process(10, 1, 9)
            },
            process(11, 10, 9),
        ];
        assert_eq!(
            members(&table, (10, 1010), &HashSet::new()),
            Vec::<&Process>::new()
        );
    }

    #[test]
    fn links_that_form_a_circle_end() {
        check(
            &[(10, 12, 10), (11, 10, 1), (12, 11, 1)],
            &[],
            &[10, 11, 12],
        );
    }

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let rest =
            "S 4 5 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 8445952 5 18446744073709551615";
        for name in ["sh", "a b", "a) R 1 1 (b", "", "é\n"] {
            let line = format!("3 ({name}) {rest}\n");
            let expected = Process {
                pid: 3,
                name: name.to_owned(),
                parent: 4,
                group: 5,
                start: 987_654,
                kernel: false,
                zombie: false,
                asleep: true,
                environment: None,
            };
            assert_eq!(parse(line.as_bytes()), Some(expected));
        }
        for broken in [
            "",
            "3",
            "3 (sh",
            "3 (sh)",
            "3 (sh) S 4 5",
            "x (sh) S 4 5",
            ") 3 (",
        ] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn kernel_threads_and_zombies_are_told() {
        let line = "3 (x) Z 4 5 5 0 -1 2097216 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0";
        let process = parse(line.as_bytes()).expect("a line");
        assert!(process.kernel && process.zombie, "{process:?}");
        assert_eq!((process.start, process.environment), (7, None));
    }

    #[test]
    fn the_size_of_the_environment_is_told() {
        let line = |from: u64, to: u64| {
            let between = "0 ".repeat(27);
            format!("3 (x) S 4 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 {between}{from} {to} 0")
        };
        let size = |line: String| parse(line.as_bytes()).expect("a line").environment;
        assert_eq!(size(line(1000, 1098)), Some(98));
        assert_eq!(size(line(1000, 1000)), Some(0));
        assert_eq!(size(line(0, 0)), None);
        assert_eq!(size(line(1000, 0)), None);
    }

    #[test]
    fn our_own_environment_is_read() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let process = read_one(own).expect("read").expect("there");
        let block = environment(&process).expect("read");
        assert!(matches!(block, Environment::Block(block) if !block.is_empty()));
        assert!(is_ours(own) && !is_ours(i32::MAX));
        let gone = Process {
            pid: i32::MAX,
            ..process
        };
        assert_eq!(
            environment(&gone).expect("read"),
            Environment::Block(Vec::new())
        );
    }

    /// ENV-6: across an `exec` the environment reads as nothing, or in part; neither is believed.
    #[test]
    fn an_environment_is_whole_or_not_told() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", r#"exec sh -c "$again""#])
            .env("again", r#"exec sh -c "$again""#)
            .spawn()
            .expect("started");
        let pid = i32::try_from(child.id()).expect("a pid");
        let process = read_one(pid).expect("read").expect("there");
        let looks: Vec<Environment> = (0..2000)
            .map(|_| environment(&process).expect("read"))
            .collect();
        child.kill().expect("killed");
        child.wait().expect("reaped");
        let whole = looks.iter().filter(|look| match look {
            Environment::Block(block) => {
                assert!(block.windows(6).any(|part| part == b"again="), "{block:?}");
                true
            }
            Environment::Denied | Environment::Changing => false,
        });
        assert!(whole.count() > 0, "it is there most of the time");
    }

    #[test]
    fn the_table_holds_ourselves() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let table = read().expect("read");
        let found = table
            .iter()
            .find(|process| process.pid == own)
            .expect("we are in it");
        // Whether its first thread sleeps can change in between.
        let again = read_one(own).expect("read").expect("we are still here");
        assert_eq!(found.identity(), again.identity());
        assert_eq!(found.environment, again.environment);
        assert_eq!(read_one(i32::MAX).expect("read"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_lines_do_not_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&line);
        }

        #[test]
        fn arbitrary_tables_end_and_no_process_counts_twice(
            links in proptest::collection::vec((1_i32..12, 0_i32..12, 0_i32..12), 0..12)
        ) {
            let table: Vec<Process> =
                links.iter().map(|(pid, parent, group)| process(*pid, *parent, *group)).collect();
            let found = members(&table, (10, 1010), &HashSet::new());
            prop_assert!(found.len() <= table.len());
        }
    }
}
