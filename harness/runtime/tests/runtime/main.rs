//! A runtime mounted from a deployment file, over a language server made up in this process, and
//! over real processes where their end is what is tested.

mod server;

use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::{Cancel, CancelReason};
use dsh_harness::lsp::{Operation, Position, QueryRequest, QueryResult};
use dsh_harness::tools::{ResultReady, ToolCall, ToolResult};
use dsh_harness::{Deployment, MountError, Runtime, RuntimeBuilder};
use serde_json::json;
use server::{Behaviour, Servers};

const FILE: &str = r#"- name: "@deepseek-ai/dsh-fs-local"
- name: deepseek-ai/dsh-subprocess-local
- name: dsh-lsp
- name: dsh-lsp-stdio
  config:
    servers:
      toy:
        command: toy-server
        extensionToLanguage: {.toy: toy}
        killGraceMs: 50
- name: dsh-tool-lsp
"#;

#[track_caller]
fn deployment(text: &str) -> Deployment {
    Deployment::parse(text, "cordis.yml").unwrap_or_else(|error| panic!("{error}"))
}

fn builder(text: &str, servers: &Servers) -> RuntimeBuilder {
    Runtime::builder()
        .deployment(deployment(text))
        .subprocess(Arc::new(servers.clone()))
}

async fn mount(builder: RuntimeBuilder) -> Runtime {
    builder
        .mount(&Cancel::new())
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A workspace with one file.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temp folder");
    std::fs::write(folder.path().join("a.toy"), "word\n").expect("written");
    folder
}

fn path(folder: &tempfile::TempDir) -> String {
    folder
        .path()
        .to_str()
        .expect("a temp folder with a UTF-8 name")
        .to_owned()
}

fn hover(workspace: &tempfile::TempDir) -> QueryRequest {
    QueryRequest {
        operation: Operation::Hover,
        file_path: "a.toy".to_owned(),
        position: Position {
            line: 0,
            character: 0,
        },
        workspace_root: path(workspace),
    }
}

async fn call(runtime: &Runtime, cwd: Option<&str>, cancel: Cancel) -> ToolResult {
    let arguments = json!({"operation": "hover", "file_path": "a.toy", "line": 1, "character": 1});
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "lsp".to_owned(),
        arguments,
    };
    runtime
        .tools()
        .call(call, runtime.open_session(cwd), cancel)
        .await
}

/// RUN-3: the deployment file gives a runtime that answers, on the seam and in the tool.
#[tokio::test]
async fn a_deployment_file_mounts_a_runtime_that_answers() {
    let (servers, workspace) = (Servers::new(Behaviour::Answers), workspace());
    let runtime = mount(builder(FILE, &servers)).await;
    assert_eq!(
        runtime.plugins(),
        [
            "dsh-tools",
            "dsh-system-prompt",
            "dsh-agent",
            "dsh-tool-call-timeout-policy",
            "dsh-fs-local",
            "dsh-subprocess-local",
            "dsh-lsp",
            "dsh-lsp-stdio",
            "dsh-tool-lsp",
        ]
    );
    assert_eq!(runtime.waiting(), []);
    servers.expect(&[]);

    let answer = runtime
        .lsp()
        .unwrap()
        .query(hover(&workspace), &Cancel::new())
        .await
        .unwrap();
    let QueryResult::Hover { hover: Some(hover) } = answer else {
        panic!("a hover: {answer:?}")
    };
    assert_eq!(hover.contents, "a word");

    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let _listening = runtime.events().subscribe(move |event: &ResultReady| {
        sink.lock()
            .unwrap()
            .push((event.call.id.clone(), event.result.is_error));
    });
    let result = call(&runtime, Some(&path(&workspace)), Cancel::new()).await;
    assert!(
        !result.is_error && result.text().contains("a word"),
        "{result:?}"
    );
    assert_eq!(*told.lock().unwrap(), [("c1".to_owned(), false)]);

    let tools: Vec<_> = runtime
        .tools()
        .list()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(tools, ["lsp"]);
    assert!(
        runtime
            .system_prompt()
            .assemble()
            .contains("Use lsp when textual matches")
    );
    runtime.dispose().await.unwrap();
}

/// TOOL-3: a session without a directory has no workspace.
#[tokio::test]
async fn a_session_without_a_directory_asks_nobody() {
    let servers = Servers::new(Behaviour::Answers);
    let runtime = mount(builder(FILE, &servers)).await;
    let result = call(&runtime, None, Cancel::new()).await;
    assert_eq!(result.code.as_deref(), Some("LSP_WORKSPACE_REQUIRED"));
    servers.expect(&[]);
    assert_ne!(
        runtime.open_session(None).header().id,
        runtime.open_session(None).header().id
    );
    runtime.dispose().await.unwrap();
}

/// DIS-3: disposed all at once, the server is asked to shut down and ends by itself, before the
/// services it needs go, and nobody signals it.
#[tokio::test]
async fn disposing_the_whole_runtime_ends_servers_gracefully() {
    let (servers, workspace) = (Servers::new(Behaviour::Answers), workspace());
    let runtime = mount(builder(FILE, &servers)).await;
    runtime
        .lsp()
        .unwrap()
        .query(hover(&workspace), &Cancel::new())
        .await
        .unwrap();
    let (one, two) = tokio::join!(runtime.dispose(), runtime.dispose());
    assert_eq!((one, two), (Ok(()), Ok(())));
    servers.expect(&["spawn", "initialize", "hover", "shutdown", "exit", "let go"]);
    assert!(runtime.lsp().is_none());
    assert_eq!(runtime.tools().list(), []);
    assert_eq!(runtime.system_prompt().assemble(), "");
    runtime.dispose().await.unwrap();
}

/// RUN-7: the tool's budget covers a server that never answers, and the caller hears of it.
#[tokio::test]
async fn a_tool_call_that_takes_too_long_is_a_timeout() {
    let (servers, workspace) = (Servers::new(Behaviour::NeverAnswersHover), workspace());
    let file = format!("{FILE}  config: {{timeoutMs: 30}}\n");
    let runtime = mount(builder(&file, &servers)).await;
    let result = call(&runtime, Some(&path(&workspace)), Cancel::new()).await;
    assert_eq!(result.code.as_deref(), Some("TOOL_TIMEOUT"), "{result:?}");
    assert!(result.text().contains("30 ms"), "{}", result.text());
    runtime.dispose().await.unwrap();
}

/// RUN-3, RUN-7: told not to, the base mounts no timeout policy.
#[tokio::test]
async fn without_the_policy_a_call_has_no_deadline_but_its_caller_s() {
    let (servers, workspace) = (Servers::new(Behaviour::NeverAnswersHover), workspace());
    let file = format!("{FILE}  config: {{timeoutMs: 1}}\n");
    let runtime = mount(builder(&file, &servers).timeout_policy(false)).await;
    assert!(!runtime.plugins().contains(&"dsh-tool-call-timeout-policy"));
    let (cancel, folder) = (Cancel::new(), path(&workspace));
    let (result, ()) = tokio::join!(call(&runtime, Some(&folder), cancel.clone()), async {
        servers.saw("hover").await;
        cancel.cancel(CancelReason::Caller);
    });
    assert_eq!(result.code.as_deref(), Some("LSP_CANCELLED"), "{result:?}");
    runtime.dispose().await.unwrap();
}

/// RUN-3: a row for the policy configures it and does not mount it a second time.
#[tokio::test]
async fn a_row_of_the_policy_takes_the_place_of_the_base_s() {
    let row = "- name: dsh-tool-call-timeout-policy\n  config: {settleMs: 5}\n";
    for base_mounts in [true, false] {
        let builder = Runtime::builder()
            .deployment(deployment(row))
            .timeout_policy(base_mounts);
        let runtime = mount(builder).await;
        assert_eq!(
            runtime.plugins(),
            [
                "dsh-tools",
                "dsh-system-prompt",
                "dsh-agent",
                "dsh-tool-call-timeout-policy"
            ]
        );
        runtime.dispose().await.unwrap();
    }
    let zero = row.replace("settleMs: 5", "settleMs: 0");
    let error = Runtime::builder()
        .deployment(deployment(&zero))
        .mount(&Cancel::new())
        .await;
    let error = error.expect_err("zero is out of range");
    assert!(
        error
            .to_string()
            .starts_with("cordis.yml:1: dsh-tool-call-timeout-policy: "),
        "{error}"
    );
}

/// RUN-2: a deployment that lacks a row mounts; what needs it waits, and is named with its line.
#[tokio::test]
async fn a_plugin_whose_needs_nobody_provides_waits_and_is_named() {
    let servers = Servers::new(Behaviour::Answers);
    let file = FILE.replace("- name: dsh-lsp\n", "");
    let runtime = mount(builder(&file, &servers)).await;
    let waiting = runtime.waiting();
    let told: Vec<_> = waiting.iter().map(ToString::to_string).collect();
    assert_eq!(waiting.len(), 2, "{told:?}");
    assert_eq!(
        told[0],
        "cordis.yml:3: dsh-lsp-stdio waits for what dsh-lsp provides; add the row `- name: dsh-lsp`"
    );
    assert_eq!(waiting[1].plugin, "dsh-tool-lsp");
    assert!(runtime.lsp().is_none());
    runtime.dispose().await.unwrap();
}

/// CFG-4, RUN-1: a plugin that fails takes the whole mount with it, and is named with its line.
#[tokio::test]
async fn a_plugin_that_fails_undoes_the_mount_and_is_named_with_its_row() {
    let servers = Servers::new(Behaviour::NotFound);
    let error = builder(FILE, &servers)
        .mount(&Cancel::new())
        .await
        .expect_err("no executable");
    let MountError::Plugins {
        failures,
        undo: None,
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].plugin, "dsh-lsp-stdio");
    assert!(
        error
            .to_string()
            .starts_with("cordis.yml:4: dsh-lsp-stdio: "),
        "{error}"
    );
    assert!(error.to_string().contains("toy-server"), "{error}");
    assert_eq!(error.code(), failures[0].error.code().unwrap());
    servers.expect(&[]);
}

/// CFG-6: giving up while executables are looked up stops the lookups and waits for them.
#[tokio::test]
async fn giving_up_during_the_mount_stops_the_lookups_and_waits_for_them() {
    let servers = Servers::new(Behaviour::SlowLookup);
    let cancel = Cancel::new();
    let (outcome, ()) = tokio::join!(builder(FILE, &servers).mount(&cancel), async {
        servers.saw("lookup").await;
        cancel.cancel(CancelReason::Caller);
    });
    let error = outcome.expect_err("given up");
    assert_eq!(error.code(), "MOUNT_CANCELLED");
    assert_eq!(
        error.to_string(),
        "the runtime was not mounted: cancelled by the caller"
    );
    servers.expect(&["lookup", "lookup ended"]);
}

#[tokio::test]
async fn the_base_alone_is_a_runtime() {
    let runtime = mount(Runtime::builder()).await;
    assert!(runtime.lsp().is_none());
    assert_eq!(runtime.tools().list(), []);
    runtime.dispose().await.unwrap();
}

/// DIS-6: a runtime that is dropped lets go of the processes of idle servers, also when somebody
/// still holds its services.
#[tokio::test]
async fn a_dropped_runtime_lets_go_of_its_processes() {
    let (servers, workspace) = (Servers::new(Behaviour::Answers), workspace());
    let runtime = mount(builder(FILE, &servers)).await;
    let held = (runtime.lsp().unwrap(), runtime.tools());
    held.0
        .query(hover(&workspace), &Cancel::new())
        .await
        .unwrap();
    drop(runtime);
    servers.saw("let go").await;
    servers.expect(&["spawn", "initialize", "hover", "let go"]);
    assert_eq!(held.1.list(), []);
}

/// DIS-6: a runtime that is dropped in the middle of a query leaves no process behind, also when
/// somebody still holds one of its services.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_runtime_leaves_no_process_behind() {
    let workspace = workspace();
    let life = workspace.path().join("life");
    let made = std::process::Command::new("mkfifo")
        .arg(&life)
        .status()
        .unwrap();
    assert!(made.success());
    // Speaks no protocol; holds the pipe open as long as it lives, at most half a minute.
    let script = "exec 3>\"$1\"; echo up >&3; exec sleep 30";
    let config = serde_json::from_value(json!({"servers": {"mute": {
        "command": "sh",
        "args": ["-c", script, "sh", life],
        "extensionToLanguage": {".toy": "toy"},
    }}}));
    let deployment = Deployment::language_servers(config.unwrap());
    let runtime = mount(Runtime::builder().deployment(deployment)).await;
    let (seam, cancel) = (runtime.lsp().unwrap(), Cancel::new());
    let mut query = Box::pin(seam.query(hover(&workspace), &cancel));
    let (up, is_up) = tokio::sync::oneshot::channel();
    let watcher = tokio::task::spawn_blocking(move || {
        use std::io::{BufRead as _, Read as _};
        let mut pipe = std::io::BufReader::new(std::fs::File::open(life)?);
        pipe.read_line(&mut String::new())?;
        let _ = up.send(());
        // Ends when the last process that holds the pipe is gone.
        pipe.read_to_end(&mut Vec::new())
    });
    tokio::select! {
        result = &mut query => panic!("a server that speaks nothing answered: {result:?}"),
        up = is_up => up.unwrap(),
    }
    drop(query);
    drop(runtime);
    let gone = tokio::time::timeout(Duration::from_secs(20), watcher).await;
    gone.expect("the process outlived its runtime")
        .unwrap()
        .unwrap();
}
