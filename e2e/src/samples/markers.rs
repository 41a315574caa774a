//! Annotated sources: `⟦name⟧` marks the position right behind it and is no part of the text.

use std::collections::BTreeMap;
use std::fmt;

/// A position in a text, as LSP counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Zero-based line.
    pub line: u32,
    /// Zero-based offset in the line, in UTF-16 code units.
    pub character: u32,
}

impl fmt::Display for Position {
    /// One-based, as people and the tool count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}",
            u64::from(self.line) + 1,
            u64::from(self.character) + 1
        )
    }
}

/// A source without its markers, and where they stood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Annotated {
    /// The text without markers.
    pub text: String,
    /// Marker name → position in `text`.
    pub markers: BTreeMap<String, Position>,
}

/// Why an annotated source cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MarkerError {
    #[error("\"⟦\" without \"⟧\" behind it on the same line")]
    Unclosed(Position),
    #[error("\"⟧\" without \"⟦\" before it")]
    Unopened(Position),
    #[error("\"{0}\" is no marker name: use lowercase letters, digits and \"-\"")]
    Name(String, Position),
    #[error("the marker \"{0}\" is there twice")]
    Twice(String, Position),
}

impl MarkerError {
    /// Where in the stripped text it was found.
    pub(crate) fn position(&self) -> Position {
        match self {
            Self::Unclosed(at) | Self::Unopened(at) | Self::Name(_, at) | Self::Twice(_, at) => *at,
        }
    }
}

const OPEN: char = '⟦';
const CLOSE: char = '⟧';

impl Annotated {
    /// Takes the markers out of `source`.
    pub(crate) fn parse(source: &str) -> Result<Self, MarkerError> {
        let mut annotated = Self {
            text: String::with_capacity(source.len()),
            ..Self::default()
        };
        let mut at = Position {
            line: 0,
            character: 0,
        };
        let mut rest = source;
        while let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
            match next {
                OPEN => {
                    let name = rest
                        .split(['\n', '\r', OPEN])
                        .next()
                        .and_then(|line| line.split_once(CLOSE))
                        .map(|(name, _)| name)
                        .ok_or(MarkerError::Unclosed(at))?;
                    rest = &rest[name.len() + CLOSE.len_utf8()..];
                    annotated.mark(name, at)?;
                }
                CLOSE => return Err(MarkerError::Unopened(at)),
                _ => {
                    annotated.text.push(next);
                    at = step(at, next, rest);
                }
            }
        }
        Ok(annotated)
    }

    fn mark(&mut self, name: &str, at: Position) -> Result<(), MarkerError> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(MarkerError::Name(name.to_owned(), at));
        }
        if self.markers.insert(name.to_owned(), at).is_some() {
            return Err(MarkerError::Twice(name.to_owned(), at));
        }
        Ok(())
    }
}

/// The position behind `passed`; the CR of a CRLF does not end the line by itself.
fn step(at: Position, passed: char, rest: &str) -> Position {
    match passed {
        '\n' => Position {
            line: at.line + 1,
            character: 0,
        },
        '\r' if !rest.starts_with('\n') => Position {
            line: at.line + 1,
            character: 0,
        },
        _ => {
            let units = if passed.len_utf16() == 1 { 1 } else { 2 };
            Position {
                character: at.character + units,
                ..at
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn positions(source: &str) -> (String, Vec<(String, u32, u32)>) {
        let annotated = Annotated::parse(source).unwrap();
        let markers = annotated.markers.into_iter();
        (
            annotated.text,
            markers
                .map(|(name, at)| (name, at.line, at.character))
                .collect(),
        )
    }

    fn marker(name: &str, line: u32, character: u32) -> (String, u32, u32) {
        (name.to_owned(), line, character)
    }

    #[test]
    fn markers_leave_the_text_and_point_behind_themselves() {
        let (text, markers) = positions("let ⟦a⟧x = 1;\nuse(⟦b⟧⟦c⟧x);\n");
        assert_eq!(text, "let x = 1;\nuse(x);\n");
        assert_eq!(
            markers,
            [marker("a", 0, 4), marker("b", 1, 4), marker("c", 1, 4)]
        );
    }

    #[test]
    fn columns_count_utf16_units() {
        let (_, markers) = positions("é😀⟦a⟧x");
        assert_eq!(markers, [marker("a", 0, 3)]);
    }

    #[test]
    fn every_line_end_of_lsp_counts_as_one() {
        let (_, markers) = positions("1\r\n2\r3\n⟦a⟧4");
        assert_eq!(markers, [marker("a", 3, 0)]);
    }

    #[test]
    fn malformed_markers_are_errors_with_their_place() {
        let error = |source| Annotated::parse(source).unwrap_err();
        let at = |line, character| Position { line, character };
        assert_eq!(error("a⟦b\n⟧"), MarkerError::Unclosed(at(0, 1)));
        assert_eq!(error("⟦a⟦b⟧"), MarkerError::Unclosed(at(0, 0)));
        assert_eq!(error("\na⟧"), MarkerError::Unopened(at(1, 1)));
        assert_eq!(error("⟦⟧"), MarkerError::Name(String::new(), at(0, 0)));
        assert_eq!(
            error("⟦A b⟧"),
            MarkerError::Name("A b".to_owned(), at(0, 0))
        );
        assert_eq!(
            error("⟦a⟧x⟦a⟧"),
            MarkerError::Twice("a".to_owned(), at(0, 1))
        );
    }
}
