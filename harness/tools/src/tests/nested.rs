//! Calls within calls (RUN-15).

use std::sync::OnceLock;

use super::*;
use crate::{ExecToken, MessageSource};

/// What is told of one call: tool, own token, outer token, how many contexts were deferred.
type Told = (String, ExecToken, Option<ExecToken>, usize);

fn nested_call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: "n1".to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

/// A tool that calls others, each in turn, and returns how many failed. It fails itself if its text
/// is `fail`.
fn caller(name: &str, registry: &Arc<OnceLock<ToolRegistry>>, calls: &[&str]) -> Fake {
    let registry = Arc::clone(registry);
    let calls: Vec<String> = calls.iter().map(|&name| name.to_owned()).collect();
    fake(name, move |arguments, context| {
        let registry = registry
            .get()
            .expect("it is set before the first call")
            .clone();
        let calls = calls.clone();
        async move {
            let mut failures = 0;
            for name in &calls {
                let call = nested_call(name, json!({"text": "abc"}));
                let result = registry.call_nested(&context, call).await;
                assert_eq!(result.contexts, [], "contexts are for the outer result");
                failures += usize::from(result.is_error);
            }
            if arguments["text"] == "fail" {
                return Err(ToolError::failed("the code threw"));
            }
            Ok(json!({"count": failures}))
        }
        .boxed()
    })
}

/// Adds a context to every result, named after the tool and what is deferred.
struct Notes;

#[async_trait]
impl PostExecute for Notes {
    async fn review(
        &self,
        invocation: &Invocation,
        executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        let name = &invocation.call.name;
        let note = format!("{name} after {}", executed.deferred.len());
        Ok(Verdict::AddContext(context(&note)))
    }
}

/// Holds the results of one tool back.
struct Blocks(&'static str);

#[async_trait]
impl PostExecute for Blocks {
    async fn review(&self, invocation: &Invocation, _: Executed<'_>) -> Result<Verdict, ToolError> {
        if invocation.call.name == self.0 {
            return Ok(Verdict::Block("policy".to_owned()));
        }
        Ok(Verdict::Accept)
    }
}

struct Nested {
    registry: ToolRegistry,
    told: Arc<Mutex<Vec<Told>>>,
    _subscription: dsh_kernel::Subscription,
    _handles: Vec<ToolHandle>,
    _notes: StageHandle,
}

impl Nested {
    /// Tools `outer`, which calls `inner` and `count`, and `inner`, which calls `count`.
    fn new() -> Self {
        let bus = EventBus::new();
        let registry = ToolRegistry::new(bus.clone());
        let late = Arc::new(OnceLock::new());
        late.set(registry.clone()).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let subscription = bus.subscribe(move |event: &ResultReady| {
            let name = event.call.name.clone();
            let told = (name, event.token, event.outer, event.deferred.len());
            sink.lock().unwrap().push(told);
        });
        let tools = [
            counter(),
            caller("inner", &late, &["count"]),
            caller("outer", &late, &["inner", "count"]),
            caller("itself", &late, &["itself", "around", "count"]),
            caller("around", &late, &["itself"]),
        ];
        let handles = tools
            .into_iter()
            .map(|tool| registry.register(Arc::new(tool)).unwrap())
            .collect();
        let notes = registry.after_execute(0, Arc::new(Notes));
        Self {
            registry,
            told,
            _subscription: subscription,
            _handles: handles,
            _notes: notes,
        }
    }

    async fn call(&self, name: &str, text: &str) -> ToolResult {
        let call = ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments: json!({"text": text}),
        };
        self.registry.call(call, None, Cancel::new()).await
    }
}

fn notes(result: &ToolResult) -> Vec<&str> {
    let contexts = result.contexts.iter();
    contexts
        .map(|context| context.content[0].as_text())
        .collect()
}

/// RUN-15, INS-16: what stages add to nested results comes first among the outer result's contexts.
#[tokio::test]
async fn contexts_of_nested_calls_are_deferred_to_the_outer_result() {
    let nested = Nested::new();
    let result = nested.call("outer", "").await;
    assert_eq!(result.value, Some(json!({"count": 0})));
    assert_eq!(
        notes(&result),
        [
            "count after 0",
            "inner after 1",
            "count after 0",
            "outer after 3"
        ]
    );
}

/// RUN-15, INS-21: each call has a token, and nested ones know that of the model's call.
#[tokio::test]
async fn nested_calls_run_under_the_token_of_the_model_s_call() {
    let nested = Nested::new();
    nested.call("outer", "").await;
    nested.call("count", "").await;
    let told = std::mem::take(&mut *nested.told.lock().unwrap());
    let names: Vec<_> = told.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["count", "inner", "count", "outer", "count"]);
    let outer = told[3].1;
    let outers: Vec<_> = told.iter().map(|(_, _, outer, _)| *outer).collect();
    assert_eq!(outers, [Some(outer), Some(outer), Some(outer), None, None]);
    let deferred: Vec<_> = told.iter().map(|(.., deferred)| *deferred).collect();
    assert_eq!(deferred, [1, 2, 1, 0, 0]);
    let mut tokens: Vec<_> = told.iter().map(|(_, token, ..)| token.number()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(
        tokens.len(),
        5,
        "no two calls have one token, though their ids are the same"
    );
}

/// INS-16, INS-21: a stage that holds the outer result back holds back what nested calls left.
#[tokio::test]
async fn a_blocked_outer_result_drops_what_was_deferred() {
    let nested = Nested::new();
    let blocks = nested.registry.after_execute(1, Arc::new(Blocks("outer")));
    let result = nested.call("outer", "").await;
    failed(&result, code::TOOL_BLOCKED, &["policy"]);
    assert_eq!(result.contexts, []);
    blocks.release();
    let fails = nested.registry.after_execute(
        1,
        Arc::new(Review(Err(ToolError::new("REVIEW_DOWN", "nobody reviews")))),
    );
    assert_eq!(nested.call("outer", "").await.contexts, []);
    fails.release();
    // Further in, it takes along only what is further in still.
    let _blocks = nested.registry.after_execute(1, Arc::new(Blocks("inner")));
    let result = nested.call("outer", "").await;
    assert_eq!(notes(&result), ["count after 0", "outer after 1"]);
    assert_eq!(result.value, Some(json!({"count": 1})));
}

/// RUN-15: code that fails has made its calls all the same.
#[tokio::test]
async fn a_failed_outer_call_keeps_what_was_deferred() {
    let nested = Nested::new();
    let result = nested.call("outer", "fail").await;
    failed(&result, code::TOOL_FAILED, &["threw"]);
    assert_eq!(notes(&result).len(), 4);
}

/// RUN-15: no tool calls itself, neither at once nor by way of another.
#[tokio::test]
async fn a_tool_within_itself_is_refused_by_name() {
    let nested = Nested::new();
    let result = nested.call("itself", "").await;
    // `itself` is refused, `around` goes through and is refused `itself` in turn.
    assert_eq!(result.value, Some(json!({"count": 1})));
    let told = std::mem::take(&mut *nested.told.lock().unwrap());
    let names: Vec<_> = told.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["itself", "itself", "around", "count", "itself"]);

    let context = ExecContext::new(Cancel::new(), None, "c1");
    let call = nested_call("count", json!({"text": "abc"}));
    assert!(!nested.registry.call_nested(&context, call).await.is_error);
    let seen = Arc::new(Mutex::new(None));
    let sink = Arc::clone(&seen);
    let registry = nested.registry.clone();
    let tool = fake("selfish", move |_, context| {
        let (registry, sink) = (registry.clone(), Arc::clone(&sink));
        async move {
            let call = nested_call("selfish", json!({"text": ""}));
            *sink.lock().unwrap() = Some(registry.call_nested(&context, call).await);
            Ok(json!({"count": 0}))
        }
        .boxed()
    });
    let _handle = nested.registry.register(Arc::new(tool)).unwrap();
    nested.call("selfish", "").await;
    let refused = seen.lock().unwrap().take().unwrap();
    failed(
        &refused,
        code::TOOL_DENIED,
        &["\"selfish\"", "from within", "directly"],
    );
}

/// RUN-15: nested calls pass the same stages, with the session and the cancellation of the outer one.
#[tokio::test]
async fn nested_calls_pass_the_same_stages() {
    struct Watch(Arc<Mutex<Vec<String>>>);
    #[async_trait]
    impl PreExecute for Watch {
        async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError> {
            let session = invocation.session.as_ref().expect("a session");
            let name = &invocation.call.name;
            let seen = format!("{name} in {}", session.header().id);
            self.0.lock().unwrap().push(seen);
            if name == "count" {
                return Ok(Decision::Deny("not here".to_owned()));
            }
            Ok(Decision::Allow)
        }
    }
    let nested = Nested::new();
    let seen = Arc::default();
    let _watch = nested
        .registry
        .before_execute(0, Arc::new(Watch(Arc::clone(&seen))));
    let session = Session::new(SessionHeader {
        id: "s1".to_owned(),
        cwd: None,
    });
    let call = nested_call("outer", json!({"text": ""}));
    let result = nested.registry.call(call, session, Cancel::new()).await;
    assert_eq!(result.value, Some(json!({"count": 1})));
    assert_eq!(
        *seen.lock().unwrap(),
        ["outer in s1", "inner in s1", "count in s1", "count in s1"]
    );
}

/// RUN-14, RUN-15: whoever gives the outer call up gives up what it called.
#[tokio::test]
async fn cancelling_the_outer_call_cancels_the_nested_one() {
    let nested = Nested::new();
    let entered: Arc<Notify> = Arc::default();
    let mut slow = obedient(None, &entered);
    slow.name = "slow".to_owned();
    let late = Arc::new(OnceLock::new());
    late.set(nested.registry.clone()).unwrap();
    let _handles = [
        nested.registry.register(Arc::new(slow)).unwrap(),
        nested
            .registry
            .register(Arc::new(caller("runner", &late, &["slow"])))
            .unwrap(),
    ];
    let cancel = Cancel::new();
    let call = nested_call("runner", json!({"text": ""}));
    let (result, ()) = tokio::join!(nested.registry.call(call, None, cancel.clone()), async {
        entered.notified().await;
        cancel.cancel(CancelReason::Caller);
    });
    assert_eq!(result.value, Some(json!({"count": 1})));
}

/// RUN-15: a nested call that ends after its outer call leaves nothing anywhere.
#[tokio::test]
async fn a_nested_call_that_ends_too_late_adds_nothing() {
    let nested = Nested::new();
    let kept = Arc::new(Mutex::new(None));
    let sink = Arc::clone(&kept);
    let leaky = fake("leaky", move |_, context| {
        *sink.lock().unwrap() = Some(context);
        async { Ok(json!({"count": 0})) }.boxed()
    });
    let _handle = nested.registry.register(Arc::new(leaky)).unwrap();
    let result = nested.call("leaky", "").await;
    assert_eq!(notes(&result), ["leaky after 0"]);
    let context = kept.lock().unwrap().take().unwrap();
    let call = nested_call("count", json!({"text": "abc"}));
    let late = nested.registry.call_nested(&context, call).await;
    assert_eq!((late.is_error, late.contexts.len()), (false, 0));
}

/// INS-7: the source of a context arrives as it was given.
#[tokio::test]
async fn a_deferred_context_keeps_its_source() {
    let nested = Nested::new();
    let result = nested.call("outer", "").await;
    for context in &result.contexts {
        assert_eq!(
            context.source,
            MessageSource::new("test", serde_json::Map::new())
        );
    }
}
