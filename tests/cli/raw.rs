//! What the raw driver finds of servers that misbehave in one way each: the fake server answers
//! like a real one, but for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_e2e::{CheckOptions, Checked, Ground, Limits, Measuring, Step, Target, samples};
use dsh_fake_lsp::{
    Action, Control, FakeServer, Helper, Rule, exit, ignore, notify, raw, reply, reply_error,
    request, request_and_wait, set, spawn_helper, stderr_flood, trap_sigterm,
};
use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::subprocess::LocalSubprocess;
use dsh_reports::{
    Conclusion, Edge, Ending, Measured, Persona, PersonaOutcome, Signal, StartKind, TextSource,
};
use dsh_transcript::EventBody;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Desk, is_alive, program, typed, whole_check};

/// A server that is measured alone.
struct Bench {
    target: Target,
    options: CheckOptions,
    temporary: tempfile::TempDir,
}

impl Bench {
    fn of(server: &FakeServer) -> Self {
        let command = server
            .clone()
            .subcommand("fake-lsp")
            .command(program())
            .unwrap();
        let mut argv = vec![command.program.display().to_string()];
        argv.extend(command.args.iter().cloned());
        let extensions = [(".fake".to_owned(), "fake".to_owned())].into();
        let temporary = tempfile::tempdir().unwrap();
        Self {
            target: Target {
                // What is deaf is killed soon.
                limits: Some(Limits {
                    kill_grace_ms: 300,
                    ..Limits::default()
                }),
                ..Target::of_command("fake", &argv, extensions)
            },
            options: CheckOptions {
                budget: Duration::from_secs(4),
                only: Vec::new(),
                keep: false,
                temporary: temporary.path().to_owned(),
                reproduce: "dsh-conform check".to_owned(),
                rounds: 3,
                measure: Measuring::Only,
                trial: false,
            },
            temporary,
        }
    }

    fn budget(mut self, budget: Duration) -> Self {
        self.options.budget = budget;
        self
    }

    /// How long an end may take.
    fn shutdown(mut self, limit: Duration) -> Self {
        let limits = self.target.limits.unwrap_or_default();
        self.target.limits = Some(Limits {
            shutdown_ms: u64::try_from(limit.as_millis()).unwrap(),
            ..limits
        });
        self
    }

    fn configuration(mut self, configuration: Value) -> Self {
        self.target.configuration = configuration;
        self
    }

    async fn run(&self) -> Checked {
        self.watched(&Cancel::new(), &|_| ()).await
    }

    async fn watched(&self, cancel: &Cancel, watch: &(dyn Fn(Step) + Sync)) -> Checked {
        let ground = Ground::Sample(samples::sample("fake").unwrap());
        let subprocess = Arc::new(LocalSubprocess::from_environment());
        let stop = CancellationToken::new();
        let checked = dsh_e2e::check(
            &self.target,
            &ground,
            &self.options,
            subprocess,
            cancel,
            &stop,
            watch,
        )
        .await
        .unwrap();
        let left = std::fs::read_dir(self.temporary.path()).unwrap().count();
        assert_eq!(left, 0, "a folder was left");
        for event in &checked.events {
            if let EventBody::ProcessStarted { pid, .. } = event.body {
                assert!(!is_alive(pid), "process {pid} was left");
            }
        }
        checked
    }
}

async fn measured(server: FakeServer) -> Measured {
    let checked = Bench::of(&server).run().await;
    // Everything was reached.
    let only = "Nothing was judged: the server was only measured.";
    assert_eq!(checked.run.remarks, [only]);
    checked.run.measured.unwrap()
}

#[track_caller]
fn way<'m>(measured: &'m Measured, name: &str) -> &'m Persona {
    let found = measured.personas.iter().find(|way| way.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:#?}", measured.personas))
}

#[track_caller]
fn end<'m>(measured: &'m Measured, way: &str) -> &'m Ending {
    measured.ends.iter().find(|end| end.way == way).unwrap()
}

#[track_caller]
fn edge<'m>(measured: &'m Measured, name: &str) -> &'m Edge {
    measured
        .edges
        .iter()
        .find(|edge| edge.name == name)
        .unwrap()
}

/// Those of the ways that are neither fine nor beside the point.
fn bad(measured: &Measured) -> Vec<(&str, PersonaOutcome)> {
    let bad = measured
        .personas
        .iter()
        .filter(|way| !matches!(way.outcome, PersonaOutcome::Fine | PersonaOutcome::NotAsked));
    bad.map(|way| (way.name.as_str(), way.outcome)).collect()
}

fn on(event: &str, actions: impl IntoIterator<Item = Action>) -> FakeServer {
    FakeServer::markers().on(event, actions)
}

/// Asks for the configuration as soon as it may.
fn asks_for_configuration() -> FakeServer {
    let params = json!({"items": [{"section": "fake"}]});
    on(
        "initialized",
        [request("c".into(), "workspace/configuration", params)],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_server_has_nothing_that_bites() {
    let measured = measured(FakeServer::markers()).await;
    assert_eq!(bad(&measured), []);
    let kinds: Vec<StartKind> = measured.starts.iter().map(|start| start.kind).collect();
    assert_eq!(kinds, [StartKind::Cold, StartKind::Warm]);
    for start in &measured.starts {
        assert!(start.initialized_us.is_some());
        assert_eq!(
            start.operations.len(),
            samples::sample("fake").unwrap().questions.len()
        );
        assert!(
            start
                .operations
                .iter()
                .all(|known| known.stable_us.is_some())
        );
        assert!(
            start.summary.starts_with("Right from the first question"),
            "{}",
            start.summary
        );
    }
    let overlay = measured.overlay.as_ref().unwrap();
    assert_eq!(
        (overlay.open, overlay.closed),
        (TextSource::Opened, TextSource::Disk)
    );
    for output in &measured.output {
        assert!(output.frames > 0 && output.stray_bytes == 0 && output.stdout_bytes > 0);
    }
    assert_eq!(measured.output.len(), 2);
    let codes = ["shutdown", "stdin-closed", "sigterm"].map(|way| {
        let end = end(&measured, way);
        assert!(end.took_us.is_some() && end.left == 0, "{end:?}");
        (end.code, end.signal)
    });
    assert_eq!(codes, [(Some(0), None), (Some(1), None), (None, Some(15))]);
    assert!(
        measured.edges.iter().all(|edge| edge.alive),
        "{:#?}",
        measured.edges
    );
    assert_eq!(edge(&measured, "unknown-request").answer, "error -32601");
    assert_eq!(edge(&measured, "unknown-notification").answer, "nothing");
    assert_eq!(edge(&measured, "header-lower-case").answer, "1 place");
    assert_eq!(edge(&measured, "empty-file").answer, "null");
    // It asks for nothing, so what is about that says nothing.
    for name in [
        "requests-refused",
        "configuration-empty",
        "progress-announced",
    ] {
        assert_eq!(
            way(&measured, name).outcome,
            PersonaOutcome::NotAsked,
            "{name}"
        );
    }
    for name in ["usual", "shutdown-params-null", "configuration-announced"] {
        let way = way(&measured, name);
        assert_eq!(way.outcome, PersonaOutcome::Fine, "{way:?}");
        assert!(way.first_right_us.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_when_it_is_refused_is_found() {
    let server = on(
        "initialized",
        [request("r".into(), "client/registerCapability", json!({}))],
    )
    .rule(
        Rule::on("response")
            .when(json!({"error": {"code": -32601}}))
            .run([exit(7)]),
    );
    let measured = measured(server).await;
    assert_eq!(bad(&measured), [("requests-refused", PersonaOutcome::Dead)]);
    let refused = way(&measured, "requests-refused");
    assert!(
        refused.detail.as_deref().unwrap().contains("exit code 7"),
        "{refused:?}"
    );
    assert_eq!(
        way(&measured, "requests-unanswered").outcome,
        PersonaOutcome::Fine
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_every_answer_is_found() {
    let wait = request_and_wait("r".into(), "client/registerCapability", json!({}));
    let server = on("initialized", [wait, set("registered")])
        .rule(
            Rule::on("textDocument/definition")
                .in_set("registered")
                .run([Action::Default]),
        )
        .on("textDocument/definition", [reply(Value::Null)]);
    let measured = measured(server).await;
    assert_eq!(
        bad(&measured),
        [("requests-unanswered", PersonaOutcome::Wrong)]
    );
    let detail = way(&measured, "requests-unanswered")
        .detail
        .clone()
        .unwrap();
    assert!(
        detail.contains("goToDefinition") && detail.contains("null"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_silent_until_it_is_configured_is_found() {
    // In most ways of a client, every question to it is waited for until nobody hopes any more.
    // One kind of question is enough for that.
    let hover = "textDocument/hover";
    let server = on("workspace/didChangeConfiguration", [set("configured")])
        .capabilities(json!({
            "definitionProvider": false,
            "referencesProvider": false,
            "implementationProvider": false,
        }))
        .rule(Rule::on(hover).in_set("configured").run([Action::Default]))
        .rule(Rule::on(hover).run([ignore()]));
    let measuring = Bench::of(&server).budget(Duration::from_millis(1_500));
    let measured = measuring.run().await.run.measured.unwrap();
    assert_eq!(way(&measured, "usual").outcome, PersonaOutcome::Silent);
    assert_eq!(
        way(&measured, "configuration-announced").outcome,
        PersonaOutcome::Fine
    );
    let warm = &measured.starts[1];
    assert!(
        warm.summary.contains("No question was answered rightly"),
        "{}",
        warm.summary
    );
    assert!(warm.summary.contains("silence"), "{}", warm.summary);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_null_switches_off_is_found() {
    // Twice, and in half of the ways the wrong answer is asked for again as long as may be.
    let server = asks_for_configuration()
        .rule(
            Rule::on("response")
                .when(json!({"result": [{}]}))
                .run([set("configured")]),
        )
        .rule(
            Rule::on("textDocument/hover")
                .in_set("configured")
                .run([Action::Default]),
        )
        .on("textDocument/hover", [reply(Value::Null)]);
    let measuring = Bench::of(&server).budget(Duration::from_millis(900));
    let found = measuring.run().await.run.measured.unwrap();
    assert_eq!(way(&found, "usual").outcome, PersonaOutcome::Wrong);
    assert_eq!(
        way(&found, "configuration-empty").outcome,
        PersonaOutcome::Fine
    );
    // The other operations are right in any way.
    let null = way(&found, "configuration-null");
    assert_eq!(null.outcome, PersonaOutcome::Fine, "{null:?}");
    assert!(
        null.detail.as_deref().unwrap().contains("hover"),
        "{null:?}"
    );
    // With the configuration it needs, null is the way that is wrong.
    let configured = measuring
        .configuration(json!({}))
        .budget(Duration::from_secs(2));
    let found = configured.run().await.run.measured.unwrap();
    assert_eq!(way(&found, "usual").outcome, PersonaOutcome::Fine);
    assert_eq!(
        way(&found, "configuration-null").outcome,
        PersonaOutcome::Wrong
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_params_of_shutdown_and_stays_is_found() {
    // Where it stays, its end is waited for as long as it may take.
    let refused = || [reply_error(-32602, "Unexpected params")];
    let server = FakeServer::markers()
        .rule(Rule::on("shutdown").when(json!({})).run(refused()))
        .on("eof", [ignore()])
        .rule(Rule::on("exit").when(json!({})).run([ignore()]));
    let measuring = Bench::of(&server).shutdown(Duration::from_secs(2));
    let found = measuring.run().await.run.measured.unwrap();
    assert_eq!(
        bad(&found),
        [("shutdown-params-empty", PersonaOutcome::DoesNotEnd)]
    );
    let detail = way(&found, "shutdown-params-empty").detail.clone().unwrap();
    assert!(
        detail.contains("error -32602: Unexpected params"),
        "{detail}"
    );
    // And so it stays when its stdin is closed without a word.
    let end = end(&found, "stdin-closed");
    assert_eq!((end.took_us, end.code, end.signal), (None, None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_behind_an_end_and_a_deaf_server_are_found() {
    // Behind each of a dozen processes the helper is given half a second to follow.
    let helper = spawn_helper(Helper::default());
    let server = on("initialized", [helper, trap_sigterm()]).on("SIGTERM", [ignore()]);
    let measuring = Bench::of(&server).shutdown(Duration::from_secs(2));
    let found = measuring.run().await.run.measured.unwrap();
    assert_eq!(end(&found, "shutdown").left, 1, "{:?}", found.ends);
    assert_eq!(end(&found, "sigterm").took_us, None, "{:?}", found.ends);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_reads_the_disk_and_one_that_keeps_what_was_open_are_found() {
    // Only the new text has anything at this place.
    let place = &samples::sample("fake").unwrap().reopened[0]
        .question
        .at
        .position;
    let there = json!({"position": {"line": place.line, "character": place.character}});
    let asked = || Rule::on("textDocument/definition").when(there.clone());
    let reads_disk = FakeServer::markers().rule(asked().run([reply(Value::Null)]));
    let overlay = measured(reads_disk).await.overlay.unwrap();
    assert_eq!(
        (overlay.open, overlay.closed),
        (TextSource::Disk, TextSource::Disk)
    );
    let doubled =
        json!({"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 11}});
    let found = json!([{"uri": "${uri:main.fake}", "range": doubled}]);
    let keeps = FakeServer::markers()
        .rule(asked().nth(1).run([Action::Default]))
        .rule(asked().run([reply(found)]));
    let overlay = measured(keeps).await.overlay.unwrap();
    assert_eq!(
        (overlay.open, overlay.closed),
        (TextSource::Opened, TextSource::Opened)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_frame_and_what_is_on_stderr_is_counted() {
    let server = on("exit", [raw("bye\n"), stderr_flood(30_000), exit(0)]);
    let found = measured(server).await;
    for output in &found.output {
        assert_eq!(output.stray_bytes, 4, "{output:?}");
        assert!(output.stderr_bytes >= 30_000, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_that_kill_are_told_and_the_others_still_tried() {
    let server = on("dsh/unknownRequest", [exit(3)]).on("dsh/unknownNotification", [exit(4)]);
    let found = measured(server).await;
    for (name, code) in [("unknown-request", 3), ("unknown-notification", 4)] {
        let edge = edge(&found, name);
        assert!(!edge.alive && edge.answer == "the server died", "{edge:?}");
        let detail = edge.detail.as_deref().unwrap();
        assert!(detail.contains(&format!("exit code {code}")), "{edge:?}");
    }
    assert_eq!(found.edges.len(), 11);
    assert!(edge(&found, "header-extra-fields").alive);
}

fn signal<'m>(found: &'m Measured, kind: StartKind, name: &str) -> &'m Signal {
    let start = found
        .starts
        .iter()
        .find(|start| start.kind == kind)
        .unwrap();
    start
        .signals
        .iter()
        .find(|signal| signal.name == name)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_too_early_is_told_from_a_true_one() {
    let progress = |value: Value| notify("$/progress", json!({"token": 1, "value": value}));
    let hover = |nth| Rule::on("textDocument/hover").nth(nth);
    let begin = progress(json!({"kind": "begin", "title": "Indexing"}));
    let end = progress(json!({"kind": "end"}));
    let ready = notify("fake/ready", json!({"status": "loaded"}));
    let server = on("initialized", [ready])
        .rule(hover(1).run([reply(Value::Null)]))
        .rule(hover(2).run([reply(Value::Null)]))
        .rule(hover(3).run([begin, reply(Value::Null)]))
        .rule(hover(4).run([end, Action::Default]));
    let found = measured(server).await;
    assert_eq!(
        signal(&found, StartKind::Cold, "fake/ready (loaded)").held,
        Some(false)
    );
    let end = signal(&found, StartKind::Cold, "$/progress end (Indexing)");
    assert_eq!(end.held, Some(true));
    let summary = &found.starts[0].summary;
    assert!(
        summary.contains("of false nulls (hover); $/progress end (Indexing) is true"),
        "{summary}"
    );
    assert_eq!(
        way(&found, "progress-announced").outcome,
        PersonaOutcome::Fine
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_never_initialized_is_given_up() {
    let server = on("initialize", [ignore()]);
    let measuring = Bench::of(&server).budget(Duration::from_millis(200));
    let checked = measuring.run().await;
    let remarks = checked.run.remarks.join("\n");
    assert!(
        remarks.contains("initialize is not answered in any"),
        "{remarks}"
    );
    let found = checked.run.measured.unwrap();
    assert_eq!(way(&found, "usual").outcome, PersonaOutcome::Silent);
    assert_eq!(found.edges, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_was_no_time_for_is_named() {
    let server = on("textDocument/definition", [ignore()]).on("shutdown", [ignore()]);
    // The time that there is for the ways is used up; the other parts have their own.
    let measuring = Bench::of(&server).budget(Duration::from_secs(1));
    let began = Instant::now();
    let checked = measuring.run().await;
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let remarks = checked.run.remarks.join("\n");
    assert!(
        remarks.contains(" s for it were over; a larger --budget gives more time: "),
        "{remarks}"
    );
    assert!(remarks.contains("requests-unanswered"), "{remarks}");
    let found = checked.run.measured.unwrap();
    assert_eq!(found.edges.len(), 11, "{remarks}");
    let ends: Vec<&str> = found.ends.iter().map(|end| end.way.as_str()).collect();
    assert_eq!(ends, ["shutdown", "stdin-closed", "sigterm"], "{remarks}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_ends_it_at_once_and_leaves_nothing() {
    let control = Control::bind().unwrap();
    let server = on("textDocument/definition", [ignore()]).control(&control);
    let measuring = Bench::of(&server).budget(Duration::from_mins(1));
    let cancel = Cancel::new();
    let began = Instant::now();
    let interrupting = async {
        control.wait_received(1, "definition").await;
        cancel.cancel(CancelReason::Caller);
    };
    let (checked, ()) = tokio::join!(measuring.watched(&cancel, &|_| ()), interrupting);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(checked.run.conclusion, Conclusion::Interrupted);
    control.wait_ended(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transcript_says_which_processes_are_raw() {
    let checked = Bench::of(&FakeServer::markers()).run().await;
    let started =
        |event: &&dsh_transcript::Event| matches!(event.body, EventBody::ProcessStarted { .. });
    let started = checked.events.iter().filter(started).count();
    let raw = dsh_transcript::View(&checked.events).notes("raw").count();
    assert!(started > 8);
    assert_eq!(raw, started);
}

#[test]
fn measuring_is_part_of_a_check_unless_it_is_left_out() {
    let desk = Desk::new();
    let measured = |args: &[&str]| {
        let args = [&["check", "--format", "json"], args].concat();
        let report = desk.run(&args).ended(0).report();
        report.runs[0].clone()
    };
    let whole = dsh_reports::read(whole_check()).unwrap();
    let found = whole.runs[0].measured.clone().unwrap();
    assert_eq!(bad(&found), []);
    // What the host saw of a cold start and what the driver saw of a warm one.
    assert_eq!(found.output.len(), 2);
    // What the driver sees is not there without it.
    for without in [["--measure", "no"], ["--only", "QUA-1"]] {
        let found = measured(&without).measured.unwrap_or_default();
        assert_eq!((found.personas, found.output), (vec![], vec![]));
    }
    let alone = measured(&["--measure", "only"]);
    assert!(alone.cases.is_empty() && alone.measured.is_some());
    assert_eq!(alone.conclusion, Conclusion::Partial { notes: 0 });
    desk.run(&["check", "--measure", "only", "--only", "QUA-1"])
        .ended(2)
        .err_has("leave one of them out");
    let text = desk.run(&["check", "--measure", "only"]).ended(0);
    let text = text
        .out_has("measured\n")
        .out_has("  warm start  Right from the first question");
    assert!(
        text.out
            .lines()
            .all(|line| line.chars().count() <= 80 || line.contains('/'))
    );
}

#[test]
fn a_server_that_cannot_be_started_is_not_measured() {
    let desk = Desk::new();
    let args = [
        "check",
        "--command",
        "not-here-at-all",
        "--ext",
        ".x=x",
        "--measure",
        "only",
    ];
    desk.run(&args)
        .ended(3)
        .out_has("UNTESTABLE")
        .out_has("not-here-at-all");
    let bare = typed(&FakeServer::markers());
    let args = [
        "check",
        "--command",
        &bare,
        "--ext",
        ".x=x",
        "--measure",
        "only",
    ];
    desk.run(&args).ended(0).out_has("ways");
}
