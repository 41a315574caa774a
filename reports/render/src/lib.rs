//! Verdicts, the report model and its renderers.
//!
//! A [`Report`] is plain data (`dsh-conform-report/1`): what was judged, by which cases, with what
//! outcome and on what evidence. Everything a person or a program reads is rendered from it, so a
//! report can be stored, merged and shown again. This crate judges nothing and starts nothing; it
//! counts what the cases say and draws the conclusion that follows from them.

mod badge;
mod baseline;
mod conclusion;
mod coverage;
mod date;
mod evidence;
mod findings;
mod github;
mod junit;
mod layout;
mod markdown;
mod measured;
mod merge;
mod model;
mod outside;
mod page;
mod portable;
mod read;
mod size;
mod summary;
mod text;
mod trajectory;
mod verdict;
mod ways;
mod words;

pub use badge::render_badge;
pub use baseline::{Accepted, BASELINE_FORMAT, Baseline, BaselineError, Change, Comparison};
pub use conclusion::{Conclusion, Selection};
pub use date::date_of_day;
pub use evidence::{around, ending, event_line, member_names, quote};
pub use github::render_github;
pub use junit::{JunitError, render_junit};
pub use layout::filled;
pub use markdown::render_markdown;
pub use measured::{
    Cycles, CyclesKind, Edge, Ending, Measured, NO_WORSE, Output, Overlay, Persona, PersonaOutcome,
    Remedy, Setting, Signal, Start, StartKind, TextSource, Written,
};
pub use merge::{MergeError, gather, merge, missing_shards};
pub use model::{
    Case, ClauseCoverage, ClauseRef, Count, Division, Evidence, FORMAT, Heard, OperationTimeline,
    Origin, Place, Platform, ProfileTotals, Report, Run, RunKind, Shard, SkipReason, Skipped,
    Stale, Subject, SubjectKind, Surprise, Tool, Totals, TranscriptRef, Watch,
};
pub use outside::clipped;
pub use page::{PageError, render_page};
pub use portable::portable;
pub use read::{ReadError, read};
pub use size::bytes;
pub use summary::{render_matrix, render_overview, render_summary};
pub use text::{TextOptions, duration, render_text};
pub use trajectory::{
    CLOCK, SESSION_FORMAT, SessionLog, SessionReadError, TrajectoryError, clock, read_session,
    render_trajectory,
};
pub use verdict::{Level, Verdict};

/// The report as JSON text, indented, with a final line end.
///
/// # Errors
/// None in practice: the model holds nothing that JSON cannot express.
pub fn render_json(report: &Report) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}

/// The JSON Schema of a report, generated from the types.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The JSON Schema of a baseline, generated from the types.
pub fn baseline_schema() -> serde_json::Value {
    schemars::schema_for!(Baseline).to_value()
}
