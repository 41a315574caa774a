//! `tap`: a process that is not there, as far as client and server can tell.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::Builder;

use dsh_transcript::{Direction, Event, EventBody, View, jsonl};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Desk, program};

/// A tap and what it stands before.
struct Tapped {
    child: Child,
    log: PathBuf,
}

fn tap(desk: &Desk, command: &[&str]) -> Tapped {
    tap_to(desk.path().join("t.jsonl"), command)
}

fn tap_to(log: PathBuf, command: &[&str]) -> Tapped {
    let child = Command::new(program())
        .arg("tap")
        .arg("--log")
        .arg(&log)
        .arg("--")
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Tapped { child, log }
}

impl Tapped {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end, with stdin open until then.
    fn wait(&mut self) -> ExitStatus {
        let _open = self.child.stdin.take();
        self.child.wait().unwrap()
    }

    /// Closes stdin and takes everything.
    fn finish(mut self) -> (ExitStatus, Vec<u8>, String, Vec<Event>) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status, output.stdout, error, recording(&self.log))
    }
}

fn recording(path: &Path) -> Vec<Event> {
    jsonl::read(std::fs::read(path).unwrap().as_slice()).unwrap()
}

/// A pipe with a name, of which the server holds the other end as long as it lives.
fn alive(desk: &Desk) -> (String, PathBuf) {
    let path = desk.path().join("alive");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    (path.to_str().unwrap().to_owned(), path)
}

fn message(text: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

#[test]
fn bytes_pass_unchanged_however_they_are_cut() {
    for seed in 1..=12 {
        let desk = Desk::new();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed);
        let mut tapped = tap(&desk, &["cat"]);
        let sent: Vec<u8> = (0..dice.below(400_000))
            .map(|_| u8::try_from(dice.below(256)).unwrap())
            .collect();
        let (mut stdin, bytes) = (tapped.child.stdin.take().unwrap(), sent.clone());
        let writer = Builder::new()
            .spawn(move || {
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let largest = [3, 700, 70_000][dice.below(3)];
                    let (piece, after) = rest.split_at((1 + dice.below(largest)).min(rest.len()));
                    stdin.write_all(piece).unwrap();
                    rest = after;
                }
            })
            .unwrap();
        let mut got = Vec::new();
        let mut stdout = tapped.child.stdout.take().unwrap();
        stdout.read_to_end(&mut got).unwrap();
        writer.join().unwrap();
        assert!(
            got == sent,
            "seed {seed}: {} bytes of {}",
            got.len(),
            sent.len()
        );
        let (status, _, error, events) = tapped.finish();
        assert_eq!(
            (status.code(), error.as_str()),
            (Some(0), ""),
            "seed {seed}"
        );
        for direction in [Direction::ToServer, Direction::ToClient] {
            let total = sent.len() as u64;
            let closed = EventBody::Closed { direction, total };
            assert!(
                events.iter().any(|event| event.body == closed),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn an_answer_is_there_before_anything_else_is_written() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["cat"]);
    let (stdin, stdout) = (
        tapped.child.stdin.as_mut().unwrap(),
        tapped.child.stdout.as_mut().unwrap(),
    );
    // A cut anywhere must not hold anything back.
    for byte in message(r#"{"jsonrpc":"2.0","id":1,"result":null}"#) {
        stdin.write_all(&[byte]).unwrap();
        let mut back = [0];
        stdout.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
    }
    let (_, rest, _, events) = tapped.finish();
    assert!(rest.is_empty());
    let frames: Vec<_> = events.iter().filter_map(Event::frame).collect();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0].direction, Direction::ToServer);
}

#[test]
fn the_exit_status_is_the_servers() {
    for code in [0, 1, 77, 255] {
        let desk = Desk::new();
        let (status, _, _, events) = tap(&desk, &["sh", "-c", &format!("exit {code}")]).finish();
        assert_eq!(status.code(), Some(code));
        let ended = EventBody::ProcessEnded {
            code: Some(code),
            signal: None,
        };
        assert_eq!(events.last().unwrap().body, ended);
    }
    for signal in ["TERM", "KILL", "SEGV", "ABRT", "PIPE"] {
        let desk = Desk::new();
        let (status, ..) = tap(&desk, &["sh", "-c", &format!("kill -{signal} $$")]).finish();
        let number = match signal {
            "TERM" => 15,
            "KILL" => 9,
            "SEGV" => 11,
            "ABRT" => 6,
            _ => 13,
        };
        assert_eq!(status.signal(), Some(number), "{signal}");
    }
}

#[test]
fn signals_reach_the_server() {
    for (name, signal) in [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("HUP", Signal::HUP),
        ("USR1", Signal::USR1),
    ] {
        let desk = Desk::new();
        let server =
            format!("trap 'exit 7' {name}; exec 3<&0; cat <&3 >/dev/null & echo ready; wait");
        let mut tapped = tap(&desk, &["sh", "-c", &server]);
        let mut ready = [0; 6];
        let stdout = tapped.child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut ready).unwrap();
        tapped.signal(signal);
        assert_eq!(tapped.wait().code(), Some(7), "{name}");
    }
}

#[test]
fn a_signal_that_ends_the_server_ends_the_tap_in_the_same_way() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["sh", "-c", "echo ready; exec cat"]);
    let mut ready = [0; 6];
    let stdout = tapped.child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut ready).unwrap();
    tapped.signal(Signal::TERM);
    assert_eq!(tapped.wait().signal(), Some(15));
    let events = recording(&tapped.log);
    let ended = EventBody::ProcessEnded {
        code: None,
        signal: Some(15),
    };
    assert_eq!(events.last().unwrap().body, ended);
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.body, EventBody::Note { kind, .. } if kind == "signal"))
    );
}

#[test]
fn the_end_of_either_stream_is_passed_on_while_the_other_goes_on() {
    let desk = Desk::new();
    // The server closes its stdout and reads on.
    let mut tapped = tap(&desk, &["sh", "-c", "exec >&-; exec cat >&2"]);
    let mut stdout = tapped.child.stdout.take().unwrap();
    assert_eq!(stdout.read(&mut [0]).unwrap(), 0);
    let stdin = tapped.child.stdin.as_mut().unwrap();
    stdin.write_all(b"still heard").unwrap();
    let (status, _, error, _) = tapped.finish();
    assert_eq!((status.code(), error.as_str()), (Some(0), "still heard"));

    // The client closes its end, and the server has a last word.
    let desk = Desk::new();
    let (status, out, ..) = tap(&desk, &["sh", "-c", "cat; echo bye; exit 4"]).finish();
    assert_eq!((status.code(), out.as_slice()), (Some(4), &b"bye\n"[..]));
}

#[test]
fn a_server_that_stops_reading_is_seen_by_whoever_writes() {
    let desk = Desk::new();
    let mut tapped = tap(
        &desk,
        &["sh", "-c", "exec <&-; echo closed; exec tail -f /dev/null"],
    );
    let mut line = String::new();
    let mut stdout = BufReader::new(tapped.child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "closed\n");
    let stdin = tapped.child.stdin.as_mut().unwrap();
    let error = loop {
        // A pipe takes bytes until its reader is seen to be gone.
        if let Err(error) = stdin.write_all(&[b'x'; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    tapped.signal(Signal::KILL);
    tapped.child.wait().unwrap();
}

#[test]
fn a_client_that_stops_reading_is_seen_by_the_server() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["yes"]);
    drop(tapped.child.stdout.take());
    assert_eq!(tapped.child.wait().unwrap().signal(), Some(13));
}

#[test]
fn a_full_pipe_in_one_direction_does_not_stop_the_other() {
    let desk = Desk::new();
    // Nobody reads the server's flood, and it hears every line all the same.
    let server = "yes & while read -r line; do echo \"$line\" >&2; done; kill $!; wait";
    let mut tapped = tap(&desk, &["sh", "-c", server]);
    let mut errors = BufReader::new(tapped.child.stderr.take().unwrap());
    let stdin = tapped.child.stdin.as_mut().unwrap();
    for turn in 0..50 {
        writeln!(stdin, "line {turn}").unwrap();
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert_eq!(line, format!("line {turn}\n"));
    }
    // And the other way round: a server that does not read is read from.
    let desk = Desk::new();
    let mut other = tap(
        &desk,
        &["sh", "-c", "yes | head -c 3000000; exec cat >/dev/null"],
    );
    let mut stdin = other.child.stdin.take().unwrap();
    let writer = Builder::new()
        .spawn(move || stdin.write_all(&vec![b'x'; 3_000_000]).unwrap())
        .unwrap();
    let mut got = vec![0; 3_000_000];
    let stdout = other.child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(other.child.wait().unwrap().code(), Some(0));
    drop(tapped.child.stdin.take());
    drop(tapped.child.stdout.take());
    tapped.child.wait().unwrap();
}

#[test]
fn a_server_killed_in_the_middle_of_a_flood_is_not_waited_for() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["sh", "-c", "exec yes"]);
    let mut first = [0; 2];
    let stdout = tapped.child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut first).unwrap();
    // Nobody reads the rest; one who kills and waits must not wait for ever.
    tapped.signal(Signal::TERM);
    assert_eq!(tapped.wait().signal(), Some(15));
}

#[test]
fn a_child_that_holds_the_stdout_of_a_server_that_ended_is_heard() {
    let desk = Desk::new();
    let server = "S=$$; (while kill -0 $S 2>&-; do :; done; echo late) & exit 3";
    let (status, out, ..) = tap(&desk, &["sh", "-c", server]).finish();
    assert_eq!((status.code(), out.as_slice()), (Some(3), &b"late\n"[..]));

    // One that never ends holds nobody who has gone, or who says so.
    for told in [false, true] {
        let desk = Desk::new();
        let mut tapped = tap(&desk, &["sh", "-c", "tail -f /dev/null & echo $!; exit 3"]);
        let mut stdout = BufReader::new(tapped.child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let child = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        if told {
            let ended = |event: &Event| matches!(event.body, EventBody::ProcessEnded { .. });
            // A signal that finds the server alive is the server's.
            let started = recording(&tapped.log);
            let pid = started.iter().find_map(|event| match event.body {
                EventBody::ProcessStarted { pid, .. } => Some(pid),
                _ => None,
            });
            let stat = format!("/proc/{}", pid.unwrap());
            while Path::new(&stat).exists() {
                std::thread::yield_now();
            }
            tapped.signal(Signal::TERM);
            let status = tapped.wait();
            assert_eq!(status.code(), Some(3));
            assert!(recording(&tapped.log).iter().any(ended));
        } else {
            drop(stdout);
            assert_eq!(tapped.wait().code(), Some(3));
        }
        // It may have noticed by itself that nobody reads, and be gone.
        let _gone = kill_process(child, Signal::KILL);
    }
}

#[test]
fn what_cannot_be_started_is_told() {
    let desk = Desk::new();
    let (status, out, error, _) = tap(&desk, &["no-such-server", "--stdio"]).finish();
    assert_eq!((status.code(), out.as_slice()), (Some(127), &b""[..]));
    assert!(error.contains("cannot start no-such-server"), "{error}");
    assert!(error.contains("on PATH"), "{error}");
    let file = desk.path().join("text");
    std::fs::write(&file, "no program").unwrap();
    let (status, _, error, _) = tap(&desk, &[file.to_str().unwrap()]).finish();
    assert_eq!(status.code(), Some(126));
    assert!(error.contains("is it a program?"), "{error}");
    desk.run(&["tap", "--log", "x"]).ended(2);
}

#[test]
fn a_recording_that_cannot_be_begun_starts_nothing() {
    let desk = Desk::new();
    let started = desk.path().join("started");
    let server = format!("touch '{}'", started.display());
    std::fs::write(desk.path().join("diary"), "dear diary\n").unwrap();
    for (log, told) in [
        ("no/such/folder/t.jsonl", "--log"),
        ("diary", "no recording"),
        (".", "cannot be written"),
    ] {
        desk.run(&["tap", "--log", log, "--", "sh", "-c", &server])
            .ended(3)
            .err_has(told);
    }
    assert!(!started.exists());
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_and_nothing_else() {
    let desk = Desk::new();
    let log = desk.path().join("t.jsonl");
    let sent = message(&format!("\"{}\"", "x".repeat(900))).repeat(30);
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"])
        .arg(program())
        .args(["tap", "--log"])
        .arg(&log)
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&sent).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == sent);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.matches("ends here").count(), 1, "{error}");
    // What there is can be read.
    assert!(!recording(&log).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_tap_leaves_no_server() {
    let desk = Desk::new();
    let (name, path) = alive(&desk);
    // Deaf to the end of its stdin.
    let server = ["sh", "-c", "exec tail -f /dev/null 3>\"$0\"", &name];
    let mut tapped = tap(&desk, &server);
    let mut lives = std::fs::File::open(path).unwrap();
    tapped.signal(Signal::KILL);
    tapped.child.wait().unwrap();
    assert_eq!(
        lives.read(&mut [0]).unwrap(),
        0,
        "it ends, and with it this pipe"
    );
    // What was recorded until then is whole.
    assert!(!recording(&tapped.log).is_empty());
}

#[test]
fn everything_that_passed_before_a_kill_is_in_the_recording() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["cat"]);
    let text = r#"{"jsonrpc":"2.0","method":"x"}"#;
    let mut back = vec![0; message(text).len()];
    for _ in 0..100 {
        let stdin = tapped.child.stdin.as_mut().unwrap();
        stdin.write_all(&message(text)).unwrap();
        let stdout = tapped.child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut back).unwrap();
    }
    tapped.signal(Signal::KILL);
    tapped.child.wait().unwrap();
    let frames = recording(&tapped.log);
    assert_eq!(frames.iter().filter_map(Event::frame).count(), 200);
}

#[test]
fn several_taps_make_one_recording_with_several_processes() {
    let desk = Desk::new();
    let log = desk.path().join("t.jsonl");
    let mut taps: Vec<_> = (0..4).map(|_| tap_to(log.clone(), &["cat"])).collect();
    for turn in 0..20 {
        for tapped in &mut taps {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"turn/t{turn}"}}"#);
            let stdin = tapped.child.stdin.as_mut().unwrap();
            stdin.write_all(&message(&text)).unwrap();
        }
    }
    for tapped in taps {
        let (status, ..) = tapped.finish();
        assert!(status.success());
    }
    let (status, _, _, events) = tap_to(log, &["true"]).finish();
    assert!(status.success());
    let expected: Vec<String> = (0..20).map(|turn| format!("t{turn}")).collect();
    for process in 1..=4 {
        assert_eq!(View(&events).wire(process), expected, "{process}");
    }
    assert_eq!(events.last().unwrap().process, Some(5));
    let one_each = tap_to(desk.path().join("%p.jsonl"), &["true"]);
    let named = desk.path().join(format!("{}.jsonl", one_each.child.id()));
    let mut child = one_each.child;
    child.wait().unwrap();
    assert_eq!(recording(&named)[0].process, Some(1));
}

#[test]
fn a_real_exchange_reads_as_it_was() {
    let desk = Desk::new();
    let server = program();
    let mut tapped = tap(&desk, &[server.to_str().unwrap(), "fake-lsp"]);
    let stdin = tapped.child.stdin.as_mut().unwrap();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","method":"exit"}"#,
    ] {
        stdin.write_all(&message(text)).unwrap();
    }
    let (status, _, error, events) = tapped.finish();
    assert_eq!((status.code(), error.as_str()), (Some(0), ""));
    let wire = ["initialize", "initialized", "shutdown", "exit"];
    assert_eq!(View(&events).wire(1), wire);
    let EventBody::ProcessStarted { argv, cwd, .. } = &events[1].body else {
        panic!("{:?}", events[1]);
    };
    assert_eq!(argv[1], "fake-lsp");
    assert!(cwd.is_some());
}

#[test]
fn large_bodies_and_stderr_pass_and_are_bounded_in_the_recording() {
    let desk = Desk::new();
    let mut tapped = tap(&desk, &["sh", "-c", "yes | head -c 3000000 >&2; exec cat"]);
    let mut stderr = tapped.child.stderr.take().unwrap();
    let reader = Builder::new()
        .spawn(move || {
            let mut all = Vec::new();
            stderr.read_to_end(&mut all).unwrap();
            all.len()
        })
        .unwrap();
    let sent = message(&format!("\"{}\"", "x".repeat(20 << 20)));
    let (mut stdin, copy) = (tapped.child.stdin.take().unwrap(), sent.clone());
    let writer = Builder::new()
        .spawn(move || stdin.write_all(&copy).unwrap())
        .unwrap();
    let mut got = Vec::new();
    let mut stdout = tapped.child.stdout.take().unwrap();
    stdout.read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert!(got == sent);
    assert_eq!(reader.join().unwrap(), 3_000_000);
    let (status, _, _, events) = tapped.finish();
    assert!(status.success());
    let kept: usize = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Stderr { text } => Some(text.len()),
            _ => None,
        })
        .sum();
    assert_eq!(kept, 1 << 20);
    let frame = events.iter().find_map(Event::frame).unwrap();
    assert!(frame.cut.is_some() && frame.body.len() == 16 << 20);
}
