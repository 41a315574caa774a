//! Whether what came of a call is what a scenario demands.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

use super::fill::{Places, same_uri, uri_of};
use super::place::{self, Markers, Place};
use super::requests::{self, Turn};
use crate::format::{ErrorCheck, Outcome};
use crate::subject::CallError;
use dsh_fake_lsp::contains;

/// What came of a call.
pub(crate) type Settled = Result<Value, CallError>;

/// The stable codes that do not come from the project itself, so that they bind everybody (ERR-2).
const SEED_CODES: [&str; 7] = [
    "LSP_UNAVAILABLE",
    "LSP_WORKSPACE_REQUIRED",
    "LSP_MALFORMED_RESPONSE",
    "LSP_DISPOSED",
    "LSP_CONFLICT",
    "LSP_INVALID_PROVIDER",
    "LSP_UNSUPPORTED_OPERATION",
];

/// The most of a value that is shown.
const SHOWN: usize = 600;

/// What is known besides the outcome itself.
pub(crate) struct Context<'a> {
    pub(crate) places: &'a Places,
    pub(crate) markers: &'a Markers,
    /// Whether the harness is somebody else's.
    pub(crate) foreign: bool,
    /// The outcomes so far, for `same_as`.
    pub(crate) settled: &'a BTreeMap<String, Settled>,
    /// What a turn was asked, where the call is one.
    pub(crate) turn: Option<Turn>,
}

/// What was demanded, and what came in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            got: got.into(),
        }
    }
}

/// Whether judging does not wait for the call to settle.
pub(crate) fn may_be_pending(check: &Outcome) -> bool {
    check.pending || check.any_of.iter().any(may_be_pending)
}

/// Holds a call against what is demanded of it; `None` is one that is not settled.
pub(crate) fn judge(
    check: &Outcome,
    settled: Option<&Settled>,
    context: &Context<'_>,
) -> Result<(), Mismatch> {
    if !check.any_of.is_empty() {
        let mut missed = Vec::new();
        for one in &check.any_of {
            match judge(one, settled, context) {
                Ok(()) => return Ok(()),
                Err(mismatch) => missed.push(mismatch),
            }
        }
        let expected: Vec<&str> = missed.iter().map(|m| m.expected.as_str()).collect();
        return Err(Mismatch::new(
            format!("one of: {}", expected.join("; or ")),
            got_of(check, settled, context),
        ));
    }
    let Some(settled) = settled else {
        return if check.pending {
            Ok(())
        } else {
            Err(Mismatch::new("an outcome", describe(None)))
        };
    };
    let got = || got_of(check, Some(settled), context);
    if check.pending {
        return Err(Mismatch::new("no outcome yet", got()));
    }
    if let Some(other) = &check.same_as {
        let same = match context.settled.get(other) {
            Some(other) => bytes(other) == bytes(settled),
            None => false,
        };
        if !same {
            let other = describe(context.settled.get(other));
            return Err(Mismatch::new(format!("the same as before: {other}"), got()));
        }
    }
    match (failure(settled), &check.error, check.ok) {
        (Some(failure), Some(check), _) => error(check, &failure, context.foreign)
            .map_err(|expected| Mismatch::new(expected, got()))?,
        (Some(_), None, Some(false)) => {}
        (Some(_), None, _) if check.same_as.is_none() => {
            return Err(Mismatch::new(demanded(check), got()));
        }
        (None, Some(check), _) => return Err(Mismatch::new(failing(check), got())),
        (None, None, Some(false)) => return Err(Mismatch::new("a failure", got())),
        _ => {}
    }
    result(check, settled, context)
}

/// The demands on a result's value and text.
fn result(check: &Outcome, settled: &Settled, context: &Context<'_>) -> Result<(), Mismatch> {
    let null = Value::Null;
    let value = settled.as_ref().unwrap_or(&null);
    let missed = |expected: String| Mismatch::new(expected, got_of(check, Some(settled), context));
    if let Some(wanted) = &check.locations {
        locations(wanted, value, context).map_err(missed)?;
    }
    if let Some(count) = check.count {
        let found = value["locations"].as_array().map(Vec::len);
        if found.map(|found| found as u64) != Some(count) {
            return Err(missed(format!("{count} locations")));
        }
    }
    if let Some(wanted) = &check.resolved_workspace_uri
        && !value["resolvedWorkspaceUri"]
            .as_str()
            .is_some_and(|uri| same_uri(uri, wanted))
    {
        return Err(missed(format!("resolvedWorkspaceUri {wanted}")));
    }
    if let Some(wanted) = &check.hover {
        hover(wanted, value).map_err(missed)?;
    }
    if let Some(wanted) = &check.value
        && !contains(value, wanted)
    {
        return Err(missed(format!("a result with {}", short(wanted))));
    }
    for (pointer, wanted) in &check.keys {
        members(value, pointer, wanted).map_err(missed)?;
    }
    if let Some(turn) = &context.turn
        && settled.is_ok()
    {
        requests::judge(check, value, turn, context.foreign)?;
    }
    if let Some(wanted) = &check.events {
        requests::events(wanted, value)?;
    }
    text(check, text_of(settled).as_deref()).map_err(missed)
}

/// Exactly the members that are wanted.
fn members(value: &Value, pointer: &str, wanted: &[String]) -> Result<(), String> {
    let found = value.pointer(pointer).and_then(Value::as_object);
    let same = found.is_some_and(|found| {
        found.len() == wanted.len() && wanted.iter().all(|name| found.contains_key(name))
    });
    if same {
        return Ok(());
    }
    let wanted = wanted.join(", ");
    Err(format!("{pointer} with the members {wanted} and no others"))
}

/// The demands on the text a model gets.
fn text(check: &Outcome, text: Option<&str>) -> Result<(), String> {
    let texts = check.contains.iter().chain(&check.lacks);
    if check.text.is_none() && check.at_most.is_none() && texts.count() == 0 {
        return Ok(());
    }
    let Some(text) = text else {
        return Err("a text".to_owned());
    };
    if let Some(wanted) = &check.text
        && text != wanted
    {
        return Err(format!("the text {wanted:?}"));
    }
    if let Some(wanted) = check.contains.iter().find(|wanted| !text.contains(*wanted)) {
        return Err(format!("a text that contains {wanted:?}"));
    }
    if let Some(unwanted) = lacking(&check.lacks, text) {
        return Err(format!("a text without {unwanted:?}"));
    }
    if let Some(most) = check.at_most {
        let units = text.encode_utf16().count() as u64;
        if units > most {
            return Err(format!(
                "a text of at most {most} UTF-16 code units, not {units}"
            ));
        }
    }
    Ok(())
}

pub(crate) fn lacking<'a>(unwanted: &'a [String], text: &str) -> Option<&'a String> {
    let lower = text.to_lowercase();
    unwanted
        .iter()
        .find(|word| lower.contains(&word.to_lowercase()))
}

/// The text of a tool call, of a hover, or of the system prompt where that was asked for.
fn text_of(settled: &Settled) -> Option<String> {
    let value = match settled {
        Ok(value) => value,
        Err(CallError::Refused { message, .. }) => return Some(message.clone()),
        Err(_) => return None,
    };
    let text = value
        .get("text")
        .or_else(|| value.pointer("/hover/contents"))
        .or_else(|| value.get("systemPrompt"))?;
    text.as_str().map(str::to_owned)
}

/// A failed call, or a tool call whose result is an error.
struct Failed {
    code: Option<String>,
    message: String,
    server_code: Option<i64>,
}

fn failure(settled: &Settled) -> Option<Failed> {
    match settled {
        Ok(value) => {
            value.get("isError")?.as_bool().filter(|error| *error)?;
            Some(Failed {
                code: value["code"].as_str().map(str::to_owned),
                message: value["text"].as_str().unwrap_or_default().to_owned(),
                server_code: value.pointer("/value/serverCode").and_then(Value::as_i64),
            })
        }
        Err(CallError::Refused {
            code,
            message,
            data,
        }) => Some(Failed {
            code: code.clone(),
            message: message.clone(),
            server_code: data["serverCode"].as_i64(),
        }),
        Err(other) => Some(Failed {
            code: None,
            message: other.to_string(),
            server_code: None,
        }),
    }
}

fn error(check: &ErrorCheck, failed: &Failed, foreign: bool) -> Result<(), String> {
    let binds = |code: &String| !foreign || SEED_CODES.contains(&code.as_str());
    let code = check.code.as_ref().filter(|code| binds(code));
    if code.is_some_and(|code| failed.code.as_ref() != Some(code)) {
        return Err(failing(check));
    }
    // The member that carries it is the project's own.
    if let (Some(code), false) = (check.server_code, foreign)
        && failed.server_code != Some(code)
    {
        return Err(failing(check));
    }
    let message = &failed.message;
    let words = check.says.iter().filter(|_| !foreign);
    let mut wanted = check.contains.iter().chain(words);
    if let Some(wanted) = wanted.find(|text| !message.contains(*text)) {
        return Err(format!("{} that says {wanted:?}", failing(check)));
    }
    if let Some(unwanted) = lacking(&check.lacks, message) {
        return Err(format!("{} that does not say {unwanted:?}", failing(check)));
    }
    Ok(())
}

fn failing(check: &ErrorCheck) -> String {
    match (&check.code, check.server_code) {
        (Some(code), Some(server)) => format!("failure with code {code} and server code {server}"),
        (Some(code), None) => format!("failure with code {code}"),
        (None, Some(server)) => format!("failure with server code {server}"),
        (None, None) => "failure".to_owned(),
    }
}

fn locations(wanted: &[Value], value: &Value, context: &Context<'_>) -> Result<(), String> {
    let list = || format!("locations {}", short(&Value::Array(wanted.to_vec())));
    let Some(found) = value["locations"].as_array() else {
        return Err(list());
    };
    if found.len() != wanted.len() {
        return Err(list());
    }
    for (wanted, found) in wanted.iter().zip(found) {
        if !same_location(wanted, found, context)? {
            return Err(list());
        }
    }
    Ok(())
}

fn same_location(wanted: &Value, found: &Value, context: &Context<'_>) -> Result<bool, String> {
    let Value::String(text) = wanted else {
        return Ok(wanted == found);
    };
    let (at, end) = place::location(text, context.markers)?;
    let uri = if at.file.starts_with("file:") {
        at.file
    } else {
        uri_of(&context.places.path(&at.file))
    };
    let range = &found["range"];
    Ok(found["uri"]
        .as_str()
        .is_some_and(|found| same_uri(found, &uri))
        && range["start"] == at.place.position()
        && end.is_none_or(|end| range["end"] == end.position()))
}

fn hover(wanted: &Value, value: &Value) -> Result<(), String> {
    let expected = || format!("hover {}", short(wanted));
    let Some(found) = value.get("hover") else {
        return Err(expected());
    };
    let same = match wanted {
        Value::Null => found.is_null(),
        Value::String(text) => found["contents"].as_str() == Some(text),
        Value::Object(wanted) => {
            let contents = wanted.get("contents");
            let range = wanted.get("range");
            contents.is_none_or(|contents| found.get("contents") == Some(contents))
                && range.is_none_or(|range| same_range(range, found.get("range")))
        }
        other => found == other,
    };
    if same { Ok(()) } else { Err(expected()) }
}

fn same_range(wanted: &Value, found: Option<&Value>) -> bool {
    let found = found.filter(|found| !found.is_null());
    let range = |(start, end): (Place, Place)| {
        found.is_some_and(|found| {
            found["start"] == start.position() && found["end"] == end.position()
        })
    };
    match wanted {
        Value::Null => found.is_none(),
        Value::String(text) => place::range(text).is_some_and(range),
        other => found == Some(other),
    }
}

/// What an expectation that names no failure demands, in a few words.
fn demanded(check: &Outcome) -> String {
    if let Some(locations) = &check.locations {
        format!("locations {}", short(&Value::Array(locations.clone())))
    } else if let Some(count) = check.count {
        format!("{count} locations")
    } else if let Some(hover) = &check.hover {
        format!("hover {}", short(hover))
    } else if let Some(text) = &check.text {
        format!("the text {text:?}")
    } else if let Some(text) = check.contains.first() {
        format!("success with a text that contains {text:?}")
    } else if let Some(value) = &check.value {
        format!("success with {}", short(value))
    } else {
        "success".to_owned()
    }
}

/// What came of a call, in the form in which the demands on it are written.
fn got_of(check: &Outcome, settled: Option<&Settled>, context: &Context<'_>) -> String {
    let Some(Ok(value)) = settled else {
        return describe(settled);
    };
    // These are written as JSON, or held against all of it.
    let whole = |check: &Outcome| {
        check.value.is_some()
            || !check.keys.is_empty()
            || check.resolved_workspace_uri.is_some()
            || check.same_as.is_some()
    };
    if whole(check) || check.any_of.iter().any(whole) {
        return short(value);
    }
    told(settled, context)
}

/// What came of a call, for people.
pub(crate) fn told(settled: Option<&Settled>, context: &Context<'_>) -> String {
    let Some(Ok(value)) = settled else {
        return describe(settled);
    };
    if let Some(failed) = settled.and_then(failure) {
        let code = failed.code.as_deref().unwrap_or("without a code");
        return cut(&format!("failure {code}: {}", failed.message));
    }
    let told = if let Some(found) = value["locations"].as_array() {
        let found = found.iter().map(|found| as_written(found, context));
        Some(format!("locations {}", Value::Array(found.collect())))
    } else if let Some(found) = value.get("hover") {
        Some(format!("hover {}", hover_as_written(found)))
    } else if let Some(text) = value.get("text").and_then(Value::as_str) {
        Some(format!("the text {text:?}"))
    } else {
        requests::in_short(value)
    };
    cut(&told.unwrap_or_else(|| listed(value)))
}

/// The members of an object, as they would be listed; anything else as it is.
fn listed(value: &Value) -> String {
    let Some(members) = value.as_object().filter(|members| !members.is_empty()) else {
        return value.to_string();
    };
    let members = members.iter().map(|(name, value)| match value {
        Value::String(text) if text.lines().count() < 2 => format!("{name} {text}"),
        value => format!("{name} {value}"),
    });
    members.collect::<Vec<_>>().join(", ")
}

/// `file:line:column-line:column` for a location that has no more to it.
fn as_written(found: &Value, context: &Context<'_>) -> Value {
    let written = || {
        let members = found.as_object()?;
        let uri = found["uri"].as_str()?;
        let range = range_as_written(&found["range"])?;
        let file = context.places.named(uri).unwrap_or_else(|| uri.to_owned());
        (members.len() == 2).then(|| format!("{file}:{range}"))
    };
    written().map_or_else(|| found.clone(), Value::from)
}

/// The contents alone where there is no range.
fn hover_as_written(found: &Value) -> Value {
    let Some(members) = found.as_object() else {
        return found.clone();
    };
    match (&found["contents"], range_as_written(&found["range"])) {
        (contents @ Value::String(_), None) if members.len() == 1 => contents.clone(),
        (_, Some(range)) => {
            let mut written = members.clone();
            written.insert("range".to_owned(), range.into());
            written.into()
        }
        _ => found.clone(),
    }
}

/// `line:column-line:column`, one-based.
fn range_as_written(range: &Value) -> Option<String> {
    let place = |end: &str| {
        let number = |name: &str| range[end][name].as_u64()?.checked_add(1);
        Some(format!("{}:{}", number("line")?, number("character")?))
    };
    Some(format!("{}-{}", place("start")?, place("end")?))
}

/// What came of a call, in one line.
pub(crate) fn describe(settled: Option<&Settled>) -> String {
    match settled {
        None => "no outcome yet".to_owned(),
        Some(Ok(value)) => short(value),
        Some(Err(CallError::Refused { code, message, .. })) => {
            let code = code.as_deref().unwrap_or("without a code");
            cut(&format!("failure {code}: {message}"))
        }
        Some(Err(other)) => cut(&other.to_string()),
    }
}

fn short(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// An outcome as bytes, for comparison.
fn bytes(settled: &Settled) -> String {
    match settled {
        Ok(value) => format!("+{value}"),
        Err(CallError::Refused {
            code,
            message,
            data,
        }) => format!("-{code:?}{message}{data}"),
        Err(other) => format!("!{other}"),
    }
}
