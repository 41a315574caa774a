//! The pipeline, the registry and the timeout policy with tools made up on the spot.

mod hostile;
mod nested;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, EventBus, Kernel, Plugin};
use dsh_session::{Session, SessionHeader};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;

type Body =
    Box<dyn Fn(Value, ExecContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

type Check = fn(&Value) -> Result<(), String>;

/// A tool made of a closure: `{text: string}` → `{count: integer}`.
struct Fake {
    name: String,
    description: &'static str,
    parameters: Value,
    output: Value,
    timeout_ms: Option<u64>,
    own_check: Option<Check>,
    hint: Option<&'static str>,
    render: fn(&Value, &Value) -> Vec<ContentBlock>,
    body: Body,
}

fn fake(
    name: &str,
    body: impl Fn(Value, ExecContext) -> BoxFuture<'static, Result<Value, ToolError>>
    + Send
    + Sync
    + 'static,
) -> Fake {
    Fake {
        name: name.to_owned(),
        description: "counts",
        parameters: json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
        }),
        timeout_ms: None,
        own_check: None,
        hint: None,
        render: |_, value| vec![ContentBlock::text(format!("{} characters", value["count"]))],
        body: Box::new(body),
    }
}

/// A tool that counts the characters of its text.
fn counter() -> Fake {
    fake("count", |arguments, _| {
        async move {
            let text = arguments["text"].as_str().unwrap_or_default();
            Ok(json!({"count": text.chars().count()}))
        }
        .boxed()
    })
}

#[async_trait]
impl Tool for Fake {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    fn output(&self) -> Value {
        self.output.clone()
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), String> {
        self.own_check.map_or(Ok(()), |check| check(arguments))
    }

    fn argument_hint(&self) -> Option<&str> {
        self.hint
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        (self.body)(arguments, context).await
    }

    fn render(&self, arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        (self.render)(arguments, value)
    }

    fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    fn present_call(&self, arguments: &Value) -> Option<Card> {
        let title = arguments["text"].as_str().expect("a text").to_owned();
        Some(Card::Generic {
            kind: "count".to_owned(),
            title,
            locations: Vec::new(),
        })
    }
}

/// A registry with everything that is told about it recorded.
struct Bench {
    registry: ToolRegistry,
    results: Arc<Mutex<Vec<Arc<ToolResult>>>>,
    executed: Arc<AtomicUsize>,
    _subscriptions: Vec<dsh_kernel::Subscription>,
    handles: Vec<ToolHandle>,
}

impl Bench {
    #[track_caller]
    fn new(tools: impl IntoIterator<Item = Fake>) -> Self {
        let bus = EventBus::new();
        let registry = ToolRegistry::new(bus.clone());
        let results = Arc::new(Mutex::new(Vec::new()));
        let executed = Arc::new(AtomicUsize::new(0));
        let (sink, counter) = (Arc::clone(&results), Arc::clone(&executed));
        let subscriptions = vec![
            bus.subscribe(move |event: &ResultReady| {
                sink.lock().unwrap().push(Arc::clone(&event.result));
            }),
            bus.subscribe(move |_: &PostExecuted| {
                counter.fetch_add(1, Ordering::SeqCst);
            }),
        ];
        let handles = tools
            .into_iter()
            .map(|tool| registry.register(Arc::new(tool)).unwrap())
            .collect();
        Self {
            registry,
            results,
            executed,
            _subscriptions: subscriptions,
            handles,
        }
    }

    async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.call_with(name, arguments, Cancel::new()).await
    }

    async fn call_with(&self, name: &str, arguments: Value, cancel: Cancel) -> ToolResult {
        let call = ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments,
        };
        let result = self.registry.call(call, None, cancel).await;
        // RUN-6: exactly one event for each call, and it tells what the caller gets.
        let told = std::mem::take(&mut *self.results.lock().unwrap());
        assert_eq!(told.len(), 1, "one result event a call");
        assert_eq!(*told[0], result);
        assert_eq!(result.is_error, result.code.is_some());
        assert_eq!(result.is_error, result.value.is_none());
        result
    }

    /// Whether the last call came as far as the post-execute stage.
    fn was_executed(&self) -> bool {
        self.executed.swap(0, Ordering::SeqCst) == 1
    }
}

#[track_caller]
fn failed(result: &ToolResult, code: &str, words: &[&str]) {
    assert_eq!(result.code.as_deref(), Some(code), "{result:?}");
    let text = result.text();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// RUN-4: arguments are checked, the value is checked, the value is rendered.
#[tokio::test]
async fn a_call_returns_the_canonical_value_and_its_rendering() {
    let bench = Bench::new([counter()]);
    let result = bench.call("count", json!({"text": "häuser"})).await;
    assert_eq!(
        serde_json::to_value(&result).unwrap(),
        json!({
            "callId": "c1",
            "name": "count",
            "isError": false,
            "value": {"count": 6},
            "content": [{"type": "text", "text": "6 characters"}],
        })
    );
    assert!(bench.was_executed());
}

/// RUN-4.
#[tokio::test]
async fn arguments_that_do_not_fit_are_told_in_words_and_nothing_is_executed() {
    let mut tool = fake("count", |_, _| panic!("executed"));
    tool.hint = Some("Texts are counted in characters.");
    let bench = Bench::new([tool]);
    let result = bench.call("count", json!({"text": 7, "texts": "a"})).await;
    failed(
        &result,
        code::INVALID_ARGS,
        &[
            "tool \"count\"",
            "\"text\" must be a string, not 7",
            "\"texts\" is not known (did you mean \"text\"?)",
            "call it again",
            "Texts are counted in characters.",
        ],
    );
    assert!(!bench.was_executed());
}

/// RUN-4: a tool may say it better than its schema.
#[tokio::test]
async fn the_tool_s_own_check_speaks_first() {
    let mut tool = fake("count", |_, _| panic!("executed"));
    tool.own_check = Some(|arguments| {
        if arguments["text"].is_string() {
            Ok(())
        } else {
            Err("text, please".to_owned())
        }
    });
    let bench = Bench::new([tool]);
    let result = bench.call("count", json!(null)).await;
    failed(&result, code::INVALID_ARGS, &[]);
    assert_eq!(result.text(), "text, please");
}

/// RUN-4.
#[tokio::test]
async fn a_value_that_does_not_fit_the_output_schema_is_not_rendered() {
    let mut tool = fake("count", |_, _| {
        async { Ok(json!({"count": "six"})) }.boxed()
    });
    tool.render = |_, _| panic!("rendered");
    let bench = Bench::new([tool]);
    let result = bench.call("count", json!({"text": ""})).await;
    failed(
        &result,
        code::INVALID_TOOL_OUTPUT,
        &[
            "tool \"count\"",
            "\"count\" must be an integer",
            "not of the arguments",
        ],
    );
}

/// RUN-4.
#[test]
fn a_definition_that_breaks_a_rule_is_not_registered() {
    #[track_caller]
    fn refused(change: impl FnOnce(&mut Fake), words: &str) {
        let registry = ToolRegistry::new(EventBus::new());
        let mut tool = counter();
        change(&mut tool);
        let error = registry.register(Arc::new(tool)).unwrap_err();
        assert_eq!(error.code(), "TOOL_INVALID");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(registry.list(), []);
    }
    refused(|tool| tool.name = String::new(), "1 to 64");
    refused(|tool| tool.name = "no spaces".to_owned(), "1 to 64");
    refused(|tool| tool.name = "n".repeat(65), "1 to 64");
    refused(|tool| tool.description = " ", "description is blank");
    refused(|tool| tool.timeout_ms = Some(0), "1 to 2147483647");
    refused(
        |tool| tool.timeout_ms = Some(2_147_483_648),
        "1 to 2147483647",
    );
    refused(|tool| tool.parameters = json!({}), "type: object");
    refused(
        |tool| tool.parameters = json!({"type": "object", "required": "text"}),
        "parameters schema is invalid, at /required",
    );
    refused(
        |tool| tool.output = json!({"type": "strin"}),
        "output schema is invalid, at /type",
    );
}

/// RUN-1: a name belongs to one tool at a time, and is free again afterwards.
#[tokio::test]
async fn a_name_is_taken_until_its_handle_is_released() {
    let mut bench = Bench::new([counter()]);
    let error = bench.registry.register(Arc::new(counter())).unwrap_err();
    assert_eq!(error.code(), "TOOL_CONFLICT");
    bench.handles.pop().unwrap().release();
    failed(
        &bench.call("count", json!({})).await,
        code::UNKNOWN_TOOL,
        &["no other one"],
    );
    let _handle = bench.registry.register(Arc::new(counter())).unwrap();
    assert!(!bench.call("count", json!({"text": ""})).await.is_error);
}

/// RUN-5.
#[test]
fn the_model_sees_name_description_and_parameters_and_nothing_else() {
    let mut tool = counter();
    tool.timeout_ms = Some(777);
    let bench = Bench::new([
        tool,
        fake("another", |_, _| async { Ok(json!(null)) }.boxed()),
    ]);
    let seen = serde_json::to_value(bench.registry.list()).unwrap();
    let parameters = counter().parameters;
    assert_eq!(
        seen,
        json!([
            {"name": "another", "description": "counts", "parameters": parameters},
            {"name": "count", "description": "counts", "parameters": parameters},
        ])
    );
}

#[tokio::test]
async fn an_unknown_tool_is_a_failed_result_that_suggests_the_nearest_name() {
    let bench = Bench::new([counter(), fake("search", |_, _| panic!("executed"))]);
    failed(
        &bench.call("cuont", json!({})).await,
        code::UNKNOWN_TOOL,
        &["did you mean \"count\"?"],
    );
    failed(
        &bench.call("zzzzzzzz", json!({})).await,
        code::UNKNOWN_TOOL,
        &["count, search"],
    );
    let long = "x".repeat(100_000);
    assert!(bench.call(&long, json!({})).await.text().len() < 200);
    assert!(!bench.was_executed());
}

struct Gate(Result<Decision, ToolError>);

#[async_trait]
impl PreExecute for Gate {
    async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError> {
        assert_eq!(invocation.call.name, "count");
        self.0.clone()
    }
}

struct Person(Approval);

#[async_trait]
impl Approver for Person {
    async fn ask(&self, _: &Invocation, question: &str) -> Result<Approval, ToolError> {
        assert_eq!(question, "really?");
        Ok(self.0.clone())
    }
}

/// RUN-6: allow, deny, ask.
#[tokio::test]
async fn pre_execute_stages_allow_deny_and_ask() {
    let bench = Bench::new([counter()]);
    let text = json!({"text": "abc"});
    let stage = |decision| bench.registry.before_execute(0, Arc::new(Gate(decision)));

    let allow = stage(Ok(Decision::Allow));
    assert!(!bench.call("count", text.clone()).await.is_error);
    assert!(bench.was_executed());

    let deny = stage(Ok(Decision::Deny("it is Sunday".to_owned())));
    let result = bench.call("count", text.clone()).await;
    failed(
        &result,
        code::TOOL_DENIED,
        &["\"count\"", "it is Sunday", "not executed"],
    );
    assert!(!bench.was_executed());
    deny.release();

    let error = stage(Err(ToolError::new("POLICY_DOWN", "no policy")));
    failed(
        &bench.call("count", text.clone()).await,
        "POLICY_DOWN",
        &["no policy"],
    );
    error.release();

    let ask = stage(Ok(Decision::Ask("really?".to_owned())));
    let result = bench.call("count", text.clone()).await;
    failed(
        &result,
        code::TOOL_DENIED,
        &["really?", "nobody can give it"],
    );
    let no = bench
        .registry
        .approve_with(0, Arc::new(Person(Approval::Refused("no".to_owned()))));
    failed(
        &bench.call("count", text.clone()).await,
        code::TOOL_DENIED,
        &["denied: no"],
    );
    assert!(!bench.was_executed());
    no.release();
    let yes = bench
        .registry
        .approve_with(0, Arc::new(Person(Approval::Granted)));
    assert!(!bench.call("count", text).await.is_error);
    drop((allow, ask, yes));
}

struct Tracer(&'static str, Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ExecuteWrapper for Tracer {
    async fn around(
        &self,
        _: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError> {
        self.1.lock().unwrap().push(format!("{} in", self.0));
        let result = next.run(context).await;
        self.1.lock().unwrap().push(format!("{} out", self.0));
        result
    }
}

/// RUN-6.
#[tokio::test]
async fn execute_wrappers_nest_by_order() {
    let bench = Bench::new([counter()]);
    let trace = Arc::new(Mutex::new(Vec::new()));
    let wrap = |order, name| {
        bench
            .registry
            .wrap_execute(order, Arc::new(Tracer(name, Arc::clone(&trace))))
    };
    let _inner = wrap(5, "inner");
    let _outer = wrap(-5, "outer");
    let removed = wrap(0, "removed");
    removed.release();
    assert!(!bench.call("count", json!({"text": "abc"})).await.is_error);
    assert_eq!(
        *trace.lock().unwrap(),
        ["outer in", "inner in", "inner out", "outer out"]
    );
}

struct Review(Result<Verdict, ToolError>);

#[async_trait]
impl PostExecute for Review {
    async fn review(&self, _: &Invocation, _: Executed<'_>) -> Result<Verdict, ToolError> {
        self.0.clone()
    }
}

fn context(text: &str) -> ContextMessage {
    ContextMessage {
        source: MessageSource::new("test", serde_json::Map::new()),
        content: vec![ContentBlock::text(text)],
    }
}

/// RUN-6: accept, block, replace, add context.
#[tokio::test]
async fn post_execute_stages_accept_block_replace_and_add_context() {
    let bench = Bench::new([counter()]);
    let text = json!({"text": "abc"});
    let stage = |verdict| bench.registry.after_execute(0, Arc::new(Review(verdict)));

    let accept = stage(Ok(Verdict::Accept));
    let added = stage(Ok(Verdict::AddContext(context("mind the gap"))));
    let result = bench.call("count", text.clone()).await;
    assert_eq!(result.contexts, [context("mind the gap")]);
    assert_eq!(result.text(), "3 characters");

    let replace = stage(Ok(Verdict::Replace(json!({"count": 9}))));
    let result = bench.call("count", text.clone()).await;
    assert_eq!(
        (result.value, result.contexts.len()),
        (Some(json!({"count": 9})), 1)
    );
    assert_eq!(result.content, [ContentBlock::text("9 characters")]);
    replace.release();

    let wrong = stage(Ok(Verdict::Replace(json!("nine"))));
    let result = bench.call("count", text.clone()).await;
    failed(
        &result,
        code::INVALID_TOOL_OUTPUT,
        &["the value must be an object"],
    );
    wrong.release();

    let block = stage(Ok(Verdict::Block("too long".to_owned())));
    let result = bench.call("count", text.clone()).await;
    failed(
        &result,
        code::TOOL_BLOCKED,
        &["\"count\"", "held back: too long"],
    );
    assert_eq!(result.contexts, [], "nothing rides on a blocked result");
    block.release();

    let error = stage(Err(ToolError::new("REVIEW_DOWN", "nobody reviews")));
    failed(
        &bench.call("count", text).await,
        "REVIEW_DOWN",
        &["nobody reviews"],
    );
    drop((accept, added, error));
}

/// RUN-6: a failure passes the post-execute stage as well.
#[tokio::test]
async fn a_failed_execution_is_reviewed_and_keeps_its_own_code() {
    let body = |_, _| async { Err(ToolError::new("LSP_UNAVAILABLE", "no server")) }.boxed();
    let bench = Bench::new([fake("count", body)]);
    let _added = bench
        .registry
        .after_execute(0, Arc::new(Review(Ok(Verdict::AddContext(context("c"))))));
    let result = bench.call("count", json!({"text": "abc"})).await;
    failed(&result, "LSP_UNAVAILABLE", &["no server"]);
    assert_eq!(result.contexts.len(), 1);
    assert!(bench.was_executed());
}

struct Bomb;

#[async_trait]
impl PreExecute for Bomb {
    async fn decide(&self, _: &Invocation) -> Result<Decision, ToolError> {
        panic!("boom")
    }
}

#[async_trait]
impl Approver for Bomb {
    async fn ask(&self, _: &Invocation, _: &str) -> Result<Approval, ToolError> {
        panic!("boom")
    }
}

#[async_trait]
impl ExecuteWrapper for Bomb {
    async fn around(
        &self,
        _: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError> {
        let _ = next.run(context).await;
        panic!("boom")
    }
}

#[async_trait]
impl PostExecute for Bomb {
    async fn review(&self, _: &Invocation, _: Executed<'_>) -> Result<Verdict, ToolError> {
        panic!("boom")
    }
}

/// RUN-6: a panic in any stage is a failed result.
#[tokio::test]
async fn a_panic_in_any_stage_is_a_failed_result_and_never_a_crash() {
    async fn panics(bench: &Bench, stage: &str) {
        let result = bench.call("count", json!({"text": "abc"})).await;
        failed(&result, code::TOOL_PANICKED, &["\"count\"", "boom", stage]);
    }
    let plain = Bench::new([counter()]);
    let bomb = plain.registry.before_execute(0, Arc::new(Bomb));
    panics(&plain, "a pre-execute stage").await;
    bomb.release();
    let asks = Gate(Ok(Decision::Ask("really?".to_owned())));
    let bombs = (
        plain.registry.before_execute(0, Arc::new(asks)),
        plain.registry.approve_with(0, Arc::new(Bomb)),
    );
    panics(&plain, "the approval").await;
    drop(bombs);
    let bomb = plain.registry.wrap_execute(0, Arc::new(Bomb));
    panics(&plain, "an execute wrapper").await;
    bomb.release();
    let bomb = plain.registry.after_execute(0, Arc::new(Bomb));
    panics(&plain, "a post-execute stage").await;
    bomb.release();
    assert!(!plain.call("count", json!({"text": "abc"})).await.is_error);

    let bench = Bench::new([fake("count", |_, _| panic!("boom"))]);
    panics(&bench, "its execution").await;
    let bench = Bench::new([fake("count", |_, _| async { panic!("boom") }.boxed())]);
    panics(&bench, "its execution").await;
    let mut tool = counter();
    tool.render = |_, _| panic!("boom");
    panics(&Bench::new([tool]), "its rendering").await;
    let mut tool = counter();
    tool.own_check = Some(|_| panic!("boom"));
    panics(&Bench::new([tool]), "its check of the arguments").await;
}

/// RUN-6: a wrapper sees an inner panic as an error, and may go on from it.
#[tokio::test]
async fn an_inner_panic_reaches_outer_wrappers_as_an_error() {
    struct Saviour;
    #[async_trait]
    impl ExecuteWrapper for Saviour {
        async fn around(
            &self,
            _: &Invocation,
            context: ExecContext,
            next: Next<'_>,
        ) -> Result<Value, ToolError> {
            let error = next.run(context).await.unwrap_err();
            assert_eq!(error.code(), code::TOOL_PANICKED);
            Ok(json!({"count": 0}))
        }
    }
    let bench = Bench::new([counter()]);
    let _inner = bench.registry.wrap_execute(1, Arc::new(Bomb));
    let _outer = bench.registry.wrap_execute(0, Arc::new(Saviour));
    assert_eq!(
        bench.call("count", json!({"text": "abc"})).await.value,
        Some(json!({"count": 0}))
    );
}

#[tokio::test]
async fn a_presentation_that_panics_is_left_out() {
    let bench = Bench::new([counter()]);
    let call = |arguments| ToolCall {
        id: "c".to_owned(),
        name: "count".to_owned(),
        arguments,
    };
    let card = bench
        .registry
        .present_call(&call(json!({"text": "abc"})))
        .unwrap();
    assert_eq!(
        serde_json::to_value(card).unwrap(),
        json!({"card": "generic", "kind": "count", "title": "abc"})
    );
    assert_eq!(bench.registry.present_call(&call(json!({}))), None);
    assert!(!bench.registry.is_concurrency_safe(&call(json!({}))));
}

/// A wrapper in which the caller gives up.
struct GiveUp(Cancel);
#[async_trait]
impl ExecuteWrapper for GiveUp {
    async fn around(
        &self,
        _: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError> {
        self.0.cancel(CancelReason::Caller);
        next.run(context).await
    }
}

/// The tool gets the caller's session, call id and cancellation.
#[tokio::test]
async fn a_tool_is_told_whose_call_it_is() {
    let bench = Bench::new([fake("count", |_, context| {
        async move {
            assert_eq!(context.call_id, "c9");
            let session = context.session.expect("a session");
            assert_eq!(session.header().cwd.as_deref(), Some("/w"));
            Err(ToolError::from(context.cancel.reason().unwrap()))
        }
        .boxed()
    })]);
    let session = Session::new(SessionHeader {
        id: "s".to_owned(),
        cwd: Some("/w".to_owned()),
    });
    let cancel = Cancel::new();
    let call = ToolCall {
        id: "c9".to_owned(),
        name: "count".to_owned(),
        arguments: json!({"text": ""}),
    };
    let giving_up = cancel.clone();
    let _wrapper = bench.registry.wrap_execute(0, Arc::new(GiveUp(giving_up)));
    let result = bench.registry.call(call, session, cancel).await;
    failed(&result, code::TOOL_CANCELLED, &["cancelled by the caller"]);
}

/// RUN-6: a call given up before it began executes nothing; one that waits for a person ends.
#[tokio::test]
async fn a_cancelled_call_enters_no_further_stage() {
    struct Slow(Arc<Notify>);
    #[async_trait]
    impl PreExecute for Slow {
        async fn decide(&self, _: &Invocation) -> Result<Decision, ToolError> {
            self.0.notify_one();
            std::future::pending().await
        }
    }
    let bench = Bench::new([fake("count", |_, _| panic!("executed"))]);
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    let result = bench.call_with("count", json!({"text": ""}), cancel).await;
    failed(&result, code::TOOL_CANCELLED, &[]);

    let entered = Arc::new(Notify::new());
    let _slow = bench
        .registry
        .before_execute(0, Arc::new(Slow(Arc::clone(&entered))));
    let cancel = Cancel::new();
    let (result, ()) = tokio::join!(
        bench.call_with("count", json!({"text": ""}), cancel.clone()),
        async {
            entered.notified().await;
            cancel.cancel(CancelReason::Caller);
        }
    );
    failed(&result, code::TOOL_CANCELLED, &["cancelled by the caller"]);
    assert!(!bench.was_executed());
}

/// A kernel with the base and the timeout policy, and one tool with a budget.
async fn with_policy(settle_ms: u64, tool: Fake) -> (Kernel, Arc<ToolRegistry>, ToolHandle) {
    let kernel = Kernel::new();
    kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
    let policy = TimeoutPolicyPlugin::new(TimeoutPolicyConfig { settle_ms });
    kernel.mount(Arc::new(policy)).await.unwrap();
    let registry = kernel.service::<ToolRegistry>().unwrap();
    let handle = registry.register(Arc::new(tool)).unwrap();
    (kernel, registry, handle)
}

async fn call(registry: &ToolRegistry, cancel: Cancel) -> ToolResult {
    let arguments = json!({"text": ""});
    let call = ToolCall {
        id: "c".to_owned(),
        name: "count".to_owned(),
        arguments,
    };
    registry.call(call, None, cancel).await
}

/// A tool that ends with its cancellation, and tells the reason it was given.
fn obedient(timeout_ms: Option<u64>, entered: &Arc<Notify>) -> Fake {
    let entered = Arc::clone(entered);
    let mut tool = fake("count", move |_, context| {
        entered.notify_one();
        async move {
            let reason = context.cancel.cancelled().await;
            Err(ToolError::new("LSP_CANCELLED", format!("query {reason}")))
        }
        .boxed()
    });
    tool.timeout_ms = timeout_ms;
    tool
}

/// RUN-7.
#[tokio::test]
async fn a_deadline_that_wins_is_told_with_its_budget() {
    let entered = Arc::default();
    let (kernel, registry, _handle) = with_policy(60_000, obedient(Some(20), &entered)).await;
    let result = call(&registry, Cancel::new()).await;
    failed(&result, code::TOOL_TIMEOUT, &["\"count\"", "20 ms"]);
    kernel.dispose().await.unwrap();
}

/// RUN-7: the tool is told why, and what it still returns changes nothing.
#[tokio::test]
async fn a_tool_that_ends_well_after_its_deadline_has_still_timed_out() {
    let mut tool = fake("count", |_, context| {
        async move {
            let reason = context.cancel.cancelled().await;
            assert_eq!(reason, CancelReason::Timeout(Duration::from_millis(10)));
            Ok(json!({"count": 1}))
        }
        .boxed()
    });
    tool.timeout_ms = Some(10);
    let (_kernel, registry, _handle) = with_policy(60_000, tool).await;
    failed(
        &call(&registry, Cancel::new()).await,
        code::TOOL_TIMEOUT,
        &[],
    );
}

/// RUN-7: a tool deaf to its cancellation is given up.
#[tokio::test]
async fn a_deaf_tool_is_dropped_after_the_time_to_settle() {
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&drops);
    let mut tool = fake("count", move |_, _| {
        let gone = Gone(Arc::clone(&counter));
        async move {
            std::future::pending::<()>().await;
            drop(gone);
            Ok(json!(null))
        }
        .boxed()
    });
    tool.timeout_ms = Some(10);
    let (_kernel, registry, _handle) = with_policy(10, tool).await;
    failed(
        &call(&registry, Cancel::new()).await,
        code::TOOL_TIMEOUT,
        &["10 ms"],
    );
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

/// RUN-7: the caller's own cancellation is not a timeout, also when the budget runs out afterwards.
#[tokio::test]
async fn a_caller_that_gives_up_is_not_told_of_a_timeout() {
    let entered: Arc<Notify> = Arc::default();
    let (_kernel, registry, _handle) = with_policy(50, obedient(Some(60_000), &entered)).await;
    let cancel = Cancel::new();
    let (result, ()) = tokio::join!(call(&registry, cancel.clone()), async {
        entered.notified().await;
        cancel.cancel(CancelReason::Caller);
    });
    failed(&result, "LSP_CANCELLED", &["cancelled by the caller"]);

    let entered: Arc<Notify> = Arc::default();
    let begun = Arc::clone(&entered);
    let mut deaf = fake("count", move |_, _| {
        begun.notify_one();
        std::future::pending().boxed()
    });
    deaf.timeout_ms = Some(20);
    let (_kernel, registry, _handle) = with_policy(10, deaf).await;
    let cancel = Cancel::new();
    let (result, ()) = tokio::join!(call(&registry, cancel.clone()), async {
        entered.notified().await;
        cancel.cancel(CancelReason::Caller);
    });
    failed(&result, code::TOOL_CANCELLED, &["cancelled by the caller"]);
}

/// RUN-7: the caller's own deadline is the caller's business.
#[tokio::test]
async fn a_timeout_of_the_caller_s_own_is_not_the_tool_s() {
    let entered: Arc<Notify> = Arc::default();
    let (_kernel, registry, _handle) = with_policy(50, obedient(Some(60_000), &entered)).await;
    let cancel = Cancel::new();
    let (result, ()) = tokio::join!(call(&registry, cancel.clone()), async {
        entered.notified().await;
        cancel.cancel(CancelReason::Timeout(Duration::from_millis(3)));
    });
    failed(&result, "LSP_CANCELLED", &["timed out after 3 ms"]);
}

/// RUN-7: without a budget there is no deadline, and without the policy none either.
#[tokio::test]
async fn a_tool_without_a_budget_gets_the_caller_s_cancellation_as_it_is() {
    struct Probe(Arc<Mutex<Vec<bool>>>);
    #[async_trait]
    impl ExecuteWrapper for Probe {
        async fn around(
            &self,
            invocation: &Invocation,
            context: ExecContext,
            next: Next<'_>,
        ) -> Result<Value, ToolError> {
            // A cancellation given to a deadline's own child is not seen by the caller's.
            context.cancel.cancel(CancelReason::Disposed);
            self.0
                .lock()
                .unwrap()
                .push(invocation.cancel.is_cancelled());
            next.run(context).await
        }
    }
    for (timeout_ms, same) in [(None, true), (Some(60_000), false)] {
        let (_kernel, registry, _handle) =
            with_policy(50, obedient(timeout_ms, &Arc::default())).await;
        let seen = Arc::default();
        let _probe = registry.wrap_execute(0, Arc::new(Probe(Arc::clone(&seen))));
        call(&registry, Cancel::new()).await;
        assert_eq!(*seen.lock().unwrap(), [same]);
    }
}

/// RUN-1, RUN-7.
#[tokio::test]
async fn the_policy_goes_with_its_plugin_and_checks_its_configuration() {
    let kernel = Kernel::new();
    kernel.mount(Arc::new(ToolsPlugin)).await.unwrap();
    for settle_ms in [0, 2_147_483_648] {
        let policy = TimeoutPolicyPlugin::new(TimeoutPolicyConfig { settle_ms });
        let error = kernel.mount(Arc::new(policy)).await.unwrap_err();
        assert_eq!(error.code(), Some("CONFIG_INVALID"));
        assert!(error.to_string().contains("settleMs"), "{error}");
    }
    let policy = kernel
        .mount(Arc::new(TimeoutPolicyPlugin::default()))
        .await
        .unwrap();
    let registry = kernel.service::<ToolRegistry>().unwrap();
    let entered: Arc<Notify> = Arc::default();
    let _handle = registry
        .register(Arc::new(obedient(Some(1), &entered)))
        .unwrap();
    failed(
        &call(&registry, Cancel::new()).await,
        code::TOOL_TIMEOUT,
        &[],
    );
    kernel.unmount(&policy).await.unwrap();
    assert_eq!(TimeoutPolicyPlugin::default().needs().len(), 1);
    entered.notified().await;
    let cancel = Cancel::new();
    let (result, ()) = tokio::join!(call(&registry, cancel.clone()), async {
        entered.notified().await;
        cancel.cancel(CancelReason::Caller);
    });
    failed(&result, "LSP_CANCELLED", &[]);
    kernel.dispose().await.unwrap();
}
