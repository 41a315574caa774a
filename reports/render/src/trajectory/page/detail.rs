//! The details of what is on the time line.

use dsh_transcript::{Direction, Envelope, EventBody};
use serde_json::Value;

use super::timeline::kind_of;
use super::{Fact, Source};
use crate::trajectory::log::{Answer, Body, Outcoming, Schema};
use crate::trajectory::run::{Item, Kind, Lane};
use crate::trajectory::text::{
    Room, Shown, clipped, content, count, date, duration, fine, grouped, moment, visible,
};
use crate::trajectory::wire::Passed;

/// Everything about one item.
pub(super) struct Detail {
    pub(super) id: String,
    pub(super) lane: &'static str,
    pub(super) class: &'static str,
    pub(super) title: String,
    /// Lane, turn and step.
    pub(super) place: String,
    pub(super) meta: String,
    pub(super) facts: Vec<Fact>,
    pub(super) parts: Vec<Part>,
    pub(super) links: Vec<Links>,
    pub(super) wire: Option<Frames>,
}

/// A text with a heading.
pub(super) struct Part {
    pub(super) heading: String,
    pub(super) shown: Shown,
}

/// Other items, with what they are to this one.
pub(super) struct Links {
    pub(super) heading: &'static str,
    pub(super) links: Vec<Fact>,
}

/// What passed on the wire.
pub(super) struct Frames {
    pub(super) heading: String,
    pub(super) note: Option<&'static str>,
    pub(super) entries: Vec<FrameView>,
}

pub(super) struct FrameView {
    pub(super) class: &'static str,
    /// The sign of the direction.
    pub(super) arrow: &'static str,
    pub(super) direction: String,
    pub(super) at: String,
    pub(super) title: String,
    pub(super) size: String,
    pub(super) body: Option<Shown>,
}

/// A server's process.
pub(super) struct Server {
    pub(super) number: u32,
    pub(super) facts: Vec<Fact>,
    pub(super) wire: Option<Frames>,
}

/// What is told of earlier items by later ones.
#[derive(Default)]
struct Seen {
    /// The last request that said what the system prompt is.
    system: Option<usize>,
    /// The same of the tools.
    tools: Option<usize>,
    /// The last request.
    model: Option<usize>,
}

pub(super) fn details(source: &Source<'_>, room: &mut Room) -> Vec<Detail> {
    let items = &source.run.items;
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (at, item) in items.iter().enumerate() {
        if let Some(parent) = item.parent {
            within[parent].push(at);
        }
    }
    // A compaction hides items before it; they are named by their number only.
    let mut hides = vec![0_usize; source.events.len()];
    for item in items {
        if let Some(by) = item.hidden_by {
            hides[by] += 1;
        }
    }
    let mut seen = Seen::default();
    let mut details = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let mut detail = Detail::new(source, at, item);
        match &source.event(item).body {
            Body::UserMessage {
                source: of,
                content,
            } => message(&mut detail, of, content, room, source.event(item).line),
            Body::StepRequest { system, tools, .. } if item.kind == Kind::Prompt => {
                prompt(
                    &mut detail,
                    system.as_deref(),
                    tools.as_deref(),
                    room,
                    source.event(item).line,
                );
                seen.system = system.as_ref().map(|_| at).or(seen.system);
                seen.tools = tools.as_ref().map(|_| at).or(seen.tools);
            }
            Body::StepRequest { sha1, .. } => {
                seen.model = Some(at);
                request(&mut detail, source, item, sha1, &seen, room);
            }
            Body::Answer(said) => answer(&mut detail, said, room, source.event(item).line),
            Body::Call { .. } => {
                call(&mut detail, source, item, room);
                if let (Some(model), None) = (seen.model, item.parent) {
                    let asked = Fact::new("Asked for by", "the model's answer")
                        .to(format!("#{}", source.id(model)));
                    detail.facts.push(asked);
                }
                detail.link("Calls that it made", source, &within[at]);
                detail.wire = frames(source, at, room);
            }
            Body::Result(result) => outcome(&mut detail, result, room, source.event(item).line),
            Body::Compaction { from, to, summary } => {
                let hidden = count(hides[item.event], "item", "items");
                detail.facts.push(Fact::new("Hides", format!("events {from} to {to}; {hidden} of the time line that no earlier compaction had hidden")));
                detail.part(
                    "Read in their place",
                    room.show(&content_of(summary), Some(source.event(item).line)),
                );
            }
            Body::Unknown { json, .. } => detail.part(
                "The event as it is",
                room.json(json, Some(source.event(item).line)),
            ),
            _ => {}
        }
        details.push(detail);
    }
    details
}

fn content_of(blocks: &[Value]) -> String {
    content(blocks)
}

impl Detail {
    fn new(source: &Source<'_>, at: usize, item: &Item) -> Self {
        let event = source.event(item);
        let lane = match item.lane {
            Lane::Input => "Input",
            Lane::Model => "Model",
            Lane::Tools => "Tools",
        };
        let mut facts = vec![Fact::new(
            "Began",
            format!("at {} ({})", moment(event.at_us), date(event.at_ms)),
        )];
        match (source.took(item), item.end) {
            (Some(took), _) => facts.push(Fact::new("Took", duration(took))),
            (None, None) => facts.push(Fact::new("Took", "the log does not see it end")),
            (None, Some(_)) => {}
        }
        let last = item.end.filter(|end| *end != item.event);
        let events = match last {
            Some(end) => format!("{} to {}", event.seq, source.events[end].seq),
            None => event.seq.to_string(),
        };
        facts.push(Fact::new("Events", events));
        if let Some(by) = item.hidden_by {
            facts.push(
                Fact::new(
                    "Seen by the model",
                    format!("until the compaction of event {}", source.events[by].seq),
                )
                .to(format!("#e{}", source.events[by].line)),
            );
        }
        Self {
            id: source.id(at),
            lane: item.lane.name(),
            class: match (source.is_bad(item), source.is_stopped(item)) {
                (true, _) => "bad",
                (false, true) => "stopped",
                (false, false) => "good",
            },
            title: source.title(item),
            place: format!("{lane}, {}", source.places[at]),
            meta: source.meta(item),
            facts,
            parts: Vec::new(),
            links: Vec::new(),
            wire: None,
        }
    }

    fn part(&mut self, heading: impl Into<String>, shown: Shown) {
        self.parts.push(Part {
            heading: heading.into(),
            shown,
        });
    }

    fn link(&mut self, heading: &'static str, source: &Source<'_>, items: &[usize]) {
        if items.is_empty() {
            return;
        }
        let links = items.iter().map(|at| {
            let item = &source.run.items[*at];
            let words = format!("{} {}", source.title(item), source.excerpt(item));
            Fact::new("", words.trim_end()).to(format!("#{}", source.id(*at)))
        });
        let links = links.collect();
        self.links.push(Links { heading, links });
    }
}

fn message(
    detail: &mut Detail,
    of: &serde_json::Map<String, Value>,
    content: &[Value],
    room: &mut Room,
    line: usize,
) {
    let kind = visible(&clipped(kind_of(of), 100));
    detail.facts.push(Fact::new("Source", kind));
    detail.part(
        "What the model reads",
        room.show(&content_of(content), Some(line)),
    );
    let mut data = of.clone();
    data.shift_remove("kind");
    if !data.is_empty() {
        detail.part(
            "What its source keeps",
            room.json(&Value::Object(data), Some(line)),
        );
    }
}

fn prompt(
    detail: &mut Detail,
    system: Option<&str>,
    tools: Option<&[Schema]>,
    room: &mut Room,
    line: usize,
) {
    if let Some(system) = system {
        detail.part("System prompt", room.show(system, Some(line)));
    }
    for tool in tools.unwrap_or_default() {
        let text = format!(
            "{}\n\n{}",
            tool.description,
            crate::trajectory::text::pretty(&tool.parameters)
        );
        let name = visible(&clipped(&tool.name, 100));
        detail.part(format!("Tool {name}"), room.show(&text, Some(line)));
    }
}

fn request(
    detail: &mut Detail,
    source: &Source<'_>,
    item: &Item,
    sha1: &str,
    seen: &Seen,
    room: &mut Room,
) {
    let digest = visible(&clipped(sha1, 80));
    detail.facts.push(Fact::new("SHA-1 of the request", digest));
    for (label, at) in [("System prompt", seen.system), ("Tools", seen.tools)] {
        if let Some(at) = at {
            let seq = source.event(&source.run.items[at]).seq;
            let fact = Fact::new(label, format!("as of event {seq}"));
            detail.facts.push(fact.to(format!("#{}", source.id(at))));
        }
    }
    let Kind::Model { answer: Some(at) } = item.kind else {
        detail.part("Answer", Shown {
            text: "None was logged: the model failed or was given up; the end of the step says why."
                .to_owned(),
            note: None,
        });
        return;
    };
    if let Body::Answer(said) = &source.events[at].body {
        answer(detail, said, room, source.events[at].line);
    }
}

fn answer(detail: &mut Detail, said: &Answer, room: &mut Room, line: usize) {
    if let Some(usage) = said.usage {
        let (input, output) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
        let tokens = format!("{input} of the request, {output} of the answer");
        detail.facts.push(Fact::new("Tokens", tokens));
    }
    if let Some(reasoning) = &said.reasoning {
        detail.part("Reasoning", room.show(reasoning, Some(line)));
    }
    if !said.text.is_empty() {
        detail.part("Text", room.show(&said.text, Some(line)));
    }
    for call in &said.tool_calls {
        let name = visible(&clipped(&call.name, 60));
        detail.part(
            format!("Asks for {name}"),
            room.json(&call.arguments, Some(line)),
        );
    }
}

fn call(detail: &mut Detail, source: &Source<'_>, item: &Item, room: &mut Room) {
    let Body::Call { call, parent } = &source.event(item).body else {
        return;
    };
    let id = visible(&clipped(&call.id, 100));
    detail.facts.push(Fact::new("Call", id));
    if let Some(parent) = parent {
        let words = format!("the call {}", visible(&clipped(parent, 100)));
        let fact = Fact::new("Made by", words);
        detail.facts.push(match item.parent {
            Some(at) => fact.to(format!("#{}", source.id(at))),
            None => fact,
        });
    }
    detail.part(
        "Parameters",
        room.json(&call.arguments, Some(source.event(item).line)),
    );
    let Kind::Call { result: Some(at) } = item.kind else {
        detail.part(
            "Result",
            Shown {
                text: "None was logged before the step or the log ended.".to_owned(),
                note: None,
            },
        );
        return;
    };
    if let Body::Result(result) = &source.events[at].body {
        outcome(detail, result, room, source.events[at].line);
    }
}

fn outcome(detail: &mut Detail, result: &Outcoming, room: &mut Room, line: usize) {
    let code = result
        .code
        .as_deref()
        .map(|code| visible(&clipped(code, 100)));
    let ended = match (result.is_error, code) {
        (true, Some(code)) => format!("with the error {code}"),
        (true, None) => "with an error".to_owned(),
        (false, Some(code)) => format!("with {code}"),
        (false, None) => "well".to_owned(),
    };
    detail.facts.push(Fact::new("Ended", ended));
    let what = if result.is_error { "Error" } else { "Result" };
    let reader = match result.parent {
        Some(_) => "in words (the model does not read it)",
        None => "as the model reads it",
    };
    detail.part(
        format!("{what}, {reader}"),
        room.show(&content_of(&result.content), Some(line)),
    );
    if let Some(value) = &result.value {
        detail.part(format!("{what}, as a value"), room.json(value, Some(line)));
    }
}

/// What passed on the wire while a call ran.
fn frames(source: &Source<'_>, at: usize, room: &mut Room) -> Option<Frames> {
    let passed = source.wire.calls.get(&at)?;
    let began = i64::try_from(source.event(&source.run.items[at]).at_us).unwrap_or(i64::MAX);
    let shared = passed.iter().any(|passed| passed.shared);
    let frames: Vec<FrameView> = passed
        .iter()
        .filter_map(|passed| frame(passed, Some(began), room))
        .collect();
    Some(Frames {
        heading: format!("On the wire: {}", count(frames.len(), "entry", "entries")),
        note: shared.then_some(
            "Other calls ran at the same time. What is marked ± may belong to one of them, and is \
             shown with each.",
        ),
        entries: frames,
    })
}

pub(super) fn servers(source: &Source<'_>, room: &mut Room) -> Vec<Server> {
    let processes = source.wire.processes.iter();
    let servers = processes.map(|process| {
        let mut facts = Vec::new();
        if let Some(Passed { event, .. }) = process.started
            && let EventBody::ProcessStarted { argv, cwd, .. } = &event.body
        {
            facts.push(Fact::new(
                "Command",
                visible(&clipped(&argv.join(" "), 1000)),
            ));
            if let Some(cwd) = cwd {
                facts.push(Fact::new("Directory", visible(&clipped(cwd, 1000))));
            }
        }
        for (label, passed) in [("Started", process.started), ("Ended", process.ended)] {
            if let Some(passed) = passed {
                let at = since(&passed, None);
                let how = match &passed.event.body {
                    EventBody::ProcessEnded { code, signal } => ended(*code, *signal),
                    _ => String::new(),
                };
                facts.push(Fact::new(label, format!("at {at}{how}")));
            }
        }
        facts.push(Fact::new("Frames", grouped(process.frames as u64)));
        let frames: Vec<FrameView> = process
            .apart
            .iter()
            .filter_map(|passed| frame(passed, None, room))
            .collect();
        let wire = (!frames.is_empty()).then(|| Frames {
            heading: format!(
                "{}: {}",
                if source.wire.aligned {
                    "While no call ran"
                } else {
                    "On the wire"
                },
                count(frames.len(), "entry", "entries")
            ),
            note: None,
            entries: frames,
        });
        Server {
            number: process.number,
            facts,
            wire,
        }
    });
    servers.collect()
}

/// When something passed: since the call began if one is given, else on the session's clock, or
/// the recording's where it has no other.
fn since(passed: &Passed<'_>, began: Option<i64>) -> String {
    let Some(at) = passed.at_us else {
        return fine(passed.event.at_us);
    };
    let at = at.saturating_sub(began.unwrap_or(0));
    let sign = match (at < 0, began) {
        (true, _) => "−",
        (false, Some(_)) => "+",
        (false, None) => "",
    };
    format!("{sign}{}", fine(at.unsigned_abs()))
}

fn ended(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!(", with status {code}"),
        (None, Some(signal)) => format!(", by signal {signal}"),
        (None, None) => String::new(),
    }
}

/// A line of what passed; none for what says nothing of the wire.
fn frame(passed: &Passed<'_>, began: Option<i64>, room: &mut Room) -> Option<FrameView> {
    let event = passed.event;
    let (direction, title, size, body) = match &event.body {
        EventBody::Frame(frame) => {
            let title = match &frame.envelope {
                Envelope::Request { id, method } => format!("{method} (request {id})"),
                Envelope::Notification { method } => method.clone(),
                Envelope::Response { id, .. } => match passed.answers {
                    Some(method) => format!("answer to {method} (request {id})"),
                    None => format!("answer to request {id}"),
                },
                _ => "something that is no message".to_owned(),
            };
            let mut shown = match frame.json() {
                Some(json) => room.json(&json, None),
                None => room.show(&String::from_utf8_lossy(&frame.body), None),
            };
            if frame.cut.is_some() {
                shown.note = Some("The recording holds only the beginning.".to_owned());
            }
            (Some(frame.direction), title, Some(frame.size), Some(shown))
        }
        EventBody::Stray {
            direction, bytes, ..
        } => {
            let size = bytes.len() as u64;
            let shown = room.show(&bytes.lossy(), None);
            (
                Some(*direction),
                "bytes outside of frames".to_owned(),
                Some(size),
                Some(shown),
            )
        }
        EventBody::Stderr { text } => {
            let shown = room.show(&text.lossy(), None);
            (
                None,
                "stderr".to_owned(),
                Some(text.len() as u64),
                Some(shown),
            )
        }
        EventBody::Closed { direction, .. } => (Some(*direction), "closed".to_owned(), None, None),
        EventBody::ProcessStarted { pid, .. } => {
            (None, format!("the process starts (pid {pid})"), None, None)
        }
        EventBody::ProcessEnded { code, signal } => {
            let how = ended(*code, *signal);
            (None, format!("the process ends{how}"), None, None)
        }
        _ => return None,
    };
    let number = event.process.unwrap_or_default();
    let (class, arrow, words) = match direction {
        Some(Direction::ToServer) => ("out", "→", format!("to server {number}")),
        Some(Direction::ToClient) => ("in", "←", format!("from server {number}")),
        None => ("neither", "·", format!("server {number}")),
    };
    let marked = if passed.shared { " ±" } else { "" };
    Some(FrameView {
        class,
        arrow,
        direction: words,
        at: since(passed, began),
        title: format!("{}{marked}", visible(&clipped(&title, 200))),
        size: size.map_or_else(String::new, |size| format!("{} B", grouped(size))),
        body,
    })
}
