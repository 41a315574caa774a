//! Reports of servers with everything in them that a report may have, written by hand.

use dsh_reports::{
    Case, ClauseRef, Conclusion, FORMAT, Level, Measured, OperationTimeline, Platform, Remedy,
    Report, Run, Selection, Subject, SubjectKind, Tool, Verdict,
};
use serde_json::{Value, json};

/// Text that tries to get out of its place, wherever it stands.
pub(crate) const EVIL: &str = "</script></style></title><script>alert(1)</script>\
     <img src=x onerror=alert(1)>\" onclick=\"x' \u{202e}\u{0}\u{1b}[31m&lt; {{ 7 * 7 }} <!-- ]]>";

/// A value as the report has it.
#[track_caller]
fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is written as a report is")
}

const STATEMENTS: [(u32, Level, &str); 19] = [
    (
        1,
        Level::Must,
        "initialize is answered within the budget, with capabilities",
    ),
    (
        2,
        Level::Must,
        "The position encoding is one that the client offered, or UTF-16",
    ),
    (3, Level::Must, "Documents can be opened and closed"),
    (
        4,
        Level::Must,
        "Each operation answers a known question rightly",
    ),
    (5, Level::Must, "The opened text counts, not the file"),
    (6, Level::Must, "Nothing but frames is on stdout"),
    (
        7,
        Level::Must,
        "Answers have the shape that the protocol gives them",
    ),
    (
        8,
        Level::Must,
        "shutdown and exit end the process within the budget",
    ),
    (9, Level::Should, "The exit code is 0 after shutdown"),
    (
        10,
        Level::Should,
        "A cancelled request is answered within 2 s",
    ),
    (11, Level::Should, "All four operations are advertised"),
    (
        12,
        Level::Should,
        "Columns are right behind an astral character",
    ),
    (
        13,
        Level::Should,
        "Paths with blanks and letters beyond ASCII are found",
    ),
    (14, Level::Should, "Answers hold from the first on"),
    (
        15,
        Level::Should,
        "A client that refuses server requests is served all the same",
    ),
    (
        16,
        Level::Should,
        "A killed server's replacement answers the same",
    ),
    (17, Level::Should, "Memory does not grow with the rounds"),
    (18, Level::Should, "The workspace is as it was before"),
    (19, Level::Should, "The end of stdin ends the process"),
];

/// The clauses that a server is judged by.
pub(crate) fn clauses() -> Vec<ClauseRef> {
    let one = |(number, level, statement): &(u32, Level, &str)| ClauseRef {
        id: format!("QUA-{number}"),
        level: *level,
        profiles: vec!["server".to_owned()],
        statement: (*statement).to_owned(),
        not_run: "no probe is for it".to_owned(),
    };
    STATEMENTS.iter().map(one).collect()
}

pub(crate) fn report(runs: Vec<Run>) -> Report {
    Report {
        format: FORMAT.to_owned(),
        tool: Tool {
            name: "dsh-conform".to_owned(),
            version: "0.0.0".to_owned(),
        },
        platform: Platform {
            os: "linux".to_owned(),
            arch: "x86_64".to_owned(),
        },
        date: Some("2026-11-30T12:00:00Z".to_owned()),
        interrupted: false,
        division: None,
        runs,
    }
}

fn group(number: u32) -> &'static str {
    match number {
        1..=3 | 11 => "start",
        4 | 5 | 7 | 12..=14 => "answers",
        8 | 9 | 19 => "end",
        _ => "behavior",
    }
}

/// A server that keeps every clause.
pub(crate) fn server(name: &str, version: &str, sample: &str) -> Run {
    let mut run = Run::new(Subject {
        version: Some(version.to_owned()),
        path: Some(format!("/cache/{name}/{version}/bin/{name}")),
        origin: of(json!("cache")),
        command: vec![name.to_owned(), "--stdio".to_owned()],
        ..Subject::named(SubjectKind::Server, name)
    });
    run.profiles = vec!["server".to_owned()];
    run.sample = Some(sample.to_owned());
    run.budget_ms = Some(60_000);
    run.duration_us = 41_300_000;
    let mut numbers: Vec<u32> = STATEMENTS.iter().map(|of| of.0).collect();
    numbers.sort_by_key(|number| {
        let order = ["start", "answers", "behavior", "end"];
        order.iter().position(|name| *name == group(*number))
    });
    for number in numbers {
        let level = STATEMENTS[number as usize - 1].1;
        let id = format!("QUA-{number}");
        let mut case = Case::new(&id, level, group(number), Verdict::Pass, "as it has to be");
        case.duration_us = (number % 2 == 1).then_some(u64::from(number) * 1_700);
        if number == 4 {
            for operation in OPERATIONS {
                let mut case = case.clone();
                case.id = format!("QUA-4/{operation}");
                case.label = Some(operation.to_owned());
                "3 Location".clone_into(&mut case.message);
                run.cases.push(case);
            }
        } else {
            run.cases.push(case);
        }
    }
    conclude(&mut run);
    run
}

pub(crate) fn conclude(run: &mut Run) {
    run.conclude(&clauses(), Selection::All);
}

const OPERATIONS: [&str; 4] = [
    "goToDefinition",
    "findReferences",
    "goToImplementation",
    "hover",
];

/// The case of a clause, to be changed.
pub(crate) fn case<'a>(run: &'a mut Run, id: &str) -> &'a mut Case {
    run.cases
        .iter_mut()
        .find(|case| case.id == id)
        .expect("the server has the case")
}

/// Makes a case red or a note, with everything that shows why.
pub(crate) fn spoil(run: &mut Run, id: &str, verdict: Verdict, message: &str) {
    let name = run.subject.name.clone();
    let case = case(run, id);
    case.verdict = verdict;
    message.clone_into(&mut case.message);
    case.title = Some("A request that nobody waits for any more costs nobody anything".to_owned());
    case.expected = Some("an answer, or error -32800, within 2000 ms".to_owned());
    case.got = Some("nothing within 2000 ms; the answer came after 3.4 s".to_owned());
    case.evidence = of(json!([
        {"seq": 40, "atUs": 1_201_000, "text": "process 4711 started: server --stdio"},
        {"seq": 41, "atUs": 1_204_300, "text": "→ textDocument/didOpen main.ts version 1"},
        {"seq": 42, "atUs": 1_204_400, "text": "→ textDocument/references (7) main.ts"},
        {"seq": 43, "atUs": 1_204_900, "text": "→ $/cancelRequest"},
        {"seq": 44, "atUs": 3_204_900, "text": "no answer within 2000 ms", "decisive": true},
        {"seq": 45, "atUs": 4_604_900, "text": "← result of textDocument/references (7): [{\"uri\":\"file:///workspace/main.ts\",\"range\":{\"start\":{\"line\":4,\"character\":16}…"},
        {"seq": 46, "atUs": 4_605_000, "text": "stderr ends with \"took 3.4 s\""},
    ]));
    case.transcript = of(json!({"path": format!("target/dsh-conform/{name}.jsonl"), "seq": 44}));
    case.source = of(json!({"file": "e2e/probes.rs", "line": 12}));
    let clause = id.split('/').next().unwrap_or(id);
    case.reproduce = Some(format!(
        "dsh-conform check --server {name} --install --only {clause}"
    ));
    conclude(run);
}

/// One operation: for so long empty, null, an error, a part, and then right.
fn timeline(operation: &str, slow: u64, right: bool) -> OperationTimeline {
    let at = |part: u64| slow * part / 10;
    let heard = |answer: &str, from: u64, until: u64, times: u64| {
        json!({"answer": answer, "right": answer == "right", "times": times,
            "fromUs": at(from), "untilUs": at(until)})
    };
    let mut all = vec![
        heard("error -32801", 1, 1, 2),
        heard("[]", 2, 4, 31),
        heard("null", 5, 5, 4),
        heard("partial 1/3", 6, 6, 3),
        heard("error -32603", 7, 7, 1),
        heard("wrong place", 8, 8, 2),
    ];
    all[4]["detail"] = json!("no project for file:///workspace/main.ts");
    if right {
        all.push(heard("right", 9, 11, 14));
    }
    of(json!({
        "operation": operation,
        "askedUs": at(1) / 2,
        "firstRightUs": right.then(|| at(9)),
        "stableUs": right.then(|| at(10)),
        "asked": 57,
        "latencyUs": 3_100,
        "heard": all,
    }))
}

/// Everything that can be measured, for a server that is ready after about so many microseconds.
pub(crate) fn measured(slow: u64) -> Measured {
    let operations = |slow: u64| -> Vec<OperationTimeline> {
        OPERATIONS
            .iter()
            .zip([10_u64, 9, 7, 4])
            .map(|(name, tenths)| {
                timeline(
                    name,
                    slow * tenths / 10,
                    *name != "goToImplementation" || slow < 10_000_000,
                )
            })
            .collect()
    };
    let each = |scale: u64| -> Vec<u64> {
        let noise = |round: u64| (round * 7_919 + 13) % 101;
        (0..200_u64)
            .map(|round| {
                scale + noise(round) * scale / 60 + if round == 0 { 40 * scale } else { 0 }
            })
            .collect()
    };
    let cycles = |kind: &str, scale: u64, wrong: u64| {
        json!({"kind": kind, "operation": "hover", "rounds": 200, "wrong": wrong,
            "heard": if wrong > 0 { json!([
                {"answer": "null", "times": wrong, "fromUs": 10, "untilUs": 20}]) } else { json!([]) },
            "p50Us": scale * 18 / 10, "p95Us": scale * 25 / 10, "maxUs": scale * 41, "eachUs": each(scale),
            "memoryBefore": 212_000_000, "memoryAfter": 236_500_000 + wrong * 40_000_000, "leftOpen": wrong})
    };
    of(json!({
        "starts": [
            {"kind": "cold", "initializedUs": slow / 12, "operations": operations(slow),
             "signals": [
                {"name": "$/progress end (Indexing)", "atUs": slow / 2, "held": false},
                {"name": "$/progress end (Loading)", "atUs": slow * 95 / 100, "held": true},
                {"name": "experimental/serverStatus", "atUs": slow, "held": null}],
             "summary": "A client that does not wait sees false empties for most of this time."},
            {"kind": "warm", "initializedUs": slow / 20, "operations": operations(slow / 3), "signals": [],
             "summary": "With a warm cache it is ready three times as soon."}],
        "cycles": [cycles("same-text", 2_400, 0), cycles("changed-text", 5_200, 0), cycles("many-files", 9_000, 3)],
        "personas": [
            {"name": "requests-answered", "summary": "Every server request is answered.", "outcome": "fine", "firstRightUs": slow},
            {"name": "requests-refused", "summary": "Every server request is answered with an error.", "outcome": "dead", "detail": "exit code 1: Unhandled method workspace/configuration"},
            {"name": "requests-unanswered", "summary": "No server request is answered.", "outcome": "silent"},
            {"name": "configuration-empty", "summary": "workspace/configuration is answered with {}.", "outcome": "wrong", "detail": "2 of 4 operations answer []"},
            {"name": "shutdown-params-null", "summary": "shutdown carries params: null.", "outcome": "does-not-end"},
            {"name": "configuration-announced", "summary": "didChangeConfiguration follows initialized.", "outcome": "not-asked"}],
        "overlay": {"open": "opened", "closed": "neither"},
        "output": [
            {"kind": "cold", "frames": 214, "stdoutBytes": 91_300, "strayBytes": 0, "stderrBytes": 4_096},
            {"kind": "warm", "frames": 187, "stdoutBytes": 71_020, "strayBytes": 17, "stderrBytes": 0}],
        "ends": [
            {"way": "shutdown", "tookUs": 61_000, "code": 0},
            {"way": "stdin-closed", "left": 1},
            {"way": "sigterm", "tookUs": 9_000, "signal": 15},
            {"way": "sigkill", "tookUs": 1_000, "signal": 9, "left": 2, "replacedUs": 530_000}],
        "edges": [
            {"name": "position-past-end-of-line", "answer": "null", "alive": true},
            {"name": "position-past-end-of-file", "answer": "error -32603", "detail": "index out of range", "alive": true},
            {"name": "unknown-request", "answer": "no answer", "alive": true},
            {"name": "header-in-lower-case", "answer": "the server died", "alive": false}],
        "written": [
            {"path": ".cache/index.bin", "change": "added"},
            {"path": "src/main.ts", "change": "changed"}]
    }))
}

pub(crate) fn remedy(row: &Value) -> Remedy {
    of(json!({
        "row": row,
        "settings": [
            {"name": "configuration: {}", "against": "silent until workspace/configuration is answered", "clauses": ["QUA-4", "QUA-5", "QUA-7"]},
            {"name": "announceConfiguration: true", "against": "waits for didChangeConfiguration"}],
        "timeoutMs": 45_000
    }))
}

/// Servers of every conclusion, and cases of every verdict.
pub(crate) fn rich() -> Report {
    let mut full = server("typescript-language-server", "6.0.2", "typescript");
    full.measured = Some(measured(2_300_000));
    full.remedy = Some(remedy(&json!({
        "command": "typescript-language-server",
        "args": ["--stdio"],
        "extensions": {".ts": "typescript", ".tsx": "typescriptreact", ".cjs": "javascript"},
        "initializationOptions": {"tsserver": {"logVerbosity": "off", "path": null}, "yes": "yes"},
        "shutdownTimeoutMs": 5000
    })));
    full.remarks = vec![
        "In its first seconds references are those of the opened file only.".to_owned(),
        "It starts a second process, tsserver, which is ended with it.".to_owned(),
    ];
    full.operations = vec![timeline("hover", 900_000, true)];
    full.transcript = Some("target/dsh-conform/typescript-language-server.jsonl".to_owned());
    spoil(
        &mut full,
        "QUA-10",
        Verdict::Note,
        "cancel: no answer within 2000 ms",
    );
    case(&mut full, "QUA-13").verdict = Verdict::Known;
    case(&mut full, "QUA-18").verdict = Verdict::NotApplicable;
    full.cases.retain(|case| case.id != "QUA-16");
    conclude(&mut full);

    let plain = server("gopls", "0.20.0", "go");

    let mut settings = server("yaml-language-server", "1.19.2", "yaml");
    settings.subject.language = Some("YAML".to_owned());
    settings.measured = Some(measured(700_000));
    settings.remedy = Some(remedy(
        &json!({"command": "yaml-language-server", "configuration": {}}),
    ));
    settings.conclusion = Conclusion::QualifiedWithSettings {
        settings: vec!["configuration: {}".to_owned()],
        notes: 0,
    };

    let mut bad = server("kotlin-language-server", "1.3.13", "kotlin");
    bad.measured = Some(measured(21_000_000));
    spoil(
        &mut bad,
        "QUA-4/findReferences",
        Verdict::Timeout,
        "nothing right within 60 s",
    );
    spoil(
        &mut bad,
        "QUA-8",
        Verdict::Crash,
        "the process died of signal 6",
    );
    spoil(
        &mut bad,
        "QUA-6",
        Verdict::Fail,
        "17 bytes on stdout are no frame",
    );

    let mut untestable = Run::new(Subject::named(SubjectKind::Server, "sourcekit-lsp"));
    untestable.sample = Some("swift".to_owned());
    untestable.conclusion = Conclusion::Untestable {
        reason: "no recipe for this platform has worked:\n  apt: no package has it\n  download: needs glibc 2.38".to_owned(),
        musts: Vec::new(),
    };

    let mut own = server("my-server --stdio", "1", "x");
    own.sample = None;
    own.subject.origin = of(json!("command"));
    own.conclusion = Conclusion::ProtocolOnly { notes: 0 };
    case(&mut own, "QUA-4/hover").verdict = Verdict::Untestable;

    let mut fault = server("zls", "0.15.0", "zig");
    spoil(
        &mut fault,
        "QUA-1",
        Verdict::HarnessError,
        "the folder of the sample cannot be made",
    );

    let mut report = report(vec![
        full,
        plain,
        settings,
        bad,
        untestable,
        own,
        fault,
        hostile(),
    ]);
    report.interrupted = true;
    report
}

/// A server whose every text tries to get out of its place.
pub(crate) fn hostile() -> Run {
    let mut run = server("hostile", "1", "x");
    spoil(&mut run, "QUA-1", Verdict::Note, "x");
    run.measured = Some(measured(1_000));
    run.remedy = Some(remedy(&json!({"command": "x", "list": [1, {"a": "b"}]})));
    run.stale = of(json!([{"case": "x", "reason": "x"}]));
    run.skipped = of(json!([{"reason": "interrupted", "cases": ["x"]}]));
    run.remarks = vec!["x".to_owned(), "漢字 ä 🙂".repeat(40)];
    let mut value = serde_json::to_value(&run).expect("a report is JSON");
    poison(&mut value);
    value["subject"]["origin"] = json!("command");
    of(value)
}

/// Replaces every text that is free.
fn poison(value: &mut Value) {
    /// Those that are words of the format.
    const FIXED: [&str; 11] = [
        "kind",
        "origin",
        "level",
        "verdict",
        "outcome",
        "open",
        "closed",
        "reason",
        "format",
        "profiles",
        "conclusion",
    ];
    match value {
        Value::String(text) => *text = format!("{text} {EVIL}"),
        Value::Array(all) => all.iter_mut().for_each(poison),
        Value::Object(all) => {
            for (name, value) in all {
                if !FIXED.contains(&name.as_str()) {
                    poison(value);
                }
            }
        }
        _ => {}
    }
}
