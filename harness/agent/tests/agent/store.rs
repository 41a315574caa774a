//! Sessions that are kept: what is on the disk when, and what happens where nothing can be written.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dsh_agent::{ScriptedReply, code};
use dsh_session::SessionStore;
use serde_json::json;

use crate::support::{Bench, echo, failed, header, log_of, prompt, rebuilt, tool};

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("the session's file");
    text.lines().skip(1).map(str::to_owned).collect()
}

fn last_type(path: &Path) -> String {
    let lines = lines(path);
    let last: serde_json::Value =
        serde_json::from_str(lines.last().expect("an event")).expect("JSON");
    last["type"].as_str().expect("a type").to_owned()
}

/// RUN-11: the request is on the disk before the model is asked, its calls before they are made, and
/// the turn when it has ended.
#[tokio::test]
async fn what_was_logged_is_on_the_disk_at_the_boundaries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let bench = Bench::on(SessionStore::create(&path, header("s")).await.unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sink, file) = (Arc::clone(&seen), path.clone());
    let look = tool("look", move |_, _| {
        sink.lock().unwrap().push(last_type(&file));
        async { Ok(json!("looked")) }
    });
    let bench = bench.with(look);
    let (agent, model) = bench.agent([
        ScriptedReply::calls([("look", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    let (sink, file) = (Arc::clone(&seen), path.clone());
    let _listener = agent.on_delta(move |_| sink.lock().unwrap().push(last_type(&file)));
    prompt(&agent, "hi").await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        ["step/request", "tool/call", "step/request"]
    );
    assert_eq!(last_type(&path), "turn/end");
    bench.requests_are_rebuilt(&model);
}

/// RUN-11: a resumed session goes on counting, repeats no id, and still rebuilds what was sent.
#[tokio::test]
async fn a_resumed_session_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let script = || {
        let call = ScriptedReply::calls([("echo", json!({"text": "a"}))]);
        [call, ScriptedReply::text("done")]
    };
    let (log, mut sent) = {
        let bench = Bench::on(SessionStore::create(&path, header("s")).await.unwrap());
        let bench = bench.with(echo());
        let (agent, model) = bench.agent(script());
        prompt(&agent, "one").await.unwrap();
        (bench.log(), model.requests())
    };
    let session = SessionStore::open(&path).await.unwrap();
    assert_eq!(log_of(&session), log);
    let bench = Bench::on(session).with(echo());
    let (agent, model) = bench.agent(script());
    assert_eq!(prompt(&agent, "two").await.unwrap().turn, 2);
    let results: Vec<_> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("result"))
        .collect();
    assert_eq!(results, ["result call_1_1 ok: a", "result call-1 ok: a"]);
    sent.extend(model.requests());
    assert_eq!(rebuilt(&bench.session), sent);
}

/// Makes a file as large as its file system allows, so that nothing can be appended to it.
fn fill(path: &Path) {
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the session's file");
    let (mut fits, mut beyond) = (0_u64, i64::MAX as u64);
    if file.set_len(beyond).is_ok() {
        return;
    }
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        match file.set_len(middle) {
            Ok(()) => fits = middle,
            Err(_) => beyond = middle,
        }
    }
}

/// RUN-11: a store that fails fails the turn, before the model is asked, and says why. The log in
/// memory is whole, and what is missing on the disk is written as soon as that is possible.
#[tokio::test]
async fn a_store_that_fails_fails_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let bench = Bench::on(SessionStore::create(&path, header("s")).await.unwrap());
    let (agent, model) = bench.agent([ScriptedReply::text("two")]);
    fill(&path);
    let outcome = prompt(&agent, "one").await;
    failed(outcome, code::SESSION_STORE, &["s.jsonl", "could not be"]);
    assert_eq!(model.request_count(), 0);
    assert_eq!(
        bench.log(),
        [
            "turn/start 1",
            "step/start 1",
            "user prompt: one",
            "step/request",
            "step/end 1 failed: SESSION_STORE",
            "turn/end 1 failed: SESSION_STORE",
        ]
    );
    prompt(&agent, "two").await.unwrap();
    let log = bench.log();
    drop((agent, bench));
    let reopened = SessionStore::open(&path).await.unwrap();
    assert_eq!(log_of(&reopened), log);
}
