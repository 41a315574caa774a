//! Servers that die or fall silent, at every place (CRS).

use std::collections::BTreeSet;

use dsh_fake_lsp::{
    Action, FakeServer, Rule, Signal, Stream, capabilities, close, exit, hold, ignore, kill, only,
    reply, stderr,
};
use dsh_fs::{Source, Workspace};
use dsh_lsp::Operation::{FindReferences, GoToDefinition, Hover};
use dsh_subprocess::ChildExit;
use dsh_transcript::Direction;
use serde_json::{Value, json};

use crate::support::{Over, bench, failure, fake, hover_text};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

fn says(text: &str) -> Action {
    reply(json!({"contents": text}))
}

/// The first process does this when `event` happens; all others behave.
fn first(event: &str, actions: impl IntoIterator<Item = Action>) -> FakeServer {
    fake().rule(Rule::on(event).process(1).run(actions))
}

/// The first process does this when `event` happens. The query that is hit fails, started by
/// itself, and the next one is served by a process of its own. Returns the message.
#[track_caller]
fn dies(event: &str, actions: impl IntoIterator<Item = Action>, wire: &str) -> (String, Over) {
    let kept = std::cell::OnceCell::new();
    let over = bench(first(event, actions)).run(async |bench| {
        kept.set(failure(
            bench.query(Hover, "a.x:1:1").await,
            "LSP_SERVER_EXITED",
        ))
        .unwrap();
        assert_eq!(bench.processes.spawned().len(), 1, "nothing is replayed");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).wire(1, wire).wire(2, ONE_QUERY);
    (kept.into_inner().unwrap(), over)
}

/// CRS-1, CRS-2.
#[test]
fn death_before_the_answer_to_initialize() {
    let (message, over) = dies("initialize", [exit(3)], "initialize");
    assert!(
        message.contains("exit code 3") && message.contains("while starting"),
        "{message}"
    );
    assert_eq!(over.exit(1), ChildExit::Code(3));
}

/// CRS-1: before it has read a word.
#[test]
fn death_at_once() {
    let (message, over) = dies("start", [stderr("no licence file\n"), exit(1)], "");
    assert!(message.contains("exit code 1"), "{message}");
    assert!(message.ends_with("no licence file"), "{message}");
    assert_eq!(over.exit(1), ChildExit::Code(1));
}

/// CRS-1.
#[test]
fn death_in_the_header_of_the_answer_to_initialize() {
    let actions = [only(10), capabilities(json!({})), exit(0)];
    let (message, _) = dies("initialize", actions, "initialize");
    assert!(
        message.contains("in the middle of a message header"),
        "{message}"
    );
}

/// CRS-1.
#[test]
fn death_in_the_body_of_the_answer_to_initialize() {
    let actions = [only(-1), capabilities(json!({})), exit(0)];
    let (message, _) = dies("initialize", actions, "initialize");
    assert!(
        message.contains("in the middle of a message ("),
        "{message}"
    );
}

/// CRS-1, CRS-2: right after the handshake.
#[test]
fn death_after_the_handshake() {
    // What of the open was read by then is up to the machine: the request may be as good as new.
    let server = first("initialized", [exit(4)]);
    let over = bench(server).torn_input().run(async |bench| {
        let outcome = bench.query(Hover, "a.x:1:1").await;
        assert!(failure(outcome, "LSP_SERVER_EXITED").contains("exit code 4"));
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized")
        .wire(2, ONE_QUERY);
}

/// CRS-1: after the open, before the request was read.
#[test]
fn death_after_the_open() {
    let (message, _) = dies(
        "textDocument/didOpen",
        [exit(5)],
        "initialize initialized didOpen",
    );
    assert!(
        message.contains("exit code 5") && message.contains("while answering hover"),
        "{message}"
    );
}

/// CRS-1: with the request in hand.
#[test]
fn death_during_the_request() {
    let wire = "initialize initialized didOpen hover";
    let (message, over) = dies(
        "textDocument/hover",
        [stderr("panic: é\n"), kill(Signal::SIGSEGV)],
        wire,
    );
    assert!(
        message.contains("signal 11") && message.ends_with("panic: é"),
        "{message}"
    );
    assert_eq!(over.exit(1), ChildExit::Signal(11));
}

/// CRS-1: by a signal that nobody can catch.
#[test]
fn death_by_sigkill_during_the_request() {
    let wire = "initialize initialized didOpen hover";
    let (message, _) = dies("textDocument/hover", [kill(Signal::SIGKILL)], wire);
    assert!(message.contains("signal 9"), "{message}");
    assert!(message.contains("wrote nothing to stderr"), "{message}");
}

/// CRS-1: with code 0 and without an answer it is a death like any other.
#[test]
fn death_with_success_during_the_request() {
    let wire = "initialize initialized didOpen hover";
    let (message, _) = dies("textDocument/hover", [exit(0)], wire);
    assert!(message.contains("exit code 0"), "{message}");
}

/// CRS-1: at every byte of the header of an answer.
#[test]
fn death_in_the_middle_of_a_header() {
    for bytes in [1, 15, 16, 18, 20, 21] {
        let wire = "initialize initialized didOpen hover";
        let actions = [only(bytes), says("cut off"), exit(1)];
        let (message, _) = dies("textDocument/hover", actions, wire);
        let told = format!("in the middle of a message header ({bytes} bytes of it came)");
        assert!(message.contains(&told), "{message}");
    }
}

/// CRS-1: at the first and last byte of the body, and inside a character.
#[test]
fn death_in_the_middle_of_a_body() {
    for bytes in [22, 23, -1, -4] {
        let wire = "initialize initialized didOpen hover";
        let actions = [only(bytes), says("cut off é"), exit(1)];
        let (message, _) = dies("textDocument/hover", actions, wire);
        assert!(
            message.contains("in the middle of a message"),
            "{bytes}: {message}"
        );
    }
}

/// CRS-1: an answer that was written before the end is an answer.
#[test]
fn death_right_after_the_answer() {
    let server = first("textDocument/hover", [says("last words"), exit(1)]);
    let over = bench(server).run(async |bench| {
        let text = hover_text(bench.query(Hover, "a.x:1:1").await);
        assert_eq!(text.as_deref(), Some("last words"));
        bench.ended(1).await;
        assert_eq!(hover_text(bench.query(Hover, "a.x:1:1").await), None);
    });
    over.processes(2).wire(2, ONE_QUERY);
}

/// CRS-2: idle; it is noticed, and the next query does not fail for it.
#[test]
fn death_while_idle() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.received(1, "didClose").await;
        bench.control.perform(1, [kill(Signal::SIGKILL)]).unwrap();
        bench.ended(1).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover didClose")
        .wire(2, ONE_QUERY);
    assert_eq!(over.exit(1), ChildExit::Signal(9));
}

/// CRS-2: idle, and so shortly before the query that nobody can have noticed.
#[test]
fn death_while_idle_that_nobody_has_seen_yet() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.received(1, "didClose").await;
        bench.control.perform(1, [exit(0)]).unwrap();
        bench.while_the_host_stands_still(bench.ended(1));
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover didClose")
        .wire(2, ONE_QUERY);
}

/// CRS-2: idle, and only the writing of the open tells: nothing of the query has reached the dead
/// process, so that another one serves it.
#[test]
fn death_while_idle_that_only_writing_tells() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.received(1, "didClose").await;
        // Read without a pause in which the host could look at its pipes.
        let workspace = Workspace {
            path: bench.path(""),
            uri: bench.uri(""),
        };
        let (path, uri, text) = (bench.path("a.x"), bench.uri("a.x"), "conjured\n".to_owned());
        for _ in 0..2 {
            let (workspace, path) = (workspace.clone(), path.clone());
            bench.files.serve_source(Source {
                workspace,
                path,
                uri: uri.clone(),
                text: text.clone(),
            });
        }
        bench.control.perform(1, [exit(0)]).unwrap();
        bench.while_the_host_stands_still(bench.ended(1));
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover didClose")
        .wire(2, ONE_QUERY);
}

/// CRS-2: on the close: the answer stands, and the next query is served by another.
#[test]
fn death_on_the_close() {
    let over = bench(first("textDocument/didClose", [exit(1)])).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.ended(1).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover didClose")
        .wire(2, ONE_QUERY);
}

/// DIS-2: on the shutdown: disposal has nothing to complain of.
#[test]
fn death_on_the_shutdown() {
    for actions in [vec![exit(0)], vec![exit(1)], vec![kill(Signal::SIGKILL)]] {
        let over = bench(first("shutdown", actions)).run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap();
            bench.dispose().await.unwrap();
        });
        over.processes(1)
            .wire(1, "initialize initialized didOpen hover didClose shutdown");
        assert_eq!(
            *over.report(1),
            dsh_subprocess::TerminationReport::default()
        );
    }
}

/// CRS-2, CAN-4: during the grace of a cancelled request.
#[test]
fn death_during_the_grace() {
    let server = first("textDocument/hover", [hold("flight")]).rule(
        Rule::on("$/cancelRequest")
            .process(1)
            .run([hold("grace"), kill(Signal::SIGABRT)]),
    );
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.held("grace").await;
        let next = bench.start(Hover, "a.x:1:1");
        bench.control.release("grace");
        next.outcome().await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize initialized didOpen hover $/cancelRequest")
        .wire(2, ONE_QUERY);
}

/// CRS-1: a process that closes its output can answer nothing any more, though it lives.
#[test]
fn an_output_that_is_closed() {
    let wire = "initialize initialized didOpen hover";
    let (message, over) = dies(
        "textDocument/hover",
        [close(Stream::Stdout), ignore()],
        wire,
    );
    assert!(message.contains("closed its stdout"), "{message}");
    over.terminated(1);
}

/// CRS-1: a process that closes its input is told nothing any more, though it lives; also where
/// nothing is being written.
#[test]
fn an_input_that_is_closed() {
    let wire = "initialize initialized didOpen hover";
    let (message, over) = dies("textDocument/hover", [close(Stream::Stdin), ignore()], wire);
    assert!(message.contains("closed its stdin"), "{message}");
    over.terminated(1);
}

/// CRS-1: in the handshake.
#[test]
fn an_input_that_is_closed_in_the_handshake() {
    let (message, over) = dies("initialize", [close(Stream::Stdin), ignore()], "initialize");
    assert!(message.contains("stdin"), "{message}");
    over.terminated(1);
}

/// CRS-2: while idle, either is noticed by itself, ends the process, and fails no query.
#[test]
fn a_stream_that_is_closed_while_idle() {
    for stream in [Stream::Stdin, Stream::Stdout] {
        let over = bench(fake()).run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap();
            bench.received(1, "didClose").await;
            bench.control.perform(1, [close(stream)]).unwrap();
            bench.ended(1).await;
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(2)
            .wire(1, "initialize initialized didOpen hover didClose")
            .wire(2, ONE_QUERY)
            .terminated(1);
    }
}

/// CRS-1, CRS-3: a server that dies of every query is started once for each and no more.
#[test]
fn each_query_starts_at_most_one_process() {
    for event in ["start", "initialize", "textDocument/*"] {
        let over = bench(fake().on(event, [exit(1)])).run(async |bench| {
            for count in 1..=4 {
                failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
                assert_eq!(bench.processes.spawned().len(), count);
            }
        });
        over.processes(4);
    }
}

/// CRS-3: also where they wait in a row.
#[test]
fn each_waiting_query_starts_at_most_one_process() {
    let over = bench(fake().on("textDocument/*", [exit(1)])).run(async |bench| {
        let queries =
            [Hover, GoToDefinition, FindReferences].map(|what| bench.start(what, "a.x:1:1"));
        for query in queries {
            failure(query.outcome().await, "LSP_SERVER_EXITED");
        }
    });
    over.processes(3);
}

/// CRS-3: there is no count across queries: after many deaths the next start is as good as the
/// first.
#[test]
fn a_server_that_recovers_is_used_again() {
    let server = (1..=8).fold(fake(), |server, process| {
        server.rule(
            Rule::on("textDocument/hover")
                .process(process)
                .run([exit(1)]),
        )
    });
    let over = bench(server).run(async |bench| {
        for _ in 1..=8 {
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        }
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(9);
}

/// CRS-1, CRS-2: of the queries that wait, the one in flight is hit; those behind are served.
#[test]
fn a_crash_hits_the_query_in_flight_alone() {
    let server = first("textDocument/hover", [hold("flight"), exit(1)]);
    let over = bench(server).run(async |bench| {
        let [hit, second, third] =
            [Hover, GoToDefinition, Hover].map(|what| bench.start(what, "a.x:1:1"));
        bench.held("flight").await;
        bench.control.release("flight");
        failure(hit.outcome().await, "LSP_SERVER_EXITED");
        second.outcome().await.unwrap();
        third.outcome().await.unwrap();
    });
    over.processes(2).wire(
        2,
        "initialize initialized didOpen definition didClose didOpen hover didClose shutdown exit",
    );
}

/// CRS-4: a replacement starts only when the process before it is gone.
#[test]
fn a_replacement_waits_for_the_end_of_what_it_replaces() {
    let server = first(
        "textDocument/hover",
        [dsh_fake_lsp::raw("no frame\n"), ignore()],
    )
    .rule(Rule::on("SIGTERM").process(1).run([hold("term")]));
    let over = bench(server).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        bench.held("term").await;
        let mut next = bench.start(Hover, "a.x:1:1");
        // Its turn has come, its source is read; only the start has to wait.
        bench.control.release("term");
        assert_eq!(next.outcome_so_far(), None);
        next.outcome().await.unwrap();
    });
    let started =
        over.when(|event| matches!(event.body, dsh_transcript::EventBody::ProcessStarted { .. }));
    assert!(over.processes(2).when_noted("terminated")[0] < started[1]);
}

/// CRS-5: an instance that is discarded for failure is told nothing more.
#[test]
fn a_discarded_instance_is_told_nothing_more() {
    let ways: [Vec<Action>; 4] = [
        vec![dsh_fake_lsp::raw("no frame\n"), ignore()],
        vec![close(Stream::Stdout), ignore()],
        vec![dsh_fake_lsp::reply_raw("{"), ignore()],
        vec![exit(1)],
    ];
    for actions in ways {
        let over = bench(first("textDocument/hover", actions)).run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap_err();
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(2)
            .wire(1, "initialize initialized didOpen hover");
        let answered: BTreeSet<_> = over
            .bodies(1, "shutdown")
            .iter()
            .map(Value::to_string)
            .collect();
        assert!(answered.is_empty());
    }
}

/// CRS-5, ENV-6: one that is stopped, and so heeds no signal but one, is killed after the grace.
#[test]
fn a_stopped_server_is_killed() {
    let server = first("textDocument/hover", [kill(Signal::SIGSTOP)]);
    let over = bench(server).grace_ms(100).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.noted(1, "stopped").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).killed(1);
    assert_eq!(over.exit(1), ChildExit::Signal(9));
    let answers = over.when(|event| {
        event.process == Some(1)
            && event
                .frame()
                .is_some_and(|frame| frame.direction == Direction::ToClient && frame.is_response())
    });
    assert_eq!(answers.len(), 1, "it answered initialize alone");
}
