//! What a server was accepted with, and what has changed since.
//!
//! A baseline is a file that is kept beside the project that uses the servers: for each server,
//! platform and version the verdict of every case. A run is compared with the entry of its own
//! server, platform and version; nothing is read out of another one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conclusion::Conclusion;
use crate::model::{Platform, Run, Stale};
use crate::verdict::Verdict;

/// The value of [`Baseline::format`].
pub const BASELINE_FORMAT: &str = "dsh-conform-baseline/1";

/// The version of a server that tells none.
const UNTOLD: &str = "unknown";

/// The verdicts that servers were accepted with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baseline {
    /// Always `dsh-conform-baseline/1`; a reader refuses anything else.
    pub format: String,
    /// Server → platform (`linux-x86_64`) → version (`unknown` where it tells none) → what was
    /// accepted. Written in the order of the names, so that equal findings are equal bytes.
    pub servers: BTreeMap<String, BTreeMap<String, BTreeMap<String, Accepted>>>,
}

/// What one version of a server was accepted with on one platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Accepted {
    /// The verdict in words, for people; nothing is compared with it.
    pub conclusion: String,
    /// Case → its verdict.
    pub cases: BTreeMap<String, Verdict>,
}

/// How a run compares with a baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Comparison {
    /// The file of the baseline.
    pub file: String,
    /// The platform and version it was compared with; absent where the baseline has no entry of
    /// this version here, so that the run was judged by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// What got worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worse: Vec<Change>,
    /// How many cases that are not right were accepted as they are.
    #[serde(default)]
    pub accepted: u64,
}

/// A case whose verdict is another one than was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    /// The case.
    pub case: String,
    /// What was accepted; absent where the case is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Verdict>,
    /// What came; absent where the case is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Verdict>,
}

/// Why a file is no baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// It is not what such a file holds.
    #[error("it is no baseline: {0}; write one with --update-baseline")]
    Malformed(String),
    /// It says that it is something else.
    #[error(
        "its format is {0:?}, and this version reads {BASELINE_FORMAT:?}; write it again with \
         --update-baseline"
    )]
    Foreign(String),
}

/// The key of a platform.
fn platform_key(platform: &Platform) -> String {
    format!("{}-{}", platform.os, platform.arch)
}

fn version_of(run: &Run) -> &str {
    run.subject.version.as_deref().unwrap_or(UNTOLD)
}

impl Default for Baseline {
    fn default() -> Self {
        Self {
            format: BASELINE_FORMAT.to_owned(),
            servers: BTreeMap::new(),
        }
    }
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// Where the text is none, or one of another format.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| BaselineError::Malformed(error.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(BASELINE_FORMAT) => {}
            Some(other) => return Err(BaselineError::Foreign(other.to_owned())),
            None => {
                let said = "it has no \"format\"".to_owned();
                return Err(BaselineError::Malformed(said));
            }
        }
        serde_json::from_str(text).map_err(|error| BaselineError::Malformed(error.to_string()))
    }

    /// The text of the file: one line a case.
    ///
    /// # Errors
    /// None in practice: the model holds nothing that JSON cannot express.
    pub fn render(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Accepts what a run found, in place of what was accepted of this version on this platform.
    /// False, and nothing is changed, where the run is no whole finding: it was interrupted, our
    /// own fault ended it, or nothing could be judged.
    pub fn accept(&mut self, run: &Run, platform: &Platform) -> bool {
        let unfinished = match &run.conclusion {
            Conclusion::Interrupted
            | Conclusion::HarnessError { .. }
            | Conclusion::Partial { .. } => true,
            Conclusion::Untestable { musts, .. } => musts.is_empty(),
            _ => false,
        };
        if unfinished {
            return false;
        }
        let cases = run
            .cases
            .iter()
            .map(|case| (case.id.clone(), case.verdict))
            .collect();
        let accepted = Accepted {
            conclusion: run.conclusion.to_string(),
            cases,
        };
        self.servers
            .entry(run.subject.name.clone())
            .or_default()
            .entry(platform_key(platform))
            .or_default()
            .insert(version_of(run).to_owned(), accepted);
        true
    }

    /// Compares a run with what was accepted of it, and notes the outcome in the run: what got
    /// worse, and entries that are stale. `whole` says whether all cases were to be judged, so that
    /// one that is missing is gone.
    pub fn compare(&self, run: &mut Run, platform: &Platform, file: &str, whole: bool) {
        let key = platform_key(platform);
        let versions = self
            .servers
            .get(&run.subject.name)
            .and_then(|platforms| platforms.get(&key));
        let version = version_of(run).to_owned();
        let mut comparison = Comparison {
            file: file.to_owned(),
            ..Comparison::default()
        };
        let Some(accepted) = versions.and_then(|versions| versions.get(&version)) else {
            run.remarks
                .push(self.unknown(&run.subject.name, &version, &key, file));
            run.baseline = Some(comparison);
            return;
        };
        let with = format!("{} {version} on {key}", run.subject.name);
        for case in &run.cases {
            match accepted.cases.get(&case.id) {
                None if is_wrong(case.verdict) => comparison.worse.push(Change {
                    case: case.id.clone(),
                    was: None,
                    is: Some(case.verdict),
                }),
                // The server is the same, the machine was busier or less busy.
                Some(was) if case.timed && harmless(*was) && harmless(case.verdict) => {
                    comparison.accepted += u64::from(is_wrong(case.verdict));
                }
                Some(was) if is_worse(*was, case.verdict) => comparison.worse.push(Change {
                    case: case.id.clone(),
                    was: Some(*was),
                    is: Some(case.verdict),
                }),
                Some(was) if is_wrong(*was) && !is_wrong(case.verdict) => {
                    run.stale.push(stale(&case.id, *was, Some(case.verdict)));
                }
                Some(was) if is_wrong(*was) => comparison.accepted += 1,
                None | Some(_) => {}
            }
        }
        if whole {
            let gone = |id: &&String| !run.cases.iter().any(|case| case.id == **id);
            for (id, was) in accepted.cases.iter().filter(|(id, _)| gone(id)) {
                run.stale.push(stale(id, *was, None));
            }
        }
        comparison.with = Some(with);
        run.baseline = Some(comparison);
    }

    /// What to say of a run that the baseline has no entry for.
    fn unknown(&self, name: &str, version: &str, key: &str, file: &str) -> String {
        let known = self.servers.get(name);
        let here = known.and_then(|platforms| platforms.get(key));
        let add = "add it with --update-baseline";
        match (known, here) {
            (_, Some(versions)) => {
                let all: Vec<&str> = versions.keys().map(String::as_str).collect();
                format!(
                    "{file} knows {name} {} on {key}, and {version} was checked: it was judged \
                     without the baseline. Check the version that is known, or {add}.",
                    all.join(" and ")
                )
            }
            (Some(platforms), None) => {
                let all: Vec<&str> = platforms.keys().map(String::as_str).collect();
                format!(
                    "{file} knows {name} on {}, and not on {key}: it was judged without the \
                     baseline; {add}.",
                    all.join(" and ")
                )
            }
            (None, None) => {
                format!("{file} does not know {name}: it was judged without the baseline; {add}.")
            }
        }
    }
}

fn stale(case: &str, was: Verdict, is: Option<Verdict>) -> Stale {
    let update = "write it anew with --update-baseline";
    Stale {
        case: case.to_owned(),
        reason: match is {
            Some(is) => format!("the baseline has {was}, and it is {is} now; {update}"),
            None => format!("the baseline has {was}, and there is no such case; {update}"),
        },
        source: None,
    }
}

/// Whether a verdict is one that a baseline has to accept.
fn is_wrong(verdict: Verdict) -> bool {
    verdict.is_red() || verdict == Verdict::Note
}

/// Whether a verdict costs nothing.
fn harmless(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::Note)
}

/// Whether `is` is worse than `was`. Ways to fail are all alike: a server that crashes where it was
/// silent is no worse.
fn is_worse(was: Verdict, is: Verdict) -> bool {
    fn rank(verdict: Verdict) -> u8 {
        match verdict {
            Verdict::Pass => 0,
            Verdict::NotApplicable => 1,
            Verdict::Note => 2,
            Verdict::Known => 3,
            Verdict::Untestable | Verdict::Fail | Verdict::Timeout | Verdict::Crash => 4,
            Verdict::HarnessError => 5,
        }
    }
    rank(is) > rank(was)
}

impl Comparison {
    /// In a few words: `2 cases are worse than in FILE`.
    pub(crate) fn told(&self) -> String {
        let cases = |count: usize, one: &str, more: &str| match count {
            1 => format!("1 case {one}"),
            count => format!("{count} cases {more}"),
        };
        let accepted = match self.accepted {
            0 => String::new(),
            count => format!(
                "; {} accepted there",
                cases(usize::try_from(count).unwrap_or(usize::MAX), "is", "are")
            ),
        };
        match self.worse.len() {
            0 => format!("baseline {}: nothing got worse{accepted}", self.file),
            count => format!(
                "baseline {}: {} worse{accepted}",
                self.file,
                cases(count, "is", "are")
            ),
        }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.was, self.is) {
            (Some(was), Some(is)) => write!(f, "{}: {was} became {is}", self.case),
            (None, Some(is)) => write!(f, "{}: {is}, and the baseline has no such case", self.case),
            _ => f.write_str(&self.case),
        }
    }
}
