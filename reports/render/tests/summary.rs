//! Several servers at a glance.

use dsh_reports::{
    Case, Conclusion, Cycles, CyclesKind, FORMAT, Heard, Level, Measured, OperationTimeline,
    Platform, Report, Run, Selection, Start, StartKind, Subject, SubjectKind, Surprise,
    TextOptions, Tool, Verdict, render_markdown, render_matrix, render_overview, render_page,
    render_summary, render_text,
};

fn server(name: &str, cases: &[(&str, Level, Verdict)]) -> Run {
    let mut run = Run::new(Subject::named(SubjectKind::Server, name));
    run.subject.version = Some("1.2.3".to_owned());
    run.subject.language = Some("C++".to_owned());
    run.sample = Some("cpp".to_owned());
    let case = |(clause, level, verdict): &(&str, Level, Verdict)| {
        Case::new(clause, *level, "answers", *verdict, "seen")
    };
    run.cases = cases.iter().map(case).collect();
    let known = |(id, level, _): &(&str, Level, Verdict)| dsh_reports::ClauseRef {
        id: (*id).to_owned(),
        level: *level,
        profiles: vec!["server".to_owned()],
        statement: "holds".to_owned(),
        not_run: "no probe".to_owned(),
    };
    let mut clauses: Vec<_> = cases.iter().map(known).collect();
    clauses.push(known(&("QUA-19", Level::Should, Verdict::Pass)));
    run.conclude(&clauses, Selection::All);
    run
}

fn timeline(operation: &str, first_right_us: Option<u64>) -> OperationTimeline {
    OperationTimeline {
        operation: operation.to_owned(),
        asked_us: 0,
        first_right_us,
        stable_us: first_right_us,
        asked: 3,
        latency_us: None,
        heard: first_right_us.into_iter().map(right).collect(),
    }
}

fn right(from_us: u64) -> Heard {
    Heard {
        answer: "right".to_owned(),
        right: true,
        times: 3,
        from_us,
        until_us: from_us,
        detail: None,
    }
}

fn report() -> Report {
    let must = Level::Must;
    let mut good = server(
        "good",
        &[
            ("QUA-1", must, Verdict::Pass),
            ("QUA-4", must, Verdict::Pass),
            ("QUA-9", Level::Should, Verdict::Note),
        ],
    );
    good.operations = vec![timeline("hover", Some(1))];
    good.peak_memory = Some((300 << 20) + 5);
    good.measured = Some(Measured {
        starts: vec![Start {
            kind: StartKind::Cold,
            initialized_us: None,
            operations: vec![
                timeline("hover", Some(400_000)),
                timeline("findReferences", Some(21_000_000)),
            ],
            signals: Vec::new(),
            summary: String::new(),
        }],
        cycles: vec![Cycles {
            kind: CyclesKind::SameText,
            operation: "hover".to_owned(),
            rounds: 200,
            wrong: 0,
            heard: Vec::new(),
            p50_us: 2_500,
            p95_us: 4_000,
            max_us: 9_000,
            each_us: Vec::new(),
            memory_before: Some(100 << 20),
            memory_after: Some(120 << 20),
            left_open: 0,
        }],
        ..Measured::default()
    });
    let mut bad = server("bad|one", &[("QUA-1", must, Verdict::Fail)]);
    bad.operations = vec![timeline("hover", None)];
    let mut away = server("away", &[]);
    away.conclusion = Conclusion::Untestable {
        reason: format!("it is not here{}\nsecond line", " at all".repeat(20)),
        musts: Vec::new(),
    };
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
        runs: vec![good, bad, away],
    }
}

#[test]
fn each_server_has_a_line_with_what_decides_for_it() {
    let text = render_summary(&report());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(
        lines[2],
        "| `good` | `1.2.3` | C++ | QUALIFIED with notes | 21 s | 3 ms | 300 MiB | ! QUA-9 |"
    );
    assert_eq!(
        lines[3],
        "| `bad\\|one` | `1.2.3` | C++ | NOT QUALIFIED | no right hover | – | – | ✗ QUA-1 |"
    );
    assert!(
        lines[4].contains("| UNTESTABLE | – | – | – | `it is not here at all"),
        "{text}"
    );
    assert!(!text.contains("second line"));
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(lines.iter().all(|line| cells(line) == 9), "{text}");
}

#[test]
fn what_follows_from_a_failure_and_the_end_of_a_long_setting_are_left_to_the_report() {
    let mut report = report();
    let (must, should) = (Level::Must, Level::Should);
    let cases = [
        ("QUA-4", must, Verdict::Fail),
        ("QUA-5", must, Verdict::Untestable),
        ("QUA-9", should, Verdict::Note),
    ];
    let mut settled = server("settled", &[("QUA-9", should, Verdict::Untestable)]);
    settled.conclusion = Conclusion::QualifiedWithSettings {
        settings: vec![format!("initializationOptions: {}", "x".repeat(200))],
        notes: 0,
    };
    report.runs = vec![server("failed", &cases), settled];
    let text = render_summary(&report);
    assert!(text.contains("| ✗ QUA-4; ! QUA-9 |"), "{text}");
    let setting = format!("`initializationOptions: {}…`; ? QUA-9 |", "x".repeat(20));
    assert!(text.contains(&setting), "{text}");
}

#[test]
fn the_matrix_has_a_sign_for_every_server_and_clause() {
    let text = render_matrix(&report());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "| server | QUA-1 | QUA-4 | QUA-9 | QUA-19 |");
    assert_eq!(lines[2], "| `good` | ✓ | ✓ | ! |   |");
    assert_eq!(lines[3], "| `bad\\|one` | ✗ |   |   |   |");
    assert!(lines[6].starts_with("✓ holds"), "{text}");
    assert_eq!(
        lines[8],
        "QUA-1 starts · QUA-4 known answers · QUA-9 exit code 0 · QUA-19 writes nothing"
    );
}

#[test]
fn a_report_of_several_begins_with_both_and_one_of_one_has_neither() {
    let mut report = report();
    let text = render_markdown(&report);
    let (headline, _) = text.split_once(&render_summary(&report)).unwrap();
    assert!(
        headline.starts_with("**1 of 3 qualify.** *Ready after* is"),
        "{text}"
    );
    assert!(text.contains(&render_matrix(&report)));
    report.runs[0].conclusion = Conclusion::QualifiedWithSettings {
        settings: vec!["versions: rising".to_owned()],
        notes: 0,
    };
    let text = render_markdown(&report);
    assert!(
        text.starts_with("**1 of 3 qualify, 1 of them with settings.**"),
        "{text}"
    );
    report.runs.truncate(1);
    assert!(!render_markdown(&report).contains("| server |"));
    report.runs[0].subject.kind = SubjectKind::Harness;
    assert_eq!(render_summary(&report), "");
    assert_eq!(render_matrix(&report), "");
}

#[test]
fn on_a_terminal_each_has_one_line_of_80_columns() {
    let text = render_overview(&report());
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains("QUALIFIED, 1 note"), "{text}");
}

/// What the runs come to stands at the end, where a terminal shows it, within its columns.
#[test]
fn a_text_of_several_ends_with_what_they_come_to() {
    let mut report = report();
    report.runs[0].conclusion = Conclusion::QualifiedWithSettings {
        settings: vec![
            format!(
                r#"initializationOptions: {{"a":{{"path":"{}"}}}}"#,
                "x".repeat(90)
            ),
            "configuration: {}".to_owned(),
        ],
        notes: 1,
    };
    let text = render_text(&report, TextOptions::default());
    let end: Vec<&str> = text.lines().rev().take(7).collect();
    assert_eq!(end[0], "1 of 3 qualify, 1 of them with settings.", "{text}");
    assert!(end.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("initializationOptions: a.path,"), "{text}");
}

/// What the catalogue knows of a server is told in each form that people read.
#[test]
fn what_surprises_is_told_with_what_helps() {
    let mut run = Run::new(Subject::named(SubjectKind::Server, "foo"));
    run.surprises = vec![
        Surprise {
            what: "It answers from the last build.\n".to_owned(),
            remedy: Some("Build first.".to_owned()),
        },
        Surprise {
            what: "It is <odd>.".to_owned(),
            remedy: None,
        },
    ];
    let report = Report {
        runs: vec![run],
        ..report()
    };
    let text = render_text(&report, TextOptions::default());
    assert!(text.contains("known of it\n"), "{text}");
    for line in [
        "surprises   It answers from the last build. What helps: Build first.",
        "It is <odd>.",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let markdown = render_markdown(&report);
    assert!(
        markdown
            .contains("- surprises: `It answers from the last build. What helps: Build first.`"),
        "{markdown}"
    );
    let page = render_page(std::slice::from_ref(&report)).unwrap();
    let page = &page[page.find("What surprises").unwrap()..];
    assert!(page.contains("It answers from the last build. What helps: Build first."));
    assert!(page.contains("It is &#60;odd&#62;.") || page.contains("It is &lt;odd&gt;."));
}
