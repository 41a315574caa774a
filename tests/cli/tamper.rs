//! `tamper`: what a mutant does to the life of a server, seen from outside.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dsh_fake_lsp::{Control, FakeCommand, FakeServer, Rule, exit, reply};
use dsh_transcript::{Direction, EventBody};
use serde_json::{Value, json};

use crate::support::{Desk, program};

/// A fake server behind a process that tampers.
struct Tampered {
    child: Child,
    report: PathBuf,
    /// Its script is a file that goes with it.
    _script: FakeCommand,
}

fn tampered(desk: &Desk, control: &Control, server: FakeServer, spec: &Value) -> Tampered {
    let report = desk.path().join("applied");
    let mut spec = spec.clone();
    spec["report"] = report.to_str().unwrap().into();
    let command = server
        .subcommand("fake-lsp")
        .control(control)
        .command(program())
        .unwrap();
    let child = Command::new(program())
        .args(["tamper", &spec.to_string(), "--"])
        .arg(&command.program)
        .args(&command.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Tampered {
        child,
        report,
        _script: command,
    }
}

impl Tampered {
    fn write(&mut self, message: &Value) {
        let text = message.to_string();
        let stdin = self.child.stdin.as_mut().unwrap();
        write!(stdin, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    fn request(&mut self, id: u64, method: &str) {
        let params = json!({"textDocument": {"uri": "file:///a.ts"}, "position": {"line": 0, "character": 0}});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn read(&mut self) -> Value {
        let mut stdout = BufReader::with_capacity(1, self.child.stdout.as_mut().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(value) => length = value.parse().unwrap(),
                None => break,
            }
        }
        let mut body = vec![0; length];
        stdout.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn handshake(&mut self) {
        self.write(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}));
        assert_eq!(self.read()["id"], 1);
        self.write(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
        let document = json!({"uri": "file:///a.ts", "languageId": "x", "version": 1, "text": ""});
        self.write(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}));
    }
}

fn applied(report: &Path) -> String {
    std::fs::read_to_string(report).unwrap_or_default()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn without_anything_to_do_it_is_not_there() {
    let desk = Desk::new();
    let runtime = runtime();
    let control = runtime.block_on(async { Control::bind() }).unwrap();
    let mut tampered = tampered(&desk, &control, FakeServer::new(), &json!({}));
    tampered.handshake();
    tampered.request(2, "textDocument/hover");
    assert_eq!(tampered.read()["result"], Value::Null);
    drop(tampered.child.stdin.take());
    // What LSP has a server end with that was not shut down.
    assert_eq!(tampered.child.wait().unwrap().code(), Some(1));
    assert_eq!(applied(&tampered.report), "");
}

#[test]
fn a_server_that_dies_is_asked_again_in_a_new_process() {
    let desk = Desk::new();
    let runtime = runtime();
    let control = runtime.block_on(async { Control::bind() }).unwrap();
    let server = FakeServer::new()
        .rule(Rule::on("textDocument/hover").process(1).run([exit(3)]))
        .on("textDocument/hover", [reply(json!({"contents": "again"}))]);
    let mut tampered = tampered(&desk, &control, server, &json!({"life": ["replayed"]}));
    tampered.handshake();
    tampered.request(2, "textDocument/hover");
    assert_eq!(tampered.read()["result"]["contents"], "again");
    assert_eq!(control.processes(), 2);
    assert!(applied(&tampered.report).contains("replayed"));
    drop(tampered.child.stdin.take());
    tampered.child.wait().unwrap();
}

#[test]
fn a_server_is_left_where_nothing_leads_to_it() {
    let desk = Desk::new();
    let runtime = runtime();
    let control = runtime.block_on(async { Control::bind() }).unwrap();
    let spec = json!({
        "life": ["adrift", "stdin_stays_open"],
        "wire": [{"client": "exit", "do": ["drop", "leave"]}],
    });
    let mut tampered = tampered(&desk, &control, FakeServer::new(), &spec);
    tampered.handshake();
    tampered.request(2, "shutdown");
    assert_eq!(tampered.read()["id"], 2);
    tampered.write(&json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(tampered.child.wait().unwrap().code(), Some(0));
    // It is still there, and does what it is told.
    control.perform(1, [exit(5)]).unwrap();
    let ended = runtime.block_on(control.wait_ended(1));
    assert!(matches!(
        ended.body,
        EventBody::ProcessEnded { code: Some(5), .. }
    ));
    let saw_exit = control
        .events()
        .iter()
        .any(|event| event.is_message(Direction::ToServer, "exit"));
    assert!(!saw_exit);
}

#[test]
fn what_says_nothing_to_do_is_refused() {
    let desk = Desk::new();
    desk.run(&["tamper", "{\"wires\": []}", "--", "true"])
        .ended(2)
        .err_has("wires");
}
