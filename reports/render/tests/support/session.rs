//! Sessions as fixtures, written out as their files have them.

use dsh_reports::{read_session, render_trajectory};
use serde_json::{Value, json};

/// A session's file while it is written.
pub(crate) struct Log {
    text: String,
    seq: u64,
    at_ms: u64,
}

/// The page of a file.
#[track_caller]
pub(crate) fn page(bytes: &[u8]) -> String {
    let session = read_session(bytes).expect("the file can be read");
    render_trajectory(&session, None).expect("a page can be made")
}

impl Log {
    /// The moment of the first event, in milliseconds since 1970.
    pub(crate) const START: u64 = 1_796_044_155_893;

    pub(crate) fn named(id: &str, cwd: Option<&str>) -> Self {
        let head = json!({"format": "dsh-session/1", "header": {"id": id, "cwd": cwd}});
        Self {
            text: format!("{head}\n"),
            seq: 0,
            at_ms: Self::START,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.text.clone().into_bytes()
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Lets time pass.
    pub(crate) fn after(&mut self, ms: u64) {
        self.at_ms += ms;
    }

    pub(crate) fn add(&mut self, kind: &str, fields: Value) {
        self.seq += 1;
        let mut event = json!({"seq": self.seq, "atMs": self.at_ms, "type": kind});
        let members = event.as_object_mut().expect("it is an object");
        let Value::Object(fields) = fields else {
            panic!("fields are an object")
        };
        members.extend(fields);
        self.line(&event.to_string());
    }

    pub(crate) fn begin(&mut self) {
        self.add("turn/start", json!({"turn": 1}));
        self.add("step/start", json!({"turn": 1, "step": 1}));
    }

    pub(crate) fn message(&mut self, kind: &str, text: &str) {
        self.add(
            "user/message",
            json!({"source": {"kind": kind}, "content": [{"type": "text", "text": text}]}),
        );
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &Value, parent: Option<&str>) {
        let mut fields = json!({"call": {"id": id, "name": name, "arguments": arguments}});
        if let Some(parent) = parent {
            fields["parent"] = parent.into();
        }
        self.add("tool/call", fields);
    }

    pub(crate) fn result(&mut self, id: &str, name: &str, text: &str) {
        self.add(
            "tool/result",
            json!({"callId": id, "name": name, "isError": false, "content": [{"type": "text", "text": text}]}),
        );
    }

    /// A step of a turn that is open: eight events.
    pub(crate) fn step(&mut self, step: u64) {
        self.add("step/start", json!({"turn": 1, "step": step}));
        self.message("prompt", "Go on.");
        self.add(
            "step/request",
            json!({"turn": 1, "step": step, "sha1": "0".repeat(40)}),
        );
        self.after(700);
        let id = format!("c{step}");
        let arguments = json!({"file_path": "src/main.rs"});
        self.add(
            "assistant/message",
            json!({"text": "I read.", "toolCalls": [{"id": id, "name": "read", "arguments": arguments}]}),
        );
        self.call(&id, "read", &arguments, None);
        self.after(3);
        self.result(&id, "read", "1: fn main() {}");
        self.message("workspace-instructions", "Be kind.");
        self.add(
            "step/end",
            json!({"turn": 1, "step": step, "outcome": {"status": "completed"}}),
        );
    }

    /// One turn that ends well.
    pub(crate) fn small() -> Self {
        let mut log = Self::named("session-1", Some("/work/project"));
        log.begin();
        log.message("prompt", "Where is area?");
        log.add(
            "step/request",
            json!({"turn": 1, "step": 1, "system": "Be exact.", "sha1": "0".repeat(40),
                   "tools": [{"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}}]}),
        );
        log.after(1250);
        let arguments = json!({"file_path": "main.fake"});
        log.add(
            "assistant/message",
            json!({"text": "I read it.", "reasoning": "It is short.",
                   "toolCalls": [{"id": "c1", "name": "read", "arguments": arguments}],
                   "usage": {"inputTokens": 1200, "outputTokens": 12}}),
        );
        log.call("c1", "read", &arguments, None);
        log.after(40);
        log.add(
            "tool/result",
            json!({"callId": "c1", "name": "read", "isError": true, "code": "FS_NOT_FOUND",
                   "content": [{"type": "text", "text": "There is no main.fake."}]}),
        );
        log.after(60);
        log.add(
            "step/end",
            json!({"turn": 1, "step": 1, "outcome": {"status": "completed"}}),
        );
        log.add(
            "turn/end",
            json!({"turn": 1, "outcome": {"status": "completed"}}),
        );
        log
    }

    /// Turns in which about everything happens that can.
    pub(crate) fn eventful() -> Self {
        let mut log = Self::small();
        log.add(
            "compaction",
            json!({"from": 3, "to": 8, "summary": [{"type": "text", "text": "area was looked for"}]}),
        );
        log.after(60_000);
        log.add("turn/start", json!({"turn": 2}));
        log.add("step/start", json!({"turn": 2, "step": 1}));
        log.message("prompt", "Once more.");
        log.add(
            "step/request",
            json!({"turn": 2, "step": 1, "sha1": "1".repeat(40)}),
        );
        log.after(2000);
        log.add(
            "step/request",
            json!({"turn": 2, "step": 1, "sha1": "1".repeat(40)}),
        );
        log.after(10);
        log.add("assistant/message", json!({"text": "", "toolCalls": []}));
        log.call("r", "run_code", &json!({"code": "…"}), None);
        log.call("n", "read", &json!({"file_path": "a"}), Some("r"));
        log.after(7_200_000);
        log.add(
            "tool/result",
            json!({"callId": "r", "name": "run_code", "isError": true, "code": "TOOL_INTERRUPTED", "content": []}),
        );
        let interrupted = json!({"status": "cancelled", "reason": "interrupted"});
        log.add(
            "step/end",
            json!({"turn": 2, "step": 1, "outcome": interrupted}),
        );
        log.add("turn/end", json!({"turn": 2, "outcome": interrupted}));
        let failed = json!({"status": "failed", "code": "MODEL_STREAM_CUT", "message": "the stream ended; try again"});
        log.add("turn/start", json!({"turn": 3}));
        log.add("step/start", json!({"turn": 3, "step": 1}));
        log.add(
            "step/request",
            json!({"turn": 3, "step": 1, "sha1": "2".repeat(40)}),
        );
        log.add("step/end", json!({"turn": 3, "step": 1, "outcome": failed}));
        log.add("turn/end", json!({"turn": 3, "outcome": failed}));
        log.add("turn/start", json!({"turn": 4}));
        log.add(
            "turn/end",
            json!({"turn": 4, "outcome": {"status": "rejected", "reason": "not today"}}),
        );
        log.add("turn/start", json!({"turn": 5}));
        log.add("step/start", json!({"turn": 5, "step": 1}));
        log.call("open", "read", &json!({"file_path": "b"}), None);
        log
    }
}
