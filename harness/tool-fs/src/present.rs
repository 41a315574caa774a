//! How calls and results are shown to the person watching. Pure, so that a live view and a replay
//! show the same.

use dsh_tools::{Card, FileLocation, ToolResult};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{file_path, integer};
use crate::render::{EditValue, ReadValue, WriteValue};

fn card(kind: &str, title: String, path: String, line: Option<u64>) -> Card {
    Card::Generic {
        kind: kind.to_owned(),
        title,
        locations: vec![FileLocation { path, line }],
    }
}

fn value<T: DeserializeOwned>(result: &ToolResult) -> Option<T> {
    T::deserialize(result.value.as_ref()?).ok()
}

pub(crate) fn read_call(arguments: &Value) -> Option<Card> {
    let path = file_path(arguments)?;
    let offset = arguments.get("offset").and_then(integer);
    let title = match offset {
        Some(offset) if offset > 1 => format!("Read {path} from line {offset}"),
        _ => format!("Read {path}"),
    };
    Some(card("read", title, path.to_owned(), offset))
}

pub(crate) fn read_result(result: &ToolResult) -> Option<Card> {
    let ReadValue {
        path,
        lines,
        total_lines,
        ..
    } = value(result)?;
    let shown = lines.first().zip(lines.last());
    let (title, line) = match shown {
        None => (format!("Read {path}: empty"), None),
        Some((first, last)) => (
            format!(
                "Read {path}: lines {}-{} of {total_lines}",
                first.number, last.number
            ),
            Some(first.number),
        ),
    };
    Some(card("read", title, path, line))
}

pub(crate) fn write_call(arguments: &Value) -> Option<Card> {
    let path = file_path(arguments)?;
    Some(card("edit", format!("Write {path}"), path.to_owned(), None))
}

pub(crate) fn write_result(result: &ToolResult) -> Option<Card> {
    let WriteValue { path, created, .. } = value(result)?;
    let done = if created { "Created" } else { "Replaced" };
    Some(card("edit", format!("{done} {path}"), path, None))
}

pub(crate) fn edit_call(arguments: &Value) -> Option<Card> {
    let path = file_path(arguments)?;
    Some(card("edit", format!("Edit {path}"), path.to_owned(), None))
}

pub(crate) fn edit_result(result: &ToolResult) -> Option<Card> {
    let EditValue {
        path,
        replacements,
        lines,
    } = value(result)?;
    let places = if replacements == 1 { "place" } else { "places" };
    let title = format!("Edited {path}: {replacements} {places}");
    Some(Card::Generic {
        kind: "edit".to_owned(),
        title,
        locations: lines
            .into_iter()
            .map(|line| FileLocation {
                path: path.clone(),
                line: Some(line),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(value: &Value) -> ToolResult {
        serde_json::from_value(json!({
            "callId": "1", "name": "x", "isError": false, "value": value, "content": [],
        }))
        .expect("a result")
    }

    #[track_caller]
    fn check(card: Option<Card>, kind: &str, title: &str, lines: &[Option<u64>]) {
        let Some(Card::Generic {
            kind: found,
            title: shown,
            locations,
        }) = card
        else {
            panic!("a card")
        };
        assert_eq!((found.as_str(), shown.as_str()), (kind, title));
        let found: Vec<_> = locations.iter().map(|place| place.line).collect();
        assert_eq!(found, lines);
    }

    /// RUN-4
    #[test]
    fn calls_and_results_have_cards() {
        check(
            read_call(&json!({"file_path": "a"})),
            "read",
            "Read a",
            &[None],
        );
        check(
            read_call(&json!({"file_path": "a", "offset": 7})),
            "read",
            "Read a from line 7",
            &[Some(7)],
        );
        let value = json!({
            "path": "/w/a", "offset": 2, "totalLines": 9,
            "lines": [{"number": 2, "text": "x"}, {"number": 3, "text": "y"}],
        });
        check(
            read_result(&result(&value)),
            "read",
            "Read /w/a: lines 2-3 of 9",
            &[Some(2)],
        );
        let empty = json!({"path": "/w/a", "offset": 1, "totalLines": 0, "lines": []});
        check(
            read_result(&result(&empty)),
            "read",
            "Read /w/a: empty",
            &[None],
        );
        check(
            write_call(&json!({"file_path": "a"})),
            "edit",
            "Write a",
            &[None],
        );
        let written = json!({"path": "/w/a", "bytes": 3, "created": true});
        check(
            write_result(&result(&written)),
            "edit",
            "Created /w/a",
            &[None],
        );
        check(
            edit_call(&json!({"file_path": "a"})),
            "edit",
            "Edit a",
            &[None],
        );
        let edited = json!({"path": "/w/a", "replacements": 2, "lines": [1, 4]});
        check(
            edit_result(&result(&edited)),
            "edit",
            "Edited /w/a: 2 places",
            &[Some(1), Some(4)],
        );
    }

    /// RUN-4: arguments that will be refused, and values of another shape, have no card.
    #[test]
    fn what_does_not_fit_has_no_card() {
        for bad in [json!(null), json!([]), json!({"file_path": 7})] {
            assert_eq!(read_call(&bad), None);
            assert_eq!(write_call(&bad), None);
            assert_eq!(edit_call(&bad), None);
            assert_eq!(read_result(&result(&bad)), None);
            assert_eq!(write_result(&result(&bad)), None);
            assert_eq!(edit_result(&result(&bad)), None);
        }
    }
}
