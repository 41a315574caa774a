//! The mounted runtime: the base, the rows of a deployment, and the services they give.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_agent::{AgentPlugin, AgentService, SystemPrompt, SystemPromptPlugin};
use dsh_code_mode::CodeModePlugin;
use dsh_fs::{FileSystem, FsLocalPlugin};
use dsh_kernel::{
    Cancel, CancelReason, DisposeErrors, EventBus, Kernel, Plugin, PluginError, PluginHandle,
    PluginState, ServiceKey,
};
use dsh_lsp::{LspPlugin, LspService};
use dsh_lsp_stdio::LspStdioPlugin;
use dsh_session::{Session, SessionHeader};
use dsh_subprocess::{LocalSubprocess, Subprocess, SubprocessLocalPlugin};
use dsh_tool_fs::{ReadBeforeWritePlugin, ToolFsPlugin};
use dsh_tool_lsp::ToolLspPlugin;
use dsh_tools::{TimeoutPolicyPlugin, ToolRegistry, ToolsPlugin};
use dsh_workspace_context::{HomeVariables, WorkspaceContextPlugin};

use crate::deployment::Row;
use crate::{Deployment, MountError, PluginFailure, PluginName, RowConfig};

/// A mounted runtime (RUN-3).
///
/// [`dispose`](Self::dispose) it when done: that ends language servers gracefully. One that is
/// dropped instead kills them at once (DIS-6).
pub struct Runtime {
    kernel: Kernel,
    tools: Arc<ToolRegistry>,
    system_prompt: Arc<SystemPrompt>,
    agents: Arc<AgentService>,
    mounted: Vec<Mounted>,
    sessions: AtomicU64,
}

/// File and line of a row.
type Origin = Option<(String, u64)>;

struct Mounted {
    handle: PluginHandle,
    origin: Origin,
}

/// What a runtime is to be made of.
#[derive(Default)]
pub struct RuntimeBuilder {
    deployment: Deployment,
    subprocess: Option<Arc<dyn Subprocess>>,
    file_system: Option<Arc<dyn FileSystem>>,
    without_timeout_policy: bool,
    plugins: Vec<Arc<dyn Plugin>>,
    home: HomeVariables,
}

impl RuntimeBuilder {
    /// The rows to mount besides the base. Default: none.
    #[must_use]
    pub fn deployment(mut self, deployment: Deployment) -> Self {
        self.deployment = deployment;
        self
    }

    /// What the row `dsh-subprocess-local` provides. Default: the processes of this machine, with
    /// the environment of this process (scrubbed, ENV-1).
    #[must_use]
    pub fn subprocess(mut self, subprocess: Arc<dyn Subprocess>) -> Self {
        self.subprocess = Some(subprocess);
        self
    }

    /// What the row `dsh-fs-local` provides. Default: the files of this machine.
    #[must_use]
    pub fn file_system(mut self, file_system: Arc<dyn FileSystem>) -> Self {
        self.file_system = Some(file_system);
        self
    }

    /// Whether the base mounts the timeout policy where the deployment has no row for it. Default:
    /// it does.
    #[must_use]
    pub fn timeout_policy(mut self, mount: bool) -> Self {
        self.without_timeout_policy = !mount;
        self
    }

    /// Where the row `dsh-workspace-context` finds the user's own instructions: the variables of the
    /// caller's environment (INS-1). Default: none of them is set.
    #[must_use]
    pub fn home(mut self, variables: HomeVariables) -> Self {
        self.home = variables;
        self
    }

    /// A plugin of the caller's own, mounted after the rows: what a program around the runtime adds
    /// to it, its approver for instance. Unloaded like every other.
    #[must_use]
    pub fn plugin(mut self, plugin: Arc<dyn Plugin>) -> Self {
        self.plugins.push(plugin);
        self
    }

    /// Mounts it all, and waits until every plugin has started or waits for a service that nobody
    /// provides ([`Runtime::waiting`], RUN-2).
    ///
    /// If a plugin fails, or the cancellation is given (CFG-6), what had been started is disposed
    /// before this returns. Dropping the future drops the runtime.
    pub async fn mount(self, cancel: &Cancel) -> Result<Runtime, MountError> {
        let kernel = Kernel::new();
        let outcome = tokio::select! {
            biased;
            reason = cancel.cancelled() => Err(Failed::Cancelled(reason)),
            outcome = self.mount_on(&kernel) => outcome.map_err(Failed::Plugins),
        };
        let failed = match outcome {
            Ok(mounted) => match base(&kernel) {
                Some((tools, system_prompt, agents)) => {
                    let sessions = AtomicU64::new(1);
                    let runtime = Runtime {
                        kernel,
                        tools,
                        system_prompt,
                        agents,
                        mounted,
                        sessions,
                    };
                    for waiting in runtime.waiting() {
                        tracing::warn!("{waiting}");
                    }
                    return Ok(runtime);
                }
                None => Failed::Plugins(vec![base_is_missing()]),
            },
            Err(failed) => failed,
        };
        let undo = kernel.dispose().await.err();
        Err(match failed {
            Failed::Cancelled(reason) => MountError::Cancelled { reason, undo },
            Failed::Plugins(failures) => MountError::Plugins { failures, undo },
        })
    }

    async fn mount_on(mut self, kernel: &Kernel) -> Result<Vec<Mounted>, Vec<PluginFailure>> {
        let rows = std::mem::take(&mut self.deployment);
        let has_policy = rows
            .rows()
            .iter()
            .any(|row| row.config().plugin() == PluginName::TimeoutPolicy);
        let mut plugins: Vec<(Arc<dyn Plugin>, Origin)> = vec![
            (Arc::new(ToolsPlugin), None),
            (Arc::new(SystemPromptPlugin), None),
            (Arc::new(AgentPlugin), None),
        ];
        if !has_policy && !self.without_timeout_policy {
            plugins.push((Arc::new(TimeoutPolicyPlugin::default()), None));
        }
        for row in rows.rows() {
            plugins.push((self.plugin_of(row), origin_of(row)));
        }
        for plugin in std::mem::take(&mut self.plugins) {
            plugins.push((plugin, None));
        }
        let (mut mounted, mut failures) = (Vec::new(), Vec::new());
        for (plugin, origin) in plugins {
            match kernel.add(Arc::clone(&plugin)).await {
                Ok(handle) => mounted.push(Mounted { handle, origin }),
                Err(error) => {
                    failures.push(PluginFailure {
                        plugin: plugin.name().to_owned(),
                        origin,
                        error,
                    });
                }
            }
        }
        for Mounted { handle, origin } in &mounted {
            if let PluginState::Failed(error) = kernel.settled(handle).await {
                let (plugin, origin) = (handle.name().to_owned(), origin.clone());
                failures.push(PluginFailure {
                    plugin,
                    origin,
                    error,
                });
            }
        }
        if failures.is_empty() {
            Ok(mounted)
        } else {
            Err(failures)
        }
    }

    pub(crate) fn plugin_of(&self, row: &Row) -> Arc<dyn Plugin> {
        match row.config() {
            RowConfig::FsLocal => match &self.file_system {
                Some(given) => Arc::new(FsLocalPlugin::providing(Arc::clone(given))),
                None => Arc::new(FsLocalPlugin::new()),
            },
            RowConfig::SubprocessLocal => {
                let subprocess = self
                    .subprocess
                    .clone()
                    .unwrap_or_else(|| Arc::new(LocalSubprocess::from_environment()));
                Arc::new(SubprocessLocalPlugin::new(subprocess))
            }
            RowConfig::Lsp => Arc::new(LspPlugin),
            RowConfig::LspStdio(config) => Arc::new(LspStdioPlugin::new(config.clone())),
            RowConfig::ToolLsp(config) => Arc::new(ToolLspPlugin::new(*config)),
            RowConfig::TimeoutPolicy(config) => Arc::new(TimeoutPolicyPlugin::new(config.clone())),
            RowConfig::ToolFs(config) => Arc::new(ToolFsPlugin::new(*config)),
            RowConfig::ReadBeforeWrite(config) => Arc::new(ReadBeforeWritePlugin::new(*config)),
            RowConfig::CodeMode(config) => Arc::new(CodeModePlugin::new(*config)),
            RowConfig::WorkspaceContext(config) => {
                Arc::new(WorkspaceContextPlugin::new(config.clone()).with_home(self.home.clone()))
            }
        }
    }
}

enum Failed {
    Cancelled(CancelReason),
    Plugins(Vec<PluginFailure>),
}

fn origin_of(row: &Row) -> Origin {
    row.origin().map(|(file, line)| (file.to_owned(), line))
}

type Base = (Arc<ToolRegistry>, Arc<SystemPrompt>, Arc<AgentService>);

fn base(kernel: &Kernel) -> Option<Base> {
    Some((kernel.service()?, kernel.service()?, kernel.service()?))
}

fn base_is_missing() -> PluginFailure {
    let error = PluginError::new("the base did not start");
    PluginFailure {
        plugin: "dsh-harness".to_owned(),
        origin: None,
        error,
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("deployment", &self.deployment)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime to be: the base alone, until told otherwise.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// The language-server seam, if the deployment has its row and the runtime is not disposed.
    pub fn lsp(&self) -> Option<Arc<dyn LspService>> {
        self.kernel.service()
    }

    /// The tools.
    pub fn tools(&self) -> Arc<ToolRegistry> {
        Arc::clone(&self.tools)
    }

    /// The system prompt.
    pub fn system_prompt(&self) -> Arc<SystemPrompt> {
        Arc::clone(&self.system_prompt)
    }

    /// The agents: opens one on a session (RUN-12).
    pub fn agents(&self) -> Arc<AgentService> {
        Arc::clone(&self.agents)
    }

    /// The event bus: `agent/pre-step`, `tools/post-execute`, `tools/result`, `fs/observed`.
    pub fn events(&self) -> &EventBus {
        self.kernel.events()
    }

    /// What the plugins are mounted on: for a program that mounts and unmounts some of its own while
    /// the runtime runs. They are unloaded with it.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Begins a session. `cwd` is its workspace, absolute; without one it has none (TOOL-3).
    pub fn open_session(&self, cwd: Option<&str>) -> Session {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let id = format!("session-{number}");
        Session::new(SessionHeader {
            id,
            cwd: cwd.map(str::to_owned),
        })
    }

    /// The names of the mounted plugins, the base first, then in the order of the rows.
    pub fn plugins(&self) -> Vec<&str> {
        self.mounted
            .iter()
            .map(|mounted| mounted.handle.name())
            .collect()
    }

    /// The plugins that do not run since nobody provides what they need, and what that is (RUN-2).
    /// With a deployment that is complete, none.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.mounted
            .iter()
            .filter_map(
                |Mounted { handle, origin }| match self.kernel.state(handle) {
                    PluginState::Waiting(missing) if !missing.is_empty() => Some(Waiting {
                        plugin: handle.name().to_owned(),
                        origin: origin.clone(),
                        missing,
                    }),
                    _ => None,
                },
            )
            .collect()
    }

    /// Unloads everything, dependents first: language servers end gracefully before the services
    /// they run on go (DIS-3). Returns when nothing is left; failures come together (DIS-5).
    /// Idempotent: concurrent callers wait for the same end.
    pub async fn dispose(&self) -> Result<(), DisposeErrors> {
        self.kernel.dispose().await
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runtime").field(&self.kernel).finish()
    }
}

/// A plugin that waits for its needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The plugin's name.
    pub plugin: String,
    /// File and line (one-based) of its row.
    pub origin: Option<(String, u64)>,
    /// What is missing.
    pub missing: Vec<ServiceKey>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.origin {
            write!(f, "{file}:{line}: ")?;
        }
        write!(f, "{} waits for ", self.plugin)?;
        for (index, missing) in self.missing.iter().enumerate() {
            let and = if index == 0 { "" } else { ", and for " };
            let row = PluginName::ALL
                .into_iter()
                .find(|row| row.provides() == Some(*missing));
            match row {
                Some(row) => write!(f, "{and}what {row} provides; add the row `- name: {row}`")?,
                None => write!(
                    f,
                    "{and}{missing}, which no row provides; mount a plugin that does"
                )?,
            }
        }
        Ok(())
    }
}
