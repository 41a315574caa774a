//! The life of the harness: mounted, asked, disposed, dropped.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_harness::fs::{FileSystem, FsLocalPlugin};
use dsh_harness::kernel::{
    Cancel, CancelReason, Context, DisposeErrors, Kernel, Plugin, PluginError, ServiceKey,
};
use dsh_harness::lsp::{LspError, LspService, QueryRequest};
use dsh_harness::lsp_stdio::{LspStdioConfig, LspStdioPlugin};
use dsh_harness::session::{Session, SessionHeader};
use dsh_harness::subprocess::{LocalSubprocess, Subprocess, SubprocessLocalPlugin};
use dsh_harness::tools::{ToolCall, ToolRegistry};
use dsh_harness::{MountError, Runtime};
use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::super::{CallError, MountParams, QueryParams, ToolOutcome, ToolParams};
use super::arranged::{Arranged, lock};
use super::files::{Files, Processes};
use super::looped::{Loops, MAIN};
use super::plugins::Plugins;
use super::stubs::Stubs;
use super::{NOT_MOUNTED, Outcome, nothing, params, refused};

/// The harness, whatever has become of it.
#[derive(Default)]
pub(super) struct Harness {
    state: Mutex<State>,
    /// Whether a mount is under way; for those who wait for its end.
    mounting: watch::Sender<bool>,
    calls: AtomicU64,
}

#[derive(Default)]
struct State {
    /// What was arranged for the mount there is, or for the next one.
    arranged: Arc<Arranged>,
    /// Ends the mount that is under way.
    mounting: Option<Cancel>,
    mounted: Option<Arc<Mounted>>,
    /// What consumers hold: it outlives the mount, and says so when it is asked.
    held: Option<Held>,
}

/// What a consumer of the harness holds.
#[derive(Clone)]
struct Held {
    seam: Arc<dyn LspService>,
    tools: Arc<ToolRegistry>,
    session: Option<Session>,
}

/// One mount.
pub(super) struct Mounted {
    runtime: Mutex<Option<Arc<Runtime>>>,
    pub(super) seam: Arc<dyn LspService>,
    files: Arc<Files>,
    processes: Arc<dyn Subprocess>,
    pub(super) stubs: Stubs,
    pub(super) loops: Loops,
    pub(super) plugins: Plugins,
    hosts: Mutex<Hosts>,
}

/// Hosts that were loaded besides the one of the mount.
#[derive(Default)]
struct Hosts {
    closed: bool,
    by_name: BTreeMap<String, Arc<Kernel>>,
}

impl Harness {
    pub(super) async fn mount(&self, params: Value, cancel: Cancel) -> Outcome {
        let params: MountParams = params::read("mount", params)?;
        let deployment = params::deployment(&params)?;
        let asked = params::tools(params.tools)?;
        let session = params::session(MAIN, &params.session)?;
        let variables = params.environment.clone();
        let environment = params::environment(params.environment)?;
        let arranged = self.begin(&cancel)?;
        // However this ends, also dropped: no mount is under way afterwards.
        let _mounting = Mounting(self);
        let files = Arc::new(Files::new(Arc::clone(&arranged)));
        let local = LocalSubprocess::new(environment);
        let processes: Arc<dyn Subprocess> = Arc::new(Processes::new(local, Arc::clone(&arranged)));
        let mounted = Runtime::builder()
            .deployment(deployment)
            .file_system(Arc::clone(&files) as Arc<dyn FileSystem>)
            .subprocess(Arc::clone(&processes))
            .mount(&cancel)
            .await;
        let runtime = match mounted {
            Ok(runtime) => runtime,
            Err(error) => {
                files.close().await;
                lock(&self.state).arranged = Arc::default();
                return Err(unmounted(&error));
            }
        };
        let Some(seam) = runtime.lsp() else {
            return Err(refused("MOUNT_FAILED", "the seam did not start"));
        };
        let runtime = Arc::new(runtime);
        let tools = runtime.tools();
        let owns_files = params.host.is_null();
        let plugins = Plugins::new(&runtime, Arc::clone(&files), owns_files, &variables);
        let with_files = !arranged.has_no_files();
        let besides = tokio::select! {
            biased;
            reason = cancel.cancelled() => {
                Err(refused("MOUNT_CANCELLED", format!("it was not mounted: {reason}")))
            }
            mounted = plugins.mount(asked, params.instructions, with_files) => mounted,
        };
        if let Err(error) = besides {
            // What cannot be undone is of no interest beside why it has to be.
            let _ = runtime.dispose().await;
            files.close().await;
            lock(&self.state).arranged = Arc::default();
            return Err(error);
        }
        let main = session.clone().unwrap_or_else(|| {
            Session::new(SessionHeader {
                id: MAIN.to_owned(),
                cwd: None,
            })
        });
        let temp = variables.get("TMPDIR").and_then(Value::as_str);
        let temp = temp.map_or_else(std::env::temp_dir, PathBuf::from);
        let loops = Loops::new(&runtime, &arranged, main, temp);
        let mut state = lock(&self.state);
        state.held = Some(Held {
            seam: Arc::clone(&seam),
            tools,
            session,
        });
        state.mounted = Some(Arc::new(Mounted {
            runtime: Mutex::new(Some(runtime)),
            loops,
            plugins,
            seam,
            files,
            processes,
            stubs: Stubs::default(),
            hosts: Mutex::default(),
        }));
        Ok(nothing())
    }

    /// Notes that a mount is under way.
    fn begin(&self, cancel: &Cancel) -> Result<Arc<Arranged>, CallError> {
        let mut state = lock(&self.state);
        if state.mounted.is_some() || state.mounting.is_some() {
            let told = "the harness is mounted already; unmount it first";
            return Err(refused("ALREADY_MOUNTED", told));
        }
        state.mounting = Some(cancel.clone());
        self.mounting.send_replace(true);
        Ok(Arc::clone(&state.arranged))
    }

    pub(super) async fn query(&self, params: Value, cancel: Cancel) -> Outcome {
        let QueryParams {
            operation,
            file_path,
            position,
            workspace_root,
            cancelled,
        } = params::read("query", params)?;
        let request: QueryRequest = params::read(
            "query",
            json!({
                "operation": operation, "filePath": file_path, "position": position,
                "workspaceRoot": workspace_root,
            }),
        )?;
        if cancelled {
            cancel.cancel(CancelReason::Caller);
        }
        let answer = self.held()?.seam.query(request, &cancel).await;
        let answer = answer.map_err(|error| failed(&error))?;
        serde_json::to_value(answer).map_err(|error| refused("PANICKED", error.to_string()))
    }

    pub(super) async fn tool(&self, params: Value, cancel: Cancel) -> Outcome {
        let ToolParams {
            name,
            arguments,
            session,
        } = params::read("tool", params)?;
        let held = self.held()?;
        let session = match session {
            Some(given) => params::session("session", &given)?,
            // A session that was resumed is another object, and the same session.
            None if held.session.is_some() => match self.mounted() {
                Ok(mounted) => mounted.loops.main(),
                Err(_) => held.session,
            },
            None => None,
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall {
            id: format!("call-{number}"),
            name,
            arguments,
        };
        let card = held.tools.present_call(&call);
        let result = held.tools.call(call, session, cancel).await;
        let outcome = ToolOutcome {
            text: result.text(),
            is_error: result.is_error,
            code: result.code,
            value: result.value,
            presentation: card.and_then(|card| serde_json::to_value(card).ok()),
        };
        serde_json::to_value(outcome).map_err(|error| refused("PANICKED", error.to_string()))
    }

    pub(super) async fn turn(&self, params: Value, cancel: Cancel) -> Outcome {
        self.mounted()?.loops.turn(params, cancel).await
    }

    /// Disposes. Any number of callers wait for the same end; with nothing mounted there is nothing
    /// to wait for. A mount under way is ended (CFG-6).
    pub(super) async fn unmount(&self) -> Outcome {
        let (mounting, mounted) = {
            let state = lock(&self.state);
            (state.mounting.clone(), state.mounted.clone())
        };
        if let Some(mounting) = mounting {
            mounting.cancel(CancelReason::Disposed);
            let mut under_way = self.mounting.subscribe();
            // The sender is `self`, so this cannot fail.
            let _ = under_way.wait_for(|under_way| !under_way).await;
        }
        let Some(mounted) = mounted.or_else(|| lock(&self.state).mounted.clone()) else {
            return Ok(nothing());
        };
        let ended = mounted.dispose().await;
        self.forget(&mounted);
        match ended {
            Ok(()) => Ok(nothing()),
            Err(errors) => {
                let failures: Vec<String> =
                    errors.failures().iter().map(ToString::to_string).collect();
                Err(CallError::Refused {
                    code: Some("UNMOUNT_FAILED".to_owned()),
                    message: errors.to_string(),
                    data: json!({"code": "UNMOUNT_FAILED", "failures": failures}),
                })
            }
        }
    }

    /// Drops what is mounted without disposal (DIS-6), in the course of a panic where asked to.
    pub(super) async fn drop_runtime(&self, panic: bool) -> Outcome {
        let mounted = self.mounted()?;
        self.forget(&mounted);
        let files = Arc::clone(&mounted.files);
        if panic {
            // As a panic does it, and without the message that nobody needs.
            let unwinding = async move {
                let _mounted = mounted;
                resume_unwind(Box::new("on purpose"));
            };
            let _ = std::panic::AssertUnwindSafe(unwinding).catch_unwind().await;
        } else {
            drop(mounted);
        }
        files.close().await;
        Ok(nothing())
    }

    /// Drops everything, at once.
    pub(super) async fn abandon(&self) {
        let mounted = lock(&self.state).mounted.take();
        if let Some(mounted) = mounted {
            let files = Arc::clone(&mounted.files);
            drop(mounted);
            files.close().await;
        }
    }

    fn forget(&self, mounted: &Arc<Mounted>) {
        let mut state = lock(&self.state);
        let is_it = |other: &Arc<Mounted>| Arc::ptr_eq(other, mounted);
        if state.mounted.as_ref().is_some_and(is_it) {
            state.mounted = None;
            state.arranged = Arc::default();
            // A session that was kept on disk has its file open for as long as it is there.
            if let Some(held) = &mut state.held {
                let session = held.session.take();
                held.session = session.map(|session| Session::new(session.header().clone()));
            }
        }
    }

    /// What was arranged for the mount there is, or for the next one.
    pub(super) fn arranged(&self) -> Arc<Arranged> {
        Arc::clone(&lock(&self.state).arranged)
    }

    /// The mount there is.
    pub(super) fn mounted(&self) -> Result<Arc<Mounted>, CallError> {
        lock(&self.state).mounted.clone().ok_or_else(not_mounted)
    }

    /// The tools, also of what was disposed.
    pub(super) fn tools(&self) -> Result<Arc<ToolRegistry>, CallError> {
        Ok(self.held()?.tools)
    }

    fn held(&self) -> Result<Held, CallError> {
        lock(&self.state).held.clone().ok_or_else(not_mounted)
    }
}

fn not_mounted() -> CallError {
    refused(NOT_MOUNTED, "nothing is mounted; mount the harness first")
}

/// No mount is under way when this is gone.
struct Mounting<'a>(&'a Harness);

impl Drop for Mounting<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).mounting = None;
        self.0.mounting.send_replace(false);
    }
}

impl Mounted {
    /// The system prompt as the model gets it.
    pub(super) fn system_prompt(&self) -> String {
        let runtime = lock(&self.runtime).clone();
        runtime
            .map(|runtime| runtime.system_prompt().assemble())
            .unwrap_or_default()
    }

    /// Loads another host beside the one of the mount, on the same seam.
    pub(super) async fn load_host(
        &self,
        name: String,
        config: LspStdioConfig,
        cancel: &Cancel,
    ) -> Outcome {
        let taken = || {
            let told = format!("a host {name:?} is loaded already; unload it first");
            refused("ALREADY_MOUNTED", told)
        };
        if lock(&self.hosts).by_name.contains_key(&name) {
            return Err(taken());
        }
        let kernel = Arc::new(Kernel::new());
        let loaded = tokio::select! {
            biased;
            reason = cancel.cancelled() => {
                Err(refused("MOUNT_CANCELLED", format!("the host was not loaded: {reason}")))
            }
            loaded = self.load_on(&kernel, config) => loaded.map_err(|error| {
                refused(error.code().unwrap_or("MOUNT_FAILED"), error.to_string())
            }),
        };
        let kept = loaded.and_then(|()| {
            let mut hosts = lock(&self.hosts);
            if hosts.closed || hosts.by_name.contains_key(&name) {
                return Err(taken());
            }
            hosts.by_name.insert(name.clone(), Arc::clone(&kernel));
            Ok(nothing())
        });
        if kept.is_err() {
            // What cannot be undone is of no interest beside why it has to be.
            let _ = kernel.dispose().await;
        }
        kept
    }

    async fn load_on(&self, kernel: &Kernel, config: LspStdioConfig) -> Result<(), PluginError> {
        let files = Arc::clone(&self.files) as Arc<dyn FileSystem>;
        let processes = Arc::clone(&self.processes);
        let plugins: [Arc<dyn Plugin>; 4] = [
            Arc::new(FsLocalPlugin::providing(files)),
            Arc::new(SubprocessLocalPlugin::new(processes)),
            Arc::new(LentSeam(Arc::clone(&self.seam))),
            Arc::new(LspStdioPlugin::new(config)),
        ];
        for plugin in plugins {
            kernel.mount(plugin).await?;
        }
        Ok(())
    }

    /// Unloads a host that was loaded besides.
    pub(super) async fn unload_host(&self, name: &str) -> Outcome {
        let kernel = lock(&self.hosts).by_name.get(name).cloned();
        let Some(kernel) = kernel else {
            let told = format!("no host {name:?} was loaded");
            return Err(refused(NOT_MOUNTED, told));
        };
        let ended = kernel.dispose().await;
        lock(&self.hosts).by_name.remove(name);
        match ended {
            Ok(()) => Ok(nothing()),
            Err(errors) => Err(refused("UNMOUNT_FAILED", errors.to_string())),
        }
    }

    async fn dispose(&self) -> Result<(), DisposeErrors> {
        self.stubs.clear();
        let hosts: Vec<Arc<Kernel>> = {
            let mut hosts = lock(&self.hosts);
            hosts.closed = true;
            hosts.by_name.values().cloned().collect()
        };
        let runtime = lock(&self.runtime).clone();
        let runtime = async {
            match runtime {
                Some(runtime) => runtime.dispose().await,
                None => Ok(()),
            }
        };
        let hosts = futures::future::join_all(hosts.iter().map(|host| host.dispose()));
        let (ended, hosts) = futures::future::join(runtime, hosts).await;
        self.loops.close().await;
        self.files.close().await;
        hosts.into_iter().fold(ended, Result::and)
    }
}

/// The seam of another kernel.
struct LentSeam(Arc<dyn LspService>);

#[async_trait]
impl Plugin for LentSeam {
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "the trait lends the name from itself"
    )]
    fn name(&self) -> &str {
        "lent-seam"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn LspService>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide(Arc::clone(&self.0))
    }
}

fn unmounted(error: &MountError) -> CallError {
    refused(error.code(), error.to_string())
}

/// A failure of the seam, with the server's own code where there is one.
pub(super) fn failed(error: &LspError) -> CallError {
    let mut data = Map::new();
    data.insert("code".to_owned(), error.code().into());
    if let Some(code) = error.server_code() {
        data.insert("serverCode".to_owned(), code.into());
    }
    CallError::Refused {
        code: Some(error.code().to_owned()),
        message: error.to_string(),
        data: Value::Object(data),
    }
}
