//! Rendered texts and the files they are held against.
//!
//! The texts of a case lie beside its scenario, in `name.snap` or `name#choice-choice.snap`, in the
//! form that `cargo insta review` knows: a header between two lines of dashes, then the text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dsh_reports::Verdict;
use similar::{ChangeTag, TextDiff};

use super::Suite;
use crate::format::Case;
use crate::run::CaseResult;

/// What opens a step's text, and, alone, closes the last.
const BAR: &str = "──";

/// Texts of a case that are not those of its snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotMismatch {
    /// The texts are others.
    #[error("the texts are not those of {file}\n{diff}")]
    Different {
        /// The snapshot file, below the suite's folder.
        file: String,
        /// What was there, with `-`, and what is, with `+`.
        diff: String,
    },
    /// There is no snapshot yet.
    #[error(
        "there is no {file} yet; --accept writes it beside a scenario file that is named, and \
         `cargo insta test --review -p dsh-scenarios` into the project's suite; it would hold\n{text}"
    )]
    Missing {
        /// The snapshot file, below the suite's folder.
        file: String,
        /// What it would hold.
        text: String,
    },
    /// There is a snapshot, and the case has no text for it.
    #[error("{file} is there, and no step of the case has a snapshot; remove it")]
    Unused {
        /// The snapshot file, below the suite's folder.
        file: String,
    },
}

/// The texts of a case, as its snapshot holds them: step and text, in order. Nothing, if there are
/// none.
///
/// Control characters but for line feeds are written as escapes, and a last line closes the text,
/// so that nothing is lost at its ends.
pub fn snapshot_text(texts: &[(String, String)]) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    let mut whole = String::new();
    for (step, text) in texts {
        whole.push_str(BAR);
        whole.push(' ');
        whole.push_str(step);
        whole.push('\n');
        for char in text.chars() {
            if char.is_control() && char != '\n' {
                // A string can always be written to.
                let _ = write!(whole, "{}", char.escape_default());
            } else {
                whole.push(char);
            }
        }
        whole.push('\n');
    }
    whole.push_str(BAR);
    Some(whole)
}

/// The snapshots of a suite: case → file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshots(pub(super) BTreeMap<String, String>);

impl Suite {
    /// The snapshots beside its scenarios.
    pub fn texts(&self) -> &Snapshots {
        &self.snapshots
    }

    /// The text of a case's snapshot, if it has one.
    pub fn snapshot(&self, case: &str) -> Option<&str> {
        self.snapshots.get(case)
    }

    /// The cases there is a snapshot of, sound or not.
    pub fn snapshots(&self) -> impl Iterator<Item = &str> {
        self.snapshots.0.keys().map(String::as_str)
    }

    /// Holds the texts of a case against its snapshot; see [`Snapshots::hold`].
    pub fn hold_snapshot(
        &self,
        case: &str,
        texts: &[(String, String)],
    ) -> Result<(), SnapshotMismatch> {
        self.snapshots.hold(case, texts)
    }
}

impl Snapshots {
    /// Takes in those of another suite; of two of one case, the other's.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The text of a case's snapshot, if it has one.
    pub fn get(&self, case: &str) -> Option<&str> {
        let file = self.0.get(case)?;
        Some(body(file).trim_end())
    }

    /// Has a case that went well fail if its texts are not those of its snapshot.
    ///
    /// The texts are those of the built-in harness: somebody else's words are not held to them.
    pub fn judge(&self, case: &Case, result: &mut CaseResult) {
        if !matches!(result.verdict, Verdict::Pass | Verdict::Note) {
            return;
        }
        let Err(mismatch) = self.hold(&case.id, &result.snapshots) else {
            return;
        };
        result.verdict = Verdict::Fail;
        let told = mismatch.to_string();
        told.lines()
            .next()
            .unwrap_or_default()
            .clone_into(&mut result.message);
        result.expected = self.get(&case.id).map(str::to_owned);
        result.got = snapshot_text(&result.snapshots);
        result.clauses.clone_from(&case.scenario.clauses);
    }

    /// Holds the texts of a case, `CaseResult::snapshots`, against its snapshot.
    pub fn hold(&self, case: &str, texts: &[(String, String)]) -> Result<(), SnapshotMismatch> {
        let file = format!("{case}.snap");
        match (self.get(case), snapshot_text(texts)) {
            (None, None) => Ok(()),
            (Some(old), Some(new)) if old == new => Ok(()),
            (Some(old), Some(new)) => Err(SnapshotMismatch::Different {
                file,
                diff: diff(old, &new),
            }),
            (None, Some(text)) => Err(SnapshotMismatch::Missing { file, text }),
            (Some(_), None) => Err(SnapshotMismatch::Unused { file }),
        }
    }
}

/// A snapshot file with this text, of a case of that scenario file.
pub fn snapshot_file(source: &str, text: &str) -> String {
    // As YAML has a string, whatever the path is.
    let source = serde_json::Value::from(source);
    format!("---\nsource: {source}\n---\n{text}\n")
}

/// What stands behind the header.
fn body(file: &str) -> &str {
    let Some(rest) = file.strip_prefix("---\n") else {
        return file;
    };
    rest.split_once("\n---\n").map_or(rest, |(_, body)| body)
}

fn diff(old: &str, new: &str) -> String {
    let mut text = String::new();
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        text.push(sign);
        text.push_str(change.value().trim_end_matches('\n'));
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::super::SuiteFile;
    use super::*;

    fn suite(files: &[(&str, &str)]) -> Suite {
        Suite::from_files(files.iter().map(|(path, text)| SuiteFile {
            path: (*path).to_owned(),
            shown: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
        }))
    }

    fn texts(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(step, text): &(&str, &str)| ((*step).to_owned(), (*text).to_owned());
        texts.iter().map(owned).collect()
    }

    #[test]
    fn texts_keep_their_ends_and_show_what_cannot_be_seen() {
        let text = snapshot_text(&texts(&[("a", "\n one\r\n"), ("b", "\u{1b}x ")]));
        let shown = "── a\n\n one\\r\n\n── b\n\\u{1b}x \n──";
        assert_eq!(text.as_deref(), Some(shown));
        assert_eq!(snapshot_text(&[]), None);
    }

    #[test]
    fn a_snapshot_is_held_against_the_texts() {
        let file = "---\nsource: x\nexpression: y\n---\n── a\none\n---\ntwo\n──\n";
        let suite = suite(&[("tool/x#a.snap", file)]);
        let same = texts(&[("a", "one\n---\ntwo")]);
        assert_eq!(suite.hold_snapshot("tool/x#a", &same), Ok(()));
        assert_eq!(suite.hold_snapshot("tool/x", &[]), Ok(()));
        let said = |case: &str, now: &[(&str, &str)]| {
            let held = suite.hold_snapshot(case, &texts(now));
            held.expect_err("it differs").to_string()
        };
        assert_eq!(
            said("tool/x#a", &[("a", "one\n---\nthree")]),
            "the texts are not those of tool/x#a.snap\n ── a\n one\n ---\n-two\n+three\n ──"
        );
        assert!(said("tool/x", &[("a", "")]).starts_with("there is no tool/x.snap yet"));
        assert!(said("tool/x#a", &[]).contains("remove it"));
        // A blank at the end of a text is a difference.
        assert!(said("tool/x#a", &[("a", "one\n---\ntwo ")]).contains("+two "));
    }

    #[test]
    fn a_case_fails_by_its_text_only_if_it_went_well() {
        let suite = suite(&[
            (
                "x.yaml",
                "title: A title\nclauses: [TOOL-1]\nprofile: tool\nprocesses: 0\n",
            ),
            ("x.snap", "── t\nright\n──\n"),
        ]);
        let case = &suite.cases()[0];
        let judged = |verdict, text: &str| {
            let mut result = CaseResult {
                snapshots: texts(&[("t", text)]),
                ..CaseResult::bare("x", verdict, "")
            };
            suite.texts().judge(case, &mut result);
            result
        };
        assert_eq!(judged(Verdict::Pass, "right").verdict, Verdict::Pass);
        assert_eq!(judged(Verdict::Timeout, "wrong").verdict, Verdict::Timeout);
        let failed = judged(Verdict::Pass, "wrong");
        assert_eq!(failed.verdict, Verdict::Fail);
        assert_eq!(failed.message, "the texts are not those of x.snap");
        assert_eq!(failed.got.as_deref(), Some("── t\nwrong\n──"));
        assert_eq!(failed.clauses, ["TOOL-1"]);
    }
}
