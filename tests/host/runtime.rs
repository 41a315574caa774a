//! The host as part of a whole runtime: mounted by a deployment, disposed at once.

use dsh_fake_lsp::{FakeServer, Rule, hold, reply};
use dsh_harness::{Deployment, Runtime};
use dsh_kernel::Cancel;
use dsh_lsp::Operation::Hover;
use dsh_lsp_stdio::LspStdioConfig;
use serde_json::json;

use crate::support::{Bench, bench, failure, fake, hover_text, in_time, marked, request};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// A runtime of the rows for language servers, on the files and processes of the test.
async fn mounted(bench: &Bench) -> Runtime {
    let servers = [("apart".to_owned(), bench.config().clone())].into();
    let deployment = Deployment::language_servers(LspStdioConfig { servers });
    let runtime = Runtime::builder()
        .deployment(deployment)
        .subprocess(bench.processes.clone())
        .file_system(bench.files.clone())
        .mount(&Cancel::new())
        .await
        .unwrap();
    assert_eq!(runtime.waiting(), []);
    runtime
}

fn greeting() -> FakeServer {
    fake().on(
        "textDocument/hover",
        [reply(json!({"contents": "from the runtime"}))],
    )
}

/// DIS-3: the whole runtime disposed at once: no other plugin cuts the server off, which ends as
/// it is told and gets no signal.
#[test]
fn a_runtime_disposed_at_once_ends_its_servers_gracefully() {
    let over = bench(greeting()).run(async |bench| {
        let runtime = mounted(bench).await;
        let at = request(bench.workspace(), Hover, "a.x:1:1");
        let outcome = runtime.lsp().unwrap().query(at, &Cancel::new()).await;
        assert_eq!(hover_text(outcome).as_deref(), Some("from the runtime"));
        runtime.dispose().await.unwrap();
        assert_eq!(marked(&bench.root), Vec::<String>::new());
        assert!(runtime.lsp().is_none());
    });
    over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
}

/// DIS-3, DIS-1: the same with a query in flight, which is cancelled first.
#[test]
fn a_runtime_disposed_in_the_middle_of_a_query_is_graceful_too() {
    let server = fake().on("textDocument/hover", [hold("flight")]);
    let over = bench(server).run(async |bench| {
        let runtime = mounted(bench).await;
        let seam = runtime.lsp().unwrap();
        let cancel = Cancel::new();
        let query = seam.query(request(bench.workspace(), Hover, "a.x:1:1"), &cancel);
        let dispose = async {
            bench.held("flight").await;
            runtime.dispose().await.unwrap();
        };
        let (outcome, ()) = tokio::join!(query, dispose);
        failure(outcome, "LSP_DISPOSED");
    });
    over.processes(1)
        .wire(
            1,
            "initialize initialized didOpen hover $/cancelRequest didClose shutdown exit",
        )
        .ended_by_itself(1);
}

/// DIS-4: whoever disposes at the same time waits for the same end.
#[test]
fn a_runtime_is_disposed_once() {
    let over = bench(fake().on("shutdown", [hold("bye")])).run(async |bench| {
        let runtime = mounted(bench).await;
        let at = request(bench.workspace(), Hover, "a.x:1:1");
        runtime
            .lsp()
            .unwrap()
            .query(at, &Cancel::new())
            .await
            .unwrap();
        let release = async {
            bench.held("bye").await;
            bench.control.release("bye");
        };
        let (first, second, ()) = tokio::join!(runtime.dispose(), runtime.dispose(), release);
        first.unwrap();
        second.unwrap();
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
}

/// DIS-6: a runtime that is dropped without disposal leaves no language server behind.
#[test]
fn a_runtime_that_is_dropped_ends_its_servers() {
    let server = fake().rule(Rule::on("SIGTERM").run([dsh_fake_lsp::ignore()]));
    let over = bench(server).run(async |bench| {
        let ended = std::thread::scope(|scope| {
            let host = scope.spawn(|| {
                let inner = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                inner.block_on(in_time(async {
                    let runtime = mounted(bench).await;
                    let at = request(bench.workspace(), Hover, "a.x:1:1");
                    runtime
                        .lsp()
                        .unwrap()
                        .query(at, &Cancel::new())
                        .await
                        .unwrap();
                    drop(runtime);
                    bench.ended(1).await;
                }));
            });
            host.join()
        });
        ended.unwrap();
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(1);
}
