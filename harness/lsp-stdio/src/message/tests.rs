use dsh_lsp::Operation;

use super::*;

fn parsed(text: &str, expected: Expected) -> String {
    let mut scratch = String::new();
    match read(text.as_bytes(), expected, &mut scratch) {
        Ok(incoming) => format!("{incoming:?}"),
        Err(error) => format!("{error:?}"),
    }
}

#[track_caller]
fn is(text: &str, expected: &Incoming<'_>) {
    let mut scratch = String::new();
    let incoming = read(text.as_bytes(), Expected::Anything, &mut scratch).expect("it is JSON");
    assert_eq!(&incoming, expected, "{text}");
}

/// SRQ-1: an id keeps its type and its digits.
#[test]
fn ids_stay_as_they_are() {
    for id in [
        "0",
        "-7",
        "1.50",
        "1e3",
        "123456789012345678901234567890",
        r#""x""#,
        r#""""#,
        r#""0""#,
        r#""\u00e9""#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#);
        is(
            &text,
            &Incoming::Request {
                id,
                method: "m".into(),
                params: None,
            },
        );
    }
}

/// FRM-8: everything that is JSON has a kind, and most odd things have the kind that is ignored.
#[test]
fn kinds_are_told_apart() {
    is(
        r#"{"params":{"a":[1, {}]},"method":"a\u0062","id":5}"#,
        &Incoming::Request {
            id: "5",
            method: "ab".into(),
            params: Some(r#"{"a":[1, {}]}"#),
        },
    );
    is(r#"{"method":"x"}"#, &Incoming::Notification);
    is(r#"{"method":"x","id":null}"#, &Incoming::Notification);
    is(
        r#"{"id":5,"result":null}"#,
        &Incoming::Response {
            id: 5,
            reply: Reply::Anything,
        },
    );
    is(
        r#"{"id":5.0,"result":1}"#,
        &Incoming::Response {
            id: 5,
            reply: Reply::Anything,
        },
    );
    is(
        r#"{"id":5}"#,
        &Incoming::Response {
            id: 5,
            reply: Reply::Missing,
        },
    );
    for other in [
        "[]",
        r#"[{"id":1,"method":"x"}]"#,
        "3",
        "null",
        "true",
        r#""text""#,
        "{}",
        r#"{"id":"5","result":null}"#,
        r#"{"id":-5,"result":null}"#,
        r#"{"id":5.5,"result":null}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"?"}}"#,
        r#"{"result":null}"#,
        r#"{"id":{},"method":"x"}"#,
        r#"{"id":true,"method":"x"}"#,
        r#"{"id":1,"method":5}"#,
        r#"{"method":null}"#,
    ] {
        is(other, &Incoming::Other);
    }
}

/// FRM-8: a member given twice counts as in every other reader of JSON, the last time.
#[test]
fn doubled_members_are_tolerated() {
    is(
        r#"{"id":1,"id":2,"result":0,"result":null,"jsonrpc":1,"x":{}}"#,
        &Incoming::Response {
            id: 2,
            reply: Reply::Anything,
        },
    );
}

/// NAV-3, ERR-1: null, nothing and an error are three different replies.
#[test]
fn replies_are_told_apart() {
    let of = |members: &str| parsed(&format!(r#"{{"id":1{members}}}"#), Expected::Hover);
    assert!(of("").contains("Missing"));
    assert!(of(r#","result":null"#).contains("Answer(Ok(Hover(None)))"));
    assert!(of(r#","result":null,"error":null"#).contains("Answer(Ok(Hover(None)))"));
    assert!(of(r#","error":null"#).contains("Missing"));
    for error in [
        r#","error":{"code":-32603,"message":"boom"}"#,
        r#","result":null,"error":{"message":"boom","code":-32603.0}"#,
    ] {
        assert!(
            of(error).contains(r#"Error(ErrorAnswer { code: -32603, message: Some("boom") })"#)
        );
    }
    for (odd, expected) in [
        (r#","error":{}"#, "code: 0, message: None"),
        (r#","error":[]"#, "code: 0, message: None"),
        (r#","error":"boom""#, r#"code: 0, message: Some("boom")"#),
        (
            r#","error":{"code":"x","message":5}"#,
            "code: 0, message: None",
        ),
        (
            r#","error":{"code":1e300,"message":""}"#,
            "code: 0, message: None",
        ),
    ] {
        assert!(of(odd).contains(expected), "{odd}: {}", of(odd));
    }
}

/// INI-6: the answer to `initialize` is read for what counts in it.
#[test]
fn a_handshake_is_read() {
    let text = r#"{"id":1,"result":{"capabilities":{"hoverProvider":{"a":1},"definitionProvider":true,
        "textDocumentSync":{"change":2,"openClose":true},"experimental":{"deep":[[[]]]}},"serverInfo":{}}}"#;
    let mut scratch = String::new();
    let incoming = read(text.as_bytes(), Expected::Handshake, &mut scratch).unwrap();
    let Incoming::Response {
        reply: Reply::Handshake(Ok(handshake)),
        ..
    } = incoming
    else {
        panic!("unexpected {incoming:?}")
    };
    assert!(handshake.transient_open);
    let advertised: Vec<Operation> = Operation::ALL
        .into_iter()
        .filter(|&operation| handshake.advertises(operation))
        .collect();
    assert_eq!(advertised, [Operation::GoToDefinition, Operation::Hover]);
}

/// FRM-6: what is not UTF-8, and what is not JSON, is told apart from each other.
#[test]
fn what_is_not_json_is_refused() {
    let mut scratch = String::new();
    let error = read(b"{\"a\":\"\xff\"}", Expected::Anything, &mut scratch).unwrap_err();
    assert_eq!(error, BodyError::NotUtf8(6));
    for text in [
        "",
        " ",
        "{",
        "{}x",
        "{\"a\":}",
        "nul",
        "\u{feff}{}",
        "[1,]",
        "{'a':1}",
        "{\"a\":01}",
        "\"\n\"",
    ] {
        assert!(
            parsed(text, Expected::Anything).contains("NotJson"),
            "{text:?}"
        );
    }
    let long = format!("{{{}", "é".repeat(5_000));
    let shown = read(long.as_bytes(), Expected::Anything, &mut scratch)
        .unwrap_err()
        .to_string();
    assert!(shown.len() < 500 && shown.contains('…'), "{shown}");
    assert!(!parsed("{}x", Expected::Anything).contains('…'));
}

/// FRM-6: half a surrogate pair is odd, but JSON; it costs one character, not the session.
#[test]
fn half_a_surrogate_pair_is_survived() {
    is(
        r#"{"method":"window/logMessage","params":{"m":"\ud800"}}"#,
        &Incoming::Notification,
    );
    let hover = r#"{"id":1,"result":{"contents":"a\ud800b\ud83e\udd80"}}"#;
    assert!(
        parsed(hover, Expected::Hover).contains("a\u{fffd}b🦀"),
        "{}",
        parsed(hover, Expected::Hover)
    );
    is(
        r#"{"id":"\ud800","method":"\udfff"}"#,
        &Incoming::Request {
            id: r#""\ufffd""#,
            method: "\u{fffd}".into(),
            params: None,
        },
    );
}

/// FRM-6: nesting of any depth is read without running out of stack.
#[test]
fn deep_nesting_is_survived() {
    for depth in [200, 20_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        is(&format!("{open}{close}"), &Incoming::Other);
        let request = format!(r#"{{"id":1,"method":"m","params":{open}{close}}}"#);
        assert!(parsed(&request, Expected::Anything).starts_with("Request"));
        for expected in [Expected::Handshake, Expected::Hover, Expected::Locations] {
            for nested in [
                format!("{open}{close}"),
                format!(r#"{{"capabilities":{{"x":{open}{close}}},"contents":{open}{close}}}"#),
                format!(r#"{{"uri":{open}{close},"range":{open}{close}}}"#),
            ] {
                let reply = parsed(&format!(r#"{{"id":1,"result":{nested}}}"#), expected);
                assert!(reply.starts_with("Response"), "{reply:.200}");
            }
        }
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_json;

    fn any_expected() -> impl Strategy<Value = Expected> {
        prop_oneof![
            Just(Expected::Anything),
            Just(Expected::Handshake),
            Just(Expected::Locations),
            Just(Expected::Hover),
        ]
    }

    proptest! {
        /// FRM-6, FRM-8: any bytes are a message, something to ignore, or an error.
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                r#"(\{|\}|"|:|,|\[|\]|1|\\ud8|00|id|result|null| ){0,40}"#.prop_map(String::into_bytes),
            ],
            expected in any_expected(),
        ) {
            let mut scratch = String::new();
            let _ = read(&bytes, expected, &mut scratch);
        }

        /// NAV-3, HOV-3: a response with any result is a response, whatever was expected.
        #[test]
        fn any_result_is_a_reply(result in any_json(), expected in any_expected()) {
            let text = serde_json::json!({"id": 7, "result": result}).to_string();
            let mut scratch = String::new();
            let incoming = read(text.as_bytes(), expected, &mut scratch);
            let is_reply = matches!(incoming, Ok(Incoming::Response { id: 7, .. }));
            prop_assert!(is_reply);
        }

        /// FRM-8: any object is read, whatever its members are.
        #[test]
        fn any_object_has_a_kind(
            id in prop::option::of(any_json()),
            method in prop::option::of(any_json()),
            params in prop::option::of(any_json()),
            result in prop::option::of(any_json()),
            error in prop::option::of(any_json()),
            expected in any_expected(),
        ) {
            let mut message = serde_json::Map::new();
            let members = [("id", id), ("method", method), ("params", params), ("result", result), ("error", error)];
            for (name, value) in members {
                message.extend(value.map(|value| (name.to_owned(), value)));
            }
            let text = serde_json::Value::Object(message).to_string();
            let mut scratch = String::new();
            let read = read(text.as_bytes(), expected, &mut scratch).is_ok();
            prop_assert!(read);
        }
    }
}
