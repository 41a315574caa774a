use dsh_lsp::{Hover, Location, Range};
use serde_json::json;

use super::super::*;
use super::rig::{Rig, URI, ask, policy};

fn hover() -> serde_json::Value {
    json!({"contents": "it"})
}

/// OPN-1, OPN-4, OPN-8: open, ask, close, and nothing else, for as many queries as come.
#[test]
fn a_query_is_open_ask_close() {
    let mut rig = Rig::serving(policy());
    for _ in 0..3 {
        rig.machine.begin(ask(Operation::Hover));
        rig.flush();
        let wire = rig.take_wire();
        assert_eq!(
            wire[0],
            json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {
                "uri": URI, "languageId": "xlang", "version": 1, "text": "one\ntwo",
            }}})
        );
        assert_eq!(wire[1]["method"], "textDocument/hover");
        assert_eq!(wire[1]["params"]["textDocument"]["uri"], URI);
        assert_eq!(wire.len(), 2);
        assert_eq!(rig.machine.take_settled(), None);

        rig.reply(wire[1]["id"].as_u64().unwrap(), &hover());
        let expected = Hover {
            contents: "it".to_owned(),
            range: None,
        };
        assert_eq!(
            rig.machine.take_settled(),
            Some(Ok(QueryResult::Hover {
                hover: Some(expected)
            }))
        );
        assert!(!rig.machine.is_free(), "the document is still open");
        rig.flush();
        assert!(rig.machine.is_free());
        assert_eq!(rig.methods(), ["textDocument/didClose"]);
        assert_eq!(rig.machine.take_settled(), None);
    }
}

/// WIRE-1: no id is used twice.
#[test]
fn ids_are_used_once() {
    let mut rig = Rig::serving(Policy {
        retry_stale: 1,
        ..policy()
    });
    let mut seen = vec![1];
    for _ in 0..3 {
        rig.machine.begin(ask(Operation::Hover));
        rig.flush();
        for id in rig
            .take_wire()
            .iter()
            .filter_map(|message| message["id"].as_u64())
        {
            seen.push(id);
            rig.reply_error(id, -32801);
        }
        rig.flush();
        for id in rig
            .take_wire()
            .iter()
            .filter_map(|message| message["id"].as_u64())
        {
            seen.push(id);
            rig.reply(id, &json!(null));
        }
        rig.flush();
        rig.machine.take_settled();
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((count, seen.len()), (7, 7));
}

/// SEAM-11, NAV-1, OPN-13: each operation by its method, navigation with the workspace's URI.
#[test]
fn each_operation_has_its_answer() {
    let range = Range {
        start: Position {
            line: 0,
            character: 1,
        },
        end: Position {
            line: 2,
            character: 3,
        },
    };
    for (operation, method) in [
        (Operation::GoToDefinition, "textDocument/definition"),
        (Operation::FindReferences, "textDocument/references"),
        (Operation::GoToImplementation, "textDocument/implementation"),
    ] {
        let mut rig = Rig::serving(policy());
        rig.machine.begin(ask(operation));
        rig.flush();
        assert_eq!(rig.methods(), ["textDocument/didOpen", method]);
        rig.reply(2, &json!({"uri": "file:///b", "range": range}));
        assert_eq!(
            rig.machine.take_settled(),
            Some(Ok(QueryResult::Locations {
                locations: vec![Location {
                    uri: "file:///b".to_owned(),
                    range
                }],
                resolved_workspace_uri: "file:///w".to_owned(),
            }))
        );
    }
}

/// INI-6, OPN-2: what is not supported fails before anything is sent, and the server is kept.
#[test]
fn the_unsupported_is_not_sent() {
    let no_sync =
        json!({"capabilities": {"hoverProvider": true, "textDocumentSync": {"change": 2}}});
    let no_hover = json!({"capabilities": {"definitionProvider": {}, "textDocumentSync": 1}});
    for (result, what) in [(no_sync, "textDocumentSync"), (no_hover, "hoverProvider")] {
        let mut rig = Rig::fresh(policy());
        rig.flush();
        rig.reply(1, &result);
        rig.flush();
        rig.take_wire();
        rig.machine.begin(ask(Operation::Hover));
        let error = rig
            .machine
            .take_settled()
            .expect("settled")
            .expect_err("unsupported");
        assert_eq!(error.code(), "LSP_UNSUPPORTED_OPERATION");
        assert!(error.to_string().contains(what), "{error}");
        assert!(rig.machine.is_free() && rig.machine.failure().is_none());
        assert_eq!(rig.machine.pending(), b"");
    }
}

/// ERR-1, NAV-3, HOV-3: an error and a malformed answer fail the query, not the instance.
#[test]
fn a_bad_answer_fails_only_the_query() {
    for (members, code) in [
        (
            json!({"error": {"code": -32603, "message": "no"}}),
            "LSP_SERVER_ERROR",
        ),
        (
            json!({"error": {"code": -32801, "message": "no"}}),
            "LSP_STALE",
        ),
        (
            json!({"error": {"code": -32802, "message": "no"}}),
            "LSP_STALE",
        ),
        (json!({"result": 5}), "LSP_MALFORMED_RESPONSE"),
        (
            json!({"result": {"contents": null}}),
            "LSP_MALFORMED_RESPONSE",
        ),
        (json!({}), "LSP_MALFORMED_RESPONSE"),
    ] {
        let (mut rig, id) = Rig::asking(policy());
        let mut message = members;
        message["id"] = json!(id);
        rig.say(&message);
        assert_eq!(rig.settled_code(), code, "{message}");
        rig.flush();
        assert_eq!(rig.methods(), ["textDocument/didClose"]);
        assert!(rig.machine.is_free() && rig.machine.failure().is_none());
    }
}

/// ERR-4, ERR-3: a stale answer is asked for again, in the same open document, as often as allowed.
#[test]
fn stale_answers_are_asked_for_again() {
    let (mut rig, mut id) = Rig::asking(Policy {
        retry_stale: 2,
        ..policy()
    });
    for code in [-32801, -32802] {
        rig.reply_error(id, code);
        assert_eq!(rig.machine.take_settled(), None);
        rig.flush();
        let wire = rig.take_wire();
        assert_eq!(wire.len(), 1);
        assert_eq!(wire[0]["method"], "textDocument/hover");
        assert_ne!(wire[0]["id"].as_u64(), Some(id));
        id = wire[0]["id"].as_u64().unwrap();
    }
    rig.reply_error(id, -32801);
    assert_eq!(rig.settled_code(), "LSP_STALE");
    rig.flush();
    assert_eq!(rig.methods(), ["textDocument/didClose"]);

    let (mut rig, id) = Rig::asking(Policy {
        retry_stale: 9,
        ..policy()
    });
    rig.reply_error(id, -32603);
    assert_eq!(
        rig.settled_code(),
        "LSP_SERVER_ERROR",
        "only what is stale is asked for again"
    );
}

/// OPN-12: versions rise for each document of one process, where they are to.
#[test]
fn versions_rise_on_demand() {
    for (versions, expected) in [
        (Versions::Fixed, [1, 1, 1, 1]),
        (Versions::Rising, [1, 2, 1, 3]),
    ] {
        let mut rig = Rig::serving(Policy {
            versions,
            ..policy()
        });
        let mut seen = Vec::new();
        for uri in ["file:///a", "file:///a", "file:///b", "file:///a"] {
            rig.machine.begin(Ask {
                uri: uri.to_owned(),
                ..ask(Operation::Hover)
            });
            rig.flush();
            let wire = rig.take_wire();
            seen.push(
                wire[0]["params"]["textDocument"]["version"]
                    .as_u64()
                    .unwrap(),
            );
            rig.reply(wire[1]["id"].as_u64().unwrap(), &json!(null));
            rig.flush();
            rig.take_wire();
            rig.machine.take_settled();
        }
        assert_eq!(seen, expected);
    }
}

/// FRM-8: what answers nothing is ignored, also a second answer and an id of another type.
#[test]
fn stray_messages_are_ignored() {
    let (mut rig, id) = Rig::asking(policy());
    for stray in [
        json!([]),
        json!(3),
        json!({}),
        json!({"id": id + 1, "result": hover()}),
        json!({"id": id.to_string(), "result": hover()}),
        json!({"id": null, "error": {"code": -32700, "message": "?"}}),
        json!({"id": 1, "result": hover()}),
        json!([{"id": id, "result": hover()}]),
    ] {
        rig.say(&stray);
        assert_eq!(rig.machine.take_settled(), None, "{stray}");
    }
    rig.reply(id, &hover());
    assert!(rig.machine.take_settled().is_some());
    rig.reply(id, &json!(null));
    assert_eq!(rig.machine.take_settled(), None);
    rig.flush();
    assert_eq!(rig.methods(), ["textDocument/didClose"]);
    rig.reply(id, &json!(null));
    assert!(rig.machine.is_free() && rig.machine.failure().is_none());
}

/// FRM-3: the answer is the same in single bytes.
#[test]
fn answers_may_come_in_pieces() {
    let (mut rig, id) = Rig::asking(policy());
    let mut frame = Vec::new();
    crate::framing::write_frame(&mut frame, 0, |out| {
        out.extend_from_slice(format!(r#"{{"id":{id},"result":{{"contents":"é🦀"}}}}"#).as_bytes());
    });
    for byte in frame {
        assert_eq!(rig.machine.take_settled(), None);
        rig.say_raw(&[byte]);
    }
    let expected = Hover {
        contents: "é🦀".to_owned(),
        range: None,
    };
    assert_eq!(
        rig.machine.take_settled(),
        Some(Ok(QueryResult::Hover {
            hover: Some(expected)
        }))
    );
}

/// FRM-4, FRM-5, FRM-6, FRM-7, FRM-10: what is no message ends the instance, with what came.
#[test]
fn what_is_no_message_is_fatal() {
    for (bytes, what) in [
        (&b"log: hello\n"[..], "got \"log: hello\\n\""),
        (b"Content-Length: 2\r\n\r\n{]", "not JSON"),
        (b"Content-Length: 3\r\n\r\n\"\xff\"", "not UTF-8"),
        (
            b"Content-Length: 1000001\r\n\r\n",
            "maxMessageBytes (1000000)",
        ),
    ] {
        let (mut rig, id) = Rig::asking(policy());
        rig.say_raw(bytes);
        let Some(Failure::Protocol(message)) = rig.machine.failure().cloned() else {
            panic!("{what}: {:?}", rig.machine.failure())
        };
        assert!(message.contains(what), "{message}");
        assert!(
            rig.machine.is_asking(),
            "the query is left to be failed with that cause"
        );
        assert!(!rig.machine.is_unserved());
        rig.is_failed(&Failure::Protocol(message));
        rig.reply(id, &hover());
        assert_eq!(
            rig.machine.take_settled(),
            None,
            "nothing is read behind it"
        );
    }
}
