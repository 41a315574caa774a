//! Questions to the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_harness::tools::{Approval, Approver, Invocation, ToolError};
use serde_json::json;
use tokio::sync::oneshot;

use super::protocol::{Approved, question};
use super::server::Outbox;

/// The questions that the client has not answered yet.
#[derive(Default)]
pub(super) struct Questions {
    next: AtomicU64,
    open: Mutex<HashMap<String, oneshot::Sender<Approved>>>,
}

impl Questions {
    /// Takes the client's answer; false if nobody waits for it.
    pub(super) fn answered(&self, id: &str, answer: Approved) -> bool {
        let waiting = self.open().remove(id);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Approved>>> {
        // No change spans two critical sections, so the table is whole after any panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the client about the calls of one session.
pub(super) struct AskClient {
    pub(super) session: String,
    pub(super) questions: Arc<Questions>,
    pub(super) outbox: Outbox,
}

#[async_trait]
impl Approver for AskClient {
    async fn ask(&self, invocation: &Invocation, asked: &str) -> Result<Approval, ToolError> {
        let number = self.questions.next.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("approve-{number}");
        let (sender, answer) = oneshot::channel();
        self.questions.open().insert(id.clone(), sender);
        // A question that is given up is not answered any more.
        let _given_up = Forget(&self.questions, &id);
        let params = json!({
            "session": self.session,
            "call": invocation.call,
            "question": asked,
        });
        self.outbox.send(question(&id, "approve", params));
        Ok(match answer.await {
            Ok(Approved { granted: true, .. }) => Approval::Granted,
            Ok(Approved { reason, .. }) => {
                Approval::Refused(reason.unwrap_or_else(|| "the client refused it".to_owned()))
            }
            Err(_) => Approval::Refused("the client is gone".to_owned()),
        })
    }
}

struct Forget<'a>(&'a Questions, &'a str);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.open().remove(self.1);
    }
}
