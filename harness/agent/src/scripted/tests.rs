use dsh_session::{ContentBlock, Message, ToolCall, ToolSchema};
use serde_json::json;

use super::*;

fn user(text: &str) -> Message {
    Message::User {
        content: vec![ContentBlock::text(text)],
    }
}

fn result(call_id: &str, is_error: bool, text: &str) -> Message {
    Message::Tool {
        call_id: call_id.to_owned(),
        is_error,
        content: vec![ContentBlock::text(text)],
    }
}

fn assistant(calls: &[&str]) -> Message {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: json!({}),
    };
    Message::Assistant {
        text: "looking".to_owned(),
        reasoning: None,
        tool_calls: calls.iter().map(call).collect(),
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: "Be brief.".to_owned(),
        messages,
        tools: vec![ToolSchema {
            name: "read".to_owned(),
            description: "Reads.".to_owned(),
            parameters: json!({"type": "object"}),
        }],
    }
}

async fn ask(
    model: &ScriptedModel,
    request: &ModelRequest,
) -> Result<AssistantMessage, ModelError> {
    model.respond(request, &mut |_| {}, &Cancel::new()).await
}

/// The mismatch of a request with the only reply's expectation.
async fn mismatch(expect: &str, request: &ModelRequest) -> Option<String> {
    let script = format!("replies: [{{ text: ok, expect: {expect} }}]");
    let model = ScriptedModel::from_text(&script).unwrap();
    match ask(&model, request).await {
        Ok(_) => {
            model.finish().unwrap();
            None
        }
        Err(error) => {
            assert_eq!(error.code, code::SCRIPT_MISMATCH);
            assert_eq!(error.retry, crate::Retry::Never);
            let told = ScriptError::Mismatch(error.message.clone());
            assert_eq!(model.finish(), Err(told));
            Some(error.message)
        }
    }
}

#[tokio::test]
async fn a_request_has_to_be_what_the_reply_expects() {
    let request = request(vec![
        user("hi"),
        assistant(&["a", "b"]),
        result("a", false, "1: one"),
        result("b", true, "no such file"),
        user("by the way"),
    ]);
    for fits in [
        "{}",
        "{ messages: 5 }",
        "{ tools: [read] }",
        "{ system_contains: [brief, Be] }",
        "{ contains: ['1: one', 'no such', way], excludes: [secret] }",
        "{ new: [{ role: tool }, { role: tool }, { role: user }] }",
        "{ new: [{ role: tool, call_id: a, is_error: false, text: '1: one' }, \
           { role: tool, call_id: b, is_error: true, contains: such }, \
           { role: user, contains: way, text: by the way }] }",
    ] {
        assert_eq!(mismatch(fits, &request).await, None, "{fits}");
    }
    for (expect, says) in [
        ("{ messages: 4 }", "4 messages; there are 5"),
        ("{ tools: [] }", r#"the tools []; they are ["read"]"#),
        (
            "{ system_contains: [long] }",
            r#"a system prompt with "long"; it is "Be brief.""#,
        ),
        // What the model itself said, and what was before that, is not new.
        (
            "{ contains: [hi] }",
            r#""hi" in the new messages; they are result of a "1: one", then error of b "no such file", then user "by the way""#,
        ),
        (
            "{ excludes: [looking] }",
            r#"no "looking" anywhere; message 2 is assistant "looking" calling read, read"#,
        ),
        (
            "{ new: [{ role: tool }] }",
            r#"1 new messages; there are 3: result of a "1: one", then error of b "no such file", then user "by the way""#,
        ),
        (
            "{ new: [{ role: tool }, { role: tool, is_error: false }, { role: user }] }",
            r#"as new message 2 {"role":"tool","is_error":false}; it is error of b "no such file""#,
        ),
        (
            "{ new: [{ role: user }, { role: tool }, { role: user }] }",
            r#"as new message 1 {"role":"user"}; it is result of a "1: one""#,
        ),
        (
            "{ new: [{ role: tool, call_id: b }, { role: tool }, { role: user }] }",
            r#"as new message 1 {"role":"tool","call_id":"b"}; it is result of a "1: one""#,
        ),
        (
            "{ new: [{ role: tool }, { role: tool }, { role: user, text: by }] }",
            r#"as new message 3 {"role":"user","text":"by"}; it is user "by the way""#,
        ),
    ] {
        let expected = format!("request 1 does not fit: reply 1 expects {says}");
        assert_eq!(mismatch(expect, &request).await, Some(expected), "{expect}");
    }
}

#[tokio::test]
async fn huge_messages_are_clipped_in_what_is_told() {
    let request = request(vec![user(&"ä".repeat(1_000_000))]);
    let told = mismatch("{ contains: [x] }", &request).await.unwrap();
    assert!(told.contains("(2000000 bytes in all)"));
    assert!(told.len() < 1_000, "{}", told.len());
}

#[tokio::test]
async fn too_many_and_too_few_requests_are_told() {
    let model = ScriptedModel::from_text("replies: [{ text: a }, { text: b }]").unwrap();
    let asked = request(vec![user("hi")]);
    assert_eq!(
        model.finish().unwrap_err().to_string(),
        "the script has 2 replies and 0 were asked for; reply 1 was never given"
    );
    assert_eq!(ask(&model, &asked).await.unwrap().text, "a");
    assert_eq!(
        model.finish().unwrap_err().to_string(),
        "the script has 2 replies and 1 were asked for; reply 2 was never given"
    );
    assert_eq!(ask(&model, &asked).await.unwrap().text, "b");
    model.finish().unwrap();
    let error = ask(&model, &asked).await.unwrap_err();
    assert_eq!(error.code, code::SCRIPT_EXHAUSTED);
    assert_eq!(
        error.message,
        "request 3 came, and the script has 2 replies; the last message of the request is user \
         \"hi\". Add a reply, or find out why the agent goes on"
    );
    assert_eq!(
        model.finish(),
        Err(ScriptError::Mismatch(error.message.clone()))
    );
    // The script has ended: the same is told again.
    assert_eq!(
        ask(&model, &asked).await.unwrap_err().message,
        error.message
    );
    assert_eq!(model.requests(), vec![asked; 4]);
}

#[tokio::test]
async fn after_a_request_that_does_not_fit_no_reply_is_given() {
    let script = "replies: [{ text: a, expect: { messages: 7 } }, { text: b }]";
    let model = ScriptedModel::from_text(script).unwrap();
    let asked = request(vec![user("hi")]);
    let first = ask(&model, &asked).await.unwrap_err();
    assert_eq!(ask(&model, &asked).await.unwrap_err(), first);
}

#[tokio::test]
async fn a_reply_is_what_the_script_says() {
    let script = r#"
replies:
  - reasoning: hm
    text: Let me look.
    tool_calls:
      - { name: read, arguments: { file_path: a.txt, limit: 3 } }
      - { id: mine, name: read, arguments_raw: '{"file_path": ' }
      - { name: read }
      - { name: read, arguments: no object }
    usage: { input_tokens: 7, output_tokens: 8 }
"#;
    let model = ScriptedModel::from_text(script).unwrap();
    let message = ask(&model, &request(vec![])).await.unwrap();
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({
            "text": "Let me look.",
            "reasoning": "hm",
            "toolCalls": [
                {"id": "call_1_1", "name": "read", "arguments": {"file_path": "a.txt", "limit": 3}},
                {"id": "mine", "name": "read", "arguments": "{\"file_path\": "},
                {"id": "call_1_3", "name": "read", "arguments": {}},
                {"id": "call_1_4", "name": "read", "arguments": "no object"},
            ],
            "usage": {"inputTokens": 7, "outputTokens": 8},
        })
    );
}

#[tokio::test]
async fn what_is_streamed_is_the_message_in_pieces() {
    let text = "ä€𝄞".repeat(100);
    let reply = ScriptedReply {
        text: Some(text.clone()),
        tool_calls: vec![ScriptedCall {
            name: "read".to_owned(),
            arguments_raw: Some(String::new()),
            ..ScriptedCall::default()
        }],
        ..ScriptedReply::default()
    };
    let model = ScriptedModel::from_replies(vec![reply]).unwrap();
    let (mut streamed, mut count, mut calls) = (String::new(), 0, Vec::new());
    let mut deltas = |delta| match delta {
        Delta::Text(piece) => {
            streamed.push_str(&piece);
            count += 1;
        }
        other => calls.push(other),
    };
    let asked = request(vec![]);
    model
        .respond(&asked, &mut deltas, &Cancel::new())
        .await
        .unwrap();
    assert_eq!(streamed, text);
    assert!(count >= text.len() / (PIECE + 4), "{count} pieces");
    assert_eq!(
        calls,
        [Delta::ToolCall {
            index: 0,
            id: Some("call_1_1".to_owned()),
            name: Some("read".to_owned()),
            arguments: String::new(),
        }]
    );
}

#[tokio::test]
async fn requests_are_kept_as_they_came() {
    let model = ScriptedModel::from_replies(vec![ScriptedReply::text("ok"); 5]).unwrap();
    let mut other = request(vec![user("hi"), assistant(&["a"])]);
    other.system = "Be long.".to_owned();
    other.tools.clear();
    let requests = [
        request(vec![user("hi")]),
        request(vec![user("hi"), assistant(&["a"]), result("a", false, "x")]),
        other,
        request(vec![]),
        request(vec![user("by"), user("hi")]),
    ];
    for request in &requests {
        ask(&model, request).await.unwrap();
    }
    assert_eq!(model.requests(), requests);
    assert_eq!(model.request_count(), 5);
}

#[test]
fn a_script_that_makes_no_sense_is_refused_in_words() {
    for (script, says) in [
        ("", "the script: unexpected end of input at line 1"),
        ("{}", "replies"),
        ("[]", ""),
        ("replies: 3", ""),
        ("replies: [{ txt: a }]", "unknown field `txt`"),
        ("replies: [{ text: a, expect: { mesages: 1 } }]", "mesages"),
        (
            "replies: [{ expect: { new: [{ role: assistant }] } }]",
            "assistant",
        ),
        (
            "replies: [{ cut: true, hang: true }]",
            "reply 1 of the script: it has more than one of",
        ),
        (
            "replies: [{ text: a }, { tool_calls: [{ name: t, arguments: {}, arguments_raw: '' }] }]",
            "reply 2 of the script: the call of \"t\" has both",
        ),
        ("replies: [{ text: &a [*a] }]", ""),
        (&format!("replies: {}", "[".repeat(100_000)), ""),
    ] {
        let error = ScriptedModel::from_text(script).unwrap_err().to_string();
        assert!(error.contains(says), "{script:.60}: {error}");
    }
}

#[test]
fn a_script_is_read_from_a_file_and_errors_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.yml");
    let problem = |path: &Path| ScriptedModel::from_file(path).unwrap_err().to_string();
    let missing = problem(&path);
    assert!(missing.contains("script.yml"), "{missing}");
    assert!(problem(folder.path()).contains("not a regular file"));
    std::fs::write(&path, "replies: [{ txt: a }]").unwrap();
    let error = problem(&path);
    assert!(
        error.contains("script.yml") && error.contains("txt"),
        "{error}"
    );
    std::fs::write(&path, b"replies: [{ text: \xff }]").unwrap();
    assert!(problem(&path).contains("UTF-8"), "{}", problem(&path));
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(MAX_SCRIPT_BYTES + 1).unwrap();
    assert!(problem(&path).contains("at most 64000000"));
    // JSON is YAML.
    std::fs::write(&path, r#"{"replies": [{"text": "a"}]}"#).unwrap();
    ScriptedModel::from_file(&path).unwrap();
}

/// What is no text is refused where a text is wanted, with its place and the way out.
#[test]
fn a_text_is_a_text() {
    for (script, place) in [
        ("replies:\n  - text: 5\n", "line 2, column 11"),
        ("replies:\n  - text: true\n", "line 2, column 11"),
        ("replies:\n  - text: [a]\n", "line 2, column 11"),
        ("replies:\n  - reasoning: 1.5\n", "line 2, column 16"),
        (
            "replies:\n  - tool_calls: [{ name: 7 }]\n",
            "line 2, column 26",
        ),
        (
            "replies:\n  - expect: { contains: [5] }\n",
            "line 2, column 26",
        ),
        (
            "replies:\n  - expect: { tools: [.inf] }\n",
            "line 2, column 23",
        ),
        (
            "replies:\n  - expect: { new: [{ role: user, text: 5 }] }\n",
            "line 2",
        ),
    ] {
        let Err(error) = ScriptedModel::from_text(script) else {
            panic!("{script} is no script")
        };
        let told = error.to_string();
        assert!(told.contains(place), "{script}: {told}");
        assert!(
            told.contains("quote") || told.contains("string"),
            "{script}: {told}"
        );
    }
    for script in [
        "replies:\n  - text: \"5\"\n",
        "replies:\n  - text: |\n      5\n",
        "replies:\n  - text: 5 apples\n",
        "replies:\n  - text:\n",
        "replies:\n  - tool_calls: [{ name: read, arguments: { limit: 5, file_path: a } }]\n",
    ] {
        assert!(ScriptedModel::from_text(script).is_ok(), "{script}");
    }
}
