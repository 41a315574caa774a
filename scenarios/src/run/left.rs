//! What must not be there when a case is over.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::mount::MARK;

/// What a case left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Processes: pid and command line.
    pub(crate) processes: Vec<(u32, String)>,
    /// Files in the case's folder for temporary ones.
    pub(crate) files: Vec<String>,
    /// Descriptors the harness did not have before.
    pub(crate) descriptors: Vec<String>,
}

/// How a case's processes are known.
pub(crate) struct Marks<'a> {
    /// The value of the marker variable.
    pub(crate) root: &'a Path,
    /// The address of the control channel, an argument of fake servers and their helpers.
    pub(crate) address: &'a str,
}

/// The processes of a case that are there now. One that ended, reaped or not, is none of them.
pub(crate) fn processes(marks: &Marks<'_>) -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if is_of(pid, marks) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, shown(&line)));
        }
    }
    found
}

fn is_of(pid: u32, marks: &Marks<'_>) -> bool {
    let wanted = format!("{MARK}={}", marks.root.display());
    let has = |file: &str, wanted: &str| {
        // A process that ends meanwhile is none that is left.
        fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|block| {
            block
                .split(|byte| *byte == 0)
                .any(|part| part == wanted.as_bytes())
        })
    };
    has("environ", &wanted) || has("cmdline", marks.address)
}

/// A command line for people: the script and whatever else is long is cut.
fn shown(line: &[u8]) -> String {
    const MOST: usize = 100;
    let line = String::from_utf8_lossy(line).replace('\0', " ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.trim_end().to_owned(),
    }
}

/// Ends what a case left behind.
pub(crate) fn end(processes: &[(u32, String)], marks: &Marks<'_>) {
    for (pid, _) in processes {
        // It may have ended since, and its number may be another's.
        if is_of(*pid, marks)
            && let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw)
        {
            // One that is gone is what is wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// What lies in the folder for temporary files.
pub(crate) fn files(tmp: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(tmp) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The descriptors of a process that a harness would leak: pipes, sockets, processes it watches,
/// and files of the case. What a runtime keeps for itself (polls, events) is not among them.
pub(crate) fn descriptors(pid: u32, root: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return BTreeSet::new();
    };
    let root = root.display().to_string();
    let targets = entries.flatten().filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let target = target.to_string_lossy().into_owned();
        let counts = target.starts_with("pipe:")
            || target.starts_with("socket:")
            || target.contains("pidfd")
            || target.starts_with(&root);
        counts.then(|| format!("{} → {target}", entry.file_name().to_string_lossy()))
    });
    targets.collect()
}
