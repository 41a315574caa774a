//! A worker, a folder, and a fake server for it to start.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use dsh_fake_lsp::{Control, FakeCommand, FakeServer, hold};
use dsh_scenarios::subject::{CallError, Launch, PendingCall, Subject};
use dsh_transcript::EventBody;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

/// The executable that is the worker and the fake server.
pub(crate) const EXECUTABLE: &str = env!("CARGO_BIN_EXE_dsh-conform");

/// How long a test may take before it counts as hanging. Nothing takes anywhere near it.
const DEADLINE: Duration = Duration::from_mins(2);

/// Puts the one deadline around something.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    let timely = tokio::time::timeout(DEADLINE, work).await;
    timely.expect("the test hangs")
}

/// How the built-in harness is started.
pub(crate) fn built_in() -> Launch {
    Launch::built_in(EXECUTABLE)
}

/// A server that ends for nobody.
pub(crate) fn deaf() -> FakeServer {
    ["shutdown", "exit", "eof"]
        .into_iter()
        .fold(FakeServer::new(), |server, event| {
            server.on(event, [dsh_fake_lsp::ignore()])
        })
        .on("start", [dsh_fake_lsp::trap_sigterm()])
}

/// A folder with a file `a.x` in it, and a server for it.
pub(crate) struct Bench {
    pub(crate) control: Control,
    folder: tempfile::TempDir,
    mount: Value,
    /// The script's file, if it has one.
    _command: FakeCommand,
}

impl Bench {
    pub(crate) fn new(server: FakeServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.x"), "x\n").expect("a file");
        let control = Control::bind().expect("a channel");
        let command = server
            .subcommand("fake-lsp")
            .control(&control)
            .command(EXECUTABLE)
            .expect("a right script");
        let server = json!({
            "command": EXECUTABLE, "args": command.args, "extensionToLanguage": {".x": "x"},
        });
        let mount = json!({
            "host": {"servers": {"fake": server}},
            "environment": {"PATH": "/usr/bin:/bin", "TMPDIR": folder.path()},
        });
        Self {
            control,
            folder,
            mount,
            _command: command,
        }
    }

    pub(crate) const fn mount_params(&self) -> &Value {
        &self.mount
    }

    pub(crate) async fn mount(&self, subject: &dyn Subject) {
        let mounted = ask(subject, "mount", self.mount.clone()).await;
        assert_eq!(mounted, Ok(json!({})));
    }

    pub(crate) fn query(&self) -> Value {
        query_of(self.folder.path(), "a.x")
    }

    /// Mounted, with a query whose answer the server holds as `h`.
    pub(crate) async fn in_flight(subject: &dyn Subject) -> (Self, PendingCall) {
        let bench = Self::new(FakeServer::new().on("textDocument/hover", [hold("h")]));
        bench.mount(subject).await;
        let query = subject.request("query", bench.query()).await;
        bench.control.wait_held("h").await;
        (bench, query)
    }

    /// Mounts and asks, so that a server runs; what holds it.
    pub(crate) async fn serve(&self, subject: &dyn Subject) -> Held {
        self.mount(subject).await;
        let answer = ask(subject, "query", self.query()).await;
        assert_eq!(answer, Ok(json!({"kind": "hover", "hover": null})));
        self.server(1)
    }

    /// What holds the server process of this number.
    pub(crate) fn server(&self, number: u32) -> Held {
        let started = |event: &dsh_transcript::Event| match event.body {
            EventBody::ProcessStarted { pid, .. } if event.process == Some(number) => Some(pid),
            _ => None,
        };
        let events = self.control.events();
        let pid = events.iter().find_map(started).expect("it has started");
        Held::new(pid)
    }
}

pub(crate) fn query_of(workspace: &Path, file: &str) -> Value {
    json!({
        "operation": "hover", "filePath": file, "position": {"line": 0, "character": 0},
        "workspaceRoot": workspace,
    })
}

pub(crate) async fn ask(
    subject: &dyn Subject,
    method: &str,
    params: Value,
) -> Result<Value, CallError> {
    subject.request(method, params).await.outcome.await
}

/// A process that is looked at, alive or dead.
pub(crate) struct Held(OwnedFd);

impl Held {
    pub(crate) fn new(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a process id");
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("it is there"))
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone_within(0)
    }

    /// Waits until it has ended, without end if it does not.
    pub(crate) fn wait(&self) {
        assert!(self.gone_within(60), "it still runs");
    }

    fn gone_within(&self, seconds: i64) -> bool {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        poll(&mut watched, Some(&limit)).expect("it can be watched") == 1
    }
}
