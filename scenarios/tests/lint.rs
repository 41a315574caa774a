//! The suite and the clauses as a whole: every file can be read, every clause is judged by something
//! or says why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dsh_scenarios::format::{Outcome, Scenario, Step};
use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::suite::Suite;
use dsh_scenarios::{Clause, Clauses, Evidence, UNNUMBERED_RULES};

fn suite() -> Suite {
    Suite::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("suite")).expect("the suite is there")
}

#[test]
fn every_scenario_can_be_read_without_a_word() {
    let suite = suite();
    let said: Vec<String> = suite
        .diagnostics()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        said.is_empty(),
        "{} of {} files:\n{}",
        said.len(),
        suite.files().len(),
        said.join("\n")
    );
}

/// The clauses a scenario judges, those of single expectations included.
fn judged_by(scenario: &Scenario) -> BTreeSet<&str> {
    fn of<'a>(outcome: &'a Outcome, found: &mut BTreeSet<&'a str>) {
        found.extend(outcome.clauses.iter().map(String::as_str));
        outcome.any_of.iter().for_each(|one| of(one, found));
    }
    let mut found: BTreeSet<&str> = scenario.clauses.iter().map(String::as_str).collect();
    for message in &scenario.messages {
        found.extend(message.clauses.iter().map(String::as_str));
    }
    for step in &scenario.steps {
        if let Step::Expect(outcomes) = step {
            outcomes
                .values()
                .for_each(|outcome| of(outcome, &mut found));
        }
    }
    found.extend(
        scenario
            .mount
            .iter()
            .flat_map(|one| &one.clauses)
            .map(String::as_str),
    );
    found
}

/// Clause or rule → what judges it.
fn judges(suite: &Suite) -> BTreeMap<String, Vec<String>> {
    let mut judges: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |clause: &str, judge: String| {
        judges.entry(clause.to_owned()).or_default().push(judge);
    };
    for case in suite.cases() {
        for clause in judged_by(&case.scenario) {
            add(clause, format!("case {}", case.id));
        }
    }
    for monitor in MONITORS {
        for clause in monitor.clauses {
            add(clause, format!("monitor {}", monitor.name));
        }
    }
    for clause in Clauses::embedded().iter() {
        for witness in Evidence::embedded().of(&clause.id) {
            add(&clause.id, witness.to_string());
        }
    }
    judges
}

/// What is wrong with a clause: nobody judges it and it does not say why, or somebody does and it
/// says why nobody does.
fn complaint(clause: &Clause, judges: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let own = judges.get(&clause.id).map_or(&[][..], Vec::as_slice);
    let by_reference = clause.see.iter().any(|other| judges.contains_key(other));
    match (&clause.excluded, own) {
        (Some(_), [judge, ..]) => Some(format!(
            "{} is excluded, and judged by {judge}: take the reason away",
            clause.id
        )),
        (None, []) if clause.see.is_empty() => Some(format!(
            "{} is judged by no case, monitor, probe or test, and gives no reason (`excluded`)",
            clause.id
        )),
        (None, []) if !by_reference => Some(format!(
            "{} refers to {}, and nothing judges these",
            clause.id,
            clause.see.join(", ")
        )),
        _ => None,
    }
}

#[test]
fn every_clause_is_judged_or_says_why_not() {
    let judges = judges(&suite());
    let complaints: Vec<String> = Clauses::embedded()
        .iter()
        .filter_map(|clause| complaint(clause, &judges))
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Also where a case names it in passing: the loader knows clauses, a monitor's table does not.
#[test]
fn monitors_name_clauses_that_exist() {
    let unknown: Vec<&str> = MONITORS
        .iter()
        .flat_map(|monitor| monitor.clauses)
        .copied()
        .filter(|id| Clauses::embedded().get(id).is_none() && !UNNUMBERED_RULES.contains(id))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_lint_finds_what_it_is_for() {
    fn said(clause: &Clause, judges: &BTreeMap<String, Vec<String>>) -> String {
        complaint(clause, judges).unwrap_or_default()
    }
    let clause = |more: &str| {
        let text = format!(
            "section: OPN\ntitle: A title\nclauses:\n  - id: OPN-1\n    level: must\n    \
             sides: [wire]\n    profiles: [transient]\n    sources: [S1]\n    judged: [wire]\n    \
             statement: Something.\n    since: 0.1.0\n    {more}\n"
        );
        let clauses = Clauses::parse([("opn.yaml", text.as_str())]).unwrap();
        clauses.get("OPN-1").unwrap().clone()
    };
    let judged = |id: &str| BTreeMap::from([(id.to_owned(), vec!["case x".to_owned()])]);
    let none = BTreeMap::new();
    assert!(said(&clause(""), &none).contains("gives no reason"));
    assert_eq!(said(&clause(""), &judged("OPN-1")), "");
    assert_eq!(said(&clause("excluded: why"), &none), "");
    assert!(said(&clause("excluded: why"), &judged("OPN-1")).contains("take the reason away"));
    assert!(said(&clause("see: [shape]"), &none).contains("nothing judges these"));
    assert_eq!(said(&clause("see: [shape]"), &judged("shape")), "");
}

/// Each snapshot belongs to a case that has a text to hold against it; each such case has one.
#[test]
fn snapshots_and_cases_with_texts_are_the_same() {
    let suite = suite();
    let texts: BTreeSet<&str> = suite
        .cases()
        .iter()
        .filter(|case| {
            case.scenario.steps.iter().any(|step| match step {
                Step::Tool(tool) => tool.snapshot,
                Step::Turn(turn) => turn.snapshot,
                _ => false,
            })
        })
        .map(|case| case.id.as_str())
        .collect();
    let snapshots: BTreeSet<&str> = suite.snapshots().collect();
    let left_over: Vec<_> = snapshots.difference(&texts).collect();
    assert!(left_over.is_empty(), "remove these: {left_over:?}");
    let missing: Vec<_> = texts.difference(&snapshots).collect();
    assert!(missing.is_empty(), "review these: {missing:?}");
}
