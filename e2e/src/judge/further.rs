//! QUA-12, QUA-13 and QUA-14: columns, paths, and whether the first answer was whole.

use dsh_reports::{Case, Verdict, duration};

use super::answers::{
    evidence_of, evidence_of_first, labelled, labelled_only_id, openable, shape_of, unread,
};
use super::handshake::advertised;
use super::{Asked, Knowledge, Observed};
use crate::probes::Probe;
use crate::readiness::{Answer, End};
use crate::samples::{Operation, Part};

/// QUA-12.
pub(super) fn columns(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let lacking = "the sample has no question behind a character outside the basic plane";
    each(probe, seen, seen.columns, Part::Columns, lacking)
}

/// QUA-13. Places are compared by the path that a URI names, in whatever spelling of it.
pub(super) fn paths(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let lacking = "the sample has no file with a space and letters outside ASCII in its path";
    each(probe, seen, seen.paths, Part::Paths, lacking)
}

/// One case a question, or one that says why there is none.
fn each(probe: &Probe, seen: &Observed<'_>, all: &[Asked], part: Part, lacking: &str) -> Vec<Case> {
    let result = match openable(probe, seen) {
        Ok(result) => result,
        Err(case) => return vec![*case],
    };
    if seen.knowledge != Knowledge::Known || all.is_empty() {
        return vec![probe.case(Verdict::NotApplicable, seen.lacking(part, lacking))];
    }
    let offered: Vec<&Asked> = all
        .iter()
        .filter(|asked| advertised(&result, asked.operation))
        .collect();
    if offered.is_empty() {
        let said = "none of the operations it is asked by is advertised";
        return vec![probe.case(Verdict::NotApplicable, said)];
    }
    offered
        .into_iter()
        .filter_map(|asked| one(probe, seen, asked))
        .collect()
}

fn one(probe: &Probe, seen: &Observed<'_>, asked: &Asked) -> Option<Case> {
    let end = asked.track.end()?;
    let said = match end {
        End::Stable => {
            let mut case = probe.case(Verdict::Pass, shape_of(seen, asked));
            case.duration_us = asked.track.last().map(|reply| reply.latency_us);
            return Some(labelled(case, &asked.label));
        }
        // What goes wrong with plain characters too says nothing about these.
        _ if !plainly(seen, asked.operation) => {
            let said = format!(
                "{} was not answered right where nothing is odd",
                asked.operation
            );
            return Some(labelled(
                probe.case(Verdict::Untestable, said),
                &asked.label,
            ));
        }
        End::Budget => match asked.track.last().map(|reply| &reply.answer) {
            Some(Answer::Silent) => "no answer".to_owned(),
            Some(Answer::Other(name)) => format!("answered with {name}"),
            _ => "not answered right three times running".to_owned(),
        },
        End::Died(how) => format!("the server died: {how}"),
        End::Unread(how) => unread(how),
        End::Refused(why) => {
            let case = probe.case(Verdict::HarnessError, format!("not asked: {why}"));
            return Some(labelled(case, &asked.label));
        }
    };
    let expected = format!("at {}: {}", asked.place, asked.expected);
    let mut case = probe.missed(said, &expected);
    case.got = Some(got(asked));
    case.evidence = evidence_of(seen, asked);
    Some(labelled(case, &asked.label))
}

fn plainly(seen: &Observed<'_>, operation: Operation) -> bool {
    seen.questions
        .iter()
        .any(|asked| asked.operation == operation && asked.track.end() == Some(&End::Stable))
}

fn got(asked: &Asked) -> String {
    let detail = asked.track.last().and_then(|reply| reply.detail.as_ref());
    match detail {
        Some(detail) => format!("{} (last: {detail})", asked.track.summary()),
        None => asked.track.summary(),
    }
}

/// QUA-14.
pub(super) fn complete(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let result = match openable(probe, seen) {
        Ok(result) => result,
        Err(case) => return vec![*case],
    };
    let not_applicable = |said: &str| vec![probe.case(Verdict::NotApplicable, said)];
    if !advertised(&result, Operation::FindReferences) {
        return not_applicable("referencesProvider is not advertised");
    }
    let asked = || {
        seen.questions
            .iter()
            .filter(|asked| asked.operation == Operation::FindReferences)
    };
    if seen.knowledge != Knowledge::Known || asked().next().is_none() {
        return not_applicable("which references there are is not known");
    }
    let mut cases: Vec<Case> = asked()
        .filter_map(|asked| from_the_first(probe, seen, asked))
        .collect();
    if let [only] = cases.as_mut_slice() {
        probe.clause.clone_into(&mut only.id);
    }
    cases
}

fn from_the_first(probe: &Probe, seen: &Observed<'_>, asked: &Asked) -> Option<Case> {
    let track = &asked.track;
    let end = track.end()?;
    let wrong = track.first_wrong();
    let said = match (end, wrong, track.first_right_us()) {
        (End::Stable, None, first) => {
            let said = format!(
                "every reference in the first answer, {} after the start",
                duration(first.unwrap_or_default())
            );
            return Some(labelled_only_id(
                probe.case(Verdict::Pass, said),
                &asked.label,
            ));
        }
        (End::Stable, Some(wrong), Some(first)) => format!(
            "every reference after {}, stable after {}; before that {}",
            duration(first),
            duration(track.stable_us().unwrap_or(first)),
            wrong.answer
        ),
        (End::Refused(why), ..) => {
            let case = probe.case(Verdict::HarnessError, format!("not asked: {why}"));
            return Some(labelled_only_id(case, &asked.label));
        }
        _ => format!(
            "not every reference, three times running, within {}",
            seen.limit()
        ),
    };
    let expected = format!("in the first answer at {}: {}", asked.place, asked.expected);
    let mut case = probe.missed(said, &expected);
    case.got = Some(got(asked));
    case.evidence = evidence_of_first(seen, asked);
    Some(labelled_only_id(case, &asked.label))
}
