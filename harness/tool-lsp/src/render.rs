//! From an answer of the seam to the text that the model reads (TOOL-5…8, TOOL-13).
//!
//! Pure, and linear in what it is given. The caps shape this text only; the canonical value of the
//! call stays whole (TOOL-4).

use std::collections::HashMap;

use dsh_lsp::{Hover, Location, Position, QueryResult};

use crate::text::{bounded, prefix, units};
use crate::uri::{FileUri, shown};

/// What is said when there are no locations (TOOL-8, TOOL-13).
pub const NO_LOCATIONS: &str = "No locations came back. The position may be off the symbol (line \
    and character are one-based; character counts UTF-16 code units), the language server may not \
    be ready yet, or there may be none. Search and read work without it.";

/// What is said when there is no hover (TOOL-8, TOOL-13).
pub const NO_HOVER: &str = "No hover text came back. The position may be off the symbol (line and \
    character are one-based; character counts UTF-16 code units), the language server may not be \
    ready yet, or there may be none. Reading the source works without it.";

/// How much of an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// How many locations at most.
    pub locations: usize,
    /// How many UTF-16 code units at most, whatever says that something is missing included.
    pub characters: usize,
}

/// The text for `result`.
///
/// Locations that the caps leave out are counted in a last line; no location is ever cut in half,
/// since `a.ts:1` would be another place than `a.ts:12:3`. A hover is cut between characters, and
/// a last line says so. Where a cap is too small even for that line, the line itself is cut.
pub fn render(result: &QueryResult, caps: Caps) -> String {
    match result {
        QueryResult::Locations {
            locations,
            resolved_workspace_uri,
        } => self::locations(locations, resolved_workspace_uri, caps),
        QueryResult::Hover { hover } => self::hover(hover.as_ref(), caps.characters),
    }
}

fn locations(locations: &[Location], workspace_uri: &str, caps: Caps) -> String {
    if locations.is_empty() {
        return prefix(NO_LOCATIONS, caps.characters).to_owned();
    }
    let candidates = &locations[..locations.len().min(caps.locations)];
    let lines = lines(candidates, workspace_uri, caps.characters);
    let mut ends = lines.ends;
    loop {
        let end = ends.last().copied().unwrap_or_default();
        let omitted = omission(ends.len(), locations.len());
        let gap = usize::from(!ends.is_empty() && !omitted.is_empty());
        if ends.is_empty() || end.units + gap + units(&omitted) <= caps.characters {
            let mut text = lines.text;
            text.truncate(end.bytes);
            if gap > 0 {
                text.push('\n');
            }
            text.push_str(&omitted);
            return prefix(&text, caps.characters).to_owned();
        }
        ends.pop();
    }
}

/// Rendered locations and where each of them ends.
struct Lines {
    text: String,
    ends: Vec<End>,
}

/// The end of a line, in both units, counted from the start of the text.
#[derive(Clone, Copy, Default)]
struct End {
    bytes: usize,
    units: usize,
}

/// One line a location, those of one file together, files in the order in which they first appear.
/// Stops behind the first line that goes beyond `most` UTF-16 code units.
fn lines(locations: &[Location], workspace_uri: &str, most: usize) -> Lines {
    let mut text = String::new();
    let mut ends = Vec::new();
    let mut taken = 0;
    for file in &by_file(locations, workspace_uri) {
        let path_units = units(&file.path);
        for position in &file.positions {
            if taken > most {
                return Lines { text, ends };
            }
            if !ends.is_empty() {
                text.push('\n');
                taken += 1;
            }
            let place = one_based(*position);
            text.push_str(&file.path);
            text.push_str(&place);
            taken += path_units + place.len();
            ends.push(End {
                bytes: text.len(),
                units: taken,
            });
        }
    }
    Lines { text, ends }
}

/// The places in one file, in the server's order.
struct InFile {
    path: String,
    positions: Vec<Position>,
}

fn by_file(locations: &[Location], workspace_uri: &str) -> Vec<InFile> {
    let workspace = FileUri::parse(workspace_uri);
    let mut files: Vec<InFile> = Vec::new();
    let mut by_uri: HashMap<&str, usize> = HashMap::new();
    let mut by_identity: HashMap<String, usize> = HashMap::new();
    for Location { uri, range } in locations {
        let file = *by_uri.entry(uri).or_insert_with(|| {
            let shown = shown(uri, workspace.as_ref());
            *by_identity.entry(shown.identity).or_insert_with(|| {
                files.push(InFile {
                    path: shown.text,
                    positions: Vec::new(),
                });
                files.len() - 1
            })
        });
        files[file].positions.push(range.start);
    }
    files
}

/// `:line:character` as people and the tool count, from one.
fn one_based(position: Position) -> String {
    // Wide enough for the successor of any number that a server can send.
    let next = |number: u64| u128::from(number) + 1;
    format!(":{}:{}", next(position.line), next(position.character))
}

/// The line that counts what is left out; empty where nothing is.
fn omission(shown: usize, total: usize) -> String {
    match (shown, total - shown) {
        (_, 0) => String::new(),
        (0, 1) => "1 location is not shown.".to_owned(),
        (0, omitted) => format!("{omitted} locations are not shown."),
        (_, 1) => "1 more location is not shown.".to_owned(),
        (_, omitted) => format!("{omitted} more locations are not shown."),
    }
}

fn hover(hover: Option<&Hover>, most: usize) -> String {
    match hover {
        Some(hover) if !hover.contents.trim().is_empty() => bounded(&hover.contents, most),
        _ => prefix(NO_HOVER, most).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use dsh_lsp::Range;
    use proptest::prelude::*;

    use super::*;

    const WORKSPACE: &str = "file:///w";
    const DEFAULT: Caps = Caps {
        locations: 100,
        characters: 16_000,
    };

    fn at(uri: &str, line: u64, character: u64) -> Location {
        let start = Position { line, character };
        Location {
            uri: uri.to_owned(),
            range: Range {
                start,
                end: Position {
                    line,
                    character: character.saturating_add(4),
                },
            },
        }
    }

    fn found(locations: Vec<Location>) -> QueryResult {
        QueryResult::Locations {
            locations,
            resolved_workspace_uri: WORKSPACE.to_owned(),
        }
    }

    fn says(contents: &str) -> QueryResult {
        QueryResult::Hover {
            hover: Some(Hover {
                contents: contents.to_owned(),
                range: None,
            }),
        }
    }

    fn several() -> QueryResult {
        found(vec![
            at("file:///w/src/shapes.ts", 0, 16),
            at("file:///usr/lib/lib.d.ts", 1203, 9),
            at("file:///w/src/shapes.ts", 11, 2),
            at("file:///w/src/%C3%A9tage/ma%C3%AEtre%20plan.ts", 4, 0),
            at("untitled:Untitled-1", 0, 0),
            at("file:///w/src/%73hapes.ts", 40, 7),
        ])
    }

    /// TOOL-5, TOOL-6: one-based, one a line, grouped by file in order of first appearance.
    #[test]
    fn locations_are_grouped_by_file() {
        insta::assert_snapshot!(render(&several(), DEFAULT), @r"
        src/shapes.ts:1:17
        src/shapes.ts:12:3
        src/shapes.ts:41:8
        /usr/lib/lib.d.ts:1204:10
        src/étage/maître plan.ts:5:1
        untitled:Untitled-1:1:1
        ");
    }

    /// TOOL-5: the workspace itself, and a number that only just fits, render like any other.
    #[test]
    fn odd_locations_render() {
        let result = found(vec![
            at("file:///w", 0, 0),
            at("file:///w/a.ts", u64::MAX, u64::MAX),
        ]);
        insta::assert_snapshot!(render(&result, DEFAULT), @r"
        .:1:1
        a.ts:18446744073709551616:18446744073709551616
        ");
    }

    /// TOOL-7: what `maxLocations` leaves out is counted, in the singular and in the plural.
    #[test]
    fn locations_beyond_the_cap_are_counted() {
        let render = |locations| {
            render(
                &several(),
                Caps {
                    locations,
                    ..DEFAULT
                },
            )
        };
        insta::assert_snapshot!(render(5), @r"
        src/shapes.ts:1:17
        src/shapes.ts:12:3
        /usr/lib/lib.d.ts:1204:10
        src/étage/maître plan.ts:5:1
        untitled:Untitled-1:1:1
        1 more location is not shown.
        ");
        insta::assert_snapshot!(render(2), @r"
        src/shapes.ts:1:17
        /usr/lib/lib.d.ts:1204:10
        4 more locations are not shown.
        ");
        assert_eq!(render(6), render(usize::MAX));
        assert!(!render(6).contains("not shown"));
    }

    /// TOOL-7: the cap on characters leaves out whole locations and bounds the counting line too.
    #[test]
    fn locations_beyond_the_characters_are_left_out_whole() {
        let render = |characters| {
            render(
                &several(),
                Caps {
                    characters,
                    ..DEFAULT
                },
            )
        };
        insta::assert_snapshot!(render(110), @r"
        src/shapes.ts:1:17
        src/shapes.ts:12:3
        src/shapes.ts:41:8
        3 more locations are not shown.
        ");
        insta::assert_snapshot!(render(50), @r"
        src/shapes.ts:1:17
        5 more locations are not shown.
        ");
        insta::assert_snapshot!(render(49), @"6 locations are not shown.");
        insta::assert_snapshot!(render(11), @"6 locations");
        insta::assert_snapshot!(render(1), @"6");
    }

    /// TOOL-7: exactly what fits is shown whole.
    #[test]
    fn a_text_of_exactly_the_cap_is_whole() {
        let whole = render(&several(), DEFAULT);
        let exact = Caps {
            characters: units(&whole),
            ..DEFAULT
        };
        assert_eq!(render(&several(), exact), whole);
        let less = Caps {
            characters: units(&whole) - 1,
            ..DEFAULT
        };
        assert!(render(&several(), less).ends_with("not shown."));
        assert_eq!(
            render(
                &says("a😀"),
                Caps {
                    characters: 3,
                    ..DEFAULT
                }
            ),
            "a😀"
        );
    }

    /// TOOL-8, TOOL-13: no result is a text of its own kind, and claims nothing.
    #[test]
    fn no_result_has_its_own_line() {
        insta::assert_snapshot!(render(&found(vec![]), DEFAULT));
        insta::assert_snapshot!(render(&QueryResult::Hover { hover: None }, DEFAULT));
        assert_eq!(render(&says(" \n"), DEFAULT), NO_HOVER);
        for line in [NO_LOCATIONS, NO_HOVER] {
            assert!(!line.contains('\n'));
            for claim in [
                "again",
                "retry",
                "does not exist",
                "no references",
                "unused",
            ] {
                assert!(!line.to_lowercase().contains(claim), "{line}");
            }
        }
    }

    /// TOOL-7, TOOL-8: the no-result lines keep the cap as well.
    #[test]
    fn a_no_result_line_is_bounded() {
        let caps = Caps {
            characters: 12,
            ..DEFAULT
        };
        assert_eq!(render(&found(vec![]), caps), "No locations");
        assert_eq!(
            render(&QueryResult::Hover { hover: None }, caps),
            "No hover tex"
        );
    }

    /// TOOL-7: a hover is kept as it is, or cut with a last line that says so.
    #[test]
    fn a_long_hover_is_cut() {
        let markdown = "```typescript\nfunction area(shape: Shape): number\n```\n\nThe area.";
        assert_eq!(render(&says(markdown), DEFAULT), markdown);
        let long = says(&"0123456789".repeat(20));
        let render = |characters| {
            render(
                &long,
                Caps {
                    characters,
                    ..DEFAULT
                },
            )
        };
        insta::assert_snapshot!(render(90), @r"
        01234567890123456789012345678901234567
        [cut: the text has 200 characters, the limit is 90]
        ");
        insta::assert_snapshot!(render(40), @"[cut: the text has 200 characters, the l");
    }

    /// TOOL-7: a cut never splits a pair.
    #[test]
    fn a_hover_is_cut_between_characters() {
        let long = says(&"😀".repeat(100));
        let cut = |characters| {
            render(
                &long,
                Caps {
                    characters,
                    ..DEFAULT
                },
            )
        };
        assert_eq!(cut(81).matches('😀').count(), cut(80).matches('😀').count());
        assert_eq!(units(&cut(80)), 80);
        assert_eq!(units(&cut(81)), 80);
        assert_eq!(units(&cut(82)), 82);
    }

    /// TOOL-7: a hundred thousand locations and a hover of 16 MB cost linear time. The bound is
    /// a hundred times what it takes; a quadratic step would miss it by far more.
    #[test]
    fn large_answers_cost_linear_time() {
        let start = Instant::now();
        let many = found(
            (0..100_000)
                .map(|n| at(&format!("file:///w/{}.ts", n % 5_000), n, n))
                .collect(),
        );
        let everything = Caps {
            locations: usize::MAX,
            characters: usize::MAX,
        };
        assert_eq!(render(&many, everything).lines().count(), 100_000);
        assert!(units(&render(&many, DEFAULT)) <= DEFAULT.characters);
        let unfitting = Caps {
            locations: usize::MAX,
            characters: 20,
        };
        assert!(units(&render(&many, unfitting)) <= 20);
        let large = says(&"é".repeat(8_000_000));
        assert_eq!(units(&render(&large, DEFAULT)), DEFAULT.characters);
        assert_eq!(render(&large, everything).len(), 16_000_000);
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "{:?}",
            start.elapsed()
        );
    }

    fn any_result() -> impl Strategy<Value = QueryResult> {
        let uri = prop_oneof![
            "file:///w/[a-c😀é%2F]{0,3}".boxed(),
            "file:///[a-zA-Z]{1,2}:?/[a-c]{1,2}".boxed(),
            any::<String>().boxed(),
        ];
        let position = prop_oneof![0_u64..200, Just(u64::MAX)];
        let location = (uri, position.clone(), position)
            .prop_map(|(uri, line, character)| at(&uri, line, character));
        let contents = prop_oneof![any::<String>(), "[a😀\n]{0,300}"];
        prop_oneof![
            prop::collection::vec(location, 0..30).prop_map(found),
            contents.prop_map(|contents| says(&contents)),
            Just(QueryResult::Hover { hover: None }),
        ]
    }

    proptest! {
        /// TOOL-7: both caps hold for any answer, and no text is empty or split in a character.
        #[test]
        fn the_caps_hold(result in any_result(), locations in 1_usize..40, characters in 1_usize..400) {
            let text = render(&result, Caps { locations, characters });
            prop_assert!(text.encode_utf16().count() <= characters, "{text:?}");
            if let QueryResult::Locations { locations: all, .. } = &result {
                let places = text.lines().filter(|line| !line.ends_with('.')).count();
                prop_assert!(places <= locations);
                if all.len() > locations && characters >= 40 {
                    prop_assert!(text.ends_with("not shown."));
                }
            }
        }

        /// TOOL-5, TOOL-7: shown and counted locations together are all there are, and each shown
        /// one is a line of the uncapped text.
        #[test]
        fn nothing_is_lost_or_invented(
            places in prop::collection::vec((0_u64..4, 0_u64..50, 0_u64..50), 1..30),
            characters in 40_usize..400,
        ) {
            let total = places.len();
            let result = found(places.into_iter()
                .map(|(file, line, character)| at(&format!("file:///w/{file}.ts"), line, character))
                .collect());
            let whole = render(&result, DEFAULT);
            let text = render(&result, Caps { characters, ..DEFAULT });
            let (shown, counted): (Vec<_>, Vec<_>) =
                text.lines().partition(|line| !line.ends_with("not shown."));
            let omitted = counted.first().map_or(0, |line| {
                line.split(' ').next().unwrap().parse::<usize>().unwrap()
            });
            prop_assert_eq!(shown.len() + omitted, total);
            prop_assert!(counted.len() <= 1);
            prop_assert!(whole.starts_with(&shown.join("\n")));
        }
    }
}
