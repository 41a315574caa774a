//! Ends, signals, streams and helpers.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::client::{BIN, Client, position};

#[test]
fn exit_and_kill_end_it_after_what_was_written() {
    for (action, code, signal) in [
        ("exit: 7", Some(7), None),
        ("kill: SIGKILL", None, Some(9)),
        ("kill: SIGTERM", None, Some(15)),
        ("kill: SIGSEGV", None, Some(11)),
        ("kill: SIGABRT", None, Some(6)),
        ("kill: SIGPIPE", None, Some(13)),
        ("kill: SIGHUP", None, Some(1)),
        ("kill: SIGINT", None, Some(2)),
        ("kill: SIGQUIT", None, Some(3)),
        ("kill: SIGBUS", None, Some(7)),
        ("kill: SIGFPE", None, Some(8)),
        ("kill: SIGILL", None, Some(4)),
    ] {
        // Where it may leave a core file, so that it is seen not to.
        let folder = tempfile::tempdir().unwrap();
        let long = "{notify: {method: m, params: '${repeat:200000:x}'}}";
        let script = format!("[{{on: textDocument/hover, do: [{long}, {{{action}}}]}}]");
        let mut command = std::process::Command::new("sh");
        command.args([
            "-c",
            "ulimit -S -c unlimited; exec \"$0\" --script-inline \"$1\"",
        ]);
        command.args([BIN, &script]).current_dir(&folder);
        let mut client = Client::spawn(command);
        client.initialize();
        client.ask("textDocument/hover", &position("file:///w/a"));
        assert_eq!(
            client.message()["params"].as_str().map(str::len),
            Some(200_000),
            "{action}"
        );
        assert_eq!(client.rest(), b"");
        let status = client.end();
        assert_eq!((status.code(), status.signal()), (code, signal), "{action}");
        assert!(!status.core_dumped(), "{action}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{action}");
    }
}

#[test]
fn a_frame_can_be_cut_short_by_the_end() {
    let mut client = Client::ready(
        "[{on: textDocument/hover, do: [{frame: {only: 30}}, {reply: x}, {kill: SIGKILL}]}]",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    assert_eq!(client.rest(), b"Content-Length: 37\r\n\r\n{\"jsonrp");
}

#[test]
fn sigstop_stops_it_until_it_is_continued() {
    let mut client = Client::ready("[{on: textDocument/hover, do: [default, {kill: SIGSTOP}]}]");
    assert_eq!(client.hover()["result"], Value::Null);
    let options = rustix::process::WaitOptions::UNTRACED;
    let (_, status) = rustix::process::waitpid(Some(client.pid()), options)
        .unwrap()
        .unwrap();
    assert!(status.stopped());
    let id = client.ask("textDocument/definition", &Value::Null);
    kill_process(client.pid(), Signal::CONT).unwrap();
    assert_eq!(client.message()["id"], id);
}

#[test]
fn close_closes_each_stream() {
    let closing = |stream: &str| {
        Client::ready(&format!(
            "[{{on: x/close, do: [{{close: {stream}}}, {{delay_ms: 1}}, {{stderr: still here}}]}}]"
        ))
    };
    let mut client = closing("stdout");
    client.tell("x/close", &Value::Null);
    assert_eq!(client.rest(), b"");
    assert!(client.child.try_wait().unwrap().is_none(), "it lives on");

    let mut client = closing("stderr");
    client.tell("x/close", &Value::Null);
    assert_eq!(client.stderr(), b"");
    assert_eq!(client.hover()["result"], Value::Null);

    let mut client = closing("stdin");
    client.tell("x/close", &Value::Null);
    // Its other end notices when it is written to.
    let mut stdin = client.stdin.take().unwrap();
    let error = loop {
        if let Err(error) = std::io::Write::write(&mut stdin, &[0; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(client.child.try_wait().unwrap().is_none(), "it lives on");
}

#[test]
fn trap_outlives_sigterm_and_a_rule_can_act_on_it() {
    let mut client =
        Client::ready("[{on: initialized, do: [{trap: SIGTERM}, {notify: {method: deaf}}]}]");
    assert_eq!(client.message()["method"], "deaf");
    for _ in 0..3 {
        kill_process(client.pid(), Signal::TERM).unwrap();
        assert_eq!(client.hover()["result"], Value::Null);
    }

    let mut client = Client::script(
        "
- {on: SIGTERM, nth: 1, do: [{notify: {method: ouch}}, ignore]}
- {on: SIGTERM, nth: 2, do: [{exit: 5}]}
",
    );
    client.initialize();
    kill_process(client.pid(), Signal::TERM).unwrap();
    assert_eq!(client.message()["method"], "ouch");
    kill_process(client.pid(), Signal::TERM).unwrap();
    assert_eq!(client.end().code(), Some(5));
}

#[test]
fn without_a_script_sigterm_is_deadly() {
    let mut client = Client::ready("[]");
    kill_process(client.pid(), Signal::TERM).unwrap();
    assert_eq!(client.end().signal(), Some(15));
}

#[test]
fn eof_is_an_event() {
    let mut client = Client::ready("[{on: eof, do: [{notify: {method: bye}}, {exit: 4}]}]");
    client.stdin = None;
    assert_eq!(client.message()["method"], "bye");
    assert_eq!(client.end().code(), Some(4));

    let mut client = Client::ready("[{on: eof, do: [{notify: {method: no}}, ignore]}]");
    client.stdin = None;
    assert_eq!(client.message()["method"], "no");
    assert!(client.child.try_wait().unwrap().is_none(), "it lives on");
}

#[test]
fn start_comes_before_anything_is_read() {
    let mut client = Client::script("[{on: start, do: [{notify: {method: early}}]}]");
    client.ask("initialize", &json!({}));
    assert_eq!(client.message()["method"], "early");
    assert_eq!(client.message()["id"], 1);
    let mut client = Client::script("[{on: start, do: [{exit: 3}]}]");
    assert_eq!(client.end().code(), Some(3));
}

/// Starts a helper and returns the server with the helper's process id.
fn helper(options: &str) -> (Client, Pid) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let script =
        format!("[{{on: initialized, do: [{{spawn_helper: {{{options}}}}}, {{exit: 0}}]}}]");
    let path = log.path().to_str().unwrap();
    let mut client = Client::with_args(&["--script-inline", &script, "--transcript", path]);
    client.initialize();
    assert_eq!(client.end().code(), Some(0));
    let events = dsh_transcript::jsonl::read(std::io::BufReader::new(log)).unwrap();
    let pid = events
        .iter()
        .find_map(|event| match &event.body {
            dsh_transcript::EventBody::Note { kind, data, .. } if kind == "helper" => {
                Pid::from_raw(i32::try_from(data["pid"].as_i64()?).ok()?)
            }
            _ => None,
        })
        .expect("the helper is in the transcript");
    (client, pid)
}

#[test]
fn a_helper_outlives_its_server_and_can_be_ended() {
    let (mut client, pid) = helper("inherit: true");
    assert!(test_kill_process(pid).is_ok());
    kill_process(pid, Signal::TERM).unwrap();
    // It holds stdout, so its end is the helper's.
    client.rest();
}

#[test]
fn a_deaf_helper_survives_sigterm() {
    let (mut client, pid) = helper("inherit: true, deaf: true");
    kill_process(pid, Signal::TERM).unwrap();
    let field = |name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned();
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    let term = 1_u64 << 14;
    let mask = |name: &str| u64::from_str_radix(&field(name), 16).unwrap();
    assert_ne!(mask("SigCgt") & term, 0, "SIGTERM is caught");
    // Until the signal was taken.
    while mask("ShdPnd") & term != 0 {
        std::thread::yield_now();
    }
    assert!(["S (sleeping)", "R (running)"].contains(&field("State").as_str()));
    kill_process(pid, Signal::KILL).unwrap();
    client.rest();
}

#[test]
fn a_helper_can_leave_its_session_and_its_parent() {
    let (mut client, pid) = helper("inherit: true, new_session: true, orphan: true");
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
    assert_eq!(rustix::process::getpgid(Some(pid)).unwrap(), pid);
    kill_process(pid, Signal::KILL).unwrap();
    client.rest();
    let (mut client, pid) = helper("inherit: true");
    assert_ne!(rustix::process::getpgid(Some(pid)).unwrap(), pid);
    kill_process(pid, Signal::KILL).unwrap();
    client.rest();
}

#[test]
fn a_helper_ends_by_itself() {
    let (mut client, _) = helper("inherit: true, deaf: true, life_ms: 20");
    client.rest();
}

#[test]
fn an_orphan_is_not_the_childs_of_a_living_server() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap();
    let script = "[{on: textDocument/hover, do: [{spawn_helper: {orphan: true}}]}]";
    let mut client = Client::with_args(&["--script-inline", script, "--transcript", path]);
    client.initialize();
    client.hover();
    let children = format!("/proc/{0}/task/{0}/children", client.child.id());
    assert_eq!(std::fs::read_to_string(children).unwrap(), "");
    let pid = {
        client.shut_down();
        let events = dsh_transcript::jsonl::read(std::io::BufReader::new(log)).unwrap();
        let helper = dsh_transcript::View(&events)
            .notes("helper")
            .next()
            .cloned()
            .unwrap();
        let dsh_transcript::EventBody::Note { data, .. } = helper.body else {
            panic!()
        };
        Pid::from_raw(i32::try_from(data["pid"].as_i64().unwrap()).unwrap()).unwrap()
    };
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn a_counter_numbers_the_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("count");
    for number in 1..4 {
        let server = dsh_fake_lsp::FakeServer::new()
            .on("tell", [dsh_fake_lsp::reply(json!("${process}"))])
            .counter(&file);
        let mut client = Client::start(&server);
        client.initialize();
        assert_eq!(client.call("tell", &Value::Null)["result"], number);
    }
}

#[test]
fn the_transcript_has_everything_with_its_bytes() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = dsh_fake_lsp::FakeServer::new()
        .on(
            "textDocument/hover",
            [dsh_fake_lsp::raw("garbage\n"), dsh_fake_lsp::exit(2)],
        )
        .transcript(log.path());
    let mut client = Client::start(&server);
    client.initialize();
    client.ask("textDocument/hover", &position("u"));
    assert_eq!(client.end().code(), Some(2));
    let events = dsh_transcript::jsonl::read(std::io::BufReader::new(log)).unwrap();
    let view = dsh_transcript::View(&events);
    assert_eq!(view.wire(1), ["initialize", "initialized", "hover"]);
    assert!(matches!(
        events[0].body,
        dsh_transcript::EventBody::ProcessStarted { .. }
    ));
    let stray = view
        .stray(1, dsh_transcript::Direction::ToClient)
        .next()
        .unwrap();
    let dsh_transcript::EventBody::Stray { bytes, .. } = &stray.body else {
        panic!()
    };
    assert_eq!(bytes.lossy(), "garbage\n");
    let closed = events.iter().any(|event| {
        let direction = dsh_transcript::Direction::ToClient;
        matches!(&event.body, dsh_transcript::EventBody::Closed { direction: d, total } if *d == direction && *total > 8)
    });
    assert!(closed, "{events:#?}");
    let ending = view.notes("ending").next().unwrap();
    let dsh_transcript::EventBody::Note { data, .. } = &ending.body else {
        panic!()
    };
    assert_eq!(data["code"], 2);
}
