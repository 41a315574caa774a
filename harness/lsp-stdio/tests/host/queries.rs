use std::sync::Arc;

use dsh_kernel::Cancel;
use dsh_lsp::{LspProvider, LspRegistry, LspService, Operation, Position, QueryRequest};
use dsh_lsp_stdio::Versions;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::fakes::{config, host, host_of, settle};

/// CFG-7, CFG-8, INI-1, INI-2, OPN-1, ENV-4, HST-8: nothing starts at load; the first query starts
/// one process, in the workspace, and the next ones use it.
#[tokio::test(start_paused = true)]
async fn one_process_serves_a_workspace() {
    let host = host().await;
    settle().await;
    assert_eq!(host.processes.started(), 0);
    let play = async {
        let mut server = host.processes.next().await;
        let initialize = server.greet().await;
        assert_eq!(initialize["params"]["rootUri"], "file:///w");
        assert_eq!(initialize["params"]["processId"], Value::Null);
        let open = server.expect("textDocument/didOpen").await;
        assert_eq!(
            open["params"]["textDocument"],
            json!({"uri": "file:///w/a.x", "languageId": "xlang", "version": 1, "text": "text of a"})
        );
        let request = server.expect("textDocument/hover").await;
        assert_eq!(
            request["params"]["textDocument"]["uri"],
            open["params"]["textDocument"]["uri"]
        );
        server.reply(&request, json!({"contents": "one"})).await;
        server.expect("textDocument/didClose").await;
        for number in ["two", "three"] {
            server.hover(number).await;
        }
        server
    };
    let ask = async { [host.ask().await, host.ask().await, host.ask().await] };
    let (answers, server) = tokio::join!(ask, play);
    assert_eq!(
        answers,
        ["one", "two", "three"].map(|contents| Ok(contents.to_owned()))
    );
    assert_eq!(host.processes.started(), 1);
    let spec = host.processes.spec(0);
    assert_eq!(spec.cwd.to_str(), Some("/w"));
    assert_eq!(spec.executable.to_str(), Some("/bin/x-server"));
    assert_eq!(
        (spec.args, spec.max_stderr_bytes),
        (vec!["--stdio".to_owned()], 1_000_000)
    );
    host.end(server).await;
}

/// CFG-8: concurrent first queries share one start.
#[tokio::test(start_paused = true)]
async fn concurrent_first_queries_share_a_start() {
    let host = host().await;
    let play = async {
        let mut server = host.processes.next().await;
        server.greet().await;
        for number in 0..10 {
            server.hover(&number.to_string()).await;
        }
        server
    };
    let cancel = Cancel::new();
    let asks = join_all((0..10).map(|_| host.hover(&cancel)));
    let (answers, server) = tokio::join!(asks, play);
    let expected: Vec<_> = (0..10).map(|number| Ok(number.to_string())).collect();
    assert_eq!(answers, expected, "in the order of calling (OPN-11)");
    assert_eq!((host.processes.started(), host.files.lookups()), (1, 1));
    host.end(server).await;
}

/// HST-1: aliases of a workspace share its instance.
#[tokio::test(start_paused = true)]
async fn aliases_share_an_instance() {
    let host = host().await;
    host.files.link("/link", "/w");
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let (answer, _) = tokio::join!(
        host.hover_in("/link", "a.x", &cancel),
        server.hover("by alias")
    );
    assert_eq!(answer.as_deref(), Ok("by alias"));
    assert_eq!(host.processes.started(), 1);
    host.end(server).await;
}

/// OPN-7: lifecycles of one workspace never overlap, not even a read with a close.
#[tokio::test(start_paused = true)]
async fn lifecycles_do_not_overlap() {
    let host = host().await;
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let play = async {
        for number in 0..3 {
            let request = server.asked().await;
            settle().await;
            assert_eq!(
                host.files.reads().len(),
                number + 2,
                "the next one is not read yet"
            );
            server
                .reply(&request, json!({"contents": number.to_string()}))
                .await;
            server.expect("textDocument/didClose").await;
        }
    };
    let asks = join_all((0..3).map(|_| host.hover(&cancel)));
    let (answers, ()) = tokio::join!(asks, play);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    host.end(server).await;
}

/// OPN-7, CFG-8: distinct workspaces have distinct processes, and run side by side.
#[tokio::test(start_paused = true)]
async fn distinct_workspaces_run_side_by_side() {
    let host = host().await;
    host.files.link("/v", "/v");
    host.files.write("/v/b.x", "text of b");
    let mut first = host.warm().await;
    let cancel = Cancel::new();
    let play = async {
        let held = first.asked().await;
        let mut second = host.processes.next().await;
        second.greet().await;
        assert_eq!(second.hover("of v").await, "text of b");
        first.reply(&held, json!({"contents": "of w"})).await;
        first.expect("textDocument/didClose").await;
        second
    };
    let ask_v = host.hover_in("/v", "b.x", &cancel);
    let (w, v, mut second) = tokio::join!(host.hover(&cancel), ask_v, play);
    assert_eq!((w.as_deref(), v.as_deref()), (Ok("of w"), Ok("of v")));
    let (ended, (), ()) = tokio::join!(host.dispose(), first.obey(), second.obey());
    assert_eq!(ended, Ok(()));
    host.is_quiet();
}

/// INI-6: what is not advertised fails before anything is opened; the process is kept.
#[tokio::test(start_paused = true)]
async fn the_unsupported_keeps_the_process() {
    let host = host().await;
    let play = async {
        let mut server = host.processes.next().await;
        let initialize = server.expect("initialize").await;
        server
            .reply(
                &initialize,
                json!({"capabilities": {"textDocumentSync": 1}}),
            )
            .await;
        server.expect("initialized").await;
        server
    };
    let (answer, server) = tokio::join!(host.ask(), play);
    assert_eq!(answer.unwrap_err().code(), "LSP_UNSUPPORTED_OPERATION");
    assert_eq!(
        host.ask().await.unwrap_err().code(),
        "LSP_UNSUPPORTED_OPERATION"
    );
    assert_eq!(host.processes.started(), 1);
    host.end(server).await;
}

/// INI-4, INI-9, OPN-12, ERR-4, SRQ-2: what is configured reaches the server.
#[tokio::test(start_paused = true)]
async fn the_configuration_reaches_the_server() {
    let mut config = config();
    config.initialization_options = json!({"o": [1]});
    config.configuration = json!({"c": true});
    config.announce_configuration = true;
    config.versions = Versions::Rising;
    config.retry_stale = 1;
    let host = host_of(config).await;
    let play = async {
        let mut server = host.processes.next().await;
        let initialize = server.greet().await;
        assert_eq!(
            initialize["params"]["initializationOptions"],
            json!({"o": [1]})
        );
        let announced = server.expect("workspace/didChangeConfiguration").await;
        assert_eq!(announced["params"]["settings"], json!({"c": true}));
        server.say(&json!({"id": "q", "method": "workspace/configuration", "params": {"items": [{}, {}]}})).await;
        for version in [1, 2] {
            let open = server.expect("textDocument/didOpen").await;
            assert_eq!(open["params"]["textDocument"]["version"], version);
            let request = server.expect("textDocument/hover").await;
            if version == 1 {
                let configured = server.read().await.expect("an answer");
                assert_eq!(configured["result"], json!([{"c": true}, {"c": true}]));
            }
            server.reply_error(&request, -32801).await;
            let again = server.expect("textDocument/hover").await;
            server.reply(&again, json!({"contents": "at last"})).await;
            server.expect("textDocument/didClose").await;
        }
        server
    };
    let ask = async { [host.ask().await, host.ask().await] };
    let (answers, server) = tokio::join!(ask, play);
    assert_eq!(
        answers,
        [Ok("at last".to_owned()), Ok("at last".to_owned())]
    );
    host.end(server).await;
}

/// ERR-1: an error answer fails the query alone.
#[tokio::test(start_paused = true)]
async fn an_error_answer_keeps_the_process() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        let request = server.asked().await;
        server.reply_error(&request, -32803).await;
        server.expect("textDocument/didClose").await;
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    let error = answer.unwrap_err();
    assert_eq!(
        (error.code(), error.server_code()),
        ("LSP_SERVER_ERROR", Some(-32803))
    );
    let (answer, _) = tokio::join!(host.ask(), server.hover("again"));
    assert_eq!(answer.as_deref(), Ok("again"));
    host.end(server).await;
}

/// SRQ-1: the server is answered while no query is under way.
#[tokio::test(start_paused = true)]
async fn the_server_is_answered_while_idle() {
    let host = host().await;
    let mut server = host.warm().await;
    for id in [json!(7), json!("seven")] {
        server
            .say(&json!({"id": id, "method": "client/registerCapability", "params": {}}))
            .await;
        let answer = server.read().await.expect("an answer");
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": null}));
    }
    host.end(server).await;
}

/// SRQ-1, SRQ-6, FRM-3: pipes that hold next to nothing, both sides talking at once: nobody waits for
/// ever.
#[tokio::test(start_paused = true)]
async fn narrow_pipes_do_not_deadlock() {
    let host = host().await;
    host.processes.pipes_of(16);
    host.files.write("/w/a.x", &"a long text\n".repeat(200));
    let play = async {
        let mut server = host.processes.next().await;
        server.greet().await;
        for number in 0..200 {
            server
                .say(&json!({"id": number, "method": "client/registerCapability"}))
                .await;
            server
                .say(&json!({"method": "window/logMessage", "params": {"message": "log"}}))
                .await;
        }
        let (mut request, mut answers) = (None, 0);
        while request.is_none() || answers < 200 {
            let message = server.read().await.expect("more");
            match message["method"].as_str() {
                None => answers += 1,
                Some("textDocument/hover") => request = Some(message),
                Some(other) => assert_eq!(other, "textDocument/didOpen"),
            }
        }
        server
            .reply(
                &request.expect("asked"),
                json!({"contents": "é".repeat(3_000)}),
            )
            .await;
        server.expect("textDocument/didClose").await;
        server
    };
    let (answer, server) = tokio::join!(host.ask(), play);
    assert_eq!(answer, Ok("é".repeat(3_000)));
    host.end(server).await;
}

/// SEAM-1, SEAM-9, SEAM-11, SEAM-14: through the seam, a navigation with the canonical workspace.
#[tokio::test(start_paused = true)]
async fn through_the_seam() {
    let host = host().await;
    host.files.link("/link", "/w");
    let registry = LspRegistry::new();
    let registration = registry
        .register_provider(Arc::clone(&host.provider) as _)
        .unwrap();
    let request = QueryRequest {
        operation: Operation::FindReferences,
        file_path: "a.x".to_owned(),
        position: Position {
            line: 4,
            character: 2,
        },
        workspace_root: "/link".to_owned(),
    };
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    let play = async {
        let mut server = host.processes.next().await;
        server.greet().await;
        server.expect("textDocument/didOpen").await;
        let asked = server.expect("textDocument/references").await;
        assert_eq!(
            asked["params"]["context"],
            json!({"includeDeclaration": true})
        );
        assert_eq!(
            asked["params"]["position"],
            json!({"line": 4, "character": 2})
        );
        server
            .reply(&asked, json!([{"uri": "untitled:1", "range": range}]))
            .await;
        server.expect("textDocument/didClose").await;
        server
    };
    let cancel = Cancel::new();
    let (answer, server) = tokio::join!(registry.query(request, &cancel), play);
    assert_eq!(
        serde_json::to_value(answer.unwrap()).unwrap(),
        json!({
            "kind": "locations",
            "locations": [{"uri": "untitled:1", "range": range}],
            "resolvedWorkspaceUri": "file:///w",
        })
    );
    assert_eq!(host.provider.extension_to_language()[".x"], "xlang");
    registration.release();
    drop(registry);
    host.end(server).await;
}
