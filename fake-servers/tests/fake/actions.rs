//! One test, or more, for each action of a script.

use serde_json::{Value, json};

use crate::client::{Client, open, position};

/// The frame of a body.
fn frame(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The frame of the answer to the first hover after the handshake.
fn null_answer() -> String {
    frame(r#"{"jsonrpc":"2.0","id":2,"result":null}"#)
}

#[test]
fn reply_gives_a_result_or_an_error() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, nth: 1, do: [{reply: {contents: hi}}]}
- {on: textDocument/hover, nth: 2, do: [{reply: {error: {code: -32801, message: changed}}}]}
- {on: textDocument/hover, nth: 3, do: [{reply: {result: {error: odd, result: odd}}}]}
- {on: textDocument/hover, nth: 4, do: [reply: null]}
- {on: textDocument/hover, nth: 5, do: [reply: [off, No, 1.0, '2', 0x10]]}
",
    );
    assert_eq!(client.hover()["result"], json!({"contents": "hi"}));
    let answer = client.hover();
    assert_eq!(
        answer["error"],
        json!({"code": -32801, "message": "changed"})
    );
    assert!(answer.get("result").is_none());
    assert_eq!(
        client.hover()["result"],
        json!({"error": "odd", "result": "odd"})
    );
    let answer = client.hover();
    assert_eq!(answer.get("result"), Some(&Value::Null));
    assert_eq!(client.hover()["result"], json!(["off", "No", 1.0, "2", 16]));
}

#[test]
fn reply_raw_is_the_body_byte_for_byte() {
    let mut client = Client::ready(
        r#"
- on: textDocument/hover
  do: [{reply_raw: '{"id": "${id}",  "result": 1.00}'}, {reply_raw: {base64: /w==}}]
"#,
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    client.stdin = None;
    let expected = [
        frame(r#"{"id": "2",  "result": 1.00}"#).into_bytes(),
        b"Content-Length: 1\r\n\r\n\xff".to_vec(),
    ]
    .concat();
    assert_eq!(client.rest(), expected);
}

#[test]
fn capabilities_are_merged_or_replaced() {
    let capabilities =
        |yaml: &str| Client::script(yaml).initialize()["result"]["capabilities"].clone();
    let merged = capabilities("{capabilities: {hoverProvider: false, positionEncoding: null}}");
    assert_eq!(merged["hoverProvider"], false);
    assert_eq!(merged["definitionProvider"], true);
    assert!(merged.get("positionEncoding").is_none());
    let by_rule = "[{on: initialize, do: [capabilities: {textDocumentSync: {change: null}}]}]";
    assert_eq!(
        capabilities(by_rule)["textDocumentSync"],
        json!({"openClose": true})
    );
    assert_eq!(
        capabilities("{replace_capabilities: [odd]}"),
        json!(["odd"])
    );
    assert_eq!(capabilities("{replace_capabilities: null}"), Value::Null);
}

#[test]
fn default_does_what_is_usual_and_what_settles_nothing_is_followed_by_it() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, nth: 1, do: [default, {notify: {method: after}}]}
- {on: textDocument/hover, nth: 2, do: [{notify: {method: before}}]}
- {on: shutdown, do: [{notify: {method: bye}}]}
",
    );
    assert_eq!(client.hover()["result"], Value::Null);
    assert_eq!(client.message()["method"], "after");
    client.ask("textDocument/hover", &position("file:///w/a"));
    assert_eq!(client.message()["method"], "before");
    assert_eq!(client.message()["id"], 3);
    client.ask("shutdown", &Value::Null);
    assert_eq!(client.message()["method"], "bye");
    assert_eq!(client.message()["id"], 4);
    client.tell("exit", &Value::Null);
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn ignore_leaves_a_request_open_until_it_is_cancelled() {
    let mut client = Client::ready("[{on: textDocument/hover, do: [ignore]}]");
    let id = client.ask("textDocument/hover", &position("file:///w/a"));
    // Something else is answered meanwhile, so the silence is seen without waiting.
    let other = client.call("textDocument/definition", &position("file:///w/a"));
    assert_eq!(other["result"], Value::Null);
    client.tell("$/cancelRequest", &json!({"id": id}));
    let answer = client.message();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(id), &json!(-32800))
    );
    // Once answered, it is not answered again.
    client.tell("$/cancelRequest", &json!({"id": id}));
    assert_eq!(client.call("textDocument/definition", &json!({}))["id"], 4);
}

#[test]
fn a_cancel_that_is_ignored_changes_nothing() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, do: [ignore]}
- {on: $/cancelRequest, do: [ignore]}
",
    );
    let id = client.ask("textDocument/hover", &position("file:///w/a"));
    client.tell("$/cancelRequest", &json!({"id": id}));
    assert_eq!(client.call("shutdown", &Value::Null)["result"], Value::Null);
}

#[test]
fn delay_ms_lets_others_pass() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, do: [{delay_ms: 150}, {reply: slow}]}
- {on: textDocument/references, do: [{delay_ms: 20}, {reply: quicker}]}
",
    );
    let start = std::time::Instant::now();
    // In one write, so that no pause of this test comes between them.
    client.ask_all(&[
        "textDocument/hover",
        "textDocument/references",
        "textDocument/definition",
    ]);
    assert_eq!(client.message()["id"], 4);
    assert_eq!(client.message()["result"], "quicker");
    assert_eq!(client.message()["result"], "slow");
    assert!(start.elapsed() >= std::time::Duration::from_millis(150));
}

#[test]
fn a_cancelled_delay_does_not_answer_later() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, do: [{delay_ms: 100}, {reply: late}]}
- {on: textDocument/references, do: [{delay_ms: 150}, {reply: last}]}
- on: textDocument/definition
  do: [{request: {method: q, id: r, await: true}}, {notify: {method: never}}]
",
    );
    let cancel = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}"#;
    let ask = |id: u64, method: &str| {
        frame(&json!({"id": id, "method": format!("textDocument/{method}")}).to_string())
    };
    client.bytes(
        [ask(2, "hover"), frame(cancel), ask(3, "references")]
            .concat()
            .as_bytes(),
    );
    assert_eq!(client.message()["error"]["code"], -32800);
    assert_eq!(client.message()["result"], "last");
    // The same while it waits for an answer.
    client.bytes(ask(2, "definition").as_bytes());
    assert_eq!(client.message()["id"], "r");
    client.bytes(frame(cancel).as_bytes());
    assert_eq!(client.message()["error"]["code"], -32800);
    client.body(r#"{"id":"r","result":null}"#);
    assert_eq!(client.hover_id(9)["result"], "late");
}

#[test]
fn notify_sends_any_number() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do:
    - {notify: {method: one}}
    - {notify: {method: 'n/${n}', params: {count: '${n}', is: '#${n}'}, times: 10000}}
    - default
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    assert_eq!(client.message(), json!({"jsonrpc": "2.0", "method": "one"}));
    for n in 0..10_000 {
        let expected = json!({"jsonrpc": "2.0", "method": format!("n/{n}"),
            "params": {"count": n, "is": format!("#{n}")}});
        assert_eq!(client.message(), expected);
    }
    assert_eq!(client.message()["id"], 2);
}

#[test]
fn request_has_any_id_and_its_answer_is_awaited() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do:
    - {request: {method: a}}
    - {request: {method: b, id: s1, params: {x: 1}}}
    - {request: {method: c, id: -5}}
    - {request: {method: d, id: null}}
    - {request: {method: e, id: 9007199254740991}}
    - {request: {method: f, id: 'f${n}', times: 2, await: true}}
    - {request: {method: g, id: 100, times: 2, await: true}}
    - {reply: done}
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    let ids = [
        json!(1),
        json!("s1"),
        json!(-5),
        Value::Null,
        json!(9_007_199_254_740_991_i64),
    ];
    for (method, id) in ["a", "b", "c", "d", "e"].into_iter().zip(ids) {
        let message = client.message();
        assert_eq!((&message["method"], &message["id"]), (&json!(method), &id));
        assert_eq!(message.get("params").is_some(), method == "b");
    }
    let answer = |client: &mut Client, id: Value| {
        client.body(&json!({"jsonrpc": "2.0", "id": id, "result": null}).to_string());
    };
    assert_eq!(client.message()["id"], "f0");
    assert_eq!(client.message()["id"], "f1");
    // Other traffic goes on while the answers are awaited.
    assert_eq!(client.call("textDocument/definition", &json!({}))["id"], 3);
    answer(&mut client, json!("f1"));
    answer(&mut client, json!("f1"));
    assert_eq!(client.call("textDocument/definition", &json!({}))["id"], 4);
    answer(&mut client, json!("f0"));
    assert_eq!(client.message()["id"], 100);
    assert_eq!(client.message()["id"], 101);
    answer(&mut client, json!(100));
    answer(&mut client, json!(101));
    assert_eq!(client.message()["result"], "done");
}

#[test]
fn an_answer_is_an_event_a_rule_can_match() {
    let mut client = Client::ready(
        "
- {on: textDocument/hover, do: [{request: {method: ask, id: q}}]}
- on: response
  when: {method: ask, result: [5]}
  do: [{notify: {method: right, params: '${params.result.0}'}}]
- {on: response, do: [{notify: {method: wrong, params: '${params.error.code}'}}]}
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    assert_eq!(client.message()["id"], "q");
    assert_eq!(client.message()["id"], 2);
    client.body(r#"{"jsonrpc":"2.0","id":"q","result":[5]}"#);
    assert_eq!(
        client.message(),
        json!({"jsonrpc": "2.0", "method": "right", "params": 5})
    );
    client.body(r#"{"jsonrpc":"2.0","id":"q","error":{"code":3}}"#);
    assert_eq!(
        client.message(),
        json!({"jsonrpc": "2.0", "method": "wrong", "params": 3})
    );
}

#[test]
fn each_of_many_frames_is_cut_at_a_place_of_its_own() {
    let mut client = Client::ready(
        "[{on: textDocument/hover, do: [{chunk: each_place}, {notify: {method: n, times: 30}}]}]",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    let frame = "Content-Length: 30\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}";
    let whole = frame.repeat(30) + &null_answer();
    let mut read = String::new();
    let mut ends = std::collections::BTreeSet::new();
    while read != whole {
        read += &client.piece().unwrap();
        ends.insert(read.len());
    }
    for n in 0..30 {
        let cut = n * frame.len() + n + 1;
        assert!(ends.contains(&cut), "no piece ends at {cut}: {ends:?}");
    }
}

#[test]
fn chunk_is_seen_in_its_pieces() {
    let hover = |chunk: &str| {
        let mut client = Client::ready(&format!(
            "[{{on: textDocument/hover, do: [{{chunk: {chunk}}}]}}]"
        ));
        client.ask("textDocument/hover", &position("file:///w/a"));
        let mut pieces = Vec::new();
        while pieces.concat() != null_answer() {
            pieces.push(client.piece().unwrap());
        }
        // And what comes later is whole again.
        client.ask("textDocument/definition", &position("file:///w/a"));
        assert!(client.piece().is_some_and(|piece| piece.ends_with('}')));
        pieces
    };
    let whole = null_answer();
    let bytes: Vec<String> = whole.chars().map(String::from).collect();
    assert_eq!(hover("each_byte"), bytes);
    assert_eq!(
        hover("{sizes: [3, 20]}"),
        [&whole[..3], &whole[3..23], &whole[23..]]
    );
    assert_eq!(
        hover("{at: [20, -1]}"),
        [&whole[..20], &whole[20..59], &whole[59..]]
    );
    assert_eq!(hover("{at: []}"), [whole]);
}

#[test]
fn a_chunk_waits_for_what_was_written_before() {
    // The answer before fills the pipe several times over.
    let mut client = Client::ready(
        "
- {on: textDocument/hover, do: [{reply: '${repeat:300000:x}'}]}
- {on: textDocument/definition, do: [{chunk: {at: [5]}}]}
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    client.ask("textDocument/definition", &position("file:///w/a"));
    assert_eq!(client.message()["id"], 2);
    assert_eq!(client.piece().as_deref(), Some("Conte"));
    assert!(
        client
            .piece()
            .is_some_and(|rest| rest.starts_with("nt-Length"))
    );
}

#[test]
fn coalesce_makes_one_write() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do: [{notify: {method: a}}, coalesce, {notify: {method: b}}, default, {notify: {method: c}}]
- on: textDocument/definition
  do: [coalesce, {chunk: {at: [60]}}, {notify: {method: a}}, {notify: {method: b}}, {delay_ms: 1}]
",
    );
    let note = |method: &str| frame(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    let id = client.ask("textDocument/hover", &position("file:///w/a"));
    assert_eq!(id, 2);
    let (first, rest) = (note("a"), [note("b"), null_answer(), note("c")].concat());
    let piece = client.piece().unwrap();
    // The first is a write of its own, and may or may not be read together with the second.
    if piece == first {
        assert_eq!(client.piece(), Some(rest));
    } else {
        assert_eq!(piece, first + &rest);
    }
    client.ask("textDocument/definition", &position("file:///w/a"));
    // A cut inside the second frame, so both are in the write that is cut.
    let block = note("a") + &note("b");
    assert_eq!(client.piece().as_deref(), Some(&block[..60]));
    assert_eq!(client.message_after(&block[60..])["id"], 3);
}

#[test]
fn frame_spells_the_next_frame() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do:
    - {frame: {case: lower, extra: ['X-Odd: 1', 'Content-Type: a; charset=utf-8'], order: length_last}}
    - {notify: {method: a}}
    - {frame: {length_by: 2}}
    - {notify: {method: b}}
    - {notify: {method: c}}
    - {frame: {length: '${length}', second_length: 7, separator: ':', after: ' ', lf_only: true}}
    - {notify: {method: d}}
    - {frame: {only: -3}}
    - default
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    client.stdin = None;
    let body = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
    let expected = [
        "x-odd: 1\r\ncontent-type: a; charset=utf-8\r\ncontent-length: 30\r\n\r\n",
        &body("a"),
        "Content-Length: 32\r\n\r\n",
        &body("b"),
        "Content-Length: 30\r\n\r\n",
        &body("c"),
        "Content-Length:30 \nContent-Length:7 \n\n",
        &body("d"),
        &null_answer()[..null_answer().len() - 3],
    ];
    assert_eq!(String::from_utf8(client.rest()).unwrap(), expected.concat());
}

#[test]
fn raw_writes_any_bytes() {
    let mut client = Client::script(
        "
- on: start
  do: [{raw: \"starting ${pid}\\n\"}]
- on: initialize
  do: [{raw: {base64: AP8=}}, {raw: {text: 'ab', times: 3}}]
",
    );
    let expected = format!("starting {}\n", client.child.id());
    assert_eq!(client.piece(), Some(expected));
    client.ask("initialize", &json!({}));
    client.stdin = None;
    let rest = client.rest();
    assert!(
        rest.starts_with(b"\x00\xffabababContent-Length: "),
        "{}",
        rest.escape_ascii()
    );
}

#[test]
fn stderr_takes_text_bytes_and_floods() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do: [{stderr: \"at ${method}\\n\"}, {stderr: {base64: '/w=='}}, {stderr: {flood: 1000000}}, {exit: 3}]
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    let stderr = client.stderr();
    assert!(stderr.starts_with(b"at textDocument/hover\n\xffdsh-fake-lsp floods"));
    assert_eq!(stderr.len(), 22 + 1 + 1_000_000);
    assert!(
        stderr[23..]
            .chunks(64)
            .take(100)
            .all(|line| line.ends_with(b"\n"))
    );
    assert_eq!(client.end().code(), Some(3));
}

#[test]
fn a_flood_nobody_reads_does_not_deafen_it() {
    use std::process::{Command, Stdio};
    // The read end of stderr is kept open and never read.
    let (unread, stderr) = std::io::pipe().unwrap();
    let mut command = Command::new(crate::client::BIN);
    let flood = "[{on: initialized, do: [{stderr: {flood: 100000000}}]}]";
    command.args(["--script-inline", flood]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut stdin = child.stdin.take().unwrap();
    let mut send = |body: &str| {
        use std::io::Write as _;
        write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    };
    send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    send(r#"{"jsonrpc":"2.0","method":"initialized"}"#);
    send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
    send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(unread);
}

#[test]
fn stop_reading_stops_and_resume_reading_goes_on() {
    let mut client = Client::ready(
        "
- on: textDocument/hover
  do: [stop_reading, {notify: {method: deaf}}, {delay_ms: 30}, resume_reading, {reply: awake}]
",
    );
    client.ask("textDocument/hover", &position("file:///w/a"));
    // Already in the pipe, perhaps already in the server's buffer.
    client.ask("textDocument/definition", &position("file:///w/a"));
    assert_eq!(client.message()["method"], "deaf");
    assert_eq!(client.message()["result"], "awake");
    assert_eq!(client.message()["id"], 3);
}

#[test]
fn a_server_that_stopped_reading_fills_the_pipe_and_can_be_killed() {
    let mut client = Client::ready("[{on: textDocument/didOpen, do: [stop_reading]}]");
    let stdin = client.stdin.take().unwrap();
    let flags = rustix::fs::fcntl_getfl(&stdin).unwrap();
    rustix::fs::fcntl_setfl(&stdin, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    let body = json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": open("u", "")});
    let first = frame(&body.to_string());
    rustix::io::write(&stdin, first.as_bytes()).unwrap();
    let mut total = 0;
    while let Ok(count) = rustix::io::write(&stdin, &vec![b' '; 65_536]) {
        total += count;
        assert!(total < 10_000_000, "it still reads");
    }
    client.child.kill().unwrap();
    assert!(!client.end().success());
}

#[test]
fn set_switches_rules() {
    let mut client = Client::ready(
        "
- {on: x/slow, do: [set: slow]}
- {on: x/none, do: [set: '']}
- {on: textDocument/hover, set: slow, do: [{reply: slow}]}
- {on: textDocument/hover, set: other, do: [{reply: other}]}
- {on: textDocument/hover, do: [{reply: any}]}
",
    );
    assert_eq!(client.hover()["result"], "any");
    client.tell("x/slow", &Value::Null);
    assert_eq!(client.hover()["result"], "slow");
    client.tell("x/none", &Value::Null);
    assert_eq!(client.hover()["result"], "any");
}

#[test]
fn rules_choose_by_number_params_and_process() {
    let mut client = Client::with_args(&[
        "--process",
        "2",
        "--script-inline",
        "
- {on: textDocument/hover, process: 1, do: [{reply: first process}]}
- {on: textDocument/hover, when: {textDocument: {uri: '${uri:b c}'}}, do: [{reply: b}]}
- {on: textDocument/hover, nth: 4, do: [{reply: fourth}]}
- {on: textDocument/hover, times: 1, do: [{reply: once}]}
- {on: text*, do: [{reply: '${process}'}]}
",
    ]);
    client.initialize();
    assert_eq!(client.hover()["result"], "once");
    let b = client.call("textDocument/hover", &position("file:///w/b%20c"));
    assert_eq!(b["result"], "b");
    assert_eq!(client.hover()["result"], 2);
    assert_eq!(client.hover()["result"], "fourth");
    assert_eq!(
        client.call("textDocument/definition", &json!({}))["result"],
        2
    );
}

#[test]
fn templates_tell_what_the_server_knows() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(crate::client::BIN);
    command
        .args([
            "--script-inline",
            "[{on: tell, do: [{reply: {
            id: '${id}', method: '${method}', params: '${params}', one: '${params.a.0.b}',
            workspace: '${workspace}', uri: '${uri:x y.ts}', root: '${workspaceUri}',
            env: '${env:DSH_TEST}', gone: '${env:DSH_GONE}', cwd: '${cwd}',
            text: '<${params.a}> $${id}', pid: '${pid}', argv: '${argv}',
            many: [{$times: 2, $value: ['${n}']}]}}]},
            {on: text, do: [{reply: '${text}'}]}]",
        ])
        .args(["--", "--flag", "$(x) *"])
        .env("DSH_TEST", "value")
        .current_dir(&folder);
    let mut client = Client::spawn(command);
    client.call("initialize", &json!({"rootUri": "file:///w%20s/"}));
    let params = json!({"a": [{"b": 5}]});
    let told = client.call("tell", &params)["result"].clone();
    let argv = told["argv"].as_array().unwrap();
    assert_eq!(&argv[argv.len() - 2..], [json!("--flag"), json!("$(x) *")]);
    let pid = client.child.id();
    let cwd = folder.path().canonicalize().unwrap();
    let mut expected = json!({
        "id": 2, "method": "tell", "params": params, "one": 5,
        "workspace": "/w s/", "uri": "file:///w%20s/x%20y.ts", "root": "file:///w%20s/",
        "env": "value", "gone": null, "cwd": cwd,
        "text": "<[{\"b\":5}]> ${id}", "pid": pid, "many": [[0], [1]],
    });
    expected["argv"] = told["argv"].clone();
    assert_eq!(told, expected);
    client.tell("textDocument/didOpen", &open("u", "opened"));
    let text = client.call("text", &position("u"));
    assert_eq!(text["result"], "opened");
}
