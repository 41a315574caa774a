//! What cannot be used is refused before anything is started, and the message says why.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::support::{Desk, program};

#[track_caller]
fn refused(desk: &Desk, workspace: &str, at: Option<&str>, why: &str) {
    let mut args = vec!["check", "--command", "true", "--ext", ".x=x"];
    args.extend(["--workspace", workspace]);
    args.extend(at.into_iter().flat_map(|at| ["--at", at]));
    let said = desk.run(&args).ended(2).err_has(why);
    assert_eq!(said.out, "");
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn a_place_that_cannot_be_asked_at_is_refused() {
    let desk = Desk::new();
    let folder = desk.path().join("w");
    std::fs::create_dir_all(folder.join("folder.x")).unwrap();
    std::fs::write(folder.join("a.y"), "a\n").unwrap();
    std::fs::write(desk.path().join("outside.x"), "a\n").unwrap();
    symlink("loop.x", folder.join("loop.x")).unwrap();
    symlink("../outside.x", folder.join("link.x")).unwrap();
    for (at, why) in [
        ("missing.x:1:1", "there is no file missing.x"),
        ("folder.x:1:1", "folder.x is no regular file"),
        ("loop.x:1:1", "loop.x cannot be read"),
        ("../outside.x:1:1", "lies outside the workspace"),
        ("link.x:1:1", "lies outside the workspace"),
        ("a.y:1:1", "another extension than those of --ext, .x"),
    ] {
        refused(&desk, "w", Some(at), why);
    }
}

#[test]
fn a_workspace_that_is_no_folder_is_refused() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("file"), "").unwrap();
    symlink("loop", desk.path().join("loop")).unwrap();
    refused(
        &desk,
        "missing",
        None,
        "does not exist; give an existing folder",
    );
    refused(&desk, "file", None, "is no folder; give an existing folder");
    refused(&desk, "loop", None, "cannot be read");
}

#[test]
fn a_deployment_file_that_never_ends_is_not_read_to_the_end() {
    let desk = Desk::new();
    desk.run(&["deployment", "check", "/dev/zero"])
        .ended(2)
        .err_has("cannot read /dev/zero")
        .err_has("larger than 4000000 bytes");
    std::fs::write(desk.path().join("latin1.yml"), b"- name: \xe9").unwrap();
    desk.run(&["deployment", "check", "latin1.yml"])
        .ended(2)
        .err_has("not UTF-8 text (first invalid byte at offset 8)");
}

#[test]
fn a_time_that_is_too_long_names_the_longest() {
    Desk::new()
        .run(&["check", "--budget", "1e10"])
        .ended(2)
        .err_has("up to 2147483");
}

/// Whatever is printed: where stdout does not take it, that is said, and the status is not 0.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_told() {
    for args in [
        &["check"][..],
        &["list", "clauses"],
        &["explain", "QUA-5"],
        &["completions", "bash"],
        &["deployment", "reference"],
    ] {
        let desk = Desk::new();
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = std::process::Command::new(program())
            .args(args)
            .current_dir(desk.path())
            .stdin(Stdio::null())
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {told}");
        assert_eq!(
            told.matches("cannot write to stdout").count(),
            1,
            "{args:?}: {told}"
        );
    }
}
