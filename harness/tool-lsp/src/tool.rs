//! The tool itself: arguments in, one question to the seam, the whole answer out.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_lsp::{LspError, LspService, QueryRequest, QueryResult};
use dsh_tools::{Card, ContentBlock, ExecContext, Tool, ToolError, code};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Arguments, parameters_schema};
use crate::config::ToolLspConfig;
use crate::failure::failure;
use crate::present::present;
use crate::prompt::{DESCRIPTION, NAME};
use crate::render::render;

/// The `lsp` tool over a seam.
pub struct LspTool {
    lsp: Arc<dyn LspService>,
    config: ToolLspConfig,
}

impl LspTool {
    /// The tool over `lsp`. The ranges of `config` are the plugin's to check.
    pub fn new(lsp: Arc<dyn LspService>, config: ToolLspConfig) -> Self {
        Self { lsp, config }
    }

    async fn ask(&self, arguments: Arguments, context: &ExecContext) -> Result<Value, LspError> {
        // The session's own directory and nothing in its stead: an answer about another workspace
        // would look like one about this one (TOOL-3).
        let cwd = context
            .session
            .as_ref()
            .and_then(|session| session.header().cwd.clone())
            .ok_or_else(|| {
                LspError::WorkspaceRequired(
                    "the session has no working directory, and the lsp tool asks about that one \
                     workspace only"
                        .to_owned(),
                )
            })?;
        let request = QueryRequest {
            operation: arguments.operation,
            file_path: arguments.file_path,
            position: arguments.position,
            workspace_root: cwd,
        };
        let result = self.lsp.query(request, &context.cancel).await?;
        Ok(serde_json::to_value(result).expect("a result is strings and numbers"))
    }
}

#[async_trait]
impl Tool for LspTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> Value {
        parameters_schema()
    }

    fn output(&self) -> Value {
        output_schema()
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), String> {
        Arguments::parse(arguments)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let arguments = Arguments::parse(&arguments)
            .map_err(|error| ToolError::new(code::INVALID_ARGS, error.to_string()))?;
        self.ask(arguments, &context)
            .await
            .map_err(|error| failure(&error, self.config.caps().characters))
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        // A stage behind the tool may have put another value in its place, which fits the schema
        // and still is none of ours: a line beyond 64 bits, say.
        let text = QueryResult::deserialize(value).map_or_else(
            |error| format!("the result cannot be shown: {error}"),
            |result| render(&result, self.config.caps()),
        );
        vec![ContentBlock::text(text)]
    }

    fn timeout_ms(&self) -> Option<u64> {
        Some(self.config.timeout_ms)
    }

    fn is_concurrency_safe(&self, _arguments: &Value) -> bool {
        true
    }

    fn present_call(&self, arguments: &Value) -> Option<Card> {
        present(arguments)
    }
}

/// The JSON Schema of the canonical value: the seam's union, whole (TOOL-4).
fn output_schema() -> Value {
    let place = json!({ "type": "integer", "minimum": 0 });
    let position = json!({
        "type": "object",
        "properties": { "line": place, "character": place },
        "required": ["line", "character"],
        "additionalProperties": false,
    });
    let range = json!({
        "type": "object",
        "properties": { "start": position, "end": position },
        "required": ["start", "end"],
        "additionalProperties": false,
    });
    let location = json!({
        "type": "object",
        "properties": { "uri": { "type": "string" }, "range": range },
        "required": ["uri", "range"],
        "additionalProperties": false,
    });
    let hover = json!({
        "type": ["object", "null"],
        "properties": { "contents": { "type": "string" }, "range": range },
        "required": ["contents"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "oneOf": [
            {
                "properties": {
                    "kind": { "const": "locations" },
                    "locations": { "type": "array", "items": location },
                    "resolvedWorkspaceUri": { "type": "string" },
                },
                "required": ["kind", "locations", "resolvedWorkspaceUri"],
                "additionalProperties": false,
            },
            {
                "properties": { "kind": { "const": "hover" }, "hover": hover },
                "required": ["kind", "hover"],
                "additionalProperties": false,
            },
        ],
    })
}
