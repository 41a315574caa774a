//! `check` of several servers, and a user's own ones.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use dsh_fake_lsp::{Control, FakeServer, Rule, ignore, reply, trap_sigterm};
use dsh_reports::{Conclusion, Report, Run};
use dsh_transcript::EventBody;
use serde_json::{Value, json};

use crate::support::{Desk, is_alive, program};

/// An entry that starts this fake server.
fn entry(name: &str, server: &FakeServer) -> Value {
    let server = server.clone().subcommand("fake-lsp");
    let command = server.command(program()).unwrap();
    json!({
        "name": name,
        "launch": {"command": command.program, "args": command.args},
        "extensions": {".fake": "fake"},
        "sample": "fake",
    })
}

/// An entry that is a line for the shell.
fn shell(name: &str, line: &str) -> Value {
    json!({
        "name": name,
        "launch": {"command": "sh", "args": ["-c", line]},
        "version": {"args": ["-c", "echo 1.0"]},
        "extensions": {".fake": "fake"},
        "sample": "fake",
    })
}

/// Writes entries as a catalogue. JSON is YAML.
fn catalogue(desk: &Desk, entries: &[Value]) {
    std::fs::write(desk.path().join("own.yaml"), json!(entries).to_string()).unwrap();
}

fn args<'a>(names: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["check", "--catalogue", "own.yaml"];
    for name in names {
        args.extend(["--server", name]);
    }
    args.extend(more);
    args
}

fn stored(desk: &Desk, name: &str) -> Report {
    let text = std::fs::read_to_string(desk.path().join(name)).unwrap();
    dsh_reports::read(&text).unwrap()
}

#[track_caller]
fn run<'a>(report: &'a Report, name: &str) -> &'a Run {
    let mut runs = report.runs.iter();
    runs.find(|run| run.subject.name == name).unwrap()
}

#[track_caller]
fn reason(run: &Run) -> &str {
    match &run.conclusion {
        Conclusion::Untestable { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

/// Two whole checks of two hundred rounds each, since a matrix shows every clause.
#[test]
fn several_servers_leave_one_matrix_and_a_line_each() {
    let desk = Desk::new();
    let mut first = entry("a-good", &FakeServer::markers());
    first["language"] = "Fake".into();
    catalogue(&desk, &[first, entry("b-good", &FakeServer::markers())]);
    let said = desk
        .run(&args(
            &["a-good", "b-good"],
            &[
                "--jobs",
                "2",
                "--measure",
                "no",
                "--format",
                "markdown",
                "--out",
                "out",
            ],
        ))
        .ended(0)
        .err_has("a-good begins; 0 done, 1 running")
        .err_has("/2] b-good")
        .out_has("a-good 0.1.0")
        .out_has("QUALIFIED");
    assert!(!said.err.contains('\u{1b}'));
    let page = std::fs::read_to_string(desk.path().join("out/report.md")).unwrap();
    assert!(page.starts_with("**2 of 2 qualify.**"), "{page}");
    assert!(
        page.contains("\n| server | version | language | verdict |"),
        "{page}"
    );
    assert!(
        page.contains("| `a-good` | `0.1.0` | Fake | QUALIFIED"),
        "{page}"
    );
    assert!(page.contains("| server | QUA-1 | QUA-2 |"), "{page}");
    let report = stored(&desk, "out/report.json");
    assert_eq!(report.runs.len(), 2);
    for run in &report.runs {
        let overhead = run.overhead_us.unwrap();
        assert!(overhead > 0, "{overhead}");
    }
    // A server that nobody has to look at leaves no transcript.
    assert_eq!(
        desk.files(),
        [
            "out/report.json",
            "out/report.md",
            "out/runs/a-good.json",
            "out/runs/b-good.json",
            "own.yaml"
        ]
    );
}

/// One server leaves in a folder what several leave; what is printed is for people.
#[test]
fn one_server_leaves_its_report_in_each_form_too() {
    let desk = Desk::new();
    catalogue(&desk, &[entry("good", &FakeServer::markers())]);
    let quick = ["--measure", "no", "--only", "QUA-1"];
    let more = ["--format", "markdown", "--format", "junit", "--out", "out"];
    let said = desk
        .run(&args(&["good"], &[&quick[..], &more].concat()))
        .ended(0);
    assert!(said.out.contains("✓ QUA-1"), "{}", said.out);
    let left = [
        "out/report.json",
        "out/report.md",
        "out/report.xml",
        "own.yaml",
    ];
    assert_eq!(desk.files(), left);
    assert_eq!(stored(&desk, "out/report.json").runs.len(), 1);
    // Text is what is printed, and left too where it was asked for.
    let said = desk.run(&args(&["good"], &[&quick[..], &["--out", "text"]].concat()));
    let said = said.ended(0);
    let text = std::fs::read_to_string(desk.path().join("text/report.txt")).unwrap();
    assert_eq!(text, said.out);
    assert!(desk.path().join("text/report.json").is_file());
    // Into a file goes the report alone, and nothing is printed.
    let file = ["--format", "json", "--out", "one.json"];
    let said = desk
        .run(&args(&["good"], &[&quick[..], &file].concat()))
        .ended(0);
    assert_eq!(
        (said.out.as_str(), stored(&desk, "one.json").runs.len()),
        ("", 1)
    );
}

/// What is told to repeat a run names each option that decides what it finds, and no other.
#[test]
fn a_run_is_repeated_by_the_options_it_had() {
    let desk = Desk::new();
    let wrong = FakeServer::markers().on("textDocument/hover", [reply(json!(7))]);
    let mut missing = entry("missing", &FakeServer::new());
    missing["launch"] = json!({"command": "not-here-at-all"});
    catalogue(&desk, &[entry("wrong", &wrong), missing]);
    let check = |more: &[&str]| {
        let more = [
            more,
            &["--format", "json", "--out", "all.json", "--jobs", "1"],
        ]
        .concat();
        desk.command(&args(&["wrong", "missing"], &more))
            .env("DSH_CONFORM_CACHE", desk.path().join("cache"))
            .assert()
            .code(1);
        stored(&desk, "all.json")
    };
    let told = |report: &Report, name: &str| run(report, name).reproduce.clone().unwrap();
    let quick = [
        "--budget",
        "2.5",
        "--only",
        "QUA-1,QUA-7",
        "--measure",
        "no",
    ];
    let report = check(&quick);
    let plain = "dsh-conform check --server wrong --catalogue own.yaml --budget 2.5 --measure no";
    assert_eq!(
        told(&report, "wrong"),
        format!("{plain} --only 'QUA-1,QUA-7'")
    );
    let case = run(&report, "wrong")
        .cases
        .iter()
        .find(|case| case.id.starts_with("QUA-7"));
    let again = case.unwrap().reproduce.clone().unwrap();
    assert_eq!(again, format!("{plain} --only QUA-7"));
    let more = [
        &quick[..],
        &[
            "--install",
            "--system",
            "--server-memory",
            "2G",
            "--server-time",
            "99",
        ],
    ];
    let report = check(&more.concat());
    let bounds = "--server-memory 2048 --server-time 99 --install --system --only 'QUA-1,QUA-7'";
    for name in ["wrong", "missing"] {
        let plain = plain.replace("wrong", name);
        assert_eq!(told(&report, name), format!("{plain} {bounds}"));
    }
    // It is what it says.
    let words = shlex::split(&told(&report, "wrong")).unwrap();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    desk.command(&words)
        .env("DSH_CONFORM_CACHE", desk.path().join("cache"))
        .assert()
        .code(1);
}

/// A MUST that had failed when a bound was crossed has failed.
#[test]
fn what_failed_before_a_bound_was_crossed_has_failed() {
    let desk = Desk::new();
    // The first question is answered with no legal shape, the last one never.
    let stuck = FakeServer::markers()
        .on("textDocument/definition", [reply(json!({"uri": 5}))])
        .on("textDocument/hover", [ignore()]);
    catalogue(&desk, &[entry("stuck", &stuck)]);
    let more = ["--server-time", "4", "--budget", "60", "--format", "json"];
    let report = desk.run(&args(&["stuck"], &more)).ended(1).report();
    let run = run(&report, "stuck");
    let Conclusion::NotQualified { musts } = &run.conclusion else {
        panic!("{}", run.conclusion);
    };
    assert!(musts.contains(&"QUA-7".to_owned()), "{musts:?}");
    assert!(
        !musts.contains(&"QUA-8".to_owned()),
        "the cut ended it: {musts:?}"
    );
    let remarks = run.remarks.join("\n");
    assert!(
        remarks.contains("It was ended for its time: it came to no end within 4 s; --server-time"),
        "{remarks}"
    );
    assert!(remarks.contains("the rest is not known"), "{remarks}");
}

/// The server ends with all it has started, and the others go on.
#[test]
fn a_server_that_eats_memory_is_ended_and_reported() {
    let desk = Desk::new();
    let eater = "echo $$ > pid; x=$(head -c 250000000 /dev/zero | tr '\\0' x); cat > /dev/null";
    let eater = eater.replace("> pid", &format!("> {}/pid", desk.path().display()));
    catalogue(
        &desk,
        &[
            shell("eater", &eater),
            entry("good", &FakeServer::markers()),
        ],
    );
    let more = [
        "--only",
        "QUA-1",
        "--server-memory",
        "120M",
        "--format",
        "json",
        "--out",
        "all.json",
    ];
    desk.run(&args(&["eater", "good"], &more))
        .ended(3)
        .err_has("eater 1.0: UNTESTABLE: ended for its memory: it held ");
    let report = stored(&desk, "all.json");
    let eater = run(&report, "eater");
    assert!(
        reason(eater).contains("--server-memory"),
        "{}",
        reason(eater)
    );
    assert!(eater.peak_memory.unwrap() > 120 << 20);
    assert!(run(&report, "good").conclusion.conforms());
    let pid = std::fs::read_to_string(desk.path().join("pid")).unwrap();
    assert!(!is_alive(pid.trim().parse().unwrap()));
    // It is nothing to take over, and its transcript is there to look at.
    assert!(!desk.files().contains(&"runs/eater.json".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_ends_is_ended_and_reported() {
    let desk = Desk::new();
    let control = Control::bind().unwrap();
    let stubborn = FakeServer::new()
        .control(&control)
        .rule(Rule::on("start").run([trap_sigterm()]))
        .on("initialize", [ignore()])
        .on("eof", [ignore()])
        .on("SIGTERM", [ignore()]);
    catalogue(
        &desk,
        &[
            entry("good", &FakeServer::markers()),
            entry("stubborn", &stubborn),
        ],
    );
    let more = [
        "--only",
        "QUA-1",
        "--server-time",
        "1.5",
        "--budget",
        "30",
        "--format",
        "json",
        "--out",
        "all.json",
    ];
    desk.run(&args(&["good", "stubborn"], &more)).ended(3);
    let report = stored(&desk, "all.json");
    let stubborn = run(&report, "stubborn");
    assert!(
        reason(stubborn).contains("came to no end within 1.5 s; --server-time"),
        "{}",
        reason(stubborn)
    );
    for event in control.events() {
        if let EventBody::ProcessStarted { pid, .. } = event.body {
            assert!(!is_alive(pid));
        }
    }
}

#[test]
fn what_keeps_one_server_away_is_told_of_it_and_the_others_go_on() {
    let desk = Desk::new();
    let mut missing = entry("missing", &FakeServer::new());
    missing["launch"] = json!({"command": "not-here-at-all"});
    missing["recipes"] =
        json!([{"kind": "npm", "package": "not-here-at-all", "version": "1.2.3", "node": 18}]);
    catalogue(&desk, &[missing, entry("good", &FakeServer::markers())]);
    let more = [
        "--only",
        "QUA-1",
        "--install",
        "--format",
        "json",
        "--out",
        "all.json",
    ];
    desk.command(&args(&["missing", "good"], &more))
        .env("PATH", "/nowhere")
        .env("DSH_CONFORM_CACHE", desk.path().join("cache"))
        .assert()
        .code(3);
    let report = stored(&desk, "all.json");
    assert!(run(&report, "good").conclusion.conforms());
    let reason = reason(run(&report, "missing"));
    assert!(reason.contains("npm"), "{reason}");
    // Nor is a server lost where there is no room for its workspace.
    desk.command(&args(
        &["good"],
        &["--format", "json", "--out", "none.json"],
    ))
    .env("TMPDIR", "/nowhere")
    .assert()
    .code(3);
    let report = stored(&desk, "none.json");
    let reason = self::reason(run(&report, "good"));
    assert!(reason.contains("is there room"), "{reason}");
}

#[test]
fn every_server_of_the_catalogue_has_its_run() {
    let desk = Desk::new();
    catalogue(&desk, &[entry("good", &FakeServer::markers())]);
    let more = [
        "--all", "--only", "QUA-1", "--format", "markdown", "--out", "out", "--quiet",
    ];
    desk.command(&args(&[], &more))
        .env("PATH", "/nowhere")
        .env("DSH_CONFORM_CACHE", desk.path().join("cache"))
        .assert()
        .code(3);
    let report = stored(&desk, "out/report.json");
    let built_in = dsh_e2e::catalogue::Catalogue::builtin().entries();
    assert_eq!(report.runs.len(), built_in.len() + 1);
    for run in &report.runs {
        assert!(run.subject.language.is_some());
        match run.subject.name.as_str() {
            "good" => assert!(run.conclusion.conforms()),
            _ => assert!(!reason(run).is_empty()),
        }
    }
}

#[test]
fn a_check_that_was_killed_goes_on_where_it_was() {
    let desk = Desk::new();
    let silent = FakeServer::markers().on("initialize", [ignore()]);
    catalogue(
        &desk,
        &[
            entry("a-good", &FakeServer::markers()),
            entry("b-slow", &silent),
        ],
    );
    let names = ["a-good", "b-slow"];
    let mut child = Command::new(program())
        .current_dir(desk.path())
        .args(args(
            &names,
            &["--jobs", "1", "--only", "QUA-1,QUA-4", "--out", "out"],
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begins = lines.find(|line| line.as_ref().unwrap().starts_with("b-slow begins"));
    assert!(begins.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = std::fs::read_to_string(desk.path().join("out/runs/a-good.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();

    catalogue(
        &desk,
        &[
            entry("a-good", &FakeServer::markers()),
            entry("b-slow", &FakeServer::markers()),
        ],
    );
    let only = ["--resume", "--only", "QUA-1,QUA-4", "--out", "out"];
    let again = [&only[..], &["--format", "text"]].concat();
    desk.run(&args(&names, &again))
        .ended(0)
        .err_has("there is 1 run of before in out/runs")
        .err_has("SELECTED PROBES HOLD (taken over)")
        .err_has("1 of 2 runs were taken over from out/runs");
    let report = stored(&desk, "out/report.json");
    let duration = run(&report, "a-good").duration_us;
    assert_eq!(Some(duration), kept["run"]["durationUs"].as_u64());
    assert!(run(&report, "b-slow").conclusion.conforms());
    // What another build of this program has found does not count, nor what was found of another
    // entry, of the same version each.
    let path = desk.path().join("out/runs/a-good.json");
    let stored = std::fs::read_to_string(&path).unwrap();
    for (part, why) in [
        ("build", "the build of dsh-conform changed"),
        ("entry", "the server's entry changed"),
    ] {
        let mut kept: Value = serde_json::from_str(&stored).unwrap();
        assert!(kept["key"][part].is_string(), "{part}");
        kept["key"][part] = "another".into();
        std::fs::write(&path, kept.to_string()).unwrap();
        desk.run(&args(&["a-good"], &again))
            .ended(0)
            .err_has(&format!("a-good: checked again, since {why}"));
    }
    // What was made in another way does not count.
    let other = [&only[..], &["--budget", "59"]].concat();
    desk.run(&args(&names, &other))
        .ended(0)
        .err_has("a-good: checked again, since the options changed")
        .err_has("0 of 2 runs were taken over");
}

#[test]
fn shards_that_are_merged_are_the_whole() {
    let desk = Desk::new();
    let names = ["a", "b", "c"];
    let entries = names.map(|name| entry(name, &FakeServer::markers()));
    catalogue(&desk, &entries);
    let only = ["--only", "QUA-1,QUA-4", "--format", "json", "--out"];
    let check = |more: &[&str], out: &str| {
        let more = [more, &only, &[out]].concat();
        desk.run(&args(&names, &more)).ended(0);
    };
    check(&[], "whole.json");
    check(&["--shard", "1/2"], "1.json");
    check(&["--shard", "2/2"], "2.json");
    let merged = desk
        .run(&["report", "merge", "2.json", "1.json"])
        .ended(0)
        .report();
    let told = |report: &Report| -> Vec<_> {
        let case = |run: &Run| -> Vec<_> {
            let cases = run.cases.iter();
            cases.map(|case| (case.id.clone(), case.verdict)).collect()
        };
        let runs = report.runs.iter();
        runs.map(|run| (run.subject.name.clone(), run.conclusion.clone(), case(run)))
            .collect()
    };
    let whole = stored(&desk, "whole.json");
    assert_eq!(told(&merged), told(&whole));
    assert_eq!((merged.runs.len(), merged.division), (3, None));
    desk.run(&["report", "merge", "1.json"])
        .ended(3)
        .err_has("shards are missing: 2/2 (servers b)");
    check(&["--shard", "1/3"], "3.json");
    desk.run(&["report", "merge", "1.json", "3.json"])
        .ended(2)
        .err_has("merge the shards of one division");
    desk.run(&args(&names, &["--shard", "9/9"]))
        .ended(5)
        .err_has("at most 3");
    desk.run(&args(&names, &["--shard", "3/2"]))
        .ended(2)
        .err_has("2/4");
}

#[test]
fn a_server_of_one_s_own_is_written_read_and_found_everywhere() {
    let desk = Desk::new();
    std::fs::write(
        desk.path().join("dsh-conform.toml"),
        "# ours\n[servers.old]\nlaunch = {command = 'old'} # keep\nextensions = {'.o' = 'o'}\n",
    )
    .unwrap();
    let command = format!("{} fake-lsp --rules markers", program().display());
    let add = [
        "servers",
        "add",
        "mine",
        "--command",
        &command,
        "--ext",
        ".fake=fake",
    ];
    let with_recipe = [
        "--sample",
        "fake",
        "--recipe",
        "npm:mine@1.2.3",
        "--recipe",
        "path",
    ];
    desk.run(&[&add[..], &with_recipe].concat())
        .ended(0)
        .out_has("mine is in dsh-conform.toml.")
        .out_has("next:\n  dsh-conform servers doctor mine\n");
    let text = std::fs::read_to_string(desk.path().join("dsh-conform.toml")).unwrap();
    assert!(text.starts_with("# ours\n[servers.old]\nlaunch = {command = 'old'} # keep\n"));
    desk.run(&["list", "servers", "mine"])
        .ended(0)
        .out_has("(your own)");
    desk.run(&["servers", "doctor", "mine"])
        .ended(0)
        .out_has("✓ mine 0.1.0");
    desk.run(&["servers", "path", "mine"])
        .ended(0)
        .out_has(&program().display().to_string());
    // Also from a folder below.
    std::fs::create_dir(desk.path().join("below")).unwrap();
    desk.command(&["check", "--server", "mine", "--only", "QUA-1"])
        .current_dir(desk.path().join("below"))
        .assert()
        .code(0);
    let (workspace, at) = desk.sample("main.fake", "use-area");
    let workspace = workspace.display().to_string();
    let at = format!("workspace/{at}");
    desk.run(&[
        "query",
        "--server",
        "mine",
        "--workspace",
        &workspace,
        "hover",
        &at,
    ])
    .ended(0);
    desk.run(&add)
        .ended(2)
        .err_has("has a server \"mine\" already");
    desk.run(&["servers", "add", "Bad", "--command", "x", "--ext", ".x=x"])
        .ended(2)
        .err_has("nothing is written: dsh-conform.toml:")
        .err_has("lowercase");
    assert_eq!(
        std::fs::read_to_string(desk.path().join("dsh-conform.toml")).unwrap(),
        text
    );
    desk.run(&[
        "--catalogue",
        "x.toml",
        "servers",
        "add",
        "y",
        "--command",
        "y",
        "--ext",
        ".y=y",
    ])
    .ended(0)
    .out_has("check --server y --catalogue x.toml");
    desk.run(&["list", "servers", "y", "--catalogue", "x.toml"])
        .ended(0);
}

#[test]
fn a_wrong_entry_is_told_with_its_place_by_every_command() {
    let desk = Desk::new();
    std::fs::write(
        desk.path().join("dsh-conform.toml"),
        "[servers.x]\nlaunch = {command = 'x'}\nextensions = {'.x' = 'x'}\nsampel = 'fake'\n",
    )
    .unwrap();
    for command in [
        &["check", "--all"][..],
        &["check", "--server", "x"],
        &["list", "servers"],
        &["servers", "doctor"],
        &["query", "--server", "x", "hover", "a.x:1:1"],
    ] {
        desk.run(command)
            .ended(2)
            .err_has("dsh-conform.toml:4:1: unknown key \"sampel\"; did you mean \"sample\"?");
    }
    desk.run(&[
        "check",
        "--server",
        "pyright",
        "--catalogue",
        "nowhere.yaml",
    ])
    .ended(2)
    .err_has("nowhere.yaml: there is no such file");
}

#[test]
fn of_two_on_path_both_are_told_and_which_is_used() {
    let desk = Desk::new();
    for (folder, version) in [("one", "1.0.0"), ("two", "2.0.0")] {
        let folder = desk.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        // Written by another process: what this one has open, a child of another test may have
        // too, and a program that is open for writing does not start.
        let script = format!(
            "printf '%s\\n' '#!/bin/sh' '[ \"$1\" = --version ] && echo {version} && exit 0' \
             'exec {} fake-lsp --rules markers' > twice; chmod +x twice",
            program().display()
        );
        let mut made = Command::new("sh");
        made.current_dir(&folder).args(["-c", &script]);
        assert!(made.status().unwrap().success());
    }
    let mut twice = entry("twice", &FakeServer::new());
    twice["launch"] = json!({"command": "twice"});
    catalogue(&desk, &[twice]);
    let path = |desk: &Desk| {
        let path = desk.path().display();
        format!("{path}/one:{path}/two:/usr/bin:/bin")
    };
    desk.command(&args(&["twice"], &["--only", "QUA-1"]))
        .env("PATH", path(&desk))
        .assert()
        .code(0)
        .stdout(predicates::str::contains("twice 1.0.0"))
        .stdout(predicates::str::contains("two/twice 2.0.0"))
        .stdout(predicates::str::contains("first on PATH"));
    desk.command(&["servers", "doctor", "twice", "--catalogue", "own.yaml"])
        .env("PATH", path(&desk))
        .assert()
        .code(0)
        .stdout(predicates::str::contains("2.0.0, from PATH"))
        .stdout(predicates::str::contains("used is the first"));
}
