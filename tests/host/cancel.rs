//! Giving up, in every state a query can be in (CAN).
//!
//! The graces here are a minute long unless their end is what is tested: a test that passes has
//! waited for none of them.

use std::time::Duration;

use dsh_fake_lsp::{
    Action, FakeServer, Rule, exit, hold, ignore, note, reply, reply_error, stop_reading,
};
use dsh_kernel::{Cancel, CancelReason};
use dsh_lsp::LspError;
use dsh_lsp::Operation::{FindReferences, GoToDefinition, Hover};
use serde_json::{Value, json};

use crate::support::{Gate, bench, failure, fake, hover_text, request};

/// What one query and the disposal put on the wire.
const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// More than any pipe holds.
const LARGE: usize = 3_000_000;

fn says(text: &str) -> Action {
    reply(json!({"contents": text}))
}

/// A server whose first process holds its hovers, and does this when one is cancelled.
fn cancelled(actions: impl IntoIterator<Item = Action>) -> FakeServer {
    fake()
        .rule(
            Rule::on("textDocument/hover")
                .process(1)
                .nth(1)
                .run([hold("flight")]),
        )
        .rule(Rule::on("$/cancelRequest").process(1).run(actions))
}

/// CAN-1: a query that was given up before it began does nothing at all.
#[test]
fn given_up_before_it_starts() {
    let over = bench(fake()).run(async |bench| {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Caller);
        let query = bench.start_with(cancel, bench.workspace(), Hover, "a.x:1:1");
        failure(query.outcome().await, "LSP_CANCELLED");
        assert_eq!((bench.looks("workspace"), bench.looks("source")), (0, 0));
    });
    over.processes(0);
}

/// CAN-1: also where a server is running already.
#[test]
fn given_up_before_it_starts_beside_a_running_server() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Caller);
        let query = bench.start_with(cancel, bench.workspace(), Hover, "a.x:1:1");
        failure(query.outcome().await, "LSP_CANCELLED");
        assert_eq!(bench.looks("source"), 1);
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// CAN-2: during the lookup of the workspace; the lookup is told to stop, nothing is started, and
/// the next query looks anew.
#[test]
fn given_up_during_the_lookup() {
    let over = bench(fake()).run(async |bench| {
        bench.files.shut(Gate::Workspace);
        let query = bench.start(Hover, "a.x:1:1");
        bench.looked("workspace", 1).await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.looked("cancelled", 1).await;
        bench.files.open(Gate::Workspace);
        bench.query(Hover, "a.x:1:1").await.unwrap();
        assert_eq!((bench.looks("workspace"), bench.looks("source")), (2, 1));
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// CAN-2, CAN-5: a lookup that others wait for goes on without the one that gave up.
#[test]
fn given_up_during_a_lookup_that_others_wait_for() {
    let over = bench(fake()).run(async |bench| {
        bench.files.shut(Gate::Workspace);
        let [first, second, third] =
            ["a.x:1:1", "a.x:1:2", "a.x:1:3"].map(|at| bench.start(Hover, at));
        bench.looked("workspace", 1).await;
        second.cancel();
        failure(second.outcome().await, "LSP_CANCELLED");
        bench.files.open(Gate::Workspace);
        first.outcome().await.unwrap();
        third.outcome().await.unwrap();
        assert_eq!((bench.looks("workspace"), bench.looks("cancelled")), (1, 0));
    });
    let asked = over.processes(1).bodies(1, "hover");
    let asked: Vec<_> = asked
        .iter()
        .map(|body| &body["params"]["position"]["character"])
        .collect();
    assert_eq!(asked, [0, 2]);
}

/// CAN-2, CAN-5: while queued: the one that runs and those behind are not disturbed.
#[test]
fn given_up_while_queued() {
    let server = fake().rule(
        Rule::on("textDocument/hover")
            .nth(1)
            .run([hold("flight"), says("1")]),
    );
    let over = bench(server).run(async |bench| {
        let first = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        let [second, third, fourth] =
            [Hover, GoToDefinition, FindReferences].map(|what| bench.start(what, "a.x:1:1"));
        tokio::task::yield_now().await;
        second.cancel();
        failure(second.outcome().await, "LSP_CANCELLED");
        bench.control.release("flight");
        assert_eq!(hover_text(first.outcome().await).as_deref(), Some("1"));
        third.outcome().await.unwrap();
        fourth.outcome().await.unwrap();
        assert_eq!(bench.looks("source"), 3);
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover didClose didOpen definition didClose
         didOpen references didClose shutdown exit",
    );
}

/// CAN-2: while the source is being read, with no process yet: none is started for it.
#[test]
fn given_up_while_reading_the_source() {
    let over = bench(fake()).run(async |bench| {
        bench.files.shut(Gate::Source);
        let query = bench.start(Hover, "a.x:1:1");
        bench.looked("source", 1).await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.looked("cancelled", 1).await;
        bench.files.open(Gate::Source);
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// CAN-2: while the source is being read, with a process: it gets nothing of it and lives on.
#[test]
fn given_up_while_reading_the_source_beside_a_running_server() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.files.shut(Gate::Source);
        let query = bench.start(GoToDefinition, "a.x:1:1");
        let behind = bench.start(Hover, "a.x:1:1");
        bench.looked("source", 2).await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.files.open(Gate::Source);
        behind.outcome().await.unwrap();
    });
    let twice =
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit";
    over.processes(1).wire(1, twice);
}

/// CAN-2, INI-8, INI-1: during the handshake: the process is given up without a further word, and
/// the next query gets another.
#[test]
fn given_up_during_the_handshake() {
    let server = fake().rule(Rule::on("initialize").process(1).run([hold("start")]));
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("start").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.ended(1).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize")
        .wire(2, ONE_QUERY)
        .terminated(1);
}

/// CAN-2, CAN-5: the one behind a handshake that is given up starts a process of its own.
#[test]
fn given_up_during_the_handshake_with_another_behind() {
    let server = fake().rule(Rule::on("initialize").process(1).run([hold("start")]));
    let over = bench(server).run(async |bench| {
        let [query, behind] = [Hover, GoToDefinition].map(|what| bench.start(what, "a.x:1:1"));
        bench.held("start").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        behind.outcome().await.unwrap();
    });
    over.processes(2).wire(1, "initialize").wire(
        2,
        "initialize initialized didOpen definition didClose shutdown exit",
    );
}

/// CAN-2, CAN-5: one that waits behind the handshake gives up: the handshake goes on.
#[test]
fn given_up_behind_a_handshake() {
    let server = fake().on("initialize", [hold("start")]);
    let over = bench(server).run(async |bench| {
        let [query, behind] = [Hover, GoToDefinition].map(|what| bench.start(what, "a.x:1:1"));
        bench.held("start").await;
        behind.cancel();
        failure(behind.outcome().await, "LSP_CANCELLED");
        bench.control.release("start");
        query.outcome().await.unwrap();
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// CAN-2, OPN-5: with the open half written: the message cannot be taken back, so the process goes.
#[test]
fn given_up_with_the_open_half_written() {
    let server = fake().rule(Rule::on("initialized").process(1).run([stop_reading()]));
    let setup = bench(server)
        .file("large.x", "x".repeat(LARGE))
        .torn_input();
    let over = setup.run(async |bench| {
        let query = bench.start(Hover, "large.x:1:1");
        bench.received(1, "initialized").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized")
        .wire(2, ONE_QUERY)
        .terminated(1);
}

/// CAN-3, CAN-4: in flight, and the server honours it: the document is closed, the process lives.
#[test]
fn given_up_in_flight_and_honoured() {
    let over = bench(cancelled([])).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover $/cancelRequest didClose
         didOpen hover didClose shutdown exit",
    );
    let asked = over.bodies(1, "hover");
    assert_eq!(
        over.params(1, "$/cancelRequest"),
        json!({"id": asked[0]["id"]})
    );
    over.ended_by_itself(1);
}

/// CAN-4: an answer, an error of any kind and a malformed result all settle a cancelled request;
/// the next query is not confused by it.
#[test]
fn given_up_in_flight_and_answered_all_the_same() {
    let answers = [
        says("late"),
        reply_error(-32803, "failed"),
        reply_error(-32801, "stale"),
        reply(json!(7)),
    ];
    for answer in answers {
        let rule = Rule::on("textDocument/hover").nth(1);
        let server = fake()
            .rule(rule.run([hold("flight"), answer]))
            .on("$/cancelRequest", [ignore()])
            .on("textDocument/hover", [says("right")]);
        let over = bench(server)
            .configure(|config| config.retry_stale = 5)
            .run(async |bench| {
                let query = bench.start(Hover, "a.x:1:1");
                bench.held("flight").await;
                query.cancel();
                failure(query.outcome().await, "LSP_CANCELLED");
                bench.received(1, "$/cancelRequest").await;
                bench.control.release("flight");
                let outcome = bench.query(Hover, "a.x:1:1").await;
                assert_eq!(hover_text(outcome).as_deref(), Some("right"));
            });
        over.processes(1).wire(
            1,
            "initialize initialized didOpen hover $/cancelRequest didClose
             didOpen hover didClose shutdown exit",
        );
    }
}

/// CAN-4, CAN-8: in flight, and the server ignores it: the caller is gone at once, the process
/// after the grace, and the next query waits for another one.
#[test]
fn given_up_in_flight_and_ignored() {
    let over = bench(cancelled([ignore()]))
        .grace_ms(150)
        .run(async |bench| {
            let query = bench.start(Hover, "a.x:1:1");
            bench.held("flight").await;
            query.cancel();
            let next = bench.start(Hover, "a.x:1:1");
            failure(query.outcome().await, "LSP_CANCELLED");
            bench
                .control
                .recorder()
                .emit(None, dsh_transcript::EventBody::note("caller", "is gone"));
            next.outcome().await.unwrap();
        });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover $/cancelRequest")
        .wire(2, ONE_QUERY)
        .terminated(1);
    // The caller was gone before the end of the grace, the process before its replacement.
    let (caller, terminate) = (over.when_noted("caller"), over.when_noted("terminate"));
    let (terminated, spawned) = (over.when_noted("terminated"), over.when_noted("spawn"));
    assert!(caller[0] < terminate[0] && terminated[0] < spawned[1]);
}

/// CAN-4: in flight, and the server dies of it: the caller's reason is the caller's, the next query
/// gets another process.
#[test]
fn given_up_in_flight_and_died_of() {
    let over = bench(cancelled([exit(1)])).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover $/cancelRequest")
        .wire(2, ONE_QUERY);
}

/// CAN-7: with the answer on the wire already: nothing is cancelled, the document is closed.
#[test]
fn given_up_with_the_answer_on_the_wire() {
    let rule = Rule::on("textDocument/hover").nth(1);
    let server = fake().rule(rule.run([
        hold("flight"),
        says("unwanted"),
        note("answered", Value::Null),
    ]));
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        bench.control.release("flight");
        bench.while_the_host_stands_still(bench.noted(1, "note"));
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover didClose didOpen definition didClose shutdown exit",
    );
}

/// CAN-7: giving up after the answer was delivered changes nothing.
#[test]
fn given_up_after_the_answer() {
    let over = bench(fake()).run(async |bench| {
        let cancel = Cancel::new();
        let query = bench.start_with(cancel.clone(), bench.workspace(), Hover, "a.x:1:1");
        query.outcome().await.unwrap();
        cancel.cancel(CancelReason::Caller);
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let twice =
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit";
    over.processes(1).wire(1, twice);
}

/// CAN-4: during the grace of another query: what waits for it may give up too, and starts nothing.
#[test]
fn given_up_while_waiting_for_somebody_s_grace() {
    let over = bench(cancelled([ignore()]))
        .grace_ms(150)
        .run(async |bench| {
            let query = bench.start(Hover, "a.x:1:1");
            bench.held("flight").await;
            query.cancel();
            failure(query.outcome().await, "LSP_CANCELLED");
            bench.received(1, "$/cancelRequest").await;
            let next = bench.start(Hover, "a.x:1:1");
            tokio::task::yield_now().await;
            next.cancel();
            failure(next.outcome().await, "LSP_CANCELLED");
            bench.ended(1).await;
        });
    over.processes(1)
        .wire(1, "initialize initialized didOpen hover $/cancelRequest");
}

/// CAN-4: while another query's process is being ended: no process is started for who gave up.
#[test]
fn given_up_while_a_process_is_being_ended() {
    let rule = Rule::on("textDocument/hover").process(1).nth(1);
    let server = fake()
        .rule(rule.run([dsh_fake_lsp::raw("no frame\n"), ignore()]))
        .rule(Rule::on("SIGTERM").process(1).run([hold("term")]));
    let over = bench(server).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        bench.held("term").await;
        let next = bench.start(Hover, "a.x:1:1");
        tokio::task::yield_now().await;
        next.cancel();
        failure(next.outcome().await, "LSP_CANCELLED");
        bench.control.release("term");
        bench.ended(1).await;
    });
    over.processes(1);
}

/// CAN-4, OPN-7: the next query of the workspace waits until the cancelled request is settled.
#[test]
fn the_next_query_waits_for_a_cancelled_one_to_settle() {
    let rule = Rule::on("textDocument/hover").nth(1);
    let server = fake()
        .rule(rule.run([hold("flight"), says("late")]))
        .on("$/cancelRequest", [ignore()]);
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        let mut next = bench.start(GoToDefinition, "a.x:1:1");
        bench.received(1, "$/cancelRequest").await;
        assert_eq!(next.outcome_so_far(), None);
        assert_eq!(bench.looks("source"), 1);
        bench.control.release("flight");
        next.outcome().await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover $/cancelRequest didClose
         didOpen definition didClose shutdown exit",
    );
}

/// CAN-6: other workspaces, and other providers in the same one, go on.
#[test]
fn giving_up_ends_nobody_else_s_query() {
    let held = |name: &str| fake().on("textDocument/hover", [hold(name), says(name)]);
    let setup = bench(held("one"))
        .file("a.y", "y\n")
        .beside("other", ".y", held("two"));
    let over = setup.run(async |bench| {
        let other = bench.another_workspace("other");
        let query = bench.start(Hover, "a.x:1:1");
        bench.received(1, "hover").await;
        let elsewhere = bench.start_in(&other, Hover, "a.x:1:1");
        bench.received(2, "hover").await;
        let beside = bench.start(Hover, "a.y:1:1");
        bench.received(3, "hover").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.received(1, "$/cancelRequest").await;
        bench.control.release("one");
        bench.control.release("one");
        bench.control.release("two");
        assert_eq!(
            hover_text(elsewhere.outcome().await).as_deref(),
            Some("one")
        );
        assert_eq!(hover_text(beside.outcome().await).as_deref(), Some("two"));
    });
    over.processes(3);
    for process in [2, 3] {
        over.wire(process, ONE_QUERY).ended_by_itself(process);
    }
}

/// CAN-2: a query whose future is dropped was given up like any other.
#[test]
fn a_query_that_is_dropped_was_given_up() {
    let over = bench(cancelled([])).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        drop(query);
        bench.received(1, "$/cancelRequest").await;
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover $/cancelRequest didClose
         didOpen definition didClose shutdown exit",
    );
}

/// SEAM-10, CAN-2, CAN-3: a deadline ends the query with its own reason, and is cancelled on the
/// wire like anything else.
#[test]
fn a_deadline_that_passes_names_its_budget() {
    let over = bench(cancelled([])).run(async |bench| {
        let budget = Duration::from_millis(50);
        let request = request(bench.workspace(), Hover, "a.x:1:1");
        let caller = Cancel::new();
        let outcome = dsh_lsp::deadline(budget, &caller, async |cancel| {
            // It begins to count before the server is started; the seam has no deadline for that.
            dsh_lsp::LspService::query(&bench.seam, request, &cancel).await
        });
        let error = outcome.await.unwrap_err();
        assert_eq!(error, LspError::Cancelled(CancelReason::Timeout(budget)));
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    // Whether it was still starting then is up to the machine.
    assert!(over.spawned_so_many() <= 2);
}

/// CAN-4: query after query is given up, and the process lives on as long as it honours that.
#[test]
fn many_queries_given_up_in_a_row_leave_no_trace() {
    const ROUNDS: usize = 20;
    let server = fake().on("textDocument/hover", [hold("flight")]);
    let over = bench(server).run(async |bench| {
        for round in 1..=ROUNDS {
            let query = bench.start(Hover, "a.x:1:1");
            bench.received_times(1, "hover", round).await;
            query.cancel();
            failure(query.outcome().await, "LSP_CANCELLED");
        }
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    let rounds = "didOpen hover $/cancelRequest didClose ".repeat(ROUNDS);
    let wire = format!("initialize initialized {rounds} didOpen definition didClose shutdown exit");
    over.processes(1).wire(1, &wire);
}

/// CAN-2, CAN-5: where queries are given up at whatever moment it happens to be, none is mixed up
/// with another: each that is not given up gets its own answer.
#[test]
fn queries_given_up_at_any_moment_mix_nothing_up() {
    let server = fake().on(
        "textDocument/hover",
        [reply(json!({"contents": "line ${params.position.line}"}))],
    );
    // A cancel may cross the answer it would have been too late for.
    let setup = bench(server)
        .allowing("cancel-in-flight")
        .torn_input()
        .on_threads();
    let over = setup.run(async |bench| {
        let queries: Vec<_> = (1..=120)
            .map(|line| bench.start(Hover, &format!("a.x:{line}:1")))
            .collect();
        bench.received(1, "hover").await;
        for (line, query) in (0_usize..).zip(queries) {
            if line % 3 == 1 {
                query.cancel();
                if let Err(error) = query.outcome().await {
                    assert_eq!(error.code(), "LSP_CANCELLED");
                }
            } else {
                let text = hover_text(query.outcome().await);
                assert_eq!(text, Some(format!("line {line}")));
            }
        }
    });
    over.processes(1);
}
