//! The tool: a script in, its value and its output out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc as replies;

use async_trait::async_trait;
use dsh_tools::{Card, ContentBlock, ExecContext, Tool, ToolError, ToolRegistry, code as tools};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::code;
use crate::config::{CodeModeConfig, size};
use crate::custody::Custody;
use crate::engine::{self, Ended, Job, Report, Returned};
use crate::names::mount;
use crate::prompt::{DESCRIPTION, NAME};
use crate::schedule::{Lost, Schedule, Stop};

/// The `run_code` tool over the tools of a registry.
pub(crate) struct RunCode {
    registry: ToolRegistry,
    config: CodeModeConfig,
    custody: Custody,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    code: String,
}

/// The canonical value.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Output {
    /// What the script returned; absent if nothing, or too much.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    result: Option<Value>,
    /// The beginning of its JSON text, where that is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result_begins: Option<String>,
    /// How long that text is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result_bytes: Option<u64>,
    console: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    console_dropped_bytes: Option<u64>,
    calls: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_awaited: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_awaited_failure: Option<String>,
}

/// A value that is there and null is not one that is absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl RunCode {
    /// The tool. The ranges of `config` are the plugin's to check.
    pub(crate) fn new(registry: ToolRegistry, config: CodeModeConfig, custody: Custody) -> Self {
        Self {
            registry,
            config,
            custody,
        }
    }

    async fn run(&self, code: String, context: &ExecContext) -> Result<Report, ToolError> {
        let (calls, requests) = mpsc::unbounded_channel();
        let (reply, replies) = replies::channel();
        let (finish, report) = oneshot::channel();
        let flag = Arc::new(AtomicBool::new(false));
        let deadline = Instant::now() + self.config.wall();
        let job = Job {
            code,
            mounted: mount(&self.registry.list(), NAME),
            config: self.config,
            deadline: deadline.into_std(),
            stop: Arc::clone(&flag),
            calls,
            replies,
        };
        let stop = Stop {
            flag: Arc::clone(&flag),
            replies: reply,
        };
        let stack = size(self.config.stack_bytes);
        self.custody
            .start(stack, flag, move || {
                // Nobody waits for it if the call was dropped.
                let _ = finish.send(engine::run(job));
            })
            .map_err(|reason| ToolError::new(code::SCRIPT_NOT_STARTED, reason))?;
        let own = context.clone().with_cancel(context.cancel.child());
        let schedule = Schedule {
            registry: &self.registry,
            context: &own,
            requests,
            report,
            stop,
            deadline,
        };
        let outcome = schedule.run().await;
        self.custody.sweep();
        context.cancel.check().map_err(ToolError::from)?;
        outcome.map_err(|lost| match lost {
            Lost::Panicked => ToolError::new(
                tools::TOOL_PANICKED,
                "the interpreter panicked; this is a bug of the run_code tool",
            ),
            Lost::Stuck => ToolError::new(
                code::SCRIPT_TIMEOUT,
                format!(
                    "the script was still in one built-in function after {} ms, and its thread goes on \
                     until that returns; work on smaller values",
                    self.config.wall_ms
                ),
            ),
        })
    }

    /// The value, or the failure with what was printed before it.
    fn output(&self, report: Report) -> Result<Output, ToolError> {
        let dropped = report.console_dropped;
        let failed = |code: &str, message: String| {
            let printed = console(&report.console, dropped);
            let printed = printed.map_or_else(String::new, |text| format!("\n\n{text}"));
            Err(ToolError::new(code, format!("{message}{printed}")))
        };
        let config = &self.config;
        let returned = match report.ended {
            Ended::Returned(returned) => returned,
            Ended::Syntax(text) => {
                return failed(
                    code::SCRIPT_SYNTAX,
                    format!("the code cannot be run: {text}"),
                );
            }
            Ended::Threw(text) => {
                return failed(code::SCRIPT_THREW, format!("the script threw {text}"));
            }
            Ended::OutOfMemory => {
                return failed(
                    code::SCRIPT_OUT_OF_MEMORY,
                    format!(
                        "the script needs more than {} bytes of memory; keep less at a time",
                        config.memory_bytes
                    ),
                );
            }
            Ended::ThrewNull => {
                return failed(
                    code::SCRIPT_OUT_OF_MEMORY,
                    format!(
                        "the script threw null: it did so itself, or it needs more than {} bytes of \
                         memory and there was none left for an error; keep less at a time",
                        config.memory_bytes
                    ),
                );
            }
            Ended::StackOverflow(text) => {
                return failed(
                    code::SCRIPT_STACK_OVERFLOW,
                    format!(
                        "the script needs more than {} bytes of stack; it recurses too deep: {text}",
                        config.stack_bytes
                    ),
                );
            }
            Ended::NoValue(text) => {
                return failed(
                    code::SCRIPT_RESULT,
                    format!("the script returned what is no JSON value: {text}. Return plain data"),
                );
            }
            Ended::Deadlock => {
                return failed(
                    code::SCRIPT_DEADLOCK,
                    "the script waits for a promise that nothing will settle: no call is under way, \
                     and there are no timers"
                        .to_owned(),
                );
            }
            Ended::TimedOut => {
                return failed(
                    code::SCRIPT_TIMEOUT,
                    format!(
                        "the script did not end within {} ms; do less in one script",
                        config.wall_ms
                    ),
                );
            }
            Ended::Stopped => {
                return failed(tools::TOOL_CANCELLED, "the script was stopped".to_owned());
            }
        };
        let (result, begins, bytes) = match returned {
            Returned::Nothing => (None, None, None),
            Returned::Value(value) => (Some(value), None, None),
            Returned::Cut { text, bytes } => (None, Some(text), Some(bytes as u64)),
        };
        Ok(Output {
            result,
            result_begins: begins,
            result_bytes: bytes,
            console: report.console,
            console_dropped_bytes: Some(dropped).filter(|dropped| *dropped > 0),
            calls: u64::from(report.calls),
            not_awaited: Some(u64::from(report.unawaited)).filter(|count| *count > 0),
            not_awaited_failure: report
                .unawaited_failure
                .map(|failure| format!("[{}] {}", failure.code, failure.message)),
        })
    }
}

/// What was printed, for the model.
fn console(text: &str, dropped: u64) -> Option<String> {
    if text.is_empty() && dropped == 0 {
        return None;
    }
    let more = match dropped {
        0 => String::new(),
        dropped => format!("\n(console cut: {dropped} more bytes are not shown; print less)"),
    };
    Some(format!("Console:\n{text}{more}"))
}

#[async_trait]
impl Tool for RunCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        DESCRIPTION
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "code": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The body of an async JavaScript function. Use await and return.",
                },
            },
            "required": ["code"],
            "additionalProperties": false,
        })
    }

    fn output(&self) -> Value {
        let count = json!({ "type": "integer", "minimum": 0 });
        let text = json!({ "type": "string" });
        json!({
            "type": "object",
            "properties": {
                "result": {},
                "resultBegins": text,
                "resultBytes": count,
                "console": text,
                "consoleDroppedBytes": count,
                "calls": count,
                "notAwaited": count,
                "notAwaitedFailure": text,
            },
            "required": ["console", "calls"],
            "additionalProperties": false,
        })
    }

    fn check_arguments(&self, arguments: &Value) -> Result<(), String> {
        let code = arguments
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let most = size(self.config.max_code_bytes);
        if code.len() > most {
            return Err(format!(
                "the code has {} bytes, and at most {most} are run; split it",
                code.len()
            ));
        }
        Ok(())
    }

    async fn execute(&self, arguments: Value, context: ExecContext) -> Result<Value, ToolError> {
        let arguments: Arguments = serde_json::from_value(arguments)
            .map_err(|error| ToolError::new(tools::INVALID_ARGS, error.to_string()))?;
        let report = self.run(arguments.code, &context).await?;
        let output = self.output(report)?;
        Ok(serde_json::to_value(output).expect("it holds JSON, strings and numbers"))
    }

    fn render(&self, _arguments: &Value, value: &Value) -> Vec<ContentBlock> {
        let output = match Output::deserialize(value) {
            Ok(output) => output,
            // A stage behind the tool may have put another value in its place.
            Err(error) => {
                return vec![ContentBlock::text(format!(
                    "the result cannot be shown: {error}"
                ))];
            }
        };
        let mut parts = vec![match (&output.result, &output.result_begins) {
            (Some(Value::String(text)), _) => format!("Result:\n{text}"),
            (Some(value), _) => format!("Result:\n{value}"),
            (None, Some(text)) => format!(
                "Result:\n{text}\n(result cut: these are the first {} of {} bytes of its JSON; return \
                 less)",
                text.len(),
                output.result_bytes.unwrap_or_default()
            ),
            (None, None) => "The script returned nothing.".to_owned(),
        }];
        parts.extend(console(
            &output.console,
            output.console_dropped_bytes.unwrap_or(0),
        ));
        if let Some(count) = output.not_awaited {
            let mut note = format!(
                "({count} of {} calls were not awaited; they were waited for after the script returned)",
                output.calls
            );
            if let Some(failure) = &output.not_awaited_failure {
                note.push_str("\nOne of them failed: ");
                note.push_str(failure);
            }
            parts.push(note);
        }
        vec![ContentBlock::text(parts.join("\n\n"))]
    }

    fn present_call(&self, _arguments: &Value) -> Option<Card> {
        Some(Card::Generic {
            kind: "execute".to_owned(),
            title: "Run a script".to_owned(),
            locations: Vec::new(),
        })
    }
}
