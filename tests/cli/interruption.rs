//! Ctrl-C, SIGTERM, and a reader that goes away.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dsh_fake_lsp::{Control, FakeServer, Rule, ignore, trap_sigterm};
use dsh_transcript::{Direction, EventBody};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;

use crate::support::{Desk, is_alive, program, typed, until_it_listens};

/// Only a hang ends a test by this.
const PATIENCE: Duration = Duration::from_mins(1);

struct Checked {
    child: Child,
    desk: Desk,
    control: Control,
}

impl Checked {
    /// Starts a check of a fake server that tells what it gets.
    fn start(server: impl FnOnce(FakeServer) -> FakeServer) -> Self {
        let desk = Desk::new();
        let control = Control::bind().unwrap();
        let command = typed(&server(FakeServer::new().control(&control)));
        let child = Command::new(program())
            .current_dir(desk.path())
            .args(["check", "--command", &command, "--ext", ".x=x"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            child,
            desk,
            control,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The server's own process id, which it tells first.
    fn server_pid(&self) -> u32 {
        self.control
            .events()
            .iter()
            .find_map(|event| match &event.body {
                EventBody::ProcessStarted { pid, .. } => Some(*pid),
                _ => None,
            })
            .unwrap()
    }

    /// Waits for the program's end and takes its status and stderr.
    fn end(mut self) -> (Option<i32>, String, Desk) {
        let mut out = String::new();
        let mut err = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        let status = self.child.wait().unwrap().code();
        (status, format!("{out}\n{err}"), self.desk)
    }
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| panic!("{what} never came"))
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_a_query_shuts_the_server_down_and_reports_in_part() {
    let checked = Checked::start(|server| server.on("textDocument/definition", [ignore()]));
    within(
        "the question",
        checked.control.wait_received(1, "definition"),
    )
    .await;
    let pid = checked.server_pid();
    checked.signal(Signal::INT);
    within("the end", checked.control.wait_ended(1)).await;
    let wire = checked.control.events();
    let received = |method| {
        wire.iter()
            .any(|event| event.is_message(Direction::ToServer, method))
    };
    assert!(received("$/cancelRequest") && received("shutdown") && received("exit"));
    let (status, said, desk) = checked.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(!is_alive(pid));
    assert!(said.contains("this report is partial"), "{said}");
    let files = desk.files();
    assert!(
        files.contains(&"target/dsh-conform/report.json".to_owned()),
        "{files:?}"
    );
    let text = std::fs::read_to_string(desk.path().join("target/dsh-conform/report.json")).unwrap();
    assert!(dsh_reports::read(&text).unwrap().interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_during_the_handshake_leaves_nothing() {
    let checked = Checked::start(|server| server.on("initialize", [ignore()]));
    within("initialize", checked.control.wait_received(1, "initialize")).await;
    let pid = checked.server_pid();
    checked.signal(Signal::INT);
    let (status, said, _desk) = checked.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(!is_alive(pid));
    // That it was not answered any more is no fault of the server's.
    assert!(said.contains("INTERRUPTED"), "{said}");
    assert!(!said.contains("NOT QUALIFIED"), "{said}");
}

/// Sends the signal in the middle of a question, and gives what the program said.
async fn ended_by(signal: Signal, status: i32) -> String {
    let checked = Checked::start(|server| server.on("textDocument/definition", [ignore()]));
    within(
        "the question",
        checked.control.wait_received(1, "definition"),
    )
    .await;
    let pid = checked.server_pid();
    checked.signal(signal);
    let (ended, said, _desk) = checked.end();
    assert_eq!(ended, Some(status), "{said}");
    assert!(!is_alive(pid));
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_is_the_same_with_its_own_status() {
    ended_by(Signal::TERM, 143).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_terminal_is_the_same_with_its_own_status() {
    let said = ended_by(Signal::HUP, 129).await;
    assert!(said.contains("this report is partial"), "{said}");
}

/// The second one does not wait for a server that neither shuts down nor minds SIGTERM.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_kills_at_once() {
    let checked = Checked::start(|server| {
        server
            .rule(Rule::on("start").run([trap_sigterm()]))
            .on("textDocument/definition", [ignore()])
            .on("shutdown", [ignore()])
            .on("exit", [ignore()])
            .on("eof", [ignore()])
            .on("SIGTERM", [ignore()])
    });
    within(
        "the question",
        checked.control.wait_received(1, "definition"),
    )
    .await;
    let pid = checked.server_pid();
    checked.signal(Signal::INT);
    within("shutdown", checked.control.wait_received(1, "shutdown")).await;
    checked.signal(Signal::INT);
    within("the end", checked.control.wait_ended(1)).await;
    let events = checked.control.events();
    let (status, said, desk) = checked.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(!is_alive(pid));
    // In order, exit would have followed when the budget of shutdown had passed.
    assert!(
        !events
            .iter()
            .any(|event| event.is_message(Direction::ToServer, "exit"))
    );
    drop(desk);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = Desk::new();
    let mut child = Command::new(program())
        .current_dir(desk.path())
        .args(["list", "clauses"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

/// Starts an agent on a script with one long answer, with everything else as a test wants it.
fn agent(desk: &Desk, prompt: &str) -> tokio::process::Command {
    let script = format!("replies:\n  - text: {}\n", "long ".repeat(40_000));
    std::fs::write(desk.path().join("script.yaml"), script).unwrap();
    let mut command = tokio::process::Command::new(program());
    command
        .args(["agent", "--model", "scripted:script.yaml", prompt])
        .current_dir(desk.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn interrupt(child: &tokio::process::Child) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
}

/// It takes the second that a reader is given then.
#[tokio::test]
async fn an_answer_that_nobody_reads_does_not_keep_a_signal_from_ending_it() {
    let desk = Desk::new();
    let mut child = agent(&desk, "go").spawn().unwrap();
    // Longer than a pipe holds: behind its first byte, it waits for somebody to read on.
    let mut first = [0];
    let mut stdout = child.stdout.take().unwrap();
    within("the answer to begin", stdout.read_exact(&mut first))
        .await
        .unwrap();
    interrupt(&child);
    let status = within("the end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
}

#[tokio::test]
async fn waiting_for_a_prompt_ends_with_the_first_signal() {
    let desk = Desk::new();
    let mut child = agent(&desk, "-").spawn().unwrap();
    until_it_listens(child.id().unwrap());
    interrupt(&child);
    let status = within("the end", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
}
