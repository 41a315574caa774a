//! Events of a transcript as one line each, and the ones around the event that decided.

use dsh_transcript::{Direction, Envelope, Event, EventBody, Frame, Id, Member};
use serde_json::Value;

use crate::model::Evidence;
use crate::outside::{clipped, visible};

/// How many events of the same process stand before and behind the decisive one.
const BEFORE: usize = 4;
const BEHIND: usize = 2;
/// Columns of a body, of stray bytes, of stderr that are quoted.
const QUOTED: usize = 72;

/// The event at position `seq` and those around it that concern the same process and are `wanted`.
pub fn around(events: &[Event], seq: u64, wanted: impl Fn(&EventBody) -> bool) -> Vec<Evidence> {
    let Some(at) = events.iter().position(|event| event.seq == seq) else {
        return Vec::new();
    };
    let process = events[at].process;
    let near = |event: &&Event| {
        (event.process == process || event.process.is_none() || process.is_none())
            && wanted(&event.body)
    };
    let mut before: Vec<&Event> = events[..at]
        .iter()
        .rev()
        .filter(near)
        .take(BEFORE)
        .collect();
    before.reverse();
    let behind = events[at + 1..].iter().filter(near).take(BEHIND);
    before
        .into_iter()
        .chain(std::iter::once(&events[at]))
        .chain(behind)
        .map(|event| Evidence {
            seq: event.seq,
            at_us: event.at_us,
            text: event_line(events, event),
            decisive: event.seq == seq,
        })
        .collect()
}

/// One event in one line.
pub fn event_line(events: &[Event], event: &Event) -> String {
    match &event.body {
        EventBody::ProcessStarted { pid, argv, .. } => {
            let program = argv
                .first()
                .map_or("", |path| path.rsplit('/').next().unwrap_or(path));
            let args = argv.get(1..).unwrap_or_default().join(" ");
            cut(format!("process {pid} started: {program} {args}").trim_end())
        }
        EventBody::ProcessEnded { code, signal } => {
            format!("process ended: {}", ending(*code, *signal))
        }
        EventBody::Frame(frame) => frame_line(events, event, frame),
        EventBody::Stray {
            direction,
            bytes,
            reason,
            ..
        } => {
            let quoted = quote(&bytes.lossy());
            match reason {
                Some(reason) => format!("{} no frame: {quoted} ({reason})", arrow(*direction)),
                None => format!("{} no frame: {quoted}", arrow(*direction)),
            }
        }
        EventBody::Closed {
            direction: Direction::ToServer,
            ..
        } => "→ stdin closed".to_owned(),
        EventBody::Closed {
            direction: Direction::ToClient,
            ..
        } => "← stdout ended".to_owned(),
        EventBody::Stderr { text } => {
            let text = text.lossy();
            let last = text
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            format!("stderr ends with {}", quote(last))
        }
        EventBody::Termination(end) => {
            let parts: Vec<String> = [
                ("SIGTERM to", &end.terminated),
                ("SIGKILL to", &end.killed),
                ("outside the tree", &end.escaped),
                ("still alive", &end.alive),
            ]
            .into_iter()
            .filter(|(_, members)| !members.is_empty())
            .map(|(what, members)| format!("{what} {}", member_names(members)))
            .collect();
            if parts.is_empty() {
                "no process left".to_owned()
            } else {
                format!("end of the tree: {}", parts.join("; "))
            }
        }
        EventBody::Call {
            name, arguments, ..
        } => cut(&format!("asked {name} {arguments}")),
        EventBody::Result { value, .. } => cut(&result(value)),
        EventBody::FileChanged { path, change } => format!("file {path} {change}"),
        EventBody::Note { message, .. } => cut(message),
        _ => "another event".to_owned(),
    }
}

/// What came of a question, in the words of what is expected of it.
fn result(value: &Value) -> String {
    if value["isError"] == true {
        let code = value["code"].as_str().unwrap_or("without a code");
        return format!(
            "got failure {code}: {}",
            value["text"].as_str().unwrap_or_default()
        );
    }
    if let Some(locations) = value["locations"].as_array() {
        let place = |found: &Value| {
            let uri = found["uri"].as_str()?;
            let start = &found["range"]["start"];
            let number = |name: &str| start[name].as_u64()?.checked_add(1);
            let file = uri.rsplit('/').next().unwrap_or(uri);
            Some(format!(
                "{file}:{}:{}",
                number("line")?,
                number("character")?
            ))
        };
        let places: Option<Vec<String>> = locations.iter().map(place).collect();
        return match places {
            Some(places) => format!("got locations [{}]", places.join(", ")),
            None => format!("got locations {}", value["locations"]),
        };
    }
    if let Some(hover) = value.get("hover") {
        let contents = hover
            .get("contents")
            .filter(|contents| contents.is_string());
        return format!("got hover {}", contents.unwrap_or(hover));
    }
    match value.get("text").and_then(Value::as_str) {
        Some(text) => format!("got the text {text:?}"),
        None => format!("got {value}"),
    }
}

fn frame_line(events: &[Event], event: &Event, frame: &Frame) -> String {
    let arrow = arrow(frame.direction);
    match &frame.envelope {
        Envelope::Request { id, method } => {
            format!("{arrow} {method} ({}){}", id_text(id), about(frame, method))
        }
        Envelope::Notification { method } => format!("{arrow} {method}{}", about(frame, method)),
        Envelope::Response {
            id, error: None, ..
        } => {
            let of = method_of(events, event, frame, id);
            let result = frame.at("/result").map_or_else(
                || {
                    if frame.cut.is_some() {
                        "(long)".to_owned()
                    } else {
                        "(missing)".to_owned()
                    }
                },
                |value| value.to_string(),
            );
            cut(&format!(
                "{arrow} result of {of} ({}): {result}",
                id_text(id)
            ))
        }
        Envelope::Response { id, .. } => {
            let of = method_of(events, event, frame, id);
            let error = frame.at("/error").unwrap_or_default();
            let message = error["message"].as_str().unwrap_or("no message");
            cut(&format!(
                "{arrow} error {} for {of} ({}): {message}",
                error["code"],
                id_text(id)
            ))
        }
        Envelope::NotJson { error } => {
            let body = String::from_utf8_lossy(&frame.body);
            format!("{arrow} frame that is not JSON: {} ({error})", quote(&body))
        }
        _ => format!("{arrow} {}", quote(&String::from_utf8_lossy(&frame.body))),
    }
}

/// What of the parameters helps to follow: which document, in which version.
fn about(frame: &Frame, method: &str) -> String {
    if !method.starts_with("textDocument/") || method.ends_with("publishDiagnostics") {
        return String::new();
    }
    let Some(document) = frame.at("/params/textDocument") else {
        return String::new();
    };
    let uri = document["uri"].as_str().unwrap_or_default();
    let file = uri.rsplit('/').next().unwrap_or(uri);
    match document["version"].as_i64() {
        Some(version) => format!(" {file} version {version}"),
        None => format!(" {file}"),
    }
}

/// The method of the request that a response answers.
fn method_of<'a>(events: &'a [Event], response: &Event, frame: &Frame, id: &Id) -> &'a str {
    let before = events.partition_point(|event| event.seq < response.seq);
    events[..before]
        .iter()
        .rev()
        .filter(|event| event.process == response.process)
        .filter_map(Event::frame)
        .find(|asked| {
            asked.direction == frame.direction.reverse()
                && asked.is_request()
                && asked.id() == Some(id)
        })
        .and_then(Frame::method)
        .unwrap_or("nothing that was asked")
}

fn id_text(id: &Id) -> String {
    id.0.to_string()
}

const fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::ToServer => "→",
        Direction::ToClient => "←",
    }
}

/// How a process ended: `exit code 1`, `signal 9`.
pub fn ending(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "in a way the system did not tell".to_owned(),
    }
}

/// `node (4711), tsserver (4712)`.
pub fn member_names(members: &[Member]) -> String {
    let all: Vec<String> = members
        .iter()
        .map(|member| format!("{} ({})", member.name, member.pid))
        .collect();
    all.join(", ")
}

/// Text from outside in quotes, on one line, cut.
pub fn quote(text: &str) -> String {
    let shown = clipped(text, QUOTED);
    // Behind the quotes, since it is not part of what is quoted.
    let cut = shown.strip_suffix('…').filter(|_| shown != text);
    let quoted = visible(cut.unwrap_or(&shown)).replace('"', "\\\"");
    let more = if cut.is_some() { "…" } else { "" };
    format!("\"{quoted}\"{more}")
}

fn cut(text: &str) -> String {
    clipped(text, QUOTED + 40)
}
