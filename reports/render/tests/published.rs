//! What is published says what the runs said, and tells nothing of the machine that ran them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;

use dsh_reports::{Baseline, Conclusion, Report, render_markdown, render_page, render_summary};

const AGAIN: &str = "make it anew: cargo run -p dsh-reports --example published";

fn file(path: &str) -> String {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn published() -> Report {
    dsh_reports::read(&file("reports/published/servers.json")).unwrap()
}

#[test]
fn the_other_forms_are_those_of_the_report() {
    let report = published();
    let forms = [
        ("reports/published/servers.md", render_markdown(&report)),
        (
            "reports/published/servers.html",
            render_page(std::slice::from_ref(&report)).unwrap(),
        ),
    ];
    for (path, current) in forms {
        assert!(file(path) == current, "{path} is not current; {AGAIN}");
    }
    let mut baseline = Baseline::default();
    for run in &report.runs {
        let _accepted = baseline.accept(run, &report.platform);
    }
    assert!(
        file("e2e/baseline.json") == baseline.render().unwrap(),
        "e2e/baseline.json is not current; {AGAIN}"
    );
    let table = format!(
        "<!-- servers: begin -->\n{}<!-- servers: end -->\n",
        render_summary(&report)
    );
    assert!(
        file("README.md").contains(&table),
        "the table of README.md is not current; {AGAIN}"
    );
}

/// What the README says of the whole: thirty servers and more, twenty languages and more, most of
/// them of use, and a reason wherever nothing could be judged.
#[test]
fn the_matrix_is_as_wide_as_it_is_said_to_be() {
    let report = published();
    let languages: std::collections::BTreeSet<_> = report
        .runs
        .iter()
        .filter_map(|run| run.subject.language.as_deref())
        .collect();
    assert!(report.runs.len() >= 30, "{} servers", report.runs.len());
    assert!(languages.len() >= 20, "{languages:?}");
    let of_use = report.runs.iter().filter(|run| run.conclusion.conforms());
    assert!(of_use.count() >= 20);
    for run in &report.runs {
        let name = &run.subject.name;
        match &run.conclusion {
            Conclusion::Untestable { reason, .. } => assert!(!reason.is_empty(), "{name}"),
            _ => assert!(run.subject.version.is_some(), "{name}"),
        }
    }
}

#[test]
fn nothing_of_the_machine_is_told() {
    let text = file("reports/published/servers.json");
    for place in ["/home/", "/tmp/", "\"transcript\""] {
        let at = text.find(place);
        let around = at.map(|at| &text[at.saturating_sub(80)..(at + 80).min(text.len())]);
        assert!(at.is_none(), "{place}: {around:?}");
    }
}
