//! A badge: what shields.io reads from an endpoint.

use serde_json::json;

use crate::model::{Report, Run};
use crate::outside::{self, visible};
use crate::words;

/// Renders a report as the JSON of a badge, with the counts of clauses; with several runs, how many
/// of them conform.
pub fn render_badge(report: &Report) -> String {
    let report = &outside::fit(report);
    let good = |run: &&Run| run.conclusion.conforms() && run.stale.is_empty();
    let (label, message, all_good, spotless) = match report.runs.as_slice() {
        [] => (
            "dsh-conform".to_owned(),
            "nothing run".to_owned(),
            false,
            false,
        ),
        [run] => {
            let counts = words::counts(run);
            let message = match (good(&run), counts.as_str()) {
                (true, "") => words::short(&run.conclusion).to_lowercase(),
                (true, counts) => counts.to_owned(),
                (false, "") => word(run).to_owned(),
                (false, counts) => format!("{} · {counts}", word(run)),
            };
            (
                visible(&run.subject.name),
                message,
                good(&run),
                is_spotless(run),
            )
        }
        runs => {
            let conforming = runs.iter().filter(good).count();
            let all = runs.len();
            let message = format!("{conforming} of {all} conform");
            let spotless = runs.iter().all(is_spotless);
            (
                "dsh-conform".to_owned(),
                message,
                conforming == all,
                spotless,
            )
        }
    };
    let color = match (all_good, spotless) {
        (false, _) => "red",
        (true, false) => "yellowgreen",
        (true, true) => "brightgreen",
    };
    let badge = json!({
        "schemaVersion": 1,
        "label": label,
        "message": visible(&message),
        "color": color,
        "isError": !all_good,
    });
    format!("{badge:#}\n")
}

fn is_spotless(run: &Run) -> bool {
    let should = run.totals.should;
    run.totals.must.held == run.totals.must.judged && should.held == should.judged
}

/// Why it is red, in a word.
fn word(run: &Run) -> &'static str {
    use crate::conclusion::Conclusion;
    match &run.conclusion {
        Conclusion::Untestable { .. } => "untestable",
        Conclusion::Interrupted => "interrupted",
        Conclusion::HarnessError { .. } => "harness error",
        Conclusion::Unnoticed { .. } => "mutants survived",
        conclusion if conclusion.conforms() => "stale known failures",
        _ => "does not conform",
    }
}
