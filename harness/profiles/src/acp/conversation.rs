//! One session of an editor: its agent, and what the editor is told of it.

use std::sync::{Arc, Mutex};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PromptResponse, SessionNotification, SessionUpdate, StopReason,
};
use agent_client_protocol::{Client, Error};
use dsh_harness::agent::{Agent, DeltaHandle, code};
use dsh_harness::kernel::{Cancel, lock};
use dsh_harness::session::{Ending, LogSubscription};
use dsh_harness::tools::ContentBlock;
use serde_json::json;

use super::approve::AskEditor;
use super::translate::Updates;
use crate::Host;
use crate::turn::Answered;

/// A session as the server holds it.
pub(super) struct Conversation {
    pub(super) agent: Agent,
    id: String,
    host: Arc<Host>,
    editor: ConnectionTo<Client>,
    updates: Arc<Mutex<Updates>>,
    /// Ends the prompt that runs; none if none does.
    running: Arc<Mutex<Option<Cancel>>>,
    _told: (LogSubscription, DeltaHandle),
}

impl Conversation {
    /// Tells the editor of everything in the session from now on, and asks it where calls need an
    /// approval.
    pub(super) fn new(host: Arc<Host>, agent: Agent, editor: ConnectionTo<Client>) -> Self {
        let header = agent.session().header();
        let id = header.id.clone();
        let cwd = header.cwd.clone().unwrap_or_default();
        let updates = Arc::new(Mutex::new(Updates::new(cwd)));
        let tell = |host: &Arc<Host>| {
            let host = Arc::clone(host);
            let editor = editor.clone();
            let id = id.clone();
            (host, editor, id, Arc::clone(&updates))
        };
        let events = {
            let (host, editor, id, updates) = tell(&host);
            agent.session().subscribe(move |event| {
                let mut updates = lock(&updates);
                for update in updates.event(event, |call| host.card(call)) {
                    send(&editor, &id, update);
                }
            })
        };
        let deltas = {
            let (_, editor, id, updates) = tell(&host);
            agent.on_delta(move |delta| {
                let mut updates = lock(&updates);
                if let Some(update) = updates.delta(&delta.delta) {
                    send(&editor, &id, update);
                }
            })
        };
        let approver = AskEditor {
            host: Arc::clone(&host),
            editor: editor.clone(),
            session: id.clone(),
            updates: Arc::clone(&updates),
            allowed: Mutex::default(),
        };
        host.approvers().answer_for(&id, Arc::new(approver));
        Self {
            agent,
            id,
            host,
            editor,
            updates,
            running: Arc::default(),
            _told: (events, deltas),
        }
    }

    /// Tells what was said before the session was gone on with.
    pub(super) fn replay(&self) {
        let events = self.agent.session().read(|log| log.events().to_vec());
        let mut updates = lock(&self.updates);
        for event in events {
            for update in updates.replayed(&event, |call| self.host.card(call)) {
                send(&self.editor, &self.id, update);
            }
        }
    }

    /// Begins a turn; it runs in the future returned. None if one runs already.
    pub(super) fn prompt(
        &self,
        content: Vec<ContentBlock>,
    ) -> Option<impl Future<Output = Result<PromptResponse, Error>> + Send + 'static> {
        let cancel = Cancel::new();
        let mut running = lock(&self.running);
        if running.is_some() {
            return None;
        }
        *running = Some(cancel.clone());
        drop(running);
        let (agent, running) = (self.agent.clone(), Arc::clone(&self.running));
        Some(async move {
            agent.inbox().push_prompt_blocks(content);
            let answered = agent.run_turn(&cancel).await.into();
            *lock(&running) = None;
            stopped(answered)
        })
    }

    /// Ends the turn that runs.
    pub(super) fn cancel(&self, reason: dsh_harness::kernel::CancelReason) {
        if let Some(cancel) = &*lock(&self.running) {
            cancel.cancel(reason);
        }
    }

    /// Ends it all; returns when no step follows.
    pub(super) async fn close(self) {
        self.agent.close().await;
        self.host.approvers().forget(&self.id);
    }
}

fn send(editor: &ConnectionTo<Client>, session: &str, update: SessionUpdate) {
    // An editor that is gone is noticed by the connection.
    let _ = editor.send_notification(SessionNotification::new(session.to_owned(), update));
}

/// How a turn ended, in the protocol's terms.
fn stopped(Answered { outcome, .. }: Answered) -> Result<PromptResponse, Error> {
    let reason = match outcome {
        Ending::Completed => StopReason::EndTurn,
        Ending::Cancelled { .. } => StopReason::Cancelled,
        Ending::Rejected { .. } => StopReason::Refusal,
        Ending::Failed { code, .. } if code == code::MAX_STEPS => StopReason::MaxTurnRequests,
        Ending::Failed { code, message } => {
            return Err(Error::new(-32603, message).data(json!({"code": code})));
        }
    };
    Ok(PromptResponse::new(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_in_the_protocol_s_terms() {
        let of = |outcome| {
            stopped(Answered {
                outcome,
                answer: String::new(),
            })
        };
        let failed = |code: &str| Ending::Failed {
            code: code.to_owned(),
            message: "why".to_owned(),
        };
        let reason = "r".to_owned();
        assert_eq!(
            of(Ending::Completed).unwrap().stop_reason,
            StopReason::EndTurn
        );
        let cancelled = Ending::Cancelled {
            reason: reason.clone(),
        };
        assert_eq!(of(cancelled).unwrap().stop_reason, StopReason::Cancelled);
        assert_eq!(
            of(Ending::Rejected { reason }).unwrap().stop_reason,
            StopReason::Refusal
        );
        assert_eq!(
            of(failed(code::MAX_STEPS)).unwrap().stop_reason,
            StopReason::MaxTurnRequests
        );
        let error = of(failed("MODEL_STREAM_CUT")).unwrap_err();
        assert_eq!(error.message, "why");
        assert_eq!(error.data, Some(json!({"code": "MODEL_STREAM_CUT"})));
    }
}
