//! What must hold in every test, whatever it is about.

use dsh_transcript::{Direction, Envelope, Event, EventBody, View};

/// Everything the host may ever send (OPN-8).
const METHODS: [&str; 11] = [
    "initialize",
    "initialized",
    "textDocument/didOpen",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/hover",
    "textDocument/didClose",
    "$/cancelRequest",
    "shutdown",
    "exit",
];

/// The rules, and what this test excepts.
pub(super) struct Rules {
    pub(super) allowed: Vec<&'static str>,
    pub(super) torn: bool,
    pub(super) announces: bool,
}

impl Rules {
    /// Holds the rules against a transcript.
    #[track_caller]
    pub(super) fn hold(&self, events: &[Event]) {
        let view = View(events);
        for process in view.processes() {
            self.framing(view, process);
            self.methods(view, process);
        }
        self.order(view);
    }

    /// FRM-1: header and body as written, to the byte; nothing else.
    #[track_caller]
    fn framing(&self, view: View<'_>, process: u32) {
        for (_, frame) in view.sent(process, Direction::ToServer) {
            let header = format!("Content-Length: {}\r\n\r\n", frame.size);
            assert_eq!(frame.header.0, header.as_bytes(), "a header of the host");
            assert!(frame.deviations.is_empty(), "{:?}", frame.deviations);
        }
        let stray: Vec<_> = view.stray(process, Direction::ToServer).collect();
        assert!(
            self.torn || stray.is_empty(),
            "bytes that are no frame: {stray:?}"
        );
    }

    /// OPN-8, WIRE-7: no method but those; each message well-formed.
    #[track_caller]
    fn methods(&self, view: View<'_>, process: u32) {
        for (_, frame) in view.sent(process, Direction::ToServer) {
            match &frame.envelope {
                Envelope::Request { method, .. } | Envelope::Notification { method } => {
                    let announced = self.announces && method == "workspace/didChangeConfiguration";
                    assert!(
                        announced || METHODS.contains(&&**method),
                        "the host sent {method}"
                    );
                }
                Envelope::Response { .. } => {}
                other => panic!("the host sent {other:?}: {:?}", frame.body),
            }
            if let Some(json) = frame.json() {
                assert_eq!(json["jsonrpc"], "2.0", "{json}");
                let members = [json.get("result"), json.get("error")];
                let answers = members.into_iter().flatten().count();
                assert_eq!(answers, usize::from(frame.is_response()), "{json}");
            }
        }
    }

    /// What the fake server found in the order of its client's messages.
    #[track_caller]
    fn order(&self, view: View<'_>) {
        for event in view.notes("order") {
            let EventBody::Note { message, data, .. } = &event.body else {
                continue;
            };
            let rule = data["rule"].as_str().unwrap_or_default();
            assert!(self.allowed.contains(&rule), "{message} ({rule})");
        }
    }
}
