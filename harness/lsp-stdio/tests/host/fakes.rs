//! A file system, a subprocess service and language servers that a test plays itself.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_fs::{FileSystem, Source, SourceError, SourceRequest, Workspace, WorkspaceError};
use dsh_kernel::{Cancel, ExecutionWorld};
use dsh_lsp::{LspError, LspProvider, Operation, Position, ProviderQuery, QueryResult};
use dsh_lsp_stdio::{ServerConfig, StdioProvider};
use dsh_subprocess::{
    ChildExit, ChildIo, ChildProcess, MemberInfo, ProcessControl, ResolveError, SpawnError,
    SpawnSpec, Subprocess, TerminationReport,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

pub(crate) const SHUTDOWN: Duration = Duration::from_secs(5);
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Files by path, workspaces by the name they are called.
pub(crate) struct FakeFiles {
    world: ExecutionWorld,
    state: Mutex<Files>,
    /// One permit for each operation that may go on; unlimited unless a test holds them.
    lookups: Semaphore,
    reads: Semaphore,
    pub(crate) waiting: Notify,
}

#[derive(Default)]
struct Files {
    roots: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
    lookups: usize,
    reads: Vec<String>,
    panics: bool,
}

impl FakeFiles {
    fn lock(&self) -> std::sync::MutexGuard<'_, Files> {
        self.state.lock().expect("no test panics with the lock")
    }

    pub(crate) fn link(&self, root: &str, canonical: &str) {
        self.lock()
            .roots
            .insert(root.to_owned(), canonical.to_owned());
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        self.lock().texts.insert(file.to_owned(), text.to_owned());
    }

    pub(crate) fn remove(&self, file: &str) {
        self.lock().texts.remove(file);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lock().lookups
    }

    pub(crate) fn reads(&self) -> Vec<String> {
        self.lock().reads.clone()
    }

    /// From now on lookups wait for [`Self::let_lookup`].
    pub(crate) fn hold_lookups(&self) {
        self.lookups.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn let_lookup(&self) {
        self.lookups.add_permits(1);
    }

    /// From now on reads wait for [`Self::let_read`].
    pub(crate) fn hold_reads(&self) {
        self.reads.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn let_read(&self) {
        self.reads.add_permits(1);
    }

    /// From now on nothing waits.
    pub(crate) fn let_all(&self) {
        for held in [&self.lookups, &self.reads] {
            held.add_permits(Semaphore::MAX_PERMITS - held.available_permits());
        }
    }

    /// The next read panics.
    pub(crate) fn panic_once(&self) {
        self.lock().panics = true;
    }

    fn canonical(&self, root: &str) -> Result<Workspace, WorkspaceError> {
        let path = self.lock().roots.get(root).cloned();
        let path = path.ok_or_else(|| WorkspaceError::Missing {
            root: root.to_owned(),
        })?;
        Ok(Workspace {
            uri: format!("file://{path}"),
            path: PathBuf::from(path),
        })
    }
}

#[async_trait]
impl FileSystem for FakeFiles {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        self.lock().lookups += 1;
        self.waiting.notify_one();
        tokio::select! {
            biased;
            permit = self.lookups.acquire() => permit.expect("never closed").forget(),
            reason = cancel.cancelled() => return Err(WorkspaceError::Cancelled(reason)),
        }
        self.canonical(root)
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        self.lock().reads.push(request.file_path.clone());
        self.waiting.notify_one();
        tokio::select! {
            biased;
            permit = self.reads.acquire() => permit.expect("never closed").forget(),
            reason = cancel.cancelled() => return Err(SourceError::Cancelled(reason)),
        }
        let broken = std::mem::take(&mut self.lock().panics);
        assert!(!broken, "the file system is broken");
        let workspace = self.canonical(&request.workspace_root)?;
        let path = workspace.path.join(&request.file_path);
        let missing = || SourceError::Missing {
            path: request.file_path.clone(),
        };
        let text = self
            .lock()
            .texts
            .get(path.to_str().expect("ASCII"))
            .cloned();
        let text = text.ok_or_else(missing)?;
        if text.len() as u64 > request.max_bytes {
            return Err(SourceError::TooLarge {
                path: request.file_path,
                limit: request.max_bytes,
            });
        }
        Ok(Source {
            uri: format!("file://{}", path.display()),
            path,
            text,
            workspace,
        })
    }
}

/// Processes that are played by the test.
pub(crate) struct FakeProcesses {
    world: ExecutionWorld,
    state: Mutex<Processes>,
    spawned: Notify,
    pub(crate) resolving: Notify,
    /// One permit for each executable that may be found.
    resolutions: Semaphore,
}

struct Processes {
    started: VecDeque<Server>,
    specs: Vec<SpawnSpec>,
    controls: Vec<Arc<State>>,
    pipe: usize,
    missing: Vec<String>,
    refusals: usize,
}

impl FakeProcesses {
    fn lock(&self) -> std::sync::MutexGuard<'_, Processes> {
        self.state.lock().expect("no test panics with the lock")
    }

    /// Pipes hold this many bytes from now on.
    pub(crate) fn pipes_of(&self, bytes: usize) {
        self.lock().pipe = bytes;
    }

    /// The next process cannot be started.
    pub(crate) fn refuse_once(&self) {
        self.lock().refusals += 1;
    }

    pub(crate) fn forget_command(&self, command: &str) {
        self.lock().missing.push(command.to_owned());
    }

    pub(crate) fn hold_resolutions(&self) {
        self.resolutions.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn started(&self) -> usize {
        self.lock().specs.len()
    }

    pub(crate) fn spec(&self, index: usize) -> SpawnSpec {
        self.lock().specs[index].clone()
    }

    /// How many processes have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.lock()
            .controls
            .iter()
            .filter(|control| control.exit.borrow().is_none())
            .count()
    }

    /// The next process that was started, and not taken yet.
    pub(crate) async fn next(&self) -> Server {
        loop {
            let spawned = self.spawned.notified();
            if let Some(server) = self.lock().started.pop_front() {
                return server;
            }
            spawned.await;
        }
    }
}

#[async_trait]
impl Subprocess for FakeProcesses {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    async fn resolve_executable(
        &self,
        command: &str,
        _: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        self.resolving.notify_one();
        let cancelled = || ResolveError::Cancelled {
            command: command.to_owned(),
        };
        tokio::select! {
            biased;
            permit = self.resolutions.acquire() => permit.expect("never closed").forget(),
            _ = cancel.cancelled() => return Err(cancelled()),
        }
        if self.lock().missing.contains(&command.to_owned()) {
            let searched = "on the PATH".to_owned();
            return Err(ResolveError::Missing {
                command: command.to_owned(),
                searched,
            });
        }
        Ok(PathBuf::from(format!("/bin/{command}")))
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let mut processes = self.lock();
        if processes.refusals > 0 {
            processes.refusals -= 1;
            let SpawnSpec {
                executable, cwd, ..
            } = spec;
            return Err(SpawnError {
                executable,
                cwd,
                reason: "out of processes".to_owned(),
            });
        }
        let (stdin, their_stdin) = tokio::io::duplex(processes.pipe);
        let (stdout, their_stdout) = tokio::io::duplex(processes.pipe);
        let state = Arc::new(State {
            pid: u32::try_from(processes.specs.len()).expect("few") + 100,
            exit: watch::Sender::new(None),
            stdin_open: watch::Sender::new(true),
            stderr: Mutex::default(),
            signals: Mutex::default(),
            helpers: watch::Sender::new(0),
            deaf: Mutex::new(false),
            escaped: Mutex::default(),
            ended: Notify::new(),
        });
        processes.specs.push(spec);
        processes.controls.push(Arc::clone(&state));
        processes.started.push_back(Server {
            stdin: Some(their_stdin),
            stdout: Some(their_stdout),
            received: Vec::new(),
            state: Arc::clone(&state),
        });
        drop(processes);
        self.spawned.notify_one();
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
            },
            control: Arc::new(Control(state)),
        })
    }
}

/// The truth about one process.
struct State {
    pid: u32,
    exit: watch::Sender<Option<ChildExit>>,
    stdin_open: watch::Sender<bool>,
    stderr: Mutex<String>,
    signals: Mutex<Vec<(&'static str, Instant)>>,
    helpers: watch::Sender<usize>,
    deaf: Mutex<bool>,
    escaped: Mutex<Vec<MemberInfo>>,
    /// Told when a termination has ended.
    ended: Notify,
}

impl State {
    fn exit(&self, exit: ChildExit) {
        self.exit
            .send_if_modified(|current| current.is_none() && current.replace(exit).is_none());
    }

    fn signal(&self, name: &'static str) {
        self.signals
            .lock()
            .expect("unpoisoned")
            .push((name, Instant::now()));
    }

    fn is_empty(&self) -> bool {
        self.exit.borrow().is_some() && *self.helpers.borrow() == 0
    }
}

/// What the host holds of a process.
struct Control(Arc<State>);

impl Drop for Control {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.0.signal("dropped");
            self.0.helpers.send_replace(0);
            self.0.exit(ChildExit::Signal(9));
        }
    }
}

#[async_trait]
impl ProcessControl for Control {
    fn pid(&self) -> u32 {
        self.0.pid
    }

    async fn wait(&self) -> ChildExit {
        let mut exit = self.0.exit.subscribe();
        let exit = exit
            .wait_for(Option::is_some)
            .await
            .expect("the sender is held");
        (*exit).expect("it was waited for")
    }

    fn exited(&self) -> Option<ChildExit> {
        *self.0.exit.borrow()
    }

    async fn stdin_closed(&self) {
        let mut open = self.0.stdin_open.subscribe();
        open.wait_for(|open| !open)
            .await
            .expect("the sender is held");
    }

    fn stderr_tail(&self) -> String {
        self.0.stderr.lock().expect("unpoisoned").clone()
    }

    async fn stderr_drained(&self, _: Duration) {}

    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo> {
        let mut helpers = self.0.helpers.subscribe();
        let gone = async {
            self.wait().await;
            helpers
                .wait_for(|count| *count == 0)
                .await
                .expect("the sender is held");
        };
        match tokio::time::timeout(limit, gone).await {
            Ok(()) => Vec::new(),
            Err(_) => vec![MemberInfo {
                pid: 1,
                name: "helper".to_owned(),
            }],
        }
    }

    async fn terminate_tree(&self, grace: Duration) -> TerminationReport {
        if !self.0.is_empty() {
            self.0.signal("SIGTERM");
            if *self.0.deaf.lock().expect("unpoisoned") {
                let _ = tokio::time::timeout(grace, self.wait()).await;
                self.0.signal("SIGKILL");
                self.0.exit(ChildExit::Signal(9));
            }
            self.0.helpers.send_replace(0);
            self.0.exit(ChildExit::Signal(15));
        }
        self.0.ended.notify_one();
        let escaped = self.0.escaped.lock().expect("unpoisoned").clone();
        TerminationReport {
            escaped,
            ..TerminationReport::default()
        }
    }
}

/// The test's side of a process: it reads frames and says what it likes.
pub(crate) struct Server {
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    received: Vec<u8>,
    state: Arc<State>,
}

impl Server {
    /// The next message, or `None` at the end of stdin. A reader of its own, as plain as can be.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(split) = self
                .received
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                let header = std::str::from_utf8(&self.received[..split]).expect("ASCII");
                let length = header
                    .strip_prefix("Content-Length: ")
                    .expect("the one header");
                let end = split + 4 + length.parse::<usize>().expect("digits");
                if self.received.len() >= end {
                    let body = serde_json::from_slice(&self.received[split + 4..end]);
                    self.received.drain(..end);
                    return Some(body.expect("JSON"));
                }
            }
            let read = self
                .stdin
                .as_mut()?
                .read_buf(&mut self.received)
                .await
                .ok()?;
            if read == 0 {
                return None;
            }
        }
    }

    /// The next message, which must be of this method.
    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, method: &'a str) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let message = self
                .read()
                .await
                .unwrap_or_else(|| panic!("{place}: end of stdin"));
            assert_eq!(message["method"], method, "{place}: {message}");
            message
        }
    }

    /// Reads what is left of this many bytes, and nothing of it counts.
    pub(crate) async fn swallow(&mut self, bytes: usize) {
        let mut sink = vec![0; bytes];
        self.stdin
            .as_mut()
            .expect("open")
            .read_exact(&mut sink)
            .await
            .expect("so much comes");
    }

    pub(crate) async fn say_raw(&mut self, bytes: &[u8]) {
        self.stdout
            .as_mut()
            .expect("open")
            .write_all(bytes)
            .await
            .expect("the host reads");
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        let body = message.to_string();
        self.say_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .await;
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    pub(crate) async fn reply_error(&mut self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    /// Answers `initialize` with full capabilities, and takes `initialized`.
    pub(crate) async fn greet(&mut self) -> Value {
        let initialize = self.expect("initialize").await;
        let capabilities = json!({
            "textDocumentSync": 1,
            "definitionProvider": true,
            "referencesProvider": true,
            "implementationProvider": true,
            "hoverProvider": true,
        });
        self.reply(&initialize, json!({"capabilities": capabilities}))
            .await;
        self.expect("initialized").await;
        initialize
    }

    /// One whole hover: open, question, answer, close. Returns the text that was opened.
    pub(crate) async fn hover(&mut self, contents: &str) -> String {
        let open = self.expect("textDocument/didOpen").await;
        let request = self.expect("textDocument/hover").await;
        self.reply(&request, json!({"contents": contents})).await;
        self.expect("textDocument/didClose").await;
        open["params"]["textDocument"]["text"]
            .as_str()
            .expect("a text")
            .to_owned()
    }

    /// Takes `didOpen` and the request, and returns the request.
    pub(crate) async fn asked(&mut self) -> Value {
        self.expect("textDocument/didOpen").await;
        self.expect("textDocument/hover").await
    }

    /// Answers `shutdown` and ends at `exit`.
    pub(crate) async fn obey(&mut self) {
        let shutdown = self.expect("shutdown").await;
        self.reply(&shutdown, Value::Null).await;
        self.expect("exit").await;
        self.exit(ChildExit::Code(0));
    }

    pub(crate) fn exit(&mut self, exit: ChildExit) {
        self.stdin = None;
        self.stdout = None;
        self.state.exit(exit);
    }

    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
        self.state.stdin_open.send_replace(false);
    }

    pub(crate) fn write_stderr(&self, text: &str) {
        self.state.stderr.lock().expect("unpoisoned").push_str(text);
    }

    pub(crate) fn be_deaf(&self) {
        *self.state.deaf.lock().expect("unpoisoned") = true;
    }

    pub(crate) fn start_helper(&self) {
        self.state.helpers.send_modify(|count| *count += 1);
    }

    pub(crate) fn end_helper(&self) {
        self.state.helpers.send_modify(|count| *count -= 1);
    }

    pub(crate) fn let_escape(&self, name: &str) {
        let escaped = MemberInfo {
            pid: 7,
            name: name.to_owned(),
        };
        self.state.escaped.lock().expect("unpoisoned").push(escaped);
    }

    /// What it was sent, in order.
    pub(crate) fn signals(&self) -> Vec<&'static str> {
        self.state
            .signals
            .lock()
            .expect("unpoisoned")
            .iter()
            .map(|(name, _)| *name)
            .collect()
    }

    /// When it was sent its first signal.
    pub(crate) fn first_signal(&self) -> Instant {
        self.state.signals.lock().expect("unpoisoned")[0].1
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state.exit.borrow().is_none()
    }

    /// Waits until the host has ended its tree.
    pub(crate) async fn ended(&self) {
        self.state.ended.notified().await;
    }
}

/// A provider of one server over the fakes.
pub(crate) struct Host {
    pub(crate) files: Arc<FakeFiles>,
    pub(crate) processes: Arc<FakeProcesses>,
    pub(crate) provider: Arc<StdioProvider>,
}

pub(crate) fn fakes() -> (Arc<FakeFiles>, Arc<FakeProcesses>) {
    let files = FakeFiles {
        world: ExecutionWorld::named("test"),
        state: Mutex::default(),
        lookups: Semaphore::new(Semaphore::MAX_PERMITS),
        reads: Semaphore::new(Semaphore::MAX_PERMITS),
        waiting: Notify::new(),
    };
    files.link("/w", "/w");
    files.write("/w/a.x", "text of a");
    let processes = FakeProcesses {
        world: ExecutionWorld::named("test"),
        state: Mutex::new(Processes {
            started: VecDeque::new(),
            specs: Vec::new(),
            controls: Vec::new(),
            pipe: 64 * 1024,
            missing: Vec::new(),
            refusals: 0,
        }),
        spawned: Notify::new(),
        resolving: Notify::new(),
        resolutions: Semaphore::new(Semaphore::MAX_PERMITS),
    };
    (Arc::new(files), Arc::new(processes))
}

pub(crate) fn processes_of(world: &str) -> Arc<FakeProcesses> {
    let (_, processes) = fakes();
    let processes = Arc::into_inner(processes).expect("nobody else holds it");
    Arc::new(FakeProcesses {
        world: ExecutionWorld::named(world),
        ..processes
    })
}

pub(crate) fn config() -> ServerConfig {
    let mut config = ServerConfig::new("x-server", [(".x", "xlang")]);
    config.args = vec!["--stdio".to_owned()];
    config
}

pub(crate) async fn host() -> Host {
    host_of(config()).await
}

pub(crate) async fn host_of(config: ServerConfig) -> Host {
    let (files, processes) = fakes();
    let provider = StdioProvider::new(
        "x",
        config,
        Arc::clone(&files) as _,
        Arc::clone(&processes) as _,
    )
    .await
    .expect("the entry is right");
    Host {
        files,
        processes,
        provider,
    }
}

pub(crate) fn query_in(workspace_root: &str, file_path: &str) -> ProviderQuery {
    ProviderQuery {
        operation: Operation::Hover,
        file_path: file_path.to_owned(),
        position: Position {
            line: 0,
            character: 1,
        },
        workspace_root: workspace_root.to_owned(),
        language_id: "xlang".to_owned(),
    }
}

impl Host {
    /// A hover on `/w/a.x`: its contents, or the error.
    pub(crate) async fn hover(&self, cancel: &Cancel) -> Result<String, LspError> {
        self.hover_in("/w", "a.x", cancel).await
    }

    pub(crate) async fn hover_in(
        &self,
        workspace_root: &str,
        file_path: &str,
        cancel: &Cancel,
    ) -> Result<String, LspError> {
        match self
            .provider
            .query(query_in(workspace_root, file_path), cancel)
            .await?
        {
            QueryResult::Hover { hover } => Ok(hover.expect("it says something").contents),
            other @ QueryResult::Locations { .. } => panic!("unexpected {other:?}"),
        }
    }

    /// A hover that nobody cancels.
    pub(crate) async fn ask(&self) -> Result<String, LspError> {
        self.hover(&Cancel::new()).await
    }

    /// A server that has been greeted and has answered one hover.
    pub(crate) async fn warm(&self) -> Server {
        let play = async {
            let mut server = self.processes.next().await;
            server.greet().await;
            server.hover("warm").await;
            server
        };
        let (answer, server) = tokio::join!(self.ask(), play);
        assert_eq!(answer.as_deref(), Ok("warm"));
        server
    }

    /// Disposes, with this server obeying, and looks for what is left.
    pub(crate) async fn end(self, mut server: Server) {
        let (ended, ()) = tokio::join!(self.provider.dispose(), server.obey());
        assert_eq!(ended, Ok(()));
        assert_eq!(server.signals(), [""; 0]);
        self.is_quiet();
    }

    /// Disposes without a server to obey.
    pub(crate) async fn end_alone(self) {
        assert_eq!(self.provider.dispose().await, Ok(()));
        self.is_quiet();
    }

    pub(crate) fn is_quiet(&self) {
        assert_eq!(self.processes.alive(), 0);
        assert_eq!(self.provider.workspaces(), 0);
    }
}

/// Lets every task run as far as it can, without letting time pass.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
