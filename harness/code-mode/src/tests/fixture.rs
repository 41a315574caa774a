//! Tools for scripts to call, and a registry with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_kernel::{Cancel, EventBus, Subscription};
use dsh_tools::{
    ContentBlock, ExecContext, ResultReady, Tool, ToolCall, ToolError, ToolHandle, ToolRegistry,
    ToolResult,
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use crate::CodeModeConfig;
use crate::custody::Custody;
use crate::tool::RunCode;

/// What the tools share with the test.
pub(super) struct World {
    /// Calls of `meet` that are there at once go on together.
    meeting: Barrier,
    inside: AtomicUsize,
    pub(super) most_inside: AtomicUsize,
    /// Told when `hold` has begun.
    pub(super) holding: Notify,
    /// How often `hold` saw its cancellation.
    pub(super) let_go: AtomicUsize,
}

struct Simple {
    name: &'static str,
    world: Arc<World>,
}

#[async_trait]
impl Tool for Simple {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "A tool for tests."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    fn output(&self) -> Value {
        json!({})
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let world = &self.world;
        match self.name {
            "fail" => return Err(ToolError::new("E_TEST", "it went wrong")),
            "meet" => {
                world.meeting.wait().await;
            }
            "alone" => {
                let inside = world.inside.fetch_add(1, Ordering::SeqCst) + 1;
                world.most_inside.fetch_max(inside, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                world.inside.fetch_sub(1, Ordering::SeqCst);
            }
            "hold" => {
                world.holding.notify_one();
                let reason = context.cancel.cancelled().await;
                world.let_go.fetch_add(1, Ordering::SeqCst);
                return Err(reason.into());
            }
            _ => {}
        }
        Ok(arguments)
    }

    fn render(&self, _arguments: &Value, _value: &Value) -> Vec<ContentBlock> {
        vec![ContentBlock::text("rendered, not the value")]
    }

    fn is_concurrency_safe(&self, _arguments: &Value) -> bool {
        self.name != "alone"
    }
}

pub(super) struct Fixture {
    pub(super) registry: ToolRegistry,
    pub(super) world: Arc<World>,
    pub(super) custody: Custody,
    /// Every result that was told, with its tokens.
    pub(super) results: Arc<Mutex<Vec<ResultReady>>>,
    handles: Vec<ToolHandle>,
    _heard: Subscription,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut CodeModeConfig)) -> Self {
        let mut config = CodeModeConfig::default();
        change(&mut config);
        config.validate().expect("the test's configuration is fine");
        let events = EventBus::new();
        let results = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&results);
        let heard = events.subscribe(move |result: &ResultReady| {
            told.lock()
                .expect("nobody panics here")
                .push(result.clone());
        });
        let registry = ToolRegistry::new(events);
        let world = Arc::new(World {
            meeting: Barrier::new(2),
            inside: AtomicUsize::new(0),
            most_inside: AtomicUsize::new(0),
            holding: Notify::new(),
            let_go: AtomicUsize::new(0),
        });
        let custody = Custody::default();
        let names = [
            "echo",
            "fail",
            "meet",
            "alone",
            "hold",
            "web-search",
            "__proto__",
        ];
        let mut handles: Vec<ToolHandle> = names
            .iter()
            .map(|name| {
                let world = Arc::clone(&world);
                let tool = Simple { name, world };
                registry.register(Arc::new(tool)).expect("it is a tool")
            })
            .collect();
        let tool = RunCode::new(registry.clone(), config, custody.clone());
        handles.push(registry.register(Arc::new(tool)).expect("it is a tool"));
        Self {
            registry,
            world,
            custody,
            results,
            handles,
            _heard: heard,
        }
    }

    pub(super) async fn run_under(&self, code: &str, cancel: &Cancel) -> ToolResult {
        let call = ToolCall {
            id: "outer".to_owned(),
            name: "run_code".to_owned(),
            arguments: json!({ "code": code }),
        };
        self.registry.call(call, None, cancel.clone()).await
    }

    /// Runs a script; no thread of it is left.
    pub(super) async fn run(&self, code: &str) -> ToolResult {
        let result = self.run_under(code, &Cancel::new()).await;
        self.custody.settled().await;
        assert_eq!(self.custody.count(), 0);
        result
    }

    /// What a script returns that is to succeed.
    pub(super) async fn value(&self, code: &str) -> Value {
        let result = self.run(code).await;
        assert!(!result.is_error, "{code}: {}", result.text());
        result.value.expect("a success has a value")["result"].clone()
    }

    /// The message of a script that is to fail with this code.
    pub(super) async fn failure(&self, code: &str, expected: &str) -> String {
        let result = self.run(code).await;
        assert_eq!(
            result.code.as_deref(),
            Some(expected),
            "{code}: {}",
            result.text()
        );
        result.text()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // The tool holds the registry that holds it.
        self.handles.clear();
    }
}
