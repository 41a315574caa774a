//! Between the session's events and the updates of the Agent Client Protocol. Pure.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ContentBlock as AcpBlock, ContentChunk, EmbeddedResourceResource, SessionUpdate, TextContent,
    ToolCall as AcpCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use dsh_harness::agent::Delta;
use dsh_harness::session::{Event, EventBody, LoggedResult, MessageSource};
use dsh_harness::tools::{Card, ContentBlock, ToolCall};

/// What an editor is told of one session, and what it has been told of the message under way.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// The working directory: places are told as absolute paths.
    cwd: PathBuf,
    text: String,
    reasoning: String,
}

impl Updates {
    pub(super) fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..Self::default()
        }
    }

    /// A piece of a message.
    pub(super) fn delta(&mut self, delta: &Delta) -> Option<SessionUpdate> {
        match delta {
            Delta::Text(piece) => {
                self.text.push_str(piece);
                Some(says(piece))
            }
            Delta::Reasoning(piece) => {
                self.reasoning.push_str(piece);
                Some(thinks(piece))
            }
            // The call itself is told when it is made, with its arguments whole.
            Delta::ToolCall { .. } => None,
        }
    }

    /// An event of the log, while the turn runs. `card` is how a call is shown to a person.
    pub(super) fn event(
        &mut self,
        event: &Event,
        card: impl Fn(&ToolCall) -> Option<Card>,
    ) -> Vec<SessionUpdate> {
        match &event.body {
            // A message that was cut off is asked for again from its beginning.
            EventBody::StepRequest { .. } => {
                self.text.clear();
                self.reasoning.clear();
                Vec::new()
            }
            EventBody::AssistantMessage(message) => {
                let reasoning = message.reasoning.as_deref().unwrap_or_default();
                let said = std::mem::take(&mut self.text);
                let thought = std::mem::take(&mut self.reasoning);
                let rest = [
                    (not_told(&thought, reasoning), thinks as fn(&str) -> _),
                    (not_told(&said, &message.text), says),
                ];
                rest.into_iter()
                    .filter(|(text, _)| !text.is_empty())
                    .map(|(text, update)| update(text))
                    .collect()
            }
            EventBody::ToolCall { call, .. } => vec![self.call(call, card(call))],
            EventBody::ToolResult(result) => vec![ended(result)],
            _ => Vec::new(),
        }
    }

    /// An event of a session that is gone on with, which nobody was told of in pieces.
    pub(super) fn replayed(
        &mut self,
        event: &Event,
        card: impl Fn(&ToolCall) -> Option<Card>,
    ) -> Vec<SessionUpdate> {
        match &event.body {
            EventBody::UserMessage { source, content } if source.kind == MessageSource::PROMPT => {
                content
                    .iter()
                    .map(|block| SessionUpdate::UserMessageChunk(chunk(block.as_text())))
                    .collect()
            }
            _ => self.event(event, card),
        }
    }

    fn call(&self, call: &ToolCall, card: Option<Card>) -> SessionUpdate {
        let (kind, title, locations) = self.shown(call, card);
        SessionUpdate::ToolCall(
            AcpCall::new(call.id.clone(), title)
                .name(call.name.clone())
                .kind(kind)
                .status(ToolCallStatus::InProgress)
                .locations(locations)
                .raw_input(call.arguments.clone()),
        )
    }

    /// A call that somebody is asked about.
    pub(super) fn asked(&self, call: &ToolCall, card: Option<Card>) -> ToolCallUpdate {
        let (kind, title, locations) = self.shown(call, card);
        ToolCallUpdate::new(
            call.id.clone(),
            ToolCallUpdateFields::new()
                .name(call.name.clone())
                .title(title)
                .kind(kind)
                .locations(locations)
                .raw_input(call.arguments.clone()),
        )
    }

    fn shown(
        &self,
        call: &ToolCall,
        card: Option<Card>,
    ) -> (ToolKind, String, Vec<ToolCallLocation>) {
        let Some(Card::Generic {
            kind,
            title,
            locations,
        }) = card
        else {
            return (kind_of(&call.name), call.name.clone(), Vec::new());
        };
        let locations = locations
            .into_iter()
            .map(|location| {
                let mut place = ToolCallLocation::new(self.cwd.join(Path::new(&location.path)));
                place.line = location.line.and_then(|line| u32::try_from(line).ok());
                place
            })
            .collect();
        (kind_of(&kind), title, locations)
    }
}

/// The rest of a text of which a beginning was told; all of it where another was told.
fn not_told<'a>(told: &str, text: &'a str) -> &'a str {
    text.strip_prefix(told).unwrap_or(text)
}

fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(AcpBlock::Text(TextContent::new(text)))
}

fn says(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(text))
}

fn thinks(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(chunk(text))
}

fn ended(result: &LoggedResult) -> SessionUpdate {
    let status = if result.is_error {
        ToolCallStatus::Failed
    } else {
        ToolCallStatus::Completed
    };
    let content: Vec<ToolCallContent> = result
        .content
        .iter()
        .map(|block| AcpBlock::Text(TextContent::new(block.as_text())).into())
        .collect();
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
        result.call_id.clone(),
        ToolCallUpdateFields::new()
            .status(status)
            .content(content)
            .raw_output(result.value.clone()),
    ))
}

/// The editor's kind of a card's kind, or of a tool that has no card.
fn kind_of(name: &str) -> ToolKind {
    match name {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "search" | "lsp" => ToolKind::Search,
        "execute" | "run_code" => ToolKind::Execute,
        _ => ToolKind::Other,
    }
}

/// A prompt, as the model reads it; an error names what cannot be read.
pub(super) fn prompt(blocks: &[AcpBlock]) -> Result<Vec<ContentBlock>, String> {
    blocks
        .iter()
        .map(|block| {
            Ok(ContentBlock::text(match block {
                AcpBlock::Text(text) => text.text.clone(),
                AcpBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
                AcpBlock::Resource(resource) => match &resource.resource {
                    EmbeddedResourceResource::TextResourceContents(text) => {
                        format!("{}:\n{}", text.uri, text.text)
                    }
                    _ => return Err(unreadable("a binary resource")),
                },
                AcpBlock::Image(_) => return Err(unreadable("an image")),
                AcpBlock::Audio(_) => return Err(unreadable("audio")),
                _ => return Err(unreadable("a block of an unknown type")),
            }))
        })
        .collect()
}

fn unreadable(what: &str) -> String {
    format!("the prompt has {what}, and this agent reads text; send text, or a link to a file")
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ImageContent, ResourceLink};
    use dsh_harness::session::AssistantMessage;
    use dsh_harness::tools::FileLocation;
    use serde_json::{Value, json};

    use super::*;

    fn event(body: EventBody) -> Event {
        Event {
            seq: 1,
            at_ms: 0,
            body,
        }
    }

    fn message(text: &str) -> Event {
        event(EventBody::AssistantMessage(AssistantMessage {
            text: text.to_owned(),
            ..AssistantMessage::default()
        }))
    }

    fn told(updates: Vec<SessionUpdate>) -> Value {
        serde_json::to_value(updates).unwrap()
    }

    fn text(update: &str, text: &str) -> Value {
        json!({"sessionUpdate": update, "content": {"type": "text", "text": text}})
    }

    #[test]
    fn what_was_streamed_is_not_told_again_and_what_was_not_is() {
        let mut updates = Updates::new("/w");
        let none = |_: &ToolCall| None;
        let streamed: Vec<_> = ["Hel", "lo"]
            .into_iter()
            .filter_map(|piece| updates.delta(&Delta::Text(piece.to_owned())))
            .collect();
        assert_eq!(
            told(streamed),
            json!([
                text("agent_message_chunk", "Hel"),
                text("agent_message_chunk", "lo")
            ])
        );
        assert_eq!(told(updates.event(&message("Hello"), none)), json!([]));
        assert_eq!(
            told(updates.event(&message("whole"), none)),
            json!([text("agent_message_chunk", "whole")])
        );
        updates.delta(&Delta::Text("part".to_owned()));
        assert_eq!(
            told(updates.event(&message("part two"), none)),
            json!([text("agent_message_chunk", " two")])
        );
        updates.delta(&Delta::Text("another".to_owned()));
        assert_eq!(
            told(updates.event(&message("after all"), none)),
            json!([text("agent_message_chunk", "after all")])
        );
    }

    #[test]
    fn calls_and_results_are_updates_of_one_call() {
        let mut updates = Updates::new("/w");
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "lsp".to_owned(),
            arguments: json!({"a": 1}),
        };
        let card = |_: &ToolCall| {
            Some(Card::Generic {
                kind: "search".to_owned(),
                title: "hover a.x:3:1".to_owned(),
                locations: vec![FileLocation {
                    path: "a.x".to_owned(),
                    line: Some(3),
                }],
            })
        };
        let called = event(EventBody::ToolCall { call, parent: None });
        assert_eq!(
            told(updates.event(&called, card)),
            json!([{
                "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "hover a.x:3:1",
                "name": "lsp", "kind": "search", "status": "in_progress",
                "locations": [{"path": "/w/a.x", "line": 3}], "rawInput": {"a": 1},
            }])
        );
        let result = event(EventBody::ToolResult(LoggedResult {
            call_id: "c1".to_owned(),
            name: "lsp".to_owned(),
            is_error: true,
            code: Some("LSP_UNAVAILABLE".to_owned()),
            value: None,
            content: vec![ContentBlock::text("none")],
            parent: None,
        }));
        assert_eq!(
            told(updates.event(&result, card)),
            json!([{
                "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed",
                "content": [{"type": "content", "content": {"type": "text", "text": "none"}}],
            }])
        );
    }

    #[test]
    fn a_replay_tells_prompts_and_not_what_plugins_added() {
        let mut updates = Updates::new("/w");
        let said = |kind: &str| {
            event(EventBody::UserMessage {
                source: MessageSource::new(kind, serde_json::Map::new()),
                content: vec![ContentBlock::text("hi")],
            })
        };
        let none = |_: &ToolCall| None;
        assert_eq!(
            told(updates.replayed(&said(MessageSource::PROMPT), none)),
            json!([text("user_message_chunk", "hi")])
        );
        let added = said("workspace-instructions");
        assert_eq!(told(updates.replayed(&added, none)), json!([]));
    }

    #[test]
    fn a_prompt_is_text_and_links_and_says_what_it_cannot_be() {
        let blocks = [
            AcpBlock::Text(TextContent::new("see")),
            AcpBlock::ResourceLink(ResourceLink::new("a.x", "file:///w/a.x")),
        ];
        let read = prompt(&blocks).unwrap();
        assert_eq!(
            read,
            [
                ContentBlock::text("see"),
                ContentBlock::text("[a.x](file:///w/a.x)")
            ]
        );
        let image = AcpBlock::Image(ImageContent::new("", "image/png"));
        assert!(prompt(&[image]).unwrap_err().contains("an image"));
    }
}
