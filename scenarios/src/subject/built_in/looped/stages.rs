//! Stages of the pipeline and of the pre-step chain that do what a case arranged.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_harness::agent::{
    AgentError, AgentService, HookHandle, PreStep, PreStepContext, PreStepDecision, PreStepNext,
    UserMessage,
};
use dsh_harness::session::{ContentBlock, ContextMessage, MessageSource};
use dsh_harness::tools::{
    Decision, ExecContext, ExecuteWrapper, Executed, Invocation, Next, PostExecute, PreExecute,
    StageHandle, ToolError, ToolRegistry, Verdict,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::arranged::{Arranged, Look, lock};

/// What becomes of steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepRule {
    /// Of this session only.
    #[serde(default)]
    session: Option<String>,
    /// How many more steps; none for all.
    #[serde(default = "one")]
    times: Option<u64>,
    #[serde(default)]
    how: StepHow,
    #[serde(default)]
    reason: Option<String>,
    /// With `strip`: messages of this kind of source.
    #[serde(default)]
    kind: Option<String>,
    /// Whether it is decided outside of all other stages, which have decided by then, or inside of
    /// them.
    #[serde(default)]
    outer: bool,
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepHow {
    /// It is not entered.
    #[default]
    Reject,
    /// It is entered with nothing.
    Empty,
    /// It is entered without the messages of some source.
    Strip,
    /// Its stage fails.
    Fail,
    /// Its stage panics.
    Panic,
}

/// What becomes of calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallRule {
    /// Of this tool only.
    #[serde(default)]
    name: Option<String>,
    /// How many more calls; none for all.
    #[serde(default = "one")]
    times: Option<u64>,
    #[serde(default)]
    how: CallHow,
    #[serde(default)]
    reason: Option<String>,
    /// With `replace`: the value. With `context`: data of the source.
    #[serde(default)]
    value: Option<Value>,
    /// Whether it is decided before the other stages, or after them.
    #[serde(default)]
    first: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallHow {
    /// Its result is held back.
    #[default]
    Block,
    /// It is not executed.
    Deny,
    /// Somebody is asked, and nobody is there.
    Ask,
    /// Its value is another.
    Replace,
    /// A message is added behind the results.
    Context,
    /// A stage before it panics.
    PanicBefore,
    /// A stage around it panics.
    PanicAround,
    /// A stage after it panics.
    PanicAfter,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the default of an optional member"
)]
const fn one() -> Option<u64> {
    Some(1)
}

/// Counts one down; whether there was one.
fn spend(times: &mut Option<u64>) -> bool {
    match times {
        None => true,
        Some(0) => false,
        Some(times) => {
            *times -= 1;
            true
        }
    }
}

/// All that was arranged.
pub(super) struct Stages {
    arranged: Arc<Arranged>,
    steps: Mutex<Vec<StepRule>>,
    calls: Mutex<Vec<CallRule>>,
}

impl Stages {
    pub(super) fn new(arranged: Arc<Arranged>) -> Self {
        Self {
            arranged,
            steps: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    pub(super) fn on_step(&self, rule: StepRule) {
        lock(&self.steps).push(rule);
    }

    pub(super) fn on_call(&self, rule: CallRule) {
        lock(&self.calls).push(rule);
    }

    /// Stands inside and outside of all other stages of the chain.
    pub(super) fn on_steps(self: &Arc<Self>, agents: &AgentService) -> Vec<HookHandle> {
        [(i32::MIN, true), (i32::MAX, false)]
            .map(|(order, outer)| {
                let stages = Arc::clone(self);
                agents.on_pre_step(order, Arc::new(Step { stages, outer }))
            })
            .into()
    }

    /// Stands before and after all other stages of the pipeline.
    pub(super) fn on_calls(self: &Arc<Self>, tools: &ToolRegistry) -> Vec<StageHandle> {
        let first = |first| {
            let stages = Arc::clone(self);
            Arc::new(Call { stages, first })
        };
        vec![
            tools.before_execute(i32::MAX, first(false)),
            // Inside of the timeout policy, as the tool itself is.
            tools.wrap_execute(i32::MAX, first(false)),
            tools.after_execute(i32::MIN, first(true)),
            tools.after_execute(i32::MAX, first(false)),
        ]
    }

    fn step(&self, context: &PreStepContext<'_>, outer: bool) -> Option<StepRule> {
        let session = &context.session.header().id;
        let mut rules = lock(&self.steps);
        let mut meant = rules.iter_mut().filter(|rule| {
            rule.outer == outer && rule.session.as_ref().is_none_or(|meant| meant == session)
        });
        meant.find_map(|rule| spend(&mut rule.times).then(|| rule.clone()))
    }

    fn call(&self, invocation: &Invocation, fits: impl Fn(&CallRule) -> bool) -> Option<CallRule> {
        let name = &invocation.call.name;
        let mut rules = lock(&self.calls);
        let mut meant = rules
            .iter_mut()
            .filter(|rule| fits(rule) && rule.name.as_ref().is_none_or(|meant| meant == name));
        meant.find_map(|rule| spend(&mut rule.times).then(|| rule.clone()))
    }
}

struct Step {
    stages: Arc<Stages>,
    outer: bool,
}

#[async_trait]
impl PreStep for Step {
    async fn pre_step(
        &self,
        context: &PreStepContext<'_>,
        batch: Vec<UserMessage>,
        next: PreStepNext<'_>,
    ) -> Result<PreStepDecision, AgentError> {
        if !self.outer {
            // A stage that is cancelled may be dropped where it stands; this one says so.
            let held = self.stages.arranged.gate(Look::Step, context.cancel).await;
            held.map_err(|reason| AgentError::new("PRE_STEP_CANCELLED", reason.to_string()))?;
        }
        let Some(rule) = self.stages.step(context, self.outer) else {
            return next.run(batch).await;
        };
        let stripped = |messages: Vec<UserMessage>| -> Vec<UserMessage> {
            let kept = messages.into_iter();
            kept.filter(|message| Some(&message.source.kind) != rule.kind.as_ref())
                .collect()
        };
        let reason = rule.reason.clone();
        let reason = reason.unwrap_or_else(|| "the case has it so".to_owned());
        match rule.how {
            StepHow::Reject => Ok(PreStepDecision::Reject(reason)),
            StepHow::Empty => Ok(PreStepDecision::Enter(Vec::new())),
            StepHow::Fail => Err(AgentError::new("STAGE_FAILED", reason)),
            StepHow::Panic => panics(reason),
            StepHow::Strip if !self.outer => next.run(stripped(batch)).await,
            StepHow::Strip => Ok(match next.run(batch).await? {
                PreStepDecision::Enter(messages) => PreStepDecision::Enter(stripped(messages)),
                rejected @ PreStepDecision::Reject(_) => rejected,
            }),
        }
    }
}

/// Panics as the case has it, without the words on stderr that tell of a fault nobody meant.
pub(super) fn panics(reason: String) -> ! {
    std::panic::resume_unwind(Box::new(reason))
}

struct Call {
    stages: Arc<Stages>,
    first: bool,
}

#[async_trait]
impl PreExecute for Call {
    async fn decide(&self, invocation: &Invocation) -> Result<Decision, ToolError> {
        let before = [CallHow::Deny, CallHow::Ask, CallHow::PanicBefore];
        let rule = self
            .stages
            .call(invocation, |rule| before.contains(&rule.how));
        let Some(rule) = rule else {
            return Ok(Decision::Allow);
        };
        let reason = rule
            .reason
            .unwrap_or_else(|| "the case has it so".to_owned());
        match rule.how {
            CallHow::Deny => Ok(Decision::Deny(reason)),
            CallHow::Ask => Ok(Decision::Ask(reason)),
            _ => panics(reason),
        }
    }
}

#[async_trait]
impl ExecuteWrapper for Call {
    async fn around(
        &self,
        invocation: &Invocation,
        context: ExecContext,
        next: Next<'_>,
    ) -> Result<Value, ToolError> {
        let arranged = &self.stages.arranged;
        let cancel = context.cancel.clone();
        arranged.gate(Look::Tool, &cancel).await?;
        let rule = self
            .stages
            .call(invocation, |rule| rule.how == CallHow::PanicAround);
        if let Some(rule) = rule {
            panics(rule.reason.unwrap_or_default());
        }
        let value = next.run(context).await;
        arranged.gate(Look::ToolResult, &cancel).await?;
        value
    }
}

#[async_trait]
impl PostExecute for Call {
    async fn review(
        &self,
        invocation: &Invocation,
        _executed: Executed<'_>,
    ) -> Result<Verdict, ToolError> {
        let after = [
            CallHow::Block,
            CallHow::Replace,
            CallHow::Context,
            CallHow::PanicAfter,
        ];
        let rule = self.stages.call(invocation, |rule| {
            rule.first == self.first && after.contains(&rule.how)
        });
        let Some(rule) = rule else {
            return Ok(Verdict::Accept);
        };
        let reason = rule
            .reason
            .unwrap_or_else(|| "the case has it so".to_owned());
        Ok(match rule.how {
            CallHow::Replace => Verdict::Replace(rule.value.unwrap_or_default()),
            CallHow::Context => {
                let data = match rule.value {
                    Some(Value::Object(data)) => data,
                    _ => Map::new(),
                };
                Verdict::AddContext(ContextMessage {
                    source: MessageSource::new("case", data),
                    content: vec![ContentBlock::text(reason)],
                })
            }
            CallHow::PanicAfter => panics(reason),
            _ => Verdict::Block(reason),
        })
    }
}
