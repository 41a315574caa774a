//! One question through the model-facing tool, answered as the model would see it.

use std::time::Duration;

use dsh_harness::Runtime;
use dsh_harness::kernel::Cancel;
use dsh_harness::lsp;
use dsh_harness::tools::{ToolCall, ToolResult};
use serde_json::json;
use tokio::time::Instant;

use crate::place::At;
use crate::readiness::Pauses;

/// How often the same text has to come running to be taken for settled.
const RUNNING: u32 = 3;

/// A question for the tool.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The operation's name, as the tool takes it.
    pub operation: String,
    /// Where.
    pub at: At,
    /// The workspace, an absolute path: the session's directory.
    pub workspace: String,
    /// Ask again until the same text came three times running, or this has passed. Without it the
    /// first answer counts, which a server that has just been started may give too early.
    pub settle: Option<Duration>,
}

/// What came.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The text the model reads.
    pub text: String,
    /// Whether it is a failure.
    pub is_error: bool,
    /// The stable code of the failure.
    pub code: Option<String>,
    /// How often was asked.
    pub asked: u32,
    /// Whether the same text came three times running; always without `settle`.
    pub settled: bool,
}

/// Asks the tool of a mounted runtime.
pub async fn query(runtime: &Runtime, asking: &Asking, cancel: &Cancel) -> Told {
    let started = Instant::now();
    let session = runtime.open_session(Some(&asking.workspace));
    let (mut asked, mut running) = (0, 0);
    let mut last: Option<ToolResult> = None;
    let mut pauses = Pauses::default();
    loop {
        asked += 1;
        let call = ToolCall {
            id: format!("call-{asked}"),
            name: "lsp".to_owned(),
            arguments: json!({
                "operation": asking.operation,
                "file_path": asking.at.file,
                "line": asking.at.position.line + 1,
                "character": asking.at.position.character + 1,
            }),
        };
        let result = runtime
            .tools()
            .call(call, session.clone(), cancel.clone())
            .await;
        let same = last
            .as_ref()
            .is_some_and(|last| last.content == result.content && last.is_error == result.is_error);
        running = if same { running + 1 } else { 1 };
        let settled = asking.settle.is_none() || running >= RUNNING;
        let over = asking
            .settle
            .is_some_and(|limit| started.elapsed() >= limit);
        if settled || over || cancel.is_cancelled() {
            return Told {
                text: result.text(),
                is_error: result.is_error,
                code: result.code,
                asked,
                settled,
            };
        }
        last = Some(result);
        let left = asking
            .settle
            .unwrap_or_default()
            .saturating_sub(started.elapsed());
        pause(pauses.next().min(left), cancel).await;
    }
}

async fn pause(pause: Duration, cancel: &Cancel) {
    // Ends early when the caller gives up; the question behind it then tells so.
    let () = lsp::deadline(pause, cancel, |over| async move {
        over.cancelled().await;
    })
    .await;
}
