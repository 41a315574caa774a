//! `explain`.

mod clause;
mod monitor;
mod mutant;
mod scenario;

use std::fmt::Write as _;

use dsh_scenarios::Clauses;
use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::mutate::Mutants;
use dsh_scenarios::suite::{Suite, file_of};

use crate::exit::Exit;
use crate::lines::hanging;
use crate::output::{complain, say};

/// Explain a clause, a scenario, a mutant or a monitor: what it says, where it comes from, who exercises it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform explain QUA-6
  dsh-conform explain opn-3
  dsh-conform explain cancel/in-flight-ignored
  dsh-conform explain kills-at-once
  dsh-conform explain responses")]
pub(crate) struct Args {
    /// A clause's id in any letter case, the id of a scenario, or the name of a mutant or monitor;
    /// `dsh-conform list` lists them
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) fn run(args: &Args) -> Exit {
    let suite = match Suite::embedded() {
        Ok(suite) => suite,
        Err(error) => {
            complain(&format!("error: {error}"));
            return Exit::NotCarriedOut;
        }
    };
    let told = match told(&args.id, &suite) {
        Ok(text) => say(&text),
        Err(message) => {
            complain(&format!("error: {message}"));
            return Exit::Usage;
        }
    };
    match told {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}

/// What there is to tell about a name; else what there is of a similar name.
fn told(id: &str, suite: &Suite) -> Result<String, String> {
    let clauses = Clauses::embedded();
    let id = id.trim();
    if let Ok(clause) = clauses.find(id) {
        return Ok(clause::explained(clause, suite));
    }
    let typed = id.trim_end_matches(".yaml").trim_start_matches("./");
    let typed = typed.strip_prefix("scenarios/suite/").unwrap_or(typed);
    let cases: Vec<_> = suite
        .cases()
        .iter()
        .filter(|case| case.id == typed || file_of(&case.id) == typed)
        .collect();
    if !cases.is_empty() {
        return Ok(scenario::explained(typed, &cases, suite));
    }
    let mut mutants = Mutants::embedded().iter();
    if let Some((file, found)) = mutants.find(|(_, mutant)| mutant.name == id) {
        return Ok(mutant::explained(file, found));
    }
    if let Some(monitor) = MONITORS.iter().find(|monitor| monitor.name == id) {
        return Ok(monitor::explained(monitor));
    }
    let names = clauses
        .iter()
        .map(|clause| clause.id.as_str())
        .chain(suite.cases().iter().map(|case| file_of(&case.id)))
        .chain(suite.cases().iter().map(|case| case.id.as_str()))
        .chain(Mutants::embedded().iter().map(|(_, mutant)| &*mutant.name))
        .chain(MONITORS.iter().map(|monitor| monitor.name));
    // A clause may be typed in any letter case.
    let distance = |name: &str| {
        let as_typed = strsim::damerau_levenshtein(name, typed);
        as_typed.min(strsim::damerau_levenshtein(name, &typed.to_uppercase()))
    };
    let nearest = names.min_by_key(|name| distance(name)).unwrap_or_default();
    // What shares less than half of its letters is no slip of the finger.
    let way_out = if distance(nearest) * 2 <= typed.chars().count() {
        format!("did you mean {nearest}?")
    } else {
        "`dsh-conform list clauses`, `list scenarios`, `list mutants` and `list monitors` show them all".to_owned()
    };
    Err(format!(
        "there is no clause, scenario, mutant or monitor {id:?}; {way_out}"
    ))
}

/// Clauses by id, each with its level and statement, behind a name in the first line.
fn clauses(text: &mut String, name: &str, ids: &[String]) {
    for (index, id) in ids.iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        let _ = write!(text, "{name:<11} ");
        let told = match Clauses::embedded().get(id) {
            Some(clause) => format!("{id} {}: {}", clause.level, clause.statement),
            None => id.clone(),
        };
        hanging(text, 14, &told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path and a command are copied, and so never broken.
    #[test]
    fn every_explanation_fits_80_columns() {
        let suite = Suite::embedded().unwrap();
        let clauses = Clauses::embedded().iter().map(|clause| clause.id.clone());
        let scenarios = suite
            .cases()
            .iter()
            .map(|case| file_of(&case.id).to_owned());
        let mutants = Mutants::embedded()
            .iter()
            .map(|(_, mutant)| mutant.name.clone());
        let monitors = MONITORS.iter().map(|monitor| monitor.name.to_owned());
        let all = clauses.chain(scenarios).chain(mutants).chain(monitors);
        let all: std::collections::BTreeSet<String> = all.collect();
        for id in all {
            let text = told(&id, &suite).unwrap();
            for line in text.lines().filter(|line| line.chars().count() > 80) {
                let copied = line.trim();
                let is_copied = copied.starts_with("dsh-conform ")
                    || copied.starts_with("cargo ")
                    || !copied.contains(' ')
                    || copied.split(' ').any(|word| word.chars().count() > 60);
                assert!(is_copied, "{id}: {line}");
            }
        }
    }

    /// Every kind of name, with the suite read once.
    #[test]
    fn every_kind_of_name_is_explained_and_an_unknown_one_suggests_another() {
        let suite = Suite::embedded().unwrap();
        for (id, expected) in [
            (
                "qua-6",
                &["QUA-6 MUST", "source      LSP 3.17: Base Protocol"][..],
            ),
            (
                "qua-4",
                &["S1: DeepSeek Harness, the language-server seam\n            host policy: known"],
            ),
            (
                "cancel/before-it-starts",
                &[
                    "CAN-1 MUST",
                    "scenarios/suite/cancel/before-it-starts.yaml:1",
                    "dsh-conform run cancel/before-it-starts --in-process",
                ],
            ),
            (
                "scenarios/suite/cancel/before-it-starts.yaml",
                &["CAN-1 MUST"],
            ),
            ("CAN-1", &["cancel/before-it-starts", "cargo test -p"]),
            ("MSG/version", &["see         WIRE-7, which judges it too"]),
            ("CAN-4", &["kills-at-once"]),
            (
                "kills-at-once",
                &[
                    "breaks      CAN-4 MUST: ",
                    "dsh-conform run --mutants kills-at-once",
                ],
            ),
            (
                "responses",
                &[
                    "judges      WIRE-5 MUST: ",
                    "SRQ-1/pass-each-once.yaml",
                    "WIRE-5/fail-unasked.yaml",
                ],
            ),
            ("WIRE-7", &["messages"]),
        ] {
            let text = told(id, &suite).unwrap();
            for part in expected {
                assert!(text.contains(part), "{id}: no {part:?} in:\n{text}");
            }
        }
        for (id, expected) in [
            ("QUA-60", "did you mean QUA-6?"),
            (
                "cancel/before-it-start",
                "did you mean cancel/before-it-starts?",
            ),
            ("kill-at-once", "did you mean kills-at-once?"),
            ("respones", "did you mean responses?"),
            ("nothing-of-the-kind-at-all", "`dsh-conform list clauses`"),
        ] {
            let message = told(id, &suite).unwrap_err();
            assert!(message.contains(expected), "{id}: {message}");
        }
    }
}
