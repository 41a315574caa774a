use std::time::Duration;

use dsh_kernel::Cancel;
use dsh_lsp::LspError;
use dsh_subprocess::ChildExit;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fakes::{GRACE, SHUTDOWN, config, host, host_of, settle};

const BY_ITSELF: Duration = Duration::from_millis(500);

#[track_caller]
fn is_disposed<T: std::fmt::Debug>(answer: Result<T, LspError>) {
    assert_eq!(answer.expect_err("disposed").code(), "LSP_DISPOSED");
}

/// DIS-2, DIS-3: `shutdown` and `exit` without `params`; who goes by itself gets no signal.
#[tokio::test(start_paused = true)]
async fn the_graceful_end() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        let shutdown = server.expect("shutdown").await;
        assert!(shutdown.get("params").is_none());
        settle().await;
        server.reply(&shutdown, Value::Null).await;
        let exit = server.expect("exit").await;
        assert!(exit.get("params").is_none());
        server.exit(ChildExit::Code(0));
    };
    let started = Instant::now();
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!((ended, server.signals()), (Ok(()), vec![]));
    assert_eq!(started.elapsed(), Duration::ZERO);
    host.is_quiet();
    is_disposed(host.ask().await);
    assert_eq!(host.dispose().await, Ok(()), "a second time is nothing");
}

/// DIS-2: a server that waits for the end of its stdin gets it after half a second.
#[tokio::test(start_paused = true)]
async fn stdin_is_closed_for_who_waits_for_it() {
    let host = host().await;
    let mut server = host.warm().await;
    let started = Instant::now();
    let play = async {
        let shutdown = server.expect("shutdown").await;
        server.reply(&shutdown, Value::Null).await;
        server.expect("exit").await;
        assert_eq!(server.read().await, None);
        assert_eq!(started.elapsed(), BY_ITSELF);
        server.exit(ChildExit::Code(0));
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!((ended, server.signals()), (Ok(()), vec![]));
    host.is_quiet();
}

/// DIS-2: without an answer to `shutdown`, `exit` follows at the end of the budget, and the
/// escalation at once behind it.
#[tokio::test(start_paused = true)]
async fn an_unanswered_shutdown() {
    let host = host().await;
    let mut server = host.warm().await;
    server.be_deaf();
    let started = Instant::now();
    let play = async {
        server.expect("shutdown").await;
        server.expect("exit").await;
        assert_eq!(started.elapsed(), SHUTDOWN);
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!(
        (ended, server.signals()),
        (Ok(()), vec!["SIGTERM", "SIGKILL"])
    );
    assert_eq!(server.first_signal() - started, SHUTDOWN);
    assert_eq!(started.elapsed(), SHUTDOWN + GRACE);
    host.is_quiet();
}

/// DIS-2: a server that obeys `shutdown` and not `exit` has the rest of the budget.
#[tokio::test(start_paused = true)]
async fn an_ignored_exit() {
    let host = host().await;
    let mut server = host.warm().await;
    let started = Instant::now();
    let play = async {
        let shutdown = server.expect("shutdown").await;
        server.reply(&shutdown, Value::Null).await;
        server.expect("exit").await;
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!((ended, server.signals()), (Ok(()), vec!["SIGTERM"]));
    assert_eq!(server.first_signal() - started, SHUTDOWN);
    host.is_quiet();
}

/// DIS-2: a server that goes at `shutdown`, or fails there, is at its end without an error.
#[tokio::test(start_paused = true)]
async fn an_early_end() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        server.expect("shutdown").await;
        server.exit(ChildExit::Code(1));
    };
    let started = Instant::now();
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!((ended, started.elapsed()), (Ok(()), Duration::ZERO));
    host.is_quiet();
}

/// DIS-2: noise at the end does not keep a server from going.
#[tokio::test(start_paused = true)]
async fn noise_at_the_end() {
    let host = host().await;
    host.processes.pipes_of(1_000);
    let mut server = host.warm().await;
    let play = async {
        server.expect("shutdown").await;
        // More than the pipe holds: it can only go when somebody reads.
        server.say_raw(&b"bye ".repeat(2_000)).await;
        server.exit(ChildExit::Code(0));
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!((ended, server.signals()), (Ok(()), vec![]));
    host.is_quiet();
}

/// ENV-7, DIS-2: a helper has the rest of the budget, unsignalled, and is ended then.
#[tokio::test(start_paused = true)]
async fn helpers_have_the_rest_of_the_budget() {
    for goes_by_itself in [true, false] {
        let host = host().await;
        let mut server = host.warm().await;
        server.start_helper();
        let started = Instant::now();
        let play = async {
            server.obey().await;
            if goes_by_itself {
                settle().await;
                server.end_helper();
            }
        };
        let (ended, ()) = tokio::join!(host.dispose(), play);
        assert_eq!(ended, Ok(()));
        let (signals, after): (&[_], _) = if goes_by_itself {
            (&[], Duration::ZERO)
        } else {
            (&["SIGTERM"], SHUTDOWN)
        };
        assert_eq!(
            (server.signals().as_slice(), started.elapsed()),
            (signals, after)
        );
        host.is_quiet();
    }
}

/// DIS-1, CAN-3, OPN-4: running and queued queries end at once; the running request is cancelled,
/// its answer awaited and its document closed before `shutdown`.
#[tokio::test(start_paused = true)]
async fn disposal_with_queries_under_way() {
    let host = host().await;
    let mut server = host.warm().await;
    let started = Instant::now();
    let asks = async {
        let (running, queued) = tokio::join!(host.ask(), host.ask());
        assert_eq!(started.elapsed(), Duration::ZERO);
        is_disposed(running);
        is_disposed(queued);
    };
    let play = async {
        let request = server.asked().await;
        settle().await;
        let dispose = host.dispose();
        let play = async {
            server.expect("$/cancelRequest").await;
            settle().await;
            server.reply_error(&request, -32800).await;
            server.expect("textDocument/didClose").await;
            server.obey().await;
        };
        tokio::join!(dispose, play).0
    };
    let ((), ended) = tokio::join!(asks, play);
    assert_eq!((ended, server.signals()), (Ok(()), vec![]));
    assert_eq!(
        host.files.reads().len(),
        2,
        "the queued query was never begun"
    );
    host.is_quiet();
}

/// DIS-1, DIS-2: a server that does not settle the cancelled request is still shut down gracefully,
/// after the grace or half the budget, whichever is less. Nobody waits for that but the disposal.
#[tokio::test(start_paused = true)]
async fn disposal_of_a_busy_server() {
    for (grace_ms, patience) in [(2_000, GRACE), (60_000, SHUTDOWN / 2)] {
        let mut config = config();
        config.kill_grace_ms = grace_ms;
        let host = host_of(config).await;
        let mut server = host.warm().await;
        let started = Instant::now();
        let asks = async {
            let (running, queued) = tokio::join!(host.ask(), host.ask());
            assert_eq!(started.elapsed(), Duration::ZERO);
            is_disposed(running);
            is_disposed(queued);
        };
        let play = async {
            server.asked().await;
            let dispose = host.dispose();
            let play = async {
                server.expect("$/cancelRequest").await;
                server.expect("textDocument/didClose").await;
                assert_eq!(started.elapsed(), patience);
                server.obey().await;
            };
            tokio::join!(dispose, play).0
        };
        let ((), ended) = tokio::join!(asks, play);
        assert_eq!((ended, server.signals()), (Ok(()), vec![]));
        host.is_quiet();
    }
}

/// DIS-1, INI-1: a handshake is given up without a word.
#[tokio::test(start_paused = true)]
async fn disposal_during_the_handshake() {
    let host = host().await;
    let play = async {
        let mut server = host.processes.next().await;
        server.expect("initialize").await;
        assert_eq!(host.dispose().await, Ok(()));
        assert_eq!(server.read().await, None);
        server
    };
    let started = Instant::now();
    let (answer, server) = tokio::join!(host.ask(), play);
    is_disposed(answer);
    assert_eq!(
        (server.signals(), started.elapsed()),
        (vec!["SIGTERM"], Duration::ZERO)
    );
    host.is_quiet();
}

/// DIS-1, OPN-5: a half-written `didOpen` cannot be finished in peace.
#[tokio::test(start_paused = true)]
async fn disposal_during_a_half_written_open() {
    let host = host().await;
    host.processes.pipes_of(2_000);
    let mut server = host.warm().await;
    host.files.write("/w/a.x", &"long ".repeat(5_000));
    let play = async {
        server.swallow(100).await;
        host.dispose().await
    };
    let started = Instant::now();
    let (answer, ended) = tokio::join!(host.ask(), play);
    is_disposed(answer);
    assert_eq!((ended, server.signals()), (Ok(()), vec!["SIGTERM"]));
    assert_eq!(started.elapsed(), Duration::ZERO);
    host.is_quiet();
}

/// DIS-4: disposal covers lookups and reads; it is the same end for everybody who waits for it.
#[tokio::test(start_paused = true)]
async fn disposal_covers_what_is_not_queued_yet() {
    for hold_read in [false, true] {
        let host = host().await;
        if hold_read {
            host.files.hold_reads();
        } else {
            host.files.hold_lookups();
        }
        let dispose = async {
            host.files.waiting.notified().await;
            settle().await;
            tokio::join!(host.dispose(), host.dispose())
        };
        let (answer, ended) = tokio::join!(host.ask(), dispose);
        is_disposed(answer);
        assert_eq!(ended, (Ok(()), Ok(())));
        assert_eq!(host.processes.started(), 0);
        host.is_quiet();
    }
}

/// DIS-4: nobody's disposal returns before the end.
#[tokio::test(start_paused = true)]
async fn disposals_wait_for_the_same_end() {
    let host = host().await;
    let mut server = host.warm().await;
    let mut first = std::pin::pin!(host.dispose());
    let mut second = std::pin::pin!(host.dispose());
    assert_eq!(first.as_mut().now_or_never(), None);
    let shutdown = server.expect("shutdown").await;
    assert_eq!(second.as_mut().now_or_never(), None);
    server.reply(&shutdown, Value::Null).await;
    server.expect("exit").await;
    assert_eq!(
        (
            first.as_mut().now_or_never(),
            second.as_mut().now_or_never()
        ),
        (None, None)
    );
    server.exit(ChildExit::Code(0));
    assert_eq!(tokio::join!(first, second), (Ok(()), Ok(())));
    host.is_quiet();
}

/// DIS-4: a query that nobody polls does not hold up the disposal.
#[tokio::test(start_paused = true)]
async fn a_forgotten_query_holds_up_nothing() {
    let host = host().await;
    let mut server = host.warm().await;
    let mut query = Box::pin(host.ask());
    assert!(query.as_mut().now_or_never().is_none());
    let request = server.asked().await;
    let play = async {
        server.expect("$/cancelRequest").await;
        server.reply(&request, Value::Null).await;
        server.expect("textDocument/didClose").await;
        server.obey().await;
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!(ended, Ok(()));
    is_disposed(query.await);
    host.is_quiet();
}

/// DIS-5: all servers are ended, side by side, also where something escaped; that is reported.
#[tokio::test(start_paused = true)]
async fn failures_are_reported_together() {
    let host = host().await;
    host.files.link("/v", "/v");
    host.files.write("/v/b.x", "text of b");
    let mut first = host.warm().await;
    let play = async {
        let mut second = host.processes.next().await;
        second.greet().await;
        second.hover("of v").await;
        second
    };
    let cancel = Cancel::new();
    let (_, mut second) = tokio::join!(host.hover_in("/v", "b.x", &cancel), play);
    first.let_escape("daemon-w");
    second.let_escape("daemon-v");
    let started = Instant::now();
    let play = async { tokio::join!(first.expect("shutdown"), second.expect("shutdown")) };
    let (ended, _) = tokio::join!(host.dispose(), play);
    assert_eq!(started.elapsed(), SHUTDOWN, "side by side");
    let error = ended.clone().unwrap_err();
    assert_eq!(error.failures.len(), 2);
    for word in ["daemon-w", "daemon-v", "pid 7"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(host.dispose().await, ended);
    host.is_quiet();
}

/// DIS-6: dropping the provider ends what runs, without waiting for anybody.
#[tokio::test(start_paused = true)]
async fn dropping_leaves_nothing_behind() {
    let host = host().await;
    let server = host.warm().await;
    drop(host.provider);
    settle().await;
    assert_eq!(server.signals(), ["dropped"]);
    assert_eq!(host.processes.alive(), 0);
}

/// DIS-6: so does the end of the runtime.
#[test]
fn the_end_of_the_runtime_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let (host, server) = runtime.block_on(async {
        let host = host().await;
        let server = host.warm().await;
        (host, server)
    });
    drop(runtime);
    assert_eq!(server.signals(), ["dropped"]);
    assert_eq!(host.processes.alive(), 0);
}

/// SRQ-1, DIS-2: the server is answered while it is shut down, and not after `exit`.
#[tokio::test(start_paused = true)]
async fn the_server_is_answered_to_the_end() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        let shutdown = server.expect("shutdown").await;
        server
            .say(&json!({"id": 1, "method": "window/workDoneProgress/create"}))
            .await;
        assert_eq!(server.read().await.expect("an answer")["id"], 1);
        server.reply(&shutdown, Value::Null).await;
        server.expect("exit").await;
        server
            .say(&json!({"id": 2, "method": "window/workDoneProgress/create"}))
            .await;
        assert_eq!(server.read().await, None, "not after exit (WIRE-4)");
        server.exit(ChildExit::Code(0));
    };
    let (ended, ()) = tokio::join!(host.dispose(), play);
    assert_eq!(ended, Ok(()));
    host.is_quiet();
}
