//! The chain that decides what enters a step.

use std::sync::{Arc, Mutex};

use dsh_agent::{AgentError, PreStepDecision, PreStepped, ScriptedReply, UserMessage, code};
use dsh_session::ContentBlock;
use serde_json::json;

use crate::support::{Bench, context, echo, ending, failed, prompt, stage};

fn texts(messages: &[UserMessage]) -> Vec<String> {
    let content = messages.iter().flat_map(|message| &message.content);
    content.map(|block| block.as_text().to_owned()).collect()
}

fn users(bench: &Bench) -> Vec<String> {
    let mut log = bench.log();
    log.retain(|line| line.starts_with("user"));
    log
}

/// RUN-12: stages nest by order, then by age; each changes what goes in and what comes out.
#[tokio::test]
async fn stages_change_what_goes_in_and_what_comes_out() {
    let bench = Bench::new();
    let around = |name: &'static str| {
        stage(move |_, mut batch, next| {
            Box::pin(async move {
                batch.push(context(&format!("{name} in")).into());
                let decision = next.run(batch).await?;
                let PreStepDecision::Enter(mut messages) = decision else {
                    return Ok(decision);
                };
                messages.insert(1, context(&format!("{name} out")).into());
                Ok(PreStepDecision::Enter(messages))
            })
        })
    };
    let _c = bench.service.on_pre_step(1, around("c"));
    let _a = bench.service.on_pre_step(-1, around("a"));
    let gone = bench.service.on_pre_step(0, around("gone"));
    let _b = bench.service.on_pre_step(0, around("b"));
    gone.release();
    let (agent, model) = bench.agent([ScriptedReply::text("done")]);
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        users(&bench),
        [
            "user prompt: hi",
            "user test: a out",
            "user test: b out",
            "user test: c out",
            "user test: a in",
            "user test: b in",
            "user test: c in",
        ]
    );
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: a stage knows the loop, the turn, the step, and whether the loop has entered before; the
/// decision is told on the bus.
#[tokio::test]
async fn a_stage_knows_where_it_stands_and_the_decision_is_told() {
    let bench = Bench::new().with(echo());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let look = stage(move |context, batch, next| {
        let at = (context.turn, context.step, context.entered_before);
        sink.lock()
            .unwrap()
            .push((context.agent, at, texts(&batch)));
        next.run(batch)
    });
    let _stage = bench.service.on_pre_step(0, look);
    let told = Arc::new(Mutex::new(Vec::new()));
    let (sink, session) = (Arc::clone(&told), bench.session.clone());
    let _heard = bench.bus.subscribe(move |event: &PreStepped| {
        let PreStepDecision::Enter(messages) = &event.decision else {
            panic!("it enters");
        };
        // Told before anything of it is logged.
        let logged = session.read(|log| log.messages().len());
        sink.lock()
            .unwrap()
            .push((event.turn, event.step, texts(messages), logged));
    });
    let (agent, _) = bench.agent([
        ScriptedReply::calls([("echo", json!({"text": "a"}))]),
        ScriptedReply::text("one"),
        ScriptedReply::text("two"),
    ]);
    agent.inbox().push_next_step(context("c"));
    prompt(&agent, "p1").await.unwrap();
    prompt(&agent, "p2").await.unwrap();
    let batch = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let id = agent.id();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (id, (1, 1, false), batch(&["p1", "c"])),
            (id, (1, 2, true), batch(&[])),
            (id, (2, 1, true), batch(&["p2"])),
        ]
    );
    assert_eq!(
        *told.lock().unwrap(),
        [
            (1, 1, batch(&["p1", "c"]), 0),
            (1, 2, batch(&[]), 4),
            (2, 1, batch(&["p2"]), 5),
        ]
    );
    // Another loop on the same session begins anew.
    let (other, _) = bench.agent([ScriptedReply::text("three")]);
    prompt(&other, "p3").await.unwrap();
    let last = seen.lock().unwrap().pop().unwrap();
    assert_eq!(last, (other.id(), (3, 1, false), batch(&["p3"])));
}

/// INS-2: a rejected first step, and one into which nothing is let, asks nothing and logs no message;
/// contexts are queued as they were, or as they were replaced meanwhile; the prompt is spent.
#[tokio::test]
async fn a_first_step_that_is_not_entered_leaves_the_contexts_queued() {
    for decision in [
        PreStepDecision::Reject("not now".to_owned()),
        PreStepDecision::Enter(Vec::new()),
    ] {
        let bench = Bench::new();
        let (agent, model) = bench.agent([ScriptedReply::text("done")]);
        let old = agent.inbox().push_next_step(context("old"));
        agent.inbox().push_next_step(context("kept"));
        let reason = match &decision {
            PreStepDecision::Reject(reason) => reason.clone(),
            PreStepDecision::Enter(_) => "nothing was let in".to_owned(),
        };
        let refuse = stage(move |step, _, _| {
            assert!(step.inbox.pending().is_empty());
            assert!(step.inbox.replace(old, context("new")));
            step.inbox.push_next_step(context("added"));
            let decision = decision.clone();
            Box::pin(async move { Ok(decision) })
        });
        let refusing = bench.service.on_pre_step(0, refuse);
        let outcome = prompt(&agent, "hi").await.unwrap();
        assert_eq!(ending(&outcome.ending), format!("rejected: {reason}"));
        assert_eq!(
            bench.log(),
            [
                "turn/start 1".to_owned(),
                "step/start 1".to_owned(),
                format!("step/end 1 rejected: {reason}"),
                format!("turn/end 1 rejected: {reason}"),
            ]
        );
        assert_eq!(model.request_count(), 0);
        let pending = agent.inbox().pending();
        assert_eq!(texts(&pending), ["new", "kept", "added"]);
        assert_eq!(pending[0].id, old);
        refusing.release();
        prompt(&agent, "again").await.unwrap();
        assert_eq!(
            users(&bench),
            [
                "user prompt: again",
                "user test: new",
                "user test: kept",
                "user test: added"
            ]
        );
        assert!(agent.inbox().pending().is_empty());
        bench.requests_are_rebuilt(&model);
    }
}

/// INS-2: what a stage strips from a batch that enters is gone, not queued again.
#[tokio::test]
async fn what_is_stripped_from_an_entered_batch_is_spent() {
    let bench = Bench::new();
    let (agent, _) = bench.agent([ScriptedReply::text("done")]);
    agent.inbox().push_next_step(context("stripped"));
    let strip = stage(|_, batch, next| {
        next.run(batch.into_iter().filter(UserMessage::is_prompt).collect())
    });
    let _stage = bench.service.on_pre_step(0, strip);
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(users(&bench), ["user prompt: hi"]);
    assert!(agent.inbox().pending().is_empty());
}

/// RUN-12: a rejection of a later step ends the turn with the results in the log.
#[tokio::test]
async fn a_later_step_can_be_rejected() {
    let bench = Bench::new().with(echo());
    let refuse = stage(|context, batch, next| {
        if context.step == 1 {
            return next.run(batch);
        }
        Box::pin(async { Ok(PreStepDecision::Reject("enough".to_owned())) })
    });
    let refusing = bench.service.on_pre_step(0, refuse);
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("echo", json!({"text": "a"}))]),
        ScriptedReply::text("done"),
    ]);
    let outcome = prompt(&agent, "hi").await.unwrap();
    assert_eq!(ending(&outcome.ending), "rejected: enough");
    let log = bench.log();
    assert_eq!(
        log[log.len() - 5..],
        [
            "result call_1_1 ok: a",
            "step/end 1 completed",
            "step/start 2",
            "step/end 2 rejected: enough",
            "turn/end 1 rejected: enough",
        ]
    );
    refusing.release();
    assert_eq!(prompt(&agent, "go on").await.unwrap().text, "done");
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: a stage that fails or panics fails the turn and nothing else; contexts stay queued.
#[tokio::test]
async fn a_stage_that_fails_or_panics_fails_the_turn() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([ScriptedReply::text("done")]);
    agent.inbox().push_next_step(context("c"));
    let panicking = stage(|_, _, _| Box::pin(async { panic!("lost my way") }));
    // The panic of an inner stage reaches outer ones as an error.
    let outer = stage(|_, batch, next| {
        Box::pin(async move {
            let error = next.run(batch).await.unwrap_err();
            assert_eq!(error.code(), code::PRE_STEP_PANICKED);
            Err(error)
        })
    });
    let handles = [
        bench.service.on_pre_step(1, panicking),
        bench.service.on_pre_step(0, outer),
    ];
    let outcome = prompt(&agent, "hi").await;
    failed(outcome, code::PRE_STEP_PANICKED, &["lost my way"]);
    drop(handles);
    let failing = stage(|_, _, _| {
        Box::pin(async {
            Err(AgentError::new(
                "NO_DISK",
                "the instructions cannot be read",
            ))
        })
    });
    let handle = bench.service.on_pre_step(0, failing);
    failed(prompt(&agent, "hi").await, "NO_DISK", &["cannot be read"]);
    drop(handle);
    assert_eq!(
        bench.last_turn(),
        [
            "turn/start 2",
            "step/start 1",
            "step/end 1 failed: NO_DISK",
            "turn/end 2 failed: NO_DISK"
        ]
    );
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(users(&bench), ["user prompt: hi", "user test: c"]);
    assert_eq!(model.request_count(), 1);
}

/// RUN-12: content that enters is what the model reads, unwrapped (INS-23).
#[tokio::test]
async fn what_enters_is_not_wrapped() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([ScriptedReply::text("done")]);
    let blocks = vec![ContentBlock::text("<x>"), ContentBlock::text("\u{0}\n")];
    agent.inbox().push_prompt_blocks(blocks.clone());
    let cancel = dsh_kernel::Cancel::new();
    agent.run_turn(&cancel).await.unwrap();
    let request = &model.requests()[0];
    assert_eq!(
        request.messages,
        [dsh_session::Message::User { content: blocks }]
    );
}
