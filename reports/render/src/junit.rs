//! The report as `JUnit` XML, for systems that show test results.

use std::time::Duration;

use quick_junit::{
    NonSuccessKind, Property, Report as Document, TestCase, TestCaseStatus, TestSuite,
};

use crate::model::{Case, Report, Run, RunKind};
use crate::outside::{self, visible};
use crate::verdict::Verdict;
use crate::words;

/// Why a report could not be written as XML.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as JUnit XML: {0}")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// Renders a report as `JUnit` XML: a suite for each run, a test for each case, `classname` by
/// subject and area. What does not conform is a failure; our own faults are errors; what is not
/// applicable, and failures that are known, are skipped with the reason.
///
/// # Errors
/// [`JunitError`] if the writer refuses; texts are made fit for XML before.
pub fn render_junit(report: &Report) -> Result<String, JunitError> {
    let report = &outside::fit(report);
    let mut document = Document::new("dsh-conform");
    let total = report.runs.iter().map(|run| run.duration_us).sum();
    document.set_time(Duration::from_micros(total));
    for run in &report.runs {
        document.add_test_suite(suite(report, run));
    }
    Ok(document.to_string()?)
}

fn suite(report: &Report, run: &Run) -> TestSuite {
    let mut suite = TestSuite::new(fit(&words::subject(&run.subject)));
    suite.set_time(Duration::from_micros(run.duration_us));
    let mut property = |name: &str, value: &str| {
        suite.add_property(Property::new(name, fit(value)));
    };
    property(
        "tool",
        &format!("{} {}", report.tool.name, report.tool.version),
    );
    property(
        "platform",
        &format!("{} {}", report.platform.os, report.platform.arch),
    );
    property("profiles", &run.profiles.join(", "));
    if let Some(date) = &report.date {
        property("date", date);
    }
    if let Some(seed) = run.seed {
        property("seed", &seed.to_string());
    }
    if let Some(shard) = run.shard {
        property("shard", &shard.to_string());
    }
    property("conclusion", &run.conclusion.to_string());
    property("clauses", &words::counts(run));
    for (reason, clauses) in words::not_judged(run) {
        property(
            "not judged",
            &format!("{} ({reason})", words::clauses(&clauses)),
        );
    }
    for case in &run.cases {
        suite.add_test_case(test(run, case));
    }
    for stale in &run.stale {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status
            .set_type("stale")
            .set_message(fit(&words::stale(stale)));
        let mut test = TestCase::new(fit(&stale.case), status);
        test.set_classname(fit(&format!("{}.known", run.subject.name)));
        suite.add_test_case(test);
    }
    // A run without any case would pass for one that is green.
    if run.cases.is_empty() && !run.conclusion.conforms() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let conclusion = run.conclusion.to_string();
        status
            .set_type("not carried out")
            .set_message(fit(&conclusion));
        let mut test = TestCase::new("run", status);
        test.set_classname(fit(&run.subject.name));
        suite.add_test_case(test);
    }
    suite
}

fn test(run: &Run, case: &Case) -> TestCase {
    let mut test = TestCase::new(fit(&case.id), status(run, case));
    test.set_classname(fit(&format!("{}.{}", run.subject.name, case.group)));
    if let Some(duration) = case.duration_us {
        test.set_time(Duration::from_micros(duration));
    }
    test.add_property(Property::new("clauses", fit(&case.clauses.join(", "))));
    test.add_property(Property::new("level", case.level.to_string()));
    test.add_property(Property::new("verdict", case.verdict.as_str()));
    if let Some(source) = &case.source {
        test.add_property(Property::new("file", fit(&words::place(source))));
    }
    if case.verdict == Verdict::Note {
        test.set_system_out(fit(&description(run, case)));
    }
    test
}

fn status(run: &Run, case: &Case) -> TestCaseStatus {
    let mut status = match case.verdict {
        Verdict::Pass | Verdict::Note => return TestCaseStatus::success(),
        Verdict::NotApplicable | Verdict::Known => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(fit(&case.message));
            return status;
        }
        Verdict::HarnessError => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::Fail | Verdict::Untestable | Verdict::Timeout | Verdict::Crash => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
    };
    let about = words::clauses(case.about());
    let kind = match run.kind {
        RunKind::Conformance => case.verdict.as_str(),
        RunKind::Power => words::verdict(run.kind, case.verdict),
    };
    status.set_type(kind);
    status.set_message(fit(&format!("{about}: {}", case.message)));
    status.set_description(fit(&description(run, case)));
    status
}

/// What the text form shows of a case, as lines.
fn description(run: &Run, case: &Case) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(case.title.clone());
    for clause in &run.coverage {
        if case.about().contains(&clause.clause) {
            lines.push(format!(
                "{} {}: {}",
                clause.clause, clause.level, clause.statement
            ));
        }
    }
    lines.extend(case.expected.iter().map(|text| format!("expected: {text}")));
    let got = case.got.as_deref().unwrap_or(&case.message);
    lines.push(format!("got: {got}"));
    lines.extend(words::evidence(&case.evidence));
    let transcript = case.transcript.as_ref();
    lines.extend(transcript.map(|kept| format!("transcript: {}", kept.path)));
    lines.extend(case.reproduce.iter().map(|text| format!("repeat: {text}")));
    lines.join("\n")
}

/// Text that XML can hold: controls and the two characters that are none are shown escaped, line
/// ends stay.
fn fit(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            visible(line)
                .replace('\u{fffe}', "\\u{fffe}")
                .replace('\u{ffff}', "\\u{ffff}")
        })
        .collect();
    lines.join("\n")
}
