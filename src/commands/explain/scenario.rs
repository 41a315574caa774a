//! What there is to tell about a scenario.

use std::fmt::Write as _;

use dsh_scenarios::format::Case;
use dsh_scenarios::suite::Suite;

use super::clauses;
use crate::lines::paragraph;

/// The most combinations of a matrix that are listed.
const LISTED: usize = 40;

/// Explains the scenario `id`, which is that of a file or of one of its cases. There is at least
/// one case.
pub(super) fn explained(id: &str, cases: &[&Case], suite: &Suite) -> String {
    let mut text = format!("{id}\n\n");
    let Some(case) = cases.first() else {
        return text;
    };
    let scenario = &case.scenario;
    paragraph(&mut text, 0, &scenario.title);
    if let Some(about) = &scenario.about {
        text.push('\n');
        for part in about.split("\n\n") {
            paragraph(&mut text, 0, part);
        }
    }
    let _ = writeln!(text, "\nfile        {}:{}", case.file, case.line);
    let _ = writeln!(text, "profile     {}", scenario.profile);
    clauses(&mut text, "clauses", &scenario.clauses);
    if cases.len() > 1 {
        let _ = writeln!(text, "\n{} cases", cases.len());
        for case in cases.iter().take(LISTED) {
            let _ = writeln!(text, "  {}", case.id);
        }
        if cases.len() > LISTED {
            let _ = writeln!(text, "  … and {} more", cases.len() - LISTED);
        }
    }
    for warning in suite.diagnostics() {
        if warning.file == case.file {
            text.push('\n');
            paragraph(&mut text, 0, &warning.to_string());
        }
    }
    text.push_str("\nTo run it\n");
    let quoted = super::super::run::quoted(id);
    let _ = writeln!(text, "  dsh-conform run {quoted} --in-process");
    let _ = writeln!(text, "  dsh-conform run {quoted} --subject FILE");
    text
}
