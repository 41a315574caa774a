//! What a scenario demands of its transcript.

#[cfg(test)]
mod tests;

use dsh_transcript::{Direction, EventBody, Frame, View};
use serde_json::Value;

use super::trace::Trace;
use crate::format::{Count, End, MessageCheck, Pattern, Scenario, Wire};

/// Something that does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The clauses it is about; empty: those of the scenario.
    pub(crate) clauses: Vec<String>,
    /// What is wrong, in one line.
    pub(crate) message: String,
    pub(crate) expected: String,
    pub(crate) got: String,
    /// The event that shows it.
    pub(crate) seq: Option<u64>,
}

/// All demands on the transcript but `requires`.
pub(crate) fn all(scenario: &Scenario, trace: &Trace) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (process, wire) in &scenario.wire {
        failures.extend(self::wire(*process, wire, trace));
    }
    for check in &scenario.messages {
        failures.extend(messages(check, trace));
    }
    failures.extend(order(&scenario.order, trace));
    failures.extend(never(&scenario.never, trace));
    if let Some(count) = &scenario.processes {
        failures.extend(processes(count, trace));
    }
    for (process, end) in &scenario.ends {
        failures.extend(ends(*process, end, trace));
    }
    failures
}

/// One item of a sequence.
#[derive(Debug, PartialEq, Eq)]
enum Item<'a> {
    /// Any messages, or none.
    Any,
    /// One of these; perhaps none.
    One { names: Vec<&'a str>, optional: bool },
}

impl<'a> Item<'a> {
    fn read(text: &'a str) -> Self {
        if text == "..." {
            return Self::Any;
        }
        let (names, optional) = match text.strip_suffix('?') {
            Some(names) => (names, true),
            None => (text, false),
        };
        let names = names.split('|').collect();
        Self::One { names, optional }
    }

    fn skippable(&self) -> bool {
        matches!(self, Self::Any | Self::One { optional: true, .. })
    }
}

/// Whether a sequence of messages is the one that is wanted; else the place of the first message
/// that cannot stand there, or the number of messages if some are missing.
pub(crate) fn sequence(wanted: &[String], got: &[&str]) -> Result<(), usize> {
    let items: Vec<Item<'_>> = wanted.iter().map(|text| Item::read(text)).collect();
    // The items that may come next, closed over those that may be left out.
    let close = |mut at: Vec<bool>| {
        for place in 0..items.len() {
            if at[place] && items[place].skippable() {
                at[place + 1] = true;
            }
        }
        at
    };
    let mut start = vec![false; items.len() + 1];
    start[0] = true;
    let mut at = close(start);
    for (place, name) in got.iter().enumerate() {
        let mut next = vec![false; items.len() + 1];
        for (item, _) in at.iter().enumerate().filter(|(_, here)| **here) {
            match items.get(item) {
                Some(Item::Any) => next[item] = true,
                Some(Item::One { names, .. }) if names.contains(name) => next[item + 1] = true,
                _ => {}
            }
        }
        if !next.contains(&true) {
            return Err(place);
        }
        at = close(next);
    }
    if at[items.len()] {
        Ok(())
    } else {
        Err(got.len())
    }
}

fn wire(process: u32, wire: &Wire, trace: &Trace) -> Option<Failure> {
    let view = View(trace.events());
    let sent: Vec<(u64, &str)> = view
        .sent(process, Direction::ToServer)
        .filter_map(|(event, frame)| Some((event.seq, frame.short_name()?)))
        .collect();
    let names: Vec<&str> = sent.iter().map(|(_, name)| *name).collect();
    let one = std::slice::from_ref;
    let wanted: &[Vec<String>] = match wire {
        Wire::Exactly(sequence) => one(sequence),
        Wire::AnyOf(any) => &any.any_of,
    };
    let mut farthest = 0;
    for wanted in wanted {
        match sequence(wanted, &names) {
            Ok(()) => return None,
            Err(place) => farthest = farthest.max(place),
        }
    }
    let list = |names: &[&str]| format!("[{}]", names.join(", "));
    let expected: Vec<String> = wanted
        .iter()
        .map(|wanted| list(&wanted.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    let what = match sent.get(farthest) {
        Some((_, name)) => format!("{name} should not come as message {}", farthest + 1),
        None => format!("messages are missing after {farthest}"),
    };
    let shown = excerpt(&names, farthest);
    Some(Failure {
        message: format!("messages to process {process}: {what}"),
        expected: expected.join(" or "),
        got: list(&shown),
        seq: sent.get(farthest).or(sent.last()).map(|(seq, _)| *seq),
        ..Failure::default()
    })
}

/// The names around a place, where there are too many to show.
fn excerpt<'a>(names: &[&'a str], place: usize) -> Vec<&'a str> {
    const AROUND: usize = 20;
    let from = place.saturating_sub(AROUND);
    let to = (place + AROUND).min(names.len());
    let mut shown = Vec::new();
    shown.extend((from > 0).then_some("…"));
    shown.extend(&names[from..to]);
    shown.extend((to < names.len()).then_some("…"));
    shown
}

fn messages(check: &MessageCheck, trace: &Trace) -> Vec<Failure> {
    let what = describe(&check.of);
    let failure = |message: String, expected: String, got: String, seq| Failure {
        clauses: check.clauses.clone(),
        message,
        expected,
        got,
        seq,
    };
    let all: Vec<usize> = trace.all(&check.of).collect();
    let selected: Vec<usize> = match check.of.nth {
        Some(_) => trace.find(&check.of).into_iter().collect(),
        None => all.clone(),
    };
    let fits = match &check.count {
        None => !selected.is_empty(),
        Some(count) => within(count, selected.len()),
    };
    if !fits {
        let expected = check
            .count
            .as_ref()
            .map_or_else(|| "at least one".to_owned(), counted);
        let seq = all.last().map(|at| trace.events()[*at].seq);
        let got = selected.len().to_string();
        return vec![failure(format!("{what}: {got} came"), expected, got, seq)];
    }
    let mut failures = Vec::new();
    for at in selected {
        let event = &trace.events()[at];
        let Some(frame) = event.frame() else { continue };
        if let Some((message, expected, got)) = inside(check, frame) {
            failures.push(failure(
                format!("{what}: {message}"),
                expected,
                got,
                Some(event.seq),
            ));
        }
    }
    // One shows it; the others would only repeat it.
    failures.truncate(1);
    failures
}

/// What is wrong inside one message: what, expected, got.
fn inside(check: &MessageCheck, frame: &Frame) -> Option<(String, String, String)> {
    if let Some(wanted) = &check.header {
        let header = String::from_utf8_lossy(&frame.header.0);
        if header != *wanted {
            let texts = (format!("{wanted:?}"), format!("{header:?}"));
            return Some(("its header".to_owned(), texts.0, texts.1));
        }
    }
    if check.at.is_empty() && check.absent.is_empty() {
        return None;
    }
    let Some(json) = frame.json() else {
        let got = if frame.cut.is_some() {
            "a body too long to be kept"
        } else {
            "a body that is not JSON"
        };
        return Some(("its body".to_owned(), "JSON".to_owned(), got.to_owned()));
    };
    for (pointer, wanted) in &check.at {
        let found = json.pointer(pointer);
        if found != Some(wanted) {
            let got = found.map_or_else(|| "nothing".to_owned(), shown);
            return Some((pointer.clone(), shown(wanted), got));
        }
    }
    for pointer in &check.absent {
        if let Some(found) = json.pointer(pointer) {
            return Some((pointer.clone(), "nothing".to_owned(), shown(found)));
        }
    }
    None
}

/// Each pattern's event comes after the one before it; without `nth`, the next one that fits.
///
/// What counts is when things happened, stamped where they did: reports of several processes may
/// be recorded in another order than that.
fn order(patterns: &[Pattern], trace: &Trace) -> Option<Failure> {
    if patterns.is_empty() {
        return None;
    }
    let events = trace.events();
    let mut by_time: Vec<usize> = (0..events.len()).collect();
    by_time.sort_by_key(|at| events[*at].at_us);
    // How many events, in the order of time, are behind the last one that was found.
    let mut behind = 0;
    let mut last: Option<u64> = None;
    for (place, pattern) in patterns.iter().enumerate() {
        let fits = |at: &&usize| trace.matches(**at, pattern);
        let found = match pattern.nth {
            Some(_) => trace
                .find(pattern)
                .and_then(|found| by_time[behind..].iter().position(|at| *at == found)),
            None => by_time[behind..].iter().position(|at| fits(&at)),
        };
        if let Some(found) = found {
            last = Some(events[by_time[behind + found]].seq);
            behind += found + 1;
            continue;
        }
        let what = describe(pattern);
        let expected = match place.checked_sub(1) {
            Some(before) => format!("{}, then {what}", describe(&patterns[before])),
            None => what.clone(),
        };
        let (got, seq) = match trace.find(pattern) {
            Some(at) => (format!("{what} only before that"), Some(events[at].seq)),
            None => (format!("no {what}"), last),
        };
        return Some(Failure {
            message: format!("the order of events: {got}"),
            expected,
            got,
            seq,
            ..Failure::default()
        });
    }
    None
}

/// Events that happened and should not have.
pub(crate) fn never(patterns: &[Pattern], trace: &Trace) -> Vec<Failure> {
    let happened = |pattern: &Pattern| {
        let at = trace.find(pattern)?;
        let what = describe(pattern);
        Some(Failure {
            message: format!("it should never happen: {what}"),
            expected: format!("no {what}"),
            got: what,
            seq: Some(trace.events()[at].seq),
            ..Failure::default()
        })
    };
    patterns.iter().filter_map(happened).collect()
}

/// The events without which the case proves nothing, and which did not happen.
pub(crate) fn missing(scenario: &Scenario, trace: &Trace) -> Vec<String> {
    scenario
        .requires
        .iter()
        .filter(|pattern| trace.find(pattern).is_none())
        .map(describe)
        .collect()
}

fn processes(count: &Count, trace: &Trace) -> Option<Failure> {
    let started: Vec<u64> = trace
        .events()
        .iter()
        .filter(|event| matches!(event.body, EventBody::ProcessStarted { .. }))
        .map(|event| event.seq)
        .collect();
    if within(count, started.len()) {
        return None;
    }
    Some(Failure {
        message: format!("server processes: {} were started", started.len()),
        expected: counted(count),
        got: started.len().to_string(),
        seq: started.last().copied(),
        ..Failure::default()
    })
}

/// How a process ended, as far as it could tell.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    signal: Option<i32>,
    /// Whether SIGTERM came.
    asked: bool,
    seq: u64,
}

fn ended(process: u32, trace: &Trace) -> Option<Ended> {
    let mut asked = false;
    for event in View(trace.events()).of(process) {
        match &event.body {
            EventBody::Note { kind, .. } if kind == "signal" => asked = true,
            EventBody::ProcessEnded { code, signal } => {
                return Some(Ended {
                    code: *code,
                    signal: *signal,
                    asked,
                    seq: event.seq,
                });
            }
            _ => {}
        }
    }
    None
}

const SIGTERM: i32 = 15;

impl Ended {
    fn is(&self, end: &End) -> bool {
        match end {
            End::Exit(code) => self.code == Some(*code) && !self.asked,
            End::Terminated => self.signal == Some(SIGTERM) || (self.asked && self.code.is_some()),
            // Whoever dies of SIGKILL announces nothing, or that it sends it to itself.
            End::Killed => self.code.is_none() && self.signal != Some(SIGTERM),
            End::AnyOf(ends) => ends.iter().any(|end| self.is(end)),
        }
    }

    fn shown(&self) -> String {
        let after = if self.asked { ", after SIGTERM" } else { "" };
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}{after}"),
            (None, Some(signal)) => format!("signal {signal}{after}"),
            (None, None) => format!("killed, without a word{after}"),
        }
    }
}

fn expected_end(end: &End) -> String {
    match end {
        End::Exit(code) => format!("exit {code}"),
        End::Terminated => "terminated".to_owned(),
        End::Killed => "killed".to_owned(),
        End::AnyOf(ends) => {
            let ends: Vec<String> = ends.iter().map(expected_end).collect();
            ends.join(" or ")
        }
    }
}

fn ends(process: u32, end: &End, trace: &Trace) -> Option<Failure> {
    let found = ended(process, trace);
    if found.as_ref().is_some_and(|found| found.is(end)) {
        return None;
    }
    let got = found
        .as_ref()
        .map_or_else(|| "no end".to_owned(), Ended::shown);
    Some(Failure {
        message: format!("the end of process {process}: {got}"),
        expected: expected_end(end),
        got,
        seq: found.map(|found| found.seq),
        ..Failure::default()
    })
}

pub(crate) fn within(count: &Count, found: usize) -> bool {
    let found = found as u64;
    match count {
        Count::Exactly(number) => found == *number,
        Count::Between(bounds) => {
            bounds.min.is_none_or(|min| min <= found) && bounds.max.is_none_or(|max| found <= max)
        }
    }
}

pub(crate) fn counted(count: &Count) -> String {
    match count {
        Count::Exactly(number) => number.to_string(),
        Count::Between(bounds) => match (bounds.min, bounds.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => "any number".to_owned(),
        },
    }
}

/// A pattern in words, as they are in its file.
pub(crate) fn describe(pattern: &Pattern) -> String {
    let Ok(Value::Object(parts)) = serde_json::to_value(pattern) else {
        return "an event".to_owned();
    };
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {}", shown(value)),
        })
        .collect();
    format!("{{{}}}", parts.join(", "))
}

fn shown(value: &Value) -> String {
    const MOST: usize = 300;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}
