//! RUN-12, INS-23: what reached the model, held against what a scenario demands. Each demand is met
//! once and missed once.

use serde_json::json;

use super::*;

fn user(text: &str) -> Value {
    json!({"role": "user", "text": text})
}

fn sourced(text: &str, source: &Value) -> Value {
    json!({"role": "user", "text": text, "source": source})
}

fn calling(name: &str) -> Value {
    json!({"role": "assistant", "text": "", "toolCalls": [
        {"id": "c1", "name": name, "arguments": {"file_path": "a"}},
    ]})
}

fn result(text: &str, error: bool) -> Value {
    json!({"role": "tool", "text": text, "toolCallId": "c1", "isError": error})
}

fn request_of(messages: &[Value]) -> Value {
    json!({"system": "Be brief.\nUse read.", "messages": messages, "tools": ["read", "edit"]})
}

/// A turn with one call: two requests, a context behind the result.
fn turn_value() -> Value {
    let baseline = sourced(
        "Instructions from: A\nbe nice",
        &json!({"kind": "workspace-instructions", "baseline": true, "changes": [{"action": "set", "path": "A"}]}),
    );
    let first = [user("Do it"), baseline];
    let mut second = first.to_vec();
    second.extend([
        calling("read"),
        result("1: x", false),
        user("Additional instructions from: b/A\nbe nice"),
    ]);
    json!({
        "requests": [request_of(&first), request_of(&second)],
        "ended": "completed",
        "text": "done",
    })
}

fn judged_as(check: &Value, value: &Value, turn: &Turn, foreign: bool) -> Result<(), Mismatch> {
    let check: Outcome = serde_json::from_value(check.clone()).expect("a demand");
    judge(&check, value, turn, foreign)
}

fn of_two() -> Turn {
    Turn {
        replies: 2,
        before: None,
    }
}

#[track_caller]
fn met(check: &Value) {
    let judged = judged_as(check, &turn_value(), &of_two(), false);
    assert_eq!(judged, Ok(()), "{check}");
}

#[track_caller]
fn missed(check: &Value, expected: &str) {
    let judged = judged_as(check, &turn_value(), &of_two(), false);
    let mismatch = judged.expect_err("it is missed");
    assert!(
        mismatch.expected.contains(expected),
        "{check}: {} / {}",
        mismatch.expected,
        mismatch.got
    );
}

#[test]
fn numbers_of_requests_and_ends_of_turns() {
    met(&json!({"ok": true}));
    met(&json!({"ended": "completed", "requests": {"count": 2}}));
    met(&json!({"requests": {"count": {"min": 1, "max": 2}}}));
    missed(&json!({"requests": {"count": 1}}), "1 requests");
    missed(&json!({"ended": "cancelled"}), "a turn that is cancelled");
    missed(&json!({"ok": false}), "does not complete");
    missed(
        &json!({"requests": {"nth": {"3": {"contains": ["x"]}}}}),
        "a request 3",
    );
    // A reply that was not used is missed, unless the number of requests was told.
    let turn = Turn {
        replies: 3,
        before: None,
    };
    let told = judged_as(&json!({"ok": true}), &turn_value(), &turn, false);
    assert!(
        told.expect_err("one is left")
            .expected
            .contains("3 requests")
    );
    let check = json!({"requests": {"count": 2}});
    assert_eq!(judged_as(&check, &turn_value(), &turn, false), Ok(()));
    // What ended in another way says how.
    let failed =
        json!({"requests": [], "ended": "failed", "code": "MODEL_FAILED", "message": "no"});
    let told = judged_as(
        &json!({"requests": {"extending": true}}),
        &failed,
        &turn,
        false,
    );
    assert_eq!(
        told.expect_err("it failed").got,
        "it is failed, MODEL_FAILED: no"
    );
    let check = json!({"ended": "failed", "requests": {"each": {"contains": ["x"]}}});
    let told = judged_as(&check, &failed, &turn, false);
    assert_eq!(
        told.expect_err("there is none").expected,
        "a request to the model"
    );
    let nonsense = judged_as(&json!({"ok": true}), &json!({"requests": 1}), &turn, false);
    assert!(
        nonsense
            .expect_err("no outcome")
            .expected
            .contains("subject protocol")
    );
}

#[test]
fn whole_messages_and_places_for_others() {
    let all = |first: &str| {
        json!({"requests": {"last": {"messages": [
            {"role": "user", "text": first}, "user", {"role": "assistant", "calls": ["read"]},
            {"role": "tool", "text": "1: x", "error": false}, "user",
        ]}}})
    };
    met(&all("Do it"));
    missed(&all("Do"), "message 1: the text \"Do\"");
    met(
        &json!({"requests": {"last": {"messages": ["...", "tool", {"role": "user", "begins": "Add"}]}}}),
    );
    met(&json!({"requests": {"nth": {"1": {"messages": ["user", "...", "user"]}}}}));
    missed(
        &json!({"requests": {"last": {"messages": ["...", "tool"]}}}),
        "messages [",
    );
    missed(
        &json!({"requests": {"last": {"messages": ["user"]}}}),
        "1 messages",
    );
    missed(
        &json!({"requests": {"nth": {"1": {"messages": ["user", "assistant"]}}}}),
        "role assistant",
    );
    met(
        &json!({"requests": {"nth": {"1": {"new": ["user", "user"]}, "2": {"new": ["assistant", "tool", "user"]}}}}),
    );
    missed(
        &json!({"requests": {"last": {"new": ["assistant", "tool"]}}}),
        "2 messages",
    );
}

#[test]
fn each_demand_on_a_message_can_be_missed() {
    let of = |role: &str, demand: &Value| {
        let mut said = json!({"role": role});
        said.as_object_mut()
            .expect("an object")
            .extend(demand.as_object().expect("one").clone());
        json!({"requests": {"last": {"messages": ["user", "...", said, "user"]}}})
    };
    for (demand, wrong) in [
        (json!({"text": "1: x"}), json!({"text": "1: y"})),
        (json!({"contains": ["1:"]}), json!({"contains": ["2:"]})),
        (json!({"lacks": ["y"]}), json!({"lacks": ["X"]})),
        (json!({"once": ["x"]}), json!({"once": ["y"]})),
        (json!({"order": ["1", "x"]}), json!({"order": ["x", "1"]})),
        (json!({"begins": "1"}), json!({"begins": "x"})),
        (json!({"ends": "x"}), json!({"ends": "1"})),
        (json!({"at_most_bytes": 4}), json!({"at_most_bytes": 3})),
        (json!({"error": false}), json!({"error": true})),
    ] {
        met(&of("tool", &demand));
        missed(&of("tool", &wrong), "messages [");
    }
    let first = |said: Value| json!({"requests": {"nth": {"1": {"messages": ["user", said]}}}});
    let source = |source: Value| first(json!({"role": "user", "source": source}));
    met(&source(
        json!({"baseline": true, "changes": [{"path": "A"}]}),
    ));
    missed(&source(json!({"baseline": false})), "the source");
    // A list is compared whole.
    missed(&source(json!({"changes": []})), "the source");
}

#[test]
fn demands_on_all_messages_together() {
    let last = |check: Value| json!({"requests": {"last": check}});
    let each = |check: Value| json!({"requests": {"each": check}});
    met(&last(json!({"contains": ["b/A"], "lacks": ["nobody"]})));
    missed(&last(json!({"contains": ["c/A"]})), "contains \"c/A\"");
    missed(&last(json!({"lacks": ["B/a"]})), "no message that contains");
    met(&each(json!({"once": ["Do it"]})));
    missed(
        &each(json!({"once": ["be nice"]})),
        "in request 2: \"be nice\" 1 times",
    );
    met(&last(json!({"times": {"be nice": 2}})));
    missed(&last(json!({"times": {"be nice": 0}})), "0 times");
    met(&last(json!({"order": ["Do it", "from: A", "1: x", "b/A"]})));
    missed(
        &last(json!({"order": ["b/A", "1: x"]})),
        "\"1: x\" somewhere behind \"b/A\"",
    );
    met(&each(
        json!({"system": {"contains": ["brief"], "order": ["Be", "Use"]}}),
    ));
    missed(
        &each(json!({"system": {"lacks": ["use"]}})),
        "a system prompt: a text without",
    );
    missed(&each(json!({"system": {"text": "Be"}})), "the text \"Be\"");
    met(&each(json!({"tools": ["edit", "read"]})));
    missed(&each(json!({"tools": ["read"]})), "the tools [read]");
}

#[test]
fn a_request_extends_the_one_before() {
    met(&json!({"requests": {"extending": true}}));
    missed(&json!({"requests": {"extending": false}}), "does not begin");
    let mut value = turn_value();
    value["requests"][1]["messages"][1]["text"] = "Instructions from: A\nbe Nice".into();
    let extending = json!({"requests": {"extending": true}});
    let told = judged_as(&extending, &value, &of_two(), false).expect_err("one byte differs");
    assert_eq!(told.expected, "request 2 begins with all of the one before");
    assert!(told.got.contains("message 2 is"), "{}", told.got);
    // The source is not what the model sees.
    let mut value = turn_value();
    value["requests"][1]["messages"][1]["source"] = Value::Null;
    assert_eq!(judged_as(&extending, &value, &of_two(), false), Ok(()));
    for (place, now) in [
        ("system", json!("x")),
        ("tools", json!([])),
        ("messages", json!([])),
    ] {
        let mut value = turn_value();
        value["requests"][1][place] = now;
        assert!(
            judged_as(&extending, &value, &of_two(), false).is_err(),
            "{place}"
        );
    }
    // The first one is held against the session's turn before.
    let before = last(&turn_value());
    let turn = Turn { replies: 2, before };
    let told = judged_as(&extending, &turn_value(), &turn, false).expect_err("it begins anew");
    assert!(told.expected.starts_with("request 1 "), "{}", told.expected);
}

#[test]
fn sources_are_not_demanded_of_a_foreign_subject_that_tells_none() {
    let mut value = turn_value();
    for request in value["requests"].as_array_mut().expect("a list") {
        request["messages"][1]
            .as_object_mut()
            .expect("one")
            .remove("source");
    }
    let check = json!({"requests": {"nth": {"1": {"messages": [
        "user", {"role": "user", "source": {"kind": "workspace-instructions"}},
    ]}}}});
    assert_eq!(judged_as(&check, &value, &of_two(), true), Ok(()));
    assert!(judged_as(&check, &value, &of_two(), false).is_err());
    let check = json!({"requests": {"nth": {"1": {"messages": [
        "user", {"role": "user", "source": {"kind": "other"}},
    ]}}}});
    assert!(judged_as(&check, &turn_value(), &of_two(), true).is_err());
}

/// RUN-11, RUN-14.
#[test]
fn events_of_a_log_are_a_sequence() {
    let log =
        json!({"events": [{"type": "turn/start"}, {"type": "user/message"}, {"type": "turn/end"}]});
    let judged = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        events(&wanted, &log)
    };
    assert_eq!(judged(&["turn/start", "...", "turn/end"]), Ok(()));
    let told = judged(&["turn/start", "turn/end"]).expect_err("one is between");
    assert!(
        told.got.contains("user/message should not come as event 2"),
        "{}",
        told.got
    );
    assert!(judged(&["...", "step/end"]).is_err());
    assert!(events(&[], &json!({})).is_err());
}

#[test]
fn a_snapshot_shows_what_is_new() {
    let text = shown(&turn_value(), None);
    assert_eq!(
        text,
        "━━ request 1\ntools: read, edit\n[user]\nDo it\n[user]\nInstructions from: A\nbe nice\n\
         ━━ request 2\n… 2 as before\n[assistant]\n→ read {\"file_path\":\"a\"}\n[tool]\n1: x\n\
         [user]\nAdditional instructions from: b/A\nbe nice\n━━ completed"
    );
    let before = last(&turn_value());
    let again = shown(&turn_value(), before.as_ref());
    assert!(
        again.contains("… 2 as before\n… 3 not there any more\n"),
        "{again}"
    );
}
