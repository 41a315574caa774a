//! Programs that are no language servers, and servers at their worst.

use dsh_fake_lsp::{Rule, Stream, close, ignore, stop_reading};
use dsh_lsp::Operation::Hover;
use dsh_subprocess::ChildExit;

use crate::support::{bench, bench_of, failure, fake};

/// CRS-1, CRS-3: a program that ends at once, with success even.
#[test]
fn a_program_that_ends_at_once() {
    let over = bench_of("true", &[]).run(async |bench| {
        for _ in 0..3 {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
            assert!(
                message.contains("exit code 0") && message.contains("while starting"),
                "{message}"
            );
        }
    });
    over.processes(3);
}

/// CRS-1: a program that complains and ends; the complaint is in the error.
#[test]
fn a_program_that_complains() {
    let script = "echo 'node: command not found' >&2; exit 127";
    let over = bench_of("sh", &["-c", script]).run(async |bench| {
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        assert!(message.contains("exit code 127"), "{message}");
        assert!(message.ends_with("node: command not found"), "{message}");
    });
    over.processes(1);
}

/// FRM-10: a program that prints a log line and then repeats what it is told.
#[test]
fn a_program_that_greets() {
    let over = bench_of("sh", &["-c", "echo hello; cat"]).run(async |bench| {
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        assert!(
            message.contains("hello") && message.contains("before the first message"),
            "{message}"
        );
    });
    over.processes(1);
}

/// INI-7, SRQ-5: a program that repeats what it is told asks the host to initialize, and takes its
/// own refusal for an answer.
#[test]
fn a_program_that_repeats_what_it_is_told() {
    let over = bench_of("cat", &[]).run(async |bench| {
        let error = bench.query(Hover, "a.x:1:1").await.unwrap_err();
        assert_eq!(
            (error.code(), error.server_code()),
            ("LSP_SERVER_ERROR", Some(-32601))
        );
    });
    over.processes(1);
}

/// FRM-5, FRM-10: a program that never stops writing what is no frame is stopped at once.
#[test]
fn a_program_that_floods_its_stdout() {
    let over = bench_of("yes", &[]).run(async |bench| {
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        assert!(
            message.contains("y\\ny\\n") && message.len() < 2_000,
            "{message}"
        );
    });
    over.processes(1);
}

/// CAN-2: a program that does nothing at all, not even read.
#[test]
fn a_program_that_does_nothing() {
    let over = bench_of("sleep", &["600"]).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.started(1).await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
    });
    over.processes(1);
    assert_eq!(over.spawned_at(0).exit, Some(ChildExit::Signal(15)));
}

/// INI-8, CAN-2: a server that stops reading before it was told anything.
#[test]
fn a_server_that_never_reads() {
    let server = fake().rule(Rule::on("start").process(1).run([stop_reading()]));
    let over = bench(server).torn_input().run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench
            .control
            .wait_for(|event| event.process == Some(1))
            .await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).wire(1, "").terminated(1);
}

/// CRS-1: a server that closes both its pipes and lives.
#[test]
fn a_server_that_hangs_up() {
    let server = fake().rule(Rule::on("initialize").process(1).run([
        close(Stream::Stdout),
        close(Stream::Stdin),
        ignore(),
    ]));
    let over = bench(server).run(async |bench| {
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        assert!(message.contains("closed its std"), "{message}");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).wire(1, "initialize").terminated(1);
}
