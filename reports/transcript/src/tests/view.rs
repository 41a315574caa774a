use crate::{Direction, EventBody, Frame, Recorder, View};

fn record(recorder: &Recorder, process: u32, direction: Direction, body: &str) {
    let frame = Frame::conforming(direction, 0, body.as_bytes());
    recorder.emit(Some(process), EventBody::Frame(frame));
}

#[test]
fn requests_are_paired_with_their_answers_by_id_and_direction() {
    use Direction::{ToClient, ToServer};
    let recorder = Recorder::new();
    record(&recorder, 1, ToServer, r#"{"id":1,"method":"initialize"}"#);
    record(
        &recorder,
        1,
        ToClient,
        r#"{"id":1,"method":"workspace/configuration"}"#,
    );
    record(
        &recorder,
        2,
        ToClient,
        r#"{"id":1,"result":"another process"}"#,
    );
    record(&recorder, 1, ToServer, r#"{"id":1,"result":[null]}"#);
    record(
        &recorder,
        1,
        ToClient,
        r#"{"id":"1","result":"another id"}"#,
    );
    record(
        &recorder,
        1,
        ToClient,
        r#"{"id":1,"result":{"capabilities":{}}}"#,
    );
    record(
        &recorder,
        1,
        ToServer,
        r#"{"method":"textDocument/didOpen"}"#,
    );
    record(&recorder, 1, ToServer, r#"{"method":"$/cancelRequest"}"#);
    record(
        &recorder,
        1,
        ToServer,
        r#"{"id":2,"method":"textDocument/hover"}"#,
    );
    let events = recorder.events();
    let view = View(&events);
    assert_eq!(view.processes(), [1, 2]);
    assert_eq!(
        view.wire(1),
        ["initialize", "didOpen", "$/cancelRequest", "hover"]
    );
    let asked = view.exchanges(1, ToServer);
    assert_eq!(
        asked
            .iter()
            .map(crate::Exchange::method)
            .collect::<Vec<_>>(),
        ["initialize", "textDocument/hover"]
    );
    assert_eq!(asked[0].answer.map(|e| e.seq), Some(5));
    assert!(asked[0].latency_us().is_some());
    assert_eq!(
        asked[0].result(),
        Some(serde_json::json!({"capabilities": {}}))
    );
    assert!(asked[1].answer.is_none());
    let back = view.exchanges(1, ToClient);
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].answer.map(|e| e.seq), Some(3));
    assert!(events[6].is_message(ToServer, "didOpen"));
    assert!(events[6].is_message(ToServer, "textDocument/didOpen"));
    assert!(!events[6].is_message(ToClient, "didOpen"));
}
