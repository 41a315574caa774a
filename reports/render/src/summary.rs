//! Several servers at a glance: a line each, and what became of each clause.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::conclusion::Conclusion;
use crate::markdown::code;
use crate::measured::{CyclesKind, StartKind};
use crate::measured::{most_memory, steady_us};
use crate::model::{OperationTimeline, Report, Run, RunKind, SubjectKind};
use crate::outside::{self, clipped, visible};
use crate::text::duration;
use crate::verdict::Verdict;
use crate::words;

/// The most characters of a reason that stand in a table.
const REASON: usize = 80;

/// The most characters of a setting there; the report has it whole.
const SETTING: usize = 44;

/// What stands where nothing is known.
const NOTHING: &str = "–";

/// Whether every run is a check of a server.
pub(crate) fn is_about_servers(report: &Report) -> bool {
    let mut runs = report.runs.iter();
    !report.runs.is_empty()
        && runs
            .all(|run| run.kind == RunKind::Conformance && run.subject.kind == SubjectKind::Server)
}

/// A Markdown table with a line a server, in the order of the report: which one, what came of it,
/// how soon its answers are right after a cold start, how long a round of open, question and close
/// takes in the middle, how much memory it needed, and what to know. Empty for a report without
/// servers.
pub fn render_summary(report: &Report) -> String {
    let report = &outside::fit(report);
    let mut out = String::new();
    if !is_about_servers(report) {
        return out;
    }
    out.push_str(
        "| server | version | language | verdict | ready after | p50 | memory | notes |\n",
    );
    out.push_str("|---|---|---|---|---:|---:|---:|---|\n");
    for run in &report.runs {
        let subject = &run.subject;
        let cells = [
            cell(&subject.name),
            subject.version.as_deref().map_or_else(nothing, cell),
            subject.language.as_deref().map_or_else(nothing, plain),
            words_of(&run.conclusion).to_owned(),
            ready(run),
            p50(run).map_or_else(nothing, duration),
            most_memory(run).map_or_else(nothing, mebibytes),
            notes(run),
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// A Markdown table of servers × clauses, with a sign for each verdict; the clauses are those that
/// any of the runs knows. Empty for a report without servers.
pub fn render_matrix(report: &Report) -> String {
    let report = &outside::fit(report);
    let mut out = String::new();
    if !is_about_servers(report) {
        return out;
    }
    let mut clauses: Vec<&str> = Vec::new();
    for clause in report.runs.iter().flat_map(|run| &run.coverage) {
        if !clauses.contains(&clause.clause.as_str()) {
            clauses.push(&clause.clause);
        }
    }
    if clauses.is_empty() {
        return out;
    }
    let _ = writeln!(out, "| server | {} |", clauses.join(" | "));
    let _ = writeln!(out, "|---|{}", ":-:|".repeat(clauses.len()));
    for run in &report.runs {
        let signs = clauses.iter().map(|clause| {
            let known = run.coverage.iter().find(|known| known.clause == **clause);
            sign(known.and_then(|known| known.verdict))
        });
        let signs: Vec<&str> = signs.collect();
        let _ = writeln!(
            out,
            "| {} | {} |",
            cell(&run.subject.name),
            signs.join(" | ")
        );
    }
    out.push_str(
        "\n✓ holds · ! a SHOULD that does not hold · ✗ does not hold · ? could not be judged · \
         – does not apply · blank: not judged\n",
    );
    out
}

/// The same for a terminal: a line a server, with its verdict.
pub fn render_overview(report: &Report) -> String {
    let report = &outside::fit(report);
    let name = |run: &Run| visible(&words::subject(&run.subject));
    let names: Vec<String> = report.runs.iter().map(name).collect();
    let width = names.iter().map(|name| name.width()).max();
    let width = width.unwrap_or(0).min(40);
    let mut out = String::new();
    for (run, name) in report.runs.iter().zip(names) {
        let said = visible(&run.conclusion.to_string().replace('\n', " "));
        let room = 78_usize.saturating_sub(width).max(20);
        let gap = " ".repeat(width.saturating_sub(name.width()));
        let _ = writeln!(out, "{name}{gap}  {}", shortened(&said, room));
    }
    out
}

fn nothing() -> String {
    NOTHING.to_owned()
}

/// Text from outside, in a table.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A name of a language, which is no markup; anything else is shown as code.
fn plain(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '+' | '#' | '/' | '.' | '-');
    if text.chars().all(harmless) {
        text.to_owned()
    } else {
        cell(text)
    }
}

fn shortened(text: &str, most: usize) -> String {
    clipped(text, most)
}

/// The conclusion without what differs between runs that come to the same.
fn words_of(conclusion: &Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Qualified { notes: 0 } => "QUALIFIED",
        Conclusion::Qualified { .. } => "QUALIFIED with notes",
        Conclusion::QualifiedWithSettings { .. } => "QUALIFIED with settings",
        Conclusion::NotQualified { .. } => "NOT QUALIFIED",
        Conclusion::ProtocolOnly { .. } => "PROTOCOL ONLY",
        Conclusion::Untestable { .. } => "UNTESTABLE",
        Conclusion::Partial { .. } => "SELECTED PROBES HOLD",
        Conclusion::Interrupted => "INTERRUPTED",
        _ => "HARNESS ERROR",
    }
}

/// How long after a cold start every operation that the server has was right, and stayed so.
fn ready(run: &Run) -> String {
    if !run.knows_answers() {
        return nothing();
    }
    let starts = run.measured.iter().flat_map(|measured| &measured.starts);
    let cold = starts.clone().find(|start| start.kind == StartKind::Cold);
    let operations: &[OperationTimeline] = match cold {
        Some(start) => &start.operations,
        None => &run.operations,
    };
    let mut last = None;
    for operation in operations {
        if operation.asked == 0 {
            continue;
        }
        match steady_us(operation) {
            Some(at) => last = last.max(Some(at)),
            None if run.knows_answers() => {
                return format!("no right {}", plain(&operation.operation));
            }
            None => return nothing(),
        }
    }
    last.map_or_else(nothing, duration)
}

fn p50(run: &Run) -> Option<u64> {
    let cycles = &run.measured.as_ref()?.cycles;
    let same = cycles
        .iter()
        .find(|cycles| cycles.kind == CyclesKind::SameText);
    same.map(|cycles| cycles.p50_us)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// What to know: the clauses that do not hold, the settings that help, why nothing can be said.
fn notes(run: &Run) -> String {
    let mut parts = Vec::new();
    match &run.conclusion {
        Conclusion::Untestable { reason, .. } | Conclusion::HarnessError { reason } => {
            let line = reason.lines().next().unwrap_or_default();
            return cell(&shortened(line, REASON));
        }
        Conclusion::QualifiedWithSettings { settings, .. } => {
            let settings = settings
                .iter()
                .map(|setting| cell(&shortened(setting, SETTING)));
            parts.extend(settings);
        }
        _ => {}
    }
    for shown in ["✗", "?", "!"] {
        let broken = run
            .coverage
            .iter()
            .filter(|clause| sign(clause.verdict) == shown);
        let broken: Vec<&str> = broken.map(|clause| clause.clause.as_str()).collect();
        // Behind a failure little can be judged: the matrix has what.
        let follows = shown == "?" && parts.iter().any(|part| part.starts_with('✗'));
        if !broken.is_empty() && !follows {
            parts.push(format!("{shown} {}", broken.join(" ")));
        }
    }
    parts.join("; ")
}

const fn sign(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => " ",
        Some(Verdict::Pass | Verdict::Known) => "✓",
        Some(Verdict::Note) => "!",
        Some(Verdict::Untestable) => "?",
        Some(Verdict::NotApplicable) => NOTHING,
        Some(_) => "✗",
    }
}
