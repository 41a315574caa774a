//! What is told where no right answer is known, and what nobody has to know the answer for.

use dsh_reports::{Case, Verdict};
use serde_json::{Value, json};

use super::{shows_why, verdict};
use crate::judge::Knowledge;
use crate::judge::wiretap::{SecondStart, Story};
use crate::readiness::Answer;
use crate::samples::Operation;

const UNKNOWN: [Knowledge; 3] = [Knowledge::Shape, Knowledge::Found, Knowledge::Nothing];

fn with(knowledge: Knowledge) -> Story {
    Story {
        knowledge,
        ..Story::default()
    }
}

/// Every answer is this.
fn answering(knowledge: Knowledge, answer: Option<&Value>) -> Story {
    let answers = Operation::ALL.map(|operation| (operation, answer.cloned()));
    Story {
        answers: answers.to_vec(),
        ..with(knowledge)
    }
}

fn texts(case: &Case) -> String {
    let parts = [
        Some(&case.message),
        case.expected.as_ref(),
        case.got.as_ref(),
    ];
    parts
        .into_iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join("\n")
}

/// QUA-4, QUA-14, QUA-15, QUA-16, QUA-17 and all the others
#[test]
fn nothing_is_called_right_where_nothing_is_known_to_be() {
    let other = Answer::Other("another answer".to_owned());
    let bad = |answer: Answer| SecondStart {
        rounds: vec![(answer.clone(), 4_000); 60],
        came_replaced: vec![answer; 2],
        ..SecondStart::default()
    };
    for knowledge in UNKNOWN {
        let short = SecondStart {
            rounds: vec![(Answer::Right, 4_000); 7],
            bound: std::time::Duration::from_secs(1),
            ..SecondStart::default()
        };
        let unsteady = vec![Answer::Right, other.clone()];
        for story in [
            with(knowledge),
            Story {
                came: unsteady.clone(),
                second: bad(other.clone()),
                ..with(knowledge)
            },
            Story {
                came: vec![other.clone()],
                second: bad(Answer::Silent),
                ..with(knowledge)
            },
            Story {
                second: short,
                configured: true,
                ..with(knowledge)
            },
        ] {
            for probe in crate::judge::wiretap::clauses() {
                for case in story.judge(probe.clause) {
                    let texts = texts(&case);
                    let words = texts
                        .replace("what is right", "")
                        .replace("of the right", "");
                    assert!(!words.contains("right"), "{knowledge:?} {case:#?}");
                    assert!(
                        !words.contains("known answer ca"),
                        "{knowledge:?} {case:#?}"
                    );
                }
            }
        }
        let case = with(knowledge).one("QUA-15");
        assert_eq!(
            (case.verdict, case.message.split(',').next()),
            (
                Verdict::Pass,
                Some("50 × goToDefinition with the same answer")
            )
        );
    }
    let known = Story::default().one("QUA-15");
    assert!(
        known.message.starts_with("50 × goToDefinition right"),
        "{}",
        known.message
    );
}

/// QUA-4
#[test]
fn null_to_everything_holds_nothing_but_the_protocol() {
    for nothing in [
        json!({"result": null}),
        json!({"result": []}),
        json!({"result": {"contents": ""}}),
        json!({"result": {"contents": {"kind": "plaintext", "value": " "}}}),
    ] {
        let cases = answering(Knowledge::Shape, Some(&nothing)).judge("QUA-4");
        assert_eq!(cases.len(), 4);
        for case in cases {
            assert_eq!(case.verdict, Verdict::NotApplicable, "{case:#?}");
        }
    }
    // One answer that says something makes the others credible.
    let mut some = answering(Knowledge::Shape, Some(&json!({"result": null})));
    some.answers[3].1 = Some(json!({"result": {"contents": "text"}}));
    assert!(
        some.judge("QUA-4")
            .iter()
            .all(|case| case.verdict == Verdict::Pass)
    );
    // Where it is known that nothing is there, nothing is right.
    let known = answering(Knowledge::Known, Some(&json!({"result": null})));
    assert!(
        known
            .judge("QUA-4")
            .iter()
            .all(|case| case.verdict == Verdict::Pass)
    );
}

/// QUA-4
#[test]
fn what_is_never_answered_fails_wherever_it_was_asked() {
    for knowledge in [Knowledge::Found, Knowledge::Nothing] {
        let silent = answering(knowledge, None);
        let cases = silent.judge("QUA-4");
        assert_eq!(cases.len(), 4);
        for case in &cases {
            assert_eq!(
                (case.verdict, case.message.as_str()),
                (Verdict::Timeout, "not answered, the budget of 60 s ended")
            );
        }
        shows_why(&silent, "QUA-4");
        // An operation that is answered with an error is answered.
        let error = json!({"error": {"code": -32603, "message": "no"}});
        let refusing = answering(knowledge, Some(&error));
        assert_eq!(refusing.one("QUA-4").verdict, Verdict::NotApplicable);
    }
}

/// QUA-4
#[test]
fn a_death_while_it_is_asked_fails_whatever_was_answered() {
    for knowledge in [
        Knowledge::Known,
        Knowledge::Shape,
        Knowledge::Found,
        Knowledge::Nothing,
    ] {
        let dies = Story {
            ending: None,
            stderr: Some("boom"),
            ..with(knowledge)
        };
        let cases = dies.judge("QUA-4");
        let crash = cases
            .iter()
            .find(|case| case.verdict == Verdict::Crash)
            .unwrap();
        assert_eq!(crash.id, "QUA-4/process");
        assert_eq!(
            crash.message,
            "the server died while it was asked: exit code 1, stderr: \"boom\""
        );
        assert!(crash.evidence.iter().any(|event| event.decisive));
        let ended = Story {
            ended_by_us: true,
            ..dies
        };
        let crashes = |case: &Case| case.verdict == Verdict::Crash;
        assert!(!ended.judge("QUA-4").iter().any(crashes));
        assert!(!with(knowledge).judge("QUA-4").iter().any(crashes));
    }
}

/// QUA-1, QUA-4, QUA-5
#[test]
fn the_budget_of_a_trial_is_told_as_the_trial_s() {
    let wrong = Answer::Other("wrong place".to_owned());
    let trial = Story {
        came: vec![wrong.clone()],
        trial: true,
        ..Story::default()
    };
    assert_eq!(
        trial.judge("QUA-4")[0].message,
        "the 60 s of a trial ended before the known answer came"
    );
    let trial = Story {
        came_reopened: vec![wrong],
        trial: true,
        ..Story::default()
    };
    assert_eq!(
        trial.one("QUA-5").message,
        "not answered from the new text when the 60 s of a trial ended"
    );
    let unanswered = Story {
        handshake: None,
        ended_by_us: true,
        ending: None,
        trial: true,
        ..Story::default()
    };
    verdict(
        &unanswered,
        "QUA-1",
        Verdict::Timeout,
        "initialize not answered within the 60 s of a trial",
    );
}
