//! The JSON Schema of scenario files: current, and true of the suite.

use std::fs;
use std::path::{Path, PathBuf};

use dsh_scenarios::scenario_schema;
use serde_json::Value;

#[test]
fn the_committed_schema_is_current() {
    // The two are long; which line differs, `git diff` tells better.
    assert!(
        include_str!("../schema/scenario.schema.json") == format!("{:#}\n", scenario_schema()),
        "write it again: cargo run -p dsh-scenarios --example scenario_schema > scenarios/schema/scenario.schema.json"
    );
}

fn yaml(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true, null_as_string: true };
    serde_saphyr::from_str_with_options(text, options).expect("the loader's tests read it too")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_scenario_fits_the_schema() {
    let validator = jsonschema::validator_for(&scenario_schema()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let files = files(&folder);
    assert!(files.len() > 100, "the suite was not found");
    let mut wrong = Vec::new();
    for file in files {
        let scenario = yaml(&fs::read_to_string(&file).unwrap());
        for error in validator.iter_errors(&scenario) {
            let at = error.instance_path().to_string();
            wrong.push(format!("{}{at}: {error}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_types_refuse_the_schema_refuses() {
    let validator = jsonschema::validator_for(&scenario_schema()).unwrap();
    let head = "title: A title\nclauses: [CAN-1]\nprofile: transient\n";
    assert!(validator.is_valid(&yaml(head)));
    let fine = [
        "processes: $(n)\nmatrix: {n: {a: 1}}",
        "steps: [$(step), {wait: $(pattern)}, {expect: {q: $(outcome)}}]",
        "server: $(script)",
        "workspace: {a.ts: {repeat: {text: x, times: $(n)}}}",
    ];
    for rest in fine {
        let scenario = yaml(&format!("{head}{rest}\n"));
        let said: Vec<String> = validator
            .iter_errors(&scenario)
            .map(|error| error.to_string())
            .collect();
        assert!(said.is_empty(), "{rest}: {said:?}");
    }
    for rest in [
        "stps: []",
        "profile2: tool",
        "processes: many",
        "steps: [{qery: {}}]",
        "steps: [{query: {as: q}}]",
        "steps: [{wait: {recieved: x}}]",
        "server: [{on: start, do: [{repli: 1}]}]",
        "workspace: {a.ts: {lnk: x}}",
        "ends: {1: {exits: 0}}",
    ] {
        assert!(
            !validator.is_valid(&yaml(&format!("{head}{rest}\n"))),
            "{rest}"
        );
    }
}
