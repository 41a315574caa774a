//! What a case can do to the loop, and what it is told of it (RUN-10…14, INS-18).

use serde_json::{Value, json};

use super::super::Server;
use super::*;

struct Bench {
    server: Server,
    next: std::sync::atomic::AtomicU64,
    folder: tempfile::TempDir,
}

impl Bench {
    /// A harness with the tools for files, in a folder of its own with a file `a.txt`.
    async fn new(instructions: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tmp")).unwrap();
        std::fs::write(folder.path().join("a.txt"), "hello\n").unwrap();
        let bench = Self {
            server: Server::new(),
            next: std::sync::atomic::AtomicU64::new(1),
            folder,
        };
        let root = bench.path("");
        let mounted = bench
            .ask(
                "mount",
                json!({
                    "host": null, "tool": null, "tools": {"files": {}},
                    "instructions": instructions, "session": {"cwd": root},
                    "environment": {"HOME": bench.path("home"), "TMPDIR": bench.path("tmp")},
                }),
            )
            .await;
        assert_eq!(mounted, Ok(json!({})));
        bench
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    async fn start(
        &self,
        method: &str,
        params: Value,
    ) -> (String, futures::future::BoxFuture<'static, Outcome>) {
        let order = std::sync::atomic::Ordering::Relaxed;
        let id = self.next.fetch_add(1, order).to_string();
        let pending = self.server.request(&id, method, params).await;
        (id, pending)
    }

    async fn ask(&self, method: &str, params: Value) -> Outcome {
        self.start(method, params).await.1.await
    }

    async fn control(&self, params: Value) -> Value {
        self.ask("control", params)
            .await
            .expect("it is carried out")
    }

    fn turn_params(&self, replies: &Value) -> Value {
        let session = json!({"id": "main", "cwd": self.path("")});
        json!({"prompt": "Read it", "replies": replies, "session": session})
    }

    async fn turn(&self, replies: Value) -> TurnOutcome {
        let ended = self.ask("turn", self.turn_params(&replies)).await;
        serde_json::from_value(ended.expect("a turn has an outcome")).unwrap()
    }
}

fn reading() -> Value {
    json!([{"tool_calls": [{"name": "read", "arguments": {"file_path": "a.txt"}}]}, {"text": "done"}])
}

fn roles(outcome: &TurnOutcome) -> Vec<Vec<&str>> {
    outcome
        .requests
        .iter()
        .map(|request| request.messages.iter().map(|m| m.role.as_str()).collect())
        .collect()
}

#[tokio::test]
async fn a_turn_tells_what_reached_the_model() {
    let bench = Bench::new(Value::Null).await;
    let ended = bench.turn(reading()).await;
    assert_eq!(ended.ended, "completed", "{ended:?}");
    assert_eq!(ended.text.as_deref(), Some("done"));
    assert_eq!(
        roles(&ended),
        [vec!["user"], vec!["user", "assistant", "tool"]]
    );
    let last = &ended.requests[1];
    assert_eq!(last.messages[0].source, Some(json!({"kind": "prompt"})));
    assert_eq!(last.messages[1].tool_calls[0]["name"], "read");
    assert!(last.messages[2].text.contains("1: hello"), "{last:?}");
    assert_eq!(last.messages[2].is_error, Some(false));
    assert_eq!(last.tools, ["edit", "read", "write"]);
    let seen = bench.control(json!({"op": "observations"})).await;
    assert_eq!(seen["observed"][0]["path"], bench.path("a.txt"));
    assert_eq!(seen["observed"][0]["kind"], "present");
    // One reply too few.
    let ended = bench.turn(json!([reading()[0]])).await;
    assert_eq!(
        (ended.ended.as_str(), ended.code.as_deref()),
        ("failed", Some("SCRIPT_EXHAUSTED"))
    );
    bench.ask("unmount", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_turn_is_given_up_where_the_case_has_it() {
    let bench = Bench::new(Value::Null).await;
    for what in ["model", "tool", "tool_result", "step", "read"] {
        bench.control(json!({"op": "hold", "what": what})).await;
        let (id, turn) = bench.start("turn", bench.turn_params(&reading())).await;
        let held = bench
            .control(json!({"op": "wait_held", "what": what}))
            .await;
        assert_ne!(held[what], 0, "{held}");
        bench.server.cancel(&id, "caller");
        let ended = turn.await.expect("a turn has an outcome");
        assert_eq!(ended["ended"], "cancelled", "{what}: {ended}");
        bench.control(json!({"op": "release_held"})).await;
        let log = bench.control(json!({"op": "log"})).await;
        let last = log["events"].as_array().and_then(|events| events.last());
        assert_eq!(
            last.map(|event| &event["type"]),
            Some(&json!("turn/end")),
            "{what}"
        );
        assert_eq!(log["rebuilt"], true, "{what}");
    }
    bench.ask("unmount", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_session_is_resumed_from_what_is_on_disk() {
    let bench = Bench::new(Value::Null).await;
    bench.turn(reading()).await;
    for torn in [false, true] {
        let resumed = bench.control(json!({"op": "resume", "torn": torn})).await;
        assert_eq!(resumed, json!({"same": true}), "torn: {torn}");
    }
    let ended = bench.turn(json!([{"text": "here"}])).await;
    assert_eq!(
        roles(&ended)[0],
        ["user", "assistant", "tool", "assistant", "user"]
    );
    // Compacted, only the summary is left of it.
    let compacted = json!({"op": "compact", "summary": "they read it", "keep": 1});
    bench.control(compacted).await;
    let ended = bench.turn(json!([{"text": "here"}])).await;
    let messages = &ended.requests[0].messages;
    assert_eq!(messages[0].text, "they read it");
    assert_eq!(messages[0].source, Some(json!({"kind": "compaction"})));
    assert_eq!(messages.len(), 4, "{messages:?}");
    bench.ask("unmount", json!({})).await.unwrap();
    let left = std::fs::read_dir(bench.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "what was kept is gone");
    #[cfg(target_os = "linux")]
    {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
        let kept: Vec<_> = descriptors
            .filter_map(|one| std::fs::read_link(one.ok()?.path()).ok())
            .filter(|file| file.starts_with(bench.path("tmp")))
            .collect();
        assert!(kept.is_empty(), "still open: {kept:?}");
    }
}

#[tokio::test]
async fn stages_decide_as_they_are_told() {
    let bench = Bench::new(Value::Null).await;
    bench
        .control(json!({"op": "reject_step", "reason": "not now"}))
        .await;
    let ended = bench.turn(reading()).await;
    assert_eq!(
        (ended.ended.as_str(), ended.requests.len()),
        ("rejected", 0)
    );
    for (how, code) in [("fail", "STAGE_FAILED"), ("panic", "PRE_STEP_PANICKED")] {
        bench
            .control(json!({"op": "reject_step", "how": how}))
            .await;
        let ended = bench.turn(reading()).await;
        assert_eq!(ended.code.as_deref(), Some(code));
    }
    for how in [
        "block",
        "deny",
        "ask",
        "panic_before",
        "panic_around",
        "panic_after",
    ] {
        bench
            .control(json!({"op": "block_tool", "name": "read", "how": how}))
            .await;
        let ended = bench.turn(reading()).await;
        let last = ended
            .requests
            .last()
            .and_then(|request| request.messages.last());
        assert_eq!(
            last.and_then(|message| message.is_error),
            Some(true),
            "{how}"
        );
    }
    let context = json!({"op": "block_tool", "how": "context", "reason": "by the way"});
    bench.control(context).await;
    let ended = bench.turn(reading()).await;
    let last = ended
        .requests
        .last()
        .and_then(|request| request.messages.last());
    assert_eq!(
        last.map(|message| message.text.as_str()),
        Some("by the way")
    );
    bench.ask("unmount", json!({})).await.unwrap();
}

#[tokio::test]
async fn tools_and_sections_of_the_case_come_and_go() {
    let bench = Bench::new(Value::Null).await;
    bench
        .control(json!({"op": "register_tool", "name": "echo"}))
        .await;
    let section = json!({"op": "add_section", "name": "s", "order": -1, "text": "Be brief."});
    bench.control(section).await;
    let replies =
        json!([{"tool_calls": [{"name": "echo", "arguments": {"x": 1}}]}, {"text": "done"}]);
    let ended = bench.turn(replies).await;
    assert!(
        ended.requests[0].system.starts_with("Be brief."),
        "{ended:?}"
    );
    assert_eq!(ended.requests[0].tools, ["echo", "edit", "read", "write"]);
    assert_eq!(ended.requests[1].messages[2].text, r#"{"x":1}"#);
    bench
        .control(json!({"op": "unregister_tool", "name": "echo"}))
        .await;
    bench
        .control(json!({"op": "remove_section", "name": "s"}))
        .await;
    let ended = bench.turn(json!([{"text": "done"}])).await;
    assert_eq!(ended.requests[0].tools, ["edit", "read", "write"]);
    assert!(!ended.requests[0].system.contains("brief"));
    let again = json!({"op": "remove_section", "name": "s"});
    assert!(bench.ask("control", again).await.is_err());
    bench.ask("unmount", json!({})).await.unwrap();
}

/// INS-9, INS-18.
#[tokio::test]
async fn files_come_go_and_fail() {
    let bench = Bench::new(json!({"maxBytes": 1000})).await;
    std::fs::write(bench.path("AGENTS.md"), "Be nice.\n").unwrap();
    bench
        .control(json!({"op": "filesystem", "state": "absent"}))
        .await;
    let ended = bench.turn(json!([{"text": "hello"}])).await;
    assert_eq!(roles(&ended)[0], ["user"]);
    assert!(ended.requests[0].tools.is_empty());
    bench
        .control(json!({"op": "filesystem", "state": "present"}))
        .await;
    let ended = bench.turn(reading()).await;
    assert!(
        ended
            .requests
            .last()
            .unwrap()
            .messages
            .iter()
            .any(|m| m.text.contains("Be nice."))
    );
    let fault =
        json!({"op": "provider_fault", "what": "read", "path": bench.path("a.txt"), "times": 1});
    bench.control(fault).await;
    let ended = bench.turn(reading()).await;
    let text = |ended: &TurnOutcome| ended.requests[1].messages.last().unwrap().text.clone();
    assert!(text(&ended).contains("arranged by the case"), "{ended:?}");
    let ended = bench.turn(reading()).await;
    assert!(
        text(&ended).contains("1: hello"),
        "it failed once: {ended:?}"
    );
    bench.ask("unmount", json!({})).await.unwrap();
}
