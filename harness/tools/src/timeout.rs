//! The timeout policy (RUN-7): one deadline over the whole execution of a call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_kernel::{CancelReason, Context, Plugin, PluginError, ServiceKey};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ExecContext, ExecuteWrapper, Invocation, Next, ToolError, ToolRegistry, code};

/// The largest time a timer takes, in milliseconds.
const MAX_MS: u64 = 2_147_483_647;

/// Configuration of `dsh-tool-call-timeout-policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TimeoutPolicyConfig {
    /// How long a tool whose budget ran out, or whose caller gave up, may take to end by itself, in
    /// milliseconds, 1 to 2147483647. After that its work is dropped where it stands.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub settle_ms: u64,
}

impl Default for TimeoutPolicyConfig {
    fn default() -> Self {
        Self { settle_ms: 500 }
    }
}

/// Gives every call of a tool with a budget a deadline (RUN-7).
///
/// When the deadline wins, the tool's cancellation is given with the budget as its reason, and the
/// result is [`code::TOOL_TIMEOUT`], whatever the tool still returns. A tool without a budget has no
/// deadline. With or without one, a tool deaf to its cancellation is dropped after `settleMs`, so
/// that a turn that is given up ends (RUN-14).
#[derive(Debug, Default)]
pub struct TimeoutPolicyPlugin {
    config: TimeoutPolicyConfig,
}

impl TimeoutPolicyPlugin {
    /// The policy with a configuration of its own.
    pub fn new(config: TimeoutPolicyConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Plugin for TimeoutPolicyPlugin {
    fn name(&self) -> &'static str {
        "dsh-tool-call-timeout-policy"
    }

    fn needs(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<ToolRegistry>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let settle_ms = self.config.settle_ms;
        if settle_ms == 0 || settle_ms > MAX_MS {
            return Err(PluginError::with_code(
                "CONFIG_INVALID",
                format!("settleMs is {settle_ms}; it must be 1 to {MAX_MS} ms"),
            ));
        }
        let registry = ctx.service::<ToolRegistry>()?;
        let policy = TimeoutPolicy {
            settle: Duration::from_millis(settle_ms),
        };
        // Outermost: the budget covers what other wrappers do as well.
        let handle = registry.wrap_execute(i32::MIN, Arc::new(policy));
        ctx.effect("execute wrapper", move || handle.release());
        Ok(())
    }
}

struct TimeoutPolicy {
    settle: Duration,
}

#[async_trait]
impl ExecuteWrapper for TimeoutPolicy {
    async fn around(
        &self,
        invocation: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError> {
        let Some(budget_ms) = invocation.timeout_ms else {
            let cancel = context.cancel.clone();
            let mut work = next.run(context);
            return tokio::select! {
                biased;
                result = &mut work => result,
                reason = cancel.cancelled() => self.settle(work, reason).await,
            };
        };
        let budget = Duration::from_millis(budget_ms);
        let cancel = context.cancel.child();
        let mut work = next.run(context.with_cancel(cancel.clone()));
        let deadline = tokio::time::timeout(budget, cancel.cancelled());
        let ended = tokio::select! {
            biased;
            result = &mut work => return result,
            ended = deadline => ended,
        };
        // The first reason counts: a caller that gave up earlier is not told of a timeout.
        if let Ok(reason) = ended {
            return self.settle(work, reason).await;
        }
        let reason = CancelReason::Timeout(budget);
        let deadline_won = cancel.cancel(reason);
        let settled = self.settle(work, cancel.reason().unwrap_or(reason)).await;
        if deadline_won {
            return Err(timed_out(&invocation.call.name, budget_ms));
        }
        settled
    }
}

impl TimeoutPolicy {
    /// What cancelled work still comes to within the time it has for that; then it is dropped.
    async fn settle(
        &self,
        work: BoxFuture<'_, Result<Value, ToolError>>,
        reason: CancelReason,
    ) -> Result<Value, ToolError> {
        let settled = tokio::time::timeout(self.settle, work).await;
        settled.unwrap_or_else(|_| Err(reason.into()))
    }
}

fn timed_out(name: &str, budget_ms: u64) -> ToolError {
    let message = format!(
        "tool {name:?} did not finish within its budget of {budget_ms} ms and was stopped. \
         Ask for less at once, or go on another way."
    );
    ToolError::new(code::TOOL_TIMEOUT, message)
}
