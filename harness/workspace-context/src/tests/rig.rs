//! A kernel with tools, agents, a scripted model and files on a disk that can be made to fail.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use dsh_agent::{
    Agent, AgentPlugin, AgentService, LoopOptions, ScriptedModel, ScriptedReply, SystemPromptPlugin,
};
use dsh_fs::{
    Expected, FileBytes, FileSystem, FsError, FsLocalPlugin, FsObserved, FsStat, FsTarget,
    FsVersion, LocalFileSystem, Observation, Source, SourceError, SourceRequest, TextStream,
    Workspace, WorkspaceError,
};
use dsh_kernel::{Cancel, CancelReason, EventBus, ExecutionWorld, Kernel, PluginHandle};
use dsh_session::{Event, EventBody, Message, ModelRequest, Session, SessionHeader};
use dsh_tools::{
    ContentBlock, ExecContext, Tool, ToolCall, ToolError, ToolHandle, ToolRegistry, ToolResult,
    ToolsPlugin,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{HomeVariables, InstructionSource, WorkspaceContextConfig, WorkspaceContextPlugin};

/// What goes wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Probe,
    Read,
    /// It has these many bytes when it is read, whatever its probe said.
    Grows(usize),
}

/// The files of this machine, with faults, counted.
pub(super) struct Disk {
    local: LocalFileSystem,
    faults: Mutex<HashMap<PathBuf, Fault>>,
    pub(super) probes: AtomicUsize,
    pub(super) reads: AtomicUsize,
    /// While set, a batch of probes waits for its cancellation.
    pub(super) hangs: Mutex<Option<Arc<Notify>>>,
}

impl Disk {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            local: LocalFileSystem::new(),
            faults: Mutex::default(),
            probes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            hangs: Mutex::default(),
        })
    }

    pub(super) fn set(&self, path: impl Into<PathBuf>, fault: Option<Fault>) {
        let mut faults = self.faults.lock().unwrap();
        match fault {
            Some(fault) => faults.insert(path.into(), fault),
            None => faults.remove(&path.into()),
        };
    }

    fn fault(&self, path: &Path) -> Option<Fault> {
        self.faults.lock().unwrap().get(path).copied()
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (load(&self.probes), load(&self.reads))
    }
}

fn broken(path: &Path) -> FsError {
    FsError::Inaccessible {
        path: path.display().to_string(),
        reason: "the provider is broken".to_owned(),
    }
}

/// So many bytes, in small pieces.
struct Grown(usize, FsVersion);

#[async_trait]
impl TextStream for Grown {
    async fn next(&mut self) -> Option<Result<Bytes, FsError>> {
        let piece = self.0.min(7);
        self.0 -= piece;
        (piece > 0).then(|| Ok(Bytes::from(vec![b'x'; piece])))
    }

    fn version(&self) -> &FsVersion {
        &self.1
    }
}

#[async_trait]
impl FileSystem for Disk {
    fn world(&self) -> &ExecutionWorld {
        self.local.world()
    }

    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError> {
        self.local.workspace(root, cancel).await
    }

    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError> {
        self.local.read_source(request, cancel).await
    }

    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError> {
        self.local.resolve(base, path, cancel).await
    }

    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError> {
        self.local.stat(target, cancel).await
    }

    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason> {
        self.probes.fetch_add(1, Ordering::SeqCst);
        let hangs = self.hangs.lock().unwrap().clone();
        if let Some(waiting) = hangs {
            waiting.notify_one();
            return Err(cancel.cancelled().await);
        }
        let mut stats = self.local.probe(paths, cancel).await?;
        for (path, stat) in paths.iter().zip(&mut stats) {
            if self.fault(path) == Some(Fault::Probe) {
                *stat = Err(broken(path));
            }
        }
        Ok(stats)
    }

    async fn names(
        &self,
        directory: &Path,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError> {
        self.local.names(directory, most, cancel).await
    }

    async fn read_bytes(
        &self,
        target: &FsTarget,
        limit: u64,
        cancel: &Cancel,
    ) -> Result<FileBytes, FsError> {
        self.local.read_bytes(target, limit, cancel).await
    }

    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        match self.fault(&target.path) {
            Some(Fault::Read) => Err(broken(&target.path)),
            Some(Fault::Grows(size)) => Ok(Box::new(Grown(size, FsVersion::new("grown")))),
            _ => self.local.stream_text(target, cancel).await,
        }
    }

    async fn write(
        &self,
        target: &FsTarget,
        bytes: Vec<u8>,
        expected: Expected,
        cancel: &Cancel,
    ) -> Result<FsVersion, FsError> {
        self.local.write(target, bytes, expected, cancel).await
    }
}

/// Touches a file as the first-party tools do, or pretends to.
struct Touch {
    name: &'static str,
    events: EventBus,
    observes: bool,
}

#[async_trait]
impl Tool for Touch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        "touches a file"
    }

    fn parameters(&self) -> Value {
        json!({"type": "object"})
    }

    fn output(&self) -> Value {
        json!({})
    }

    fn is_concurrency_safe(&self, _: &Value) -> bool {
        true
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let path = arguments["path"].as_str().unwrap_or_default();
        let present = Path::new(path).exists();
        if self.observes {
            self.events.emit(&FsObserved {
                target: FsTarget {
                    path: path.into(),
                    display_path: path.to_owned(),
                },
                identity: path.into(),
                observation: if present {
                    Observation::Present {
                        version: FsVersion::new("1"),
                    }
                } else {
                    Observation::Absent
                },
                write: false,
                tool: self.name.to_owned(),
                call_id: context.call_id,
                token: context.token.number(),
                session: context.session.map(|session| session.header().id.clone()),
            });
        }
        if !present || arguments["fail"] == true {
            return Err(ToolError::failed("no such file"));
        }
        Ok(Value::Null)
    }

    fn render(&self, _: &Value, _: &Value) -> Vec<ContentBlock> {
        vec![ContentBlock::text("read")]
    }
}

/// Reads each of the files in nested calls.
struct RunCode(ToolRegistry);

#[async_trait]
impl Tool for RunCode {
    fn name(&self) -> &'static str {
        "run_code"
    }

    fn description(&self) -> &'static str {
        "calls read"
    }

    fn parameters(&self) -> Value {
        json!({"type": "object"})
    }

    fn output(&self) -> Value {
        json!({})
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        for path in arguments["paths"].as_array().into_iter().flatten() {
            let call = ToolCall {
                id: format!("nested {path}"),
                name: "read".to_owned(),
                arguments: json!({"path": path}),
            };
            let result = self.0.call_nested(&context, call).await;
            assert!(result.contexts.is_empty(), "they are the outer result's");
        }
        if arguments["fail"] == true {
            return Err(ToolError::failed("thrown"));
        }
        Ok(Value::Null)
    }

    fn render(&self, _: &Value, _: &Value) -> Vec<ContentBlock> {
        vec![ContentBlock::text("ran")]
    }
}

/// A workspace in a folder of its own, and a runtime around it.
pub(super) struct Rig {
    folder: tempfile::TempDir,
    pub(super) kernel: Kernel,
    pub(super) disk: Arc<Disk>,
    plugin: Mutex<Option<PluginHandle>>,
    _tools: Vec<ToolHandle>,
}

impl Rig {
    /// With a project that has a root marker and nothing else, a home, and the plugin.
    pub(super) async fn new() -> Self {
        Self::with(WorkspaceContextConfig::new(100_000.0)).await
    }

    pub(super) async fn with(config: WorkspaceContextConfig) -> Self {
        let rig = Self::bare().await;
        rig.mount_files().await;
        rig.mount(config).await;
        rig
    }

    /// Without files and without the plugin.
    pub(super) async fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("p/.git")).unwrap();
        std::fs::create_dir_all(root.join("home")).unwrap();
        let kernel = Kernel::new();
        kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
        kernel.mount(Arc::new(SystemPromptPlugin)).await.unwrap();
        kernel.mount(Arc::new(AgentPlugin)).await.unwrap();
        let registry = kernel.service::<ToolRegistry>().unwrap();
        let touch = |name, observes| Touch {
            name,
            events: kernel.events().clone(),
            observes,
        };
        let tools = vec![
            registry.register(Arc::new(touch("read", true))).unwrap(),
            registry.register(Arc::new(touch("edit", false))).unwrap(),
            registry
                .register(Arc::new(RunCode(ToolRegistry::clone(&registry))))
                .unwrap(),
        ];
        Self {
            folder,
            kernel,
            disk: Disk::new(),
            plugin: Mutex::default(),
            _tools: tools,
        }
    }

    pub(super) async fn mount_files(&self) -> PluginHandle {
        let disk: Arc<dyn FileSystem> = self.disk.clone();
        let plugin = FsLocalPlugin::providing(disk);
        self.kernel.mount(Arc::new(plugin)).await.unwrap()
    }

    pub(super) async fn mount(&self, config: WorkspaceContextConfig) {
        let home = self.path("home").to_str().unwrap().to_owned();
        let plugin = WorkspaceContextPlugin::new(config).with_home(HomeVariables {
            home: Some(home),
            dsh_home: None,
        });
        let handle = self.kernel.mount(Arc::new(plugin)).await.unwrap();
        *self.plugin.lock().unwrap() = Some(handle);
    }

    pub(super) async fn unmount(&self) {
        let handle = self.plugin.lock().unwrap().take().unwrap();
        self.kernel.unmount(&handle).await.unwrap();
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    pub(super) fn events(&self) -> &EventBus {
        self.kernel.events()
    }

    pub(super) fn registry(&self) -> Arc<ToolRegistry> {
        self.kernel.service::<ToolRegistry>().unwrap()
    }

    pub(super) fn agents(&self) -> Arc<AgentService> {
        self.kernel.service::<AgentService>().unwrap()
    }

    /// A session in a directory of the folder.
    pub(super) fn session(&self, cwd: &str) -> Session {
        Session::new(SessionHeader {
            id: format!("session in {cwd}"),
            cwd: Some(self.path(cwd).to_str().unwrap().to_owned()),
        })
    }

    /// Opens a loop on a session, with a model that gives these replies.
    pub(super) fn open(&self, session: &Session, replies: Vec<ScriptedReply>) -> Loop {
        let model = Arc::new(ScriptedModel::from_replies(replies).unwrap());
        let agent = self.agents().open(
            session.clone(),
            Arc::clone(&model) as _,
            LoopOptions::default(),
        );
        Loop { agent, model }
    }

    /// A reply that reads a file of the folder.
    pub(super) fn read(&self, path: &str) -> ScriptedReply {
        ScriptedReply::calls([("read", json!({"path": self.path(path)}))])
    }

    /// One call outside of any loop.
    pub(super) async fn call(&self, session: &Session, name: &str, arguments: Value) -> ToolResult {
        let call = ToolCall {
            id: "call".to_owned(),
            name: name.to_owned(),
            arguments,
        };
        let registry = self.registry();
        registry.call(call, session.clone(), Cancel::new()).await
    }

    /// A touch outside of any loop, with what it has to tell.
    pub(super) async fn touch(&self, session: &Session, path: &str) -> Vec<String> {
        let arguments = json!({"path": self.path(path)});
        let result = self.call(session, "read", arguments).await;
        assert!(!result.is_error, "{result:?}");
        contexts(&result)
    }
}

/// The texts that ride on a result.
pub(super) fn contexts(result: &ToolResult) -> Vec<String> {
    let contexts = result.contexts.iter();
    contexts.map(|context| text_of(&context.content)).collect()
}

/// A loop with its model.
pub(super) struct Loop {
    pub(super) agent: Agent,
    model: Arc<ScriptedModel>,
}

impl Loop {
    pub(super) async fn prompt(&self, text: &str) {
        let outcome = self.agent.prompt(text, &Cancel::new()).await;
        outcome.expect("the turn ends well");
    }

    pub(super) fn requests(&self) -> Vec<ModelRequest> {
        self.model.requests()
    }

    /// What the model has read in the last request, other than its own words.
    pub(super) fn heard(&self) -> Vec<String> {
        let requests = self.requests();
        heard(requests.last().expect("a request was made"))
    }
}

pub(super) fn heard(request: &ModelRequest) -> Vec<String> {
    request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::User { content } | Message::Tool { content, .. } => Some(text_of(content)),
            Message::Assistant { .. } => None,
        })
        .collect()
}

fn text_of(content: &[ContentBlock]) -> String {
    content.iter().map(ContentBlock::as_text).collect()
}

/// What the log says of instructions.
pub(super) fn sources(session: &Session) -> Vec<InstructionSource> {
    let source = |event: &Arc<Event>| match &event.body {
        EventBody::UserMessage { source, .. } => InstructionSource::of(source),
        _ => None,
    };
    session.read(|log| log.events().iter().filter_map(source).collect())
}

/// The headings of a message, in order.
pub(super) fn headings(text: &str) -> Vec<&str> {
    let starts = [
        "Instructions from: ",
        "Additional instructions from: ",
        "Updated instructions from: ",
        "Instructions removed: ",
    ];
    let is_heading = |line: &&str| starts.iter().any(|start| line.starts_with(start));
    text.lines().filter(is_heading).collect()
}
