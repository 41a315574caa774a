//! Which frames of a recording belong to which call.

use std::collections::{BTreeMap, HashMap};

use dsh_transcript::{Direction, Envelope, Event, EventBody, Frame, Id};
use serde_json::{Value, json};

use super::log::{Body, Logged};
use super::run::{Item, Kind};

/// The kind of the note that ties the clock of a recording to the calendar; its data is
/// `{"unixUs": N}`, the microseconds since 1970 at the moment of the note.
pub const CLOCK: &str = "clock";

/// The tool whose calls go over the wire.
const TOOL: &str = "lsp";

/// How many calls that run at the same time are told apart; no more than that ask a server at once.
const MOST_RUNNING: usize = 64;

/// The most calls that a frame is shown with.
const MOST_OWNERS: usize = 8;

/// The note [`CLOCK`], for a moment in microseconds since 1970.
pub fn clock(unix_us: u64) -> EventBody {
    EventBody::Note {
        kind: CLOCK.to_owned(),
        message: "the recording's clock and the calendar".to_owned(),
        data: json!({ "unixUs": unix_us }),
    }
}

/// A recording, split by who caused what.
#[derive(Debug, Default)]
pub(super) struct Wire<'a> {
    /// For items of calls: the events of the wire while they ran, in order.
    pub(super) calls: HashMap<usize, Vec<Passed<'a>>>,
    pub(super) processes: Vec<Process<'a>>,
    /// Whether times of the recording can be told in those of the session.
    pub(super) aligned: bool,
}

/// Something that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    pub(super) event: &'a Event,
    /// Microseconds on the session's clock, since its first event.
    pub(super) at_us: Option<i64>,
    /// Whether other calls ran that it may belong to as well.
    pub(super) shared: bool,
    /// The method of the request that it answers.
    pub(super) answers: Option<&'a str>,
}

/// A server's process.
#[derive(Debug, Default)]
pub(super) struct Process<'a> {
    pub(super) number: u32,
    pub(super) started: Option<Passed<'a>>,
    pub(super) ended: Option<Passed<'a>>,
    pub(super) frames: usize,
    /// What passed while no call ran.
    pub(super) apart: Vec<Passed<'a>>,
}

/// The time that a call took, on the clock of the session.
struct Window<'a> {
    item: usize,
    from: i64,
    /// The first microsecond behind it.
    to: i64,
    arguments: &'a Value,
}

/// Gives the events of a recording to the calls of a log.
pub(super) fn wire<'a>(recording: &'a [Event], events: &'a [Logged], items: &[Item]) -> Wire<'a> {
    let offset = offset(recording, events);
    let windows = windows(events, items);
    let mut wire = Wire {
        aligned: offset.is_some(),
        ..Wire::default()
    };
    let mut processes: BTreeMap<u32, Process<'a>> = BTreeMap::new();
    let mut asked: HashMap<(u32, Direction, &Id), (&'a str, Vec<usize>)> = HashMap::new();
    let mut next = 0;
    let mut running: Vec<&Window<'_>> = Vec::new();
    for event in recording {
        let Some(number) = event.process else {
            continue;
        };
        let at_us = offset.map(|offset| {
            i64::try_from(event.at_us)
                .unwrap_or(i64::MAX)
                .saturating_add(offset)
        });
        if let Some(at) = at_us {
            while windows.get(next).is_some_and(|window| window.from <= at) {
                running.push(&windows[next]);
                next += 1;
            }
            running.retain(|window| at < window.to);
            running.drain(..running.len().saturating_sub(MOST_RUNNING));
        }
        let mut passed = Passed {
            event,
            at_us,
            shared: false,
            answers: None,
        };
        let process = processes.entry(number).or_insert_with(|| Process {
            number,
            ..Process::default()
        });
        let mut owners: Vec<usize> = Vec::new();
        if let Some(frame) = event.frame() {
            process.frames += 1;
            match &frame.envelope {
                Envelope::Request { id, method, .. } => {
                    owners = fitting(&running, frame);
                    asked.insert(
                        (number, frame.direction, id),
                        (method.as_str(), owners.clone()),
                    );
                }
                Envelope::Response { id, .. } => {
                    if let Some((method, of)) =
                        asked.remove(&(number, frame.direction.reverse(), id))
                    {
                        passed.answers = Some(method);
                        owners = of;
                        owners.retain(|owner| running.iter().any(|window| window.item == *owner));
                    }
                    if owners.is_empty() {
                        owners = running.iter().map(|window| window.item).collect();
                    }
                }
                _ => owners = fitting(&running, frame),
            }
        } else {
            owners.extend(running.iter().map(|window| window.item));
        }
        match &event.body {
            EventBody::ProcessStarted { .. } => process.started = Some(passed),
            EventBody::ProcessEnded { .. } => process.ended = Some(passed),
            _ => {}
        }
        if owners.len() > MOST_OWNERS {
            owners.clear();
        }
        passed.shared = owners.len() > 1;
        if owners.is_empty() {
            process.apart.push(passed);
        }
        for owner in owners {
            wire.calls.entry(owner).or_default().push(passed);
        }
    }
    wire.processes = processes.into_values().collect();
    wire
}

/// What is to be added to a time of the recording to have it on the session's clock.
fn offset(recording: &[Event], events: &[Logged]) -> Option<i64> {
    let (at_us, unix_us) = recording.iter().find_map(|event| match &event.body {
        EventBody::Note { kind, data, .. } if kind == CLOCK => {
            Some((event.at_us, data.get("unixUs")?.as_u64()?))
        }
        _ => None,
    })?;
    let origin = i64::try_from(events.first()?.at_ms.checked_mul(1000)?).ok()?;
    let unix_us = i64::try_from(unix_us).ok()?;
    unix_us
        .checked_sub(origin)?
        .checked_sub(i64::try_from(at_us).ok()?)
}

/// The times of the calls of the tool, by their beginning. The session tells milliseconds: the last
/// one is within the call.
fn windows<'a>(events: &'a [Logged], items: &[Item]) -> Vec<Window<'a>> {
    let us = |event: usize| i64::try_from(events[event].at_us).unwrap_or(i64::MAX);
    let mut windows: Vec<Window<'a>> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let (Kind::Call { .. }, Body::Call { call, .. }) = (item.kind, &events[item.event].body)
        else {
            continue;
        };
        if call.name == TOOL {
            windows.push(Window {
                item: at,
                from: us(item.event),
                to: item
                    .end
                    .map_or(i64::MAX, |end| us(end).saturating_add(1000)),
                arguments: &call.arguments,
            });
        }
    }
    windows
}

/// The calls that a request or notification may belong to: those that ask for its document and
/// position, where there are such, and else all that run.
fn fitting(running: &[&Window<'_>], frame: &Frame) -> Vec<usize> {
    let all = || running.iter().map(|window| window.item).collect();
    if running.len() < 2 {
        return all();
    }
    let Some(body) = frame.json() else {
        return all();
    };
    let uri = body
        .pointer("/params/textDocument/uri")
        .and_then(Value::as_str);
    let Some(uri) = uri else {
        return all();
    };
    let position = body.pointer("/params/position");
    let place = |name: &str| position.and_then(|position| position.get(name)?.as_u64());
    let fits = |window: &&&Window<'_>| {
        let path = window.arguments.get("file_path").and_then(Value::as_str);
        let path = path.unwrap_or_default().trim_start_matches("./");
        let one_based = |name: &str| window.arguments.get(name).and_then(Value::as_u64);
        let same = |name: &str| {
            place(name).is_none_or(|at| one_based(name).is_none_or(|of| of == at.saturating_add(1)))
        };
        !path.is_empty() && ends_with_path(uri, path) && same("line") && same("character")
    };
    let fitting: Vec<usize> = running
        .iter()
        .filter(fits)
        .map(|window| window.item)
        .collect();
    if fitting.is_empty() { all() } else { fitting }
}

/// Whether a URI's path ends with this path, percent-encoding aside.
fn ends_with_path(uri: &str, path: &str) -> bool {
    let decoded = percent_encoding::percent_decode_str(uri).decode_utf8_lossy();
    decoded
        .strip_suffix(path)
        .is_some_and(|before| path.starts_with('/') || before.ends_with('/'))
}
