//! The table of failures seen in public: complete, and each row leads to what holds it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dsh_scenarios::Clauses;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    count: usize,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    reports: Vec<String>,
    what: String,
    #[serde(default)]
    scenarios: Vec<String>,
    out_of_scope: Option<String>,
    contradicts: Option<String>,
    because: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn table() -> Table {
    let text = std::fs::read_to_string(folder().join("failure-modes.yaml"));
    serde_saphyr::from_str(&text.expect("the table is there")).expect("it is a table")
}

/// What is wrong with one row, in words.
fn wrong(row: &Row, clauses: &Clauses) -> Vec<String> {
    let mut wrong = Vec::new();
    let answers = [
        !row.scenarios.is_empty(),
        row.out_of_scope.is_some(),
        row.contradicts.is_some(),
    ];
    if answers.iter().filter(|given| **given).count() != 1 {
        wrong.push("has to have one of scenarios, out_of_scope and contradicts".to_owned());
    }
    if row.what.trim().is_empty() || row.reports.is_empty() {
        wrong.push("does not say what was reported, and where".to_owned());
    }
    for report in &row.reports {
        if !is_reference(report) {
            wrong.push(format!("{report:?} is no repository#number"));
        }
    }
    for scenario in &row.scenarios {
        let file = folder().join("suite").join(format!("{scenario}.yaml"));
        if !file.is_file() {
            wrong.push(format!("there is no scenario {scenario:?}"));
        }
    }
    if let Some(clause) = &row.contradicts {
        if clauses.get(clause).is_none() {
            wrong.push(format!("there is no clause {clause:?}"));
        }
        if row.because.as_deref().is_none_or(str::is_empty) {
            wrong.push("contradicts a clause without a reason".to_owned());
        }
    }
    if row.out_of_scope.as_deref() == Some("") {
        wrong.push("is out of scope without a reason".to_owned());
    }
    wrong
}

fn is_reference(report: &str) -> bool {
    let Some((repository, number)) = report.split_once('#') else {
        return false;
    };
    let parts: Vec<&str> = repository.split('/').collect();
    parts.len() == 2 && parts.iter().all(|part| !part.is_empty()) && number.parse::<u32>().is_ok()
}

#[test]
fn every_row_leads_to_what_holds_it() {
    let clauses = Clauses::embedded();
    let mut all = Vec::new();
    for row in &table().rows {
        let wrong = wrong(row, clauses);
        all.extend(wrong.into_iter().map(|what| format!("{}: {what}", row.id)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn no_row_is_lost_or_there_twice() {
    let table = table();
    let ids: BTreeSet<&str> = table.rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!((table.rows.len(), ids.len()), (table.count, table.count));
}

#[test]
fn a_row_that_leads_nowhere_is_found() {
    let clauses = Clauses::embedded();
    let row = |text: &str| -> Row { serde_saphyr::from_str(text).unwrap() };
    for (text, why) in [
        ("{id: A-1, reports: [a/b#1], what: w}", "has to have one of"),
        (
            "{id: A-1, reports: [a/b#1], what: w, scenarios: [crash/idle], out_of_scope: x}",
            "has to have one of",
        ),
        (
            "{id: A-1, reports: [a/b#1], what: w, scenarios: [crash/idel]}",
            "no scenario \"crash/idel\"",
        ),
        (
            "{id: A-1, reports: [a/b#1], what: w, contradicts: SRQ-99, because: x}",
            "no clause \"SRQ-99\"",
        ),
        (
            "{id: A-1, reports: [a/b#1], what: w, contradicts: SRQ-5}",
            "without a reason",
        ),
        (
            "{id: A-1, reports: [b#1], what: w, scenarios: [crash/idle]}",
            "\"b#1\" is no repository#number",
        ),
        (
            "{id: A-1, reports: [], what: w, scenarios: [crash/idle]}",
            "what was reported",
        ),
    ] {
        let wrong = wrong(&row(text), clauses).join("; ");
        assert!(wrong.contains(why), "{text}: {wrong}");
    }
}
