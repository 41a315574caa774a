//! What the report holds of a server beside its cases: how soon it told the truth, what many
//! questions did to it, how it took a kill, what it wrote.

use std::collections::{BTreeMap, BTreeSet};

use dsh_reports::{Ending, Measured, OperationTimeline, Start, StartKind};
use dsh_transcript::{Direction, Event, EventBody};

use crate::judge::{Knowledge, Observed, replaced_us};
use crate::life::Killed;
use crate::sentence;

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
        summary: sentence::of_start(
            StartKind::Cold,
            &operations,
            None,
            seen.knowledge == Knowledge::Known,
        ),
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

/// The names of processes, each once.
pub(crate) fn distinct(members: BTreeMap<u32, String>) -> Vec<String> {
    let names: BTreeSet<String> = members.into_values().collect();
    names.into_iter().collect()
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
    let left: BTreeMap<u32, String> = behind()
        .find_map(|event| match &event.body {
            EventBody::Termination(end) => {
                let all = [&end.alive, &end.terminated, &end.killed, &end.escaped];
                let all = all.into_iter().flatten();
                Some(
                    all.map(|member| (member.pid, member.name.clone()))
                        .collect(),
                )
            }
            _ => None,
        })
        .unwrap_or_default();
    Some(Ending {
        way: "sigkill".to_owned(),
        took_us: Some(ended.at_us.saturating_sub(at_us)),
        code,
        signal,
        left: left.len() as u64,
        left_names: distinct(left),
        replaced_us: replaced_us(events, killed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::fixture::timeline;

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
