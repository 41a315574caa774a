//! What there is to tell about a mutant.

use std::fmt::Write as _;

use dsh_scenarios::mutate::Mutant;

use super::clauses;
use crate::lines::{hanging, paragraph};

pub(super) fn explained(file: &str, mutant: &Mutant) -> String {
    let mut text = format!("{}: a mutant\n\n", mutant.name);
    paragraph(&mut text, 0, &mutant.title);
    let _ = writeln!(text, "\nfile        scenarios/{file}");
    clauses(&mut text, "breaks", &mutant.breaks);
    if !mutant.scenarios.is_empty() {
        text.push_str("tried on    ");
        hanging(&mut text, 12, &mutant.scenarios.join(", "));
    }
    text.push_str("\nTo see which scenario notices it\n");
    let _ = writeln!(text, "  dsh-conform run --mutants {}", mutant.name);
    text
}
