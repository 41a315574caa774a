//! The report as workflow commands of GitHub Actions: annotations at the scenario's file.
//!
//! A workflow command is one line of the job's output, `::error file=…,line=…,title=…::text`. Text
//! from outside is escaped so that it can neither end its command nor begin another one.

use std::fmt::Write as _;

use crate::model::{Case, Place, Report, Run, RunKind};
use crate::outside::{self, visible};
use crate::verdict::Verdict;
use crate::words;

/// Renders a report as annotations: an error for everything that is red, a warning for a note, and
/// one notice with the conclusion of each run.
pub fn render_github(report: &Report) -> String {
    let report = &outside::fit(report);
    let mut out = String::new();
    if report.runs.is_empty() {
        command(
            &mut out,
            "warning",
            None,
            "nothing was judged",
            words::NO_RUNS,
        );
    }
    for run in &report.runs {
        for case in &run.cases {
            if let Some(kind) = kind(case.verdict) {
                annotate(&mut out, kind, run, case);
            }
        }
        for stale in &run.stale {
            let title = format!("{} is stale", stale.case);
            command(
                &mut out,
                "error",
                stale.source.as_ref(),
                &title,
                &stale.reason,
            );
        }
        let kind = if run.conclusion.conforms() && run.stale.is_empty() {
            "notice"
        } else {
            "error"
        };
        let counts = words::counts(run);
        let text = match counts.as_str() {
            "" => run.conclusion.to_string(),
            counts => format!("{} ({counts})", run.conclusion),
        };
        command(&mut out, kind, None, &words::subject(&run.subject), &text);
    }
    out
}

const fn kind(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        verdict if verdict.is_red() => Some("error"),
        Verdict::Note => Some("warning"),
        _ => None,
    }
}

fn annotate(out: &mut String, kind: &str, run: &Run, case: &Case) {
    let what = match run.kind {
        RunKind::Power => "mutant ",
        RunKind::Conformance => "",
    };
    let title = format!(
        "{what}{}: {} {}",
        case.id,
        words::verdict(run.kind, case.verdict),
        words::clauses(case.about())
    );
    let mut text = case.message.clone();
    let expected = case.expected.as_deref().map(|text| ("expected", text));
    let got = case.got.as_deref().map(|text| ("got", text));
    let repeat = case.reproduce.as_deref().map(|text| ("repeat", text));
    for (name, value) in [expected, got, repeat].into_iter().flatten() {
        let _ = write!(text, "\n{name}: {value}");
    }
    command(out, kind, case.source.as_ref(), &title, text.trim_start());
}

fn command(out: &mut String, kind: &str, place: Option<&Place>, title: &str, text: &str) {
    let _ = write!(out, "::{kind} ");
    if let Some(place) = place {
        let line = place.line.unwrap_or(1);
        let _ = write!(out, "file={},line={line},", property(&place.file));
    }
    let _ = writeln!(out, "title={}::{}", property(title), data(text));
}

/// The text behind `::`. Line ends stay, escaped; other controls are shown.
fn data(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    lines
        .join("\n")
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property, which `,` and `:` would end besides.
fn property(text: &str) -> String {
    let text = visible(text);
    data(&text).replace(':', "%3A").replace(',', "%2C")
}
