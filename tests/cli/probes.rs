//! Each clause of the probes seen to fail on a real process: the fake server behaves, but for one
//! thing.

mod second;

use std::sync::Arc;
use std::time::Duration;

use dsh_e2e::{CheckOptions, Checked, Ground, Limits, Measuring, Step, Target, samples};
use dsh_fake_lsp::{
    Action, Control, FakeServer, Helper, Rule, exit, ignore, raw, reply, reply_error, spawn_helper,
};
use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::LocalSubprocess;
use dsh_reports::{Case, Verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::program;

/// Long enough for every right answer, short enough for those that never come. A test takes as many
/// of it as there are stretches of a check in which something never comes.
const BUDGET: Duration = Duration::from_millis(1500);

/// Enough to go through every stretch of a check. QUA-15 speaks of fifty rounds, and does not apply
/// to fewer.
const FEW_ROUNDS: usize = 6;
/// So many that QUA-15 is judged.
const ROUNDS: usize = 60;

/// How a fake server is started and checked, and where.
fn prepared(server: &FakeServer) -> (Target, CheckOptions, tempfile::TempDir) {
    let command = server
        .clone()
        .subcommand("fake-lsp")
        .command(program())
        .unwrap();
    let mut argv = vec![command.program.display().to_string()];
    argv.extend(command.args.iter().cloned());
    let extensions = [(".fake".to_owned(), "fake".to_owned())].into();
    let target = Target::of_command("fake", &argv, extensions);
    let temporary = tempfile::tempdir().unwrap();
    let options = CheckOptions {
        budget: BUDGET,
        only: Vec::new(),
        rounds: FEW_ROUNDS,
        keep: false,
        temporary: temporary.path().to_owned(),
        reproduce: "dsh-conform check".to_owned(),
        measure: Measuring::No,
        trial: false,
    };
    (target, options, temporary)
}

async fn check(server: FakeServer) -> Checked {
    check_with(server, |_| ()).await
}

async fn check_with(server: FakeServer, change: impl FnOnce(&mut CheckOptions)) -> Checked {
    check_within(server, Limits::default(), change).await
}

async fn check_within(
    server: FakeServer,
    limits: Limits,
    change: impl FnOnce(&mut CheckOptions),
) -> Checked {
    let (mut target, mut options, temporary) = prepared(&server);
    target.limits = Some(limits);
    change(&mut options);
    let ground = Ground::Sample(samples::sample("fake").unwrap());
    let subprocess = Arc::new(LocalSubprocess::from_environment());
    let checked = dsh_e2e::check(
        &target,
        &ground,
        &options,
        subprocess,
        &Cancel::new(),
        &CancellationToken::new(),
        &|_| (),
    )
    .await
    .unwrap();
    assert_eq!(
        std::fs::read_dir(temporary.path()).unwrap().count(),
        0,
        "the workspace was left"
    );
    checked
}

/// A fault of our own while a server runs: it unwinds, and the server is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_ours_leaves_no_server() {
    let control = Control::bind().unwrap();
    let server = FakeServer::markers().control(&control);
    let (target, options, _temporary) = prepared(&server);
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        let ground = Ground::Sample(samples::sample("fake").unwrap());
        let watch = |step| assert!(!matches!(step, Step::AskingAgain(_)), "on purpose");
        let subprocess = Arc::new(LocalSubprocess::from_environment());
        let (cancel, stop) = (Cancel::new(), CancellationToken::new());
        dsh_e2e::check(
            &target, &ground, &options, subprocess, &cancel, &stop, &watch,
        )
        .await
    });
    assert!(task.join_next().await.unwrap().unwrap_err().is_panic());
    control.wait_ended(1).await;
}

/// The clauses of red cases and notes, each with its verdict.
fn blamed(checked: &Checked) -> Vec<(String, Verdict)> {
    let mut blamed: Vec<(String, Verdict)> = checked
        .run
        .coverage
        .iter()
        .filter_map(|clause| Some((clause.clause.clone(), clause.verdict?)))
        .filter(|(_, verdict)| verdict.is_red() || *verdict == Verdict::Note)
        .collect();
    blamed.sort();
    blamed
}

#[track_caller]
fn case<'a>(checked: &'a Checked, id: &str) -> &'a Case {
    checked.run.cases.iter().find(|case| case.id == id).unwrap()
}

/// Exactly this clause is blamed, with this verdict, and says why.
async fn only(server: FakeServer, clause: &str, verdict: Verdict) -> Checked {
    let checked = check(server).await;
    is_all(&checked, clause, verdict);
    checked
}

#[track_caller]
fn is_all(checked: &Checked, clause: &str, verdict: Verdict) {
    assert_eq!(
        blamed(checked),
        [(clause.to_owned(), verdict)],
        "{:#?}",
        checked.run.cases
    );
    let told = checked
        .run
        .cases
        .iter()
        .filter(|case| case.verdict == verdict);
    for case in told {
        assert!(
            case.expected.is_some() && case.evidence.iter().any(|event| event.decisive),
            "{case:#?}"
        );
    }
}

fn on(event: &str, actions: impl IntoIterator<Item = Action>) -> FakeServer {
    FakeServer::markers().on(event, actions)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_server_is_blamed_for_nothing() {
    let checked = check_with(FakeServer::markers(), |options| options.rounds = ROUNDS).await;
    assert_eq!(blamed(&checked), []);
}

/// QUA-1
#[tokio::test(flavor = "multi_thread")]
async fn initialize_that_is_refused_fatal_or_never_answered_fails() {
    for (actions, verdict, said) in [
        (
            vec![reply_error(-32603, "no SDK")],
            Verdict::Fail,
            "initialize refused with error -32603: no SDK",
        ),
        (
            vec![exit(3)],
            Verdict::Crash,
            "ended before it answered initialize: exit code 3",
        ),
        (
            vec![ignore()],
            Verdict::Timeout,
            "initialize not answered within 1.5 s",
        ),
    ] {
        let checked = check(on("initialize", actions)).await;
        let case = case(&checked, "QUA-1");
        assert_eq!((case.verdict, case.message.as_str()), (verdict, said));
        // An error is a frame, so that stdout can be judged then.
        let others = |case: &&Case| !["QUA-1", "QUA-6"].contains(&case.id.as_str());
        for case in checked.run.cases.iter().filter(others) {
            assert_eq!(case.verdict, Verdict::Untestable, "{case:#?}");
        }
    }
}

/// QUA-2, QUA-3
#[tokio::test(flavor = "multi_thread")]
async fn another_encoding_or_no_open_and_close_fails() {
    let checked =
        check(FakeServer::markers().capabilities(json!({"positionEncoding": "utf-8"}))).await;
    assert_eq!(case(&checked, "QUA-2").verdict, Verdict::Fail);
    let checked = check(FakeServer::markers().capabilities(json!({"textDocumentSync": 0}))).await;
    assert_eq!(case(&checked, "QUA-3").verdict, Verdict::Fail);
    assert_eq!(case(&checked, "QUA-4").verdict, Verdict::Untestable);
}

/// QUA-4
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_to_the_end_is_a_budget_that_ended() {
    let place = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    let wrong = json!([{"uri": "${uri:main.fake}", "range": place}]);
    let checked = check(on("textDocument/definition", [reply(wrong)])).await;
    // What asks for definitions elsewhere has nothing to stand on then.
    let expected = [
        ("QUA-12", Verdict::Untestable),
        ("QUA-13", Verdict::Untestable),
        ("QUA-18", Verdict::Untestable),
        ("QUA-4", Verdict::Timeout),
        ("QUA-5", Verdict::Untestable),
    ];
    let expected = expected.map(|(clause, verdict)| (clause.to_owned(), verdict));
    assert_eq!(blamed(&checked), expected);
    let definition = case(&checked, "QUA-4/goToDefinition");
    assert!(
        definition
            .got
            .as_deref()
            .unwrap()
            .contains("× wrong place (last: main.fake:1:1)")
    );
}

/// QUA-4: what came before the right answer, and between, is told and is no failure.
#[tokio::test(flavor = "multi_thread")]
async fn early_answers_are_told_with_their_times() {
    let definition = |nth, action| Rule::on("textDocument/definition").nth(nth).run([action]);
    let checked = check(
        FakeServer::markers()
            .rule(definition(1, reply(json!([]))))
            .rule(definition(2, reply(Value::Null)))
            .rule(definition(4, reply_error(-32801, "content modified"))),
    )
    .await;
    assert_eq!(blamed(&checked), []);
    let timeline = &checked.run.operations[0];
    let heard: Vec<(&str, u64)> = timeline
        .heard
        .iter()
        .map(|heard| (heard.answer.as_str(), heard.times))
        .collect();
    assert_eq!(
        heard,
        [
            ("[]", 1),
            ("null", 1),
            ("right", 1),
            ("error -32801", 1),
            ("right", 3)
        ]
    );
    assert_eq!(timeline.asked, 7);
    assert!(timeline.first_right_us.unwrap() < timeline.stable_us.unwrap());
}

/// QUA-4
#[tokio::test(flavor = "multi_thread")]
async fn silence_and_death_are_told_apart() {
    let checked = only(
        on("textDocument/hover", [ignore()]),
        "QUA-4",
        Verdict::Timeout,
    )
    .await;
    assert_eq!(
        case(&checked, "QUA-4/hover").message,
        "no answer: the budget of 1.5 s ended"
    );
    let checked = check(on("textDocument/hover", [exit(9)])).await;
    let hover = case(&checked, "QUA-4/hover");
    assert_eq!(hover.verdict, Verdict::Crash, "{hover:#?}");
    assert!(hover.message.contains("exit code 9"), "{}", hover.message);
}

/// QUA-5
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_the_old_text_fails() {
    // Nothing else is asked in a sixth line.
    let sixth = json!({"position": {"line": 5}});
    let server = FakeServer::markers().rule(
        Rule::on("textDocument/definition")
            .when(sixth)
            .run([reply(Value::Null)]),
    );
    only(server, "QUA-5", Verdict::Fail).await;
}

/// QUA-6
#[tokio::test(flavor = "multi_thread")]
async fn a_log_line_on_stdout_fails_wherever_it_stands() {
    let checked = check(on("exit", [raw("bye\n"), exit(0)])).await;
    assert_eq!(
        blamed(&checked),
        [("QUA-6".to_owned(), Verdict::Fail)],
        "{:#?}",
        checked.run.cases
    );
    assert!(case(&checked, "QUA-6").message.contains("\"bye\\n\""));
    let checked = check(on("start", [raw("Listening on stdio\n")])).await;
    let said = &case(&checked, "QUA-6").message;
    assert!(said.contains("\"Listening on stdio\\n\""), "{said}");
}

/// QUA-7
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_no_legal_shape_fails() {
    let server = FakeServer::markers().rule(
        Rule::on("textDocument/hover")
            .nth(1)
            .run([reply(json!({"contents": 5}))]),
    );
    let checked = only(server, "QUA-7", Verdict::Fail).await;
    assert_eq!(
        case(&checked, "QUA-7").message,
        "answer to textDocument/hover: result.contents is a number, not an object"
    );
}

/// QUA-8
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_or_leaves_somebody_behind_fails() {
    let stays = FakeServer::markers()
        .on("exit", [ignore()])
        .on("eof", [ignore()]);
    // Each end takes all that it may take, so that may be less, and there is one.
    let limits = Limits {
        shutdown_ms: 700,
        kill_grace_ms: 200,
    };
    let its_end = |options: &mut CheckOptions| options.only = second::chosen("QUA-8");
    let checked = check_within(stays, limits, its_end).await;
    assert_eq!(
        case(&checked, "QUA-8").message,
        "still running after exit and the end of stdin"
    );
    let mute = check_within(on("shutdown", [ignore()]), limits, its_end).await;
    assert_eq!(case(&mute, "QUA-8").message, "shutdown was not answered");
    let helper = Helper {
        deaf: true,
        ..Helper::default()
    };
    let leaves = on("initialized", [spawn_helper(helper)]);
    // Two starts, behind each of which what is deaf is waited for.
    let checked = check(leaves).await;
    is_all(&checked, "QUA-8", Verdict::Fail);
    assert!(case(&checked, "QUA-8").message.starts_with("left behind: "));
}

/// QUA-9, QUA-11
#[tokio::test(flavor = "multi_thread")]
async fn another_exit_code_and_a_missing_operation_are_notes() {
    let checked = only(on("exit", [exit(4)]), "QUA-9", Verdict::Note).await;
    assert_eq!(case(&checked, "QUA-9").message, "exit code 4");
    let three = FakeServer::markers().capabilities(json!({"implementationProvider": false}));
    let checked = only(three, "QUA-11", Verdict::Note).await;
    assert_eq!(
        case(&checked, "QUA-11").message,
        "not advertised: goToImplementation"
    );
    assert!(checked.run.conclusion.conforms());
}

/// QUA-17
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_settings_and_does_not_answer_right_gets_a_note() {
    let asks = dsh_fake_lsp::request(json!(1), "workspace/configuration", json!({"items": [{}]}));
    let checked = check(on("initialized", [asks.clone()])).await;
    assert_eq!(case(&checked, "QUA-17").verdict, Verdict::Pass);
    let needs = on("initialized", [asks]).on("textDocument/hover", [reply(Value::Null)]);
    let checked = check(needs).await;
    assert_eq!(case(&checked, "QUA-17").verdict, Verdict::Note);
}
