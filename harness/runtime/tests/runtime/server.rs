//! A subprocess provider whose processes are tasks of this one: a server of a toy language.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_harness::kernel::{Cancel, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildExit, ChildIo, ChildProcess, MemberInfo, ProcessControl, ResolveError, SpawnError,
    SpawnSpec, Subprocess, TerminationReport,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the servers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Answers,
    NeverAnswersHover,
    /// The executable is missing.
    NotFound,
    /// The lookup of the executable ends only when it is cancelled.
    SlowLookup,
}

/// The provider; cloning shares it.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Inner>);

struct Inner {
    behaviour: Behaviour,
    world: ExecutionWorld,
    log: watch::Sender<Vec<&'static str>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Servers {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        Self(Arc::new(Inner {
            behaviour,
            world: ExecutionWorld::local(),
            log: watch::Sender::default(),
            tasks: Mutex::default(),
        }))
    }

    fn note(&self, line: &'static str) {
        self.0.log.send_modify(|log| log.push(line));
    }

    /// Asserts what happened so far.
    #[track_caller]
    pub(crate) fn expect(&self, lines: &[&str]) {
        assert_eq!(*self.0.log.borrow(), lines);
    }

    /// Waits until `line` has happened; what never comes is a failure, not a test that hangs.
    pub(crate) async fn saw(&self, line: &str) {
        let mut log = self.0.log.subscribe();
        let seen = log.wait_for(|log| log.contains(&line));
        let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
        let seen = seen.unwrap_or_else(|_| panic!("{line:?} never happened"));
        seen.expect("the log lives as long as self");
    }

    /// Speaks the protocol until `exit` or the end of input.
    async fn serve(self, input: DuplexStream, mut output: DuplexStream) -> ChildExit {
        let mut input = BufReader::new(input);
        while let Some(message) = read(&mut input).await {
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    self.note("initialize");
                    json!({"capabilities": {"textDocumentSync": 1, "hoverProvider": true}})
                }
                "textDocument/hover" => {
                    self.note("hover");
                    if self.0.behaviour == Behaviour::NeverAnswersHover {
                        continue;
                    }
                    json!({"contents": "a word"})
                }
                "shutdown" => {
                    self.note("shutdown");
                    Value::Null
                }
                "exit" => {
                    self.note("exit");
                    return ChildExit::Code(0);
                }
                _ => continue,
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let body = answer.to_string();
            let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
            if output.write_all(frame.as_bytes()).await.is_err() {
                break;
            }
        }
        ChildExit::Code(1)
    }
}

async fn read(input: &mut BufReader<DuplexStream>) -> Option<Value> {
    let mut header = String::new();
    input.read_line(&mut header).await.ok()?;
    let length = header
        .strip_prefix("Content-Length: ")?
        .trim_end()
        .parse()
        .ok()?;
    input.read_line(&mut String::new()).await.ok()?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

#[async_trait]
impl Subprocess for Servers {
    fn world(&self) -> &ExecutionWorld {
        &self.0.world
    }

    async fn resolve_executable(
        &self,
        command: &str,
        _: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        let command = command.to_owned();
        match self.0.behaviour {
            Behaviour::NotFound => Err(ResolveError::Missing {
                command,
                searched: "anywhere".to_owned(),
            }),
            Behaviour::SlowLookup => {
                self.note("lookup");
                cancel.cancelled().await;
                self.note("lookup ended");
                Err(ResolveError::Cancelled { command })
            }
            Behaviour::Answers | Behaviour::NeverAnswersHover => {
                Ok(PathBuf::from("/toys").join(command))
            }
        }
    }

    async fn spawn(&self, _: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        self.note("spawn");
        let (stdin, input) = tokio::io::duplex(1 << 16);
        let (output, stdout) = tokio::io::duplex(1 << 16);
        let exit = watch::Sender::new(None);
        let (ended, serving) = (exit.clone(), self.clone().serve(input, output));
        let task = async move {
            let code = serving.await;
            ended.send_replace(Some(code));
        };
        let abort = self
            .0
            .tasks
            .lock()
            .expect("nobody panics holding it")
            .spawn(task);
        let control = Arc::new(Toy {
            servers: self.clone(),
            exit,
            abort,
        });
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
            },
            control,
        })
    }
}

/// One process.
struct Toy {
    servers: Servers,
    exit: watch::Sender<Option<ChildExit>>,
    abort: tokio::task::AbortHandle,
}

impl Drop for Toy {
    /// Where a real process would be killed, if it still ran.
    fn drop(&mut self) {
        self.servers.note("let go");
    }
}

#[async_trait]
impl ProcessControl for Toy {
    fn pid(&self) -> u32 {
        1
    }

    async fn wait(&self) -> ChildExit {
        let mut exit = self.exit.subscribe();
        let exit = exit
            .wait_for(Option::is_some)
            .await
            .expect("the sender lives as long as self");
        exit.unwrap_or(ChildExit::Unknown)
    }

    fn exited(&self) -> Option<ChildExit> {
        *self.exit.borrow()
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    async fn stderr_drained(&self, _: Duration) {}

    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo> {
        let _ = tokio::time::timeout(limit, self.wait()).await;
        Vec::new()
    }

    async fn terminate_tree(&self, _: Duration) -> TerminationReport {
        if self.exited().is_none() {
            self.servers.note("terminated");
            self.abort.abort();
            self.exit.send_replace(Some(ChildExit::Signal(15)));
        }
        TerminationReport::default()
    }
}
