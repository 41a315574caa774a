//! What there is to tell about a mutant.

use std::fmt::Write as _;

use dsh_scenarios::mutate::Mutant;
use dsh_scenarios::{Clauses, Level};

use crate::commands::list::{hanging, paragraph};

pub(super) fn explained(file: &str, mutant: &Mutant) -> String {
    let mut text = format!("{}: a mutant\n\n", mutant.name);
    paragraph(&mut text, 0, &mutant.title);
    let _ = writeln!(text, "\nfile        scenarios/{file}");
    for (index, id) in mutant.breaks.iter().enumerate() {
        let name = if index == 0 { "breaks" } else { "" };
        let _ = write!(text, "{name:<11} ");
        match Clauses::embedded().get(id) {
            Some(clause) => {
                let level = match clause.level {
                    Level::Must => "MUST",
                    Level::Should => "SHOULD",
                };
                let told = format!("{id} {level}: {}", clause.statement);
                hanging(&mut text, 14, &told);
            }
            None => hanging(&mut text, 14, id),
        }
    }
    if !mutant.scenarios.is_empty() {
        text.push_str("tried on    ");
        hanging(&mut text, 12, &mutant.scenarios.join(", "));
    }
    text.push_str("\nTo see which scenario notices it\n");
    let _ = writeln!(text, "  dsh-conform run --mutants {}", mutant.name);
    text
}
