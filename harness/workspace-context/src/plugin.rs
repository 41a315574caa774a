//! The plugin: where the loop and the tools meet the instructions (INS-2, INS-5, INS-18).

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::{AgentClosed, AgentService};
use dsh_fs::{FileSystem, FsObserved, Observation};
use dsh_kernel::{Cancel, CancelReason, Context, Plugin, PluginError, ServiceKey, Watched};
use dsh_session::Session;
use dsh_tools::{
    ExecToken, Executed, Invocation, PostExecute, ResultReady, ToolError, ToolRegistry, Verdict,
};

use crate::boundary::BaselineStage;
use crate::config::{HomeVariables, Settings, WorkspaceContextConfig};
use crate::layout::{Layout, working_directory};
use crate::load;
use crate::observed::Touched;
use crate::passed_over::Teller;
use crate::round::{Limits, Message, Occasion};
use crate::sessions::{Sessions, Tracked};
use crate::source::InstructionSource;

/// Further out than everybody else, so that what the others let in is known.
const PRE_STEP_ORDER: i32 = i32::MIN / 2;
/// After everybody else, so that what the others hold back is not looked at.
const POST_EXECUTE_ORDER: i32 = i32::MAX / 2;

/// Shows each session the instruction files of its workspace, and tells it when they change.
///
/// Needs the agents and the tools. The file system is used while there is one (INS-18).
#[derive(Clone, Debug)]
pub struct WorkspaceContextPlugin {
    config: WorkspaceContextConfig,
    environment: HomeVariables,
}

impl WorkspaceContextPlugin {
    /// The plugin with its configuration, which is checked when it starts, and an environment in
    /// which no home directory is known.
    pub fn new(config: WorkspaceContextConfig) -> Self {
        Self {
            config,
            environment: HomeVariables::default(),
        }
    }

    /// In an environment with a home directory, or the variable `DSH_HOME` (INS-17).
    #[must_use]
    pub fn with_home(mut self, environment: HomeVariables) -> Self {
        self.environment = environment;
        self
    }
}

#[async_trait]
impl Plugin for WorkspaceContextPlugin {
    fn name(&self) -> &'static str {
        "dsh-workspace-context"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![
            ServiceKey::of::<AgentService>(),
            ServiceKey::of::<ToolRegistry>(),
        ]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let settings = self
            .config
            .settle(&self.environment)
            .map_err(|error| PluginError::with_code("INSTRUCTIONS_CONFIG_INVALID", error))?;
        let Some(max_bytes) = settings.max_bytes else {
            tracing::debug!("workspace instructions are off: maxBytes is not positive");
            return Ok(());
        };
        let instructions = Arc::new(Instructions {
            limits: Limits {
                max_bytes,
                max_source_bytes: settings.max_source_bytes,
            },
            settings,
            files: ctx.watch::<dyn FileSystem>(),
            sessions: Sessions::default(),
            touched: Touched::default(),
            teller: Teller::new(ctx.events().clone()),
        });

        let touched = instructions.touched.clone();
        ctx.on(move |event: &FsObserved| {
            if matches!(event.observation, Observation::Present { .. }) {
                touched.add(event.token, event.target.path.clone());
            }
        });
        let own = Arc::clone(&instructions);
        ctx.on(move |event: &ResultReady| own.resulted(event));

        let own = Arc::clone(&instructions);
        ctx.on(move |event: &AgentClosed| own.closed(event));

        let tools = ctx.service::<ToolRegistry>()?;
        let stage = TouchStage(Arc::clone(&instructions));
        let handle = tools.after_execute(POST_EXECUTE_ORDER, Arc::new(stage));
        ctx.effect("instructions after file tools", move || handle.release());

        let agents = ctx.service::<AgentService>()?;
        let stage = BaselineStage::new(instructions);
        let handle = agents.on_pre_step(PRE_STEP_ORDER, Arc::new(stage));
        ctx.effect("instructions before steps", move || handle.release());
        Ok(())
    }
}

/// What the stages share.
pub(crate) struct Instructions {
    settings: Settings,
    limits: Limits,
    files: Watched<dyn FileSystem>,
    pub(crate) sessions: Sessions,
    touched: Touched,
    teller: Teller,
}

/// A session that may have instructions: it has a working directory, and there is a file system.
pub(crate) struct Place {
    pub(crate) session: Session,
    pub(crate) cwd: PathBuf,
    pub(crate) tracked: Arc<Tracked>,
    files: Arc<dyn FileSystem>,
}

impl Instructions {
    pub(crate) fn place(&self, session: &Session) -> Option<Place> {
        let cwd = working_directory(session.header().cwd.as_deref()?)?;
        Some(Place {
            session: session.clone(),
            cwd,
            tracked: self.sessions.of(session),
            files: self.files.current()?,
        })
    }

    /// Looks at the files and says what is to be told, remembering what was found. The caller holds
    /// the session's turn. `anew` looks for the project's root again.
    pub(crate) async fn look(
        &self,
        place: &Place,
        occasion: Occasion<'_>,
        anew: bool,
        cancel: &Cancel,
    ) -> Result<Option<Message>, CancelReason> {
        cancel.check()?;
        let files = &*place.files;
        let (state, layout) = {
            let inner = place.tracked.catch_up(&place.session, &place.cwd);
            let layout = inner.layout.clone().filter(|_| !anew);
            (inner.tracker.state(), layout)
        };
        let layout: Arc<Layout> = if let Some(layout) = layout {
            layout
        } else {
            let logged = state.layout.as_deref();
            let found = load::lay_out(files, &self.settings, &place.cwd, logged, cancel);
            Arc::new(found.await?)
        };
        let round = {
            let inner = place.tracked.lock();
            inner.tracker.round(occasion, &layout, &state, self.limits)
        };
        let outcome = load::drive(files, round, self.limits, &self.teller, cancel).await?;
        let mut inner = place.tracked.lock();
        inner.layout = Some(Arc::clone(&layout));
        inner.tracker.remember(&outcome);
        Ok(outcome.message)
    }

    /// Forgets a loop instance.
    fn closed(&self, event: &AgentClosed) {
        if let Some(tracked) = self.sessions.find(&event.session) {
            tracked.lock().loops.remove(&event.agent);
        }
    }

    /// What the result of a call still carries counts, and nothing else of it (INS-21).
    fn resulted(&self, event: &ResultReady) {
        self.touched.take(event.token.number());
        let tracked = event.session.as_ref();
        let Some(tracked) = tracked.and_then(|session| self.sessions.find(session)) else {
            return;
        };
        let contexts = if event.outer.is_some() {
            &event.deferred
        } else {
            &event.result.contexts
        };
        let carried = contexts
            .iter()
            .filter_map(|context| InstructionSource::of(&context.source))
            .collect();
        let outer = event.outer.map(ExecToken::number);
        let mut inner = tracked.lock();
        inner.tracker.resulted(event.token.number(), outer, carried);
    }
}

/// Looks at the instructions after a file tool has touched a file (INS-5).
struct TouchStage(Arc<Instructions>);

#[async_trait]
impl PostExecute for TouchStage {
    async fn review(
        &self,
        invocation: &Invocation,
        executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        let call = invocation.token.number();
        let touched = self.0.touched.take(call);
        if executed.outcome.is_err() || touched.is_empty() {
            return Ok(Verdict::Accept);
        }
        let Some(session) = &invocation.session else {
            return Ok(Verdict::Accept);
        };
        let Some(place) = self.0.place(session) else {
            return Ok(Verdict::Accept);
        };
        let cancel = &invocation.cancel;
        let _turn = tokio::select! {
            turn = place.tracked.turn.lock() => turn,
            _ = cancel.cancelled() => return Ok(Verdict::Accept),
        };
        let occasion = Occasion::Touch(&touched);
        // A cancellation leaves nothing behind (INS-20); the pipeline tells of it.
        let Ok(Some(message)) = self.0.look(&place, occasion, false, cancel).await else {
            return Ok(Verdict::Accept);
        };
        let owner = invocation.outer.map_or(call, ExecToken::number);
        let context = message.to_context();
        let mut inner = place.tracked.lock();
        inner.tracker.stage(owner, call, message.source);
        Ok(Verdict::AddContext(context))
    }
}
