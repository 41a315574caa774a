//! Reading scenario files: cases, the matrix, and what is said about bad ones.

use dsh_scenarios::format::{FileSpec, Loaded, Step, load};
use serde_json::{Value, json};

fn read(text: &str) -> Loaded {
    load("dir/name", "dir/name.yaml", text.as_bytes())
}

#[track_caller]
fn good(text: &str) -> Loaded {
    let loaded = read(text);
    let shown: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    loaded
}

const HEAD: &str = "title: A title\nclauses: [CAN-1]\nprofile: transient\n";

#[test]
fn a_file_without_a_matrix_is_one_case() {
    let loaded = good(HEAD);
    let [case] = loaded.cases.as_slice() else {
        panic!("{loaded:?}")
    };
    assert_eq!((case.id.as_str(), case.line), ("dir/name", 1));
    assert_eq!(
        case.scenario.workspace["a.ts"],
        FileSpec::Text("const x = 1\n".to_owned())
    );
}

#[test]
fn a_matrix_is_filled_in_everywhere_and_keeps_types() {
    let text = format!(
        "{HEAD}{}",
        r#"
matrix:
  shape:
    one: {name: b.ts, value: [1, {two: null}], steps: [{release: r}, {release: r}]}
    two: {name: c.ts, value: 7, steps: []}
  op: {def: goToDefinition, hov: hover}
without: [{shape: two, op: hov}]
workspace: {$(shape.name): "$(op) of $(shape.value) $$(x)\n"}
server:
  - on: textDocument/definition
    do: [{hold: r}, {reply: $(shape.value)}]
steps:
  - query: {as: q, operation: $(op), at: "$(shape.name):1:1"}
  - $(shape.steps...)
  - release: r
"#
    );
    let loaded = good(&text);
    let ids: Vec<&str> = loaded.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(
        ids,
        ["dir/name#one-def", "dir/name#one-hov", "dir/name#two-def"]
    );
    let first = serde_json::to_value(&loaded.cases[0].scenario).unwrap();
    let texts = json!({"b.ts": "goToDefinition of [1,{\"two\":null}] $(x)\n"});
    assert_eq!(first["workspace"], texts);
    let reply = &first["server"]["rules"][0]["do"][1]["reply"];
    assert_eq!(*reply, json!([1, {"two": Value::Null}]));
    assert_eq!(loaded.cases[0].scenario.steps.len(), 4);
    let last = &loaded.cases[2].scenario;
    assert_eq!(last.steps.len(), 2);
    assert!(matches!(&last.steps[0], Step::Query(query) if query.at == "c.ts:1:1"));
    assert!(last.matrix.is_empty() && last.without.is_empty());
}

#[test]
fn several_errors_are_told_together() {
    let loaded = read(
        "clauses: [CAN-1]\nprofile: transint\nstps: []\nsteps:\n  - qery: {as: q}\n  - cancel: {nam: x}\n  - wait: {recieved: x}\n  - {release: a, remove: b}\n",
    );
    let shown: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "dir/name.yaml:1:1: `title` is missing",
            "dir/name.yaml:2:10: unknown profile `transint` (did you mean `transient`?)",
            "dir/name.yaml:3:1: unknown key `stps` (did you mean `steps`?)",
            "dir/name.yaml:5:5: unknown step `qery` (did you mean `query`?)",
            "dir/name.yaml:6:13: `cancel` takes the name of what is given up, or `{name, reason}` \
             (did you mean `name`?)",
            "dir/name.yaml:7:12: unknown key `recieved` (did you mean `received`?)",
            "dir/name.yaml:8:5: a step is an object with exactly one key, which says what it is",
        ]
    );
    assert!(loaded.cases.is_empty());
}
