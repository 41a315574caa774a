//! The worker: `dsh-conform subject`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use dsh_fake_lsp::FakeServer;
use dsh_scenarios::subject::{CallError, Process, Subject};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Bench, EXECUTABLE, Held, ask, built_in, deaf, in_time};

fn descriptors(subject: &Process) -> usize {
    let pid = subject.pid().expect("it has a process");
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    entries.expect("it is ours").count()
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), signal).expect("it is there");
}

#[tokio::test]
async fn it_says_who_it_is() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let description = subject.description();
        assert_eq!(description.name, "dsh-harness");
        assert!(description.controls.iter().any(|op| op == "register"));
        subject.end().await;
    })
    .await;
}

#[tokio::test]
async fn mounts_one_after_the_other_leave_nothing() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let mut before = None;
        for _ in 0..5 {
            let bench = Bench::new(FakeServer::new());
            let server = bench.serve(&subject).await;
            assert_eq!(ask(&subject, "unmount", json!({})).await, Ok(json!({})));
            assert!(server.is_gone());
            let now = descriptors(&subject);
            assert_eq!(*before.get_or_insert(now), now, "descriptors");
        }
        subject.end().await;
    })
    .await;
}

/// CAN-3: through the lines, with a server.
#[tokio::test]
async fn a_query_is_given_up_by_its_id() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let (bench, query) = Bench::in_flight(&subject).await;
        subject.cancel(query.id, "timeout").await;
        let Err(CallError::Refused { code, message, .. }) = query.outcome.await else {
            panic!("it was given up");
        };
        assert_eq!(code.as_deref(), Some("LSP_CANCELLED"));
        assert!(message.contains("timed out"), "{message}");
        bench.control.wait_received(1, "$/cancelRequest").await;
        bench.control.release("h");
        assert_eq!(ask(&subject, "unmount", json!({})).await, Ok(json!({})));
        subject.end().await;
    })
    .await;
}

/// Ended in the middle of everything, nothing is left when its end is told.
#[tokio::test]
async fn ending_it_ends_servers_that_end_for_nobody() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let worker = Held::new(subject.pid().expect("it has a process"));
        let bench = Bench::new(deaf());
        let server = bench.serve(&subject).await;
        subject.end().await;
        assert!(worker.is_gone() && server.is_gone());
        let late = ask(&subject, "describe", json!({})).await;
        assert!(matches!(late, Err(CallError::Gone { .. })), "{late:?}");
        assert!(subject.is_over());
    })
    .await;
}

/// A worker that hangs altogether is killed, and its servers with it.
#[tokio::test]
async fn a_worker_that_is_stopped_is_killed_with_its_servers() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let pid = subject.pid().expect("it has a process");
        let bench = Bench::new(deaf());
        let server = bench.serve(&subject).await;
        signal(pid, Signal::STOP);
        subject.end().await;
        assert!(server.is_gone());
    })
    .await;
}

#[tokio::test]
async fn a_process_that_is_dropped_leaves_nothing() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let worker = Held::new(subject.pid().expect("it has a process"));
        let bench = Bench::new(deaf());
        let server = bench.serve(&subject).await;
        drop(subject);
        let waited = tokio::task::spawn_blocking(move || {
            worker.wait();
            server.wait();
        });
        waited.await.expect("both are gone");
    })
    .await;
}

/// Killed from outside, it is gone at once; a server ends since its input does.
#[tokio::test]
async fn a_worker_that_is_killed_is_told_with_its_signal() {
    in_time(async {
        let subject = Process::start(&built_in()).await.expect("started");
        let (bench, query) = Bench::in_flight(&subject).await;
        let server = bench.server(1);
        signal(subject.pid().expect("it has a process"), Signal::KILL);
        let Err(CallError::Gone { how }) = query.outcome.await else {
            panic!("it is gone");
        };
        assert!(how.contains("signal: 9"), "{how}");
        let waited = tokio::task::spawn_blocking(move || server.wait());
        waited.await.expect("it is gone");
        subject.end().await;
    })
    .await;
}

/// The worker alone, as a shell would start it.
struct Alone {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Alone {
    fn start() -> Self {
        use std::io::BufRead as _;
        let mut child = Command::new(EXECUTABLE)
            .arg("subject")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        let lines = std::io::BufReader::new(stdout).lines();
        Self { child, lines }
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().expect("it is open");
        stdin.write_all(bytes).expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.write(format!("{message}\n").as_bytes());
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let line = self.lines.next().expect("an answer").expect("readable");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Mounts a server that ends for nobody, and starts it.
    fn serve(&mut self) -> (Bench, Held) {
        let bench = Bench::new(deaf());
        let mounted = self.ask("mount", bench.mount_params());
        assert_eq!(mounted["result"], json!({}), "{mounted}");
        let answer = self.ask("query", &bench.query());
        assert_eq!(answer["result"]["kind"], "hover", "{answer}");
        let server = bench.server(1);
        (bench, server)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_its_input_ends_it_and_its_servers() {
    let mut worker = Alone::start();
    let (_bench, server) = worker.serve();
    // A line without an end is no request.
    worker.write(b"{\"id\":7,\"method\":\"describe\"");
    drop(worker.child.stdin.take());
    let status = worker.child.wait().expect("it was ours");
    assert_eq!(status.code(), Some(0));
    server.wait();
    assert!(worker.lines.next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_and_its_servers() {
    for (number, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut worker = Alone::start();
        let (_bench, server) = worker.serve();
        signal(worker.child.id(), number);
        let status = worker.child.wait().expect("it was ours");
        assert_eq!(status.code(), Some(code));
        server.wait();
    }
}

#[test]
fn what_is_no_request_is_told_and_it_goes_on() {
    let mut worker = Alone::start();
    let huge = vec![b'x'; 65 << 20];
    for line in [b"garbage".as_slice(), b"\xff\x00", b"[1, 2]", &huge] {
        worker.write(line);
        worker.write(b"\n");
        let answer = worker.answer();
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    let unknown = worker.ask("fly", &json!({}));
    assert_eq!(unknown["error"]["data"]["code"], "UNSUPPORTED");
    let described = worker.ask("describe", &json!({}));
    assert_eq!(described["result"]["name"], "dsh-harness");
    drop(worker.child.stdin.take());
    assert_eq!(worker.child.wait().expect("it was ours").code(), Some(0));
}
