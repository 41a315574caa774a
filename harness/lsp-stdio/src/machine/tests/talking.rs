use serde_json::{Value, json};

use super::super::*;
use super::rig::{Rig, ask, policy};

fn answer_to(rig: &mut Rig, request: &Value) -> Value {
    rig.say(request);
    rig.flush();
    let mut wire = rig.take_wire();
    assert_eq!(wire.len(), 1, "{request} has exactly one answer");
    wire.remove(0)
}

/// SRQ-2…5, SRQ-7: what is answered how, while a query is in flight.
#[test]
fn requests_are_answered() {
    let (mut rig, id) = Rig::asking(policy());
    let folders = json!([{"uri": "file:///w", "name": "w"}]);
    let items =
        |count: usize| json!({"items": vec![json!({"section": "a", "scopeUri": "b"}); count]});
    for (method, params, expected) in [
        ("workspace/configuration", items(0), json!([])),
        (
            "workspace/configuration",
            items(3),
            json!([{"a": 1}, {"a": 1}, {"a": 1}]),
        ),
        (
            "client/registerCapability",
            json!({"registrations": []}),
            json!(null),
        ),
        ("client/unregisterCapability", json!(null), json!(null)),
        (
            "window/workDoneProgress/create",
            json!({"token": 1}),
            json!(null),
        ),
        ("workspace/workspaceFolders", json!(null), folders),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": 77, "method": method, "params": params});
        let expected = json!({"jsonrpc": "2.0", "id": 77, "result": expected});
        assert_eq!(answer_to(&mut rig, &request), expected);
    }
    let edit = answer_to(
        &mut rig,
        &json!({"id": "e", "method": "workspace/applyEdit", "params": {"edit": {}}}),
    );
    assert_eq!(edit["result"]["applied"], json!(false));
    assert!(edit["result"]["failureReason"].is_string());
    for unknown in [
        "workspace/executeCommand",
        "window/showMessageRequest",
        "workspace/diagnostic/refresh",
        "$/x",
        "",
    ] {
        let refusal = answer_to(
            &mut rig,
            &json!({"id": 0, "method": unknown, "params": [[]]}),
        );
        assert_eq!(
            (&refusal["error"]["code"], &refusal["id"]),
            (&json!(-32601), &json!(0))
        );
    }
    assert!(rig.machine.failure().is_none());
    rig.reply(id, &json!(null));
    assert!(rig.machine.take_settled().is_some(), "the session goes on");
}

/// SRQ-2: the configured value is null unless one is configured.
#[test]
fn an_unset_configuration_is_null() {
    let mut rig = Rig::serving(Policy {
        configuration: "null".to_owned(),
        ..policy()
    });
    let request =
        json!({"id": 1, "method": "workspace/configuration", "params": {"items": [{}, {}]}});
    assert_eq!(answer_to(&mut rig, &request)["result"], json!([null, null]));
}

/// SRQ-2: a question for more than a message may hold is refused, not answered from memory.
#[test]
fn a_configuration_request_is_bounded() {
    let mut rig = Rig::serving(Policy {
        max_message_bytes: 10_000,
        ..policy()
    });
    // The value and its comma are 8 bytes: 1250 of them are as many as a message may have.
    let most =
        json!({"id": 1, "method": "workspace/configuration", "params": {"items": vec![0; 1_250]}});
    let answer = answer_to(&mut rig, &most);
    assert_eq!(answer["result"].as_array().map(Vec::len), Some(1_250));
    for params in [
        json!({"items": vec![0; 1_251]}),
        json!({"items": vec![0; 2_000]}),
        json!({}),
        json!(null),
        json!({"items": {}}),
    ] {
        let request = json!({"id": 1, "method": "workspace/configuration", "params": params});
        assert_eq!(
            answer_to(&mut rig, &request)["error"]["code"],
            json!(-32602)
        );
    }
}

/// SRQ-1: the id comes back with its type and its digits.
#[test]
fn ids_are_repeated_to_the_digit() {
    let mut rig = Rig::serving(policy());
    for id in [
        "0",
        "-1",
        "1.0",
        "123456789012345678901234567890",
        "\"\"",
        "\"0\"",
        "\"a\\u00e9\"",
    ] {
        let body = format!(r#"{{"id":{id},"method":"x"}}"#);
        let mut frame = Vec::new();
        crate::framing::write_frame(&mut frame, 0, |out| out.extend_from_slice(body.as_bytes()));
        rig.say_raw(&frame);
        let pending = String::from_utf8(rig.machine.pending().to_vec()).unwrap();
        assert!(
            pending.contains(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error""#)),
            "{pending}"
        );
        rig.flush();
    }
}

/// SRQ-1: wherever in our own frames the pipe has stopped, an answer comes behind a whole frame.
#[test]
fn answers_never_split_a_frame() {
    let mut rig = Rig::serving(policy());
    rig.machine.begin(ask(Operation::Hover));
    let whole = rig.machine.pending().len();
    for written in 0..=whole {
        let mut rig = Rig::serving(policy());
        rig.machine.begin(ask(Operation::Hover));
        rig.write(written);
        rig.request(&json!("s"), "client/registerCapability");
        rig.flush();
        assert_eq!(
            rig.methods(),
            [
                "textDocument/didOpen",
                "textDocument/hover",
                "response \"s\""
            ]
        );
        assert!(rig.between_frames());
    }
}

/// SRQ-6: notifications are dropped, however many.
#[test]
fn notifications_are_dropped() {
    let (mut rig, id) = Rig::asking(policy());
    for number in 0..10_000 {
        rig.say(&json!({"method": "textDocument/publishDiagnostics", "params": {"n": number}}));
    }
    assert_eq!(
        (rig.machine.pending(), rig.machine.failure()),
        (&b""[..], None)
    );
    rig.reply(id, &json!(null));
    assert!(rig.machine.take_settled().is_some());
}

/// SRQ-1, FRM-9: a server that asks and does not listen is made to wait, and goes on where it was.
#[test]
fn a_flood_of_requests_is_bounded() {
    fn ask_back(rig: &mut Rig, number: usize) {
        let body = format!(r#"{{"id":{number},"method":"client/registerCapability"}}"#);
        rig.say_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    let (mut rig, id) = Rig::asking(policy());
    for number in 100_000..110_000 {
        assert!(
            rig.machine.wants_input(),
            "ten thousand are answered without making it wait"
        );
        ask_back(&mut rig, number);
    }
    let mut more = 10_000;
    while rig.machine.wants_input() {
        ask_back(&mut rig, 100_000 + more);
        more += 1;
        assert!(more < 100_000, "it is never made to wait");
    }
    assert!(rig.machine.pending().len() < 2 * MOST_ANSWER_BYTES);
    rig.flush();
    assert!(rig.machine.wants_input());
    assert_eq!(rig.take_wire().len(), more);
    rig.reply(id, &json!(null));
    assert!(rig.machine.take_settled().is_some());
}

/// SRQ-1: our own large messages never make the server wait.
#[test]
fn a_large_document_does_not_stop_reading() {
    let mut rig = Rig::serving(policy());
    let text = "x".repeat(MOST_ANSWER_BYTES + 1);
    rig.machine.begin(Ask {
        text,
        ..ask(Operation::Hover)
    });
    rig.request(&json!(1), "client/registerCapability");
    assert!(rig.machine.wants_input());
}

/// DIS-2: `shutdown`, its answer, `exit`; a request of the server is answered in between, and
/// nothing is said after `exit`.
#[test]
fn the_graceful_end() {
    for answer in [
        json!({"result": null}),
        json!({"error": {"code": -32602, "message": "?"}}),
        json!({}),
    ] {
        let mut rig = Rig::serving(policy());
        rig.machine.shutdown();
        rig.flush();
        let wire = rig.take_wire();
        assert_eq!(
            wire,
            [json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"})]
        );
        rig.request(&json!(8), "client/unregisterCapability");
        rig.flush();
        assert_eq!(rig.methods(), ["response 8"]);
        assert!(!rig.machine.has_said_exit());
        let mut message = answer;
        message["id"] = json!(2);
        rig.say(&message);
        assert!(!rig.machine.has_said_exit(), "it is not written yet");
        rig.flush();
        assert_eq!(
            rig.take_wire(),
            [json!({"jsonrpc": "2.0", "method": "exit"})]
        );
        assert!(rig.machine.has_said_exit());
        rig.request(&json!(9), "client/unregisterCapability");
        rig.machine.output_closed();
        rig.machine.exited();
        assert_eq!(
            (rig.machine.pending(), rig.machine.failure()),
            (&b""[..], None)
        );
    }
}

/// DIS-2: without an answer `exit` follows when the budget is over, and never twice.
#[test]
fn exit_follows_the_budget() {
    let mut rig = Rig::serving(policy());
    rig.machine.shutdown();
    rig.flush();
    rig.machine.shutdown_expired();
    rig.machine.shutdown_expired();
    rig.reply(2, &json!(null));
    rig.flush();
    assert_eq!(rig.methods(), ["shutdown", "exit"]);
}

/// DIS-2: a server that goes at `shutdown`, or no longer listens to `exit`, is no error.
#[test]
fn an_early_end_is_an_end() {
    for written in [0, 5] {
        let mut rig = Rig::serving(policy());
        rig.machine.shutdown();
        rig.write(written);
        rig.machine.input_closed(Some("broken pipe".to_owned()));
        assert!(rig.machine.has_said_exit());
        rig.machine.output_closed();
        rig.machine.exited();
        assert_eq!((rig.machine.failure(), rig.machine.timer()), (None, None));
    }
}

/// DIS-1, CAN-3: leaving cancels the request in flight; an answer within the patience closes the
/// document, and so does the end of the patience, without taking the server for broken.
#[test]
fn leaving_cancels_and_closes_first() {
    let patience = Duration::from_millis(100);
    for answered in [true, false] {
        let (mut rig, id) = Rig::asking(policy());
        rig.machine.leave(patience);
        rig.flush();
        assert_eq!(rig.methods(), ["$/cancelRequest"]);
        assert_eq!(rig.machine.timer().map(|timer| timer.after), Some(patience));
        if answered {
            rig.reply_error(id, -32800);
        } else {
            rig.machine.timer_fired();
        }
        assert!(!rig.machine.is_free());
        rig.flush();
        assert!(rig.machine.is_free() && rig.machine.is_serving());
        rig.machine.shutdown();
        rig.flush();
        assert_eq!(rig.methods(), ["textDocument/didClose", "shutdown"]);
        rig.reply(id, &json!(null));
        rig.flush();
        assert_eq!(
            rig.methods(),
            [""; 0],
            "the late answer is not the one to shutdown"
        );
    }
}

/// DIS-2: a server that closes its output in place of answering `shutdown` is told to go.
#[test]
fn a_closed_output_answers_shutdown() {
    let mut rig = Rig::serving(policy());
    rig.machine.shutdown();
    rig.flush();
    rig.machine.output_closed();
    rig.flush();
    assert_eq!(rig.methods(), ["shutdown", "exit"]);
    assert!(rig.machine.has_said_exit() && !rig.machine.has_exited());
}
