//! A raw client: it writes bytes, and sees bytes in the pieces in which they came.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use dsh_fake_lsp::FakeServer;
use serde_json::{Value, json};

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_dsh-fake-lsp");

/// After this a test has failed; nothing is expected to take anywhere near it.
const PATIENCE: Duration = Duration::from_secs(90);

/// One server with its pipes. Dropping it kills and reaps it.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    out: Pieces,
    err: Pieces,
    /// Bytes of stdout that were received and not looked at.
    held: VecDeque<u8>,
    next_id: i64,
}

/// The pieces one pipe gave, read by a thread that ends with the pipe.
struct Pieces {
    pieces: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Pieces {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = channel();
        let read = move || {
            let mut buffer = vec![0; 1 << 20];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().spawn(read).unwrap();
        Self {
            pieces,
            thread: Some(thread),
        }
    }

    /// The next piece; none at the end.
    #[track_caller]
    fn next(&self) -> Option<Vec<u8>> {
        match self.pieces.recv_timeout(PATIENCE) {
            Ok(piece) => Some(piece),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came for {PATIENCE:?}"),
        }
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Client {
    /// Starts a server.
    pub(crate) fn start(server: &FakeServer) -> Self {
        let command = server.command(BIN).unwrap();
        Self::spawn(command.std())
    }

    /// Starts a server with a script as it stands in a file.
    pub(crate) fn script(yaml: &str) -> Self {
        Self::with_args(&["--script-inline", yaml])
    }

    pub(crate) fn with_args(args: &[&str]) -> Self {
        let mut command = Command::new(BIN);
        command.args(args);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let out = Pieces::of(child.stdout.take().unwrap());
        let err = Pieces::of(child.stderr.take().unwrap());
        Self {
            child,
            stdin,
            out,
            err,
            held: VecDeque::new(),
            next_id: 1,
        }
    }

    /// Starts a server and shakes hands with it.
    pub(crate) fn ready(yaml: &str) -> Self {
        let mut client = Self::script(yaml);
        client.initialize();
        client
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let params = json!({"processId": null, "rootUri": "file:///w", "capabilities": {}});
        let answer = self.call("initialize", &params);
        self.tell("initialized", &json!({}));
        answer
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn body(&mut self, body: &str) {
        self.bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.body(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.body(&message.to_string());
        id
    }

    /// Sends a request and returns the next message, which has to be its answer.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.message();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// A hover request, which by default is answered null.
    #[track_caller]
    pub(crate) fn hover(&mut self) -> Value {
        self.call("textDocument/hover", &position("file:///w/a"))
    }

    /// The next piece of stdout as it came; none at its end.
    #[track_caller]
    pub(crate) fn piece(&mut self) -> Option<String> {
        assert!(
            self.held.is_empty(),
            "bytes were received before: {:?}",
            self.held
        );
        self.out
            .next()
            .map(|piece| String::from_utf8(piece).unwrap())
    }

    /// The rest of stdout up to its end.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while let Some(piece) = self.out.next() {
            self.held.extend(piece);
        }
        self.held.drain(..).collect()
    }

    /// All of stderr.
    #[track_caller]
    pub(crate) fn stderr(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(piece) = self.err.next() {
            all.extend(piece);
        }
        all
    }

    /// The next frame, which has to be spelled as LSP has it.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            header.push(self.byte());
        }
        let header = String::from_utf8(header).unwrap();
        let length = header
            .strip_prefix("Content-Length: ")
            .and_then(|h| h.strip_suffix("\r\n\r\n"));
        let length: usize = length
            .and_then(|l| l.parse().ok())
            .unwrap_or_else(|| panic!("{header:?}"));
        let body: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        serde_json::from_slice(&body).unwrap()
    }

    #[track_caller]
    fn byte(&mut self) -> u8 {
        while self.held.is_empty() {
            let piece = self
                .out
                .next()
                .expect("stdout ended where a frame was expected");
            self.held.extend(piece);
        }
        self.held.pop_front().unwrap()
    }

    /// Shuts the server down as one should; returns its status.
    #[track_caller]
    pub(crate) fn shut_down(mut self) -> ExitStatus {
        let id = self.ask("shutdown", &Value::Null);
        assert_eq!(
            self.message(),
            json!({"jsonrpc": "2.0", "id": id, "result": null})
        );
        self.tell("exit", &Value::Null);
        self.end()
    }

    /// Waits for its end, without closing stdin before.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        self.stdin = None;
        status
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A helper that holds the pipes keeps these until its own end, which it has.
        self.out.join();
        self.err.join();
    }
}

pub(crate) fn position(uri: &str) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}})
}

pub(crate) fn open(uri: &str, text: &str) -> Value {
    json!({"textDocument": {"uri": uri, "languageId": "fake", "version": 1, "text": text}})
}

impl Client {
    /// The message after a known rest of another frame.
    #[track_caller]
    pub(crate) fn message_after(&mut self, rest: &str) -> Value {
        let before: Vec<u8> = (0..rest.len()).map(|_| self.byte()).collect();
        assert_eq!(String::from_utf8(before).unwrap(), rest);
        self.message()
    }

    /// Sends requests of several methods in one write.
    pub(crate) fn ask_all(&mut self, methods: &[&str]) {
        let mut all = Vec::new();
        for method in methods {
            let body = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method}).to_string();
            self.next_id += 1;
            write!(all, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
        self.bytes(&all);
    }

    /// A hover request of this id, and its answer.
    #[track_caller]
    pub(crate) fn hover_id(&mut self, id: i64) -> Value {
        self.next_id = id;
        self.hover()
    }
}
