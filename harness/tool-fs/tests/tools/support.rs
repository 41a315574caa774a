//! A kernel with the tools, a folder, and what was observed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dsh_fs::{FileSystem, FsLocalPlugin, FsObserved, Observation};
use dsh_kernel::{Cancel, Kernel, Plugin, Subscription};
use dsh_session::{Session, SessionHeader};
use dsh_tool_fs::{ReadBeforeWriteConfig, ReadBeforeWritePlugin, ToolFsConfig, ToolFsPlugin};
use dsh_tools::{ToolCall, ToolRegistry, ToolResult, ToolsPlugin};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) kernel: Kernel,
    folder: TempDir,
    observed: Arc<Mutex<Vec<FsObserved>>>,
    _subscription: Subscription,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(ToolFsConfig::default(), false).await
    }

    pub(crate) async fn guarded() -> Self {
        Self::with(ToolFsConfig::default(), true).await
    }

    pub(crate) async fn with(config: ToolFsConfig, guarded: bool) -> Self {
        Self::mounted(FsLocalPlugin::new(), config, guarded).await
    }

    /// On files of another provider.
    pub(crate) async fn over(fs: Arc<dyn FileSystem>, config: ToolFsConfig) -> Self {
        Self::mounted(FsLocalPlugin::providing(fs), config, false).await
    }

    async fn mounted(fs: FsLocalPlugin, config: ToolFsConfig, guarded: bool) -> Self {
        let kernel = Kernel::new();
        let mut plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(ToolsPlugin),
            Arc::new(fs),
            Arc::new(ToolFsPlugin::new(config)),
        ];
        if guarded {
            let policy = ReadBeforeWritePlugin::new(ReadBeforeWriteConfig::default());
            plugins.push(Arc::new(policy));
        }
        for plugin in plugins {
            kernel.mount(plugin).await.expect("its needs are there");
        }
        let observed = Arc::new(Mutex::new(Vec::new()));
        let recorder = Arc::clone(&observed);
        let subscription = kernel.events().subscribe(move |event: &FsObserved| {
            recorder.lock().expect("whole").push(event.clone());
        });
        Self {
            kernel,
            folder: TempDir::new().expect("a folder"),
            observed,
            _subscription: subscription,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An absolute path, as text.
    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("read")
    }

    /// A session in the folder.
    pub(crate) fn session(&self, id: &str) -> Session {
        Session::new(SessionHeader {
            id: id.to_owned(),
            cwd: Some(self.folder.path().to_str().expect("UTF-8").to_owned()),
        })
    }

    pub(crate) async fn call_in(
        &self,
        session: Option<Session>,
        tool: &str,
        arguments: Value,
    ) -> ToolResult {
        let call = ToolCall {
            id: "call-1".to_owned(),
            name: tool.to_owned(),
            arguments,
        };
        let tools = self.kernel.service::<ToolRegistry>().expect("mounted");
        tools.call(call, session, Cancel::new()).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_in(Some(self.session("s")), tool, arguments).await
    }

    /// The text of a call that succeeds, with the folder as `/w`.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert!(!result.is_error, "{}", result.text());
        self.placed(&result)
    }

    /// The code and the text of a call that fails.
    pub(crate) async fn refusal(&self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments).await;
        let text = self.placed(&result);
        (result.code.expect("it fails"), text)
    }

    pub(crate) fn placed(&self, result: &ToolResult) -> String {
        let folder = self.folder.path().to_str().expect("UTF-8");
        result.text().replace(folder, "/w")
    }

    /// What was observed since the last time: tool, name in the folder, what.
    pub(crate) fn observed(&self) -> Vec<(String, String, &'static str)> {
        let observed = std::mem::take(&mut *self.observed.lock().expect("whole"));
        observed
            .into_iter()
            .map(|event| {
                assert_eq!(event.call_id, "call-1");
                assert!(event.token > 0);
                let path = event.target.path.strip_prefix(self.folder.path());
                let name = path.expect("inside").to_str().expect("UTF-8").to_owned();
                let what = match (event.write, event.observation) {
                    (false, Observation::Present { .. }) => "read",
                    (true, Observation::Present { .. }) => "written",
                    (_, Observation::Absent) => "absent",
                };
                (event.tool, name, what)
            })
            .collect()
    }
}

/// What one call is expected to have told.
pub(crate) fn told(
    tool: &str,
    name: &str,
    what: &'static str,
) -> Vec<(String, String, &'static str)> {
    vec![(tool.to_owned(), name.to_owned(), what)]
}
