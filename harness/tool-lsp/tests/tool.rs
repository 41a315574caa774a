//! The mounted tool: what it asks the seam, what it returns, what the model sees of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{SystemPrompt, SystemPromptPlugin};
use dsh_kernel::{Cancel, CancelReason, Context, Kernel, Plugin, PluginError, ServiceKey};
use dsh_lsp::{
    Hover, Location, LspError, LspProvider, LspService, Operation, Position, QueryRequest,
    QueryResult, Range, Registration,
};
use dsh_session::{Session, SessionHeader};
use dsh_tool_lsp::{NO_HOVER, NO_LOCATIONS, SECTION, ToolLspConfig, ToolLspPlugin};
use dsh_tools::{TimeoutPolicyPlugin, ToolCall, ToolRegistry, ToolResult, ToolsPlugin};
use serde_json::{Value, json};

/// A seam that notes what it is asked and answers as told; out of answers, it never answers.
#[derive(Default)]
struct Seam {
    asked: Mutex<Vec<QueryRequest>>,
    answers: Mutex<VecDeque<Result<QueryResult, LspError>>>,
}

#[async_trait]
impl LspService for Seam {
    fn register_provider(&self, _: Arc<dyn LspProvider>) -> Result<Registration, LspError> {
        Ok(Registration::new(|| {}))
    }

    async fn query(&self, request: QueryRequest, cancel: &Cancel) -> Result<QueryResult, LspError> {
        self.asked
            .lock()
            .expect("no test panics with it")
            .push(request);
        let answer = self
            .answers
            .lock()
            .expect("no test panics with it")
            .pop_front();
        match answer {
            Some(answer) => answer,
            None => Err(cancel.cancelled().await.into()),
        }
    }
}

/// Provides the seam.
struct SeamPlugin(Arc<Seam>);

#[async_trait]
impl Plugin for SeamPlugin {
    fn name(&self) -> &'static str {
        "test-seam"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn LspService>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        ctx.provide::<dyn LspService>(self.0.clone())
    }
}

/// A kernel with the tool in it, and the three services it needs.
struct Mounted {
    kernel: Kernel,
    seam: Arc<Seam>,
}

impl Mounted {
    async fn new(config: ToolLspConfig, answers: Vec<Result<QueryResult, LspError>>) -> Self {
        let seam = Arc::new(Seam {
            answers: Mutex::new(answers.into()),
            ..Seam::default()
        });
        let kernel = Kernel::new();
        let plugins: [Arc<dyn Plugin>; 4] = [
            Arc::new(ToolsPlugin),
            Arc::new(SystemPromptPlugin),
            Arc::new(SeamPlugin(seam.clone())),
            Arc::new(ToolLspPlugin::new(config)),
        ];
        for plugin in plugins {
            kernel.mount(plugin).await.expect("its needs are there");
        }
        Self { kernel, seam }
    }

    async fn answering(answer: Result<QueryResult, LspError>) -> Self {
        Self::new(ToolLspConfig::default(), vec![answer]).await
    }

    fn tools(&self) -> Arc<ToolRegistry> {
        self.kernel
            .service::<ToolRegistry>()
            .expect("it is mounted")
    }

    async fn call(&self, arguments: Value, session: impl Into<Option<Session>>) -> ToolResult {
        let call = ToolCall {
            id: "call-1".to_owned(),
            name: "lsp".to_owned(),
            arguments,
        };
        in_time(self.tools().call(call, session, Cancel::new())).await
    }

    async fn dispose(self) -> Vec<QueryRequest> {
        self.kernel.dispose().await.expect("nothing can fail");
        self.seam
            .asked
            .lock()
            .expect("no test panics with it")
            .clone()
    }
}

/// A call that hangs is a failed test and not a hanging one.
async fn in_time<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), call)
        .await
        .expect("the call ends by itself long before")
}

fn session(cwd: Option<&str>) -> Session {
    Session::new(SessionHeader {
        id: "s".to_owned(),
        cwd: cwd.map(str::to_owned),
    })
}

fn arguments() -> Value {
    json!({"operation": "findReferences", "file_path": "src/a.ts", "line": 3, "character": 7})
}

fn at(uri: &str, line: u64, character: u64) -> Location {
    let end = Position {
        line,
        character: character + 1,
    };
    let start = Position { line, character };
    Location {
        uri: uri.to_owned(),
        range: Range { start, end },
    }
}

fn found(count: u64) -> QueryResult {
    QueryResult::Locations {
        locations: (0..count).map(|n| at("file:///w/a.ts", n, 0)).collect(),
        resolved_workspace_uri: "file:///w".to_owned(),
    }
}

/// TOOL-1, TOOL-9, RUN-5: one tool, whose name, description and four parameters are all the model
/// sees of it; no limit and no budget among them.
#[tokio::test]
async fn the_model_sees_one_tool_with_four_parameters() {
    let mounted = Mounted::new(ToolLspConfig::default(), vec![]).await;
    let listed = mounted.tools().list();
    insta::assert_json_snapshot!(listed);
    let text = serde_json::to_string(&listed).expect("it is data");
    for hidden in ["timeout", "60000", "16000", "maxLocations", "workspaceRoot"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    mounted.dispose().await;
}

/// TOOL-1, TOOL-3: the seam is asked with the session's directory and a zero-based position.
#[tokio::test]
async fn the_seam_is_asked_about_the_session_s_workspace() {
    let mounted = Mounted::answering(Ok(found(1))).await;
    let result = mounted.call(arguments(), session(Some("/home/me/w"))).await;
    assert!(!result.is_error, "{result:?}");
    assert_eq!(result.text(), "a.ts:1:1");
    assert_eq!(
        mounted.dispose().await,
        [QueryRequest {
            operation: Operation::FindReferences,
            file_path: "src/a.ts".to_owned(),
            position: Position {
                line: 2,
                character: 6
            },
            workspace_root: "/home/me/w".to_owned(),
        }]
    );
}

/// TOOL-3: without a directory in the session's header, or without a session, nothing is asked.
#[tokio::test]
async fn without_a_workspace_nothing_is_asked() {
    let mounted = Mounted::answering(Ok(found(1))).await;
    for session in [Some(session(None)), None] {
        let result = mounted.call(arguments(), session).await;
        assert!(result.is_error);
        assert_eq!(result.code.as_deref(), Some("LSP_WORKSPACE_REQUIRED"));
        assert_eq!(
            result.text(),
            "the session has no working directory, and the lsp tool asks about that one workspace \
             only. Use search and read instead."
        );
    }
    assert!(mounted.dispose().await.is_empty());
}

/// TOOL-2: bad arguments are `INVALID_ARGS`, in the tool's own words, and nothing is asked.
#[tokio::test]
async fn bad_arguments_ask_nothing() {
    let mounted = Mounted::answering(Ok(found(1))).await;
    let bad = [
        ("line", json!(0)),
        ("line", json!(1.5)),
        ("line", json!("3")),
        ("character", json!(-1)),
        ("operation", json!("rename")),
        ("file_path", json!("")),
        ("limit", json!(5)),
    ];
    for (key, value) in bad {
        let mut arguments = arguments();
        arguments[key] = value;
        let result = mounted.call(arguments, session(Some("/w"))).await;
        assert_eq!(result.code.as_deref(), Some("INVALID_ARGS"));
        let text = result.text();
        assert!(text.contains(key), "{text}");
        assert!(
            text.contains("line and character are one-based; character counts UTF-16 code units"),
            "{text}"
        );
    }
    let result = mounted.call(json!("hover"), session(Some("/w"))).await;
    assert_eq!(result.code.as_deref(), Some("INVALID_ARGS"));
    assert!(mounted.dispose().await.is_empty());
}

/// TOOL-4, TOOL-7: the value is the whole answer; the caps are those of the configuration and touch
/// the text alone.
#[tokio::test]
async fn the_value_is_whole_whatever_the_text_leaves_out() {
    let config = ToolLspConfig {
        max_locations: 2,
        max_result_chars: 60,
        ..ToolLspConfig::default()
    };
    let hover = QueryResult::Hover {
        hover: Some(Hover {
            contents: "x".repeat(500),
            range: Some(at("", 1, 2).range),
        }),
    };
    let mounted = Mounted::new(config, vec![Ok(found(250)), Ok(hover.clone())]).await;
    let result = mounted.call(arguments(), session(Some("/w"))).await;
    assert_eq!(
        result.value,
        Some(serde_json::to_value(found(250)).expect("it is data"))
    );
    assert_eq!(
        result.text(),
        "a.ts:1:1\na.ts:2:1\n248 more locations are not shown."
    );
    let result = mounted.call(arguments(), session(Some("/w"))).await;
    assert_eq!(
        result.value,
        Some(serde_json::to_value(hover).expect("it is data"))
    );
    assert_eq!(
        result.text(),
        "xxxxxxxx\n[cut: the text has 500 characters, the limit is 60]"
    );
    mounted.dispose().await;
}

/// TOOL-7, TOOL-9: what is not configured has the default: 100 locations, a minute.
#[tokio::test]
async fn a_hundred_locations_are_shown_by_default() {
    let mounted = Mounted::answering(Ok(found(101))).await;
    let result = mounted.call(arguments(), session(Some("/w"))).await;
    let text = result.text();
    assert_eq!(text.lines().count(), 101);
    assert!(text.ends_with("\na.ts:100:1\n1 more location is not shown."));
    mounted.dispose().await;
}

/// TOOL-8: no locations and a null hover are successes, with a line of their own each.
#[tokio::test]
async fn no_result_is_a_success() {
    let nothing = QueryResult::Hover { hover: None };
    let answers = vec![Ok(found(0)), Ok(nothing)];
    let mounted = Mounted::new(ToolLspConfig::default(), answers).await;
    for line in [NO_LOCATIONS, NO_HOVER] {
        let result = mounted.call(arguments(), session(Some("/w"))).await;
        assert!(!result.is_error && result.code.is_none(), "{result:?}");
        assert_eq!(result.text(), line);
    }
    mounted.dispose().await;
}

/// ERR-2, TOOL-13: a failure of the seam keeps its code and says in words what happened.
#[tokio::test]
async fn a_failure_keeps_its_code() {
    let error = LspError::ServerError {
        server_code: -32603,
        message: "Position out of range".to_owned(),
    };
    let mounted = Mounted::answering(Err(error)).await;
    let result = mounted.call(arguments(), session(Some("/w"))).await;
    assert!(result.is_error && result.value.is_none());
    assert_eq!(result.code.as_deref(), Some("LSP_SERVER_ERROR"));
    assert_eq!(
        result.text(),
        "the language server answered with error -32603: Position out of range. Some servers \
         answer so when the position is outside the file; line and character are one-based; \
         character counts UTF-16 code units."
    );
    mounted.dispose().await;
}

/// TOOL-9, RUN-7: the configured budget ends the call under the timeout policy, and the seam is
/// told.
#[tokio::test]
async fn the_budget_ends_a_call() {
    let config = ToolLspConfig {
        timeout_ms: 40,
        ..ToolLspConfig::default()
    };
    let mounted = Mounted::new(config, vec![]).await;
    let policy = Arc::new(TimeoutPolicyPlugin::default());
    mounted
        .kernel
        .mount(policy)
        .await
        .expect("its needs are there");
    let result = mounted.call(arguments(), session(Some("/w"))).await;
    assert_eq!(result.code.as_deref(), Some("TOOL_TIMEOUT"));
    assert!(result.text().contains("40 ms"), "{}", result.text());
    assert_eq!(mounted.dispose().await.len(), 1);
}

/// TOOL-9, ERR-5: a caller that gives up ends the call too, and that is no timeout.
#[tokio::test]
async fn a_caller_that_gives_up_did_not_time_out() {
    let mounted = Mounted::new(ToolLspConfig::default(), vec![]).await;
    let cancel = Cancel::new();
    let call = ToolCall {
        id: "call-1".to_owned(),
        name: "lsp".to_owned(),
        arguments: arguments(),
    };
    let tools = mounted.tools();
    let running = tools.call(call, session(Some("/w")), cancel.clone());
    let (result, ()) = tokio::join!(in_time(running), async {
        cancel.cancel(CancelReason::Caller);
    });
    assert_eq!(result.code.as_deref(), Some("LSP_CANCELLED"));
    assert_eq!(result.text(), "query cancelled by the caller");
    mounted.dispose().await;
}

/// TOOL-9: a value out of range fails the mount and names its key; nothing is registered.
#[tokio::test]
async fn a_bad_configuration_fails_the_mount() {
    let good = ToolLspConfig::default();
    for (key, config) in [
        (
            "maxLocations",
            ToolLspConfig {
                max_locations: 0,
                ..good
            },
        ),
        (
            "maxResultChars",
            ToolLspConfig {
                max_result_chars: 0,
                ..good
            },
        ),
        (
            "timeoutMs",
            ToolLspConfig {
                timeout_ms: 2_147_483_648,
                ..good
            },
        ),
    ] {
        let kernel = Kernel::new();
        let plugins: [Arc<dyn Plugin>; 3] = [
            Arc::new(ToolsPlugin),
            Arc::new(SystemPromptPlugin),
            Arc::new(SeamPlugin(Arc::default())),
        ];
        for plugin in plugins {
            kernel.mount(plugin).await.expect("its needs are there");
        }
        let error = kernel
            .mount(Arc::new(ToolLspPlugin::new(config)))
            .await
            .expect_err("it is out of range");
        assert_eq!(error.code(), Some("LSP_CONFIG_INVALID"));
        assert!(error.to_string().starts_with(key), "{error}");
        let tools = kernel.service::<ToolRegistry>().expect("it is mounted");
        assert!(tools.list().is_empty());
        kernel.dispose().await.expect("nothing can fail");
    }
}

/// TOOL-10, RUN-1: the section is in the system prompt while the plugin is mounted, the tool too.
#[tokio::test]
async fn the_section_comes_and_goes_with_the_plugin() {
    let mounted = Mounted::new(ToolLspConfig::default(), vec![]).await;
    let prompt = mounted
        .kernel
        .service::<SystemPrompt>()
        .expect("it is mounted");
    assert_eq!(prompt.assemble(), SECTION);
    let tools = mounted.tools();
    mounted.dispose().await;
    assert_eq!(prompt.assemble(), "");
    assert!(tools.list().is_empty());
}

/// TOOL-12: three services and no other. That they suffice, all other tests here show.
#[test]
fn the_plugin_needs_tools_seam_and_prompt_only() {
    let plugin = ToolLspPlugin::default();
    let needs = plugin.needs();
    assert_eq!(needs.len(), 3);
    for key in [
        ServiceKey::of::<ToolRegistry>(),
        ServiceKey::of::<dyn LspService>(),
        ServiceKey::of::<SystemPrompt>(),
    ] {
        assert!(needs.contains(&key), "{key:?}");
    }
    assert!(plugin.provides().is_empty());
}

/// TOOL-11: the registry shows a call by its arguments alone, also one that is never executed.
#[tokio::test]
async fn a_call_has_its_card() {
    let mounted = Mounted::new(ToolLspConfig::default(), vec![]).await;
    let call = ToolCall {
        id: "call-1".to_owned(),
        name: "lsp".to_owned(),
        arguments: arguments(),
    };
    let card = mounted.tools().present_call(&call);
    assert_eq!(
        serde_json::to_value(card).expect("it is data"),
        json!({
            "card": "generic",
            "kind": "search",
            "title": "findReferences src/a.ts:3:7",
            "locations": [{"path": "src/a.ts", "line": 3}],
        })
    );
    assert!(mounted.tools().is_concurrency_safe(&call));
    assert!(mounted.dispose().await.is_empty());
}
