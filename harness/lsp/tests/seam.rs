//! The registry, from outside.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, Kernel};
use dsh_lsp::{
    Hover, LspError, LspPlugin, LspProvider, LspRegistry, LspService, Operation, Position,
    ProviderQuery, QueryRequest, QueryResult,
};
use tokio::sync::Notify;

/// Answers a hover with its own name, after having been told to.
struct Fake {
    id: String,
    extensions: BTreeMap<String, String>,
    seen: Mutex<Vec<(ProviderQuery, Cancel)>>,
    asked: Notify,
    held: bool,
    dropped: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn fake(id: &str, extensions: &[(&str, &str)]) -> Arc<Fake> {
    Arc::new(new_fake(id, extensions, false))
}

fn new_fake(id: &str, extensions: &[(&str, &str)], held: bool) -> Fake {
    Fake {
        id: id.to_owned(),
        extensions: extensions
            .iter()
            .map(|&(k, v)| (k.to_owned(), v.to_owned()))
            .collect(),
        seen: Mutex::default(),
        asked: Notify::new(),
        held,
        dropped: Arc::default(),
    }
}

#[async_trait]
impl LspProvider for Fake {
    fn id(&self) -> &str {
        &self.id
    }

    fn extension_to_language(&self) -> &BTreeMap<String, String> {
        &self.extensions
    }

    async fn query(&self, query: ProviderQuery, cancel: &Cancel) -> Result<QueryResult, LspError> {
        let _running = CountDrop(Arc::clone(&self.dropped));
        self.seen
            .lock()
            .expect("no test panics with the lock")
            .push((query, cancel.clone()));
        self.asked.notify_one();
        if self.held {
            return Err(cancel.cancelled().await.into());
        }
        Ok(QueryResult::Hover {
            hover: Some(Hover {
                contents: self.id.clone(),
                range: None,
            }),
        })
    }
}

fn request(file_path: &str) -> QueryRequest {
    QueryRequest {
        operation: Operation::Hover,
        file_path: file_path.to_owned(),
        position: Position {
            line: 3,
            character: 7,
        },
        workspace_root: "/w".to_owned(),
    }
}

async fn who(registry: &LspRegistry, file_path: &str) -> Result<String, &'static str> {
    match registry.query(request(file_path), &Cancel::new()).await {
        Ok(QueryResult::Hover { hover: Some(hover) }) => Ok(hover.contents),
        Ok(other) => panic!("unexpected {other:?}"),
        Err(error) => Err(error.code()),
    }
}

#[track_caller]
fn refused(registry: &LspRegistry, provider: Arc<Fake>) -> LspError {
    registry
        .register_provider(provider)
        .expect_err("the registration breaks a rule")
}

/// SEAM-1, SEAM-14: four operations under their names, a request of exactly four members.
#[test]
fn the_vocabulary_is_closed() {
    let names: Vec<&str> = Operation::ALL
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "goToDefinition",
            "findReferences",
            "goToImplementation",
            "hover"
        ]
    );
    for operation in Operation::ALL {
        assert_eq!(operation.as_str().parse(), Ok(operation));
        assert_eq!(serde_json::to_value(operation).unwrap(), operation.as_str());
    }
    assert!("textDocument/rename".parse::<Operation>().is_err());
    let wire = serde_json::json!({
        "operation": "hover",
        "filePath": "a.ts",
        "position": {"line": 3, "character": 7},
        "workspaceRoot": "/w",
    });
    let read: QueryRequest = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(read.file_path, "a.ts");
    assert_eq!(serde_json::to_value(&read).unwrap(), wire);
    for missing in ["operation", "filePath", "position", "workspaceRoot"] {
        let mut less = wire.clone();
        less.as_object_mut().unwrap().remove(missing);
        assert!(
            serde_json::from_value::<QueryRequest>(less).is_err(),
            "{missing} is required"
        );
    }
    let mut more = wire;
    more["method"] = "textDocument/rename".into();
    assert!(serde_json::from_value::<QueryRequest>(more).is_err());
}

/// SEAM-11, SEAM-14: the shapes of the two results.
#[test]
fn results_are_a_closed_union() {
    let locations = QueryResult::Locations {
        locations: vec![],
        resolved_workspace_uri: "file:///w".to_owned(),
    };
    assert_eq!(
        serde_json::to_value(locations).unwrap(),
        serde_json::json!({"kind": "locations", "locations": [], "resolvedWorkspaceUri": "file:///w"})
    );
    assert_eq!(
        serde_json::to_value(QueryResult::Hover { hover: None }).unwrap(),
        serde_json::json!({"kind": "hover", "hover": null})
    );
    let odd = serde_json::json!({"kind": "diagnostics"});
    assert!(serde_json::from_value::<QueryResult>(odd).is_err());
}

/// SEAM-3: what is invalid is refused with its own code.
#[test]
fn invalid_providers_are_refused() {
    let registry = LspRegistry::new();
    for provider in [
        fake("", &[("ts", "typescript")]),
        fake(" \t", &[("ts", "typescript")]),
        fake("x", &[]),
        fake("x", &[("", "x")]),
        fake("x", &[(".d.ts", "x")]),
        fake("x", &[("a/b", "x")]),
        fake("x", &[("ts", " ")]),
        fake("x", &[("ts", "a"), (".TS", "b")]),
    ] {
        assert_eq!(refused(&registry, provider).code(), "LSP_INVALID_PROVIDER");
    }
}

/// SEAM-2, SEAM-4: a conflict publishes nothing, not even the extensions that were free.
#[tokio::test]
async fn a_refused_registration_publishes_nothing() {
    let registry = LspRegistry::new();
    let _first = registry
        .register_provider(fake("first", &[("ts", "t")]))
        .unwrap();
    let conflict = refused(
        &registry,
        fake("second", &[("a", "a"), (".TS", "t"), ("z", "z")]),
    );
    assert_eq!(conflict.code(), "LSP_CONFLICT");
    assert!(conflict.to_string().contains("first"), "{conflict}");
    assert_eq!(
        refused(&registry, fake("first", &[("b", "b")])).code(),
        "LSP_CONFLICT"
    );
    assert_eq!(
        refused(&registry, fake("bad", &[("c", "c"), (".d.c", "c")])).code(),
        "LSP_INVALID_PROVIDER"
    );
    for free in ["f.a", "f.z", "f.b", "f.c"] {
        assert_eq!(who(&registry, free).await, Err("LSP_UNAVAILABLE"));
    }
    let again = registry
        .register_provider(fake("second", &[("a", "a"), ("z", "z")]))
        .unwrap();
    assert_eq!(who(&registry, "f.a").await.as_deref(), Ok("second"));
    again.release();
}

/// SEAM-5, SEAM-7: the final extension in any letter case, whatever came first.
#[tokio::test]
async fn selection_does_not_depend_on_order() {
    for reversed in [false, true] {
        let registry = LspRegistry::new();
        let mut providers = vec![fake("ts", &[("TS", "t")]), fake("d", &[(".d", "d")])];
        if reversed {
            providers.reverse();
        }
        let _held: Vec<_> = providers
            .into_iter()
            .map(|p| registry.register_provider(p).unwrap())
            .collect();
        for (file, expected) in [
            ("Foo.TS", Ok("ts")),
            ("foo.d.ts", Ok("ts")),
            ("a\\b.ts", Ok("ts")),
            ("ts.d", Ok("d")),
            ("x.ts/f.D", Ok("d")),
            (".ts", Err("LSP_UNAVAILABLE")),
            ("Makefile", Err("LSP_UNAVAILABLE")),
        ] {
            assert_eq!(
                who(&registry, file).await.as_deref(),
                expected.as_deref(),
                "{file}"
            );
        }
    }
}

/// SEAM-8: nobody serves the file; the message says what is served.
#[tokio::test]
async fn an_unserved_extension_is_unavailable() {
    let registry = LspRegistry::new();
    let _held = registry
        .register_provider(fake("ts", &[("ts", "t")]))
        .unwrap();
    let error = registry
        .query(request("/w/a.py"), &Cancel::new())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "LSP_UNAVAILABLE");
    assert!(
        error.to_string().contains(".py") && error.to_string().contains(".ts"),
        "{error}"
    );
}

/// SEAM-9, SEAM-10, SEAM-14: the provider gets the request as it is, the language id of its own
/// mapping, and the caller's own cancellation.
#[tokio::test]
async fn the_provider_gets_the_question_unchanged() {
    let registry = LspRegistry::new();
    let provider = fake("ts", &[("TSX", "typescriptreact"), ("ts", "typescript")]);
    let _held = registry
        .register_provider(Arc::clone(&provider) as _)
        .unwrap();
    let cancel = Cancel::new();
    registry.query(request("/w/A.TSX"), &cancel).await.unwrap();
    let (query, passed) = provider.seen.lock().unwrap().pop().unwrap();
    assert_eq!(
        query,
        ProviderQuery {
            operation: Operation::Hover,
            file_path: "/w/A.TSX".to_owned(),
            position: Position {
                line: 3,
                character: 7
            },
            workspace_root: "/w".to_owned(),
            language_id: "typescriptreact".to_owned(),
        }
    );
    cancel.cancel(CancelReason::Timeout(Duration::from_millis(9)));
    assert_eq!(
        passed.reason(),
        Some(CancelReason::Timeout(Duration::from_millis(9)))
    );
}

/// CAN-1: a query that was cancelled before it starts reaches nobody.
#[tokio::test]
async fn a_cancelled_query_reaches_nobody() {
    let registry = LspRegistry::new();
    let provider = fake("ts", &[("ts", "t")]);
    let _held = registry
        .register_provider(Arc::clone(&provider) as _)
        .unwrap();
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    let error = registry.query(request("a.ts"), &cancel).await.unwrap_err();
    assert_eq!(error, LspError::Cancelled(CancelReason::Caller));
    assert!(provider.seen.lock().unwrap().is_empty());
}

/// SEAM-6: the id and every extension go together, once, by release or by drop.
#[tokio::test]
async fn releasing_frees_everything_once() {
    let registry = LspRegistry::new();
    let first = registry
        .register_provider(fake("x", &[("a", "a"), ("b", "b")]))
        .unwrap();
    first.release();
    assert_eq!(who(&registry, "f.a").await, Err("LSP_UNAVAILABLE"));
    assert_eq!(who(&registry, "f.b").await, Err("LSP_UNAVAILABLE"));

    let second = registry
        .register_provider(fake("x", &[("a", "a"), ("b", "b")]))
        .unwrap();
    first.release();
    drop(first);
    assert_eq!(
        who(&registry, "f.a").await.as_deref(),
        Ok("x"),
        "a late release touches nobody else"
    );
    drop(second);
    assert_eq!(who(&registry, "f.a").await, Err("LSP_UNAVAILABLE"));
}

/// SEAM-12: a provider that is removed during a query ends it with `LSP_DISPOSED`, its work is
/// dropped, and the query is not given to whoever takes over.
#[tokio::test]
async fn removal_during_a_query_disposes_it() {
    let registry = LspRegistry::new();
    let held = Arc::new(new_fake("held", &[("ts", "t")], true));
    let registration = registry.register_provider(Arc::clone(&held) as _).unwrap();
    let cancel = Cancel::new();
    let successor = fake("successor", &[("ts", "t")]);
    let takeover = async {
        held.asked.notified().await;
        registration.release();
        registry
            .register_provider(Arc::clone(&successor) as _)
            .unwrap()
    };
    let (answer, _registered) = tokio::join!(registry.query(request("a.ts"), &cancel), takeover);
    let error = answer.unwrap_err();
    assert_eq!(error.code(), "LSP_DISPOSED");
    assert!(error.to_string().contains("held"), "{error}");
    assert_eq!(held.dropped.load(Ordering::SeqCst), 1);
    assert!(successor.seen.lock().unwrap().is_empty());
    assert_eq!(who(&registry, "a.ts").await.as_deref(), Ok("successor"));
}

/// SEAM-6: the seam is a service of the runtime, and goes with its plugin.
#[tokio::test]
async fn the_plugin_provides_the_seam() {
    let kernel = Kernel::new();
    let plugin = kernel.mount(Arc::new(LspPlugin::new())).await.unwrap();
    let service = kernel
        .service::<dyn LspService>()
        .expect("the plugin provides it");
    let _held = service.register_provider(fake("x", &[("a", "a")])).unwrap();
    drop(service);
    kernel.unmount(&plugin).await.ok();
    assert!(kernel.service::<dyn LspService>().is_none());
}

/// ERR-2: the server's own code is told where there is one, and only there.
#[test]
fn the_server_s_own_code_is_kept() {
    let answered = LspError::ServerError {
        server_code: -32_603,
        message: "broken".to_owned(),
    };
    let stale = LspError::Stale {
        server_code: -32_801,
        message: "changed meanwhile".to_owned(),
    };
    assert_eq!(answered.server_code(), Some(-32_603));
    assert_eq!(stale.server_code(), Some(-32_801));
    assert_eq!(
        LspError::Unavailable("nobody".to_owned()).server_code(),
        None
    );
}

/// SEAM-1: an operation is written as it is on the seam, whoever writes it.
#[test]
fn operations_are_shown_by_their_names() {
    let shown: Vec<_> = Operation::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "goToDefinition",
            "findReferences",
            "goToImplementation",
            "hover"
        ]
    );
}
