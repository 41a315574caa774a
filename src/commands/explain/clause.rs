//! What there is to tell about a clause.

use std::fmt::Write as _;

use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::mutate::Mutants;
use dsh_scenarios::suite::{Suite, file_of};
use dsh_scenarios::{Clause, Evidence};

use crate::commands::list::shown;
use crate::lines::{hanging, paragraph};

pub(super) fn explained(clause: &Clause, suite: &Suite) -> String {
    let mut text = format!("{} {}\n\n", clause.id, clause.level);
    paragraph(&mut text, 0, &clause.statement);
    text.push('\n');
    for (index, source) in clause.sources.iter().enumerate() {
        let name = if index == 0 { "source" } else { "" };
        let told = match source.to_string() {
            // `LSP 3.17: heading`, `host policy: part`
            full if full.contains(": ") => full,
            short => format!("{short}: {}", source.title()),
        };
        let _ = write!(text, "{name:<11} ");
        hanging(&mut text, 12, &told);
    }
    for (name, values) in [
        ("sides", clause.sides.iter().map(shown).collect()),
        ("profiles", clause.profiles.iter().map(shown).collect()),
        ("judged by", clause.judged.iter().map(shown).collect()),
        ("since", vec![clause.since.clone()]),
    ] {
        let _ = write!(text, "{name:<11} ");
        hanging(&mut text, 12, &values.join(", "));
    }
    if !clause.see.is_empty() {
        let _ = write!(text, "{:<11} ", "see");
        let see = format!("{}, which judges it too", clause.see.join(", "));
        hanging(&mut text, 12, &see);
    }
    if let Some(reason) = &clause.excluded {
        text.push_str("excluded    ");
        hanging(&mut text, 12, reason);
    }
    exercised(&mut text, clause, suite);
    text
}

fn exercised(text: &mut String, clause: &Clause, suite: &Suite) {
    let before = text.len();
    let mut files: Vec<(&str, &str, usize)> = Vec::new();
    for case in suite.cases() {
        if case.scenario.clauses.contains(&clause.id) {
            let file = file_of(&case.id);
            match files.last_mut() {
                Some((last, _, count)) if *last == file => *count += 1,
                _ => files.push((file, &case.scenario.title, 1)),
            }
        }
    }
    if !files.is_empty() {
        text.push_str("\nScenarios; run one with `dsh-conform run ID`\n");
    }
    for (file, title, count) in files {
        let cases = if count > 1 {
            format!(" ({count} cases)")
        } else {
            String::new()
        };
        let _ = writeln!(text, "  {file}{cases}");
        paragraph(text, 6, title);
    }
    let monitors: Vec<_> = MONITORS
        .iter()
        .filter(|monitor| monitor.clauses.contains(&clause.id.as_str()))
        .collect();
    if !monitors.is_empty() {
        text.push_str("\nMonitors; they look at every scenario, and at recordings by `audit`\n");
    }
    for monitor in monitors {
        let _ = writeln!(text, "  {}", monitor.name);
        paragraph(text, 6, monitor.statement);
    }
    let mutants: Vec<_> = Mutants::embedded().of(&clause.id).collect();
    if !mutants.is_empty() {
        text.push_str("\nMutants that break it; run one with `dsh-conform run --mutants NAME`\n");
    }
    for mutant in mutants {
        let _ = writeln!(text, "  {}", mutant.name);
        paragraph(text, 6, &mutant.title);
    }
    let witnesses = Evidence::embedded().of(&clause.id);
    if !witnesses.is_empty() {
        text.push_str("\nTests and probes\n");
    }
    for witness in witnesses {
        text.push_str("  ");
        hanging(text, 6, &witness.to_string());
        let _ = writeln!(text, "      {}", witness.command());
    }
    if text.len() == before {
        text.push_str("\nNothing exercises it yet.\n");
    }
}
