//! Descriptors, in a process of its own: they are counted for the whole process.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::time::Duration;

use dsh_subprocess::{ChildProcess, LocalSubprocess, SpawnSpec, Subprocess};
use tokio::io::AsyncReadExt;

/// Two that do not listen to SIGTERM; `ready` comes from the second one.
const DEAF: &str = r#"trap "" TERM; sh -c 'echo ready; exec sleep 3600' & wait"#;

/// Lists the descriptors of a child.
const LIST: &str = "ls /proc/self/fd";

async fn shell(script: &str) -> ChildProcess {
    let spec = SpawnSpec {
        executable: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::new(),
        cwd: "/".into(),
        max_stderr_bytes: 1000,
    };
    let ambient = [("PATH".into(), "/usr/bin:/bin".into())].into();
    LocalSubprocess::new(ambient)
        .spawn(spec)
        .await
        .expect("started")
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("listed").count()
}

/// Starts children on a runtime of their own and lets them end in each way there is. Dropping the
/// runtime waits for what its threads are still at.
fn children(count: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        for round in 0..count {
            let mut child = shell(DEAF).await;
            child
                .io
                .stdout
                .read_exact(&mut [0; 6])
                .await
                .expect("ready");
            match round % 3 {
                0 => drop(child.control.terminate_tree(Duration::ZERO).await),
                1 => drop(child.control.wait_tree(Duration::ZERO).await),
                _ => {}
            }
        }
    });
}

/// DIS-4: however a child ends, nothing of it stays open, here or in a child started later.
#[test]
fn fifty_children_leave_no_descriptor_behind() {
    children(1);
    let before = open_descriptors();
    children(50);
    assert_eq!(open_descriptors(), before);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        // What we were started with goes on to children; nothing of other children does.
        let inherited = std::process::Command::new("/bin/sh")
            .args(["-c", LIST])
            .output();
        let others = [shell("read x").await, shell("read x").await];
        let mut listed = Vec::new();
        shell(LIST)
            .await
            .io
            .stdout
            .read_to_end(&mut listed)
            .await
            .expect("a list");
        assert_eq!(listed, inherited.expect("a list").stdout);
        drop(others);
    });
}
