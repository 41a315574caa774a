//! Whether a request is what a reply expects. Pure.

use dsh_session::{ContentBlock, Message, ModelRequest};

use super::format::{MessageExpectation, RequestExpectation};

/// The most characters of a text that a message quotes.
const QUOTED: usize = 200;

impl RequestExpectation {
    /// The first thing that does not fit: what was expected and what there is.
    pub(super) fn mismatch(&self, request: &ModelRequest) -> Option<String> {
        self.count(request)
            .or_else(|| self.tools(request))
            .or_else(|| self.system(request))
            .or_else(|| self.new_messages(request))
            .or_else(|| self.contains(request))
            .or_else(|| self.excludes(request))
    }

    fn count(&self, request: &ModelRequest) -> Option<String> {
        let expected = self.messages?;
        let found = request.messages.len();
        (found != expected).then(|| format!("{expected} messages; there are {found}"))
    }

    fn tools(&self, request: &ModelRequest) -> Option<String> {
        let expected = self.tools.as_ref()?;
        let found: Vec<_> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        (found != *expected).then(|| format!("the tools {expected:?}; they are {found:?}"))
    }

    fn system(&self, request: &ModelRequest) -> Option<String> {
        let missing = self
            .system_contains
            .iter()
            .find(|part| !request.system.contains(*part))?;
        let found = quote(&request.system);
        Some(format!(
            "a system prompt with {}; it is {found}",
            quote(missing)
        ))
    }

    fn new_messages(&self, request: &ModelRequest) -> Option<String> {
        let expected = self.new.as_ref()?;
        let found = new_part(request);
        if found.len() != expected.len() {
            let found: Vec<_> = found.iter().map(describe).collect();
            return Some(format!(
                "{} new messages; there are {}: {}",
                expected.len(),
                found.len(),
                found.join(", then ")
            ));
        }
        let pairs = expected.iter().zip(found).enumerate();
        pairs
            .filter(|(_, (expected, found))| !expected.fits(found))
            .map(|(at, (expected, found))| {
                let expected = serde_json::to_string(expected).unwrap_or_default();
                format!(
                    "as new message {} {}; it is {}",
                    at + 1,
                    clip(&expected),
                    describe(found)
                )
            })
            .next()
    }

    fn contains(&self, request: &ModelRequest) -> Option<String> {
        let new = new_part(request);
        let has = |part: &String| new.iter().any(|message| text(message).contains(part));
        let missing = self.contains.iter().find(|part| !has(part))?;
        let found: Vec<_> = new.iter().map(describe).collect();
        Some(format!(
            "{} in the new messages; they are {}",
            quote(missing),
            found.join(", then ")
        ))
    }

    fn excludes(&self, request: &ModelRequest) -> Option<String> {
        self.excludes.iter().find_map(|part| {
            let at = request
                .messages
                .iter()
                .position(|message| text(message).contains(part))?;
            Some(format!(
                "no {} anywhere; message {} is {}",
                quote(part),
                at + 1,
                describe(&request.messages[at])
            ))
        })
    }
}

impl MessageExpectation {
    fn fits(&self, found: &Message) -> bool {
        let fits = |wanted: &Option<String>, contains: &Option<String>| {
            let text = text(found);
            wanted.as_ref().is_none_or(|wanted| text == *wanted)
                && contains.as_ref().is_none_or(|part| text.contains(part))
        };
        match (self, found) {
            (Self::User { text, contains }, Message::User { .. }) => fits(text, contains),
            (
                Self::Tool {
                    call_id,
                    is_error,
                    text,
                    contains,
                },
                Message::Tool {
                    call_id: found_id,
                    is_error: found_error,
                    ..
                },
            ) => {
                call_id.as_ref().is_none_or(|id| id == found_id)
                    && is_error.is_none_or(|is_error| is_error == *found_error)
                    && fits(text, contains)
            }
            _ => false,
        }
    }
}

/// The messages after the model's last one.
fn new_part(request: &ModelRequest) -> &[Message] {
    let last = request
        .messages
        .iter()
        .rposition(|message| matches!(message, Message::Assistant { .. }));
    &request.messages[last.map_or(0, |last| last + 1)..]
}

fn text(message: &Message) -> String {
    match message {
        Message::Assistant { text, .. } => text.clone(),
        Message::User { content } | Message::Tool { content, .. } => {
            content.iter().map(ContentBlock::as_text).collect()
        }
    }
}

/// A message, for people: role and the beginning of its text.
pub(super) fn describe(message: &Message) -> String {
    let text = quote(&text(message));
    match message {
        Message::User { .. } => format!("user {text}"),
        Message::Assistant { tool_calls, .. } if tool_calls.is_empty() => {
            format!("assistant {text}")
        }
        Message::Assistant { tool_calls, .. } => {
            let names: Vec<_> = tool_calls.iter().map(|call| call.name.as_str()).collect();
            format!("assistant {text} calling {}", names.join(", "))
        }
        Message::Tool {
            call_id, is_error, ..
        } => {
            let outcome = if *is_error { "error" } else { "result" };
            format!("{outcome} of {} {text}", clip(call_id))
        }
    }
}

fn quote(text: &str) -> String {
    format!("{:?}", clip(text))
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
    }
}
