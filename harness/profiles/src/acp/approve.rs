//! Questions to the person in front of the editor.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
};
use async_trait::async_trait;
use dsh_harness::kernel::lock;
use dsh_harness::tools::{Approval, Approver, Invocation, ToolError};

use super::translate::Updates;
use crate::Host;

const ONCE: &str = "allow-once";
const ALWAYS: &str = "allow-always";
const NOT: &str = "reject-once";

/// Asks the editor about the calls of one session.
pub(super) struct AskEditor {
    pub(super) host: Arc<Host>,
    pub(super) editor: ConnectionTo<Client>,
    pub(super) session: String,
    pub(super) updates: Arc<Mutex<Updates>>,
    /// The tools that need no further question in this session.
    pub(super) allowed: Mutex<HashSet<String>>,
}

#[async_trait]
impl Approver for AskEditor {
    async fn ask(&self, invocation: &Invocation, question: &str) -> Result<Approval, ToolError> {
        let tool = &invocation.call.name;
        if lock(&self.allowed).contains(tool) {
            return Ok(Approval::Granted);
        }
        let card = self.host.card(&invocation.call);
        let mut asked = lock(&self.updates).asked(&invocation.call, card);
        let title = asked.fields.title.take().unwrap_or_else(|| tool.clone());
        asked.fields.title = Some(format!("{title} ({question})"));
        let always = format!("Allow {tool} in this session");
        let options = vec![
            PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new(ALWAYS, always, PermissionOptionKind::AllowAlways),
            PermissionOption::new(NOT, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(self.session.clone(), asked, options);
        let refused = |reason: &str| Ok(Approval::Refused(reason.to_owned()));
        let answer = match self.editor.send_request(request).block_task().await {
            Ok(answer) => answer,
            Err(error) => return refused(&format!("the editor could not ask: {}", error.message)),
        };
        match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
                ONCE => Ok(Approval::Granted),
                ALWAYS => {
                    lock(&self.allowed).insert(tool.clone());
                    Ok(Approval::Granted)
                }
                _ => refused("the user rejected it"),
            },
            _ => refused("the question was cancelled"),
        }
    }
}
