//! Whether the answers about one place agree with each other, and with themselves: pure.

use dsh_harness::lsp::{Location, QueryResult};

use crate::place::At;
use crate::readiness::{End, Track};
use crate::samples::Operation;

/// What was answered about one place.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) at: At,
    /// The last answer to each operation that was answered.
    pub(crate) results: Vec<(Operation, QueryResult)>,
}

impl Answers {
    fn locations(&self, operation: Operation) -> &[Location] {
        self.results
            .iter()
            .find(|(known, _)| *known == operation)
            .map_or(&[], |(_, result)| match result {
                QueryResult::Locations { locations, .. } => locations,
                QueryResult::Hover { .. } => &[],
            })
    }

    fn says_nothing(&self) -> bool {
        self.results.iter().all(|(_, result)| match result {
            QueryResult::Locations { locations, .. } => locations.is_empty(),
            QueryResult::Hover { hover } => hover.is_none(),
        })
    }

    /// Whether the definition is one of the references; none where one of them is missing.
    fn agree(&self) -> Option<bool> {
        let definitions = self.locations(Operation::GoToDefinition);
        let references = self.locations(Operation::FindReferences);
        let comparable = !definitions.is_empty() && !references.is_empty();
        comparable.then(|| {
            definitions
                .iter()
                .any(|definition| references.iter().any(|other| meet(definition, other)))
        })
    }
}

/// Whether two locations have a position in common.
fn meet(one: &Location, other: &Location) -> bool {
    let start = |location: &Location| (location.range.start.line, location.range.start.character);
    let end = |location: &Location| (location.range.end.line, location.range.end.character);
    same_file(&one.uri, &other.uri) && start(one) <= end(other) && start(other) <= end(one)
}

/// Whether two URIs name one file: they may be spelled differently.
fn same_file(one: &str, other: &str) -> bool {
    let path = |uri: &str| url::Url::parse(uri).ok()?.to_file_path().ok();
    one == other || path(one).is_some_and(|path_of| Some(path_of) == path(other))
}

/// What to say about all of it.
pub(crate) fn told(all: &[Answers]) -> Vec<String> {
    let mut told = Vec::new();
    if all.is_empty() {
        return told;
    }
    if all.iter().all(Answers::says_nothing) {
        told.push(
            "No answer at any of these places said anything. Is the workspace one that the server \
             understands, and does it need settings (see --catalogue)?"
                .to_owned(),
        );
        return told;
    }
    let judged: Vec<(&Answers, bool)> = all
        .iter()
        .filter_map(|answers| Some((answers, answers.agree()?)))
        .collect();
    let agree = judged.iter().filter(|(_, agree)| *agree).count();
    told.push(match judged.len() {
        0 => "Agreement: no place had both a definition and references to compare.".to_owned(),
        count => format!(
            "Agreement: at {agree} of {count} places the definition is one of the references."
        ),
    });
    for (answers, _) in judged.iter().filter(|(_, agree)| !agree) {
        let definition = &answers.locations(Operation::GoToDefinition)[0];
        told.push(format!(
            "At {} the definition leads to {}:{}:{}, which is none of the {} references.",
            answers.at,
            definition.uri,
            definition.range.start.line + 1,
            definition.range.start.character + 1,
            answers.locations(Operation::FindReferences).len()
        ));
    }
    told
}

/// What to say about answers that did not stay the same. Tracks are those of questions without a
/// known answer, in which the same answer again is right.
pub(crate) fn repeatability<'t>(
    tracks: impl Iterator<Item = (&'t str, &'t str, &'t Track)>,
) -> String {
    let asked: Vec<_> = tracks
        .filter(|(_, _, track)| track.last().is_some())
        .collect();
    let changing: Vec<String> = asked
        .iter()
        .filter(|(_, _, track)| track.end() != Some(&End::Stable))
        .map(|(label, place, track)| format!("{label} at {place} ({})", track.summary()))
        .collect();
    if changing.is_empty() {
        "Repeatability: every answer came the same three times running.".to_owned()
    } else {
        format!(
            "Repeatability: not the same three times running: {}.",
            changing.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dsh_harness::lsp::{Hover, Position, Range};

    use super::*;
    use crate::readiness::{Answer, Reply};

    fn location(uri: &str, line: u64, from: u64, to: u64) -> Location {
        Location {
            uri: uri.to_owned(),
            range: Range {
                start: Position {
                    line,
                    character: from,
                },
                end: Position {
                    line,
                    character: to,
                },
            },
        }
    }

    fn answers(definition: Vec<Location>, references: Vec<Location>) -> Answers {
        let locations = |locations| QueryResult::Locations {
            locations,
            resolved_workspace_uri: "file:///w".to_owned(),
        };
        Answers {
            at: "a.x:2:3".parse().unwrap(),
            results: vec![
                (Operation::GoToDefinition, locations(definition)),
                (Operation::FindReferences, locations(references)),
            ],
        }
    }

    #[test]
    fn a_definition_among_the_references_agrees_however_it_is_spelled() {
        let definition = location("file:///w/%C3%A9.x", 3, 4, 8);
        for (other, agree) in [
            (location("file:///w/%c3%a9.x", 3, 4, 8), true),
            (location("file:///w/é.x", 3, 0, 20), true),
            (location("file:///w/%C3%A9.x", 3, 9, 12), false),
            (location("file:///w/e.x", 3, 4, 8), false),
        ] {
            let both = answers(vec![definition.clone()], vec![other.clone()]);
            assert_eq!(both.agree(), Some(agree), "{other:?}");
        }
        assert_eq!(answers(vec![definition], vec![]).agree(), None);
    }

    #[test]
    fn agreement_is_counted_and_disagreement_quoted() {
        let place = || location("file:///w/a.x", 0, 4, 8);
        let other = location("file:///w/b.x", 6, 1, 2);
        let all = [
            answers(vec![place()], vec![place()]),
            answers(vec![other], vec![place(), place()]),
            answers(vec![], vec![place()]),
        ];
        assert_eq!(
            told(&all),
            [
                "Agreement: at 1 of 2 places the definition is one of the references.",
                "At a.x:2:3 the definition leads to file:///w/b.x:7:2, which is none of the 2 \
                 references.",
            ]
        );
    }

    #[test]
    fn nothing_at_all_is_said_plainly() {
        let nothing = [answers(vec![], vec![])];
        assert!(told(&nothing)[0].starts_with("No answer at any of these places"));
        let mut hover = answers(vec![], vec![]);
        hover.results.push((
            Operation::Hover,
            QueryResult::Hover {
                hover: Some(Hover {
                    contents: "x".to_owned(),
                    range: None,
                }),
            },
        ));
        assert_eq!(
            told(&[hover]),
            ["Agreement: no place had both a definition and references to compare."]
        );
        assert_eq!(told(&[]), Vec::<String>::new());
    }

    #[test]
    fn answers_that_change_are_named() {
        let heard = |answers: &[Answer]| {
            let mut track = Track::new("hover", Duration::from_mins(1));
            for answer in answers {
                let reply = Reply {
                    answer: answer.clone(),
                    detail: None,
                    latency_us: 1,
                    seq: 0,
                };
                track.observe(10, reply);
            }
            track
        };
        let stable = heard(&[Answer::Right, Answer::Right, Answer::Right]);
        let other = Answer::Other("another answer".to_owned());
        let changing = heard(&[Answer::Right, other]);
        let never = heard(&[]);
        let one = |track| ("hover", "a.x:1:1", track);
        assert_eq!(
            repeatability([one(&stable), one(&never)].into_iter()),
            "Repeatability: every answer came the same three times running."
        );
        assert_eq!(
            repeatability([one(&stable), one(&changing)].into_iter()),
            "Repeatability: not the same three times running: hover at a.x:1:1 (1 × right, 1 × \
             another answer)."
        );
    }
}
