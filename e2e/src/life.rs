//! What was seen of a server's second start: rounds in plenty, questions given up, files that
//! change behind its back, its death. Plain data, for the judges and for the report.

use std::time::Duration;

use dsh_reports::{Cycles, CyclesKind, Heard};
use dsh_transcript::{Direction, Event, View};

use crate::judge::Asked;
use crate::readiness::{Answer, Reply};
use crate::samples::Operation;

/// The most time for the rounds of one kind; a smaller budget bounds it further.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// The kind of the note that stands where a question was given up; the question of the server that
/// is pending then is the one.
pub(crate) const GIVEN_UP: &str = "given-up";

/// A second start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    /// Why there was nothing to see, where there was not.
    pub(crate) absent: Option<String>,
    pub(crate) rounds: Vec<Rounds>,
    pub(crate) changed: Vec<ChangedOnDisk>,
    pub(crate) killed: Option<Killed>,
    /// Why the server was not killed, where it was to be.
    pub(crate) not_killed: Option<String>,
}

/// Many rounds of open, question and close.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    pub(crate) kind: CyclesKind,
    pub(crate) operation: Operation,
    pub(crate) place: String,
    /// Whether the right answer is known; else it is the one that came before the rounds.
    pub(crate) known: bool,
    /// How many were to be made.
    pub(crate) planned: usize,
    /// When they had to be over, whether or not all were made.
    pub(crate) bound: Duration,
    pub(crate) made: Vec<Round>,
    /// Resident memory of the process tree, ascending by the rounds that had been made.
    pub(crate) memory: Vec<Memory>,
    /// The stretch of the transcript.
    pub(crate) seqs: std::ops::Range<u64>,
    /// Whether the check was interrupted meanwhile.
    pub(crate) interrupted: bool,
}

/// One round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// When it was over, in microseconds since the first began.
    pub(crate) at_us: u64,
    pub(crate) reply: Reply,
}

/// Memory behind so many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) rounds: usize,
    pub(crate) bytes: u64,
}

/// A file that was changed on disk while the server ran.
#[derive(Clone, Debug)]
pub(crate) struct ChangedOnDisk {
    pub(crate) file: String,
    /// What was answered just before the change.
    pub(crate) before: Option<Reply>,
    /// The question, asked from the change on.
    pub(crate) asked: Asked,
    /// The same, asked after the changed file was opened and closed; only where it was not seen
    /// before that.
    pub(crate) opened: Option<Asked>,
    /// How long was waited before the file was opened.
    pub(crate) limit: Duration,
}

/// A kill, and what came after it.
#[derive(Clone, Debug)]
pub(crate) struct Killed {
    pub(crate) process: u32,
    /// The note of the kill.
    pub(crate) seq: u64,
    /// The question that is asked of the replacement.
    pub(crate) asked: Asked,
}

impl Rounds {
    pub(crate) fn latencies(&self) -> Vec<u64> {
        self.made
            .iter()
            .map(|round| round.reply.latency_us)
            .collect()
    }

    /// The rounds that were answered otherwise, or not at all.
    pub(crate) fn wrong(&self) -> impl Iterator<Item = &Round> {
        self.made
            .iter()
            .filter(|round| round.reply.answer != Answer::Right)
    }

    /// Documents that were opened and not closed, over all processes of the stretch.
    pub(crate) fn left_open(&self, events: &[Event]) -> u64 {
        let within: Vec<Event> = events
            .iter()
            .filter(|event| self.seqs.contains(&event.seq))
            .cloned()
            .collect();
        let view = View(&within);
        let left = view.processes().into_iter().map(|process| {
            let count = |method| {
                view.sent(process, Direction::ToServer)
                    .filter(|(_, frame)| frame.method() == Some(method))
                    .count() as u64
            };
            count("textDocument/didOpen").saturating_sub(count("textDocument/didClose"))
        });
        left.sum()
    }

    /// The rounds as the report has them; none if not one was made.
    pub(crate) fn measured(&self, events: &[Event]) -> Option<Cycles> {
        let each_us = self.latencies();
        let mut sorted = each_us.clone();
        sorted.sort_unstable();
        let max_us = *sorted.last()?;
        Some(Cycles {
            kind: self.kind,
            operation: self.operation.name().to_owned(),
            rounds: each_us.len() as u64,
            wrong: self.wrong().count() as u64,
            heard: self.heard(),
            p50_us: at_share(&sorted, 50),
            p95_us: at_share(&sorted, 95),
            max_us,
            each_us,
            memory_before: self.memory.first().map(|memory| memory.bytes),
            memory_after: self.memory.last().map(|memory| memory.bytes),
            left_open: self.left_open(events),
        })
    }

    /// What came, equal neighbours counted together; empty where everything was right.
    fn heard(&self) -> Vec<Heard> {
        let mut heard: Vec<Heard> = Vec::new();
        for round in &self.made {
            let answer = round.reply.answer.name_where(self.known);
            match heard.last_mut() {
                Some(last) if last.answer == answer => {
                    last.times += 1;
                    last.until_us = round.at_us;
                }
                _ => heard.push(Heard {
                    right: round.reply.answer == Answer::Right,
                    answer,
                    times: 1,
                    from_us: round.at_us,
                    until_us: round.at_us,
                    detail: round.reply.detail.clone(),
                }),
            }
        }
        if heard.iter().all(|heard| heard.right) {
            heard.clear();
        }
        heard
    }
}

/// The value that so many in a hundred do not exceed, of values in ascending order; 0 of none.
pub(crate) fn at_share(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// The middle value of some in any order; 0 of none.
pub(crate) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    at_share(&sorted, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_nearest_rank() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!((at_share(&values, 50), at_share(&values, 95)), (100, 190));
        assert_eq!((at_share(&[7], 50), at_share(&[7], 95)), (7, 7));
        assert_eq!(at_share(&[], 95), 0);
        assert_eq!(median(&[9, 1, 5]), 5);
    }
}
