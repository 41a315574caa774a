//! What the server asks and tells (SRQ).

use dsh_fake_lsp::{
    Action, FakeServer, Request, Rule, hold, notify, raw, reply, request, request_and_wait,
    stop_reading,
};
use dsh_lsp::Operation::{GoToDefinition, Hover};
use dsh_transcript::{Direction, EventBody};
use serde_json::{Value, json};

use crate::support::{bench, failure, fake, hover_text};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// Has a server send these requests, with ids from 1, while a hover is in flight; returns the
/// members `result` or `error` of the answers.
#[track_caller]
fn answers_to(requests: &[(&str, Value)], configuration: Value) -> Vec<Value> {
    let asks = (1..)
        .zip(requests)
        .map(|(id, (method, params))| request_and_wait(json!(id), method, params.clone()));
    let server = fake().on("textDocument/hover", asks);
    let setup = bench(server).configure(|config| config.configuration = configuration);
    let over = setup.run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    let answers = over.processes(1).answers(1);
    let ids: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer["id"].as_u64())
        .collect();
    assert_eq!(ids, (1..=requests.len() as u64).collect::<Vec<_>>());
    let take = |answer: &Value| {
        answer
            .get("result")
            .or(answer.get("error"))
            .cloned()
            .unwrap()
    };
    answers.iter().map(take).collect()
}

/// SRQ-1: each id comes back as it was, digit by digit.
#[test]
fn ids_come_back_as_they_were() {
    const IDS: [&str; 12] = [
        "0",
        "-1",
        "7",
        "9007199254740993",
        "123456789012345678901234567890",
        "1.5",
        "1e3",
        "\"\"",
        "\"7\"",
        "\"é😀 \\\"quoted\\\" \\u0041\"",
        "\"null\"",
        "-0",
    ];
    let frame = |id: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"workspace/configuration","params":{{"items":[]}}}}"#
        );
        raw(&format!("Content-Length: {}\r\n\r\n{body}", body.len()))
    };
    let server = fake().on("textDocument/hover", IDS.map(frame));
    let over = bench(server).allowing("answer-unasked").run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let answered = over.raw_answers(1);
    let expected = IDS.map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[]}}"#));
    assert_eq!(answered, expected);
}

/// SRQ-1: a null id is none, and nothing can be answered to it.
#[test]
fn a_null_id_gets_no_answer() {
    let server = fake().on(
        "textDocument/hover",
        [
            request(Value::Null, "workspace/configuration", json!({"items": []})),
            request_and_wait(json!(1), "workspace/configuration", json!({"items": []})),
        ],
    );
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    assert_eq!(over.answers(1).len(), 1);
}

/// A server that asks once, awaits the answer, and goes on, whenever `event` happens.
fn asks_at(event: &str) -> FakeServer {
    fake().on(
        event,
        [request_and_wait(
            json!(event),
            "workspace/configuration",
            json!({"items": []}),
        )],
    )
}

/// SRQ-1: while the handshake is pending, a query in flight, a document being closed, and even
/// while the server is being shut down.
#[test]
fn requests_are_answered_at_any_time() {
    for event in [
        "initialize",
        "initialized",
        "textDocument/didOpen",
        "textDocument/hover",
        "textDocument/didClose",
        "shutdown",
    ] {
        let over = bench(asks_at(event)).run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
        let answers = over.answers(1);
        assert_eq!(
            answers,
            [json!({"jsonrpc": "2.0", "id": event, "result": []})],
            "{event}"
        );
    }
}

/// SRQ-1: between queries too, when nobody asks for anything.
#[test]
fn requests_are_answered_while_the_host_is_idle() {
    let server = fake().on(
        "response",
        [dsh_fake_lsp::note("answered", json!("${params.id}"))],
    );
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.received(1, "didClose").await;
        let ask = request(
            json!("idle"),
            "workspace/configuration",
            json!({"items": []}),
        );
        bench.control.perform(1, [ask]).unwrap();
        bench.noted(1, "note").await;
    });
    assert_eq!(over.answers(1).len(), 1);
}

/// SRQ-1: while a cancelled request has not been settled.
#[test]
fn requests_are_answered_during_the_grace() {
    let ask = request_and_wait(
        json!("grace"),
        "workspace/configuration",
        json!({"items": []}),
    );
    let server = fake()
        .rule(Rule::on("textDocument/hover").run([hold("never"), dsh_fake_lsp::ignore()]))
        .on("$/cancelRequest", [ask]);
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("never").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    assert_eq!(over.processes(1).answers(1).len(), 1);
}

/// SRQ-1: never inside a message that is half written: the answer waits behind it.
#[test]
fn answers_never_stand_inside_a_half_written_message() {
    let server = fake().on("initialized", [stop_reading()]);
    let text = "x".repeat(3_000_000);
    let over = bench(server).file("large.x", &text).run(async |bench| {
        let query = bench.start(Hover, "large.x:1:1");
        bench.received(1, "initialized").await;
        let asks =
            (0..100).map(|id| request(json!(id), "workspace/configuration", json!({"items": []})));
        bench.control.perform(1, asks).unwrap();
        bench.sent(1, "workspace/configuration").await;
        bench.control.perform(1, [Action::ResumeReading]).unwrap();
        query.outcome().await.unwrap();
    });
    // The fake server's reader would have found anything else to be no frame.
    assert_eq!(over.params(1, "didOpen")["textDocument"]["text"], text);
    assert_eq!(over.processes(1).wire(1, ONE_QUERY).answers(1).len(), 100);
}

/// SRQ-1: ten thousand at once, during the handshake and during a query, each answered once and
/// in order. It takes a second or two, nearly all of them spent by a fake server that is built
/// without optimization.
#[test]
fn a_burst_of_requests_is_answered() {
    const MANY: u32 = 10_000;
    let burst = |first: u32| {
        Action::Request(Request {
            method: "client/registerCapability".to_owned(),
            params: None,
            id: Some(json!(first)),
            r#await: true,
            times: MANY,
        })
    };
    let server = fake()
        .on("initialize", [burst(0)])
        .on("textDocument/hover", [burst(MANY)]);
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let answers = over.processes(1).wire(1, ONE_QUERY).raw_answers(1);
    let expected =
        (0..2 * MANY).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
    assert!(answers.into_iter().eq(expected));
}

/// SRQ-1: a server that asks without reading is made to wait once a megabyte of answers does, and
/// goes on when it reads again.
#[test]
fn a_server_that_asks_without_reading_is_made_to_wait() {
    const MANY: u32 = 8_000;
    // Each answer repeats it.
    let method = "no/such/method/".repeat(6);
    let ask = Action::Request(Request {
        method: method.clone(),
        params: None,
        id: Some(json!(0)),
        r#await: false,
        times: MANY,
    });
    let server = fake().on("initialized", [stop_reading(), ask]);
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.sent(1, &method).await;
        bench.control.perform(1, [Action::ResumeReading]).unwrap();
        query.outcome().await.unwrap();
    });
    let answers = over.processes(1).wire(1, ONE_QUERY).raw_answers(1);
    assert_eq!(answers.len(), MANY as usize);
    assert!(answers.iter().map(String::len).sum::<usize>() > 1 << 20);
}

/// SRQ-2: the configured value, once for each item, whatever is asked for.
#[test]
fn configuration_is_the_configured_value_for_each_item() {
    let items = |items: Value| ("workspace/configuration", json!({"items": items}));
    let requests = [
        items(json!([])),
        items(json!([{}])),
        items(json!([{"section": "a"}, {"scopeUri": "file:///x"}, {"section": null}])),
        items(json!([null, 7, "x"])),
    ];
    for value in [
        json!(null),
        json!({"a": [1, {"b": "é\"\\"}]}),
        json!([]),
        json!("text"),
        json!(1.5),
    ] {
        let answers = answers_to(&requests, value.clone());
        let expected = [0, 1, 3, 3].map(|count| Value::Array(vec![value.clone(); count]));
        assert_eq!(answers, expected);
    }
}

/// SRQ-1, SRQ-2: a request for configuration that asks for nothing in particular is answered too.
#[test]
fn a_malformed_request_for_configuration_is_answered() {
    let requests = [
        ("workspace/configuration", json!(null)),
        ("workspace/configuration", json!({})),
        ("workspace/configuration", json!({"items": {}})),
        ("workspace/configuration", json!([])),
    ];
    let answers = answers_to(&requests, json!("secret"));
    assert!(
        answers
            .iter()
            .all(|answer| !answer.to_string().contains("secret")),
        "{answers:?}"
    );
}

/// SRQ-3.
#[test]
fn registrations_and_progress_are_acknowledged() {
    let registration = json!({"id": "1", "method": "textDocument/didSave"});
    let requests = [
        (
            "client/registerCapability",
            json!({"registrations": [registration]}),
        ),
        (
            "client/unregisterCapability",
            json!({"unregisterations": [registration]}),
        ),
        ("window/workDoneProgress/create", json!({"token": "t"})),
        ("client/registerCapability", json!("nonsense")),
    ];
    assert_eq!(answers_to(&requests, json!(1)), vec![Value::Null; 4]);
}

/// SRQ-4: no edit is applied, whatever its form.
#[test]
fn edits_are_refused_and_not_applied() {
    let server = fake().on("textDocument/hover", [
        request_and_wait(json!(1), "workspace/applyEdit", json!({"edit": {"changes": {
            "${uri:a.x}": [{"range": crate::support::lsp_range((0, 0), (0, 5)), "newText": "evil"}],
        }}})),
        request_and_wait(json!(2), "workspace/applyEdit", json!({"label": "x", "edit": {
            "documentChanges": [
                {"kind": "create", "uri": "${uri:new.x}"},
                {"kind": "rename", "oldUri": "${uri:a.x}", "newUri": "${uri:moved.x}"},
                {"kind": "delete", "uri": "${uri:a.x}"},
            ],
        }})),
    ]);
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        assert_eq!(
            std::fs::read_to_string(bench.path("a.x")).unwrap(),
            "const x = 1\n"
        );
        assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 1);
    });
    let answers = over.answers(1);
    assert_eq!(answers.len(), 2);
    for answer in answers {
        assert_eq!(answer["result"]["applied"], false);
        assert!(
            answer["result"]["failureReason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty())
        );
    }
}

/// SRQ-5: anything else is not there, and the session goes on.
#[test]
fn anything_else_is_refused() {
    let long = "x".repeat(5_000);
    let methods = [
        "workspace/executeCommand",
        "window/showMessageRequest",
        "window/showDocument",
        "workspace/codeLens/refresh",
        "workspace/semanticTokens/refresh",
        "textDocument/hover",
        "initialize",
        "shutdown",
        "no/such\"method\n",
        "",
        &long,
    ];
    let requests = methods.map(|method| (method, json!({"command": "touch x", "arguments": []})));
    for answer in answers_to(&requests, json!(1)) {
        assert_eq!(answer["code"], -32601, "{answer}");
        assert!(
            answer["message"]
                .as_str()
                .is_some_and(|text| text.len() < 500),
            "{answer}"
        );
    }
}

/// SRQ-6: notifications of any kind are read and dropped.
#[test]
fn notifications_are_dropped() {
    let server = fake().on(
        "textDocument/hover",
        [
            notify("window/logMessage", json!({"type": 1, "message": "error!"})),
            notify(
                "window/showMessage",
                json!({"type": 1, "message": "error!"}),
            ),
            notify(
                "textDocument/publishDiagnostics",
                json!({"uri": "u", "diagnostics": []}),
            ),
            notify("$/progress", json!({"token": 0, "value": 7})),
            notify("telemetry/event", json!([1, 2])),
            notify("$/cancelRequest", json!({"id": 2})),
            notify("exit", json!(null)),
            notify("no/such", json!("params")),
            reply(json!({"contents": "still here"})),
        ],
    );
    let over = bench(server).run(async |bench| {
        let text = hover_text(bench.query(Hover, "a.x:1:1").await);
        assert_eq!(text.as_deref(), Some("still here"));
    });
    assert!(over.processes(1).wire(1, ONE_QUERY).answers(1).is_empty());
}

/// SRQ-7: the one folder there is.
#[test]
fn the_workspace_folder_is_told() {
    let server = fake().on(
        "textDocument/hover",
        [request_and_wait(
            json!(1),
            "workspace/workspaceFolders",
            Value::Null,
        )],
    );
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let folders = json!([{"uri": over.uri(""), "name": "ws"}]);
    assert_eq!(
        over.answers(1),
        [json!({"jsonrpc": "2.0", "id": 1, "result": folders})]
    );
}

/// SRQ-6, ENV-5: half a surrogate pair in somebody's log line ends no session.
#[test]
fn half_a_surrogate_pair_in_a_notification_is_no_reason_to_die() {
    let body = r#"{"jsonrpc":"2.0","method":"window/logMessage","params":{"type":4,"message":"cut \ud83d"}}"#;
    let frame = raw(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let over = bench(fake().on("textDocument/hover", [frame])).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
    let sent = over.when(|event| {
        matches!(&event.body, EventBody::Frame(frame) if frame.direction == Direction::ToClient)
    });
    assert!(!sent.is_empty());
}
