//! What an answer on the wire is worth: pure.

use serde_json::Value;

use super::client::Reply;
use super::dialogue::Answered;
use crate::judge::method;
use crate::outcome::{Valued, hover_answer, locations_answer};
use crate::readiness::Answer;
use crate::samples::{self, FoundLocation, Operation, Position};
use crate::shape;

/// Values what came of a question against the known answer; none if it was given up from outside.
/// `died` says how the process ended, where it did.
pub(super) fn valued(
    operation: Operation,
    reply: &Reply,
    known: Option<&samples::Answer>,
    relative: impl Fn(&str) -> Option<String>,
    died: Option<String>,
) -> Option<Valued> {
    let result = match reply {
        Reply::Answered(Answered::Result(result)) => result,
        Reply::Answered(Answered::Error(code, message)) => {
            let name = format!("error {code}");
            return Some((Answer::Other(name), Some(message.clone())));
        }
        Reply::Silent => return Some((Answer::Silent, None)),
        Reply::Gone => {
            let how = died.unwrap_or_else(|| "it is gone".to_owned());
            return Some((Answer::Died(how.clone()), Some(how)));
        }
        Reply::Cancelled => return None,
    };
    if let Err(misshapen) = shape::judge(method(operation), Some(result)) {
        let name = "malformed answer".to_owned();
        return Some((Answer::Other(name), Some(misshapen.to_string())));
    }
    Some(match known {
        None => (Answer::Right, None),
        Some(samples::Answer::Locations(expected)) => {
            let found = locations(result, relative);
            locations_answer(&expected.judge(&found), expected.all.len(), Some(result))
        }
        Some(samples::Answer::Hover(expected)) => {
            let contents = contents(&result["contents"]);
            hover_answer(
                &expected.judge(contents.as_deref()),
                contents.as_deref(),
                Some(result),
            )
        }
    })
}

/// The places of a navigation of legal shape.
fn locations(result: &Value, relative: impl Fn(&str) -> Option<String>) -> Vec<FoundLocation> {
    let entries = match result {
        Value::Array(entries) => entries.as_slice(),
        Value::Object(_) => std::slice::from_ref(result),
        _ => &[],
    };
    let place = |entry: &Value| {
        let (uri, range) = match entry["targetUri"].as_str() {
            Some(uri) => (uri, &entry["targetSelectionRange"]),
            None => (entry["uri"].as_str()?, &entry["range"]),
        };
        Some(FoundLocation {
            file: relative(uri).unwrap_or_else(|| uri.to_owned()),
            start: position(&range["start"]),
            end: position(&range["end"]),
        })
    };
    entries.iter().filter_map(place).collect()
}

fn position(value: &Value) -> Position {
    let count = |member: &str| {
        let number = &value[member];
        let whole = number.as_u64().or_else(|| {
            let number = number.as_f64()?;
            // Of legal shape: not negative, without a fraction.
            format!("{number:.0}").parse().ok()
        });
        whole
            .and_then(|whole| u32::try_from(whole).ok())
            .unwrap_or(u32::MAX)
    };
    Position {
        line: count("line"),
        character: count("character"),
    }
}

/// The text of a hover's contents.
fn contents(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => Some(members.get("value")?.as_str()?.to_owned()),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().filter_map(contents).collect();
            Some(parts.join("\n\n"))
        }
        _ => None,
    }
}

/// What came, in a few words, where no answer is right: `null`, `[]`, `2 places`, `a text`,
/// `error -32601`.
pub(super) fn named(reply: &Reply) -> (String, Option<String>) {
    match reply {
        Reply::Answered(Answered::Error(code, message)) => {
            let said = (!message.is_empty()).then(|| message.clone());
            (format!("error {code}"), said)
        }
        Reply::Answered(Answered::Result(result)) => (kind(result), None),
        Reply::Silent | Reply::Cancelled => ("no answer".to_owned(), None),
        Reply::Gone => ("the server died".to_owned(), None),
    }
}

fn kind(result: &Value) -> String {
    match result {
        Value::Null => "null".to_owned(),
        Value::Array(entries) => match entries.len() {
            0 => "[]".to_owned(),
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        },
        Value::Object(members) if members.contains_key("contents") => "a text".to_owned(),
        Value::Object(members)
            if members.contains_key("uri") || members.contains_key("targetUri") =>
        {
            "1 place".to_owned()
        }
        Value::Object(_) => "an object".to_owned(),
        Value::Bool(_) | Value::Number(_) => result.to_string(),
        Value::String(_) => "a string".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{ExpectedHover, ExpectedLocations, Matching, Place};
    use serde_json::json;

    fn range(line: u32, character: u32) -> Value {
        json!({
            "start": {"line": line, "character": character},
            "end": {"line": line, "character": character + 1},
        })
    }

    fn expected(line: u32) -> samples::Answer {
        let place = Place {
            file: "a.x".to_owned(),
            marker: "m".to_owned(),
            position: Position { line, character: 2 },
        };
        samples::Answer::Locations(ExpectedLocations {
            all: vec![place],
            may: Vec::new(),
            matching: Matching::Start,
        })
    }

    fn relative(uri: &str) -> Option<String> {
        uri.strip_prefix("file:///ws/").map(str::to_owned)
    }

    fn judge(operation: Operation, result: Value, known: &samples::Answer) -> Answer {
        let reply = Reply::Answered(Answered::Result(result));
        let valued = valued(operation, &reply, Some(known), relative, None);
        valued.unwrap().0
    }

    #[test]
    fn every_shape_of_a_place_is_read() {
        let uri = "file:///ws/a.x";
        let location = json!({"uri": uri, "range": range(3, 2)});
        let link = json!({
            "targetUri": uri, "targetRange": range(3, 0), "targetSelectionRange": range(3, 2),
        });
        let float = json!({"uri": uri, "range": {
            "start": {"line": 3.0, "character": 2.0}, "end": {"line": 3, "character": 3},
        }});
        for result in [json!([location]), location, json!([link]), float] {
            let answer = judge(Operation::GoToDefinition, result.clone(), &expected(3));
            assert_eq!(answer, Answer::Right, "{result}");
            let answer = judge(Operation::GoToDefinition, result.clone(), &expected(4));
            assert_eq!(answer, Answer::Other("wrong place".to_owned()), "{result}");
        }
        for (result, name) in [
            (json!([]), "[]"),
            (Value::Null, "null"),
            (json!([{"uri": uri}]), "malformed answer"),
        ] {
            let answer = judge(Operation::GoToDefinition, result, &expected(3));
            assert_eq!(answer, Answer::Other(name.to_owned()));
        }
    }

    #[test]
    fn every_shape_of_a_hover_is_read() {
        let known = samples::Answer::Hover(ExpectedHover {
            contains: vec!["area".to_owned()],
        });
        for contents in [
            json!("the area"),
            json!({"kind": "markdown", "value": "the area"}),
            json!(["the", {"language": "x", "value": "area"}]),
        ] {
            let result = json!({"contents": contents});
            assert_eq!(judge(Operation::Hover, result, &known), Answer::Right);
        }
        let other = judge(Operation::Hover, json!({"contents": "else"}), &known);
        assert_eq!(other, Answer::Other("other text".to_owned()));
    }

    #[test]
    fn what_is_no_answer_has_its_own_value() {
        let of = |reply: &Reply, died: Option<&str>| {
            let known = expected(1);
            valued(
                Operation::GoToDefinition,
                reply,
                Some(&known),
                relative,
                died.map(str::to_owned),
            )
        };
        assert_eq!(of(&Reply::Silent, None), Some((Answer::Silent, None)));
        let died = of(&Reply::Gone, Some("exit code 3")).unwrap();
        assert_eq!(died.0, Answer::Died("exit code 3".to_owned()));
        assert_eq!(of(&Reply::Cancelled, None), None);
        let error = Reply::Answered(Answered::Error(-32801, "later".to_owned()));
        let (answer, detail) = of(&error, None).unwrap();
        assert_eq!(answer, Answer::Other("error -32801".to_owned()));
        assert_eq!(detail.as_deref(), Some("later"));
    }

    #[test]
    fn answers_are_named() {
        let of = |result| named(&Reply::Answered(Answered::Result(result))).0;
        assert_eq!(of(Value::Null), "null");
        assert_eq!(of(json!([])), "[]");
        assert_eq!(of(json!([1, 2])), "2 places");
        assert_eq!(of(json!({"uri": "x"})), "1 place");
        assert_eq!(of(json!({"contents": "x"})), "a text");
        assert_eq!(named(&Reply::Gone).0, "the server died");
    }
}
