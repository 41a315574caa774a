//! Putting together what was judged.

use dsh_reports::{
    Case, ClauseRef, Conclusion, OperationTimeline, Run, Selection, TranscriptRef, Verdict,
};
use dsh_scenarios::{Clause, Clauses, Profile};
use dsh_transcript::{Direction, EventBody, View};

use super::Check;
use crate::judge::{Knowledge, Observed, said_something};
use crate::measure;
use crate::probes::{Probe, probe_of};
use crate::time::millis;

/// What no clause judges.
pub(super) struct Told<'a> {
    pub(super) remarks: &'a [String],
    pub(super) unmounted: Option<&'a str>,
    pub(super) undisposed: Option<&'a str>,
}

pub(super) fn assemble(
    check: &Check<'_>,
    seen: &Observed<'_>,
    mut cases: Vec<Case>,
    told: &Told<'_>,
    selection: Selection,
) -> Run {
    for case in &mut cases {
        let decided_badly = case.verdict.is_red() || case.verdict == Verdict::Note;
        if decided_badly {
            let clause = case.clauses.first().map_or("", String::as_str);
            case.reproduce = Some(format!("{} --only {clause}", check.options.reproduce));
        }
    }
    let mut subject = check.target.subject();
    if subject.version.is_none() {
        subject.version = told_version(seen);
    }
    if let Some(program) = started_program(seen) {
        subject.path = Some(program);
    }
    let mut remarks = check.target.remarks.clone();
    remarks.extend(check.place.remark());
    if seen.knowledge == Knowledge::Shape
        && seen
            .questions
            .iter()
            .any(|asked| asked.track.last().is_some())
    {
        let said = if said_something(seen.events) {
            "Answers were judged for shape: what is right at these places is not known."
        } else {
            "No answer at the places of --at said anything, so nothing is known of the server but \
             that it keeps the protocol. Give a place with a name on it, in a workspace that the \
             server understands, or the settings it needs (see --catalogue)."
        };
        remarks.push(said.to_owned());
    }
    remarks.extend(told.remarks.iter().cloned());
    remarks.extend(
        told.undisposed
            .map(|error| format!("the end was not in order: {error}")),
    );
    let mut run = Run::new(subject);
    run.profiles = vec!["server".to_owned()];
    run.sample = check.place.sample();
    run.budget_ms = Some(millis(check.options.budget));
    run.duration_us = seen.whole.last().map_or(0, |event| event.at_us);
    run.cases = cases;
    run.operations = timelines(seen);
    run.measured = measure::measured(seen);
    run.remarks = remarks;
    let not_run = |probe: Option<&Probe>| match (probe, told.unmounted, selection) {
        (None, _, _) => "there is no probe for it yet",
        (Some(_), Some(_), _) => "the server was not started",
        (Some(_), None, Selection::Interrupted) => "interrupted before it could be judged",
        (Some(_), None, Selection::Some) => "not asked for",
        (Some(_), None, Selection::All) => "nothing was judged",
    };
    let clauses: Vec<ClauseRef> = Clauses::embedded()
        .of_profile(Profile::Server)
        // The statements of LSP are told by words; what of them can be probed, the clauses say too.
        .filter(|clause| !clause.id.contains('/'))
        .map(|clause| clause_ref(clause, not_run(probe_of(&clause.id))))
        .collect();
    run.conclude(&clauses, selection);
    if let Some(reason) = told.unmounted {
        run.conclusion = if selection == Selection::Interrupted {
            Conclusion::Interrupted
        } else {
            Conclusion::Untestable {
                reason: reason.to_owned(),
                musts: Vec::new(),
            }
        };
    }
    run
}

fn clause_ref(clause: &Clause, not_run: &str) -> ClauseRef {
    ClauseRef {
        id: clause.id.clone(),
        level: clause.level.into(),
        profiles: vec![Profile::Server.to_string()],
        statement: clause.statement.clone(),
        not_run: not_run.to_owned(),
    }
}

fn timelines(seen: &Observed<'_>) -> Vec<OperationTimeline> {
    seen.questions
        .iter()
        .filter_map(|asked| asked.track.timeline())
        .collect()
}

/// The executable that was started, found on PATH where only its name was given.
fn started_program(seen: &Observed<'_>) -> Option<String> {
    seen.whole.iter().find_map(|event| match &event.body {
        EventBody::ProcessStarted { argv, .. } => argv.first().cloned(),
        _ => None,
    })
}

/// The version that the server itself tells in its answer to `initialize`.
fn told_version(seen: &Observed<'_>) -> Option<String> {
    let view = View(seen.whole);
    view.processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .filter(|exchange| exchange.method() == "initialize")
        .find_map(|exchange| exchange.result())?
        .pointer("/serverInfo/version")?
        .as_str()
        .map(str::to_owned)
}

/// Names the transcript in the run and in every case that somebody has to look at.
pub(super) fn refer_to(run: &mut Run, path: &str) {
    run.transcript = Some(path.to_owned());
    for case in &mut run.cases {
        if case.verdict.is_red() || case.verdict == Verdict::Note {
            let seq = case
                .evidence
                .iter()
                .find(|event| event.decisive)
                .map(|event| event.seq);
            case.transcript = Some(TranscriptRef {
                path: path.to_owned(),
                seq,
            });
        }
    }
}
