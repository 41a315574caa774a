//! What reached the model in a turn, held against what a scenario demands, and shown.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use dsh_fake_lsp::contains;
use serde_json::Value;

use super::checks::{counted, sequence, within};
use super::outcome::{Mismatch, lacking};
use crate::format::{MessageSaid, Outcome, RequestCheck, Requests, Said, TextCheck, TurnEnd};
use crate::subject::{TurnMessage, TurnOutcome, TurnRequest};

/// The most of a text that is shown in an error.
const SHOWN: usize = 1200;

/// What has to be known of a turn besides what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// How many replies the model had.
    pub(crate) replies: usize,
    /// The last request of the session's turn before.
    pub(crate) before: Option<TurnRequest>,
}

/// The last request of a turn.
pub(crate) fn last(value: &Value) -> Option<TurnRequest> {
    let last = value["requests"].as_array()?.last()?;
    serde_json::from_value(last.clone()).ok()
}

/// Holds a turn against what is demanded of it.
pub(crate) fn judge(
    check: &Outcome,
    value: &Value,
    turn: &Turn,
    foreign: bool,
) -> Result<(), Mismatch> {
    let outcome: TurnOutcome = serde_json::from_value(value.clone()).map_err(|error| {
        let expected = "the outcome of a turn as the subject protocol has it";
        Mismatch::new(expected, format!("{error}: {}", cut(&value.to_string())))
    })?;
    let completed = outcome.ended == "completed";
    let wanted = match (&check.ended, check.ok) {
        (Some(ended), _) => Some(name_of(ended)),
        (None, Some(false)) if completed => {
            return Err(Mismatch::new(
                "a turn that does not complete",
                how(&outcome),
            ));
        }
        (None, Some(false)) => None,
        (None, _) => Some("completed"),
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != outcome.ended) {
        return Err(Mismatch::new(
            format!("a turn that is {wanted}"),
            how(&outcome),
        ));
    }
    let found = outcome.requests.len();
    match check
        .requests
        .as_ref()
        .and_then(|demands| demands.count.as_ref())
    {
        Some(count) if !within(count, found) => {
            let expected = format!("{} requests to the model", counted(count));
            return Err(Mismatch::new(expected, requests_shown(&outcome.requests)));
        }
        None if completed && found != turn.replies => {
            let expected = format!(
                "{} requests to the model, one for each of its replies",
                turn.replies
            );
            return Err(Mismatch::new(expected, requests_shown(&outcome.requests)));
        }
        _ => {}
    }
    if let Some(demands) = &check.requests {
        demanded(demands, &outcome, turn, foreign)?;
    }
    Ok(())
}

fn name_of(ended: &TurnEnd) -> &'static str {
    match ended {
        TurnEnd::Completed => "completed",
        TurnEnd::Rejected => "rejected",
        TurnEnd::Cancelled => "cancelled",
        TurnEnd::Failed => "failed",
    }
}

/// How a turn ended, with how much it took; none of what is no outcome of a turn.
pub(crate) fn in_short(value: &Value) -> Option<String> {
    let outcome: TurnOutcome = serde_json::from_value(value.clone()).ok()?;
    let requests = match outcome.requests.len() {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    };
    Some(format!("{}, with {requests}", how(&outcome)))
}

fn how(outcome: &TurnOutcome) -> String {
    let mut text = format!("it is {}", outcome.ended);
    if let Some(code) = &outcome.code {
        let _ = write!(text, ", {code}");
    }
    if let Some(message) = &outcome.message {
        let _ = write!(text, ": {}", cut(message));
    }
    text
}

fn demanded(
    demands: &Requests,
    outcome: &TurnOutcome,
    turn: &Turn,
    foreign: bool,
) -> Result<(), Mismatch> {
    let requests = &outcome.requests;
    // What a harness without typed sources cannot tell it is not held to.
    let told = requests
        .iter()
        .flat_map(|request| &request.messages)
        .any(|message| message.source.is_some());
    let sources = told || !foreign;
    let before = |at: usize| match at.checked_sub(1) {
        Some(before) => requests.get(before),
        None => turn.before.as_ref(),
    };
    let hold = |at: usize, check: &RequestCheck| {
        let number = at + 1;
        let Some(found) = requests.get(at) else {
            let expected = format!("a request {number} to the model");
            return Err(Mismatch::new(expected, requests_shown(requests)));
        };
        request(check, found, before(at), sources).map_err(|mismatch| Mismatch {
            expected: format!("in request {number}: {}", mismatch.expected),
            got: mismatch.got,
        })
    };
    for (number, check) in &demands.nth {
        let at = usize::try_from(*number).unwrap_or(usize::MAX);
        hold(at.saturating_sub(1), check)?;
    }
    if let Some(check) = &demands.last {
        hold(requests.len().saturating_sub(1), check)?;
    }
    if let Some(check) = &demands.each {
        if requests.is_empty() {
            let expected = "a request to the model";
            return Err(Mismatch::new(expected, requests_shown(requests)));
        }
        for at in 0..requests.len() {
            hold(at, check)?;
        }
    }
    if let Some(wanted) = demands.extending {
        let broken = (0..requests.len())
            .find_map(|at| Some((at, extends(&requests[at], before(at)?).err()?)));
        match (wanted, broken) {
            (true, Some((at, got))) => {
                let expected = format!("request {} begins with all of the one before", at + 1);
                return Err(Mismatch::new(expected, got));
            }
            (false, None) => {
                let expected = "a request that does not begin with the one before";
                return Err(Mismatch::new(expected, "each of them does"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The message without what the model does not see.
fn visible(message: &TurnMessage) -> TurnMessage {
    TurnMessage {
        source: None,
        ..message.clone()
    }
}

/// Whether a request begins with all of another; else where it does not.
fn extends(request: &TurnRequest, before: &TurnRequest) -> Result<(), String> {
    if request.system != before.system {
        return Err("another system prompt".to_owned());
    }
    if request.tools != before.tools {
        return Err(format!(
            "other tools: [{}] after [{}]",
            request.tools.join(", "),
            before.tools.join(", ")
        ));
    }
    for (at, earlier) in before.messages.iter().enumerate() {
        let number = at + 1;
        match request.messages.get(at) {
            None => {
                let there = request.messages.len();
                return Err(format!("{there} messages only, where there were more"));
            }
            Some(message) if visible(message) != visible(earlier) => {
                let now = line(message);
                let then = line(earlier);
                return Err(format!("message {number} is {now}; it was {then}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn request(
    check: &RequestCheck,
    found: &TurnRequest,
    before: Option<&TurnRequest>,
    sources: bool,
) -> Result<(), Mismatch> {
    if let Some(wanted) = &check.messages {
        list(wanted, &found.messages, sources)?;
    }
    if let Some(wanted) = &check.new {
        let known = match before {
            None => 0,
            Some(before) => {
                extends(found, before).map_err(|got| {
                    let expected = "new messages behind all of the request before";
                    Mismatch::new(expected, got)
                })?;
                before.messages.len()
            }
        };
        list(wanted, &found.messages[known..], sources)?;
    }
    let texts = || found.messages.iter().map(|message| message.text.as_str());
    let got = || messages_shown(&found.messages);
    let missed = |expected: String| Mismatch::new(expected, got());
    for wanted in &check.contains {
        if !texts().any(|text| text.contains(wanted.as_str())) {
            return Err(missed(format!("a message that contains {wanted:?}")));
        }
    }
    if let Some(unwanted) = texts().find_map(|text| lacking(&check.lacks, text)) {
        return Err(missed(format!("no message that contains {unwanted:?}")));
    }
    let once = check.once.iter().map(|text| (text, 1));
    let times = check.times.iter().map(|(text, times)| (text, *times));
    for (wanted, times) in once.chain(times) {
        let there: u64 = texts().map(|text| occurrences(text, wanted)).sum();
        if there != times {
            let expected = format!("{wanted:?} {times} times in all messages");
            let got = format!("{there} times: {}", messages_shown(&found.messages));
            return Err(Mismatch::new(expected, got));
        }
    }
    let whole = texts().collect::<Vec<_>>().join("\n");
    order(&check.order, &whole).map_err(missed)?;
    if let Some(system) = &check.system {
        text(system, &found.system).map_err(|expected| {
            let expected = format!("a system prompt: {expected}");
            Mismatch::new(expected, format!("{:?}", cut(&found.system)))
        })?;
    }
    if let Some(wanted) = &check.tools {
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names
        };
        if sorted(wanted) != sorted(&found.tools) {
            let expected = format!("the tools [{}]", wanted.join(", "));
            let got = format!("[{}]", found.tools.join(", "));
            return Err(Mismatch::new(expected, got));
        }
    }
    Ok(())
}

/// How often a text is in another, overlaps not counted.
fn occurrences(text: &str, wanted: &str) -> u64 {
    if wanted.is_empty() {
        return 0;
    }
    text.matches(wanted).count() as u64
}

fn order(wanted: &[String], text: &str) -> Result<(), String> {
    let mut rest = text;
    let mut last: Option<&str> = None;
    for wanted in wanted {
        let Some(at) = rest.find(wanted.as_str()) else {
            return Err(match last {
                Some(last) => format!("{wanted:?} somewhere behind {last:?}"),
                None => format!("{wanted:?}"),
            });
        };
        rest = &rest[at + wanted.len()..];
        last = Some(wanted);
    }
    Ok(())
}

fn text(check: &TextCheck, text: &str) -> Result<(), String> {
    if let Some(wanted) = check.text.as_ref().filter(|wanted| *wanted != text) {
        return Err(format!("the text {wanted:?}"));
    }
    if let Some(wanted) = check.contains.iter().find(|wanted| !text.contains(*wanted)) {
        return Err(format!("a text that contains {wanted:?}"));
    }
    if let Some(unwanted) = lacking(&check.lacks, text) {
        return Err(format!("a text without {unwanted:?}"));
    }
    order(&check.order, text).map_err(|what| format!("a text with {what}"))
}

/// Messages against a list that may have gaps.
fn list(wanted: &[Said], found: &[TurnMessage], sources: bool) -> Result<(), Mismatch> {
    let gap = |said: &Said| matches!(said, Said::Any(standing) if standing == "...");
    if !wanted.iter().any(gap) {
        for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
            said(wanted, found, sources).map_err(|expected| {
                let expected = format!("message {}: {expected}", at + 1);
                Mismatch::new(expected, line(found))
            })?;
        }
        if wanted.len() != found.len() {
            let expected = format!("{} messages", wanted.len());
            let got = format!("{}: {}", found.len(), messages_shown(found));
            return Err(Mismatch::new(expected, got));
        }
        return Ok(());
    }
    // The places of the list at which one may be; gaps are left at once, too.
    let close = |mut at: Vec<bool>| {
        for place in 0..wanted.len() {
            if at[place] && gap(&wanted[place]) {
                at[place + 1] = true;
            }
        }
        at
    };
    let mut start = vec![false; wanted.len() + 1];
    start[0] = true;
    let mut at = close(start);
    for message in found {
        let mut next = vec![false; wanted.len() + 1];
        for place in 0..wanted.len() {
            if !at[place] {
                continue;
            }
            if gap(&wanted[place]) {
                next[place] = true;
            } else if said(&wanted[place], message, sources).is_ok() {
                next[place + 1] = true;
            }
        }
        at = close(next);
    }
    if at[wanted.len()] {
        return Ok(());
    }
    let shown = serde_json::to_string(wanted).unwrap_or_default();
    Err(Mismatch::new(
        format!("messages {}", cut(&shown)),
        messages_shown(found),
    ))
}

fn said(wanted: &Said, found: &TurnMessage, sources: bool) -> Result<(), String> {
    let wanted: &MessageSaid = match wanted {
        Said::Any(role) if *role == found.role => return Ok(()),
        Said::Any(role) => return Err(format!("one of role {role}")),
        Said::Message(message) => message,
    };
    let role = wanted.role.name();
    if role != found.role {
        return Err(format!("one of role {role}"));
    }
    let demands = TextCheck {
        text: wanted.text.clone(),
        contains: wanted.contains.clone(),
        lacks: wanted.lacks.clone(),
        order: wanted.order.clone(),
    };
    text(&demands, &found.text)?;
    for once in &wanted.once {
        let there = occurrences(&found.text, once);
        if there != 1 {
            return Err(format!("{once:?} once, not {there} times"));
        }
    }
    if let Some(begins) = &wanted.begins
        && !found.text.starts_with(begins.as_str())
    {
        return Err(format!("a text that begins with {begins:?}"));
    }
    if let Some(ends) = &wanted.ends
        && !found.text.ends_with(ends.as_str())
    {
        return Err(format!("a text that ends with {ends:?}"));
    }
    if let Some(most) = wanted.at_most_bytes
        && found.text.len() as u64 > most
    {
        let length = found.text.len();
        return Err(format!("at most {most} bytes, not {length}"));
    }
    if let Some(calls) = &wanted.calls {
        let called: Vec<&str> = found
            .tool_calls
            .iter()
            .map(|call| call["name"].as_str().unwrap_or_default())
            .collect();
        if called != *calls {
            return Err(format!("calls of [{}]", calls.join(", ")));
        }
    }
    if let Some(error) = wanted.error
        && found.is_error.unwrap_or(false) != error
    {
        let what = if error { "an error" } else { "no error" };
        return Err(what.to_owned());
    }
    if let Some(source) = wanted.source.as_ref().filter(|_| sources) {
        let told = found.source.as_ref();
        if !told.is_some_and(|told| contains(told, source)) {
            return Err(format!("one with the source {source}"));
        }
    }
    Ok(())
}

/// The types of a session's events, in order.
pub(crate) fn events(wanted: &[String], value: &Value) -> Result<(), Mismatch> {
    let found = value["events"].as_array().map(|events| {
        let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
        events.iter().map(name).collect::<Vec<_>>()
    });
    let expected = || format!("the events [{}]", wanted.join(", "));
    let Some(found) = found else {
        return Err(Mismatch::new(expected(), cut(&value.to_string())));
    };
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    sequence(wanted, &names).map_err(|place| {
        let shown = names.join(", ");
        let got = match names.get(place) {
            Some(name) => format!("[{shown}]: {name} should not come as event {}", place + 1),
            None => format!("[{shown}]: some are missing at the end"),
        };
        Mismatch::new(expected(), got)
    })
}

/// What a model sees of a turn, for people: each request's new messages, and whatever is not as it
/// was in the one before. System prompts are left out.
pub(crate) fn shown(value: &Value, before: Option<&TurnRequest>) -> String {
    let outcome: TurnOutcome = match serde_json::from_value(value.clone()) {
        Ok(outcome) => outcome,
        Err(error) => return format!("no outcome of a turn: {error}"),
    };
    let mut text = String::new();
    let mut before = before;
    for (at, request) in outcome.requests.iter().enumerate() {
        let _ = writeln!(text, "━━ request {}", at + 1);
        if before.is_none_or(|before| before.tools != request.tools) {
            let _ = writeln!(text, "tools: {}", request.tools.join(", "));
        }
        let same = before.map_or(0, |before| {
            let both = before.messages.iter().zip(&request.messages);
            both.take_while(|(one, other)| visible(one) == visible(other))
                .count()
        });
        let gone = before.map_or(0, |before| before.messages.len() - same);
        if same > 0 {
            let _ = writeln!(text, "… {same} as before");
        }
        if gone > 0 {
            let _ = writeln!(text, "… {gone} not there any more");
        }
        for message in &request.messages[same..] {
            show(&mut text, message);
        }
        before = Some(request);
    }
    let _ = write!(text, "━━ {}", how(&outcome).trim_start_matches("it is "));
    text
}

fn show(text: &mut String, message: &TurnMessage) {
    let error = if message.is_error == Some(true) {
        ", an error"
    } else {
        ""
    };
    let _ = writeln!(text, "[{}{error}]", message.role);
    if !message.text.is_empty() {
        let _ = writeln!(text, "{}", message.text);
    }
    for call in &message.tool_calls {
        let name = call["name"].as_str().unwrap_or_default();
        let _ = writeln!(text, "→ {name} {}", call["arguments"]);
    }
}

fn requests_shown(requests: &[TurnRequest]) -> String {
    match requests.last() {
        None => "no request".to_owned(),
        Some(last) => format!(
            "{} requests; in the last: {}",
            requests.len(),
            messages_shown(&last.messages)
        ),
    }
}

fn messages_shown(messages: &[TurnMessage]) -> String {
    let lines: Vec<String> = messages.iter().map(line).collect();
    cut(&format!("[{}]", lines.join(", ")))
}

/// A message in one line.
fn line(message: &TurnMessage) -> String {
    let calls: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| {
            format!(
                "{}{}",
                call["name"].as_str().unwrap_or_default(),
                call["arguments"]
            )
        })
        .collect();
    let calls = if calls.is_empty() {
        String::new()
    } else {
        format!(" calls {}", calls.join(" and "))
    };
    let source = match &message.source {
        Some(source) => format!(" from {source}"),
        None => String::new(),
    };
    let error = if message.is_error == Some(true) {
        " error"
    } else {
        ""
    };
    cut(&format!(
        "{}{error}{calls} {:?}{source}",
        message.role, message.text
    ))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}
