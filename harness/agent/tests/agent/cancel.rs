//! Cancelling a turn at each of its stages (RUN-14).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{
    Agent, Delta, LoopOptions, Model, ModelError, PreStepDecision, ScriptedError, ScriptedReply,
    TurnOutcome, code,
};
use dsh_kernel::{Cancel, CancelReason};
use dsh_session::{AssistantMessage, ModelRequest};
use dsh_tools::ToolError;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    AddContext, Bench, context, echo, ending, failed, prompt, stage, tool, within,
};

/// Runs a turn that is cancelled as soon as `here` is told.
async fn cancelled_at(agent: &Agent, here: &Notify) -> TurnOutcome {
    let cancel = Cancel::new();
    let give_up = async {
        here.notified().await;
        cancel.cancel(CancelReason::Caller);
    };
    let (outcome, ()) = within(async { tokio::join!(agent.prompt("hi", &cancel), give_up) }).await;
    let outcome = outcome.expect("the turn does not fail");
    assert_eq!(
        ending(&outcome.ending),
        "cancelled: cancelled by the caller"
    );
    outcome
}

/// RUN-14: a turn that is cancelled before it begins asks nothing, and its prompt is spent.
#[tokio::test]
async fn a_turn_cancelled_before_it_begins_asks_nothing() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([]);
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    let outcome = within(agent.prompt("hi", &cancel)).await.unwrap();
    assert_eq!(outcome.steps, 0);
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "turn/end 1 cancelled: cancelled by the caller"
        ]
    );
    assert_eq!(model.request_count(), 0);
    assert!(agent.inbox().pending().is_empty());
}

/// RUN-14, INS-20, INS-2: a turn that is cancelled in its pre-step logs no message, also not what a
/// stage decides in spite of it, and the contexts are queued again.
#[tokio::test]
async fn a_turn_cancelled_in_its_pre_step_enters_nothing() {
    let bench = Bench::new();
    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let slow = stage(move |context, batch, _| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            told.notify_one();
            context.cancel.cancelled().await;
            Ok(PreStepDecision::Enter(batch))
        })
    });
    let _stage = bench.service.on_pre_step(0, slow);
    let (agent, model) = bench.agent([]);
    agent.inbox().push_next_step(context("c"));
    cancelled_at(&agent, &here).await;
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "step/end 1 cancelled: cancelled by the caller",
            "turn/end 1 cancelled: cancelled by the caller",
        ]
    );
    assert_eq!(model.request_count(), 0);
    assert_eq!(agent.inbox().pending().len(), 1);
}

/// RUN-14: a turn that is cancelled while the model answers logs nothing of the answer, and the
/// conversation goes on.
#[tokio::test]
async fn a_turn_cancelled_while_the_model_answers_keeps_nothing_of_it() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([
        ScriptedReply {
            text: Some("half an ans".to_owned()),
            hang: true,
            ..ScriptedReply::default()
        },
        ScriptedReply::text("whole"),
    ]);
    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let _listener = agent.on_delta(move |_| told.notify_one());
    cancelled_at(&agent, &here).await;
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "user prompt: hi",
            "step/request",
            "step/end 1 cancelled: cancelled by the caller",
            "turn/end 1 cancelled: cancelled by the caller",
        ]
    );
    assert_eq!(prompt(&agent, "again").await.unwrap().text, "whole");
    bench.requests_are_rebuilt(&model);
}

/// RUN-14: a pause before another attempt ends with the turn.
#[tokio::test(start_paused = true)]
async fn a_turn_cancelled_between_attempts_does_not_wait() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([ScriptedReply {
        error: Some(ScriptedError {
            code: "BUSY".to_owned(),
            message: "come back later".to_owned(),
            retry: true,
            after_ms: Some(29_000),
        }),
        ..ScriptedReply::default()
    }]);
    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let _retried = bench
        .bus
        .subscribe(move |_: &dsh_agent::ModelRetried| told.notify_one());
    let before = tokio::time::Instant::now();
    cancelled_at(&agent, &here).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(model.request_count(), 1);
}

/// RUN-14, INS-21: cancelling a turn cancels its calls and waits for them; every call has its result
/// in the log, what rode on them is dropped with the step, and calls that had not begun are not made.
#[tokio::test]
async fn cancelling_a_turn_cancels_its_calls_and_waits_for_them() {
    let here = Arc::new(Notify::new());
    let (told, wound_up) = (Arc::clone(&here), Arc::new(AtomicBool::new(false)));
    let mark = Arc::clone(&wound_up);
    let obedient = tool("obedient", move |_, context| {
        let (told, mark) = (Arc::clone(&told), Arc::clone(&mark));
        async move {
            told.notify_one();
            let reason = context.cancel.cancelled().await;
            tokio::task::yield_now().await;
            mark.store(true, Ordering::SeqCst);
            Err(ToolError::from(reason))
        }
    });
    let bench = Bench::new().with(echo()).with(obedient);
    let _stage = bench.tools.after_execute(0, Arc::new(AddContext));
    let (agent, model) = bench.agent([
        ScriptedReply::calls([
            ("echo", json!({"text": "a"})),
            ("obedient", json!({})),
            ("echo", json!({"text": "never"})),
        ]),
        ScriptedReply::text("again"),
    ]);
    cancelled_at(&agent, &here).await;
    assert!(wound_up.load(Ordering::SeqCst));
    let log = bench.log();
    let gone = "the call was given up: cancelled by the caller";
    assert_eq!(
        log[log.len() - 5..],
        [
            "result call_1_1 ok: a".to_owned(),
            format!("result call_1_2 TOOL_CANCELLED: {gone}"),
            format!("result call_1_3 TOOL_CANCELLED: {gone}"),
            "step/end 1 cancelled: cancelled by the caller".to_owned(),
            "turn/end 1 cancelled: cancelled by the caller".to_owned(),
        ]
    );
    assert_eq!(bench.told_results().len(), 3);
    // The log can be gone on with: each call has its result.
    assert_eq!(prompt(&agent, "again").await.unwrap().text, "again");
    bench.requests_are_rebuilt(&model);
}

/// RUN-14: calls, models and stages that are deaf to their cancellation are dropped after the time to
/// settle; each call still has one result, told once (RUN-6).
#[tokio::test(start_paused = true)]
async fn what_is_deaf_to_its_cancellation_is_dropped() {
    struct Deaf(Arc<Notify>);
    #[async_trait]
    impl Model for Deaf {
        fn name(&self) -> &'static str {
            "deaf"
        }
        async fn respond(
            &self,
            _: &ModelRequest,
            _: &mut (dyn FnMut(Delta) + Send),
            _: &Cancel,
        ) -> Result<AssistantMessage, ModelError> {
            self.0.notify_one();
            std::future::pending().await
        }
    }
    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let deaf = tool("deaf", move |_, _| {
        told.notify_one();
        std::future::pending()
    });
    let bench = Bench::new().with(deaf.overlapping());
    let options = LoopOptions {
        settle: Duration::from_secs(7),
        ..LoopOptions::default()
    };
    let calls = ScriptedReply::calls([("deaf", json!({})), ("deaf", json!({}))]);
    let (agent, _) = bench.limited(options.clone(), [calls]);
    let before = tokio::time::Instant::now();
    cancelled_at(&agent, &here).await;
    assert_eq!(before.elapsed(), Duration::from_secs(7));
    let results: Vec<_> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("result"))
        .collect();
    assert_eq!(results.len(), 2);
    for result in &results {
        assert!(result.contains("TOOL_CANCELLED: the call of tool \"deaf\" was given up"));
        assert!(result.contains("stopped where it stood"));
    }
    assert_eq!(bench.told_results(), ["call_1_1", "call_1_2"]);

    let model = bench.asking(Arc::new(Deaf(Arc::clone(&here))), options.clone());
    cancelled_at(&model, &here).await;
    assert_eq!(before.elapsed(), Duration::from_secs(14));

    let told = Arc::clone(&here);
    let deaf = stage(move |_, _, _| {
        told.notify_one();
        Box::pin(std::future::pending())
    });
    let _stage = bench.service.on_pre_step(0, deaf);
    let (agent, _) = bench.limited(options, []);
    cancelled_at(&agent, &here).await;
    assert_eq!(before.elapsed(), Duration::from_secs(21));
    let last = bench.last_turn().pop().unwrap();
    assert_eq!(last, "turn/end 3 cancelled: cancelled by the caller");
}

/// RUN-14: closing an agent cancels its turn and waits for it; nothing runs afterwards.
#[tokio::test]
async fn closing_an_agent_cancels_its_turn_and_waits() {
    let bench = Bench::new();
    let (agent, _) = bench.agent([ScriptedReply {
        text: Some("…".to_owned()),
        hang: true,
        ..ScriptedReply::default()
    }]);
    let here = Arc::new(Notify::new());
    let told = Arc::clone(&here);
    let _listener = agent.on_delta(move |_| told.notify_one());
    let cancel = Cancel::new();
    let close = async {
        here.notified().await;
        agent.close().await;
        // The turn has ended when close returns.
        assert_eq!(bench.log().pop().unwrap(), "turn/end 1 cancelled: disposed");
    };
    let (outcome, ()) = within(async { tokio::join!(agent.prompt("hi", &cancel), close) }).await;
    assert_eq!(ending(&outcome.unwrap().ending), "cancelled: disposed");
    assert!(!cancel.is_cancelled(), "the caller's own is left alone");
    assert!(agent.is_closed());
    let log = bench.log();
    failed(
        prompt(&agent, "more").await,
        code::AGENT_CLOSED,
        &["open another"],
    );
    assert_eq!(bench.log(), log);
    assert!(agent.inbox().pending().is_empty());
    within(agent.close()).await;
}
