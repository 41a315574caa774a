//! A transcript that is looked through while it grows.

use std::collections::HashMap;

use dsh_fake_lsp::contains;
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
    #[cfg(test)]
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

#[cfg(test)]
pub(crate) mod tests {
    use dsh_transcript::Raw;
    use serde_json::json;

    use super::*;

    /// Events by their bodies, numbered; `None` for what belongs to no process.
    pub(crate) fn trace(bodies: impl IntoIterator<Item = (Option<u32>, EventBody)>) -> Trace {
        let events = bodies
            .into_iter()
            .zip(0..)
            .map(|((process, body), seq)| Event {
                seq,
                at_us: seq * 10,
                process,
                body,
            });
        Trace::of(events)
    }

    /// What the client says to process 1.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a test hands over what it has just written down"
    )]
    pub(crate) fn to(body: Value) -> (Option<u32>, EventBody) {
        frame(Direction::ToServer, &body)
    }

    /// What process 1 says to the client.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a test hands over what it has just written down"
    )]
    pub(crate) fn from(body: Value) -> (Option<u32>, EventBody) {
        frame(Direction::ToClient, &body)
    }

    fn frame(direction: Direction, body: &Value) -> (Option<u32>, EventBody) {
        let body = body.to_string();
        let frame = Frame::conforming(direction, 0, body.as_bytes());
        (Some(1), EventBody::Frame(frame))
    }

    pub(crate) fn started(process: u32) -> (Option<u32>, EventBody) {
        let body = EventBody::ProcessStarted {
            pid: 1000 + process,
            argv: vec!["fake".to_owned()],
            cwd: None,
        };
        (Some(process), body)
    }

    pub(crate) fn ended(
        process: u32,
        code: Option<i32>,
        signal: Option<i32>,
    ) -> (Option<u32>, EventBody) {
        (Some(process), EventBody::ProcessEnded { code, signal })
    }

    pub(crate) fn note(kind: &str, message: &str, data: Value) -> (Option<u32>, EventBody) {
        let body = EventBody::Note {
            kind: kind.to_owned(),
            message: message.to_owned(),
            data,
        };
        (Some(1), body)
    }

    fn pattern(pattern: Value) -> Pattern {
        serde_json::from_value(pattern).expect("a pattern")
    }

    #[test]
    fn each_kind_of_pattern_finds_its_event_and_no_other() {
        let hover = json!({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover",
            "params": {"position": {"line": 1, "character": 2}}});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"contents": "x"}});
        let asked = json!({"jsonrpc": "2.0", "id": "a", "method": "workspace/configuration",
            "params": {"items": [{}]}});
        let refused =
            json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32601, "message": ""}});
        let call = EventBody::Call {
            call: "q".to_owned(),
            name: "hover".to_owned(),
            arguments: json!({}),
        };
        let result = EventBody::Result {
            call: "q".to_owned(),
            ok: true,
            value: json!(null),
        };
        let text = Raw::copy("it fails\n".as_bytes());
        let closed = |direction| EventBody::Closed {
            direction,
            total: 1,
        };
        let trace = trace([
            (None, call),
            started(1),
            to(hover),
            from(asked),
            to(refused),
            note("held", "holds", json!({"hold": "h", "token": 1})),
            from(answer.clone()),
            from(answer),
            (None, result),
            (Some(1), EventBody::Stderr { text }),
            note("signal", "SIGTERM came", json!({"signal": 15})),
            note("note", "mine", json!({"a": 1, "b": 2})),
            (Some(1), closed(Direction::ToServer)),
            (Some(1), closed(Direction::ToClient)),
            ended(1, None, None),
        ]);
        for (found, wanted) in [
            (Some(0), json!({"called": "q"})),
            (None, json!({"called": "p"})),
            (Some(1), json!({"started": true})),
            (None, json!({"started": true, "process": 2})),
            (Some(2), json!({"received": "textDocument/hover"})),
            (
                Some(2),
                json!({"received": "hover", "params": {"position": {"line": 1}}}),
            ),
            (Some(2), json!({"received": "*", "id": 7})),
            (None, json!({"received": "hover", "id": "7"})),
            (
                None,
                json!({"received": "hover", "params": {"position": {"line": 2}}}),
            ),
            (None, json!({"sent": "hover"})),
            (Some(3), json!({"sent": "configuration"})),
            (
                Some(4),
                json!({"answered": "configuration", "error": {"code": -32601}}),
            ),
            (None, json!({"answered": "configuration", "result": null})),
            (None, json!({"answered": "hover"})),
            (Some(5), json!({"held": "h"})),
            (None, json!({"held": "g"})),
            (Some(6), json!({"replied": "hover"})),
            (Some(7), json!({"replied": "hover", "nth": 2})),
            (None, json!({"replied": "hover", "nth": 3})),
            (
                None,
                json!({"replied": "hover", "result": {"contents": "y"}}),
            ),
            (Some(8), json!({"settled": "q"})),
            (None, json!({"settled": "hover"})),
            (Some(9), json!({"stderr": "fails"})),
            (None, json!({"stderr": "works"})),
            (Some(10), json!({"signal": "SIGTERM"})),
            (None, json!({"signal": "SIGINT"})),
            (Some(11), json!({"note": "mine", "params": {"b": 2}})),
            (None, json!({"note": "mine", "params": {"b": 3}})),
            (Some(12), json!({"closed": "stdin"})),
            (Some(13), json!({"closed": "stdout"})),
            (Some(14), json!({"ended": true, "process": 1})),
            (None, json!({})),
        ] {
            assert_eq!(trace.find(&pattern(wanted.clone())), found, "{wanted}");
        }
    }
}
