//! Tool definitions, registry, call pipeline and timeout policy.
//!
//! A [`Tool`] is registered with the [`ToolRegistry`]; a call passes fixed stages, each of which
//! plugins may join: pre-execute, execute wrappers, post-execute, and one result event (RUN-6). The
//! model sees a tool's name, description and parameters, nothing else (RUN-5).
//!
//! Two events are emitted on the kernel's bus: `tools/post-execute` ([`PostExecuted`]) after the
//! post-execute stage of a call that was executed, and `tools/result` ([`ResultReady`]) once for
//! every call, with the result that the caller gets.

mod definition;
mod pipeline;
mod plugin;
mod registry;
mod result;
mod schema;
mod timeout;

#[cfg(test)]
mod tests;

pub use definition::{Card, ContentBlock, ExecContext, FileLocation, Tool, ToolError, code};
pub use pipeline::{
    Approval, Approver, Decision, ExecuteWrapper, Executed, Invocation, Next, PostExecute,
    PreExecute, Verdict,
};
pub use plugin::ToolsPlugin;
pub use registry::{RegisterError, StageHandle, ToolHandle, ToolRegistry, ToolSchema};
pub use result::{ContextMessage, PostExecuted, ResultReady, ToolCall, ToolResult};
pub use timeout::{TimeoutPolicyConfig, TimeoutPolicyPlugin};
