//! Subjects that misbehave: each gets a verdict that names what it did, in bounded time, and
//! nothing is left of its case.

use std::sync::Arc;

use dsh_reports::Verdict;
use dsh_scenarios::run::Ran;
use dsh_scenarios::subject::{Launch, Process, Subject};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::bench::{Bench, in_time, is, ran_with};
use crate::doubles::{Changed, Does, Double};
use crate::trial;

/// A case whose budget is far longer than the test may take, so that only noticing ends it.
const PATIENT: &str = r#"
budget_ms: 120000
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
  - expect: {q: {hover: null}}
"#;

/// The same for subjects that just never do anything.
const IMPATIENT: &str = r#"
budget_ms: 400
steps:
  - query: {as: q, operation: hover, at: "a.ts:1:7"}
  - expect: {q: {hover: null}}
"#;

fn at_query(does: impl Fn() -> Does + Send + Sync + 'static) -> Arc<Double> {
    Arc::new(Double::at_query(does))
}

#[expect(clippy::too_many_lines, reason = "a list of short tests")]
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("one_that_never_answers_runs_out_of_time", || {
            let ran = ran_with(IMPATIENT, at_query(|| Does::Nothing), |_| {});
            is(
                &ran,
                Verdict::Timeout,
                "waited in vain for the outcome of q",
            );
            assert!(!ran.sound);
        }),
        trial("one_that_never_mounts_runs_out_of_time", || {
            let double = Arc::new(Double::new(|_| Does::Nothing));
            let ran = ran_with(IMPATIENT, double, |_| {});
            is(&ran, Verdict::Timeout, "the outcome of mount");
        }),
        trial("one_that_never_unmounts_runs_out_of_time", || {
            let double = Arc::new(Double::new(|method| match method {
                "unmount" => Does::Nothing,
                _ => Does::Answers(json!({"kind": "hover", "hover": null})),
            }));
            let ran = ran_with(IMPATIENT, double, |_| {});
            is(&ran, Verdict::Timeout, "the outcome of unmount");
            assert!(!ran.sound);
        }),
        trial("one_that_dies_in_a_query_crashed", || {
            let ran = ran_with(PATIENT, at_query(|| Does::Dies), |_| {});
            is(&ran, Verdict::Crash, "exit status: 9");
            assert!(!ran.sound);
        }),
        trial("one_that_dies_while_an_event_is_awaited_crashed", || {
            let text = "budget_ms: 120000\nsteps:\n  - wait: {started: true}\n";
            let double = Arc::new(Double::new(|_| Does::AnswersAndDies(json!({}))));
            is(
                &ran_with(text, double, |_| {}),
                Verdict::Crash,
                "exit status: 9",
            );
        }),
        trial("one_that_answers_nonsense_fails", || {
            let ran = ran_with(PATIENT, at_query(|| Does::Babbles), |_| {});
            is(
                &ran,
                Verdict::Fail,
                "cannot be read: the line \"hello\" is not JSON",
            );
        }),
        trial("one_that_does_not_mount_fails", || {
            let double = Arc::new(Double::new(|_| Does::Refuses("BROKEN")));
            is(
                &ran_with(PATIENT, double, |_| {}),
                Verdict::Fail,
                "mount: failure BROKEN",
            );
        }),
        trial(
            "one_that_cuts_the_control_channel_says_nothing_of_itself",
            || {
                let cuts = Changed::new(|method: &str, params: &mut Value| {
                    if method == "mount" {
                        let args = params["host"]["servers"]["fake"]["args"].as_array();
                        let mut args = args.expect("a list").iter().filter_map(Value::as_str);
                        args.find(|arg| *arg == "--control").expect("it is told");
                        let address = args.next().expect("an address");
                        std::fs::remove_file(address).expect("it is there");
                    }
                    None
                });
                let ran = ran_with(PATIENT, Arc::new(cuts), |_| {});
                is(&ran, Verdict::HarnessError, "lost its control channel");
            },
        ),
        trial("a_process_that_exits_crashed", || {
            let ran = process(r"query) exit 7;;", PATIENT);
            is(&ran, Verdict::Crash, "7");
        }),
        trial(
            "a_process_that_exits_while_nothing_is_asked_crashed",
            || {
                let text = "budget_ms: 120000\nsteps:\n  - wait: {started: true}\n";
                let ran = process(r"mount) answer '{}'; exit 7;;", text);
                is(&ran, Verdict::Crash, "7");
            },
        ),
        trial("a_process_that_is_killed_crashed", || {
            let ran = process("query) kill -9 $$;;", PATIENT);
            is(&ran, Verdict::Crash, "signal: 9");
        }),
        trial("a_process_that_babbles_fails", || {
            let ran = process("query) echo hello;;", PATIENT);
            is(&ran, Verdict::Fail, "cannot be read");
        }),
        trial("a_process_that_floods_fails", || {
            let flood = "query) exec tr '\\0' x </dev/zero;;";
            is(&process(flood, PATIENT), Verdict::Fail, "cannot be read");
        }),
        trial("a_process_that_answers_twice_fails", || {
            let hover = r#"'{"kind":"hover","hover":null}'"#;
            let twice = format!("query) answer {hover}; answer {hover};;");
            // What was answered first may be judged before the second answer is there; then the
            // end of the case meets it.
            is(&process(&twice, PATIENT), Verdict::Fail, "a second time");
        }),
        trial("a_process_that_never_answers_is_ended", || {
            let ran = process("query) ;;", IMPATIENT);
            is(&ran, Verdict::Timeout, "the outcome of q");
        }),
        trial("a_process_that_closes_its_output_crashed", || {
            let ran = process("query) exec >&-; cat >/dev/null; exit 3;;", PATIENT);
            is(&ran, Verdict::Crash, "the subject ended");
        }),
        trial("a_descriptor_that_is_left_open_is_found", || {
            let opens = "mount) exec 9<>\"$dir/pipe\"; answer '{}';;";
            let text = "workspace: {pipe: {pipe: {}}}\nsteps: []\n";
            let ran = process(opens, text);
            is(&ran, Verdict::Fail, "a descriptor is left behind: 9");
        }),
    ]
}

/// Runs a case with a shell script as the subject, which answers everything with `{}` except for
/// what these branches of a `case` say. `answer` answers the request at hand, `$dir` is the
/// workspace.
#[track_caller]
fn process(branches: &str, text: &str) -> Ran {
    let script = format!(
        r#"
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%[!0-9]*}}
  method=${{line#*'"method":"'}}; method=${{method%%'"'*}}
  case $line in *'"cwd":"'*) dir=${{line#*'"cwd":"'}}; dir=${{dir%%'"'*}};; esac
  case $method in
    describe) answer '{{"name":"sh","version":"1","profiles":["transient"],"controls":[]}}';;
    {branches}
    *) answer '{{}}';;
  esac
done
"#
    );
    let bench = Bench::new();
    let (ran, pid) = in_time(async {
        let launch = Launch {
            command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script],
            directory: None,
        };
        let subject = Process::start(&launch).await.expect("it starts");
        let ran = Box::pin(bench.run(text, &subject, None)).await;
        let pid = subject.pid().expect("it has one");
        subject.end().await;
        (ran, pid)
    });
    bench.nothing_left();
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "the subject is left"
    );
    ran
}
