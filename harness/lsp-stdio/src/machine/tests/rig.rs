//! A machine, and the other side's view of it.

use serde_json::{Value, json};

use super::super::*;
use crate::framing::write_frame;
use crate::outgoing::initialize_params;

pub(super) const URI: &str = "file:///w/a.x";
pub(super) const GRACE: Duration = Duration::from_millis(700);

pub(super) struct Rig {
    pub(super) machine: Machine,
    /// What was written and is not a whole frame yet.
    partial: FrameDecoder,
    /// What the server has received, and the test has not looked at.
    wire: Vec<Value>,
}

pub(super) fn policy() -> Policy {
    let folder = Folder {
        uri: "file:///w".to_owned(),
        name: "w".to_owned(),
    };
    Policy {
        id: "x".to_owned(),
        initialize: initialize_params(&folder, &Value::Null).expect("the URI is one"),
        folder,
        configuration: r#"{"a":1}"#.to_owned(),
        announce_configuration: false,
        versions: Versions::Fixed,
        retry_stale: 0,
        max_message_bytes: 1_000_000,
        kill_grace: GRACE,
    }
}

pub(super) fn ask(operation: Operation) -> Ask {
    Ask {
        operation,
        position: Position {
            line: 2,
            character: 3,
        },
        uri: URI.to_owned(),
        language_id: "xlang".to_owned(),
        text: "one\ntwo".to_owned(),
    }
}

/// All there is to say for a server.
pub(super) fn full_capabilities() -> Value {
    json!({"capabilities": {
        "textDocumentSync": {"openClose": true},
        "definitionProvider": true,
        "referencesProvider": true,
        "implementationProvider": true,
        "hoverProvider": true,
    }})
}

impl Rig {
    /// A process that was just started; nothing is written yet.
    pub(super) fn fresh(policy: Policy) -> Self {
        Self {
            machine: Machine::new(Arc::new(policy)),
            partial: FrameDecoder::new(10_000_000),
            wire: Vec::new(),
        }
    }

    /// A server that is ready to be asked.
    pub(super) fn serving(policy: Policy) -> Self {
        let mut rig = Self::fresh(policy);
        rig.flush();
        rig.reply(1, &full_capabilities());
        rig.flush();
        rig.wire.clear();
        rig
    }

    /// A hover whose request was wholly written, with the request's id.
    pub(super) fn asking(policy: Policy) -> (Self, u64) {
        let mut rig = Self::serving(policy);
        rig.machine.begin(ask(Operation::Hover));
        rig.flush();
        let id = rig.wire[1]["id"].as_u64().expect("a request has an id");
        rig.wire.clear();
        (rig, id)
    }

    /// The pipe takes this many bytes.
    pub(super) fn write(&mut self, count: usize) {
        let bytes = self.machine.pending()[..count].to_vec();
        self.partial.feed(&bytes);
        while let Some(body) = self.partial.next_frame().expect("only frames are written") {
            self.wire
                .push(serde_json::from_slice(body).expect("bodies are JSON"));
        }
        self.machine.wrote(count);
    }

    /// The pipe takes everything.
    pub(super) fn flush(&mut self) {
        while !self.machine.pending().is_empty() {
            self.write(self.machine.pending().len());
        }
    }

    /// What was received since the last look.
    pub(super) fn take_wire(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.wire)
    }

    /// The methods of what was received since the last look; responses are shown as such.
    pub(super) fn methods(&mut self) -> Vec<String> {
        let name = |message: &Value| match message.get("method") {
            Some(method) => method.as_str().expect("a method is a string").to_owned(),
            None => format!("response {}", message["id"]),
        };
        self.take_wire().iter().map(name).collect()
    }

    /// Whether the last frame on the wire is whole.
    pub(super) fn between_frames(&self) -> bool {
        self.partial.partial() == Partial::Nothing
    }

    pub(super) fn say_raw(&mut self, bytes: &[u8]) {
        self.machine.room().extend_from_slice(bytes);
        self.machine.received();
    }

    pub(super) fn say(&mut self, message: &Value) {
        let mut frame = Vec::new();
        write_frame(&mut frame, 0, |out| {
            out.extend_from_slice(message.to_string().as_bytes());
        });
        self.say_raw(&frame);
    }

    pub(super) fn reply(&mut self, id: u64, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(super) fn reply_error(&mut self, id: u64, code: i64) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}));
    }

    pub(super) fn request(&mut self, id: &Value, method: &str) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}));
    }

    pub(super) fn reason(&self) -> Option<TimerReason> {
        self.machine.timer().map(|timer| timer.reason)
    }

    #[track_caller]
    pub(super) fn is_failed(&self, expected: &Failure) {
        assert_eq!(self.machine.failure(), Some(expected));
        assert_eq!(
            self.machine.pending(),
            b"",
            "a failed machine writes nothing more"
        );
        assert_eq!(self.machine.timer(), None);
        assert!(!self.machine.wants_input());
    }

    #[track_caller]
    pub(super) fn settled_code(&mut self) -> &'static str {
        self.machine
            .take_settled()
            .expect("it is settled")
            .expect_err("it failed")
            .code()
    }
}
