//! Which event may follow which.

use super::*;

/// Every event of `tail` but the last may follow; the last one may not, and nothing has changed.
#[track_caller]
fn refused(mut log: Log, tail: impl IntoIterator<Item = EventBody>, words: &str) {
    let mut tail: Vec<_> = tail.into_iter().collect();
    let last = tail.pop().unwrap();
    push(&mut log, tail);
    let before = format!("{log:?}");
    let (seq, kind) = (log.last_seq() + 1, last.kind());
    let error = log.push(last, 0).unwrap_err();
    assert_eq!((error.seq, error.kind), (seq, kind));
    let message = error.to_string();
    assert!(
        message.contains(&format!("event {seq} ({kind})")),
        "{message}"
    );
    assert!(message.contains(words), "{words:?} is not in: {message}");
    assert_eq!(format!("{log:?}"), before, "nothing has changed");
}

fn in_step() -> Log {
    let mut log = Log::new();
    push(&mut log, [turn_start(1), step_start(1, 1)]);
    log
}

fn request_event(turn: u64, step: u64) -> EventBody {
    EventBody::StepRequest {
        turn,
        step,
        system: None,
        tools: None,
        sha1: String::new(),
    }
}

/// RUN-11: turns are counted, and one ends before the next begins.
#[test]
fn turns_nest_and_are_counted() {
    refused(Log::new(), [turn_start(2)], "the turn is 2, and 1 is due");
    refused(Log::new(), [turn_end(1)], "no turn is open");
    refused(
        Log::new(),
        [turn_start(1), turn_start(2)],
        "turn 1 has not ended",
    );
    refused(
        Log::new(),
        [turn_start(1), turn_end(2)],
        "the turn is 2, and 1 is due",
    );
    refused(in_step(), [turn_end(1)], "step 1 of turn 1 has not ended");
    refused(whole_turn(), [turn_start(3)], "the turn is 3, and 2 is due");
    refused(whole_turn(), [turn_end(1)], "no turn is open");
}

/// RUN-11: so are steps, within their turn.
#[test]
fn steps_nest_and_are_counted() {
    refused(Log::new(), [step_start(1, 1)], "no turn is open");
    refused(
        Log::new(),
        [turn_start(1), step_start(1, 2)],
        "the step is 2, and 1 is due",
    );
    refused(
        Log::new(),
        [turn_start(1), step_start(2, 1)],
        "the turn is 2, and 1 is due",
    );
    refused(
        in_step(),
        [step_start(1, 2)],
        "step 1 of turn 1 has not ended",
    );
    refused(in_step(), [step_end(1, 2)], "the step is 2, and 1 is due");
    refused(
        in_step(),
        [step_end(1, 1), step_end(1, 1)],
        "no step is open",
    );
    let mut log = whole_turn();
    push(
        &mut log,
        [
            turn_start(2),
            step_start(2, 1),
            step_end(2, 1),
            step_start(2, 2),
        ],
    );
}

/// RUN-12: one answer to the request of a step; the same question may be asked again before it.
#[test]
fn an_answer_follows_a_request() {
    refused(Log::new(), [answer("", &[])], "no step is open");
    refused(in_step(), [answer("", &[])], "was not asked");
    refused(
        in_step(),
        [request_event(1, 2)],
        "the step is 2, and 1 is due",
    );
    refused(answered(&[]), [answer("", &[])], "has answered");
    refused(
        answered(&[]),
        [request_event(1, 1)],
        "has its answer already",
    );
    let mut log = in_step();
    ask(&mut log);
    ask(&mut log);
    push(&mut log, [answer("at last", &[]), step_end(1, 1)]);
    let mut log = in_step();
    ask(&mut log);
    push(&mut log, [step_end(1, 1), turn_end(1)]);
}

/// INS-23: nothing stands between a question and its answer, nor among the results of a message.
#[test]
fn messages_stand_before_a_request_or_after_all_results() {
    push(&mut Log::new(), [user("from before the first turn")]);
    let mut log = in_step();
    ask(&mut log);
    refused(log.clone(), [user("x")], "has not answered");
    let mut log = Log::new();
    push(&mut log, [turn_start(1), step_start(1, 1), user("hello")]);
    ask(&mut log);
    refused(log, [compaction(1, 3)], "has not answered");
    refused(
        answered(&["c1"]),
        [user("x")],
        "call \"c1\" has no result yet",
    );
    let calls = [
        call("c1", None),
        call("c2", None),
        result("c1", None),
        user("x"),
    ];
    refused(
        answered(&["c1", "c2"]),
        calls,
        "call \"c2\" has no result yet",
    );
    let calls = [
        call("c1", None),
        result("c1", None),
        user("x"),
        step_end(1, 1),
    ];
    push(&mut answered(&["c1"]), calls);
}

/// RUN-13: results come in the model's order, each after its call, and all before the step ends.
#[test]
fn results_have_calls_and_come_in_the_model_s_order() {
    let both = || answered(&["c1", "c2"]);
    refused(in_step(), [call("c1", None)], "has not answered");
    refused(Log::new(), [result("c1", None)], "no step is open");
    refused(both(), [call("c3", None)], "asks for no call \"c3\"");
    refused(
        both(),
        [call("c1", None), call("c1", None)],
        "asks for no call \"c1\"",
    );
    refused(both(), [result("c1", None)], "call \"c1\" was not made");
    let calls = [call("c2", None), call("c1", None), result("c2", None)];
    refused(
        both(),
        calls,
        "call \"c1\" comes first in the model's order",
    );
    let calls = [call("c1", None), result("c1", None), result("c1", None)];
    refused(both(), calls, "call \"c2\" comes first");
    refused(
        answered(&[]),
        [result("c1", None)],
        "no call waits for a result",
    );
    refused(both(), [step_end(1, 1)], "call \"c1\" has no result yet");
    let long = "x".repeat(100_000);
    let error = both().push(call(&long, None), 0).unwrap_err();
    assert!(error.to_string().len() < 300);
}

/// A model may give two calls the same id: each has a result of its own.
#[test]
fn calls_of_one_id_are_counted() {
    let mut log = answered(&["c", "c"]);
    push(&mut log, [call("c", None), call("c", None)]);
    push(
        &mut log,
        [result("c", None), result("c", None), step_end(1, 1)],
    );
    refused(
        answered(&["c", "c"]),
        [call("c", None), result("c", None), result("c", None)],
        "call \"c\" was not made",
    );
}

/// RUN-15: a nested call has a running call above it; what is left of it ends with that.
#[test]
fn nested_calls_run_within_their_call() {
    let running = || {
        let mut log = answered(&["c1"]);
        push(&mut log, [call("c1", None)]);
        log
    };
    refused(
        answered(&["c1"]),
        [call("n", Some("c1"))],
        "\"c1\", which is said to make it",
    );
    refused(
        running(),
        [result("n", Some("c1"))],
        "\"c1\" has made no call \"n\"",
    );
    let once = [call("n", Some("c1")), result("n", Some("c1"))];
    let twice = once.into_iter().chain([result("n", Some("c1"))]);
    refused(running(), twice, "has made no call");
    let after = [
        call("n", Some("c1")),
        result("c1", None),
        result("n", Some("c1")),
    ];
    refused(running(), after, "has made no call");
    let mut log = running();
    push(&mut log, [call("n", Some("c1")), call("n", Some("c1"))]);
    push(&mut log, [result("n", Some("c1")), result("n", Some("c1"))]);
    push(&mut log, [result("c1", None), step_end(1, 1)]);
}

/// A message with very many calls costs time in their number, not in its square.
#[test]
fn many_calls_are_kept_in_order() {
    let ids: Vec<String> = (0..50_000).map(|number| format!("c{number}")).collect();
    let refs: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut log = answered(&refs);
    for id in refs.iter().rev() {
        push(&mut log, [call(id, None)]);
    }
    for id in &refs {
        push(&mut log, [result(id, None)]);
    }
    push(&mut log, [step_end(1, 1)]);
}

/// RUN-11: after a crash the calls without a result get one, so that the next request is valid.
#[test]
fn what_is_open_can_be_ended_anywhere() {
    let whole = whole_turn();
    for count in 0..=whole.events().len() {
        let mut log = Log::new();
        for event in &whole.events()[..count] {
            log.push(event.body.clone(), 0).unwrap();
        }
        let owed = log.unanswered();
        let closing = log.closing();
        let results: Vec<_> = closing
            .iter()
            .filter_map(|body| match body {
                EventBody::ToolResult(result) => Some(result),
                _ => None,
            })
            .collect();
        assert_eq!(results.len(), owed.len());
        for (result, call) in results.iter().zip(&owed) {
            assert_eq!(result.call_id, call.id);
            assert!(result.is_error);
            assert_eq!(result.code.as_deref(), Some("TOOL_INTERRUPTED"));
            let text = result.content[0].as_text();
            assert!(text.contains("the call was interrupted"), "{text}");
        }
        push(&mut log, closing);
        assert_eq!((log.open_turn(), log.open_step()), (None, None));
        assert!(log.unanswered().is_empty());
        assert!(log.closing().is_empty());
        let turn = log.next_turn();
        push(
            &mut log,
            [turn_start(turn), step_start(turn, 1), user("go on")],
        );
        ask(&mut log);
        log.verify().unwrap();
    }
    assert_eq!(answered(&["c1", "c2"]).unanswered().len(), 2);
}
