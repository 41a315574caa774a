//! What an event may be, so that it can be written, and read again.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{ContentBlock, Event, EventBody, ToolCall};

/// How deep arrays and objects may nest in a value that is logged: arguments, results, what a source
/// holds. A JSON reader has a limit of its own, and a log that cannot be read again is lost.
pub const MAX_DEPTH: usize = 64;

/// How long a line of the store may be, in bytes. An event that would not fit is refused.
pub const MAX_LINE: usize = 64 << 20;

/// The most bytes that one byte of a string takes in JSON.
const ESCAPED: usize = 6;
/// More than what an event takes besides its strings and values.
const FRAME: usize = 4096;

/// Whether arrays and objects nest no deeper than [`MAX_DEPTH`] in the value.
pub fn is_shallow(value: &Value) -> bool {
    measure(value, MAX_DEPTH).is_some()
}

/// Whether a result with this content and value can be logged: that takes no more than half a line,
/// and its value is shallow.
pub fn is_loggable(content: &[ContentBlock], value: Option<&Value>) -> bool {
    let Some(bound) = value.map_or(Some(0), |value| measure(value, MAX_DEPTH)) else {
        return false;
    };
    let most = MAX_LINE / 2;
    bound.saturating_add(blocks(content)) <= most || exact(&(content, value)) <= most
}

/// An upper bound of a value's bytes; none if it nests deeper than `levels`.
fn measure(value: &Value, levels: usize) -> Option<usize> {
    Some(match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        Value::String(text) => string(text),
        Value::Array(items) => {
            let levels = levels.checked_sub(1)?;
            let mut sum = 2;
            for item in items {
                sum += 1 + measure(item, levels)?;
            }
            sum
        }
        Value::Object(map) => map_of(map, levels.checked_sub(1)?)?,
    })
}

fn map_of(map: &Map<String, Value>, levels: usize) -> Option<usize> {
    let mut sum = 2;
    for (key, value) in map {
        sum += 2 + string(key) + measure(value, levels)?;
    }
    Some(sum)
}

fn string(text: &str) -> usize {
    text.len().saturating_mul(ESCAPED) + 2
}

fn blocks(content: &[ContentBlock]) -> usize {
    content
        .iter()
        .map(|block| 32 + string(block.as_text()))
        .sum()
}

fn call(call: &ToolCall) -> Option<usize> {
    Some(64 + string(&call.id) + string(&call.name) + measure(&call.arguments, MAX_DEPTH)?)
}

/// An upper bound of an event's bytes; none if something in it nests too deep.
pub(crate) fn most(event: &Event) -> Option<usize> {
    Some(bound(&event.body)? + FRAME)
}

/// An upper bound of a body's own bytes; none if something in it nests too deep.
fn bound(body: &EventBody) -> Option<usize> {
    Some(match body {
        EventBody::TurnStart { .. } | EventBody::StepStart { .. } => 0,
        EventBody::TurnEnd { outcome, .. } | EventBody::StepEnd { outcome, .. } => {
            use crate::Ending;
            match outcome {
                Ending::Completed => 0,
                Ending::Rejected { reason } | Ending::Cancelled { reason } => string(reason),
                Ending::Failed { code, message } => string(code) + string(message),
            }
        }
        EventBody::StepRequest {
            system,
            tools,
            sha1,
            ..
        } => {
            let mut sum = string(sha1) + system.as_deref().map_or(0, string);
            for tool in tools.iter().flatten() {
                sum += 64 + string(&tool.name) + string(&tool.description);
                sum += measure(&tool.parameters, MAX_DEPTH)?;
            }
            sum
        }
        EventBody::UserMessage { source, content } => {
            string(&source.kind) + map_of(&source.data, MAX_DEPTH - 1)? + blocks(content)
        }
        EventBody::AssistantMessage(message) => {
            let mut sum = string(&message.text);
            sum += message.reasoning.as_deref().map_or(0, string);
            for one in &message.tool_calls {
                sum += call(one)?;
            }
            sum
        }
        EventBody::ToolCall { call: one, parent } => {
            call(one)? + parent.as_deref().map_or(0, string)
        }
        EventBody::ToolResult(result) => {
            let strings = [&result.code, &result.parent].into_iter().flatten();
            let mut sum = string(&result.call_id) + string(&result.name);
            sum += strings.map(|text| string(text)).sum::<usize>();
            sum += blocks(&result.content);
            if let Some(value) = &result.value {
                sum += measure(value, MAX_DEPTH)?;
            }
            sum
        }
        EventBody::Compaction { summary, .. } => blocks(summary),
    })
}

/// Whether an event can be written to a line, and read again; if not, why.
pub(crate) fn check(event: &Event) -> Result<(), String> {
    if let EventBody::UserMessage { source, .. } = &event.body
        && source.data.contains_key("kind")
    {
        return Err(
            "the data of its source has a key \"kind\", which is the source's own".to_owned(),
        );
    }
    let Some(most) = most(event) else {
        return Err(format!(
            "a value in it nests deeper than {MAX_DEPTH} levels, which could not be read again"
        ));
    };
    if most <= MAX_LINE {
        return Ok(());
    }
    let length = exact(event) + 1;
    if length > MAX_LINE {
        return Err(format!(
            "it takes {length} bytes, and a line of a log has at most {MAX_LINE}"
        ));
    }
    Ok(())
}

/// How many bytes something takes, without a line feed.
fn exact(written: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, written).expect("strings and JSON values are always written");
    count.0
}
