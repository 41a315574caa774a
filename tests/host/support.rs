//! One test's surroundings: a workspace, a host, a fake server, and what becomes of them.
//!
//! Nothing here waits for time to pass: whatever is awaited is an event, and one generous deadline
//! per test turns a hang into a failure that shows the transcript.

mod files;
mod leftovers;
mod over;
mod processes;
mod rules;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_fake_lsp::{Control, FakeCommand, FakeServer};
use dsh_kernel::{Cancel, CancelReason};
use dsh_lsp::{
    Location, LspError, LspProvider, LspRegistry, LspService, Operation, Position, QueryRequest,
    QueryResult, Range, Registration,
};
use dsh_lsp_stdio::{DisposeError, ServerConfig, StdioProvider};
use dsh_transcript::{Direction, Event, EventBody, short_name};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) use files::{Files, Gate};
pub(crate) use leftovers::marked;
pub(crate) use over::Over;
pub(crate) use processes::Processes;

/// How long a test may take before it counts as hanging. Nothing takes anywhere near it.
const DEADLINE: Duration = Duration::from_mins(2);

/// The executable that contains the fake server.
pub(crate) const EXECUTABLE: &str = env!("CARGO_BIN_EXE_dsh-conform");

/// A well-behaved server, to be told otherwise.
pub(crate) fn fake() -> FakeServer {
    FakeServer::new().subcommand("fake-lsp")
}

/// A test with this server, for files that end in `.x`, and one file `a.x`.
pub(crate) fn bench(server: FakeServer) -> Setup {
    Setup {
        servers: vec![Server::new("fake", ".x", Runs::Fake(Box::new(server)))],
        files: vec![("a.x".into(), b"const x = 1\n".to_vec())],
        ambient: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        allowed: Vec::new(),
        torn_input: false,
        announces: false,
        leaves: 0,
        threads: false,
    }
}

/// A test whose server is this command instead of a fake.
pub(crate) fn bench_of(program: impl Into<String>, args: &[&str]) -> Setup {
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    let mut setup = bench(fake());
    setup.servers[0].runs = Runs::Command(program.into(), args);
    setup
}

/// What a test is made of, before it runs.
pub(crate) struct Setup {
    servers: Vec<Server>,
    files: Vec<(PathBuf, Vec<u8>)>,
    ambient: Vec<(OsString, OsString)>,
    allowed: Vec<&'static str>,
    torn_input: bool,
    announces: bool,
    leaves: usize,
    threads: bool,
}

struct Server {
    id: String,
    extension: String,
    runs: Runs,
    configure: Vec<Configure>,
}

/// A change of the configuration.
type Configure = Box<dyn FnOnce(&mut ServerConfig)>;

enum Runs {
    Fake(Box<FakeServer>),
    Command(String, Vec<String>),
}

impl Server {
    fn new(id: &str, extension: &str, runs: Runs) -> Self {
        Self {
            id: id.to_owned(),
            extension: extension.to_owned(),
            runs,
            configure: Vec::new(),
        }
    }

    /// The configuration, with bounds that no slow machine reaches by itself.
    fn config(self, control: &Control, root: &Path) -> (String, ServerConfig, Option<FakeCommand>) {
        let languages = [(self.extension.clone(), "xlang".to_owned())];
        let (program, args, command) = match self.runs {
            Runs::Command(program, args) => (program, args, None),
            Runs::Fake(server) => {
                let command = server
                    .control(control)
                    .command(EXECUTABLE)
                    .expect("a right script");
                (EXECUTABLE.to_owned(), command.args.clone(), Some(command))
            }
        };
        let mut config = ServerConfig::new(program, languages);
        config.args = args;
        config.shutdown_timeout_ms = 60_000;
        config.kill_grace_ms = 60_000;
        config.env = leftovers::environment(root);
        for configure in self.configure {
            configure(&mut config);
        }
        (self.id, config, command)
    }
}

impl Setup {
    /// Changes the configuration of the server named last.
    #[must_use]
    pub(crate) fn configure(mut self, change: impl FnOnce(&mut ServerConfig) + 'static) -> Self {
        self.servers
            .last_mut()
            .expect("there is one")
            .configure
            .push(Box::new(change));
        self
    }

    /// `killGraceMs`, where it is what is tested.
    #[must_use]
    pub(crate) fn grace_ms(self, ms: u64) -> Self {
        self.configure(move |config| config.kill_grace_ms = ms)
    }

    /// `shutdownTimeoutMs`, where it is what is tested.
    #[must_use]
    pub(crate) fn shutdown_ms(self, ms: u64) -> Self {
        self.configure(move |config| config.shutdown_timeout_ms = ms)
    }

    /// Another provider, for files of another extension.
    #[must_use]
    pub(crate) fn beside(mut self, id: &str, extension: &str, server: FakeServer) -> Self {
        self.servers
            .push(Server::new(id, extension, Runs::Fake(Box::new(server))));
        self
    }

    /// A file of the workspace.
    #[must_use]
    pub(crate) fn file(mut self, name: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> Self {
        self.files.push((name.into(), content.as_ref().to_vec()));
        self
    }

    /// A variable of the environment the harness runs in.
    #[must_use]
    pub(crate) fn ambient(mut self, name: &str, value: &str) -> Self {
        self.ambient.push((name.into(), value.into()));
        self
    }

    /// Lets the client break this rule of the order of messages.
    #[must_use]
    pub(crate) fn allowing(mut self, rule: &'static str) -> Self {
        self.allowed.push(rule);
        self
    }

    /// The client's output may end in the middle of a message, since the server is ended then.
    #[must_use]
    pub(crate) fn torn_input(mut self) -> Self {
        self.torn_input = true;
        self
    }

    /// `workspace/didChangeConfiguration` is expected (INI-9).
    #[must_use]
    pub(crate) fn announcing(mut self) -> Self {
        self.announces = true;
        self.configure(|config| config.announce_configuration = true)
    }

    /// So many processes leave their tree, and the disposal has to say so.
    #[must_use]
    pub(crate) fn leaving(mut self, count: usize) -> Self {
        self.leaves = count;
        self
    }

    /// Runs the host on several threads, for what may race.
    #[must_use]
    pub(crate) fn on_threads(mut self) -> Self {
        self.threads = true;
        self
    }

    /// Runs the test: mounts the host, does what `body` says, disposes, and looks for what is left.
    #[track_caller]
    pub(crate) fn run(self, body: impl AsyncFnOnce(&Bench)) -> Over {
        let instrument = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be started");
        let host = if self.threads {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
        } else {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
        };
        let host = host.expect("threads can be started");
        let control = {
            let _inside = instrument.enter();
            Control::bind().expect("a socket can be made")
        };
        let shown = ShownOnFailure(control.recorder().clone());
        let folder = tempfile::Builder::new()
            .prefix("host")
            .tempdir()
            .expect("a temp folder");
        let (threads, allowed, torn) = (self.threads, self.allowed.clone(), self.torn_input);
        let (leaves, announces) = (self.leaves, self.announces);
        let work = async {
            let bench = self
                .mount(control, instrument.handle().clone(), folder.path())
                .await;
            body(&bench).await;
            bench.finish(threads, leaves).await
        };
        let over = host.block_on(async { in_time(work).await });
        drop(host);
        drop(instrument);
        leftovers::only_ours(folder.path());
        folder.close().expect("the temp folder can be removed");
        rules::Rules {
            allowed,
            torn,
            announces,
        }
        .hold(&over.events);
        drop(shown);
        over
    }

    async fn mount(
        self,
        control: Control,
        instrument: tokio::runtime::Handle,
        folder: &Path,
    ) -> Bench {
        let root = folder.canonicalize().expect("it exists");
        let workspace = root.join("ws");
        std::fs::create_dir(&workspace).expect("it is new");
        std::fs::create_dir(root.join("tmp")).expect("it is new");
        for (name, content) in &self.files {
            let path = workspace.join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
            std::fs::write(path, content).expect("a file");
        }
        let files = Arc::new(Files::new(control.recorder().clone()));
        let processes = Arc::new(Processes::new(
            self.ambient.into_iter().collect(),
            control.recorder(),
        ));
        let seam = LspRegistry::new();
        let mut bench = Bench {
            control,
            instrument,
            seam,
            files,
            processes,
            configs: BTreeMap::new(),
            providers: BTreeMap::new(),
            registrations: Mutex::default(),
            root,
            workspace,
            scripts: Vec::new(),
        };
        for server in self.servers {
            let (id, config, script) = server.config(&bench.control, &bench.root);
            bench.scripts.extend(script);
            bench.configs.insert(id.clone(), config.clone());
            let (files, processes) = (bench.files.clone(), bench.processes.clone());
            let provider = StdioProvider::new(&id, config, files, processes)
                .await
                .expect("the server can be loaded");
            let shared = Arc::clone(&provider) as Arc<dyn LspProvider>;
            let registration = bench
                .seam
                .register_provider(shared)
                .expect("nothing conflicts");
            bench
                .registrations
                .get_mut()
                .expect("unshared")
                .push(registration);
            bench.providers.insert(id, provider);
        }
        bench
    }
}

/// A running test.
pub(crate) struct Bench {
    pub(crate) control: Control,
    /// Where the server's side of the test runs.
    instrument: tokio::runtime::Handle,
    pub(crate) seam: LspRegistry,
    pub(crate) files: Arc<Files>,
    pub(crate) processes: Arc<Processes>,
    configs: BTreeMap<String, ServerConfig>,
    providers: BTreeMap<String, Arc<StdioProvider>>,
    registrations: Mutex<Vec<Registration>>,
    /// The canonical folder of the test: `ws` is the workspace, `tmp` the servers' TMPDIR.
    pub(crate) root: PathBuf,
    workspace: PathBuf,
    scripts: Vec<FakeCommand>,
}

impl Bench {
    /// The workspace, canonical.
    pub(crate) fn workspace(&self) -> &str {
        self.workspace.to_str().expect("temp folders are UTF-8")
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.workspace.join(name)
    }

    /// The URI of a file of the workspace, or of the workspace itself for "".
    pub(crate) fn uri(&self, name: &str) -> String {
        if name.is_empty() {
            uri_of(&self.workspace)
        } else {
            uri_of(&self.path(name))
        }
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file");
    }

    /// Another directory beside the workspace, with a file `a.x`.
    pub(crate) fn another_workspace(&self, name: &str) -> String {
        let path = self.root.join(name);
        std::fs::create_dir(&path).expect("it is new");
        std::fs::write(path.join("a.x"), "let y = 2\n").expect("a file");
        path.to_str().expect("temp folders are UTF-8").to_owned()
    }

    /// The only provider, or the first by id.
    pub(crate) fn provider(&self) -> &Arc<StdioProvider> {
        self.providers.values().next().expect("there is one")
    }

    /// Its configuration, for a host of one's own.
    pub(crate) fn config(&self) -> &ServerConfig {
        self.configs.values().next().expect("there is one")
    }

    /// Asks and waits for the outcome. `at` is `file:line:column`, one-based.
    pub(crate) async fn query(
        &self,
        operation: Operation,
        at: &str,
    ) -> Result<QueryResult, LspError> {
        self.start(operation, at).outcome().await
    }

    /// Asks without waiting. Queries reach the host in the order in which they are started.
    pub(crate) fn start(&self, operation: Operation, at: &str) -> Query {
        self.start_in(self.workspace(), operation, at)
    }

    /// As [`start`](Self::start), in another workspace.
    pub(crate) fn start_in(&self, workspace: &str, operation: Operation, at: &str) -> Query {
        self.start_with(Cancel::new(), workspace, operation, at)
    }

    /// As [`start_in`](Self::start_in), with a cancellation of one's own.
    pub(crate) fn start_with(
        &self,
        cancel: Cancel,
        workspace: &str,
        operation: Operation,
        at: &str,
    ) -> Query {
        let request = request(workspace, operation, at);
        let (seam, given) = (self.seam.clone(), cancel.clone());
        let mut task = JoinSet::new();
        task.spawn(async move { seam.query(request, &given).await });
        Query { cancel, task }
    }

    /// Waits until a process has read a message of this method (short or full name).
    pub(crate) async fn received(&self, process: u32, method: &str) -> Event {
        self.control.wait_received(process, method).await
    }

    /// Waits until a process has read this many messages of this method.
    pub(crate) async fn received_times(&self, process: u32, method: &str, times: usize) {
        let mut seen = 0;
        let enough = |event: &Event| {
            let counts =
                event.process == Some(process) && event.is_message(Direction::ToServer, method);
            seen += usize::from(counts);
            seen == times
        };
        self.control.wait_for(enough).await;
    }

    /// Waits until a process has written a message of this method.
    pub(crate) async fn sent(&self, process: u32, method: &str) -> Event {
        let wanted = |event: &Event| {
            event.process == Some(process) && event.is_message(Direction::ToClient, method)
        };
        self.control.wait_for(wanted).await
    }

    /// Waits until a process has recorded a note of this kind.
    pub(crate) async fn noted(&self, process: u32, kind: &str) -> Event {
        let wanted = |event: &Event| event.process == Some(process) && is_note(event, kind);
        self.control.wait_for(wanted).await
    }

    /// Waits until the server holds something under this name.
    pub(crate) async fn held(&self, name: &str) {
        self.control.wait_held(name).await;
    }

    /// Waits until a process is gone: all its pipes are closed, and its status can be asked for.
    pub(crate) async fn ended(&self, process: u32) {
        self.control.wait_ended(process).await;
        let started = |event: &Event| match event.body {
            EventBody::ProcessStarted { pid, .. } if event.process == Some(process) => Some(pid),
            _ => None,
        };
        let pid = self
            .control
            .events()
            .iter()
            .find_map(started)
            .expect("it has started");
        // Its end of the control channel is closed before its pipes are.
        let gone = self
            .instrument
            .spawn_blocking(move || leftovers::wait_until_gone(pid));
        gone.await.expect("waiting does not panic");
    }

    /// Waits until the host looks at a workspace (`workspace`) or reads a source (`source`) for
    /// the given time, from 1.
    pub(crate) async fn looked(&self, what: &str, times: usize) {
        self.noted_times(&format!("fs.{what}"), times).await;
    }

    /// Waits until so many processes were started.
    pub(crate) async fn started(&self, times: usize) {
        self.noted_times("started", times).await;
    }

    async fn noted_times(&self, kind: &str, times: usize) {
        let mut seen = 0;
        let wanted = |event: &Event| {
            seen += usize::from(is_note(event, kind));
            seen == times
        };
        self.control.wait_for(wanted).await;
    }

    /// How often the host looked at a workspace (`workspace`) or read a source (`source`) so far.
    pub(crate) fn looks(&self, what: &str) -> usize {
        let kind = format!("fs.{what}");
        self.control
            .events()
            .iter()
            .filter(|event| is_note(event, &kind))
            .count()
    }

    /// What a process has read so far, by short names. Only of what was awaited it is certain to
    /// be there.
    pub(crate) fn wire_so_far(&self, process: u32) -> String {
        let events = self.control.events();
        dsh_transcript::View(&events).wire(process).join(" ")
    }

    /// Waits for something of the server's side while the host's thread does nothing at all, so
    /// that it will see all that happened meanwhile at once.
    pub(crate) fn while_the_host_stands_still<T: Send>(
        &self,
        work: impl Future<Output = T> + Send,
    ) -> T {
        let limited = in_time(work);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| self.instrument.block_on(limited));
            waiting.join().expect("it came")
        })
    }

    /// Unregisters and disposes as the plugin does: the routes first.
    pub(crate) async fn dispose(&self) -> Result<(), DisposeError> {
        self.registrations.lock().expect("no panic inside").clear();
        let ends = self.providers.values().map(|provider| provider.dispose());
        futures::future::join_all(ends).await.into_iter().collect()
    }

    /// Unregisters, without disposing.
    pub(crate) fn unregister(&self) {
        self.registrations.lock().expect("no panic inside").clear();
    }

    /// Disposes if that was not done, and looks for what is left of the host.
    async fn finish(self, threads: bool, leaves: usize) -> Over {
        let outcome = self.dispose().await;
        let escaped: usize = match &outcome {
            Ok(()) => 0,
            Err(error) => error
                .failures
                .iter()
                .map(|failure| failure.escaped.len())
                .sum(),
        };
        assert_eq!(
            escaped, leaves,
            "processes that left their tree: {outcome:?}"
        );
        let processes = Arc::clone(&self.processes);
        processes.none_left();
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        assert!(threads || tasks == 0, "{tasks} tasks of the host are left");
        leftovers::no_process(&self.root);
        for process in 1..=self.control.processes() {
            self.control.wait_ended(process).await;
        }
        self.files.close().await;
        Over {
            events: self.control.events(),
            spawned: processes.spawned(),
            workspace: self.workspace.clone(),
        }
    }
}

/// A query under way.
pub(crate) struct Query {
    cancel: Cancel,
    task: JoinSet<Result<QueryResult, LspError>>,
}

impl Query {
    /// The caller gives up.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel(CancelReason::Caller);
    }

    /// The caller gives up for this reason.
    pub(crate) fn cancel_for(&self, reason: CancelReason) {
        self.cancel.cancel(reason);
    }

    /// Waits for the outcome.
    pub(crate) async fn outcome(mut self) -> Result<QueryResult, LspError> {
        let joined = self.task.join_next().await.expect("there is one task");
        joined.expect("queries do not panic")
    }

    /// The outcome if it is there.
    pub(crate) fn outcome_so_far(&mut self) -> Option<Result<QueryResult, LspError>> {
        Some(self.task.try_join_next()?.expect("queries do not panic"))
    }
}

/// A request of the seam; `at` is `file:line:column`, one-based.
pub(crate) fn request(workspace: &str, operation: Operation, at: &str) -> QueryRequest {
    let mut parts = at.rsplitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (character, line) = (number().expect("a column"), number().expect("a line"));
    QueryRequest {
        operation,
        file_path: parts.next().expect("a file").to_owned(),
        position: Position {
            line: line - 1,
            character: character - 1,
        },
        workspace_root: workspace.to_owned(),
    }
}

/// Puts the one deadline around something; it is no part of what is tested.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    let timely = tokio::time::timeout(DEADLINE, work).await;
    timely.expect("the test hangs")
}

/// Whether an event is a note of this kind.
pub(crate) fn is_note(event: &Event, kind: &str) -> bool {
    matches!(&event.body, EventBody::Note { kind: k, .. } if k == kind)
}

/// The failure's message, if the code is this one.
#[track_caller]
pub(crate) fn failure(outcome: Result<QueryResult, LspError>, code: &str) -> String {
    match outcome {
        Ok(result) => panic!("expected {code}, got {result:?}"),
        Err(error) => {
            assert_eq!(error.code(), code, "{error}");
            error.to_string()
        }
    }
}

/// The text of a hover.
#[track_caller]
pub(crate) fn hover_text(outcome: Result<QueryResult, LspError>) -> Option<String> {
    match outcome {
        Ok(QueryResult::Hover { hover }) => hover.map(|hover| hover.contents),
        other => panic!("expected a hover, got {other:?}"),
    }
}

/// The places of a navigation.
#[track_caller]
pub(crate) fn locations(outcome: Result<QueryResult, LspError>) -> Vec<Location> {
    match outcome {
        Ok(QueryResult::Locations { locations, .. }) => locations,
        other => panic!("expected locations, got {other:?}"),
    }
}

/// A `Range` of LSP.
pub(crate) fn lsp_range(start: (u64, u64), end: (u64, u64)) -> Value {
    json!({
        "start": {"line": start.0, "character": start.1},
        "end": {"line": end.0, "character": end.1},
    })
}

/// A range of the seam.
pub(crate) fn range(start: (u64, u64), end: (u64, u64)) -> Range {
    let position = |(line, character)| Position { line, character };
    Range {
        start: position(start),
        end: position(end),
    }
}

/// The `file:` URI of a path, by RFC 3986: nothing but unreserved characters stands for itself.
pub(crate) fn uri_of(path: &Path) -> String {
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Prints the transcript when the test fails.
struct ShownOnFailure(dsh_transcript::Recorder);

impl Drop for ShownOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = self.0.events();
            eprintln!("transcript ({} events):", events.len());
            let middle = events.len().saturating_sub(400);
            for (at, event) in events.iter().enumerate() {
                match at {
                    200 if middle > 200 => eprintln!("…"),
                    201.. if at < middle => {}
                    _ => eprintln!("{}", line(event)),
                }
            }
        }
    }
}

/// One event in a line.
fn line(event: &Event) -> String {
    let process = event
        .process
        .map_or_else(|| "-".to_owned(), |process| process.to_string());
    let what = match &event.body {
        EventBody::Frame(frame) => {
            let way = if frame.direction == Direction::ToServer {
                "→"
            } else {
                "←"
            };
            let method = frame.method().map_or("", short_name);
            format!("{way} {method} {}", String::from_utf8_lossy(&frame.body))
        }
        other => format!("{other:?}"),
    };
    let what: String = what.chars().take(300).collect();
    format!("{:>9} µs  {process}  {what}", event.at_us)
}
