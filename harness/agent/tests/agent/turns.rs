//! Turns and steps: their order in the log, what a request is made of, and how many there are.

use std::sync::{Arc, Mutex};

use dsh_agent::{
    LoopOptions, MessageExpectation, PromptSection, RequestExpectation, ScriptedReply,
    ScriptedUsage, code,
};
use dsh_kernel::Cancel;
use dsh_session::{ContentBlock, Ending, Usage};
use futures::FutureExt as _;
use serde_json::json;

use crate::support::{AddContext, Bench, context, echo, failed, prompt, tool, within};

/// RUN-12: a turn without calls is one step.
#[tokio::test]
async fn a_turn_without_calls_is_one_step() {
    let bench = Bench::new();
    let (agent, model) = bench.agent([ScriptedReply::text("hello")]);
    let outcome = prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        (outcome.turn, outcome.steps, outcome.text.as_str()),
        (1, 1, "hello")
    );
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "user prompt: hi",
            "step/request",
            "assistant: hello",
            "step/end 1 completed",
            "turn/end 1 completed",
        ]
    );
    model.finish().unwrap();
    bench.requests_are_rebuilt(&model);
}

/// RUN-12, RUN-13, INS-23: the next step follows while results are owed to the model, and contexts
/// follow the whole group of results, as they are.
#[tokio::test]
async fn contexts_follow_the_whole_group_of_results() {
    let bench = Bench::new().with(echo());
    let _stage = bench.tools.after_execute(0, Arc::new(AddContext));
    let tool_message = |id: &str, text: &str| MessageExpectation::Tool {
        call_id: Some(id.to_owned()),
        is_error: Some(false),
        text: Some(text.to_owned()),
        contains: None,
    };
    let user_message = |text: &str| MessageExpectation::User {
        text: Some(text.to_owned()),
        contains: None,
    };
    let (agent, model) = bench.agent([
        ScriptedReply::calls([
            ("echo", json!({"text": "a"})),
            ("echo", json!({"text": "b", "fail": true})),
            ("echo", json!({"text": "c"})),
        ]),
        ScriptedReply::text("done").expecting(RequestExpectation {
            messages: Some(7),
            new: Some(vec![
                tool_message("call_1_1", "a"),
                MessageExpectation::Tool {
                    call_id: Some("call_1_2".to_owned()),
                    is_error: Some(true),
                    text: Some("b".to_owned()),
                    contains: None,
                },
                tool_message("call_1_3", "c"),
                user_message("about call_1_1"),
                user_message("about call_1_3"),
            ]),
            ..RequestExpectation::default()
        }),
    ]);
    let outcome = prompt(&agent, "hi").await.unwrap();
    assert_eq!((outcome.steps, outcome.text.as_str()), (2, "done"));
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "user prompt: hi",
            "step/request",
            r#"assistant:  echo#call_1_1{"text":"a"} echo#call_1_2{"text":"b","fail":true} echo#call_1_3{"text":"c"}"#,
            r#"call echo#call_1_1{"text":"a"}"#,
            r#"call echo#call_1_2{"text":"b","fail":true}"#,
            r#"call echo#call_1_3{"text":"c"}"#,
            "result call_1_1 ok: a",
            "result call_1_2 ECHO_FAILED: b",
            "result call_1_3 ok: c",
            "user test: about call_1_1",
            "user test: about call_1_3",
            "step/end 1 completed",
            "step/start 2",
            "step/request",
            "assistant: done",
            "step/end 2 completed",
            "turn/end 1 completed",
        ]
    );
    model.finish().unwrap();
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: one prompt a turn, in the order of the queue; contexts enter with the next step, behind
/// its prompt.
#[tokio::test]
async fn each_turn_claims_one_prompt_and_each_step_the_contexts() {
    let inbox_of = Arc::new(Mutex::new(None));
    let later = Arc::clone(&inbox_of);
    let push = tool("push", move |_, _| {
        let inbox: dsh_agent::Inbox = later.lock().unwrap().clone().unwrap();
        async move {
            inbox.push_next_step(context("pushed by a tool"));
            Ok(json!("ok"))
        }
    });
    let bench = Bench::new().with(push);
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("push", json!({}))]),
        ScriptedReply::text("one"),
        ScriptedReply::text("two"),
    ]);
    *inbox_of.lock().unwrap() = Some(agent.inbox().clone());
    agent.inbox().push_next_step(context("c"));
    agent.inbox().push_prompt("p1");
    agent.inbox().push_prompt("p2");
    let cancel = Cancel::new();
    assert_eq!(within(agent.run_turn(&cancel)).await.unwrap().text, "one");
    assert_eq!(agent.inbox().queued_prompts(), 1);
    assert_eq!(within(agent.run_turn(&cancel)).await.unwrap().text, "two");
    failed(within(agent.run_turn(&cancel)).await, code::NO_PROMPT, &[]);
    let users: Vec<_> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("user") || line.starts_with("step/start"))
        .collect();
    assert_eq!(
        users,
        [
            "step/start 1",
            "user prompt: p1",
            "user test: c",
            "step/start 2",
            "user test: pushed by a tool",
            "step/start 1",
            "user prompt: p2",
        ]
    );
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: a prompt of the caller's own does not wait for those that are queued, and is not left
/// behind.
#[tokio::test]
async fn a_prompt_of_the_caller_s_own_runs_before_the_queued_ones() {
    let bench = Bench::new();
    let (agent, _) = bench.agent([ScriptedReply::text("one"), ScriptedReply::text("two")]);
    agent.inbox().push_prompt("queued");
    prompt(&agent, "own").await.unwrap();
    assert!(bench.log().contains(&"user prompt: own".to_owned()));
    assert_eq!(agent.inbox().queued_prompts(), 1);
    // Dropped before its turn could begin: the first poll finds another turn running.
    let hold = agent.clone();
    let cancel = Cancel::new();
    let mut running = Box::pin(hold.run_turn(&cancel));
    assert!(running.as_mut().now_or_never().is_some());
    let blocked = bench.agent([ScriptedReply {
        hang: true,
        ..ScriptedReply::default()
    }]);
    blocked.0.inbox().push_prompt("hangs");
    let mut hanging = Box::pin(blocked.0.run_turn(&cancel));
    assert!(hanging.as_mut().now_or_never().is_none());
    assert!(agent.prompt("withdrawn", &cancel).now_or_never().is_none());
    assert_eq!(agent.inbox().queued_prompts(), 0);
}

/// RUN-12: system prompt and tools are those of the moment at which the model is asked.
#[tokio::test]
async fn sections_and_tools_are_assembled_for_each_request() {
    let section = |name: &str, order, text: &str| PromptSection {
        name: name.to_owned(),
        order,
        text: text.to_owned(),
    };
    let bench = Bench::new().with(echo());
    let tools = bench.tools.clone();
    let system = bench.prompt.clone();
    let held = Arc::new(Mutex::new(Vec::new()));
    let grow = tool("grow", move |_, _| {
        let tool = tools.register(Arc::new(tool("zoom", |_, _| async { Ok(json!(1)) })));
        let section = system.add_section(section("zoom", 0, "Zoom in."));
        held.lock().unwrap().push((tool.unwrap(), section));
        async { Ok(json!("grown")) }
    });
    let bench = bench.with(grow);
    let _last = bench.prompt.add_section(section("last", 9, "Last."));
    let _first = bench.prompt.add_section(section("first", -9, "First."));
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("grow", json!({}))]).expecting(RequestExpectation {
            system_contains: vec!["First.\n\nLast.".to_owned()],
            tools: names(&["echo", "grow"]),
            ..RequestExpectation::default()
        }),
        ScriptedReply::text("done").expecting(RequestExpectation {
            system_contains: vec!["First.\n\nZoom in.\n\nLast.".to_owned()],
            tools: names(&["echo", "grow", "zoom"]),
            ..RequestExpectation::default()
        }),
    ]);
    prompt(&agent, "hi").await.unwrap();
    model.finish().unwrap();
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: a turn that never comes to an end is ended, says so, and can be gone on with.
#[tokio::test]
async fn a_turn_has_a_most_of_steps() {
    let bench = Bench::new().with(echo());
    let options = LoopOptions {
        max_steps: 3,
        ..LoopOptions::default()
    };
    let call = || ScriptedReply::calls([("echo", json!({"text": "x"}))]);
    let (agent, model) = bench.limited(
        options,
        [call(), call(), call(), ScriptedReply::text("done")],
    );
    let outcome = prompt(&agent, "loop").await;
    failed(outcome, code::MAX_STEPS, &["3 steps", "prompt again"]);
    let log = bench.last_turn();
    assert_eq!(
        log[log.len() - 3..],
        [
            "result call_3_1 ok: x",
            "step/end 3 completed",
            "turn/end 1 failed: MAX_STEPS"
        ]
    );
    assert_eq!(prompt(&agent, "go on").await.unwrap().text, "done");
    model.finish().unwrap();
    bench.requests_are_rebuilt(&model);
}

/// RUN-12: what the turn cost is the sum of its requests.
#[tokio::test]
async fn usage_is_added_up() {
    let bench = Bench::new().with(echo());
    let costs = |reply: ScriptedReply| ScriptedReply {
        usage: Some(ScriptedUsage {
            input_tokens: u64::MAX / 2,
            output_tokens: 3,
        }),
        ..reply
    };
    let (agent, _) = bench.agent([
        costs(ScriptedReply::calls([("echo", json!({}))])),
        costs(ScriptedReply::calls([("echo", json!({}))])),
        costs(ScriptedReply::text("done")),
    ]);
    let outcome = prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        outcome.usage,
        Usage {
            input_tokens: u64::MAX,
            output_tokens: 9
        }
    );
}

/// RUN-11: two agents on one session, a resumed one for instance, do not write into each other's
/// turns.
#[tokio::test]
async fn agents_of_one_session_take_turns() {
    let bench = Bench::new();
    let (gate, opened) = tokio::sync::oneshot::channel::<()>();
    let opened = Arc::new(Mutex::new(Some(opened)));
    let wait = tool("wait", move |_, _| {
        let opened = opened.lock().unwrap().take();
        async move {
            opened
                .expect("it is called once")
                .await
                .expect("it is opened");
            Ok(json!("waited"))
        }
    });
    let bench = bench.with(wait);
    let (first, _) = bench.agent([
        ScriptedReply::calls([("wait", json!({}))]),
        ScriptedReply::text("first"),
    ]);
    let (second, _) = bench.agent([ScriptedReply::text("second")]);
    assert_ne!(first.id(), second.id());
    let open = async {
        tokio::task::yield_now().await;
        gate.send(()).unwrap();
    };
    let (one, two, ()) =
        within(async { tokio::join!(prompt(&first, "1"), prompt(&second, "2"), open) }).await;
    assert_eq!((one.unwrap().turn, two.unwrap().turn), (1, 2));
    let turns: Vec<_> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("turn/"))
        .collect();
    assert_eq!(
        turns,
        [
            "turn/start 1",
            "turn/end 1 completed",
            "turn/start 2",
            "turn/end 2 completed"
        ]
    );
}

/// RUN-11: ids are told apart over the session, whichever of its agents made the calls.
#[tokio::test]
async fn ids_are_told_apart_across_the_agents_of_a_session() {
    let bench = Bench::new().with(echo());
    let script = || {
        let call = || ScriptedReply::calls([("echo", json!({"text": "a"}))]);
        [
            call(),
            ScriptedReply::text("a"),
            call(),
            ScriptedReply::text("b"),
        ]
    };
    let ((first, _), (second, _)) = (bench.agent(script()), bench.agent(script()));
    for agent in [&first, &second, &first, &second] {
        prompt(agent, "hi").await.unwrap();
    }
    let mut told = bench.told_results();
    assert_eq!(told.len(), 4);
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 4, "{told:?}");
}

/// RUN-11, RUN-14: a turn that was dropped is closed in the log before the next one begins.
#[tokio::test]
async fn a_dropped_turn_is_closed_by_the_next_one() {
    let stuck = tool("stuck", |_, _| std::future::pending());
    let bench = Bench::new().with(stuck).with(echo());
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("echo", json!({"text": "a"})), ("stuck", json!({}))]),
        ScriptedReply::text("again"),
    ]);
    agent.inbox().push_next_step(context("c"));
    assert!(agent.prompt("hi", &Cancel::new()).now_or_never().is_none());
    assert_eq!(prompt(&agent, "again").await.unwrap().turn, 2);
    let log = bench.log();
    let at = log.iter().position(|line| line == "turn/start 2").unwrap();
    assert_eq!(log[at - 4], "result call_1_1 ok: a");
    assert!(log[at - 3].starts_with("result call_1_2 TOOL_INTERRUPTED: "));
    assert_eq!(log[at - 2], "step/end 1 cancelled: interrupted");
    assert_eq!(log[at - 1], "turn/end 1 cancelled: interrupted");
    bench.requests_are_rebuilt(&model);
}

/// INS-2: a context that a dropped turn had claimed and not let in is queued again.
#[tokio::test]
async fn a_turn_dropped_in_its_pre_step_leaves_the_contexts_queued() {
    let bench = Bench::new();
    let (agent, _) = bench.agent([]);
    agent.inbox().push_next_step(context("c"));
    let stuck = crate::support::stage(|_, _, _| Box::pin(std::future::pending()));
    let _stage = bench.service.on_pre_step(0, stuck);
    assert!(agent.prompt("hi", &Cancel::new()).now_or_never().is_none());
    let pending: Vec<_> = agent.inbox().pending();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].content, [ContentBlock::text("c")]);
}

/// RUN-16: compaction puts a summary in the place of whole turns, and nothing else changes.
#[tokio::test]
async fn a_compaction_replaces_whole_turns_by_a_summary() {
    let bench = Bench::new().with(echo());
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("echo", json!({"text": "a"}))]),
        ScriptedReply::text("one"),
        ScriptedReply::text("two"),
        ScriptedReply::text("three").expecting(RequestExpectation {
            messages: Some(4),
            excludes: vec!["first".to_owned()],
            ..RequestExpectation::default()
        }),
    ]);
    prompt(&agent, "first").await.unwrap();
    prompt(&agent, "second").await.unwrap();
    let log = bench.log();
    let second = log.iter().position(|line| line == "turn/start 2").unwrap() as u64 + 1;
    let summary = || vec![ContentBlock::text("They met.")];
    for cut in [0, 1, second - 1, second + 1, log.len() as u64 + 2, u64::MAX] {
        let error = within(agent.compact(summary(), cut)).await.unwrap_err();
        assert_eq!(error.code(), code::COMPACTION_INVALID, "{cut}: {error}");
    }
    assert_eq!(bench.log(), log);
    within(agent.compact(summary(), second)).await.unwrap();
    prompt(&agent, "third").await.unwrap();
    model.finish().unwrap();
    let last = model.requests().pop().unwrap();
    let texts = serde_json::to_value(&last.messages).unwrap();
    assert_eq!(texts[0]["content"][0]["text"], "They met.");
    assert_eq!(texts[1]["content"][0]["text"], "second");
    bench.requests_are_rebuilt(&model);
}
