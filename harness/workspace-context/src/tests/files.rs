//! Odd files on a real disk (INS-9, INS-10, INS-13, INS-24).

use super::rig::{Fault, Rig, headings, sources};
use crate::{InstructionsPassedOver, WorkspaceContextConfig};

const NEW: &str = "Additional instructions from: a/AGENTS.md";

async fn rig() -> Rig {
    let rig = Rig::with(WorkspaceContextConfig {
        max_source_bytes: 1000,
        ..WorkspaceContextConfig::new(100_000.0)
    })
    .await;
    rig.write("p/a/f", "");
    rig
}

/// INS-13: the exact limit is accepted; more is ignored at first, and removes nothing later.
#[tokio::test]
async fn a_file_that_is_too_large_is_not_used() {
    let rig = rig().await;
    let session = rig.session("p");
    rig.write("p/a/AGENTS.md", "x".repeat(1001));
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    rig.write("p/a/AGENTS.md", "x".repeat(1000));
    assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
    rig.write("p/a/AGENTS.md", "x".repeat(1001));
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    // What counts is what is read, whatever the probe said.
    rig.write("p/a/AGENTS.md", "y");
    let path = rig.path("p/a/AGENTS.md");
    for size in [1001, usize::MAX] {
        rig.disk.set(&path, Some(Fault::Grows(size)));
        assert!(rig.touch(&session, "p/a/f").await.is_empty(), "{size}");
    }
    rig.disk.set(&path, Some(Fault::Grows(999)));
    let told = rig.touch(&session, "p/a/f").await;
    assert_eq!(
        headings(&told[0]),
        ["Updated instructions from: a/AGENTS.md"]
    );
}

/// INS-9: a provider that fails makes nothing gone; a missing file is gone.
#[tokio::test]
async fn a_failing_provider_is_no_absence() {
    let rig = rig().await;
    let session = rig.session("p");
    let path = rig.path("p/a/AGENTS.md");
    rig.write("p/a/AGENTS.md", "one");
    assert_eq!(rig.touch(&session, "p/a/f").await.len(), 1);
    for fault in [Fault::Probe, Fault::Read] {
        rig.write("p/a/AGENTS.md", "two");
        rig.disk.set(&path, Some(fault));
        assert!(rig.touch(&session, "p/a/f").await.is_empty(), "{fault:?}");
    }
    rig.disk.set(&path, None);
    rig.write("p/a/AGENTS.md", "one");
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    rig.remove("p/a/AGENTS.md");
    let told = rig.touch(&session, "p/a/f").await;
    assert_eq!(headings(&told[0]), ["Instructions removed: a/AGENTS.md"]);
}

/// INS-9, INS-10, INS-13: what is not used is told of to people, once each, with the way out.
#[tokio::test]
async fn what_is_passed_over_is_told_once() {
    let rig = rig().await;
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = std::sync::Arc::clone(&told);
    let _listening = rig
        .events()
        .subscribe(move |event: &InstructionsPassedOver| {
            own.lock().unwrap().push(event.to_string());
        });
    let session = rig.session("p");
    let path = rig.path("p/a/AGENTS.md");
    let expected = |why: &str| format!("instructions {path:?} are passed over: {why}");
    let mut all = Vec::new();
    for (content, why) in [
        (
            &[b'x'; 1001] as &[u8],
            "more than 1000 bytes; shorten the file, or raise maxSourceBytes of \
             dsh-workspace-context",
        ),
        (b"caf\xe9", "not UTF-8 text; save the file as UTF-8"),
        (b"caf\0e", "NUL bytes in it; write text into the file"),
    ] {
        rig.write("p/a/AGENTS.md", content);
        all.push(expected(why));
        for _ in 0..2 {
            assert!(rig.touch(&session, "p/a/f").await.is_empty());
            assert_eq!(*told.lock().unwrap(), all);
        }
    }
    rig.remove("p/a/AGENTS.md");
    std::fs::create_dir(&path).unwrap();
    all.push(expected(
        "a directory and no regular file; put a file in its place",
    ));
    for _ in 0..2 {
        assert!(rig.touch(&session, "p/a/f").await.is_empty());
        assert_eq!(*told.lock().unwrap(), all);
    }
}

/// INS-9: bytes that are no text are not used, and make nothing gone.
#[tokio::test]
async fn a_file_that_is_not_utf8_is_not_used() {
    let rig = rig().await;
    let session = rig.session("p");
    rig.write("p/a/AGENTS.md", b"caf\xe9");
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    rig.write("p/a/AGENTS.md", "café");
    assert_eq!(rig.touch(&session, "p/a/f").await.len(), 1);
    rig.write("p/a/AGENTS.md", b"caf\xe9");
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
    rig.write("p/a/AGENTS.md", "caf\0e");
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
}

/// INS-9, ENV-1: a link to the environment of this process tells the model nothing.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_environment_is_no_instructions() {
    let rig = rig().await;
    let session = rig.session("p");
    rig.write("p/a/f", "x");
    std::os::unix::fs::symlink("/proc/self/environ", rig.path("p/a/AGENTS.md")).unwrap();
    assert!(rig.touch(&session, "p/a/f").await.is_empty());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;

    use super::*;

    /// INS-10, INS-24: a link to a file is followed, out of the tree too; what leads to no file is
    /// absent.
    #[tokio::test]
    async fn links() {
        let rig = rig().await;
        let session = rig.session("p");
        let link = rig.path("p/a/AGENTS.md");
        rig.write("elsewhere.md", "from outside");
        std::fs::create_dir(rig.path("dir")).unwrap();
        let relink = |target: &str| {
            let _ = std::fs::remove_file(&link);
            symlink(target, &link).unwrap();
        };
        for nothing in ["../../dir", "nowhere", "AGENTS.md"] {
            relink(nothing);
            assert!(rig.touch(&session, "p/a/f").await.is_empty(), "{nothing}");
        }
        relink("../../elsewhere.md");
        let told = rig.touch(&session, "p/a/f").await;
        assert_eq!(headings(&told[0]), [NEW]);
        assert!(told[0].contains("from outside"));
        // Nobody can tell what a loop leads to; a directory is no file.
        relink("AGENTS.md");
        assert!(rig.touch(&session, "p/a/f").await.is_empty());
        relink("../../dir");
        let told = rig.touch(&session, "p/a/f").await;
        assert_eq!(headings(&told[0]), ["Instructions removed: a/AGENTS.md"]);
    }

    /// INS-3: a link to a sibling says what the sibling says.
    #[tokio::test]
    async fn a_link_to_a_sibling_collapses() {
        let rig = rig().await;
        let session = rig.session("p");
        rig.write("p/a/AGENTS.md", "one");
        symlink("AGENTS.md", rig.path("p/a/CLAUDE.md")).unwrap();
        let told = rig.touch(&session, "p/a/f").await;
        assert_eq!(headings(&told[0]), [NEW]);
    }

    /// INS-9: a FIFO, a device and a socket are no files, and nobody waits for their other end.
    #[tokio::test]
    async fn special_files_are_absent() {
        let rig = rig().await;
        let session = rig.session("p");
        let path = rig.path("p/a/AGENTS.md");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        symlink("/dev/zero", rig.path("p/a/CLAUDE.md")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(rig.path("p/a/AGENTS.local.md"));
        assert!(socket.is_ok());
        assert!(rig.touch(&session, "p/a/f").await.is_empty());
        assert_eq!(rig.disk.counts().1, 0, "none was opened");
        std::fs::remove_file(&path).unwrap();
        rig.write("p/a/AGENTS.md", "a file at last");
        assert_eq!(headings(&rig.touch(&session, "p/a/f").await[0]), [NEW]);
        assert_eq!(sources(&session).len(), 0);
    }

    /// INS-1: a root marker may be a file; INS-24: names in another case are other names.
    #[tokio::test]
    async fn a_marker_that_is_a_file_and_names_in_lower_case() {
        let rig = rig().await;
        rig.write("p/w/.git", "gitdir: elsewhere");
        rig.write("p/AGENTS.md", "main checkout");
        rig.write("p/w/agents.md", "lower case");
        rig.write("p/w/AGENTS.md", "worktree");
        rig.write("p/w/s/f", "");
        let session = rig.session("p/w/s");
        let told = rig.touch(&session, "p/w/s/f").await;
        assert_eq!(
            headings(&told[0]),
            ["Additional instructions from: AGENTS.md"]
        );
        assert!(told[0].contains("worktree"));
    }
}
