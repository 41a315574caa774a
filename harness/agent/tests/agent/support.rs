//! A service with everything around it, and the log as short lines.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_agent::{
    Agent, AgentError, AgentService, LoopOptions, Model, PreStep, PreStepContext, PreStepDecision,
    PreStepNext, ScriptedModel, ScriptedReply, SystemPrompt, TurnOutcome, UserMessage,
};
use dsh_kernel::{Cancel, EventBus, Subscription};
use dsh_session::{
    ContentBlock, ContextMessage, Ending, Event, EventBody, MessageSource, ModelRequest, Session,
    SessionHeader, ToolCall,
};
use dsh_tools::{
    ContentBlock as Block, ExecContext, Executed, Invocation, PostExecute, ResultReady, Tool,
    ToolError, ToolHandle, ToolRegistry, Verdict,
};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

/// Tools, prompt, bus and service, and one session.
pub(crate) struct Bench {
    pub(crate) bus: EventBus,
    pub(crate) tools: ToolRegistry,
    pub(crate) prompt: SystemPrompt,
    pub(crate) service: AgentService,
    pub(crate) session: Session,
    /// The ids of `tools/result`, in the order in which they were told.
    results: Arc<Mutex<Vec<String>>>,
    _told: Subscription,
    handles: Vec<ToolHandle>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::on(Session::with_clock(header("s"), || 0))
    }

    pub(crate) fn on(session: Session) -> Self {
        let bus = EventBus::new();
        let tools = ToolRegistry::new(bus.clone());
        let prompt = SystemPrompt::new();
        let service = AgentService::new(tools.clone(), prompt.clone(), bus.clone());
        let results: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&results);
        let told = bus.subscribe(move |event: &ResultReady| {
            sink.lock()
                .expect("not poisoned")
                .push(event.result.call_id.clone());
        });
        Self {
            bus,
            tools,
            prompt,
            service,
            session,
            results,
            _told: told,
            handles: Vec::new(),
        }
    }

    /// Registers a tool for the bench's life.
    #[track_caller]
    pub(crate) fn with(mut self, tool: FnTool) -> Self {
        self.handles
            .push(self.tools.register(Arc::new(tool)).expect("a free name"));
        self
    }

    /// An agent whose model says this, with default limits.
    pub(crate) fn agent(
        &self,
        replies: impl IntoIterator<Item = ScriptedReply>,
    ) -> (Agent, Arc<ScriptedModel>) {
        self.limited(LoopOptions::default(), replies)
    }

    /// An agent whose model says this.
    pub(crate) fn limited(
        &self,
        options: LoopOptions,
        replies: impl IntoIterator<Item = ScriptedReply>,
    ) -> (Agent, Arc<ScriptedModel>) {
        let model = ScriptedModel::from_replies(replies.into_iter().collect()).expect("a script");
        let model = Arc::new(model);
        let agent = self.asking(Arc::clone(&model) as Arc<dyn Model>, options);
        (agent, model)
    }

    pub(crate) fn asking(&self, model: Arc<dyn Model>, options: LoopOptions) -> Agent {
        self.service.open(self.session.clone(), model, options)
    }

    /// The log, a short line for each event.
    pub(crate) fn log(&self) -> Vec<String> {
        log_of(&self.session)
    }

    /// The log of the last turn.
    pub(crate) fn last_turn(&self) -> Vec<String> {
        let log = self.log();
        let start = log.iter().rposition(|line| line.starts_with("turn/start"));
        log[start.expect("a turn has begun")..].to_vec()
    }

    /// The ids of the results that were told since the last time.
    pub(crate) fn told_results(&self) -> Vec<String> {
        std::mem::take(&mut *self.results.lock().expect("not poisoned"))
    }

    /// Every logged request is rebuilt equal, and it is what the model got (RUN-11).
    #[track_caller]
    pub(crate) fn requests_are_rebuilt(&self, model: &ScriptedModel) {
        assert_eq!(rebuilt(&self.session), model.requests());
    }
}

pub(crate) fn header(id: &str) -> SessionHeader {
    SessionHeader {
        id: id.to_owned(),
        cwd: None,
    }
}

/// The requests of the log, each made again from what was logged before it.
#[track_caller]
pub(crate) fn rebuilt(session: &Session) -> Vec<ModelRequest> {
    session.read(|log| {
        let requests = log
            .events()
            .iter()
            .filter(|event| matches!(event.body, EventBody::StepRequest { .. }));
        requests
            .map(|event| log.rebuild(event.seq).expect("the request is rebuilt"))
            .collect()
    })
}

pub(crate) fn log_of(session: &Session) -> Vec<String> {
    session.read(|log| log.events().iter().map(|event| line(event)).collect())
}

fn line(event: &Event) -> String {
    let content = |content: &[ContentBlock]| -> String {
        content.iter().map(ContentBlock::as_text).collect()
    };
    match &event.body {
        EventBody::TurnStart { turn } => format!("turn/start {turn}"),
        EventBody::TurnEnd { turn, outcome } => format!("turn/end {turn} {}", ending(outcome)),
        EventBody::StepStart { step, .. } => format!("step/start {step}"),
        EventBody::StepRequest { .. } => "step/request".to_owned(),
        EventBody::StepEnd { step, outcome, .. } => format!("step/end {step} {}", ending(outcome)),
        EventBody::UserMessage {
            source,
            content: text,
        } => format!("user {}: {}", source.kind, content(text)),
        EventBody::AssistantMessage(message) => {
            let calls: Vec<_> = message.tool_calls.iter().map(call).collect();
            format!("assistant: {}{}", message.text, calls.concat())
        }
        EventBody::ToolCall { call: made, .. } => format!("call{}", call(made)),
        EventBody::ToolResult(result) => {
            let code = result.code.as_deref().unwrap_or("ok");
            format!(
                "result {} {code}: {}",
                result.call_id,
                content(&result.content)
            )
        }
        EventBody::Compaction { from, to, summary } => {
            format!("compaction {from}-{to}: {}", content(summary))
        }
    }
}

fn call(call: &ToolCall) -> String {
    format!(" {}#{}{}", call.name, call.id, call.arguments)
}

pub(crate) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "completed".to_owned(),
        Ending::Rejected { reason } => format!("rejected: {reason}"),
        Ending::Cancelled { reason } => format!("cancelled: {reason}"),
        Ending::Failed { code, .. } => format!("failed: {code}"),
    }
}

/// Runs one turn for a prompt, within a time that only a hang exceeds.
pub(crate) async fn prompt(agent: &Agent, text: &str) -> Result<TurnOutcome, AgentError> {
    within(agent.prompt(text, &Cancel::new())).await
}

/// What must end by itself; ten minutes, even of a busy machine, are a hang.
pub(crate) async fn within<F: Future>(work: F) -> F::Output {
    let hang = std::time::Duration::from_mins(10);
    let ended = tokio::time::timeout(hang, work).await;
    ended.expect("it ends by itself")
}

/// The code and message of a failed turn.
#[track_caller]
pub(crate) fn failed(outcome: Result<TurnOutcome, AgentError>, code: &str, words: &[&str]) {
    let error = outcome.expect_err("the turn fails");
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(
            error.message().contains(word),
            "{word:?} is not in: {error}"
        );
    }
}

pub(crate) fn context(text: &str) -> ContextMessage {
    ContextMessage {
        source: MessageSource::new("test", Map::new()),
        content: vec![ContentBlock::text(text)],
    }
}

type Body =
    Arc<dyn Fn(Value, ExecContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A tool from a closure; it renders strings as they are and other values as JSON.
#[derive(Clone)]
pub(crate) struct FnTool {
    name: &'static str,
    overlaps: bool,
    body: Body,
}

pub(crate) fn tool<F>(
    name: &'static str,
    body: impl Fn(Value, ExecContext) -> F + Send + Sync + 'static,
) -> FnTool
where
    F: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    FnTool {
        name,
        overlaps: false,
        body: Arc::new(move |arguments, context| Box::pin(body(arguments, context))),
    }
}

impl FnTool {
    /// The same tool, safe to overlap with others.
    pub(crate) fn overlapping(self) -> Self {
        Self {
            overlaps: true,
            ..self
        }
    }
}

/// A tool that returns its argument `text`, or fails with it if `fail` is set.
pub(crate) fn echo() -> FnTool {
    tool("echo", |arguments, _| async move {
        let text = arguments["text"].as_str().unwrap_or("nothing").to_owned();
        if arguments["fail"] == json!(true) {
            return Err(ToolError::new("ECHO_FAILED", text));
        }
        Ok(json!(text))
    })
}

#[async_trait]
impl Tool for FnTool {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "A tool of a test."
    }

    fn parameters(&self) -> Value {
        json!({"type": "object"})
    }

    fn output(&self) -> Value {
        json!({})
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        (self.body)(arguments, context).await
    }

    fn render(&self, _: &Value, value: &Value) -> Vec<Block> {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        vec![Block::text(text)]
    }

    fn is_concurrency_safe(&self, _: &Value) -> bool {
        self.overlaps
    }
}

/// A post-execute stage that adds a context to each successful result.
pub(crate) struct AddContext;

#[async_trait]
impl PostExecute for AddContext {
    async fn review(
        &self,
        invocation: &Invocation,
        executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        Ok(match executed.outcome {
            Ok(_) => Verdict::AddContext(context(&format!("about {}", invocation.call.id))),
            Err(_) => Verdict::Accept,
        })
    }
}

type Decide = Box<
    dyn for<'a> Fn(
            &'a PreStepContext<'a>,
            Vec<UserMessage>,
            PreStepNext<'a>,
        ) -> BoxFuture<'a, Result<PreStepDecision, AgentError>>
        + Send
        + Sync,
>;

/// A pre-step stage from a closure.
pub(crate) struct FnStage(Decide);

pub(crate) fn stage(
    decide: impl for<'a> Fn(
        &'a PreStepContext<'a>,
        Vec<UserMessage>,
        PreStepNext<'a>,
    ) -> BoxFuture<'a, Result<PreStepDecision, AgentError>>
    + Send
    + Sync
    + 'static,
) -> Arc<FnStage> {
    Arc::new(FnStage(Box::new(decide)))
}

#[async_trait]
impl PreStep for FnStage {
    async fn pre_step(
        &self,
        context: &PreStepContext<'_>,
        batch: Vec<UserMessage>,
        next: PreStepNext<'_>,
    ) -> Result<PreStepDecision, AgentError> {
        (self.0)(context, batch, next).await
    }
}
