//! The request's body, from what the model is to be asked. Pure.

use std::collections::{BTreeMap, BTreeSet};

use dsh_session::{ContentBlock, Message, ModelRequest, ToolCall};
use serde_json::{Map, Value, json};

use crate::config::{OpenAiConfig, ReasoningReplay};

/// What stands for a result that the conversation does not have: a server refuses a call without
/// one.
const NO_RESULT: &str = "There is no result: the call was not carried out.";

/// The JSON text of the request.
pub(crate) fn body(request: &ModelRequest, config: &OpenAiConfig) -> Vec<u8> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(config.model));
    body.insert("messages".to_owned(), messages(request, config.reasoning));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    body.insert("stream".to_owned(), json!(true));
    body.insert(
        "stream_options".to_owned(),
        json!({ "include_usage": true }),
    );
    if let Some(most) = config.max_tokens {
        body.insert("max_tokens".to_owned(), json!(most));
    }
    if let Some(temperature) = config.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    serde_json::to_vec(&body).expect("strings and JSON values are always written")
}

fn messages(request: &ModelRequest, reasoning: ReasoningReplay) -> Value {
    let mut out = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        out.push(json!({ "role": "system", "content": request.system }));
    }
    let mut rest = request.messages.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            Message::User { content } => {
                out.push(json!({ "role": "user", "content": text(content) }));
            }
            Message::Assistant {
                text,
                reasoning: thought,
                tool_calls,
            } => {
                let thought = thought.as_deref().filter(|_| match reasoning {
                    ReasoningReplay::WithToolCalls => !tool_calls.is_empty(),
                    ReasoningReplay::Never => false,
                    ReasoningReplay::Always => true,
                });
                out.push(assistant(text, thought, tool_calls));
                let results = rest
                    .iter()
                    .take_while(|message| matches!(message, Message::Tool { .. }))
                    .count();
                let (results, behind) = rest.split_at(results);
                rest = behind;
                answer(tool_calls, results, &mut out);
            }
            // A result whose call was compacted away: a server takes it from a user only.
            Message::Tool { content, .. } => out.push(orphan(content)),
        }
    }
    Value::Array(out)
}

fn assistant(text: &str, thought: Option<&str>, calls: &[ToolCall]) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let content = if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        json!(text)
    };
    message.insert("content".to_owned(), content);
    if let Some(thought) = thought {
        message.insert("reasoning_content".to_owned(), json!(thought));
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                // Arguments that were no JSON go back as a JSON string of them: servers parse this.
                "function": { "name": call.name, "arguments": call.arguments.to_string() },
            })
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    Value::Object(message)
}

/// The results of `calls`, one each, in the calls' order, as servers want them.
fn answer(calls: &[ToolCall], results: &[Message], out: &mut Vec<Value>) {
    let mut by_id: BTreeMap<&str, Vec<&Message>> = BTreeMap::new();
    for result in results.iter().rev() {
        if let Message::Tool { call_id, .. } = result {
            by_id.entry(call_id).or_default().push(result);
        }
    }
    for call in calls {
        let found = by_id.get_mut(call.id.as_str()).and_then(Vec::pop);
        let content = match found {
            Some(Message::Tool {
                is_error, content, ..
            }) => {
                let text = text(content);
                if *is_error {
                    format!("Error: {text}")
                } else {
                    text
                }
            }
            _ => NO_RESULT.to_owned(),
        };
        out.push(json!({ "role": "tool", "tool_call_id": call.id, "content": content }));
    }
    let known: BTreeSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    for result in results {
        if let Message::Tool {
            call_id, content, ..
        } = result
            && !known.contains(call_id.as_str())
        {
            out.push(orphan(content));
        }
    }
}

fn orphan(content: &[ContentBlock]) -> Value {
    json!({
        "role": "user",
        "content": format!("Result of an earlier tool call:\n\n{}", text(content)),
    })
}

/// Blocks as one text, which every server takes; a list of parts some refuse.
fn text(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content.iter().map(ContentBlock::as_text).collect();
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use dsh_session::ToolSchema;

    use super::*;

    fn call(id: &str, arguments: Value) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments,
        }
    }

    fn user(texts: &[&str]) -> Message {
        let content = texts.iter().map(|text| ContentBlock::text(*text)).collect();
        Message::User { content }
    }

    fn result(id: &str, is_error: bool, text: &str) -> Message {
        Message::Tool {
            call_id: id.to_owned(),
            is_error,
            content: vec![ContentBlock::text(text)],
        }
    }

    fn said(text: &str, reasoning: Option<&str>, calls: Vec<ToolCall>) -> Message {
        Message::Assistant {
            text: text.to_owned(),
            reasoning: reasoning.map(str::to_owned),
            tool_calls: calls,
        }
    }

    fn ask(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: String::new(),
            messages,
            tools: vec![],
        }
    }

    #[track_caller]
    fn check(request: &ModelRequest, config: &OpenAiConfig, expected: &Value) {
        let sent: Value = serde_json::from_slice(&body(request, config)).expect("it is JSON");
        assert_eq!(&sent, expected);
    }

    #[track_caller]
    fn check_messages(messages: Vec<Message>, expected: &Value) {
        let config = OpenAiConfig::new("http://h", "m");
        let sent: Value = serde_json::from_slice(&body(&ask(messages), &config)).expect("JSON");
        assert_eq!(&sent["messages"], expected);
    }

    /// RUN-5, RUN-12: the system prompt, the messages, and of the tools name, description and
    /// parameters.
    #[test]
    fn a_request_is_written_whole() {
        let request = ModelRequest {
            system: "Be brief.".to_owned(),
            messages: vec![
                user(&["one", "two"]),
                said("", None, vec![call("c1", json!({ "file_path": "a" }))]),
                result("c1", false, "text"),
                said("done", None, vec![]),
            ],
            tools: vec![ToolSchema {
                name: "read".to_owned(),
                description: "Reads.".to_owned(),
                parameters: json!({ "type": "object" }),
            }],
        };
        let mut config = OpenAiConfig::new("http://h", "m");
        config.max_tokens = Some(5);
        config.temperature = Some(0.5);
        check(
            &request,
            &config,
            &json!({
                "model": "m",
                "messages": [
                    { "role": "system", "content": "Be brief." },
                    { "role": "user", "content": "one\n\ntwo" },
                    { "role": "assistant", "content": null, "tool_calls": [{
                        "id": "c1", "type": "function",
                        "function": { "name": "read", "arguments": "{\"file_path\":\"a\"}" },
                    }] },
                    { "role": "tool", "tool_call_id": "c1", "content": "text" },
                    { "role": "assistant", "content": "done" },
                ],
                "tools": [{ "type": "function", "function": {
                    "name": "read", "description": "Reads.", "parameters": { "type": "object" },
                } }],
                "stream": true,
                "stream_options": { "include_usage": true },
                "max_tokens": 5,
                "temperature": 0.5,
            }),
        );
        let config = OpenAiConfig::new("http://h", "m");
        check(
            &ask(vec![]),
            &config,
            &json!({
                "model": "m", "messages": [], "stream": true,
                "stream_options": { "include_usage": true },
            }),
        );
    }

    #[test]
    fn reasoning_goes_back_as_configured() {
        let messages = || {
            vec![
                said("a", Some("thought 1"), vec![]),
                said("b", Some("thought 2"), vec![call("c", json!({}))]),
                result("c", false, "r"),
            ]
        };
        for (reasoning, expected) in [
            (ReasoningReplay::Never, [false, false]),
            (ReasoningReplay::WithToolCalls, [false, true]),
            (ReasoningReplay::Always, [true, true]),
        ] {
            let mut config = OpenAiConfig::new("http://h", "m");
            config.reasoning = reasoning;
            let sent: Value =
                serde_json::from_slice(&body(&ask(messages()), &config)).expect("JSON");
            let has = |at: usize| sent["messages"][at].get("reasoning_content").is_some();
            assert_eq!([has(0), has(1)], expected, "{reasoning:?}");
        }
    }

    #[test]
    fn a_failed_call_says_so() {
        check_messages(
            vec![
                said("", None, vec![call("c", json!({}))]),
                result("c", true, "no such file"),
            ],
            &json!([
                { "role": "assistant", "content": null, "tool_calls": [{
                    "id": "c", "type": "function",
                    "function": { "name": "read", "arguments": "{}" },
                }] },
                { "role": "tool", "tool_call_id": "c", "content": "Error: no such file" },
            ]),
        );
    }

    /// What a crash or a compaction left half is sent as something that servers accept.
    #[test]
    fn each_call_has_one_result_whatever_the_conversation_holds() {
        let calls = vec![
            call("a", json!("{broken")),
            call("a", json!(1)),
            call("b", json!({})),
        ];
        check_messages(
            vec![
                result("gone", false, "old"),
                said("x", None, calls),
                result("z", false, "stray"),
                result("a", false, "first"),
                result("a", false, "second"),
                user(&["next"]),
            ],
            &json!([
                { "role": "user", "content": "Result of an earlier tool call:\n\nold" },
                { "role": "assistant", "content": "x", "tool_calls": [
                    { "id": "a", "type": "function",
                      "function": { "name": "read", "arguments": "\"{broken\"" } },
                    { "id": "a", "type": "function",
                      "function": { "name": "read", "arguments": "1" } },
                    { "id": "b", "type": "function",
                      "function": { "name": "read", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "a", "content": "first" },
                { "role": "tool", "tool_call_id": "a", "content": "second" },
                { "role": "tool", "tool_call_id": "b", "content": NO_RESULT },
                { "role": "user", "content": "Result of an earlier tool call:\n\nstray" },
                { "role": "user", "content": "next" },
            ]),
        );
    }
}
