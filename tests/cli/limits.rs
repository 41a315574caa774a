//! What was killed and left something, and what the system does not let this program have.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_fake_lsp::{Control, FakeServer, ignore};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Desk, program, typed};

/// Only a hang ends a test by this.
const PATIENCE: Duration = Duration::from_mins(1);

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn kill(child: &mut std::process::Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_check_left_goes_with_the_next_and_what_a_living_one_has_stays() {
    let desk = Desk::new();
    let tmp = desk.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let started = |control: &Control| {
        let server = FakeServer::new().control(control);
        let command = typed(&server.on("textDocument/definition", [ignore()]));
        Command::new(program())
            .current_dir(desk.path())
            .env("TMPDIR", &tmp)
            .args(["check", "--command", &command, "--ext", ".x=x"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    // They are held to the end: without it, a server ends.
    let controls = [Control::bind().unwrap(), Control::bind().unwrap()];
    let mut children = controls.each_ref().map(started);
    for control in &controls {
        let asked = control.wait_received(1, "definition");
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        asked.expect("the question comes");
    }
    let both = names(&tmp);
    assert_eq!(both.len(), 2, "{both:?}");
    kill(&mut children[0]);
    assert_eq!(names(&tmp).len(), 2);
    let desk = Desk::new();
    let next = || {
        let mut check = desk.command(&["check", "--only", "QUA-1", "--measure", "no"]);
        check.env("TMPDIR", &tmp).assert().code(0);
    };
    next();
    let left = names(&tmp);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(both.contains(&left[0]));
    // What somebody lives in is whole.
    let inside = names(&tmp.join(&left[0]));
    assert!(
        inside.iter().any(|name| name.starts_with("dsh-check-")),
        "{inside:?}"
    );
    kill(&mut children[1]);
    next();
    assert_eq!(names(&tmp), Vec::<String>::new());
}

#[test]
fn a_workspace_that_is_kept_outlives_the_next_check() {
    let desk = Desk::new();
    let tmp = desk.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let check = |more: &[&str]| {
        let args = [&["check", "--only", "QUA-1"], more].concat();
        let output = desk.command(&args).env("TMPDIR", &tmp).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let said = check(&["--keep", "--format", "json"]);
    let report = dsh_reports::read(&said).unwrap();
    let mut remarks = report.runs[0].remarks.iter();
    let kept = remarks.find_map(|text| text.strip_prefix("workspace kept: "));
    let kept = Path::new(kept.unwrap());
    assert!(kept.join("main.fake").is_file());
    check(&[]);
    assert!(kept.join("main.fake").is_file());
    assert_eq!(names(&tmp).len(), 1);
}

/// npm and whatever it has started hold the pipe: its end is theirs. None of them has our streams, at
/// whose end some programs end by themselves.
#[test]
fn an_installer_ends_with_the_program_that_is_killed() {
    let desk = Desk::new();
    let script = "mkdir bin && mkfifo alive && cd bin && \
        printf '#!/bin/sh\\necho v20.0.0\\n' > node && \
        printf '#!/bin/sh\\nexec 3>\"$ALIVE\"\\n\
        sh -c \"trap : TERM; echo helper >&3; exec tail -f /dev/null >/dev/null 2>&1\" &\\n\
        exec tail -f /dev/null\\n' > npm && chmod +x node npm";
    let made = Command::new("sh")
        .current_dir(desk.path())
        .args(["-c", script])
        .status();
    assert!(made.unwrap().success());
    std::fs::write(
        desk.path().join("dsh-conform.toml"),
        "[servers.x]\nlaunch = {command = 'x-server'}\nextensions = {'.x' = 'x'}\n\
         recipes = [{kind = 'npm', package = 'x-server', version = '1.2.3', node = 18}]\n",
    )
    .unwrap();
    let mut child = Command::new(program())
        .current_dir(desk.path())
        .args(["servers", "install", "x"])
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", desk.path().join("bin").display()),
        )
        .env("ALIVE", desk.path().join("alive"))
        .env("DSH_CONFORM_CACHE", desk.path().join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = File::open(desk.path().join("alive")).unwrap();
    let mut word = [0; "helper\n".len()];
    pipe.read_exact(&mut word).unwrap();
    kill(&mut child);
    let limit = Timespec {
        tv_sec: i64::try_from(PATIENCE.as_secs()).unwrap(),
        tv_nsec: 0,
    };
    let mut watched = [PollFd::new(&pipe, PollFlags::IN)];
    assert_eq!(poll(&mut watched, Some(&limit)).unwrap(), 1, "it goes on");
    assert_eq!(pipe.read(&mut word).unwrap(), 0);
}

const CHECK: [&str; 5] = ["check", "--only", "QUA-1", "--format", "json"];

#[test]
fn too_few_files_are_told_before_anything_is_started() {
    let desk = Desk::new();
    for most in ["6", "12", "19"] {
        let said = desk
            .in_shell(&format!("ulimit -n {most};"), "", &CHECK)
            .ended(3)
            .err_has(&format!("this process may have {most} files open"))
            .err_has("`ulimit -n 1024`");
        assert_eq!((said.messages(), said.out.as_str()), (1, ""));
    }
    desk.in_shell("ulimit -n 20;", "", &CHECK).ended(0);
    // What may be raised is.
    desk.in_shell("ulimit -Sn 8;", "", &CHECK).ended(0);
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_told_before_it_ends_the_program() {
    let desk = Desk::new();
    let said = desk
        .in_shell("ulimit -v 130000;", "", &CHECK)
        .ended(3)
        .err_has("this process may have 126 MiB of address space")
        .err_has("`ulimit -v 524288`");
    assert_eq!((said.messages(), said.out.as_str()), (1, ""));
    desk.in_shell("ulimit -v 262144;", "", &CHECK).ended(0);
}

#[test]
fn a_file_that_grows_too_large_is_an_error_that_names_it() {
    let desk = Desk::new();
    let args = [&CHECK[..], &["--out", "report.json"]].concat();
    desk.in_shell("ulimit -f 4;", "", &args)
        .ended(3)
        .err_has("report.json")
        .err_has("File too large");
    desk.in_shell("ulimit -f 1; exec > out;", "", &["list", "clauses"])
        .ended(3)
        .err_has("cannot write to stdout: File too large");
}
