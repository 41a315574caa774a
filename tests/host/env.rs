//! What a server's process gets, and how it and what it started is ended.

use dsh_fake_lsp::{
    FakeServer, Helper, Stream, close, exit, hold, kill, note, reply, spawn_helper, stderr,
    stderr_flood, trap_sigterm,
};
use dsh_fake_lsp::{Rule, Signal};
use dsh_lsp::Operation::Hover;
use dsh_subprocess::ChildExit;
use serde_json::{Value, json};

use crate::support::{Over, bench, failure, fake, hover_text};

/// A server that notes its environment, arguments and working directory when it starts.
fn telling() -> FakeServer {
    let told = json!({"env": "${env}", "argv": "${argv}", "cwd": "${cwd}"});
    fake().on("start", [note("told", told)])
}

/// What a telling server noted.
#[track_caller]
fn told(over: &Over, what: &str) -> Value {
    let notes = over.notes("note");
    assert_eq!(notes.len(), 1);
    notes[0].2[what].clone()
}

/// ENV-1, ENV-2: secrets and the harness's own variables stay behind; what was configured arrives,
/// whatever it is called, in the place of what was there; the rest passes.
#[test]
fn the_environment_is_scrubbed_and_then_merged() {
    let mut setup = bench(telling());
    for name in [
        "API_KEY",
        "monkeys",
        "My_Password",
        "SECRETS",
        "GITHUB_token",
        "DSH_HOME",
        "DSH_",
    ] {
        setup = setup.ambient(name, "ambient");
    }
    for name in ["KEPT", "REPLACED", "PASS", "dsh_home"] {
        setup = setup.ambient(name, "ambient");
    }
    let setup = setup.configure(|config| {
        for name in ["CONFIGURED_TOKEN", "DSH_MODE", "REPLACED"] {
            config.env.insert(name.to_owned(), "configured".to_owned());
        }
    });
    let over = setup.run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let env = told(&over, "env");
    let mut env = env.as_object().unwrap().clone();
    // The fixture's own, and the mark by which processes that escape are found (ENV-6).
    for name in ["PATH", "BENCH", "TMPDIR", "_CONFORM_TREE"] {
        assert!(env.remove(name).is_some(), "{name}");
    }
    let expected = json!({
        "KEPT": "ambient", "PASS": "ambient", "dsh_home": "ambient",
        "CONFIGURED_TOKEN": "configured", "DSH_MODE": "configured", "REPLACED": "configured",
    });
    assert_eq!(Value::Object(env), expected);
}

/// ENV-3: no shell sees the arguments.
#[test]
fn metacharacters_in_arguments_stay_literal() {
    const ARGS: [&str; 9] = [
        "$(touch made)",
        "`touch made`",
        "; touch made",
        "a b",
        "*",
        "'\"",
        "\\n\n",
        "",
        "$HOME",
    ];
    let server = ARGS.iter().fold(telling(), |server, arg| server.arg(arg));
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        assert!(!bench.path("made").exists());
    });
    let argv = told(&over, "argv");
    let argv: Vec<_> = argv
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(argv[argv.len() - ARGS.len()..], ARGS);
}

/// ENV-4: the child stands in the canonical workspace, by whatever name that was given.
#[test]
fn the_working_directory_is_the_canonical_workspace() {
    let over = bench(telling()).run(async |bench| {
        let alias = bench.root.join("alias");
        std::os::unix::fs::symlink(bench.workspace(), &alias).unwrap();
        let query = bench.start_in(alias.to_str().unwrap(), Hover, "a.x:1:1");
        query.outcome().await.unwrap();
        assert_eq!(bench.processes.spawned()[0].spec.cwd, bench.path(""));
    });
    let cwd = told(&over, "cwd");
    assert!(over.uri("").ends_with(cwd.as_str().unwrap()), "{cwd}");
}

/// ENV-5: 100 MB of stderr before the first answer, and again during a query, block nothing.
#[test]
fn a_flood_of_stderr_blocks_nothing() {
    const HALF: u64 = 50_000_000;
    let says = |text| reply(json!({"contents": text}));
    let server = fake()
        .on("initialize", [stderr_flood(HALF)])
        .on("textDocument/hover", [stderr_flood(HALF), says("dry")]);
    let over = bench(server).run(async |bench| {
        let text = hover_text(bench.query(Hover, "a.x:1:1").await);
        assert_eq!(text.as_deref(), Some("dry"));
    });
    over.processes(1).ended_by_itself(1);
}

/// ENV-5, CRS-1: what is kept is the end of it, cut between characters, and the error has it.
#[test]
fn the_error_has_the_last_bytes_of_stderr() {
    let text = format!("first {} last words\n", "é".repeat(100));
    let server = fake().on("textDocument/hover", [stderr(&text), exit(3)]);
    let over = bench(server)
        .configure(|config| config.max_stderr_bytes = 51)
        .run(async |bench| {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
            assert!(message.contains("ended with exit code 3"), "{message}");
            // 51 bytes are " last words\n", 19 characters of two bytes, and half of one, which goes.
            let (_, tail) = message.split_once("its stderr ends with:").unwrap();
            assert_eq!(tail, format!("\n{} last words", "é".repeat(19)));
        });
    over.processes(1);
}

/// ENV-5: a server may close its stderr, and goes on serving.
#[test]
fn a_closed_stderr_is_no_sign_of_death() {
    let server = fake().on("initialize", [close(Stream::Stderr)]);
    let over = bench(server).run(async |bench| {
        for _ in 0..2 {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        }
    });
    over.processes(1).ended_by_itself(1);
}

/// A server that starts a helper of this kind when it starts, and leaves the protocol at the first
/// hover, so that its tree is ended.
fn with_helper(helper: Helper) -> FakeServer {
    fake()
        .rule(Rule::on("start").process(1).run([spawn_helper(helper)]))
        .rule(
            Rule::on("textDocument/hover")
                .process(1)
                .run([dsh_fake_lsp::raw("no frame\n")]),
        )
}

/// Has the tree of process 1 ended, and process 2 serve.
#[track_caller]
fn run_with_helper(helper: Helper, grace_ms: u64) -> Over {
    bench(with_helper(helper))
        .grace_ms(grace_ms)
        .run(async |bench| {
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
            bench.query(Hover, "a.x:1:1").await.unwrap();
        })
}

/// The pid of the helper that process 1 started.
#[track_caller]
fn helper_pid(over: &Over) -> u32 {
    let notes = over.notes("helper");
    assert_eq!(notes.len(), 1);
    u32::try_from(notes[0].2["pid"].as_u64().expect("it started")).unwrap()
}

/// ENV-6: the whole group gets SIGTERM, and nobody gets more who heeds it.
#[test]
fn the_group_is_ended_with_its_leader() {
    let over = run_with_helper(Helper::default(), 60_000);
    let helper = helper_pid(&over);
    let report = over.processes(2).terminated(1).report(1);
    assert!(
        report.terminated.iter().any(|member| member.pid == helper),
        "{report:?}"
    );
}

/// ENV-6: a member that is deaf to SIGTERM gets SIGKILL after the grace.
#[test]
fn a_deaf_helper_is_killed_after_the_grace() {
    let over = run_with_helper(
        Helper {
            deaf: true,
            ..Helper::default()
        },
        100,
    );
    let helper = helper_pid(&over);
    let report = over.processes(2).killed(1).report(1);
    assert_eq!(
        report
            .killed
            .iter()
            .map(|member| member.pid)
            .collect::<Vec<_>>(),
        [helper]
    );
}

/// ENV-6: a leader that is deaf to SIGTERM gets SIGKILL after the grace.
#[test]
fn a_deaf_server_is_killed_after_the_grace() {
    let server = fake()
        .rule(Rule::on("start").process(1).run([trap_sigterm()]))
        .rule(
            Rule::on("textDocument/hover")
                .process(1)
                .run([dsh_fake_lsp::raw("no frame\n")]),
        );
    let over = bench(server).grace_ms(100).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).killed(1);
    assert_eq!(over.exit(1), ChildExit::Signal(9));
}

/// ENV-6: a helper that left the group is found by its parent.
#[test]
fn a_descendant_outside_the_group_is_ended_too() {
    let over = run_with_helper(
        Helper {
            new_session: true,
            ..Helper::default()
        },
        60_000,
    );
    let helper = helper_pid(&over);
    let report = over.processes(2).terminated(1).report(1);
    assert!(
        report.terminated.iter().any(|member| member.pid == helper),
        "{report:?}"
    );
}

/// ENV-6, DIS-5: one that left both ways is found by its mark, ended, and told by the disposal.
#[test]
fn a_helper_that_escaped_is_ended_and_reported() {
    let helper = Helper {
        new_session: true,
        orphan: true,
        ..Helper::default()
    };
    let over = bench(with_helper(helper))
        .grace_ms(5_000)
        .leaving(1)
        .run(async |bench| {
            failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
            bench.query(Hover, "a.x:1:1").await.unwrap();
            let error = bench.dispose().await.unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("left processes outside its tree"),
                "{error}"
            );
            assert_eq!(error.failures[0].workspace, bench.path(""));
        });
    let helper = helper_pid(&over);
    let report = over.processes(2).report(1);
    assert_eq!(
        report
            .escaped
            .iter()
            .map(|member| member.pid)
            .collect::<Vec<_>>(),
        [helper]
    );
}

/// ENV-7: disposal finds and ends the helper of a server that ended as it was told.
#[test]
fn a_helper_that_outlives_its_server_is_ended_by_disposal() {
    for (deaf, grace_ms) in [(false, 60_000), (true, 100)] {
        let helper = Helper {
            deaf,
            ..Helper::default()
        };
        let server = fake().on("start", [spawn_helper(helper)]);
        let over = bench(server)
            .shutdown_ms(300)
            .grace_ms(grace_ms)
            .run(async |bench| {
                bench.query(Hover, "a.x:1:1").await.unwrap();
                bench.dispose().await.unwrap();
            });
        let helper = helper_pid(&over);
        let report = over.processes(1).report(1);
        let ended = if deaf {
            &report.killed
        } else {
            &report.terminated
        };
        assert!(
            ended.iter().any(|member| member.pid == helper),
            "{report:?}"
        );
    }
}

/// ENV-7, DIS-3: a helper that ends by itself within the budget gets no signal.
#[test]
fn a_helper_that_ends_in_time_gets_no_signal() {
    let helper = Helper {
        life_ms: 50,
        ..Helper::default()
    };
    let server = fake().on("shutdown", [spawn_helper(helper)]);
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).ended_by_itself(1);
}

/// CRS-4, ENV-7: a helper that outlives a server which died is gone before the next one starts.
#[test]
fn a_helper_of_a_dead_server_is_gone_before_its_replacement_starts() {
    let server = fake()
        .rule(Rule::on("start").process(1).run([spawn_helper(Helper {
            deaf: true,
            ..Helper::default()
        })]))
        .rule(
            Rule::on("textDocument/hover")
                .process(1)
                .run([kill(Signal::SIGKILL)]),
        );
    let over = bench(server).grace_ms(100).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let helper = helper_pid(&over);
    assert!(
        over.processes(2)
            .report(1)
            .killed
            .iter()
            .any(|member| member.pid == helper)
    );
    assert!(over.when_noted("terminated")[0] < over.when_noted("spawn")[1]);
}

/// ENV-6: ending is idempotent: a tree that is being ended when the provider is disposed is ended
/// once.
#[test]
fn a_tree_that_is_being_ended_is_not_ended_again() {
    let server = fake()
        .on("SIGTERM", [hold("term")])
        .on("textDocument/hover", [dsh_fake_lsp::raw("no frame\n")]);
    let over = bench(server).run(async |bench| {
        failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
        bench.held("term").await;
        let (first, second) = (bench.dispose(), bench.dispose());
        bench.control.release("term");
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first, second), (Ok(()), Ok(())));
    });
    over.processes(1).terminated(1);
    assert_eq!(over.notes("signal").len(), 1);
}
