//! The clauses of the second start, and those that were added to the first.

use dsh_reports::{Verdict, Written};
use serde_json::json;

use super::{shows_why, verdict};
use crate::judge::Knowledge;
use crate::judge::wiretap::{GivenUp, SecondStart, Story};
use crate::readiness::Answer;
use crate::samples::Operation;
use crate::snapshot::Difference;

fn other(name: &str) -> Answer {
    Answer::Other(name.to_owned())
}

fn second(change: impl FnOnce(&mut SecondStart)) -> Story {
    let mut story = Story::default();
    change(&mut story.second);
    story
}

/// QUA-12, QUA-13
#[test]
fn odd_columns_and_paths_that_are_not_answered_right_are_notes() {
    for (clause, said) in [
        ("QUA-12", "answered with wrong place"),
        ("QUA-13", "answered with wrong place"),
    ] {
        verdict(
            &Story::default(),
            clause,
            Verdict::Pass,
            "a single Location",
        );
        let wrong = Story {
            came_columns: vec![other("wrong place")],
            came_paths: vec![other("wrong place")],
            ..Story::default()
        };
        verdict(&wrong, clause, Verdict::Note, said);
        shows_why(&wrong, clause);
        let case = wrong.one(clause);
        assert_eq!(case.id, format!("{clause}/goToDefinition"));
        assert_eq!(
            case.got.as_deref(),
            Some("1 × wrong place (last: main.x:9:9)")
        );
        let died = Answer::Died("exit code 3".to_owned());
        let dead = Story {
            came_columns: vec![died.clone(); 3],
            came_paths: vec![died; 3],
            ..Story::default()
        };
        verdict(&dead, clause, Verdict::Note, "the server died: exit code 3");
        let silent = Story {
            came_columns: vec![Answer::Silent],
            came_paths: vec![Answer::Silent],
            ..Story::default()
        };
        verdict(&silent, clause, Verdict::Note, "no answer");
    }
}

/// QUA-12, QUA-13
#[test]
fn what_goes_wrong_without_anything_odd_says_nothing_about_the_odd() {
    let wrong = vec![other("[]")];
    let story = Story {
        came: wrong.clone(),
        came_columns: wrong.clone(),
        came_paths: wrong,
        ..Story::default()
    };
    for clause in ["QUA-12", "QUA-13"] {
        let said = "goToDefinition was not answered right where nothing is odd";
        verdict(&story, clause, Verdict::Untestable, said);
    }
    let unknown = Story {
        knowledge: Knowledge::Shape,
        ..Story::default()
    };
    assert_eq!(unknown.one("QUA-12").verdict, Verdict::NotApplicable);
    assert_eq!(unknown.one("QUA-13").verdict, Verdict::NotApplicable);
    let reasoned = Story {
        sample: crate::samples::sample("systemd"),
        ..unknown
    };
    for (clause, reason) in [
        ("QUA-12", "basic plane: a directive begins its line"),
        ("QUA-18", "is known: what a directive means"),
    ] {
        let said = reasoned.one(clause).message;
        assert!(said.contains(reason), "{said}");
        assert!(!said.ends_with('.'), "{said}");
    }
    let without = Story::default().capability("definitionProvider", None);
    assert_eq!(without.one("QUA-12").verdict, Verdict::NotApplicable);
}

/// QUA-14
#[test]
fn references_that_come_bit_by_bit_are_a_note_with_the_time_it_took() {
    let case = Story::default().one("QUA-14");
    assert_eq!(case.verdict, Verdict::Pass, "{case:#?}");
    assert!(
        case.message
            .starts_with("every reference in the first answer")
    );
    let late = Story {
        came: [
            vec![other("[]"), other("partial 2/6")],
            vec![Answer::Right; 3],
        ]
        .concat(),
        ..Story::default()
    };
    let case = late.one("QUA-14");
    assert_eq!(case.verdict, Verdict::Note, "{case:#?}");
    assert!(case.message.contains("stable after"), "{}", case.message);
    assert!(case.message.ends_with("before that []"), "{}", case.message);
    shows_why(&late, "QUA-14");
    let shaky = Story {
        came: [
            vec![Answer::Right, other("error -32801")],
            vec![Answer::Right; 3],
        ]
        .concat(),
        ..Story::default()
    };
    assert_eq!(shaky.one("QUA-14").verdict, Verdict::Note);
    let never = Story {
        came: vec![other("partial 2/6")],
        ..Story::default()
    };
    let said = "not every reference, three times running, within 60 s";
    verdict(&never, "QUA-14", Verdict::Note, said);
    let without = Story::default().capability("referencesProvider", None);
    assert_eq!(without.one("QUA-14").verdict, Verdict::NotApplicable);
}

/// QUA-10
#[test]
fn a_cancelled_question_has_to_be_answered_within_the_grace() {
    let story = Story::default();
    verdict(
        &story,
        "QUA-10",
        Verdict::Pass,
        "1 × answered with error -32800",
    );
    assert_eq!(story.one("QUA-10").duration_us, Some(4_000));
    let given_up = |answer: Option<(u64, serde_json::Value)>| {
        second(|second| {
            second.given_up.push(GivenUp {
                cancelled: true,
                answer,
            });
        })
    };
    let result = given_up(Some((10, json!({"result": null}))));
    verdict(
        &result,
        "QUA-10",
        Verdict::Pass,
        "2 × answered with error -32800",
    );
    let never = given_up(None);
    verdict(&never, "QUA-10", Verdict::Note, "not answered within 2.0 s");
    shows_why(&never, "QUA-10");
    let late = given_up(Some((2_500_000, json!({"result": null}))));
    verdict(&late, "QUA-10", Verdict::Note, "answered after 2.5 s");
    shows_why(&late, "QUA-10");
}

/// QUA-10
#[test]
fn a_server_that_is_always_done_before_has_nothing_cancelled() {
    let quick = second(|second| second.given_up.truncate(1));
    let said = "1 question answered before they could be cancelled";
    verdict(&quick, "QUA-10", Verdict::NotApplicable, said);
    let none = second(|second| second.given_up.clear());
    verdict(
        &none,
        "QUA-10",
        Verdict::Untestable,
        "no question was given up",
    );
}

/// QUA-15
#[test]
fn fifty_rounds_have_to_be_right_steady_and_bounded() {
    let story = Story::default();
    let said = "50 × goToDefinition right, memory 100 MiB → 100 MiB";
    verdict(&story, "QUA-15", Verdict::Pass, said);
    let wrong = second(|second| second.rounds[12].0 = other("error -32603"));
    let said = "1 of 50 answered otherwise, the first with error -32603";
    verdict(&wrong, "QUA-15", Verdict::Note, said);
    shows_why(&wrong, "QUA-15");
    // Behind the fiftieth it is measured, and not judged.
    let later = second(|second| second.rounds[55].0 = other("[]"));
    assert_eq!(later.one("QUA-15").verdict, Verdict::Pass);
    let slower = second(|second| {
        for (round, (_, latency)) in second.rounds.iter_mut().enumerate() {
            *latency = 4_000 + round as u64 * 3_000;
        }
    });
    let said = "slower and slower: 28 ms at first, 127 ms at last";
    verdict(&slower, "QUA-15", Verdict::Note, said);
    shows_why(&slower, "QUA-15");
    let larger = second(|second| second.memory = vec![100, 130, 160, 190, 220, 250, 280]);
    let said = "memory grows: 100 MiB at first, 250 MiB behind 50 rounds";
    verdict(&larger, "QUA-15", Verdict::Note, said);
    shows_why(&larger, "QUA-15");
}

/// QUA-15
#[test]
fn fewer_rounds_than_fifty_are_no_fifty() {
    let few = second(|second| second.rounds.truncate(9));
    verdict(
        &few,
        "QUA-15",
        Verdict::Note,
        "9 rounds in 20 s, and no time for more",
    );
    shows_why(&few, "QUA-15");
    let hurried = second(|second| {
        second.rounds.truncate(9);
        second.bound = std::time::Duration::from_secs(2);
    });
    let said = "9 rounds in 2.0 s, all right; 50 take a larger --budget";
    verdict(&hurried, "QUA-15", Verdict::NotApplicable, said);
    let interrupted = second(|second| {
        second.rounds.truncate(9);
        second.interrupted = true;
    });
    assert_eq!(interrupted.judge("QUA-15"), []);
    let unknown_memory = second(|second| second.memory.clear());
    let said = "50 × goToDefinition right";
    verdict(&unknown_memory, "QUA-15", Verdict::Pass, said);
}

/// QUA-16
#[test]
fn a_killed_server_has_to_be_replaced_with_the_same_answer() {
    let story = Story::default();
    let said = "its replacement gave the same answer";
    verdict(&story, "QUA-16", Verdict::Pass, said);
    assert!(story.one("QUA-16").duration_us.unwrap() > 200_000);
    let early = second(|second| {
        second.came_replaced = [vec![other("[]")], vec![Answer::Right; 3]].concat();
    });
    let said = "its replacement gave the same answer, before that []";
    verdict(&early, "QUA-16", Verdict::Pass, said);
    let wrong = second(|second| second.came_replaced = vec![other("wrong place")]);
    let said = "its replacement did not answer right within 60 s";
    verdict(&wrong, "QUA-16", Verdict::Note, said);
    shows_why(&wrong, "QUA-16");
    let died = Answer::Died("exit code 1: locked".to_owned());
    let late = second(|second| {
        second.came_replaced = [vec![died.clone()], vec![Answer::Right; 3]].concat();
    });
    let said = "its replacement died, and another one gave the same answer";
    verdict(&late, "QUA-16", Verdict::Note, said);
    let dead = second(|second| second.came_replaced = vec![died; 3]);
    let said = "its replacement died: exit code 1: locked";
    verdict(&dead, "QUA-16", Verdict::Note, said);
    shows_why(&dead, "QUA-16");
}

/// QUA-16
#[test]
fn a_kill_that_was_none_is_told_as_such() {
    let alone = second(|second| second.replaced = false);
    verdict(
        &alone,
        "QUA-16",
        Verdict::Note,
        "no replacement was started",
    );
    let idle = second(|second| second.pending = false);
    let said = "no question was pending when it was killed";
    verdict(&idle, "QUA-16", Verdict::Untestable, said);
    let lives = second(|second| second.dies = false);
    assert_eq!(lives.one("QUA-16").verdict, Verdict::HarnessError);
    let refused = second(|second| {
        second.killed = false;
        second.not_killed = Some("it could not be stopped");
    });
    verdict(
        &refused,
        "QUA-16",
        Verdict::NotApplicable,
        "it could not be stopped",
    );
    // Where no answer is known, the one from before the kill has to come again.
    let mut another = second(|second| {
        second.came_replaced = [vec![other("another answer")], vec![Answer::Right; 3]].concat();
    });
    another.knowledge = Knowledge::Shape;
    verdict(
        &another,
        "QUA-16",
        Verdict::Note,
        "its replacement gave another answer",
    );
}

/// QUA-18
#[test]
fn a_change_behind_the_servers_back_has_to_be_seen_in_time() {
    let story = Story::default();
    let said = "another file's change seen at once";
    verdict(&story, "QUA-18", Verdict::Pass, said);
    let later = second(|second| {
        second.came_changed = [vec![other("wrong place")], vec![Answer::Right; 3]].concat();
    });
    let case = later.one("QUA-18");
    assert_eq!(case.verdict, Verdict::Pass);
    assert!(case.message.contains("seen after") && case.message.ends_with("wrong place"));
    let never = |opened: Option<Vec<Answer>>| {
        second(|second| {
            second.came_changed = vec![other("wrong place")];
            second.came_opened = opened;
        })
    };
    for (opened, said) in [
        (
            Some(vec![Answer::Right; 3]),
            "not seen within 5.0 s, only once the file was opened and closed",
        ),
        (
            Some(vec![other("wrong place")]),
            "not seen within 5.0 s, nor once the file was opened and closed",
        ),
        (None, "not seen within 5.0 s"),
    ] {
        let story = never(opened);
        verdict(&story, "QUA-18", Verdict::Note, said);
        shows_why(&story, "QUA-18");
    }
}

/// QUA-18
#[test]
fn a_change_that_cannot_be_seen_is_no_finding() {
    let unready = second(|second| second.before_change = None);
    let said = "goToDefinition was not answered right before lib.x changed";
    verdict(&unready, "QUA-18", Verdict::Untestable, said);
    let same = second(|second| second.before_change = Some(Answer::Right));
    assert_eq!(same.one("QUA-18").verdict, Verdict::HarnessError);
    let without = Story::default().capability("definitionProvider", None);
    assert_eq!(without.one("QUA-18").verdict, Verdict::NotApplicable);
}

/// QUA-19
#[test]
fn what_was_written_is_listed() {
    let said = "nothing in the workspace was changed";
    verdict(&Story::default(), "QUA-19", Verdict::Pass, said);
    let written = |path: &str, change: &str| Written {
        path: path.to_owned(),
        change: change.to_owned(),
    };
    let story = Story {
        written: Difference {
            written: vec![written("target/", "added"), written("main.x", "changed")],
            in_part: false,
        },
        ..Story::default()
    };
    verdict(
        &story,
        "QUA-19",
        Verdict::Note,
        "added target/, changed main.x",
    );
    shows_why(&story, "QUA-19");
    let many = Story {
        written: Difference {
            written: (0..9).map(|n| written(&format!("f{n}"), "added")).collect(),
            in_part: true,
        },
        ..Story::default()
    };
    let said = "added f0, added f1, added f2, added f3 and 5 more; the workspace is large, only a \
                part of it was compared";
    verdict(&many, "QUA-19", Verdict::Note, said);
}

/// QUA-10, QUA-15, QUA-16, QUA-18
#[test]
fn without_a_second_start_its_clauses_are_untestable() {
    let story = second(|second| second.absent = Some("no question was answered right"));
    for clause in ["QUA-10", "QUA-15", "QUA-16", "QUA-18"] {
        verdict(
            &story,
            clause,
            Verdict::Untestable,
            "no question was answered right",
        );
    }
    let nowhere = Story {
        knowledge: Knowledge::Nothing,
        ..story
    };
    assert_eq!(nowhere.one("QUA-15").verdict, Verdict::NotApplicable);
}

/// What happens in the second start is not held against the orderly life of the first.
#[test]
fn the_second_start_does_not_spoil_the_judgement_of_the_first() {
    let story = second(|second| {
        second.rounds[3].0 = Answer::Died("exit code 1".to_owned());
        second.came_replaced = vec![other("[]")];
    });
    for clause in [
        "QUA-4", "QUA-5", "QUA-6", "QUA-7", "QUA-8", "QUA-9", "QUA-17",
    ] {
        for case in story.judge(clause) {
            assert_eq!(case.verdict, Verdict::Pass, "{case:#?}");
        }
    }
    assert!(
        story
            .judge("QUA-4")
            .iter()
            .any(|case| case.label.as_deref() == Some(Operation::Hover.name()))
    );
}
