//! The agent: system prompt, inbox, pre-step decisions, the model, and the loop.
//!
//! An [`Agent`] is a loop instance on a session. A turn claims a prompt from the [`Inbox`]; each of
//! its steps asks the [`PreStep`] chain what enters, asks the [`Model`], and makes the calls of its
//! message through the tools service, until the model asks for none (RUN-12). The session's log is the
//! one source of what the model is sent; everything is logged first.
//!
//! Events on the kernel's bus: `agent/pre-step` ([`PreStepped`]), `agent/retry` ([`ModelRetried`]) and
//! `agent/closed` ([`AgentClosed`]).

mod agent;
mod calls;
mod error;
mod inbox;
mod model;
mod options;
mod pre_step;
mod prompt;
mod retry;
mod scripted;
mod service;
mod turn;

pub use agent::{Agent, AgentClosed, AgentId, DeltaHandle, ModelRetried, StepDelta, TurnOutcome};
pub use error::{AgentError, code};
pub use inbox::{Inbox, MessageId, UserMessage};
pub use model::{Delta, Model, ModelError, Retry, arguments_from_text, code as model_code};
pub use options::LoopOptions;
pub use pre_step::{HookHandle, PreStep, PreStepContext, PreStepDecision, PreStepNext, PreStepped};
pub use prompt::{PromptSection, SectionHandle, SystemPrompt, SystemPromptPlugin};
pub use retry::RetryPolicy;
pub use scripted::{
    MessageExpectation, RequestExpectation, ScriptError, ScriptedCall, ScriptedError,
    ScriptedModel, ScriptedReply, ScriptedUsage, code as script_code,
};
pub use service::{AgentPlugin, AgentService};
