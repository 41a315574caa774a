//! What the server does without a script.

use serde_json::{Value, json};

use crate::client::{Client, position};

#[test]
fn it_behaves_well_from_initialize_to_exit() {
    let mut client = Client::with_args(&["--stdio"]);
    let answer = client.initialize();
    assert_eq!(
        answer["result"]["capabilities"],
        json!({
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 2},
            "definitionProvider": true,
            "referencesProvider": true,
            "implementationProvider": true,
            "hoverProvider": true,
        })
    );
    assert_eq!(answer["result"]["serverInfo"]["name"], "dsh-fake-lsp");
    for method in ["definition", "references", "implementation", "hover"] {
        let answer = client.call(&format!("textDocument/{method}"), &position("file:///w/a"));
        assert_eq!(answer["result"], Value::Null);
        assert!(answer.get("error").is_none());
    }
    assert_eq!(client.shut_down().code(), Some(0));
}

#[test]
fn what_comes_too_early_or_too_late_is_refused() {
    let mut client = Client::with_args(&[]);
    assert_eq!(client.hover()["error"]["code"], -32002);
    client.initialize();
    assert_eq!(
        client.call("initialize", &json!({}))["error"]["code"],
        -32600
    );
    assert_eq!(
        client.call("$/unknown", &Value::Null)["error"]["code"],
        -32601
    );
    assert_eq!(client.call("shutdown", &Value::Null)["result"], Value::Null);
    assert_eq!(client.hover()["error"]["code"], -32600);
}

#[test]
fn exit_without_shutdown_is_a_failure() {
    let mut client = Client::ready("[]");
    client.tell("exit", &Value::Null);
    assert_eq!(client.end().code(), Some(1));
}

#[test]
fn the_end_of_stdin_ends_it() {
    let mut client = Client::ready("[]");
    client.stdin = None;
    assert_eq!(client.rest(), b"");
    assert_eq!(client.end().code(), Some(1));

    let mut client = Client::ready("[]");
    client.call("shutdown", &Value::Null);
    client.stdin = None;
    assert_eq!(client.end().code(), Some(0));
}

#[test]
fn bodies_that_are_no_messages_are_refused_and_it_goes_on() {
    let mut client = Client::ready("[]");
    for (body, code) in [
        ("[]", -32600),
        ("{", -32700),
        ("{\"id\":1,\"method\":2}", -32600),
    ] {
        client.body(body);
        let answer = client.message();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code))
        );
    }
    assert_eq!(client.hover()["result"], Value::Null);
}

#[test]
fn a_client_that_cannot_be_read_ends_it_and_is_told_why() {
    let mut client = Client::ready("[]");
    client.bytes(b"hello ${id}\n");
    assert_eq!(client.end().code(), Some(1));
    let stderr = String::from_utf8(client.stderr()).unwrap();
    assert!(
        stderr.contains("header line \"hello ${id}\" ends with a bare LF"),
        "{stderr}"
    );
}

#[test]
fn ids_come_back_with_their_type() {
    let mut client = Client::ready("[]");
    for id in [
        json!("7"),
        json!(7),
        json!(-1),
        json!(0),
        json!(9_007_199_254_740_993_i64),
    ] {
        client
            .body(&json!({"jsonrpc": "2.0", "id": id, "method": "textDocument/hover"}).to_string());
        assert_eq!(
            client.message(),
            json!({"jsonrpc": "2.0", "id": id, "result": null})
        );
    }
}

#[test]
fn messages_in_any_pieces_are_served() {
    let mut client = Client::ready("[]");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover"}).to_string();
    let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    for byte in frame.as_bytes() {
        client.bytes(&[*byte]);
    }
    client.bytes(frame.repeat(3).as_bytes());
    for _ in 0..4 {
        assert_eq!(client.message()["id"], 1);
    }
}

#[test]
fn a_large_document_and_a_large_answer_pass() {
    let mut client = Client::ready(
        "[{on: textDocument/hover, do: [{reply: {contents: '${repeat:3000000:x}'}}]}]",
    );
    let text = "y".repeat(2_000_000);
    client.tell(
        "textDocument/didOpen",
        &crate::client::open("file:///w/a", &text),
    );
    let answer = client.hover();
    assert_eq!(
        answer["result"]["contents"].as_str().map(str::len),
        Some(3_000_000)
    );
}

#[test]
fn a_client_that_does_not_read_is_heard_all_the_same() {
    // 64 KiB fit into the pipe; the answers to come do not.
    let mut client = Client::script(
        "[{on: textDocument/hover, do: [{reply: '${repeat:100000:x}'}]},
          {on: x/note, do: [{stderr: 'heard'}, {close: stderr}]}]",
    );
    client.initialize();
    let ids: Vec<i64> = (0..5)
        .map(|_| client.ask("textDocument/hover", &position("file:///w/a")))
        .collect();
    client.tell("x/note", &Value::Null);
    assert_eq!(client.message()["id"], ids[0]);
    for id in &ids[1..] {
        assert_eq!(client.message()["id"], *id);
    }
    assert_eq!(client.stderr(), b"heard");
}
