#![expect(
    clippy::needless_pass_by_value,
    reason = "a test hands over what it has just written down"
)]

use serde_json::{Value, json};

use super::*;
use crate::run::trace::tests::{ended, from, note, started, to, trace};

fn told(method: &str) -> (Option<u32>, EventBody) {
    to(json!({"jsonrpc": "2.0", "method": method, "params": {"n": 1}}))
}

fn scenario(members: Value) -> Scenario {
    let mut whole = json!({"title": "t", "clauses": ["OPN-1"], "profile": "transient"});
    if let (Value::Object(whole), Value::Object(members)) = (&mut whole, members) {
        whole.extend(members);
    }
    serde_json::from_value(whole).unwrap()
}

/// What fails of a scenario with these members.
fn failures(members: Value, trace: &Trace) -> Vec<Failure> {
    all(&scenario(members), trace)
}

/// The first member holds, the second does not, and the failure names this event and says this.
#[track_caller]
fn holds_and_fails(trace: &Trace, right: Value, wrong: Value, seq: Option<u64>, message: &str) {
    assert_eq!(failures(right.clone(), trace), [], "{right}");
    let failed = failures(wrong.clone(), trace);
    assert_eq!(failed.len(), 1, "{wrong}: {failed:?}");
    assert!(failed[0].message.contains(message), "{:?}", failed[0]);
    assert_eq!(failed[0].seq, seq, "{:?}", failed[0]);
    assert!(!failed[0].expected.is_empty() && !failed[0].got.is_empty());
}

#[test]
fn sequences_have_gaps_choices_and_optional_messages() {
    let got = ["initialize", "initialized", "didOpen", "hover", "didClose"];
    let fits = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|&text| text.to_owned()).collect();
        sequence(&wanted, &got)
    };
    assert_eq!(fits(&got), Ok(()));
    assert_eq!(fits(&["..."]), Ok(()));
    assert_eq!(fits(&["...", "hover", "..."]), Ok(()));
    assert_eq!(fits(&["initialize", "...", "didClose"]), Ok(()));
    assert_eq!(
        fits(&[
            "initialize",
            "initialized",
            "didOpen",
            "hover|definition",
            "didClose",
            "exit?"
        ]),
        Ok(())
    );
    assert_eq!(
        fits(&["...", "didOpen?", "didOpen", "hover", "didClose"]),
        Ok(())
    );
    assert_eq!(fits(&["initialize", "didOpen"]), Err(1));
    assert_eq!(
        fits(&["initialize", "initialized", "didOpen", "hover"]),
        Err(4)
    );
    assert_eq!(fits(&["...", "shutdown"]), Err(5));
    assert_eq!(fits(&["...", "didClose", "hover"]), Err(5));
    assert_eq!(sequence(&[], &[]), Ok(()));
    assert_eq!(sequence(&["a".to_owned()], &[]), Err(0));
}

#[test]
fn long_sequences_take_linear_time() {
    let got = vec!["hover"; 100_000];
    let wanted: Vec<String> = ["...", "hover", "...", "hover?", "...", "exit"]
        .iter()
        .map(|&text| text.to_owned())
        .collect();
    assert_eq!(sequence(&wanted, &got), Err(100_000));
}

#[test]
fn the_wire_is_held_against_its_sequences() {
    let trace = trace([
        started(1),
        told("initialize"),
        told("exit"),
        from(json!({"method": "x"})),
    ]);
    holds_and_fails(
        &trace,
        json!({"wire": {"1": ["initialize", "exit"]}}),
        json!({"wire": {"1": ["initialize", "shutdown", "exit"]}}),
        Some(2),
        "exit should not come as message 2",
    );
    holds_and_fails(
        &trace,
        json!({"wire": {"1": {"any_of": [["exit"], ["...", "exit"]]}}}),
        json!({"wire": {"1": {"any_of": [["initialize", "exit", "x"], ["exit"]]}}}),
        Some(2),
        "messages are missing after 2",
    );
    holds_and_fails(
        &trace,
        json!({"wire": {"2": []}}),
        json!({"wire": {"2": ["initialize"]}}),
        None,
        "messages to process 2",
    );
}

#[test]
fn messages_are_counted_and_looked_into() {
    let trace = trace([told("hover"), told("hover"), told("exit")]);
    let of = |check: Value| json!({"messages": [check]});
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "hover"}, "count": 2})),
        of(json!({"of": {"received": "hover"}, "count": {"max": 1}})),
        Some(1),
        "2 came",
    );
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "shutdown"}, "count": 0})),
        of(json!({"of": {"received": "shutdown"}})),
        None,
        "0 came",
    );
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "hover"}, "at": {"/params/n": 1}})),
        of(json!({"of": {"received": "hover"}, "at": {"/params/n": 2}})),
        Some(0),
        "/params/n",
    );
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "hover", "nth": 2}, "absent": ["/id"]})),
        of(json!({"of": {"received": "hover", "nth": 2}, "absent": ["/params"]})),
        Some(1),
        "/params",
    );
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "exit"}, "header": "Content-Length: 50\r\n\r\n"})),
        of(json!({"of": {"received": "exit"}, "header": "content-length: 50\r\n\r\n"})),
        Some(2),
        "its header",
    );
    holds_and_fails(
        &trace,
        of(json!({"of": {"received": "hover", "nth": 2}})),
        of(json!({"of": {"received": "hover", "nth": 3}})),
        Some(1),
        "0 came",
    );
}

#[test]
fn a_check_of_its_own_clauses_names_them() {
    let trace = trace([told("exit")]);
    let check = json!({"of": {"received": "hover"}, "clauses": ["OPN-13"]});
    let failed = failures(json!({"messages": [check]}), &trace);
    assert_eq!(failed[0].clauses, ["OPN-13"]);
}

#[test]
fn events_come_in_order() {
    let trace = trace([told("a"), told("b"), told("a"), started(1)]);
    let order = |names: &[&str]| {
        let patterns: Vec<Value> = names.iter().map(|name| json!({"received": name})).collect();
        json!({"order": patterns})
    };
    let late = "{received: b} only before that";
    holds_and_fails(
        &trace,
        order(&["a", "b", "a"]),
        order(&["a", "b", "b"]),
        Some(1),
        late,
    );
    let none = "no {received: c}";
    holds_and_fails(
        &trace,
        order(&["b", "a"]),
        order(&["b", "c"]),
        Some(1),
        none,
    );
    holds_and_fails(
        &trace,
        json!({"order": [{"received": "b"}, {"received": "a", "nth": 2}]}),
        json!({"order": [{"received": "b"}, {"received": "a", "nth": 1}]}),
        Some(0),
        "only before that",
    );
}

#[test]
fn what_counts_is_when_things_happened() {
    let mut events = trace([told("late"), told("early")]).into_events();
    (events[0].at_us, events[1].at_us) = (20, 10);
    let trace = Trace::of(events);
    holds_and_fails(
        &trace,
        json!({"order": [{"received": "early"}, {"received": "late"}]}),
        json!({"order": [{"received": "late"}, {"received": "early"}]}),
        Some(1),
        "only before that",
    );
}

#[test]
fn what_should_never_happen_did_not() {
    let trace = trace([told("a"), told("b"), told("b")]);
    holds_and_fails(
        &trace,
        json!({"never": [{"received": "c"}, {"received": "b", "nth": 3}]}),
        json!({"never": [{"received": "c"}, {"received": "b", "nth": 2}]}),
        Some(2),
        "it should never happen: {nth: 2, received: b}",
    );
}

#[test]
fn what_a_case_rests_on_is_asked_for() {
    let trace = trace([told("a")]);
    let wants = |name: &str| scenario(json!({"requires": [{"received": name}]}));
    assert_eq!(missing(&wants("a"), &trace), Vec::<String>::new());
    assert_eq!(missing(&wants("b"), &trace), ["{received: b}"]);
}

#[test]
fn processes_are_counted() {
    let trace = trace([started(1), started(2)]);
    holds_and_fails(
        &trace,
        json!({"processes": 2}),
        json!({"processes": 1}),
        Some(1),
        "2 were started",
    );
    holds_and_fails(
        &trace,
        json!({"processes": {"min": 1, "max": 2}}),
        json!({"processes": {"min": 3}}),
        Some(1),
        "2 were started",
    );
}

#[test]
fn processes_end_as_they_should() {
    let asked = || note("signal", "SIGTERM came", json!({"signal": 15}));
    let ends = [
        ("exit 0", trace([ended(1, Some(0), None)])),
        (
            "exit 0 after a signal",
            trace([asked(), ended(1, Some(0), None)]),
        ),
        ("terminated", trace([asked(), ended(1, None, Some(15))])),
        ("killed", trace([ended(1, None, None)])),
        (
            "killed after a signal",
            trace([asked(), ended(1, None, None)]),
        ),
        ("killed itself", trace([ended(1, None, Some(9))])),
    ];
    for (wanted, fitting) in [
        (json!({"exit": 0}), vec!["exit 0"]),
        (json!({"exit": 1}), vec![]),
        (
            json!("terminated"),
            vec!["exit 0 after a signal", "terminated"],
        ),
        (
            json!("killed"),
            vec!["killed", "killed after a signal", "killed itself"],
        ),
        (
            json!({"any_of": [{"exit": 0}, "terminated"]}),
            vec!["exit 0", "exit 0 after a signal", "terminated"],
        ),
    ] {
        for (name, trace) in &ends {
            let failed = failures(json!({"ends": {"1": wanted}}), trace);
            assert_eq!(
                failed.is_empty(),
                fitting.contains(name),
                "{name}: {wanted}"
            );
        }
    }
    let failed = failures(json!({"ends": {"2": {"exit": 0}}}), &ends[0].1);
    assert_eq!(failed[0].message, "the end of process 2: no end");
}
