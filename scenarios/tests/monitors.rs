//! The monitors against transcripts written by hand: each has some that must pass and some that
//! must fail, `monitors/<clause>/{pass,fail}-*.yaml`. `monitors/README.md` tells how they are
//! written.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod spoken;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dsh_reports::{Case, Verdict};
use dsh_scenarios::format::Who;
use dsh_scenarios::monitor::{MONITORS, Rules, audit, judge};
use dsh_scenarios::{Clauses, Level, Profile};
use dsh_transcript::Event;
use proptest::prelude::*;
use serde::Deserialize;

use spoken::{Expected, Spoken, speak};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transcript {
    /// What happens in it, for people.
    #[expect(dead_code, reason = "a transcript without a title is not read")]
    title: String,
    #[serde(default = "transient")]
    profile: Profile,
    #[serde(default)]
    foreign: bool,
    events: String,
}

fn transient() -> Profile {
    Profile::Transient
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("monitors")
}

/// (clause, file name, path) of every transcript.
fn files() -> Vec<(String, String, PathBuf)> {
    let mut all = Vec::new();
    for clause in fs::read_dir(folder()).unwrap() {
        let clause = clause.unwrap().path();
        if !clause.is_dir() {
            continue;
        }
        for file in fs::read_dir(&clause).unwrap() {
            let path = file.unwrap().path();
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
            all.push((name(&clause), name(&path), path));
        }
    }
    all.sort();
    all
}

fn read(path: &Path) -> (Transcript, Spoken) {
    let text = fs::read_to_string(path).unwrap();
    let transcript: Transcript =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let spoken =
        speak(&transcript.events).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (transcript, spoken)
}

fn found(events: &[Event], profile: Profile, foreign: bool) -> Vec<Expected> {
    let rules = Rules {
        profiles: &[profile],
        foreign,
    };
    judge(events, rules)
        .into_iter()
        .map(|finding| Expected {
            seq: finding.seq,
            by: finding.by,
            note: finding.level == Level::Should,
            clause: finding.clause,
        })
        .collect()
}

/// What is said of the clause, for either side that it binds.
fn audited(transcript: &Transcript, events: &[Event], clause: &str) -> Vec<Case> {
    let rules = Rules {
        profiles: &[transcript.profile],
        foreign: transcript.foreign,
    };
    [Who::Client, Who::Server]
        .into_iter()
        .flat_map(|side| audit(events, rules, side))
        .filter(|case| case.clauses == [clause.to_owned()])
        .collect()
}

fn level_of(clause: &str) -> Level {
    Clauses::embedded()
        .get(clause)
        .map_or(Level::Must, |clause| clause.level)
}

#[test]
fn each_transcript_has_the_findings_that_it_says() {
    let mut wrong = Vec::new();
    let files = files();
    assert!(files.len() > 60, "{} transcripts", files.len());
    for (clause, name, path) in files {
        let (transcript, spoken) = read(&path);
        let mut got = found(&spoken.events, transcript.profile, transcript.foreign);
        let mut want = spoken.expected;
        let order = |one: &Expected| (one.seq, one.clause.clone());
        got.sort_by_key(order);
        want.sort_by_key(order);
        if got != want {
            wrong.push(format!("{clause}/{name}: expected {want:?}, got {got:?}"));
        }
        let passes = name.starts_with("pass-");
        let mine = want.iter().any(|one| one.clause == clause);
        if passes != want.is_empty() || passes == mine {
            wrong.push(format!(
                "{clause}/{name}: the name says otherwise than the findings"
            ));
        }
        let audited = audited(&transcript, &spoken.events, &clause);
        let expected = match (passes, want.iter().find(|one| one.clause == clause)) {
            (true, _) => Verdict::Pass,
            (false, Some(one)) if one.note => Verdict::Note,
            (false, _) => Verdict::Fail,
        };
        // A clause that binds both sides is kept by the other one, or not its matter.
        if !audited.iter().any(|case| case.verdict == expected) {
            wrong.push(format!("{clause}/{name}: audited as {audited:?}"));
        }
        let shown = |case: &Case| case.evidence.iter().any(|event| event.decisive);
        if !passes && !audited.iter().any(shown) {
            wrong.push(format!(
                "{clause}/{name}: no decisive event in the evidence"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn each_monitor_has_transcripts_that_pass_and_that_fail() {
    let mut kinds: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (clause, name, _) in files() {
        let (pass, fail) = kinds.entry(clause).or_default();
        *pass += u32::from(name.starts_with("pass-"));
        *fail += u32::from(name.starts_with("fail-"));
    }
    for monitor in MONITORS {
        for clause in monitor.clauses {
            let (pass, fail) = kinds.get(*clause).copied().unwrap_or_default();
            assert!(pass > 0, "no transcript passes {clause}");
            assert!(fail > 0, "no transcript fails {clause}");
        }
    }
    let judged = |clause: &String| {
        MONITORS
            .iter()
            .any(|m| m.clauses.contains(&clause.as_str()))
    };
    let unjudged: Vec<&String> = kinds.keys().filter(|clause| !judged(clause)).collect();
    assert!(unjudged.is_empty(), "no monitor judges {unjudged:?}");
}

#[test]
fn monitors_judge_clauses_that_exist_and_are_of_their_profile() {
    for monitor in MONITORS {
        for id in monitor.clauses {
            if matches!(*id, "shape" | "framing") {
                continue;
            }
            let clause = Clauses::embedded().get(id).unwrap();
            // HST-8 is judged where it shows, beside the clauses it would be confused with.
            assert!(
                clause.profiles.contains(&monitor.profile) || *id == "HST-8",
                "{id} is not of {}",
                monitor.profile
            );
        }
    }
}

#[test]
fn a_clause_of_source_policy_is_a_note_for_a_foreign_client_only() {
    let spoken = speak("ready\n> 9 shutdown null\n< =9 null\n> exit\nended 0").unwrap();
    let own = found(&spoken.events, Profile::Transient, false);
    let foreign = found(&spoken.events, Profile::Transient, true);
    assert_eq!((own.len(), own[0].note), (1, false), "{own:?}");
    assert_eq!((foreign.len(), foreign[0].note), (1, true), "{foreign:?}");
    assert_eq!(level_of("DIS-2"), Level::Must);
}

#[test]
fn nothing_happened_is_untestable() {
    let rules = Rules {
        profiles: &[Profile::Transient],
        foreign: true,
    };
    for side in [Who::Client, Who::Server] {
        let cases = audit(&[], rules, side);
        assert!(cases.len() > 4);
        assert!(cases.iter().all(|case| case.verdict == Verdict::Untestable));
    }
}

/// OPN-4: whether a process that is torn down got its close is a matter of moments; that the clause was
/// judged is not.
#[test]
fn what_was_opened_is_judged_whether_a_close_came_or_not() {
    let rules = Rules {
        profiles: &[Profile::Transient],
        foreign: false,
    };
    for close in ["", "> close a.ts\n"] {
        let text = format!("ready\n> open a.ts\n> 2 ask hover a.ts\n< =2 null\n{close}killed");
        let spoken = speak(&text).unwrap();
        let cases = audit(&spoken.events, rules, Who::Client);
        let of_clause = |case: &&Case| case.clauses.iter().any(|clause| clause == "OPN-4");
        let verdicts: Vec<_> = cases
            .iter()
            .filter(of_clause)
            .map(|case| case.verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Pass], "{close:?}");
    }
}

/// A big recording is judged in time that grows as its size does: a rule that looked at all open
/// documents, or all requests, for each event would take minutes here.
#[test]
fn many_documents_and_requests_are_judged_in_linear_time() {
    let mut text = vec!["ready\n".to_owned()];
    for n in 0..4_000 {
        text.push(format!("> open f{n}.ts\n> {} ask hover f{n}.ts\n", n + 10));
    }
    for n in 0..4_000 {
        text.push(format!("< =\"{n}\" null\n"));
    }
    let spoken = speak(&text.concat()).unwrap();
    let all = found(&spoken.events, Profile::Transient, false);
    assert!(all.len() > 10_000, "{}", all.len());
}

#[test]
fn deep_nesting_and_odd_members_are_no_trouble() {
    for body in [
        "[".repeat(100_000) + &"]".repeat(100_000),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}{}}}"#,
            "{\"a\":".repeat(90_000),
            "1".to_owned() + &"}".repeat(90_000)
        ),
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1e400,"method":"x"}"#.to_owned(),
    ] {
        for direction in [
            dsh_transcript::Direction::ToServer,
            dsh_transcript::Direction::ToClient,
        ] {
            let events = [spoken::event(
                0,
                dsh_transcript::EventBody::Frame(dsh_transcript::Frame::conforming(
                    direction,
                    0,
                    body.as_bytes(),
                )),
            )];
            found(&events, Profile::Transient, false);
        }
    }
}

/// One query of a session that keeps every rule: file, operation, and how it goes.
#[derive(Clone, Copy, Debug)]
enum Course {
    Answered,
    Failed,
    Stale,
    CancelledInTime,
    /// The cancellation crosses the answer.
    CancelledTooLate,
    CancelledBeforeAsking,
}

fn course() -> impl Strategy<Value = Course> {
    prop_oneof![
        Just(Course::Answered),
        Just(Course::Failed),
        Just(Course::Stale),
        Just(Course::CancelledInTime),
        Just(Course::CancelledTooLate),
        Just(Course::CancelledBeforeAsking),
    ]
}

fn conforming(queries: &[(u8, u8, Course, bool)], graceful: bool) -> String {
    let mut text = vec!["ready\n".to_owned()];
    let mut id = 1;
    for (file, operation, course, asked) in queries {
        let file = format!("f{}.ts", file % 3);
        let operation =
            ["definition", "references", "implementation", "hover"][usize::from(operation % 4)];
        text.push(format!("> open {file}\n"));
        let ask = |id: i32| format!("> {id} ask {operation} {file}\n");
        let server_asks = format!(
            "< {id} workspace/configuration {{\"items\":[{{}},{{}}]}}\n> ={id} [null,null]\n"
        );
        match course {
            Course::CancelledBeforeAsking => {}
            Course::Answered | Course::Failed => {
                id += 1;
                text.push(ask(id));
                if *asked {
                    text.push(server_asks);
                }
                text.push(match course {
                    Course::Answered => format!("< ={id} null\n"),
                    _ => format!("< !{id} -32603 no\n"),
                });
            }
            Course::Stale => {
                text.push(ask(id + 1));
                text.push(format!("< !{} -32801 changed\n", id + 1));
                id += 2;
                text.push(ask(id));
                text.push(format!("< ={id} null\n"));
            }
            Course::CancelledInTime => {
                id += 1;
                text.push(ask(id));
                text.push(format!("> cancel {id}\n< !{id} -32800 cancelled\n"));
            }
            Course::CancelledTooLate => {
                id += 1;
                text.push(ask(id));
                text.push(format!("< ={id} null\n> cancel {id}\n"));
            }
        }
        text.push(format!("> close {file}\n"));
    }
    if graceful {
        text.push(format!(
            "> {} shutdown\n< ={} null\n> exit\nended 0\n",
            id + 1,
            id + 1
        ));
    } else {
        text.push("killed\n".to_owned());
    }
    text.concat()
}

/// Any message, mostly of a kind that means something.
fn line() -> impl Strategy<Value = String> {
    let way = prop_oneof![Just(">"), Just("<")];
    let id = prop_oneof![
        Just("1"),
        Just("2"),
        Just("\"2\""),
        Just("null"),
        Just("-1.5")
    ];
    let method = prop_oneof![
        Just("initialize"),
        Just("initialized"),
        Just("shutdown"),
        Just("exit"),
        Just("$/cancelRequest"),
        Just("textDocument/didOpen"),
        Just("textDocument/didClose"),
        Just("textDocument/hover"),
        Just("textDocument/references"),
        Just("workspace/configuration"),
        Just("workspace/workspaceFolders"),
        Just("client/registerCapability"),
        Just("$/odd"),
    ];
    let params = prop_oneof![
        Just(""),
        Just("null"),
        Just("{\"id\":2}"),
        Just("{\"textDocument\":{\"uri\":\"file:///a\"}}"),
        Just("{\"textDocument\":{\"uri\":7,\"version\":-1}}"),
        Just("{\"items\":[1],\"registrations\":[{\"method\":\"textDocument/didOpen\"},3]}"),
        Just("[[]]"),
    ];
    prop_oneof![
        8 => (way.clone(), id.clone(), method.clone(), params.clone())
            .prop_map(|(way, id, method, params)| format!("{way} {id} {method} {params}")),
        8 => (way.clone(), method, params.clone())
            .prop_map(|(way, method, params)| format!("{way} {method} {params}")),
        6 => (way.clone(), id.clone(), params)
            .prop_map(|(way, id, value)| format!("{way} ={id} {}", if value.is_empty() { "1" } else { value })),
        3 => (way.clone(), id).prop_map(|(way, id)| format!("{way} !{id} -32801 x")),
        1 => (way.clone(), ".{0,20}").prop_map(|(way, text)| format!("{way} body {}", text.replace('!', ""))),
        1 => way.prop_map(|way| format!("{way} torn")),
        1 => Just("> bytes log".to_owned()),
        1 => Just("eof".to_owned()),
        1 => Just("ended 0".to_owned()),
        1 => Just("killed".to_owned()),
        1 => Just("ready".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_is_too_much(lines in prop::collection::vec(line(), 0..40)) {
        let text = lines.join("\n");
        if let Ok(spoken) = speak(&text) {
            for profile in [Profile::LspBase, Profile::Transient] {
                let own = found(&spoken.events, profile, false);
                let foreign = found(&spoken.events, profile, true);
                // The same is found, only weighed otherwise.
                prop_assert_eq!(own.len(), foreign.len());
                prop_assert!(own.iter().all(|one| spoken.events.iter().any(|e| e.seq == one.seq)));
                let order: Vec<u64> = own.iter().map(|one| one.seq).collect();
                prop_assert!(order.is_sorted());
            }
            // What LSP demands is demanded by the stricter profile too.
            let base = found(&spoken.events, Profile::LspBase, false);
            let all = found(&spoken.events, Profile::Transient, false);
            prop_assert!(base.iter().all(|one| one.clause == "SRQ-5" || all.contains(one)));
        }
    }

    #[test]
    fn a_session_that_keeps_the_rules_has_no_findings(
        queries in prop::collection::vec((any::<u8>(), any::<u8>(), course(), any::<bool>()), 0..12),
        graceful in any::<bool>(),
    ) {
        let spoken = speak(&conforming(&queries, graceful)).unwrap();
        for profile in [Profile::LspBase, Profile::Transient] {
            prop_assert_eq!(found(&spoken.events, profile, false), vec![]);
        }
    }

    /// Whoever looks at a part of a session only sees nothing that was not there.
    #[test]
    fn a_recording_that_ends_early_has_no_findings(
        queries in prop::collection::vec((any::<u8>(), any::<u8>(), course(), any::<bool>()), 0..6),
        end in any::<prop::sample::Index>(),
    ) {
        let spoken = speak(&conforming(&queries, true)).unwrap();
        let events = &spoken.events[..end.index(spoken.events.len() + 1)];
        prop_assert_eq!(found(events, Profile::Transient, false), vec![]);
    }
}

#[test]
fn who_broke_it_is_written_as_a_word() {
    let spoken = speak("> x ! client INI-1\n< y ! server note WIRE-8").unwrap();
    assert_eq!(
        spoken.expected,
        [
            Expected {
                seq: 0,
                by: Who::Client,
                note: false,
                clause: "INI-1".to_owned(),
            },
            Expected {
                seq: 1,
                by: Who::Server,
                note: true,
                clause: "WIRE-8".to_owned(),
            },
        ]
    );
}
