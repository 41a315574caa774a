//! Monitors: rules that hold on every transcript, whoever wrote it.

use dsh_transcript::Event;

use crate::format::Who;
use crate::{Level, Profile};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The clause, or `shape` (a message does not have the shape LSP gives its method), or
    /// `framing` (bytes that are no frame).
    pub clause: String,
    /// The clause's level; of `shape` and `framing`, MUST.
    pub level: Level,
    /// Who broke it.
    pub by: Who,
    /// In which process.
    pub process: Option<u32>,
    /// The event that broke it.
    pub seq: u64,
    /// What is wrong, in one line.
    pub message: String,
    /// What the rule demands.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// What a transcript is held to.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// `lsp-base`, or that and `transient`.
    pub profiles: &'a [Profile],
    /// Whether the client is a harness of somebody else's: rules of source policy are then of
    /// level SHOULD.
    pub foreign: bool,
}

/// Judges a whole transcript. Findings come in the order of the events that broke the rules.
pub fn judge(events: &[Event], rules: Rules<'_>) -> Vec<Finding> {
    let _ = (events, rules);
    Vec::new()
}
