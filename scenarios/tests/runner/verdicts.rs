//! One verdict each.

use std::sync::Arc;

use dsh_reports::Verdict;
use dsh_scenarios::run::Tampering;
use dsh_scenarios::subject::{CallError, InProcess, UNSUPPORTED};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::bench::{Bench, in_time, is, ran, ran_case, ran_with, unchecked};
use crate::doubles::{Changed, Does, Double};
use crate::trial;

const HOVER: &str = r#"
server:
  - {on: textDocument/hover, do: [{reply: {contents: hello}}]}
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
"#;

fn hover(rest: &str) -> String {
    format!("{HOVER}{rest}")
}

#[expect(clippy::too_many_lines, reason = "a list of short tests")]
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_case_that_holds_passes", || {
            let ran = ran(&hover(
                "  - expect: {q: {hover: hello}}\nprocesses: 1\nends: {1: {exit: 0}}\n",
            ));
            is(&ran, Verdict::Pass, "");
            assert!(ran.sound);
            assert!(ran.result.transcript.is_empty(), "kept though nobody asked");
        }),
        trial(
            "an_expectation_that_does_not_hold_fails_with_its_event",
            || {
                let ran = ran(&hover(
                    "  - expect: {q: {hover: goodbye, clauses: [HOV-1]}}\n",
                ));
                is(&ran, Verdict::Fail, "q: ");
                assert_eq!(ran.result.clauses, ["HOV-1"]);
                assert_eq!(ran.result.expected.as_deref(), Some("hover \"goodbye\""));
                let seq = ran.result.decisive.expect("an event");
                let event = &ran.result.transcript[usize::try_from(seq).expect("small")];
                assert_eq!(event.seq, seq);
                let line = serde_json::to_value(event).expect("JSON");
                assert_eq!(line["event"]["result"]["call"], "q", "{line}");
                assert!(ran.sound, "nothing is wrong with the subject");
            },
        ),
        trial("a_wrong_count_of_processes_fails", || {
            is(
                &ran(&hover("processes: 2\n")),
                Verdict::Fail,
                "1 were started",
            );
        }),
        trial("a_should_that_does_not_hold_is_a_note", || {
            let ran = ran(&hover("  - expect: {q: {hover: x, clauses: [CAN-8]}}\n"));
            is(&ran, Verdict::Note, "q: ");
        }),
        trial("what_is_missing_is_untestable", || {
            let ran = ran(&hover("requires: [{signal: SIGTERM}]\n"));
            is(&ran, Verdict::Untestable, "not seen");
        }),
        trial("a_profile_that_is_not_claimed_is_not_applicable", || {
            let double = Arc::new(Double::new(|_| Does::Dies));
            let ran = ran_with("profile: tool\nsteps: []\n", double.clone(), |_| {});
            is(
                &ran,
                Verdict::NotApplicable,
                "double does not claim the profile tool",
            );
            assert!(double.asked.lock().expect("unpoisoned").is_empty());
        }),
        trial(
            "a_control_operation_that_is_not_offered_is_not_applicable",
            || {
                let double = Arc::new(Double::new(|_| Does::Dies));
                let text = "steps:\n  - control: {op: compact}\n";
                let ran = ran_with(text, double, |_| {});
                is(&ran, Verdict::NotApplicable, "control operation compact");
            },
        ),
        trial(
            "a_request_that_the_profile_does_not_need_is_not_applicable",
            || {
                let double = Double::new(|asked| match asked {
                    "turn" => Does::Refuses(UNSUPPORTED),
                    _ => Does::Answers(serde_json::json!({})),
                });
                let text = "steps:\n  - turn: {as: t, prompt: x, replies: [{text: y}]}\n  - expect: {t: {ok: true}}\n";
                let ran = ran_with(text, Arc::new(double), |_| {});
                is(&ran, Verdict::NotApplicable, "`turn`");
            },
        ),
        trial("monitors_that_saw_nothing_have_judged_nothing", || {
            let double = Double::at_query(|| Does::Answers(serde_json::json!({})));
            let idle = ran_with(&hover(""), Arc::new(double), |_| {});
            assert!(idle.result.watched.is_empty(), "{:?}", idle.result);
            let busy = ran(&hover(""));
            for clause in ["WIRE-1", "FRM-1", "INI-1", "OPN-3"] {
                assert!(busy.result.watched.contains(&clause), "{:?}", busy.result);
            }
        }),
        trial("what_a_claimed_profile_needs_cannot_be_left_out", || {
            let double = Double::at_query(|| Does::Refuses(UNSUPPORTED));
            let ran = ran_with(&hover(""), Arc::new(double), |_| {});
            is(
                &ran,
                Verdict::Fail,
                "claims transient and does not have `query`",
            );
        }),
        trial("a_program_that_is_not_there_is_our_fault", || {
            let ran = ran_with(HOVER, Arc::new(InProcess::new()), |setup| {
                setup.executable = "/no/such/program".into();
            });
            is(
                &ran,
                Verdict::HarnessError,
                "/no/such/program does not exist",
            );
        }),
        trial("a_rule_the_server_breaks_undeclared_is_our_fault", || {
            let text = r#"
server:
  - on: textDocument/hover
    do: [{reply_raw: '{"jsonrpc":"2.0","id":99,"result":null}'}, {reply: null}]
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
"#;
            is(&ran(text), Verdict::HarnessError, "the fake server breaks");
        }),
        trial("a_held_answer_is_named_when_the_budget_ends", || {
            let text = r#"
budget_ms: 1500
server:
  - {on: textDocument/hover, do: [{hold: never}, {reply: null}]}
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
  - wait: {held: never}
  - expect: {q: {ok: true}}
"#;
            let ran = ran_case(&unchecked(text), &InProcess::new(), |_| {});
            is(
                &ran,
                Verdict::Timeout,
                "the outcome of q; still held by the script: never",
            );
        }),
        trial(
            "codes_of_the_project_are_no_matter_for_a_foreign_harness",
            || {
                let text = hover("  - expect: {q: {error: {code: LSP_SOURCE_REJECTED}}}\n");
                let refuses = || Arc::new(Double::at_query(|| Does::Refuses("OTHER")));
                is(
                    &ran_with(&text, refuses(), |_| {}),
                    Verdict::Fail,
                    "q: failure OTHER",
                );
                let foreign = ran_with(&text, refuses(), |setup| setup.foreign = true);
                is(&foreign, Verdict::Pass, "");
            },
        ),
        trial("a_server_that_is_left_running_is_found_and_ended", || {
            let lazy = Changed::new(|method: &str, _: &mut Value| {
                (method == "unmount").then(|| Ok(json!({})))
            });
            let ran = ran_with(HOVER, Arc::new(lazy), |_| {});
            is(&ran, Verdict::Fail, "a process is left behind");
            assert_eq!(ran.result.clauses, ["DIS-4"]);
            assert!(!ran.sound);
        }),
        trial("a_temporary_file_that_is_left_is_found", || {
            let untidy = Changed::new(|method: &str, params: &mut Value| {
                if method == "mount" {
                    let tmp = params["environment"]["TMPDIR"].as_str().expect("a path");
                    std::fs::write(format!("{tmp}/left"), "x").expect("it can be written");
                }
                None
            });
            let ran = ran_with(HOVER, Arc::new(untidy), |_| {});
            is(&ran, Verdict::Fail, "a temporary file is left behind: left");
        }),
        trial("files_of_all_kinds_are_there", files),
        trial("a_path_outside_the_case_is_refused", || {
            let case = unchecked("workspace: {../../x: text}\nsteps: []\n");
            let ran = ran_case(&case, &InProcess::new(), |_| {});
            is(
                &ran,
                Verdict::HarnessError,
                "lies outside the folder of the case",
            );
        }),
        trial("a_path_behind_a_link_out_of_the_case_is_refused", || {
            let outside = tempfile::tempdir().expect("a folder");
            let at = outside.path().display();
            let text = format!("workspace: {{way: {{link: '{at}'}}, way/x: text}}\nsteps: []\n");
            let ran = ran_case(&unchecked(&text), &InProcess::new(), |_| {});
            is(&ran, Verdict::HarnessError, "lies behind a link");
            let mut written = std::fs::read_dir(outside.path()).expect("it is there");
            assert!(written.next().is_none(), "it was written to");
        }),
        trial("queries_reach_the_subject_in_order", order),
        trial("tampering_stands_between", tampering),
        trial("snapshots_know_no_folder", || {
            let text = r#"
profile: tool
server:
  - {on: textDocument/hover, do: [{reply: {contents: "in ${workspace} of ${workspaceUri}"}}]}
steps:
  - tool: {as: t, operation: hover, at: "a.ts:1:7", snapshot: true}
  - expect: {t: {ok: true}}
"#;
            let ran = ran(text);
            is(&ran, Verdict::Pass, "");
            let [(name, text)] = &ran.result.snapshots[..] else {
                panic!("{:?}", ran.result.snapshots);
            };
            assert_eq!(name, "t");
            assert!(
                text.contains("in ${workspace} of ${workspaceUri}"),
                "{text}"
            );
        }),
    ]
}

/// What stands in the workspace while a case runs.
fn files() {
    let found = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&found);
    let looks = Changed::new(move |method: &str, params: &mut Value| {
        if method == "mount" {
            let workspace = params["session"]["cwd"]
                .as_str()
                .expect("a path")
                .to_owned();
            let kind = |name: &str| {
                use std::os::unix::fs::FileTypeExt as _;
                let path = format!("{workspace}/{name}");
                let kind = std::fs::symlink_metadata(&path).expect(name).file_type();
                if kind.is_symlink() {
                    format!("→ {}", std::fs::read_link(&path).expect(name).display())
                } else if kind.is_dir() {
                    "directory".to_owned()
                } else if kind.is_fifo() {
                    "pipe".to_owned()
                } else if kind.is_socket() {
                    "socket".to_owned()
                } else {
                    String::from_utf8_lossy(&std::fs::read(&path).expect(name)).into_owned()
                }
            };
            let names = [
                "text",
                "d/bytes",
                "many",
                "link",
                "dir",
                "pipe",
                "socket",
                "../beside",
            ];
            let kinds: Vec<String> = names.iter().map(|name| kind(name)).collect();
            kept.lock().expect("unpoisoned").extend(kinds);
        }
        None
    });
    let text = r#"
workspace:
  text: "a⟦m⟧b"
  d/bytes: {base64: "aGk="}
  many: {repeat: {text: ab, times: 3}}
  link: {link: "${root}/beside"}
  dir: {directory: {}}
  pipe: {pipe: {}}
  socket: {socket: {}}
  ../beside: "${workspace}"
steps: []
"#;
    is(&ran_with(text, Arc::new(looks), |_| {}), Verdict::Pass, "");
    let found = found.lock().expect("unpoisoned").clone();
    assert_eq!(found[..3], ["ab", "hi", "ababab"]);
    assert!(
        found[3].starts_with("→ /") && found[3].ends_with("/beside"),
        "{found:?}"
    );
    assert_eq!(found[4..7], ["directory", "pipe", "socket"]);
    assert!(found[7].ends_with("/ws"), "{found:?}");
}

fn order() {
    let double = Arc::new(Double::new(|_| {
        Does::Answers(json!({"kind": "hover", "hover": null}))
    }));
    let text = r#"
steps:
  - query: {as: a, operation: hover, at: "a.ts:1:1"}
  - query: {as: b, operation: hover, at: "a.ts:1:2"}
  - cancel: a
  - query: {as: c, operation: hover, at: "a.ts:1:3"}
"#;
    is(&ran_with(text, double.clone(), |_| {}), Verdict::Pass, "");
    let asked = double.asked.lock().expect("unpoisoned");
    let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(
        methods,
        ["mount", "query", "query", "cancel", "query", "unmount"]
    );
    let column = |at: usize| asked[at].1["position"]["character"].as_u64();
    assert_eq!(
        [column(1), column(2), column(4)],
        [Some(0), Some(1), Some(2)]
    );
    assert_eq!(asked[3].1["reason"], "caller");
}

/// Swallows a request, changes a result, holds back a cancellation.
struct Tampers;

impl Tampering for Tampers {
    fn command(&self, argv: Vec<String>) -> Vec<String> {
        let mut argv = argv;
        argv.insert(0, "/usr/bin/env".to_owned());
        argv
    }

    fn request(&self, method: &str, params: Value) -> Option<Value> {
        (method != "unmount").then_some(params)
    }

    fn outcome(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        assert!(params.is_object());
        match method {
            "query" => Ok(json!({"kind": "hover", "hover": {"contents": "changed"}})),
            _ => outcome,
        }
    }

    fn cancels(&self) -> bool {
        false
    }
}

fn tampering() {
    let bench = Bench::new();
    let double = Double::at_query(|| Does::Refuses("X"));
    let text = hover("  - cancel: q\n  - expect: {q: {hover: changed}}\n");
    let ran = in_time(bench.run(&text, &double, Some(&Tampers)));
    is(&ran, Verdict::Pass, "");
    let asked = double.asked.lock().expect("unpoisoned");
    let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["mount", "query"]);
    let server = &asked[0].1["host"]["servers"]["fake"];
    assert_eq!(server["command"], "/usr/bin/env");
    assert_eq!(server["args"][1], "fake-lsp");
}
