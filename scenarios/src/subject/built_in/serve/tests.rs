use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;

use super::*;

const LIMIT: usize = 4096;

/// The other end of a server.
struct Client {
    lines: tokio::io::Lines<BufReader<DuplexStream>>,
    requests: Option<DuplexStream>,
    serving: JoinSet<Result<(), ServeError>>,
}

impl Client {
    fn new() -> Self {
        let (requests, input) = tokio::io::duplex(1 << 16);
        let (output, answers) = tokio::io::duplex(1 << 16);
        let mut serving = JoinSet::new();
        serving.spawn(serve_lines(BufReader::new(input), output, LIMIT));
        Self {
            lines: BufReader::new(answers).lines(),
            requests: Some(requests),
            serving,
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let requests = self.requests.as_mut().expect("it is open");
        requests.write_all(bytes).await.expect("it reads");
    }

    async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    async fn answer(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("readable");
        serde_json::from_str(&line.expect("an answer")).expect("JSON")
    }

    async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id: Value = id.into();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(message).await;
        self.answer().await
    }

    /// Ends its input, and gives what is still answered.
    async fn end(mut self) -> Vec<String> {
        drop(self.requests.take());
        let mut rest = Vec::new();
        while let Some(line) = self.lines.next_line().await.expect("readable") {
            rest.push(line);
        }
        let served = self.serving.join_next().await.expect("it was served");
        served.expect("no panic").expect("no error");
        rest
    }
}

#[tokio::test]
async fn requests_are_answered_under_their_ids() {
    let mut client = Client::new();
    for id in [json!(1), json!("one"), json!(-7)] {
        let answer = client.ask(id.clone(), "describe", json!({})).await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_eq!(answer["result"]["name"], "dsh-harness");
    }
    // Params may be left out.
    client.send(json!({"id": 4, "method": "mount"})).await;
    assert_eq!(
        client.answer().await,
        json!({"jsonrpc": "2.0", "id": 4, "result": {}})
    );
    assert_eq!(client.end().await, [""; 0]);
}

#[tokio::test]
async fn what_is_no_request_is_told_and_changes_nothing() {
    let mut client = Client::new();
    let long = format!("{}\n", "x".repeat(LIMIT + 1));
    for (line, code) in [
        ("garbage\n", PARSE_ERROR),
        ("\u{feff}{}\n", PARSE_ERROR),
        ("[]\n", INVALID_REQUEST),
        ("{}\n", INVALID_REQUEST),
        ("{\"id\":null,\"method\":\"describe\"}\n", INVALID_REQUEST),
        ("{\"id\":{},\"method\":\"describe\"}\n", INVALID_REQUEST),
        (&long, INVALID_REQUEST),
    ] {
        client.write(line.as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!(answer["error"]["code"], code, "{line:.40}: {answer}");
        assert_eq!(answer["id"], Value::Null);
    }
    client.write(b"\xff\xfe\n").await;
    assert_eq!(client.answer().await["error"]["code"], PARSE_ERROR);
    // Blank lines and notifications that nobody knows are nothing to answer.
    client
        .write(b"\n  \r\n{\"method\":\"hello\"}\n{\"method\":\"cancel\"}\n")
        .await;
    let answer = client.ask(1, "describe", json!({})).await;
    assert_eq!(answer["id"], 1);
    client.end().await;
}

#[tokio::test]
async fn errors_carry_their_codes() {
    let mut client = Client::new();
    for (method, params, number, code) in [
        ("fly", json!({}), METHOD_NOT_FOUND, "UNSUPPORTED"),
        ("turn", json!({}), FAILED, "NOT_MOUNTED"),
        ("query", json!({}), super::INVALID_PARAMS, "INVALID_PARAMS"),
        ("unmount", json!(null), 0, ""),
        (
            "tool",
            json!({"name": "lsp", "arguments": {}}),
            FAILED,
            "NOT_MOUNTED",
        ),
    ] {
        let answer = client.ask(1, method, params).await;
        if code.is_empty() {
            assert_eq!(answer["result"], json!({}), "{method}");
        } else {
            assert_eq!(answer["error"]["code"], number, "{method}");
            assert_eq!(answer["error"]["data"]["code"], code, "{method}");
        }
    }
    client.end().await;
}

#[tokio::test]
async fn an_id_that_is_under_way_is_not_taken_twice_and_can_be_given_up() {
    let mut client = Client::new();
    client.ask(1, "mount", json!({})).await;
    let register = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
    client.ask(2, "control", register).await;
    let query = json!({
        "operation": "hover", "filePath": "a.x", "position": {"line": 0, "character": 0},
        "workspaceRoot": "/w",
    });
    client
        .send(json!({"id": "q", "method": "query", "params": query}))
        .await;
    let twice = client.ask("q", "query", query.clone()).await;
    assert_eq!(twice["error"]["code"], INVALID_REQUEST);
    assert_eq!(twice["error"]["data"]["code"], "DUPLICATE_ID");
    client
        .send(json!({"method": "cancel", "params": {"id": "q", "reason": "timeout"}}))
        .await;
    let cancelled = client.answer().await;
    assert_eq!(
        (&cancelled["id"], &cancelled["error"]["data"]["code"]),
        (&json!("q"), &json!("LSP_CANCELLED"))
    );
    client.end().await;
}

#[tokio::test]
async fn the_end_of_the_input_ends_what_is_under_way() {
    let mut client = Client::new();
    client.ask(1, "mount", json!({})).await;
    let register = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
    client.ask(2, "control", register).await;
    let wait = json!({"op": "wait_provider", "id": "s"});
    client
        .send(json!({"id": 3, "method": "control", "params": wait}))
        .await;
    // What has no line end is no request.
    client.write(b"{\"id\":4,\"method\":\"describe\"}").await;
    let rest = client.end().await;
    assert!(
        rest.iter().all(|line| !line.contains("dsh-harness")),
        "{rest:?}"
    );
}

#[tokio::test]
async fn a_reader_that_is_gone_ends_it_without_an_error() {
    let mut client = Client::new();
    client.ask(1, "mount", json!({})).await;
    client.lines = BufReader::new(tokio::io::duplex(1).0).lines();
    let _ = client
        .requests
        .as_mut()
        .expect("open")
        .write_all(b"{\"id\":2,\"method\":\"describe\"}\n")
        .await;
    let served = client.serving.join_next().await.expect("it was served");
    served.expect("no panic").expect("no error");
}
