//! QUA-4 and QUA-5: whether the known answers came.

use dsh_reports::{Case, Evidence, Verdict, duration};
use dsh_transcript::{Direction, Event, EventBody, Exchange, View};
use serde_json::Value;

use super::handshake::{advertised, method, provider, sync_is_compatible, with_answer};
use super::{Asked, Knowledge, Observed, said_something, unknown};
use crate::probes::Probe;
use crate::readiness::{Answer, End};
use crate::samples::Operation;
use crate::shape;

/// The setting of the host that bounds one message.
pub(super) const MESSAGE_BOUND: &str = "maxMessageBytes";

/// QUA-4: one case an operation, or a question where an operation has several.
pub(super) fn known(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let result = match openable(probe, seen) {
        Ok(result) => result,
        Err(case) => return vec![*case],
    };
    if !Operation::ALL
        .into_iter()
        .any(|operation| advertised(&result, operation))
    {
        let expected = "at least one of goToDefinition, findReferences, goToImplementation, hover";
        let case = probe.missed("none of the four operations is advertised", expected);
        return vec![with_answer(seen, case)];
    }
    let mut cases = match seen.knowledge {
        Knowledge::Known | Knowledge::Shape => each(probe, seen, &result),
        Knowledge::Nothing | Knowledge::Found => unknown::unanswered(probe, seen, &result),
    };
    let crash = unknown::crashed(probe, seen);
    cases.extend(crash.filter(|_| cases.iter().all(|case| case.verdict != Verdict::Crash)));
    let nothing = seen.knowledge == Knowledge::Shape && !said_something(seen.events);
    for case in &mut cases {
        if nothing && case.verdict == Verdict::Pass {
            case.verdict = Verdict::NotApplicable;
            case.message = format!(
                "{}, like every answer there: what knows nothing answers alike",
                case.message
            );
        }
    }
    if cases.is_empty() {
        let said = if seen.knowledge == Knowledge::Found {
            "what is right at the places that were found is not known; give --at FILE:LINE:COL"
        } else {
            "no position is known; give --at FILE:LINE:COL"
        };
        cases.push(probe.case(Verdict::NotApplicable, said));
    }
    cases
}

/// The cases of each operation.
fn each(probe: &Probe, seen: &Observed<'_>, result: &Value) -> Vec<Case> {
    Operation::ALL
        .into_iter()
        .flat_map(|operation| {
            if advertised(result, operation) {
                asked(probe, seen, operation)
            } else {
                let said = format!("{} is not advertised", provider(operation));
                vec![labelled(
                    probe.case(Verdict::NotApplicable, said),
                    operation.name(),
                )]
            }
        })
        .collect()
}

fn asked(probe: &Probe, seen: &Observed<'_>, operation: Operation) -> Vec<Case> {
    let mut cases: Vec<Case> = seen
        .questions
        .iter()
        .filter(|asked| asked.operation == operation)
        .filter_map(|asked| answered(probe, seen, asked))
        .collect();
    if !seen
        .questions
        .iter()
        .any(|asked| asked.operation == operation)
    {
        let said = "advertised, but the sample has no known answer for it";
        cases.push(labelled(
            probe.case(Verdict::NotApplicable, said),
            operation.name(),
        ));
    }
    cases
}

pub(super) fn labelled(mut case: Case, label: &str) -> Case {
    case.id = format!("{}/{}", case.id, label.replace(' ', ""));
    case.label = Some(label.to_owned());
    case
}

/// The case of one question; none if the run was interrupted before it was decided.
fn answered(probe: &Probe, seen: &Observed<'_>, asked: &Asked) -> Option<Case> {
    let track = &asked.track;
    let budget = seen.budget();
    let mut case = match track.end()? {
        End::Stable => {
            let mut case = probe.case(Verdict::Pass, shape_of(seen, asked));
            case.duration_us = track.last().map(|reply| reply.latency_us);
            return Some(labelled(case, &asked.label));
        }
        End::Budget => probe.case(Verdict::Timeout, unfinished(asked, &budget)),
        End::Died(how) => probe.case(Verdict::Crash, format!("the server died: {how}")),
        End::Unread(how) => probe.missed(unread(how), ""),
        End::Refused(why) => probe.case(Verdict::HarnessError, format!("not asked: {why}")),
    };
    case.expected = Some(match seen.knowledge {
        Knowledge::Known => format!(
            "at {}: {}, three times running",
            asked.place, asked.expected
        ),
        _ => format!("at {}: the same answer three times running", asked.place),
    });
    let first = track.first_wrong().and_then(|heard| heard.detail.as_ref());
    let last = track.last().and_then(|reply| reply.detail.as_ref());
    case.got = Some(match last.or(first) {
        Some(detail) => format!("{} (last: {detail})", track.summary()),
        None => track.summary(),
    });
    case.evidence = evidence_of(seen, asked);
    Some(labelled(case, &asked.label))
}

/// What to say where the budget ended: never that there were no results.
fn unfinished(asked: &Asked, budget: &str) -> String {
    let track = &asked.track;
    match (
        track.last().map(|reply| &reply.answer),
        track.first_right_us(),
    ) {
        (Some(Answer::Silent), None) => format!("no answer: {budget} ended"),
        (_, Some(first)) if track.is_known() => format!(
            "right after {}, but not three times running when {budget} ended",
            duration(first)
        ),
        (_, Some(first)) => format!(
            "answered after {}, but not the same three times running when {budget} ended",
            duration(first)
        ),
        (_, None) if track.is_known() => format!("{budget} ended before the known answer came"),
        (_, None) => format!("{budget} ended before a result came"),
    }
}

/// The last exchange that was part of asking a question, from the raw frames.
fn last_exchange<'a>(seen: &Observed<'a>, asked: &Asked) -> Option<Exchange<'a>> {
    let upto = asked.track.last()?.seq;
    let method = method(asked.operation);
    let view = View(seen.whole);
    view.processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .filter(|exchange| exchange.method() == method && exchange.request.seq <= upto)
        .max_by_key(|exchange| exchange.request.seq)
}

/// What the last answer to a question was made of.
pub(super) fn shape_of(seen: &Observed<'_>, asked: &Asked) -> String {
    last_exchange(seen, asked)
        .and_then(|exchange| shape::judge(exchange.method(), exchange.result().as_ref()).ok())
        .map_or_else(|| "answered".to_owned(), |shape| shape.to_string())
}

/// What was seen around the first answer to a question of this kind.
pub(super) fn evidence_of_first(seen: &Observed<'_>, asked: &Asked) -> Vec<Evidence> {
    let view = seen.view();
    let first = view
        .processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .find(|exchange| exchange.method() == method(asked.operation));
    first.map_or_else(Vec::new, |exchange| {
        seen.around(exchange.answer.unwrap_or(exchange.request).seq)
    })
}

pub(super) fn evidence_of(seen: &Observed<'_>, asked: &Asked) -> Vec<Evidence> {
    match last_exchange(seen, asked) {
        Some(exchange) => seen.around(exchange.answer.unwrap_or(exchange.request).seq),
        None => asked
            .track
            .last()
            .map_or_else(Vec::new, |reply| seen.around(reply.seq)),
    }
}

/// QUA-5: one case a changed text.
pub(super) fn reopened(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let result = match openable(probe, seen) {
        Ok(result) => result,
        Err(case) => return vec![*case],
    };
    if seen.knowledge != Knowledge::Known {
        let said = "no changed text with a known answer is known";
        return vec![probe.case(Verdict::NotApplicable, said)];
    }
    let mut cases: Vec<Case> = seen
        .reopened
        .iter()
        .filter(|asked| advertised(&result, asked.operation))
        .filter_map(|asked| changed(probe, seen, asked))
        .collect();
    if let [only] = cases.as_mut_slice() {
        probe.clause.clone_into(&mut only.id);
    }
    if seen.reopened.is_empty() {
        let said = "the sample has no changed text for an advertised operation";
        cases.push(probe.case(Verdict::Untestable, said));
    }
    cases
}

fn changed(probe: &Probe, seen: &Observed<'_>, asked: &Asked) -> Option<Case> {
    let Some(file) = asked.reopened.as_deref() else {
        let said = format!("{}: the question is about no changed file", asked.label);
        return Some(labelled(
            probe.case(Verdict::HarnessError, said),
            &asked.label,
        ));
    };
    let before = seen.questions.iter().any(|question| {
        question.operation == asked.operation && question.track.end() == Some(&End::Stable)
    });
    if !before {
        let said = format!(
            "{} was not answered right before the text changed",
            asked.operation
        );
        return Some(labelled(
            probe.case(Verdict::Untestable, said),
            &asked.label,
        ));
    }
    let track = &asked.track;
    let end = track.end()?;
    if let Err(fault) = opened_with_its_version(seen, file) {
        return Some(labelled(
            probe.case(Verdict::HarnessError, fault),
            &asked.label,
        ));
    }
    let budget = seen.budget();
    let mut case = match end {
        End::Stable => {
            let said = match track.first_wrong() {
                None => format!("{} from the new text at once", asked.operation),
                Some(wrong) => format!(
                    "{} from the new text after {}, before that {}",
                    asked.operation,
                    duration(track.first_right_us().unwrap_or_default()),
                    wrong.answer
                ),
            };
            let mut case = probe.case(Verdict::Pass, said);
            case.duration_us = track.last().map(|reply| reply.latency_us);
            return Some(labelled_only_id(case, &asked.label));
        }
        End::Budget if track.last().map(|reply| &reply.answer) == Some(&Answer::Silent) => {
            probe.case(Verdict::Timeout, format!("no answer: {budget} ended"))
        }
        End::Budget => probe.missed(
            format!("not answered from the new text when {budget} ended"),
            "",
        ),
        End::Died(how) => probe.case(Verdict::Crash, format!("the server died: {how}")),
        End::Unread(how) => probe.missed(unread(how), ""),
        End::Refused(why) => probe.case(Verdict::HarnessError, format!("not asked: {why}")),
    };
    case.expected = Some(format!(
        "at {} of the new text: {}",
        asked.place, asked.expected
    ));
    let detail = track.last().and_then(|reply| reply.detail.as_ref());
    case.got = Some(match detail {
        Some(detail) => format!("{} (last: {detail})", track.summary()),
        None => track.summary(),
    });
    case.evidence = evidence_of(seen, asked);
    Some(labelled_only_id(case, &asked.label))
}

/// What to say where the host could not read on: a message may break the protocol, or only be longer
/// than the host takes, which is a bound of ours and no death of the server.
pub(super) fn unread(how: &str) -> String {
    if how.contains(MESSAGE_BOUND) {
        format!("longer than the host takes, whose bound is {MESSAGE_BOUND}: {how}")
    } else {
        format!("what came could not be read: {how}")
    }
}

pub(super) fn labelled_only_id(mut case: Case, label: &str) -> Case {
    case.id = format!("{}/{}", case.id, label.replace(' ', ""));
    case
}

/// The first open behind the change carried version 1, or a later one where versions rise; anything
/// else is our own fault.
fn opened_with_its_version(seen: &Observed<'_>, file: &str) -> Result<(), String> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let changed =
        |event: &&Event| matches!(&event.body, EventBody::FileChanged { path, .. } if path == file);
    let Some(change) = seen.events.iter().rev().find(changed) else {
        return Err(format!("{file} was never changed"));
    };
    let open = seen
        .events
        .iter()
        .filter(|event| event.seq > change.seq)
        .find(|event| {
            event.is_message(Direction::ToServer, "textDocument/didOpen")
                && event
                    .frame()
                    .and_then(|frame| frame.at("/params/textDocument/uri"))
                    .is_some_and(|uri| {
                        uri.as_str()
                            .is_some_and(|uri| uri.ends_with(&encoded(name)))
                    })
        });
    match open
        .and_then(Event::frame)
        .and_then(|frame| frame.at("/params/textDocument/version"))
    {
        Some(version) if version == 1 && !seen.rising => Ok(()),
        Some(version) if version.as_i64().is_some_and(|version| version > 1) && seen.rising => {
            Ok(())
        }
        Some(version) if seen.rising => Err(format!(
            "{file} was opened again with version {version}, though versions rise"
        )),
        Some(version) => Err(format!(
            "{file} was opened again with version {version}, not 1"
        )),
        None => Err(format!("{file} was not opened again after it was changed")),
    }
}

/// A file name as the end of a URI; sample files have plain names, so only blanks differ.
fn encoded(name: &str) -> String {
    name.replace(' ', "%20")
}

/// The result of `initialize` where documents can be opened, or the case that says they cannot.
pub(super) fn openable(probe: &Probe, seen: &Observed<'_>) -> Result<serde_json::Value, Box<Case>> {
    let result = seen.initialized(probe)?;
    if sync_is_compatible(&result) {
        Ok(result)
    } else {
        let said = "documents cannot be opened transiently, see QUA-3";
        Err(Box::new(probe.case(Verdict::Untestable, said)))
    }
}
