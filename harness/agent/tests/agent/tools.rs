//! The calls of a step: which overlap, the order of their results, and what models get wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dsh_agent::{LoopOptions, ScriptedCall, ScriptedReply};
use dsh_tools::ToolError;
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use crate::support::{Bench, FnTool, echo, prompt, tool};

/// The lines of the log that are results.
fn results(bench: &Bench) -> Vec<String> {
    let mut log = bench.log();
    log.retain(|line| line.starts_with("result"));
    log
}

fn raw(name: &str, id: Option<&str>, arguments: &str) -> ScriptedCall {
    ScriptedCall {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        arguments: None,
        arguments_raw: Some(arguments.to_owned()),
    }
}

fn calling(tool_calls: Vec<ScriptedCall>) -> ScriptedReply {
    ScriptedReply {
        tool_calls,
        ..ScriptedReply::default()
    }
}

/// RUN-13: three safe calls are under way at once, or this never ends; they end in the reverse order
/// and are logged in the model's.
#[tokio::test]
async fn safe_calls_overlap_and_are_logged_in_the_model_s_order() {
    let all_here = Arc::new(Barrier::new(3));
    let turns: Arc<[Notify; 3]> = Arc::default();
    let ended = Arc::new(AtomicUsize::new(0));
    let (barrier, order, counter) = (all_here, turns, Arc::clone(&ended));
    let meet = tool("meet", move |arguments, _| {
        let (barrier, order, ended) = (
            Arc::clone(&barrier),
            Arc::clone(&order),
            Arc::clone(&counter),
        );
        async move {
            let place = usize::try_from(arguments["place"].as_u64().unwrap()).unwrap();
            barrier.wait().await;
            if place < 2 {
                order[place].notified().await;
            }
            if place > 0 {
                order[place - 1].notify_one();
            }
            Ok(json!(ended.fetch_add(1, Ordering::SeqCst)))
        }
    });
    let bench = Bench::new().with(meet.overlapping());
    let (agent, model) = bench.agent([
        ScriptedReply::calls((0..3).map(|place| ("meet", json!({"place": place})))),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        results(&bench),
        [
            "result call_1_1 ok: 2",
            "result call_1_2 ok: 1",
            "result call_1_3 ok: 0"
        ]
    );
    assert_eq!(bench.told_results(), ["call_1_3", "call_1_2", "call_1_1"]);
    bench.requests_are_rebuilt(&model);
}

/// A tool that records how many of its kind, or of any, are under way.
fn counted(name: &'static str, running: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>) -> FnTool {
    let (running, most) = (Arc::clone(running), Arc::clone(most));
    tool(name, move |_, _| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(now))
        }
    })
}

/// RUN-13: an exclusive call is alone, before and after safe ones.
#[tokio::test]
async fn an_exclusive_call_is_alone() {
    let (running, most) = (Arc::default(), Arc::default());
    let bench = Bench::new()
        .with(counted("alone", &running, &Arc::default()))
        .with(counted("safe", &running, &most).overlapping());
    let order = ["safe", "safe", "alone", "alone", "safe", "safe", "alone"];
    let (agent, _) = bench.agent([
        ScriptedReply::calls(order.map(|name| (name, json!({})))),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    let numbers: Vec<_> = results(&bench)
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(numbers, ["1", "2", "1", "1", "1", "2", "1"]);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

/// RUN-13: there is a most of calls that overlap.
#[tokio::test]
async fn overlapping_calls_have_a_most() {
    let (running, most) = (Arc::default(), Arc::default());
    let bench = Bench::new().with(counted("safe", &running, &most).overlapping());
    let options = LoopOptions {
        max_parallel_calls: 3,
        ..LoopOptions::default()
    };
    let (agent, _) = bench.limited(
        options,
        [
            ScriptedReply::calls((0..20).map(|_| ("safe", json!({})))),
            ScriptedReply::text("done"),
        ],
    );
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(results(&bench).len(), 20);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// RUN-6: an unknown tool is a failed result, and the turn goes on.
#[tokio::test]
async fn an_unknown_tool_is_a_failed_result() {
    let bench = Bench::new().with(echo());
    let (agent, model) = bench.agent([
        ScriptedReply::calls([
            ("ehco", json!({})),
            ("", json!({})),
            ("echo", json!({"text": "a"})),
        ]),
        ScriptedReply::text("done"),
    ]);
    assert_eq!(prompt(&agent, "hi").await.unwrap().text, "done");
    let results = results(&bench);
    assert!(
        results[0].starts_with("result call_1_1 UNKNOWN_TOOL: "),
        "{results:?}"
    );
    assert!(results[0].contains("did you mean \"echo\"?"), "{results:?}");
    assert!(
        results[1].starts_with("result call_1_2 UNKNOWN_TOOL: "),
        "{results:?}"
    );
    assert_eq!(results[2], "result call_1_3 ok: a");
    bench.requests_are_rebuilt(&model);
}

/// RUN-13: ids that repeat, in a message or later, that are blank or huge, are told apart: each call
/// has its own result, and the model reads the ids under which they are.
#[tokio::test]
async fn repeated_ids_are_told_apart() {
    let bench = Bench::new().with(echo());
    let call = |id: &str, text: &str| ScriptedCall {
        id: Some(id.to_owned()),
        name: "echo".to_owned(),
        arguments: Some(json!({"text": text})),
        arguments_raw: None,
    };
    let (agent, model) = bench.agent([
        calling(vec![call("x", "a"), call("x", "b"), call("", "c")]),
        calling(vec![
            call("x", "d"),
            call(&"y".repeat(10_000), "e"),
            call("call-1", "f"),
        ]),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        results(&bench),
        [
            "result x ok: a",
            "result call-1 ok: b",
            "result call-2 ok: c",
            "result call-3 ok: d",
            "result call-4 ok: e",
            "result call-5 ok: f",
        ]
    );
    assert_eq!(bench.told_results().len(), 6);
    bench.requests_are_rebuilt(&model);
}

/// RUN-4: arguments that are no JSON, or nest without end, are a failed result that says so; they are
/// logged and shown to the model as they were. Each is told once (RUN-6).
#[tokio::test]
async fn arguments_that_are_no_json_are_a_failed_result() {
    let bench = Bench::new().with(echo());
    let nested = "[".repeat(100) + &"]".repeat(100);
    let endless = "{\"a\":".repeat(100_000);
    let (agent, model) = bench.agent([
        calling(vec![
            raw("echo", None, r#"{"text": "a"#),
            raw("echo", None, r#"{"text": "b"}"#),
            raw("echo", None, "please echo c"),
            raw("echo", None, ""),
            raw("echo", None, "\"{}\""),
            raw("echo", None, &nested),
            raw("echo", None, &endless),
        ]),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    let results = results(&bench);
    let says = [
        "call_1_1 INVALID_ARGS: the arguments of this call of tool \"echo\" are no JSON: EOF",
        "call_1_2 ok: b",
        "call_1_3 INVALID_ARGS: the arguments of this call of tool \"echo\" are no JSON: expected",
        "call_1_4 ok: nothing",
        "call_1_5 INVALID_ARGS: ",
        "call_1_6 INVALID_ARGS: the arguments of this call of tool \"echo\" nest deeper than 64",
        "call_1_7 INVALID_ARGS: the arguments of this call of tool \"echo\" are no JSON: recursion",
    ];
    assert_eq!(results.len(), says.len());
    for (result, says) in results.iter().zip(says) {
        assert!(result.starts_with(&format!("result {says}")), "{result}");
    }
    let mut told = bench.told_results();
    told.sort();
    assert_eq!(
        told,
        (1..=7).map(|n| format!("call_1_{n}")).collect::<Vec<_>>()
    );
    let message = serde_json::to_value(&model.requests()[1].messages[1]).unwrap();
    assert_eq!(
        message["toolCalls"][0]["arguments"],
        json!(r#"{"text": "a"#)
    );
    bench.requests_are_rebuilt(&model);
}

/// RUN-4: 10 MB of arguments are arguments.
#[tokio::test]
async fn huge_arguments_are_handed_on() {
    let measure = tool("measure", |arguments, _| async move {
        Ok(json!(arguments["text"].as_str().map(str::len)))
    });
    let bench = Bench::new().with(measure);
    let (agent, _) = bench.agent([
        ScriptedReply::calls([("measure", json!({"text": "x".repeat(10_000_000)}))]),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(results(&bench), ["result call_1_1 ok: 10000000"]);
}

/// RUN-13: calls beyond the most of one message fail and say so.
#[tokio::test]
async fn calls_have_a_most() {
    let bench = Bench::new().with(echo());
    let (agent, model) = bench.agent([
        ScriptedReply::calls((0..500).map(|n| ("echo", json!({"text": n.to_string()})))),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    let results = results(&bench);
    assert_eq!(results.len(), 500);
    assert_eq!(results[127], "result call_1_128 ok: 127");
    for refused in &results[128..] {
        let says = refused.contains(" TOO_MANY_CALLS: at most 128 calls of one message are made");
        assert!(says, "{refused}");
    }
    assert_eq!(bench.told_results().len(), 500);
    bench.requests_are_rebuilt(&model);
}

/// RUN-6: a tool that panics, one that fails, one whose value nests without end and one whose message
/// is larger than a log can keep are results.
#[tokio::test]
async fn failures_of_tools_are_results() {
    let wild = tool("wild", |_, _| async {
        let mut value = json!(0);
        for _ in 0..200 {
            value = Value::Array(vec![value]);
        }
        Ok(value)
    });
    let bench = Bench::new()
        .with(tool("bomb", |_, _| async { panic!("boom") }))
        .with(tool("sad", |_, _| async {
            Err(ToolError::failed("it is raining"))
        }))
        .with(wild)
        .with(tool("loud", |_, _| async {
            Err(ToolError::failed("x".repeat(70 << 20)))
        }));
    let (agent, model) = bench.agent([
        ScriptedReply::calls(["bomb", "sad", "wild", "loud"].map(|name| (name, json!({})))),
        ScriptedReply::text("done"),
    ]);
    assert_eq!(prompt(&agent, "hi").await.unwrap().text, "done");
    let results = results(&bench);
    assert!(
        results[0].starts_with("result call_1_1 TOOL_PANICKED: "),
        "{results:?}"
    );
    assert_eq!(results[1], "result call_1_2 TOOL_FAILED: it is raining");
    let wild = "result call_1_3 INVALID_TOOL_OUTPUT: tool \"wild\" returned a value that nests";
    assert!(results[2].starts_with(wild), "{results:?}");
    let loud = "result call_1_4 RESULT_NOT_KEPT: the result of tool \"loud\" cannot be kept: ";
    assert!(results[3].starts_with(loud), "{:.200}", results[3]);
    assert_eq!(results.len(), 4);
    bench.requests_are_rebuilt(&model);
}

/// RUN-7: a tool's own budget ends it, and the turn goes on.
#[tokio::test(start_paused = true)]
async fn a_call_that_never_ends_is_ended_by_the_timeout_policy() {
    use dsh_tools::{ExecContext, ExecuteWrapper, Invocation, Next};
    struct Policy;
    #[async_trait::async_trait]
    impl ExecuteWrapper for Policy {
        async fn around(
            &self,
            _: &Invocation,
            context: ExecContext,
            next: Next<'_>,
        ) -> Result<Value, ToolError> {
            let budget = Duration::from_secs(5);
            let ended = tokio::time::timeout(budget, next.run(context)).await;
            ended.unwrap_or_else(|_| Err(ToolError::new("TOOL_TIMEOUT", "too slow")))
        }
    }
    let bench = Bench::new().with(tool("stuck", |_, _| std::future::pending()));
    let _policy = bench.tools.wrap_execute(0, Arc::new(Policy));
    let (agent, _) = bench.agent([
        ScriptedReply::calls([("stuck", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    assert_eq!(prompt(&agent, "hi").await.unwrap().text, "done");
    assert_eq!(results(&bench), ["result call_1_1 TOOL_TIMEOUT: too slow"]);
}

/// RUN-15: what a tool calls is in the log under the model's own call, in order, and the model sees
/// none of it.
#[tokio::test]
async fn calls_within_a_call_are_logged_under_it() {
    let bench = Bench::new().with(echo());
    let registry = bench.tools.clone();
    let outer = tool("outer", move |_, context| {
        let registry = registry.clone();
        async move {
            for (id, text) in [("o/1", "inner one"), ("o/2", "inner two")] {
                let call = dsh_tools::ToolCall {
                    id: id.to_owned(),
                    name: "echo".to_owned(),
                    arguments: json!({"text": text, "fail": id == "o/2"}),
                };
                registry.call_nested(&context, call).await;
            }
            Ok(json!("outside"))
        }
    });
    let bench = bench.with(outer);
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("outer", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    prompt(&agent, "hi").await.unwrap();
    let nested: Vec<String> = bench.session.read(|log| {
        let told = |event: &std::sync::Arc<dsh_session::Event>| match &event.body {
            dsh_session::EventBody::ToolCall { call, parent } => {
                Some(format!("call {} of {parent:?}", call.id))
            }
            dsh_session::EventBody::ToolResult(result) => Some(format!(
                "result {} of {:?}: {}",
                result.call_id, result.parent, result.is_error
            )),
            _ => None,
        };
        log.events().iter().filter_map(told).collect()
    });
    assert_eq!(
        nested,
        [
            "call call_1_1 of None",
            "call o/1 of Some(\"call_1_1\")",
            "result o/1 of Some(\"call_1_1\"): false",
            "call o/2 of Some(\"call_1_1\")",
            "result o/2 of Some(\"call_1_1\"): true",
            "result call_1_1 of None: false",
        ]
    );
    assert!(!format!("{:?}", model.requests()).contains("inner"));
    bench.requests_are_rebuilt(&model);
}
