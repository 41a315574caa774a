//! A tool that does what it was told, without doing anything.

use async_trait::async_trait;
use dsh_harness::session::ContentBlock;
use dsh_harness::tools::{ExecContext, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stages::panics;

/// `register_tool`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScriptedTool {
    pub(super) name: String,
    #[serde(default = "described")]
    description: String,
    #[serde(default = "object")]
    parameters: Value,
    #[serde(default = "object")]
    output: Value,
    /// What it gives; left out, `{text}` with its arguments as JSON.
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    error: Option<Failure>,
    #[serde(default)]
    panics: bool,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    is_concurrency_safe: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    code: String,
    message: String,
}

fn described() -> String {
    "A tool of the case.".to_owned()
}

fn object() -> Value {
    json!({"type": "object"})
}

#[async_trait]
impl Tool for ScriptedTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    fn output(&self) -> Value {
        self.output.clone()
    }

    async fn execute(&self, arguments: Value, _context: ExecContext) -> Result<Value, ToolError> {
        if self.panics {
            panics(format!("{} panics, since the case has it so", self.name));
        }
        if let Some(Failure { code, message }) = &self.error {
            return Err(ToolError::new(code, message));
        }
        Ok(match &self.value {
            Some(value) => value.clone(),
            None => json!({"text": arguments.to_string()}),
        })
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        let text = value["text"].as_str().map(str::to_owned);
        vec![ContentBlock::text(
            text.unwrap_or_else(|| value.to_string()),
        )]
    }

    fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    fn is_concurrency_safe(&self, _arguments: &Value) -> bool {
        self.is_concurrency_safe
    }
}
