#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "a test hands over what it has just written down, in the form it is taken in"
)]

use serde_json::{Value, json};

use super::*;
use crate::run::trace::tests::{from, started, to, trace};

fn scenario(members: Value) -> Scenario {
    let mut whole = json!({"title": "t", "clauses": ["OPN-1"], "profile": "transient"});
    if let (Value::Object(whole), Value::Object(members)) = (&mut whole, members) {
        whole.extend(members);
    }
    serde_json::from_value(whole).unwrap()
}

/// A case of a foreign or an own harness with nothing on the wire.
fn quiet(members: Value, stop: Option<Stop>, left: &Left, foreign: bool) -> Judgement {
    judge(&Seen {
        scenario: &scenario(members),
        trace: &trace([]),
        stop,
        left,
        foreign,
    })
}

fn failed(clauses: &[&str]) -> Option<Stop> {
    Some(Stop::Failed(Failure {
        clauses: clauses.iter().map(|&id| id.to_owned()).collect(),
        message: "it is wrong".to_owned(),
        expected: "this".to_owned(),
        got: "that".to_owned(),
        seq: Some(4),
    }))
}

#[test]
fn a_stop_has_its_verdict() {
    let none = Left::default();
    let what = || "x".to_owned();
    for (stop, verdict, message) in [
        (None, Verdict::Pass, ""),
        (
            Some(Stop::NotApplicable(what())),
            Verdict::NotApplicable,
            "x",
        ),
        (Some(Stop::Fault(what())), Verdict::HarnessError, "x"),
        (Some(Stop::Gone(what())), Verdict::Crash, "x"),
        (
            Some(Stop::Timeout(what())),
            Verdict::Timeout,
            "waited in vain for x",
        ),
        (Some(Stop::Untestable(what())), Verdict::Untestable, "x"),
        (failed(&[]), Verdict::Fail, "it is wrong"),
    ] {
        let judgement = quiet(json!({}), stop, &none, false);
        assert_eq!((judgement.verdict, &*judgement.message), (verdict, message));
    }
}

#[test]
fn a_failure_weighs_what_its_clauses_weigh() {
    let none = Left::default();
    let verdict = |members: Value, clauses: &[&str], foreign| {
        quiet(members, failed(clauses), &none, foreign).verdict
    };
    // CAN-8 is a SHOULD, CAN-3 a MUST, HST-8 a MUST that is policy as a whole.
    assert_eq!(verdict(json!({}), &["CAN-8"], false), Verdict::Note);
    assert_eq!(
        verdict(json!({}), &["CAN-8", "CAN-3"], false),
        Verdict::Fail
    );
    assert_eq!(
        verdict(json!({"clauses": ["CAN-8"]}), &[], false),
        Verdict::Note
    );
    assert_eq!(verdict(json!({}), &["HST-8"], false), Verdict::Fail);
    assert_eq!(verdict(json!({}), &["HST-8"], true), Verdict::Note);
    assert_eq!(verdict(json!({}), &["CAN-3"], true), Verdict::Fail);
    let lenient = json!({"lenient": ["CAN-3"]});
    assert_eq!(verdict(lenient.clone(), &["CAN-3"], true), Verdict::Note);
    assert_eq!(verdict(lenient, &["CAN-3"], false), Verdict::Fail);
    let judgement = quiet(json!({}), failed(&["CAN-3"]), &none, false);
    assert_eq!(judgement.clauses, ["CAN-3"]);
    assert_eq!(judgement.decisive, Some(4));
    assert_eq!(judgement.expected.as_deref(), Some("this"));
    assert_eq!(judgement.got.as_deref(), Some("that"));
}

#[test]
fn what_is_missing_makes_a_case_untestable_and_no_pass() {
    let wants = json!({"requires": [{"received": "hover"}]});
    let judgement = quiet(wants, None, &Left::default(), false);
    assert_eq!(judgement.verdict, Verdict::Untestable);
    assert_eq!(judgement.expected.as_deref(), Some("{received: hover}"));
}

#[test]
fn whatever_is_left_behind_fails_the_case() {
    let process = Left {
        processes: vec![(7, "fake".to_owned())],
        ..Left::default()
    };
    let file = Left {
        files: vec!["x.tmp".to_owned()],
        ..Left::default()
    };
    let descriptor = Left {
        descriptors: vec!["9 → pipe:[1]".to_owned()],
        ..Left::default()
    };
    for (left, what) in [
        (&process, "a process is left behind: 7 fake"),
        (&file, "a temporary file is left behind: x.tmp"),
        (&descriptor, "a descriptor is left behind: 9 → pipe:[1]"),
    ] {
        let judgement = quiet(json!({}), None, left, false);
        assert_eq!(judgement.verdict, Verdict::Fail);
        assert_eq!(judgement.message, what);
        assert_eq!(judgement.clauses, ["DIS-4"]);
    }
    let escapes = json!({"declares": [{"clause": "ENV-6"}]});
    assert_eq!(
        quiet(escapes.clone(), None, &process, false).verdict,
        Verdict::Pass
    );
    assert_eq!(
        quiet(escapes.clone(), None, &file, false).verdict,
        Verdict::Fail
    );
    let foreign = quiet(escapes.clone(), None, &Left::default(), true);
    assert_eq!(foreign.verdict, Verdict::Pass);
    let judgement = quiet(escapes, None, &Left::default(), false);
    assert_eq!(judgement.verdict, Verdict::HarnessError);
    assert!(
        judgement.message.contains("take the declaration out"),
        "{}",
        judgement.message
    );
}

/// A server that answers a request nobody made, and a client that opens before `initialize`.
fn wild(client: bool, server: bool, client_first: bool, declares: Value) -> Judgement {
    let open = to(
        json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
            "textDocument": {"uri": "file:///a", "languageId": "x", "version": 1, "text": ""},
        }}),
    );
    let answer = from(json!({"jsonrpc": "2.0", "id": 99, "result": null}));
    let mut events = vec![started(1)];
    let mut wrong = Vec::new();
    wrong.extend(client.then_some(open));
    wrong.extend(server.then_some(answer));
    if !client_first {
        wrong.reverse();
    }
    events.extend(wrong);
    judge(&Seen {
        scenario: &scenario(json!({"declares": declares})),
        trace: &trace(events),
        stop: None,
        left: &Left::default(),
        foreign: false,
    })
}

#[test]
fn whoever_breaks_a_rule_first_is_to_blame() {
    let none = || json!([]);
    assert_eq!(wild(true, false, true, none()).verdict, Verdict::Fail);
    let ours = wild(false, true, true, none());
    assert_eq!(ours.verdict, Verdict::HarnessError);
    assert!(
        ours.message.starts_with("the fake server breaks"),
        "{}",
        ours.message
    );
    assert_eq!(wild(true, true, true, none()).verdict, Verdict::Fail);
    assert_eq!(
        wild(true, true, false, none()).verdict,
        Verdict::HarnessError
    );
}
