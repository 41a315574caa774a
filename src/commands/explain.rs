//! `explain`.

use std::fmt::Write as _;

use dsh_scenarios::{Clauses, Evidence, Level};

use super::list::{paragraph, shown};
use crate::exit::Exit;
use crate::output::{complain, say};

/// Explain a clause: what it says, where it comes from, who exercises it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform explain QUA-6
  dsh-conform explain opn-3")]
pub(crate) struct Args {
    /// The clause's id, in any letter case; `dsh-conform list clauses` lists them
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) fn run(args: &Args) -> Exit {
    let clause = match Clauses::embedded().find(&args.id) {
        Ok(clause) => clause,
        Err(unknown) => {
            complain(&format!("error: {unknown}"));
            return Exit::Usage;
        }
    };
    let level = match clause.level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
    };
    let mut text = format!("{} {level}\n\n", clause.id);
    paragraph(&mut text, 0, &clause.statement);
    text.push('\n');
    for (index, source) in clause.sources.iter().enumerate() {
        let name = if index == 0 { "source" } else { "" };
        let told = match source.to_string() {
            // `LSP 3.17: heading`, `host policy: part`
            full if full.contains(": ") => full,
            short => format!("{short}: {}", source.title()),
        };
        let _ = writeln!(text, "{name:<11} {told}");
    }
    for (name, values) in [
        ("sides", clause.sides.iter().map(shown).collect()),
        ("profiles", clause.profiles.iter().map(shown).collect()),
        ("judged by", clause.judged.iter().map(shown).collect()),
        ("since", vec![clause.since.clone()]),
    ] {
        let _ = writeln!(text, "{name:<11} {}", values.join(", "));
    }
    text.push('\n');
    let witnesses = Evidence::embedded().of(&clause.id);
    if witnesses.is_empty() {
        text.push_str("Nothing exercises it yet.\n");
    } else {
        text.push_str("Exercised by\n");
        for witness in witnesses {
            let _ = writeln!(text, "  {witness}");
            let _ = writeln!(text, "      {}", witness.command());
        }
    }
    match say(&text) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}
