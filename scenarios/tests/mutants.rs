//! The mutants as data: readable, complete, and what the schema says.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use dsh_scenarios::format::Case;
use dsh_scenarios::mutate::{Mutants, mutant_schema, needed, select};
use dsh_scenarios::suite::Suite;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn each_must_that_can_be_judged_is_broken_by_a_mutant() {
    let mutants = Mutants::embedded();
    let unbroken: BTreeSet<_> = Mutants::wanted()
        .filter(|clause| mutants.of(clause).next().is_none())
        .collect();
    assert_eq!(unbroken, BTreeSet::new());
    assert!(Mutants::wanted().count() > 90);
    assert!(mutants.iter().count() >= 80);
}

#[test]
fn all_files_are_built_in_and_fit_the_schema() {
    let schema = mutant_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let built_in: BTreeSet<_> = Mutants::embedded()
        .iter()
        .map(|(file, _)| file.to_owned())
        .collect();
    let mut there = BTreeSet::new();
    for entry in std::fs::read_dir(folder().join("mutants")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        there.insert(format!("mutants/{name}"));
        let text = std::fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
    assert_eq!(built_in, there);
}

#[test]
fn the_schema_is_current() {
    let path = folder().join("schema/mutant.schema.json");
    let expected = format!("{:#}\n", mutant_schema());
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is out of date: cargo run -p dsh-scenarios --example mutant_schema > it",
        path.display()
    );
}

#[test]
fn names_say_what_is_done_and_titles_are_sentences() {
    for (file, mutant) in Mutants::embedded().iter() {
        let name = &mutant.name;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(
            name.contains('-') && name.chars().all(fits),
            "{file}: {name}"
        );
        let title = &mutant.title;
        assert!(title.starts_with(char::is_uppercase), "{file}: {title}");
        assert!(!title.ends_with('.'), "{file}: {title}");
    }
}

#[test]
fn what_is_no_mutant_is_refused_with_its_name() {
    for (text, told) in [
        (
            "title: x\nmutants: [{name: a-b, title: X, breaks: [OPN-99], life: [second]}]",
            "OPN-99",
        ),
        (
            "title: x\nmutants: [{name: a-b, title: X, breaks: [OPN-1]}]",
            "does nothing",
        ),
        (
            "title: x\nmutants: [{name: a-b, title: X, breaks: [], life: [second]}]",
            "breaks nothing",
        ),
        (
            "title: x\nmutants: [{name: a-b, title: X, breaks: [OPN-1], wire: [{do: [drop]}]}]",
            "exactly one",
        ),
        (
            "title: x\nmutants: [{name: a-b, title: X, breaks: [OPN-1], lives: []}]",
            "lives",
        ),
    ] {
        let error = Mutants::parse([("x.yaml", text)]).unwrap_err().to_string();
        assert!(error.contains("x.yaml") && error.contains(told), "{error}");
    }
}

#[test]
fn a_folder_of_the_suite_selects_the_mutants_of_the_same_name() {
    let files = |filter: &str| -> BTreeSet<String> {
        let selected = select(&[filter.to_owned()]);
        selected.into_iter().map(|(file, _)| file).collect()
    };
    let both = [
        "mutants/instructions-in-detail.yaml",
        "mutants/instructions.yaml",
    ];
    assert_eq!(files("instructions/"), both.map(str::to_owned).into());
    assert_eq!(files("instructions"), files("instructions/"));
    assert!(files("no-such-folder/").is_empty());
}

/// What a mutant is tried on is what is run without it first, and no more.
#[test]
fn a_mutant_needs_few_cases() {
    let suite = Suite::embedded().unwrap();
    let cases: Vec<Arc<Case>> = suite.cases().iter().cloned().map(Arc::new).collect();
    let of = |name: &str| {
        let mutants = select(&[name.to_owned()]);
        assert_eq!(mutants.len(), 1, "{name}");
        needed(mutants.iter().map(|(_, mutant)| mutant), &cases)
    };
    let ids: Vec<_> = of("finishes-what-was-given-up")
        .iter()
        .map(|case| case.id.clone())
        .collect();
    assert_eq!(
        ids,
        [
            "runtime/cancelled-in-a-tool",
            "runtime/cancelled-while-the-model-answers#before-it-answers"
        ]
    );
    for (_, mutant) in Mutants::embedded().iter() {
        let needs = needed([mutant], &cases);
        assert!(!needs.is_empty(), "{}", mutant.name);
    }
    let names = |case: &Arc<Case>| case.scenario.clauses.iter().any(|clause| clause == "CAN-4");
    let needs = of("kills-at-once");
    let all = cases.iter().filter(|case| names(case)).count();
    assert_eq!(needs.iter().filter(|case| names(case)).count(), all);
    assert!(needs.len() < cases.len() / 10, "{} cases", needs.len());
}
