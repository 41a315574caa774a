//! `check`.

use dsh_fake_lsp::{FakeServer, exit, reply};
use dsh_reports::{Conclusion, Origin, StartKind, Verdict};
use serde_json::json;

use crate::support::{Desk, typed, whole_check};

#[test]
fn the_built_in_server_qualifies_and_nothing_is_left() {
    let desk = Desk::new();
    let said = desk
        .run(&["check", "--measure", "no"])
        .ended(0)
        .out_has("QUALIFIED")
        .out_has("MUST 8/8");
    assert_eq!(said.err, "");
    assert!(!said.out.contains('\u{1b}'), "colour in a pipe");
    assert!(
        said.out
            .lines()
            .all(|line| line.chars().count() <= 80 || line.contains('/'))
    );
    assert_eq!(desk.files(), Vec::<String>::new());
}

#[test]
fn json_is_a_report_and_nothing_else() {
    let report = dsh_reports::read(whole_check()).unwrap();
    let run = &report.runs[0];
    assert_eq!(run.conclusion, Conclusion::Qualified { notes: 0 });
    assert_eq!(run.subject.origin, Some(Origin::BuiltIn));
    assert_eq!(run.sample.as_deref(), Some("fake"));
    let operations: Vec<&str> = run
        .operations
        .iter()
        .map(|known| known.operation.as_str())
        .collect();
    assert_eq!(
        operations,
        [
            "goToDefinition",
            "findReferences",
            "goToImplementation",
            "hover"
        ]
    );
    assert!(run.operations.iter().all(|known| known.stable_us.is_some()));
    assert!(report.date.is_some());
    let measured = run.measured.as_ref().unwrap();
    let starts: Vec<StartKind> = measured.starts.iter().map(|start| start.kind).collect();
    assert_eq!(starts, [StartKind::Cold, StartKind::Warm]);
    let rounds: Vec<u64> = measured.cycles.iter().map(|cycles| cycles.rounds).collect();
    assert!(rounds[0] >= 50 && rounds.len() == 3, "{rounds:?}");
    assert!(measured.ends.len() > 1 && measured.written.is_empty());
    assert!(
        run.coverage
            .iter()
            .all(|clause| clause.verdict.is_some() != clause.not_run.is_some())
    );
}

#[test]
fn a_server_that_prints_and_echoes_is_told_what_was_on_its_stdout() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path().join("ws")).unwrap();
    let command = "sh -c \"echo hello; cat\"";
    desk.check(command, &["--workspace", "ws"])
        .ended(1)
        .out_has("something else than frames on stdout: \"hello\\n\"")
        .out_has("NOT QUALIFIED: QUA-1, QUA-6")
        .out_has("transcript  target/dsh-conform/sh.jsonl")
        .out_has("--only QUA-6");
    assert_eq!(desk.files(), ["target/dsh-conform/sh.jsonl"]);
    let transcript = std::fs::read(desk.path().join("target/dsh-conform/sh.jsonl")).unwrap();
    let events = dsh_transcript::jsonl::read(&transcript[..]).unwrap();
    assert!(!events.is_empty());
}

#[test]
fn the_command_that_repeats_a_failure_repeats_it() {
    let desk = Desk::new();
    let command = "sh -c 'echo \"a b\"'";
    let said = desk.check(command, &["--format", "json"]).ended(1);
    let report = said.report();
    let failed = report.runs[0]
        .cases
        .iter()
        .find(|case| case.clauses == ["QUA-6"])
        .unwrap();
    let again = shlex::split(failed.reproduce.as_deref().unwrap()).unwrap();
    let again: Vec<&str> = again.iter().skip(1).map(String::as_str).collect();
    desk.run(&again)
        .ended(1)
        .out_has("\"a b\\n\"")
        .out_has("NOT QUALIFIED: QUA-6");
}

#[test]
fn a_server_that_is_missing_is_no_failure_of_the_server() {
    Desk::new()
        .run(&[
            "check",
            "--command",
            "definitely-not-here --stdio",
            "--ext",
            ".x=x",
        ])
        .ended(3)
        .out_has("UNTESTABLE")
        .out_has("definitely-not-here");
    Desk::new()
        .command(&["check", "--server", "pyright"])
        .env("PATH", "/nowhere")
        .env("XDG_CACHE_HOME", "/nowhere")
        .assert()
        .code(3)
        .stdout(predicates::str::contains(
            "dsh-conform servers install pyright",
        ));
}

#[test]
fn without_a_place_only_the_protocol_is_judged() {
    let command = typed(&FakeServer::new());
    let said = Desk::new().check(&command, &[]).ended(0);
    let said = said.out_has("PROTOCOL ONLY").out_has("give --at");
    assert!(
        said.out.contains("- QUA-4") && said.out.contains("- QUA-5"),
        "{}",
        said.out
    );
}

#[test]
fn with_a_place_answers_are_judged_for_shape() {
    let desk = Desk::new();
    let (workspace, at) = desk.sample("main.fake", "use-area");
    let workspace = workspace.display().to_string();
    let check = |server: &FakeServer| {
        let command = typed(server);
        desk.run(&[
            "check",
            "--command",
            &command,
            "--ext",
            ".fake=fake",
            "--workspace",
            &workspace,
            "--at",
            &at,
            "--format",
            "json",
            "--budget",
            "2",
            "--only",
            "QUA-4,QUA-5,QUA-7",
        ])
    };
    let run = check(&FakeServer::markers())
        .ended(0)
        .report()
        .runs
        .remove(0);
    let verdict = |clause: &str| {
        let known = run
            .coverage
            .iter()
            .find(|known| known.clause == clause)
            .unwrap();
        known.verdict.unwrap()
    };
    assert_eq!(verdict("QUA-4"), Verdict::Pass);
    assert_eq!(verdict("QUA-5"), Verdict::NotApplicable);
    let bad = FakeServer::markers().on("textDocument/hover", [reply(json!({"contents": 5}))]);
    let run = check(&bad).ended(1).report().runs.remove(0);
    assert!(
        matches!(run.conclusion, Conclusion::NotQualified { musts } if musts.contains(&"QUA-7".to_owned()))
    );
}

#[test]
fn only_some_probes_are_no_qualification() {
    let said = Desk::new()
        .run(&["check", "--only", "qua-1,QUA-6"])
        .ended(0);
    let said = said.out_has("SELECTED PROBES HOLD").out_has("MUST 2/2");
    assert!(!said.out.contains("QUALIFIED"));
}

#[test]
fn wrong_usage_suggests_what_was_meant() {
    let desk = Desk::new();
    desk.run(&["check", "--server", "pyrihgt"])
        .ended(2)
        .err_has("did you mean \"pyright\"?");
    desk.run(&["check", "--only", "QUA-99"])
        .ended(2)
        .err_has("did you mean QUA-9?");
    desk.run(&["check", "--only", "FRM-1"])
        .ended(5)
        .err_has("nothing is selected");
    desk.run(&["chek"]).ended(2).err_has("check");
    desk.run(&["check", "--sever", "x"])
        .ended(2)
        .err_has("--server");
    desk.run(&["check", "--command", "x"])
        .ended(2)
        .err_has("--ext");
    desk.run(&["check", "--command", "'x", "--ext", ".x=x"])
        .ended(2)
        .err_has("not closed");
    desk.run(&["check", "--budget", "0"])
        .ended(2)
        .err_has("above 0");
    desk.run(&["check", "--command", "x", "--ext", "x"])
        .ended(2)
        .err_has(".ext=language");
    desk.run(&[
        "check",
        "--command",
        "x",
        "--ext",
        ".x=x",
        "--workspace",
        "nope",
    ])
    .ended(2)
    .err_has("does not exist");
    desk.run(&[
        "check",
        "--command",
        "x",
        "--ext",
        ".x=x",
        "--workspace",
        ".",
        "--at",
        "a.x:1",
    ])
    .ended(2)
    .err_has("FILE:LINE:COL");
    assert_eq!(desk.files(), Vec::<String>::new());
}

#[test]
fn several_formats_go_into_a_folder_and_one_into_a_file() {
    let desk = Desk::new();
    let check = ["check", "--only", "QUA-1"];
    let both = ["--format", "text", "--format", "json", "--out", "reports"];
    desk.run(&[&check[..], &both].concat())
        .ended(0)
        .out_has("SELECTED PROBES HOLD");
    assert_eq!(desk.files(), ["reports/report.json", "reports/report.txt"]);
    let one = ["--format", "json", "--out", "one.json"];
    let said = desk.run(&[&check[..], &one].concat()).ended(0);
    assert_eq!(said.out, "");
    dsh_reports::read(&std::fs::read_to_string(desk.path().join("one.json")).unwrap()).unwrap();
    desk.run(&[
        "check", "--format", "text", "--format", "json", "--out", "one.json",
    ])
    .ended(2)
    .err_has("give a folder");
}

#[test]
fn keep_keeps_the_workspace_and_the_transcript() {
    let desk = Desk::new();
    let said = desk.run(&["check", "--keep", "--only", "QUA-1"]).ended(0);
    let kept = said
        .out
        .split("workspace kept: ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    assert!(std::path::Path::new(kept).join("main.fake").is_file());
    std::fs::remove_dir_all(kept).unwrap();
    assert_eq!(desk.files(), ["target/dsh-conform/built-in.jsonl"]);
}

#[test]
fn colour_is_only_a_layer_and_only_when_asked_for() {
    let desk = Desk::new();
    let colored = desk.run(&["check", "--color", "always", "--only", "QUA-1"]);
    let colored = colored.ended(0);
    assert!(colored.out.contains("\u{1b}["));
    desk.command(&["check", "--only", "QUA-1"])
        .env("NO_COLOR", "1")
        .assert()
        .success()
        .stdout(predicates::function::function(|out: &str| {
            !out.contains('\u{1b}')
        }));
}

#[test]
fn a_crash_before_the_handshake_is_a_crash() {
    let command = typed(&FakeServer::new().on("initialize", [exit(7)]));
    Desk::new()
        .check(&command, &[])
        .ended(1)
        .out_has("ended before it answered initialize: exit code 7");
}

/// The name that the report gives it can be typed.
#[test]
fn the_built_in_server_has_a_name() {
    let desk = Desk::new();
    let args = [
        "check", "--server", "built-in", "--only", "QUA-1", "--format", "json",
    ];
    let report = desk.run(&args).ended(0).report();
    assert_eq!(report.runs[0].subject.origin, Some(Origin::BuiltIn));
}
