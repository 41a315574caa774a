use std::sync::Arc;

use async_trait::async_trait;
use dsh_fs::FileSystem;
use dsh_kernel::{Cancel, Context, Kernel, Plugin, PluginError, PluginState, ServiceKey};
use dsh_lsp::{LspPlugin, LspService, Operation, Position, QueryRequest};
use dsh_lsp_stdio::{LspStdioConfig, LspStdioPlugin};
use dsh_subprocess::Subprocess;
use serde_json::{Value, json};

use crate::fakes::{FakeFiles, FakeProcesses, fakes, processes_of, settle};

/// Provides the fakes as services.
struct Services {
    files: Arc<FakeFiles>,
    processes: Arc<FakeProcesses>,
}

#[async_trait]
impl Plugin for Services {
    fn name(&self) -> &'static str {
        "services"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<dyn FileSystem>(),
            ServiceKey::of::<dyn Subprocess>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide::<dyn FileSystem>(Arc::clone(&self.files) as _)?;
        ctx.provide::<dyn Subprocess>(Arc::clone(&self.processes) as _)
    }
}

struct Mounted {
    kernel: Kernel,
    files: Arc<FakeFiles>,
    processes: Arc<FakeProcesses>,
}

async fn kernel() -> Mounted {
    let (files, processes) = fakes();
    kernel_with(files, processes).await
}

async fn kernel_with(files: Arc<FakeFiles>, processes: Arc<FakeProcesses>) -> Mounted {
    let kernel = Kernel::new();
    let services = Services {
        files: Arc::clone(&files),
        processes: Arc::clone(&processes),
    };
    kernel
        .mount(Arc::new(services))
        .await
        .expect("the fakes are provided");
    kernel
        .mount(Arc::new(LspPlugin::new()))
        .await
        .expect("the seam is provided");
    Mounted {
        kernel,
        files,
        processes,
    }
}

fn plugin(servers: &Value) -> Arc<LspStdioPlugin> {
    let config = LspStdioConfig::from_value(json!({"servers": servers}));
    Arc::new(LspStdioPlugin::new(
        config.expect("the configuration is right"),
    ))
}

fn request(file_path: &str) -> QueryRequest {
    QueryRequest {
        operation: Operation::Hover,
        file_path: file_path.to_owned(),
        position: Position {
            line: 0,
            character: 0,
        },
        workspace_root: "/w".to_owned(),
    }
}

impl Mounted {
    fn seam(&self) -> Arc<dyn LspService> {
        self.kernel
            .service::<dyn LspService>()
            .expect("it is mounted")
    }

    async fn code(&self, file_path: &str) -> &'static str {
        let answer = self.seam().query(request(file_path), &Cancel::new()).await;
        answer.expect_err("nobody answers").code()
    }

    async fn refused(&self, plugin: Arc<LspStdioPlugin>) -> PluginError {
        self.kernel
            .mount(plugin)
            .await
            .expect_err("it cannot be mounted")
    }
}

/// CFG-7, DIS-1, DIS-3: mounting registers and starts nothing; unmounting takes the routes and ends
/// the servers gracefully, while the services are still there.
#[tokio::test(start_paused = true)]
async fn mounting_and_unmounting() {
    let mounted = kernel().await;
    let plugin =
        plugin(&json!({"x": {"command": "x-server", "extensionToLanguage": {"X": "xlang"}}}));
    let handle = mounted.kernel.mount(plugin).await.expect("it is right");
    settle().await;
    assert_eq!(mounted.processes.started(), 0);
    let seam = mounted.seam();
    let cancel = Cancel::new();
    let play = async {
        let mut server = mounted.processes.next().await;
        server.greet().await;
        server.hover("mounted").await;
        server
    };
    let (answer, mut server) = tokio::join!(seam.query(request("a.x"), &cancel), play);
    assert!(answer.is_ok(), "{answer:?}");

    let play = async {
        let running = server.asked().await;
        let unmount = mounted.kernel.unmount(&handle);
        let play = async {
            server.expect("$/cancelRequest").await;
            assert_eq!(
                mounted.code("a.x").await,
                "LSP_UNAVAILABLE",
                "the routes are gone first"
            );
            server.reply(&running, Value::Null).await;
            server.expect("textDocument/didClose").await;
            server.obey().await;
        };
        let (unmounted, ()) = tokio::join!(unmount, play);
        assert!(unmounted.is_ok(), "{unmounted:?}");
    };
    let (answer, ()) = tokio::join!(seam.query(request("a.x"), &cancel), play);
    assert_eq!(answer.unwrap_err().code(), "LSP_DISPOSED");
    assert_eq!((server.signals(), mounted.processes.alive()), (vec![], 0));
}

/// DIS-3: the disposal of the whole runtime is graceful too.
#[tokio::test(start_paused = true)]
async fn disposing_the_runtime() {
    let mounted = kernel().await;
    let plugin =
        plugin(&json!({"x": {"command": "x-server", "extensionToLanguage": {"x": "xlang"}}}));
    mounted.kernel.mount(plugin).await.expect("it is right");
    let seam = mounted.seam();
    let cancel = Cancel::new();
    let play = async {
        let mut server = mounted.processes.next().await;
        server.greet().await;
        server.hover("mounted").await;
        server
    };
    let (_, mut server) = tokio::join!(seam.query(request("a.x"), &cancel), play);
    let (ended, ()) = tokio::join!(mounted.kernel.dispose(), server.obey());
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!((server.signals(), mounted.processes.alive()), (vec![], 0));
}

/// CFG-4: a command that cannot be found fails the whole load, before anything is registered.
#[tokio::test(start_paused = true)]
async fn a_missing_command_registers_nothing() {
    let mounted = kernel().await;
    mounted.processes.forget_command("gone");
    let error = mounted
        .refused(plugin(&json!({
            "a": {"command": "a-server", "extensionToLanguage": {"a": "a"}},
            "b": {"command": "gone", "extensionToLanguage": {"b": "b"}},
            "c": {"command": "c-server", "extensionToLanguage": {"c": "c"}},
        })))
        .await;
    assert_eq!(error.code(), Some("LSP_CONFIG_INVALID"));
    assert!(error.to_string().contains("servers.b.command"), "{error}");
    assert_eq!(mounted.code("f.a").await, "LSP_UNAVAILABLE");
    assert_eq!(mounted.code("f.c").await, "LSP_UNAVAILABLE");
}

/// CFG-5: a conflict takes back the entries registered before it, and leaves the other's alone.
#[tokio::test(start_paused = true)]
async fn a_conflict_rolls_back() {
    let mounted = kernel().await;
    let other = plugin(&json!({"o": {"command": "o-server", "extensionToLanguage": {"o": "o"}}}));
    mounted.kernel.mount(other).await.expect("it is right");
    let error = mounted
        .refused(plugin(&json!({
            "a": {"command": "a-server", "extensionToLanguage": {"a": "a"}},
            "b": {"command": "b-server", "extensionToLanguage": {"b": "b", "O": "b"}},
        })))
        .await;
    assert_eq!(error.code(), Some("LSP_CONFLICT"));
    for free in ["f.a", "f.b"] {
        assert_eq!(mounted.code(free).await, "LSP_UNAVAILABLE");
    }
    assert_eq!(mounted.code("missing.o").await, "LSP_SOURCE_REJECTED");
    let again = plugin(&json!({"a": {"command": "a-server", "extensionToLanguage": {"a": "a"}}}));
    assert!(mounted.kernel.mount(again).await.is_ok());
    let twice = plugin(&json!({
        "p": {"command": "p-server", "extensionToLanguage": {"p": "p"}},
        "q": {"command": "q-server", "extensionToLanguage": {"P": "p"}},
    }));
    assert_eq!(mounted.refused(twice).await.code(), Some("LSP_CONFLICT"));
    assert_eq!(mounted.code("f.p").await, "LSP_UNAVAILABLE");
}

/// CFG-6: unloading while executables are looked up stops the lookups and waits for them.
#[tokio::test(start_paused = true)]
async fn unloading_during_load() {
    let mounted = kernel().await;
    mounted.processes.hold_resolutions();
    let plugin = plugin(&json!({"x": {"command": "x-server", "extensionToLanguage": {"x": "x"}}}));
    let unload = async {
        mounted.processes.resolving.notified().await;
        mounted.kernel.dispose().await
    };
    let (outcome, disposed) = tokio::join!(mounted.kernel.mount(plugin), unload);
    assert!(disposed.is_ok(), "{disposed:?}");
    if let Ok(handle) = &outcome {
        assert_ne!(mounted.kernel.state(handle), PluginState::Started);
    }
    assert_eq!(
        (mounted.processes.started(), mounted.files.lookups()),
        (0, 0)
    );
}

/// CFG-2, CFG-3: a configuration that was built wrong in Rust fails at load.
#[tokio::test(start_paused = true)]
async fn a_wrong_configuration_fails_at_load() {
    let mounted = kernel().await;
    let empty = LspStdioConfig {
        servers: std::collections::BTreeMap::new(),
    };
    let error = mounted
        .refused(Arc::new(LspStdioPlugin::new(empty.clone())))
        .await;
    assert_eq!(error.code(), Some("LSP_CONFIG_INVALID"));
    let mut bad = empty;
    bad.servers.insert("x".to_owned(), crate::fakes::config());
    bad.servers
        .get_mut("x")
        .expect("just inserted")
        .kill_grace_ms = 0;
    let error = mounted.refused(Arc::new(LspStdioPlugin::new(bad))).await;
    assert!(
        error.to_string().contains("servers.x.killGraceMs"),
        "{error}"
    );
}

/// HST-9: the two services must be of one world.
#[tokio::test(start_paused = true)]
async fn two_worlds_do_not_mount() {
    let (files, _) = fakes();
    let mounted = kernel_with(files, processes_of("elsewhere")).await;
    let plugin = plugin(&json!({"x": {"command": "x-server", "extensionToLanguage": {"x": "x"}}}));
    let error = mounted.refused(plugin).await;
    assert_eq!(error.code(), Some("LSP_CONFIG_INVALID"));
    for word in ["test", "elsewhere"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(mounted.code("a.x").await, "LSP_UNAVAILABLE");
}
