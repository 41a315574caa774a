//! Settings of the host, tried where a MUST fails and taken away where they were given: whether
//! they are needed is seen on real processes.
//!
//! Without the setting it needs, a server is waited for in vain: a check takes at least a budget
//! then, and a trial that does not help takes another. So most of these take several seconds, which
//! they spend waiting.

use std::sync::Arc;
use std::time::Duration;

use dsh_e2e::{CheckOptions, Checked, Ground, Limits, Measuring, Target, samples};
use dsh_fake_lsp::{
    Action, FakeServer, Rule, capabilities, delay_ms, exit, ignore, reply, reply_error,
    request_and_wait, set, stderr,
};
use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::LocalSubprocess;
use dsh_reports::{Conclusion, Remedy};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Desk, program, typed};

/// Long enough for every right answer, short enough for those that never come.
const BUDGET: Duration = Duration::from_millis(1500);

const QUESTIONS: [&str; 4] = [
    "textDocument/definition",
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/hover",
];

async fn qualify(server: &FakeServer, given: impl FnOnce(&mut Target)) -> Checked {
    let command = server
        .clone()
        .subcommand("fake-lsp")
        .command(program())
        .unwrap();
    let mut argv = vec![command.program.display().to_string()];
    argv.extend(command.args.iter().cloned());
    let extensions = [(".fake".to_owned(), "fake".to_owned())].into();
    let mut target = Target::of_command("fake", &argv, extensions);
    given(&mut target);
    let temporary = tempfile::tempdir().unwrap();
    let options = CheckOptions {
        budget: BUDGET,
        only: Vec::new(),
        keep: false,
        temporary: temporary.path().to_owned(),
        reproduce: "dsh-conform check".to_owned(),
        rounds: 3,
        measure: Measuring::No,
        trial: false,
    };
    let ground = Ground::Sample(samples::sample("fake").unwrap());
    let checked = dsh_e2e::qualify(
        &target,
        &ground,
        &options,
        Arc::new(LocalSubprocess::from_environment()),
        &Cancel::new(),
        &CancellationToken::new(),
        &|_| (),
    )
    .await
    .unwrap();
    let left = std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left, 0, "workspaces were left");
    checked
}

/// Answers nothing until `event` comes.
fn deaf_until(rule: Rule) -> FakeServer {
    let mut server = FakeServer::markers()
        .on("initialize", [set("deaf"), capabilities(json!({}))])
        .rule(rule.run([set("")]));
    for method in QUESTIONS {
        server = server.rule(Rule::on(method).in_set("deaf").run([reply(Value::Null)]));
    }
    server
}

#[track_caller]
fn settings(checked: &Checked) -> &[String] {
    match &checked.run.conclusion {
        Conclusion::QualifiedWithSettings { settings, .. } => settings,
        other => panic!("{other}: {:#?}", checked.run.remarks),
    }
}

#[track_caller]
fn remedy(checked: &Checked) -> &Remedy {
    checked.run.remedy.as_ref().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_until_a_configuration_is_announced_has_its_remedy() {
    let server = deaf_until(Rule::on("workspace/didChangeConfiguration"));
    let checked = qualify(&server, |_| ()).await;
    assert_eq!(settings(&checked), ["announceConfiguration: true"]);
    let remedy = remedy(&checked);
    assert_eq!(remedy.row["announceConfiguration"], true);
    assert_eq!(remedy.settings[0].clauses, ["QUA-4"]);
    assert!(
        remedy.settings[0].against.contains("QUA-4 goToDefinition"),
        "{remedy:?}"
    );
    assert_eq!(remedy.timeout_ms, Some(60_000));
    let default = &checked.run.remarks;
    assert!(
        default.contains(&"With the host's defaults: NOT QUALIFIED: QUA-4.".to_owned()),
        "{default:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_until_the_configuration_is_no_null_has_its_remedy() {
    let ask = request_and_wait(
        json!(1),
        "workspace/configuration",
        json!({"items": [{"section": "x"}]}),
    );
    let answered = Rule::on("response").when(json!({"result": [{}]}));
    let server = deaf_until(answered).on("initialized", [ask]);
    let checked = qualify(&server, |_| ()).await;
    assert_eq!(settings(&checked), ["configuration: {}"]);
    assert_eq!(remedy(&checked).row["configuration"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_settings_that_help_only_together_are_found_together() {
    let announced = Rule::on("workspace/didChangeConfiguration").when(json!({"settings": {}}));
    let checked = qualify(&deaf_until(announced), |_| ()).await;
    assert_eq!(
        settings(&checked),
        ["announceConfiguration: true", "configuration: {}"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_its_time_to_end_is_given_it() {
    let server = FakeServer::markers().on("shutdown", [delay_ms(700), reply(Value::Null)]);
    let checked = qualify(&server, |target| {
        target.limits = Some(Limits {
            shutdown_ms: 300,
            kill_grace_ms: 300,
        });
    })
    .await;
    assert_eq!(settings(&checked), ["shutdownTimeoutMs: 1200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_by_version_has_its_remedy() {
    let sample = samples::sample("fake").unwrap();
    let new = &sample.reopened[0].text;
    let cached = json!({"textDocument": {"version": 1, "text": new}});
    let server = FakeServer::markers()
        .rule(
            Rule::on("textDocument/didOpen")
                .when(cached)
                .run([set("old")]),
        )
        .rule(
            Rule::on("textDocument/definition")
                .in_set("old")
                .run([reply(Value::Null)]),
        );
    let checked = qualify(&server, |_| ()).await;
    assert_eq!(settings(&checked), ["versions: rising"]);
    assert_eq!(remedy(&checked).settings[0].clauses, ["QUA-5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_stale_once_a_document_is_asked_for_again() {
    let stale = [reply_error(-32801, "content modified"), set("fresh")];
    let server = FakeServer::markers()
        .rule(
            Rule::on("textDocument/hover")
                .in_set("fresh")
                .run([Action::Default, set("")]),
        )
        .on("textDocument/hover", stale);
    let checked = qualify(&server, |_| ()).await;
    assert_eq!(settings(&checked), ["retryStale: 5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_helps_against_says_what_was_tried() {
    let server = FakeServer::markers().on("textDocument/hover", [reply(Value::Null)]);
    let checked = qualify(&server, |_| ()).await;
    let failed = Conclusion::NotQualified {
        musts: vec!["QUA-4".to_owned()],
    };
    assert_eq!(checked.run.conclusion, failed);
    assert_eq!(checked.run.remedy, None);
    let told = checked.run.remarks.join("\n");
    assert!(
        told.contains("Tried in vain against QUA-4: announceConfiguration: true"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_was_given_is_needed_only_if_something_fails_without() {
    let needs = deaf_until(Rule::on("workspace/didChangeConfiguration"));
    let given = |target: &mut Target| target.announce_configuration = true;
    let checked = qualify(&needs, given).await;
    assert_eq!(settings(&checked), ["announceConfiguration: true"]);
    let checked = qualify(&FakeServer::markers(), given).await;
    assert!(
        matches!(checked.run.conclusion, Conclusion::Qualified { .. }),
        "{}",
        checked.run.conclusion
    );
    let remedy = remedy(&checked);
    assert_eq!(remedy.settings[0].name, "announceConfiguration: true");
    assert_eq!(remedy.settings[0].clauses, Vec::<String>::new());
    assert_eq!(remedy.row["announceConfiguration"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_settings_that_were_given_only_the_needed_one_is_named() {
    let needs = deaf_until(Rule::on("workspace/didChangeConfiguration"));
    let checked = qualify(&needs, |target| {
        target.announce_configuration = true;
        target.initialization_options = json!({"cache": false});
    })
    .await;
    assert_eq!(settings(&checked), ["announceConfiguration: true"]);
    let row = &remedy(&checked).row;
    assert_eq!(row["initializationOptions"], json!({"cache": false}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_is_too_old_is_said_in_the_servers_words() {
    let server = FakeServer::markers().on(
        "start",
        [stderr("error: foo requires Node.js 99 or newer\n"), exit(1)],
    );
    let checked = qualify(&server, |_| ()).await;
    assert_eq!(
        checked.run.conclusion,
        Conclusion::Untestable {
            reason: "it needs a newer runtime than is here: \
                     \"error: foo requires Node.js 99 or newer\""
                .to_owned(),
            musts: vec![],
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_the_command_was_not_tested_and_one_that_breaks_down_was() {
    let starts = |said| FakeServer::markers().on("start", [stderr(said), exit(2)]);
    let checked = qualify(&starts("error: unrecognized subcommand 'lsp'\n"), |_| ()).await;
    assert_eq!(
        checked.run.conclusion.to_string(),
        "UNTESTABLE: it does not know the command it is started by: \
         \"error: unrecognized subcommand 'lsp'\""
    );
    let checked = qualify(&starts("ImportError: cannot import name 'lsp'\n"), |_| ()).await;
    let Conclusion::NotQualified { musts } = &checked.run.conclusion else {
        panic!("{}", checked.run.conclusion)
    };
    assert!(musts.contains(&"QUA-1".to_owned()), "{musts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_licence_that_is_asked_for_is_said_in_the_servers_words() {
    let plea = json!({"type": 1, "message": "Please enter your licence key", "actions": []});
    let server = FakeServer::markers()
        .on(
            "initialized",
            [request_and_wait(
                json!(1),
                "window/showMessageRequest",
                plea,
            )],
        )
        .on("textDocument/hover", [ignore()]);
    let checked = qualify(&server, |_| ()).await;
    let told = checked.run.remarks.join("\n");
    assert!(
        told.contains("it asks for a licence: \"Please enter your licence key\""),
        "{told}"
    );
}

/// Answers to the handshake, with a version of its own, and knows nothing.
fn versioned(version: &str) -> FakeServer {
    let result = json!({
        "capabilities": {"textDocumentSync": 1, "definitionProvider": true, "referencesProvider": true,
            "implementationProvider": true, "hoverProvider": true},
        "serverInfo": {"name": "foo", "version": version},
    });
    FakeServer::new().on("initialize", [reply(result)])
}

struct Kept(Desk);

impl Kept {
    fn check(&self, server: &FakeServer, more: &[&str]) -> crate::support::Said {
        let command = typed(server);
        let args = [&["--baseline", "kept.json"], more].concat();
        self.0.check(&command, &args)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.0.path().join("kept.json")).unwrap()
    }
}

#[test]
fn a_baseline_is_written_kept_and_broken() {
    let desk = Kept(Desk::new());
    let good = versioned("1.0");
    let noted = versioned("1.0").on("exit", [exit(3)]);
    let bad = versioned("1.0").on("shutdown", [exit(3)]);
    desk.check(&good, &[])
        .ended(2)
        .err_has("cannot read the baseline kept.json")
        .err_has("write it with --update-baseline");
    desk.check(&noted, &["--update-baseline"]).ended(0);
    let accepted = desk.text();
    assert!(accepted.contains("\"QUA-9\": \"note\""), "{accepted}");
    assert!(accepted.contains("\"1.0\": {"), "{accepted}");
    desk.check(&noted, &[])
        .ended(0)
        .out_has("baseline kept.json: nothing got worse; 1 case is accepted there");
    desk.check(&bad, &[])
        .ended(1)
        .out_has("worse: QUA-8: pass became");
    desk.check(&good, &[])
        .ended(4)
        .out_has("stale: QUA-9: the baseline has note, and it is pass now");
    assert_eq!(desk.text(), accepted, "comparing changes nothing");
    desk.check(&bad, &["--update-baseline"]).ended(0);
    desk.check(&bad, &[]).ended(0).out_has("NOT QUALIFIED");
    desk.check(&versioned("2.0"), &[])
        .ended(0)
        .out_has("1.0 on")
        .out_has("2.0 was checked");
    desk.check(&versioned("2.0"), &["--update-baseline"])
        .ended(0);
    let both = desk.text();
    assert!(
        both.contains("\"1.0\": {") && both.contains("\"2.0\": {"),
        "{both}"
    );
}

#[test]
fn some_probes_are_compared_and_never_written() {
    let desk = Kept(Desk::new());
    let noted = versioned("1.0").on("exit", [exit(3)]);
    desk.check(&noted, &["--update-baseline"]).ended(0);
    desk.check(&noted, &["--only", "QUA-1"]).ended(0);
    desk.check(&noted, &["--only", "QUA-1", "--update-baseline"])
        .ended(2)
        .err_has("--update-baseline");
}

#[test]
fn a_file_that_is_no_baseline_is_refused_and_kept() {
    let desk = Kept(Desk::new());
    for (text, why) in [
        ("{\"format\": \"other/3\"}", "its format is \"other/3\""),
        ("no json", "it is no baseline"),
    ] {
        std::fs::write(desk.0.path().join("kept.json"), text).unwrap();
        for more in [&[][..], &["--update-baseline"]] {
            let said = desk.check(&versioned("1.0"), more).ended(2).err_has(why);
            assert_eq!(said.out, "");
        }
        assert_eq!(desk.text(), text);
    }
    let desk = Desk::new();
    desk.run(&["check", "--baseline", "none/kept.json", "--update-baseline"])
        .ended(2)
        .err_has("there is no folder");
}

#[test]
fn a_server_that_is_missing_leaves_its_baseline_as_it_was() {
    let desk = Kept(Desk::new());
    desk.check(&versioned("1.0"), &["--update-baseline"])
        .ended(0);
    let before = desk.text();
    desk.0
        .run(&[
            "check",
            "--command",
            "definitely-not-here",
            "--ext",
            ".x=x",
            "--baseline",
            "kept.json",
            "--update-baseline",
        ])
        .ended(3)
        .err_has("definitely-not-here is left as it was");
    assert_eq!(desk.text(), before);
}

#[test]
fn the_deployment_that_is_printed_mounts() {
    let desk = Desk::new();
    let said = desk.run(&["check", "--emit-config", "--measure", "no"]);
    let said = said.ended(0);
    assert_eq!(said.err, "");
    let rows: Value = serde_saphyr::from_str(&said.out).unwrap();
    let server = &rows[3]["config"]["servers"]["built-in"];
    assert_eq!(server["extensionToLanguage"], json!({".fake": "fake"}));
    assert_eq!(rows[4]["config"]["timeoutMs"], 60_000);
    std::fs::write(desk.path().join("cordis.yml"), &said.out).unwrap();
    desk.run(&["deployment", "check", "cordis.yml"])
        .ended(0)
        .out_has("tool lsp")
        .out_has("built-in:");
}

#[test]
fn no_deployment_is_printed_of_a_server_that_fails() {
    let desk = Desk::new();
    let command = typed(&versioned("1.0").on("shutdown", [exit(3)]));
    let said = desk
        .check(&command, &["--emit-config"])
        .ended(1)
        .err_has("NOT QUALIFIED: QUA-8");
    assert_eq!(said.out, "");
}
