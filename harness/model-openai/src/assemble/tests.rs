//! Answers of servers that number, split and end them each in its own way.

use dsh_agent::Retry;
use serde_json::json;

use super::*;
use crate::config::OpenAiConfig;

fn endpoint() -> Endpoint {
    let mut config = OpenAiConfig::new("http://host", "m");
    config.max_response_bytes = 1024;
    Endpoint::new(config, |_| None).expect("it is fine")
}

fn assemble(events: &[Value]) -> (Result<AssistantMessage, ModelError>, Vec<Delta>) {
    let endpoint = endpoint();
    let mut assembler = Assembler::new(&endpoint);
    let mut deltas = Vec::new();
    let mut tell = |delta| deltas.push(delta);
    for event in events {
        let data = match event {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match assembler.event(&data, &mut tell) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return (Err(error), deltas),
        }
    }
    (assembler.finish(9), deltas)
}

fn piece(delta: &Value) -> Value {
    json!({ "id": "r1", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn calls(pieces: &[Value]) -> Vec<(String, String, Value)> {
    let mut events: Vec<Value> = pieces
        .iter()
        .map(|call| piece(&json!({ "tool_calls": [call] })))
        .collect();
    events.push(end("tool_calls"));
    let message = assemble(&events).0.expect("it is whole");
    let told = message.tool_calls.into_iter();
    told.map(|call| (call.id, call.name, call.arguments))
        .collect()
}

#[test]
fn text_reasoning_and_usage_are_put_together() {
    let (message, deltas) = assemble(&[
        piece(&json!({ "role": "assistant", "content": "", "reasoning_content": null })),
        piece(&json!({ "content": null, "reasoning_content": "Let me " })),
        piece(&json!({ "reasoning_content": "think." })),
        piece(&json!({ "content": "Hel" })),
        piece(&json!({ "content": "lo" })),
        end("stop"),
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3,
            "total_tokens": 10, "prompt_cache_hit_tokens": 2 } }),
        json!("[DONE]"),
        json!("not looked at"),
    ]);
    assert_eq!(
        message.unwrap(),
        AssistantMessage {
            text: "Hello".to_owned(),
            reasoning: Some("Let me think.".to_owned()),
            tool_calls: vec![],
            usage: Some(Usage {
                input_tokens: 7,
                output_tokens: 3
            }),
        }
    );
    assert_eq!(
        deltas,
        [
            Delta::Reasoning("Let me ".to_owned()),
            Delta::Reasoning("think.".to_owned()),
            Delta::Text("Hel".to_owned()),
            Delta::Text("lo".to_owned()),
        ]
    );
}

#[test]
fn calls_are_put_together_from_fragments_that_alternate() {
    let fragment = |index: u64, id: Option<&str>, name: Option<&str>, arguments: &str| {
        json!({ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": arguments } })
    };
    let found = calls(&[
        fragment(1, Some("b"), Some("lsp"), ""),
        fragment(0, Some("a"), Some("read"), "{\"p\":"),
        fragment(1, None, None, "{}"),
        fragment(0, None, None, "1}"),
    ]);
    let expected = [
        ("b".to_owned(), "lsp".to_owned(), json!({})),
        ("a".to_owned(), "read".to_owned(), json!({ "p": 1 })),
    ];
    assert_eq!(found, expected);
}

#[test]
fn calls_are_told_apart_however_a_server_numbers_them() {
    let named = |index: Option<u64>, id: Option<&str>, name: &str| json!({ "index": index, "id": id, "function": { "name": name, "arguments": "{}" } });
    let ids_and_names = |found: Vec<(String, String, Value)>| -> Vec<(String, String)> {
        found.into_iter().map(|(id, name, _)| (id, name)).collect()
    };
    let two = |a: &str, b: &str| {
        vec![
            (a.to_owned(), "x".to_owned()),
            (b.to_owned(), "y".to_owned()),
        ]
    };
    let all_zero = [
        named(Some(0), Some("a"), "x"),
        named(Some(0), Some("b"), "y"),
    ];
    assert_eq!(ids_and_names(calls(&all_zero)), two("a", "b"));
    let no_index = [named(None, Some("a"), "x"), named(None, Some("b"), "y")];
    assert_eq!(ids_and_names(calls(&no_index)), two("a", "b"));
    let nothing = [named(None, None, "x"), named(None, None, "y")];
    assert_eq!(
        ids_and_names(calls(&nothing)),
        two("call-r1-0", "call-r1-1")
    );
    let huge = [
        named(Some(u64::MAX), Some("a"), "x"),
        named(Some(3), Some("b"), "y"),
    ];
    assert_eq!(ids_and_names(calls(&huge)), two("a", "b"));
}

#[test]
fn id_and_name_that_are_repeated_with_each_fragment_count_once() {
    let fragment = |arguments: &str| json!({ "index": 0, "id": "a", "function": { "name": "read", "arguments": arguments } });
    let found = calls(&[fragment("{\"a\""), fragment(":1}")]);
    let expected = ("a".to_owned(), "read".to_owned(), json!({ "a": 1 }));
    assert_eq!(found, [expected]);
}

#[test]
fn arguments_may_be_an_object_or_no_json_or_absent() {
    let with = |arguments: Value| {
        let call = json!({ "index": 0, "id": "a",
            "function": { "name": "read", "arguments": arguments } });
        calls(&[call])[0].2.clone()
    };
    assert_eq!(with(json!({ "a": 1 })), json!({ "a": 1 }));
    assert_eq!(with(json!("{\"a\":")), json!("{\"a\":"));
    assert_eq!(with(json!(null)), json!({}));
    assert_eq!(with(json!("")), json!({}));
}

#[track_caller]
fn check_error(events: &[Value], code: &str, retry: Retry) {
    let error = assemble(events).0.expect_err("it cannot be whole");
    assert_eq!((error.code.as_str(), error.retry), (code, retry), "{error}");
    assert!(error.message.contains("host"), "{error}");
}

#[test]
fn an_end_counts_only_if_it_is_told() {
    let text = piece(&json!({ "content": "a" }));
    let again = Retry::After(None);
    check_error(&[], loop_code::MODEL_STREAM_CUT, again);
    check_error(
        std::slice::from_ref(&text),
        loop_code::MODEL_STREAM_CUT,
        again,
    );
    for ended in [end("stop"), end("eos"), json!("[DONE]")] {
        assert_eq!(assemble(&[text.clone(), ended]).0.unwrap().text, "a");
    }
}

#[test]
fn an_answer_that_is_not_whole_is_an_error() {
    let text = piece(&json!({ "content": "a" }));
    let ends = |reason: &str| [text.clone(), end(reason)];
    check_error(&ends("length"), code::MODEL_OUTPUT_LIMIT, Retry::Never);
    check_error(&ends("content_filter"), code::MODEL_FILTERED, Retry::Never);
    check_error(
        &ends("insufficient_system_resource"),
        code::MODEL_SERVER,
        Retry::After(None),
    );
}

#[test]
fn pieces_against_the_protocol_are_told() {
    let again = Retry::After(None);
    for broken in [
        json!("{\"choices\":"),
        json!("hello"),
        json!([1]),
        json!({ "choices": "x" }),
        json!({ "choices": [{ "delta": { "content": 5 } }] }),
    ] {
        check_error(&[broken], code::MODEL_BAD_RESPONSE, again);
    }
    let nameless = piece(&json!({ "tool_calls": [{ "index": 0, "id": "a" }] }));
    check_error(
        &[nameless, end("tool_calls")],
        code::MODEL_BAD_RESPONSE,
        again,
    );
    let many: Vec<Value> = (0..=MAX_CALLS)
        .map(|index| piece(&json!({ "tool_calls": [{ "index": index }] })))
        .collect();
    check_error(&many, code::MODEL_BAD_RESPONSE, again);
    check_error(
        &[json!({ "error": { "message": "busy" } })],
        code::MODEL_SERVER,
        again,
    );
    let deep = format!("{{\"error\":{}", "[".repeat(100_000));
    check_error(&[json!(deep)], code::MODEL_BAD_RESPONSE, again);
}

#[test]
fn an_answer_has_a_size() {
    let big = "x".repeat(600);
    let events = [
        piece(&json!({ "content": big })),
        piece(&json!({ "reasoning_content": big })),
    ];
    check_error(&events, loop_code::MODEL_RESPONSE_TOO_LARGE, Retry::Never);
}

#[test]
fn other_answers_than_the_first_are_not_part_of_it() {
    let other = json!({ "choices": [{ "index": 1, "delta": { "content": "no" } }] });
    let text = piece(&json!({ "content": "a" }));
    assert_eq!(assemble(&[text, other, end("stop")]).0.unwrap().text, "a");
}

fn whole(body: &str) -> Result<AssistantMessage, ModelError> {
    let endpoint = endpoint();
    let mut assembler = Assembler::new(&endpoint);
    assembler.object(body.as_bytes(), &mut |_| {})?;
    assembler.finish(9)
}

#[test]
fn an_answer_in_one_piece_is_taken_too() {
    let body = json!({
        "id": "r1",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "a", "reasoning_content": "b",
            "tool_calls": [
                { "id": "c", "type": "function",
                  "function": { "name": "read", "arguments": "{}" } },
                { "id": "d", "type": "function",
                  "function": { "name": "lsp", "arguments": "{}" } },
            ],
        } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2 },
    });
    let message = whole(&body.to_string()).unwrap();
    assert_eq!(message.text, "a");
    assert_eq!(message.reasoning.as_deref(), Some("b"));
    let ids: Vec<_> = message.tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids, ["c", "d"]);
    for (body, expected) in [
        ("{}", code::MODEL_BAD_RESPONSE),
        ("[1]", code::MODEL_BAD_RESPONSE),
        ("{", code::MODEL_BAD_RESPONSE),
        (r#"{"choices":[]}"#, code::MODEL_BAD_RESPONSE),
        (r#"{"error":"no"}"#, code::MODEL_SERVER),
    ] {
        assert_eq!(whole(body).unwrap_err().code, expected, "{body}");
    }
}
