//! From the text of a scenario file to its cases.

use std::collections::BTreeSet;

use super::Scenario;
use super::diagnostic::{Diagnostic, Severity};
use super::expand::{Wrong, expand};
use super::node::{Kind, Node, Place};
use super::{check, shape};

/// The longest scenario file, in bytes.
pub(crate) const MAX_FILE: usize = 1 << 20;

/// One case: a scenario file, or one combination of its matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `cancel/ignored`, or `results/shapes#link-hover` of a matrix: the file below the suite's
    /// folder without its extension, and the names of the choices.
    pub id: String,
    /// The file, as it was named to the loader.
    pub file: String,
    /// The line the scenario begins on, from 1.
    pub line: u64,
    /// What it says, the matrix filled in.
    pub scenario: Scenario,
}

/// What a scenario file gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Its cases; none where there is an error.
    pub cases: Vec<Case>,
    /// What is wrong with it, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a scenario file. `file` names it in errors; `id` is what the ids of its cases begin with.
pub fn load(id: &str, file: &str, bytes: &[u8]) -> Loaded {
    let mut reporter = Reporter {
        file,
        found: Vec::new(),
        seen: BTreeSet::new(),
    };
    let cases = read(id, file, bytes, &mut reporter);
    let mut diagnostics = reporter.found;
    diagnostics.sort_by_key(|one| (one.line, one.column, one.severity));
    let broken = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    Loaded {
        cases: if broken { Vec::new() } else { cases },
        diagnostics,
    }
}

/// Collects what is wrong; what several cases of a file share is told once.
struct Reporter<'a> {
    file: &'a str,
    found: Vec<Diagnostic>,
    seen: BTreeSet<(u64, u64, String)>,
}

impl Reporter<'_> {
    fn report(&mut self, severity: Severity, wrong: Wrong, case: Option<&str>) {
        let Place { line, column } = wrong.place;
        if !self.seen.insert((line, column, wrong.reason.clone())) {
            return;
        }
        self.found.push(Diagnostic {
            file: self.file.to_owned(),
            line,
            column,
            severity,
            reason: wrong.reason,
            suggestion: wrong.suggestion,
            case: case.map(str::to_owned),
        });
    }

    fn error(&mut self, place: Place, reason: impl Into<String>) {
        self.report(Severity::Error, Wrong::new(place, reason), None);
    }
}

fn read(id: &str, file: &str, bytes: &[u8], reporter: &mut Reporter<'_>) -> Vec<Case> {
    if bytes.len() > MAX_FILE {
        let reason = format!(
            "the file has {} bytes; {MAX_FILE} is the limit for a scenario (`repeat` makes long \
             texts of short ones)",
            bytes.len()
        );
        reporter.error(Place::START, reason);
        return Vec::new();
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let place = place_of_byte(bytes, error.valid_up_to());
            let reason = "the file is not UTF-8 from here on; write bytes that are no text as \
                          `{base64: …}`";
            reporter.error(place, reason);
            return Vec::new();
        }
    };
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(unreadable) => {
            reporter.error(unreadable.place, unreadable.reason);
            return Vec::new();
        }
    };
    if !matches!(root.kind, Kind::Map(_)) {
        let reason = "a scenario is an object with `title`, `clauses`, `profile`, `steps` and more";
        reporter.error(root.place, reason);
        return Vec::new();
    }
    let (expanded, wrong) = expand(&root);
    for wrong in wrong {
        reporter.report(Severity::Error, wrong, None);
    }
    let mut cases = Vec::new();
    let mut ids = BTreeSet::new();
    for expanded in expanded {
        let suffix = expanded.suffix.as_deref();
        let id = suffix.map_or_else(|| id.to_owned(), |suffix| format!("{id}#{suffix}"));
        for wrong in expanded.wrong {
            reporter.report(Severity::Error, wrong, suffix);
        }
        if !ids.insert(id.clone()) {
            let place = root
                .entry("matrix")
                .map_or(root.place, |(key, _)| key.place);
            let reason = format!("two combinations of the matrix have the id `{id}`");
            reporter.error(place, reason);
        }
        match shape::scenario(&expanded.node) {
            Ok(scenario) => {
                for (severity, wrong) in check::check(&scenario, &expanded.node) {
                    reporter.report(severity, wrong, suffix);
                }
                cases.push(Case {
                    id,
                    file: file.to_owned(),
                    line: root.place.line,
                    scenario,
                });
            }
            Err(wrongs) => {
                for wrong in wrongs {
                    reporter.report(Severity::Error, wrong, suffix);
                }
            }
        }
    }
    cases
}

/// The place of a byte, in lines and characters, of a text that is UTF-8 up to there.
fn place_of_byte(bytes: &[u8], at: usize) -> Place {
    let before = String::from_utf8_lossy(&bytes[..at]);
    let line = before.matches('\n').count() as u64 + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    Place {
        line,
        column: last.chars().count() as u64 + 1,
    }
}
