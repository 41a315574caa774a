//! Which names of some sources are worth asking about, and where: pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::place::At;
use crate::samples::Position;

/// A file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its path relative to the workspace.
    pub(crate) file: String,
    pub(crate) text: String,
}

/// A symbol that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    /// The file it is in, relative to the workspace.
    pub(crate) file: String,
    pub(crate) position: Position,
}

/// What a name is most often no name of: words of many languages' own.
const WORDS: [&str; 76] = [
    "abstract",
    "and",
    "as",
    "async",
    "auto",
    "await",
    "begin",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "defer",
    "do",
    "double",
    "elif",
    "else",
    "elsif",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "foreach",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "include",
    "int",
    "interface",
    "let",
    "local",
    "long",
    "match",
    "module",
    "mut",
    "namespace",
    "new",
    "nil",
    "not",
    "null",
    "or",
    "package",
    "private",
    "pub",
    "public",
    "return",
    "self",
    "static",
    "string",
    "struct",
    "then",
    "this",
    "true",
    "type",
    "use",
    "var",
    "void",
];

/// A name that occurs oftener than this is rather a word of the language.
const OFTEN: usize = 20;

/// The first few places to ask at: of names that the server lists, where one is used; else where
/// it is declared; else of names that occur more than once. The same sources give the same places.
pub(crate) fn places(sources: &[Source], symbols: &[Symbol], most: usize) -> Vec<At> {
    let names = occurrences(sources);
    let mut used: Vec<(&str, &[Spot])> = names
        .iter()
        .filter(|(_, spots)| spots.len() > 1)
        .map(|(name, spots)| (*name, spots.as_slice()))
        .collect();
    used.sort_by_key(|(name, spots)| (rank(name, spots), spots[0]));
    let listed: BTreeSet<&str> = symbols.iter().map(|symbol| bare(&symbol.name)).collect();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let mut at: Vec<At> = Vec::new();
    let is_listed = |name: &str| listed.contains(name);
    for (name, spots) in used.iter().filter(|(name, _)| is_listed(name)) {
        taken.insert(name);
        // The last one is a use, where the first is the declaration.
        at.extend(spots.last().map(|spot| spot.at(sources)));
    }
    for symbol in symbols {
        if taken.insert(bare(&symbol.name)) {
            at.push(At {
                file: symbol.file.clone(),
                position: symbol.position,
            });
        }
    }
    for (name, spots) in used {
        if taken.insert(name) {
            at.extend(spots.last().map(|spot| spot.at(sources)));
        }
    }
    at.truncate(most);
    if at.is_empty() {
        // A name that occurs once is better than none.
        let mut once: Vec<(&str, Spot)> = names
            .iter()
            .filter_map(|(name, spots)| Some((*name, *spots.first()?)))
            .collect();
        once.sort_by_key(|(name, spot)| (rank(name, &[*spot]), *spot));
        at.extend(once.iter().take(1).map(|(_, spot)| spot.at(sources)));
    }
    at
}

/// The identifier a symbol's name begins with: some servers list `area(shape)`.
fn bare(name: &str) -> &str {
    let end = name.find(|c| !goes_on(c)).unwrap_or(name.len());
    &name[..end]
}

/// One occurrence: the file's number, the line, the column in UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    file: usize,
    line: u32,
    character: u32,
}

impl Spot {
    fn at(self, sources: &[Source]) -> At {
        At {
            file: sources[self.file].file.clone(),
            position: Position {
                line: self.line,
                character: self.character,
            },
        }
    }
}

/// The lower, the better to ask about: names that look like somebody's own and are in more than one
/// file, before words that any text of the language has.
fn rank(name: &str, spots: &[Spot]) -> (u8, bool) {
    let is_word = WORDS.binary_search(&name.to_lowercase().as_str()).is_ok();
    let is_own = name.contains('_') || name.chars().any(char::is_uppercase);
    let tier = match (is_word, spots.len() > OFTEN) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) if is_own || name.chars().count() >= 4 => 0,
        (false, false) => 1,
    };
    let spans = spots.iter().any(|spot| spot.file != spots[0].file);
    (tier, !spans)
}

fn begins(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What a line begins with that is most likely no code.
const COMMENTS: [&str; 7] = ["//", "#", "--", ";", "/*", "*", "%"];

/// Every identifier of at least two characters, outside lines that are comments and outside
/// double quotes, as far as a line by itself tells.
fn occurrences(sources: &[Source]) -> BTreeMap<&str, Vec<Spot>> {
    let mut names: BTreeMap<&str, Vec<Spot>> = BTreeMap::new();
    for (file, source) in sources.iter().enumerate() {
        // A BOM is no part of the text that a server sees.
        let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
        for (line, content) in text.lines().enumerate() {
            let start = content.trim_start();
            if COMMENTS.iter().any(|mark| start.starts_with(mark)) {
                continue;
            }
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            of_line(content, |name, character| {
                let spot = Spot {
                    file,
                    line,
                    character,
                };
                names.entry(name).or_default().push(spot);
            });
        }
    }
    names
}

fn of_line<'t>(content: &'t str, mut found: impl FnMut(&'t str, u32)) {
    let (mut quoted, mut units, mut before) = (false, 0_u32, ' ');
    let mut open: Option<(usize, u32)> = None;
    for (at, c) in content.char_indices().chain([(content.len(), ' ')]) {
        match open {
            Some((start, column)) if !goes_on(c) => {
                if start + 1 < at {
                    found(&content[start..at], column);
                }
                open = None;
            }
            None if !quoted && begins(c) && !goes_on(before) => open = Some((at, units)),
            _ => {}
        }
        if c == '"' && before != '\\' {
            quoted = !quoted;
        }
        before = c;
        units += u32::try_from(c.len_utf16()).unwrap_or(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        Source {
            file: file.to_owned(),
            text: text.to_owned(),
        }
    }

    #[track_caller]
    fn found(sources: &[Source], symbols: &[Symbol]) -> Vec<String> {
        places(sources, symbols, 4)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn the_words_are_in_order() {
        assert!(WORDS.is_sorted(), "they are searched");
    }

    #[test]
    fn names_of_line_have_their_columns_in_utf_16() {
        let mut names = Vec::new();
        of_line(
            "let 🦀x = été_2 + \"no names\" + a1 ;b 3c _d",
            |name, at| {
                names.push((name.to_owned(), at));
            },
        );
        let expected = [("let", 0), ("été_2", 10), ("a1", 31), ("_d", 40)];
        let expected: Vec<(String, u32)> = expected
            .iter()
            .map(|(name, at)| ((*name).to_owned(), *at))
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_use_is_asked_of_names_that_occur_more_than_once() {
        let sources = [
            source(
                "a.x",
                "fn total_area(s) {\n  return s\n}\n// total_area once more\n",
            ),
            source("b.x", "let once = 1\nreturn total_area(2)\n"),
        ];
        let places = found(&sources, &[]);
        assert_eq!(places[0], "b.x:2:8");
        assert!(!places.contains(&"b.x:1:5".to_owned()), "{places:?}");
    }

    #[test]
    fn words_of_the_language_and_what_is_everywhere_come_last() {
        let mut text = "alpha beta\n".repeat(2);
        text.push_str(&"every\n".repeat(OFTEN + 1));
        text.push_str("return return\n");
        let sources = [source("a.x", &text)];
        assert_eq!(
            found(&sources, &[]),
            ["a.x:2:1", "a.x:2:7", "a.x:23:1", "a.x:24:8"]
        );
    }

    #[test]
    fn what_the_server_lists_is_asked_first_where_it_is_used() {
        let sources = [source("a.x", "aaaa bbbb\naaaa bbbb cccc\n")];
        let symbol = |name: &str, line, character| Symbol {
            name: name.to_owned(),
            file: "a.x".to_owned(),
            position: Position { line, character },
        };
        let symbols = [symbol("cccc", 1, 10), symbol("bbbb(x)", 0, 5)];
        assert_eq!(
            found(&sources, &symbols),
            ["a.x:2:6", "a.x:2:11", "a.x:2:1"]
        );
    }

    #[test]
    fn one_name_is_better_than_none_and_numbers_are_none() {
        assert_eq!(found(&[source("a.x", "= name\n")], &[]), ["a.x:1:3"]);
        assert_eq!(
            found(&[source("a.x", "1 2 3\n\"quoted\"\n")], &[]),
            Vec::<String>::new()
        );
        assert_eq!(found(&[], &[]), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_shifts_nothing() {
        let sources = [source("a.x", "\u{feff}name name\n")];
        assert_eq!(found(&sources, &[]), ["a.x:1:6"]);
    }
}
