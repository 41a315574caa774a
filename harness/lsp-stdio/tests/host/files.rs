use dsh_kernel::Cancel;
use futures::future::join_all;
use serde_json::json;

use crate::fakes::{config, host, host_of, settle};

/// HST-1, HST-2, HST-3: a workspace or source that is rejected starts nothing, and leaves nothing.
#[tokio::test(start_paused = true)]
async fn a_rejected_source_starts_nothing() {
    let mut config = config();
    config.max_document_bytes = 9;
    let host = host_of(config).await;
    let cancel = Cancel::new();
    host.files.write("/w/large.x", "0123456789");
    for (root, file, words) in [
        ("/nowhere", "a.x", "/nowhere"),
        ("/w", "missing.x", "missing.x"),
        ("/w", "large.x", "maxDocumentBytes (9 bytes)"),
    ] {
        let error = host.hover_in(root, file, &cancel).await.unwrap_err();
        assert_eq!(error.code(), "LSP_SOURCE_REJECTED");
        assert!(error.to_string().contains(words), "{error}");
    }
    settle().await;
    assert_eq!(
        (host.processes.started(), host.provider.workspaces()),
        (0, 0)
    );
    host.end_alone().await;
}

/// HST-3: with a server running, nothing of a rejected source reaches it, and it is kept.
#[tokio::test(start_paused = true)]
async fn a_rejected_source_disturbs_nobody() {
    let host = host().await;
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let error = host.hover_in("/w", "missing.x", &cancel).await.unwrap_err();
    assert_eq!(error.code(), "LSP_SOURCE_REJECTED");
    let (answer, text) = tokio::join!(host.ask(), server.hover("next"));
    assert_eq!(
        (answer.as_deref(), text.as_str()),
        (Ok("next"), "text of a")
    );
    assert_eq!(host.processes.started(), 1);
    host.end(server).await;
}

/// HST-6, OPN-10: a queued query sees the bytes of its turn.
#[tokio::test(start_paused = true)]
async fn a_queued_query_reads_at_its_turn() {
    let host = host().await;
    let mut server = host.warm().await;
    let play = async {
        let held = server.asked().await;
        settle().await;
        host.files.write("/w/a.x", "new text");
        server.reply(&held, json!({"contents": "first"})).await;
        server.expect("textDocument/didClose").await;
        assert_eq!(server.hover("second").await, "new text");
        server
    };
    let (first, second, server) = tokio::join!(host.ask(), host.ask(), play);
    assert_eq!(
        (first.as_deref(), second.as_deref()),
        (Ok("first"), Ok("second"))
    );
    host.end(server).await;
}

/// OPN-11: the order of calling holds whatever the lookup takes.
#[tokio::test(start_paused = true)]
async fn a_slow_lookup_keeps_the_order() {
    let host = host().await;
    host.files.hold_lookups();
    for name in ["b.x", "c.x", "d.x"] {
        host.files.write(&format!("/w/{name}"), name);
    }
    let cancel = Cancel::new();
    let play = async {
        host.files.waiting.notified().await;
        settle().await;
        host.files.let_all();
        let mut server = host.processes.next().await;
        server.greet().await;
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(server.hover("x").await);
        }
        (server, order)
    };
    let asks =
        join_all(["a.x", "b.x", "c.x", "d.x"].map(|name| host.hover_in("/w", name, &cancel)));
    let (answers, (server, order)) = tokio::join!(asks, play);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(order, ["text of a", "b.x", "c.x", "d.x"]);
    assert_eq!(host.files.lookups(), 1);
    host.end(server).await;
}

/// HST-1, OPN-11: a workspace that resolves to another place at the query's turn is served there,
/// and so are, in order, those behind it; a query of another root stays where it is.
#[tokio::test(start_paused = true)]
async fn a_moved_workspace_is_followed() {
    let host = host().await;
    host.files.link("/link", "/w");
    host.files.link("/v", "/v");
    for (file, text) in [
        ("/v/a.x", "a in v"),
        ("/v/b.x", "b in v"),
        ("/v/c.x", "c in v"),
    ] {
        host.files.write(file, text);
    }
    let mut old = host.warm().await;
    let cancel = Cancel::new();
    let warm_link = tokio::join!(host.hover_in("/link", "a.x", &cancel), old.hover("linked"));
    assert_eq!(warm_link.0.as_deref(), Ok("linked"));

    host.files.link("/link", "/v");
    let play = async {
        let mut new = host.processes.next().await;
        new.greet().await;
        let order = [
            new.hover("1").await,
            new.hover("2").await,
            new.hover("3").await,
        ];
        assert_eq!(order, ["a in v", "b in v", "c in v"]);
        new
    };
    let asks = join_all(["a.x", "b.x", "c.x"].map(|name| host.hover_in("/link", name, &cancel)));
    let stays = async { tokio::join!(host.ask(), old.hover("of w")).0 };
    let (answers, of_w, mut new) = tokio::join!(asks, stays, play);
    assert_eq!(
        answers,
        ["1", "2", "3"].map(|contents| Ok(contents.to_owned()))
    );
    assert_eq!(of_w.as_deref(), Ok("of w"));
    assert_eq!(host.processes.started(), 2);
    let (ended, (), ()) = tokio::join!(host.dispose(), old.obey(), new.obey());
    assert_eq!(ended, Ok(()));
    host.is_quiet();
}

/// OPN-11: a query that comes after its workspace has moved stays behind those that came before.
#[tokio::test(start_paused = true)]
async fn a_move_keeps_the_order() {
    let host = host().await;
    host.files.link("/link", "/w");
    host.files.link("/v", "/v");
    for name in ["a.x", "b.x", "c.x"] {
        host.files.write(&format!("/v/{name}"), name);
    }
    let mut old = host.warm().await;
    let cancel = Cancel::new();
    let linked = tokio::join!(host.hover_in("/link", "a.x", &cancel), old.hover("linked"));
    assert!(linked.0.is_ok());

    host.files.link("/link", "/v");
    host.files.hold_reads();
    let ask = |name: &'static str| host.hover_in("/link", name, &cancel);
    let last = async {
        settle().await;
        // The first one is moved; the last one comes before the others had their turn.
        host.files.let_read();
        settle().await;
        let late = async {
            settle().await;
            host.files.let_all();
        };
        tokio::join!(ask("c.x"), late).0
    };
    let play = async {
        let mut new = host.processes.next().await;
        new.greet().await;
        let order = [
            new.hover("1").await,
            new.hover("2").await,
            new.hover("3").await,
        ];
        assert_eq!(order, ["a.x", "b.x", "c.x"]);
        new
    };
    let (first, second, third, mut new) = tokio::join!(ask("a.x"), ask("b.x"), last, play);
    assert_eq!(
        (first.as_deref(), second.as_deref(), third.as_deref()),
        (Ok("1"), Ok("2"), Ok("3"))
    );
    let (ended, (), ()) = tokio::join!(host.dispose(), old.obey(), new.obey());
    assert_eq!(ended, Ok(()));
    host.is_quiet();
}

/// HST-1: a workspace that never stays where it is ends the query, not the host.
#[tokio::test(start_paused = true)]
async fn a_restless_workspace_is_given_up() {
    let host = host().await;
    host.files.link("/v", "/v");
    host.files.link("/link", "/w");
    let mut server = host.warm().await;
    let cancel = Cancel::new();
    let linked = tokio::join!(
        host.hover_in("/link", "a.x", &cancel),
        server.hover("linked")
    );
    assert!(linked.0.is_ok());
    host.files.write("/v/a.x", "text of v");
    host.files.link("/link", "/v");
    host.files.alternate("/link", "/w");
    let error = host.hover_in("/link", "a.x", &cancel).await.unwrap_err();
    assert_eq!(error.code(), "LSP_SOURCE_REJECTED");
    assert!(error.to_string().contains("keeps changing"), "{error}");
    assert_eq!(host.processes.started(), 1);
    host.end(server).await;
}

/// HST-3: what disappears between two queries is missed by the second.
#[tokio::test(start_paused = true)]
async fn a_file_that_goes_is_missed() {
    let host = host().await;
    let server = host.warm().await;
    host.files.remove("/w/a.x");
    assert_eq!(host.ask().await.unwrap_err().code(), "LSP_SOURCE_REJECTED");
    host.end(server).await;
}

/// A panic of the file system costs the query and the process, not the provider.
#[tokio::test(start_paused = true)]
async fn a_panic_is_contained() {
    let host = host().await;
    let server = host.warm().await;
    host.files.panic_once();
    let error = host.ask().await.unwrap_err();
    assert_eq!(error.code(), "LSP_SERVER_EXITED");
    assert!(
        error.to_string().contains("fault of this program"),
        "{error}"
    );
    assert_eq!(server.signals(), ["dropped"]);
    let mut next = host.warm().await;
    let (answer, _) = tokio::join!(host.ask(), next.hover("again"));
    assert_eq!(answer.as_deref(), Ok("again"));
    host.end(next).await;
}

/// A panic during the lookup costs those who waited for it, and nobody after them.
#[tokio::test(start_paused = true)]
async fn a_panic_during_the_lookup_is_contained() {
    let host = host().await;
    host.files.panic_once();
    let (one, two) = tokio::join!(host.ask(), host.ask());
    for answer in [one, two] {
        assert_eq!(answer.unwrap_err().code(), "LSP_SERVER_EXITED");
    }
    let server = host.warm().await;
    host.end(server).await;
}
