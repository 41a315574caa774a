//! A server's part of the page.

use std::collections::BTreeMap;

use super::case::{CaseView, Cases};
use super::cycles::{CyclesView, cycles};
use super::ids::Ids;
use super::measured::{Table, tables};
use super::readiness::{StartView, kinds, starts};
use super::text::shown;
use super::{Badge, Fact, Source, badge, made_by, moment, platform};
use crate::findings;
use crate::measured::{Measured, Ready, most_memory};
use crate::model::{Origin, Run};
use crate::size::bytes;
use crate::text::duration;
use crate::words;

/// Everything about one server.
pub(super) struct Server {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) language: String,
    pub(super) badge: Badge,
    /// The whole conclusion.
    pub(super) conclusion: String,
    pub(super) counts: String,
    pub(super) facts: Vec<Fact>,
    pub(super) reproduce: Option<String>,
    /// How soon it is of use, in words, and as a number to sort by.
    pub(super) ready: (String, u64),
    pub(super) memory: Option<u64>,
    pub(super) starts: Vec<StartView>,
    /// What the signs on the time lines mean.
    pub(super) kinds: Vec<(&'static str, &'static str)>,
    /// What the first answer that counts is called, and the rounds that were not answered so.
    pub(super) first: &'static str,
    pub(super) otherwise: &'static str,
    pub(super) cycles: Vec<CyclesView>,
    pub(super) tables: Vec<Table>,
    pub(super) remarks: Vec<String>,
    pub(super) surprises: Vec<String>,
    pub(super) stale: Vec<String>,
    pub(super) remedy: Option<RemedyView>,
    pub(super) groups: Vec<Group>,
    pub(super) not_judged: Vec<(String, String)>,
    pub(super) skipped: Vec<String>,
    /// Case → its id on the page.
    pub(super) anchors: BTreeMap<String, String>,
}

impl Server {
    /// What a text is looked for in.
    pub(super) fn find(&self) -> String {
        format!(
            "{} {} {} {}",
            self.name,
            self.version.as_deref().unwrap_or_default(),
            self.language,
            self.conclusion
        )
        .to_lowercase()
    }

    pub(super) fn memory_text(&self) -> String {
        self.memory.map_or_else(|| "–".to_owned(), bytes)
    }

    pub(super) fn memory_key(&self) -> u64 {
        self.memory.unwrap_or(u64::MAX).min(u64::MAX >> 11)
    }
}

/// Cases that are shown together.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) cases: Vec<CaseView>,
}

/// How to mount the server.
pub(super) struct RemedyView {
    pub(super) yaml: String,
    pub(super) timeout: Option<String>,
    /// What to do with paths in it, where that has to be said.
    pub(super) paths: Option<&'static str>,
    /// Name, what it helps against, the clauses that hold with it.
    pub(super) settings: Vec<(String, String, String)>,
}

pub(super) fn server(source: Source<'_>, ids: &mut Ids) -> Server {
    let run = source.run;
    let id = ids.take("", &run.subject.name);
    let none = Measured::default();
    let measured = run.measured.as_ref().unwrap_or(&none);
    let mut anchors = BTreeMap::new();
    let groups = groups(run, &id, ids, &mut anchors);
    let starts = starts(run);
    Server {
        name: shown(&run.subject.name),
        version: run.subject.version.as_deref().map(shown),
        language: run
            .subject
            .language
            .as_deref()
            .or(run.sample.as_deref())
            .map_or_else(|| "–".to_owned(), shown),
        badge: badge(&run.conclusion),
        conclusion: shown(&run.conclusion.to_string()),
        counts: words::counts(run),
        facts: facts(source),
        reproduce: reproduce(run).map(|command| shown(&command)),
        ready: ready(run),
        memory: most_memory(run),
        kinds: kinds(&starts, run.knows_answers()),
        first: if run.knows_answers() {
            "first right answer"
        } else {
            "first answer"
        },
        otherwise: if run.knows_answers() {
            "wrong"
        } else {
            "otherwise"
        },
        starts,
        cycles: measured.cycles.iter().map(cycles).collect(),
        tables: tables(measured, run.knows_answers()),
        remarks: run.remarks.iter().map(|of| shown(of)).collect(),
        surprises: findings::surprises(&run.surprises)
            .iter()
            .map(|(_, told)| shown(told))
            .collect(),
        stale: run
            .stale
            .iter()
            .map(|of| shown(&words::stale(of)))
            .collect(),
        remedy: remedy(run),
        groups,
        not_judged: not_judged(run),
        skipped: skipped(run),
        anchors,
        id,
    }
}

/// Reason and clauses.
pub(super) fn not_judged(run: &Run) -> Vec<(String, String)> {
    words::not_judged(run)
        .into_iter()
        .map(|(reason, clauses)| (shown(reason), shown(&words::clauses(&clauses))))
        .collect()
}

pub(super) fn skipped(run: &Run) -> Vec<String> {
    let skipped = run.skipped.iter();
    skipped.map(|of| words::skipped(run.kind, of)).collect()
}

/// How long after a cold start every question is answered rightly. What never comes to that is sorted
/// behind what does, and what is not known comes last.
fn ready(run: &Run) -> (String, u64) {
    match Ready::of(run) {
        Ready::After(us) => (duration(us), us.min(u64::MAX >> 12)),
        Ready::Never(operation) => (format!("no right {}", shown(operation)), u64::MAX >> 11),
        Ready::Unknown => ("–".to_owned(), u64::MAX >> 10),
    }
}

fn facts(source: Source<'_>) -> Vec<Fact> {
    let (run, report) = (source.run, source.report);
    let mut facts = vec![Fact::new("Platform", &platform(report))];
    if let Some(sample) = &run.sample {
        facts.push(Fact::new("Sample", sample));
    }
    if let Some(path) = &run.subject.path {
        facts.push(Fact::code("Executable", path));
    }
    if let Some(origin) = run.subject.origin {
        let origin = match origin {
            Origin::Path => "the one on PATH",
            Origin::Cache => "the cache, pinned",
            Origin::BuiltIn => "built in",
            Origin::Command => "the command as given",
        };
        facts.push(Fact::new("From", origin));
    }
    if !run.subject.command.is_empty() {
        facts.push(Fact::code("Started as", &run.subject.command.join(" ")));
    }
    if let Some(budget) = run.budget_ms {
        facts.push(Fact::new("Budget", &duration(budget.saturating_mul(1000))));
    }
    if run.duration_us > 0 {
        facts.push(Fact::new("Took", &duration(run.duration_us)));
    }
    facts.push(Fact::new("Judged by", &made_by(report)));
    if let Some(date) = &report.date {
        facts.push(Fact::new("Date", &moment(date)));
    }
    if let Some(transcript) = &run.transcript {
        facts.push(Fact::code("Transcript", transcript));
    }
    facts
}

/// The command that makes the run again: its own, or the one that its cases name, without the choice
/// of a clause. Where neither is told, nothing is guessed: with another option it would be another
/// run.
fn reproduce(run: &Run) -> Option<String> {
    let of_cases = || {
        run.cases.iter().find_map(|case| {
            let (command, _) = case.reproduce.as_deref()?.rsplit_once(" --only ")?;
            Some(command.to_owned())
        })
    };
    run.reproduce.clone().or_else(of_cases)
}

fn groups(
    run: &Run,
    id: &str,
    ids: &mut Ids,
    anchors: &mut BTreeMap<String, String>,
) -> Vec<Group> {
    let cases = Cases::of(run, id);
    let mut groups: Vec<Group> = Vec::new();
    for case in &run.cases {
        let view = cases.full(case, ids);
        anchors.insert(case.id.clone(), view.id.clone());
        let name = shown(&case.group);
        match groups.last_mut() {
            Some(group) if group.name == name => group.cases.push(view),
            _ => groups.push(Group {
                name,
                cases: vec![view],
            }),
        }
    }
    groups
}

fn remedy(run: &Run) -> Option<RemedyView> {
    let remedy = run.remedy.as_ref()?;
    let named = serde_json::json!({ run.subject.name.as_str(): remedy.row });
    // JSON is YAML as well.
    let yaml = serde_saphyr::to_string(&named).unwrap_or_else(|_| format!("{named:#}"));
    Some(RemedyView {
        yaml: shown(yaml.trim_end()),
        paths: findings::names_home(remedy).then_some(findings::HOME),
        timeout: remedy
            .timeout_ms
            .map(|ms| format!("{ms} ({})", duration(ms.saturating_mul(1000)))),
        settings: remedy
            .settings
            .iter()
            .map(|setting| {
                let clauses = words::clauses(&setting.clauses);
                (
                    shown(&setting.name),
                    shown(&setting.against),
                    shown(&clauses),
                )
            })
            .collect(),
    })
}
