//! Files that are pipes: what is read from one is waited for in a way that a signal ends, and one
//! that nobody reads is told of.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::Builder;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Desk, Said, program, until_it_listens};

/// Only a hang ends a test by this.
const PATIENCE: Duration = Duration::from_mins(1);

fn pipe(desk: &Desk) -> PathBuf {
    let path = desk.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

/// Runs it; a hang ends it with no status.
fn ended(desk: &Desk, args: &[&str]) -> Said {
    let output = desk.command(args).timeout(PATIENCE).output().unwrap();
    Said {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The end of the child; a hang is ended and has no status.
pub(crate) fn end_of(mut child: std::process::Child) -> ExitStatus {
    let pid = Pid::from_child(&child);
    let (done, waits) = std::sync::mpsc::channel::<()>();
    let watch = Builder::new().spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let status = child.wait().unwrap();
    drop(done);
    watch.unwrap().join().unwrap();
    status
}

const ROWS: &str = "- name: dsh-fs-local\n- name: dsh-tool-fs\n";

#[test]
fn a_pipe_that_nobody_writes_is_given_up_at_the_first_signal() {
    for option in ["--deployment", "--catalogue"] {
        let desk = Desk::new();
        pipe(&desk);
        std::fs::write(desk.path().join("s.yaml"), "replies: [{text: a}]\n").unwrap();
        let mut child = Command::new(program())
            .current_dir(desk.path())
            .args(["agent", "--model", "scripted:s.yaml", "--server", "x"])
            .args([option, "pipe", "go"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until_it_listens(child.id());
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut stderr = child.stderr.take().unwrap();
        assert_eq!(end_of(child).code(), Some(130), "{option}");
        let mut err = String::new();
        stderr.read_to_string(&mut err).unwrap();
        assert!(err.contains("given up while nothing was written"), "{err}");
    }
}

#[test]
fn a_pipe_is_read_to_the_end_of_its_writer() {
    let desk = Desk::new();
    let path = pipe(&desk);
    let writer = Builder::new().spawn(move || std::fs::write(path, ROWS).unwrap());
    let said = ended(&desk, &["deployment", "check", "pipe"]).ended(0);
    writer.unwrap().join().unwrap();
    said.out_has("dsh-tool-fs (pipe:2)").out_has("tool read");
}

/// A pipe that nobody reads, wherever a file is written.
#[test]
fn a_pipe_that_nobody_reads_is_told_and_not_waited_for() {
    let desk = Desk::new();
    pipe(&desk);
    std::fs::write(desk.path().join("s.yaml"), "replies: [{text: a}]\n").unwrap();
    let agent = ["agent", "--model", "scripted:s.yaml", "go"];
    for option in ["--wire", "--trajectory"] {
        ended(&desk, &[&agent[..], &[option, "pipe"]].concat())
            .ended(3)
            .err_has("error: cannot write pipe: nobody reads this pipe; start its reader first");
    }
    let run = ["run", "handshake/advertised", "--quiet"];
    for options in [
        &["--format", "json", "--out", "pipe"] as &[&str],
        &["--badge", "pipe"],
    ] {
        ended(&desk, &[&run[..], options].concat())
            .ended(3)
            .err_has("pipe: nobody reads this pipe");
    }
    ended(&desk, &["tap", "--log", "pipe", "--", "true"])
        .ended(3)
        .err_has("the recording pipe is a pipe that nobody reads; start its reader first");
}

#[test]
fn a_pipe_that_is_read_gets_what_is_written() {
    let desk = Desk::new();
    let path = pipe(&desk);
    std::fs::write(desk.path().join("s.yaml"), "replies: [{text: a}]\n").unwrap();
    let mut reader = std::fs::File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .unwrap();
    fcntl_setfl(&reader, OFlags::empty()).unwrap();
    let args = ["agent", "--model", "scripted:s.yaml", "go", "--wire"];
    ended(&desk, &[&args[..], &["pipe"]].concat()).ended(0);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("{\"format\":\"dsh-transcript/1\""),
        "{text}"
    );
    ended(&desk, &["tap", "--log", "pipe", "--", "true"]).ended(0);
    text.clear();
    reader.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("{\"format\":\"dsh-transcript/1\""),
        "{text}"
    );
}
