//! Tool definitions, registry, call pipeline and timeout policy.
//!
//! A [`Tool`] is registered with the [`ToolRegistry`]; a call passes fixed stages, each of which
//! plugins may join: pre-execute, execute wrappers, post-execute, and one result event (RUN-6). The
//! model sees a tool's name, description and parameters, nothing else (RUN-5).
//!
//! Two events are emitted on the kernel's bus: `tools/post-execute` ([`PostExecuted`]) after the
//! post-execute stage of a call that was executed, and `tools/result` ([`ResultReady`]) once for
//! every call, with the result that the caller gets.
//!
//! A tool may call others through the same pipeline ([`ToolRegistry::call_nested`], RUN-15). Each
//! call has an [`ExecToken`], and a nested one knows that of the model's call it is made under.

mod definition;
mod pipeline;
mod plugin;
mod registry;
mod result;
mod schema;
mod timeout;
mod token;

#[cfg(test)]
mod tests;

pub use definition::{Card, ExecContext, FileLocation, Tool, ToolError, code};
pub use dsh_session::{ContentBlock, ContextMessage, MessageSource, ToolCall, ToolSchema};
pub use pipeline::{
    Approval, Approver, Decision, ExecuteWrapper, Executed, Invocation, Next, PostExecute,
    PreExecute, Verdict,
};
pub use plugin::ToolsPlugin;
pub use registry::{RegisterError, StageHandle, ToolHandle, ToolRegistry};
pub use result::{PostExecuted, ResultReady, ToolResult};
pub use schema::nearest;
pub use timeout::{TimeoutPolicyConfig, TimeoutPolicyPlugin};
pub use token::ExecToken;
