//! From what was seen to a verdict.

#[cfg(test)]
mod tests;

use dsh_reports::Verdict;

use super::checks::{self, Failure};
use super::left::Left;
use super::trace::Trace;
use crate::format::{Declaration, Scenario, Who};
use crate::monitor::{self, Finding, Rules};
use crate::{Clauses, Level, Profile, Source};

/// The clause of what is left behind.
const LEFT: &str = "DIS-4";

/// The clauses by which a server may leave processes behind on purpose.
const ESCAPES: [&str; 2] = ["ENV-6", "ENV-7"];

/// Why a case ended before its steps and what follows them were done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// An expectation failed, so that what follows shows nothing more.
    Failed(Failure),
    /// The budget ended; what was waited for.
    Timeout(String),
    /// The subject is gone; how it ended.
    Gone(String),
    /// The subject, or this machine, does not have something.
    NotApplicable(String),
    /// What a step needs was not there.
    Untestable(String),
    /// The instrument, or the scenario, is at fault.
    Fault(String),
    /// Somebody ended the run.
    Interrupted,
}

/// What was seen of a case.
pub(crate) struct Seen<'a> {
    /// What it asks for, templates filled in.
    pub(crate) scenario: &'a Scenario,
    pub(crate) trace: &'a Trace,
    /// Why it ended early.
    pub(crate) stop: Option<Stop>,
    /// What was left; of a case that ended early, nothing is known.
    pub(crate) left: &'a Left,
    /// Whether the harness is somebody else's.
    pub(crate) foreign: bool,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) got: Option<String>,
    pub(crate) clauses: Vec<String>,
    /// The clauses of monitors that had something to look at.
    pub(crate) watched: Vec<&'static str>,
    pub(crate) decisive: Option<u64>,
}

impl Judgement {
    fn plain(verdict: Verdict, message: String, clauses: Vec<String>) -> Self {
        Self {
            verdict,
            message,
            expected: None,
            got: None,
            clauses,
            watched: Vec::new(),
            decisive: None,
        }
    }
}

/// Judges a case by its transcript and what was seen besides.
pub(crate) fn judge(seen: &Seen<'_>) -> Judgement {
    let own = || seen.scenario.clauses.clone();
    let last = seen.trace.events().last().map(|event| event.seq);
    match &seen.stop {
        Some(Stop::NotApplicable(what)) => {
            return Judgement::plain(Verdict::NotApplicable, what.clone(), own());
        }
        Some(Stop::Fault(what)) => {
            return Judgement::plain(Verdict::HarnessError, what.clone(), Vec::new());
        }
        Some(Stop::Interrupted) => {
            let message = "the run was ended before the case was".to_owned();
            return Judgement::plain(Verdict::HarnessError, message, Vec::new());
        }
        Some(Stop::Gone(how)) => {
            return Judgement {
                decisive: last,
                ..Judgement::plain(Verdict::Crash, how.clone(), own())
            };
        }
        Some(Stop::Timeout(what)) => {
            return Judgement {
                decisive: last,
                expected: Some(what.clone()),
                got: Some("nothing within the budget".to_owned()),
                ..Judgement::plain(
                    Verdict::Timeout,
                    format!("waited in vain for {what}"),
                    own(),
                )
            };
        }
        Some(Stop::Failed(_) | Stop::Untestable(_)) | None => {}
    }
    let profiles: &[Profile] = if seen.scenario.profile == Profile::LspBase {
        &[Profile::LspBase]
    } else {
        &[Profile::LspBase, Profile::Transient]
    };
    let rules = Rules {
        profiles,
        foreign: seen.foreign,
    };
    let examined = monitor::examine(seen.trace.events(), rules);
    Judgement {
        watched: examined.seen.into_keys().collect(),
        ..settled(seen, &examined.findings)
    }
}

/// Judges a case that was carried out as far as it makes sense, with what the monitors found.
fn settled(seen: &Seen<'_>, findings: &[Finding]) -> Judgement {
    let scenario = seen.scenario;
    let mut failures = Vec::new();
    let complete = seen.stop.is_none();
    match &seen.stop {
        Some(Stop::Failed(failure)) => failures.push(failure.clone()),
        _ if complete => failures.extend(checks::all(scenario, seen.trace)),
        _ => failures.extend(checks::never(&scenario.never, seen.trace)),
    }
    let mut used = vec![false; scenario.declares.len()];
    let mut undeclared = Vec::new();
    for finding in findings {
        if !declared(finding, &scenario.declares, &mut used) {
            undeclared.push(finding);
        }
    }
    let ours = undeclared.iter().find(|finding| finding.by == Who::Server);
    let theirs = undeclared.iter().find(|finding| finding.by == Who::Client);
    // A server that is answered wrongly may go wrong itself: whoever was first is to blame.
    if let Some(ours) = ours
        && theirs.is_none_or(|theirs| ours.seq < theirs.seq)
    {
        return fault(ours);
    }
    if complete {
        failures.extend(
            undeclared
                .iter()
                .filter(|finding| finding.by == Who::Client)
                .map(|finding| of_finding(finding)),
        );
        failures.extend(left(seen.left, &scenario.declares, &mut used));
    }
    if let Some(judgement) = heaviest(seen, &failures, Level::Must, Verdict::Fail) {
        return judgement;
    }
    if let Some(Stop::Untestable(what)) = &seen.stop {
        return Judgement::plain(Verdict::Untestable, what.clone(), scenario.clauses.clone());
    }
    let missing = checks::missing(scenario, seen.trace);
    if !missing.is_empty() {
        let clauses = scenario.clauses.clone();
        let message = "what the case rests on was not seen".to_owned();
        return Judgement {
            expected: Some(missing.join(", ")),
            got: Some("no such event".to_owned()),
            ..Judgement::plain(Verdict::Untestable, message, clauses)
        };
    }
    let unused = scenario
        .declares
        .iter()
        .zip(&used)
        .find(|(_, used)| !**used);
    // What the server comes to break depends on its client. The own harness is what shows that a
    // declaration is needed; with another it may be idle.
    if let (Some((declaration, _)), true, false) = (unused, complete, seen.foreign) {
        let message = format!(
            "the scenario declares that the {} breaks {}, and it did not: take the declaration out",
            name(declaration.by),
            declaration.clause
        );
        return Judgement::plain(Verdict::HarnessError, message, Vec::new());
    }
    if let Some(judgement) = heaviest(seen, &failures, Level::Should, Verdict::Note) {
        return judgement;
    }
    Judgement::plain(Verdict::Pass, String::new(), Vec::new())
}

fn name(who: Who) -> &'static str {
    match who {
        Who::Client => "client",
        Who::Server => "server",
    }
}

/// Whether a finding is one that the scenario wants; its declarations are ticked off.
fn declared(finding: &Finding, declarations: &[Declaration], used: &mut [bool]) -> bool {
    let mut found = false;
    for (declaration, used) in declarations.iter().zip(used) {
        let process = declaration.process;
        if declaration.clause == finding.clause
            && declaration.by == finding.by
            && (process.is_none() || process == finding.process)
        {
            *used = true;
            found = true;
        }
    }
    found
}

fn fault(finding: &Finding) -> Judgement {
    let message = format!(
        "the fake server breaks {} and no declaration says so: {}",
        finding.clause, finding.message
    );
    Judgement {
        expected: Some(finding.expected.clone()),
        got: Some(finding.got.clone()),
        decisive: Some(finding.seq),
        ..Judgement::plain(Verdict::HarnessError, message, Vec::new())
    }
}

fn of_finding(finding: &Finding) -> Failure {
    Failure {
        clauses: vec![finding.clause.clone()],
        message: finding.message.clone(),
        expected: finding.expected.clone(),
        got: finding.got.clone(),
        seq: Some(finding.seq),
    }
}

fn left(left: &Left, declarations: &[Declaration], used: &mut [bool]) -> Vec<Failure> {
    let failure = |what: &str, list: Vec<String>| {
        (!list.is_empty()).then(|| Failure {
            clauses: vec![LEFT.to_owned()],
            message: format!("{what} is left behind: {}", list.join("; ")),
            expected: "nothing left behind".to_owned(),
            got: list.join("; "),
            seq: None,
        })
    };
    let processes: Vec<String> = left
        .processes
        .iter()
        .map(|(pid, line)| format!("{pid} {line}"))
        .collect();
    let mut wanted = false;
    for (declaration, used) in declarations.iter().zip(used) {
        if declaration.by == Who::Server
            && ESCAPES.contains(&declaration.clause.as_str())
            && !processes.is_empty()
        {
            *used = true;
            wanted = true;
        }
    }
    let processes = if wanted { Vec::new() } else { processes };
    [
        failure("a process", processes),
        failure("a temporary file", left.files.clone()),
        failure("a descriptor", left.descriptors.clone()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The verdict on the failures of one level, if there are any: the first tells, all count.
fn heaviest(
    seen: &Seen<'_>,
    failures: &[Failure],
    level: Level,
    verdict: Verdict,
) -> Option<Judgement> {
    let own = &seen.scenario.clauses;
    let of = |failure: &Failure| -> Vec<String> {
        if failure.clauses.is_empty() {
            own.clone()
        } else {
            failure.clauses.clone()
        }
    };
    let weighed: Vec<(&Failure, Vec<String>)> = failures
        .iter()
        .map(|failure| (failure, of(failure)))
        .filter(|(_, clauses)| weight(clauses, seen) == level)
        .collect();
    let (first, _) = weighed.first()?;
    let mut clauses: Vec<String> = Vec::new();
    for clause in weighed.iter().flat_map(|(_, clauses)| clauses) {
        if !clauses.contains(clause) {
            clauses.push(clause.clone());
        }
    }
    let more = match weighed.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(Judgement {
        verdict,
        message: format!("{}{more}", first.message),
        expected: Some(first.expected.clone()),
        got: Some(first.got.clone()),
        clauses,
        watched: Vec::new(),
        decisive: first.seq,
    })
}

/// How much a failure of these clauses weighs: as much as the heaviest of them.
fn weight(clauses: &[String], seen: &Seen<'_>) -> Level {
    let binding = |id: &String| {
        if seen.foreign && seen.scenario.lenient.contains(id) {
            return false;
        }
        Clauses::embedded().get(id).is_none_or(|clause| {
            let policy = |source: &Source| matches!(source, Source::Policy { part: None });
            clause.level == Level::Must && !(seen.foreign && clause.sources.iter().all(policy))
        })
    };
    if clauses.iter().any(binding) {
        Level::Must
    } else {
        Level::Should
    }
}
