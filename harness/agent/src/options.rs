//! The limits of a loop.

use std::time::Duration;

use crate::RetryPolicy;

/// The limits of a loop. Nothing of them is shown to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopOptions {
    /// The most steps of one turn. A turn that owes the model one more fails, and what its calls came
    /// to is in the log: the next prompt goes on from there. Default 200; 0 counts as 1.
    pub max_steps: u64,
    /// The most calls of one message that are executed; the others fail. Default 128.
    pub max_calls: usize,
    /// The most calls that overlap (RUN-13). Default 16; 0 counts as 1.
    pub max_parallel_calls: usize,
    /// The most bytes of a message: text, reasoning and calls. Default 16000000.
    pub max_response_bytes: usize,
    /// How often a model that fails is asked again.
    pub retry: RetryPolicy,
    /// How long calls, model and pre-step stages may take to end after the turn was cancelled. After
    /// that they are dropped where they stand. Default 5 s.
    pub settle: Duration,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self {
            max_steps: 200,
            max_calls: 128,
            max_parallel_calls: 16,
            max_response_bytes: 16_000_000,
            retry: RetryPolicy::default(),
            settle: Duration::from_secs(5),
        }
    }
}
