//! The end, from every state, and that nothing is left of it (DIS).

use std::sync::Arc;

use dsh_fake_lsp::{
    Action, FakeServer, Helper, Rule, exit, hold, ignore, notify_times, raw, reply_error,
    spawn_helper, stop_reading, trap_sigterm,
};
use dsh_kernel::Cancel;
use dsh_lsp::Operation::{GoToDefinition, Hover};
use dsh_lsp::{LspRegistry, LspService, Registration};
use dsh_lsp_stdio::StdioProvider;
use dsh_subprocess::{ChildExit, TerminationReport};
use serde_json::json;

use crate::support::{Bench, Gate, bench, failure, fake, in_time, marked, request};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// A server that heeds neither `shutdown` nor `exit` nor the end of its stdin.
fn obstinate() -> FakeServer {
    ["shutdown", "exit", "eof"]
        .into_iter()
        .fold(fake(), |server, event| server.on(event, [ignore()]))
}

async fn one_query(bench: &Bench) {
    bench.query(Hover, "a.x:1:1").await.unwrap();
    bench.received(1, "didClose").await;
}

/// DIS-2, DIS-3: `shutdown` and `exit` have no `params`; a server that obeys gets no signal.
#[test]
fn a_server_that_obeys_gets_no_signal() {
    let over = bench(fake()).run(one_query);
    over.wire(1, ONE_QUERY).ended_by_itself(1);
    let id = over.bodies(1, "shutdown")[0]["id"].clone();
    assert_eq!(
        over.bodies(1, "shutdown"),
        [json!({"jsonrpc": "2.0", "id": id, "method": "shutdown"})]
    );
    assert_eq!(
        over.bodies(1, "exit"),
        [json!({"jsonrpc": "2.0", "method": "exit"})]
    );
}

/// DIS-2: `exit` waits for the answer to `shutdown`, whatever that is.
#[test]
fn exit_waits_for_the_answer_to_shutdown() {
    let answers = [
        vec![hold("bye")],
        vec![hold("bye"), reply_error(-32603, "not now")],
        vec![hold("bye"), dsh_fake_lsp::reply(json!({"unusual": true}))],
    ];
    for actions in answers {
        let over = bench(fake().on("shutdown", actions)).run(async |bench| {
            one_query(bench).await;
            let dispose = bench.dispose();
            let release = async {
                bench.held("bye").await;
                assert!(bench.wire_so_far(1).ends_with("didClose shutdown"));
                bench.control.release("bye");
            };
            let (outcome, ()) = tokio::join!(dispose, release);
            outcome.unwrap();
        });
        over.wire(1, ONE_QUERY);
        assert_eq!(*over.report(1), TerminationReport::default());
    }
}

/// DIS-2: where `shutdown` is never answered, `exit` goes out when the budget is over.
#[test]
fn a_shutdown_that_is_never_answered_ends_with_the_budget() {
    let over = bench(fake().on("shutdown", [ignore()]))
        .shutdown_ms(200)
        .run(one_query);
    over.processes(1);
    // Whether it still ends of the `exit`, or of the SIGTERM that follows at once, is its affair.
    let wire = over.bodies(1, "shutdown").len();
    assert_eq!(wire, 1);
    assert!(
        matches!(over.exit(1), ChildExit::Code(1) | ChildExit::Signal(15)),
        "{:?}",
        over.exit(1)
    );
}

/// DIS-2: a server that ends only at the end of its stdin gets that, and no signal. It takes the
/// half second that others are given to end by themselves.
#[test]
fn a_server_that_ends_at_the_end_of_its_stdin_gets_no_signal() {
    let over = bench(fake().on("exit", [ignore()])).run(one_query);
    over.wire(1, ONE_QUERY).ended_by_itself(1);
}

/// DIS-2, ENV-6: a server that heeds nothing is terminated when the budget is over.
#[test]
fn a_server_that_heeds_nothing_is_terminated() {
    let over = bench(obstinate()).shutdown_ms(200).run(one_query);
    over.processes(1).terminated(1);
    assert_eq!(over.exit(1), ChildExit::Signal(15));
}

/// DIS-2, ENV-6, ENV-7: one that is deaf to SIGTERM too is killed after the grace, and so is its
/// deaf helper.
#[test]
fn a_deaf_server_with_a_deaf_helper_is_killed() {
    let helper = Helper {
        deaf: true,
        ..Helper::default()
    };
    let server = obstinate().on("start", [trap_sigterm(), spawn_helper(helper)]);
    let over = bench(server).shutdown_ms(200).grace_ms(100).run(one_query);
    over.processes(1).killed(1);
    assert_eq!(over.report(1).killed.len(), 2);
    assert_eq!(over.exit(1), ChildExit::Signal(9));
}

/// DIS-2: nothing was started, so nothing is said.
#[test]
fn disposal_of_a_provider_without_a_process() {
    let over = bench(fake()).run(async |bench| {
        bench.dispose().await.unwrap();
        bench.dispose().await.unwrap();
    });
    over.processes(0);
}

/// DIS-1, DIS-4: during the lookup of a workspace.
#[test]
fn disposal_during_the_lookup() {
    let over = bench(fake()).run(async |bench| {
        bench.files.shut(Gate::Workspace);
        let queries = [Hover, GoToDefinition].map(|what| bench.start(what, "a.x:1:1"));
        bench.looked("workspace", 1).await;
        bench.provider().dispose().await.unwrap();
        for query in queries {
            failure(query.outcome().await, "LSP_DISPOSED");
        }
        assert_eq!(bench.looks("cancelled"), 1);
    });
    over.processes(0);
}

/// DIS-1, DIS-4: while the source is being read.
#[test]
fn disposal_while_reading_the_source() {
    let over = bench(fake()).run(async |bench| {
        one_query(bench).await;
        bench.files.shut(Gate::Source);
        let query = bench.start(Hover, "a.x:1:1");
        bench.looked("source", 2).await;
        bench.provider().dispose().await.unwrap();
        failure(query.outcome().await, "LSP_DISPOSED");
    });
    over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
}

/// DIS-1, INI-1: during the handshake: there is nobody to say `shutdown` to.
#[test]
fn disposal_during_the_handshake() {
    let over = bench(fake().on("initialize", [hold("start")])).run(async |bench| {
        let queries = [Hover, GoToDefinition].map(|what| bench.start(what, "a.x:1:1"));
        bench.held("start").await;
        bench.provider().dispose().await.unwrap();
        for query in queries {
            failure(query.outcome().await, "LSP_DISPOSED");
        }
    });
    over.processes(1).wire(1, "initialize").terminated(1);
}

/// DIS-1, OPN-5: with an open half written.
#[test]
fn disposal_with_an_open_half_written() {
    let server = fake().on("initialized", [stop_reading()]);
    let setup = bench(server)
        .file("large.x", "x".repeat(3_000_000))
        .torn_input();
    let over = setup.run(async |bench| {
        let query = bench.start(Hover, "large.x:1:1");
        bench.received(1, "initialized").await;
        bench.provider().dispose().await.unwrap();
        failure(query.outcome().await, "LSP_DISPOSED");
    });
    over.processes(1)
        .wire(1, "initialize initialized")
        .terminated(1);
}

/// DIS-1, CAN-3: in flight: the request is cancelled and the document closed before the server is
/// shut down; those that are queued are turned away.
#[test]
fn disposal_in_flight_and_queued() {
    let over = bench(fake().on("textDocument/hover", [hold("flight")])).run(async |bench| {
        let flying = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        let queued = [Hover, GoToDefinition].map(|what| bench.start(what, "a.x:1:1"));
        tokio::task::yield_now().await;
        bench.provider().dispose().await.unwrap();
        failure(flying.outcome().await, "LSP_DISPOSED");
        for query in queued {
            failure(query.outcome().await, "LSP_DISPOSED");
        }
        assert_eq!(bench.looks("source"), 1);
    });
    over.processes(1)
        .wire(
            1,
            "initialize initialized didOpen hover $/cancelRequest didClose shutdown exit",
        )
        .ended_by_itself(1);
}

/// DIS-1, CAN-8: the callers are released before the servers are gone.
#[test]
fn disposal_releases_callers_before_teardown() {
    let server = fake()
        .on("textDocument/hover", [hold("flight")])
        .on("shutdown", [hold("bye")]);
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        let watch = async {
            failure(query.outcome().await, "LSP_DISPOSED");
            bench.control.release("bye");
        };
        let (outcome, ()) = tokio::join!(bench.dispose(), watch);
        outcome.unwrap();
    });
    over.processes(1).ended_by_itself(1);
}

/// DIS-1, DIS-2: in flight with a server that ignores the cancel: half of the budget at most is
/// spent on it, and the rest is as graceful as it gets.
#[test]
fn disposal_in_flight_with_a_server_that_ignores_the_cancel() {
    let server = fake()
        .on("textDocument/hover", [ignore()])
        .on("$/cancelRequest", [ignore()]);
    let over = bench(server).grace_ms(100).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.received(1, "hover").await;
        bench.provider().dispose().await.unwrap();
        failure(query.outcome().await, "LSP_DISPOSED");
    });
    let wire = "initialize initialized didOpen hover $/cancelRequest didClose shutdown exit";
    over.processes(1).wire(1, wire).ended_by_itself(1);
}

/// DIS-4: during the grace of a query that was given up before.
#[test]
fn disposal_during_a_grace() {
    let server = fake()
        .on("textDocument/hover", [ignore()])
        .on("$/cancelRequest", [ignore()]);
    let over = bench(server).shutdown_ms(300).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.received(1, "hover").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.received(1, "$/cancelRequest").await;
        bench.dispose().await.unwrap();
    });
    assert_eq!(over.processes(1).bodies(1, "$/cancelRequest").len(), 1);
}

/// DIS-4: while a process is being replaced.
#[test]
fn disposal_while_a_process_is_being_replaced() {
    let server = fake()
        .on("textDocument/hover", [raw("no frame\n"), ignore()])
        .on("SIGTERM", [hold("term")]);
    let over = bench(server).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        bench.held("term").await;
        let waiting = bench.start(Hover, "a.x:1:1");
        tokio::task::yield_now().await;
        let release = async {
            failure(waiting.outcome().await, "LSP_DISPOSED");
            bench.control.release("term");
        };
        let (outcome, ()) = tokio::join!(bench.provider().dispose(), release);
        outcome.unwrap();
    });
    over.processes(1).terminated(1);
}

/// DIS-4: callers that come together wait for the same end, and later ones find it over.
#[test]
fn disposal_twice_and_at_once() {
    let over = bench(fake().on("shutdown", [hold("bye")])).run(async |bench| {
        one_query(bench).await;
        let provider = bench.provider();
        let release = async {
            bench.held("bye").await;
            bench.control.release("bye");
        };
        let (first, second, third, ()) = tokio::join!(
            provider.dispose(),
            provider.dispose(),
            provider.dispose(),
            release
        );
        assert_eq!([first, second, third], [Ok(()), Ok(()), Ok(())]);
        bench.ended(1).await;
        provider.dispose().await.unwrap();
    });
    over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
}

/// DIS-1: the routes go first: whoever asks from then on finds nobody, and starts nothing.
#[test]
fn the_routes_go_before_the_servers() {
    let over = bench(fake().on("shutdown", [hold("bye")])).run(async |bench| {
        one_query(bench).await;
        let ask = async {
            bench.held("bye").await;
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_UNAVAILABLE");
            bench.control.release("bye");
        };
        let (outcome, ()) = tokio::join!(bench.dispose(), ask);
        outcome.unwrap();
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_UNAVAILABLE");
    });
    over.processes(1);
}

/// DIS-1: a provider that is disposed takes no work, even if somebody still has its route.
#[test]
fn a_disposed_provider_takes_no_work() {
    let over = bench(fake()).run(async |bench| {
        one_query(bench).await;
        bench.provider().dispose().await.unwrap();
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_DISPOSED");
        assert_eq!(bench.looks("source"), 1);
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// SEAM-12: a provider that is unregistered in the middle of a query ends that query.
#[test]
fn a_provider_that_is_unregistered_ends_its_queries() {
    let over = bench(fake().on("textDocument/hover", [hold("flight")])).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.held("flight").await;
        bench.unregister();
        failure(query.outcome().await, "LSP_DISPOSED");
        bench.received(1, "$/cancelRequest").await;
    });
    over.processes(1).ended_by_itself(1);
}

/// DIS-5: all are torn down though some resist, and side by side: no end waits for another.
#[test]
fn all_servers_are_torn_down_side_by_side() {
    let server = fake()
        .rule(Rule::on("shutdown").process(1).run([hold("all are here")]))
        .rule(Rule::on("shutdown").process(2).run([hold("all are here")]))
        .rule(Rule::on("shutdown").process(3).run([exit(9)]));
    let setup = bench(server).file("a.y", "").beside("other", ".y", fake());
    let over = setup.run(async |bench| {
        one_query(bench).await;
        for name in ["two", "three"] {
            let other = bench.another_workspace(name);
            bench
                .start_in(&other, Hover, "a.x:1:1")
                .outcome()
                .await
                .unwrap();
        }
        bench.query(Hover, "a.y:1:1").await.unwrap();
        let release = async {
            for process in 1..=4 {
                bench.received(process, "shutdown").await;
            }
            bench.control.release("all are here");
            bench.control.release("all are here");
        };
        let (outcome, ()) = tokio::join!(bench.dispose(), release);
        outcome.unwrap();
    });
    over.processes(4);
    for process in [1, 2, 4] {
        over.ended_by_itself(process);
    }
}

/// DIS-5: what failed is reported together, and everything else is ended all the same.
#[test]
fn failures_of_teardown_are_reported_together() {
    let helper = Helper {
        new_session: true,
        orphan: true,
        ..Helper::default()
    };
    let server = fake()
        .rule(
            Rule::on("start")
                .process(1)
                .run([spawn_helper(helper.clone())]),
        )
        .rule(Rule::on("start").process(3).run([spawn_helper(helper)]));
    let over = bench(server).leaving(2).run(async |bench| {
        one_query(bench).await;
        let names = ["two", "three"].map(|name| bench.another_workspace(name));
        for other in &names {
            bench
                .start_in(other, Hover, "a.x:1:1")
                .outcome()
                .await
                .unwrap();
        }
        let error = bench.dispose().await.unwrap_err();
        let mut failed: Vec<_> = error
            .failures
            .iter()
            .map(|failure| failure.workspace.to_str().unwrap())
            .collect();
        failed.sort_unstable();
        assert_eq!(failed, [names[1].as_str(), bench.workspace()]);
        // The same for whoever asks again.
        assert_eq!(bench.dispose().await.unwrap_err(), error);
    });
    assert_eq!(over.processes(3).report(2), &TerminationReport::default());
}

/// DIS-4: a server that never stops talking does not hold the end up.
#[test]
fn a_server_that_never_stops_talking_is_disposed() {
    let flood: Vec<Action> = (0..20)
        .map(|_| {
            notify_times(
                1_000,
                "window/logMessage",
                json!({"type": 4, "message": "${n}"}),
            )
        })
        .collect();
    let over = bench(fake().on("textDocument/didClose", flood)).run(one_query);
    over.processes(1).wire(1, ONE_QUERY).ended_by_itself(1);
}

/// A provider with a registry that has it.
struct Host {
    provider: Arc<StdioProvider>,
    seam: LspRegistry,
    registration: Registration,
}

/// A host of its own, on a runtime and a thread of its own that end when `work` does. Returns
/// whether the thread panicked.
fn host_apart(bench: &Bench, work: impl AsyncFnOnce(Host) + Send) -> bool {
    let config = bench.config().clone();
    let (files, processes) = (bench.files.clone(), bench.processes.clone());
    let ended = std::thread::scope(|scope| {
        let host = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(in_time(async {
                let provider = StdioProvider::new("apart", config, files, processes)
                    .await
                    .unwrap();
                let seam = LspRegistry::new();
                let registration = seam.register_provider(Arc::clone(&provider) as _).unwrap();
                work(Host {
                    provider,
                    seam,
                    registration,
                })
                .await;
            }));
        });
        host.join()
    });
    ended.is_err()
}

/// DIS-6: a host whose runtime is dropped in the middle of a query leaves nothing behind, deaf
/// servers and helpers included; when the drop is over, so are they.
#[test]
fn a_runtime_that_is_dropped_leaves_nothing() {
    let helper = Helper {
        deaf: true,
        ..Helper::default()
    };
    let server = obstinate()
        .on("start", [trap_sigterm(), spawn_helper(helper)])
        .on("textDocument/hover", [ignore()]);
    let over = bench(server).run(async |bench| {
        let at = request(bench.workspace(), Hover, "a.x:1:1");
        let panicked = host_apart(bench, async |host| {
            let cancel = Cancel::new();
            tokio::select! {
                _ = host.seam.query(at, &cancel) => panic!("it is never answered"),
                _ = bench.control.wait_received(1, "hover") => {}
            }
        });
        assert!(!panicked);
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(1);
}

/// DIS-6: the same while a process is only starting, and with an idle one.
#[test]
fn a_runtime_that_is_dropped_while_starting_or_idle_leaves_nothing() {
    let server = fake().rule(Rule::on("initialize").process(2).run([ignore()]));
    let over = bench(server).run(async |bench| {
        let other = bench.another_workspace("other");
        let idle = request(bench.workspace(), Hover, "a.x:1:1");
        let starting = request(&other, Hover, "a.x:1:1");
        let panicked = host_apart(bench, async |host| {
            let cancel = Cancel::new();
            host.seam.query(idle, &cancel).await.unwrap();
            tokio::select! {
                _ = host.seam.query(starting, &cancel) => panic!("it is never answered"),
                _ = bench.control.wait_received(2, "initialize") => {}
            }
        });
        assert!(!panicked);
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(2);
}

/// DIS-6: a panic beside an idle server leaves nothing behind either.
#[test]
fn a_panic_leaves_nothing() {
    let over = bench(fake()).run(async |bench| {
        let at = request(bench.workspace(), Hover, "a.x:1:1");
        let panicked = host_apart(bench, async |host| {
            host.seam.query(at, &Cancel::new()).await.unwrap();
            panic!("on purpose");
        });
        assert!(panicked);
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(1);
}

/// DIS-6: a provider that is dropped without disposal, on a runtime that goes on, ends its
/// processes by force.
#[test]
fn a_provider_that_is_dropped_leaves_nothing() {
    let over = bench(obstinate()).run(async |bench| {
        let at = request(bench.workspace(), Hover, "a.x:1:1");
        let panicked = host_apart(bench, async |host| {
            host.seam.query(at, &Cancel::new()).await.unwrap();
            drop((host.registration, host.provider));
            bench.ended(1).await;
        });
        assert!(!panicked);
        assert_eq!(marked(&bench.root), Vec::<String>::new());
    });
    over.processes(1);
}
