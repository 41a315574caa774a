//! Subjects that are no good: each is told apart, and nothing of it is left.

use std::time::Duration;

use dsh_scenarios::subject::{CallError, Launch, Process, Subject};
use serde_json::json;

use crate::support::{EXECUTABLE, Held, ask, in_time};

/// Who a subject of these tests says it is.
const DESCRIBED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"name":"sh","version":"1","profiles":[]}}"#;

fn shell(script: &str) -> Launch {
    Launch {
        command: ["sh", "-c", script, EXECUTABLE].map(str::to_owned).to_vec(),
        directory: None,
    }
}

async fn refused(script: &str) -> CallError {
    match in_time(Process::start(&shell(script))).await {
        Ok(subject) => panic!("it started: {:?}", subject.description()),
        Err(error) => error,
    }
}

/// A subject that has described itself, then goes on with `script`.
async fn started(script: &str) -> Process {
    let script = format!("read request; echo '{DESCRIBED}'; {script}");
    in_time(Process::start(&shell(&script)))
        .await
        .expect("started")
}

#[track_caller]
fn gone(error: &CallError, parts: &[&str]) {
    let CallError::Gone { how } = error else {
        panic!("{error:?}");
    };
    assert!(parts.iter().all(|part| how.contains(part)), "{how}");
}

#[track_caller]
fn nonsense(error: &CallError, part: &str) {
    let CallError::Nonsense { reason } = error else {
        panic!("{error:?}");
    };
    assert!(reason.contains(part), "{reason}");
    assert!(reason.len() < 1000, "{reason}");
}

#[tokio::test]
async fn one_that_cannot_be_started_says_how_it_was_to_be() {
    let launch = Launch {
        command: vec!["/no/such/program".to_owned(), "x".to_owned()],
        directory: None,
    };
    let error = Process::start(&launch)
        .await
        .err()
        .expect("it cannot start");
    let told = error.to_string();
    assert!(
        told.contains("`/no/such/program x` cannot be started"),
        "{told}"
    );
}

#[tokio::test]
async fn one_that_exits_is_told_with_its_status_and_stderr() {
    gone(
        &refused("echo why >&2; exit 3").await,
        &["exit status: 3", "why"],
    );
    gone(&refused("kill -9 $$").await, &["signal: 9"]);
    let subject = started("read request; echo then >&2; exit 4").await;
    let error = in_time(ask(&subject, "mount", json!({})))
        .await
        .unwrap_err();
    gone(&error, &["exit status: 4", "then"]);
    in_time(subject.end()).await;
}

#[tokio::test]
async fn one_that_closes_its_output_is_over() {
    gone(
        &refused("exec >&-; cat >/dev/null").await,
        &["its stdout ended"],
    );
}

#[tokio::test]
async fn answers_that_are_none_are_named() {
    nonsense(&refused("echo hello; cat").await, "\"hello\"");
    nonsense(
        &refused("echo '{\"id\":1,\"result\":7}'; cat").await,
        "`describe`",
    );
    nonsense(
        &refused("printf '{\"id\":1'; exit").await,
        "in the middle of",
    );
    nonsense(&refused("printf '\\377\\376\\n'; cat").await, "is not JSON");
    let error = refused("echo '{\"id\":9,\"result\":7}'; cat").await;
    nonsense(&error, "request 9, which it was not asked");
    let subject = started(&format!("echo '{DESCRIBED}'; cat")).await;
    let error = in_time(ask(&subject, "mount", json!({})))
        .await
        .unwrap_err();
    nonsense(&error, "request 1 a second time");
    in_time(subject.end()).await;
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    nonsense(&refused("yes garbage").await, "garbage");
    nonsense(
        &refused("tr '\\0' x </dev/zero").await,
        "more than 67108864 bytes",
    );
    // Of stderr, the last is kept, whatever there is of it.
    let script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo last >&2; exit 5";
    let error = refused(script).await;
    gone(&error, &["exit status: 5", "last"]);
    assert!(error.to_string().len() < 10_000);
}

#[tokio::test]
async fn one_that_never_answers_has_only_so_long() {
    let silent = shell("cat >/dev/null");
    let patience = Duration::from_millis(200);
    let error = in_time(Process::start_within(&silent, patience)).await;
    let told = error.err().expect("it says nothing").to_string();
    assert_eq!(told, "the subject did not answer `describe` within 200 ms");
}

#[tokio::test]
async fn one_that_never_answers_again_is_ended_with_what_it_started() {
    // It ignores the end of its input and SIGTERM, and so does its child.
    let subject = started("trap '' TERM; sleep 1000 & echo $! >&2; cat >/dev/null; wait").await;
    let pid = subject.pid().expect("it has a process");
    let leader = Held::new(pid);
    let pending = subject.request("mount", json!({})).await;
    in_time(subject.end()).await;
    assert!(leader.is_gone());
    gone(&pending.outcome.await.unwrap_err(), &["signal: 9"]);
    assert_eq!(alive_in_group(pid), Vec::<String>::new());
}

/// The processes of a group that are not dead, whether or not anybody has asked for their status.
fn alive_in_group(group: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("this is Linux");
    entries
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            // Behind the name: the state, the parent, the group.
            let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
            let fields: Vec<&str> = behind.split(' ').collect();
            fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
        })
        .collect()
}

#[tokio::test]
async fn one_that_is_noisy_on_stderr_works() {
    let noisy = shell("yes noise >&2 & exec \"$0\" subject");
    let subject = in_time(Process::start(&noisy)).await.expect("started");
    assert_eq!(
        in_time(ask(&subject, "mount", json!({}))).await,
        Ok(json!({}))
    );
    in_time(subject.end()).await;
}
