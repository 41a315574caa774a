//! The clauses of the second start, and those that were added to the first, each seen to fail on a
//! real process; and that what disturbs can be stopped.

use dsh_e2e::{Probe, probe_of};
use dsh_fake_lsp::{delay_ms, set};
use dsh_harness::kernel::CancelReason;
use dsh_reports::{Conclusion, CyclesKind, StartKind};
use dsh_transcript::{Direction, EventBody};

use super::*;

fn definition() -> Rule {
    Rule::on("textDocument/definition")
}

fn location(uri: &str, line: u64, columns: std::ops::Range<u64>) -> Value {
    json!([{"uri": uri, "range": {
        "start": {"line": line, "character": columns.start},
        "end": {"line": line, "character": columns.end},
    }}])
}

fn of_file(file: &str) -> Value {
    json!({"textDocument": {"uri": format!("${{uri:{file}}}")}})
}

pub(super) fn chosen(clause: &str) -> Vec<&'static Probe> {
    vec![probe_of(clause).unwrap()]
}

/// Drives only what this clause needs, with time enough for a start on a busy machine. What never
/// comes is waited for all that time, which makes a test long.
async fn chosen_only(server: FakeServer, clause: &str) -> Checked {
    check_with(server, |options| {
        options.only = chosen(clause);
        options.rounds = ROUNDS;
        options.budget = Duration::from_secs(5);
    })
    .await
}

/// The same; the clause's one case is this.
async fn alone(server: FakeServer, clause: &str, verdict: Verdict, said: &str) -> Checked {
    let checked = chosen_only(server, clause).await;
    let case = &checked.run.cases[0];
    assert_eq!(
        (case.verdict, case.message.as_str()),
        (verdict, said),
        "{case:#?}"
    );
    checked
}

fn processes(checked: &Checked) -> usize {
    let started =
        |event: &&dsh_transcript::Event| matches!(event.body, EventBody::ProcessStarted { .. });
    checked.events.iter().filter(started).count()
}

/// QUA-10
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_request_that_stays_unanswered_is_a_note() {
    // The three before settle that it answers.
    let pending = || FakeServer::markers().rule(definition().nth(4).run([ignore()]));
    let deaf = pending().on("$/cancelRequest", [ignore()]);
    alone(deaf, "QUA-10", Verdict::Note, "not answered within 2.0 s").await;
    let checked = chosen_only(pending(), "QUA-10").await;
    let case = case(&checked, "QUA-10");
    assert_eq!(case.verdict, Verdict::Pass, "{case:#?}");
    assert!(case.message.ends_with("answered with error -32800"));
}

/// QUA-12
#[tokio::test(flavor = "multi_thread")]
async fn columns_that_count_something_else_are_a_note() {
    let wrong = reply(location("${uri:wide.fake}", 2, 5..10));
    let rule = definition().when(of_file("wide.fake")).run([wrong]);
    let checked = only(FakeServer::markers().rule(rule), "QUA-12", Verdict::Note).await;
    let said = &case(&checked, "QUA-12/goToDefinition").message;
    assert_eq!(said, "answered with wrong place");
}

/// QUA-13
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_comes_back_as_another_file_is_a_note_and_another_spelling_is_none() {
    let file = "with blank/größe 数.fake";
    let answers = |uri: &str| {
        let answer = reply(location(&format!("${{workspaceUri}}/{uri}"), 2, 4..9));
        FakeServer::markers().rule(definition().when(of_file(file)).run([answer]))
    };
    let twice = answers("with%2520blank/gr%25C3%25B6%25C3%259Fe%2520%25E6%2595%25B0.fake");
    let checked = only(twice, "QUA-13", Verdict::Note).await;
    let said = &case(&checked, "QUA-13/goToDefinition").message;
    assert_eq!(said, "answered with wrong place");
    let spelled = answers("with%20blank/gr%c3%b6ße%20数.fake");
    assert_eq!(blamed(&check(spelled).await), []);
}

/// QUA-14
#[tokio::test(flavor = "multi_thread")]
async fn references_that_are_not_all_there_at_first_are_a_note() {
    let late = FakeServer::markers().rule(
        Rule::on("textDocument/references")
            .nth(1)
            .run([reply(json!([]))]),
    );
    let checked = only(late, "QUA-14", Verdict::Note).await;
    assert!(case(&checked, "QUA-14").message.ends_with("before that []"));
    let start = &checked.run.measured.as_ref().unwrap().starts[0];
    assert_eq!(start.kind, StartKind::Cold);
    assert!(start.initialized_us.unwrap() < start.operations[1].first_right_us.unwrap());
    assert!(
        start
            .summary
            .contains("of false empty lists (findReferences)"),
        "{}",
        start.summary
    );
}

/// QUA-15
#[tokio::test(flavor = "multi_thread")]
async fn an_error_among_fifty_questions_is_a_note() {
    // The first start asks for fewer definitions than that.
    let lost = definition().nth(20).run([reply_error(-32603, "lost")]);
    let checked = check_with(FakeServer::markers().rule(lost), |options| {
        options.rounds = ROUNDS;
        options.budget = Duration::from_mins(1);
    })
    .await;
    assert_eq!(blamed(&checked), [("QUA-15".to_owned(), Verdict::Note)]);
    assert_eq!(
        case(&checked, "QUA-15").message,
        "1 of 50 answered otherwise, the first with error -32603"
    );
    let cycles = &checked.run.measured.as_ref().unwrap().cycles;
    let kinds: Vec<CyclesKind> = cycles.iter().map(|cycles| cycles.kind).collect();
    assert_eq!(
        kinds,
        [
            CyclesKind::SameText,
            CyclesKind::ChangedText,
            CyclesKind::ManyFiles
        ]
    );
    assert_eq!((cycles[0].wrong, cycles[0].heard.len()), (1, 3));
    assert!(cycles[1].wrong == 0 && cycles[1].heard.is_empty());
    assert!(cycles.iter().all(|cycles| cycles.left_open == 0));
}

/// QUA-15
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_becomes_slow_is_a_note() {
    // Four seconds in all: so slow that a busy machine cannot hide it.
    let slow = (37..=53).fold(FakeServer::markers(), |server, nth| {
        server.rule(definition().nth(nth).run([delay_ms(250)]))
    });
    let checked = check_with(slow, |options| {
        options.only = chosen("QUA-15");
        options.rounds = 50;
        // The bound of the rounds is a part of it.
        options.budget = Duration::from_mins(1);
    })
    .await;
    let case = case(&checked, "QUA-15");
    assert_eq!(case.verdict, Verdict::Note, "{case:#?}");
    assert!(case.message.starts_with("slower and slower: "));
}

/// QUA-16
#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_does_not_answer_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let counted = |name: &str| FakeServer::markers().counter(folder.path().join(name));
    let empty = counted("a").rule(definition().process(2).run([reply(Value::Null)]));
    let said = "its replacement did not answer right within 5.0 s";
    let checked = alone(empty, "QUA-16", Verdict::Note, said).await;
    assert_eq!(processes(&checked), 2);
    let dead = counted("b").rule(Rule::on("initialize").process(2).run([exit(3)]));
    let checked = chosen_only(dead, "QUA-16").await;
    let case = case(&checked, "QUA-16");
    assert_eq!(case.verdict, Verdict::Note, "{case:#?}");
    assert_eq!(
        case.message,
        "its replacement died, and another one gave the same answer"
    );
}

/// QUA-16
#[tokio::test(flavor = "multi_thread")]
async fn what_the_kill_came_to_is_measured() {
    let said = "its replacement gave the same answer";
    let checked = alone(FakeServer::markers(), "QUA-16", Verdict::Pass, said).await;
    let measured = checked.run.measured.as_ref().unwrap();
    let [end] = measured.ends.as_slice() else {
        panic!("{measured:#?}");
    };
    assert_eq!((end.way.as_str(), end.signal), ("sigkill", Some(9)));
    assert!(end.replaced_us.unwrap() > end.took_us.unwrap());
    assert!(measured.starts.is_empty() && measured.cycles.is_empty());
}

/// QUA-18
#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_disk_that_is_not_seen_is_a_note_that_says_what_helps() {
    // What was true before the change.
    let stale = || {
        let old = reply(location("${uri:shapes.fake}", 5, 4..8));
        let mut asked = of_file("main.fake");
        asked["position"] = json!({"line": 2});
        definition().when(asked).run([old])
    };
    let never = FakeServer::markers().rule(stale());
    let checked = only(never, "QUA-18", Verdict::Note).await;
    assert_eq!(
        case(&checked, "QUA-18").message,
        "not seen within 1.5 s, nor once the file was opened and closed"
    );
    let opened = Rule::on("textDocument/didOpen").when(of_file("shapes.fake"));
    let once_opened = FakeServer::markers()
        .on("initialized", [set("stale")])
        .rule(opened.run([set("fresh")]))
        .rule(stale().in_set("stale"));
    let said = "not seen within 5.0 s, only once the file was opened and closed";
    alone(once_opened, "QUA-18", Verdict::Note, said).await;
}

/// QUA-19
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_writes_into_its_workspace_gets_a_note() {
    let writes = FakeServer::markers().transcript("log.jsonl");
    let checked = only(writes, "QUA-19", Verdict::Note).await;
    assert_eq!(case(&checked, "QUA-19").message, "added log.jsonl");
    let written = &checked.run.measured.as_ref().unwrap().written;
    assert_eq!(written.len(), 1, "{written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_probe_drives_only_what_it_needs() {
    for (clause, starts, asked) in [
        ("QUA-2", 1, Some(1)),
        ("QUA-15", 1, None),
        ("QUA-10", 1, None),
        ("QUA-18", 1, None),
        ("QUA-16", 2, Some(3 + 1 + 3)),
    ] {
        let checked = chosen_only(FakeServer::markers(), clause).await;
        assert_eq!(checked.run.conclusion, Conclusion::Partial { notes: 0 });
        assert_eq!(processes(&checked), starts, "{clause}");
        let is_question =
            |event: &&dsh_transcript::Event| event.is_message(Direction::ToServer, "didOpen");
        let questions = checked.events.iter().filter(is_question).count();
        assert!(
            asked.is_none_or(|asked| asked == questions),
            "{clause}: {questions} questions"
        );
    }
}

/// An interruption at each stretch of the second start ends it in order, and what was not seen is
/// not judged.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_start_can_be_interrupted_anywhere() {
    let at: [fn(Step) -> bool; 5] = [
        |step| matches!(step, Step::StartingAgain(_)),
        |step| step == Step::Cycling(CyclesKind::ChangedText),
        |step| step == Step::GivingUp,
        |step| matches!(step, Step::ChangingOnDisk(_)),
        |step| step == Step::Killing,
    ];
    for at in at {
        let (target, options, temporary) = prepared(&FakeServer::markers());
        let ground = Ground::Sample(samples::sample("fake").unwrap());
        let subprocess = Arc::new(LocalSubprocess::from_environment());
        let (cancel, stop) = (Cancel::new(), CancellationToken::new());
        let watch = |step| {
            if at(step) {
                cancel.cancel(CancelReason::Caller);
            }
        };
        let checked = dsh_e2e::check(
            &target, &ground, &options, subprocess, &cancel, &stop, &watch,
        )
        .await
        .unwrap();
        assert_eq!(checked.run.conclusion, Conclusion::Interrupted);
        assert!(!checked.run.is_red(), "{:#?}", checked.run.cases);
        let ended =
            |event: &&dsh_transcript::Event| matches!(event.body, EventBody::ProcessEnded { .. });
        let ended = checked.events.iter().filter(ended).count();
        assert_eq!(ended, processes(&checked));
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}

/// Stopping at once kills what runs, also a server that stands still.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_start_can_be_stopped_at_once() {
    let at: [fn(Step) -> bool; 2] = [
        |step| step == Step::Cycling(CyclesKind::SameText),
        |step| step == Step::Killing,
    ];
    for at in at {
        let control = Control::bind().unwrap();
        let server = FakeServer::markers().control(&control);
        let (target, options, temporary) = prepared(&server);
        let ground = Ground::Sample(samples::sample("fake").unwrap());
        let subprocess = Arc::new(LocalSubprocess::from_environment());
        let (cancel, stop) = (Cancel::new(), CancellationToken::new());
        let watch = |step| {
            if at(step) {
                stop.cancel();
            }
        };
        let stopped = dsh_e2e::check(
            &target, &ground, &options, subprocess, &cancel, &stop, &watch,
        )
        .await;
        assert!(matches!(stopped, Err(dsh_e2e::CheckError::Stopped)));
        control.wait_ended(2).await;
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}
