//! The side of a process that a test plays.

use std::sync::Arc;

use dsh_subprocess::{ChildExit, MemberInfo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::control::State;
use super::patiently;

/// The test's side of a process: it reads frames and says what it likes.
pub(crate) struct Server {
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    received: Vec<u8>,
    state: Arc<State>,
}

impl Server {
    pub(super) fn new(stdin: DuplexStream, stdout: DuplexStream, state: Arc<State>) -> Self {
        Self {
            stdin: Some(stdin),
            stdout: Some(stdout),
            received: Vec::new(),
            state,
        }
    }

    /// The next message, or `None` at the end of stdin. A reader of its own, as plain as can be.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(split) = self
                .received
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                let header = std::str::from_utf8(&self.received[..split]).expect("ASCII");
                let length = header
                    .strip_prefix("Content-Length: ")
                    .expect("the one header");
                let end = split + 4 + length.parse::<usize>().expect("digits");
                if self.received.len() >= end {
                    let body = serde_json::from_slice(&self.received[split + 4..end]);
                    self.received.drain(..end);
                    return Some(body.expect("JSON"));
                }
            }
            let read = patiently(
                "a message",
                self.stdin.as_mut()?.read_buf(&mut self.received),
            )
            .await
            .ok()?;
            if read == 0 {
                return None;
            }
        }
    }

    /// The next message, which must be of this method.
    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, method: &'a str) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let message = self
                .read()
                .await
                .unwrap_or_else(|| panic!("{place}: end of stdin"));
            assert_eq!(message["method"], method, "{place}: {message}");
            message
        }
    }

    /// Reads what is left of this many bytes, and nothing of it counts.
    pub(crate) async fn swallow(&mut self, bytes: usize) {
        let mut sink = vec![0; bytes];
        self.stdin
            .as_mut()
            .expect("open")
            .read_exact(&mut sink)
            .await
            .expect("so much comes");
    }

    pub(crate) async fn say_raw(&mut self, bytes: &[u8]) {
        self.stdout
            .as_mut()
            .expect("open")
            .write_all(bytes)
            .await
            .expect("the host reads");
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        let body = message.to_string();
        self.say_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .await;
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    pub(crate) async fn reply_error(&mut self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.say(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    /// Answers `initialize` with full capabilities, and takes `initialized`.
    pub(crate) async fn greet(&mut self) -> Value {
        let initialize = self.expect("initialize").await;
        let capabilities = json!({
            "textDocumentSync": 1,
            "definitionProvider": true,
            "referencesProvider": true,
            "implementationProvider": true,
            "hoverProvider": true,
        });
        self.reply(&initialize, json!({"capabilities": capabilities}))
            .await;
        self.expect("initialized").await;
        initialize
    }

    /// One whole hover: open, question, answer, close. Returns the text that was opened.
    pub(crate) async fn hover(&mut self, contents: &str) -> String {
        let open = self.expect("textDocument/didOpen").await;
        let request = self.expect("textDocument/hover").await;
        self.reply(&request, json!({"contents": contents})).await;
        self.expect("textDocument/didClose").await;
        open["params"]["textDocument"]["text"]
            .as_str()
            .expect("a text")
            .to_owned()
    }

    /// Takes `didOpen` and the request, and returns the request.
    pub(crate) async fn asked(&mut self) -> Value {
        self.expect("textDocument/didOpen").await;
        self.expect("textDocument/hover").await
    }

    /// Answers `shutdown` and ends at `exit`.
    pub(crate) async fn obey(&mut self) {
        let shutdown = self.expect("shutdown").await;
        self.reply(&shutdown, Value::Null).await;
        self.expect("exit").await;
        self.exit(ChildExit::Code(0));
    }

    pub(crate) fn exit(&mut self, exit: ChildExit) {
        self.stdin = None;
        self.stdout = None;
        self.state.exit(exit);
    }

    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
        self.state.stdin_open.send_replace(false);
    }

    /// Where the system does not tell the host.
    pub(crate) fn close_stdin_unnoticed(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn write_stderr(&self, text: &str) {
        self.state.stderr.lock().expect("unpoisoned").push_str(text);
    }

    pub(crate) fn be_deaf(&self) {
        *self.state.deaf.lock().expect("unpoisoned") = true;
    }

    pub(crate) fn start_helper(&self) {
        self.state.helpers.send_modify(|count| *count += 1);
    }

    pub(crate) fn end_helper(&self) {
        self.state.helpers.send_modify(|count| *count -= 1);
    }

    pub(crate) fn let_escape(&self, name: &str) {
        let escaped = MemberInfo {
            pid: 7,
            name: name.to_owned(),
        };
        self.state.escaped.lock().expect("unpoisoned").push(escaped);
    }

    /// What it was sent, in order.
    pub(crate) fn signals(&self) -> Vec<&'static str> {
        self.state
            .signals
            .lock()
            .expect("unpoisoned")
            .iter()
            .map(|(name, _)| *name)
            .collect()
    }

    /// When it was sent its first signal.
    pub(crate) fn first_signal(&self) -> Instant {
        self.state.signals.lock().expect("unpoisoned")[0].1
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state.is_alive()
    }

    /// Waits until the host has ended its tree.
    pub(crate) async fn ended(&self) {
        patiently("the end of the process", self.state.ended.notified()).await;
    }
}
