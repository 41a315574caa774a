//! What the server does where no rule says otherwise: it behaves well.

use std::borrow::Cow;
use std::rc::Rc;

use dsh_transcript::{EventBody, Id};
use serde_json::{Value, json};

use super::{Effect, Engine, Kind, Sequence};
use crate::markers::{Asked, Question};
use crate::script::template;
use crate::script::{Action, Base};

/// The answer to a request.
pub(super) enum Answer {
    /// `result`.
    Result(Value),
    /// `result`, as JSON text.
    Text(Rc<[u8]>),
    /// `error`.
    Error(Value),
}

impl Answer {
    pub(super) fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({"code": code, "message": message}))
    }

    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The body of the response, in three parts.
    pub(super) fn body(&self, id: &Id) -> [Cow<'_, [u8]>; 3] {
        let (member, text) = match self {
            Self::Result(value) => ("result", Cow::Owned(json_text(value))),
            Self::Text(text) => ("result", Cow::Borrowed(text.as_ref())),
            Self::Error(value) => ("error", Cow::Owned(json_text(value))),
        };
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":");
        [Cow::Owned(head.into_bytes()), text, Cow::Borrowed(b"}")]
    }
}

/// A value as JSON text.
pub(super) fn json_text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing a value to a vector cannot fail.
    let _ = serde_json::to_writer(&mut text, value);
    text
}

/// Full capabilities: UTF-16, incremental synchronization with open and close, four providers.
pub(super) fn capabilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": true, "change": 2},
        "definitionProvider": true,
        "referencesProvider": true,
        "implementationProvider": true,
        "hoverProvider": true,
    })
}

impl Engine {
    /// Does what is usual. Gives actions where that is some that are carried out like any others.
    pub(super) fn default(
        &mut self,
        sequence: &mut Sequence,
        effects: &mut Vec<Effect>,
    ) -> Option<Action> {
        let happening = Rc::clone(&sequence.happening);
        match (happening.kind, happening.name.as_str()) {
            (Kind::Request, _) => {
                let answer = self.usual_answer(sequence);
                self.answer(sequence, &answer, effects);
                None
            }
            (Kind::Notification, "exit") | (Kind::Other, "eof") => {
                Some(Action::Exit(u8::from(!self.shut_down)))
            }
            (Kind::Notification, "$/cancelRequest") => {
                let id = Id(happening.params.get("id").cloned().unwrap_or(Value::Null));
                self.cancel(&id, sequence, effects);
                None
            }
            (Kind::Other, "SIGTERM") => {
                effects.push(Effect::Die);
                None
            }
            _ => None,
        }
    }

    fn usual_answer(&mut self, sequence: &Sequence) -> Answer {
        let happening = &sequence.happening;
        if happening.name == "initialize" {
            if self.initialized {
                return Answer::error(-32600, "initialize was sent before");
            }
            return Answer::Result(self.initialize_result(&Value::Null));
        }
        if !self.initialized {
            return Answer::error(-32002, "initialize was not answered yet");
        }
        if self.shut_down {
            return Answer::error(-32600, "the server is shut down");
        }
        if happening.name == "shutdown" {
            self.shut_down = true;
            return Answer::Result(Value::Null);
        }
        match Question::of(&happening.name) {
            None => Answer::error(-32601, &format!("no such method here: {}", happening.name)),
            Some(question) => Answer::Result(self.ask_markers(question, &happening.params)),
        }
    }

    fn ask_markers(&self, question: Question, params: &Value) -> Value {
        match (self.script.base, &self.root, &self.order) {
            (Some(Base::Markers), Some(root), Some(order)) => {
                let open = order.texts();
                let files = self.surroundings.files.as_ref();
                Asked {
                    root,
                    open: &open,
                    links: self.links,
                    files,
                }
                .answer(question, params)
            }
            _ => Value::Null,
        }
    }

    /// The `initialize` result, with `patch` merged over the capabilities.
    pub(super) fn initialize_result(&self, patch: &Value) -> Value {
        let values = super::Happening::default();
        let mut capabilities = match &self.script.replace_capabilities {
            Some(replaced) => template::fill(replaced, &self.values(&values)),
            None => capabilities(),
        };
        let merged = Value::Object(self.script.capabilities.clone());
        for patch in [&merged, patch] {
            if patch.as_object().is_some_and(|patch| !patch.is_empty()) {
                let patch = template::fill(patch, &self.values(&values));
                template::merge(&mut capabilities, &patch);
            }
        }
        let version = env!("CARGO_PKG_VERSION");
        let info = json!({"name": "dsh-fake-lsp", "version": version});
        json!({"capabilities": capabilities, "serverInfo": info})
    }

    /// Answers a request that waits, or that was left without an answer, as cancelled.
    fn cancel(&mut self, id: &Id, sequence: &mut Sequence, effects: &mut Vec<Effect>) {
        let Some(at) = self.unanswered.iter().position(|open| open.id == *id) else {
            return;
        };
        let open = self.unanswered.swap_remove(at);
        if let Some(key) = open.sequence
            && self.sequences.remove(&key).is_some()
            && self.watched
        {
            let kind = "dropped".to_owned();
            let (message, data) = (
                "was waiting, and is cancelled".into(),
                json!({"token": key}),
            );
            effects.push(Effect::Record(EventBody::Note {
                kind,
                message,
                data,
            }));
        }
        self.answered(id);
        let answer = Answer::error(-32800, "cancelled");
        let body = answer.body(id);
        self.frame(sequence, &[&body[0], &body[1], &body[2]], effects);
    }

    /// Refuses a body that is no message.
    pub(super) fn refuse(code: i64, why: &str, effects: &mut Vec<Effect>) {
        let answer = Answer::error(code, why);
        let body = answer.body(&Id(Value::Null));
        let mut bytes = Vec::new();
        crate::spelling::plain(&[&body[0], &body[1], &body[2]], &mut bytes);
        effects.push(Effect::Write {
            bytes,
            pieces: None,
        });
    }
}
