//! What the seam's outcome of one question is worth: pure.

use dsh_harness::kernel::CancelReason;
use dsh_harness::lsp::{LspError, QueryResult};
use serde_json::Value;

use crate::evidence::quote;
use crate::readiness::Answer;
use crate::samples::{self, FoundLocation, Judgement, Position};

/// An answer, and more about it: the place it named, the error's text.
pub(crate) type Valued = (Answer, Option<String>);

/// Values an outcome against the known answer. `relative` turns a URI into a path inside the
/// workspace; `raw` is the result as it was on the wire, since the seam tells null and `[]` no
/// more apart. None if the query was given up from outside.
pub(crate) fn against_known(
    outcome: &Result<QueryResult, LspError>,
    known: &samples::Answer,
    relative: impl Fn(&str) -> Option<String>,
    raw: Option<&Value>,
) -> Option<Valued> {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return failure(error),
    };
    Some(match (known, result) {
        (samples::Answer::Locations(expected), QueryResult::Locations { locations, .. }) => {
            let found: Vec<FoundLocation> = locations
                .iter()
                .map(|location| FoundLocation {
                    file: relative(&location.uri).unwrap_or_else(|| location.uri.clone()),
                    start: position(location.range.start),
                    end: position(location.range.end),
                })
                .collect();
            locations_answer(&expected.judge(&found), expected.all.len(), raw)
        }
        (samples::Answer::Hover(expected), QueryResult::Hover { hover }) => {
            let contents = hover.as_ref().map(|hover| hover.contents.as_str());
            hover_answer(&expected.judge(contents), contents, raw)
        }
        _ => {
            let said = "the host gave an answer of the other kind".to_owned();
            (Answer::Refused(said), None)
        }
    })
}

pub(crate) fn locations_answer(
    judgement: &Judgement,
    expected: usize,
    raw: Option<&Value>,
) -> Valued {
    match judgement {
        Judgement::Right => (Answer::Right, None),
        Judgement::Empty => (Answer::Other(empty(raw)), None),
        Judgement::Partial { missing } => {
            let name = format!(
                "partial {}/{expected}",
                expected - missing.len().min(expected)
            );
            (
                Answer::Other(name),
                Some(format!("missing {}", some_of(missing))),
            )
        }
        Judgement::Wrong { unexpected, .. } => (
            Answer::Other("wrong place".to_owned()),
            Some(some_of(unexpected)),
        ),
    }
}

pub(crate) fn hover_answer(
    judgement: &Judgement,
    contents: Option<&str>,
    raw: Option<&Value>,
) -> Valued {
    match judgement {
        Judgement::Right => (Answer::Right, None),
        Judgement::Empty => (Answer::Other(empty(raw)), None),
        Judgement::Partial { missing } => {
            let quoted: Vec<String> = missing.iter().map(|text| quote(text)).collect();
            (
                Answer::Other("partial text".to_owned()),
                Some(format!("missing {}", some_of(&quoted))),
            )
        }
        Judgement::Wrong { .. } => (Answer::Other("other text".to_owned()), contents.map(quote)),
    }
}

/// Values an outcome where no answer is known: the same answer again is right, another one is not.
pub(crate) fn against_last(
    outcome: &Result<QueryResult, LspError>,
    last: Option<&QueryResult>,
) -> Option<Valued> {
    match outcome {
        Ok(result) if last.is_none_or(|last| last == result) => Some((Answer::Right, None)),
        Ok(_) => Some((Answer::Other("another answer".to_owned()), None)),
        Err(error) => failure(error),
    }
}

/// How an empty answer looked on the wire.
fn empty(raw: Option<&Value>) -> String {
    match raw {
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Array(_)) => "[]".to_owned(),
        Some(Value::Object(_)) => "empty text".to_owned(),
        _ => "empty".to_owned(),
    }
}

fn failure(error: &LspError) -> Option<Valued> {
    Some(match error {
        LspError::ServerError {
            server_code,
            message,
        }
        | LspError::Stale {
            server_code,
            message,
        } => (
            Answer::Other(format!("error {server_code}")),
            Some(message.clone()),
        ),
        LspError::MalformedResponse(said) => (
            Answer::Other("malformed answer".to_owned()),
            Some(said.clone()),
        ),
        LspError::ServerExited(said) => (Answer::Died(said.clone()), Some(said.clone())),
        LspError::ProtocolError(said) => (Answer::Unread(said.clone()), Some(said.clone())),
        LspError::Cancelled(CancelReason::Timeout(_)) => (Answer::Silent, None),
        LspError::Cancelled(_) | LspError::Disposed(_) => return None,
        other => (Answer::Refused(other.to_string()), Some(other.to_string())),
    })
}

fn position(position: dsh_harness::lsp::Position) -> Position {
    Position {
        line: u32::try_from(position.line).unwrap_or(u32::MAX),
        character: u32::try_from(position.character).unwrap_or(u32::MAX),
    }
}

/// The first few of a list, and how many more there are.
fn some_of(all: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{ExpectedHover, ExpectedLocations, Matching, Place};
    use dsh_harness::lsp::{Hover, Location, Range};
    use serde_json::json;

    fn known() -> samples::Answer {
        let place = |line| Place {
            file: "a".to_owned(),
            marker: "m".to_owned(),
            position: Position { line, character: 2 },
        };
        samples::Answer::Locations(ExpectedLocations {
            all: vec![place(1), place(2)],
            may: vec![],
            matching: Matching::Start,
        })
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "it stands for what the seam gives"
    )]
    fn locations(lines: &[u64]) -> Outcome {
        let at = |line| dsh_harness::lsp::Position { line, character: 2 };
        Ok(QueryResult::Locations {
            locations: lines
                .iter()
                .map(|line| Location {
                    uri: "file:///w/a".to_owned(),
                    range: Range {
                        start: at(*line),
                        end: at(*line),
                    },
                })
                .collect(),
            resolved_workspace_uri: "file:///w".to_owned(),
        })
    }

    type Outcome = Result<QueryResult, LspError>;

    fn relative(uri: &str) -> Option<String> {
        uri.strip_prefix("file:///w/").map(str::to_owned)
    }

    #[track_caller]
    fn valued(outcome: &Result<QueryResult, LspError>, raw: Option<&Value>) -> String {
        match against_known(outcome, &known(), relative, raw) {
            None => "given up".to_owned(),
            Some((Answer::Right, _)) => "right".to_owned(),
            Some((Answer::Other(name), detail)) => {
                detail.map_or(name.clone(), |detail| format!("{name}: {detail}"))
            }
            Some((other, _)) => format!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_answer_has_its_name() {
        assert_eq!(valued(&locations(&[2, 1]), None), "right");
        assert_eq!(valued(&locations(&[]), Some(&json!([]))), "[]");
        assert_eq!(valued(&locations(&[]), Some(&Value::Null)), "null");
        assert_eq!(valued(&locations(&[1]), None), "partial 1/2: missing a:3:3");
        assert_eq!(valued(&locations(&[1, 7]), None), "wrong place: a:8:3");
    }

    #[test]
    fn errors_silence_death_and_giving_up_are_told_apart() {
        let stale = LspError::Stale {
            server_code: -32801,
            message: "content modified".to_owned(),
        };
        assert_eq!(valued(&Err(stale), None), "error -32801: content modified");
        let budget = std::time::Duration::from_secs(1);
        let silent = LspError::Cancelled(CancelReason::Timeout(budget));
        assert_eq!(valued(&Err(silent), None), "Silent");
        assert_eq!(
            valued(&Err(LspError::Cancelled(CancelReason::Caller)), None),
            "given up"
        );
        let died = LspError::ServerExited("exit code 1".to_owned());
        assert_eq!(valued(&Err(died), None), "Died(\"exit code 1\")");
        let refused = LspError::UnsupportedOperation("not advertised".to_owned());
        assert_eq!(valued(&Err(refused), None), "Refused(\"not advertised\")");
    }

    #[test]
    fn a_hover_is_right_partial_or_another_text() {
        let known = samples::Answer::Hover(ExpectedHover {
            contains: vec!["fn area".to_owned(), "square".to_owned()],
        });
        let told = |contents: &str| {
            let hover = Hover {
                contents: contents.to_owned(),
                range: None,
            };
            let outcome = Ok(QueryResult::Hover { hover: Some(hover) });
            against_known(&outcome, &known, relative, None).unwrap()
        };
        assert_eq!(told("fn area, in square metres"), (Answer::Right, None));
        let partial = Answer::Other("partial text".to_owned());
        assert_eq!(
            told("fn area"),
            (partial, Some("missing \"square\"".to_owned()))
        );
        let other = Answer::Other("other text".to_owned());
        assert_eq!(told("import"), (other, Some("\"import\"".to_owned())));
    }

    #[test]
    fn without_a_known_answer_the_same_again_is_right() {
        let first = locations(&[1]);
        assert_eq!(against_last(&first, None), Some((Answer::Right, None)));
        assert_eq!(
            against_last(&first, first.as_ref().ok()),
            Some((Answer::Right, None))
        );
        let other = Answer::Other("another answer".to_owned());
        assert_eq!(
            against_last(&locations(&[2]), first.as_ref().ok()),
            Some((other, None))
        );
    }
}
