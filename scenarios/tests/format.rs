//! Reading scenario files: cases, the matrix, and what is said about bad ones.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use dsh_scenarios::format::{FileSpec, Loaded, Severity, Step, load};
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

const HEAD: &str = "title: A title\nclauses: [CAN-1]\nprofile: transient\nprocesses: 0\n";

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

/// Each file of `format/bad` says what is wrong with it, in a snapshot beside it.
#[test]
fn bad_files_are_told_what_is_wrong_and_where() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/bad");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".yaml")?.to_owned())
        })
        .collect();
    names.sort();
    assert!(names.len() >= 30, "the bad files were not found");
    for name in names {
        let file = format!("{name}.yaml");
        let loaded = load(&name, &file, &fs::read(folder.join(&file)).unwrap());
        let said: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        assert!(!said.is_empty(), "{name}: nothing is wrong with it");
        let broken = |severity| severity == Severity::Error;
        let errors = loaded.diagnostics.iter().any(|one| broken(one.severity));
        assert_eq!(loaded.cases.is_empty(), errors, "{name}");
        insta::with_settings!({
            snapshot_path => &folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, said.join("\n"));
        });
    }
}

#[test]
fn what_is_no_text_or_too_long_is_refused() {
    let said = |bytes: &[u8]| {
        let loaded = load("dir/name", "dir/name.yaml", bytes);
        assert!(loaded.cases.is_empty());
        let [one] = loaded.diagnostics.as_slice() else {
            panic!("{loaded:?}")
        };
        one.to_string()
    };
    assert_eq!(
        said(b"title: A\nabout: \xc3\xa4\xff"),
        "dir/name.yaml:2:9: the file is not UTF-8 from here on; write bytes that are no text as \
         `{base64: …}`"
    );
    let long = format!("{HEAD}about: {}\n", "x".repeat(1 << 20));
    assert!(
        said(long.as_bytes()).starts_with("dir/name.yaml:1:1: the file has 1048"),
        "{}",
        said(long.as_bytes())
    );
}

/// Deep nesting and endless aliases are refused; neither overflows anything.
#[test]
fn hostile_files_end_in_an_error() {
    let deep = format!("{HEAD}tool: {}", "[".repeat(100_000));
    let mut bomb = format!("{HEAD}tool:\n  a0: &a0 [x]\n");
    for level in 1..40 {
        let before = level - 1;
        writeln!(
            bomb,
            "  a{level}: &a{level} [*a{before}, *a{before}, *a{before}]"
        )
        .unwrap();
    }
    for text in [deep, bomb] {
        let loaded = read(&text);
        assert!(loaded.cases.is_empty());
        assert_eq!(loaded.diagnostics.len(), 1, "{:?}", loaded.diagnostics);
    }
}

#[test]
fn what_is_too_much_is_told_in_our_words() {
    for (text, wanted) in [
        (
            format!("about: {}{}", "[".repeat(200), "]".repeat(200)),
            "lie 32 deep",
        ),
        (format!("about:\n  {}x", "- ".repeat(70)), "lie 32 deep"),
        (
            format!("about: {}1{}", "{a: ".repeat(70), "}".repeat(70)),
            "lie 32 deep",
        ),
        (
            format!("about: [{}]", "1,".repeat(260_000)),
            "may have 250000 values",
        ),
        (
            format!(
                "about:\n  - &a [{}]\n  - &b [{}]\n  - [{}]",
                "1,".repeat(100),
                "*a,".repeat(100),
                "*b,".repeat(100)
            ),
            "may have 250000 values, those that aliases stand for included",
        ),
    ] {
        let loaded = read(&format!("{HEAD}{text}\n"));
        let told: Vec<String> = loaded.diagnostics.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        assert!(told.contains(wanted), "{wanted}: {told}");
        for inside in ["udget", "breach", "max_", "recursion"] {
            assert!(!told.contains(inside), "{told}");
        }
    }
}
