//! Sessions made up on the spot.

mod disk;
mod log;
mod order;
mod property;
mod session;
mod store;

use serde_json::{Map, Value, json};

use crate::{
    AssistantMessage, ContentBlock, Ending, Event, EventBody, Log, LoggedResult, MessageSource,
    SessionHeader, ToolCall, ToolSchema,
};

fn header() -> SessionHeader {
    SessionHeader {
        id: "s1".to_owned(),
        cwd: Some("/w".to_owned()),
    }
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::text(text)]
}

fn turn_start(turn: u64) -> EventBody {
    EventBody::TurnStart { turn }
}

fn turn_end(turn: u64) -> EventBody {
    EventBody::TurnEnd {
        turn,
        outcome: Ending::Completed,
    }
}

fn step_start(turn: u64, step: u64) -> EventBody {
    EventBody::StepStart { turn, step }
}

fn step_end(turn: u64, step: u64) -> EventBody {
    EventBody::StepEnd {
        turn,
        step,
        outcome: Ending::Completed,
    }
}

fn user(said: &str) -> EventBody {
    EventBody::UserMessage {
        source: MessageSource::prompt(),
        content: text(said),
    }
}

fn tool_call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: json!({"file_path": "a", "ratio": 0.1}),
    }
}

fn answer(said: &str, calls: &[&str]) -> EventBody {
    EventBody::AssistantMessage(AssistantMessage {
        text: said.to_owned(),
        tool_calls: calls.iter().map(|id| tool_call(id)).collect(),
        ..AssistantMessage::default()
    })
}

fn call(id: &str, parent: Option<&str>) -> EventBody {
    EventBody::ToolCall {
        call: tool_call(id),
        parent: parent.map(str::to_owned),
    }
}

fn result(id: &str, parent: Option<&str>) -> EventBody {
    EventBody::ToolResult(LoggedResult {
        call_id: id.to_owned(),
        name: "read".to_owned(),
        is_error: false,
        code: None,
        value: Some(json!({"totalLines": 1})),
        content: text(&format!("result of {id}")),
        parent: parent.map(str::to_owned),
    })
}

fn compaction(from: u64, to: u64) -> EventBody {
    EventBody::Compaction {
        from,
        to,
        summary: text(&format!("summary of {from} to {to}")),
    }
}

fn schema(name: &str) -> ToolSchema {
    ToolSchema {
        name: name.to_owned(),
        description: "does something".to_owned(),
        parameters: json!({"type": "object"}),
    }
}

/// Logs a request of the open step.
fn ask(log: &mut Log) {
    let turn = log.open_turn().unwrap();
    let step = log.open_step().unwrap();
    let (_, body) = log.request(turn, step, "be kind".to_owned(), vec![schema("read")]);
    log.push(body, 0).unwrap();
}

#[track_caller]
fn push(log: &mut Log, bodies: impl IntoIterator<Item = EventBody>) {
    for body in bodies {
        log.push(body, 0).unwrap();
    }
}

/// A log whose model has just answered with these calls.
fn answered(calls: &[&str]) -> Log {
    let mut log = Log::new();
    push(&mut log, [turn_start(1), step_start(1, 1), user("hello")]);
    ask(&mut log);
    push(&mut log, [answer("", calls)]);
    log
}

/// A log of one turn: a prompt, two calls of which one calls itself, an answer.
fn whole_turn() -> Log {
    let mut log = answered(&["c1", "c2"]);
    let calls = [call("c1", None), call("c2", None), call("n1", Some("c2"))];
    push(&mut log, calls);
    push(&mut log, [result("n1", Some("c2")), result("c1", None)]);
    push(&mut log, [result("c2", None), user("a context")]);
    push(&mut log, [step_end(1, 1), step_start(1, 2)]);
    ask(&mut log);
    push(&mut log, [answer("done", &[]), step_end(1, 2), turn_end(1)]);
    log
}

/// What is visible, a word for each.
fn surface(log: &Log) -> Vec<String> {
    log.visible()
        .map(|event| match &event.body {
            EventBody::ToolResult(result) => format!("{} {}", event.seq, result.call_id),
            body => format!("{} {}", event.seq, body.kind()),
        })
        .collect()
}

/// A file with these events, as the store writes it.
fn file_of(log: &Log) -> Vec<u8> {
    let mut file = serde_json::to_vec(&json!({
        "format": "dsh-session/1",
        "header": header(),
    }))
    .unwrap();
    file.push(b'\n');
    for event in log.events() {
        file.extend(line_of(event));
    }
    file
}

fn line_of(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).unwrap();
    line.push(b'\n');
    line
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn source_with(key: &str, value: Value) -> MessageSource {
    let data = Map::from_iter([(key.to_owned(), value)]);
    MessageSource {
        kind: "test".to_owned(),
        data,
    }
}
