//! Running scenarios against subjects.

use std::time::Duration;

use dsh_reports::Verdict;
use dsh_transcript::Event;
use serde_json::Value;

use crate::subject::CallError;

/// What became of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case: `cancel/ignored`, or `results/shapes#link-hover` of a matrix.
    pub id: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Why, in one line; empty where it passed.
    pub message: String,
    /// What had to be.
    pub expected: Option<String>,
    /// What was.
    pub got: Option<String>,
    /// The clauses that were seen broken, or that could not be judged.
    pub clauses: Vec<String>,
    /// The position in the transcript of the event the verdict rests on.
    pub decisive: Option<u64>,
    /// How long it took.
    pub duration: Duration,
    /// The transcript; kept where the verdict is red, or where it was asked for.
    pub transcript: Vec<Event>,
    /// Rendered texts by the name of their step, for snapshots.
    pub snapshots: Vec<(String, String)>,
}

/// Something that tampers with a run, to see whether anybody notices.
pub trait Tampering: Send + Sync {
    /// The command by which a server is started, program first, in place of `argv`.
    fn command(&self, argv: Vec<String>) -> Vec<String>;

    /// The params of a request to the subject; none swallows the request, and the answer is then
    /// an empty success.
    fn request(&self, method: &str, params: Value) -> Option<Value>;

    /// The answer to a request to the subject.
    fn outcome(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError>;

    /// Whether a cancellation is passed on.
    fn cancels(&self) -> bool;
}
