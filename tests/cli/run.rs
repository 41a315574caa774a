//! `run`: what is selected, how it ends, what it leaves.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use dsh_fake_lsp::{Control, FakeServer, ignore};
use dsh_reports::{Conclusion, Report, RunKind, SkipReason, Verdict};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Desk, Said, is_alive, program};

/// Only a hang ends a test by this.
const PATIENCE: Duration = Duration::from_mins(1);

/// A scenario whose one query comes to nothing, with what is demanded besides.
fn scenario(title: &str, rest: &str) -> String {
    format!(
        "title: {title}\nclauses: [NAV-1]\nprofile: transient\nsteps:\n  - query: {{as: q, \
         operation: goToDefinition, at: \"a.ts:1:7\"}}\n{rest}"
    )
}

const HOLDS: &str = "  - expect: {q: {locations: []}}\n";
const FAILS: &str = "  - expect: {q: {locations: [\"a.ts:1:1\"]}}\n";
const UNTESTABLE: &str = "requires:\n  - received: textDocument/hover\n";

/// A suite of four scenarios that hold, in two areas.
fn good(desk: &Desk) {
    for id in ["one/a", "one/b", "two/a", "two/b"] {
        add(desk, id, &scenario("It holds", HOLDS));
    }
}

fn add(desk: &Desk, id: &str, text: &str) {
    let path = desk.path().join(format!("suite/{id}.yaml"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[track_caller]
fn run(desk: &Desk, args: &[&str]) -> Said {
    let mut all = vec!["run", "--suite", "suite", "--in-process", "--seed", "1"];
    all.extend(args);
    desk.run(&all)
}

fn ids(report: &Report) -> Vec<&str> {
    report.runs[0]
        .cases
        .iter()
        .map(|case| case.id.as_str())
        .collect()
}

#[test]
fn what_holds_leaves_nothing() {
    let desk = Desk::new();
    good(&desk);
    let said = run(&desk, &[])
        .ended(0)
        .out_has("✓ one             2 pass")
        .out_has("suite: suite · ")
        .out_has("seed 1")
        .out_has("\nSELECTED CASES HOLD ");
    assert_eq!(said.err, "");
    let wide = said.out.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    assert!(!desk.files().iter().any(|file| file.starts_with("target")));
}

/// The verdicts do not depend on where the harness is mounted.
#[test]
fn workers_come_to_the_same() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    let verdicts = |args: &[&str]| {
        let report = desk.run(args).ended(1).report();
        let cases = report.runs[0].cases.iter();
        let verdicts: Vec<_> = cases.map(|case| (case.id.clone(), case.verdict)).collect();
        verdicts
    };
    let here = verdicts(&[
        "run",
        "--suite",
        "suite",
        "--in-process",
        "--format",
        "json",
    ]);
    let there = verdicts(&["run", "--suite", "suite", "--jobs", "2", "--format", "json"]);
    assert_eq!(here, there);
    assert_eq!(here.len(), 5);
}

#[test]
fn json_is_a_report_and_nothing_else() {
    let desk = Desk::new();
    good(&desk);
    let said = run(&desk, &["--format", "json"]).ended(0);
    assert_eq!(said.err, "");
    let report = said.report();
    let run = &report.runs[0];
    assert_eq!(
        run.conclusion,
        Conclusion::SelectionHolds { notes: 0, known: 0 }
    );
    assert_eq!(run.seed, Some(1));
    assert_eq!(ids(&report), ["one/a", "one/b", "two/a", "two/b"]);
    // Every clause is there, judged or with the reason why not.
    let of = |id: &str| {
        let mut coverage = run.coverage.iter();
        coverage.find(|clause| clause.clause == id).unwrap()
    };
    assert_eq!(of("NAV-1").verdict, Some(Verdict::Pass));
    assert_eq!(of("NAV-1").cases.len(), 4);
    let reason = of("NAV-2").not_run.as_deref().unwrap();
    assert!(reason.starts_with("no scenario is for it"), "{reason}");
    assert!(
        run.coverage
            .iter()
            .all(|clause| clause.verdict.is_some() != clause.not_run.is_some())
    );
    assert!(run.coverage.len() > 150);
}

#[test]
fn a_failure_shows_everything_and_can_be_repeated() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    let said = run(&desk, &[])
        .ended(1)
        .out_has("DOES NOT CONFORM: NAV-1")
        .out_has("✗ two/c fail (MUST)")
        .out_has("shows       It fails")
        .out_has("expected")
        .out_has("textDocument/definition")
        .out_has("target/dsh-conform/two/c.jsonl")
        .out_has("suite/two/c.yaml:1");
    let repeat = said.out.split("  repeat ").nth(1).unwrap();
    let words = shlex::split(repeat.split("\n\n").next().unwrap()).unwrap();
    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let again = desk.run(&args).ended(1).out_has("✗ two/c fail (MUST)");
    assert!(!again.out.contains("one/"), "{}", again.out);
    assert!(again.out.contains("1 fail\n"), "{}", again.out);
    let transcript =
        std::fs::read_to_string(desk.path().join("target/dsh-conform/two/c.jsonl")).unwrap();
    let events = dsh_transcript::jsonl::read(transcript.as_bytes()).unwrap();
    assert!(events.len() > 5);
}

#[test]
fn a_prerequisite_that_is_not_seen_is_red() {
    let desk = Desk::new();
    let text = scenario("Nothing is shown", &format!("{HOLDS}{UNTESTABLE}"));
    add(&desk, "one/a", &text);
    let said = run(&desk, &["--format", "json"]).ended(1);
    let run = said.report().runs.remove(0);
    assert_eq!(run.cases[0].verdict, Verdict::Untestable);
    assert!(matches!(run.conclusion, Conclusion::Untestable { .. }));
}

#[test]
fn a_fault_of_the_suite_is_told_apart() {
    let desk = Desk::new();
    let never = format!("{HOLDS}declares:\n  - clause: framing\n");
    add(&desk, "one/a", &scenario("Declared in vain", &never));
    let said = run(&desk, &[]).ended(6).out_has("HARNESS ERROR: one/a");
    assert!(!said.out.contains("DOES NOT CONFORM"));
}

#[test]
fn a_filter_is_a_prefix_a_glob_or_a_path() {
    let desk = Desk::new();
    good(&desk);
    for (filters, wanted) in [
        (&["one/"][..], &["one/a", "one/b"][..]),
        (&["*/a"], &["one/a", "two/a"]),
        (&["one/a", "two/b"], &["one/a", "two/b"]),
        (&["suite/one/a.yaml"], &["a"]),
    ] {
        let mut args = vec!["--format", "json"];
        args.extend(filters);
        let report = run(&desk, &args).ended(0).report();
        assert_eq!(ids(&report), wanted, "{filters:?}");
        let run = &report.runs[0];
        assert_eq!(
            run.conclusion,
            Conclusion::SelectionHolds { notes: 0, known: 0 }
        );
        assert_eq!(run.skipped[0].reason, SkipReason::NotSelected);
    }
}

#[test]
fn nothing_selected_names_the_nearest() {
    let desk = Desk::new();
    good(&desk);
    run(&desk, &["one/aa"])
        .ended(5)
        .err_has("did you mean one/a");
    run(&desk, &["oen/"]).ended(5).err_has("did you mean one/?");
    run(&desk, &["nowhere*"]).ended(5).err_has("nowhere*");
    run(&desk, &["--profile", "tool"])
        .ended(5)
        .err_has("none of 4 cases is of the profile tool");
    run(&desk, &["one/a", "--shard", "1/100"])
        .ended(5)
        .err_has("the shard has none of 1 cases");
    std::fs::create_dir(desk.path().join("empty")).unwrap();
    desk.run(&["run", "--suite", "empty"])
        .ended(5)
        .err_has("no scenario files here");
}

#[test]
fn wrong_usage_says_what_is_right() {
    let desk = Desk::new();
    good(&desk);
    for shard in ["5/4", "0/4", "x", "1/0", "-1/4", "1/4/2"] {
        run(&desk, &[&format!("--shard={shard}")])
            .ended(2)
            .err_has("write I/N with I from 1 to N");
    }
    run(&desk, &["--profile", "server"])
        .ended(2)
        .err_has("transient");
    run(&desk, &["--jobs", "0"]).ended(2).err_has("1..=256");
    run(&desk, &["one/[a"]).ended(2).err_has("is no pattern");
    run(&desk, &["--format", "json", "--format", "junit"])
        .ended(2)
        .err_has("several formats need --out");
    desk.run(&["run", "--suite", "missing"])
        .ended(2)
        .err_has("missing");
    desk.run(&["run", "--in-process", "--subject", "x.yaml"])
        .ended(2)
        .err_has("--subject");
    assert!(desk.files().iter().all(|file| file.starts_with("suite/")));
}

#[test]
fn a_scenario_that_cannot_be_read_is_shown_with_its_place() {
    let desk = Desk::new();
    good(&desk);
    let text = scenario("A slip", HOLDS).replace("expect", "expct");
    add(&desk, "two/c", &text);
    run(&desk, &[])
        .ended(2)
        .err_has("suite/two/c.yaml:6:5:")
        .err_has("expect")
        .err_has("scenario files cannot be used");
    // It is in nobody's way who did not ask for it.
    run(&desk, &["one/"]).ended(0);
}

#[test]
fn shards_make_the_whole() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    let whole = run(&desk, &["--format", "json"]).ended(1).report();
    let mut merge = vec!["report".to_owned(), "merge".to_owned()];
    let mut seen = 0;
    for index in 1..=3 {
        let (shard, out) = (format!("{index}/3"), format!("shard-{index}.json"));
        let said = run(
            &desk,
            &["--shard", &shard, "--format", "json", "--out", &out],
        );
        if said.status == Some(5) {
            continue;
        }
        assert!(matches!(said.status, Some(0 | 1)), "{said:?}");
        let text = std::fs::read_to_string(desk.path().join(&out)).unwrap();
        seen += dsh_reports::read(&text).unwrap().runs[0].cases.len();
        merge.push(out);
    }
    assert_eq!(seen, 5);
    let args: Vec<&str> = merge.iter().map(String::as_str).collect();
    let merged = desk.run(&args).ended(0).report();
    let some = desk.run(&args[..args.len() - 1]).ended(3);
    assert!(
        some.err.contains("error: shards are missing: "),
        "{}",
        some.err
    );
    assert!(!some.report().runs[0].skipped.is_empty());
    let (merged, whole) = (&merged.runs[0], &whole.runs[0]);
    let verdicts = |run: &dsh_reports::Run| -> Vec<_> {
        let cases = run.cases.iter();
        cases.map(|case| (case.id.clone(), case.verdict)).collect()
    };
    assert_eq!(verdicts(merged), verdicts(whole));
    assert_eq!(merged.conclusion, whole.conclusion);
    assert_eq!(merged.totals, whole.totals);
    assert_eq!(merged.coverage, whole.coverage);
    assert_eq!((merged.shard, merged.seed), (None, Some(1)));
    assert!(merged.skipped.is_empty());
}

#[test]
fn every_form_goes_where_it_is_told() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    let mut args = vec!["--badge", "badge.json", "--out", "out"];
    for form in ["text", "json", "junit", "markdown", "github"] {
        args.extend(["--format", form]);
    }
    run(&desk, &args).ended(1).out_has("DOES NOT CONFORM");
    let files: Vec<String> = desk
        .files()
        .into_iter()
        .filter(|file| !file.starts_with("suite/"))
        .collect();
    assert_eq!(
        files,
        [
            "badge.json",
            "out/annotations.txt",
            "out/report.json",
            "out/report.md",
            "out/report.xml",
            "out/two/c.jsonl"
        ]
    );
    let read = |file: &str| std::fs::read_to_string(desk.path().join(file)).unwrap();
    assert!(read("out/report.xml").contains("<failure message=\"NAV-1: "));
    assert!(read("out/annotations.txt").starts_with("::error file=suite/two/c.yaml,line=1,"));
    let badge: serde_json::Value = serde_json::from_str(&read("badge.json")).unwrap();
    assert_eq!(badge["isError"], true);
    let said = run(&desk, &["one/", "--format", "junit", "--out", "out.xml"]).ended(0);
    assert_eq!(said.out, "");
    assert!(read("out.xml").contains("tests=\"2\""));
}

#[test]
fn a_case_of_a_file_that_is_named_can_be_repeated() {
    let desk = Desk::new();
    let folder = desk.path().join("my own");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let fails = scenario("It fails", FAILS);
    std::fs::write(folder.join("deep/c.yaml"), fails).unwrap();
    good(&desk);
    for (filter, suite) in [
        ("my own/deep/c.yaml", &[][..]),
        ("my own/", &["--suite", "suite"]),
    ] {
        let args = ["run", "--in-process", "--format", "json", filter];
        let said = desk.run(&[&args, suite].concat()).ended(1);
        let case = said.report().runs.remove(0).cases.remove(0);
        let words = shlex::split(case.reproduce.as_deref().unwrap()).unwrap();
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        desk.run(&args)
            .ended(1)
            .out_has(&format!("✗ {} fail (MUST)", case.id));
    }
}

/// A subject file whose subject is the built-in harness, as a stranger.
fn subject(desk: &Desk, rest: &str) {
    let program = serde_json::json!([program(), "subject"]);
    let text = format!("command: {program}\n{rest}");
    std::fs::write(desk.path().join("subject.yaml"), text).unwrap();
}

#[track_caller]
fn judge(desk: &Desk, args: &[&str]) -> Said {
    let mut all = vec!["run", "--suite", "suite", "--subject", "subject.yaml"];
    all.extend(args);
    desk.run(&all)
}

#[test]
fn a_known_failure_is_no_news_and_a_stale_one_is() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    subject(&desk, "known:\n  two/c: it gives nothing\n");
    judge(&desk, &[])
        .ended(0)
        .out_has("~ two/c")
        .out_has("known: it gives nothing")
        .out_has("SELECTED CASES HOLD, 1 known failure");
    subject(&desk, "known:\n  two/c: nothing\n  two/b: nothing either\n");
    let said = judge(&desk, &["--format", "json"]).ended(4);
    let run = said.report().runs.remove(0);
    assert!(run.conclusion.conforms());
    assert_eq!(run.stale.len(), 1);
    assert_eq!(run.stale[0].case, "two/b");
    assert_eq!(run.stale[0].source.as_ref().unwrap().line, Some(4));
    // Where it was not run, nobody knows.
    judge(&desk, &["one/"]).ended(0);
    subject(&desk, "known:\n  two/c: nothing\n  two/x: no such case\n");
    judge(&desk, &["--format", "github"])
        .ended(4)
        .out_has("::error file=subject.yaml,line=4,title=two/x is stale::")
        .out_has("no case is called that");
    // A failure that nobody knew of counts more.
    add(&desk, "two/d", &scenario("It fails", FAILS));
    judge(&desk, &[]).ended(1).out_has("DOES NOT CONFORM");
}

#[test]
fn a_subject_is_judged_by_what_it_claims() {
    let desk = Desk::new();
    good(&desk);
    subject(&desk, "profiles: [lsp-base]\n");
    // Nothing applies, so nothing can be said of it.
    let said = judge(&desk, &["--format", "json"]).ended(3);
    let run = said.report().runs.remove(0);
    assert!(!run.conclusion.conforms());
    assert!(run.cases.iter().all(|case| {
        case.verdict == Verdict::NotApplicable
            && case
                .message
                .contains("does not claim the profile transient")
    }));
    assert_eq!(run.profiles, ["lsp-base"]);
    let of = |id: &str| {
        let mut coverage = run.coverage.iter();
        coverage.find(|clause| clause.clause == id).unwrap()
    };
    assert!(
        of("INS-1")
            .not_run
            .as_ref()
            .unwrap()
            .contains("does not claim")
    );
}

#[test]
fn a_subject_that_cannot_be_used_is_not_carried_out() {
    let desk = Desk::new();
    good(&desk);
    let file = |text: &str| std::fs::write(desk.path().join("subject.yaml"), text).unwrap();
    for command in ["[/not/there]", "[\"true\"]", "[echo, nonsense]"] {
        file(&format!("command: {command}\n"));
        judge(&desk, &[])
            .ended(3)
            .out_has("subject.yaml · suite: suite · 0 cases")
            .out_has("UNTESTABLE: the subject cannot be used");
    }
    for (text, why) in [
        ("command: []\n", "subject.yaml:1:10:"),
        ("command: mine\n", "such as `[python3, subject.py]`\n"),
        ("command: [x]\nknown: {a: }\n", "has no reason"),
        ("nonsense", "subject.yaml:1:1:"),
    ] {
        file(text);
        judge(&desk, &[]).ended(2).err_has(why);
    }
    desk.run(&["run", "--subject", "missing.yaml"])
        .ended(2)
        .err_has("missing.yaml");
}

/// A scenario whose server is one that the test talks to.
fn watched(desk: &Desk, control: &Control) {
    let server = FakeServer::new()
        .control(control)
        .on("textDocument/definition", [ignore()])
        .subcommand("fake-lsp");
    let command = server.command(program()).unwrap();
    let host = serde_json::json!({"command": command.program, "args": command.args});
    let text = scenario("It never ends", &format!("{HOLDS}host: {host}\n"));
    add(desk, "one/a", &text);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_servers_and_leaves_a_partial_report() {
    for workers in [false, true] {
        let desk = Desk::new();
        let control = Control::bind().unwrap();
        watched(&desk, &control);
        let child = Command::new(program())
            .current_dir(desk.path())
            .args(["run", "--suite", "suite"])
            .args((!workers).then_some("--in-process"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = control.wait_received(1, "definition");
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
        let server = control.events().iter().find_map(|event| match event.body {
            dsh_transcript::EventBody::ProcessStarted { pid, .. } => Some(pid),
            _ => None,
        });
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("INTERRUPTED"), "{said}");
        assert!(said.contains("this report is partial"), "{said}");
        assert!(!is_alive(server.unwrap()), "workers: {workers}");
        let report = desk.path().join("target/dsh-conform/report.json");
        let report = dsh_reports::read(&std::fs::read_to_string(report).unwrap()).unwrap();
        assert!(report.interrupted);
        assert_eq!(report.runs[0].skipped[0].reason, SkipReason::Interrupted);
    }
}

#[test]
fn a_mutant_is_noticed_or_the_run_is_red() {
    let desk = Desk::new();
    let all = [
        "run",
        "--mutants",
        "starts-what-was-given-up",
        "--in-process",
    ];
    let mut args = all.to_vec();
    args.extend(["--format", "json"]);
    let run = desk.run(&args).ended(0).report().runs.remove(0);
    assert_eq!(run.kind, RunKind::Power);
    assert_eq!(run.conclusion, Conclusion::Noticed { mutants: 1 });
    assert!(run.cases[0].message.contains("killed by "));
    assert_eq!(run.skipped[0].reason, SkipReason::NotSelected);
    // A scenario that shows nothing of it lets it live, or cannot show that it was there.
    good(&desk);
    let mut args = all.to_vec();
    args.extend(["--suite", "suite"]);
    desk.run(&args)
        .ended(1)
        .out_has("BROKEN: starts-what-was-given-up");
    desk.run(&["run", "--mutants", "start-what-was-given-up"])
        .ended(5)
        .err_has("did you mean starts-what-was-given-up?");
}

#[test]
fn what_is_asked_of_the_real_suite_is_in_it() {
    let desk = Desk::new();
    let said = desk.run(&["run", "cancel/before-it-starts", "--in-process"]);
    said.ended(0)
        .out_has("cancel")
        .out_has("SELECTED CASES HOLD");
    assert!(!Path::new(&desk.path().join("target")).exists());
}

/// Panics that a case has are part of it, and nobody has to be told of them.
#[test]
fn panics_on_purpose_are_not_shown() {
    let desk = Desk::new();
    let said = desk.run(&[
        "run",
        "--in-process",
        "runtime/a-tool-that-fails",
        "runtime/arguments-before-the-tool",
        "runtime/rejected-steps",
        "runtime/stages-",
        "instructions/calls-that-are-held-back",
        "dispose/dropped-idle",
    ]);
    let said = said.ended(0).out_has("SELECTED CASES HOLD");
    assert!(!said.err.contains("panicked"), "{}", said.err);
}

/// A scenario of one's own gets its snapshot with `--accept`, and is held to it from then on.
#[test]
fn the_snapshot_of_a_file_can_be_accepted() {
    let desk = Desk::new();
    let text = "title: It is seen\nclauses: [RUN-12]\nprofile: runtime\nsteps:\n  - turn: \
                {as: t, prompt: Hello, snapshot: true, replies: [{text: WORD}]}\n  \
                - expect: {t: {ended: completed}}\n";
    let write = |word: &str| {
        std::fs::write(desk.path().join("mine.yaml"), text.replace("WORD", word)).unwrap();
    };
    // Beside a small suite, since the one that is built in takes seconds to be read.
    good(&desk);
    let mine = ["run", "mine.yaml", "--in-process", "--suite", "suite"];
    let accept = [&mine[..], &["--accept"]].concat();
    let snapshot = desk.path().join("mine.snap");
    write("one");
    desk.run(&mine).ended(1).out_has("--accept writes it");
    assert!(!snapshot.exists());
    let said = desk.run(&accept).ended(0).err_has("mine.snap is written");
    drop(said);
    let first = std::fs::read_to_string(&snapshot).unwrap();
    assert!(
        first.starts_with("---\nsource: \"mine.yaml\"\n---\n── t\n"),
        "{first}"
    );
    desk.run(&mine).ended(0);
    // What is held already is left as it is.
    let said = desk.run(&accept).ended(0);
    assert!(!said.err.contains("is written"), "{}", said.err);
    let changed = std::fs::read_to_string(&snapshot).unwrap();
    std::fs::write(&snapshot, changed.replace("Hello", "Bye")).unwrap();
    desk.run(&mine)
        .ended(1)
        .out_has("the texts are not those of");
    desk.run(&accept).ended(0).err_has("mine.snap is written");
    assert_eq!(std::fs::read_to_string(&snapshot).unwrap(), first);
    // A case that fails for another reason has nothing to accept.
    std::fs::remove_file(&snapshot).unwrap();
    let failing = text.replace("completed", "failed").replace("WORD", "one");
    std::fs::write(desk.path().join("mine.yaml"), failing).unwrap();
    desk.run(&accept).ended(1);
    assert!(!snapshot.exists());
    desk.run(&["run", "runtime/policy-unread", "--accept"])
        .ended(2)
        .err_has("is built in; name a file");
    desk.run(&["run", "mine.yaml", "--accept", "--mutants"])
        .ended(2);
}

/// The program with these arguments, its temporary folders in `tmp` of the desk.
fn with_tmp(desk: &Desk, before: &str, args: &[&str]) -> Said {
    let tmp = desk.path().join("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(program())
        .args(["run", "--suite", "suite", "--in-process", "--seed", "1"])
        .args(args)
        .current_dir(desk.path())
        .env("TMPDIR", &tmp)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn temporary(desk: &Desk) -> Vec<String> {
    let entries = std::fs::read_dir(desk.path().join("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn with_too_few_files_the_way_out_is_told_and_nothing_is_left() {
    let desk = Desk::new();
    for number in 0..60 {
        add(
            &desk,
            &format!("one/{number}"),
            &scenario("It holds", HOLDS),
        );
    }
    let args = ["--jobs", "60", "--format", "json"];
    let said = with_tmp(&desk, "ulimit -n 26;", &args).ended(6);
    let report = said.report();
    let mut cases = report.runs[0].cases.iter();
    let told = cases.find(|case| case.message.contains("this process may have 26 files open"));
    let told = &told.unwrap().message;
    assert!(
        told.contains("`ulimit -n`") && told.contains("`--jobs`"),
        "{told}"
    );
    assert!(temporary(&desk).is_empty(), "{:?}", temporary(&desk));
}

#[test]
fn a_temporary_folder_that_cannot_be_written_to_is_told_once() {
    let desk = Desk::new();
    good(&desk);
    let said = with_tmp(&desk, "TMPDIR=/dev/null/x;", &[])
        .ended(3)
        .err_has("error: no folder can be made in /dev/null/x: ")
        .err_has("set TMPDIR");
    assert_eq!((said.messages(), said.out.as_str()), (1, ""));
}

#[test]
fn keep_keeps_the_workspace_of_what_fails_and_says_where() {
    let desk = Desk::new();
    good(&desk);
    add(&desk, "two/c", &scenario("It fails", FAILS));
    let said = with_tmp(&desk, "", &["--keep", "--format", "json"]).ended(1);
    let report = said.report();
    let [remark] = &report.runs[0].remarks[..] else {
        panic!("{:?}", report.runs[0].remarks);
    };
    let kept = remark.strip_prefix("workspace kept: ").unwrap();
    let kept = Path::new(kept.strip_suffix(" (two/c)").unwrap());
    assert!(kept.is_dir(), "{remark}");
    let cases = std::fs::read_dir(kept.parent().unwrap().parent().unwrap()).unwrap();
    // The case, and the word that it is to stay.
    assert_eq!(cases.count(), 2);
    // Another run leaves it alone.
    with_tmp(&desk, "", &["one/"]).ended(0);
    assert!(kept.is_dir());
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let desk = Desk::new();
    good(&desk);
    let left = desk.path().join("tmp/dsh-run-killed/dsh-case1/ws");
    std::fs::create_dir_all(&left).unwrap();
    with_tmp(&desk, "", &["one/"]).ended(0);
    assert!(temporary(&desk).is_empty(), "{:?}", temporary(&desk));
}

#[test]
fn links_to_files_are_read_and_what_is_no_file_is_told() {
    use std::os::unix::fs::symlink;
    let desk = Desk::new();
    add(&desk, "one/a", &scenario("It holds", HOLDS));
    std::fs::write(
        desk.path().join("real.yaml"),
        scenario("It holds too", HOLDS),
    )
    .unwrap();
    let suite = desk.path().join("suite");
    symlink("../../real.yaml", suite.join("one/link.yaml")).unwrap();
    symlink("nowhere.yaml", suite.join("one/dangling.yaml")).unwrap();
    symlink("one", suite.join("again")).unwrap();
    let pipe = suite.join("one/pipe.yaml");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let said = run(&desk, &["--format", "json"])
        .ended(0)
        .err_has("suite/one/dangling.yaml:1:1: warning: this is a link that leads nowhere")
        .err_has("suite/again:1:1: warning: this is a link to a folder")
        .err_has("suite/one/pipe.yaml:1:1: warning: this is no file");
    assert_eq!(said.messages(), 3, "{}", said.err);
    assert_eq!(ids(&said.report()), ["one/a", "one/link"]);
    desk.run(&["run", "--suite", "suite/one/pipe.yaml"])
        .ended(2)
        .err_has("neither a file nor a folder");
}

/// The profiles count what binds a harness; what binds servers is told apart from it.
#[test]
fn what_is_not_judged_adds_up() {
    let said = Desk::new()
        .run(&["run", "--in-process", "runtime/policy-unread"])
        .ended(0);
    let (_, table) = said.out.split_once("not judged\n").unwrap();
    let rows = table.lines().take_while(|line| !line.is_empty());
    let columns = rows.map(|line| line.split_whitespace().next_back().unwrap());
    let columns: u64 = columns.map(|text| text.parse::<u64>().unwrap()).sum();
    let unbroken = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |before: &str, behind: &str| -> u64 {
        let (_, rest) = unbroken.split_once(before).unwrap();
        rest.split_once(behind).unwrap().0.parse().unwrap()
    };
    let own = number("not judged: ", " clauses, for which");
    let twice = number("no selected case is (", " of them belong to two");
    assert_eq!(own + twice, columns, "{}", said.out);
    assert!(number("profiles), and ", " that bind language servers") > 30);
}

#[test]
fn a_failure_is_told_in_words() {
    let desk = Desk::new();
    add(&desk, "one/a", &scenario("It fails", FAILS));
    let answered = "clauses: [NAV-1]\nprofile: transient\nserver:\n  - on: textDocument/hover\n    \
                    do:\n      - reply: {contents: read}\nsteps:\n  - query: {as: q, operation: \
                    hover, at: \"a.ts:1:7\"}\n  - expect: {q: {hover: other}}\n";
    add(&desk, "one/b", &format!("title: It fails too\n{answered}"));
    let said = run(&desk, &[])
        .ended(1)
        .out_has("q: locations []")
        .out_has("q: hover \"read\"")
        .out_has("got hover \"read\"");
    assert!(!said.out.contains("\"kind\""), "{}", said.out);
}
