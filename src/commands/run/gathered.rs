//! The results of a run as they come in, and what they leave behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_reports::{Case, Place, TranscriptRef, Verdict, around};
use dsh_scenarios::format;
use dsh_scenarios::run::{CaseResult, Known, Observer};
use dsh_scenarios::suite::{Snapshots, snapshot_file, snapshot_text};
use dsh_transcript::{Event, jsonl};

use super::clauses::level_of;
use crate::artifacts::Artifacts;
use crate::files;
use crate::output::complain;
use crate::progress::Line;

/// Takes results: writes their transcripts, keeps what the report says of them.
pub(super) struct Gathered {
    pub(super) cases: Vec<Case>,
    wanted: BTreeMap<String, Arc<format::Case>>,
    how: How,
    red: u64,
    /// The clauses whose monitors had something to look at, in any case.
    pub(super) watched: BTreeSet<&'static str>,
    /// Where the workspaces are that were kept, in words.
    pub(super) kept: Vec<String>,
}

/// What is done with results.
pub(super) struct How {
    pub(super) artifacts: Artifacts,
    /// Whether all transcripts are kept.
    pub(super) keep: bool,
    /// The command, without the suite and the case, that runs in the same way.
    pub(super) repeat: String,
    /// The suite in place of the one that is built in.
    pub(super) suite: Option<PathBuf>,
    /// What single cases were read from in place of that.
    pub(super) read_from: BTreeMap<String, PathBuf>,
    pub(super) known: Known,
    /// The texts that rendered texts are held against; none for a harness with words of its own.
    pub(super) texts: Option<Snapshots>,
    /// Whether texts that are not held by a snapshot become one.
    pub(super) accept: bool,
    pub(super) line: Line,
}

impl How {
    /// The command that runs one case in the same way.
    fn to_repeat(&self, id: &str) -> String {
        let suite = self.read_from.get(id).or(self.suite.as_ref());
        let suite = suite.map(|path| format!(" --suite {}", quoted(&path.display().to_string())));
        let suite = suite.unwrap_or_default();
        format!("{}{suite} {}", self.repeat, quoted(id))
    }
}

impl Gathered {
    /// For these cases.
    pub(super) fn new(cases: &[Arc<format::Case>], how: How) -> Self {
        let by_id = |case: &Arc<format::Case>| (case.id.clone(), Arc::clone(case));
        Self {
            cases: Vec::new(),
            wanted: cases.iter().map(by_id).collect(),
            how,
            red: 0,
            watched: BTreeSet::new(),
            kept: Vec::new(),
        }
    }

    /// The known failures, as they look by now.
    pub(super) fn known(&self) -> &Known {
        &self.how.known
    }

    /// Takes a case that is not run, since the subject is not judged by its profile.
    pub(super) fn unclaimed(&mut self, case: &format::Case, subject: &str) {
        let profile = case.scenario.profile;
        let message = format!("{subject} does not claim the profile {profile}");
        self.ended(CaseResult {
            clauses: case.scenario.clauses.clone(),
            ..CaseResult::bare(&*case.id, Verdict::NotApplicable, message)
        });
    }

    /// Writes the texts of a case that went well beside its scenario, if that is asked for and they
    /// are not there already; whether it did.
    fn accepted(&self, texts: &Snapshots, case: &format::Case, result: &CaseResult) -> bool {
        let went_well = matches!(result.verdict, Verdict::Pass | Verdict::Note);
        if !self.how.accept || !went_well {
            return false;
        }
        let held = texts.hold(&case.id, &result.snapshots);
        let (Err(_), Some(text)) = (held, snapshot_text(&result.snapshots)) else {
            return false;
        };
        let name = case.id.rsplit('/').next().unwrap_or(&case.id);
        let file = Path::new(&case.file).with_file_name(format!("{name}.snap"));
        match files::write(&file, snapshot_file(&case.file, &text).as_bytes()) {
            Ok(()) => {
                complain(&format!("{} is written", file.display()));
                true
            }
            Err(error) => {
                complain(&format!("error: cannot write {}: {error}", file.display()));
                false
            }
        }
    }

    fn case(&self, result: CaseResult) -> Case {
        let scenario = self.wanted.get(&result.id);
        let group = match result.id.split_once('/') {
            Some((group, _)) => group,
            None => "scenarios",
        };
        let mut case = Case::new("", dsh_reports::Level::Must, group, result.verdict, "");
        case.message = result.message;
        case.duration_us = u64::try_from(result.duration.as_micros()).ok();
        case.expected = result.expected;
        case.got = result.got;
        if let Some(scenario) = scenario {
            case.clauses.clone_from(&scenario.scenario.clauses);
            case.title = Some(scenario.scenario.title.clone());
            case.source = Some(Place {
                file: scenario.file.clone(),
                line: Some(scenario.line),
            });
        }
        if has_a_reason(result.verdict) && result.clauses != case.clauses {
            case.broken = result.clauses;
        }
        case.level = level_of(case.about());
        if has_a_reason(result.verdict) {
            case.reproduce = Some(self.how.to_repeat(&result.id));
            case.evidence = evidence(&result.transcript, result.decisive);
        }
        let wanted = self.how.keep || case.verdict.is_red();
        if wanted && !result.transcript.is_empty() {
            let path = self
                .how
                .artifacts
                .below(&result.id.replace('#', "+"), "jsonl");
            match write(&path, &result.transcript) {
                Ok(()) => {
                    case.transcript = Some(TranscriptRef {
                        path: path.display().to_string(),
                        seq: result.decisive,
                    });
                }
                Err(error) => complain(&format!(
                    "warning: cannot write {}: {error}",
                    path.display()
                )),
            }
        }
        case.id = result.id;
        case
    }
}

impl Observer for Gathered {
    fn ended(&mut self, mut result: CaseResult) {
        if let (Some(texts), Some(case)) = (&self.how.texts, self.wanted.get(&result.id))
            && !self.accepted(texts, case, &result)
        {
            texts.judge(case, &mut result);
        }
        self.how.known.apply(&mut result);
        self.red += u64::from(result.verdict.is_red());
        self.watched.extend(result.watched.iter().copied());
        if let Some(folder) = &result.folder {
            let workspace = folder.join("ws");
            let told = format!("workspace kept: {} ({})", workspace.display(), result.id);
            self.kept.push(told);
        }
        let case = self.case(result);
        self.cases.push(case);
        let red = match self.red {
            0 => String::new(),
            red => format!(", {red} red"),
        };
        let (done, all) = (self.cases.len(), self.wanted.len());
        self.how.line.say(&format!("{done} of {all} cases{red}"));
    }
}

/// Whether there is something to show for it.
const fn has_a_reason(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Pass | Verdict::NotApplicable)
}

/// The events around the one that decided; without one, the last there were.
fn evidence(events: &[Event], decisive: Option<u64>) -> Vec<dsh_reports::Evidence> {
    let Some(seq) = decisive.or_else(|| Some(events.last()?.seq)) else {
        return Vec::new();
    };
    let mut evidence = around(events, seq, |_| true);
    for shown in &mut evidence {
        shown.decisive &= decisive.is_some();
    }
    evidence
}

fn write(path: &Path, events: &[Event]) -> std::io::Result<()> {
    let mut text = Vec::new();
    jsonl::write(&mut text, events)?;
    Artifacts::write(path, &text)
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}
