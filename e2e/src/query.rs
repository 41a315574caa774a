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

/// How often the same answer has to come running to be taken for settled.
const RUNNING: u32 = 3;
/// And for how long: while it loads, a server gives the same early answer many times a second.
const HELD: Duration = Duration::from_secs(3);

/// A question for the tool.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The operation's name, as the tool takes it.
    pub operation: String,
    /// Where.
    pub at: At,
    /// The workspace, an absolute path: the session's directory.
    pub workspace: String,
    /// Ask again until the same answer came three times running over three seconds, or this has
    /// passed. An answer that says nothing is never taken for settled, since a server that is still
    /// loading says that too. Without it the first answer counts, which a server that has just been
    /// started may give too early.
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
    /// Whether the answer stayed the same; always without `settle`.
    pub settled: bool,
    /// Whether it says nothing: no location, no hover text.
    pub empty: bool,
}

/// What is known of the answers so far.
#[derive(Debug, Default)]
struct Settling {
    running: u32,
    since: Duration,
}

impl Settling {
    /// Takes the next answer, which came `at` after the first question: whether it is the `same` as
    /// the one before, and whether it is `empty`. True once it has settled.
    fn heard(&mut self, same: bool, empty: bool, at: Duration) -> bool {
        if same {
            self.running += 1;
        } else {
            *self = Self {
                running: 1,
                since: at,
            };
        }
        !empty && self.running >= RUNNING && at.saturating_sub(self.since) >= HELD
    }
}

/// Whether an answer of the tool says nothing.
fn says_nothing(result: &ToolResult) -> bool {
    let Some(value) = result.value.as_ref().filter(|_| !result.is_error) else {
        return false;
    };
    match value["kind"].as_str() {
        Some("locations") => value["locations"].as_array().is_some_and(Vec::is_empty),
        _ => value["hover"].is_null(),
    }
}

/// Asks the tool of a mounted runtime.
pub async fn query(runtime: &Runtime, asking: &Asking, cancel: &Cancel) -> Told {
    let started = Instant::now();
    let session = runtime.open_session(Some(&asking.workspace));
    let mut asked = 0;
    let mut settling = Settling::default();
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
        let empty = says_nothing(&result);
        let settled = settling.heard(same, empty, started.elapsed()) || asking.settle.is_none();
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
                empty,
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

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_harness::tools::ContentBlock;
    use serde_json::Value;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_early_answer_that_comes_often_has_not_settled() {
        let mut settling = Settling::default();
        assert!(!settling.heard(false, false, ms(0)));
        for at in [20, 60, 140, 300, 620, 1_120, 2_999] {
            assert!(!settling.heard(true, false, ms(at)), "{at}");
        }
        assert!(!settling.heard(false, false, ms(3_100)));
        assert!(!settling.heard(true, false, ms(6_100)), "two are too few");
        assert!(settling.heard(true, false, ms(6_200)));
    }

    #[test]
    fn nothing_never_settles() {
        let mut settling = Settling::default();
        assert!(!settling.heard(false, true, ms(0)));
        for at in 1..100 {
            assert!(!settling.heard(true, true, ms(at * 500)));
        }
    }

    #[test]
    fn only_an_answer_without_places_or_text_says_nothing() {
        let result = |is_error, value: Value| ToolResult {
            call_id: String::new(),
            name: "lsp".to_owned(),
            is_error,
            code: None,
            value: (!is_error).then_some(value),
            content: vec![ContentBlock::text("text")],
            contexts: Vec::new(),
        };
        let place = json!({"uri": "file:///a", "range": {}});
        for (nothing, value) in [
            (true, json!({"kind": "locations", "locations": []})),
            (false, json!({"kind": "locations", "locations": [place]})),
            (true, json!({"kind": "hover", "hover": null})),
            (false, json!({"kind": "hover", "hover": {"contents": "x"}})),
        ] {
            assert_eq!(
                says_nothing(&result(false, value.clone())),
                nothing,
                "{value}"
            );
        }
        assert!(!says_nothing(&result(true, Value::Null)));
    }
}
