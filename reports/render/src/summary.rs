//! Several servers at a glance: a line each, and what became of each clause.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::conclusion::Conclusion;
use crate::markdown::code;
use crate::measured::{CyclesKind, Ready, most_memory};
use crate::model::{Report, Run, RunKind, SubjectKind};
use crate::outside::{self, visible};
use crate::size::bytes;
use crate::text::duration;
use crate::verdict::Verdict;
use crate::words::{self, shortened};

/// The most characters of a reason that stand in a table.
const REASON: usize = 80;

/// What stands where nothing is known.
const NOTHING: &str = "–";

/// Whether every run is a check of a server.
pub(crate) fn is_about_servers(report: &Report) -> bool {
    let mut runs = report.runs.iter();
    !report.runs.is_empty()
        && runs
            .all(|run| run.kind == RunKind::Conformance && run.subject.kind == SubjectKind::Server)
}

/// What a report of servers comes to: `42 of 66 qualify, 9 of them with settings`.
pub(crate) fn qualified(report: &Report) -> String {
    let count = |wanted: fn(&Conclusion) -> bool| {
        let of = report.runs.iter();
        of.filter(|run| wanted(&run.conclusion)).count()
    };
    let plain = count(|of| matches!(of, Conclusion::Qualified { .. }));
    let with_settings = count(|of| matches!(of, Conclusion::QualifiedWithSettings { .. }));
    let of_them = match with_settings {
        0 => String::new(),
        _ => format!(", {with_settings} of them with settings"),
    };
    let (held, all) = (plain + with_settings, report.runs.len());
    format!("{held} of {all} qualify{of_them}")
}

/// What the whole comes to in a sentence, and what the columns of the table below it are.
pub(crate) fn render_headline(report: &Report) -> String {
    format!(
        "**{}.** *Ready after* is how long after a cold start every question is answered rightly, and \
         goes on to be; *p50* the median of a round of open, question and close; *memory* the most \
         that the whole process tree held.\n\n",
        qualified(report)
    )
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
            most_memory(run).map_or_else(nothing, bytes),
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
    let titles: Vec<String> = clauses
        .iter()
        .filter_map(|clause| Some(format!("{clause} {}", words::clause_title(clause)?)))
        .collect();
    if !titles.is_empty() {
        let _ = writeln!(out, "\n{}", titles.join(" · "));
    }
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

/// How long after a cold start every question is answered rightly, in words.
fn ready(run: &Run) -> String {
    match Ready::of(run) {
        Ready::After(us) => duration(us),
        Ready::Never(operation) => format!("no right {}", plain(operation)),
        Ready::Unknown => nothing(),
    }
}

fn p50(run: &Run) -> Option<u64> {
    let cycles = &run.measured.as_ref()?.cycles;
    let same = cycles
        .iter()
        .find(|cycles| cycles.kind == CyclesKind::SameText);
    same.map(|cycles| cycles.p50_us)
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
                .map(|setting| cell(&words::setting(setting)));
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
