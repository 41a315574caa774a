//! What is said between the raw client and a server, as a machine without I/O: bytes in, bytes out.
//!
//! It frames what it sends itself and reads with the strict reader of the transcript, so it shares
//! no code with the host. Whatever a server sends, what is kept is bounded: an answer nobody waits
//! for is dropped, notifications are counted by name, and of signals only the first and the last of
//! each name are kept.

use std::collections::{BTreeMap, BTreeSet};

use dsh_transcript::strict::{Body, Item, Limits, StrictReader};
use dsh_transcript::{Envelope, Malformed};
use serde_json::{Value, json};

use super::manner::Manner;
use super::signals::{Noticed, Signals};

/// The largest body that is read, in bytes. The host's default is half of it.
const LARGEST_BODY: usize = 32 << 20;
/// As many names of requests as are told apart, and as many answers to ids never used.
const MOST: usize = 64;

/// An answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answered {
    /// The member `result`, null where the answer has neither.
    Result(Value),
    /// The error's code, 0 where it has none, and its text.
    Error(i64, String),
}

/// How the header of a frame is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `Content-Length: N`.
    Usual,
    /// `content-length: N`.
    LowerCase,
    /// With `Content-Type` and a field of our own before the length.
    ExtraFields,
}

/// Both sides of one conversation.
#[derive(Debug)]
pub(super) struct Dialogue {
    manner: Manner,
    root_uri: String,
    reader: StrictReader,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    next_id: u64,
    waiting: BTreeSet<u64>,
    answers: BTreeMap<u64, Answered>,
    /// Answers to ids that nobody waits for.
    unasked: Vec<(Value, Answered)>,
    /// The requests of the server, by method.
    requests: BTreeMap<String, u64>,
    pub(super) signals: Signals,
    lost: Option<Malformed>,
}

impl Dialogue {
    pub(super) fn new(manner: Manner, root_uri: &str) -> Self {
        let limits = Limits {
            body: LARGEST_BODY,
            ..Limits::default()
        };
        Self {
            manner,
            root_uri: root_uri.to_owned(),
            reader: StrictReader::new(limits),
            out: Vec::new(),
            written: 0,
            next_id: 0,
            waiting: BTreeSet::new(),
            answers: BTreeMap::new(),
            unasked: Vec::new(),
            requests: BTreeMap::new(),
            signals: Signals::default(),
            lost: None,
        }
    }

    pub(super) fn manner(&self) -> &Manner {
        &self.manner
    }

    /// Asks; the id is for [`Dialogue::take`].
    pub(super) fn request(&mut self, method: &str, params: Option<Value>) -> u64 {
        self.request_spelled(method, params, Spelling::Usual)
    }

    pub(super) fn request_spelled(
        &mut self,
        method: &str,
        params: Option<Value>,
        spelling: Spelling,
    ) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.waiting.insert(id);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.send(&message, spelling);
        id
    }

    pub(super) fn notify(&mut self, method: &str, params: Option<Value>) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.send(&message, Spelling::Usual);
    }

    fn send(&mut self, message: &Value, spelling: Spelling) {
        let body = message.to_string();
        let length = body.len();
        let header = match spelling {
            Spelling::Usual => format!("Content-Length: {length}\r\n\r\n"),
            Spelling::LowerCase => format!("content-length: {length}\r\n\r\n"),
            Spelling::ExtraFields => format!(
                "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n\
                 X-Client: raw\r\nContent-Length: {length}\r\n\r\n"
            ),
        };
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
        self.out.extend_from_slice(header.as_bytes());
        self.out.extend_from_slice(body.as_bytes());
    }

    /// What is still to be written.
    pub(super) fn outgoing(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes of it were written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written = (self.written + count).min(self.out.len());
    }

    /// Nothing can be written any more.
    pub(super) fn drop_outgoing(&mut self) {
        self.written = self.out.len();
    }

    /// Takes what came.
    pub(super) fn feed(&mut self, bytes: &[u8], now_us: u64) {
        let mut bodies: Vec<(Envelope, Value)> = Vec::new();
        let mut lost = None;
        self.reader.feed(bytes, |item| match item {
            Item::Frame(frame) => {
                if let Body::Whole(body) = frame.body {
                    let envelope = Envelope::of(body);
                    let json = serde_json::from_slice(body).unwrap_or_default();
                    bodies.push((envelope, json));
                }
            }
            Item::Violation { reason, .. } => lost = Some(reason),
            Item::Stray { .. } => {}
        });
        for (envelope, json) in bodies {
            self.message(&envelope, json, now_us);
        }
        if self.lost.is_none() {
            self.lost = lost;
        }
    }

    fn message(&mut self, envelope: &Envelope, mut json: Value, now_us: u64) {
        match envelope {
            Envelope::Request { id, method } => {
                if self.requests.len() < MOST || self.requests.contains_key(method) {
                    *self.requests.entry(method.clone()).or_default() += 1;
                }
                let answer = self
                    .manner
                    .answer(method, &json["params"], &self.root_uri)
                    .map(|mut answer| {
                        answer["jsonrpc"] = "2.0".into();
                        answer["id"] = id.0.clone();
                        answer
                    });
                if let Some(answer) = answer {
                    self.send(&answer, Spelling::Usual);
                }
            }
            Envelope::Notification { method } => {
                self.signals.notice(method, &json["params"], now_us);
            }
            Envelope::Response { id, error, .. } => {
                let answer = match error {
                    Some(code) => {
                        let message = json["error"]["message"].as_str().unwrap_or_default();
                        Answered::Error(code.unwrap_or(0), message.to_owned())
                    }
                    None => Answered::Result(json["result"].take()),
                };
                match id.0.as_u64() {
                    Some(id) if self.waiting.remove(&id) => {
                        self.answers.insert(id, answer);
                    }
                    _ if self.unasked.len() < MOST => self.unasked.push((id.0.clone(), answer)),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The answer to the request of that id, once it is there.
    pub(super) fn take(&mut self, id: u64) -> Option<Answered> {
        self.answers.remove(&id)
    }

    /// Nobody waits for that answer any more.
    pub(super) fn give_up(&mut self, id: u64) {
        self.waiting.remove(&id);
        self.answers.remove(&id);
    }

    /// An answer to an id that nobody waits for, null among them.
    pub(super) fn take_unasked(&mut self, ids: &[Value]) -> Option<Answered> {
        let at = self.unasked.iter().position(|(id, _)| ids.contains(id))?;
        Some(self.unasked.remove(at).1)
    }

    /// Whether the server sent a request of this method, or of any.
    pub(super) fn was_asked(&self, method: Option<&str>) -> bool {
        match method {
            Some(method) => self.requests.contains_key(method),
            None => !self.requests.is_empty(),
        }
    }

    /// Why what the server writes cannot be read on.
    pub(super) fn lost(&self) -> Option<&Malformed> {
        self.lost.as_ref()
    }

    /// What it noticed of readiness.
    pub(super) fn noticed(&self) -> Vec<Noticed> {
        self.signals.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::manner::Requests;

    fn framed(message: &Value) -> Vec<u8> {
        let body = message.to_string();
        format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn dialogue(manner: Manner) -> Dialogue {
        Dialogue::new(manner, "file:///ws")
    }

    fn usual() -> Dialogue {
        dialogue(Manner::usual(Value::Null))
    }

    /// Everything that is to be written, taken.
    fn written(dialogue: &mut Dialogue) -> String {
        let text = String::from_utf8(dialogue.outgoing().to_vec()).unwrap();
        dialogue.wrote(text.len());
        text
    }

    #[test]
    fn a_request_is_framed_and_its_answer_is_taken_once() {
        let mut dialogue = usual();
        let id = dialogue.request("shutdown", None);
        assert_eq!(
            written(&mut dialogue),
            "Content-Length: 44\r\n\r\n{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"shutdown\"}"
        );
        let answer = framed(&json!({"jsonrpc": "2.0", "id": 1, "result": null}));
        let (first, rest) = answer.split_at(7);
        dialogue.feed(first, 0);
        assert_eq!(dialogue.take(id), None);
        dialogue.feed(rest, 0);
        assert_eq!(dialogue.take(id), Some(Answered::Result(Value::Null)));
        assert_eq!(dialogue.take(id), None);
    }

    #[test]
    fn what_is_written_in_pieces_goes_out_in_order() {
        let mut dialogue = usual();
        dialogue.notify("a", None);
        let whole = dialogue.outgoing().to_vec();
        dialogue.wrote(5);
        dialogue.notify("b", Some(Value::Null));
        let rest = written(&mut dialogue);
        assert!(rest.as_bytes().starts_with(&whole[5..]));
        assert!(rest.ends_with("{\"jsonrpc\":\"2.0\",\"method\":\"b\",\"params\":null}"));
        assert_eq!(dialogue.outgoing(), b"");
    }

    #[test]
    fn requests_of_the_server_are_answered_with_their_own_id() {
        let mut dialogue = usual();
        let asked = json!({"jsonrpc": "2.0", "id": "a", "method": "client/registerCapability"});
        dialogue.feed(&framed(&asked), 0);
        assert!(
            written(&mut dialogue).contains("{\"id\":\"a\",\"jsonrpc\":\"2.0\",\"result\":null}")
        );
        assert!(dialogue.was_asked(None));
        assert!(!dialogue.was_asked(Some("workspace/configuration")));
        let mut silent = dialogue_that_keeps_silent();
        silent.feed(&framed(&asked), 0);
        assert_eq!(written(&mut silent), "");
        assert!(silent.was_asked(Some("client/registerCapability")));
    }

    fn dialogue_that_keeps_silent() -> Dialogue {
        dialogue(Manner {
            requests: Requests::Unanswered,
            ..Manner::usual(Value::Null)
        })
    }

    #[test]
    fn an_answer_nobody_waits_for_is_kept_apart() {
        let mut dialogue = usual();
        let id = dialogue.request("x", None);
        dialogue.give_up(id);
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "late"}});
        dialogue.feed(&framed(&error), 0);
        assert_eq!(dialogue.take(id), None);
        assert_eq!(dialogue.take_unasked(&[7.into()]), None);
        assert_eq!(
            dialogue.take_unasked(&[id.into()]),
            Some(Answered::Error(-1, "late".to_owned()))
        );
    }

    #[test]
    fn what_is_no_frame_is_the_end_of_all_reading() {
        let mut dialogue = usual();
        let id = dialogue.request("x", None);
        dialogue.feed(b"hello\r\n", 0);
        assert!(dialogue.lost().is_some());
        dialogue.feed(
            &framed(&json!({"jsonrpc": "2.0", "id": id, "result": 1})),
            0,
        );
        assert_eq!(dialogue.take(id), None);
    }

    #[test]
    fn a_server_that_says_much_is_not_kept_in_full() {
        let mut dialogue = usual();
        for n in 0..10 * MOST {
            let stray = json!({"jsonrpc": "2.0", "id": 1_000 + n, "result": 1});
            dialogue.feed(&framed(&stray), 0);
            let method = format!("m{n}");
            let request = json!({"jsonrpc": "2.0", "id": n, "method": method});
            dialogue.feed(&framed(&request), 0);
        }
        assert_eq!(dialogue.unasked.len(), MOST);
        assert_eq!(dialogue.requests.len(), MOST);
    }

    #[test]
    fn headers_are_spelled_as_asked() {
        let mut dialogue = usual();
        dialogue.request_spelled("x", None, Spelling::LowerCase);
        assert!(written(&mut dialogue).starts_with("content-length: "));
        dialogue.request_spelled("x", None, Spelling::ExtraFields);
        let text = written(&mut dialogue);
        assert!(text.starts_with("Content-Type: ") && text.contains("\r\nContent-Length: "));
    }
}
