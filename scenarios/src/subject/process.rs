//! A subject that is a program: one process, asked over its stdin and stdout.
//!
//! One task owns the process from its start to its end: it writes the requests, reads the answers,
//! keeps the last of stderr, and ends the process with everything below it. Dropping the
//! [`Process`] drops the task, which kills what is there.

mod answers;
#[cfg_attr(not(target_os = "linux"), path = "process/other.rs")]
mod tree;

use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::{MaybeDone, maybe_done};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lines::{LONGEST, Line, Lines};
use super::{CallError, Description, PendingCall, Subject};
use crate::scarce::advised;
use answers::Answers;
use tree::Leash;

/// How long a subject usually may take to answer `describe`, its start included.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end once its stdin has ended.
const AFTER_STDIN: Duration = Duration::from_secs(3);
/// How long it may take to end after its stdout did, or after it was not understood.
const AFTER_STDOUT: Duration = Duration::from_millis(300);
/// How long it may take to end after SIGTERM.
const AFTER_SIGTERM: Duration = Duration::from_secs(3);
/// How long what was killed may take to be gone.
const AFTER_SIGKILL: Duration = Duration::from_secs(5);
/// How long stderr may go on after the process ended, when a child of its holds it.
const REST_OF_STDERR: Duration = Duration::from_millis(200);
/// How much of its stderr is kept, in bytes.
const STDERR: usize = 8192;

/// How to start a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program, then its arguments. No shell is involved.
    pub command: Vec<String>,
    /// Its working directory; none for that of this process.
    pub directory: Option<PathBuf>,
}

impl Launch {
    /// The built-in harness in a process of its own. `executable` has the command `subject`, as
    /// `dsh-conform` has.
    pub fn built_in(executable: impl Into<String>) -> Self {
        Self {
            command: vec![executable.into(), "subject".to_owned()],
            directory: None,
        }
    }
}

/// A subject in a process of its own.
pub struct Process {
    description: Description,
    connection: Arc<Connection>,
    /// The task that owns the process.
    life: Mutex<JoinSet<()>>,
}

/// What the calls share with the task that owns the process.
struct Connection {
    pid: u32,
    answers: Answers,
    requests: mpsc::UnboundedSender<Vec<u8>>,
    end: CancellationToken,
}

impl Process {
    /// Starts a subject and asks who it is.
    ///
    /// Fails when the program cannot be started, does not answer `describe` in time, or answers
    /// with something else than a [`Description`]; then nothing is left of it.
    pub async fn start(launch: &Launch) -> Result<Self, CallError> {
        Self::start_within(launch, START).await
    }

    /// Starts a subject that has this long to say who it is.
    pub async fn start_within(launch: &Launch, patience: Duration) -> Result<Self, CallError> {
        let mut life = JoinSet::new();
        let connection = spawn(launch, &mut life)?;
        let described = connection.send("describe", &json!({})).outcome;
        let outcome = match timeout(patience, described).await {
            Ok(outcome) => outcome.and_then(|described| {
                serde_json::from_value::<Description>(described).map_err(|error| {
                    CallError::Nonsense {
                        reason: format!("`describe` gave no description: {error}"),
                    }
                })
            }),
            Err(_) => Err(CallError::Silent {
                method: "describe".to_owned(),
                after: patience,
            }),
        };
        let life = Mutex::new(life);
        match outcome {
            Ok(description) => Ok(Self {
                description,
                connection,
                life,
            }),
            Err(error) => {
                end(&connection, &life).await;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Subject for Process {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn request(&self, method: &str, params: Value) -> PendingCall {
        self.connection.send(method, &params)
    }

    async fn cancel(&self, id: u64, reason: &str) {
        self.connection.write(&json!({
            "jsonrpc": "2.0", "method": "cancel", "params": {"id": id, "reason": reason},
        }));
    }

    fn pid(&self) -> Option<u32> {
        Some(self.connection.pid)
    }

    async fn gone(&self) -> CallError {
        let over = self.connection.answers.over();
        over.await.unwrap_or_else(|_| CallError::Gone {
            how: "it was ended".to_owned(),
        })
    }

    fn is_over(&self) -> bool {
        self.connection.answers.are_over()
    }

    async fn end(&self) {
        end(&self.connection, &self.life).await;
    }
}

async fn end(connection: &Connection, life: &Mutex<JoinSet<()>>) {
    connection.end.cancel();
    let mut life = life.lock().await;
    while life.join_next().await.is_some() {}
}

impl Connection {
    fn send(&self, method: &str, params: &Value) -> PendingCall {
        let (id, answer) = self.answers.expect();
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let outcome = answer
            .map(|answer| {
                answer.unwrap_or_else(|_| {
                    let how = "it was ended".to_owned();
                    Err(CallError::Gone { how })
                })
            })
            .boxed();
        PendingCall { id, outcome }
    }

    fn write(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        // When nobody takes it any more, the pending calls are told why.
        let _ = self.requests.send(line);
    }
}

fn spawn(launch: &Launch, life: &mut JoinSet<()>) -> Result<Arc<Connection>, CallError> {
    let not_started = |reason: String| CallError::NotStarted {
        command: launch.command.join(" "),
        reason,
    };
    let Some((program, arguments)) = launch.command.split_first() else {
        return Err(not_started("no program is named".to_owned()));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| not_started(advised(&error)))?;
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = (
        child.id(),
        child.stdin.take(),
        child.stdout.take(),
        child.stderr.take(),
    ) else {
        return Err(not_started("it has no pipes".to_owned()));
    };
    let leash = Leash::new(pid).map_err(|error| not_started(advised(&error)))?;
    let (requests, queue) = mpsc::unbounded_channel();
    let connection = Arc::new(Connection {
        pid,
        answers: Answers::default(),
        requests,
        end: CancellationToken::new(),
    });
    let tail = watch::Sender::default();
    let owned = Owned {
        leash,
        child,
        connection: Arc::clone(&connection),
    };
    life.spawn(async move {
        let mut owned = owned;
        let mut stderr = std::pin::pin!(maybe_done(drain(stderr, &tail)));
        let talk = talk(stdin, queue, stdout, &owned.connection);
        let said = tokio::select! {
            said = talk => said,
            () = async { stderr.as_mut().await; std::future::pending().await } => return,
        };
        owned.finish(said, stderr, &tail).await;
    });
    Ok(connection)
}

/// Why there is nothing more to talk about.
enum Said {
    /// Its stdout ended.
    Nothing,
    /// It cannot be understood.
    Nonsense(String),
    /// We want no more.
    Enough,
}

/// Writes what is asked and reads what is answered, until one of both ends. Stdin is closed then.
async fn talk(
    mut stdin: ChildStdin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    stdout: ChildStdout,
    connection: &Connection,
) -> Said {
    let writing = async {
        while let Some(request) = queue.recv().await {
            // A subject that reads no more is told of by its end, or by silence.
            if stdin.write_all(&request).await.is_err() {
                break;
            }
        }
        std::future::pending().await
    };
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, stdout), LONGEST);
    let reading = async {
        loop {
            let line = match lines.next().await {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong) => {
                    break Said::Nonsense(format!(
                        "a line has more than {LONGEST} bytes, the most that is read"
                    ));
                }
                Ok(Line::End(rest)) if rest.iter().all(u8::is_ascii_whitespace) => {
                    break Said::Nothing;
                }
                Ok(Line::End(rest)) => {
                    let begin = answers::begin(&rest);
                    break Said::Nonsense(format!("its output ends in the middle of {begin}"));
                }
                Err(error) => break Said::Nonsense(format!("its stdout cannot be read: {error}")),
            };
            if let Err(reason) = connection.answers.take(&line) {
                break Said::Nonsense(reason);
            }
        }
    };
    tokio::select! {
        biased;
        () = connection.end.cancelled() => Said::Enough,
        said = reading => said,
        said = writing => said,
    }
}

/// Reads stderr to its end and keeps the last of it.
async fn drain(mut stderr: impl AsyncRead + Unpin, tail: &watch::Sender<Vec<u8>>) {
    let mut read = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut read).await {
        tail.send_modify(|tail| {
            tail.extend_from_slice(&read[..count]);
            let surplus = tail.len().saturating_sub(STDERR);
            tail.drain(..surplus);
        });
    }
}

/// The process and what it takes to end it. Dropped, everything of it is killed.
struct Owned {
    /// Before the child, whose drop gives its id back to the system.
    leash: Leash,
    child: Child,
    connection: Arc<Connection>,
}

impl Owned {
    /// Ends the process, tells the calls that have no answer, and waits until nothing is left.
    async fn finish(
        &mut self,
        said: Said,
        mut stderr: Pin<&mut MaybeDone<impl Future<Output = ()>>>,
        tail: &watch::Sender<Vec<u8>>,
    ) {
        if let Said::Nonsense(reason) = &said {
            // They are told at once; what else there is to do is nothing they wait for.
            let reason = reason.clone();
            self.connection
                .answers
                .fail(&CallError::Nonsense { reason });
        }
        let status = tokio::select! {
            status = self.end(&said) => status,
            status = async { stderr.as_mut().await; std::future::pending().await } => status,
        };
        // Its own end is told here; what a child of its holds open is not waited for.
        let _ = timeout(REST_OF_STDERR, stderr).await;
        let how = how(&said, status, &tail.borrow());
        self.connection.answers.fail(&CallError::Gone { how });
    }

    async fn end(&mut self, said: &Said) -> Option<ExitStatus> {
        // What it leaves below itself is known only as long as it is there.
        self.leash.look();
        let patience = match said {
            Said::Enough => AFTER_STDIN,
            Said::Nothing | Said::Nonsense(_) => AFTER_STDOUT,
        };
        if timeout(patience, self.leash.ended()).await.is_err() {
            self.leash.look();
            self.leash.terminate();
            // Nothing to do about a time that is over: what comes next does not ask.
            let _ = timeout(AFTER_SIGTERM, self.leash.ended()).await;
        }
        self.leash.kill();
        let status = timeout(AFTER_SIGKILL, self.child.wait()).await;
        let _ = timeout(AFTER_SIGKILL, self.leash.all_gone()).await;
        status.ok().and_then(Result::ok)
    }
}

/// How a subject ended, for people.
fn how(said: &Said, status: Option<ExitStatus>, stderr: &[u8]) -> String {
    let status = match (status, said) {
        (None, _) => "it cannot be ended".to_owned(),
        (Some(status), Said::Nothing) => format!("its stdout ended, then {status}"),
        (Some(status), Said::Enough) => format!("it was ended, {status}"),
        (Some(status), Said::Nonsense(reason)) => format!("{reason}; then {status}"),
    };
    let stderr = String::from_utf8_lossy(stderr);
    let stderr = stderr.trim();
    if stderr.is_empty() {
        format!("{status}, nothing on stderr")
    } else {
        format!("{status}; the last of its stderr:\n{stderr}")
    }
}
