//! How a call is shown to the person watching (TOOL-11).
//!
//! A pure function of the arguments, so that a live view and a replay show the same.

use dsh_tools::{Card, FileLocation};
use serde_json::Value;

use crate::args::Arguments;

/// The card for a call: a generic one of the kind `search`, whose place is the queried line. Its
/// place has no column, so the title carries it. `None` for arguments that will be refused.
pub fn present(arguments: &Value) -> Option<Card> {
    let Arguments {
        operation,
        file_path,
        position,
    } = Arguments::parse(arguments).ok()?;
    let line = position.line + 1;
    let character = position.character + 1;
    Some(Card::Generic {
        kind: "search".to_owned(),
        title: format!("{operation} {file_path}:{line}:{character}"),
        locations: vec![FileLocation {
            path: file_path,
            line: Some(line),
        }],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// TOOL-11: the card is a function of the arguments; the title holds all four of them.
    #[test]
    fn a_call_is_a_search_card() {
        let arguments = json!({
            "operation": "findReferences", "file_path": "src/a b.ts", "line": 3.0, "character": 7,
        });
        let card = json!({
            "card": "generic",
            "kind": "search",
            "title": "findReferences src/a b.ts:3:7",
            "locations": [{ "path": "src/a b.ts", "line": 3 }],
        });
        for _ in 0..2 {
            let shown = present(&arguments).expect("these arguments are good");
            assert_eq!(serde_json::to_value(shown).unwrap(), card);
        }
    }

    /// TOOL-2, TOOL-11: bad arguments have no card and do no harm.
    #[test]
    fn bad_arguments_have_no_card() {
        for arguments in [
            json!(null),
            json!({}),
            json!({"operation": "hover", "line": 0}),
        ] {
            assert_eq!(present(&arguments), None);
        }
    }
}
