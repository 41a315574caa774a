//! The handshake: what is told, what is understood, and what becomes of one that fails (INI).

use dsh_fake_lsp::{
    FakeServer, Rule, capabilities, exit, hold, ignore, notify, only, raw, reply, reply_error,
    reply_raw, request, request_and_wait,
};
use dsh_lsp::Operation::{self, GoToDefinition, Hover};
use dsh_lsp::{LspError, QueryResult};
use serde_json::{Value, json};

use crate::support::{bench, failure, fake};

const ONE_QUERY: &str = "initialize initialized didOpen hover didClose shutdown exit";

/// INI-2, INI-3, INI-4: the parameters of `initialize`, whole.
#[test]
fn initialize_says_exactly_this() {
    let over = bench(fake()).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    let mut told = over.params(1, "initialize");
    let version = told["clientInfo"]["version"].take();
    assert!(version.is_string());
    let expected = json!({
        "processId": null,
        "clientInfo": {"name": "dsh", "version": null},
        "rootUri": over.uri(""),
        "workspaceFolders": [{"uri": over.uri(""), "name": "ws"}],
        "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"workspaceFolders": true, "configuration": true},
            "textDocument": {
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "definition": {"linkSupport": true},
                "implementation": {"linkSupport": true},
            },
        },
    });
    assert_eq!(told, expected);
    assert_eq!(over.params(1, "initialized"), json!({}));
}

/// INI-4: options are forwarded as they are; null leaves the member out.
#[test]
fn initialization_options_are_forwarded_as_they_are() {
    let cases = [
        json!({"nested": {"list": [1, 2.5, null, "é"], "flag": false}}),
        json!([1, [2]]),
        json!("text"),
        json!(0),
        json!(false),
        json!({}),
        Value::Null,
    ];
    for options in cases {
        let given = options.clone();
        let setup = bench(fake()).configure(|config| config.initialization_options = given);
        let over = setup.run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        let told = over.params(1, "initialize");
        let expected = (!options.is_null()).then_some(&options);
        assert_eq!(told.get("initializationOptions"), expected);
    }
}

/// INI-1: the handshake happens once a process, and before anything else.
#[test]
fn the_handshake_happens_once() {
    let over = bench(fake()).run(async |bench| {
        for _ in 0..3 {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        }
    });
    over.wire(
        1,
        "initialize initialized
         didOpen hover didClose didOpen hover didClose didOpen hover didClose
         shutdown exit",
    );
}

/// INI-1, SRQ-1: until `initialize` is answered nothing is sent but answers to the server.
#[test]
fn nothing_but_answers_before_the_answer_to_initialize() {
    let server = fake().on(
        "initialize",
        [
            notify(
                "window/logMessage",
                json!({"type": 3, "message": "starting"}),
            ),
            request_and_wait(
                json!("before"),
                "workspace/configuration",
                json!({"items": [{}]}),
            ),
            hold("start"),
        ],
    );
    let over = bench(server).run(async |bench| {
        let queries = [bench.start(Hover, "a.x:1:1"), bench.start(Hover, "a.x:1:2")];
        bench.held("start").await;
        assert_eq!(bench.wire_so_far(1), "initialize");
        bench.control.release("start");
        for query in queries {
            query.outcome().await.unwrap();
        }
    });
    assert_eq!(
        over.answers(1),
        [json!({"jsonrpc": "2.0", "id": "before", "result": [null]})]
    );
    over.wire(
        1,
        "initialize initialized didOpen hover didClose didOpen hover didClose shutdown exit",
    );
}

/// SRQ-1, INI-1: what the server asks and tells right before, with, and right after its answer
/// to `initialize` is taken in stride.
#[test]
fn requests_around_the_answer_to_initialize_are_answered() {
    let server = fake()
        .on(
            "initialize",
            [
                dsh_fake_lsp::coalesce(),
                request(
                    json!(1),
                    "client/registerCapability",
                    json!({"registrations": []}),
                ),
                notify("window/logMessage", json!({"type": 4, "message": "a"})),
                capabilities(json!({})),
                request(
                    json!(2),
                    "window/workDoneProgress/create",
                    json!({"token": 1}),
                ),
                notify(
                    "$/progress",
                    json!({"token": 1, "value": {"kind": "begin"}}),
                ),
                request(json!(3), "workspace/workspaceFolders", json!(null)),
            ],
        )
        .on(
            "initialized",
            [request_and_wait(
                json!(4),
                "workspace/configuration",
                json!({"items": []}),
            )],
        );
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1).wire(1, ONE_QUERY);
    let folders = json!([{"uri": over.uri(""), "name": "ws"}]);
    let results = [json!(null), json!(null), folders, json!([])];
    let expected: Vec<Value> = (1..)
        .zip(results)
        .map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result}))
        .collect();
    assert_eq!(over.answers(1), expected);
}

/// INI-5: UTF-16, said or not, is what is used.
#[test]
fn utf_16_may_be_said_or_left_out() {
    for encoding in [json!("utf-16"), Value::Null] {
        // A null in a patch removes the member.
        let server = fake().capabilities(json!({"positionEncoding": encoding}));
        let over = bench(server).run(async |bench| {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(1).wire(1, ONE_QUERY);
    }
}

/// INI-5: any other encoding is a protocol error that ends the process, not the provider.
#[test]
fn another_encoding_is_a_protocol_error() {
    for encoding in [
        json!("utf-8"),
        json!("utf-32"),
        json!("UTF-16"),
        json!(""),
        json!(16),
        json!([]),
    ] {
        let chosen = encoding.clone();
        let rule = Rule::on("initialize").process(1);
        let server = fake().rule(rule.run([capabilities(json!({"positionEncoding": chosen}))]));
        let over = bench(server).run(async |bench| {
            let message = failure(bench.query(Hover, "a.x:1:1").await, "LSP_PROTOCOL_ERROR");
            assert!(message.contains("utf-16"), "{message}");
            if let Some(name) = encoding.as_str() {
                assert!(message.contains(&format!("{name:?}")), "{message}");
            }
            bench.query(Hover, "a.x:1:1").await.unwrap();
        });
        over.processes(2)
            .wire(1, "initialize")
            .wire(2, ONE_QUERY)
            .terminated(1);
    }
}

/// The four operations with their capabilities.
const OPERATIONS: [(Operation, &str, &str); 4] = [
    (
        Operation::GoToDefinition,
        "definitionProvider",
        "definition",
    ),
    (
        Operation::FindReferences,
        "referencesProvider",
        "references",
    ),
    (
        Operation::GoToImplementation,
        "implementationProvider",
        "implementation",
    ),
    (Operation::Hover, "hoverProvider", "hover"),
];

/// INI-6, OPN-13: `true` and an object advertise an operation.
#[test]
fn true_and_an_object_advertise_an_operation() {
    for value in [
        json!(true),
        json!({}),
        json!({"workDoneProgress": true, "id": "x"}),
    ] {
        for (operation, capability, method) in OPERATIONS {
            let server =
                fake().replace_capabilities(json!({"textDocumentSync": 1, capability: value}));
            let over = bench(server).run(async |bench| {
                bench.query(operation, "a.x:1:1").await.unwrap();
            });
            let wire = format!("initialize initialized didOpen {method} didClose shutdown exit");
            over.processes(1).wire(1, &wire);
        }
    }
}

/// INI-6: what is not advertised fails before the document is opened, and the process is kept.
#[test]
fn what_is_not_advertised_is_not_asked() {
    for (index, (operation, capability, _)) in OPERATIONS.into_iter().enumerate() {
        for value in [json!(false), Value::Null, json!({"$absent": true})] {
            let mut all = json!({"textDocumentSync": 2});
            for (_, other, _) in OPERATIONS {
                all[other] = json!(true);
            }
            all[capability] = value.clone();
            if value.is_object() {
                all.as_object_mut().unwrap().remove(capability);
            }
            let over = bench(fake().replace_capabilities(all)).run(async |bench| {
                for _ in 0..2 {
                    let outcome = bench.query(operation, "a.x:1:1").await;
                    let message = failure(outcome, "LSP_UNSUPPORTED_OPERATION");
                    assert!(message.contains(operation.as_str()), "{message}");
                }
                let (other, _, _) = OPERATIONS[(index + 1) % 4];
                bench.query(other, "a.x:1:1").await.unwrap();
            });
            let method = OPERATIONS[(index + 1) % 4].2;
            let wire = format!("initialize initialized didOpen {method} didClose shutdown exit");
            over.processes(1).wire(1, &wire);
        }
    }
}

/// INI-6: the result of `initialize` is authoritative: later registrations change nothing.
#[test]
fn registrations_change_nothing() {
    let registration = |method: &str| json!({"id": method, "method": method});
    let server = fake().capabilities(json!({"hoverProvider": false})).on(
        "initialized",
        [
            request_and_wait(
                json!(1),
                "client/registerCapability",
                json!({"registrations": [registration("textDocument/hover")]}),
            ),
            request_and_wait(
                json!(2),
                "client/unregisterCapability",
                json!({"unregisterations": [registration("textDocument/definition")]}),
            ),
        ],
    );
    let over = bench(server).run(async |bench| {
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
        failure(
            bench.query(Hover, "a.x:1:1").await,
            "LSP_UNSUPPORTED_OPERATION",
        );
        bench.query(GoToDefinition, "a.x:1:1").await.unwrap();
    });
    assert_eq!(over.processes(1).answers(1).len(), 2);
}

/// Asks a server with this `textDocumentSync`, absent for `None`.
fn asked_with_sync(sync: Option<Value>) -> (Result<QueryResult, LspError>, String) {
    let mut all = json!({"hoverProvider": true});
    if let Some(sync) = sync {
        all["textDocumentSync"] = sync;
    }
    let kept = std::cell::OnceCell::new();
    let over = bench(fake().replace_capabilities(all)).run(async |bench| {
        let first = bench.query(Hover, "a.x:1:1").await;
        let second = bench.query(Hover, "a.x:1:1").await;
        assert_eq!(first, second);
        kept.set(first).unwrap();
    });
    over.processes(1);
    (
        kept.into_inner().unwrap(),
        over.bodies(1, "didOpen").len().to_string(),
    )
}

/// OPN-2.
#[test]
fn servers_that_let_documents_be_opened_and_closed_are_asked() {
    for sync in [
        json!(1),
        json!(2),
        json!({"openClose": true}),
        json!({"openClose": true, "change": 0}),
        json!({"openClose": true, "change": 1, "save": {"includeText": true}}),
        json!({"change": 2, "openClose": true, "willSave": true}),
    ] {
        let (outcome, opened) = asked_with_sync(Some(sync.clone()));
        assert!(outcome.is_ok(), "{sync}: {outcome:?}");
        assert_eq!(opened, "2", "{sync}");
    }
}

/// OPN-2: the others get no `didOpen`.
#[test]
fn servers_that_do_not_let_documents_be_opened_are_not_asked() {
    for sync in [
        None,
        Some(Value::Null),
        Some(json!(0)),
        Some(json!({})),
        Some(json!({"change": 2})),
        Some(json!({"openClose": false, "change": 2})),
        Some(json!({"openClose": null, "change": 1})),
    ] {
        let (outcome, opened) = asked_with_sync(sync.clone());
        let message = failure(outcome, "LSP_UNSUPPORTED_OPERATION");
        assert!(message.contains("textDocumentSync"), "{message}");
        assert_eq!(opened, "0", "{sync:?}");
    }
}

/// Has the first process do this in place of its answer to `initialize`; the query fails with
/// `code`, and the next one is served by another process. Returns the message.
#[track_caller]
fn failed_handshake(actions: impl IntoIterator<Item = dsh_fake_lsp::Action>, code: &str) -> String {
    let kept = std::cell::OnceCell::new();
    let server = fake().rule(Rule::on("initialize").process(1).run(actions));
    let over = bench(server).run(async |bench| {
        kept.set(failure(bench.query(Hover, "a.x:1:1").await, code))
            .unwrap();
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2).wire(1, "initialize").wire(2, ONE_QUERY);
    kept.into_inner().unwrap()
}

/// INI-7: an answer of another shape than LSP's.
#[test]
fn a_malformed_answer_to_initialize_does_not_poison_the_pool() {
    for result in [
        json!([]),
        json!("ready"),
        json!(1),
        json!(true),
        Value::Null,
        json!({}),
        json!({"capabilities": []}),
        json!({"capabilities": null}),
        json!({"capabilities": "all"}),
    ] {
        let message = failed_handshake([reply(result.clone())], "LSP_PROTOCOL_ERROR");
        assert!(message.contains("initialize"), "{result}: {message}");
    }
}

/// INI-7: neither a result nor an error.
#[test]
fn an_empty_answer_to_initialize_does_not_poison_the_pool() {
    let empty = reply_raw(r#"{"jsonrpc":"2.0","id":${id}}"#);
    let message = failed_handshake([empty], "LSP_PROTOCOL_ERROR");
    assert!(
        message.contains("neither a result nor an error"),
        "{message}"
    );
}

/// INI-7, ERR-1: an error keeps its code and words.
#[test]
fn a_refused_initialize_does_not_poison_the_pool() {
    let message = failed_handshake([reply_error(-32603, "no licence")], "LSP_SERVER_ERROR");
    assert!(
        message.contains("no licence") && message.contains("-32603"),
        "{message}"
    );
}

/// INI-7, FRM-6: garbage in a frame.
#[test]
fn garbage_in_place_of_initialize_does_not_poison_the_pool() {
    let message = failed_handshake([reply_raw("{\"jsonrpc\":")], "LSP_PROTOCOL_ERROR");
    assert!(message.contains("not JSON"), "{message}");
}

/// INI-7, FRM-10: text that is no frame.
#[test]
fn text_in_place_of_initialize_does_not_poison_the_pool() {
    let actions = [raw("Starting server on port 3000\n"), ignore()];
    let message = failed_handshake(actions, "LSP_PROTOCOL_ERROR");
    assert!(
        message.contains("Starting server on port 3000"),
        "{message}"
    );
}

/// INI-7, CRS-1: death before the answer.
#[test]
fn death_in_the_handshake_does_not_poison_the_pool() {
    let message = failed_handshake([exit(7)], "LSP_SERVER_EXITED");
    assert!(
        message.contains("exit code 7") && message.contains("while starting"),
        "{message}"
    );
}

/// INI-7, CRS-1: death in the middle of the answer.
#[test]
fn death_in_the_answer_to_initialize_does_not_poison_the_pool() {
    let actions = [only(60), capabilities(json!({})), exit(0)];
    let message = failed_handshake(actions, "LSP_SERVER_EXITED");
    assert!(message.contains("in the middle of a message"), "{message}");
}

/// INI-7, INI-8: a server that never answers is waited for until the caller gives up; its
/// process goes with the query, and nothing more is said to it.
#[test]
fn a_handshake_that_is_never_answered_ends_with_its_query() {
    let server = fake().rule(Rule::on("initialize").process(1).run([ignore()]));
    let over = bench(server).run(async |bench| {
        let query = bench.start(Hover, "a.x:1:1");
        bench.received(1, "initialize").await;
        query.cancel();
        failure(query.outcome().await, "LSP_CANCELLED");
        bench.ended(1).await;
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(2)
        .wire(1, "initialize")
        .wire(2, ONE_QUERY)
        .terminated(1);
}

/// INI-7, CRS-3: of the queries that wait for a handshake, the one whose process fails is hit; each
/// of the others gets a start of its own.
#[test]
fn queries_behind_a_failed_handshake_get_a_start_of_their_own() {
    let server = fake().rule(
        Rule::on("initialize")
            .process(1)
            .run([hold("start"), exit(1)]),
    );
    let over = bench(server).run(async |bench| {
        let queries = [Hover, GoToDefinition, Hover].map(|what| bench.start(what, "a.x:1:1"));
        bench.held("start").await;
        bench.control.release("start");
        let [first, second, third] = queries;
        failure(first.outcome().await, "LSP_SERVER_EXITED");
        second.outcome().await.unwrap();
        third.outcome().await.unwrap();
    });
    over.processes(2).wire(1, "initialize").wire(
        2,
        "initialize initialized didOpen definition didClose didOpen hover didClose shutdown exit",
    );
}

/// A server for INI-9: it answers once it was told its configuration.
fn waits_for_configuration() -> FakeServer {
    fake().on("initialized", [ignore()])
}

/// INI-9: asked for, the configured value is announced once, right after `initialized`.
#[test]
fn the_configuration_is_announced_where_that_is_configured() {
    let setup = bench(waits_for_configuration())
        .announcing()
        .configure(|config| config.configuration = json!({"level": 2, "list": ["é"]}));
    let over = setup.run(async |bench| {
        for _ in 0..2 {
            bench.query(Hover, "a.x:1:1").await.unwrap();
        }
    });
    over.wire(
        1,
        "initialize initialized didChangeConfiguration
         didOpen hover didClose didOpen hover didClose shutdown exit",
    );
    let params = over.params(1, "workspace/didChangeConfiguration");
    assert_eq!(params, json!({"settings": {"level": 2, "list": ["é"]}}));
}

/// INI-9: unset, the announced value is null.
#[test]
fn an_unset_configuration_is_announced_as_null() {
    let over = bench(fake()).announcing().run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    assert_eq!(
        over.params(1, "workspace/didChangeConfiguration"),
        json!({"settings": null})
    );
}

/// INI-1: a second answer to `initialize` is an answer to nothing, and ignored.
#[test]
fn a_second_answer_to_initialize_is_ignored() {
    let again = r#"{"jsonrpc":"2.0","id":${id},"result":{"capabilities":{}}}"#;
    let server = fake().on("initialize", [capabilities(json!({})), reply_raw(again)]);
    let over = bench(server).run(async |bench| {
        bench.query(Hover, "a.x:1:1").await.unwrap();
        bench.query(Hover, "a.x:1:1").await.unwrap();
    });
    over.processes(1);
}
