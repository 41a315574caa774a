//! What follows from what was seen, way by way.

use std::collections::BTreeSet;
use std::time::Duration;

use dsh_reports::PersonaOutcome;
use dsh_transcript::{EventBody, Recorder};

use super::client::Departure;
use super::persona::{About, Handshake, Seen, Sent, outcome};
use super::*;
use crate::readiness::{Answer, Reply, Track};
use serde_json::{Value, json};

fn reply(answer: Answer) -> Reply {
    Reply {
        answer,
        detail: None,
        latency_us: 10,
        seq: 0,
    }
}

fn track(operation: Operation, answers: &[Answer]) -> (Operation, Track) {
    let mut track = Track::new(operation.name(), Duration::from_secs(9));
    track.begin(0);
    for (n, answer) in (1..).zip(answers) {
        track.observe(n * 1_000, reply(answer.clone()));
    }
    (operation, track)
}

fn null() -> Answer {
    Answer::Other("null".to_owned())
}

const DEFINITION: Operation = Operation::GoToDefinition;
const HOVER: Operation = Operation::Hover;

/// A server that was initialized, gave these answers to two questions, and ended in order.
fn seen(definition: &[Answer], hover: &[Answer]) -> Seen {
    let answered = |answer: &Answer| matches!(answer, Answer::Right | Answer::Other(_));
    Seen {
        tracks: vec![track(DEFINITION, definition), track(HOVER, hover)],
        answered: definition.iter().chain(hover).any(answered),
        departure: Some(Departure {
            took_us: Some(5),
            code: Some(0),
            ..Departure::default()
        }),
        sent: Sent {
            request: true,
            configuration: true,
            progress: true,
        },
        ..Seen::new(Handshake::Initialized)
    }
}

fn good() -> Seen {
    seen(&[Answer::Right], &[null(), Answer::Right])
}

fn both() -> BTreeSet<Operation> {
    BTreeSet::from([DEFINITION, HOVER])
}

#[track_caller]
fn comes_to(about: About, seen: &Seen, expected: PersonaOutcome, said: &str) {
    let (outcome, detail) = outcome(about, seen, &both());
    let detail = detail.unwrap_or_default();
    assert_eq!(outcome, expected, "{detail}");
    assert!(detail.contains(said), "{detail}");
    assert_eq!(detail.is_empty(), said.is_empty(), "{detail}");
}

#[test]
fn a_server_that_answers_rightly_and_ends_is_fine() {
    for about in [
        About::Requests,
        About::Configuration,
        About::Progress,
        About::End,
        About::Everything,
    ] {
        comes_to(about, &good(), PersonaOutcome::Fine, "");
    }
    assert_eq!(good().first_right_us(), Some(1_000));
    assert_eq!(good().all_right_us(), Some(2_000));
}

#[test]
fn answers_that_are_never_right_are_wrong_and_none_at_all_is_silence() {
    let wrong = seen(&[Answer::Right], &[null(), null()]);
    comes_to(
        About::Everything,
        &wrong,
        PersonaOutcome::Wrong,
        "no right answer to hover: 2 × null",
    );
    let silent = seen(&[Answer::Silent], &[]);
    comes_to(
        About::Everything,
        &silent,
        PersonaOutcome::Silent,
        "no question",
    );
    // Nothing right is wrong, also where the usual way gets nothing right.
    let nothing = seen(&[null()], &[null()]);
    let (outcome, _) = outcome(About::Everything, &nothing, &BTreeSet::new());
    assert_eq!(outcome, PersonaOutcome::Wrong);
}

#[test]
fn what_the_usual_way_gets_wrong_is_no_fault_of_another() {
    let half = seen(&[Answer::Right], &[null()]);
    let usual = BTreeSet::from([DEFINITION]);
    let (outcome, detail) = outcome(About::Requests, &half, &usual);
    assert_eq!(outcome, PersonaOutcome::Fine);
    assert_eq!(
        detail.as_deref(),
        Some(
            "no worse than the usual way, which gets no right answer there either: hover: 1 × null"
        )
    );
}

#[test]
fn death_is_told_with_how() {
    let dead = Seen {
        died: Some("exit code 1".to_owned()),
        departure: None,
        ..good()
    };
    comes_to(About::Requests, &dead, PersonaOutcome::Dead, "exit code 1");
    let at_once = Seen::new(Handshake::Died("signal 9".to_owned()));
    comes_to(About::Requests, &at_once, PersonaOutcome::Dead, "signal 9");
}

#[test]
fn without_a_handshake_there_is_silence() {
    let silent = Seen::new(Handshake::Silent);
    comes_to(
        About::Everything,
        &silent,
        PersonaOutcome::Silent,
        "initialize was not answered",
    );
    let refused = Seen::new(Handshake::Refused("error -32603: no".to_owned()));
    comes_to(
        About::Everything,
        &refused,
        PersonaOutcome::Silent,
        "refused with error -32603",
    );
}

#[test]
fn a_process_that_has_to_be_killed_does_not_end() {
    let stays = |departure| Seen {
        departure: Some(departure),
        ..good()
    };
    let deaf = stays(Departure::default());
    comes_to(
        About::End,
        &deaf,
        PersonaOutcome::DoesNotEnd,
        "stayed after exit",
    );
    let refuses = stays(Departure {
        refused: Some("error -32602: params".to_owned()),
        ..Departure::default()
    });
    comes_to(
        About::End,
        &refuses,
        PersonaOutcome::DoesNotEnd,
        "refused with error -32602",
    );
    let silent = stays(Departure {
        unanswered: true,
        ..Departure::default()
    });
    comes_to(
        About::End,
        &silent,
        PersonaOutcome::DoesNotEnd,
        "not answered",
    );
    let waits = stays(Departure {
        took_us: Some(1),
        needed_eof: true,
        ..Departure::default()
    });
    comes_to(
        About::End,
        &waits,
        PersonaOutcome::Fine,
        "exit alone does not end it, closing its stdin does",
    );
}

#[test]
fn a_server_that_asks_for_nothing_was_not_asked() {
    let quiet = Seen {
        sent: Sent::default(),
        ..good()
    };
    for (about, said) in [
        (About::Requests, "no request"),
        (About::Configuration, "workspace/configuration"),
        (About::Progress, "no progress"),
    ] {
        comes_to(about, &quiet, PersonaOutcome::NotAsked, said);
    }
    comes_to(About::End, &quiet, PersonaOutcome::Fine, "");
    // It saw nothing of the way, so what goes wrong is not the way's fault; but it is told.
    let wrong = Seen {
        sent: Sent::default(),
        ..seen(&[null()], &[null()])
    };
    comes_to(
        About::Requests,
        &wrong,
        PersonaOutcome::NotAsked,
        "no difference to it; all the same there was no right answer to goToDefinition: 1 × null",
    );
    comes_to(About::Progress, &wrong, PersonaOutcome::Wrong, "null");
}

#[test]
fn the_host_s_process_is_the_first_that_is_not_raw() {
    let recorder = Recorder::new();
    let start = |process| {
        let body = EventBody::ProcessStarted {
            pid: process,
            argv: Vec::new(),
            cwd: None,
        };
        recorder.emit(Some(process), body);
    };
    start(1);
    recorder.emit(Some(1), EventBody::note(RAW, "x"));
    assert_eq!(host_process(&recorder.events()), None);
    start(2);
    start(3);
    assert_eq!(host_process(&recorder.events()), Some(2));
}

#[test]
fn the_ways_that_are_tried_follow_from_what_is_configured() {
    let names = |steps: Vec<Step>| -> Vec<&str> { steps.iter().map(|step| step.name).collect() };
    let null = || Manner::usual(Value::Null);
    let given = || Manner::usual(json!({"a": 1}));
    let fine = names(ways::first(&null(), true));
    assert!(fine.contains(&"configuration-empty"));
    assert!(!fine.contains(&"configuration-empty-announced"));
    let bad = names(ways::first(&null(), false));
    assert_eq!(bad.last(), Some(&"requests-refused"));
    assert!(bad.contains(&"configuration-empty-announced"));
    assert!(!names(ways::later(&null())).contains(&"configuration-null"));
    assert!(names(ways::later(&given())).contains(&"configuration-null"));
    let empty = names(ways::first(&Manner::usual(json!({})), false));
    assert_eq!(empty, ["configuration-announced", "requests-refused"]);
}
