//! The agents service, and the plugin that provides it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use dsh_kernel::{Context, EventBus, Plugin, PluginError, ServiceKey};
use dsh_session::Session;
use dsh_tools::ToolRegistry;
use futures::future::join_all;

use crate::agent::Inner;
use crate::pre_step::PreSteps;
use crate::{Agent, HookHandle, LoopOptions, Model, PreStep, SystemPrompt};

/// The agents service: opens agents, and holds the pre-step stages of all of them. Cloning shares it.
#[derive(Clone)]
pub struct AgentService(Arc<Shared>);

/// What all agents of a service share.
pub(crate) struct Shared {
    pub(crate) tools: ToolRegistry,
    pub(crate) prompt: SystemPrompt,
    pub(crate) events: EventBus,
    pub(crate) pre_steps: PreSteps,
    agents: Mutex<Agents>,
}

#[derive(Default)]
struct Agents {
    /// Set when the service is closed: agents are not run any more.
    closed: bool,
    open: Vec<Weak<Inner>>,
}

impl AgentService {
    /// A service whose agents call these tools, read this system prompt and tell this bus.
    pub fn new(tools: ToolRegistry, prompt: SystemPrompt, events: EventBus) -> Self {
        Self(Arc::new(Shared {
            tools,
            prompt,
            events,
            pre_steps: PreSteps::default(),
            agents: Mutex::default(),
        }))
    }

    /// Adds a stage to the chain of every agent, also of those that are open. Lower orders are
    /// further out.
    #[must_use = "dropping the handle removes the stage"]
    pub fn on_pre_step(&self, order: i32, stage: Arc<dyn PreStep>) -> HookHandle {
        self.0.pre_steps.add(order, stage)
    }

    /// Opens an agent on a session, new or resumed. Several on one session are several loop instances
    /// whose turns run one after the other.
    ///
    /// What an earlier run left open in the log is ended when the first turn begins
    /// ([`Session::close_open`]).
    pub fn open(&self, session: Session, model: Arc<dyn Model>, options: LoopOptions) -> Agent {
        let others = self.agents_now();
        let same = |other: &&Agent| std::ptr::eq(other.session().header(), session.header());
        let turns = others
            .iter()
            .find(same)
            .map(Agent::turns)
            .unwrap_or_default();
        let agent = Agent::new(Arc::clone(&self.0), session, model, options, turns);
        let mut agents = self.agents_lock();
        agents.open.retain(|open| open.strong_count() > 0);
        if agents.closed {
            agent.refuse();
        } else {
            agents.open.push(Arc::downgrade(agent.inner()));
        }
        drop(agents);
        agent
    }

    /// The agents that are open, in the order in which they were opened.
    pub fn agents(&self) -> Vec<Agent> {
        let agents = self.agents_now();
        agents
            .into_iter()
            .filter(|agent| !agent.is_closed())
            .collect()
    }

    /// Closes every agent and waits for their turns to end. Agents that are opened later do not run.
    pub async fn close(&self) {
        self.agents_lock().closed = true;
        let agents = self.agents_now();
        join_all(agents.iter().map(Agent::close)).await;
    }

    fn agents_now(&self) -> Vec<Agent> {
        let agents = self.agents_lock();
        let open = agents.open.iter().filter_map(Weak::upgrade);
        open.map(Agent::from_inner).collect()
    }

    fn agents_lock(&self) -> MutexGuard<'_, Agents> {
        // No change spans two critical sections, so the list is whole after any panic.
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AgentService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentService")
            .field("agents", &self.agents_lock().open.len())
            .finish_non_exhaustive()
    }
}

/// Provides [`AgentService`]; part of the base, without a row of its own.
///
/// Needs [`ToolRegistry`] and [`SystemPrompt`]. Unloading it closes every agent and waits for them.
#[derive(Debug, Default)]
pub struct AgentPlugin;

#[async_trait]
impl Plugin for AgentPlugin {
    fn name(&self) -> &'static str {
        "dsh-agent"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<ToolRegistry>(),
            ServiceKey::of::<SystemPrompt>(),
        ]
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<AgentService>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let service = AgentService::new(
            ToolRegistry::clone(&*ctx.service::<ToolRegistry>()?),
            SystemPrompt::clone(&*ctx.service::<SystemPrompt>()?),
            ctx.events().clone(),
        );
        ctx.provide(Arc::new(service.clone()))?;
        ctx.effect_async("agents", move || {
            Box::pin(async move {
                service.close().await;
                Ok(())
            })
        });
        Ok(())
    }
}
