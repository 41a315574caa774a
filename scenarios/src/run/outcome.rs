//! Whether what came of a call is what a scenario demands.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fill::{Places, same_uri, uri_of};
use super::place::{self, Markers, Place};
use super::trace::contains;
use crate::format::{ErrorCheck, Outcome};
use crate::subject::CallError;

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
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) places: &'a Places,
    pub(crate) markers: &'a Markers,
    /// Whether the harness is somebody else's.
    pub(crate) foreign: bool,
    /// The outcomes so far, for `same_as`.
    pub(crate) settled: &'a BTreeMap<String, Settled>,
}

/// What was demanded, and what came in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl Mismatch {
    fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
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
    context: Context<'_>,
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
            describe(settled),
        ));
    }
    let Some(settled) = settled else {
        return if check.pending {
            Ok(())
        } else {
            Err(Mismatch::new("an outcome", describe(None)))
        };
    };
    let got = || describe(Some(settled));
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
fn result(check: &Outcome, settled: &Settled, context: Context<'_>) -> Result<(), Mismatch> {
    let null = Value::Null;
    let value = settled.as_ref().unwrap_or(&null);
    let missed = |expected: String| Mismatch::new(expected, describe(Some(settled)));
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
    text(check, text_of(settled).as_deref()).map_err(missed)
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

fn lacking<'a>(unwanted: &'a [String], text: &str) -> Option<&'a String> {
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
    if let Some(wanted) = check.contains.iter().find(|text| !message.contains(*text)) {
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

fn locations(wanted: &[Value], value: &Value, context: Context<'_>) -> Result<(), String> {
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

fn same_location(wanted: &Value, found: &Value, context: Context<'_>) -> Result<bool, String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settled(value: Value) -> Settled {
        Ok(value)
    }

    fn refused(code: &str, message: &str) -> Settled {
        Err(CallError::Refused {
            code: Some(code.to_owned()),
            message: message.to_owned(),
            data: json!({"code": code, "serverCode": 7}),
        })
    }

    fn judged(check: Value, outcome: Option<&Settled>, foreign: bool) -> Result<(), Mismatch> {
        let places = Places {
            root: "/r".into(),
            workspace: "/r/ws".into(),
            fake: "/fake".into(),
            seed: 7,
        };
        let (_, marks) = place::unmark("ab⟦m⟧");
        let markers = Markers::from([("a.ts".to_owned(), marks)]);
        let earlier = BTreeMap::from([("q0".to_owned(), settled(json!({"hover": null})))]);
        let context = Context {
            places: &places,
            markers: &markers,
            foreign,
            settled: &earlier,
        };
        judge(&serde_json::from_value(check).unwrap(), outcome, context)
    }

    fn location(line: u64, character: u64) -> Value {
        let start = json!({"line": line, "character": character});
        let end = json!({"line": line, "character": character + 1});
        json!({"uri": "file:///r/ws/a.ts", "range": {"start": start, "end": end}})
    }

    #[test]
    fn results_are_held_against_each_demand() {
        let one = settled(json!({
            "kind": "locations",
            "locations": [location(0, 2)],
            "resolvedWorkspaceUri": "file:///r/ws",
        }));
        let hover = settled(json!({"kind": "hover", "hover": {
            "contents": "Some text",
            "range": location(3, 4)["range"],
        }}));
        let none = settled(json!({"kind": "hover", "hover": null}));
        let prompt = settled(json!({"tools": [], "systemPrompt": "Use lsp"}));
        let tool = settled(json!({"text": "Two: 😀", "isError": false}));
        let bad = settled(json!({"text": "Wrong", "isError": true, "code": "X"}));
        let refused = refused("LSP_STALE", "the file changed");
        for (outcome, right, wrong) in [
            (
                &one,
                json!({"locations": ["a.ts:1:3"]}),
                json!({"locations": []}),
            ),
            (
                &one,
                json!({"locations": ["a.ts@m"]}),
                json!({"locations": ["a.ts:1:4"]}),
            ),
            (
                &one,
                json!({"locations": ["a.ts:1:3-1:4"]}),
                json!({"locations": ["a.ts:1:3-1:5"]}),
            ),
            (
                &one,
                json!({"locations": [location(0, 2)]}),
                json!({"locations": ["b.ts:1:3"]}),
            ),
            (&one, json!({"count": 1}), json!({"count": 2})),
            (&one, json!({"count": 1}), json!({"hover": null})),
            (
                &one,
                json!({"resolved_workspace_uri": "file:///r/ws"}),
                json!({"resolved_workspace_uri": "file:///r"}),
            ),
            (&one, json!({"ok": true}), json!({"ok": false})),
            (&one, json!({"ok": true}), json!({"pending": true})),
            (&one, json!({"ok": true}), json!({"error": {}})),
            (
                &one,
                json!({"value": {"kind": "locations"}}),
                json!({"value": {"kind": "hover"}}),
            ),
            (
                &hover,
                json!({"hover": "Some text"}),
                json!({"hover": "Some"}),
            ),
            (
                &hover,
                json!({"hover": {"range": "4:5-4:6"}}),
                json!({"hover": {"range": "4:5-4:7"}}),
            ),
            (
                &hover,
                json!({"contains": ["text"]}),
                json!({"contains": ["Text"]}),
            ),
            (
                &hover,
                json!({"lacks": ["other"]}),
                json!({"lacks": ["TEXT"]}),
            ),
            (
                &prompt,
                json!({"contains": ["lsp"]}),
                json!({"lacks": ["LSP"]}),
            ),
            (&hover, json!({"ok": true}), json!({"hover": null})),
            (
                &hover,
                json!({"ok": true}),
                json!({"hover": {"range": null}}),
            ),
            (&none, json!({"hover": null}), json!({"hover": ""})),
            (&none, json!({"hover": null}), json!({"locations": []})),
            (&tool, json!({"text": "Two: 😀"}), json!({"text": "Two"})),
            (&tool, json!({"at_most": 7}), json!({"at_most": 6})),
            (&tool, json!({"ok": true}), json!({"error": {"code": "X"}})),
            (
                &bad,
                json!({"error": {"code": "X"}}),
                json!({"error": {"code": "Y"}}),
            ),
            (
                &bad,
                json!({"error": {}, "contains": ["Wrong"]}),
                json!({"contains": ["Wrong"]}),
            ),
            (&bad, json!({"ok": false}), json!({"ok": true})),
            (
                &refused,
                json!({"error": {"code": "LSP_STALE", "serverCode": 7, "contains": ["changed"]}}),
                json!({"error": {"contains": ["gone"]}}),
            ),
            (
                &refused,
                json!({"error": {"lacks": ["gone"]}}),
                json!({"error": {"lacks": ["FILE"]}}),
            ),
            (
                &refused,
                json!({"error": {}}),
                json!({"error": {"serverCode": 8}}),
            ),
            (&refused, json!({"error": {}}), json!({"locations": []})),
            (
                &refused,
                json!({"any_of": [{"locations": []}, {"error": {}}]}),
                json!({"any_of": [{"locations": []}, {"hover": null}]}),
            ),
            (
                &settled(json!({"hover": null})),
                json!({"same_as": "q0"}),
                json!({"same_as": "q9"}),
            ),
            (&none, json!({"ok": true}), json!({"same_as": "q0"})),
        ] {
            assert_eq!(
                judged(right.clone(), Some(outcome), false),
                Ok(()),
                "{right}"
            );
            let mismatch = judged(wrong.clone(), Some(outcome), false);
            assert!(mismatch.is_err(), "{wrong} of {outcome:?}");
        }
    }

    #[test]
    fn what_is_not_settled_is_pending_only() {
        assert_eq!(judged(json!({"pending": true}), None, false), Ok(()));
        assert_eq!(
            judged(
                json!({"any_of": [{"pending": true}, {"ok": true}]}),
                None,
                false
            ),
            Ok(())
        );
        assert!(judged(json!({"ok": true}), None, false).is_err());
    }

    #[test]
    fn codes_of_the_project_bind_its_own_harness_only() {
        let stale = refused("ANOTHER", "no");
        for (code, own, foreign) in [
            ("LSP_STALE", false, true),
            ("LSP_DISPOSED", false, false),
            ("ANOTHER", true, true),
        ] {
            let check = json!({"error": {"code": code}});
            assert_eq!(
                judged(check.clone(), Some(&stale), false).is_ok(),
                own,
                "{code}"
            );
            assert_eq!(judged(check, Some(&stale), true).is_ok(), foreign, "{code}");
        }
        let check = json!({"error": {"code": "LSP_STALE"}});
        let success = settled(json!({"hover": null}));
        assert!(judged(check, Some(&success), true).is_err());
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let long = settled(Value::String("é".repeat(5_000)));
        let shown = describe(Some(&long));
        assert!(shown.len() < 2 * SHOWN + 40, "{}", shown.len());
        assert!(shown.ends_with("(10002 bytes)"), "{shown}");
    }
}
