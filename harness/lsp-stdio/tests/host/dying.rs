use std::time::Duration;

use dsh_kernel::{Cancel, CancelReason};
use dsh_subprocess::ChildExit;
use serde_json::json;
use tokio::time::Instant;

use crate::fakes::{GRACE, Server, host, settle};

/// CRS-1, CRS-2: a process that dies in flight fails its query at once, with status and stderr, and
/// is replaced by the next query.
#[tokio::test(start_paused = true)]
async fn a_death_in_flight() {
    let host = host().await;
    let mut server = host.warm().await;
    let started = Instant::now();
    let play = async {
        server.asked().await;
        server.write_stderr("something went wrong\n");
        server.exit(ChildExit::Code(3));
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    let error = answer.unwrap_err();
    assert_eq!(error.code(), "LSP_SERVER_EXITED");
    let text = error.to_string();
    for word in [
        "\"x\"",
        "/bin/x-server --stdio",
        "exit code 3",
        "answering hover",
        "something went wrong",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let next = host.warm().await;
    assert_eq!(host.processes.started(), 2);
    host.end(next).await;
}

/// CRS-1: each place of a crash in one life of a process; none is replayed.
#[tokio::test(start_paused = true)]
async fn places_of_a_crash() {
    async fn during_initialize(server: &mut Server) {
        server.expect("initialize").await;
        server.say_raw(b"Content-Length: 50\r\n\r\n{").await;
        server.exit(ChildExit::Code(1));
    }
    async fn after_open(server: &mut Server) {
        server.greet().await;
        server.expect("textDocument/didOpen").await;
        server.exit(ChildExit::Code(1));
    }
    async fn in_a_header(server: &mut Server) {
        server.greet().await;
        server.asked().await;
        server.say_raw(b"Content-Le").await;
        server.exit(ChildExit::Code(1));
    }
    async fn in_a_body(server: &mut Server) {
        server.greet().await;
        server.asked().await;
        server.say_raw(b"Content-Length: 50\r\n\r\n{\"id\":").await;
        server.exit(ChildExit::Code(1));
    }
    for place in 0..5 {
        let host = host().await;
        let play = async {
            let mut server = host.processes.next().await;
            match place {
                0 => server.exit(ChildExit::Code(1)),
                1 => during_initialize(&mut server).await,
                2 => after_open(&mut server).await,
                3 => in_a_header(&mut server).await,
                _ => in_a_body(&mut server).await,
            }
        };
        let (answer, ()) = tokio::join!(host.ask(), play);
        let error = answer.unwrap_err();
        assert_eq!(error.code(), "LSP_SERVER_EXITED", "{place}: {error}");
        let interrupted = error.to_string().contains("in the middle of a message");
        assert_eq!(interrupted, matches!(place, 1 | 3 | 4), "{place}: {error}");
        assert_eq!(host.processes.started(), 1, "one process a query (CRS-3)");
        let next = host.warm().await;
        host.end(next).await;
    }
}

/// CRS-1, CRS-5: a process that closes a pipe and lives on fails its query, and is ended without a
/// word.
#[tokio::test(start_paused = true)]
async fn a_closed_pipe_in_flight() {
    for (closes, words) in [
        (Server::close_stdout as fn(&mut Server), "stdout"),
        (Server::close_stdin, "stdin"),
    ] {
        let host = host().await;
        let mut server = host.warm().await;
        let started = Instant::now();
        let play = async {
            server.asked().await;
            closes(&mut server);
        };
        let (answer, ()) = tokio::join!(host.ask(), play);
        let error = answer.unwrap_err();
        assert_eq!(error.code(), "LSP_SERVER_EXITED");
        assert!(error.to_string().contains(words), "{error}");
        assert!(
            started.elapsed() < Duration::from_millis(300),
            "{:?}",
            started.elapsed()
        );
        server.ended().await;
        assert_eq!(server.signals(), ["SIGTERM"]);
        assert_eq!(server.read().await, None, "nothing was said");
        let next = host.warm().await;
        host.end(next).await;
    }
}

/// FRM-7, FRM-10, CRS-5: what is no frame fails the query with what came, and ends the process.
#[tokio::test(start_paused = true)]
async fn noise_on_stdout() {
    let host = host().await;
    let play = async {
        let mut server = host.processes.next().await;
        server.say_raw(b"Starting x-server v1.2\n").await;
        server.ended().await;
        server
    };
    let (answer, server) = tokio::join!(host.ask(), play);
    let error = answer.unwrap_err();
    assert_eq!(error.code(), "LSP_PROTOCOL_ERROR");
    assert!(
        error
            .to_string()
            .contains(r#"got "Starting x-server v1.2\n""#),
        "{error}"
    );
    assert_eq!(server.signals(), ["SIGTERM"]);
    let next = host.warm().await;
    host.end(next).await;
}

/// CRS-2: a process that died idle is noticed and replaced; the query does not fail.
#[tokio::test(start_paused = true)]
async fn a_death_while_idle() {
    for sign in 0..4 {
        let host = host().await;
        let mut server = host.warm().await;
        match sign {
            0 => server.exit(ChildExit::Code(0)),
            1 => server.close_stdout(),
            2 => server.close_stdin(),
            _ => server.close_stdin_unnoticed(),
        }
        // Whether or not the host has had the time to notice.
        if sign == 0 {
            settle().await;
        }
        let next = host.warm().await;
        assert_eq!(host.processes.started(), 2);
        host.end(next).await;
    }
}

/// CRS-2: one that nobody asks again is cleared away all the same.
#[tokio::test(start_paused = true)]
async fn a_death_that_nobody_follows() {
    let host = host().await;
    let mut server = host.warm().await;
    server.start_helper();
    server.exit(ChildExit::Code(0));
    server.ended().await;
    assert_eq!(server.signals(), ["SIGTERM"], "its helper is ended (ENV-7)");
    settle().await;
    host.is_quiet();
    host.end_alone().await;
}

/// CRS-2, CRS-3: a process that dies while the source is being read is replaced, and the
/// replacement that dies too fails the query: one start, no loop.
#[tokio::test(start_paused = true)]
async fn a_death_during_the_read() {
    let host = host().await;
    let mut server = host.warm().await;
    host.files.hold_reads();
    host.files.waiting.notified().await;
    let play = async {
        host.files.waiting.notified().await;
        server.exit(ChildExit::Code(0));
        settle().await;
        host.files.let_all();
        let mut next = host.processes.next().await;
        next.exit(ChildExit::Code(9));
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("exit code 9"), "{error}");
    assert_eq!(host.processes.started(), 2);
    host.end_alone().await;
}

/// CAN-2, CRS-4: a caller that gives up while the dead are cleared away starts nothing.
#[tokio::test(start_paused = true)]
async fn nothing_is_started_for_who_gave_up() {
    let host = host().await;
    let mut server = host.warm().await;
    server.be_deaf();
    host.files.hold_reads();
    host.files.waiting.notified().await;
    let cancel = Cancel::new();
    let play = async {
        host.files.waiting.notified().await;
        server.say_raw(b"noise\n").await;
        settle().await;
        host.files.let_read();
        settle().await;
        cancel.cancel(CancelReason::Caller);
        server.ended().await;
        settle().await;
    };
    let (answer, ()) = tokio::join!(host.hover(&cancel), play);
    assert_eq!(answer.unwrap_err().code(), "LSP_CANCELLED");
    assert_eq!(host.processes.started(), 1);
    host.end_alone().await;
}

/// CRS-3: a process that this very query started, and that goes before it took anything of the
/// query, fails it: there is no second start.
#[tokio::test(start_paused = true)]
async fn one_start_for_one_query() {
    let host = host().await;
    let play = async {
        let mut server = host.processes.next().await;
        let initialize = server.expect("initialize").await;
        server.close_stdin();
        let capabilities = json!({"textDocumentSync": 1, "hoverProvider": true});
        server
            .reply(&initialize, json!({"capabilities": capabilities}))
            .await;
        server.ended().await;
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    assert_eq!(answer.unwrap_err().code(), "LSP_SERVER_EXITED");
    assert_eq!(host.processes.started(), 1);
    host.end_alone().await;
}

/// CRS-4: the dead one's processes are gone before the next is started.
#[tokio::test(start_paused = true)]
async fn the_dead_are_gone_before_the_next_starts() {
    let host = host().await;
    let mut server = host.warm().await;
    server.be_deaf();
    let started = Instant::now();
    let play = async {
        server.asked().await;
        server.say_raw(b"noise\n").await;
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    assert_eq!(answer.unwrap_err().code(), "LSP_PROTOCOL_ERROR");
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "the caller does not wait for it"
    );
    let next = host.warm().await;
    assert_eq!(started.elapsed(), GRACE);
    assert_eq!(server.signals(), ["SIGTERM", "SIGKILL"]);
    host.end(next).await;
}

/// INI-7, INI-5: a handshake that fails, in whatever way, leaves the pool as it was.
#[tokio::test(start_paused = true)]
async fn a_failed_handshake_poisons_nothing() {
    for (result, code) in [
        (
            json!({"error": {"code": -32002, "message": "no"}}),
            "LSP_SERVER_ERROR",
        ),
        (
            json!({"result": {"capabilities": {"positionEncoding": "utf-8"}}}),
            "LSP_PROTOCOL_ERROR",
        ),
        (json!({"result": []}), "LSP_PROTOCOL_ERROR"),
    ] {
        let host = host().await;
        let play = async {
            let mut server = host.processes.next().await;
            let initialize = server.expect("initialize").await;
            let mut answer = result;
            answer["id"] = initialize["id"].clone();
            server.say(&answer).await;
            server.ended().await;
            assert_eq!(server.read().await, None, "nothing follows");
        };
        let (answer, ()) = tokio::join!(host.ask(), play);
        assert_eq!(answer.unwrap_err().code(), code);
        let next = host.warm().await;
        host.end(next).await;
    }
}

/// INI-7: a process that cannot be started fails its query, and only that one.
#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_start() {
    let host = host().await;
    host.processes.refuse_once();
    let error = host.ask().await.unwrap_err();
    assert_eq!(error.code(), "LSP_SERVER_EXITED");
    assert!(error.to_string().contains("out of processes"), "{error}");
    let next = host.warm().await;
    host.end(next).await;
}

/// OPN-6: a `didClose` that the server does not take keeps the answer and costs the process.
#[tokio::test(start_paused = true)]
async fn a_close_that_is_not_taken() {
    let host = host().await;
    host.processes.pipes_of(1_500);
    let mut server = host.warm().await;
    // A pipe that is full of answers leaves no room for the close.
    let play = async {
        let request = server.asked().await;
        for number in 0..60 {
            server
                .say(&json!({"id": number, "method": "client/registerCapability"}))
                .await;
        }
        settle().await;
        server.reply(&request, json!({"contents": "kept"})).await;
        server.ended().await;
    };
    let started = Instant::now();
    let ask = async {
        let answer = host.ask().await;
        (answer, started.elapsed())
    };
    let ((answer, after), ()) = tokio::join!(ask, play);
    assert_eq!((answer.as_deref(), after), (Ok("kept"), Duration::ZERO));
    assert_eq!(
        (server.signals(), started.elapsed()),
        (vec!["SIGTERM"], GRACE)
    );
    host.processes.pipes_of(64 * 1024);
    let next = host.warm().await;
    host.end(next).await;
}

/// OPN-6: a process that is gone before `didClose` keeps the answer too.
#[tokio::test(start_paused = true)]
async fn a_death_before_the_close() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        let request = server.asked().await;
        server
            .reply(&request, json!({"contents": "last words"}))
            .await;
        server.exit(ChildExit::Code(0));
    };
    let (answer, ()) = tokio::join!(host.ask(), play);
    assert_eq!(answer.as_deref(), Ok("last words"));
    let next = host.warm().await;
    host.end(next).await;
}
