//! Baselines: what is worse, what is stale, what is not compared, and files that are none.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use dsh_reports::{
    Baseline, Case, Conclusion, Level, Platform, Report, Run, Subject, SubjectKind, TextOptions,
    Verdict, baseline_schema, render_markdown, render_text,
};

fn linux() -> Platform {
    Platform {
        os: "linux".to_owned(),
        arch: "x86_64".to_owned(),
    }
}

fn run(version: &str, cases: &[(&str, Verdict)]) -> Run {
    let mut run = Run::new(Subject::named(SubjectKind::Server, "foo"));
    run.subject.version = Some(version.to_owned());
    run.conclusion = Conclusion::NotQualified {
        musts: vec!["QUA-8".to_owned()],
    };
    run.cases = cases
        .iter()
        .map(|(id, verdict)| {
            let mut case = Case::new("QUA-4", Level::Must, "answers", *verdict, "said");
            (*id).clone_into(&mut case.id);
            case
        })
        .collect();
    run
}

fn accepted(cases: &[(&str, Verdict)]) -> Baseline {
    let mut baseline = Baseline::default();
    assert!(baseline.accept(&run("1.0", cases), &linux()));
    baseline
}

#[track_caller]
fn compared(was: &[(&str, Verdict)], is: &[(&str, Verdict)]) -> (Vec<String>, Vec<String>) {
    let mut run = run("1.0", is);
    accepted(was).compare(&mut run, &linux(), "b.json", true);
    let comparison = run.baseline.unwrap();
    assert_eq!(comparison.with.as_deref(), Some("foo 1.0 on linux-x86_64"));
    assert_eq!(run.remarks, Vec::<String>::new());
    (
        comparison.worse.iter().map(ToString::to_string).collect(),
        run.stale.into_iter().map(|stale| stale.case).collect(),
    )
}

#[test]
fn what_is_as_accepted_is_neither_worse_nor_stale() {
    let same = [
        ("QUA-1", Verdict::Pass),
        ("QUA-8", Verdict::Fail),
        ("QUA-9", Verdict::Note),
    ];
    assert_eq!(compared(&same, &same), (vec![], vec![]));
    let mut run = run("1.0", &same);
    accepted(&same).compare(&mut run, &linux(), "b.json", true);
    assert_eq!(run.baseline.unwrap().accepted, 2);
}

#[test]
fn another_way_to_fail_is_no_worse() {
    let (was, is) = ([("QUA-4", Verdict::Timeout)], [("QUA-4", Verdict::Crash)]);
    assert_eq!(compared(&was, &is), (vec![], vec![]));
}

#[test]
fn each_step_down_is_worse() {
    use Verdict::{Fail, NotApplicable, Note, Pass};
    for (was, is) in [
        (Pass, Fail),
        (Pass, Note),
        (Pass, NotApplicable),
        (NotApplicable, Fail),
        (Note, Fail),
    ] {
        let (worse, stale) = compared(&[("QUA-4/hover", was)], &[("QUA-4/hover", is)]);
        assert_eq!(worse, [format!("QUA-4/hover: {was} became {is}")]);
        assert_eq!(stale, Vec::<String>::new());
    }
}

#[test]
fn a_new_case_counts_where_it_is_wrong() {
    let is = [
        ("QUA-1", Verdict::Pass),
        ("QUA-8", Verdict::Fail),
        ("QUA-9", Verdict::Pass),
    ];
    let (worse, stale) = compared(&[("QUA-1", Verdict::Pass)], &is);
    assert_eq!(worse, ["QUA-8: fail, and the baseline has no such case"]);
    assert_eq!(stale, Vec::<String>::new());
}

#[test]
fn what_holds_now_and_what_is_gone_is_stale() {
    let was = [
        ("QUA-1", Verdict::Pass),
        ("QUA-8", Verdict::Fail),
        ("QUA-9", Verdict::Note),
    ];
    let is = [("QUA-1", Verdict::Pass), ("QUA-8", Verdict::Pass)];
    assert_eq!(
        compared(&was, &is),
        (vec![], vec!["QUA-8".to_owned(), "QUA-9".to_owned()])
    );
    let mut some = run("1.0", &is);
    accepted(&was).compare(&mut some, &linux(), "b.json", false);
    let stale: Vec<String> = some.stale.into_iter().map(|stale| stale.case).collect();
    assert_eq!(stale, ["QUA-8"], "what was not asked for is not gone");
}

#[test]
fn another_version_or_platform_is_not_compared_and_said() {
    let baseline = accepted(&[("QUA-8", Verdict::Fail)]);
    let told = |version: &str, platform: &Platform, name: &str| {
        let mut run = run(version, &[("QUA-8", Verdict::Pass)]);
        name.clone_into(&mut run.subject.name);
        baseline.compare(&mut run, platform, "b.json", true);
        assert_eq!(run.baseline.unwrap().with, None);
        assert_eq!(run.stale, []);
        run.remarks.remove(0)
    };
    assert_eq!(
        told("1.1", &linux(), "foo"),
        "b.json knows foo 1.0 on linux-x86_64, and 1.1 was checked: it was judged without the \
         baseline. Check the version that is known, or add it with --update-baseline."
    );
    let mac = Platform {
        os: "macos".to_owned(),
        ..linux()
    };
    assert_eq!(
        told("1.0", &mac, "foo"),
        "b.json knows foo on linux-x86_64, and not on macos-x86_64: it was judged without the \
         baseline; add it with --update-baseline."
    );
    assert_eq!(
        told("1.0", &linux(), "bar"),
        "b.json does not know bar: it was judged without the baseline; add it with \
         --update-baseline."
    );
}

#[test]
fn what_was_not_carried_out_is_not_accepted() {
    let mut baseline = accepted(&[("QUA-1", Verdict::Pass)]);
    let before = baseline.clone();
    for conclusion in [
        Conclusion::Interrupted,
        Conclusion::Partial { notes: 0 },
        Conclusion::HarnessError {
            reason: "x".to_owned(),
        },
        Conclusion::Untestable {
            reason: "absent".to_owned(),
            musts: vec![],
        },
    ] {
        let mut run = run("1.0", &[("QUA-1", Verdict::Fail)]);
        run.conclusion = conclusion;
        assert!(!baseline.accept(&run, &linux()));
    }
    assert_eq!(baseline, before);
}

#[test]
fn the_file_reads_back_and_one_case_is_one_line() {
    let mut baseline = accepted(&[("QUA-8", Verdict::Fail), ("QUA-1", Verdict::Pass)]);
    baseline.accept(&run("0.9", &[("QUA-1", Verdict::Pass)]), &linux());
    let text = baseline.render().unwrap();
    insta::assert_snapshot!("baseline", text);
    assert_eq!(Baseline::read(&text).unwrap(), baseline);
    let validator = jsonschema::validator_for(&baseline_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()));
}

#[test]
fn a_file_that_is_no_baseline_is_refused_with_the_way_out() {
    for (text, why) in [
        ("", "it is no baseline: EOF"),
        ("not json", "it is no baseline"),
        ("{}", "it has no \"format\""),
        (
            "{\"format\": \"dsh-conform-report/1\"}",
            "its format is \"dsh-conform-report/1\", and this version reads",
        ),
        (
            "{\"format\": \"dsh-conform-baseline/1\", \"server\": {}}",
            "unknown field `server`",
        ),
        (
            "{\"format\": \"dsh-conform-baseline/1\", \"servers\": {\"a\": {\"b\": {\"c\": \
             {\"conclusion\": \"x\", \"cases\": {\"QUA-1\": \"passed\"}}}}}}",
            "unknown variant `passed`",
        ),
    ] {
        let error = Baseline::read(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(error.contains("--update-baseline"), "{error}");
    }
}

/// What hangs on the speed of the machine may be noted or not; a failure is one.
#[test]
fn a_note_on_time_comes_and_goes() {
    let compared = |was, is, timed| {
        let mut run = run("1.0", &[("QUA-14", is)]);
        run.cases[0].timed = timed;
        accepted(&[("QUA-14", was)]).compare(&mut run, &linux(), "b.json", true);
        let comparison = run.baseline.unwrap();
        (comparison.worse.len(), run.stale.len(), comparison.accepted)
    };
    let (pass, note, fail) = (Verdict::Pass, Verdict::Note, Verdict::Fail);
    assert_eq!(compared(pass, note, true), (0, 0, 1));
    assert_eq!(compared(note, pass, true), (0, 0, 0));
    assert_eq!(compared(pass, note, false), (1, 0, 0));
    assert_eq!(compared(note, pass, false), (0, 1, 0));
    assert_eq!(compared(pass, fail, true), (1, 0, 0));
    assert_eq!(compared(fail, note, true), (0, 0, 1));
}

#[test]
fn the_committed_schema_is_current() {
    let committed = include_str!("../schema/dsh-conform-baseline-1.json");
    assert!(
        committed == format!("{:#}\n", baseline_schema()),
        "write it again: cargo run -p dsh-reports --example schema baseline > \
         reports/render/schema/dsh-conform-baseline-1.json"
    );
}

#[test]
fn people_read_what_got_worse_and_what_is_needed() {
    let mut run = run("1.0", &[("QUA-1", Verdict::Fail), ("QUA-8", Verdict::Pass)]);
    accepted(&[("QUA-1", Verdict::Pass), ("QUA-8", Verdict::Fail)]).compare(
        &mut run,
        &linux(),
        "b.json",
        true,
    );
    run.conclusion = Conclusion::Qualified { notes: 1 };
    run.advise(dsh_reports::Remedy {
        row: serde_json::json!({"command": "foo"}),
        settings: vec![dsh_reports::Setting {
            name: "announceConfiguration: true".to_owned(),
            against: "QUA-4 hover: the budget of 60 s ended before the known answer came"
                .to_owned(),
            clauses: vec!["QUA-4".to_owned()],
        }],
        timeout_ms: Some(95_000),
    });
    assert_eq!(
        run.conclusion.to_string(),
        "QUALIFIED WITH SETTINGS, 1 note: announceConfiguration: true"
    );
    let report = Report {
        format: dsh_reports::FORMAT.to_owned(),
        tool: dsh_reports::Tool {
            name: "dsh-conform".to_owned(),
            version: "0".to_owned(),
        },
        platform: linux(),
        date: None,
        interrupted: false,
        division: None,
        runs: vec![run],
    };
    insta::assert_snapshot!("advice", render_text(&report, TextOptions::default()));
    insta::assert_snapshot!("advice_markdown", render_markdown(&report));
}

#[test]
fn a_setting_that_nothing_hangs_on_changes_no_conclusion() {
    let mut run = run("1.0", &[]);
    run.conclusion = Conclusion::Qualified { notes: 0 };
    run.advise(dsh_reports::Remedy {
        row: serde_json::json!({}),
        settings: vec![dsh_reports::Setting {
            name: "versions: rising".to_owned(),
            against: "given by the entry; nothing failed here without it".to_owned(),
            clauses: vec![],
        }],
        timeout_ms: None,
    });
    assert_eq!(run.conclusion, Conclusion::Qualified { notes: 0 });
}
