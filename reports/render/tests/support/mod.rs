//! Reports as fixtures.

use dsh_reports::{
    Case, ClauseRef, Evidence, FORMAT, Level, Place, Platform, Report, Run, RunKind, Selection,
    Stale, Subject, SubjectKind, Tool, TranscriptRef, Verdict,
};

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
        date: None,
        interrupted: false,
        division: None,
        runs,
    }
}

pub(crate) fn clauses() -> Vec<ClauseRef> {
    let mut all: Vec<(String, Level, &str)> = Vec::new();
    for number in 1..=4 {
        all.push((format!("CAN-{number}"), Level::Must, "transient"));
    }
    all.push(("FRM-1".to_owned(), Level::Must, "lsp-base"));
    all.push(("FRM-2".to_owned(), Level::Should, "lsp-base"));
    all.push(("TOOL-1".to_owned(), Level::Must, "tool"));
    for number in 1..=3 {
        all.push((format!("INS-{number}"), Level::Must, "instructions"));
    }
    all.into_iter()
        .map(|(id, level, profile)| ClauseRef {
            statement: format!("what {id} says"),
            not_run: match profile {
                "instructions" => "the subject does not claim the profile instructions",
                _ => "no scenario is for it",
            }
            .to_owned(),
            id,
            level,
            profiles: vec![profile.to_owned()],
        })
        .collect()
}

pub(crate) fn case(id: &str, clauses: &[&str], verdict: Verdict, message: &str) -> Case {
    let group = id.split('/').next().unwrap_or_default();
    let mut case = Case::new("", Level::Must, group, verdict, message);
    id.clone_into(&mut case.id);
    case.clauses = clauses.iter().map(|id| (*id).to_owned()).collect();
    case.duration_us = Some(12_000);
    case.title = Some(format!("What {id} shows"));
    case.source = Some(Place {
        file: format!(
            "scenarios/suite/{}.yaml",
            id.split('#').next().unwrap_or(id)
        ),
        line: Some(1),
    });
    case
}

pub(crate) fn harness(cases: Vec<Case>) -> Run {
    let mut run = Run::new(Subject {
        version: Some("0.1.0".to_owned()),
        ..Subject::named(SubjectKind::Harness, "dsh-harness")
    });
    run.profiles = ["lsp-base", "transient", "tool"]
        .map(str::to_owned)
        .to_vec();
    run.seed = Some(42);
    run.duration_us = 18_200_000;
    run.cases = cases;
    run.conclude(&clauses(), Selection::All);
    run
}

/// Everything that a run of scenarios can come to.
pub(crate) fn mixed() -> Run {
    let mut failed = case(
        "cancel/ignored#hover-late",
        &["CAN-3", "CAN-4"],
        Verdict::Fail,
        "the next query was served by the same process",
    );
    failed.broken = vec!["CAN-4".to_owned()];
    failed.expected = Some("2 server processes".to_owned());
    failed.got = Some("1 server process".to_owned());
    failed.evidence = vec![
        Evidence {
            seq: 11,
            at_us: 150_200,
            text: "→ $/cancelRequest".to_owned(),
            decisive: false,
        },
        Evidence {
            seq: 12,
            at_us: 301_000,
            text: "→ textDocument/didOpen a.ts version 1".to_owned(),
            decisive: true,
        },
    ];
    failed.transcript = Some(TranscriptRef {
        path: "target/dsh-conform/cancel-ignored-hover-late.jsonl".to_owned(),
        seq: Some(12),
    });
    failed.reproduce =
        Some("dsh-conform run 'cancel/ignored#hover-late' --seed 42 --in-process".to_owned());
    let mut untestable = case(
        "cancel/queued",
        &["CAN-2"],
        Verdict::Untestable,
        "the server never got textDocument/hover of process 1",
    );
    untestable.expected = Some("textDocument/hover is received".to_owned());
    let mut run = harness(vec![
        case("cancel/answered", &["CAN-1", "CAN-3"], Verdict::Pass, ""),
        failed,
        untestable,
        case("framing/one", &["FRM-1"], Verdict::Pass, ""),
        case(
            "framing/slow",
            &["FRM-2"],
            Verdict::Note,
            "the header is written in two pieces",
        ),
        case(
            "framing/two",
            &["FRM-1"],
            Verdict::Known,
            "known: two lengths are taken for one",
        ),
        case(
            "tool/text",
            &["TOOL-1"],
            Verdict::NotApplicable,
            "the subject has no control operation compact",
        ),
    ]);
    run.stale = vec![Stale {
        case: "framing/one".to_owned(),
        reason: "it does not fail any more; take it out".to_owned(),
        source: Some(Place {
            file: "subject.yaml".to_owned(),
            line: Some(4),
        }),
    }];
    run
}

/// Mutants: one of each outcome.
pub(crate) fn power() -> Run {
    let mut killed = case(
        "drop-did-close",
        &["CAN-1"],
        Verdict::Pass,
        "killed by open/balance (CAN-1)",
    );
    "wire".clone_into(&mut killed.group);
    let mut survived = case(
        "late-cancel",
        &["CAN-3"],
        Verdict::Fail,
        "no scenario noticed it; 14 were run",
    );
    "wire".clone_into(&mut survived.group);
    survived.reproduce = Some("dsh-conform run --mutants late-cancel".to_owned());
    let mut broken = case(
        "early-kill",
        &["CAN-4"],
        Verdict::Untestable,
        "it never came to tamper with anything",
    );
    "process".clone_into(&mut broken.group);
    let mut run = harness(vec![]);
    run.kind = RunKind::Power;
    run.cases = vec![killed, survived, broken];
    run.conclude(&clauses(), Selection::All);
    run
}
