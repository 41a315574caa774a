//! Error answers, and what may be asked again (ERR).

use std::collections::BTreeSet;
use std::time::Duration;

use dsh_fake_lsp::{Action, FakeServer, Rule, exit, hold, reply, reply_error, reply_raw};
use dsh_kernel::CancelReason;
use dsh_lsp::LspError;
use dsh_lsp::Operation::{GoToDefinition, Hover};
use serde_json::json;

use crate::support::{bench, failure, fake, hover_text};

/// The nth hover is answered with the nth of these.
fn hovers(answers: impl IntoIterator<Item = Action>) -> FakeServer {
    (1..).zip(answers).fold(fake(), |server, (nth, answer)| {
        server.rule(Rule::on("textDocument/hover").nth(nth).run([answer]))
    })
}

/// ERR-1: message and code are the server's; the document is closed and the session goes on.
#[test]
fn an_error_answer_keeps_code_and_message() {
    let server = hovers([reply_error(-32603, "no snapshot of «é» 😀")]);
    let over = bench(server).run(async |bench| {
        let error = bench.query(Hover, "a.x:1:1").await.unwrap_err();
        assert_eq!(error.server_code(), Some(-32603));
        let message = failure(Err(error), "LSP_SERVER_ERROR");
        assert!(
            message.contains("no snapshot of «é» 😀") && message.contains("-32603"),
            "{message}"
        );
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit",
    );
}

/// ERR-1: an error that says little, or says it wrong, is an error all the same.
#[test]
fn an_error_answer_without_a_message_gets_one() {
    let errors = [
        json!({"code": 1}),
        json!({"code": 1, "message": ""}),
        json!({"code": 1, "message": null}),
        json!({"code": 1, "message": 7}),
        json!({"code": "1", "message": null}),
        json!({}),
        json!([]),
        json!(false),
    ];
    let server = hovers(errors.iter().map(|error| {
        reply_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":${{id}},"error":{error}}}"#
        ))
    }));
    let over = bench(server).run(async |bench| {
        for error in &errors {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_ERROR");
            assert!(message.contains("no message"), "{error}: {message}");
        }
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
}

/// ERR-1: `error: null` beside a result, as some servers write it, is no error.
#[test]
fn a_null_error_beside_a_result_is_none() {
    let body = r#"{"jsonrpc":"2.0","id":${id},"result":{"contents":"fine"},"error":null}"#;
    let over = bench(fake().on("textDocument/hover", [reply_raw(body)])).run(async |bench| {
        assert_eq!(
            hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
            Some("fine")
        );
    });
    over.processes(1);
}

/// ERR-3: answers that were overtaken are told apart from errors.
#[test]
fn stale_answers_have_a_code_of_their_own() {
    let server = hovers([-32801, -32802].map(|code| reply_error(code, "content modified")));
    let over = bench(server).run(async |bench| {
        for code in [-32801, -32802] {
            let error = bench.query(Hover, "a.x:1:1").await.unwrap_err();
            assert_eq!(
                (error.code(), error.server_code()),
                ("LSP_STALE", Some(code))
            );
            assert!(error.to_string().contains("content modified"), "{error}");
        }
    });
    let twice =
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit";
    over.processes(1).wire(1, twice);
}

/// ERR-3: an answer that the request was cancelled, which nobody did, is an ordinary error.
#[test]
fn request_cancelled_by_the_server_alone_is_an_ordinary_error() {
    let server = hovers([reply_error(-32800, "cancelled")]);
    let over = bench(server)
        .configure(|config| config.retry_stale = 3)
        .run(async |bench| {
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_ERROR");
        });
    over.wire(
        1,
        "initialize initialized didOpen hover didClose shutdown exit",
    );
}

fn stale() -> Action {
    reply_error(-32801, "content modified")
}

/// ERR-4: asked again in the same open document, under ids of their own.
#[test]
fn a_stale_answer_is_asked_for_again() {
    let server = hovers([
        stale(),
        reply_error(-32802, "cancelled"),
        reply(json!({"contents": "fresh"})),
    ]);
    let over = bench(server)
        .configure(|config| config.retry_stale = 2)
        .run(async |bench| {
            assert_eq!(
                hover_text(bench.query(Hover, "a.x:1:1").await).as_deref(),
                Some("fresh")
            );
        });
    over.wire(
        1,
        "initialize initialized didOpen hover hover hover didClose shutdown exit",
    );
    let asked = over.bodies(1, "hover");
    let ids: BTreeSet<_> = asked
        .iter()
        .filter_map(|body| body["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(
        asked
            .iter()
            .all(|body| body["params"] == asked[0]["params"])
    );
}

/// ERR-4: so often and no more; the count is each query's own.
#[test]
fn a_stale_answer_is_asked_for_again_only_so_often() {
    let server = fake().on("textDocument/hover", [stale()]);
    let over = bench(server)
        .configure(|config| config.retry_stale = 1)
        .run(async |bench| {
            for _ in 0..2 {
                failure(bench.query(Hover, "a.x:1:1").await, "LSP_STALE");
            }
        });
    let twice = "didOpen hover hover didClose ".repeat(2);
    over.wire(1, &format!("initialize initialized {twice} shutdown exit"));
}

/// ERR-4, CAN-3: between two questions the caller may still give up.
#[test]
fn asking_again_ends_with_the_caller() {
    let server = fake()
        .rule(Rule::on("textDocument/hover").nth(1).run([stale()]))
        .rule(Rule::on("textDocument/hover").nth(2).run([hold("second")]));
    let over = bench(server)
        .configure(|config| config.retry_stale = 9)
        .run(async |bench| {
            let query = bench.start(Hover, "a.x:1:1");
            bench.held("second").await;
            query.cancel();
            failure(query.outcome().await, "LSP_CANCELLED");
            bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
        });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover hover $/cancelRequest didClose
         didOpen definition didClose shutdown exit",
    );
    let second = &over.bodies(1, "hover")[1]["id"];
    assert_eq!(over.params(1, "$/cancelRequest"), json!({"id": second}));
}

/// ERR-4, CRS-1: a crash is not replayed, whatever is configured.
#[test]
fn a_crash_is_not_asked_again() {
    let server = fake().rule(Rule::on("textDocument/hover").process(1).run([exit(1)]));
    let over = bench(server)
        .configure(|config| config.retry_stale = 9)
        .run(async |bench| {
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
            assert_eq!(bench.processes.spawned().len(), 1);
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover");
}

/// ERR-2, ERR-5: a timeout, a cancellation, a dead server and an empty answer, in words; in code
/// where the seam has one (who armed the timeout has its own, RUN-7).
#[test]
fn four_outcomes_are_told_apart() {
    let server = fake()
        .rule(Rule::on("textDocument/hover").nth(1).run([hold("timeout")]))
        .rule(Rule::on("textDocument/hover").nth(2).run([hold("cancel")]))
        .rule(
            Rule::on("textDocument/hover")
                .nth(3)
                .run([reply(json!(null))]),
        )
        .rule(Rule::on("textDocument/hover").nth(4).run([exit(9)]));
    let over = bench(server).run(async |bench| {
        let budget = Duration::from_millis(1_500);
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("timeout").await;
        query.cancel_for(CancelReason::Timeout(budget));
        let timeout = query.outcome().await.unwrap_err();
        assert_eq!(timeout, LspError::Cancelled(CancelReason::Timeout(budget)));
        assert_eq!(timeout.to_string(), "query timed out after 1500 ms");

        let query = bench.start(Hover, "a.x:1:1");
        bench.held("cancel").await;
        query.cancel();
        let cancelled = query.outcome().await.unwrap_err();
        assert_eq!(cancelled, LspError::Cancelled(CancelReason::Caller));
        assert_eq!(cancelled.to_string(), "query cancelled by the caller");

        assert_eq!(hover_text(bench.query(Hover, "a.x:1:1").await), None);

        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        assert!(message.contains("exit code 9"), "{message}");
    });
    over.processes(1);
}
