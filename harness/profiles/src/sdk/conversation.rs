//! One session of a client: its agent, and the prompts that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_harness::agent::{Agent, Delta, StepDelta};
use dsh_harness::kernel::{Cancel, CancelReason};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::protocol::{Id, notification, result};
use super::server::Outbox;
use crate::Host;
use crate::turn::Answered;

/// What is to be done in a session, in its order.
pub(super) enum Job {
    Prompt {
        id: Option<Id>,
        text: String,
        cancel: Cancel,
    },
    Close {
        id: Option<Id>,
    },
}

/// A session as the server holds it. Dropping it closes the session once its jobs are done.
pub(super) struct Conversation {
    agent: Agent,
    jobs: mpsc::Sender<Job>,
    /// Ends all prompts that were taken since the last `cancel`.
    cancel: Cancel,
    /// How many prompts have no answer yet.
    unanswered: Arc<AtomicUsize>,
    most: usize,
}

/// The other side of it, which does what is to be done.
pub(super) struct Work {
    agent: Agent,
    jobs: mpsc::Receiver<Job>,
    unanswered: Arc<AtomicUsize>,
}

impl Conversation {
    /// A session of which at most so many prompts wait for an answer.
    pub(super) fn new(agent: Agent, most: usize) -> (Self, Work) {
        // One place more, so that a close always fits.
        let (sender, jobs) = mpsc::channel(most + 1);
        let unanswered = Arc::new(AtomicUsize::new(0));
        let conversation = Self {
            agent: agent.clone(),
            jobs: sender,
            cancel: Cancel::new(),
            unanswered: Arc::clone(&unanswered),
            most,
        };
        let work = Work {
            agent,
            jobs,
            unanswered,
        };
        (conversation, work)
    }

    /// The conversation itself.
    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Queues a prompt; false if too many have no answer yet.
    pub(super) fn prompt(&self, id: Option<Id>, text: String) -> bool {
        // Only the server's loop adds to it, so nobody comes in between.
        if self.unanswered.load(Ordering::Acquire) >= self.most {
            return false;
        }
        self.unanswered.fetch_add(1, Ordering::AcqRel);
        let cancel = self.cancel.clone();
        let sent = self.jobs.try_send(Job::Prompt { id, text, cancel }).is_ok();
        if !sent {
            self.unanswered.fetch_sub(1, Ordering::AcqRel);
        }
        sent
    }

    /// Ends the prompt that runs and those that wait, and says how many these are.
    pub(super) fn cancel(&mut self, reason: CancelReason) -> usize {
        let unanswered = self.unanswered.load(Ordering::Acquire);
        std::mem::take(&mut self.cancel).cancel(reason);
        unanswered
    }

    /// Ends it all, and answers when that is done.
    pub(super) fn close(mut self, id: Option<Id>) {
        self.cancel(CancelReason::Caller);
        let _ = self.jobs.try_send(Job::Close { id });
    }
}

impl Work {
    /// Does it all, one after the other, until the session is closed or dropped. Then its agent has
    /// ended.
    pub(super) async fn run(mut self, host: Arc<Host>, deltas: bool, outbox: Outbox) {
        let session = self.agent.session().header().id.clone();
        let events = self.agent.session().subscribe({
            let (session, outbox) = (session.clone(), outbox.clone());
            move |event| {
                let params = json!({"session": session, "event": event});
                outbox.send(notification("event", params));
            }
        });
        let deltas = deltas.then(|| {
            let (session, outbox) = (session.clone(), outbox.clone());
            self.agent
                .on_delta(move |delta| outbox.send(notification("delta", told(&session, delta))))
        });
        let mut closed = None;
        while let Some(job) = self.jobs.recv().await {
            match job {
                Job::Prompt { id, text, cancel } => {
                    let answered = match cancel.reason() {
                        Some(reason) => Answered::not_begun(reason),
                        None => self.agent.prompt(text, &cancel).await.into(),
                    };
                    self.unanswered.fetch_sub(1, Ordering::AcqRel);
                    if let Some(id) = id {
                        outbox.send(result(&id, answered));
                    }
                }
                Job::Close { id } => {
                    closed = id;
                    break;
                }
            }
        }
        self.agent.close().await;
        drop((events, deltas));
        host.approvers().forget(&session);
        // The last of its holders: the session's file is free by the time the client is told.
        drop(self);
        if let Some(id) = closed {
            outbox.send(result(&id, json!({})));
        }
    }
}

/// A piece of a message, as the client is told of it.
fn told(session: &str, told: &StepDelta) -> Value {
    let mut params = json!({
        "session": session,
        "turn": told.turn,
        "step": told.step,
        "attempt": told.attempt,
    });
    match &told.delta {
        Delta::Text(text) => params["text"] = text.as_str().into(),
        Delta::Reasoning(text) => params["reasoning"] = text.as_str().into(),
        Delta::ToolCall {
            index,
            id,
            name,
            arguments,
        } => {
            params["call"] =
                json!({"index": index, "id": id, "name": name, "arguments": arguments});
        }
    }
    params
}
