//! The toy language of the built-in rules: answers computed from the files of a workspace.
//!
//! The README defines the language. This module is pure: it is given paths and texts.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use crate::uri;

/// Where the texts come from.
pub(crate) trait Files {
    /// The `*.fake` files below `root`: path relative to it, and text. What cannot be read or is
    /// not UTF-8 is left out.
    fn texts(&self, root: &[u8]) -> Vec<(Vec<u8>, String)>;
}

/// A name's part in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Definition,
    Implementation,
    Use,
}

/// One occurrence of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Occurrence<'a> {
    name: &'a str,
    role: Role,
    /// Line, from 0.
    line: u64,
    /// Columns in UTF-16 code units.
    columns: Range<u64>,
}

/// What one file says.
#[derive(Debug, Default)]
struct Facts<'a> {
    occurrences: Vec<Occurrence<'a>>,
    /// Documentation lines by name.
    docs: Vec<(&'a str, &'a str)>,
    /// The lines, without their ends.
    lines: Vec<&'a str>,
}

/// The lines of a text; LF, CRLF and CR end one.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        lines.push(&rest[..at]);
        let end = if rest[at..].starts_with("\r\n") {
            at + 2
        } else {
            at + 1
        };
        rest = &rest[end..];
    }
    lines.push(rest);
    lines
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn utf16(text: &str) -> u64 {
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

/// The names of a line, with their places in bytes.
fn names(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + line[at..].find(is_name)?;
        let len = line[start..]
            .find(|c| !is_name(c))
            .unwrap_or(line.len() - start);
        at = start + len;
        Some((start, &line[start..at]))
    })
}

fn facts(text: &str) -> Facts<'_> {
    let mut facts = Facts {
        lines: lines(text),
        ..Facts::default()
    };
    for (number, line) in facts.lines.iter().enumerate() {
        let content = line.trim_start();
        if content.starts_with("//") {
            continue;
        }
        let mut words = names(line).peekable();
        let keyword = words
            .next_if(|(start, word)| {
                *start == line.len() - content.len() && ["def", "impl", "doc"].contains(word)
            })
            .map(|(_, word)| word);
        if keyword == Some("doc") {
            if let Some((start, name)) = words.next()
                && let Some(text) = line[start + name.len()..].trim_start().strip_prefix(':')
            {
                facts.docs.push((name, text.trim()));
            }
            continue;
        }
        let mut role = match keyword {
            Some("def") => Role::Definition,
            Some("impl") => Role::Implementation,
            _ => Role::Use,
        };
        let (mut column, mut measured) = (0, 0);
        for (start, name) in words {
            // Each stretch of the line is measured once.
            column += utf16(&line[measured..start]);
            let end = column + utf16(name);
            measured = start + name.len();
            let role = std::mem::replace(&mut role, Role::Use);
            let line = number as u64;
            facts.occurrences.push(Occurrence {
                name,
                role,
                line,
                columns: column..end,
            });
            column = end;
        }
    }
    facts
}

/// A question about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Definition,
    References,
    Implementation,
    Hover,
}

impl Question {
    /// The question a method asks.
    pub(crate) fn of(method: &str) -> Option<Self> {
        Some(match method {
            "textDocument/definition" => Self::Definition,
            "textDocument/references" => Self::References,
            "textDocument/implementation" => Self::Implementation,
            "textDocument/hover" => Self::Hover,
            _ => return None,
        })
    }
}

/// Answers of a workspace.
pub(crate) struct Asked<'a> {
    /// The workspace folder's URI as the client wrote it.
    pub(crate) root: &'a str,
    /// Texts of open documents by URI.
    pub(crate) open: &'a BTreeMap<String, String>,
    /// Whether definitions, and implementations, are answered with links.
    pub(crate) links: (bool, bool),
    /// Everything else.
    pub(crate) files: &'a dyn Files,
}

impl Asked<'_> {
    /// The result of a request, by its params.
    pub(crate) fn answer(&self, question: Question, params: &Value) -> Value {
        let nothing = if question == Question::References {
            json!([])
        } else {
            Value::Null
        };
        let Some(texts) = self.texts(params) else {
            return nothing;
        };
        let all: Vec<(&str, Facts<'_>)> = texts
            .iter()
            .map(|(uri, text)| (uri.as_str(), facts(text)))
            .collect();
        let at = |pointer: &str| params.pointer(pointer).and_then(Value::as_u64);
        let (Some(line), Some(column)) = (at("/position/line"), at("/position/character")) else {
            return nothing;
        };
        let asked = params
            .pointer("/textDocument/uri")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let Some(found) = all
            .iter()
            .find(|(uri, _)| *uri == asked)
            .and_then(|(_, facts)| {
                facts.occurrences.iter().find(|occurrence| {
                    occurrence.line == line
                        && (occurrence.columns.start..=occurrence.columns.end).contains(&column)
                })
            })
        else {
            return nothing;
        };
        let places = |role: &dyn Fn(Role) -> bool| -> Vec<(&str, &Facts<'_>, &Occurrence<'_>)> {
            let of_file = |(uri, facts)| {
                let facts: &Facts<'_> = facts;
                let uri: &str = uri;
                facts
                    .occurrences
                    .iter()
                    .filter(|other| other.name == found.name && role(other.role))
                    .map(move |other| (uri, facts, other))
            };
            all.iter()
                .map(|(uri, facts)| (*uri, facts))
                .flat_map(of_file)
                .collect()
        };
        let definitions = places(&|role| role == Role::Definition);
        if definitions.is_empty() {
            return nothing;
        }
        match question {
            Question::Definition => locations(&definitions, self.links.0),
            Question::Implementation => {
                let places = places(&|role| role == Role::Implementation);
                if places.is_empty() {
                    nothing
                } else {
                    locations(&places, self.links.1)
                }
            }
            Question::References => {
                let declared =
                    params.pointer("/context/includeDeclaration") == Some(&Value::Bool(true));
                locations(&places(&|role| declared || role != Role::Definition), false)
            }
            Question::Hover => {
                let (_, facts, definition) = &definitions[0];
                let signature = line_of(facts, definition).trim();
                let docs: Vec<&str> = all
                    .iter()
                    .flat_map(|(_, facts)| &facts.docs)
                    .filter(|(name, _)| *name == found.name)
                    .map(|(_, text)| *text)
                    .collect();
                let mut value = format!("```fake\n{signature}\n```");
                if !docs.is_empty() {
                    value.push_str("\n\n");
                    value.push_str(&docs.join("\n"));
                }
                let range = range(found.line, &found.columns);
                json!({"contents": {"kind": "markdown", "value": value}, "range": range})
            }
        }
    }

    /// The texts of the workspace by URI, in the order of paths. A document of the workspace that
    /// is open has the client's URI and text; an open one from elsewhere comes last.
    fn texts(&self, params: &Value) -> Option<Vec<(String, String)>> {
        let asked = params
            .pointer("/textDocument/uri")
            .and_then(Value::as_str)?;
        let root = uri::path_of(self.root)?;
        let open: BTreeMap<Vec<u8>, (&String, &String)> = self
            .open
            .iter()
            .filter_map(|(uri, text)| Some((uri::path_of(uri)?, (uri, text))))
            .collect();
        let mut texts = BTreeMap::new();
        for (path, text) in self.files.texts(&root) {
            let full = [root.as_slice(), b"/", &path].concat();
            let named = if uri::path_of(asked).as_ref() == Some(&full) {
                asked.to_owned()
            } else {
                uri::below(self.root, &path)
            };
            texts.insert(full, (named, text));
        }
        for (path, (uri, text)) in open {
            texts.insert(path, (uri.clone(), text.clone()));
        }
        Some(texts.into_values().collect())
    }
}

fn line_of<'a>(facts: &Facts<'a>, occurrence: &Occurrence<'_>) -> &'a str {
    let line = usize::try_from(occurrence.line).ok();
    line.and_then(|line| facts.lines.get(line))
        .copied()
        .unwrap_or_default()
}

fn range(line: u64, columns: &Range<u64>) -> Value {
    json!({
        "start": {"line": line, "character": columns.start},
        "end": {"line": line, "character": columns.end},
    })
}

fn locations(places: &[(&str, &Facts<'_>, &Occurrence<'_>)], links: bool) -> Value {
    let location = |(uri, facts, place): &(&str, &Facts<'_>, &Occurrence<'_>)| {
        let name = range(place.line, &place.columns);
        if links {
            let whole = range(place.line, &(0..utf16(line_of(facts, place))));
            json!({"targetUri": uri, "targetRange": whole, "targetSelectionRange": name})
        } else {
            json!({"uri": uri, "range": name})
        }
    };
    places.iter().map(location).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory(Vec<(&'static str, &'static str)>);

    impl Files for Memory {
        fn texts(&self, root: &[u8]) -> Vec<(Vec<u8>, String)> {
            assert_eq!(root, b"/w");
            self.0
                .iter()
                .map(|(p, t)| (p.as_bytes().to_vec(), (*t).to_owned()))
                .collect()
        }
    }

    fn workspace() -> Memory {
        Memory(vec![
            (
                "main.fake",
                "def main\n  use Shape, 𝒳 Shape\r\n// Shape\rdef def impl\n",
            ),
            (
                "a b/shapes.fake",
                "doc Shape: Something with an area.\ndoc Shape: Really.\ndef Shape area\n\
                 def area\nimpl Shape circle\n",
            ),
        ])
    }

    #[track_caller]
    fn ask(open: &[(&str, &str)], links: bool, method: &str, file: &str, at: (u64, u64)) -> Value {
        let open = open
            .iter()
            .map(|(u, t)| ((*u).to_owned(), (*t).to_owned()))
            .collect();
        let files = workspace();
        let asked = Asked {
            root: "file:///w",
            open: &open,
            links: (links, links),
            files: &files,
        };
        let params = json!({
            "textDocument": {"uri": file},
            "position": {"line": at.0, "character": at.1},
            "context": {"includeDeclaration": true},
        });
        asked.answer(Question::of(method).unwrap(), &params)
    }

    const MAIN: &str = "file:///w/main.fake";
    const SHAPES: &str = "file:///w/a%20b/shapes.fake";

    fn at(uri: &str, line: u64, from: u64, to: u64) -> Value {
        json!({"uri": uri, "range": range(line, &(from..to))})
    }

    #[test]
    fn the_four_questions_are_answered_from_the_files() {
        let ask = |method: &str| ask(&[], false, method, MAIN, (1, 8));
        assert_eq!(ask("textDocument/definition"), json!([at(SHAPES, 2, 4, 9)]));
        assert_eq!(
            ask("textDocument/implementation"),
            json!([at(SHAPES, 4, 5, 10)])
        );
        assert_eq!(
            ask("textDocument/references"),
            json!([
                at(SHAPES, 2, 4, 9),
                at(SHAPES, 4, 5, 10),
                at(MAIN, 1, 6, 11),
                at(MAIN, 1, 16, 21)
            ])
        );
        assert_eq!(
            ask("textDocument/hover"),
            json!({
                "contents": {"kind": "markdown", "value":
                    "```fake\ndef Shape area\n```\n\nSomething with an area.\nReally."},
                "range": range(1, &(6..11)),
            })
        );
    }

    #[test]
    fn links_have_the_line_and_the_name() {
        let link = json!([{"targetUri": SHAPES, "targetRange": range(2, &(0..14)),
            "targetSelectionRange": range(2, &(4..9))}]);
        assert_eq!(
            ask(&[], true, "textDocument/definition", MAIN, (1, 11)),
            link
        );
    }

    #[test]
    fn what_nothing_defines_has_no_answer() {
        for (line, column) in [(1, 3), (2, 4), (9, 0), (1, 5)] {
            let at = (line, column);
            assert_eq!(
                ask(&[], false, "textDocument/hover", MAIN, at),
                Value::Null,
                "{at:?}"
            );
            assert_eq!(
                ask(&[], false, "textDocument/references", MAIN, at),
                json!([])
            );
        }
        assert_eq!(
            ask(&[], false, "textDocument/hover", "file:///x", (0, 0)),
            Value::Null
        );
    }

    #[test]
    fn a_keyword_is_a_name_elsewhere() {
        let found = ask(&[], false, "textDocument/definition", MAIN, (3, 6));
        assert_eq!(found, json!([at(MAIN, 3, 4, 7)]));
    }

    #[test]
    fn an_open_document_hides_its_file() {
        let open = [(MAIN, "def Shape other\nShape")];
        let found = ask(&open, false, "textDocument/definition", MAIN, (1, 0));
        assert_eq!(found, json!([at(SHAPES, 2, 4, 9), at(MAIN, 0, 4, 9)]));
        let odd = [("file:///w/%6Dain.fake", "def Odd")];
        let found = ask(
            &odd,
            false,
            "textDocument/definition",
            "file:///w/%6Dain.fake",
            (0, 5),
        );
        assert_eq!(found, json!([at("file:///w/%6Dain.fake", 0, 4, 7)]));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_texts_never_panic(text in ".*", line in 0_u64..5, column in 0_u64..40) {
            let open = [(MAIN, text.as_str())];
            let _ = ask(&open, true, "textDocument/references", MAIN, (line, column));
        }
    }
}
