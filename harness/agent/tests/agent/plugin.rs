//! The plugin that provides the service.

use std::sync::{Arc, Mutex};

use dsh_agent::{
    AgentClosed, AgentPlugin, AgentService, LoopOptions, Model, ScriptedModel, ScriptedReply,
    SystemPromptPlugin, code,
};
use dsh_kernel::{Cancel, Context, Kernel, Plugin, PluginError, PluginState, ServiceKey};
use dsh_session::Session;
use dsh_tools::ToolsPlugin;
use tokio::sync::Notify;

use crate::support::{ending, failed, header, prompt, within};

/// Hands the service out.
#[derive(Clone, Default)]
struct Probe(Arc<Mutex<Option<Arc<AgentService>>>>);

#[async_trait::async_trait]
impl Plugin for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }
    fn needs(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<AgentService>()]
    }
    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        *self.0.lock().expect("not poisoned") = Some(ctx.service::<AgentService>()?);
        Ok(())
    }
}

fn hanging() -> Arc<dyn Model> {
    let reply = ScriptedReply {
        text: Some("…".to_owned()),
        hang: true,
        ..ScriptedReply::default()
    };
    Arc::new(ScriptedModel::from_replies(vec![reply]).expect("a script"))
}

/// RUN-1, RUN-2: the plugin waits for tools and prompt; unloading it cancels the turns that run and
/// waits for them, and agents that are still held run nothing any more.
#[tokio::test]
async fn unloading_the_plugin_closes_its_agents_and_waits() {
    let kernel = Kernel::new();
    let agents = kernel.mount(Arc::new(AgentPlugin)).await.unwrap();
    assert!(matches!(kernel.state(&agents), PluginState::Waiting(_)));
    kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
    kernel.mount(Arc::new(SystemPromptPlugin)).await.unwrap();
    let probe = Probe::default();
    kernel.mount(Arc::new(probe.clone())).await.unwrap();
    let service = probe
        .0
        .lock()
        .unwrap()
        .clone()
        .expect("the service is there");

    let closed = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&closed);
    let _heard = kernel.events().subscribe(move |event: &AgentClosed| {
        sink.lock().unwrap().push(event.agent);
    });
    let session = Session::new(header("s"));
    let agent = service.open(session.clone(), hanging(), LoopOptions::default());
    let idle = service.open(Session::new(header("t")), hanging(), LoopOptions::default());
    let ids: Vec<_> = service.agents().iter().map(dsh_agent::Agent::id).collect();
    assert_eq!(ids, [agent.id(), idle.id()]);
    let idle_id = idle.id();
    drop(idle);
    assert_eq!(*closed.lock().unwrap(), [idle_id]);
    assert_eq!(service.agents().len(), 1);

    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let _listener = agent.on_delta(move |_| told.notify_one());
    let cancel = Cancel::new();
    let unload = async {
        here.notified().await;
        kernel.dispose().await.unwrap();
        assert_eq!(session.read(dsh_session::Log::open_turn), None);
    };
    let (outcome, ()) = within(async { tokio::join!(agent.prompt("hi", &cancel), unload) }).await;
    assert_eq!(ending(&outcome.unwrap().ending), "cancelled: disposed");
    assert_eq!(*closed.lock().unwrap(), [idle_id, agent.id()]);
    failed(prompt(&agent, "more").await, code::AGENT_CLOSED, &[]);
    let late = service.open(Session::new(header("u")), hanging(), LoopOptions::default());
    failed(prompt(&late, "more").await, code::AGENT_CLOSED, &[]);
    assert!(service.agents().is_empty());
}
