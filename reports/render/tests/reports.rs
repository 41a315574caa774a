//! The report model, its schema, its reader and its text form.

use dsh_reports::{
    Case, ClauseRef, Conclusion, Evidence, FORMAT, Heard, Level, OperationTimeline, Origin,
    Platform, ReadError, Report, Run, Selection, Subject, SubjectKind, TextOptions, Tool,
    TranscriptRef, Verdict, read, render_badge, render_github, render_json, render_junit,
    render_markdown, render_text, schema,
};

fn clauses() -> Vec<ClauseRef> {
    [
        ("QUA-1", Level::Must),
        ("QUA-4", Level::Must),
        ("QUA-6", Level::Must),
        ("QUA-9", Level::Should),
        ("QUA-10", Level::Should),
    ]
    .into_iter()
    .map(|(id, level)| ClauseRef {
        id: id.to_owned(),
        level,
        profiles: vec!["server".to_owned()],
        statement: format!("what {id} says"),
        not_run: "no probe yet".to_owned(),
    })
    .collect()
}

fn case(clause: &str, group: &str, verdict: Verdict, message: &str) -> Case {
    let level = if clause == "QUA-9" {
        Level::Should
    } else {
        Level::Must
    };
    Case::new(clause, level, group, verdict, message)
}

fn run(cases: Vec<Case>) -> Run {
    let mut run = Run::new(Subject {
        kind: SubjectKind::Server,
        name: "example-language-server".to_owned(),
        version: Some("1.2.3".to_owned()),
        language: None,
        path: Some("/usr/bin/example-language-server".to_owned()),
        origin: Some(Origin::Path),
        command: vec!["example-language-server".to_owned(), "--stdio".to_owned()],
    });
    run.profiles = vec!["server".to_owned()];
    run.sample = Some("example".to_owned());
    run.budget_ms = Some(60_000);
    run.duration_us = 3_140_000;
    run.cases = cases;
    run.conclude(&clauses(), Selection::All);
    run
}

fn report(runs: Vec<Run>) -> Report {
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
        date: None,
        interrupted: false,
        division: None,
        runs,
    }
}

fn good() -> Run {
    let mut initialize = case("QUA-1", "start", Verdict::Pass, "initialize answered");
    initialize.duration_us = Some(412_000);
    let mut definition = case("QUA-4", "answers", Verdict::Pass, "1 LocationLink");
    definition.label = Some("goToDefinition".to_owned());
    definition.duration_us = Some(38_000);
    let mut references = case("QUA-4", "answers", Verdict::Pass, "3 Location");
    references.id.push_str("/findReferences");
    references.label = Some("findReferences".to_owned());
    references.duration_us = Some(740);
    let purity = case(
        "QUA-6",
        "behaviour",
        Verdict::Pass,
        "48 frames on stdout, nothing else",
    );
    let exit = case("QUA-9", "end", Verdict::Note, "exit code 1");
    let mut run = run(vec![initialize, definition, references, purity, exit]);
    run.operations = vec![
        OperationTimeline {
            operation: "goToDefinition".to_owned(),
            asked_us: 412_000,
            first_right_us: Some(1_240_000),
            stable_us: Some(1_330_000),
            asked: 9,
            latency_us: Some(38_000),
            heard: vec![
                heard("wrong place", false, 4),
                heard("[]", false, 1),
                heard("right", true, 1),
                heard("error -32801", false, 1),
                Heard {
                    from_us: 1_290_000,
                    until_us: 1_330_000,
                    ..heard("right", true, 3)
                },
            ],
        },
        OperationTimeline {
            operation: "findReferences".to_owned(),
            asked_us: 412_000,
            first_right_us: Some(740),
            stable_us: Some(42_000),
            asked: 3,
            latency_us: Some(740),
            heard: vec![heard("right", true, 3)],
        },
    ];
    run
}

fn heard(answer: &str, right: bool, times: u64) -> Heard {
    Heard {
        answer: answer.to_owned(),
        right,
        times,
        from_us: 0,
        until_us: 0,
        detail: None,
    }
}

fn bad() -> Run {
    let mut purity = case(
        "QUA-6",
        "behaviour",
        Verdict::Fail,
        "something else than frames on stdout: \"hello\\n\"",
    );
    purity.expected = Some("frames only".to_owned());
    purity.got = Some("6 bytes before the first frame: \"hello\\n\"".to_owned());
    purity.evidence = vec![
        Evidence {
            seq: 4,
            at_us: 900,
            text: "→ initialize (id 1)".to_owned(),
            decisive: false,
        },
        Evidence {
            seq: 5,
            at_us: 2_100,
            text: "← not a frame: \"hello\\n\"".to_owned(),
            decisive: true,
        },
    ];
    purity.transcript = Some(TranscriptRef {
        path: "target/dsh-conform/example.jsonl".to_owned(),
        seq: Some(5),
    });
    purity.reproduce =
        Some("dsh-conform check --server example-language-server --only QUA-6".to_owned());
    let initialize = case(
        "QUA-1",
        "start",
        Verdict::Crash,
        "ended before it answered initialize: exit code 1\u{1b}[31m",
    );
    run(vec![
        initialize,
        purity,
        case(
            "QUA-4",
            "answers",
            Verdict::Untestable,
            "initialize was never answered",
        ),
    ])
}

#[test]
fn a_run_reads_as_drawn() {
    insta::assert_snapshot!(render_text(&report(vec![good()]), TextOptions::default()));
}

#[test]
fn a_failure_shows_clause_expectation_frames_and_how_to_repeat_it() {
    insta::assert_snapshot!(render_text(
        &report(vec![bad(), good()]),
        TextOptions::default()
    ));
}

#[test]
fn a_check_has_every_form() {
    let report = report(vec![bad(), good()]);
    insta::assert_snapshot!("check_junit", render_junit(&report).unwrap());
    insta::assert_snapshot!("check_markdown", render_markdown(&report));
    insta::assert_snapshot!("check_github", render_github(&report));
    insta::assert_snapshot!("check_badge", render_badge(&report));
}

#[test]
fn no_line_is_wider_than_asked() {
    for width in [60, 80, 120] {
        let text = render_text(
            &report(vec![bad(), good()]),
            TextOptions {
                width,
                color: false,
            },
        );
        for line in text.lines() {
            assert!(
                unicode_width::UnicodeWidthStr::width(line) <= width,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn colour_is_only_a_layer() {
    let report = report(vec![good(), bad()]);
    let plain = render_text(&report, TextOptions::default());
    let colored = render_text(
        &report,
        TextOptions {
            color: true,
            ..TextOptions::default()
        },
    );
    assert_ne!(plain, colored);
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
}

#[test]
fn a_report_survives_json_and_fits_its_schema() {
    let report = report(vec![good(), bad()]);
    let text = render_json(&report).unwrap();
    assert_eq!(read(&text).unwrap(), report);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_committed_schema_is_current() {
    let committed = include_str!("../schema/dsh-conform-report-1.json");
    assert_eq!(
        committed,
        format!("{:#}\n", schema()),
        "write it again: cargo run -p dsh-reports --example schema > reports/render/schema/dsh-conform-report-1.json"
    );
}

#[test]
fn another_version_is_refused_by_name() {
    let error = read(r#"{"format": "dsh-conform-report/2", "unknown": true}"#).unwrap_err();
    assert!(matches!(&error, ReadError::OtherVersion { found } if found == "dsh-conform-report/2"));
    insta::assert_snapshot!(error);
    assert!(matches!(read("{"), Err(ReadError::Malformed(_))));
    assert!(matches!(read("[]"), Err(ReadError::Malformed(_))));
}

#[test]
fn a_must_that_fails_decides_and_is_named() {
    assert_eq!(good().conclusion, Conclusion::Qualified { notes: 1 });
    assert_eq!(
        bad().conclusion,
        Conclusion::NotQualified {
            musts: vec!["QUA-1".to_owned(), "QUA-6".to_owned()]
        }
    );
}

#[test]
fn a_clause_counts_once_and_its_heaviest_case_decides() {
    let mut run = good();
    assert_eq!((run.totals.must.held, run.totals.must.judged), (3, 3));
    assert_eq!((run.totals.should.held, run.totals.should.judged), (0, 1));
    run.cases[2].verdict = Verdict::Timeout;
    run.conclude(&clauses(), Selection::All);
    assert_eq!(
        run.conclusion,
        Conclusion::NotQualified {
            musts: vec!["QUA-4".to_owned()]
        }
    );
    assert_eq!((run.totals.must.held, run.totals.must.judged), (2, 3));
}

#[test]
fn what_was_not_judged_says_why() {
    let run = good();
    let missing = run
        .coverage
        .iter()
        .find(|clause| clause.clause == "QUA-10")
        .unwrap();
    assert_eq!(missing.not_run.as_deref(), Some("no probe yet"));
    assert_eq!(missing.verdict, None);
}

#[test]
fn a_reason_keeps_its_lines() {
    let mut run = good();
    run.cases.clear();
    run.conclusion = Conclusion::Untestable {
        reason: "x is not here\nto install it: x".to_owned(),
        musts: Vec::new(),
    };
    let text = render_text(&report(vec![run]), TextOptions::default());
    assert!(
        text.contains("UNTESTABLE: x is not here\nto install it: x"),
        "{text}"
    );
}

#[test]
fn a_missing_prerequisite_is_never_a_qualification() {
    let mut run = good();
    run.cases[3].verdict = Verdict::Untestable;
    run.conclude(&clauses(), Selection::All);
    assert!(matches!(&run.conclusion, Conclusion::Untestable { musts, .. } if musts == &["QUA-6"]));
    assert!(!run.conclusion.conforms());
}

#[test]
fn without_known_answers_it_is_protocol_only() {
    let mut run = good();
    for case in &mut run.cases {
        if case.clauses == ["QUA-4"] {
            case.verdict = Verdict::NotApplicable;
        }
    }
    run.conclude(&clauses(), Selection::All);
    assert_eq!(run.conclusion, Conclusion::ProtocolOnly { notes: 1 });
}

#[test]
fn some_probes_are_no_qualification_and_a_fault_of_ours_is_no_verdict() {
    let mut run = good();
    run.conclude(&clauses(), Selection::Some);
    assert_eq!(run.conclusion, Conclusion::Partial { notes: 1 });
    run.conclude(&clauses(), Selection::Interrupted);
    assert_eq!(run.conclusion, Conclusion::Interrupted);
    run.cases[0].verdict = Verdict::HarnessError;
    run.conclude(&clauses(), Selection::All);
    assert!(matches!(run.conclusion, Conclusion::HarnessError { .. }));
}
