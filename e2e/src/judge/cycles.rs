//! QUA-15: whether a server stays as it is over fifty questions.
//!
//! The machine may be busy with something else meanwhile, and a runtime with a garbage collector
//! takes memory before it gives any back. So medians of many rounds are compared and no single one,
//! nothing counts below a floor that no machine's noise or warm heap reaches, and what the fifty
//! rounds show has to hold in the rounds behind them too, where there are some.

use dsh_reports::{Case, CyclesKind, Verdict, bytes, duration};

use super::{Observed, counted};
use crate::life::{BOUND, Memory, Rounds, median};
use crate::probes::Probe;
use crate::readiness::Answer;
use crate::time::micros;

/// The rounds that the clause speaks of.
const ROUNDS: usize = 50;
/// Latency drifts where the median of the last third is more than so many times that of the first …
const DRIFT: u64 = 2;
/// … and higher by this many microseconds, more than a scheduler of a busy machine takes away.
const DRIFT_FLOOR_US: u64 = 20_000;
/// Memory grows where it is more than this above the beginning, in bytes: over a megabyte a round,
/// which no open document of a sample explains …
const GROWTH_FLOOR: u64 = 64 << 20;
/// … and more than the beginning by one part in so many: what a large heap breathes …
const GROWTH_PART: u64 = 4;
/// … and where one part in so many of the growth came in the last two fifths, so that it goes on.
const GOES_ON: u64 = 5;

/// QUA-15.
pub(super) fn lasting(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    let life = match seen.second(probe) {
        Ok(life) => life,
        Err(case) => return vec![*case],
    };
    let rounds = life
        .rounds
        .iter()
        .find(|rounds| rounds.kind == CyclesKind::SameText);
    match rounds {
        Some(rounds) if rounds.interrupted && rounds.made.len() < ROUNDS => Vec::new(),
        Some(rounds) => vec![judged(probe, seen, rounds)],
        None => vec![probe.case(Verdict::Untestable, "no round was made")],
    }
}

fn judged(probe: &Probe, seen: &Observed<'_>, rounds: &Rounds) -> Case {
    let made = rounds.made.len().min(ROUNDS);
    let answers = if rounds.known {
        format!("{ROUNDS} right answers")
    } else {
        format!("the same answer {ROUNDS} times")
    };
    let expected = format!(
        "at {}: {answers}, the last as fast as the first, in bounded memory",
        rounds.place
    );
    let note = |said: String, seq: Option<u64>| {
        let mut case = probe.missed(said, &expected);
        let seq = seq.or_else(|| rounds.made.get(made.checked_sub(1)?).map(|r| r.reply.seq));
        case.evidence = seq.map_or_else(Vec::new, |seq| seen.around(seq));
        case
    };
    let wrong: Vec<_> = rounds.made[..made]
        .iter()
        .filter(|round| round.reply.answer != Answer::Right)
        .collect();
    if let Some(first) = wrong.first() {
        let said = format!(
            "{} of {made} answered otherwise, the first with {}",
            wrong.len(),
            first.reply.answer.name()
        );
        let mut case = note(said, Some(first.reply.seq));
        case.got.clone_from(&first.reply.detail);
        return case;
    }
    if made < ROUNDS && rounds.bound < BOUND {
        let said = format!(
            "{} in {}, all {}; {ROUNDS} take a larger --budget",
            counted(made, "round"),
            duration(micros(rounds.bound)),
            if rounds.known {
                "right"
            } else {
                "with the same answer"
            }
        );
        return probe.case(Verdict::NotApplicable, said);
    }
    if made < ROUNDS {
        let said = format!(
            "{} in {}, and no time for more",
            counted(made, "round"),
            duration(micros(rounds.bound))
        );
        return note(said, None);
    }
    let latencies = rounds.latencies();
    if let Some((first, last)) = drift(&latencies) {
        let said = format!(
            "slower and slower: {} at first, {} at last",
            duration(first),
            duration(last)
        );
        return note(said, None);
    }
    if let Some((first, last)) = growth(&rounds.memory) {
        let said = format!(
            "memory grows: {} at first, {} behind {ROUNDS} rounds",
            bytes(first),
            bytes(last)
        );
        return note(said, None);
    }
    let memory = match (at(&rounds.memory, 0), at(&rounds.memory, ROUNDS)) {
        (Some(first), Some(last)) => {
            format!(", memory {} → {}", bytes(first), bytes(last))
        }
        _ => String::new(),
    };
    let how = if rounds.known {
        "right"
    } else {
        "with the same answer"
    };
    let said = format!("{ROUNDS} × {} {how}{memory}", rounds.operation);
    let mut case = probe.case(Verdict::Pass, said);
    case.duration_us = Some(median(&latencies[..ROUNDS]));
    case
}

/// The medians of the first and of the last third, where the latter drifted away.
fn drift(latencies: &[u64]) -> Option<(u64, u64)> {
    let third = ROUNDS.div_ceil(3);
    let first = median(&latencies[..third]);
    let above = |last: u64| last > first * DRIFT && last - first > DRIFT_FLOOR_US;
    let last = median(&latencies[ROUNDS - third..ROUNDS]);
    let in_the_end = median(&latencies[latencies.len() - third..]);
    (above(last) && above(in_the_end)).then_some((first, last))
}

/// Memory before the first round and behind the fiftieth, where it grew without an end in sight.
fn growth(memory: &[Memory]) -> Option<(u64, u64)> {
    let (first, later, last) = (
        at(memory, 0)?,
        at(memory, ROUNDS * 3 / 5)?,
        at(memory, ROUNDS)?,
    );
    let in_the_end = memory.last()?.bytes;
    let bound = first.saturating_add(GROWTH_FLOOR.max(first / GROWTH_PART));
    let goes_on = last.saturating_sub(later) >= last.saturating_sub(first) / GOES_ON;
    (last > bound && in_the_end > bound && goes_on).then_some((first, last))
}

/// Memory behind exactly so many rounds.
fn at(memory: &[Memory], rounds: usize) -> Option<u64> {
    let found = memory.iter().find(|memory| memory.rounds == rounds);
    found.map(|memory| memory.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(megabytes: &[u64]) -> Vec<Memory> {
        megabytes
            .iter()
            .enumerate()
            .map(|(index, megabytes)| Memory {
                rounds: index * 10,
                bytes: megabytes << 20,
            })
            .collect()
    }

    #[test]
    fn latency_that_rises_steadily_drifts() {
        let rising: Vec<u64> = (0..200).map(|round| 5_000 + round * 2_000).collect();
        assert!(drift(&rising).is_some());
        assert!(drift(&rising[..50]).is_some());
    }

    #[test]
    fn a_slow_start_a_slow_machine_and_little_differences_are_no_drift() {
        let slow_start: Vec<u64> = (0..50)
            .map(|n| if n < 10 { 900_000 } else { 3_000 })
            .collect();
        assert_eq!(drift(&slow_start), None);
        // Three times as long, but a few milliseconds.
        let little: Vec<u64> = (0..50)
            .map(|n| if n < 25 { 4_000 } else { 12_000 })
            .collect();
        assert_eq!(drift(&little), None);
        // Single long rounds, wherever they are.
        let spikes: Vec<u64> = (0..50)
            .map(|n| if n % 3 == 0 { 800_000 } else { 5_000 })
            .collect();
        assert_eq!(drift(&spikes), None);
        // The machine was busy from the thirtieth to the sixtieth round.
        let busy: Vec<u64> = (0..200)
            .map(|n| if (30..60).contains(&n) { 90_000 } else { 5_000 })
            .collect();
        assert_eq!(drift(&busy), None);
        assert!(drift(&busy[..50]).is_some());
    }

    #[test]
    fn memory_that_rises_steadily_grows() {
        let leak = memory(&[100, 130, 160, 190, 220, 250]);
        assert_eq!(growth(&leak), Some((100 << 20, 250 << 20)));
        let on = memory(&[100, 130, 160, 190, 220, 250, 280, 310]);
        assert!(growth(&on).is_some());
    }

    #[test]
    fn a_heap_that_warms_or_breathes_does_not_grow() {
        let warms = memory(&[100, 240, 250, 251, 252, 252]);
        assert_eq!(growth(&warms), None);
        let little = memory(&[20, 30, 40, 50, 60, 70]);
        assert_eq!(growth(&little), None);
        let large = memory(&[2_000, 2_100, 2_150, 2_200, 2_300, 2_400]);
        assert_eq!(growth(&large), None);
        let collected = memory(&[100, 130, 160, 190, 220, 250, 280, 110]);
        assert_eq!(growth(&collected), None);
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&memory(&[100, 500])), None);
    }
}
