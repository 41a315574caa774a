//! Each clause seen to hold and seen not to hold, on transcripts made by hand.

mod second;
mod unknown;

use dsh_reports::Verdict;
use dsh_transcript::{Member, Termination};
use serde_json::json;

use super::Knowledge;
use super::wiretap::{Story, clauses};
use crate::readiness::Answer;
use crate::samples::Operation;

#[track_caller]
fn verdict(story: &Story, clause: &str, verdict: Verdict, message: &str) {
    let case = story.one(clause);
    assert_eq!(
        (case.verdict, case.message.as_str()),
        (verdict, message),
        "{case:#?}"
    );
}

/// What every red case and every note has to show.
#[track_caller]
fn shows_why(story: &Story, clause: &str) {
    for case in story.judge(clause) {
        assert!(
            case.expected.is_some(),
            "{clause} does not say what was expected: {case:#?}"
        );
        assert!(
            case.evidence.iter().any(|event| event.decisive),
            "{clause} has no evidence"
        );
    }
}

fn member(name: &str) -> Member {
    Member {
        pid: 77,
        name: name.to_owned(),
    }
}

#[test]
fn every_probe_has_a_clause_that_a_probe_judges() {
    for probe in clauses() {
        let clause = dsh_scenarios::Clauses::embedded()
            .get(probe.clause)
            .unwrap();
        assert!(
            clause.judged.contains(&dsh_scenarios::Judged::Probe),
            "{}",
            clause.id
        );
    }
}

#[test]
fn a_good_life_passes_every_probe() {
    for probe in clauses() {
        for case in Story::default().judge(probe.clause) {
            assert_eq!(case.verdict, Verdict::Pass, "{case:#?}");
        }
    }
}

#[test]
fn a_server_that_is_never_initialized_leaves_the_rest_untestable_and_never_passes() {
    let story = Story {
        handshake: None,
        ending: None,
        ..Story::default()
    };
    for probe in clauses() {
        for case in story.judge(probe.clause) {
            assert!(case.verdict.is_red(), "{case:#?}");
        }
    }
}

/// QUA-1
#[test]
fn initialize_refused_unanswered_or_fatal_is_told_apart() {
    verdict(
        &Story::default(),
        "QUA-1",
        Verdict::Pass,
        "initialize answered",
    );
    let error = json!({"error": {"code": -32603, "message": "no TypeScript found"}});
    let refused = Story {
        handshake: Some(error),
        ..Story::default()
    };
    verdict(
        &refused,
        "QUA-1",
        Verdict::Fail,
        "initialize refused with error -32603: no TypeScript found",
    );
    shows_why(&refused, "QUA-1");
    let silent = Story {
        handshake: None,
        ending: None,
        ended_by_us: true,
        ..Story::default()
    };
    verdict(
        &silent,
        "QUA-1",
        Verdict::Timeout,
        "initialize not answered within 60 s",
    );
    shows_why(&silent, "QUA-1");
    let dead = Story {
        handshake: None,
        ending: None,
        stderr: Some("Traceback\nImportError: cannot import name 'LanguageServer'\n"),
        ..Story::default()
    };
    verdict(
        &dead,
        "QUA-1",
        Verdict::Crash,
        "ended before it answered initialize: exit code 1, stderr: \"ImportError: cannot import name 'LanguageServer'\"",
    );
    shows_why(&dead, "QUA-1");
    let bare = Story {
        handshake: Some(json!({"result": {}})),
        ..Story::default()
    };
    verdict(
        &bare,
        "QUA-1",
        Verdict::Fail,
        "the initialize result has no capabilities object",
    );
}

/// QUA-1, QUA-2, QUA-3, QUA-11
#[test]
fn a_result_that_is_no_object_of_capabilities_says_nothing() {
    let story = Story {
        handshake: Some(json!({"result": [1]})),
        ending: None,
        ..Story::default()
    };
    for clause in ["QUA-2", "QUA-3", "QUA-11", "QUA-4", "QUA-5", "QUA-7"] {
        verdict(
            &story,
            clause,
            Verdict::Untestable,
            "the initialize result has no capabilities",
        );
    }
}

/// QUA-1
#[test]
fn an_initialize_that_is_not_the_contract_s_is_our_own_fault() {
    let mut story = Story::default();
    story.initialize["processId"] = json!(4);
    assert_eq!(story.one("QUA-1").verdict, Verdict::HarnessError);
    let mut story = Story::default();
    story.initialize["capabilities"]["textDocument"]["definition"]["dynamicRegistration"] =
        json!(true);
    assert_eq!(story.one("QUA-1").verdict, Verdict::HarnessError);
}

/// QUA-2
#[test]
fn only_utf_16_is_taken() {
    verdict(
        &Story::default(),
        "QUA-2",
        Verdict::Pass,
        "position encoding omitted, so utf-16",
    );
    let said = Story::default().capability("positionEncoding", Some(json!("utf-16")));
    verdict(&said, "QUA-2", Verdict::Pass, "position encoding utf-16");
    let other = Story::default().capability("positionEncoding", Some(json!("utf-8")));
    verdict(
        &other,
        "QUA-2",
        Verdict::Fail,
        "position encoding \"utf-8\"",
    );
    shows_why(&other, "QUA-2");
}

/// QUA-3
#[test]
fn synchronization_has_to_allow_open_and_close() {
    verdict(
        &Story::default(),
        "QUA-3",
        Verdict::Pass,
        "textDocumentSync {openClose: true, change: 2}",
    );
    for (value, passes) in [
        (Some(json!(1)), true),
        (Some(json!(2)), true),
        (Some(json!(0)), false),
        (Some(json!(3)), false),
        (Some(json!(null)), false),
        (Some(json!({"change": 2})), false),
        (Some(json!({"openClose": false, "change": 1})), false),
        (None, false),
    ] {
        let story = Story::default().capability("textDocumentSync", value.clone());
        let case = story.one("QUA-3");
        assert_eq!(case.verdict == Verdict::Pass, passes, "{value:?}");
        if !passes {
            shows_why(&story, "QUA-3");
            assert_eq!(story.one("QUA-4").verdict, Verdict::Untestable);
            assert_eq!(story.one("QUA-5").verdict, Verdict::Untestable);
        }
    }
}

/// QUA-11
#[test]
fn operations_that_are_not_advertised_are_named() {
    verdict(
        &Story::default(),
        "QUA-11",
        Verdict::Pass,
        "all four operations advertised",
    );
    let story = Story::default()
        .capability("implementationProvider", None)
        .capability("hoverProvider", Some(json!(false)));
    verdict(
        &story,
        "QUA-11",
        Verdict::Note,
        "not advertised: goToImplementation, hover",
    );
    shows_why(&story, "QUA-11");
}

/// QUA-4
#[test]
fn each_advertised_operation_is_a_case_with_the_raw_shape() {
    let cases = Story::default().judge("QUA-4");
    let told: Vec<(&str, &str)> = cases
        .iter()
        .map(|case| (case.id.as_str(), case.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("QUA-4/goToDefinition", "a single Location"),
            ("QUA-4/findReferences", "2 Location"),
            ("QUA-4/goToImplementation", "null"),
            ("QUA-4/hover", "a single MarkedString"),
        ]
    );
}

/// QUA-4
#[test]
fn a_wrong_answer_to_the_end_is_a_budget_that_ended() {
    let story = Story {
        came: vec![Answer::Other("wrong place".to_owned()); 2],
        ..Story::default()
    };
    let cases = story.judge("QUA-4");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        assert_eq!(case.verdict, Verdict::Timeout);
        assert_eq!(
            case.message,
            "the budget of 60 s ended before the known answer came"
        );
        assert_eq!(
            case.got.as_deref(),
            Some("2 × wrong place (last: main.x:9:9)")
        );
    }
    shows_why(&story, "QUA-4");
}

/// QUA-4
#[test]
fn silence_a_crash_and_an_unsteady_answer_are_told_apart() {
    let with = |came| Story {
        came,
        ..Story::default()
    };
    let silent = with(vec![Answer::Silent]).judge("QUA-4").remove(0);
    assert_eq!(
        (silent.verdict, silent.message.as_str()),
        (Verdict::Timeout, "no answer: the budget of 60 s ended")
    );
    let died = with(vec![Answer::Died("exit code 9".to_owned()); 3])
        .judge("QUA-4")
        .remove(0);
    assert_eq!(
        (died.verdict, died.message.as_str()),
        (Verdict::Crash, "the server died: exit code 9")
    );
    let unsteady = with(vec![Answer::Right, Answer::Other("[]".to_owned())])
        .judge("QUA-4")
        .remove(0);
    assert_eq!(unsteady.verdict, Verdict::Timeout);
    assert!(
        unsteady.message.contains("but not three times running"),
        "{}",
        unsteady.message
    );
    let refused = with(vec![Answer::Refused("no".to_owned())])
        .judge("QUA-4")
        .remove(0);
    assert_eq!(refused.verdict, Verdict::HarnessError);
}

/// QUA-4
#[test]
fn a_server_without_any_operation_fails_and_one_without_some_is_not_judged_on_them() {
    let mut none = Story::default();
    for name in [
        "definitionProvider",
        "referencesProvider",
        "implementationProvider",
        "hoverProvider",
    ] {
        none = none.capability(name, None);
    }
    verdict(
        &none,
        "QUA-4",
        Verdict::Fail,
        "none of the four operations is advertised",
    );
    shows_why(&none, "QUA-4");
    let some = Story::default().capability("implementationProvider", Some(json!(null)));
    let case = some
        .judge("QUA-4")
        .into_iter()
        .find(|case| case.id.ends_with("goToImplementation"))
        .unwrap();
    assert_eq!(
        (case.verdict, case.message.as_str()),
        (
            Verdict::NotApplicable,
            "implementationProvider is not advertised"
        )
    );
}

/// QUA-4, QUA-5
#[test]
fn without_known_answers_nothing_is_claimed() {
    let story = Story {
        knowledge: Knowledge::Nothing,
        ..Story::default()
    };
    assert_eq!(story.one("QUA-4").verdict, Verdict::NotApplicable);
    assert_eq!(story.one("QUA-5").verdict, Verdict::NotApplicable);
    let story = Story {
        knowledge: Knowledge::Shape,
        ..Story::default()
    };
    assert!(
        story
            .judge("QUA-4")
            .iter()
            .all(|case| case.verdict == Verdict::Pass)
    );
    assert_eq!(story.one("QUA-5").verdict, Verdict::NotApplicable);
}

/// QUA-5
#[test]
fn a_changed_text_has_to_be_answered_and_opened_with_version_1() {
    verdict(
        &Story::default(),
        "QUA-5",
        Verdict::Pass,
        "goToDefinition from the new text at once",
    );
    let old = Answer::Other("wrong place".to_owned());
    let stale = Story {
        came_reopened: vec![old.clone(), old.clone()],
        ..Story::default()
    };
    verdict(
        &stale,
        "QUA-5",
        Verdict::Fail,
        "not answered from the new text when the budget of 60 s ended",
    );
    shows_why(&stale, "QUA-5");
    let late = Story {
        came_reopened: vec![old, Answer::Right, Answer::Right, Answer::Right],
        ..Story::default()
    };
    let case = late.one("QUA-5");
    assert_eq!(case.verdict, Verdict::Pass);
    assert!(
        case.message.ends_with("before that wrong place"),
        "{}",
        case.message
    );
    let rising = Story {
        reopened: Some((Operation::GoToDefinition, 2)),
        ..Story::default()
    };
    verdict(
        &rising,
        "QUA-5",
        Verdict::HarnessError,
        "main.x was opened again with version 2, not 1",
    );
}

/// QUA-5
#[test]
fn a_first_text_that_was_never_answered_makes_the_second_untestable() {
    let story = Story {
        came: vec![Answer::Other("[]".to_owned())],
        ..Story::default()
    };
    verdict(
        &story,
        "QUA-5",
        Verdict::Untestable,
        "goToDefinition was not answered right before the text changed",
    );
    let story = Story {
        reopened: None,
        ..Story::default()
    };
    assert_eq!(story.one("QUA-5").verdict, Verdict::Untestable);
}

/// QUA-6
#[test]
fn text_on_stdout_is_quoted() {
    let story = Story {
        noise: Some("hello\n"),
        ..Story::default()
    };
    verdict(
        &story,
        "QUA-6",
        Verdict::Fail,
        "something else than frames on stdout: \"hello\\n\"",
    );
    let got = story.one("QUA-6").got.unwrap();
    assert_eq!(
        got,
        "before the first frame: \"hello\\n\" (header line \"hello\" has no colon)"
    );
    shows_why(&story, "QUA-6");
}

/// QUA-7
#[test]
fn an_illegal_shape_is_named_with_its_place() {
    let mut story = Story::default();
    story.answers[1].1 = Some(json!({"result": [{"uri": 5}]}));
    verdict(
        &story,
        "QUA-7",
        Verdict::Fail,
        "answer to textDocument/references: result[0].uri is a number, not a string",
    );
    shows_why(&story, "QUA-7");
    story.answers[1].1 = Some(json!({}));
    assert_eq!(
        story.one("QUA-7").message,
        "answer to textDocument/references: result is missing"
    );
}

/// QUA-7
#[test]
fn answers_that_are_all_errors_have_no_shape_to_judge() {
    let mut story = Story::default();
    for (_, answer) in &mut story.answers {
        *answer = Some(json!({"error": {"code": -32601, "message": "no"}}));
    }
    verdict(
        &story,
        "QUA-7",
        Verdict::Untestable,
        "no answer with a result came",
    );
}

/// QUA-17
#[test]
fn a_server_that_needs_settings_gets_a_note() {
    let said = "configuration answered null (1×), registration acknowledged (1×)";
    verdict(&Story::default(), "QUA-17", Verdict::Pass, said);
    let story = Story {
        came: vec![Answer::Other("[]".to_owned())],
        ..Story::default()
    };
    let case = story.one("QUA-17");
    assert_eq!(case.verdict, Verdict::Note);
    assert!(case.message.starts_with(said), "{}", case.message);
    shows_why(&story, "QUA-17");
    // What it asked the client for stands beside the answer that was not right.
    for of in ["workspace/configuration", "textDocument/"] {
        assert!(
            case.evidence.iter().any(|event| event.text.contains(of)),
            "{of}: {:#?}",
            case.evidence
        );
    }
    let story = Story {
        server_requests: vec![],
        ..Story::default()
    };
    verdict(
        &story,
        "QUA-17",
        Verdict::NotApplicable,
        "it asked for no configuration and registered nothing",
    );
    let story = Story {
        configured: true,
        ..Story::default()
    };
    assert_eq!(story.one("QUA-17").verdict, Verdict::Note);
    shows_why(&story, "QUA-17");
    let story = Story {
        server_requests: vec![],
        ..story
    };
    shows_why(&story, "QUA-17");
}

/// QUA-8
#[test]
fn the_end_is_judged_by_what_is_left() {
    let story = Story::default();
    verdict(
        &story,
        "QUA-8",
        Verdict::Pass,
        "exit after 1 ms, no process left",
    );
    let needs_eof = Story::default().ending(|ending| ending.ends_before_stdin = false);
    verdict(
        &needs_eof,
        "QUA-8",
        Verdict::Pass,
        "exit after 2 ms, stdin was closed before that; no process left",
    );
    let error = json!({"error": {"code": -32602, "message": "no params"}});
    let refused = Story::default().ending(|ending| ending.shutdown_answer = Some(error));
    verdict(
        &refused,
        "QUA-8",
        Verdict::Pass,
        "exit after 1 ms, no process left; shutdown answered with error -32602",
    );
}

/// QUA-8
#[test]
fn processes_left_behind_fail_it_and_are_named() {
    let alive = Story::default().ending(|ending| ending.alive = vec![member("tsserver")]);
    verdict(&alive, "QUA-8", Verdict::Fail, "left behind: tsserver (77)");
    shows_why(&alive, "QUA-8");
    for forced in [
        Termination {
            terminated: vec![member("node")],
            ..Termination::default()
        },
        Termination {
            killed: vec![member("node")],
            ..Termination::default()
        },
        Termination {
            escaped: vec![member("node")],
            ..Termination::default()
        },
    ] {
        let story = Story::default().ending(|ending| ending.forced = forced);
        verdict(&story, "QUA-8", Verdict::Fail, "left behind: node (77)");
    }
}

/// QUA-8
#[test]
fn a_server_that_stays_or_does_not_answer_shutdown_fails() {
    let stays = Story::default().ending(|ending| ending.by_itself = false);
    verdict(
        &stays,
        "QUA-8",
        Verdict::Fail,
        "still running after exit and the end of stdin",
    );
    let mute = Story::default().ending(|ending| ending.shutdown_answer = None);
    verdict(
        &mute,
        "QUA-8",
        Verdict::Fail,
        "ended without an answer to shutdown",
    );
    let deaf = Story::default().ending(|ending| {
        ending.shutdown_answer = None;
        ending.by_itself = false;
    });
    verdict(&deaf, "QUA-8", Verdict::Fail, "shutdown was not answered");
    let gone = Story {
        ending: None,
        ..Story::default()
    };
    verdict(
        &gone,
        "QUA-8",
        Verdict::Untestable,
        "no process was left to be shut down",
    );
}

/// QUA-9
#[test]
fn another_exit_code_is_a_note() {
    verdict(&Story::default(), "QUA-9", Verdict::Pass, "exit code 0");
    let story = Story::default().ending(|ending| ending.exit_code = Some(1));
    verdict(&story, "QUA-9", Verdict::Note, "exit code 1");
    shows_why(&story, "QUA-9");
    let killed = Story::default().ending(|ending| ending.exit_code = None);
    verdict(&killed, "QUA-9", Verdict::Note, "signal 15");
    let forced = Story::default().ending(|ending| ending.by_itself = false);
    assert_eq!(forced.one("QUA-9").verdict, Verdict::Untestable);
}
