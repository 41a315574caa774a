//! What is known of one process's session, and what one event says.

use std::collections::{HashMap, HashSet};

use dsh_transcript::{Direction, Envelope, Event, EventBody, Frame, Id, Malformed};
use serde_json::Value;

use crate::format::Who;

/// How far a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing came yet.
    #[default]
    New,
    /// `initialize` came and is not answered.
    Initializing,
    /// `initialize` was answered with an error.
    Refused,
    /// `initialize` is answered, `initialized` has not come.
    Answered,
    /// In use.
    Ready,
    /// `shutdown` came.
    ShutDown,
    /// `exit` came.
    Exited,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) seq: u64,
    /// The error's code, if it is an error that has one.
    pub(super) code: Option<i64>,
}

/// A request of either side. If an id is used again, the last one.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) seq: u64,
    pub(super) method: String,
    /// Kept where an answer or a repetition is compared with it.
    pub(super) params: Option<Value>,
    /// How many requests of this id have no answer.
    pub(super) open: u32,
    pub(super) cancelled: Option<u64>,
    pub(super) answer: Option<Answer>,
}

/// An open document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// The last request about it since it was opened.
    pub(super) asked: Option<Id>,
}

/// What `initialize` was answered with.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    /// The result's `capabilities`; null where there are none or they were not kept.
    pub(super) capabilities: Value,
    /// Whether the result was kept, so that absence in it means absence.
    pub(super) known: bool,
}

/// See the [module](self).
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other"
)]
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) phase: Phase,
    pub(super) initialize: Option<Id>,
    /// The `params` of `initialize`; null if they were not kept.
    pub(super) announced: Value,
    pub(super) offer: Offer,
    /// Requests of the client, by id.
    pub(super) asked: HashMap<Id, Asked>,
    /// Requests of the server, by id.
    pub(super) demanded: HashMap<Id, Asked>,
    /// Ids of the client's requests without an answer.
    pub(super) in_flight: HashSet<Id>,
    /// Those of them that were cancelled.
    pub(super) cancelled: HashSet<Id>,
    /// Whether any request was ever cancelled.
    pub(super) has_cancelled: bool,
    /// Ids of the server's requests without an answer.
    pub(super) owed: HashSet<Id>,
    /// Open documents by URI, as written.
    pub(super) documents: HashMap<String, Document>,
    /// The one that was opened last.
    pub(super) last_opened: Option<String>,
    /// How often each document was opened.
    pub(super) opens: HashMap<String, u64>,
    /// Methods that the server registered dynamically.
    pub(super) registered: HashSet<String>,
    /// The last request about each document that was not open when it was sent, by URI.
    pub(super) too_early: HashMap<String, Id>,
    /// The last event of the server that the client is known to have read, because a message of
    /// the client's answers it or, with `initialized`, follows from it.
    pub(super) client_read: Option<u64>,
    /// The same for a client of which it is known that it closes a document only when the question
    /// about it is settled or cancelled.
    pub(super) transient_read: Option<u64>,
    /// The method of the client's last message.
    pub(super) last: Option<String>,
    /// Whether `initialized` came before its time, and whether anything did: said once.
    pub(super) early_initialized: bool,
    pub(super) disordered: bool,
    /// Whether something passed that nobody could read, so that who knew what is unknown.
    pub(super) blind: bool,
    /// Whether a document was opened or closed whose name was not kept.
    pub(super) documents_unknown: bool,
    /// When `shutdown` came, and its answer.
    pub(super) shutdown: Option<(u64, Id)>,
    /// Whether the process is known to be ended from outside.
    pub(super) being_ended: bool,
    /// Whether the server's stdout or the process has ended.
    pub(super) over: bool,
}

/// One event, read.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) event: &'a Event,
    /// The whole body of a frame.
    pub(super) json: Option<Value>,
    /// The request that a response answers: its method and params.
    pub(super) answers: Option<(String, Option<Value>)>,
}

/// What a message is, with what monitors ask of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<'a> {
    /// A request.
    Request(&'a Id, &'a str),
    /// A notification.
    Notification(&'a str),
    /// A response.
    Response(&'a Id),
}

impl<'a> Step<'a> {
    pub(super) fn of(event: &'a Event, session: &Session) -> Self {
        let json = event.frame().and_then(Frame::json);
        let mut step = Self {
            event,
            json,
            answers: None,
        };
        if let Some((from, Message::Response(id))) = step.message() {
            let asked = match from {
                Who::Client => session.demanded.get(id),
                Who::Server => session.asked.get(id),
            };
            step.answers = asked
                .filter(|asked| asked.open > 0)
                .map(|asked| (asked.method.clone(), asked.params.clone()));
        }
        step
    }

    /// The sender of a frame.
    pub(super) fn frame(&self) -> Option<(Who, &'a Frame)> {
        let frame = self.event.frame()?;
        Some((sender(frame.direction), frame))
    }

    /// The message and its sender.
    pub(super) fn message(&self) -> Option<(Who, Message<'a>)> {
        let (from, frame) = self.frame()?;
        let message = match &frame.envelope {
            Envelope::Request { id, method } => Message::Request(id, method),
            Envelope::Notification { method } => Message::Notification(method),
            Envelope::Response { id, .. } => Message::Response(id),
            _ => return None,
        };
        Some((from, message))
    }

    /// A request or notification of the client: its method, and its id if it is a request.
    pub(super) fn client_says(&self) -> Option<(&'a str, Option<&'a Id>)> {
        match self.message()? {
            (Who::Client, Message::Request(id, method)) => Some((method, Some(id))),
            (Who::Client, Message::Notification(method)) => Some((method, None)),
            _ => None,
        }
    }

    /// A value inside the body, by JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        self.json.as_ref()?.pointer(pointer)
    }

    pub(super) fn params(&self) -> Option<&Value> {
        self.at("/params")
    }

    /// `params.textDocument.uri`.
    pub(super) fn uri(&self) -> Option<&str> {
        self.at("/params/textDocument/uri")?.as_str()
    }

    /// The id a cancellation names.
    pub(super) fn cancelled(&self) -> Option<Id> {
        self.at("/params/id").cloned().map(Id)
    }

    /// Whether the server ends its output, or itself, with this event, and nobody else does.
    pub(super) fn ends_by_itself(&self) -> bool {
        matches!(
            self.event.body,
            EventBody::ProcessEnded {
                code: Some(_),
                signal: None
            } | EventBody::Closed {
                direction: Direction::ToClient,
                ..
            }
        )
    }
}

pub(super) fn sender(direction: Direction) -> Who {
    match direction {
        Direction::ToServer => Who::Client,
        Direction::ToClient => Who::Server,
    }
}

impl Session {
    /// Whether the order of messages can be judged.
    pub(super) fn in_order(&self) -> bool {
        !self.blind
    }

    /// The request last sent about an open document.
    pub(super) fn question(&self, document: &Document) -> Option<&Asked> {
        self.asked.get(document.asked.as_ref()?)
    }

    /// Whether the last question about a document was answered and nobody cancelled it.
    pub(super) fn is_settled(&self, document: &Document) -> bool {
        self.question(document)
            .is_some_and(|asked| asked.open == 0 && asked.cancelled.is_none())
    }

    /// The answer to `shutdown`.
    pub(super) fn farewell(&self) -> Option<Answer> {
        let (_, id) = self.shutdown.as_ref()?;
        self.asked.get(id)?.answer
    }

    /// Takes note of an event, after the monitors have looked at it.
    pub(super) fn advance(&mut self, step: &Step<'_>) {
        match &step.event.body {
            EventBody::Frame(frame) => self.frame(step, frame),
            EventBody::Stray { reason, .. } => {
                let cut = matches!(
                    reason,
                    Some(Malformed::EndInHeader { .. } | Malformed::EndInBody { .. })
                );
                self.blind |= !cut;
            }
            EventBody::Closed { direction, .. } => match direction {
                Direction::ToServer => self.being_ended = true,
                Direction::ToClient => self.over = true,
            },
            EventBody::ProcessEnded { .. } => self.over = true,
            EventBody::Termination(ended) => {
                self.being_ended |= !(ended.terminated.is_empty() && ended.killed.is_empty());
            }
            EventBody::Note { kind, .. } => {
                self.being_ended |= matches!(kind.as_str(), "signal" | "terminate");
            }
            _ => {}
        }
    }

    fn frame(&mut self, step: &Step<'_>, frame: &Frame) {
        match step.message() {
            // It may have been anything, an answer for instance.
            None => self.blind |= frame.cut.is_some(),
            Some((Who::Client, Message::Request(id, method))) => {
                self.client_request(step, id, method);
                self.last = Some(method.to_owned());
            }
            Some((Who::Client, Message::Notification(method))) => {
                self.client_notification(step, method);
                self.last = Some(method.to_owned());
            }
            Some((Who::Client, Message::Response(id))) => {
                if let Some(asked) = self.demanded.get_mut(id) {
                    self.client_read = self.client_read.max(Some(asked.seq));
                    settle(asked, step, frame);
                    if asked.open == 0 {
                        self.owed.remove(id);
                    }
                }
            }
            Some((Who::Server, Message::Request(id, method))) => {
                if method == "client/registerCapability" {
                    self.register(step);
                }
                ask(&mut self.demanded, step, id, method);
                self.owed.insert(id.clone());
            }
            Some((Who::Server, Message::Notification(_))) => {}
            Some((Who::Server, Message::Response(id))) => self.answered(step, id, frame),
        }
    }

    fn register(&mut self, step: &Step<'_>) {
        let all = step.at("/params/registrations").and_then(Value::as_array);
        for registration in all.into_iter().flatten() {
            if let Some(method) = registration.get("method").and_then(Value::as_str) {
                self.registered.insert(method.to_owned());
            }
        }
    }

    fn client_request(&mut self, step: &Step<'_>, id: &Id, method: &str) {
        match method {
            "initialize" if self.phase == Phase::New => {
                self.phase = Phase::Initializing;
                self.initialize = Some(id.clone());
                self.announced = step.params().cloned().unwrap_or_default();
            }
            "shutdown" if self.phase != Phase::Exited => {
                self.phase = Phase::ShutDown;
                self.shutdown = Some((step.event.at_us, id.clone()));
            }
            _ => self.out_of_order(),
        }
        if let Some(uri) = step.uri() {
            match self.documents.get_mut(uri) {
                Some(document) => document.asked = Some(id.clone()),
                None => {
                    self.too_early.insert(uri.to_owned(), id.clone());
                }
            }
        }
        ask(&mut self.asked, step, id, method);
        self.in_flight.insert(id.clone());
    }

    /// Remembers that something came before it should have, so that it is said once.
    fn out_of_order(&mut self) {
        self.disordered |= matches!(self.phase, Phase::New | Phase::Answered);
    }

    fn client_notification(&mut self, step: &Step<'_>, method: &str) {
        match method {
            "initialized" => self.initialized(),
            "exit" => self.phase = Phase::Exited,
            "$/cancelRequest" => {
                self.cancels(step);
                self.out_of_order();
            }
            "textDocument/didOpen" => {
                self.out_of_order();
                let Some(uri) = step.uri() else {
                    self.documents_unknown |= step.json.is_none();
                    return;
                };
                *self.opens.entry(uri.to_owned()).or_default() += 1;
                self.last_opened = Some(uri.to_owned());
                self.documents
                    .insert(uri.to_owned(), Document { asked: None });
            }
            "textDocument/didClose" => {
                self.out_of_order();
                let Some(uri) = step.uri() else {
                    self.documents_unknown |= step.json.is_none();
                    return;
                };
                if let Some(document) = self.documents.remove(uri)
                    && let Some(asked) = self.question(&document)
                    && asked.cancelled.is_none()
                    && let Some(answer) = asked.answer
                {
                    self.transient_read = self.transient_read.max(Some(answer.seq));
                }
            }
            _ => self.out_of_order(),
        }
    }

    fn cancels(&mut self, step: &Step<'_>) {
        let Some(id) = step.cancelled() else {
            return;
        };
        if let Some(asked) = self.asked.get_mut(&id) {
            asked.cancelled.get_or_insert(step.event.seq);
            if asked.open > 0 {
                self.has_cancelled = true;
                self.cancelled.insert(id);
            }
        }
    }

    fn initialized(&mut self) {
        match self.phase {
            Phase::Answered => {
                let id = self.initialize.as_ref();
                let answer = id.and_then(|id| self.asked.get(id)?.answer);
                self.client_read = self.client_read.max(answer.map(|answer| answer.seq));
                self.phase = Phase::Ready;
            }
            Phase::Initializing => self.early_initialized = true,
            _ => self.out_of_order(),
        }
    }

    fn answered(&mut self, step: &Step<'_>, id: &Id, frame: &Frame) {
        let Some(asked) = self.asked.get_mut(id) else {
            return;
        };
        let was_open = asked.open > 0;
        settle(asked, step, frame);
        if asked.open > 0 || !was_open {
            return;
        }
        self.in_flight.remove(id);
        self.cancelled.remove(id);
        if self.phase == Phase::Initializing && self.initialize.as_ref() == Some(id) {
            let refused = matches!(frame.envelope, Envelope::Response { error: Some(_), .. });
            self.phase = match (refused, self.early_initialized) {
                (true, _) => Phase::Refused,
                (false, false) => Phase::Answered,
                (false, true) => Phase::Ready,
            };
            self.offer = Offer {
                capabilities: step.at("/result/capabilities").cloned().unwrap_or_default(),
                known: step.json.is_some(),
            };
        }
    }
}

/// Whether an answer or a repetition is compared with the params of such a request.
fn keeps_params(method: &str) -> bool {
    is_question(method) || method == "workspace/configuration"
}

/// Whether it is one of the four operations.
pub fn is_question(method: &str) -> bool {
    matches!(
        method,
        "textDocument/definition"
            | "textDocument/references"
            | "textDocument/implementation"
            | "textDocument/hover"
    )
}

fn ask(all: &mut HashMap<Id, Asked>, step: &Step<'_>, id: &Id, method: &str) {
    let open = all.get(id).map_or(0, |asked| asked.open);
    let params = step.params().filter(|_| keeps_params(method)).cloned();
    let asked = Asked {
        seq: step.event.seq,
        method: method.to_owned(),
        params,
        open: open + 1,
        cancelled: None,
        answer: None,
    };
    all.insert(id.clone(), asked);
}

fn settle(asked: &mut Asked, step: &Step<'_>, frame: &Frame) {
    if asked.open == 0 {
        return;
    }
    asked.open -= 1;
    let code = match frame.envelope {
        Envelope::Response { error, .. } => error.flatten(),
        _ => None,
    };
    asked.answer = Some(Answer {
        seq: step.event.seq,
        code,
    });
}
