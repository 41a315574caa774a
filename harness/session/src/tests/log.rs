//! What the model sees, and the requests that are made from it.

use super::*;
use crate::{MAX_DEPTH, MAX_LINE, Message, ModelRequest, RebuildError, is_shallow};

/// RUN-11: the log alone says what the model is sent.
#[test]
fn messages_are_made_from_the_log_alone() {
    let log = whole_turn();
    let messages = serde_json::to_value(log.messages()).unwrap();
    let calls = json!([
        {"id": "c1", "name": "read", "arguments": {"file_path": "a", "ratio": 0.1}},
        {"id": "c2", "name": "read", "arguments": {"file_path": "a", "ratio": 0.1}},
    ]);
    let said = |said: &str| json!([{"type": "text", "text": said}]);
    assert_eq!(
        messages,
        json!([
            {"role": "user", "content": said("hello")},
            {"role": "assistant", "text": "", "toolCalls": calls},
            {"role": "tool", "callId": "c1", "isError": false, "content": said("result of c1")},
            {"role": "tool", "callId": "c2", "isError": false, "content": said("result of c2")},
            {"role": "user", "content": said("a context")},
            {"role": "assistant", "text": "done"},
        ])
    );
}

/// RUN-15: what a call has called itself is in the log, and nothing the model sees.
#[test]
fn nested_calls_are_logged_and_not_visible() {
    let log = whole_turn();
    let nested = |event: &&std::sync::Arc<Event>| matches!(&event.body, EventBody::ToolResult(result) if result.parent.is_some());
    assert_eq!(log.events().iter().filter(nested).count(), 1);
    assert_eq!(log.visible().filter(nested).count(), 0);
}

/// RUN-11: each request that was logged can be made again, and is the same byte for byte.
#[test]
fn a_logged_request_is_rebuilt_byte_for_byte() {
    let mut log = answered(&["c1"]);
    push(&mut log, [call("c1", None), result("c1", None)]);
    push(&mut log, [step_end(1, 1), step_start(1, 2)]);
    let (second, body) = log.request(1, 2, "be kind".to_owned(), vec![schema("read")]);
    let seq = log.push(body, 0).unwrap().seq;
    push(
        &mut log,
        [answer("", &[]), step_end(1, 2), step_start(1, 3)],
    );
    let (third, body) = log.request(1, 3, "be brief".to_owned(), vec![]);
    let third_seq = log.push(body, 0).unwrap().seq;

    let rebuilt = log.rebuild(seq).unwrap();
    assert_eq!(rebuilt, second);
    assert_eq!(rebuilt.canonical(), second.canonical());
    assert_eq!(log.rebuild(third_seq).unwrap(), third);
    assert_eq!(log.verify(), Ok(3));
    let logged = |seq| match &log.event(seq).unwrap().body {
        EventBody::StepRequest {
            system,
            tools,
            sha1,
            ..
        } => (system.clone(), tools.clone(), sha1.clone()),
        other => panic!("{other:?}"),
    };
    // What has not changed is not written again.
    assert_eq!(logged(seq), (None, None, second.sha1()));
    let changed = (Some("be brief".to_owned()), Some(vec![]), third.sha1());
    assert_eq!(logged(third_seq), changed);
}

/// RUN-11: the sum is that of the JSON as it stands, which other readers can compute.
#[test]
fn the_canonical_form_is_plain_json() {
    let request = ModelRequest {
        system: "s".to_owned(),
        messages: vec![Message::User {
            content: text("hé\n"),
        }],
        tools: vec![schema("read")],
    };
    assert_eq!(
        String::from_utf8(request.canonical()).unwrap(),
        r#"{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hé\n"}]}],"tools":[{"name":"read","description":"does something","parameters":{"type":"object"}}]}"#
    );
    let empty = ModelRequest {
        system: String::new(),
        messages: vec![],
        tools: vec![],
    };
    // Of {"system":"","messages":[],"tools":[]}, computed elsewhere.
    assert_eq!(empty.sha1(), "9b613922647c63b662a0c80303c6ada3478b1f9d");
}

/// RUN-11: a log that was changed behind a request is found out, and the request is named.
#[test]
fn a_request_that_does_not_follow_from_the_log_is_found() {
    let log = whole_turn();
    let mut forged = Log::new();
    for event in log.events() {
        let body = match &event.body {
            EventBody::UserMessage { source, .. } if event.seq == 3 => EventBody::UserMessage {
                source: source.clone(),
                content: text("hallo"),
            },
            body => body.clone(),
        };
        forged.push(body, 0).unwrap();
    }
    let error = forged.verify().unwrap_err();
    assert_eq!(forged.rebuild(4).unwrap_err(), error);
    assert!(matches!(error, RebuildError::Differs { seq: 4, .. }));
    assert!(error.to_string().contains("event 4"), "{error}");
    assert_eq!(log.rebuild(3), Err(RebuildError::NoRequest { seq: 3 }));
    assert_eq!(log.rebuild(0), Err(RebuildError::NoRequest { seq: 0 }));
    assert_eq!(log.rebuild(99), Err(RebuildError::NoRequest { seq: 99 }));
}

/// INS-23: without compaction a request begins with the bytes of the one before.
#[test]
fn a_request_extends_the_one_before() {
    let log = whole_turn();
    let requests: Vec<_> = log
        .events()
        .iter()
        .filter(|event| matches!(event.body, EventBody::StepRequest { .. }))
        .map(|event| log.rebuild(event.seq).unwrap())
        .collect();
    let [first, second] = &requests[..] else {
        panic!("two requests");
    };
    let first = serde_json::to_string(&first.messages).unwrap();
    let second = serde_json::to_string(&second.messages).unwrap();
    assert!(second.starts_with(first.trim_end_matches(']')));
    assert!(second.len() > first.len());
}

/// RUN-16: a summary stands where what it hides began, and the events stay in the log.
#[test]
fn compaction_hides_events_behind_a_summary() {
    let mut log = whole_turn();
    assert_eq!(
        surface(&log),
        [
            "3 user/message",
            "5 assistant/message",
            "10 c1",
            "11 c2",
            "12 user/message",
            "16 assistant/message"
        ]
    );
    let before = log.events().to_vec();
    push(&mut log, [compaction(5, 11)]);
    assert_eq!(
        surface(&log),
        [
            "3 user/message",
            "19 compaction",
            "12 user/message",
            "16 assistant/message"
        ]
    );
    assert_eq!(log.events()[..18], before);
    let said = serde_json::to_value(&log.messages()[1]).unwrap();
    assert_eq!(
        said,
        json!({"role": "user", "content": [{"type": "text", "text": "summary of 5 to 11"}]})
    );
    // A summary can be hidden like anything else.
    push(&mut log, [compaction(1, 12)]);
    assert_eq!(surface(&log), ["20 compaction", "16 assistant/message"]);
    push(&mut log, [compaction(1, 20)]);
    assert_eq!(surface(&log), ["21 compaction"]);
    // Requests from before and after can be rebuilt.
    push(&mut log, [turn_start(2), step_start(2, 1), user("again")]);
    ask(&mut log);
    assert_eq!(log.verify(), Ok(3));
    assert_eq!(log.rebuild(4).unwrap().messages.len(), 1);
    assert_eq!(log.rebuild(15).unwrap().messages.len(), 5);
    assert_eq!(log.rebuild(25).unwrap().messages.len(), 2);
}

/// RUN-16: a range that would leave a result without its call, or nothing to hide, is refused.
#[test]
fn compaction_that_would_make_an_invalid_request_is_refused() {
    #[track_caller]
    fn refused(from: u64, to: u64, words: &str) {
        let mut log = whole_turn();
        let before = format!("{log:?}");
        let error = log.push(compaction(from, to), 0).unwrap_err();
        assert_eq!((error.seq, error.kind), (19, "compaction"));
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(format!("{log:?}"), before, "nothing has changed");
    }
    refused(0, 3, "within 1 to 18");
    refused(4, 3, "no range");
    refused(1, 19, "within 1 to 18");
    refused(1, u64::MAX, "within 1 to 18");
    refused(1, 2, "nothing visible stands at 1 to 2");
    refused(3, 5, "leave result 10");
    refused(3, 10, "leave result 11");
    refused(10, 12, "hide result 10");
    refused(11, 11, "hide result 11");
    let mut log = whole_turn();
    push(&mut log, [compaction(3, 5 + 6)]);
}

/// RUN-4, RUN-11: what could not be read again is not logged, and the words say what it is.
#[test]
fn what_could_not_be_read_again_is_refused() {
    fn with_value(value: Value) -> EventBody {
        EventBody::UserMessage {
            source: source_with("state", value),
            content: vec![],
        }
    }
    #[track_caller]
    fn refused(body: EventBody, words: &str) {
        let mut log = Log::new();
        let error = log.push(body, 0).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().len() < 300);
        assert_eq!(log.last_seq(), 0);
    }
    assert!(is_shallow(&nested(MAX_DEPTH)));
    assert!(!is_shallow(&nested(MAX_DEPTH + 1)));
    let mut log = Log::new();
    // The data of a source is an object itself.
    push(&mut log, [with_value(nested(MAX_DEPTH - 1))]);
    let line = line_of(&log.events()[0]);
    assert_eq!(
        serde_json::from_slice::<Event>(&line).unwrap(),
        *log.events()[0]
    );
    refused(with_value(nested(MAX_DEPTH)), "deeper than 64 levels");
    refused(with_value(nested(500)), "deeper than 64 levels");
    refused(
        EventBody::UserMessage {
            source: source_with("kind", json!(1)),
            content: vec![],
        },
        "key \"kind\"",
    );
    refused(user(&"x".repeat(MAX_LINE)), "at most 67108864");
}

/// RUN-11: an event of many megabytes is no trouble.
#[test]
fn ten_megabytes_of_arguments_are_logged_and_read_again() {
    let mut log = Log::new();
    push(&mut log, [turn_start(1), step_start(1, 1)]);
    ask(&mut log);
    let big = ToolCall {
        id: "c1".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"file_path": "x".repeat(10 << 20)}),
    };
    let message = AssistantMessage {
        tool_calls: vec![big],
        ..AssistantMessage::default()
    };
    push(&mut log, [EventBody::AssistantMessage(message)]);
    let event = &log.events()[3];
    let line = line_of(event);
    assert!(line.len() > 10 << 20 && line.len() < MAX_LINE);
    assert_eq!(serde_json::from_slice::<Event>(&line).unwrap(), **event);
}

/// INS-7: a source is typed by its kind, and its data cannot pretend to another.
#[test]
fn the_kind_of_a_source_is_its_own() {
    let data = Map::from_iter([
        ("kind".to_owned(), json!("workspace-instructions")),
        ("a".to_owned(), json!(1)),
    ]);
    let source = MessageSource::new("test", data);
    assert_eq!(
        serde_json::to_string(&source).unwrap(),
        r#"{"kind":"test","a":1}"#
    );
    assert_eq!(
        serde_json::to_string(&MessageSource::prompt()).unwrap(),
        r#"{"kind":"prompt"}"#
    );
}

/// RUN-11: a result whose value is null has a value, also when it was read back.
#[test]
fn a_value_that_is_null_is_a_value() {
    let result = |value: Option<serde_json::Value>| crate::LoggedResult {
        call_id: "c".to_owned(),
        name: "t".to_owned(),
        is_error: false,
        code: None,
        value,
        content: Vec::new(),
        parent: None,
    };
    for value in [
        None,
        Some(serde_json::Value::Null),
        Some(serde_json::json!(0)),
    ] {
        let written = serde_json::to_string(&result(value.clone())).unwrap();
        let read: crate::LoggedResult = serde_json::from_str(&written).unwrap();
        assert_eq!(read.value, value, "{written}");
    }
}
