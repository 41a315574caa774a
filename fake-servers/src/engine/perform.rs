//! Carrying out actions.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dsh_transcript::{EventBody, Id};
use serde_json::{Value, json};

use super::defaults::{Answer, json_text};
use super::{Asked, Effect, Engine, Sequence, StderrBytes};
use crate::script::template::{self, Counted, Source};
use crate::script::{Action, Chunk, Notify, Payload, Request, Stderr};
use crate::spelling;

/// What comes after an action.
enum Next {
    /// The next one.
    Go,
    /// The sequence waits; it is given back when it is resumed.
    Wait(Wait),
}

/// What a sequence waits for.
enum Wait {
    Timer(u64),
    Hold(String),
    Stderr(StderrBytes),
    Spawn(crate::script::Helper),
    /// Written output; the action is tried again then.
    Written,
    Answers,
}

impl Engine {
    /// Runs a sequence until it waits or ends.
    pub(super) fn run(&mut self, mut sequence: Sequence, effects: &mut Vec<Effect>) {
        loop {
            let actions = Rc::clone(&sequence.actions);
            let Some(action) = actions.get(sequence.at) else {
                if sequence.settled {
                    Self::flush(&mut sequence, effects);
                    return;
                }
                sequence.settled = true;
                if let Some(action) = self.default(&mut sequence, effects) {
                    sequence.actions = [action].into();
                    sequence.lasting = false;
                    sequence.at = 0;
                    sequence.written = false;
                }
                continue;
            };
            let key = self.next_key + 1;
            let next = self.perform(action, &mut sequence, effects);
            let wait = match next {
                Next::Go => {
                    sequence.at += 1;
                    sequence.written = false;
                    continue;
                }
                Next::Wait(wait) => wait,
            };
            Self::flush(&mut sequence, effects);
            let key = match wait {
                Wait::Answers => key,
                _ => self.key(),
            };
            if !matches!(wait, Wait::Written) {
                sequence.at += 1;
            }
            sequence.written = false;
            self.wait(key, sequence);
            effects.extend(match wait {
                Wait::Timer(ms) => Some(Effect::Timer { ms, key }),
                Wait::Hold(name) => Some(Effect::Hold { name, key }),
                Wait::Stderr(bytes) => Some(Effect::Stderr { bytes, key }),
                Wait::Spawn(helper) => Some(Effect::Spawn { helper, key }),
                Wait::Written => Some(Effect::Written { key }),
                Wait::Answers => None,
            });
            return;
        }
    }

    fn perform(
        &mut self,
        action: &Action,
        sequence: &mut Sequence,
        effects: &mut Vec<Effect>,
    ) -> Next {
        match action {
            Action::Reply(value) => {
                let answer = self.scripted_answer(action, value, sequence);
                self.answer(sequence, &answer, effects);
            }
            Action::Capabilities(patch) => {
                let patch = Value::Object(patch.clone());
                let answer = Answer::Result(self.initialize_result(&patch));
                self.answer(sequence, &answer, effects);
            }
            Action::ReplyRaw(payload) => {
                let body = self.payload(payload, sequence);
                if let Some(id) = sequence.happening.id.clone() {
                    self.answered(&id);
                    self.learn(sequence);
                }
                self.frame(sequence, &[&body], effects);
            }
            Action::Default => {
                if let Some(action) = self.default(sequence, effects) {
                    return self.perform(&action, sequence, effects);
                }
            }
            Action::Ignore => {}
            Action::Hold(name) => return Next::Wait(Wait::Hold(name.clone())),
            Action::DelayMs(ms) => return Next::Wait(Wait::Timer(*ms)),
            Action::Notify(notify) => self.notify(notify, sequence, effects),
            Action::Request(request) => {
                self.request(request, sequence, effects);
                if sequence.awaiting > 0 {
                    // The key the requests were given is taken.
                    self.key();
                    return Next::Wait(Wait::Answers);
                }
            }
            Action::Chunk(chunk) => sequence.chunk = Some(chunk.clone()),
            Action::Coalesce => {
                sequence.block.get_or_insert_default();
            }
            Action::Frame(spelling) => sequence.spelling = Some(spelling.clone()),
            Action::Raw(payload) => {
                let bytes = self.payload(payload, sequence);
                write(sequence, bytes, effects);
            }
            Action::Stderr(stderr) => {
                let bytes = match stderr {
                    Stderr::Flood(flood) => StderrBytes::Flood(flood.flood),
                    Stderr::Text(text) => {
                        let values = self.values(&sequence.happening);
                        let text = template::fill_text(text, &values).into_owned();
                        StderrBytes::Bytes(text.into_bytes())
                    }
                    Stderr::Payload(payload) => StderrBytes::Bytes(self.payload(payload, sequence)),
                };
                return Next::Wait(Wait::Stderr(bytes));
            }
            Action::Exit(_) | Action::Kill(_) | Action::Close(_) if !sequence.written => {
                return Next::Wait(Wait::Written);
            }
            Action::Exit(code) => effects.push(Effect::Exit(i32::from(*code))),
            Action::Kill(signal) => effects.push(Effect::Kill(*signal)),
            Action::Close(stream) => effects.push(Effect::Close(*stream)),
            Action::StopReading => effects.push(Effect::Read(false)),
            Action::ResumeReading => effects.push(Effect::Read(true)),
            Action::SpawnHelper(helper) => return Next::Wait(Wait::Spawn(helper.clone())),
            Action::Trap(_) => effects.push(Effect::Trap),
            Action::Set(name) => self.set = (!name.is_empty()).then(|| name.clone()),
            Action::Note(note) => {
                let values = self.values(&sequence.happening);
                let message = template::fill_text(&note.message, &values).into_owned();
                let data = template::fill(&note.data, &values);
                let kind = "note".to_owned();
                effects.push(Effect::Record(EventBody::Note {
                    kind,
                    message,
                    data,
                }));
            }
        }
        Next::Go
    }

    /// The answer a script gives. One that is the same each time is put into JSON once.
    fn scripted_answer(&mut self, action: &Action, value: &Value, sequence: &Sequence) -> Answer {
        if !sequence.lasting {
            return self.filled_answer(value, sequence);
        }
        // The actions of rules stay where they are as long as the engine lives.
        let place = std::ptr::from_ref(action) as usize;
        if let Some(known) = self.constants.get(&place) {
            return match known {
                Some(text) => Answer::Text(Rc::clone(text)),
                None => self.filled_answer(value, sequence),
            };
        }
        let answer = self.filled_answer(value, sequence);
        let varies = template::uses(value, &|name| name != "n" && !name.starts_with("repeat:"));
        let known = match &answer {
            Answer::Result(result) if !varies => Some(Rc::from(json_text(result))),
            _ => None,
        };
        self.constants.insert(place, known);
        answer
    }

    fn filled_answer(&self, value: &Value, sequence: &Sequence) -> Answer {
        let filled = |value| template::fill(value, &self.values(&sequence.happening));
        match value.as_object().filter(|members| members.len() == 1) {
            Some(members) if members.contains_key("error") => {
                Answer::Error(filled(&value["error"]))
            }
            Some(members) if members.contains_key("result") => {
                Answer::Result(filled(&value["result"]))
            }
            _ => Answer::Result(filled(value)),
        }
    }

    /// Answers the request of a sequence.
    pub(super) fn answer(
        &mut self,
        sequence: &mut Sequence,
        answer: &Answer,
        effects: &mut Vec<Effect>,
    ) {
        let Some(id) = sequence.happening.id.clone() else {
            let message = format!(
                "`{}` is no request and has no answer",
                sequence.happening.name
            );
            effects.push(Effect::Record(EventBody::note("script", message)));
            return;
        };
        self.answered(&id);
        if !answer.is_error() {
            self.learn(sequence);
        }
        let body = answer.body(&id);
        self.frame(sequence, &[&body[0], &body[1], &body[2]], effects);
    }

    /// Notes that a request of the client has its answer.
    pub(super) fn answered(&mut self, id: &Id) {
        self.unanswered.retain(|open| open.id != *id);
        if let Some(order) = &mut self.order {
            order.answered(id);
        }
    }

    /// What a successful answer changes.
    fn learn(&mut self, sequence: &Sequence) {
        match sequence.happening.name.as_str() {
            "initialize" => self.initialized = true,
            "shutdown" => self.shut_down = true,
            _ => {}
        }
    }

    /// Writes a frame, whose body is these parts, as the sequence has it spelled.
    pub(super) fn frame(
        &mut self,
        sequence: &mut Sequence,
        body: &[&[u8]],
        effects: &mut Vec<Effect>,
    ) {
        let mut bytes = Vec::new();
        match sequence.spelling.take() {
            None => spelling::plain(body, &mut bytes),
            Some(spelling) => {
                let values = self.values(&sequence.happening);
                spelling::spelled(&body.concat(), &spelling, &values, &mut bytes);
            }
        }
        write(sequence, bytes, effects);
    }

    fn payload(&self, payload: &Payload, sequence: &Sequence) -> Vec<u8> {
        let fill = |text| template::fill_text(text, &self.values(&sequence.happening)).into_owned();
        match payload {
            Payload::Text(text) => fill(text).into_bytes(),
            Payload::Repeated(repeated) => fill(&repeated.text)
                .repeat(repeated.times as usize)
                .into_bytes(),
            Payload::Bytes(bytes) => STANDARD.decode(&bytes.base64).unwrap_or_default(),
        }
    }

    fn notify(&mut self, notify: &Notify, sequence: &mut Sequence, effects: &mut Vec<Effect>) {
        let chunk = cuts(sequence);
        for n in 0..notify.times {
            cut_next(sequence, chunk.as_ref(), n);
            let happening = Rc::clone(&sequence.happening);
            let values = self.values(&happening);
            let values = Counted {
                source: &values,
                n: u64::from(n),
            };
            let message = message(None, &notify.method, notify.params.as_ref(), &values);
            self.frame(sequence, &[&message], effects);
        }
    }

    fn request(&mut self, request: &Request, sequence: &mut Sequence, effects: &mut Vec<Effect>) {
        // The key the sequence gets if it waits for the answers.
        let key = request.r#await.then_some(self.next_key + 1);
        let chunk = cuts(sequence);
        for n in 0..request.times {
            cut_next(sequence, chunk.as_ref(), n);
            let happening = Rc::clone(&sequence.happening);
            let values = self.values(&happening);
            let values = Counted {
                source: &values,
                n: u64::from(n),
            };
            let id = match &request.id {
                None => {
                    self.next_id += 1;
                    Value::from(self.next_id - 1)
                }
                Some(id) => match id.as_i64() {
                    Some(id) => id.saturating_add(i64::from(n)).into(),
                    None => template::fill(id, &values),
                },
            };
            let values = self.values(&happening);
            let values = Counted {
                source: &values,
                n: u64::from(n),
            };
            let body = message(Some(&id), &request.method, request.params.as_ref(), &values);
            let asked = Asked {
                method: request.method.clone(),
                sequence: key,
            };
            let replaced = self.asked.insert(Id(id), asked);
            if key.is_some() && replaced.is_none_or(|old| old.sequence != key) {
                sequence.awaiting += 1;
            }
            self.frame(sequence, &[&body], effects);
        }
    }

    /// Writes what was collected.
    fn flush(sequence: &mut Sequence, effects: &mut Vec<Effect>) {
        if let Some(block) = sequence.block.take()
            && !block.is_empty()
        {
            write(sequence, block, effects);
        }
    }
}

/// How the frames of an action are to be cut; nothing where they are collected into one write.
fn cuts(sequence: &mut Sequence) -> Option<Chunk> {
    match sequence.block {
        Some(_) => None,
        None => sequence.chunk.take(),
    }
}

/// Has the nth of an action's frames cut as `chunk` says.
fn cut_next(sequence: &mut Sequence, chunk: Option<&Chunk>, n: u32) {
    if let Some(chunk) = chunk {
        sequence.chunk = chunk.of(n);
    }
}

/// Writes bytes, or adds them to what is collected.
fn write(sequence: &mut Sequence, bytes: Vec<u8>, effects: &mut Vec<Effect>) {
    if let Some(block) = &mut sequence.block {
        block.extend_from_slice(&bytes);
        return;
    }
    let pieces = sequence
        .chunk
        .take()
        .map(|chunk| spelling::pieces(&chunk, bytes.len()));
    effects.push(Effect::Write { bytes, pieces });
}

/// The body of a notification, or of a request if it has an id.
fn message(
    id: Option<&Value>,
    method: &str,
    params: Option<&Value>,
    source: &dyn Source,
) -> Vec<u8> {
    let mut message = json!({"jsonrpc": "2.0"});
    if let Some(id) = id {
        message["id"] = id.clone();
    }
    message["method"] = template::fill_text(method, source).into_owned().into();
    if let Some(params) = params {
        message["params"] = template::fill(params, source);
    }
    message.to_string().into_bytes()
}
