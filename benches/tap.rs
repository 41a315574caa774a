//! What the tap costs, against talking to the server without it.
//!
//! Both talk to the same fake server, in blocks that alternate within one run, and everything is
//! pinned to one core, so that what counts is the difference and not the machine. A message is one
//! request and its answer, which pass the tap twice and are recorded twice.
//!
//! ```text
//! cargo bench --bench tap
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What a message may cost more.
const LIMIT: Duration = Duration::from_millis(1);

fn main() {
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    support::pin_to_one_core();
    println!(
        "{:<34} {:>10} {:>10} {:>10}  at most",
        "", "bare", "tapped", "more"
    );
    for (name, size, blocks, count) in [
        ("message of 100 bytes", 100, 40, 50),
        ("message of 10 kB", 10_000, 20, 50),
        ("message of 1 MB", 1_000_000, 10, 5),
    ] {
        row(name, size, blocks, count);
    }
}

/// One row: medians of single exchanges.
fn row(name: &str, size: usize, blocks: usize, count: usize) {
    let folder = tempfile::tempdir().expect("a temp folder");
    let mut bare = Peer::start(size, None);
    let mut tapped = Peer::start(size, Some(&folder.path().join("t.jsonl")));
    let (mut of_bare, mut of_tapped) = (Vec::new(), Vec::new());
    for _ in 0..blocks {
        for _ in 0..count {
            of_bare.push(bare.ask());
        }
        for _ in 0..count {
            of_tapped.push(tapped.ask());
        }
    }
    bare.end();
    tapped.end();
    let (bare, tapped) = (median(of_bare), median(of_tapped));
    let more = tapped.saturating_sub(bare);
    // Two messages pass: the request and its answer.
    let limit = LIMIT * 2;
    println!(
        "{name:<34} {:>7} µs {:>7} µs {:>7} µs  {} µs{}",
        bare.as_micros(),
        tapped.as_micros(),
        more.as_micros(),
        limit.as_micros(),
        if more > limit && size < 1_000_000 {
            "  OVER"
        } else {
            ""
        }
    );
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

/// A server, with or without a tap before it.
struct Peer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    body: Vec<u8>,
    id: u64,
}

impl Peer {
    fn start(size: usize, log: Option<&std::path::Path>) -> Self {
        let program = env!("CARGO_BIN_EXE_dsh-conform");
        let text = "x".repeat(size);
        let script = json!([{"on": "textDocument/hover", "do": [{"reply": {"contents": text}}]}]);
        let file = tempfile::NamedTempFile::new().expect("a temp file");
        std::fs::write(file.path(), script.to_string()).expect("a script");
        let mut command = Command::new(program);
        if let Some(log) = log {
            command
                .arg("tap")
                .arg("--log")
                .arg(log)
                .arg("--")
                .arg(program);
        }
        command.arg("fake-lsp").arg("--script").arg(file.path());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take().expect("it is a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut peer = Self {
            child,
            stdin,
            stdout,
            body: Vec::new(),
            id: 0,
        };
        peer.request("initialize", &json!({"capabilities": {}}));
        peer.write(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
        let document = json!({"uri": "file:///a.ts", "languageId": "x", "version": 1, "text": ""});
        peer.write(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen",
            "params": {"textDocument": document}}));
        peer
    }

    /// One exchange, timed.
    fn ask(&mut self) -> Duration {
        let began = Instant::now();
        let position = json!({"line": 0, "character": 0});
        self.request(
            "textDocument/hover",
            &json!({"textDocument": {"uri": "file:///a.ts"}, "position": position}),
        );
        began.elapsed()
    }

    fn request(&mut self, method: &str, params: &Value) {
        self.id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            self.stdout
                .read_line(&mut line)
                .expect("the server answers");
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(value) => length = value.parse().expect("a length"),
                None => break,
            }
        }
        self.body.resize(length, 0);
        self.stdout
            .read_exact(&mut self.body)
            .expect("the server answers");
    }

    fn write(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.stdin, "Content-Length: {}\r\n\r\n{text}", text.len())
            .and_then(|()| self.stdin.flush())
            .expect("the server reads");
    }

    fn end(mut self) {
        drop(self.stdin);
        self.child.wait().expect("it ends");
    }
}
