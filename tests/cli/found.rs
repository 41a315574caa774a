//! Any server, in a workspace nobody named a place in.

use std::collections::BTreeMap;
use std::path::Path;

use dsh_fake_lsp::{FakeServer, Rule, ignore, reply, set};
use dsh_reports::{Conclusion, Run, Verdict};
use serde_json::{Value, json};

use crate::support::{Desk, Said, typed};

fn check(desk: &Desk, server: &FakeServer, workspace: &str, more: &[&str]) -> Said {
    check_by(desk, &typed(server), workspace, more)
}

/// The same with a server that is started in another way.
fn check_by(desk: &Desk, command: &str, workspace: &str, more: &[&str]) -> Said {
    let mut args = vec!["check", "--command", command, "--ext", ".fake=fake"];
    args.extend(["--workspace", workspace, "--measure", "no"]);
    args.extend(more);
    desk.run(&args)
}

/// Every file below a folder, with its bytes.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    all
}

#[track_caller]
fn run(said: &Said) -> Run {
    said.report().runs.remove(0)
}

#[track_caller]
fn verdict(run: &Run, clause: &str) -> Verdict {
    let known = run.coverage.iter().find(|known| known.clause == clause);
    known.unwrap().verdict.unwrap()
}

#[track_caller]
fn told<'r>(run: &'r Run, beginning: &str) -> &'r str {
    let mut remarks = run.remarks.iter();
    remarks
        .find(|remark| remark.starts_with(beginning))
        .unwrap_or_else(|| panic!("no {beginning:?} in {:#?}", run.remarks))
}

#[test]
fn places_are_found_and_answers_agree_and_repeat() {
    let desk = Desk::new();
    let (workspace, _) = desk.sample("main.fake", "use-area");
    let before = contents(&workspace);
    let said = check(
        &desk,
        &FakeServer::markers(),
        "workspace",
        &["--format", "json"],
    )
    .ended(0);
    let run = run(&said);
    assert!(
        matches!(run.conclusion, Conclusion::ProtocolOnly { .. }),
        "{}",
        run.conclusion
    );
    assert_eq!(verdict(&run, "QUA-4"), Verdict::NotApplicable);
    assert_eq!(verdict(&run, "QUA-5"), Verdict::NotApplicable);
    assert_eq!(verdict(&run, "QUA-7"), Verdict::Pass);
    let places = told(&run, "Asked at ");
    assert!(
        places.contains("names that occur more than once"),
        "{places}"
    );
    let agreement = told(&run, "Agreement: at ");
    let counts: Vec<&str> = agreement
        .split(' ')
        .filter(|word| word.parse::<u32>().is_ok())
        .collect();
    assert!(
        counts.len() == 2 && counts[0] == counts[1] && counts[0] != "0",
        "{agreement}"
    );
    assert_eq!(
        told(&run, "Repeatability"),
        "Repeatability: every answer came the same three times running."
    );
    assert_eq!(contents(&workspace), before, "the workspace is the user's");
    let remedy = run.remedy.as_ref().unwrap();
    assert_eq!(remedy.timeout_ms, Some(60_000));
    let again = check(
        &desk,
        &FakeServer::markers(),
        "workspace",
        &["--format", "json"],
    );
    assert_eq!(told(&again.report().runs[0], "Asked at "), places);
}

/// A server that first does what a shell is told, in the workspace.
fn behind(shell: &str, server: &FakeServer) -> String {
    let script = format!("{shell}; exec \"$@\"");
    let script = shlex::try_quote(&script).unwrap().into_owned();
    format!("sh -c {script} sh {}", typed(server))
}

/// Its first start is the one that is asked for symbols.
#[test]
fn what_a_server_writes_before_anything_is_judged_is_noticed() {
    let desk = Desk::new();
    desk.sample("main.fake", "use-area");
    let command = behind("echo > cache.txt", &FakeServer::markers());
    let more = ["--only", "QUA-19", "--format", "json"];
    let said = check_by(&desk, &command, "workspace", &more);
    let run = run(&said);
    assert_eq!(verdict(&run, "QUA-19"), Verdict::Note);
    let case = run.cases.iter().find(|case| case.id == "QUA-19").unwrap();
    assert!(case.message.contains("added cache.txt"), "{}", case.message);
}

/// Settings are not praised for what goes away by itself.
#[test]
fn a_server_that_works_at_the_second_try_is_given_no_setting() {
    let desk = Desk::new();
    let (_, place) = desk.sample("main.fake", "use-area");
    let first_fails = "echo >> ../starts; [ $(wc -l < ../starts) -gt 1 ] || exec sleep 60";
    let command = behind(first_fails, &FakeServer::markers());
    let more = ["--at", &place, "--budget", "2", "--format", "json"];
    let said = check_by(&desk, &command, "workspace", &more);
    let run = run(&said.ended(1));
    let Conclusion::NotQualified { musts } = &run.conclusion else {
        panic!("{}", run.conclusion);
    };
    assert_eq!(musts, &["QUA-1"]);
    told(
        &run,
        "QUA-1 failed at first and held when it was tried again",
    );
    assert_eq!(
        run.remedy.as_ref().map(|remedy| remedy.settings.len()),
        None
    );
}

#[test]
fn the_servers_own_symbols_say_where() {
    let desk = Desk::new();
    let folder = desk.path().join("w");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("a.fake"),
        "def rare\nuse many many many\nrare\n",
    )
    .unwrap();
    let range = json!({"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 8}});
    let listed = json!([{"name": "rare", "kind": 12, "range": range, "selectionRange": range}]);
    let server = FakeServer::markers()
        .capabilities(json!({"documentSymbolProvider": true}))
        .on("textDocument/documentSymbol", [reply(listed)]);
    let said = check(&desk, &server, "w", &["--format", "json"]).ended(0);
    let run = run(&said);
    assert!(
        told(&run, "Asked at ").starts_with(
            "Asked at a.fake:3:1, a.fake:2:15: names that the server lists as symbols"
        ),
        "{:#?}",
        run.remarks
    );
    // The host never asks for symbols: what the search said is no part of the check.
    assert!(
        matches!(run.conclusion, Conclusion::ProtocolOnly { .. }),
        "{}",
        run.conclusion
    );
}

#[test]
fn a_definition_that_is_no_reference_is_told() {
    let desk = Desk::new();
    desk.sample("main.fake", "use-area");
    let range =
        json!({"start": {"line": 900, "character": 4}, "end": {"line": 900, "character": 8}});
    let elsewhere = json!({"uri": "file:///elsewhere.fake", "range": range});
    let server = FakeServer::markers().on("textDocument/definition", [reply(elsewhere)]);
    let said = check(&desk, &server, "workspace", &["--format", "json"]).ended(0);
    let run = run(&said);
    assert!(
        told(&run, "Agreement: at 0 of ").ends_with("the definition is one of the references."),
        "{:#?}",
        run.remarks
    );
    let quoted = run
        .remarks
        .iter()
        .any(|remark| remark.contains("leads to file:///elsewhere.fake:901:5"));
    assert!(quoted, "{:#?}", run.remarks);
}

#[test]
fn answers_that_change_and_answers_that_never_come_are_told() {
    let desk = Desk::new();
    desk.sample("main.fake", "use-area");
    let hover = |text: &str, next: &str| [reply(json!({"contents": text})), set(next)];
    let server = FakeServer::markers()
        .on("textDocument/references", [ignore()])
        .rule(
            Rule::on("textDocument/hover")
                .in_set("other")
                .run(hover("that", "")),
        )
        .on("textDocument/hover", hover("this", "other"));
    let more = ["--format", "json", "--budget", "1"];
    let said = check(&desk, &server, "workspace", &more).ended(1);
    let run = run(&said);
    assert_eq!(verdict(&run, "QUA-4"), Verdict::Timeout);
    let changing = told(&run, "Repeatability: not the same three times running");
    assert!(changing.contains("hover at "), "{changing}");
    assert!(changing.contains("another answer"), "{changing}");
    let silent: Vec<&String> = run
        .remarks
        .iter()
        .filter(|remark| remark.contains("findReferences was not answered within 1 s"))
        .collect();
    assert_eq!(silent.len(), 1, "asked once only: {:#?}", run.remarks);
}

#[test]
fn wrong_shapes_fail_at_found_places_too() {
    let desk = Desk::new();
    desk.sample("main.fake", "use-area");
    let server = FakeServer::markers().on("textDocument/hover", [reply(json!({"contents": 5}))]);
    let said = check(&desk, &server, "workspace", &["--budget", "1"]).ended(1);
    said.out_has("NOT QUALIFIED: QUA-7");
}

#[test]
fn a_workspace_without_an_identifier_is_said_plainly() {
    let desk = Desk::new();
    let folder = desk.path().join("w");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.fake"), "1 + 2\n").unwrap();
    std::fs::write(folder.join("b.fake"), b"\0\0\0").unwrap();
    check(&desk, &FakeServer::markers(), "w", &["--budget", "2"])
        .ended(0)
        .out_has("There is no identifier in the 1 file with one of the extensions (left out: 1 no")
        .out_has("PROTOCOL ONLY");
}

#[test]
fn nothing_but_empty_answers_is_said_plainly() {
    let desk = Desk::new();
    desk.sample("main.fake", "use-area");
    let mut server = FakeServer::new();
    for method in ["definition", "references", "implementation", "hover"] {
        let method = format!("textDocument/{method}");
        server = server.on(&method, [reply(Value::Null)]);
    }
    check(&desk, &server, "workspace", &[])
        .ended(0)
        .out_has("No answer at any of these places said anything.");
}
