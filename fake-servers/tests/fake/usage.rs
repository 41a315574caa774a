//! The command line, scripts that are wrong, and the schema.

use std::process::Command;

use dsh_fake_lsp::{FakeServer, Script, reply, schema};
use serde_json::{Value, json};

use crate::client::{BIN, Client};

#[track_caller]
fn wrong(script: &str, expected: &str) {
    let error = Script::parse(script, "rules.yaml")
        .expect_err("should be refused")
        .to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_too_much_for_a_script_is_told_in_our_words() {
    for (value, words) in [
        (
            "[".repeat(5_000) + &"]".repeat(5_000),
            "no more than 64 levels",
        ),
        ("- ".repeat(80) + "x", "no more than 64 levels"),
        (format!("[{}]", "1,".repeat(400_000)), "more values"),
    ] {
        let text = format!("rules:\n  - on: x\n    do:\n      - reply:\n          {value}\n");
        let error = Script::parse(&text, "deep.yaml").unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert!(
            !error.contains("budget") && !error.contains("recursion"),
            "{error}"
        );
    }
}

#[test]
fn a_wrong_script_is_refused_with_place_and_way_out() {
    wrong("- {onn: x, do: []}", "rules.yaml:1:4: unknown field `onn`");
    wrong("- {onn: x, do: []}", "did you mean `on`?");
    wrong(
        "- on: x\n  do: [{replly: 1}]",
        "rules.yaml:2:9: unknown variant `replly`",
    );
    wrong("- on: x\n  do: [{replly: 1}]", "did you mean `reply`?");
    wrong("- on: x\n  do: [ignor]", "did you mean `ignore`?");
    wrong(
        "{rules: [], capabilites: {}}",
        "did you mean `capabilities`?",
    );
    wrong(
        "[{\"on\": \"x\", \"do\": [], \"nthh\": 1}]",
        "rules.yaml:1:",
    );
    wrong(
        "[{\"on\": \"x\", \"do\": [], \"nthh\": 1}]",
        "did you mean `nth`?",
    );
    wrong("- {on: x, do: [{kill: SIGKIL}]}", "did you mean `SIGKILL`?");
    wrong(
        "- {on: x, do: [{notify: {method: m, parms: 1}}]}",
        "did you mean `params`?",
    );
    wrong("- {on: x, do: [{exit: 300}]}", "rules.yaml:1:");
    wrong("- {on: x}", "missing field `do`");
    wrong("hello", "a list of rules");
    wrong("- on: x\n\tdo: []", "found a tab");
    wrong("[", "rules.yaml:1:");
    wrong("- {on: x, on: y, do: []}", "duplicate");
}

#[test]
fn what_cannot_be_carried_out_is_refused_with_its_rule() {
    let cases = [
        (
            "[{on: x, do: []}, {on: y, do: [{reply: '${ide}'}]}]",
            "rule 2 (on y): unknown template `${ide}`",
        ),
        ("[{on: '', do: []}]", "`on` is empty"),
        ("[{on: x, nth: 0, do: []}]", "`nth` counts from 1"),
        (
            "[{on: start, do: [{reply: 1}]}]",
            "`start` asks for no answer",
        ),
        (
            "[{on: x, do: [{delay_ms: 9999999}]}]",
            "the limit is 600000",
        ),
        ("[{on: x, do: [{raw: {base64: '!'}}]}]", "base64"),
        (
            "[{on: x, do: [{frame: {length: 1, length_by: 1}}]}]",
            "give one",
        ),
        ("[{on: x, do: [{chunk: {sizes: [0]}}]}]", "a size of 0"),
        ("[{on: x, do: [{hold: ''}]}]", "`hold` needs a name"),
        (
            "{capabilities: {a: 1}, replace_capabilities: {}}",
            "give one",
        ),
        (
            "[{on: x, do: [{notify: {method: m, times: 2000000}}]}]",
            "the limit is 1000000",
        ),
    ];
    for (script, expected) in cases {
        wrong(script, expected);
    }
}

#[test]
fn the_program_says_what_is_wrong_and_ends_with_two() {
    let run = |args: &[&str]| {
        let output = Command::new(BIN).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, stdout, stderr) = run(&["--script-inline", "- {onn: x}"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(
        stderr.starts_with("dsh-fake-lsp: --script-inline:1:4: unknown field"),
        "{stderr}"
    );
    let (code, _, stderr) = run(&["--script", "/nowhere.yaml"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("/nowhere.yaml"), "{stderr}");
    assert_eq!(run(&["--scrip", "x"]).0, Some(2));
    let (code, stdout, _) = run(&["--script-inline", "- {on: x, do: []}", "--check"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "the script is right: 1 rule\n")
    );
    let (code, stdout, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains("Examples:") && stdout.lines().all(|line| line.len() <= 80),
        "{stdout}"
    );
    assert_eq!(run(&["--schema"]).1, schema());
}

#[test]
fn a_script_file_may_be_yaml_or_json() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "a.yaml",
            "# a comment\n- on: tell\n  do:\n    - reply: yaml\n",
        ),
        (
            "b.json",
            "{\"rules\": [{\"on\": \"tell\", \"do\": [{\"reply\": \"json\"}]}]}",
        ),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let mut client = Client::with_args(&["--script", file.to_str().unwrap()]);
        client.initialize();
        let told = client.call("tell", &Value::Null)["result"].clone();
        assert!(name.ends_with(told.as_str().unwrap()), "{told}");
    }
}

#[test]
fn a_long_script_goes_into_a_file_that_goes_with_the_command() {
    let server = FakeServer::new().on("tell", [reply(json!("x".repeat(200_000)))]);
    let command = server.command(BIN).unwrap();
    assert_eq!(command.args[0], "--script");
    let file = std::path::PathBuf::from(&command.args[1]);
    let mut client = Client::spawn(command.clone().std());
    client.initialize();
    let told = client.call("tell", &Value::Null);
    assert_eq!(told["result"].as_str().map(str::len), Some(200_000));
    assert!(file.exists());
    drop(command);
    assert!(!file.exists());
}

#[test]
fn a_script_survives_being_written_and_read() {
    let text = "
capabilities: {hoverProvider: false}
rules:
- {on: a, process: 1, set: s, when: {x: [1]}, nth: 2, times: 3, do: [ignore, coalesce, default]}
- on: b
  do:
    - {request: {method: m, id: null, params: null, await: true, times: 4}}
    - {chunk: {at: [1, -1]}}
    - {frame: {case: mixed, length: '+1', only: -3}}
    - {stderr: {flood: 5}}
    - {stderr: {base64: AA==}}
    - {spawn_helper: {deaf: true}}
    - {reply: null}
";
    let script = Script::parse(text, "a").unwrap();
    let json = serde_json::to_string(&script).unwrap();
    assert_eq!(Script::parse(&json, "b").unwrap(), script);
}

#[test]
fn the_committed_schema_is_current_and_says_what_the_reader_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/script.schema.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == schema(),
        "script.schema.json is old; renew it with\n  \
         cargo run -p dsh-fake-lsp -- --schema > fake-servers/script.schema.json"
    );
    let schema: Value = serde_json::from_str(&committed).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (script, right) in [
        (
            "[{on: x, do: [ignore, {reply: 1}, {kill: SIGTERM}, {frame: {case: lower}}]}]",
            true,
        ),
        ("{capabilities: {a: 1}, rules: []}", true),
        (
            "[{on: x, do: [{raw: {text: a, times: 2}}, {stderr: {flood: 1}}]}]",
            true,
        ),
        ("[{onn: x, do: []}]", false),
        ("[{on: x, do: [{replly: 1}]}]", false),
        ("[{on: x, do: [{kill: SIGNOT}]}]", false),
        ("{rulez: []}", false),
    ] {
        let value: Value = serde_saphyr::from_str(script).unwrap();
        assert_eq!(validator.is_valid(&value), right, "{script}");
        assert_eq!(Script::parse(script, "x").is_ok(), right, "{script}");
    }
}
