use serde_json::{Value, json};

use super::super::*;
use super::rig::{Rig, ask, full_capabilities, policy};

/// INI-1: `initialize` is first and alone; `initialized` follows its answer, and only then a query.
#[test]
fn the_handshake_comes_first() {
    let mut rig = Rig::fresh(policy());
    rig.machine.begin(ask(Operation::Hover));
    rig.flush();
    assert_eq!(rig.methods(), ["initialize"]);
    assert!(!rig.machine.is_serving());
    rig.reply(1, &full_capabilities());
    assert!(rig.machine.is_serving());
    rig.flush();
    assert_eq!(
        rig.methods(),
        ["initialized", "textDocument/didOpen", "textDocument/hover"]
    );
    rig.reply(1, &full_capabilities());
    rig.flush();
    assert_eq!(rig.methods(), [""; 0], "a second answer to it is nothing");
}

/// INI-1, SRQ-1: a request of the server is answered while the handshake is pending, and before
/// `initialized` when it came before the answer; notifications are dropped.
#[test]
fn the_server_may_speak_during_the_handshake() {
    let mut rig = Rig::fresh(policy());
    rig.flush();
    rig.say(&json!({"method": "window/logMessage", "params": {}}));
    rig.request(&json!("x"), "window/showMessageRequest");
    rig.request(&json!(5), "client/registerCapability");
    rig.reply(1, &full_capabilities());
    rig.flush();
    assert_eq!(
        rig.methods(),
        ["initialize", "response \"x\"", "response 5", "initialized"]
    );
}

/// INI-9: one `workspace/didChangeConfiguration` right after `initialized`, where it is asked for.
#[test]
fn the_configuration_is_announced_on_demand() {
    let mut rig = Rig::fresh(Policy {
        announce_configuration: true,
        ..policy()
    });
    rig.machine.begin(ask(Operation::Hover));
    rig.flush();
    rig.reply(1, &full_capabilities());
    rig.flush();
    let wire = rig.take_wire();
    assert_eq!(wire[1]["method"], "initialized");
    assert_eq!(wire[2]["method"], "workspace/didChangeConfiguration");
    assert_eq!(wire[2]["params"], json!({"settings": {"a": 1}}));
    assert_eq!(wire[3]["method"], "textDocument/didOpen");
}

/// INI-5, INI-7: a handshake that goes wrong fails the machine for good; nothing follows it.
#[test]
fn a_bad_handshake_is_final() {
    let encoding = |name: Value| json!({"capabilities": {"positionEncoding": name}});
    for (result, what) in [
        (encoding(json!("utf-8")), "utf-8"),
        (encoding(json!(null)), "not a string"),
        (json!([]), "not an object"),
        (json!(null), "not an object"),
        (json!({}), "no capabilities"),
        (json!({"capabilities": [1]}), "not an object"),
    ] {
        let mut rig = Rig::fresh(policy());
        rig.machine.begin(ask(Operation::Hover));
        rig.flush();
        rig.reply(1, &result);
        let Some(Failure::Protocol(message)) = rig.machine.failure().cloned() else {
            panic!("{result}: {:?}", rig.machine.failure())
        };
        assert!(message.contains(what), "{message}");
        rig.is_failed(&Failure::Protocol(message));
        assert!(
            !rig.machine.is_unserved(),
            "it is the query's own process that failed"
        );
        assert_eq!(rig.methods(), ["initialize"]);
    }
    let mut rig = Rig::fresh(policy());
    rig.flush();
    rig.say(&json!({"id": 1}));
    assert!(matches!(rig.machine.failure(), Some(Failure::Protocol(_))));
}

/// INI-7, ERR-1: an error answer is kept with code and message.
#[test]
fn a_refused_handshake_keeps_the_servers_words() {
    let mut rig = Rig::fresh(policy());
    rig.flush();
    rig.reply_error(1, -32803);
    let refused = LspError::ServerError {
        server_code: -32803,
        message: "no".to_owned(),
    };
    rig.is_failed(&Failure::Refused(refused));
}

/// FRM-8: an answer to what was not wholly asked is no answer.
#[test]
fn an_answer_before_the_question_is_ignored() {
    let mut rig = Rig::fresh(policy());
    rig.write(10);
    rig.reply(1, &full_capabilities());
    assert!(!rig.machine.is_serving());
    rig.flush();
    rig.reply(1, &full_capabilities());
    assert!(rig.machine.is_serving());
}

/// INI-8, INI-1: giving up during the handshake ends the instance, without a word, wherever the
/// handshake is.
#[test]
fn giving_up_during_the_handshake_ends_it() {
    let whole = Rig::fresh(policy()).machine.pending().len();
    for written in [0, 1, whole / 2, whole - 1, whole] {
        let mut rig = Rig::fresh(policy());
        rig.machine.begin(ask(Operation::Hover));
        rig.write(written);
        rig.machine.cancel();
        rig.is_failed(&Failure::HandshakeGivenUp);
        assert!(!rig.machine.is_unserved());
    }
}

/// INI-8: a handshake for which nobody waits goes on.
#[test]
fn a_cancel_without_a_query_is_nothing() {
    let mut rig = Rig::fresh(policy());
    rig.machine.cancel();
    rig.flush();
    rig.reply(1, &full_capabilities());
    rig.machine.cancel();
    assert!(rig.machine.is_serving() && rig.machine.is_free());
}
