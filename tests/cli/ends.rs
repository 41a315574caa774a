//! Stdout that is closed, that leads nowhere, or that nobody reads.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread::Builder;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Desk, program};

/// In its place the standard library opens `/dev/null`, as others do for their children: what they
/// want is not what is told here.
#[test]
fn a_stdout_that_is_closed_is_told_and_dev_null_is_not() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("s.yaml"), "replies: [{text: a}]\n").unwrap();
    std::fs::write(desk.path().join("d.yaml"), "- name: dsh-fs-local\n").unwrap();
    for args in [
        &["agent", "--model", "scripted:s.yaml", "go"] as &[&str],
        &["agent", "--model", "scripted:s.yaml", "--json", "go"],
        &["agent", "--model", "scripted:s.yaml", "--profile", "sdk"],
        &["agent", "--model", "scripted:s.yaml", "--profile", "acp"],
        &["deployment", "check", "d.yaml"],
        &["deployment", "reference"],
        &["list", "clauses"],
        &["explain", "INI-1"],
        &["list", "servers"],
        &["completions", "bash"],
        &["run", "handshake/advertised"],
        &["--help"],
        &["--version"],
    ] {
        let said = desk.in_shell("", ">&- </dev/null", args).ended(3);
        let told = said
            .err_has("error: ")
            .err_has("stdout is closed, and what is printed");
        assert!(!told.err.contains("/dev/null in"), "{}", told.err);
        for null in [">/dev/null", "1<>/dev/null"] {
            desk.in_shell("", &format!("{null} </dev/null"), args)
                .ended(0);
        }
    }
    // What goes into a file needs no stdout.
    let args = [
        "run",
        "handshake/advertised",
        "--format",
        "json",
        "--out",
        "r.json",
    ];
    desk.in_shell("", ">&-", &args).ended(0);
}

/// Many times what is needed to fill a pipe with answers.
const ASKED: usize = 5_000;

/// It takes the second that a client is given then.
#[test]
fn a_client_that_reads_nothing_does_not_keep_a_signal_from_ending_a_served_run() {
    for profile in ["acp", "sdk"] {
        let desk = Desk::new();
        std::fs::write(desk.path().join("s.yaml"), "replies: [{text: a}]\n").unwrap();
        let mut child = Command::new(program())
            .current_dir(desk.path())
            .args(["agent", "--model", "scripted:s.yaml", "--profile", profile])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        // Every line is answered: more than the pipe holds. The input stays open.
        let asking = Builder::new().spawn(move || {
            let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\",\"params\":{}}\n";
            let _ = stdin.write_all(line.repeat(ASKED).as_bytes());
            stdin
        });
        let asking = asking.unwrap();
        // How much fits depends on how it is written; half of it always does.
        let half = rustix::pipe::fcntl_getpipe_size(&stdout).unwrap() as u64 / 2;
        while rustix::io::ioctl_fionread(&stdout).unwrap() < half {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(crate::pipes::end_of(child).code(), Some(130), "{profile}");
        drop(asking.join().unwrap());
    }
}
