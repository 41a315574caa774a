//! When processes are started, and how many.

use dsh_lsp::Operation::{FindReferences, GoToDefinition, GoToImplementation, Hover};
use serde_json::json;

use crate::support::{EXECUTABLE, bench, bench_of, failure, fake, hover_text};
use dsh_fake_lsp::{hold, reply};
use dsh_kernel::ExecutionWorld;
use dsh_lsp::LspError;
use dsh_lsp_stdio::{ServerConfig, StdioProvider};
use std::sync::Arc;

/// CFG-7: a provider that is loaded and registered has started nothing.
#[test]
fn nothing_is_started_before_the_first_query() {
    bench(fake())
        .run(async |bench| assert_eq!(bench.provider().workspaces(), 0))
        .processes(0);
}

/// CFG-7: the first query that matches starts the process.
#[test]
fn the_first_query_starts_the_process() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:7").await.unwrap();
    });
    over.processes(1)
        .wire(
            1,
            "initialize initialized didOpen hover didClose shutdown exit",
        )
        .ended_by_itself(1);
}

/// SEAM-8, CFG-7: a file that no provider serves is turned away before anything is looked at.
#[test]
fn a_file_of_another_kind_starts_nothing() {
    let over = bench(fake()).file("a.y", "y\n").run(async |bench| {
        let message = failure(bench.query(Hover, "a.y:1:1").await, "LSP_UNAVAILABLE");
        assert!(message.contains("\".y\""), "{message}");
        assert_eq!((bench.looks("workspace"), bench.looks("source")), (0, 0));
    });
    over.processes(0);
}

/// CFG-8: queries that come together, before there is a process, share one start.
#[test]
fn concurrent_first_queries_share_one_start() {
    let server = fake().on("initialize", [hold("start")]);
    let over = bench(server).run(async |bench| {
        let operations = [
            Hover,
            GoToDefinition,
            FindReferences,
            GoToImplementation,
            Hover,
        ];
        let queries = operations.map(|operation| bench.start(operation, "a.x:1:1"));
        bench.held("start").await;
        bench.control.release("start");
        for query in queries {
            query.outcome().await.unwrap();
        }
    });
    over.processes(1).wire(
        1,
        "initialize initialized
         didOpen hover didClose
         didOpen definition didClose
         didOpen references didClose
         didOpen implementation didClose
         didOpen hover didClose
         shutdown exit",
    );
}

/// CFG-8: also where the host runs on several threads.
#[test]
fn first_queries_that_race_share_one_start() {
    let over = bench(fake()).on_threads().run(async |bench| {
        let queries: Vec<_> = (0..50).map(|_| bench.start(Hover, "a.x:1:1")).collect();
        for query in queries {
            query.outcome().await.unwrap();
        }
    });
    over.processes(1);
    assert_eq!(over.bodies(1, "initialize").len(), 1);
    assert_eq!(over.bodies(1, "didOpen").len(), 50);
}

/// CFG-8: a process lives on between queries, with nothing said to it.
#[test]
fn one_process_serves_query_after_query() {
    let over = bench(fake()).run(async |bench| {
        for _ in 0..3 {
            bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
        }
    });
    over.processes(1).wire(
        1,
        "initialize initialized
         didOpen definition didClose didOpen definition didClose didOpen definition didClose
         shutdown exit",
    );
}

/// CFG-8: each workspace has a process of its own.
#[test]
fn each_workspace_has_its_own_process() {
    let server = fake().on("textDocument/hover", [reply(json!({"contents": "${cwd}"}))]);
    let over = bench(server).run(async |bench| {
        let other = bench.another_workspace("other");
        for workspace in [bench.workspace(), &other, bench.workspace(), &other] {
            let cwd = hover_text(bench.start_in(workspace, Hover, "a.x:1:1").outcome().await);
            assert_eq!(cwd.as_deref(), Some(workspace));
        }
        assert_eq!(bench.provider().workspaces(), 2);
    });
    over.processes(2);
}

/// CFG-8: each provider has a process of its own in the same workspace.
#[test]
fn each_provider_has_its_own_process() {
    let says = |text| fake().on("textDocument/hover", [reply(json!({"contents": text}))]);
    let over = bench(says("one"))
        .file("a.y", "y\n")
        .beside("other", ".y", says("two"))
        .run(async |bench| {
            for (file, expected) in [("a.x:1:1", "one"), ("a.y:1:1", "two"), ("a.x:1:1", "one")] {
                let text = hover_text(bench.query(Hover, file).await);
                assert_eq!(text.as_deref(), Some(expected));
            }
        });
    over.processes(2);
}

/// CFG-8: a start that fails is an error of its query; the next query starts anew.
#[test]
fn a_start_that_fails_does_not_stick() {
    let over = bench(fake()).run(async |bench| {
        bench.processes.fail("out of processes");
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
        assert!(message.contains("out of processes"), "{message}");
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
}

/// SEAM-9: the language id is the one mapped to the extension, in whatever case that is written.
#[test]
fn the_language_is_that_of_the_extension() {
    let mut setup = bench(fake()).file("B.LONG", "").file("c.d.x", "");
    setup = setup.configure(|config| {
        config
            .extension_to_language
            .insert("long".into(), "longlang".into());
    });
    let over = setup.run(async |bench| {
        for file in ["a.x:1:1", "B.LONG:1:1", "c.d.x:1:1"] {
            bench.query(Hover, file).await.unwrap();
        }
    });
    over.processes(1);
    let opened = over.bodies(1, "didOpen");
    let languages: Vec<_> = opened
        .iter()
        .map(|body| &body["params"]["textDocument"]["languageId"])
        .collect();
    assert_eq!(languages, ["xlang", "longlang", "xlang"]);
}

/// Loads a provider with this command and expects it to be refused; returns the message.
#[track_caller]
fn refused(command: impl Fn(&str) -> String + 'static) -> String {
    let message = std::cell::OnceCell::new();
    let over = bench(fake())
        .file("plain.txt", "text\n")
        .run(async |bench| {
            let command = command(bench.workspace());
            let config = ServerConfig::new(command, [(".y", "ylang")]);
            let (files, processes) = (bench.files.clone(), bench.processes.clone());
            let error = StdioProvider::new("bad", config, files, processes)
                .await
                .unwrap_err();
            assert_eq!(error.code(), "LSP_CONFIG_INVALID");
            message.set(error.to_string()).unwrap();
        });
    over.processes(0);
    let message = message.into_inner().unwrap();
    assert!(message.starts_with("servers.bad.command: "), "{message}");
    message
}

/// CFG-4: a command that is not on the PATH is refused at load, with where was looked.
#[test]
fn a_missing_command_is_refused_at_load() {
    let message = refused(|_| "no-such-language-server".to_owned());
    assert!(
        message.contains("not found") && message.contains("/usr/bin"),
        "{message}"
    );
    let message = refused(|workspace| format!("{workspace}/no-such-language-server"));
    assert!(message.contains("not found"), "{message}");
}

/// CFG-4: a directory is no command.
#[test]
fn a_directory_as_command_is_refused_at_load() {
    let message = refused(str::to_owned);
    assert!(message.contains("is a directory"), "{message}");
}

/// CFG-4: a file without the right to be executed is no command.
#[test]
fn a_command_that_is_not_executable_is_refused_at_load() {
    let message = refused(|workspace| format!("{workspace}/plain.txt"));
    assert!(message.contains("not executable"), "{message}");
}

/// CFG-4: a relative path depends on where one stands; the absolute form is suggested.
#[test]
fn a_relative_command_is_refused_with_the_absolute_form() {
    let message = refused(|_| "bin/server".to_owned());
    let suggestion = std::path::absolute("bin/server").unwrap();
    assert!(message.contains(suggestion.to_str().unwrap()), "{message}");
}

/// CFG-4: an executable file that the system cannot run is an error of the query, with its name.
#[test]
fn a_command_that_the_system_cannot_run_is_told_by_the_query() {
    use std::os::unix::fs::PermissionsExt as _;
    let garbage = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(garbage.path(), [0x7f, 0x45, 0, 1, 2, 3]).unwrap();
    let path = garbage.into_temp_path();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let name = path.to_str().unwrap().to_owned();
    let over = bench_of(&name, &[]).run(async |bench| {
        for _ in 0..2 {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SERVER_EXITED");
            assert!(message.contains(&name), "{message}");
        }
    });
    over.processes(0);
}

/// HST-9: files of one world and processes of another make no host.
#[test]
fn files_and_processes_of_different_worlds_are_refused() {
    let over = bench(fake()).run(async |bench| {
        let config = ServerConfig::new(EXECUTABLE, [(".y", "ylang")]);
        let elsewhere = Arc::new(bench.files.in_world(ExecutionWorld::named("container-7")));
        let error = StdioProvider::new("bad", config, elsewhere, bench.processes.clone());
        let error = error.await.unwrap_err();
        assert!(matches!(error, LspError::ConfigInvalid(_)), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains("container-7") && message.contains("local"),
            "{message}"
        );
    });
    over.processes(0);
}
