use std::time::Duration;

use dsh_kernel::{Cancel, CancelReason};
use dsh_lsp::LspError;
use dsh_subprocess::ChildExit;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fakes::{GRACE, host, settle};

fn given_up() -> LspError {
    LspError::Cancelled(CancelReason::Caller)
}

/// CAN-1: a query that was cancelled before it starts does nothing at all.
#[tokio::test(start_paused = true)]
async fn cancelled_before_it_starts() {
    let host = host().await;
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Timeout(Duration::from_millis(3)));
    let error = host.hover(&cancel).await.unwrap_err();
    assert_eq!(
        error,
        LspError::Cancelled(CancelReason::Timeout(Duration::from_millis(3)))
    );
    assert_eq!(
        (
            host.files.lookups(),
            host.files.reads().len(),
            host.processes.started()
        ),
        (0, 0, 0)
    );
    host.end_alone().await;
}

/// CAN-2: during the workspace lookup; the lookup goes with its last caller, and not before.
#[tokio::test(start_paused = true)]
async fn cancelled_during_the_lookup() {
    let host = host().await;
    host.files.hold_lookups();
    let (first, second) = (Cancel::new(), Cancel::new());
    let later = async {
        host.files.waiting.notified().await;
        settle().await;
        let give_up = async {
            settle().await;
            first.cancel(CancelReason::Caller);
            settle().await;
            second.cancel(CancelReason::Caller);
        };
        tokio::join!(host.hover(&second), give_up).0
    };
    let (one, two) = tokio::join!(host.hover(&first), later);
    assert_eq!((one, two), (Err(given_up()), Err(given_up())));
    settle().await;
    host.files.let_all();
    let server = host.warm().await;
    assert_eq!(host.files.lookups(), 2, "the first lookup was forgotten");
    host.end(server).await;
}

/// CAN-2: one of two callers gives up during the lookup; the other is served.
#[tokio::test(start_paused = true)]
async fn a_lookup_goes_on_for_who_waits() {
    let host = host().await;
    host.files.hold_lookups();
    let cancel = Cancel::new();
    let play = async {
        host.files.waiting.notified().await;
        settle().await;
        cancel.cancel(CancelReason::Caller);
        settle().await;
        host.files.let_lookup();
        let mut server = host.processes.next().await;
        server.greet().await;
        server.hover("patience").await;
        server
    };
    let (one, two, server) = tokio::join!(host.hover(&cancel), host.ask(), play);
    assert_eq!((one, two.as_deref()), (Err(given_up()), Ok("patience")));
    assert_eq!((host.files.lookups(), host.files.reads().len()), (1, 1));
    host.end(server).await;
}

/// CAN-2, CAN-5: while queued; neither the running query nor the order of those behind changes.
#[tokio::test(start_paused = true)]
async fn cancelled_while_queued() {
    let host = host().await;
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let play = async {
        let running = server.asked().await;
        settle().await;
        cancel.cancel(CancelReason::Caller);
        settle().await;
        server.reply(&running, json!({"contents": "first"})).await;
        server.expect("textDocument/didClose").await;
        server.hover("third").await;
        server.hover("fourth").await;
    };
    let (first, second, third, fourth, ()) = tokio::join!(
        host.ask(),
        host.hover(&cancel),
        host.ask(),
        host.ask(),
        play
    );
    assert_eq!(second, Err(given_up()));
    assert_eq!(
        (first.as_deref(), third.as_deref(), fourth.as_deref()),
        (Ok("first"), Ok("third"), Ok("fourth"))
    );
    assert_eq!(host.files.reads().len(), 4, "its source was never read");
    host.end(server).await;
}

/// CAN-2: while the source is read; the server is not disturbed, and the next query is served.
#[tokio::test(start_paused = true)]
async fn cancelled_during_the_read() {
    let host = host().await;
    let mut server = host.warm().await;
    host.files.hold_reads();
    host.files.waiting.notified().await;
    let cancel = Cancel::new();
    let give_up = async {
        host.files.waiting.notified().await;
        cancel.cancel(CancelReason::Caller);
    };
    let (answer, ()) = tokio::join!(host.hover(&cancel), give_up);
    assert_eq!(answer, Err(given_up()));
    settle().await;
    host.files.let_read();
    let (answer, _) = tokio::join!(host.ask(), server.hover("next"));
    assert_eq!(answer.as_deref(), Ok("next"));
    host.end(server).await;
}

/// INI-8, INI-1, CAN-2, CAN-8: during the handshake; the instance is ended without a word, and the
/// next query gets a fresh one.
#[tokio::test(start_paused = true)]
async fn cancelled_during_the_handshake() {
    let host = host().await;
    let cancel = Cancel::new();
    let play = async {
        let mut server = host.processes.next().await;
        server.expect("initialize").await;
        cancel.cancel(CancelReason::Caller);
        server.ended().await;
        assert_eq!(server.read().await, None, "nothing follows");
        server
    };
    let (answer, server) = tokio::join!(host.hover(&cancel), play);
    assert_eq!(
        (answer, server.signals()),
        (Err(given_up()), vec!["SIGTERM"])
    );
    let next = host.warm().await;
    host.end(next).await;
}

/// OPN-5, CAN-2: while `didOpen` is half written to a server that stopped reading.
#[tokio::test(start_paused = true)]
async fn cancelled_while_the_open_is_half_written() {
    let host = host().await;
    host.processes.pipes_of(2_000);
    let mut server = host.warm().await;
    host.files.write("/w/a.x", &"long ".repeat(5_000));
    let cancel = Cancel::new();
    let started = Instant::now();
    let play = async {
        server.swallow(100).await;
        cancel.cancel(CancelReason::Caller);
        server.ended().await;
    };
    let (answer, ()) = tokio::join!(host.hover(&cancel), play);
    assert_eq!(
        (answer, server.signals()),
        (Err(given_up()), vec!["SIGTERM"])
    );
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "without waiting for a grace"
    );
    host.processes.pipes_of(64 * 1024);
    let next = host.warm().await;
    host.end(next).await;
}

/// CAN-3, CAN-4, CAN-8: the request is in flight and the server honours the cancel: the caller is
/// gone at once, the document is closed, and the instance lives on.
#[tokio::test(start_paused = true)]
async fn cancelled_and_honoured() {
    for honours in [
        json!({"error": {"code": -32800, "message": "cancelled"}}),
        json!({"result": null}),
    ] {
        let host = host().await;
        let mut server = host.warm().await;
        let cancel = Cancel::new();
        let request = {
            let mut query = std::pin::pin!(host.hover(&cancel));
            let request = tokio::select! {
                biased;
                answer = &mut query => panic!("not answered: {answer:?}"),
                request = server.asked() => request,
            };
            cancel.cancel(CancelReason::Caller);
            assert_eq!(
                query.now_or_never(),
                Some(Err(given_up())),
                "released before anything else"
            );
            request
        };
        let cancelled = server.expect("$/cancelRequest").await;
        assert_eq!(cancelled["params"], json!({"id": request["id"]}));
        let mut answer = honours.clone();
        answer["id"] = request["id"].clone();
        server.say(&answer).await;
        server.expect("textDocument/didClose").await;
        let (answer, _) = tokio::join!(host.ask(), server.hover("next"));
        assert_eq!(answer.as_deref(), Ok("next"));
        assert_eq!(host.processes.started(), 1);
        host.end(server).await;
    }
}

/// CAN-4, CAN-8, CRS-4: the server ignores the cancel: it is ended after the grace, and only then
/// the next query runs, on a new process.
#[tokio::test(start_paused = true)]
async fn cancelled_and_ignored() {
    let host = host().await;
    let mut server = host.warm().await;
    server.be_deaf();
    let cancel = Cancel::new();
    let started = Instant::now();
    let play = async {
        server.asked().await;
        cancel.cancel(CancelReason::Caller);
        server.expect("$/cancelRequest").await;
        let mut next = host.processes.next().await;
        assert_eq!(server.signals(), ["SIGTERM", "SIGKILL"]);
        assert!(!server.is_alive());
        assert_eq!(server.first_signal() - started, GRACE);
        next.greet().await;
        next.hover("fresh").await;
        next
    };
    let both = async {
        let cancelled = host.hover(&cancel).await;
        assert_eq!(
            started.elapsed(),
            Duration::ZERO,
            "the caller waits for no grace"
        );
        (cancelled, host.ask().await)
    };
    let ((cancelled, next), server) = tokio::join!(both, play);
    assert_eq!((cancelled, next.as_deref()), (Err(given_up()), Ok("fresh")));
    assert_eq!(started.elapsed(), 2 * GRACE);
    host.end(server).await;
}

/// CAN-4, CRS-1: the server dies instead of honouring the cancel.
#[tokio::test(start_paused = true)]
async fn cancelled_and_dying() {
    let host = host().await;
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let play = async {
        server.asked().await;
        cancel.cancel(CancelReason::Caller);
        server.expect("$/cancelRequest").await;
        server.exit(ChildExit::Signal(11));
    };
    let started = Instant::now();
    let (answer, ()) = tokio::join!(host.hover(&cancel), play);
    assert_eq!(answer, Err(given_up()));
    let next = host.warm().await;
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "nobody waits for a grace of the dead"
    );
    host.end(next).await;
}

/// CAN-7: the answer is on the wire already when the caller gives up: nothing is cancelled.
#[tokio::test(start_paused = true)]
async fn cancelled_with_the_answer_on_the_wire() {
    let host = host().await;
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    {
        let mut query = std::pin::pin!(host.hover(&cancel));
        let request = tokio::select! {
            biased;
            answer = &mut query => panic!("not answered: {answer:?}"),
            request = server.asked() => request,
        };
        server
            .reply(&request, json!({"contents": "too late"}))
            .await;
        cancel.cancel(CancelReason::Caller);
        assert_eq!(query.await, Err(given_up()));
    }
    server.expect("textDocument/didClose").await;
    let (answer, _) = tokio::join!(host.ask(), server.hover("next"));
    assert_eq!(answer.as_deref(), Ok("next"));
    host.end(server).await;
}

/// CAN-7: so it is where the runtime has yet to notice that the pipe has something to read.
#[tokio::test(start_paused = true)]
async fn cancelled_with_the_answer_on_the_wire_unnoticed() {
    let host = host().await;
    host.processes.read_late();
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    {
        let mut query = std::pin::pin!(host.hover(&cancel));
        let request = tokio::select! {
            biased;
            answer = &mut query => panic!("not answered: {answer:?}"),
            request = server.asked() => request,
        };
        server
            .reply(&request, json!({"contents": "too late"}))
            .await;
        cancel.cancel(CancelReason::Caller);
        assert_eq!(query.await, Err(given_up()));
    }
    server.expect("textDocument/didClose").await;
    host.end(server).await;
}

/// CAN-6: a cancelled query, and the end of its instance, touch no other workspace.
#[tokio::test(start_paused = true)]
async fn other_workspaces_are_left_alone() {
    let host = host().await;
    host.files.link("/v", "/v");
    host.files.write("/v/b.x", "text of b");
    let mut first = host.warm().await;
    let (cancel, other) = (Cancel::new(), Cancel::new());
    let play = async {
        first.asked().await;
        let mut second = host.processes.next().await;
        second.greet().await;
        let held = second.asked().await;
        cancel.cancel(CancelReason::Caller);
        first.ended().await;
        second
            .reply(&held, json!({"contents": "undisturbed"}))
            .await;
        second.expect("textDocument/didClose").await;
        second
    };
    let (one, two, second) = tokio::join!(
        host.hover(&cancel),
        host.hover_in("/v", "b.x", &other),
        play
    );
    assert_eq!((one, two.as_deref()), (Err(given_up()), Ok("undisturbed")));
    assert_eq!(
        (first.signals(), second.signals()),
        (vec!["SIGTERM"], vec![])
    );
    host.end(second).await;
}

/// CAN-8: a query whose future is dropped is cancelled like any other.
#[tokio::test(start_paused = true)]
async fn a_dropped_query_is_cancelled() {
    let host = host().await;
    let mut server = host.warm().await;
    let request = {
        let query = host.ask();
        tokio::select! {
            biased;
            answer = query => panic!("not answered: {answer:?}"),
            request = server.asked() => request,
        }
    };
    server.expect("$/cancelRequest").await;
    server.reply(&request, Value::Null).await;
    server.expect("textDocument/didClose").await;
    host.end(server).await;
}

/// ERR-5: a deadline is told apart from a caller that gave up.
#[tokio::test(start_paused = true)]
async fn a_deadline_has_a_word_of_its_own() {
    let host = host().await;
    let mut server = host.warm().await;
    let budget = Duration::from_millis(300);
    let play = async {
        let request = server.asked().await;
        server.expect("$/cancelRequest").await;
        server.reply(&request, Value::Null).await;
        server.expect("textDocument/didClose").await;
    };
    let caller = Cancel::new();
    let query = dsh_lsp::deadline(budget, &caller, |cancel| {
        let host = &host;
        async move { host.hover(&cancel).await }
    });
    let (answer, ()) = tokio::join!(query, play);
    let error = answer.unwrap_err();
    assert_eq!(error, LspError::Cancelled(CancelReason::Timeout(budget)));
    assert!(
        error.to_string().contains("timed out after 300 ms"),
        "{error}"
    );
    host.end(server).await;
}
