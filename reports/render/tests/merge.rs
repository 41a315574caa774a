//! Joining the shards of a run.

mod support;

use dsh_reports::{
    MergeError, Report, Run, Selection, Shard, SkipReason, Skipped, SubjectKind, Verdict, merge,
    missing_shards,
};
use support::{case, clauses, harness, mixed, power, report};

/// The shards of a run, each with every `of`th case, as the runner writes them.
fn shards(whole: &Run, of: u32) -> Vec<(String, Report)> {
    (1..=of)
        .map(|index| {
            let mut run = whole.clone();
            let mut mine = Vec::new();
            let mut others = Vec::new();
            for (place, case) in run.cases.drain(..).enumerate() {
                if place % of as usize + 1 == index as usize {
                    mine.push(case);
                } else {
                    others.push(case.id);
                }
            }
            run.cases = mine;
            run.shard = Some(Shard { index, of });
            run.skipped = vec![Skipped {
                reason: SkipReason::OtherShard,
                cases: others,
            }];
            run.conclude(&clauses(), Selection::All);
            (format!("{index}.json"), report(vec![run]))
        })
        .collect()
}

#[test]
fn the_shards_of_a_run_make_the_run() {
    let whole = mixed();
    for of in [1, 2, 3, 7, 20] {
        let mut parts = shards(&whole, of);
        parts.reverse();
        if of == 1 {
            // A single report stays what it is.
            assert_eq!(merge(parts.clone()).unwrap(), parts[0].1);
            continue;
        }
        assert_eq!(merge(parts).unwrap(), report(vec![whole.clone()]), "{of}");
    }
}

#[test]
fn a_missing_shard_is_told_and_the_conclusion_is_partial() {
    let whole = harness(vec![
        case("a/1", &["CAN-1"], Verdict::Pass, ""),
        case("a/2", &["CAN-2"], Verdict::Pass, ""),
        case("a/3", &["CAN-3"], Verdict::Pass, ""),
    ]);
    let mut parts = shards(&whole, 3);
    parts.remove(1);
    let run = merge(parts).unwrap().runs.remove(0);
    assert_eq!(run.conclusion.to_string(), "SELECTED CASES HOLD");
    assert_eq!(run.remarks, ["Shards that are missing: 2/3."]);
    assert_eq!(
        run.skipped,
        [Skipped {
            reason: SkipReason::OtherShard,
            cases: vec!["a/2".to_owned()]
        }]
    );
}

#[test]
fn missing_shards_are_named_even_of_one_report() {
    let whole = mixed();
    let mut parts = shards(&whole, 30);
    parts.truncate(1);
    let merged = merge(parts).unwrap();
    let told = missing_shards(&merged);
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(told.starts_with("2/30, 3/30, "), "{told}");
    assert!(
        told.ends_with("21/30, and 9 more (dsh-harness 0.1.0)"),
        "{told}"
    );
    let all = merge(shards(&whole, 3)).unwrap();
    assert!(missing_shards(&all).is_empty());
}

fn two() -> Vec<(String, Report)> {
    shards(&mixed(), 2)
}

#[test]
fn the_same_part_twice_is_the_part_once() {
    let mut parts = two();
    let mut again = parts[0].clone();
    again.1.runs[0].cases[0].duration_us = Some(1);
    parts.push(again);
    assert_eq!(merge(parts).unwrap().runs[0].cases.len(), 7);
}

#[test]
fn a_case_with_two_outcomes_is_refused() {
    let mut parts = two();
    let mut again = parts[0].clone();
    again.0 = "again.json".to_owned();
    again.1.runs[0].cases[0].verdict = Verdict::Fail;
    parts.push(again);
    let error = merge(parts).unwrap_err();
    assert!(matches!(&error, MergeError::Overlap { case, .. } if case == "cancel/answered"));
    insta::assert_snapshot!(error, @"the case cancel/answered is in 1.json and in again.json, with different outcomes; merge shards that do not overlap");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let change = |change: fn(&mut Report)| {
        let mut parts = two();
        change(&mut parts[1].1);
        merge(parts).unwrap_err()
    };
    let version = change(|report| report.tool.version = "0.0.1".to_owned());
    insta::assert_snapshot!(version, @"1.json was made by dsh-conform 0.0.0 on linux x86_64, 2.json by dsh-conform 0.0.1 on linux x86_64; merge reports of one version of dsh-conform on one platform");
    let platform = change(|report| report.platform.os = "macos".to_owned());
    assert!(matches!(platform, MergeError::OtherTool { .. }));
    let subject = change(|report| report.runs[0].subject.name = "other".to_owned());
    insta::assert_snapshot!(subject, @"1.json is about dsh-harness 0.1.0, 2.json about other 0.1.0; merge the shards of one subject");
    let kind = change(|report| report.runs[0].subject.kind = SubjectKind::Server);
    assert!(matches!(kind, MergeError::OtherSubject { .. }));
    let suite = change(|report| report.runs[0].suite = Some("mine".to_owned()));
    insta::assert_snapshot!(suite, @"1.json is about dsh-harness 0.1.0, 2.json about dsh-harness 0.1.0 by the suite mine; merge the shards of one subject");
    let division = change(|report| report.runs[0].shard = Some(Shard { index: 2, of: 5 }));
    insta::assert_snapshot!(division, @"1.json is shard 1/2, 2.json is shard 2/5; merge the shards of one division");
    assert_eq!(merge(Vec::new()).unwrap_err(), MergeError::Nothing);
}

#[test]
fn mutants_are_merged_with_mutants_only() {
    let merged = merge(shards(&power(), 2)).unwrap();
    assert_eq!(merged.runs[0].conclusion, power().conclusion);
    let mut parts = two();
    parts[1].1 = report(vec![power()]);
    let error = merge(parts).unwrap_err();
    insta::assert_snapshot!(error, @"1.json is about dsh-harness 0.1.0, 2.json about mutants of dsh-harness 0.1.0; merge the shards of one subject");
}

#[test]
fn different_seeds_stay_with_the_cases() {
    let mut parts = two();
    parts[1].1.runs[0].seed = Some(7);
    let run = merge(parts).unwrap().runs.remove(0);
    assert_eq!(run.seed, None);
    assert!(run.remarks[0].contains("different seeds"));
}

#[test]
fn an_interrupted_part_makes_the_whole_partial() {
    let whole = harness(vec![
        case("a/1", &["CAN-1"], Verdict::Pass, ""),
        case("a/2", &["CAN-2"], Verdict::Pass, ""),
    ]);
    let mut parts = shards(&whole, 2);
    let run = &mut parts[1].1.runs[0];
    let case = run.cases.remove(0);
    run.skipped.push(Skipped {
        reason: SkipReason::Interrupted,
        cases: vec![case.id],
    });
    run.conclude(&clauses(), Selection::Interrupted);
    parts[1].1.interrupted = true;
    let merged = merge(parts).unwrap();
    assert!(merged.interrupted);
    let run = &merged.runs[0];
    assert_eq!(run.conclusion.to_string(), "INTERRUPTED");
    assert_eq!(run.skipped[0].reason, SkipReason::Interrupted);
}

#[test]
fn servers_stand_side_by_side() {
    let server = |name: &str| {
        let mut run = mixed();
        run.subject.kind = SubjectKind::Server;
        run.subject.name = name.to_owned();
        (format!("{name}.json"), report(vec![run]))
    };
    let merged = merge(vec![server("x"), server("y")]).unwrap();
    let names: Vec<&str> = merged
        .runs
        .iter()
        .map(|run| run.subject.name.as_str())
        .collect();
    assert_eq!(names, ["x", "y"]);
}
