//! The shapes LSP gives to the answers of the four operations, judged on raw JSON.
//!
//! This is the instrument's own reading of NAV and HOV; it shares no code with the host, so that a
//! host that misreads an answer cannot hide a server that misshapes it, or the other way round.

use std::fmt;

use serde_json::Value;

/// What an answer was made of, for people: `2 LocationLink`, `null`, `MarkupContent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape(String);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an answer departs from every legal shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at} {problem}")]
pub(crate) struct Misshapen {
    /// The place inside the result, `result[2].range.start.line` for instance.
    pub(crate) at: String,
    /// What is wrong there.
    pub(crate) problem: String,
}

/// Judges the `result` member of an answer to `method`, absent if the answer has none.
pub(crate) fn judge(method: &str, result: Option<&Value>) -> Result<Shape, Misshapen> {
    let Some(result) = result else {
        return fault("result", "is missing");
    };
    if method == "textDocument/hover" {
        hover(result)
    } else {
        navigation(result)
    }
}

fn fault<T>(at: impl Into<String>, problem: impl Into<String>) -> Result<T, Misshapen> {
    Err(Misshapen {
        at: at.into(),
        problem: problem.into(),
    })
}

/// `Location`, `Location[]`, `LocationLink[]`, a mixture of the two, or null (NAV-1).
fn navigation(result: &Value) -> Result<Shape, Misshapen> {
    match result {
        Value::Null => Ok(Shape("null".to_owned())),
        Value::Object(_) => {
            location("result", result)?;
            Ok(Shape("a single Location".to_owned()))
        }
        Value::Array(entries) if entries.is_empty() => Ok(Shape("[]".to_owned())),
        Value::Array(entries) => {
            let (mut locations, mut links) = (0_usize, 0_usize);
            for (index, entry) in entries.iter().enumerate() {
                let at = format!("result[{index}]");
                if entry.get("targetUri").is_some() {
                    location_link(&at, entry)?;
                    links += 1;
                } else {
                    location(&at, entry)?;
                    locations += 1;
                }
            }
            Ok(Shape(match (locations, links) {
                (locations, 0) => format!("{locations} Location"),
                (0, links) => format!("{links} LocationLink"),
                (locations, links) => format!("{locations} Location, {links} LocationLink"),
            }))
        }
        other => fault(
            "result",
            format!("is {}, not null, an object or an array", kind(other)),
        ),
    }
}

fn location(at: &str, value: &Value) -> Result<(), Misshapen> {
    object(at, value)?;
    string(at, value, "uri")?;
    required_range(at, value, "range")
}

fn location_link(at: &str, value: &Value) -> Result<(), Misshapen> {
    object(at, value)?;
    string(at, value, "targetUri")?;
    required_range(at, value, "targetSelectionRange")?;
    // LSP demands `targetRange` too, but nothing behind the seam reads it and servers leave it
    // out; NAV-2 names the two members that count.
    for member in ["targetRange", "originSelectionRange"] {
        if let Some(value) = value.get(member).filter(|value| !value.is_null()) {
            range(&format!("{at}.{member}"), value)?;
        }
    }
    Ok(())
}

/// `MarkupContent`, `MarkedString`, `MarkedString[]`, with an optional range, or null (HOV-2).
fn hover(result: &Value) -> Result<Shape, Misshapen> {
    if result.is_null() {
        return Ok(Shape("null".to_owned()));
    }
    object("result", result)?;
    let Some(contents) = result.get("contents") else {
        return fault("result.contents", "is missing");
    };
    if let Some(value) = result.get("range").filter(|value| !value.is_null()) {
        range("result.range", value)?;
    }
    let shape = match contents {
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                marked_string(&format!("result.contents[{index}]"), part)?;
            }
            format!("{} MarkedString", parts.len())
        }
        Value::Object(members) if members.contains_key("kind") => {
            let kind = string("result.contents", contents, "kind")?;
            if !matches!(kind, "markdown" | "plaintext") {
                let problem = format!("is {kind:?}, neither \"markdown\" nor \"plaintext\"");
                return fault("result.contents.kind", problem);
            }
            string("result.contents", contents, "value")?;
            format!("MarkupContent ({kind})")
        }
        other => {
            marked_string("result.contents", other)?;
            "a single MarkedString".to_owned()
        }
    };
    Ok(Shape(shape))
}

fn marked_string(at: &str, value: &Value) -> Result<(), Misshapen> {
    if value.is_string() {
        return Ok(());
    }
    object(at, value)?;
    string(at, value, "language")?;
    string(at, value, "value")?;
    Ok(())
}

fn required_range(at: &str, value: &Value, member: &str) -> Result<(), Misshapen> {
    let at = format!("{at}.{member}");
    value
        .get(member)
        .map_or_else(|| fault(&at, "is missing"), |value| range(&at, value))
}

fn range(at: &str, value: &Value) -> Result<(), Misshapen> {
    object(at, value)?;
    for end in ["start", "end"] {
        let at = format!("{at}.{end}");
        let Some(position) = value.get(end) else {
            return fault(at, "is missing");
        };
        object(&at, position)?;
        for member in ["line", "character"] {
            let at = format!("{at}.{member}");
            match position.get(member) {
                None => return fault(at, "is missing"),
                Some(number) if is_count(number) => {}
                Some(other) => {
                    return fault(at, format!("is {other}, not a non-negative integer"));
                }
            }
        }
    }
    Ok(())
}

/// A non-negative integer, `3.0` included: JSON knows one kind of number (NAV-5).
fn is_count(value: &Value) -> bool {
    value.as_u64().is_some()
        || value
            .as_f64()
            .is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn object(at: &str, value: &Value) -> Result<(), Misshapen> {
    if value.is_object() {
        Ok(())
    } else {
        fault(at, format!("is {}, not an object", kind(value)))
    }
}

fn string<'a>(at: &str, value: &'a Value, member: &str) -> Result<&'a str, Misshapen> {
    let at = format!("{at}.{member}");
    match value.get(member) {
        None => fault(at, "is missing"),
        Some(Value::String(text)) => Ok(text),
        Some(other) => fault(at, format!("is {}, not a string", kind(other))),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DEFINITION: &str = "textDocument/definition";
    const HOVER: &str = "textDocument/hover";

    fn at(line: u32) -> Value {
        let position = json!({"line": line, "character": 0});
        json!({"start": position, "end": position})
    }

    #[track_caller]
    fn legal(method: &str, result: &Value, shape: &str) {
        assert_eq!(
            judge(method, Some(result)).map(|shape| shape.to_string()),
            Ok(shape.to_owned())
        );
    }

    #[track_caller]
    fn illegal(method: &str, result: impl Into<Option<Value>>, said: &str) {
        assert_eq!(
            judge(method, result.into().as_ref())
                .unwrap_err()
                .to_string(),
            said
        );
    }

    #[test]
    fn every_legal_shape_of_a_navigation_is_named() {
        let location = json!({"uri": "file:///a", "range": at(1)});
        let link =
            json!({"targetUri": "file:///a", "targetSelectionRange": at(1), "targetRange": at(1)});
        legal(DEFINITION, &Value::Null, "null");
        legal(DEFINITION, &json!([]), "[]");
        legal(DEFINITION, &location, "a single Location");
        legal(DEFINITION, &json!([location, location]), "2 Location");
        legal(DEFINITION, &json!([link]), "1 LocationLink");
        legal(
            DEFINITION,
            &json!([link, location]),
            "1 Location, 1 LocationLink",
        );
        let float = json!({"uri": "a", "range": {"start": {"line": 3.0, "character": 0}, "end": {"line": 3, "character": 1}}});
        legal(DEFINITION, &float, "a single Location");
    }

    #[test]
    fn what_is_illegal_in_a_navigation_is_named_with_its_place() {
        illegal(DEFINITION, None, "result is missing");
        illegal(
            DEFINITION,
            Some(json!(7)),
            "result is a number, not null, an object or an array",
        );
        illegal(
            DEFINITION,
            Some(json!([null])),
            "result[0] is null, not an object",
        );
        illegal(
            DEFINITION,
            Some(json!([{"range": at(1)}])),
            "result[0].uri is missing",
        );
        illegal(
            DEFINITION,
            Some(json!([{"uri": "a"}])),
            "result[0].range is missing",
        );
        illegal(
            DEFINITION,
            Some(json!([{"targetUri": "a", "targetRange": at(1)}])),
            "result[0].targetSelectionRange is missing",
        );
        let negative =
            json!({"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}});
        illegal(
            DEFINITION,
            Some(json!([{"uri": "a", "range": negative}])),
            "result[0].range.start.line is -1, not a non-negative integer",
        );
        let broken =
            json!({"start": {"line": 1, "character": 1.5}, "end": {"line": 0, "character": 0}});
        illegal(
            DEFINITION,
            Some(json!({"uri": "a", "range": broken})),
            "result.range.start.character is 1.5, not a non-negative integer",
        );
    }

    #[test]
    fn every_legal_shape_of_a_hover_is_named() {
        legal(HOVER, &Value::Null, "null");
        legal(HOVER, &json!({"contents": "text"}), "a single MarkedString");
        legal(
            HOVER,
            &json!({"contents": {"language": "ts", "value": "x"}}),
            "a single MarkedString",
        );
        legal(
            HOVER,
            &json!({"contents": ["a", {"language": "ts", "value": "x"}]}),
            "2 MarkedString",
        );
        legal(
            HOVER,
            &json!({"contents": {"kind": "markdown", "value": ""}, "range": null}),
            "MarkupContent (markdown)",
        );
    }

    #[test]
    fn what_is_illegal_in_a_hover_is_named_with_its_place() {
        illegal(HOVER, Some(json!([])), "result is an array, not an object");
        illegal(HOVER, Some(json!({})), "result.contents is missing");
        illegal(
            HOVER,
            Some(json!({"contents": null})),
            "result.contents is null, not an object",
        );
        illegal(
            HOVER,
            Some(json!({"contents": {"kind": "html", "value": ""}})),
            "result.contents.kind is \"html\", neither \"markdown\" nor \"plaintext\"",
        );
        illegal(
            HOVER,
            Some(json!({"contents": ["a", {"value": "x"}]})),
            "result.contents[1].language is missing",
        );
        illegal(
            HOVER,
            Some(json!({"contents": "a", "range": {"start": {"line": 0, "character": 0}}})),
            "result.range.end is missing",
        );
    }
}
