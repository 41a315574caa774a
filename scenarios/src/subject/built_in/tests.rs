//! What can be seen of the built-in harness without any language server.

use std::path::Path;

use dsh_harness::fs::FileSystem as _;
use futures::FutureExt as _;

use super::*;

/// A harness with a seam and the tool, and no host.
async fn mounted() -> Server {
    let server = Server::new();
    let params = json!({"tool": {"timeoutMs": 1234}, "session": {"cwd": "/w"}});
    ask(&server, "mount", params).await.expect("mounted");
    server
}

/// A host whose server is never started, for files that end in `.x`.
fn host() -> Value {
    host_of("x", ".x")
}

fn host_of(id: &str, extension: &str) -> Value {
    json!({"servers": {id: {"command": "sh", "extensionToLanguage": {extension: "x"}}}})
}

fn environment() -> Value {
    json!({"PATH": "/usr/local/bin:/usr/bin:/bin"})
}

async fn start(
    server: &Server,
    method: &str,
    params: Value,
) -> (String, BoxFuture<'static, Outcome>) {
    static IDS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let id = IDS
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        .to_string();
    let pending = server.request(&id, method, params).await;
    (id, pending)
}

async fn ask(server: &Server, method: &str, params: Value) -> Outcome {
    start(server, method, params).await.1.await
}

async fn control(server: &Server, params: Value) -> Outcome {
    ask(server, "control", params).await
}

fn query_of(file: &str) -> Value {
    json!({
        "operation": "hover", "filePath": file, "position": {"line": 0, "character": 0},
        "workspaceRoot": "/w",
    })
}

fn query_in(workspace: &Path) -> Value {
    let mut query = query_of("a.x");
    query["workspaceRoot"] = workspace.to_str().expect("UTF-8").into();
    query
}

#[track_caller]
fn code(outcome: Outcome) -> String {
    match outcome {
        Err(CallError::Refused {
            code: Some(code),
            data,
            ..
        }) => {
            assert_eq!(data["code"], code.as_str(), "the code stands in the data");
            code
        }
        other => panic!("no error with a code: {other:?}"),
    }
}

/// SEAM-14: what a provider gets is what was asked, and the language id.
#[tokio::test]
async fn a_query_reaches_a_scripted_provider_as_it_was_asked() {
    let server = mounted().await;
    let stub = json!({"op": "register", "id": "s", "extensions": [["TS", "typescript"]]});
    control(&server, stub).await.expect("registered");
    let answer = ask(&server, "query", query_of("a.ts"))
        .await
        .expect("answered");
    let contents = answer["hover"]["contents"].as_str().expect("a hover");
    let mut expected = query_of("a.ts");
    expected["languageId"] = "typescript".into();
    assert_eq!(serde_json::from_str::<Value>(contents).unwrap(), expected);
    let fixed = json!({"kind": "hover", "hover": null});
    let stub = json!({"op": "register", "id": "f", "extensions": [["y", "y"]], "result": fixed});
    control(&server, stub).await.expect("registered");
    assert_eq!(ask(&server, "query", query_of("a.y")).await, Ok(fixed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_reach_the_seam_in_the_order_of_their_requests() {
    let server = mounted().await;
    let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
    control(&server, stub).await.expect("registered");
    let names: Vec<String> = (0..500).map(|number| format!("{number}.x")).collect();
    let mut pending = Vec::new();
    for name in &names {
        pending.push(start(&server, "query", query_of(name)).await.1);
    }
    let log = control(&server, json!({"op": "provider_log", "id": "s"}))
        .await
        .unwrap();
    let queries = log["queries"].as_array().expect("a list");
    let asked: Vec<&str> = queries
        .iter()
        .filter_map(|one| one["query"]["filePath"].as_str())
        .collect();
    assert_eq!(asked, names);
    control(&server, json!({"op": "release_provider", "id": "s"}))
        .await
        .unwrap();
    for answer in pending {
        assert!(answer.await.is_ok());
    }
}

/// SEAM-10
#[tokio::test]
async fn a_cancellation_reaches_the_provider_with_its_reason() {
    let server = mounted().await;
    let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
    control(&server, stub).await.expect("registered");
    for (at, reason) in ["caller", "timeout"].into_iter().enumerate() {
        let (id, pending) = start(&server, "query", query_of("a.x")).await;
        server.cancel(&id, reason);
        assert_eq!(code(pending.await), "LSP_CANCELLED");
        let wait = json!({"op": "wait_provider", "id": "s", "times": at + 1, "ended": at + 1});
        let log = control(&server, wait).await.unwrap();
        assert_eq!(log["queries"][at]["end"], "cancelled");
        assert_eq!(log["queries"][at]["reason"], reason);
        // A second one, and one of what is over, change nothing.
        server.cancel(&id, reason);
        server.cancel("nobody", reason);
    }
}

/// CAN-1
#[tokio::test]
async fn who_has_given_up_before_asks_nobody() {
    let server = mounted().await;
    let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]]});
    control(&server, stub).await.expect("registered");
    let mut query = query_of("a.x");
    query["cancelled"] = true.into();
    assert_eq!(code(ask(&server, "query", query).await), "LSP_CANCELLED");
    let log = control(&server, json!({"op": "provider_log", "id": "s"})).await;
    assert_eq!(log, Ok(json!({"queries": []})));
}

/// SEAM-4, SEAM-6, SEAM-12
#[tokio::test]
async fn registrations_conflict_and_are_released_once_each() {
    let server = mounted().await;
    let register = |id: &str, extension: &str, hold: bool| {
        let extensions = json!([[extension, "x"]]);
        json!({"op": "register", "id": id, "extensions": extensions, "hold": hold})
    };
    control(&server, register("a", "x", true)).await.unwrap();
    let taken = control(&server, register("b", "X", false)).await;
    assert_eq!(code(taken), "LSP_CONFLICT");
    let invalid = control(&server, register(" ", "y", false)).await;
    assert_eq!(code(invalid), "LSP_INVALID_PROVIDER");
    let running = start(&server, "query", query_of("a.x")).await.1;
    control(&server, json!({"op": "unregister", "id": "a"}))
        .await
        .unwrap();
    assert_eq!(code(running.await), "LSP_DISPOSED");
    let unserved = ask(&server, "query", query_of("a.x")).await;
    assert_eq!(code(unserved), "LSP_UNAVAILABLE");
    // The first one's release, given again, takes nothing from the second.
    control(&server, register("a", "x", false)).await.unwrap();
    control(&server, json!({"op": "unregister", "id": "a", "nth": 1}))
        .await
        .unwrap();
    assert!(ask(&server, "query", query_of("a.x")).await.is_ok());
    let twice = json!({"op": "register", "id": "t", "extensions": [["q", "1"], ["q", "2"]]});
    assert_eq!(code(control(&server, twice).await), UNSUPPORTED);
}

/// DIS-4
#[tokio::test]
async fn many_may_unmount_and_what_is_asked_afterwards_fails() {
    let server = mounted().await;
    let ends = futures::future::join_all((0..5).map(|_| ask(&server, "unmount", json!({}))));
    assert!(ends.await.iter().all(Result::is_ok));
    let asked = ask(&server, "query", query_of("a.x")).await;
    assert_eq!(code(asked), "LSP_UNAVAILABLE");
    assert_eq!(ask(&server, "unmount", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn nothing_can_be_asked_before_the_mount_and_mounted_is_once() {
    let server = Server::new();
    assert_eq!(
        code(ask(&server, "query", query_of("a.x")).await),
        NOT_MOUNTED
    );
    let tool = json!({"name": "lsp", "arguments": {}});
    assert_eq!(code(ask(&server, "tool", tool).await), NOT_MOUNTED);
    ask(&server, "mount", json!({})).await.unwrap();
    let again = ask(&server, "mount", json!({})).await;
    assert_eq!(code(again), "ALREADY_MOUNTED");
}

/// CFG-1, CFG-3, CFG-4, TOOL-9
#[tokio::test]
async fn what_cannot_be_mounted_is_refused_with_its_code_and_leaves_nothing() {
    let server = Server::new();
    for (params, expected) in [
        (json!({"host": {"servers": {}}}), "LSP_CONFIG_INVALID"),
        (json!({"host": {"server": {}}}), "LSP_CONFIG_INVALID"),
        (json!({"host": host()}), "LSP_CONFIG_INVALID"),
        (json!({"tool": {"timeoutMs": 0}}), "LSP_CONFIG_INVALID"),
        (json!({"tool": {"nothing": 0}}), "LSP_CONFIG_INVALID"),
        (json!({"instructions": {}}), "CONFIG_INVALID"),
        (json!({"tools": {"codeMod": {}}}), INVALID_PARAMS),
        (json!({"tools": {"files": {"limits": 1}}}), "CONFIG_INVALID"),
        (json!({"environment": {"A": 1}}), INVALID_PARAMS),
        (json!({"session": 1}), INVALID_PARAMS),
        (json!("nothing"), INVALID_PARAMS),
    ] {
        let outcome = ask(&server, "mount", params.clone()).await;
        assert_eq!(code(outcome), expected, "{params}");
    }
    let outcome = ask(&server, "turn", json!({})).await;
    assert_eq!(code(outcome), NOT_MOUNTED);
    let outcome = control(&server, json!({"op": "compact"})).await;
    assert_eq!(code(outcome), NOT_MOUNTED);
    let outcome = control(&server, json!({"op": "compacted"})).await;
    assert_eq!(code(outcome), UNSUPPORTED);
    ask(
        &server,
        "mount",
        json!({"host": host(), "environment": environment()}),
    )
    .await
    .expect("still possible");
}

/// CFG-6: of a mount that is given up, and of one that is overtaken by its disposal.
#[tokio::test]
async fn a_mount_that_is_given_up_ends_when_its_lookups_have() {
    for unmount in [false, true] {
        let server = Server::new();
        let hold = json!({"op": "hold_files", "what": "executable"});
        control(&server, hold).await.unwrap();
        let params = json!({"host": host(), "environment": environment()});
        let (id, mounting) = start(&server, "mount", params.clone()).await;
        let wait = json!({"op": "wait_files", "what": "executable"});
        control(&server, wait).await.unwrap();
        if unmount {
            assert_eq!(ask(&server, "unmount", json!({})).await, Ok(json!({})));
        } else {
            server.cancel(&id, "caller");
        }
        assert_eq!(code(mounting.await), "MOUNT_CANCELLED");
        // What was arranged went with it.
        ask(&server, "mount", params).await.expect("mounted");
    }
}

/// CAN-2: given up during the look-up of the workspace, then during the read of the source; no
/// process is started.
#[tokio::test]
async fn what_is_held_up_can_be_given_up_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.x"), "x").unwrap();
    let server = Server::new();
    let params = json!({"host": host(), "environment": environment()});
    ask(&server, "mount", params).await.expect("mounted");
    for (times, what) in [(1, "workspace"), (2, "source")] {
        let hold = json!({"op": "hold_files", "what": what, "next": 1});
        control(&server, hold).await.unwrap();
        let (id, pending) = start(&server, "query", query_in(folder.path())).await;
        control(&server, json!({"op": "wait_files", "what": what}))
            .await
            .unwrap();
        server.cancel(&id, "caller");
        assert_eq!(code(pending.await), "LSP_CANCELLED");
        let wait = json!({"op": "wait_files", "what": "cancelled", "times": times});
        let looks = control(&server, wait).await.unwrap();
        assert_eq!(looks["cancelled"], times);
        assert_eq!(looks["spawn"], 0);
    }
    let looks = control(&server, json!({"op": "file_looks"})).await.unwrap();
    assert_eq!(
        (&looks["workspace"], &looks["executable"]),
        (&2.into(), &1.into())
    );
    assert_eq!(ask(&server, "unmount", json!({})).await, Ok(json!({})));
}

/// OPN-11's means: only the first look is held.
#[tokio::test]
async fn a_gate_holds_as_many_as_it_was_told_and_opens_for_all() {
    let arranged = Arc::new(arranged::Arranged::default());
    let files = files::Files::new(Arc::clone(&arranged));
    let cancel = Cancel::new();
    let root = std::env::temp_dir().to_str().unwrap().to_owned();
    arranged.hold(arranged::Look::Workspace, Some(1));
    let mut held = files.workspace(&root, &cancel);
    assert!((&mut held).now_or_never().is_none());
    assert!(files.workspace(&root, &cancel).await.is_ok());
    arranged.release(Some(arranged::Look::Source));
    assert!((&mut held).now_or_never().is_none());
    arranged.release(None);
    assert!(held.await.is_ok());
    assert_eq!(arranged.looks().given_up(), 0);
    files.close().await;
}

/// HST-3, HST-9
#[tokio::test]
async fn faults_and_worlds_that_were_arranged_come_true() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.x"), "x").unwrap();
    let server = Server::new();
    let params = json!({"host": host(), "environment": environment()});
    control(&server, json!({"op": "other_world"}))
        .await
        .unwrap();
    let outcome = ask(&server, "mount", params.clone()).await;
    assert_eq!(code(outcome), "LSP_CONFIG_INVALID");
    ask(&server, "mount", params).await.expect("mounted");
    let fault = json!({"op": "file_fault", "path": "a.x", "kind": "inaccessible", "times": 1});
    control(&server, fault).await.unwrap();
    let outcome = ask(&server, "query", query_in(folder.path())).await;
    assert_eq!(code(outcome), "LSP_SOURCE_REJECTED");
    ask(&server, "unmount", json!({})).await.unwrap();
}

/// CFG-5, SEAM-6
#[tokio::test]
async fn another_host_is_loaded_and_unloaded_on_the_same_seam() {
    let server = Server::new();
    let params = json!({"host": host(), "environment": environment()});
    ask(&server, "mount", params).await.expect("mounted");
    let mut both = host_of("w", ".w");
    both["servers"]["y"] = host_of("y", ".x")["servers"]["y"].clone();
    let load = |host: Value| json!({"op": "load_host", "name": "second", "host": host});
    let outcome = control(&server, load(both)).await;
    assert_eq!(code(outcome), "LSP_CONFLICT");
    let outcome = ask(&server, "query", query_of("a.w")).await;
    assert_eq!(code(outcome), "LSP_UNAVAILABLE", "rolled back");
    control(&server, load(host_of("w", ".w")))
        .await
        .expect("loaded");
    let outcome = ask(&server, "query", query_of("a.w")).await;
    assert_eq!(code(outcome), "LSP_SOURCE_REJECTED", "it has a provider");
    let unload = json!({"op": "unload_host", "name": "second"});
    control(&server, unload.clone()).await.expect("unloaded");
    let outcome = ask(&server, "query", query_of("a.w")).await;
    assert_eq!(code(outcome), "LSP_UNAVAILABLE");
    assert_eq!(code(control(&server, unload).await), NOT_MOUNTED);
    // What is loaded when the harness is disposed goes with it.
    control(&server, load(host_of("w", ".w")))
        .await
        .expect("loaded");
    ask(&server, "unmount", json!({})).await.unwrap();
}

/// TOOL-1, TOOL-3, TOOL-9, TOOL-11
#[tokio::test]
async fn the_tool_is_called_and_described_as_the_model_has_it() {
    let server = mounted().await;
    let described = control(&server, json!({"op": "describe_tools"}))
        .await
        .unwrap();
    let tool = &described["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["timeoutMs"]),
        (&"lsp".into(), &1234.into())
    );
    let parameters = tool["parameters"]["properties"]
        .as_object()
        .expect("a schema");
    let mut names: Vec<&str> = parameters.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["character", "file_path", "line", "operation"]);
    let prompt = described["systemPrompt"].as_str().expect("a text");
    assert!(prompt.starts_with("Use search/read"), "{prompt}");

    let arguments = json!({"operation": "hover", "file_path": "a.x", "line": 2, "character": 3});
    let mut call = json!({"name": "lsp", "arguments": arguments});
    let outcome = ask(&server, "tool", call.clone()).await.unwrap();
    assert_eq!(
        (&outcome["isError"], &outcome["code"]),
        (&true.into(), &"LSP_UNAVAILABLE".into())
    );
    let place = json!([{"path": "a.x", "line": 2}]);
    let card =
        json!({"card": "generic", "kind": "search", "title": "hover a.x:2:3", "locations": place});
    assert_eq!(outcome["presentation"], card);
    call["session"] = json!({"cwd": null});
    let outcome = ask(&server, "tool", call.clone()).await.unwrap();
    assert_eq!(outcome["code"], "LSP_WORKSPACE_REQUIRED");
    let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]]});
    control(&server, stub).await.unwrap();
    call["session"] = json!({"cwd": "/elsewhere"});
    let outcome = ask(&server, "tool", call).await.unwrap();
    let asked = outcome["value"]["hover"]["contents"]
        .as_str()
        .expect("a hover");
    assert!(asked.contains(r#""workspaceRoot":"/elsewhere""#), "{asked}");
    assert!(asked.contains(r#""line":1,"character":2"#), "{asked}");
    assert_eq!(outcome["isError"], false);
}

/// SEAM-1
#[tokio::test]
async fn there_is_no_fifth_operation() {
    let server = mounted().await;
    let mut query = query_of("a.x");
    query["operation"] = "rename".into();
    assert_eq!(code(ask(&server, "query", query).await), INVALID_PARAMS);
}

/// DIS-6
#[tokio::test]
async fn a_runtime_that_is_dropped_ends_its_queries_and_can_be_mounted_again() {
    let server = mounted().await;
    for panic in [false, true] {
        let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
        control(&server, stub).await.unwrap();
        let running = start(&server, "query", query_of("a.x")).await.1;
        control(&server, json!({"op": "drop", "panic": panic}))
            .await
            .expect("dropped");
        assert_eq!(code(running.await), "LSP_DISPOSED");
        assert_eq!(
            code(control(&server, json!({"op": "drop"})).await),
            NOT_MOUNTED
        );
        ask(&server, "mount", json!({}))
            .await
            .expect("mounted again");
    }
}

/// Whatever is under way, closing ends it.
#[tokio::test]
async fn a_server_that_is_closed_answers_what_it_was_asked() {
    let server = mounted().await;
    let stub = json!({"op": "register", "id": "s", "extensions": [["x", "x"]], "hold": true});
    control(&server, stub).await.unwrap();
    let running = start(&server, "query", query_of("a.x")).await.1;
    let wait = json!({"op": "wait_provider", "id": "s", "times": 9});
    let waiting = start(&server, "control", wait).await.1;
    server.close().await;
    for outcome in [running.await, waiting.await] {
        assert!(
            matches!(outcome, Err(CallError::Gone { .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(server.under_way(), 0);
}

#[tokio::test]
async fn many_mounts_leave_no_task() {
    let server = Server::new();
    let params = json!({"host": host(), "tool": {}, "environment": environment()});
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    for _ in 0..50 {
        ask(&server, "mount", params.clone())
            .await
            .expect("mounted");
        let stub = json!({"op": "register", "id": "s", "extensions": [["y", "y"]]});
        control(&server, stub).await.unwrap();
        ask(&server, "query", query_of("a.y"))
            .await
            .expect("answered");
        ask(&server, "unmount", json!({})).await.expect("unmounted");
    }
    // Of a request that had to wait, the task ends after its answer is taken.
    while tasks() > before {
        tokio::task::yield_now().await;
    }
}
