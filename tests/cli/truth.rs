//! A check does not say more than it knows: of a server that nobody knows, of one that says nothing,
//! dies, keeps silent or waits for somebody, and of bounds that are its own.

use dsh_fake_lsp::{
    FakeServer, Rule, capabilities, exit, ignore, notify, raw, reply, request_and_wait, set,
};
use dsh_reports::{Conclusion, Run, Verdict};
use serde_json::{Value, json};

use crate::support::{Desk, Said, program, typed};

const QUESTIONS: [&str; 4] = [
    "textDocument/definition",
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/hover",
];

/// Checks a server in the sample's workspace, which it is not told is one; at a place of it, where
/// `at` is set.
fn check(desk: &Desk, server: &FakeServer, at: bool, more: &[&str]) -> Said {
    check_by(desk, &typed(server), at, more)
}

fn check_by(desk: &Desk, command: &str, at: bool, more: &[&str]) -> Said {
    let (workspace, place) = desk.sample("main.fake", "use-area");
    let workspace = workspace.display().to_string();
    let mut args = vec!["check", "--command", command, "--ext", ".fake=fake"];
    args.extend(["--workspace", &workspace]);
    if at {
        args.extend(["--at", &place]);
    }
    args.extend(more);
    desk.run(&args)
}

#[track_caller]
fn run_of(said: &Said) -> Run {
    said.report().runs.remove(0)
}

fn everything(
    server: FakeServer,
    answer: impl Fn(&str) -> Vec<dsh_fake_lsp::Action>,
) -> FakeServer {
    QUESTIONS
        .iter()
        .fold(server, |server, method| server.on(method, answer(method)))
}

#[track_caller]
fn fails_on_qua_4(run: &Run) {
    let failed = Conclusion::NotQualified {
        musts: vec!["QUA-4".to_owned()],
    };
    assert_eq!(run.conclusion, failed, "{:#?}", run.remarks);
}

/// All forms of one whole check, measured too: the word is nowhere.
#[test]
fn nothing_is_called_right_in_a_workspace_that_nobody_knows() {
    for at in [false, true] {
        let desk = Desk::new();
        let more = [
            "--format", "text", "--format", "markdown", "--format", "json",
        ];
        let out = ["--budget", "5", "--out", "out"];
        check(
            &desk,
            &FakeServer::markers(),
            at,
            &[&more[..], &out].concat(),
        )
        .ended(0);
        let read =
            |file: &str| std::fs::read_to_string(desk.path().join("out").join(file)).unwrap();
        let report = dsh_reports::read(&read("report.json")).unwrap();
        for file in ["report.txt", "report.md", "report.json"] {
            let text = read(file);
            let mut said = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // The statements of clauses, a member of JSON, and what says that it is not known.
            for clause in &report.runs[0].coverage {
                said = said.replace(&clause.statement, "");
            }
            for known in ["\"right\":", "hat is right", "whether rightly is not known"] {
                said = said.replace(known, "");
            }
            let said = said.replace("didChangeConfiguration right after initialized", "");
            let around = said.find("right").map(|at| {
                let from = said.floor_char_boundary(at.saturating_sub(100));
                &said[from..said.ceil_char_boundary(said.len().min(at + 60))]
            });
            assert_eq!(around, None, "{file}, with --at: {at}");
        }
    }
}

#[test]
fn null_to_everything_is_no_qualification() {
    for nothing in [Value::Null, json!([])] {
        let desk = Desk::new();
        let server = everything(FakeServer::new(), |method| {
            let hover = method == "textDocument/hover";
            vec![reply(if hover { Value::Null } else { nothing.clone() })]
        });
        let more = ["--measure", "no", "--format", "json"];
        let run = run_of(&check(&desk, &server, true, &more).ended(0));
        assert!(
            matches!(run.conclusion, Conclusion::ProtocolOnly { .. }),
            "{}",
            run.conclusion
        );
        let told = run.remarks.join("\n");
        assert!(
            told.contains("No answer at the places of --at said anything"),
            "{told}"
        );
    }
}

#[test]
fn a_server_that_dies_of_every_second_question_is_not_let_off() {
    for at in [false, true] {
        let desk = Desk::new();
        let mut server = FakeServer::markers();
        for method in QUESTIONS {
            server = server
                .rule(Rule::on(method).in_set("second").run([exit(3)]))
                .rule(Rule::on(method).run([set("second")]));
        }
        let more = ["--measure", "no", "--budget", "3", "--format", "json"];
        let run = run_of(&check(&desk, &server, at, &more).ended(1));
        fails_on_qua_4(&run);
        let crash = run.cases.iter().find(|case| case.verdict == Verdict::Crash);
        let message = &crash.unwrap().message;
        assert!(
            message.contains("the server died") && message.contains("exit code 3"),
            "{message}"
        );
    }
}

#[test]
fn a_server_that_never_answers_is_not_let_off() {
    let desk = Desk::new();
    let server = everything(FakeServer::markers(), |_| vec![ignore()]);
    let more = ["--measure", "no", "--budget", "1", "--format", "json"];
    let run = run_of(&check(&desk, &server, false, &more).ended(1));
    fails_on_qua_4(&run);
    let case = run
        .cases
        .iter()
        .find(|case| case.id == "QUA-4/hover")
        .unwrap();
    assert_eq!(case.message, "not answered, the budget of 1.0 s ended");
    // Without a workspace, too.
    let command = typed(&server);
    let args = ["check", "--command", &command, "--ext", ".x=x"];
    let said = desk.run(&[&args[..], &more].concat()).ended(1);
    fails_on_qua_4(&run_of(&said));
}

#[test]
fn what_a_server_asks_a_person_for_is_told_whatever_it_answers() {
    let plea = json!({"type": 3, "message": "Please log in to your account"});
    let asks = |wait: bool| {
        let asking = if wait {
            request_and_wait(json!(1), "window/showMessageRequest", plea.clone())
        } else {
            notify("window/showMessage", plea.clone())
        };
        everything(FakeServer::new(), |_| vec![reply(Value::Null)]).on("initialized", [asking])
    };
    for wait in [false, true] {
        let desk = Desk::new();
        let more = ["--measure", "no", "--budget", "2"];
        check(&desk, &asks(wait), true, &more)
            .ended(0)
            .out_has("PROTOCOL ONLY")
            .out_has("it asks for a log-in: \"Please log in to your account\"");
    }
}

/// What is cut off by the end that the server is brought to is not its doing.
#[test]
fn half_a_frame_behind_the_end_is_not_told_as_impure() {
    let half = "Content-Length: 90\r\n\r\n{\"jsonrpc\"";
    let desk = Desk::new();
    let more = ["--measure", "no", "--only", "QUA-6", "--format", "json"];
    let server = FakeServer::markers()
        .on("exit", [ignore()])
        .on("eof", [raw(half), exit(0)]);
    let run = run_of(&check(&desk, &server, true, &more).ended(0));
    assert_eq!(run.cases[0].verdict, Verdict::Pass, "{:#?}", run.cases);
    let server = FakeServer::markers()
        .on("exit", [ignore()])
        .on("eof", [raw(&format!("bye\r\n\r\n{half}")), exit(0)]);
    let run = run_of(&check(&desk, &server, true, &more).ended(1));
    assert!(run.cases[0].message.contains("bye"), "{:#?}", run.cases);
    // One that ends by itself in the middle of a frame is.
    let server = FakeServer::markers().on("textDocument/hover", [raw(half), exit(0)]);
    let run = run_of(&check(&desk, &server, true, &more).ended(1));
    assert_eq!(run.cases[0].verdict, Verdict::Fail, "{:#?}", run.cases);
}

#[test]
fn a_name_and_a_version_of_megabytes_are_taken_and_cut() {
    let desk = Desk::new();
    let long = "9\u{202e}".repeat(1_500_000);
    let info = json!({"name": long, "version": long});
    let server = FakeServer::markers().on(
        "initialize",
        [reply(json!({
            "capabilities": {
                "textDocumentSync": 1,
                "definitionProvider": true,
                "referencesProvider": true,
                "implementationProvider": true,
                "hoverProvider": true,
            },
            "serverInfo": info,
        }))],
    );
    // Its script is too long for a command line, and lies in a file while this is kept.
    let kept = server.subcommand("fake-lsp").command(program()).unwrap();
    let mut words = vec![kept.program.display().to_string()];
    words.extend(kept.args.iter().cloned());
    let command = shlex::try_join(words.iter().map(String::as_str)).unwrap();
    let more = ["--measure", "no", "--only", "QUA-1,QUA-4", "--budget", "20"];
    let said = check_by(&desk, &command, true, &more).ended(0);
    let said = said.out_has("…").out_has("\\u{202e}");
    assert!(said.out.len() < 10_000, "{} bytes", said.out.len());
    assert!(!said.out.contains('\u{202e}'));
}

#[test]
fn an_answer_beyond_our_bound_is_no_death_of_the_server() {
    let desk = Desk::new();
    let long = "x".repeat(100);
    let body =
        dsh_fake_lsp::Action::ReplyRaw(dsh_fake_lsp::Payload::Repeated(dsh_fake_lsp::Repeated {
            text: long,
            times: 170_000,
        }));
    let server = FakeServer::markers().on("textDocument/hover", [body]);
    let more = ["--measure", "no", "--only", "QUA-4,QUA-6", "--budget", "20"];
    let said = check(&desk, &server, true, &more).ended(1);
    let said = said.out_has("maxMessageBytes").out_has("16000000");
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("longer than the host takes"), "{words}");
    assert!(!words.contains("died"), "{words}");
    assert!(!words.contains("something else than frames"), "{words}");
}

/// Writes an entry of a server that is asked in the sample, with its known answers.
fn own_entry(desk: &Desk, server: &FakeServer, more: &str) {
    let command = shlex::split(&typed(server)).unwrap();
    let (program, args) = command.split_first().unwrap();
    let entry = format!(
        "[servers.own]\nlanguage = \"Fake\"\nlaunch = {{command = {program:?}, args = {args:?}}}\n\
         extensions = {{\".fake\" = \"fake\"}}\nsample = \"fake\"\n{more}"
    );
    std::fs::write(desk.path().join("dsh-conform.toml"), entry).unwrap();
}

/// What is never answered, or never rightly, takes nothing of the time of the other parts.
#[track_caller]
fn ends_and_odd_requests_have_their_time(server: &FakeServer, edges: usize) {
    let desk = Desk::new();
    own_entry(&desk, server, "");
    let args = [
        "check",
        "--server",
        "own",
        "--measure",
        "only",
        "--budget",
        "2.5",
    ];
    let said = desk.run(&[&args[..], &["--format", "json"]].concat());
    let run = run_of(&said);
    let measured = run.measured.as_ref().unwrap();
    assert_eq!(measured.edges.len(), edges, "{:#?}", run.remarks);
    let alive = measured.edges.iter().all(|edge| edge.alive);
    assert!(alive, "{:#?}", measured.edges);
    let ends: Vec<&str> = measured.ends.iter().map(|end| end.way.as_str()).collect();
    assert_eq!(
        ends,
        ["shutdown", "stdin-closed", "sigterm"],
        "{:#?}",
        run.remarks
    );
    let told = run.remarks.join("\n");
    let named = told.contains("no operation is advertised, so not tried: overlay, position");
    assert_eq!(named, edges < 11, "{told}");
}

#[test]
fn ends_and_odd_requests_have_their_time_with_a_silent_server() {
    let silent = everything(FakeServer::markers(), |_| vec![ignore()]);
    ends_and_odd_requests_have_their_time(&silent, 11);
}

#[test]
fn ends_and_odd_requests_have_their_time_with_a_server_that_knows_nothing() {
    let empty = everything(FakeServer::markers(), |_| vec![reply(Value::Null)]);
    ends_and_odd_requests_have_their_time(&empty, 11);
}

#[test]
fn ends_and_odd_requests_have_their_time_with_a_server_that_offers_nothing() {
    let none = FakeServer::markers().replace_capabilities(json!({"textDocumentSync": 1}));
    ends_and_odd_requests_have_their_time(&none, 6);
}

/// The time of a trial is nobody's choice, and so not told as the budget.
#[test]
fn what_failed_in_a_trial_is_told_with_the_trial_s_time() {
    let desk = Desk::new();
    let mut server = FakeServer::markers()
        .on("initialize", [set("deaf"), capabilities(json!({}))])
        .rule(Rule::on("workspace/didChangeConfiguration").run([set("")]));
    for method in QUESTIONS {
        server = server.rule(Rule::on(method).in_set("deaf").run([reply(Value::Null)]));
    }
    own_entry(&desk, &server, "announceConfiguration = true\n");
    let more = ["--measure", "no", "--format", "json"];
    let said = desk.run(&[&["check", "--server", "own"][..], &more].concat());
    let run = run_of(&said.ended(0));
    let remedy = run.remedy.unwrap();
    let against = &remedy.settings[0].against;
    assert!(
        against.contains(" of a trial ended before the known answer came"),
        "{against}"
    );
    assert!(!against.contains("budget"), "{against}");
}
