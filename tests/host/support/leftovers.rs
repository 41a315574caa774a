//! What must not be there when a test is over.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The variable by which the processes of a test are found; its value is the test's folder.
const MARK: &str = "BENCH";

/// What every server of a test gets: the mark, and a folder of its own for temporary files.
pub(super) fn environment(root: &Path) -> BTreeMap<String, String> {
    let text = |path: &Path| path.to_str().expect("temp folders are UTF-8").to_owned();
    let root = root.canonicalize().expect("it exists");
    let (mark, tmp) = (text(&root), text(&root.join("tmp")));
    [(MARK.to_owned(), mark), ("TMPDIR".to_owned(), tmp)].into()
}

/// The processes that carry the mark of a test, by pid and command line.
pub(crate) fn marked(root: &Path) -> Vec<String> {
    let wanted = format!("{MARK}={}", root.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("this is Linux").flatten() {
        let folder = entry.path();
        // A process that ends meanwhile is none that is left.
        let Ok(block) = fs::read(folder.join("environ")) else {
            continue;
        };
        if block
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
        {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("{}: {line}", folder.display()));
        }
    }
    found
}

/// Waits until a child of ours has ended, without taking its status from whoever owns it.
pub(super) fn wait_until_gone(pid: u32) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a pid");
    // An error says that it was reaped already.
    let _ = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
}

/// No process of the test is left.
#[track_caller]
pub(super) fn no_process(root: &Path) {
    let left = marked(root);
    assert!(left.is_empty(), "processes are left: {left:#?}");
}

/// The servers' temp folder is empty, and nothing was put beside the workspace.
#[track_caller]
pub(super) fn only_ours(root: &Path) {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it exists");
        entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into())
            .collect()
    };
    let left = names(&root.join("tmp"));
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}
