//! The `headless` profile: one prompt, to its end.

use dsh_harness::agent::Agent;
use dsh_harness::kernel::Cancel;
use dsh_harness::session::{Event, EventBody, SessionHeader};
use dsh_harness::tools::{Card, ToolCall};
use serde_json::{Value, json};

use crate::turn::Answered;
use crate::{Host, Profile};

/// The longest line about progress, in characters.
const WIDTH: usize = 76;

/// Runs one prompt to its end and closes the agent; what is logged on the way is told to
/// `listener`, in its order. When this returns, the turn is closed in the log, also after a
/// cancellation (RUN-14), and no step of the agent follows.
pub async fn headless(
    agent: &Agent,
    prompt: &str,
    listener: impl Fn(&Event) + Send + Sync + 'static,
    cancel: &Cancel,
) -> Answered {
    let told = agent.session().subscribe(listener);
    let answered = agent.prompt(prompt, cancel).await.into();
    agent.close().await;
    drop(told);
    answered
}

/// What `--json` prints first: the session, and who answers with which tools.
pub fn opening(host: &Host, header: &SessionHeader) -> String {
    let tools: Vec<String> = host
        .runtime()
        .tools()
        .list()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    line(&json!({
        "type": "session",
        "session": header,
        "profile": Profile::as_str(host.profile()),
        "model": host.model_name(),
        "tools": tools,
    }))
}

/// An event as `--json` prints it: as the log has it.
pub fn event_line(event: &Event) -> String {
    line(&serde_json::to_value(event).expect("events are written to logs the same way"))
}

/// What `--json` prints last: how it ended, and the answer.
pub fn ending(answered: &Answered) -> String {
    let Answered { outcome, answer } = answered;
    line(&json!({"type": "end", "outcome": outcome, "answer": answer}))
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// What a person is told of an event while the prompt runs, if anything: one line.
pub fn progress(event: &Event, card: impl Fn(&ToolCall) -> Option<Card>) -> Option<String> {
    match &event.body {
        EventBody::AssistantMessage(message)
            if !message.tool_calls.is_empty() && !message.text.trim().is_empty() =>
        {
            Some(clip(&message.text))
        }
        EventBody::ToolCall { call, parent } => {
            let shown = match card(call) {
                Some(Card::Generic { title, .. }) => title,
                None => call.arguments.to_string(),
            };
            let indent = if parent.is_some() { "    " } else { "  " };
            Some(format!(
                "{indent}{}",
                clip(&format!("{}: {shown}", call.name))
            ))
        }
        EventBody::ToolResult(result) if result.is_error => {
            let code = result.code.as_deref().unwrap_or("failed");
            let text: String = result
                .content
                .iter()
                .map(dsh_harness::tools::ContentBlock::as_text)
                .collect();
            Some(format!("  {}", clip(&format!("{code}: {text}"))))
        }
        _ => None,
    }
}

/// A text on one line of bounded length, without characters that could move a cursor.
fn clip(text: &str) -> String {
    let flat: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    match flat.char_indices().nth(WIDTH) {
        None => flat,
        Some((end, _)) => format!("{}…", &flat[..end]),
    }
}

#[cfg(test)]
mod tests {
    use dsh_harness::session::{AssistantMessage, LoggedResult};
    use dsh_harness::tools::ContentBlock;

    use super::*;

    fn event(body: EventBody) -> Event {
        Event {
            seq: 7,
            at_ms: 1,
            body,
        }
    }

    fn call(parent: Option<&str>) -> Event {
        event(EventBody::ToolCall {
            call: ToolCall {
                id: "c".to_owned(),
                name: "read".to_owned(),
                arguments: json!({"file_path": "a"}),
            },
            parent: parent.map(str::to_owned),
        })
    }

    #[test]
    fn progress_is_one_line_without_control_characters() {
        let title = |title: &str| {
            let title = title.to_owned();
            move |_: &ToolCall| {
                Some(Card::Generic {
                    kind: "read".to_owned(),
                    title: title.clone(),
                    locations: Vec::new(),
                })
            }
        };
        let told = progress(&call(None), title("a\n\u{1b}[2Jb")).unwrap();
        assert_eq!(told, "  read: a [2Jb");
        let told = progress(&call(Some("outer")), title(&"é".repeat(200))).unwrap();
        assert_eq!(told.chars().count(), WIDTH + 4 + 1);
        let told = progress(&call(None), |_| None).unwrap();
        assert_eq!(told, r#"  read: {"file_path":"a"}"#);
        let failed = event(EventBody::ToolResult(LoggedResult {
            call_id: "c".to_owned(),
            name: "read".to_owned(),
            is_error: true,
            code: Some("FS_NOT_FOUND".to_owned()),
            value: None,
            content: vec![ContentBlock::text("no such\nfile")],
            parent: None,
        }));
        assert_eq!(
            progress(&failed, |_| None).unwrap(),
            "  FS_NOT_FOUND: no such file"
        );
    }

    /// The answer itself is stdout's.
    #[test]
    fn the_last_message_is_no_progress() {
        let message = event(EventBody::AssistantMessage(AssistantMessage {
            text: "the answer".to_owned(),
            ..AssistantMessage::default()
        }));
        assert_eq!(progress(&message, |_| None), None);
    }

    #[test]
    fn lines_of_json_are_objects_with_a_type() {
        let line: Value = serde_json::from_str(&event_line(&call(None))).unwrap();
        assert_eq!(
            (&line["seq"], &line["type"]),
            (&json!(7), &json!("tool/call"))
        );
        let answered = Answered {
            outcome: dsh_harness::session::Ending::Completed,
            answer: "a\nb".to_owned(),
        };
        let text = ending(&answered);
        assert_eq!(text.lines().count(), 1);
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"type": "end", "outcome": {"status": "completed"}, "answer": "a\nb"})
        );
    }
}
