//! One prompt, to the end of its turn.

use dsh_harness::agent::{AgentError, TurnOutcome};
use dsh_harness::kernel::CancelReason;
use dsh_harness::session::Ending;
use serde::Serialize;

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// How its turn ended.
    pub outcome: Ending,
    /// What the model said last in it; empty if it said nothing, or if the turn failed.
    pub answer: String,
}

impl Answered {
    /// What a prompt came to that was given up before its turn began.
    pub(crate) fn not_begun(reason: CancelReason) -> Self {
        Self {
            outcome: Ending::Cancelled {
                reason: reason.to_string(),
            },
            answer: String::new(),
        }
    }
}

impl From<Result<TurnOutcome, AgentError>> for Answered {
    fn from(result: Result<TurnOutcome, AgentError>) -> Self {
        match result {
            Ok(TurnOutcome { ending, text, .. }) => Self {
                outcome: ending,
                answer: text,
            },
            Err(error) => Self {
                outcome: Ending::Failed {
                    code: error.code().to_owned(),
                    message: error.message().to_owned(),
                },
                answer: String::new(),
            },
        }
    }
}
