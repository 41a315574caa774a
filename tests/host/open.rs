//! The transient open: one document, one request, and the close (OPN).

use dsh_fake_lsp::{
    Action, FakeServer, Rule, Stream, close, hold, ignore, note, notify, reply, reply_error,
    reply_raw, request, stop_reading,
};
use dsh_lsp::Operation::{self, FindReferences, GoToDefinition, GoToImplementation, Hover};
use dsh_lsp::{LspError, QueryResult};
use dsh_lsp_stdio::Versions;
use serde_json::{Value, json};

use crate::support::{Bench, Gate, bench, failure, fake, hover_text};

/// More than any pipe holds, so that a server which does not read blocks its writer.
const LARGE: usize = 3_000_000;

fn says(text: &str) -> Action {
    reply(json!({"contents": text}))
}

/// OPN-1, OPN-9, OPN-13: the three messages of each operation, whole.
#[test]
fn each_operation_says_exactly_this() {
    let operations = [
        (GoToDefinition, "textDocument/definition"),
        (FindReferences, "textDocument/references"),
        (GoToImplementation, "textDocument/implementation"),
        (Hover, "textDocument/hover"),
    ];
    for (operation, method) in operations {
        let over = bench(fake()).file("b.x", "one\ntwo\n").run(async |bench| {
            bench.query(operation, "b.x:2:3").await.unwrap();
        });
        let uri = over.uri("b.x");
        let opened = json!({"textDocument": {
            "uri": uri, "languageId": "xlang", "version": 1, "text": "one\ntwo\n",
        }});
        assert_eq!(over.params(1, "textDocument/didOpen"), opened);
        let mut asked = json!({
            "textDocument": {"uri": uri},
            "position": {"line": 1, "character": 2},
        });
        if operation == FindReferences {
            asked["context"] = json!({"includeDeclaration": true});
        }
        assert_eq!(over.params(1, method), asked);
        assert_eq!(
            over.params(1, "textDocument/didClose"),
            json!({"textDocument": {"uri": uri}})
        );
    }
}

/// OPN-1: any position passes through, in UTF-16 code units, also one that the text does not have.
#[test]
fn positions_pass_through_unchanged() {
    let over = bench(fake()).file("b.x", "𝒳 = 1\n").run(async |bench| {
        for at in ["b.x:1:3", "b.x:99:1", "b.x:4294967296:9007199254740992"] {
            bench.query(Hover, at).await.unwrap();
        }
    });
    let asked = over.bodies(1, "hover");
    let asked: Vec<_> = asked
        .iter()
        .map(|body| body["params"]["position"].clone())
        .collect();
    let position = |line: u64, character: u64| json!({"line": line, "character": character});
    let last = position(4_294_967_295, 9_007_199_254_740_991);
    assert_eq!(asked, [position(0, 2), position(98, 0), last]);
}

/// OPN-4: the document is closed however the request settles.
#[test]
fn the_document_is_closed_however_the_request_settles() {
    let server = fake()
        .rule(Rule::on("textDocument/hover").nth(1).run([says("fine")]))
        .rule(
            Rule::on("textDocument/hover")
                .nth(2)
                .run([reply_error(-32603, "broken")]),
        )
        .rule(
            Rule::on("textDocument/hover")
                .nth(3)
                .run([reply(json!([1, 2, 3]))]),
        )
        .rule(
            Rule::on("textDocument/hover")
                .nth(4)
                .run([reply(Value::Null)]),
        )
        .rule(
            Rule::on("textDocument/hover")
                .nth(5)
                .run([reply_raw(r#"{"jsonrpc":"2.0","id":${id}}"#)]),
        );
    let over = bench(server).run(async |bench| {
        assert_eq!(
            hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
            Some("fine")
        );
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_ERROR");
        failure(
            bench.query(Hover, "a.x:1:1").await,
            "LSP_MALFORMED_RESPONSE",
        );
        assert_eq!(hover_text(bench.query(Hover, "a.x:1:1").await), None);
        failure(
            bench.query(Hover, "a.x:1:1").await,
            "LSP_MALFORMED_RESPONSE",
        );
    });
    let five = "didOpen hover didClose ".repeat(5);
    over.processes(1)
        .wire(1, &format!("initialize initialized {five} shutdown exit"));
}

/// A server whose first process stops reading once it is initialized.
fn stops_reading() -> FakeServer {
    fake().rule(Rule::on("initialized").process(1).run([stop_reading()]))
}

/// OPN-3, OPN-5: a document that a server does not read blocks nobody but its own query; giving
/// that up ends the instance, and the next query gets another.
#[test]
fn an_open_that_is_given_up_ends_the_instance() {
    let setup = bench(stops_reading())
        .file("large.x", "x".repeat(LARGE))
        .torn_input();
    let over = setup.run(async |bench| {
        let query = bench.start(Hover, "large.x:1:1");
        bench.received(1, "initialized").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "large.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized")
        .wire(
            2,
            "initialize initialized didOpen hover didClose shutdown exit",
        )
        .terminated(1);
}

/// OPN-3: a document that is read late arrives whole, and before its request.
#[test]
fn an_open_that_blocks_for_a_while_arrives_whole() {
    let server = fake()
        .on("initialized", [stop_reading()])
        .on("textDocument/hover", [says("late")]);
    let text = "é😀\n".repeat(LARGE / 10);
    let over = bench(server).file("large.x", &text).run(async |bench| {
        let mut query = bench.start(Hover, "large.x:1:1");
        bench.received(1, "initialized").await;
        assert_eq!(query.outcome_so_far(), None);
        bench.control.perform(1, [Action::ResumeReading]).unwrap();
        assert_eq!(hover_text(query.outcome().await).as_deref(), Some("late"));
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover didClose shutdown exit",
    );
    assert_eq!(over.params(1, "didOpen")["textDocument"]["text"], text);
}

/// OPN-5, CRS-1: a write that fails, since the server closed its stdin, ends the instance.
#[test]
fn an_open_that_cannot_be_written_ends_the_instance() {
    let rule = Rule::on("initialized").process(1);
    let server = fake().rule(rule.run([stop_reading(), hold("blocked"), close(Stream::Stdin)]));
    let setup = bench(server)
        .file("large.x", "x".repeat(LARGE))
        .torn_input();
    let over = setup.run(async |bench| {
        let query = bench.start(Hover, "large.x:1:1");
        bench.held("blocked").await;
        bench.control.release("blocked");
        let message = failure(query.outcome().await, "LSP_SERVER_EXITED");
        assert!(message.contains("stdin"), "{message}");
        bench.query(Hover, "large.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized")
        .terminated(1);
}

/// A server that gives this answer and then closes its stdin, before its client can say more.
fn answers_and_closes(answer: Action) -> FakeServer {
    let actions = [
        hold("answer"),
        answer,
        close(Stream::Stdin),
        note("closed", Value::Null),
    ];
    fake().rule(Rule::on("textDocument/hover").process(1).run(actions))
}

/// Asks such a server; the host sees the answer and the closed stdin at once.
async fn asked_of_one_that_closes(bench: &Bench) -> Result<QueryResult, LspError> {
    let query = bench.start(Hover, "a.x:1:1");
    bench.held("answer").await;
    bench.control.release("answer");
    bench.while_the_host_stands_still(bench.noted(1, "note"));
    query.outcome().await
}

/// OPN-6: an answer that arrived is kept though the close cannot be written; the instance goes.
#[test]
fn a_close_that_fails_keeps_the_answer_and_discards_the_instance() {
    let over = bench(answers_and_closes(says("kept"))).run(async |bench| {
        let outcome = asked_of_one_that_closes(bench).await;
        assert_eq!(hover_text(outcome).as_deref(), Some("kept"));
        assert_eq!(hover_text(bench.query(Hover, "a.x:1:1").await), None);
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover")
        .terminated(1);
}

/// OPN-6: an error that arrived is kept too.
#[test]
fn a_close_that_fails_keeps_the_error() {
    let over = bench(answers_and_closes(reply_error(-32603, "kept"))).run(async |bench| {
        let message = failure(asked_of_one_that_closes(bench).await, "LSP_SERVER_ERROR");
        assert!(message.contains("kept"), "{message}");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover")
        .terminated(1);
}

/// OPN-6: a close that the server does not read, since its pipe is full, ends the instance after
/// the grace; the answer was given before.
#[test]
fn a_close_that_blocks_discards_the_instance_after_the_grace() {
    // The answers to these fill the pipe of a server that does not read.
    let questions = (0..3_000).map(|id| request(json!(id), "window/showMessageRequest", json!({})));
    let actions = [stop_reading()]
        .into_iter()
        .chain(questions)
        .chain([says("kept")]);
    let server = fake().rule(Rule::on("textDocument/hover").process(1).run(actions));
    let over = bench(server).grace_ms(100).torn_input().run(async |bench| {
        assert_eq!(
            hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
            Some("kept")
        );
        assert_eq!(hover_text(bench.query(Hover, "a.x:1:1").await), None);
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover");
}

/// OPN-7: the next open of a workspace waits for the close before it.
#[test]
fn lifecycles_of_one_workspace_never_overlap() {
    let server = fake().on("textDocument/hover", [hold("answer")]);
    let over = bench(server).file("b.x", "").run(async |bench| {
        let queries = ["a.x:1:1", "b.x:1:1", "a.x:1:2"].map(|at| bench.start(Hover, at));
        for _ in 0..3 {
            bench.held("answer").await;
            bench.control.release("answer");
        }
        for query in queries {
            query.outcome().await.unwrap();
        }
    });
    over.processes(1).wire(
        1,
        "initialize initialized
         didOpen hover didClose didOpen hover didClose didOpen hover didClose shutdown exit",
    );
}

/// OPN-7: other workspaces and other providers are not waited for.
#[test]
fn lifecycles_of_different_workspaces_and_providers_run_side_by_side() {
    let server = fake().rule(
        Rule::on("textDocument/hover")
            .process(1)
            .run([hold("answer")]),
    );
    let setup = bench(server)
        .file("a.y", "y\n")
        .beside("other", ".y", fake());
    let over = setup.run(async |bench| {
        let held = bench.start(Hover, "a.x:1:1");
        bench.held("answer").await;
        let other = bench.another_workspace("other");
        bench
            .start_in(&other, Hover, "a.x:1:1")
            .outcome()
            .await
            .unwrap();
        bench.query(Hover, "a.y:1:1").await.unwrap();
        assert_eq!(bench.wire_so_far(1), "initialize initialized didOpen hover");
        bench.control.release("answer");
        held.outcome().await.unwrap();
    });
    over.processes(3);
}

/// OPN-10: a reopened document is answered from the text of the last open.
#[test]
fn a_reopened_document_is_answered_from_its_new_text() {
    let server = fake().on("textDocument/hover", [says("${text}")]);
    let over = bench(server).run(async |bench| {
        for text in ["first\n", "second\n", "first\n"] {
            bench.write("a.x", text);
            assert_eq!(
                hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
                Some(text)
            );
        }
    });
    let opened = over.processes(1).bodies(1, "didOpen");
    assert!(
        opened
            .iter()
            .all(|body| body["params"]["textDocument"]["version"] == 1)
    );
}

/// OPN-11: queries of one root run in the order of their calls, also those that were called while
/// the root was being looked up, and those called right after.
#[test]
fn queries_run_in_the_order_of_their_calls() {
    let over = bench(fake()).run(async |bench| {
        bench.files.shut(Gate::Workspace);
        let mut queries: Vec<_> = (1..=5)
            .map(|n| bench.start(Hover, &format!("a.x:1:{n}")))
            .collect();
        bench.looked("workspace", 1).await;
        queries.extend((6..=10).map(|n| bench.start(Hover, &format!("a.x:1:{n}"))));
        tokio::task::yield_now().await;
        bench.files.open(Gate::Workspace);
        queries.extend((11..=15).map(|n| bench.start(Hover, &format!("a.x:1:{n}"))));
        for query in queries {
            query.outcome().await.unwrap();
        }
        assert_eq!(bench.looks("workspace"), 1);
    });
    let asked = over.bodies(1, "hover");
    let asked: Vec<_> = asked
        .iter()
        .map(|body| body["params"]["position"]["character"].as_u64())
        .collect();
    assert_eq!(asked, (0..15).map(Some).collect::<Vec<_>>());
}

/// The versions a document was opened with, in order.
fn versions(over: &crate::support::Over, process: u32, file: &str) -> Vec<u64> {
    let uri = over.uri(file);
    let opened = over.bodies(process, "didOpen");
    let documents = opened.iter().map(|body| &body["params"]["textDocument"]);
    let of_file = documents.filter(|document| document["uri"] == uri.as_str());
    of_file
        .filter_map(|document| document["version"].as_u64())
        .collect()
}

/// OPN-12: where versions rise, each document counts for itself, and each process anew.
#[test]
fn versions_rise_where_that_is_configured() {
    let rule = Rule::on("textDocument/implementation").process(1);
    let server = fake().rule(rule.run([dsh_fake_lsp::exit(1)]));
    let setup = bench(server)
        .file("b.x", "")
        .configure(|config| config.versions = Versions::Rising);
    let over = setup.run(async |bench| {
        for file in ["a.x:1:1", "a.x:1:1", "b.x:1:1", "a.x:1:1"] {
            bench.query(Hover, file).await.unwrap();
        }
        failure(
            bench.query(GoToImplementation, "b.x:1:1").await,
            "LSP_SERVER_EXITED",
        );
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2);
    assert_eq!(versions(&over, 1, "a.x"), [1, 2, 3]);
    assert_eq!(versions(&over, 1, "b.x"), [1, 2]);
    assert_eq!(versions(&over, 2, "a.x"), [1]);
}

/// OPN-8: whatever a server tells and asks for, nothing else is sent to it.
#[test]
fn nothing_else_is_ever_sent() {
    let all: [Operation; 4] = Operation::ALL;
    let invitations = json!({
        "textDocumentSync": {"openClose": true, "change": 2, "willSave": true,
            "willSaveWaitUntil": true, "save": {"includeText": true}},
        "completionProvider": {}, "diagnosticProvider": {"interFileDependencies": true},
        "executeCommandProvider": {"commands": ["x"]}, "inlayHintProvider": true,
        "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
    });
    let watchers = json!({"registrations": [
        {"id": "1", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": []}},
        {"id": "2", "method": "textDocument/didSave"},
        {"id": "3", "method": "workspace/didChangeConfiguration"},
    ]});
    let server = fake()
        .capabilities(invitations)
        .on(
            "initialized",
            [
                request(json!(1), "client/registerCapability", watchers),
                request(json!(2), "workspace/diagnostic/refresh", Value::Null),
                request(
                    json!(3),
                    "workspace/configuration",
                    json!({"items": [{"section": "x"}]}),
                ),
                notify(
                    "textDocument/publishDiagnostics",
                    json!({"uri": "u", "diagnostics": []}),
                ),
            ],
        )
        .on("textDocument/didClose", [ignore()]);
    let over = bench(server).run(async |bench| {
        for operation in all {
            bench.query(operation, "a.x:1:1").await.unwrap();
        }
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen definition didClose didOpen references didClose
         didOpen implementation didClose didOpen hover didClose shutdown exit",
    );
    assert_eq!(over.answers(1).len(), 3);
}
