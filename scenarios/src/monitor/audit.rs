//! Recordings judged clause by clause.

use std::collections::BTreeMap;

use dsh_reports::{Case, ClauseRef, Verdict, around};
use dsh_transcript::Event;

use super::{Finding, MONITORS, MonitorInfo, Rules, examine};
use crate::format::Who;
use crate::{Clauses, Level, Profile};

/// What is said of a clause whose subject matter does not occur.
const NOT_THERE: &str = "nothing in the recording is about it";

/// How many findings a case tells of, besides how many there are.
const TOLD: usize = 3;

/// What `shape` and `framing` demand, which are no clauses of the contract.
const WITHOUT_RECORD: [(&str, &str); 2] = [
    (
        "framing",
        "The server writes frames, and nothing else, to its stdout.",
    ),
    (
        "shape",
        "Each message has the shape that LSP gives to its method.",
    ),
];

/// What a server can break; everything but the first two binds the client too.
const OF_SERVER: [&str; 7] = [
    "framing", "WIRE-6", "WIRE-7", "shape", "WIRE-1", "WIRE-5", "INI-5",
];

/// Judges what one side did in a recording: one case for each clause that binds it, in the order
/// of the monitors. `rules` are as for [`judge`](super::judge).
///
/// A clause whose subject matter does not occur in the recording is untestable.
pub fn audit(events: &[Event], rules: Rules<'_>, side: Who) -> Vec<Case> {
    let examined = examine(events, rules);
    let mut found: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in examined.findings.iter().filter(|f| f.by == side) {
        found.entry(&finding.clause).or_default().push(finding);
    }
    audited(rules.profiles, side)
        .map(|(clause, monitor)| {
            let level = level_of(clause);
            let case = |verdict, message: String| {
                let mut case = Case::new(clause, level, monitor.topic, verdict, message);
                case.label = Some(monitor.name.to_owned());
                case
            };
            match (found.get(clause), examined.seen.get(clause)) {
                (Some(findings), _) => failed(case, events, findings),
                (None, Some(times)) => {
                    let events = if *times == 1 { "event" } else { "events" };
                    case(Verdict::Pass, format!("holds in {times} {events}"))
                }
                (None, None) => case(Verdict::Untestable, NOT_THERE.to_owned()),
            }
        })
        .collect()
}

/// The clauses that [`audit`] judges, for the coverage of a report.
pub fn audit_clauses(profiles: &[Profile], side: Who) -> Vec<ClauseRef> {
    audited(profiles, side)
        .map(|(id, _)| ClauseRef {
            id: id.to_owned(),
            level: level_of(id),
            statement: statement_of(id),
            profiles: profiles
                .iter()
                .filter(|profile| {
                    let clause = Clauses::embedded().get(id);
                    clause.is_none_or(|clause| clause.profiles.contains(profile))
                })
                .map(ToString::to_string)
                .collect(),
            not_run: NOT_THERE.to_owned(),
        })
        .collect()
}

/// Each clause that binds `side` once, with its first monitor.
fn audited(
    profiles: &[Profile],
    side: Who,
) -> impl Iterator<Item = (&'static str, &'static MonitorInfo)> + use<> {
    let transient = profiles.contains(&Profile::Transient);
    let all = move || {
        MONITORS
            .iter()
            .filter(move |monitor| monitor.profile == Profile::LspBase || transient)
            .flat_map(|monitor| monitor.clauses.iter().map(move |clause| (*clause, monitor)))
    };
    all()
        .enumerate()
        .filter_map(move |(place, (clause, monitor))| {
            let first = all().position(|(other, _)| other == clause) == Some(place);
            (first && binds(clause, side)).then_some((clause, monitor))
        })
}

fn binds(clause: &str, side: Who) -> bool {
    match side {
        Who::Server => OF_SERVER.contains(&clause),
        Who::Client => !OF_SERVER[..2].contains(&clause),
    }
}

fn level_of(id: &str) -> dsh_reports::Level {
    let clause = Clauses::embedded().get(id);
    clause.map_or(dsh_reports::Level::Must, |clause| clause.level.into())
}

fn statement_of(id: &str) -> String {
    let own = WITHOUT_RECORD.iter().find(|(name, _)| *name == id);
    match (Clauses::embedded().get(id), own) {
        (Some(clause), _) => clause.statement.clone(),
        (None, Some((_, statement))) => (*statement).to_owned(),
        (None, None) => String::new(),
    }
}

/// The case of a clause that does not hold: the first finding of the highest level decides.
fn failed(case: impl Fn(Verdict, String) -> Case, events: &[Event], findings: &[&Finding]) -> Case {
    let decisive = findings
        .iter()
        .find(|finding| finding.level == Level::Must)
        .or(findings.first());
    let Some(decisive) = decisive else {
        return case(
            Verdict::HarnessError,
            "a failure without a finding".to_owned(),
        );
    };
    let verdict = match decisive.level {
        Level::Must => Verdict::Fail,
        Level::Should => Verdict::Note,
    };
    let message = format!(
        "event {}: {}{}",
        decisive.seq,
        decisive.message,
        others(findings, decisive)
    );
    let mut case = case(verdict, message);
    case.expected = Some(decisive.expected.clone());
    case.got = Some(decisive.got.clone());
    case.evidence = around(events, decisive.seq, |_| true);
    case
}

/// How often else, and where.
fn others(findings: &[&Finding], decisive: &Finding) -> String {
    if findings.len() == 1 {
        return String::new();
    }
    let mut places: Vec<String> = findings
        .iter()
        .filter(|finding| !std::ptr::eq(**finding, decisive))
        .take(TOLD)
        .map(|finding| finding.seq.to_string())
        .collect();
    if findings.len() - 1 > TOLD {
        places.push("…".to_owned());
    }
    let (all, places) = (findings.len(), places.join(", "));
    format!("; {all} times in all (also at {places})")
}
