//! Files of the workspace, and places in them.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::super::node::{Segment, way};
use super::super::{FileSpec, Outcome, SpecialFile, Step};
use super::Checker;
use crate::format::diagnostic::nearest;
use crate::run::place::{self, At, Markers, Place};

/// The texts of the workspace at some step, and their markers. A file whose text is not known, such
/// as a link, is there with none.
#[derive(Default)]
struct Files {
    texts: BTreeMap<String, Option<String>>,
    markers: Markers,
}

impl Files {
    fn put(&mut self, name: &str, spec: &FileSpec) {
        self.markers.remove(name);
        let text = match spec {
            FileSpec::Text(text) | FileSpec::Special(SpecialFile::Unreadable(text)) => {
                let (text, markers) = place::unmark(text);
                self.markers.insert(name.to_owned(), markers);
                Some(text)
            }
            FileSpec::Special(_) => None,
        };
        self.texts.insert(name.to_owned(), text);
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(text) = self.texts.remove(from) {
            self.texts.insert(to.to_owned(), text);
        }
        if let Some(markers) = self.markers.remove(from) {
            self.markers.insert(to.to_owned(), markers);
        }
    }
}

impl Checker<'_> {
    pub(super) fn places(&mut self) {
        let scenario = self.scenario;
        let mut files = Files::default();
        self.files(&way!["workspace"], &scenario.workspace, &mut files);
        for (at, step) in scenario.steps.iter().enumerate() {
            match step {
                Step::Query(query) => {
                    let way = way!["steps", at, "query", "at"];
                    self.place(&way, &query.at, query.outside, &files);
                }
                Step::Tool(tool) => {
                    match (&tool.arguments, &tool.operation, &tool.at) {
                        (Some(_), None, None) | (None, Some(_), Some(_)) => {}
                        (Some(_), _, _) => {
                            let reason = "`arguments` takes the place of `operation` and `at`";
                            self.at_key(&way!["steps", at, "tool", "arguments"], reason, None);
                        }
                        (None, _, _) => {
                            let reason = "a tool call has `operation` and `at`, or `arguments`";
                            self.at_key(&way!["steps", at, "tool"], reason, None);
                        }
                    }
                    if let Some(place) = &tool.at {
                        // What the tool makes of a place outside is the tool's to show.
                        self.place(&way!["steps", at, "tool", "at"], place, true, &files);
                    }
                }
                Step::Write(written) => {
                    self.files(&way!["steps", at, "write"], written, &mut files);
                }
                Step::Remove(name) => {
                    files.texts.remove(name);
                    files.markers.remove(name);
                }
                Step::Rename(rename) => files.rename(&rename.from, &rename.to),
                Step::Link(links) => {
                    for (name, target) in links {
                        let link = FileSpec::Special(SpecialFile::Link(target.clone()));
                        let one = [(name.clone(), link)].into();
                        self.files(&way!["steps", at, "link"], &one, &mut files);
                    }
                }
                Step::Expect(outcomes) => {
                    for (name, outcome) in outcomes {
                        let way = way!["steps", at, "expect", name.as_str()];
                        let mut visit = |checker: &mut Self, way: &[Segment], one: &Outcome| {
                            checker.locations(way, one, &files.markers);
                        };
                        self.outcome_and_below(&way, outcome, &mut visit);
                    }
                }
                _ => {}
            }
        }
    }

    fn files(&mut self, way: &[Segment], specs: &IndexMap<String, FileSpec>, files: &mut Files) {
        for (name, spec) in specs {
            let way = super::join(way, &way![name.as_str()]);
            let outside = name.starts_with('/')
                || name.matches("../").count() > 1
                || name.contains("../") && !name.starts_with("../");
            if name.is_empty() || outside {
                let reason = format!(
                    "`{name}` is no path below the workspace, nor one beside it, which begins \
                     with `../`"
                );
                self.at_key(&way, reason, None);
            }
            if let FileSpec::Text(text) | FileSpec::Special(SpecialFile::Unreadable(text)) = spec {
                self.markers(&way, text);
            }
            files.put(name, spec);
        }
    }

    /// A marker stands once in a file.
    fn markers(&mut self, way: &[Segment], text: &str) {
        let mut seen = Vec::new();
        for part in text.split('⟦').skip(1) {
            let Some((name, _)) = part.split_once('⟧') else {
                self.error(way, "a ⟦ in the text is never closed");
                return;
            };
            if seen.contains(&name) {
                self.error(way, format!("the marker ⟦{name}⟧ is there twice"));
            }
            seen.push(name);
        }
    }

    fn place(&mut self, way: &[Segment], at: &str, outside: bool, files: &Files) {
        let read = match place::read(at, &files.markers) {
            Ok(read) => read,
            Err(reason) => {
                let near = at.rsplit_once('@').and_then(|(file, marker)| {
                    let known = files.markers.get(file)?;
                    let names = known.keys().map(String::as_str);
                    nearest(marker, names).map(|name| format!("{file}@{name}"))
                });
                return self.suggest(way, reason, near);
            }
        };
        if outside {
            return;
        }
        let At { file, place } = read;
        let Some(Some(text)) = files.texts.get(&file) else {
            return;
        };
        if let Some(reason) = misplaced(text, place) {
            let reason =
                format!("{file} {reason}; `outside: true` if that is what the case is about");
            self.error(way, reason);
        }
    }

    fn locations(&mut self, way: &[Segment], outcome: &Outcome, markers: &Markers) {
        let locations = outcome.locations.iter().flatten().enumerate();
        for (at, location) in locations {
            if let Some(text) = location.as_str()
                && let Err(reason) = place::location(text, markers)
            {
                self.error(&super::join(way, &way!["locations", at]), reason);
            }
        }
    }
}

/// Why a place is not in a text, if it is not.
fn misplaced(text: &str, place: Place) -> Option<String> {
    let lines: Vec<&str> = lines(text).collect();
    let number = usize::try_from(place.line).unwrap_or(usize::MAX);
    let Some(line) = lines.get(number) else {
        let count = match lines.len() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        };
        return Some(format!("has {count} and no line {}", place.line + 1));
    };
    // What a template stands for has a length of its own.
    if line.contains("${") {
        return None;
    }
    let mut units = 0;
    for char in line.chars() {
        if units >= place.character {
            break;
        }
        units += char.len_utf16() as u64;
    }
    if units == place.character {
        return None;
    }
    let (line, column) = (place.line + 1, place.character + 1);
    Some(if units < place.character {
        format!(
            "has no column {column} in line {line}; the last is {}",
            units + 1
        )
    } else {
        format!("has a character in line {line} that column {column} lies within")
    })
}

/// The lines of a text, which end with LF, CRLF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let after = &text[end..];
        let ending = if after.starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&after[ending..]);
        Some(&text[..end])
    })
}
