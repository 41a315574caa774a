//! The control channel: what the runner sees and chooses.

use std::time::Duration;

use dsh_fake_lsp::{
    Control, ControlError, FakeServer, Helper, Rule, Signal, delay_ms, exit, hold, ignore, kill,
    note, notify, reply, request, spawn_helper,
};
use dsh_transcript::{Direction, Event, EventBody, View};
use serde_json::{Value, json};

use crate::client::{BIN, Client, open, position};

/// Puts a deadline around what should take no time.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(90), work)
        .await
        .expect("it should come soon")
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Note { kind, .. } => Some(kind.as_str()),
            _ => None,
        })
        .collect()
}

fn is_note(event: &Event, wanted: &str) -> bool {
    matches!(&event.body, EventBody::Note { kind, .. } if kind == wanted)
}

// The client blocks its thread, so the channel is served by another.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn everything_is_reported_in_order_with_its_bytes() {
    let control = Control::bind().unwrap();
    let server = FakeServer::new()
        .on(
            "textDocument/hover",
            [
                notify("log", json!({})),
                request(json!("q"), "workspace/configuration", json!({})),
            ],
        )
        .control(&control);
    let mut client = Client::start(&server);
    client.initialize();
    client.tell("textDocument/didOpen", &open("file:///w/a", "text"));
    client.ask("textDocument/hover", &position("file:///w/a"));
    for _ in 0..3 {
        client.message();
    }
    client.body(r#"{"jsonrpc":"2.0","id":"q","result":[]}"#);
    client.tell("textDocument/didClose", &position("file:///w/a"));
    let pid = client.child.id();
    assert_eq!(client.shut_down().code(), Some(0));
    soon(control.wait_ended(1)).await;

    let events = control.events();
    let EventBody::ProcessStarted {
        pid: reported,
        argv,
        ..
    } = &events[0].body
    else {
        panic!()
    };
    assert_eq!((*reported, argv[1].as_str()), (pid, "--script-inline"));
    let view = View(&events);
    let wire = [
        "initialize",
        "initialized",
        "didOpen",
        "hover",
        "didClose",
        "shutdown",
        "exit",
    ];
    assert_eq!(view.wire(1), wire);
    let answers = view.exchanges(1, Direction::ToServer);
    assert!(
        answers.iter().all(|exchange| exchange.answer.is_some()),
        "{answers:#?}"
    );
    assert_eq!(
        view.exchanges(1, Direction::ToClient)[0].result(),
        Some(json!([]))
    );
    let (_, first) = view.sent(1, Direction::ToServer).next().unwrap();
    assert_eq!(
        first.header.lossy(),
        format!("Content-Length: {}\r\n\r\n", first.size)
    );
    assert_eq!(kinds(&events), ["rule", "answer", "ending"]);
    let end = EventBody::ProcessEnded {
        code: Some(0),
        signal: None,
    };
    assert_eq!(events.last().unwrap().body, end);
    let times: Vec<u64> = view.of(1).skip(1).map(|event| event.at_us).collect();
    assert!(times[..times.len() - 1].is_sorted(), "{times:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_runner_chooses_the_order_of_answers() {
    let control = Control::bind().unwrap();
    let server = FakeServer::new()
        .on("textDocument/hover", [hold("h"), reply(json!("hover"))])
        .on(
            "textDocument/definition",
            [hold("d"), reply(json!("definition"))],
        )
        .control(&control);
    let mut client = Client::start(&server);
    client.initialize();
    client.ask("textDocument/hover", &Value::Null);
    client.ask("textDocument/definition", &Value::Null);
    soon(control.wait_held("h")).await;
    soon(control.wait_held("d")).await;
    control.release("d");
    assert_eq!(client.message()["result"], "definition");
    control.release("h");
    assert_eq!(client.message()["result"], "hover");

    // Released before it is held, and once for each.
    control.release("h");
    assert_eq!(client.hover()["result"], "hover");
    let mut later = control.recorder().subscribe_from(control.recorder().len());
    let id = client.ask("textDocument/hover", &Value::Null);
    soon(later.wait_for(|event| is_note(event, "held"))).await;
    // What the runner says comes in order: had it released this one, its answer came first.
    control.perform(1, [notify("mark", Value::Null)]).unwrap();
    assert_eq!(client.message()["method"], "mark");
    control.release("h");
    assert_eq!(client.message()["id"], id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancelled_hold_is_answered_once_and_needs_no_release() {
    let control = Control::bind().unwrap();
    let server = FakeServer::new()
        .on("textDocument/hover", [hold("h"), reply(json!("late"))])
        .control(&control);
    let mut client = Client::start(&server);
    client.initialize();
    let id = client.ask("textDocument/hover", &Value::Null);
    soon(control.wait_held("h")).await;
    client.tell("$/cancelRequest", &json!({"id": id}));
    assert_eq!(client.message()["error"]["code"], -32800);
    soon(control.wait_for(|event| is_note(event, "dropped"))).await;
    // The next release is not used up by the one that is gone.
    control.release("h");
    let next = client.call("textDocument/hover", &Value::Null);
    assert_eq!(
        (&next["id"], &next["result"]),
        (&json!(id + 1), &json!("late"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn processes_are_numbered_as_they_connect_and_rules_follow() {
    let control = Control::bind().unwrap();
    let server = FakeServer::new()
        .rule(
            Rule::on("textDocument/hover")
                .process(1)
                .run([kill(Signal::SIGKILL)]),
        )
        .rule(Rule::on("textDocument/hover").run([reply(json!("${process}"))]))
        .control(&control);
    let mut first = Client::start(&server);
    first.initialize();
    first.ask("textDocument/hover", &Value::Null);
    assert!(!first.end().success());
    let ended = soon(control.wait_ended(1)).await;
    assert_eq!(
        ended.body,
        EventBody::ProcessEnded {
            code: None,
            signal: Some(9)
        }
    );
    let mut second = Client::start(&server);
    second.initialize();
    assert_eq!(second.hover()["result"], 2);
    assert_eq!(control.processes(), 2);
    let events = control.events();
    assert_eq!(
        View(&events).wire(1),
        ["initialize", "initialized", "hover"]
    );
    assert_eq!(View(&events).processes(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn all_that_was_said_before_a_kill_is_kept() {
    let control = Control::bind().unwrap();
    let server = FakeServer::new()
        .on(
            "textDocument/hover",
            [
                dsh_fake_lsp::notify_times(2000, "log", json!({"n": "${n}"})),
                note("last", json!({"id": "${id}"})),
                kill(Signal::SIGKILL),
            ],
        )
        .control(&control);
    let mut client = Client::start(&server);
    client.initialize();
    client.ask("textDocument/hover", &Value::Null);
    client.rest();
    assert!(!client.end().success());
    // Not a moment later: it did not die before the runner had everything.
    let events = control.events();
    assert!(kinds(&events).contains(&"ending"));
    let logs = View(&events)
        .sent(1, Direction::ToClient)
        .filter(|(_, frame)| frame.is_notification());
    assert_eq!(logs.count(), 2000);
    let last = View(&events).notes("note").next().unwrap();
    assert_eq!(
        last.body,
        EventBody::Note {
            kind: "note".into(),
            message: "last".into(),
            data: json!({"id": 2})
        }
    );
}

/// The channel of a process that is killed may be closed before its pipes are; its end is told when
/// all of it is over, so that nobody who waited for it can write to one that is still dying.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_is_told_when_the_process_can_be_reaped() {
    for _ in 0..20 {
        let control = Control::bind().unwrap();
        let mut client = Client::start(&FakeServer::new().control(&control));
        client.initialize();
        control.perform(1, [kill(Signal::SIGKILL)]).unwrap();
        soon(control.wait_ended(1)).await;
        assert!(client.child.try_wait().unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_runner_can_have_things_done_at_any_time() {
    let control = Control::bind().unwrap();
    let mut client = Client::start(&FakeServer::new().control(&control));
    client.initialize();
    control
        .perform(1, [notify("out/of/the/blue", json!("${process}"))])
        .unwrap();
    assert_eq!(client.message()["params"], 1);
    control.perform(1, [exit(9)]).unwrap();
    assert_eq!(client.end().code(), Some(9));
    soon(control.wait_ended(1)).await;
    let error = control.perform(1, [ignore()]).unwrap_err();
    assert!(matches!(error, ControlError::NotConnected(1)));
    assert!(matches!(
        control.perform(2, []),
        Err(ControlError::NotConnected(2))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn losing_the_channel_ends_the_server_and_removes_the_socket() {
    let control = Control::bind().unwrap();
    // Deaf to everything else.
    let server = FakeServer::new()
        .on(
            "start",
            [dsh_fake_lsp::trap_sigterm(), dsh_fake_lsp::stop_reading()],
        )
        .control(&control);
    let mut client = Client::start(&server);
    soon(control.wait_for(|event| is_note(event, "rule"))).await;
    let address = control.address().to_owned();
    assert!(address.len() < 100, "{address}");
    assert!(std::path::Path::new(&address).exists());
    drop(control);
    assert_eq!(client.end().code(), Some(70));
    assert_eq!(
        client.stderr(),
        b"dsh-fake-lsp: the control channel is lost\n"
    );
    assert!(!std::path::Path::new(&address).parent().unwrap().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn losing_the_channel_ends_helpers_too() {
    let control = Control::bind().unwrap();
    let helper = |orphan| Helper {
        deaf: true,
        inherit: true,
        orphan,
        ..Helper::default()
    };
    let server = FakeServer::new()
        .on(
            "initialized",
            [
                spawn_helper(helper(false)),
                spawn_helper(helper(true)),
                exit(0),
            ],
        )
        .control(&control);
    let mut client = Client::start(&server);
    client.initialize();
    assert_eq!(client.end().code(), Some(0));
    let events = control.events();
    let pids: Vec<u64> = View(&events)
        .notes("helper")
        .filter_map(|event| match &event.body {
            EventBody::Note { data, .. } => data["pid"].as_u64(),
            _ => None,
        })
        .collect();
    assert_eq!(pids.len(), 2, "{events:#?}");
    assert!(
        pids.iter()
            .all(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists())
    );
    drop(control);
    // Both hold stdout, so its end is theirs.
    client.rest();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_order_of_the_client_is_checked() {
    let control = Control::bind().unwrap();
    let mut client = Client::start(&FakeServer::new().control(&control));
    client.initialize();
    client.call("textDocument/hover", &position("u"));
    client.tell("textDocument/didOpen", &open("u", "a"));
    client.tell("textDocument/didOpen", &open("u", "b"));
    client.body(r#"{"jsonrpc":"2.0","id":99,"result":null}"#);
    client.call("shutdown", &Value::Null);
    client.tell("initialized", &Value::Null);
    client.tell("exit", &Value::Null);
    client.end();
    soon(control.wait_ended(1)).await;
    let events = control.events();
    let rules: Vec<Value> = View(&events)
        .notes("order")
        .map(|event| match &event.body {
            EventBody::Note { data, .. } => data["rule"].clone(),
            _ => Value::Null,
        })
        .collect();
    assert_eq!(
        rules,
        ["open-document", "open-once", "answer-unasked", "exit-only"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn signals_are_reported_before_the_server_dies_of_them() {
    let control = Control::bind().unwrap();
    let mut client = Client::start(&FakeServer::new().control(&control));
    client.initialize();
    rustix::process::kill_process(client.pid(), rustix::process::Signal::TERM).unwrap();
    let status = client.end();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(15)
    );
    let ended = soon(control.wait_ended(1)).await;
    assert_eq!(
        ended.body,
        EventBody::ProcessEnded {
            code: None,
            signal: Some(15)
        }
    );
    assert_eq!(kinds(&control.events()), ["signal", "ending"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_cannot_be_read_is_reported_with_its_bytes() {
    let control = Control::bind().unwrap();
    let mut client = Client::start(&FakeServer::new().control(&control));
    client.bytes(b"content-length: 2\r\n\r\n{}Content-Length: x\r\n\r\n");
    assert_eq!(client.end().code(), Some(1));
    soon(control.wait_ended(1)).await;
    let events = control.events();
    let (_, frame) = View(&events).sent(1, Direction::ToServer).next().unwrap();
    assert_eq!(frame.deviations, [dsh_transcript::Deviation::NameCase]);
    let stray = View(&events).stray(1, Direction::ToServer).next().unwrap();
    let EventBody::Stray {
        bytes,
        offset: 23,
        reason: Some(_),
        ..
    } = &stray.body
    else {
        panic!("{stray:?}")
    };
    assert_eq!(bytes.lossy(), "Content-Length: x\r\n\r\n");
}

#[test]
fn a_hold_that_nobody_can_release_is_refused() {
    let server = FakeServer::new().on("shutdown", [delay_ms(1), hold("h")]);
    let output = server.command(BIN).unwrap().std().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("holds \"h\"") && stderr.contains("--control"),
        "{stderr}"
    );
}

#[test]
fn a_runner_that_is_not_there_is_named() {
    let server = FakeServer::new().control_address("/nowhere/c");
    let output = server.command(BIN).unwrap().std().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("cannot reach the runner at /nowhere/c"),
        "{stderr}"
    );
}
