//! Whether an answer is the known one.

use super::data::{ExpectedHover, ExpectedLocations, Matching, Place};
use super::markers::Position;

/// A place a server answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLocation {
    /// The file relative to the workspace with `/`, or the URI of one that is outside.
    pub file: String,
    /// Where the range starts.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// What an answer is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The known answer.
    Right,
    /// `[]`, null or blank text.
    Empty,
    /// Nothing wrong, but not all of it.
    Partial {
        /// What is missing: places as `file:line:column`, or text.
        missing: Vec<String>,
    },
    /// Something that is not part of the known answer.
    Wrong {
        /// What is missing: places as `file:line:column`, or text.
        missing: Vec<String>,
        /// What should not be there: places as `file:line:column`.
        unexpected: Vec<String>,
    },
}

impl Judgement {
    /// Whether the answer is the known one.
    pub const fn is_right(&self) -> bool {
        matches!(self, Self::Right)
    }
}

impl ExpectedLocations {
    /// Judges the places of an answer; their order does not count, and one that is listed twice
    /// counts once.
    pub fn judge(&self, found: &[FoundLocation]) -> Judgement {
        if found.is_empty() {
            return Judgement::Empty;
        }
        let met = |place: &&Place| found.iter().any(|at| self.matching.met(at, place));
        let missing: Vec<_> = self
            .all
            .iter()
            .filter(|place| !met(place))
            .map(ToString::to_string)
            .collect();
        let known = || self.all.iter().chain(&self.may);
        let unexpected: Vec<_> = found
            .iter()
            .filter(|at| !known().any(|place| self.matching.met(at, place)))
            .map(|at| format!("{}:{}", at.file, at.start))
            .collect();
        match (missing.is_empty(), unexpected.is_empty()) {
            (true, true) => Judgement::Right,
            (false, true) => Judgement::Partial { missing },
            (_, false) => Judgement::Wrong {
                missing,
                unexpected,
            },
        }
    }
}

impl Matching {
    fn met(self, found: &FoundLocation, place: &Place) -> bool {
        found.file == place.file
            && match self {
                Self::Start => found.start == place.position,
                Self::Covers => found.start <= place.position && place.position < found.end,
            }
    }
}

impl ExpectedHover {
    /// Judges the text of a hover; `None` is a null answer.
    pub fn judge(&self, contents: Option<&str>) -> Judgement {
        let contents = contents.unwrap_or_default();
        if contents.trim().is_empty() {
            return Judgement::Empty;
        }
        let missing: Vec<_> = self
            .contains
            .iter()
            .filter(|text| !contents.contains(*text))
            .cloned()
            .collect();
        if missing.is_empty() {
            Judgement::Right
        } else if missing.len() < self.contains.len() {
            Judgement::Partial { missing }
        } else {
            Judgement::Wrong {
                missing,
                unexpected: Vec::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    fn place(file: &str, line: u32, character: u32) -> Place {
        let marker = "m".to_owned();
        Place {
            file: file.to_owned(),
            marker,
            position: at(line, character),
        }
    }

    fn found(file: &str, start: (u32, u32), end: (u32, u32)) -> FoundLocation {
        FoundLocation {
            file: file.to_owned(),
            start: at(start.0, start.1),
            end: at(end.0, end.1),
        }
    }

    fn expected(matching: Matching) -> ExpectedLocations {
        ExpectedLocations {
            all: vec![place("a", 1, 4), place("b", 2, 0)],
            may: vec![place("c", 0, 0)],
            matching,
        }
    }

    #[test]
    fn every_place_and_nothing_else_is_right() {
        let both = [found("b", (2, 0), (2, 3)), found("a", (1, 4), (1, 7))];
        assert_eq!(expected(Matching::Start).judge(&both), Judgement::Right);
        let twice = [both[0].clone(), both[1].clone(), both[1].clone()];
        assert_eq!(expected(Matching::Start).judge(&twice), Judgement::Right);
        let optional = [both[0].clone(), both[1].clone(), found("c", (0, 0), (0, 1))];
        assert_eq!(expected(Matching::Start).judge(&optional), Judgement::Right);
    }

    #[test]
    fn nothing_is_empty_and_a_part_is_partial() {
        assert_eq!(expected(Matching::Start).judge(&[]), Judgement::Empty);
        assert_eq!(
            expected(Matching::Start).judge(&[found("a", (1, 4), (1, 7))]),
            Judgement::Partial {
                missing: vec!["b:3:1".to_owned()]
            }
        );
    }

    #[test]
    fn a_place_that_is_not_known_is_wrong() {
        let judged = expected(Matching::Start).judge(&[
            found("a", (1, 4), (1, 7)),
            found("b", (2, 0), (2, 3)),
            found("a", (1, 5), (1, 7)),
        ]);
        let unexpected = vec!["a:2:6".to_owned()];
        assert_eq!(
            judged,
            Judgement::Wrong {
                missing: vec![],
                unexpected
            }
        );
    }

    #[test]
    fn a_whole_declaration_covers_its_name_and_ends_behind_it() {
        let whole = [found("a", (1, 0), (3, 1)), found("b", (1, 9), (2, 1))];
        assert!(expected(Matching::Covers).judge(&whole).is_right());
        assert!(!expected(Matching::Start).judge(&whole).is_right());
        let short = [found("a", (1, 0), (1, 4)), found("b", (2, 0), (2, 1))];
        assert!(!expected(Matching::Covers).judge(&short).is_right());
    }

    #[test]
    fn a_hover_needs_all_its_parts() {
        let hover = ExpectedHover {
            contains: vec!["fn area".to_owned(), "square units".to_owned()],
        };
        assert_eq!(hover.judge(None), Judgement::Empty);
        assert_eq!(hover.judge(Some(" \n")), Judgement::Empty);
        assert_eq!(
            hover.judge(Some("`fn area()` in square units")),
            Judgement::Right
        );
        let missing = vec!["square units".to_owned()];
        assert_eq!(
            hover.judge(Some("fn area()")),
            Judgement::Partial { missing }
        );
        assert!(matches!(hover.judge(Some("any")), Judgement::Wrong { .. }));
    }
}
