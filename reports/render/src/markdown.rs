//! The report as Markdown, for a comment on a pull request or the summary of a job.
//!
//! Text from outside stands in code only: there it is no markup, mentions nobody and links nowhere.

use std::fmt::Write as _;

use crate::findings;
use crate::model::{Case, Report, Run, RunKind};
use crate::outside::{self, visible};
use crate::summary;
use crate::text::duration;
use crate::verdict::Verdict;
use crate::words;

/// The most bytes that cases in full may take: a comment on GitHub holds 65536 characters.
const ROOM: usize = 48_000;

/// Renders a report as Markdown.
pub fn render_markdown(report: &Report) -> String {
    let report = &outside::fit(report);
    let mut out = String::new();
    if report.runs.is_empty() {
        let _ = writeln!(out, "{}", words::NO_RUNS);
    }
    if report.runs.len() > 1 && summary::is_about_servers(report) {
        out.push_str(&summary::render_headline(report));
        out.push_str(&summary::render_summary(report));
        out.push('\n');
        out.push_str(&summary::render_matrix(report));
    }
    let room = ROOM / report.runs.len().max(1);
    for run in &report.runs {
        if !out.is_empty() {
            out.push('\n');
        }
        section(&mut out, run, room);
    }
    let made = format!(
        "{} {} on {} {}",
        report.tool.name, report.tool.version, report.platform.os, report.platform.arch
    );
    let date = report.date.as_deref().map(|date| format!(", {date}"));
    let partial = if report.interrupted {
        " Interrupted: this report is partial."
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "\n{}{partial}",
        code(&format!("{made}{}", date.unwrap_or_default()))
    );
    out
}

fn section(out: &mut String, run: &Run, room: usize) {
    let mark = if run.conclusion.conforms() && run.stale.is_empty() {
        "✓"
    } else {
        "✗"
    };
    let subject = code(&words::subject(&run.subject));
    let conclusion = words::short(&run.conclusion);
    let _ = writeln!(out, "### {mark} {subject}: {}\n", code(&conclusion));
    let whole = run.conclusion.to_string();
    if whole != conclusion {
        fence(out, &whole);
    }
    if !run.cases.is_empty() {
        let mut parts = vec![
            words::how_many(run),
            words::tally(run.kind, run.cases.iter().map(|case| case.verdict)),
            duration(run.duration_us),
        ];
        parts.extend(run.seed.map(|seed| format!("seed {seed}")));
        parts.extend(run.shard.map(|shard| format!("shard {shard}")));
        let _ = writeln!(out, "{}\n", parts.join(" · "));
    }
    profiles(out, run);
    let start = out.len();
    let mut left_out = 0;
    for case in &run.cases {
        if case.verdict.is_red() || case.verdict == Verdict::Note {
            let full = in_full(run, case);
            if out.len() - start + full.len() <= room {
                out.push_str(&full);
            } else {
                left_out += 1;
            }
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "… and {left_out} more, which stand in the other forms of this report.\n"
        );
    }
    for stale in &run.stale {
        let _ = writeln!(out, "- stale: {}", code(&words::stale(stale)));
    }
    if !run.stale.is_empty() {
        out.push('\n');
    }
    measured(out, run);
    for line in words::baseline(run) {
        let _ = writeln!(out, "- {}", code(&line));
    }
    folded(out, run);
    for remark in &run.remarks {
        let _ = writeln!(out, "- {}", code(remark));
    }
}

/// What was measured beside the clauses, and what helps.
fn measured(out: &mut String, run: &Run) {
    let measured = run.measured.as_ref();
    let measured = measured.map(|measured| findings::of(measured, run.knows_answers()));
    let measured = measured.unwrap_or_default();
    let remedy = run
        .remedy
        .as_ref()
        .map(findings::remedy)
        .unwrap_or_default();
    let known = findings::surprises(&run.surprises);
    for (title, found) in [
        ("measured", measured),
        ("remedy", remedy),
        ("known of it", known),
    ] {
        if found.is_empty() {
            continue;
        }
        let _ = writeln!(out, "**{title}**\n");
        for (name, text) in found {
            let _ = match name {
                "" => writeln!(out, "  - {}", code(&text)),
                name => writeln!(out, "- {name}: {}", code(&text)),
            };
        }
        out.push('\n');
    }
}

fn profiles(out: &mut String, run: &Run) {
    if run.totals.profiles.is_empty() {
        return;
    }
    out.push_str("| profile | MUST | SHOULD | not judged |\n|---|---:|---:|---:|\n");
    for (profile, totals) in &run.totals.profiles {
        let cell = |count: crate::model::Count| match count.judged {
            0 => "–".to_owned(),
            judged => format!("{}/{judged}", count.held),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(profile).replace('|', "\\|"),
            cell(totals.must),
            cell(totals.should),
            totals.not_judged
        );
    }
    out.push('\n');
}

/// A case with everything that shows what happened, folded away.
fn in_full(run: &Run, case: &Case) -> String {
    let mark = match case.verdict {
        Verdict::Note => "!",
        Verdict::Untestable => "?",
        _ => "✗",
    };
    let mut out = format!(
        "<details><summary>{mark} <code>{}</code> {} {}</summary>\n\n",
        html(&case.id),
        words::verdict(run.kind, case.verdict),
        html(&words::clauses(case.about())),
    );
    let mut lines: Vec<String> = Vec::new();
    let mut named = |name: &str, text: &str| lines.push(format!("{name:<11} {text}"));
    if let Some(title) = &case.title {
        named("shows", title);
    }
    for clause in &run.coverage {
        if case.about().contains(&clause.clause) {
            named(
                "clause",
                &format!("{}: {}", clause.clause, clause.statement),
            );
        }
    }
    if let Some(expected) = &case.expected {
        named("expected", expected);
    }
    named("got", case.got.as_deref().unwrap_or(&case.message));
    for (index, evidence) in words::evidence(&case.evidence).enumerate() {
        named(if index == 0 { "frames" } else { "" }, &evidence);
    }
    if let Some(source) = &case.source {
        named("file", &words::place(source));
    }
    if let Some(reproduce) = &case.reproduce {
        named("repeat", reproduce);
    }
    fence(&mut out, &lines.join("\n"));
    out.push_str("</details>\n\n");
    out
}

/// What is not red: mutants that were noticed, clauses that nothing judged, cases left out.
fn folded(out: &mut String, run: &Run) {
    let mut lines: Vec<String> = Vec::new();
    if run.kind == RunKind::Power {
        for case in &run.cases {
            if case.verdict == Verdict::Pass {
                lines.push(format!("{} {}", case.id, case.message));
            }
        }
        fold(out, "killed", &lines);
        lines.clear();
    }
    for (reason, clauses) in words::not_judged(run) {
        lines.push(format!("{} ({reason})", words::clauses(&clauses)));
    }
    fold(out, "clauses not judged", &lines);
    lines.clear();
    for skipped in &run.skipped {
        lines.push(words::skipped(run.kind, skipped));
    }
    fold(out, "not run", &lines);
}

fn fold(out: &mut String, what: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(out, "<details><summary>{what}</summary>\n");
        fence(out, &lines.join("\n"));
        out.push_str("</details>\n\n");
    }
}

/// A block of code, fenced by more backticks than it holds in a row.
fn fence(out: &mut String, text: &str) {
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    let text = lines.join("\n");
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let _ = writeln!(out, "{fence}text\n{text}\n{fence}\n");
}

/// A span of code on one line, in more backticks than it holds in a row.
pub(crate) fn code(text: &str) -> String {
    let text = visible(text);
    let ticks = "`".repeat(longest_run(&text) + 1);
    let gap = if text.is_empty() || text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{gap}{text}{gap}{ticks}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

fn html(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('@', "&#64;")
}
