//! What models do to the loop: failures that pass and that do not, silence, and floods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{
    Agent, Delta, LoopOptions, Model, ModelError, ModelRetried, RetryPolicy, ScriptedError,
    ScriptedReply, StepDelta, model_code, script_code,
};
use dsh_kernel::Cancel;
use dsh_session::{AssistantMessage, ModelRequest};
use serde_json::json;

use crate::support::{Bench, echo, failed, prompt};

fn error(retry: bool, after_ms: Option<u64>) -> ScriptedReply {
    ScriptedReply {
        error: Some(ScriptedError {
            code: "MODEL_BUSY".to_owned(),
            message: "the model is busy".to_owned(),
            retry,
            after_ms,
        }),
        ..ScriptedReply::default()
    }
}

/// RUN-12: a failure that may pass is tried again after pauses that grow, or that the model asked for;
/// every request that is sent is logged, and all of one step are the same.
#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_tried_again() {
    let bench = Bench::new();
    let pauses = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&pauses);
    let _retried = bench.bus.subscribe(move |event: &ModelRetried| {
        let attempt = event.attempt;
        let code = event.error.code.clone();
        sink.lock().unwrap().push((attempt, code, event.pause));
    });
    let (agent, model) = bench.agent([
        error(true, None),
        error(true, Some(3_000)),
        ScriptedReply {
            text: Some("half".to_owned()),
            cut: true,
            ..ScriptedReply::default()
        },
        ScriptedReply::text("whole"),
    ]);
    let before = tokio::time::Instant::now();
    let outcome = prompt(&agent, "hi").await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.steps), ("whole", 1));
    assert_eq!(before.elapsed(), Duration::from_millis(500 + 3_000 + 2_000));
    let busy = "MODEL_BUSY".to_owned();
    assert_eq!(
        *pauses.lock().unwrap(),
        [
            (1, busy.clone(), Duration::from_millis(500)),
            (2, busy, Duration::from_secs(3)),
            (3, "MODEL_STREAM_CUT".to_owned(), Duration::from_secs(2)),
        ]
    );
    let requests = model.requests();
    assert!(requests.iter().all(|request| *request == requests[0]));
    bench.requests_are_rebuilt(&model);
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "user prompt: hi",
            "step/request",
            "step/request",
            "step/request",
            "step/request",
            "assistant: whole",
            "step/end 1 completed",
            "turn/end 1 completed",
        ]
    );
}

/// RUN-12: attempts are bounded, and the failure says how many there were.
#[tokio::test(start_paused = true)]
async fn attempts_are_bounded() {
    let bench = Bench::new();
    let options = LoopOptions {
        retry: RetryPolicy {
            max_attempts: 3,
            ..RetryPolicy::default()
        },
        ..LoopOptions::default()
    };
    let busy = || error(true, None);
    let (agent, model) =
        bench.limited(options, [busy(), busy(), busy(), ScriptedReply::text("ok")]);
    let says = ["the model is busy", "given up after 3 attempts"];
    failed(prompt(&agent, "hi").await, "MODEL_BUSY", &says);
    assert_eq!(model.request_count(), 3);
    assert_eq!(
        bench.log()[6..],
        [
            "step/end 1 failed: MODEL_BUSY",
            "turn/end 1 failed: MODEL_BUSY"
        ]
    );
    // The conversation can be gone on with.
    assert_eq!(prompt(&agent, "again").await.unwrap().text, "ok");
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: what does not pass, and a pause longer than allowed, fails the turn at once.
#[tokio::test(start_paused = true)]
async fn what_does_not_pass_fails_at_once() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([error(false, None), error(true, Some(31_000))]);
    let before = tokio::time::Instant::now();
    failed(prompt(&agent, "hi").await, "MODEL_BUSY", &["is busy"]);
    let says = ["asked to wait 31 s", "at most 30 s"];
    failed(prompt(&agent, "hi").await, "MODEL_BUSY", &says);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(model.request_count(), 2);
}

/// RUN-12: a message of nothing is not an answer; it is asked for again, and then a failure.
#[tokio::test(start_paused = true)]
async fn a_message_of_nothing_is_asked_for_again() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([
        ScriptedReply::default(),
        ScriptedReply {
            reasoning: Some("hm".to_owned()),
            ..ScriptedReply::text(" \n")
        },
        ScriptedReply::text("at last"),
    ]);
    assert_eq!(prompt(&agent, "hi").await.unwrap().text, "at last");
    assert_eq!(model.request_count(), 3);
    let (agent, _) = bench.agent((0..4).map(|_| ScriptedReply::default()));
    let says = [
        "model scripted returned neither text nor a call",
        "4 attempts",
    ];
    failed(prompt(&agent, "hi").await, model_code::MODEL_EMPTY, &says);
}

/// RUN-12: a script that does not fit the requests fails the turn and says where.
#[tokio::test]
async fn a_script_that_does_not_fit_fails_the_turn() {
    let bench = Bench::new().with(echo());
    let (agent, model) = bench.agent([ScriptedReply::calls([("echo", json!({"text": "a"}))])]);
    let says = ["request 2 came", "has 1 reply", "result of call_1_1 \"a\""];
    failed(
        prompt(&agent, "hi").await,
        script_code::SCRIPT_EXHAUSTED,
        &says,
    );
    assert!(model.finish().is_err());
}

struct FnModel<F>(F);

#[async_trait]
impl<F> Model for FnModel<F>
where
    F: Fn(&mut (dyn FnMut(Delta) + Send), &Cancel) -> Result<AssistantMessage, ModelError>
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &'static str {
        "closure"
    }
    async fn respond(
        &self,
        _: &ModelRequest,
        deltas: &mut (dyn FnMut(Delta) + Send),
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelError> {
        (self.0)(deltas, cancel)
    }
}

fn asking(
    bench: &Bench,
    options: LoopOptions,
    respond: impl Fn(&mut (dyn FnMut(Delta) + Send), &Cancel) -> Result<AssistantMessage, ModelError>
    + Send
    + Sync
    + 'static,
) -> Agent {
    bench.asking(Arc::new(FnModel(respond)), options)
}

fn message(text: String) -> AssistantMessage {
    AssistantMessage {
        text,
        ..AssistantMessage::default()
    }
}

/// RUN-12: a model that panics fails the turn, and the agent goes on.
#[tokio::test]
async fn a_model_that_panics_fails_the_turn() {
    let bench = Bench::new();
    let count = AtomicUsize::new(0);
    let agent = asking(&bench, LoopOptions::default(), move |_, _| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "off by one");
        Ok(message("fine".to_owned()))
    });
    let says = ["model closure panicked", "off by one"];
    failed(
        prompt(&agent, "hi").await,
        model_code::MODEL_PANICKED,
        &says,
    );
    let log = bench.log();
    assert_eq!(log[log.len() - 1], "turn/end 1 failed: MODEL_PANICKED");
    assert_eq!(prompt(&agent, "again").await.unwrap().text, "fine");
}

/// RUN-12: huge text is an answer like any other.
#[tokio::test]
async fn a_huge_text_is_kept_whole() {
    let bench = Bench::new();
    let text = "ä€𝄞 ".repeat(1_000_000);
    let (agent, model) = bench.agent([
        ScriptedReply::text(text.clone()),
        ScriptedReply::text("done"),
    ]);
    let streamed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&streamed);
    let _listener = agent.on_delta(move |delta| {
        if let Delta::Text(piece) = &delta.delta {
            sink.lock().unwrap().push_str(piece);
        }
    });
    assert!(prompt(&agent, "hi").await.unwrap().text == text);
    assert!(*streamed.lock().unwrap() == text);
    prompt(&agent, "again").await.unwrap();
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: a model that does not stop is stopped at the limit, whether it streams or returns.
#[tokio::test]
async fn a_flood_is_stopped_at_the_limit() {
    let bench = Bench::new();
    let options = LoopOptions {
        max_response_bytes: 1_000,
        ..LoopOptions::default()
    };
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    let streaming = asking(&bench, options.clone(), |deltas, cancel| {
        let mut sent = 0;
        while !cancel.is_cancelled() {
            deltas(Delta::Text("x".repeat(300)));
            sent += 1;
        }
        assert_eq!(
            sent, 4,
            "it was told to stop as soon as the limit was passed"
        );
        Err(ModelError::fatal("STOPPED", "stopped"))
    });
    let _listener = streaming.on_delta(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let code = model_code::MODEL_RESPONSE_TOO_LARGE;
    failed(prompt(&streaming, "hi").await, code, &["1000 bytes"]);
    assert_eq!(told.load(Ordering::SeqCst), 3);
    let returning = asking(&bench, options.clone(), |_, _| {
        Ok(message("x".repeat(1_001)))
    });
    failed(prompt(&returning, "hi").await, code, &["1000 bytes"]);
    let fitting = asking(&bench, options, |_, _| Ok(message("x".repeat(1_000))));
    assert_eq!(prompt(&fitting, "hi").await.unwrap().text.len(), 1_000);
}

/// RUN-12: pieces are told in order with turn, step and attempt; a listener that panics disturbs
/// nobody, and one whose handle is gone hears nothing.
#[tokio::test(start_paused = true)]
async fn pieces_are_told_in_order() {
    let bench = Bench::new().with(echo());
    let (agent, _) = bench.agent([
        ScriptedReply {
            text: Some("ha".to_owned()),
            cut: true,
            ..ScriptedReply::default()
        },
        ScriptedReply {
            reasoning: Some("hm".to_owned()),
            text: Some("x".repeat(100)),
            ..ScriptedReply::calls([("echo", json!({"text": "a"}))])
        },
        ScriptedReply::text("done"),
        ScriptedReply::text("unheard"),
    ]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let _broken = agent.on_delta(|_| panic!("broken listener"));
    let listener = agent.on_delta(move |delta| {
        let StepDelta {
            turn,
            step,
            attempt,
            delta,
        } = delta.clone();
        sink.lock().unwrap().push((turn, step, attempt, delta));
    });
    prompt(&agent, "hi").await.unwrap();
    let text = |text: &str| Delta::Text(text.to_owned());
    assert_eq!(
        std::mem::take(&mut *seen.lock().unwrap()),
        [
            (1, 1, 1, text("ha")),
            (1, 1, 2, Delta::Reasoning("hm".to_owned())),
            (1, 1, 2, text(&"x".repeat(64))),
            (1, 1, 2, text(&"x".repeat(36))),
            (
                1,
                1,
                2,
                Delta::ToolCall {
                    index: 0,
                    id: Some("call_2_1".to_owned()),
                    name: Some("echo".to_owned()),
                    arguments: r#"{"text":"a"}"#.to_owned(),
                }
            ),
            (1, 2, 1, text("done")),
        ]
    );
    listener.release();
    prompt(&agent, "again").await.unwrap();
    assert!(seen.lock().unwrap().is_empty());
}
