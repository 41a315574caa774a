//! Who answers where a call needs an approval (RUN-6).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_harness::kernel::{Context, Plugin, PluginError, ServiceKey};
use dsh_harness::tools::{Approval, Approver, Invocation, ToolError, ToolRegistry};

/// What the model reads where nobody can be asked.
const NOBODY: &str = "it needs an approval, and this run has nobody who could give it";

/// Passes each question to whoever answers for its session; where nobody does, the call is refused.
#[derive(Default)]
pub(crate) struct Approvers(Mutex<HashMap<String, Arc<dyn Approver>>>);

impl Approvers {
    /// From now on this one answers for the session.
    pub(crate) fn answer_for(&self, session: &str, approver: Arc<dyn Approver>) {
        self.all().insert(session.to_owned(), approver);
    }

    /// From now on nobody does.
    pub(crate) fn forget(&self, session: &str) {
        let gone = self.all().remove(session);
        drop(gone);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn Approver>>> {
        // No change spans two critical sections, so the table is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Approver for Approvers {
    async fn ask(&self, invocation: &Invocation, question: &str) -> Result<Approval, ToolError> {
        let session = invocation.session.as_ref();
        let approver = session.and_then(|session| self.all().get(&session.header().id).cloned());
        match approver {
            Some(approver) => approver.ask(invocation, question).await,
            None => Ok(Approval::Refused(format!("{NOBODY} ({question})"))),
        }
    }
}

/// The front of a profile as the runtime sees it: what answers for the person.
pub(crate) struct Front {
    name: &'static str,
    approvers: Arc<Approvers>,
}

impl Front {
    pub(crate) fn new(name: &'static str, approvers: Arc<Approvers>) -> Self {
        Self { name, approvers }
    }
}

#[async_trait]
impl Plugin for Front {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<ToolRegistry>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let tools = ctx.service::<ToolRegistry>()?;
        let handle = tools.approve_with(0, Arc::clone(&self.approvers) as Arc<dyn Approver>);
        ctx.effect("approver", move || handle.release());
        Ok(())
    }
}
