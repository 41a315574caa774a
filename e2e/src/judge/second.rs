//! QUA-10, QUA-16 and QUA-18: questions given up, the server killed, files changed behind its back.

use dsh_reports::{Case, Verdict, duration};
use dsh_transcript::{Direction, Event, EventBody, Exchange, Frame, View};

use super::answers::{evidence_of, labelled_only_id, unread};
use super::handshake::advertised;
use super::{Knowledge, Observed, counted};
use crate::life::{ChangedOnDisk, GIVEN_UP, Killed};
use crate::probes::Probe;
use crate::readiness::{Answer, End, Track};
use crate::samples::Part;
use crate::time::micros;

/// A question that was given up.
struct GivenUp<'a> {
    /// The `$/cancelRequest`; none if the answer came before it could be sent.
    cancel: Option<&'a Event>,
    exchange: Option<Exchange<'a>>,
}

/// QUA-10.
pub(super) fn given_up(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    if let Err(case) = seen.second(probe) {
        return vec![*case];
    }
    let all = all_given_up(seen.whole);
    let pending: Vec<(&Event, Option<Exchange<'_>>)> = all
        .iter()
        .filter_map(|given_up| Some((given_up.cancel?, given_up.exchange)))
        .collect();
    let Some((first, _)) = pending.first() else {
        let case = if all.is_empty() {
            probe.case(Verdict::Untestable, "no question was given up")
        } else {
            let said = format!(
                "{} answered before they could be cancelled",
                counted(all.len(), "question")
            );
            probe.case(Verdict::NotApplicable, said)
        };
        return vec![case];
    };
    let expected = format!("an answer within {}", duration(seen.grace_us));
    let mut longest = 0;
    let mut how = None;
    for (cancel, exchange) in &pending {
        let answer = exchange.and_then(|exchange| exchange.answer);
        let took = answer.map(|answer| answer.at_us.saturating_sub(cancel.at_us));
        let said = match took {
            None => format!("not answered within {}", duration(seen.grace_us)),
            Some(took) if took > seen.grace_us => format!("answered after {}", duration(took)),
            Some(took) => {
                longest = longest.max(took);
                how = how.or(exchange.map(|exchange| answered_with(&exchange)));
                continue;
            }
        };
        let mut case = probe.missed(said, &expected);
        case.evidence = seen.around(cancel.seq);
        return vec![case];
    }
    let how = how.unwrap_or_else(|| format!("see #{}", first.seq));
    let said = format!("{} × answered with {how}", pending.len());
    let mut case = probe.case(Verdict::Pass, said);
    case.duration_us = Some(longest);
    vec![case]
}

fn answered_with(exchange: &Exchange<'_>) -> String {
    match exchange.error() {
        Some(error) => format!("error {}", error["code"]),
        None => "its result".to_owned(),
    }
}

/// Each question that was given up, with what was said on the wire up to the next.
fn all_given_up(events: &[Event]) -> Vec<GivenUp<'_>> {
    let marks: Vec<&Event> = View(events).notes(GIVEN_UP).collect();
    marks
        .iter()
        .enumerate()
        .map(|(index, mark)| {
            let end = marks.get(index + 1).map_or(u64::MAX, |next| next.seq);
            // The answer may come while the cancellation is on its way, and then none is sent; the
            // next question is asked behind the end of this one.
            let next_open = events.iter().find(|event| {
                event.seq > mark.seq && event.is_message(Direction::ToServer, "didOpen")
            });
            let end = next_open.map_or(end, |open| open.seq.min(end));
            let cancel = events.iter().find(|event| {
                event.process == mark.process
                    && (mark.seq..end).contains(&event.seq)
                    && event.is_message(Direction::ToServer, "$/cancelRequest")
            });
            let id = cancel.and_then(|cancel| cancel.frame()?.at("/params/id"));
            let exchange = mark.process.and_then(|process| {
                View(events)
                    .exchanges(process, Direction::ToServer)
                    .into_iter()
                    .find(|exchange| {
                        let own = exchange.request.frame().and_then(Frame::id);
                        id.is_some() && own.map(|id| &id.0) == id.as_ref()
                    })
            });
            GivenUp { cancel, exchange }
        })
        .collect()
}

/// QUA-16.
pub(super) fn replaced(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let life = match seen.second(probe) {
        Ok(life) => life,
        Err(case) => return vec![*case],
    };
    match (&life.killed, &life.not_killed) {
        (Some(killed), _) => after_the_kill(probe, seen, killed).into_iter().collect(),
        (None, Some(reason)) => vec![probe.case(Verdict::NotApplicable, reason.as_str())],
        (None, None) => vec![probe.case(Verdict::Untestable, "it was not killed")],
    }
}

fn after_the_kill(probe: &Probe, seen: &Observed<'_>, killed: &Killed) -> Option<Case> {
    let behind = || seen.whole.iter().filter(|event| event.seq > killed.seq);
    let died = behind().find(|event| {
        event.process == Some(killed.process)
            && matches!(event.body, EventBody::ProcessEnded { .. })
    });
    let last = View(seen.whole)
        .exchanges(killed.process, Direction::ToServer)
        .into_iter()
        .rfind(|exchange| exchange.request.seq < killed.seq);
    let pending =
        last.is_some_and(|exchange| exchange.answer.is_none_or(|answer| answer.seq > killed.seq));
    if died.is_none() {
        return Some(probe.case(Verdict::HarnessError, "it was killed and did not end"));
    }
    if !pending {
        let said = "no question was pending when it was killed";
        return Some(probe.case(Verdict::Untestable, said));
    }
    let replacement = behind().find(|event| matches!(event.body, EventBody::ProcessStarted { .. }));
    let track = &killed.asked.track;
    let end = track.end()?;
    let expected = format!(
        "from a replacement, at {}: {}",
        killed.asked.place, killed.asked.expected
    );
    let other = track
        .first_wrong()
        .filter(|_| seen.knowledge != Knowledge::Known);
    let said = match (replacement, end, other) {
        (None, ..) => "no replacement was started".to_owned(),
        (Some(_), End::Stable, _) if track.died() => {
            "its replacement died, and another one gave the same answer".to_owned()
        }
        (Some(_), End::Stable, None) => {
            let took = replaced_us(seen.whole, killed);
            let mut said = "its replacement gave the same answer".to_owned();
            if let Some(wrong) = track.first_wrong() {
                said = format!("{said}, before that {}", wrong.answer);
            }
            let mut case = probe.case(Verdict::Pass, said);
            case.duration_us = took;
            return Some(case);
        }
        (Some(_), End::Stable, Some(_)) => "its replacement gave another answer".to_owned(),
        (Some(_), End::Budget, _) => format!(
            "its replacement did not {} within {}",
            if track.is_known() {
                "answer right"
            } else {
                "give the same answer"
            },
            seen.limit()
        ),
        (Some(_), End::Died(how), _) => format!("its replacement died: {how}"),
        (Some(_), End::Unread(how), _) => unread(how),
        (Some(_), End::Refused(why), _) => {
            return Some(probe.case(Verdict::HarnessError, format!("not asked: {why}")));
        }
    };
    let mut case = probe.missed(said, &expected);
    case.got = Some(track.summary());
    case.evidence = seen.around(replacement.map_or(killed.seq, |event| event.seq));
    Some(case)
}

/// From the kill to the first right answer of the replacement.
pub(crate) fn replaced_us(events: &[Event], killed: &Killed) -> Option<u64> {
    let track = &killed.asked.track;
    let at_us = events
        .iter()
        .find(|event| event.seq == killed.seq)
        .map(|event| event.at_us)?;
    Some((track.began_us()? + track.first_right_us()?).saturating_sub(at_us))
}

/// QUA-18: one case a changed file.
pub(super) fn changed(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let result = match seen.initialized(probe) {
        Ok(result) => result,
        Err(case) => return vec![*case],
    };
    let life = match seen.second(probe) {
        Ok(life) => life,
        Err(case) => return vec![*case],
    };
    if seen.knowledge != Knowledge::Known || life.changed.is_empty() {
        let said = "no file that changes on disk, with a known answer, is known";
        let said = seen.lacking(Part::Changed, said);
        return vec![probe.case(Verdict::NotApplicable, said)];
    }
    let offered: Vec<&ChangedOnDisk> = life
        .changed
        .iter()
        .filter(|changed| advertised(&result, changed.asked.operation))
        .collect();
    if offered.is_empty() {
        let said = "none of the operations it is asked by is advertised";
        return vec![probe.case(Verdict::NotApplicable, said)];
    }
    let mut cases: Vec<Case> = offered
        .into_iter()
        .filter_map(|changed| behind_its_back(probe, seen, changed))
        .collect();
    if let [only] = cases.as_mut_slice() {
        probe.clause.clone_into(&mut only.id);
    }
    cases
}

fn behind_its_back(probe: &Probe, seen: &Observed<'_>, changed: &ChangedOnDisk) -> Option<Case> {
    let asked = &changed.asked;
    let label = |case| Some(labelled_only_id(case, &asked.label));
    match changed.before.as_ref().map(|before| &before.answer) {
        None => {
            let said = format!(
                "{} was not answered right before {} changed",
                asked.operation, changed.file
            );
            return label(probe.case(Verdict::Untestable, said));
        }
        Some(Answer::Right) => {
            let said = format!("{} did not make a difference", changed.file);
            return label(probe.case(Verdict::HarnessError, said));
        }
        Some(_) => {}
    }
    let limit = duration(micros(changed.limit));
    let said = match asked.track.end()? {
        End::Stable => return label(probe.case(Verdict::Pass, seen_when(&asked.track))),
        End::Budget if last_is_right(&asked.track) => {
            return label(probe.case(Verdict::Pass, seen_when(&asked.track)));
        }
        End::Budget => match &changed.opened {
            Some(opened) if last_is_right(&opened.track) => {
                format!("not seen within {limit}, only once the file was opened and closed")
            }
            Some(opened) if opened.track.end().is_none() => return None,
            Some(_) => {
                format!("not seen within {limit}, nor once the file was opened and closed")
            }
            None => format!("not seen within {limit}"),
        },
        End::Died(how) => format!("the server died: {how}"),
        End::Unread(how) => unread(how),
        End::Refused(why) => {
            return label(probe.case(Verdict::HarnessError, format!("not asked: {why}")));
        }
    };
    let expected = format!(
        "with the new text of {}, at {}: {}",
        changed.file, asked.place, asked.expected
    );
    let mut case = probe.missed(said, &expected);
    case.got = Some(asked.track.summary());
    case.evidence = evidence_of(seen, asked);
    label(case)
}

fn seen_when(track: &Track) -> String {
    match track.first_wrong() {
        None => "another file's change seen at once".to_owned(),
        Some(wrong) => format!(
            "another file's change seen after {}, before that {}",
            duration(track.first_right_us().unwrap_or_default()),
            wrong.answer
        ),
    }
}

fn last_is_right(track: &Track) -> bool {
    track
        .last()
        .is_some_and(|last| last.answer == Answer::Right)
}
