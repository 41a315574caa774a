//! What the report holds of a server beside its cases: how soon it told the truth, what many
//! questions did to it, how it took a kill, what it wrote.

use dsh_reports::{Ending, Measured, OperationTimeline, Start, StartKind, duration};
use dsh_transcript::{Direction, Event, EventBody};

use crate::judge::{Observed, replaced_us};
use crate::life::Killed;

/// What was measured; none if nothing was.
pub(crate) fn measured(seen: &Observed<'_>) -> Option<Measured> {
    let measured = Measured {
        starts: cold(seen).into_iter().collect(),
        cycles: seen
            .life
            .rounds
            .iter()
            .filter_map(|rounds| rounds.measured(seen.whole))
            .collect(),
        ends: seen
            .life
            .killed
            .iter()
            .filter_map(|killed| sigkill(seen.whole, killed))
            .collect(),
        written: seen.written.written.clone(),
        ..Measured::default()
    };
    (measured != Measured::default()).then_some(measured)
}

/// The first start, which finds nothing of an earlier one.
fn cold(seen: &Observed<'_>) -> Option<Start> {
    let view = seen.view();
    let started = seen
        .events
        .iter()
        .find(|event| matches!(event.body, EventBody::ProcessStarted { .. }))?;
    let initialized = view
        .exchanges(started.process?, Direction::ToServer)
        .into_iter()
        .find(|exchange| exchange.method() == "initialize")
        .and_then(|exchange| exchange.answer);
    let operations: Vec<OperationTimeline> = seen
        .questions
        .iter()
        .filter_map(|asked| {
            let began = asked.track.began_us()?;
            // The first question starts the process, a moment after it was asked.
            let earlier = started.at_us.saturating_sub(began);
            Some(moved(asked.track.timeline()?, earlier))
        })
        .collect();
    if operations.is_empty() {
        return None;
    }
    Some(Start {
        kind: StartKind::Cold,
        initialized_us: initialized.map(|answer| answer.at_us.saturating_sub(started.at_us)),
        summary: advice(&operations),
        operations,
        signals: Vec::new(),
    })
}

/// The same times, counted from a moment that is so much later.
fn moved(mut timeline: OperationTimeline, later: u64) -> OperationTimeline {
    let shift = |at: &mut u64| *at = at.saturating_sub(later);
    shift(&mut timeline.asked_us);
    timeline.first_right_us.as_mut().map(shift);
    timeline.stable_us.as_mut().map(shift);
    for heard in &mut timeline.heard {
        shift(&mut heard.from_us);
        shift(&mut heard.until_us);
    }
    timeline
}

/// How long a first answer may take before it is worth a word, in microseconds.
const SLOW: u64 = 1_000_000;

/// The sentence that an author of a client needs.
pub(crate) fn advice(operations: &[OperationTimeline]) -> String {
    let never: Vec<&str> = operations
        .iter()
        .filter(|timeline| timeline.stable_us.is_none())
        .map(|timeline| timeline.operation.as_str())
        .collect();
    let settled = || {
        operations
            .iter()
            .filter(|timeline| timeline.stable_us.is_some())
    };
    let early = settled()
        .filter_map(|timeline| Falsehood::of(timeline, false))
        .max_by_key(|falsehood| falsehood.lasted_us);
    let late = settled()
        .filter_map(|timeline| Falsehood::of(timeline, true))
        .max_by_key(|falsehood| falsehood.until_us);
    let first = settled()
        .filter_map(|timeline| timeline.first_right_us)
        .max();
    let mut said = match (&early, &late, first) {
        (Some(early), None, _) => format!("A client that does not wait sees {early}"),
        (Some(early), Some(late), _) => format!(
            "A client that does not wait sees {early}, then {} between right answers up to {}",
            late.kind,
            duration(late.until_us)
        ),
        (None, Some(late), _) => format!("The first answers are right, then come {late}"),
        (None, None, Some(first)) if first > SLOW => format!(
            "No answer was false, but the first take up to {}: a shorter timeout gets none",
            duration(first)
        ),
        (None, None, Some(_)) => {
            "The first answers are right: there is nothing to wait for".to_owned()
        }
        (None, None, None) => String::new(),
    };
    if !never.is_empty() {
        if !said.is_empty() {
            said.push_str(". ");
        }
        said.push_str("Waiting does not help: no steady right answer to ");
        said.push_str(&never.join(", "));
    }
    if !said.is_empty() {
        said.push('.');
    }
    said
}

/// Answers to one operation that were not right.
struct Falsehood<'a> {
    operation: &'a str,
    /// What most of them were.
    kind: &'static str,
    /// From the first of them to the right answer that ended them, or to the last.
    lasted_us: u64,
    /// When the last came, since the operation was asked first.
    until_us: u64,
}

impl std::fmt::Display for Falsehood<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lasted, kind) = (duration(self.lasted_us), self.kind);
        write!(f, "{lasted} of {kind} ({})", self.operation)
    }
}

impl<'a> Falsehood<'a> {
    /// Those before the first right answer, or behind it; none if there were none.
    fn of(timeline: &'a OperationTimeline, behind: bool) -> Option<Self> {
        let right = timeline.heard.iter().position(|heard| heard.right);
        let (before, after) = timeline
            .heard
            .split_at(right.unwrap_or(timeline.heard.len()));
        let stretch = if behind { after } else { before };
        let wrong = || stretch.iter().filter(|heard| !heard.right);
        let mut counts: Vec<(&'static str, u64)> = Vec::new();
        for heard in wrong() {
            let kind = kind_of(&heard.answer);
            match counts.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, times)) => *times += heard.times,
                None => counts.push((kind, heard.times)),
            }
        }
        // Before the first right answer all are wrong.
        let last = if behind {
            timeline.heard.iter().rposition(|heard| !heard.right)?
        } else {
            before.len().checked_sub(1)?
        };
        let until_us = timeline.heard[last].until_us;
        let ended = timeline.heard.get(last + 1).map(|next| next.from_us);
        Some(Self {
            operation: &timeline.operation,
            kind: counts.into_iter().max_by_key(|(_, times)| *times)?.0,
            lasted_us: ended
                .unwrap_or(until_us)
                .saturating_sub(wrong().next()?.from_us),
            until_us: until_us.saturating_sub(timeline.asked_us),
        })
    }
}

/// What an answer that is not right looks like to a client.
fn kind_of(answer: &str) -> &'static str {
    match answer {
        "[]" | "null" | "empty" | "empty text" => "false empties",
        "no answer" => "silence",
        "the server died" => "deaths",
        partial if partial.starts_with("partial") => "partial answers",
        error if error.starts_with("error") => "errors",
        _ => "wrong answers",
    }
}

/// How it took the kill.
fn sigkill(events: &[Event], killed: &Killed) -> Option<Ending> {
    let behind = || {
        events
            .iter()
            .filter(|event| event.seq > killed.seq && event.process == Some(killed.process))
    };
    let at_us = events.iter().find(|event| event.seq == killed.seq)?.at_us;
    let (ended, code, signal) = behind().find_map(|event| match event.body {
        EventBody::ProcessEnded { code, signal } => Some((event, code, signal)),
        _ => None,
    })?;
    let left = behind()
        .find_map(|event| match &event.body {
            EventBody::Termination(end) => {
                let all = [&end.alive, &end.terminated, &end.killed, &end.escaped];
                let mut pids: Vec<u32> = all.into_iter().flatten().map(|m| m.pid).collect();
                pids.sort_unstable();
                pids.dedup();
                Some(pids.len() as u64)
            }
            _ => None,
        })
        .unwrap_or_default();
    Some(Ending {
        way: "sigkill".to_owned(),
        took_us: Some(ended.at_us.saturating_sub(at_us)),
        code,
        signal,
        left,
        replaced_us: replaced_us(events, killed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_reports::Heard;

    /// Each answer with the time it came first and last; `right` is right.
    fn timeline(operation: &str, heard: &[(&str, u64, u64)]) -> OperationTimeline {
        let heard: Vec<Heard> = heard
            .iter()
            .map(|(answer, from_us, until_us)| Heard {
                answer: (*answer).to_owned(),
                right: *answer == "right",
                times: 3,
                from_us: *from_us,
                until_us: *until_us,
                detail: None,
            })
            .collect();
        let first = heard.iter().find(|heard| heard.right);
        OperationTimeline {
            operation: operation.to_owned(),
            asked_us: 0,
            first_right_us: first.map(|heard| heard.from_us),
            stable_us: first.map(|heard| heard.until_us),
            asked: 3,
            latency_us: Some(5),
            heard,
        }
    }

    #[test]
    fn the_longest_falsehood_is_told_by_its_kind() {
        let said = advice(&[
            timeline(
                "hover",
                &[("null", 9, 2_000_000), ("right", 2_100_000, 2_200_000)],
            ),
            timeline(
                "findReferences",
                &[
                    ("partial 2/6", 9, 500_000),
                    ("[]", 600_000, 21_000_000),
                    ("right", 21_100_000, 21_200_000),
                ],
            ),
        ]);
        assert_eq!(
            said,
            "A client that does not wait sees 21 s of false empties (findReferences)."
        );
    }

    #[test]
    fn falsehoods_between_right_answers_are_told_apart() {
        let heard = [
            ("[]", 9, 2_000_000),
            ("null", 2_100_000, 3_000_000),
            ("right", 3_100_000, 3_200_000),
            ("error -32801", 21_000_000, 22_000_000),
            ("right", 22_100_000, 22_200_000),
        ];
        assert_eq!(
            advice(&[timeline("hover", &heard)]),
            "A client that does not wait sees 3.0 s of false empties (hover), then errors between \
             right answers up to 22 s."
        );
        assert_eq!(
            advice(&[timeline("hover", &heard[2..])]),
            "The first answers are right, then come 1.1 s of errors (hover)."
        );
    }

    #[test]
    fn right_answers_are_told_with_what_they_cost() {
        let quick = [timeline("hover", &[("right", 9_000, 20_000)])];
        assert_eq!(
            advice(&quick),
            "The first answers are right: there is nothing to wait for."
        );
        let slow = [timeline("hover", &[("right", 12_000_000, 12_200_000)])];
        assert_eq!(
            advice(&slow),
            "No answer was false, but the first take up to 12 s: a shorter timeout gets none."
        );
    }

    #[test]
    fn what_never_comes_is_not_waited_for() {
        let never = [
            timeline("hover", &[("right", 9, 20)]),
            timeline("goToDefinition", &[("[]", 9, 60_000_000)]),
        ];
        assert_eq!(
            advice(&never),
            "The first answers are right: there is nothing to wait for. Waiting does not help: \
             no steady right answer to goToDefinition."
        );
    }

    #[test]
    fn times_count_from_the_start_of_the_process() {
        let moved = moved(timeline("hover", &[("right", 9_000, 20_000)]), 1_000);
        assert_eq!(
            (moved.first_right_us, moved.stable_us),
            (Some(8_000), Some(19_000))
        );
        assert_eq!(
            (moved.heard[0].from_us, moved.heard[0].until_us),
            (8_000, 19_000)
        );
    }
}
