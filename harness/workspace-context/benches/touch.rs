//! What a touch costs that has nothing to tell: 200 loaded scopes, looked at in one batch of probes,
//! with no content read. It must stay under 4 ms, and under a quarter of 200 touches with one scope in
//! the same run, which holds on other machines too.
//!
//! ```text
//! cargo bench -p dsh-workspace-context
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dsh_agent::{AgentPlugin, SystemPromptPlugin};
use dsh_fs::{FsLocalPlugin, FsObserved, FsTarget, FsVersion, Observation};
use dsh_kernel::{Cancel, EventBus, Kernel};
use dsh_session::{EventBody, Session, SessionHeader};
use dsh_tools::{
    ContentBlock, ExecContext, Tool, ToolCall, ToolError, ToolRegistry, ToolResult, ToolsPlugin,
};
use dsh_workspace_context::{WorkspaceContextConfig, WorkspaceContextPlugin};
use serde_json::{Value, json};

const SCOPES: u32 = 200;
const ROUNDS: usize = 500;
const AT_MOST: Duration = Duration::from_millis(4);
/// How many times what a touch with one scope costs in the same run. A call, a thread that may block
/// and a batch are paid for once.
const MOST_TIMES: f64 = 50.0;

/// Says that it has read the file.
struct Read(EventBus);

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
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

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let path = arguments["path"].as_str().unwrap_or_default().to_owned();
        self.0.emit(&FsObserved {
            target: FsTarget {
                path: path.as_str().into(),
                display_path: path.clone(),
            },
            identity: path.into(),
            observation: Observation::Present {
                version: FsVersion::new("1"),
            },
            write: false,
            tool: "read".to_owned(),
            call_id: context.call_id,
            token: context.token.number(),
            session: None,
        });
        Ok(Value::Null)
    }

    fn render(&self, _: &Value, _: &Value) -> Vec<ContentBlock> {
        Vec::new()
    }
}

fn main() -> ExitCode {
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (one, many) = runtime.block_on(measured());
    let times = many.as_secs_f64() / one.as_secs_f64();
    println!("unchanged touch, 1 loaded scope: median {one:?}");
    println!("unchanged touch, {SCOPES} loaded scopes: median {many:?}, at most {AT_MOST:?}");
    println!("times the one with 1 scope: {times:.1}, at most {MOST_TIMES}");
    if many < AT_MOST && times <= MOST_TIMES {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn touch(registry: &ToolRegistry, session: &Session, file: &Path) -> ToolResult {
    let call = ToolCall {
        id: "call".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": file}),
    };
    registry.call(call, session.clone(), Cancel::new()).await
}

/// The medians of a touch with one loaded scope and with many, taken in turn, so that what else the
/// machine does falls on both.
async fn measured() -> (Duration, Duration) {
    let (one, many) = (Loaded::with(1).await, Loaded::with(SCOPES).await);
    let (mut few_times, mut many_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few_times.push(one.touched().await);
        many_times.push(many.touched().await);
    }
    few_times.sort();
    many_times.sort();
    one.kernel.dispose().await.expect("it ends");
    many.kernel.dispose().await.expect("it ends");
    (few_times[ROUNDS / 2], many_times[ROUNDS / 2])
}

/// A session with loaded scopes, and a file that is touched again and again.
struct Loaded {
    kernel: Kernel,
    registry: Arc<ToolRegistry>,
    session: Session,
    file: PathBuf,
    /// Both are there as long as this is.
    _folder: tempfile::TempDir,
    _tool: dsh_tools::ToolHandle,
}

impl Loaded {
    async fn with(scopes: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir(root.join(".git")).expect("a marker");
        let kernel = Kernel::new();
        let mount = async |plugin: Arc<dyn dsh_kernel::Plugin>| {
            kernel.mount(plugin).await.expect("it mounts");
        };
        mount(Arc::new(ToolsPlugin)).await;
        mount(Arc::new(SystemPromptPlugin)).await;
        mount(Arc::new(AgentPlugin)).await;
        mount(Arc::new(FsLocalPlugin::new())).await;
        let config = WorkspaceContextConfig::new(1e9);
        mount(Arc::new(WorkspaceContextPlugin::new(config))).await;
        let registry = kernel.service::<ToolRegistry>().expect("mounted");
        let read = Read(kernel.events().clone());
        let tool = registry.register(Arc::new(read)).expect("a tool");
        let session = Session::new(SessionHeader {
            id: "bench".to_owned(),
            cwd: root.to_str().map(str::to_owned),
        });

        let mut file = root.to_path_buf();
        for index in 0..scopes {
            let dir = root.join(format!("d{index}"));
            std::fs::create_dir(&dir).expect("a directory");
            std::fs::write(dir.join("AGENTS.md"), format!("instructions {index}")).expect("a file");
            file = dir.join("f");
            for context in touch(&registry, &session, &file).await.contexts {
                let body = EventBody::UserMessage {
                    source: context.source,
                    content: context.content,
                };
                session.append(body).expect("it follows");
            }
        }
        Self {
            kernel,
            registry,
            session,
            file,
            _folder: folder,
            _tool: tool,
        }
    }

    /// How long a touch takes that finds nothing changed.
    async fn touched(&self) -> Duration {
        let started = Instant::now();
        let result = touch(&self.registry, &self.session, &self.file).await;
        let took = started.elapsed();
        assert!(result.contexts.is_empty(), "nothing has changed");
        took
    }
}
