//! Every form of a report, of each kind of run, and what outside text may not do to it.

mod support;

use std::collections::BTreeMap;

use dsh_reports::{
    Case, Conclusion, Report, Run, Selection, Subject, SubjectKind, TextOptions, Verdict, Watch,
    read, render_badge, render_github, render_json, render_junit, render_markdown, render_text,
    schema,
};
use support::{case, clauses, harness, mixed, power, report};

fn text(run: Run) -> String {
    render_text(&report(vec![run]), TextOptions::default())
}

#[test]
fn a_run_of_scenarios_is_folded_by_area() {
    insta::assert_snapshot!("text", text(mixed()));
}

#[test]
fn mutants_are_killed_survived_or_broken() {
    insta::assert_snapshot!("text_power", text(power()));
    insta::assert_snapshot!("markdown_power", render_markdown(&report(vec![power()])));
}

#[test]
fn as_junit() {
    insta::assert_snapshot!("junit", render_junit(&report(vec![mixed()])).unwrap());
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!("markdown", render_markdown(&report(vec![mixed()])));
}

#[test]
fn as_annotations() {
    insta::assert_snapshot!("github", render_github(&report(vec![mixed()])));
}

#[test]
fn as_a_badge() {
    let good = harness(vec![case("a/b", &["CAN-1", "FRM-2"], Verdict::Pass, "")]);
    let badge = render_badge(&report(vec![good.clone()]));
    insta::assert_snapshot!("badge", badge);
    let of = |runs: Vec<Run>| -> serde_json::Value {
        serde_json::from_str(&render_badge(&report(runs))).unwrap()
    };
    assert_eq!(of(vec![mixed()])["color"], "red");
    assert_eq!(of(vec![mixed()])["isError"], true);
    assert_eq!(of(vec![good.clone(), mixed()])["message"], "1 of 2 conform");
    assert_eq!(of(vec![])["color"], "red");
    let noted = harness(vec![
        case("a/b", &["CAN-1"], Verdict::Pass, ""),
        case("a/c", &["FRM-2"], Verdict::Note, "n"),
    ]);
    assert_eq!(of(vec![noted])["color"], "yellowgreen");
}

#[test]
fn a_harness_conforms_breaks_clauses_or_was_asked_in_part() {
    let good = harness(vec![
        case("a/b", &["CAN-1"], Verdict::Pass, ""),
        case("a/c", &["FRM-2"], Verdict::Note, "n"),
        case("a/d", &["CAN-2"], Verdict::Known, "k"),
    ]);
    assert_eq!(
        good.conclusion.to_string(),
        "CONFORMS, notes on 1 clause, 1 known failure"
    );
    let mut some = good.clone();
    some.conclude(&clauses(), Selection::Some);
    assert_eq!(
        some.conclusion,
        Conclusion::SelectionHolds { notes: 1, known: 1 }
    );
    let mut others = good.clone();
    others.suite = Some("mine".to_owned());
    others.conclude(&clauses(), Selection::All);
    assert_eq!(others.conclusion, some.conclusion);
    let mut untestable = good.clone();
    untestable.cases[1].verdict = Verdict::Untestable;
    untestable.conclude(&clauses(), Selection::All);
    assert!(
        matches!(&untestable.conclusion, Conclusion::Untestable { musts, .. } if musts == &["FRM-2"])
    );
    let mut vacuous = good.clone();
    for case in &mut vacuous.cases {
        case.verdict = Verdict::NotApplicable;
        "not there".clone_into(&mut case.message);
    }
    for selection in [Selection::All, Selection::Some] {
        vacuous.conclude(&clauses(), selection);
        assert_eq!(
            vacuous.conclusion.to_string(),
            "UNTESTABLE: none of 3 cases applies: not there"
        );
        assert!(!vacuous.conclusion.conforms());
    }
    assert_eq!(
        mixed().conclusion,
        Conclusion::DoesNotConform {
            musts: vec!["CAN-4".to_owned()]
        }
    );
    let mut fault = good;
    fault.cases[0].verdict = Verdict::HarnessError;
    fault.conclude(&clauses(), Selection::All);
    assert!(matches!(fault.conclusion, Conclusion::HarnessError { .. }));
}

/// What a monitor finds in a case that was written for something else counts all the same.
#[test]
fn a_clause_that_no_case_is_for_can_be_broken() {
    let mut found = case("a/b", &["CAN-1"], Verdict::Fail, "f");
    found.broken = vec!["WIRE-3".to_owned(), "CAN-2".to_owned()];
    let run = harness(vec![found]);
    assert_eq!(
        run.conclusion.to_string(),
        "DOES NOT CONFORM: CAN-2, WIRE-3"
    );
    let of = |id: &str| run.coverage.iter().find(|clause| clause.clause == id);
    assert_eq!(of("CAN-2").unwrap().verdict, Some(Verdict::Fail));
    let unsaid = of("CAN-1").unwrap();
    assert_eq!(unsaid.verdict, None);
    assert_eq!(
        unsaid.not_run.as_deref(),
        Some("a/b is red for another reason")
    );
    assert_eq!((run.totals.must.held, run.totals.must.judged), (0, 1));
}

/// What looks at every transcript judges too; so does what says the same or more.
#[test]
fn a_clause_is_judged_by_monitors_and_by_what_it_refers_to() {
    let watch = |see: &[&str], monitors: &[&str]| Watch {
        see: see.iter().map(|id| (*id).to_owned()).collect(),
        monitors: monitors.iter().map(|id| (*id).to_owned()).collect(),
    };
    let watches = BTreeMap::from([
        ("CAN-2".to_owned(), watch(&[], &["order"])),
        ("CAN-3".to_owned(), watch(&["CAN-1"], &[])),
        ("CAN-4".to_owned(), watch(&["shape"], &["shapes"])),
    ]);
    let verdicts = |case: Case| {
        let mut run = harness(vec![case]);
        run.conclude_watched(&clauses(), &watches, Selection::All);
        let verdict = |at: usize| run.coverage[at].verdict;
        [verdict(0), verdict(1), verdict(2), verdict(3)]
    };
    let (pass, fail) = (Some(Verdict::Pass), Some(Verdict::Fail));
    let mut judged = case("a/b", &["CAN-1"], Verdict::Pass, "");
    assert_eq!(verdicts(judged.clone()), [pass, pass, pass, pass]);
    judged.verdict = Verdict::Fail;
    judged.broken = vec!["shape".to_owned()];
    assert_eq!(verdicts(judged.clone()), [None, pass, None, fail]);
    judged.broken.clear();
    judged.verdict = Verdict::NotApplicable;
    let applicable = Some(Verdict::NotApplicable);
    assert_eq!(verdicts(judged), [applicable, None, applicable, None]);
}

/// One that is broken says nothing about one that refers to it: only a part of it may be.
#[test]
fn a_clause_is_not_broken_by_one_that_it_refers_to() {
    let watch = Watch {
        see: vec!["CAN-1".to_owned()],
        monitors: vec!["order".to_owned()],
    };
    let watches = BTreeMap::from([("CAN-3".to_owned(), watch)]);
    let mut run = harness(vec![case("a/b", &["CAN-1"], Verdict::Fail, "")]);
    run.conclude_watched(&clauses(), &watches, Selection::All);
    assert_eq!(run.coverage[0].verdict, Some(Verdict::Fail));
    assert_eq!(run.coverage[2].verdict, None);
    assert_eq!(
        run.coverage[2].not_run.as_deref(),
        Some("CAN-1 does not hold, which it refers to")
    );
    assert_eq!((run.totals.must.held, run.totals.must.judged), (0, 1));
}

#[test]
fn every_clause_is_counted_in_its_profile() {
    let run = mixed();
    assert_eq!(run.coverage.len(), clauses().len());
    let transient = run.totals.profiles["transient"];
    assert_eq!((transient.must.held, transient.must.judged), (2, 4));
    let instructions = run.totals.profiles["instructions"];
    assert_eq!((instructions.must.judged, instructions.not_judged), (0, 3));
}

fn hostile() -> Report {
    let nasty = "\u{1b}[31m\u{0}\u{8}\u{b}]]>&<\"'\u{fffe}\u{ffff}\u{202e}```` `@everyone` \r\n::error::forged\n%0A|";
    let mut run = mixed();
    run.subject.name = format!("name{nasty}");
    for case in &mut run.cases {
        case.id.push_str(nasty);
        case.message.push_str(nasty);
        case.got = Some(nasty.to_owned());
        case.expected = Some(nasty.to_owned());
        case.title = Some(nasty.to_owned());
        for evidence in &mut case.evidence {
            evidence.text.push_str(nasty);
        }
    }
    run.remarks = vec![nasty.to_owned()];
    let mut absent = Run::new(Subject::named(SubjectKind::Harness, nasty));
    absent.conclusion = Conclusion::Untestable {
        reason: nasty.to_owned(),
        musts: Vec::new(),
    };
    report(vec![run, absent])
}

#[test]
fn junit_stays_well_formed_whatever_it_holds() {
    let xml = render_junit(&hostile()).unwrap();
    let bad = |c: char| matches!(c, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    assert_eq!(xml.find(bad), None);
    let parsed = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    // Seven cases and a stale entry; the run that was not carried out is an error and not green.
    assert_eq!((parsed.tests, parsed.failures, parsed.errors), (9, 3, 1));
}

#[test]
fn an_annotation_is_one_line_and_begins_no_other() {
    let commands = render_github(&hostile());
    for line in commands.lines() {
        let starts = ["::error ", "::warning ", "::notice "];
        assert!(starts.iter().any(|start| line.starts_with(start)), "{line}");
        assert!(!line.contains('\r') && !line.contains('\u{1b}'));
    }
    // Two red cases, a note, a stale entry, two conclusions.
    assert_eq!(commands.lines().count(), 6, "{commands}");
}

#[test]
fn markdown_holds_text_from_outside_in_code_only() {
    let markdown = render_markdown(&hostile());
    assert!(!markdown.contains('\u{1b}'));
    let mut fence: Option<usize> = None;
    for line in markdown.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if ticks >= open && line.trim_matches('`').is_empty() => fence = None,
            None if ticks >= 3 && line.ends_with("text") => fence = Some(ticks),
            None if line.contains("@everyone") => {
                assert!(line.contains("`````"), "{line}");
            }
            _ => {}
        }
    }
    assert_eq!(fence, None, "a fence is left open");
}

#[test]
fn markdown_fits_into_a_comment() {
    let many = (0..2_000)
        .map(|n| {
            case(
                &format!("a/{n}"),
                &["CAN-1"],
                Verdict::Fail,
                &"x".repeat(200),
            )
        })
        .collect();
    let markdown = render_markdown(&report(vec![harness(many)]));
    assert!(markdown.len() < 60_000, "{}", markdown.len());
    assert!(markdown.contains("more, which stand in the other forms"));
}

#[test]
fn no_line_of_text_is_wider_than_asked() {
    for width in [60, 80, 120] {
        let text = render_text(
            &report(vec![mixed(), power()]),
            TextOptions {
                width,
                color: false,
            },
        );
        for line in text.lines().filter(|line| !line.contains(".jsonl")) {
            let shown = unicode_width::UnicodeWidthStr::width(line);
            assert!(shown <= width || line.contains("repeat"), "{width}: {line}");
        }
    }
}

#[test]
fn all_of_it_survives_json_and_fits_the_schema() {
    let mut partial = mixed();
    partial.shard = Some(dsh_reports::Shard { index: 1, of: 3 });
    partial.skipped = vec![dsh_reports::Skipped {
        reason: dsh_reports::SkipReason::OtherShard,
        cases: vec!["x/y".to_owned()],
    }];
    let report = report(vec![partial, power()]);
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
fn cases_that_do_not_apply_are_named_by_their_reason() {
    let of = |id: &str, reason: &str| case(id, &["CAN-1"], Verdict::NotApplicable, reason);
    let mut cases: Vec<_> = (10..22)
        .map(|n| of(&format!("a/{n}"), "no links here"))
        .collect();
    cases.push(of("b/1", "it is root"));
    cases.push(case("b/2", &["CAN-1"], Verdict::Pass, ""));
    let text = text(harness(cases));
    assert!(
        text.contains("not applicable: 12 cases: no links here\n    a/10, a/11, "),
        "{text}"
    );
    assert!(text.contains(" and 2 more\n"), "{text}");
    assert!(
        text.contains("not applicable: 1 case: it is root\n    b/1\n"),
        "{text}"
    );
    assert!(!text.contains("b/2"), "{text}");
}
