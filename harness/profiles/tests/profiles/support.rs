//! A mounted profile with a scripted model, a tool that says what it was given, and a stage that
//! asks before that tool runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dsh_harness::agent::{LoopOptions, Model, ScriptedModel, ScriptedReply};
use dsh_harness::kernel::{Cancel, Context, Plugin, PluginError, ServiceKey};
use dsh_harness::tools::{
    ContentBlock, Decision, ExecContext, Invocation, PreExecute, Tool, ToolError, ToolRegistry,
};
use dsh_harness::{Deployment, Runtime};
use dsh_profiles::{Host, HostOptions, Models, Profile};
use serde_json::{Value, json};

/// Only a hang ends a test by this.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| panic!("{what} never came"))
}

/// Every session follows the same script from its beginning.
pub(crate) struct Script(pub(crate) Vec<ScriptedReply>);

impl Models for Script {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn model(&self) -> Result<Arc<dyn Model>, String> {
        let model =
            ScriptedModel::from_replies(self.0.clone()).map_err(|error| error.to_string())?;
        Ok(Arc::new(model))
    }
}

/// Says what it was given.
struct Echo;

#[async_trait]
impl Tool for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn description(&self) -> &'static str {
        "Says what it was given."
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"text": {"type": "string"}}})
    }

    fn output(&self) -> Value {
        json!({"type": "string"})
    }

    async fn execute(&self, arguments: Value, _context: ExecContext) -> Result<Value, ToolError> {
        Ok(arguments["text"].clone())
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        vec![ContentBlock::text(value.as_str().unwrap_or_default())]
    }
}

struct Asks;

#[async_trait]
impl PreExecute for Asks {
    async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError> {
        Ok(match invocation.call.name.as_str() {
            "echo" => Decision::Ask("may it speak?".to_owned()),
            _ => Decision::Allow,
        })
    }
}

/// Brings the tool and the stage, and tells when it was unloaded.
pub(crate) struct Extras {
    pub(crate) unloaded: Arc<AtomicBool>,
}

#[async_trait]
impl Plugin for Extras {
    fn name(&self) -> &'static str {
        "extras"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<ToolRegistry>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let tools = ctx.service::<ToolRegistry>()?;
        let tool = tools
            .register(Arc::new(Echo))
            .map_err(|error| PluginError::new(error.to_string()))?;
        let stage = tools.before_execute(0, Arc::new(Asks));
        let unloaded = Arc::clone(&self.unloaded);
        ctx.effect("extras", move || {
            drop((tool, stage));
            unloaded.store(true, Ordering::Release);
        });
        Ok(())
    }
}

/// A mounted profile, and whether it was disposed.
pub(crate) struct Mounted {
    pub(crate) host: Arc<Host>,
    unloaded: Arc<AtomicBool>,
}

impl Mounted {
    pub(crate) async fn new(
        profile: Profile,
        replies: Vec<ScriptedReply>,
        folder: Option<&Path>,
    ) -> Self {
        let unloaded = Arc::new(AtomicBool::new(false));
        let extras = Extras {
            unloaded: Arc::clone(&unloaded),
        };
        let options = HostOptions {
            profile,
            deployment: files(),
            runtime: Runtime::builder().plugin(Arc::new(extras)),
            models: Arc::new(Script(replies)),
            folder: folder.map(Path::to_path_buf),
            prefix: "session".to_owned(),
            limits: LoopOptions::default(),
        };
        let host = Host::mount(options, &Cancel::new()).await.unwrap();
        Self {
            host: Arc::new(host),
            unloaded,
        }
    }

    #[track_caller]
    pub(crate) fn is_disposed(&self) -> bool {
        self.unloaded.load(Ordering::Acquire)
    }
}

/// A reply that calls the tool.
pub(crate) fn calls_echo(text: &str) -> ScriptedReply {
    ScriptedReply::calls([("echo", json!({"text": text}))])
}

/// A reply that says something and then nothing until it is cancelled.
pub(crate) fn hangs() -> ScriptedReply {
    ScriptedReply {
        hang: true,
        ..ScriptedReply::text("well")
    }
}

/// The row of the file system alone: a session's directory is looked at through it.
fn files() -> Deployment {
    Deployment::parse("- name: '@deepseek-ai/dsh-fs-local'", "(a test)")
        .expect("it is a deployment")
}
