//! The scripted model of a session, whose script is another in each turn.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_harness::agent::{Delta, Model, ModelError, ScriptedModel, model_code};
use dsh_harness::kernel::Cancel;
use dsh_harness::session::{
    AssistantMessage, Event, EventBody, Message, ModelRequest, Session, ToolSchema,
};
use serde_json::{Value, json};

use super::super::super::{TurnMessage, TurnRequest};
use super::super::arranged::{Arranged, Look, lock};
use super::text;

/// Follows the script of the turn there is, and keeps what it was asked.
pub(super) struct TurnModel {
    session: Session,
    arranged: Arc<Arranged>,
    turn: Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    script: Option<Arc<ScriptedModel>>,
    requests: Vec<TurnRequest>,
}

impl TurnModel {
    pub(super) fn new(session: Session, arranged: Arc<Arranged>) -> Self {
        Self {
            session,
            arranged,
            turn: Mutex::default(),
        }
    }

    /// Follows this script from now on.
    pub(super) fn begin(&self, script: ScriptedModel) {
        *lock(&self.turn) = Turn {
            script: Some(Arc::new(script)),
            requests: Vec::new(),
        };
    }

    /// What was asked since.
    pub(super) fn end(&self) -> Vec<TurnRequest> {
        std::mem::take(&mut *lock(&self.turn)).requests
    }

    /// Where each message of a request comes from, as the log has it.
    fn sources(&self) -> Vec<Option<Value>> {
        self.session.read(|log| {
            let visible = log.visible();
            visible
                .filter(|event| Message::of(event).is_some())
                .map(|event| source(event))
                .collect()
        })
    }
}

fn source(event: &Event) -> Option<Value> {
    match &event.body {
        EventBody::UserMessage { source, .. } => Some(json!(source)),
        EventBody::Compaction { .. } => Some(json!({"kind": "compaction"})),
        _ => None,
    }
}

#[async_trait]
impl Model for TurnModel {
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "the trait lends the name from itself"
    )]
    fn name(&self) -> &str {
        "scripted"
    }

    async fn respond(
        &self,
        request: &ModelRequest,
        deltas: &mut (dyn FnMut(Delta) + Send),
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelError> {
        let asked = neutral(request, self.sources());
        let script = {
            let mut turn = lock(&self.turn);
            turn.requests.push(asked);
            turn.script.clone()
        };
        let held = self.arranged.gate(Look::Model, cancel).await;
        held.map_err(|reason| ModelError::fatal(model_code::MODEL_CANCELLED, reason.to_string()))?;
        match script {
            Some(script) => script.respond(request, deltas, cancel).await,
            None => Err(ModelError::fatal(
                "NO_TURN",
                "the model was asked though no turn runs",
            )),
        }
    }
}

/// A request in the form that does not depend on whose it is.
fn neutral(request: &ModelRequest, sources: Vec<Option<Value>>) -> TurnRequest {
    let ModelRequest {
        system,
        messages,
        tools,
    } = request;
    // What cannot be told for all is told for none.
    let sources = if sources.len() == messages.len() {
        sources
    } else {
        vec![None; messages.len()]
    };
    TurnRequest {
        system: system.clone(),
        messages: messages
            .iter()
            .zip(sources)
            .map(|(message, source)| said(message, source))
            .collect(),
        tools: tools
            .iter()
            .map(|ToolSchema { name, .. }| name.clone())
            .collect(),
    }
}

fn said(message: &Message, source: Option<Value>) -> TurnMessage {
    let plain = |role: &str, text: String| TurnMessage {
        role: role.to_owned(),
        text,
        tool_calls: Vec::new(),
        tool_call_id: None,
        is_error: None,
        source: None,
    };
    match message {
        Message::User { content } => TurnMessage {
            source,
            ..plain("user", text(content))
        },
        Message::Assistant {
            text, tool_calls, ..
        } => TurnMessage {
            tool_calls: tool_calls.iter().map(|call| json!(call)).collect(),
            ..plain("assistant", text.clone())
        },
        Message::Tool {
            call_id,
            is_error,
            content,
        } => TurnMessage {
            tool_call_id: Some(call_id.clone()),
            is_error: Some(*is_error),
            ..plain("tool", text(content))
        },
    }
}
