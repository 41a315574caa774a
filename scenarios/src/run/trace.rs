//! A transcript that is looked through while it grows.

use std::collections::HashMap;

use dsh_transcript::{Direction, Envelope, Event, EventBody, Frame, Id, short_name};
use serde_json::Value;

use crate::format::Pattern;

/// The events so far, each answer with the method of what it answers.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    events: Vec<Event>,
    /// At the place of a response: the method of its request.
    answers: Vec<Option<String>>,
    /// The methods of the requests so far, by process, direction and id.
    asked: HashMap<(u32, Direction, Id), String>,
}

impl Trace {
    /// A whole transcript.
    pub(crate) fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let mut trace = Self::default();
        for event in events {
            trace.push(event);
        }
        trace
    }

    /// Adds the next event.
    pub(crate) fn push(&mut self, event: Event) {
        let mut answers = None;
        if let (Some(process), Some(frame)) = (event.process, event.frame()) {
            match &frame.envelope {
                Envelope::Request { id, method } => {
                    let key = (process, frame.direction, id.clone());
                    self.asked.insert(key, method.clone());
                }
                Envelope::Response { id, .. } => {
                    // The request stays known, so that a second answer is seen to be one.
                    let key = (process, frame.direction.reverse(), id.clone());
                    answers = self.asked.get(&key).cloned();
                }
                _ => {}
            }
        }
        self.answers.push(answers);
        self.events.push(event);
    }

    /// All events.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// All events, as they are handed on.
    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// The places of the events that match everything of a pattern but its `nth`.
    pub(crate) fn all<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = usize> + 'a {
        (0..self.events.len()).filter(move |at| self.matches(*at, pattern))
    }

    /// The place of the event a pattern means.
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<usize> {
        self.all(pattern).nth(nth(pattern) - 1)
    }

    /// Whether the event at this place matches everything of a pattern but its `nth`.
    pub(crate) fn matches(&self, at: usize, pattern: &Pattern) -> bool {
        let event = &self.events[at];
        if pattern.process.is_some() && pattern.process != event.process {
            return false;
        }
        match &event.body {
            EventBody::Frame(frame) => self.frame(at, frame, pattern),
            body => other(body, pattern),
        }
    }

    fn frame(&self, at: usize, frame: &Frame, pattern: &Pattern) -> bool {
        let (message, answer) = match frame.direction {
            Direction::ToServer => (&pattern.received, &pattern.answered),
            Direction::ToClient => (&pattern.sent, &pattern.replied),
        };
        if let Some(wanted) = message {
            return frame.method().is_some_and(|method| named(method, wanted))
                && id_is(frame, pattern)
                && part_is(frame, "/params", pattern.params.as_ref());
        }
        let Some(wanted) = answer else { return false };
        frame.is_response()
            && (wanted == "*"
                || self.answers[at]
                    .as_deref()
                    .is_some_and(|method| named(method, wanted)))
            && id_is(frame, pattern)
            && part_is(frame, "/result", pattern.result.as_ref())
            && part_is(frame, "/error", pattern.error.as_ref())
    }
}

/// Which of those that match is meant, from 1.
fn nth(pattern: &Pattern) -> usize {
    pattern
        .nth
        .map_or(1, |nth| usize::try_from(nth).unwrap_or(usize::MAX))
        .max(1)
}

fn named(method: &str, wanted: &str) -> bool {
    wanted == "*" || method == wanted || short_name(method) == wanted
}

fn id_is(frame: &Frame, pattern: &Pattern) -> bool {
    pattern
        .id
        .as_ref()
        .is_none_or(|wanted| frame.id().is_some_and(|id| id.0 == *wanted))
}

fn part_is(frame: &Frame, pointer: &str, wanted: Option<&Value>) -> bool {
    wanted.is_none_or(|wanted| {
        frame
            .at(pointer)
            .is_some_and(|value| contains(&value, wanted))
    })
}

fn other(body: &EventBody, pattern: &Pattern) -> bool {
    let is = |wanted: &Option<String>, name: &str| wanted.as_deref() == Some(name);
    match body {
        EventBody::ProcessStarted { .. } => pattern.started,
        EventBody::ProcessEnded { .. } => pattern.ended,
        EventBody::Closed { direction, .. } => match direction {
            Direction::ToServer => is(&pattern.closed, "stdin"),
            Direction::ToClient => is(&pattern.closed, "stdout"),
        },
        EventBody::Stderr { text } => pattern
            .stderr
            .as_ref()
            .is_some_and(|wanted| String::from_utf8_lossy(&text.0).contains(wanted)),
        EventBody::Call { call, .. } => is(&pattern.called, call),
        EventBody::Result { call, .. } => is(&pattern.settled, call),
        EventBody::Note {
            kind,
            message,
            data,
        } => match kind.as_str() {
            "held" => data
                .get("hold")
                .and_then(Value::as_str)
                .is_some_and(|name| is(&pattern.held, name)),
            // The only signal a process can tell of before it ends.
            "signal" => is(&pattern.signal, "SIGTERM"),
            "note" => {
                is(&pattern.note, message)
                    && pattern
                        .params
                        .as_ref()
                        .is_none_or(|wanted| contains(data, wanted))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether `value` contains `wanted`: members of objects are compared where they are wanted, arrays
/// member by member, anything else whole.
pub(crate) fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| value.get(name).is_some_and(|value| contains(value, wanted))),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len() && value.iter().zip(wanted).all(|(v, w)| contains(v, w))
        }
        _ => value == wanted,
    }
}
