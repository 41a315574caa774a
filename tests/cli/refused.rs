//! What cannot be used is refused before anything is started, and the message says why.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use crate::support::{Desk, program};

#[track_caller]
fn refused(desk: &Desk, workspace: &str, at: Option<&str>, why: &str) {
    let mut args = vec!["check", "--command", "true", "--ext", ".x=x"];
    args.extend(["--workspace", workspace]);
    args.extend(at.into_iter().flat_map(|at| ["--at", at]));
    let said = desk.run(&args).ended(2).err_has(why);
    assert_eq!(said.out, "");
    assert_eq!(said.messages(), 1, "{}", said.err);
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
fn a_place_past_an_end_is_refused_with_where_the_end_is() {
    let desk = Desk::new();
    let folder = desk.path().join("w");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.x"), "one 😀\r\ntwo\n").unwrap();
    std::fs::write(folder.join("b.x"), "one").unwrap();
    std::fs::write(folder.join("mac.x"), "one\rtwo").unwrap();
    std::fs::write(folder.join("empty.x"), "").unwrap();
    for (at, why) in [
        (
            "a.x:4:1",
            "there is no line 4 in a.x, which ends at 3:1; give a place up to there",
        ),
        ("a.x:4294967295:1", "there is no line 4294967295 in a.x"),
        (
            "a.x:1:8",
            "line 1 of a.x has 6 UTF-16 code units; give a column from 1 to 7",
        ),
        (
            "a.x:3:2",
            "line 3 of a.x has 0 UTF-16 code units; give a column from 1 to 1",
        ),
        ("b.x:2:1", "there is no line 2 in b.x, which ends at 1:4"),
        (
            "empty.x:2:1",
            "there is no line 2 in empty.x, which ends at 1:1",
        ),
        ("c.x:1:1", "there is no file c.x in"),
    ] {
        refused(&desk, "w", Some(at), why);
    }
    // The end itself is a place.
    for at in ["mac.x:2:4", "a.x:1:7", "a.x:3:1", "b.x:1:4", "empty.x:1:1"] {
        let args = ["check", "--command", "no-such-program", "--ext", ".x=x"];
        let place = ["--workspace", "w", "--at", at];
        desk.run(&[&args[..], &place].concat()).ended(3);
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

/// That it cannot be started says nothing about the server, as with one that is not there.
#[test]
fn what_keeps_a_server_from_being_started_is_told() {
    let desk = Desk::new();
    let folder = desk.path().join("w");
    std::fs::create_dir(&folder).unwrap();
    let script = folder.join("script");
    std::fs::write(&script, "#!/not/there\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.join("a.x"), "a\n").unwrap();
    std::fs::write(folder.join("bad.x"), b"a\xff\n").unwrap();
    std::fs::write(folder.join("long.x"), vec![b'a'; 4_000_001]).unwrap();
    let script = script.display().to_string();
    for (command, at, why) in [
        (script.as_str(), "a.x:1:1", "could not be started"),
        ("true", "bad.x:1:1", "is not UTF-8 text"),
        (
            "true",
            "long.x:1:1",
            "is larger than maxDocumentBytes (4000000",
        ),
    ] {
        let args = [
            "check",
            "--command",
            command,
            "--ext",
            ".x=x",
            "--workspace",
            "w",
            "--at",
            at,
            "--format",
            "json",
        ];
        let run = desk.run(&args).ended(3).report().runs.remove(0);
        let told = run.conclusion.to_string();
        assert!(
            told.starts_with("UNTESTABLE") && told.contains(why),
            "{told}"
        );
        assert!(run.cases.is_empty(), "{told}");
    }
}

#[test]
fn a_frame_beyond_the_limit_names_the_limit() {
    let header = r"printf 'Content-Length: 1000000000\r\n\r\n{}'; exec cat";
    let command = format!("sh -c \"{header}\"");
    let said = Desk::new()
        .check(&command, &[])
        .ended(1)
        .out_has("QUA-1")
        .out_has("1000000000")
        .out_has("maxMessageBytes");
    assert!(!said.out.contains("nothing was written"), "{}", said.out);
}

/// Whatever is printed: where stdout does not take it, that is said, and the status is not 0.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_told() {
    for args in [
        &["check", "--only", "QUA-1"][..],
        &["list", "clauses"],
        &["explain", "QUA-5"],
        &["completions", "bash"],
        &["deployment", "reference"],
        &["--help"],
        &["--version"],
        &["run", "--help"],
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

#[test]
fn a_command_or_mapping_that_means_nothing_is_refused() {
    let desk = Desk::new();
    let long = format!(".{}=x", "x".repeat(300));
    for (command, mappings, why) in [
        ("''", vec![".x=x"], "--command names no program"),
        ("", vec![".x=x"], "--command names no program"),
        (
            "true",
            vec![".x=a", ".X=b"],
            "--ext gives .x two languages, a and b",
        ),
        ("true", vec![long.as_str()], "at most 100 are taken"),
    ] {
        let mut args = vec!["check", "--command", command];
        args.extend(mappings.iter().flat_map(|mapping| ["--ext", mapping]));
        desk.run(&args).ended(2).err_has(why);
    }
}
