use std::collections::BTreeMap;

use dsh_reports::{Level, Measured, Persona, Subject, SubjectKind};

use super::*;
use crate::judge::wiretap::Story;
use crate::samples::Operation;
use crate::setting::Suggested;

fn target() -> Target {
    Target::of_command("x", &["/bin/x".to_owned()], BTreeMap::new())
}

fn told(story: &Story) -> Vec<Event> {
    story.told().events
}

#[track_caller]
fn tried(clause: &str, events: &[Event], target: &Target) -> Vec<String> {
    let trials = trials(clause, events, target);
    trials.iter().map(|settings| named(settings)).collect()
}

#[test]
fn answers_are_sought_with_one_setting_then_two_then_all() {
    let asks = told(&Story::default());
    assert_eq!(
        tried("QUA-4", &asks, &target()),
        [
            "announceConfiguration: true",
            "configuration: {}",
            "initializationOptions: {}",
            "announceConfiguration: true with configuration: {}",
            "announceConfiguration: true with initializationOptions: {}",
            "configuration: {} with initializationOptions: {}",
            "announceConfiguration: true with configuration: {} with initializationOptions: {}",
        ]
    );
}

#[test]
fn what_was_seen_to_be_of_no_use_is_tried_last() {
    let way = |name: &str, outcome| Persona {
        name: name.to_owned(),
        summary: String::new(),
        outcome,
        detail: None,
        first_right_us: None,
    };
    let mut run = Run::new(Subject::named(SubjectKind::Server, "x"));
    run.measured = Some(Measured {
        personas: vec![
            way("configuration-announced", PersonaOutcome::Silent),
            way("configuration-empty", PersonaOutcome::NotAsked),
        ],
        ..Measured::default()
    });
    let trials = trials("QUA-4", &told(&Story::default()), &target());
    let count = trials.len();
    let ordered: Vec<String> = unpromising_last(trials, &run)
        .iter()
        .map(|settings| named(settings))
        .collect();
    assert_eq!(ordered[0], "configuration: {}");
    assert_eq!(ordered[count - 1], "announceConfiguration: true");
    assert_eq!(ordered.len(), count);
}

#[test]
fn a_configuration_that_nobody_asked_for_is_tried_with_its_announcement_only() {
    let silent = told(&Story {
        server_requests: vec![],
        ..Story::default()
    });
    let all = tried("QUA-4", &silent, &target());
    assert!(!all.contains(&"configuration: {}".to_owned()), "{all:?}");
    assert!(
        all.contains(&"announceConfiguration: true with configuration: {}".to_owned()),
        "{all:?}"
    );
}

#[test]
fn what_is_given_already_is_not_tried() {
    let given = Target {
        configuration: json!({"a": 1}),
        announce_configuration: true,
        rising_versions: true,
        ..target()
    };
    let events = told(&Story::default());
    assert_eq!(
        tried("QUA-4", &events, &given),
        ["initializationOptions: {}"]
    );
    assert_eq!(tried("QUA-5", &events, &given), Vec::<String>::new());
}

#[test]
fn asking_again_is_tried_where_an_answer_was_stale() {
    let error = json!({"error": {"code": -32801, "message": "content modified"}});
    let stale = told(&Story {
        answers: vec![(Operation::Hover, Some(error))],
        ..Story::default()
    });
    assert_eq!(tried("QUA-4", &stale, &target())[0], "retryStale: 5");
    let fine = told(&Story::default());
    assert_ne!(tried("QUA-4", &fine, &target())[0], "retryStale: 5");
}

#[test]
fn what_the_entry_suggests_comes_first_and_once() {
    let suggested = Suggested {
        against: "old texts".to_owned(),
        settings: vec![Setting::RisingVersions],
    };
    let target = Target {
        remedies: vec![
            Suggested {
                settings: vec![Setting::Args(vec!["-v".to_owned()])],
                ..suggested.clone()
            },
            suggested,
        ],
        ..target()
    };
    assert_eq!(
        tried("QUA-5", &[], &target),
        ["args: [\"-v\"]", "versions: rising"]
    );
}

#[test]
fn a_longer_end_is_tried_against_a_slow_one_and_nothing_against_a_foreign_encoding() {
    assert_eq!(
        tried("QUA-8", &[], &target()),
        ["shutdownTimeoutMs: 20000", "shutdownTimeoutMs: 60000"]
    );
    for clause in ["QUA-2", "QUA-3", "QUA-6", "QUA-7"] {
        assert_eq!(tried(clause, &[], &target()), Vec::<String>::new());
    }
}

#[test]
fn the_advised_timeout_is_twice_the_slowest_in_steps_and_never_below_the_tools_own() {
    for (slowest_ms, timeout_ms) in [
        (0, 60_000),
        (400, 60_000),
        (30_000, 60_000),
        (30_001, 65_000),
        (47_000, 95_000),
        (47_600, 100_000),
    ] {
        let slowest = Duration::from_millis(slowest_ms);
        assert_eq!(advised_timeout_ms(slowest), timeout_ms, "{slowest_ms}");
    }
}

#[test]
fn musts_that_failed_are_named_once_and_what_holds_was_judged() {
    let case = |id: &str, clause: &str, level, verdict| {
        let mut case = Case::new(clause, level, "answers", verdict, "said");
        id.clone_into(&mut case.id);
        case
    };
    let mut run = Run::new(Subject::named(SubjectKind::Server, "x"));
    run.cases = vec![
        case("QUA-1", "QUA-1", Level::Must, Verdict::Pass),
        case("QUA-4/a", "QUA-4", Level::Must, Verdict::Pass),
        case("QUA-4/b", "QUA-4", Level::Must, Verdict::Timeout),
        case("QUA-4/c", "QUA-4", Level::Must, Verdict::Crash),
        case("QUA-5", "QUA-5", Level::Must, Verdict::Untestable),
        case("QUA-8", "QUA-8", Level::Must, Verdict::NotApplicable),
        case("QUA-9", "QUA-9", Level::Should, Verdict::Note),
    ];
    let failed: Vec<(String, String)> = failed(&run)
        .into_iter()
        .map(|(clause, case)| (clause, case.id.clone()))
        .collect();
    assert_eq!(failed, [("QUA-4".to_owned(), "QUA-4/b".to_owned())]);
    let held = |run: &Run| ["QUA-1", "QUA-4", "QUA-5", "QUA-8", "QUA-99"].map(|id| holds(run, id));
    // Where no answer is known, nothing more can be seen than that it does not fail.
    assert_eq!(held(&run), [true, false, false, true, false]);
    run.sample = Some("x".to_owned());
    assert_eq!(held(&run), [true, false, false, false, false]);
}
