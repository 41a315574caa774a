//! Places in files: `file:line:column` and `file@marker`, and the markers themselves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What opens a marker in the text of a file, and what closes it.
const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// A place, zero-based, in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) character: u64,
}

impl Place {
    /// As LSP writes a position.
    pub(crate) fn position(self) -> Value {
        json!({"line": self.line, "character": self.character})
    }
}

/// File → marker → place.
pub(crate) type Markers = BTreeMap<String, BTreeMap<String, Place>>;

/// Takes the markers out of a text. An opening that is never closed is text.
pub(crate) fn unmark(text: &str) -> (String, BTreeMap<String, Place>) {
    let mut plain = String::with_capacity(text.len());
    let mut markers = BTreeMap::new();
    let mut rest = text;
    let mut counted = 0;
    let mut place = Place {
        line: 0,
        character: 0,
    };
    while let Some(at) = rest.find(OPEN) {
        let (before, from) = rest.split_at(at);
        let inside = &from[OPEN.len_utf8()..];
        let Some(end) = inside.find(CLOSE) else { break };
        plain.push_str(before);
        advance(&mut place, &plain[counted..]);
        counted = plain.len();
        markers.insert(inside[..end].to_owned(), place);
        rest = &inside[end + CLOSE.len_utf8()..];
    }
    plain.push_str(rest);
    (plain, markers)
}

/// Moves a place over a text, whose lines end with LF, CRLF or CR.
fn advance(place: &mut Place, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '\n' || (char == '\r' && chars.peek() != Some(&'\n')) {
            place.line += 1;
            place.character = 0;
        } else {
            place.character += char.len_utf16() as u64;
        }
    }
}

/// A file and a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The file, as it was written.
    pub(crate) file: String,
    /// Where in it.
    pub(crate) place: Place,
}

/// Reads `file:line:column` (one-based) or `file@marker`.
pub(crate) fn read(text: &str, markers: &Markers) -> Result<At, String> {
    if let Some((file, place)) = numbered(text) {
        return Ok(At { file, place });
    }
    let Some((file, marker)) = text.rsplit_once('@') else {
        return Err(format!(
            "`{text}` is no place: write file:line:column, one-based, or file@marker"
        ));
    };
    let known = markers.get(file);
    if let Some(place) = known.and_then(|known| known.get(marker)) {
        return Ok(At {
            file: file.to_owned(),
            place: *place,
        });
    }
    let names: Vec<&str> = known
        .into_iter()
        .flat_map(|known| known.keys().map(String::as_str))
        .collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Err(format!(
        "`{text}`: there is no ⟦{marker}⟧ in {file} (its markers: {names})"
    ))
}

fn numbered(text: &str) -> Option<(String, Place)> {
    let mut parts = text.rsplitn(3, ':');
    let character = one_based(parts.next()?)?;
    let line = one_based(parts.next()?)?;
    Some((parts.next()?.to_owned(), Place { line, character }))
}

fn one_based(digits: &str) -> Option<u64> {
    digits.parse::<u64>().ok()?.checked_sub(1)
}

/// Reads `line:column-line:column`, one-based.
pub(crate) fn range(text: &str) -> Option<(Place, Place)> {
    let place = |text: &str| {
        let (line, character) = text.split_once(':')?;
        Some(Place {
            line: one_based(line)?,
            character: one_based(character)?,
        })
    };
    let (start, end) = text.split_once('-')?;
    Some((place(start)?, place(end)?))
}

/// Reads `file:line:column`, `file:line:column-line:column` or `file@marker`.
pub(crate) fn location(text: &str, markers: &Markers) -> Result<(At, Option<Place>), String> {
    if let Some((start, end)) = text.rsplit_once('-')
        && let Some((file, place)) = numbered(start)
        && let Some((_, end)) = numbered(&format!("x:{end}"))
    {
        return Ok((At { file, place }, Some(end)));
    }
    read(text, markers).map(|at| (at, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u64, character: u64) -> Place {
        Place { line, character }
    }

    #[test]
    fn markers_are_places_and_no_text() {
        let (text, markers) = unmark("a⟦one⟧b\r\n😀⟦two⟧\rx⟦three⟧ ⟦");
        assert_eq!(text, "ab\r\n😀\rx ⟦");
        let found: Vec<_> = markers.into_iter().collect();
        let expected = [
            ("one".to_owned(), place(0, 1)),
            ("three".to_owned(), place(2, 1)),
            ("two".to_owned(), place(1, 2)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn places_are_read() {
        let markers = Markers::from([(
            "a@b.ts".to_owned(),
            [("m".to_owned(), place(3, 4))].into_iter().collect(),
        )]);
        for (text, file, at) in [
            ("a.ts:1:7", "a.ts", place(0, 6)),
            ("C:\\a:2:1", "C:\\a", place(1, 0)),
            ("a@b.ts@m", "a@b.ts", place(3, 4)),
        ] {
            let read = read(text, &markers).unwrap();
            assert_eq!((read.file.as_str(), read.place), (file, at), "{text}");
        }
        for (text, why) in [
            ("a.ts", "is no place"),
            ("a.ts:0:1", "is no place"),
            ("a@b.ts@n", "(its markers: m)"),
            ("c.ts@m", "(its markers: none)"),
        ] {
            let error = read(text, &markers).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn locations_may_have_an_end() {
        let markers = Markers::new();
        let (at, end) = location("a-b.ts:1:7-2:3", &markers).unwrap();
        assert_eq!((at.file.as_str(), at.place), ("a-b.ts", place(0, 6)));
        assert_eq!(end, Some(place(1, 2)));
        let (at, end) = location("a-1:1:7", &markers).unwrap();
        assert_eq!((at.file.as_str(), end), ("a-1", None));
        assert_eq!(range("1:1-1:3"), Some((place(0, 0), place(0, 2))));
        assert_eq!(range("1:1"), None);
    }
}
