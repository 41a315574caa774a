use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::strict::{Body, WireFrame};
use crate::{
    Deviation, Direction, Event, EventBody, Frame, Malformed, Member, Raw, Termination, jsonl,
};

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::ToServer), Just(Direction::ToClient)]
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        any::<String>().prop_map(String::into_bytes),
    ]
    .prop_map(|bytes| Raw(Bytes::from(bytes)))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        (any::<String>(), any::<bool>()).prop_map(|(key, flag)| json!({key: flag})),
    ]
}

/// Bodies that are JSON, nearly JSON, and anything.
fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (any::<i64>(), any::<String>()).prop_map(|(id, method)| {
            json!({"jsonrpc": "2.0", "id": id, "method": method})
                .to_string()
                .into_bytes()
        }),
        Just(b"{\"id\":1,\"id\":2,\"result\":1.00}".to_vec()),
        Just(b"{\n  \"method\": \"x\"\r\n}".to_vec()),
        Just(b" {\"method\":\"x\"} ".to_vec()),
        Just(b"null".to_vec()),
        Just(b"[]".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..60),
    ]
}

fn frame() -> impl Strategy<Value = EventBody> {
    (
        direction(),
        any::<u64>(),
        raw(),
        body(),
        prop_oneof![Just(usize::MAX), 0..20_usize],
    )
        .prop_map(|(direction, offset, header, body, max)| {
            let wire = WireFrame {
                offset,
                header: &header.0,
                body: Body::Whole(&body),
                deviations: &[Deviation::NameCase, Deviation::Order],
            };
            EventBody::Frame(Frame::capture(direction, &wire, max))
        })
}

fn event_body() -> impl Strategy<Value = EventBody> {
    let text = any::<String>;
    prop_oneof![
        4 => frame(),
        1 => (any::<u32>(), proptest::collection::vec(text(), 0..3), proptest::option::of(text()))
            .prop_map(|(pid, argv, cwd)| EventBody::ProcessStarted { pid, argv, cwd }),
        1 => (proptest::option::of(any::<i32>()), proptest::option::of(any::<i32>()))
            .prop_map(|(code, signal)| EventBody::ProcessEnded { code, signal }),
        1 => (direction(), any::<u64>(), raw(), any::<u64>(), any::<bool>()).prop_map(
            |(direction, offset, bytes, dropped, bad)| {
                let reason = bad.then(|| Malformed::NoColon { line: "x".into() });
                EventBody::Stray { direction, offset, bytes, dropped, reason }
            }),
        1 => (direction(), any::<u64>())
            .prop_map(|(direction, total)| EventBody::Closed { direction, total }),
        1 => raw().prop_map(|text| EventBody::Stderr { text }),
        1 => (any::<u32>(), text()).prop_map(|(pid, name)| EventBody::Termination(Termination {
            killed: vec![Member { pid, name }], ..Termination::default() })),
        1 => (text(), text(), value())
            .prop_map(|(call, name, arguments)| EventBody::Call { call, name, arguments }),
        1 => (text(), any::<bool>(), value())
            .prop_map(|(call, ok, value)| EventBody::Result { call, ok, value }),
        1 => (text(), text()).prop_map(|(path, change)| EventBody::FileChanged { path, change }),
        1 => (text(), text(), value())
            .prop_map(|(kind, message, data)| EventBody::Note { kind, message, data }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (
        any::<u64>(),
        proptest::option::of(any::<u32>()),
        event_body(),
    );
    proptest::collection::vec(one, 0..12).prop_map(|all| {
        let numbered = (0..).zip(all);
        numbered
            .map(|(seq, (at_us, process, body))| Event {
                seq,
                at_us,
                process,
                body,
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(events in events()) {
        let mut file = Vec::new();
        jsonl::write(&mut file, &events).unwrap();
        prop_assert_eq!(file.split(|byte| *byte == b'\n').count(), events.len() + 2);
        prop_assert_eq!(jsonl::read(file.as_slice()).unwrap(), events);
    }

    #[test]
    fn arbitrary_lines_never_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = jsonl::read(file.as_slice());
        let with_header = [b"{\"format\":\"dsh-transcript/1\"}\n".to_vec(), file].concat();
        let _ = jsonl::read(with_header.as_slice());
    }
}

#[track_caller]
fn refused(file: &str, expected: &str) {
    let error = jsonl::read(file.as_bytes())
        .expect_err("should be refused")
        .to_string();
    assert!(error.contains(expected), "{error}");
}

const HEADER: &str = "{\"format\":\"dsh-transcript/1\"}\n";

#[test]
fn what_is_no_transcript_is_refused_with_its_line() {
    refused("", "empty file");
    refused("hello\n", "line 1 is no transcript header");
    refused(
        "{\"format\":\"dsh-transcript/2\"}\n",
        "\"dsh-transcript/2\"",
    );
    refused("{\"format\":\"dsh-transcript/1\"}", "line 1 is cut off");
    refused(
        &format!("{HEADER}{{\"seq\":0}}\n"),
        "line 2, column 9: missing field `atUs`",
    );
    refused(&format!("{HEADER}\n"), "line 2");
    let event = |seq: u64| {
        let event = Event {
            seq,
            at_us: 0,
            process: None,
            body: EventBody::note("a", "b"),
        };
        serde_json::to_string(&event).unwrap()
    };
    refused(
        &format!("{HEADER}{}\n{}\n", event(0), event(2)),
        "line 3: event 2 where event 1",
    );
    refused(
        &format!("{HEADER}{}\n{}", event(0), event(1)),
        "line 3 is cut off",
    );
    refused(
        &format!("{HEADER}{}\n", event(0).replace("kind", "kinds")),
        "unknown field `kinds`",
    );
}

#[test]
fn a_frame_with_a_wrong_size_is_refused() {
    let frame = Frame::conforming(Direction::ToServer, 0, b"{\"method\":\"exit\"}");
    let event = Event {
        seq: 0,
        at_us: 0,
        process: Some(1),
        body: EventBody::Frame(frame),
    };
    let line = serde_json::to_string(&event).unwrap();
    assert!(line.contains("\"json\":{\"method\":\"exit\"}"), "{line}");
    refused(
        &format!("{HEADER}{}\n", line.replace("\"size\":17", "\"size\":18")),
        "size is 18",
    );
}
