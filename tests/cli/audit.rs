//! `audit`: recordings of sessions are judged, and files that are none are refused.

use std::io::Write as _;
use std::path::Path;

use dsh_reports::{Conclusion, Verdict};
use dsh_transcript::{Direction, Event, EventBody, Frame, jsonl};
use serde_json::{Value, json};

use crate::support::Desk;

/// A session of an editor: it keeps the rules of LSP, and keeps its document open.
fn editor() -> Vec<Value> {
    let uri = json!({"uri": "file:///w/a.ts"});
    let place = json!({"textDocument": uri, "position": {"line": 0, "character": 1}});
    let open = json!({"uri": "file:///w/a.ts", "languageId": "ts", "version": 1, "text": "x"});
    vec![
        json!({"id": 0, "method": "initialize", "params": {
            "processId": 1, "rootUri": "file:///w", "capabilities": {}}}),
        json!({"<": {"id": 0, "result": {"capabilities": {
            "textDocumentSync": 1, "hoverProvider": true}}}}),
        json!({"method": "initialized", "params": {}}),
        json!({"method": "textDocument/didOpen", "params": {"textDocument": open}}),
        json!({"id": 1, "method": "textDocument/hover", "params": place}),
        json!({"<": {"id": 1, "result": null}}),
        json!({"id": 2, "method": "textDocument/hover", "params": place}),
        json!({"<": {"id": 2, "result": null}}),
        json!({"method": "textDocument/didClose", "params": {"textDocument": uri}}),
        json!({"id": 3, "method": "shutdown"}),
        json!({"<": {"id": 3, "result": null}}),
        json!({"method": "exit"}),
    ]
}

fn events(messages: &[Value]) -> Vec<Event> {
    let started = EventBody::ProcessStarted {
        pid: 7,
        argv: vec!["/usr/bin/some-server".to_owned()],
        cwd: None,
    };
    let frames = messages.iter().map(|message| {
        let (direction, message) = match message.get("<") {
            Some(message) => (Direction::ToClient, message),
            None => (Direction::ToServer, message),
        };
        let mut body = json!({"jsonrpc": "2.0"});
        for (key, value) in message.as_object().unwrap() {
            body[key] = value.clone();
        }
        let body = body.to_string();
        EventBody::Frame(Frame::conforming(direction, 0, body.as_bytes()))
    });
    std::iter::once(started)
        .chain(frames)
        .zip(0..)
        .map(|(body, seq)| Event {
            seq,
            at_us: seq * 10,
            process: Some(1),
            body,
        })
        .collect()
}

fn record(path: &Path, messages: &[Value]) {
    let mut file = std::fs::File::create(path).unwrap();
    jsonl::write(&mut file, &events(messages)).unwrap();
}

#[test]
fn a_client_that_keeps_the_rules_conforms() {
    let desk = Desk::new();
    record(&desk.path().join("t.jsonl"), &editor());
    let said = desk.run(&["audit", "t.jsonl"]).ended(0);
    let said = said.out_has("client of some-server").out_has("CONFORMS");
    assert_eq!(said.err, "");
}

/// What a check says on purpose to measure a server is no fault of a client.
#[test]
fn processes_that_a_check_measured_with_are_left_out() {
    let desk = Desk::new();
    let mut wrong = editor();
    wrong.swap(9, 11);
    let mut all = events(&editor());
    let raw = events(&wrong)
        .into_iter()
        .enumerate()
        .flat_map(|(index, event)| {
            let note = Event {
                body: EventBody::note(dsh_e2e::RAW, "usual, warm"),
                ..event.clone()
            };
            [event].into_iter().chain((index == 0).then_some(note))
        });
    all.extend(raw.map(|event| Event {
        process: Some(2),
        ..event
    }));
    for (seq, event) in (0..).zip(&mut all) {
        (event.seq, event.at_us) = (seq, seq * 10);
    }
    let record = |name: &str, events: &[Event]| {
        let mut file = std::fs::File::create(desk.path().join(name)).unwrap();
        jsonl::write(&mut file, events).unwrap();
    };
    record("t.jsonl", &all);
    desk.run(&["audit", "t.jsonl"])
        .ended(0)
        .out_has("CONFORMS")
        .err_has("t.jsonl: 1 process that check measured the server with is not judged");
    // With nothing else in it there is nothing to judge.
    all.retain(|event| event.process == Some(2));
    for (seq, event) in (0..).zip(&mut all) {
        event.seq = seq;
    }
    record("raw.jsonl", &all);
    desk.run(&["audit", "raw.jsonl"])
        .ended(5)
        .err_has("1 process that check measured the server with is not judged")
        .err_has("nothing passed between client and server");
}

#[test]
fn what_breaks_a_rule_is_shown_with_the_frames_around_it() {
    let desk = Desk::new();
    let mut session = editor();
    session.swap(9, 11);
    record(&desk.path().join("t.jsonl"), &session);
    let said = desk.run(&["audit", "t.jsonl", "--format", "json"]).ended(1);
    let report = said.report();
    let case = report.runs[0]
        .cases
        .iter()
        .find(|case| case.id == "WIRE-4")
        .unwrap();
    assert_eq!(case.verdict, Verdict::Fail);
    assert!(
        case.evidence
            .iter()
            .any(|event| event.decisive && event.seq == 12)
    );
    assert!(case.evidence.len() > 2, "{:?}", case.evidence);
    let again = case.reproduce.clone().unwrap();
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    desk.run(&words)
        .ended(1)
        .out_has("DOES NOT CONFORM")
        .out_has("WIRE-4")
        .out_has("shutdown came after exit");
}

#[test]
fn another_profile_demands_more() {
    let desk = Desk::new();
    record(&desk.path().join("t.jsonl"), &editor());
    desk.run(&["audit", "t.jsonl", "--profile", "transient"])
        .ended(1)
        .out_has("INI-2")
        .out_has("OPN-1");
    desk.run(&["audit", "t.jsonl", "--profile", "tool"])
        .ended(2)
        .err_has("lsp-base and transient");
}

#[test]
fn each_side_answers_for_itself() {
    let desk = Desk::new();
    let mut session = editor();
    session[5] = json!({"<": {"id": 1, "result": {"contents": 3}}});
    record(&desk.path().join("t.jsonl"), &session);
    desk.run(&["audit", "t.jsonl"])
        .ended(0)
        .out_has("the server breaks shape; --side both shows where");
    let said = desk.run(&["audit", "t.jsonl", "--side", "both", "--format", "json"]);
    let report = said.ended(1).report();
    assert_eq!(report.runs.len(), 2);
    assert!(report.runs[0].conclusion.conforms());
    assert_eq!(
        report.runs[1].conclusion,
        Conclusion::NotQualified {
            musts: vec!["shape".to_owned()]
        }
    );
}

/// What is not in the recording is not judged, and listed with the reason.
#[test]
fn each_clause_is_told_of_judged_or_not() {
    let desk = Desk::new();
    record(&desk.path().join("t.jsonl"), &editor());
    let report = desk
        .run(&["audit", "t.jsonl", "--format", "json"])
        .ended(0)
        .report();
    let coverage = &report.runs[0].coverage;
    let of = |id: &str| coverage.iter().find(|clause| clause.clause == id).unwrap();
    assert_eq!(of("INI-1").verdict, Some(Verdict::Pass));
    let cancelled = of("CAN-7");
    assert_eq!(cancelled.verdict, None);
    let why = cancelled.not_run.as_deref().unwrap();
    assert!(why.contains("nothing in the recording"), "{why}");
}

#[test]
fn a_recording_of_nothing_is_told() {
    let desk = Desk::new();
    record(&desk.path().join("t.jsonl"), &[]);
    let said = desk.run(&["audit", "t.jsonl"]).ended(5);
    let said = said.err_has("t.jsonl: nothing passed between client and server");
    assert_eq!(said.out, "");
}

#[test]
fn files_that_are_no_recordings_are_refused_with_their_line() {
    let desk = Desk::new();
    let whole = {
        let mut bytes = Vec::new();
        jsonl::write(&mut bytes, &events(&editor())).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let lines: Vec<&str> = whole.lines().collect();
    let cut = &whole[..whole.len() - 10];
    let header = lines[0];
    let newer = whole.replacen("dsh-transcript/1", "dsh-transcript/2", 1);
    for (text, why) in [
        ("", "an empty file is no transcript"),
        ("hello\n", "line 1 is no transcript header"),
        (newer.as_str(), "dsh-transcript/2"),
        (cut, "line 14 is cut off"),
        (
            &format!("{header}\n{}\n{}\n", lines[1], lines[3]),
            "line 3: event 2 where event 1 should be",
        ),
        (&format!("{header}\n{{\"seq\":0}}\n"), "line 2, column"),
    ] {
        let mut file = std::fs::File::create(desk.path().join("t.jsonl")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let said = desk.run(&["audit", "t.jsonl"]).ended(2);
        let said = said.err_has("error: t.jsonl: ").err_has(why);
        assert_eq!(said.out, "");
    }
    desk.run(&["audit", "missing.jsonl"])
        .ended(2)
        .err_has("missing.jsonl: cannot be read");
    desk.run(&["audit"]).ended(2);
}
