//! Subject files: how a subject is started, what it claims, and which cases are known to fail.
//!
//! ```yaml
//! command: [python3, my_subject.py]
//! profiles: [lsp-base, transient]
//! known:
//!   cancel/ignored: it has no grace yet
//!   "results/hover*": hovers are not normalized
//! ```
//!
//! A relative program with a slash in it, and the working directory, are relative to the file's
//! folder. Each known failure needs a reason. One that does not fail any more is stale, and so is
//! one that names no case: both are told, so that the list never hides anything.

use std::fmt;
use std::path::{Path, PathBuf};

use dsh_reports::Verdict;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, Spanned};

use super::CaseResult;
use crate::Profile;
use crate::format::diagnostic::nearest;
use crate::subject::Launch;
use crate::suite::file_of;

/// The longest subject file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// What a subject file says.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectFile {
    /// Its path, as it was given.
    pub path: PathBuf,
    /// How the subject is started.
    pub launch: Launch,
    /// The profiles it is judged by; none where it is judged by all it says it keeps.
    pub profiles: Option<Vec<Profile>>,
    /// Whether the harness is somebody else's, so that this project's own policy is no more than a
    /// note; true unless the file says otherwise.
    pub foreign: bool,
    /// What is known to fail.
    pub known: Known,
}

/// A subject file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {reason}")]
pub struct KnownError {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
    /// What is wrong, and the way out.
    pub reason: String,
}

/// A list of known failures, and what a run has shown of it so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// A case's id, a file's (which means all its cases), or a glob.
    pattern: String,
    glob: Option<glob::Pattern>,
    reason: String,
    line: u64,
    column: u64,
    /// How many cases of the suite it names, how many of them had a result, and how many failed.
    named: u64,
    judged: u64,
    failed: u64,
}

/// An entry of a list of known failures that should be taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// What it names.
    pub entry: String,
    /// Where it stands in the subject file, from 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
    /// Why it is stale.
    pub why: Staleness,
}

/// Why an entry is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// No case is called that; the nearest name that one has.
    Unknown(Option<String>),
    /// What it names does not fail.
    Passes,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            entry,
            line,
            column,
            why,
        } = self;
        write!(f, "{line}:{column}: known failure {entry}: ")?;
        match why {
            Staleness::Unknown(None) => f.write_str("no case is called that; take it out"),
            Staleness::Unknown(Some(nearest)) => {
                write!(f, "no case is called that; did you mean {nearest}?")
            }
            Staleness::Passes => f.write_str("it does not fail any more; take it out"),
        }
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    command: Spanned<Vec<String>>,
    #[serde(default)]
    directory: Option<PathBuf>,
    #[serde(default)]
    profiles: Option<Vec<Profile>>,
    #[serde(default = "yes")]
    foreign: bool,
    #[serde(default)]
    known: Entries,
}

fn yes() -> bool {
    true
}

/// A map whose keys keep their places.
#[derive(Default)]
struct Entries(Vec<(Spanned<String>, Spanned<Option<String>>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of cases, each with the reason why it fails")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }

            fn visit_unit<E>(self) -> Result<Entries, E> {
                Ok(Entries::default())
            }
        }
        deserializer.deserialize_map(Map)
    }
}

impl SubjectFile {
    /// Reads a subject file.
    pub fn read(path: &Path) -> Result<Self, KnownError> {
        let unreadable = |reason: String| KnownError {
            file: path.display().to_string(),
            line: 1,
            column: 1,
            reason,
        };
        let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if size.len() > MAX_FILE {
            let reason = format!("the file has more than {MAX_FILE} bytes, the most that is read");
            return Err(unreadable(reason));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(path, &text)
    }

    /// Reads the text of a subject file; `path` names it in errors, and is what relative paths
    /// begin at.
    pub fn parse(path: &Path, text: &str) -> Result<Self, KnownError> {
        let wrong = |location: Option<Location>, reason: String| KnownError {
            file: path.display().to_string(),
            line: location.map_or(1, |at| at.line().max(1)),
            column: location.map_or(1, |at| at.column().max(1)),
            reason,
        };
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
        };
        let written: Written = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| wrong(error.location(), in_our_words(&error.to_string())))?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut command = written.command.value;
        let Some(program) = command.first_mut().filter(|program| !program.is_empty()) else {
            let at = Some(written.command.referenced);
            let reason = "`command` is empty: name the program, then its arguments".to_owned();
            return Err(wrong(at, reason));
        };
        if let Some(folder) = folder
            && program.contains('/')
            && !program.starts_with('/')
        {
            *program = folder.join(&*program).display().to_string();
        }
        let directory = match (folder, written.directory) {
            (Some(folder), Some(directory)) => Some(folder.join(directory)),
            (folder, directory) => directory.or(folder.map(Path::to_owned)),
        };
        let mut known = Known::default();
        for (name, reason) in written.known.0 {
            let entry = entry(&name, &reason).map_err(|(at, reason)| wrong(Some(at), reason))?;
            if known.entries.iter().any(|e| e.pattern == entry.pattern) {
                let reason = format!("{} is listed twice; keep one", entry.pattern);
                return Err(wrong(Some(name.referenced), reason));
            }
            known.entries.push(entry);
        }
        Ok(Self {
            path: path.to_owned(),
            launch: Launch { command, directory },
            profiles: written.profiles,
            foreign: written.foreign,
            known,
        })
    }
}

fn entry(
    name: &Spanned<String>,
    reason: &Spanned<Option<String>>,
) -> Result<Entry, (Location, String)> {
    let pattern = name.value.trim().to_owned();
    if pattern.is_empty() {
        let reason = "a known failure needs the name of a case, a file or a glob".to_owned();
        return Err((name.referenced, reason));
    }
    let Some(why) = reason
        .value
        .as_deref()
        .map(str::trim)
        .filter(|why| !why.is_empty())
    else {
        let reason = format!("{pattern} has no reason: say why it is known to fail");
        return Err((name.referenced, reason));
    };
    let glob = if pattern.contains(['*', '?', '[']) {
        let glob = glob::Pattern::new(&pattern).map_err(|error| {
            let reason = format!("{pattern:?} is no pattern: {error}");
            (name.referenced, reason)
        })?;
        Some(glob)
    } else {
        None
    };
    Ok(Entry {
        glob,
        reason: why.to_owned(),
        line: name.referenced.line().max(1),
        column: name.referenced.column().max(1),
        named: 0,
        judged: 0,
        failed: 0,
        pattern,
    })
}

/// The YAML reader's message, without the pieces of the text it may show below it.
fn in_our_words(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // The place stands in front of it already.
    let said = line.rsplit_once(" at line ").map_or(line, |(said, _)| said);
    match said {
        "expected mapping start" => "a map, `name: value`, should stand here".to_owned(),
        "expected sequence start" => {
            "a list should stand here, such as `[python3, subject.py]`".to_owned()
        }
        said => said.to_owned(),
    }
}

impl Entry {
    fn names(&self, id: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(id),
            None => id == self.pattern || file_of(id) == self.pattern,
        }
    }
}

impl Known {
    /// Whether nothing is known to fail.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Why a case is known to fail; none if it is not.
    pub fn reason(&self, id: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.names(id))?;
        Some(&entry.reason)
    }

    /// Begins a run over a suite with these cases, all of them, whether or not they are run.
    pub fn begin<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        for entry in &mut self.entries {
            (entry.named, entry.judged, entry.failed) = (0, 0, 0);
        }
        for id in ids {
            for entry in self.entries.iter_mut().filter(|entry| entry.names(id)) {
                entry.named += 1;
            }
        }
    }

    /// Takes a result: a failure that is known becomes [`Verdict::Known`], with the reason before
    /// its message. Faults of our own, and what could not be tested, are never known.
    pub fn apply(&mut self, result: &mut CaseResult) {
        let failed = result.verdict.is_failure();
        if result.verdict.is_red() && !failed {
            return;
        }
        let mut reason = None;
        for entry in self.entries.iter_mut().filter(|e| e.names(&result.id)) {
            entry.judged += 1;
            entry.failed += u64::from(failed);
            reason.get_or_insert_with(|| entry.reason.clone());
        }
        if let (true, Some(reason)) = (failed, reason) {
            let was = result.verdict;
            result.verdict = Verdict::Known;
            result.message = format!("known: {reason} ({was}: {})", result.message);
        }
    }

    /// What should be taken out of the list, after a run over a suite with these cases. An entry
    /// some of whose cases were not run is only stale if none of its name exists.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an iterator that is looked through more than once is cloned from one"
    )]
    pub fn stale<'a>(&self, ids: impl IntoIterator<Item = &'a str> + Clone) -> Vec<Stale> {
        let stale = |entry: &Entry| {
            let why = if entry.named == 0 {
                let ids = ids.clone().into_iter();
                let names = ids.flat_map(|id| [id, file_of(id)]);
                Staleness::Unknown(nearest(&entry.pattern, names))
            } else if entry.judged == entry.named && entry.failed == 0 {
                Staleness::Passes
            } else {
                return None;
            };
            Some(Stale {
                entry: entry.pattern.clone(),
                line: entry.line,
                column: entry.column,
                why,
            })
        };
        self.entries.iter().filter_map(stale).collect()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const FILE: &str = "\
command: [./mine, --x]
profiles: [lsp-base]
known:
  cancel/ignored: no grace yet
  \"results/*\": shapes
  open/all: a whole file
";

    fn parse(text: &str) -> Result<SubjectFile, KnownError> {
        SubjectFile::parse(Path::new("some/where.yaml"), text)
    }

    fn result(id: &str, verdict: Verdict) -> CaseResult {
        CaseResult::bare(id, verdict, "it broke")
    }

    #[test]
    fn a_file_says_how_to_start_and_what_is_known() {
        let file = parse(FILE).unwrap();
        assert_eq!(file.launch.command, ["some/./mine", "--x"]);
        assert_eq!(file.launch.directory.as_deref(), Some(Path::new("some")));
        assert_eq!(file.profiles, Some(vec![Profile::LspBase]));
        assert!(file.foreign);
        assert_eq!(file.known.reason("results/a#b"), Some("shapes"));
        assert_eq!(file.known.reason("open/all#one"), Some("a whole file"));
        assert_eq!(file.known.reason("cancel/ignore"), None);
        let bare = parse("{command: [python3], directory: /d, foreign: false}").unwrap();
        assert_eq!(bare.launch.command, ["python3"]);
        assert_eq!(bare.launch.directory.as_deref(), Some(Path::new("/d")));
        assert!(bare.known.is_empty() && !bare.foreign);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, line, column, reason) in [
            ("command: []", 1, 10, "`command` is empty"),
            ("profiles: []", 1, 1, "missing field `command`"),
            ("command: [x]\nknwon: {}", 2, 1, "unknown field `knwon`"),
            (
                "command: [x]\nprofiles: [tol]",
                2,
                12,
                "unknown variant `tol`",
            ),
            ("command: [x]\nknown:\n  a/b:\n", 3, 3, "a/b has no reason"),
            (
                "command: [x]\nknown:\n  a/b: ' '\n",
                3,
                3,
                "a/b has no reason",
            ),
            ("command: [x]\nknown:\n  'a[': r\n", 3, 3, "is no pattern"),
            ("command: [x]\nknown: [a]\n", 2, 8, "a map, `name: value`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn known_failures_are_told_apart_and_stale_ones_found() {
        let mut known = parse(FILE).unwrap().known;
        let ids = [
            "cancel/ignored",
            "results/a",
            "results/b",
            "open/all#x",
            "other",
        ];
        known.begin(ids);
        let mut failed = result("results/a", Verdict::Fail);
        known.apply(&mut failed);
        assert_eq!(failed.verdict, Verdict::Known);
        assert_eq!(failed.message, "known: shapes (fail: it broke)");
        let mut ours = result("open/all#x", Verdict::HarnessError);
        known.apply(&mut ours);
        assert_eq!(ours.verdict, Verdict::HarnessError);
        let mut unknown = result("other", Verdict::Fail);
        known.apply(&mut unknown);
        assert_eq!(unknown.verdict, Verdict::Fail);
        // Not run: nothing can be said of it.
        let named = |stale: Vec<Stale>| -> Vec<(String, Staleness)> {
            stale
                .into_iter()
                .map(|stale| (stale.entry, stale.why))
                .collect()
        };
        assert_eq!(known.stale(ids), []);
        known.apply(&mut result("cancel/ignored", Verdict::Pass));
        known.apply(&mut result("results/b", Verdict::Pass));
        let stale = named(known.stale(ids));
        assert_eq!(stale, [("cancel/ignored".to_owned(), Staleness::Passes)]);
    }

    #[test]
    fn what_names_no_case_is_stale() {
        let mut known = parse("{command: [x], known: {cancel/ignord: r}}")
            .unwrap()
            .known;
        let ids = ["cancel/ignored#a"];
        known.begin(ids);
        let stale = known.stale(ids);
        assert_eq!(
            stale[0].why,
            Staleness::Unknown(Some("cancel/ignored".to_owned()))
        );
        assert_eq!(
            stale[0].to_string(),
            "1:24: known failure cancel/ignord: no case is called that; did you mean \
             cancel/ignored?"
        );
    }
}
