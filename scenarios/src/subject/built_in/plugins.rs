//! The plugins of a mount that come and go while it is there: files, the tools for them, Code Mode,
//! and the workspace instructions.

use std::sync::{Arc, Weak};

use dsh_harness::Runtime;
use dsh_harness::code_mode::{CodeModeConfig, CodeModePlugin};
use dsh_harness::fs::{FileSystem, FsLocalPlugin};
use dsh_harness::kernel::{Plugin, PluginHandle};
use dsh_harness::tool_fs::{
    ReadBeforeWriteConfig, ReadBeforeWritePlugin, ToolFsConfig, ToolFsPlugin,
};
use dsh_harness::workspace_context::{
    HomeVariables, WorkspaceContextConfig, WorkspaceContextPlugin,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::CallError;
use super::files::Files;
use super::{INVALID_PARAMS, NOT_MOUNTED, Outcome, nothing, refused};

/// What a mount asks for besides hosts: `tools` of the subject protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    #[serde(default)]
    files: Value,
    #[serde(default)]
    read_before_write: bool,
    #[serde(default)]
    code_mode: Value,
}

/// The plugins that come and go.
pub(super) struct Plugins {
    runtime: Weak<Runtime>,
    files: Arc<Files>,
    /// Whether the files are one of them, or belong to the rows of the deployment.
    owns_files: bool,
    home: HomeVariables,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    files: Option<PluginHandle>,
    tools: Option<PluginHandle>,
    instructions: Option<PluginHandle>,
    config: Value,
}

impl Plugins {
    pub(super) fn new(
        runtime: &Arc<Runtime>,
        files: Arc<Files>,
        owns_files: bool,
        environment: &serde_json::Map<String, Value>,
    ) -> Self {
        let variable = |name: &str| {
            let value = environment.get(name).and_then(Value::as_str);
            value.map(str::to_owned)
        };
        Self {
            runtime: Arc::downgrade(runtime),
            files,
            owns_files,
            home: HomeVariables {
                home: variable("HOME"),
                dsh_home: variable("DSH_HOME"),
            },
            state: tokio::sync::Mutex::default(),
        }
    }

    /// Mounts what was asked for.
    pub(super) async fn mount(
        &self,
        asked: Asked,
        instructions: Value,
        with_files: bool,
    ) -> Result<(), CallError> {
        let mut state = self.state.lock().await;
        if self.owns_files && with_files {
            state.files = Some(self.add(self.local()).await?);
        }
        if asked.read_before_write {
            let policy = ReadBeforeWritePlugin::new(ReadBeforeWriteConfig::default());
            self.add(Arc::new(policy)).await?;
        }
        if !asked.files.is_null() {
            let config: ToolFsConfig = config("tools.files", asked.files)?;
            let tools = self.add(Arc::new(ToolFsPlugin::new(config))).await?;
            state.tools = Some(tools);
        }
        if !asked.code_mode.is_null() {
            let config: CodeModeConfig = config("tools.codeMode", asked.code_mode)?;
            self.add(Arc::new(CodeModePlugin::new(config))).await?;
        }
        if !instructions.is_null() {
            let plugin = self.instructions(&instructions)?;
            state.instructions = Some(self.add(plugin).await?);
            state.config = instructions;
        }
        Ok(())
    }

    /// Has the file system service come or go.
    pub(super) async fn files(&self, present: bool) -> Outcome {
        if !self.owns_files {
            let told = "with language servers mounted, files stay as they are";
            return Err(refused(INVALID_PARAMS, told));
        }
        let mut state = self.state.lock().await;
        if present && state.files.is_none() {
            state.files = Some(self.add(self.local()).await?);
            // The next turn is to find the tools, which start when there are files again.
            if let Some(tools) = &state.tools {
                self.runtime()?.kernel().settled(tools).await;
            }
        } else if !present && let Some(handle) = state.files.take() {
            self.remove(&handle).await?;
        }
        Ok(nothing())
    }

    /// Unloads the instructions and mounts them again, with another configuration where one is
    /// given, while everything else goes on.
    pub(super) async fn remount(&self, config: Option<Value>) -> Outcome {
        let mut state = self.state.lock().await;
        if let Some(handle) = state.instructions.take() {
            self.remove(&handle).await?;
        }
        if let Some(config) = config {
            state.config = config;
        }
        if !state.config.is_null() {
            let plugin = self.instructions(&state.config)?;
            state.instructions = Some(self.add(plugin).await?);
        }
        Ok(nothing())
    }

    fn local(&self) -> Arc<dyn Plugin> {
        let files = Arc::clone(&self.files) as Arc<dyn FileSystem>;
        Arc::new(FsLocalPlugin::providing(files))
    }

    fn instructions(&self, value: &Value) -> Result<Arc<dyn Plugin>, CallError> {
        let config: WorkspaceContextConfig = config("instructions", value.clone())?;
        let plugin = WorkspaceContextPlugin::new(config).with_home(self.home.clone());
        Ok(Arc::new(plugin))
    }

    async fn add(&self, plugin: Arc<dyn Plugin>) -> Result<PluginHandle, CallError> {
        let mounted = self.runtime()?.kernel().mount(plugin).await;
        mounted.map_err(|error| refused(error.code().unwrap_or("MOUNT_FAILED"), error.to_string()))
    }

    async fn remove(&self, handle: &PluginHandle) -> Result<(), CallError> {
        let removed = self.runtime()?.kernel().unmount(handle).await;
        removed.map_err(|errors| refused("UNMOUNT_FAILED", errors.to_string()))
    }

    fn runtime(&self) -> Result<Arc<Runtime>, CallError> {
        let told = "the runtime is gone; mount it again";
        self.runtime
            .upgrade()
            .ok_or_else(|| refused(NOT_MOUNTED, told))
    }
}

/// A configuration as what it should be.
fn config<T: DeserializeOwned>(what: &str, value: Value) -> Result<T, CallError> {
    serde_json::from_value(value)
        .map_err(|error| refused("CONFIG_INVALID", format!("{what}: {error}")))
}
