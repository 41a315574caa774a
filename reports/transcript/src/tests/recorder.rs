use crate::{Bounds, Direction, Envelope, EventBody, Malformed, Recorder, Tap};

fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[tokio::test]
async fn a_waiter_sees_past_and_coming_events() {
    let recorder = Recorder::new();
    recorder.emit(None, EventBody::note("a", "past"));
    let is = |kind: &'static str| move |event: &crate::Event| matches!(&event.body, EventBody::Note { kind: k, .. } if k == kind);
    assert_eq!(recorder.wait_for(is("a")).await.seq, 0);
    let (waited, ()) = tokio::join!(recorder.wait_for(is("b")), async {
        recorder.emit(Some(2), EventBody::note("c", "not it"));
        recorder.emit(Some(2), EventBody::note("b", "it"));
    });
    assert_eq!((waited.seq, waited.process), (2, Some(2)));
}

#[tokio::test]
async fn a_subscription_gives_each_event_once_from_many_threads() {
    let recorder = Recorder::new();
    let mut subscription = recorder.subscribe();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                for _ in 0..250 {
                    recorder.emit(Some(thread), EventBody::note("n", ""));
                }
            });
        }
    });
    let mut last_us = 0;
    for expected in 0..1000 {
        let event = subscription.next().await;
        assert_eq!(event.seq, expected);
        assert!(event.at_us >= last_us);
        last_us = event.at_us;
    }
    assert_eq!(subscription.try_next(), None);
}

#[test]
fn a_tap_records_frames_with_their_bytes_and_the_end() {
    let recorder = Recorder::new();
    let mut tap = Tap::new(recorder.clone(), 3, Direction::ToClient);
    for byte in frame(r#"{"jsonrpc":"2.0","id":"7","result":null}"#) {
        tap.bytes(&[byte]);
    }
    tap.end();
    tap.end();
    let events = recorder.events();
    assert_eq!(events.len(), 2);
    let seen = events[0].frame().unwrap();
    assert_eq!(seen.header.0.as_ref(), b"Content-Length: 40\r\n\r\n");
    assert_eq!(seen.size, 40);
    assert_eq!(
        seen.envelope,
        Envelope::Response {
            id: "7".into(),
            result: true,
            error: None
        }
    );
    assert_eq!(
        events[1].body,
        EventBody::Closed {
            direction: Direction::ToClient,
            total: 62
        }
    );
    assert_eq!(events[1].process, Some(3));
}

#[test]
fn text_before_the_first_frame_is_recorded_as_what_it_is() {
    let recorder = Recorder::new();
    let mut tap = Tap::new(recorder.clone(), 1, Direction::ToClient);
    tap.bytes(b"starting up\n");
    tap.bytes(&frame("{}"));
    tap.end();
    let events = recorder.events();
    let EventBody::Stray {
        bytes,
        reason,
        offset,
        ..
    } = &events[0].body
    else {
        panic!()
    };
    assert_eq!(bytes.lossy(), "starting up\n");
    assert_eq!(*offset, 0);
    assert_eq!(
        *reason,
        Some(Malformed::BareLineFeed {
            line: "starting up".into()
        })
    );
    let EventBody::Stray {
        bytes,
        reason: None,
        ..
    } = &events[1].body
    else {
        panic!()
    };
    assert_eq!(bytes.lossy(), "Content-Length: 2\r\n\r\n{}");
    assert_eq!(events.len(), 3);
}

#[test]
fn stray_bytes_are_bounded_and_counted() {
    let bounds = Bounds {
        stray: 10,
        ..Bounds::default()
    };
    let recorder = Recorder::with_bounds(bounds);
    let mut tap = Tap::new(recorder.clone(), 1, Direction::ToClient);
    tap.bytes(b"x\n");
    for _ in 0..1000 {
        tap.bytes(b"12345678");
    }
    tap.end();
    let events = recorder.events();
    let (kept, dropped) = events
        .iter()
        .fold((0, 0), |(kept, lost), event| match &event.body {
            EventBody::Stray { bytes, dropped, .. } => (kept + bytes.len(), lost + dropped),
            _ => (kept, lost),
        });
    assert_eq!((kept, dropped), (12, 7990));
    assert!(events.len() < 6, "{}", events.len());
}

#[test]
fn bodies_are_bounded_one_by_one_and_together_and_keep_their_kind() {
    let bounds = Bounds {
        body: 30,
        bodies: 70,
        ..Bounds::default()
    };
    let recorder = Recorder::with_bounds(bounds);
    let mut tap = Tap::new(recorder.clone(), 1, Direction::ToServer);
    for _ in 0..4 {
        tap.bytes(&frame(
            r#"{"jsonrpc":"2.0","id":1,"method":"textDocument/hover"}"#,
        ));
    }
    let events = recorder.events();
    let kept: Vec<usize> = events
        .iter()
        .map(|e| e.frame().unwrap().body.len())
        .collect();
    assert_eq!(kept, [30, 30, 10, 0]);
    for event in &events {
        let frame = event.frame().unwrap();
        assert_eq!((frame.size, frame.short_name()), (54, Some("hover")));
        assert!(frame.cut.is_some() && frame.json().is_none());
    }
}

#[test]
fn the_kind_of_a_message_comes_from_its_members() {
    let of = |body: &str| Envelope::of(body.as_bytes());
    let response = |result, error| Envelope::Response {
        id: 1.into(),
        result,
        error,
    };
    assert_eq!(
        of(r#"{"id":null,"method":"m"}"#),
        Envelope::Request {
            id: crate::Id(serde_json::Value::Null),
            method: "m".into()
        }
    );
    assert_eq!(
        of(r#"{"method":"m\u0041"}"#),
        Envelope::Notification {
            method: "mA".into()
        }
    );
    assert_eq!(of(r#"{"id":1,"result":null}"#), response(true, None));
    assert_eq!(
        of(r#"{"id":1,"error":{"code":-5,"message":""}}"#),
        response(false, Some(Some(-5)))
    );
    assert_eq!(
        of(r#"{"id":1,"error":null,"result":1}"#),
        response(true, Some(None))
    );
    assert_eq!(of(r#"{"id":1}"#), response(false, None));
    for other in [
        "[]",
        "7",
        "{}",
        r#"{"method":7,"id":1}"#,
        r#"{"id":1,"id":1}"#,
    ] {
        assert_eq!(of(other), Envelope::Other, "{other}");
    }
    assert!(matches!(of("{"), Envelope::NotJson { .. }));
    assert!(matches!(
        Envelope::of(b"\"\xff\""),
        Envelope::NotJson { .. }
    ));
}
