//! Which workspaces and files may be asked about, and what they are called (HST).

use std::ffi::CString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dsh_fake_lsp::{hold, reply};
use dsh_fs::{Source, SourceError, Workspace, WorkspaceError};
use dsh_lsp::Operation::{GoToDefinition, Hover};
use dsh_lsp::QueryResult;
use serde_json::json;

use crate::support::{
    Bench, Over, bench, failure, fake, hover_text, locations, lsp_range, range, uri_of,
};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// HST-1, INI-2: the canonical form is the child's directory, the root it is told, and the URI in
/// results; aliases share the instance.
#[test]
fn aliases_of_a_workspace_are_one_workspace() {
    let over = bench(fake()).run(async |bench| {
        let (near, far) = (bench.root.join("near"), bench.root.join("far"));
        symlink(bench.workspace(), &near).unwrap();
        symlink(&near, &far).unwrap();
        let dotted = format!("{}/../ws/.", bench.workspace());
        let slashed = format!("{}//", bench.workspace());
        let roots = [
            near.to_str().unwrap(),
            far.to_str().unwrap(),
            &dotted,
            &slashed,
        ];
        for root in roots.into_iter().chain([bench.workspace()]) {
            let query = bench.start_in(root, GoToDefinition, "a.x:1:1");
            match query.outcome().await.unwrap() {
                QueryResult::Locations {
                    resolved_workspace_uri,
                    ..
                } => {
                    assert_eq!(resolved_workspace_uri, bench.uri(""), "{root}");
                }
                QueryResult::Hover { .. } => panic!("a navigation gives locations"),
            }
        }
        assert_eq!(bench.processes.spawned()[0].spec.cwd, bench.path(""));
        assert_eq!(bench.provider().workspaces(), 1);
    });
    let told = over.processes(1).params(1, "initialize");
    assert_eq!(told["rootUri"], over.uri(""));
    assert_eq!(told["workspaceFolders"][0]["uri"], over.uri(""));
    for opened in over.bodies(1, "didOpen") {
        assert_eq!(opened["params"]["textDocument"]["uri"], over.uri("a.x"));
    }
}

/// HST-1: an alias that is pointed elsewhere leads to another workspace from then on.
#[test]
fn an_alias_that_moves_is_followed() {
    let server = fake().on("textDocument/hover", [reply(json!({"contents": "${cwd}"}))]);
    let over = bench(server).run(async |bench| {
        let (alias, other) = (bench.root.join("alias"), bench.another_workspace("other"));
        for target in [bench.workspace(), &other, bench.workspace()] {
            let _ = std::fs::remove_file(&alias);
            symlink(target, &alias).unwrap();
            let query = bench.start_in(alias.to_str().unwrap(), Hover, "a.x:1:1");
            assert_eq!(hover_text(query.outcome().await).as_deref(), Some(target));
        }
    });
    over.processes(2);
}

/// Asks in a workspace that cannot be one; the message names it, and nothing is started.
#[track_caller]
fn rejected_workspace(make: impl Fn(&Bench) -> String) -> String {
    let kept = std::cell::OnceCell::new();
    let over = bench(fake()).run(async |bench| {
        let root = make(bench);
        let outcome = bench.start_in(&root, Hover, "a.x:1:1").outcome().await;
        let message = failure(outcome, "LSP_SOURCE_REJECTED");
        assert!(message.contains(&format!("{root:?}")), "{message}");
        kept.set(message).unwrap();
        // It does not stick: the good one is served.
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
    kept.into_inner().unwrap()
}

/// HST-1.
#[test]
fn a_workspace_that_is_not_there_is_rejected() {
    let message = rejected_workspace(|bench| format!("{}/nowhere", bench.workspace()));
    assert!(message.contains("does not exist"), "{message}");
}

/// HST-1.
#[test]
fn a_workspace_that_is_a_file_is_rejected() {
    let message = rejected_workspace(|bench| format!("{}/a.x", bench.workspace()));
    assert!(message.contains("not a directory"), "{message}");
}

/// HST-1.
#[test]
fn a_workspace_that_is_a_loop_of_links_is_rejected() {
    let message = rejected_workspace(|bench| {
        let (one, two) = (bench.root.join("one"), bench.root.join("two"));
        symlink(&one, &two).unwrap();
        symlink(&two, &one).unwrap();
        one.to_str().unwrap().to_owned()
    });
    assert!(message.contains("loop"), "{message}");
}

/// HST-1.
#[test]
fn a_workspace_that_is_relative_is_rejected() {
    let message = rejected_workspace(|_| "some/where".to_owned());
    assert!(message.contains("absolute"), "{message}");
    rejected_workspace(|_| String::new());
}

/// HST-1: the fault is injected, since one who may do everything can read everything.
#[test]
fn a_workspace_that_cannot_be_read_is_rejected() {
    let message = rejected_workspace(|bench| {
        let root = bench.another_workspace("shut");
        let reason = "permission denied".to_owned();
        bench.files.fail_workspace(WorkspaceError::Inaccessible {
            root: root.clone(),
            reason,
        });
        root
    });
    assert!(message.contains("permission denied"), "{message}");
}

/// HST-1: a workspace that is removed while its server runs is an error of the query.
#[test]
fn a_workspace_that_is_removed_is_rejected() {
    let over = bench(fake()).run(async |bench| {
        let root = bench.another_workspace("brief");
        bench
            .start_in(&root, Hover, "a.x:1:1")
            .outcome()
            .await
            .unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        failure(
            bench.start_in(&root, Hover, "a.x:1:1").outcome().await,
            "LSP_SOURCE_REJECTED",
        );
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// HST-2: a relative file is resolved against the workspace, an absolute one is accepted, and what
/// is opened is the canonical one.
#[test]
fn files_are_found_by_any_path_that_leads_inside() {
    let over = bench(fake()).file("sub/b.x", "").run(async |bench| {
        symlink(bench.path("sub"), bench.path("link")).unwrap();
        symlink(bench.path("sub/b.x"), bench.path("c.x")).unwrap();
        let absolute = format!("{}/sub/b.x", bench.workspace());
        let outside_in = "../ws/sub/b.x";
        for path in [
            "sub/b.x",
            "./sub/../sub/b.x",
            &absolute,
            outside_in,
            "link/b.x",
            "c.x",
        ] {
            bench.query(Hover, &format!("{path}:1:1")).await.unwrap();
        }
    });
    let opened = over.processes(1).bodies(1, "didOpen");
    assert_eq!(opened.len(), 6);
    for body in opened {
        assert_eq!(body["params"]["textDocument"]["uri"], over.uri("sub/b.x"));
    }
}

/// HST-2: what lies outside, by whatever path, is rejected before any process starts.
#[test]
fn files_outside_the_workspace_are_rejected() {
    let over = bench(fake()).run(async |bench| {
        let other = bench.another_workspace("ws2");
        symlink(format!("{other}/a.x"), bench.path("link.x")).unwrap();
        symlink(&other, bench.path("dir")).unwrap();
        let absolute = format!("{other}/a.x");
        for path in [
            &absolute,
            "../ws2/a.x",
            "link.x",
            "dir/a.x",
            "dir/../ws2/a.x",
        ] {
            let outcome = bench.query(Hover, &format!("{path}:1:1")).await;
            let message = failure(outcome, "LSP_SOURCE_REJECTED");
            let place = format!("{:?}", bench.workspace());
            assert!(message.contains("outside the workspace"), "{message}");
            assert!(
                message.contains(path) && message.contains(&place),
                "{message}"
            );
        }
    });
    over.processes(0);
}

/// Sources that cannot be opened: name, how it is made, and what the message says.
type BadSource = (&'static str, fn(&Path), &'static str);

const BAD_SOURCES: [BadSource; 9] = [
    ("missing.x", |_| {}, "does not exist"),
    ("a.x/below.x", |_| {}, "does not exist"),
    (
        "folder.x",
        |path| std::fs::create_dir(path).unwrap(),
        "not a regular file (directory)",
    ),
    ("fifo.x", make_fifo, "not a regular file (FIFO)"),
    ("socket.x", make_socket, "not a regular file (socket)"),
    ("loop.x", |path| symlink(path, path).unwrap(), "loop"),
    (
        "latin1.x",
        |path| std::fs::write(path, b"ok \xE9t\xE9").unwrap(),
        "not UTF-8",
    ),
    (
        "nul.x",
        |path| std::fs::write(path, b"a\0b").unwrap(),
        "NUL byte at offset 1",
    ),
    (
        "large.x",
        |path| std::fs::write(path, [b'a'; 101]).unwrap(),
        "maxDocumentBytes (100 bytes)",
    ),
];

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn make_socket(path: &Path) {
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
}

async fn each_is_rejected(bench: &Bench) {
    for (name, make, says) in BAD_SOURCES {
        if std::fs::symlink_metadata(bench.path(name)).is_err() {
            make(&bench.path(name));
        }
        let message = failure(
            bench.query(Hover, &format!("{name}:1:1")).await,
            "LSP_SOURCE_REJECTED",
        );
        assert!(message.contains(says), "{message}");
        assert!(message.contains(&format!("{name:?}")), "{message}");
    }
}

/// HST-3, HST-4: each is rejected in its own words before anything is started.
#[test]
fn bad_sources_are_rejected_before_the_start() {
    let setup = bench(fake()).configure(|config| config.max_document_bytes = 100);
    setup.run(each_is_rejected).processes(0);
}

/// HST-3: a server that is running gets nothing of it and is kept.
#[test]
fn bad_sources_do_not_disturb_a_running_server() {
    let setup = bench(fake()).configure(|config| config.max_document_bytes = 100);
    let over = setup.run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        each_is_rejected(bench).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(
        1,
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit",
    );
}

/// HST-3: the fault is injected, since one who may do everything can read everything.
#[test]
fn a_source_that_cannot_be_read_is_rejected() {
    let over = bench(fake()).run(async |bench| {
        let (path, reason) = ("a.x".to_owned(), "permission denied".to_owned());
        bench
            .files
            .fail_source(SourceError::Inaccessible { path, reason });
        let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_SOURCE_REJECTED");
        assert!(
            message.contains("\"a.x\"") && message.contains("permission denied"),
            "{message}"
        );
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(1, ONE_QUERY);
}

/// HST-3: the limit counts bytes, and one that is exactly met is accepted.
#[test]
fn a_source_of_exactly_the_limit_is_accepted() {
    let text = format!("{}é", "a".repeat(98));
    let over = bench(fake())
        .file("full.x", &text)
        .configure(|config| config.max_document_bytes = 100)
        .run(async |bench| {
            bench.query(Hover, "full.x:1:1").await.unwrap();
        });
    assert_eq!(over.params(1, "didOpen")["textDocument"]["text"], text);
}

/// HST-3: the default limit is 4000000 bytes, and a document of that size passes.
#[test]
fn a_source_of_exactly_the_default_limit_is_accepted() {
    let over = bench(fake())
        .file("full.x", vec![b'a'; 4_000_000])
        .run(async |bench| {
            bench.query(Hover, "full.x:1:1").await.unwrap();
            bench.write("full.x", vec![b'a'; 4_000_001]);
            failure(
                bench.query(Hover, "full.x:1:1").await,
                "LSP_SOURCE_REJECTED",
            );
        });
    over.processes(1).wire(1, ONE_QUERY);
}

/// HST-4, OPN-1: the text is sent as it is on disk, but for a leading BOM.
#[test]
fn the_text_is_sent_as_it_is() {
    const CASES: [(&str, &str); 7] = [
        ("", ""),
        ("a\r\nb\rc\n", "a\r\nb\rc\n"),
        ("\u{FEFF}a\n", "a\n"),
        ("\u{FEFF}\u{FEFF}a", "\u{FEFF}a"),
        ("a\u{FEFF}", "a\u{FEFF}"),
        ("\u{FFFD} kept", "\u{FFFD} kept"),
        (
            "quote \" back \\ tab \t bell \u{7} del \u{7F} ls \u{2028} 😀 é\n",
            "quote \" back \\ tab \t bell \u{7} del \u{7F} ls \u{2028} 😀 é\n",
        ),
    ];
    let over = bench(fake()).run(async |bench| {
        for (written, _) in CASES {
            bench.write("a.x", written);
            bench.query(Hover, "a.x:1:1").await.unwrap();
        }
    });
    let opened = over.processes(1).bodies(1, "didOpen");
    for (body, (written, sent)) in opened.iter().zip(CASES) {
        assert_eq!(body["params"]["textDocument"]["text"], sent, "{written:?}");
    }
}

/// HST-6: a query that waits reads its source when its turn comes.
#[test]
fn a_queued_query_sees_the_bytes_of_its_turn() {
    let server = fake().on("textDocument/definition", [hold("first")]).on(
        "textDocument/hover",
        [reply(json!({"contents": "${text}"}))],
    );
    let over = bench(server).run(async |bench| {
        let first = bench.start(GoToDefinition, "a.x:1:1");
        bench.held("first").await;
        let second = bench.start(Hover, "a.x:1:1");
        tokio::task::yield_now().await;
        bench.write("a.x", "written while it waited\n");
        bench.control.release("first");
        first.outcome().await.unwrap();
        let text = hover_text(second.outcome().await);
        assert_eq!(text.as_deref(), Some("written while it waited\n"));
    });
    over.processes(1);
}

/// HST-7: a result may lie outside the workspace, which makes it no source.
#[test]
fn results_outside_the_workspace_are_no_sources() {
    let place = json!({"uri": "file:///outside/lib.x", "range": lsp_range((1, 2), (1, 5))});
    let server = fake().on("textDocument/definition", [reply(place)]);
    let over = bench(server).run(async |bench| {
        let found = locations(bench.query(GoToDefinition, "a.x:1:1").await);
        assert_eq!(found[0].uri, "file:///outside/lib.x");
        assert_eq!(found[0].range, range((1, 2), (1, 5)));
        let other = bench.another_workspace("ws-outside");
        let outcome = bench
            .query(GoToDefinition, &format!("{other}/a.x:1:1"))
            .await;
        failure(outcome, "LSP_SOURCE_REJECTED");
    });
    over.processes(1);
}

/// The URI of the document of the only query, checked to be the same bytes in all three messages
/// and legal by RFC 3986.
#[track_caller]
fn document_uri(over: &Over, process: u32) -> String {
    let uris: Vec<String> = ["didOpen", "hover", "didClose"]
        .iter()
        .map(|method| {
            over.params(process, method)["textDocument"]["uri"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(uris.iter().all(|uri| *uri == uris[0]), "{uris:?}");
    assert_legal(&uris[0]);
    uris[0].clone()
}

#[track_caller]
fn assert_legal(uri: &str) {
    // RFC 3986, 3.3: `pchar` and the separator.
    const UNESCAPED: &[u8] = b"-._~!$&'()*+,;=:@/";
    let path = uri.strip_prefix("file://").expect("an empty authority");
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next(), bytes.next()];
            assert!(digits.iter().flatten().all(u8::is_ascii_hexdigit), "{uri}");
        } else {
            assert!(
                byte.is_ascii_alphanumeric() || UNESCAPED.contains(&byte),
                "{uri}"
            );
        }
    }
}

/// The path that a `file:` URI stands for, as a server would decode it.
fn decoded(uri: &str) -> PathBuf {
    let path = uri.strip_prefix("file://").unwrap().as_bytes();
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < path.len() {
        if path[at] == b'%' {
            let digits = std::str::from_utf8(&path[at + 1..at + 3]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            at += 3;
        } else {
            bytes.push(path[at]);
            at += 1;
        }
    }
    PathBuf::from(String::from_utf8(bytes).unwrap())
}

/// Names that need care in a URI.
const NAMES: [&str; 12] = [
    "with space",
    "ha#sh",
    "per%cent %41",
    "quest?ion",
    "quotes '\" `",
    "new\nline\ttab",
    "emoji 😀",
    "größe 数",
    "back\\slash",
    "[brackets]{}^|<>",
    "plus+amp&eq=;:@,!$()*~",
    "..name...",
];

/// HST-8: the URI of a file with an odd name stands for that file, and is the same everywhere.
#[test]
fn odd_names_of_files_survive_in_uris() {
    let setup = NAMES.iter().fold(bench(fake()), |setup, name| {
        setup.file(format!("{name}.x"), "")
    });
    let over = setup.run(async |bench| {
        for name in NAMES {
            bench.query(Hover, &format!("{name}.x:1:1")).await.unwrap();
        }
    });
    let uris = |method: &str| -> Vec<String> {
        let bodies = over.bodies(1, method);
        let uri = |body: &serde_json::Value| body["params"]["textDocument"]["uri"].clone();
        bodies
            .iter()
            .map(|body| uri(body).as_str().unwrap().to_owned())
            .collect()
    };
    let opened = over.processes(1).uri("");
    for (uri, name) in uris("didOpen").iter().zip(NAMES) {
        assert_legal(uri);
        assert_eq!(decoded(uri), decoded(&opened).join(format!("{name}.x")));
    }
    assert_eq!(uris("didOpen"), uris("hover"));
    assert_eq!(uris("didOpen"), uris("didClose"));
    assert_eq!(uris("didOpen").len(), NAMES.len());
}

/// HST-8, INI-2: the same for the names of workspaces.
#[test]
fn odd_names_of_workspaces_survive_in_uris() {
    let over = bench(fake()).run(async |bench| {
        for name in NAMES {
            let root = bench.another_workspace(name);
            let outcome = bench
                .start_in(&root, GoToDefinition, "a.x:1:1")
                .outcome()
                .await
                .unwrap();
            match outcome {
                QueryResult::Locations {
                    resolved_workspace_uri,
                    ..
                } => {
                    assert_legal(&resolved_workspace_uri);
                    assert_eq!(decoded(&resolved_workspace_uri), PathBuf::from(root));
                }
                QueryResult::Hover { .. } => panic!("a navigation gives locations"),
            }
        }
    });
    over.processes(NAMES.len());
    let parent = decoded(&over.uri("")).parent().unwrap().to_owned();
    for (process, name) in (1..).zip(NAMES) {
        let told = over.params(process, "initialize");
        let root = told["rootUri"].as_str().unwrap();
        assert_legal(root);
        assert_eq!(decoded(root), parent.join(name));
        assert_eq!(
            told["workspaceFolders"],
            json!([{"uri": root, "name": name}])
        );
    }
}

/// HST-8: a path of two hundred components.
#[test]
fn a_deep_path_is_served() {
    let name = format!("{}deep file.x", "d/".repeat(200));
    let over = bench(fake()).file(&name, "deep\n").run(async |bench| {
        bench.query(Hover, &format!("{name}:1:1")).await.unwrap();
    });
    assert_eq!(document_uri(&over, 1), over.uri(&name));
    assert_eq!(over.params(1, "didOpen")["textDocument"]["text"], "deep\n");
}

/// HST-9: a source is whatever the file system service says it is; the host looks nowhere else.
#[test]
fn sources_come_from_the_service_alone() {
    let over = bench(fake()).run(async |bench| {
        let workspace = Workspace {
            path: bench.path(""),
            uri: bench.uri(""),
        };
        let path = bench.path("nowhere on disk.x");
        let uri = uri_of(&path);
        bench.files.serve_source(Source {
            workspace,
            path,
            uri,
            text: "conjured\n".to_owned(),
        });
        bench.query(Hover, "ghost.x:1:1").await.unwrap();
        assert_eq!((bench.looks("workspace"), bench.looks("source")), (1, 1));
    });
    assert_eq!(
        over.params(1, "didOpen")["textDocument"]["text"],
        "conjured\n"
    );
    assert_eq!(document_uri(&over, 1), over.uri("nowhere on disk.x"));
}

/// HST-3: paths that no file can have are rejected in words, not with a panic.
#[test]
fn impossible_paths_are_rejected() {
    let over = bench(fake()).run(async |bench| {
        let long = format!("{}.x", "n".repeat(5_000));
        assert!(CString::new("nul\0.x").is_err());
        for path in ["nul\0.x", long.as_str()] {
            let outcome = bench.query(Hover, &format!("{path}:1:1")).await;
            failure(outcome, "LSP_SOURCE_REJECTED");
        }
    });
    over.processes(0);
}
