//! The baseline at the boundary of a step (INS-2, INS-15, INS-22).

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::{
    AgentError, MessageId, PreStep, PreStepContext, PreStepDecision, PreStepNext, UserMessage,
};

use crate::plugin::{Instructions, Place};
use crate::round::{Message, Occasion};
use crate::sessions::Boundary;
use crate::state::source_of;

/// Puts the baseline of each loop instance into the first step that is entered.
pub(crate) struct BaselineStage(Arc<Instructions>);

impl BaselineStage {
    pub(crate) fn new(instructions: Arc<Instructions>) -> Self {
        Self(instructions)
    }

    /// What is to be told at this boundary: none when the loop has its baseline, or when there is
    /// no saying at the moment.
    async fn composed(
        &self,
        place: &Place,
        context: &PreStepContext<'_>,
    ) -> Option<Option<Message>> {
        let _turn = tokio::select! {
            turn = place.tracked.turn.lock() => turn,
            _ = context.cancel.cancelled() => return None,
        };
        if settled(place, context) {
            return None;
        }
        let look = self.0.look(place, Occasion::Boundary, true, context.cancel);
        look.await.ok()
    }
}

/// Whether this loop instance has its baseline. One that was running when the plugin was mounted
/// keeps what is visible (INS-22).
fn settled(place: &Place, context: &PreStepContext<'_>) -> bool {
    let mut inner = place.tracked.catch_up(&place.session, &place.cwd);
    let visible = inner.tracker.visible().baseline.is_some();
    let new = !inner.loops.contains_key(&context.agent);
    let boundary = inner.loops.entry(context.agent).or_default();
    if new && context.entered_before && visible {
        boundary.settled = true;
    }
    if let Some((since, source)) = boundary.entering.take() {
        // Somebody further out may have taken it out again.
        boundary.settled |= place.session.read(|log| {
            let new = usize::try_from(since).unwrap_or(usize::MAX);
            let mut new = log.events().get(new..).unwrap_or_default().iter();
            new.any(|event| source_of(event).is_some_and(|own| own == source))
        });
    }
    boundary.settled
}

#[async_trait]
impl PreStep for BaselineStage {
    async fn pre_step(
        &self,
        context: &PreStepContext<'_>,
        batch: Vec<UserMessage>,
        next: PreStepNext<'_>,
    ) -> Result<PreStepDecision, AgentError> {
        let Some(place) = self.0.place(context.session) else {
            return next.run(batch).await;
        };
        let Some(message) = self.composed(&place, context).await else {
            return next.run(batch).await;
        };
        let change = |change: &dyn Fn(&mut Boundary)| {
            let mut inner = place.tracked.lock();
            change(inner.loops.entry(context.agent).or_default());
        };
        let queued = place
            .tracked
            .lock()
            .loops
            .get(&context.agent)
            .and_then(|boundary| boundary.queued);
        let claimed = queued.and_then(|id| batch.iter().find(|own| own.id == id).cloned());

        let decision = next.run(batch).await?;
        let batch = match decision {
            PreStepDecision::Enter(batch) if context.step > 1 || !batch.is_empty() => batch,
            waiting => {
                let queued = requeue(context, queued, message.as_ref());
                change(&|boundary| boundary.queued = queued);
                return Ok(waiting);
            }
        };
        let kept = claimed
            .as_ref()
            .and_then(|claimed| batch.iter().find(|own| own.id == claimed.id));
        let taken_out = claimed.is_some() && kept.is_none();
        let rewritten = kept.is_some() && kept != claimed.as_ref();
        if let (Some(queued), None) = (queued, &claimed) {
            context.inbox.remove(queued);
        }
        change(&|boundary| boundary.queued = None);
        if taken_out || rewritten {
            // Somebody decided on it; a later boundary composes what is not in the log by then.
            let since = context.session.read(dsh_session::Log::last_seq);
            if let (true, Some(message)) = (rewritten, &message) {
                change(&|boundary| boundary.entering = Some((since, message.source.clone())));
            }
            return Ok(PreStepDecision::Enter(batch));
        }
        let Some(message) = message else {
            change(&|boundary| boundary.settled = true);
            let own = |own: &UserMessage| Some(own.id) != queued;
            let batch = batch.into_iter().filter(own).collect();
            return Ok(PreStepDecision::Enter(batch));
        };
        let since = context.session.read(dsh_session::Log::last_seq);
        change(&|boundary| boundary.entering = Some((since, message.source.clone())));
        Ok(PreStepDecision::Enter(folded(batch, queued, &message)))
    }
}

/// Leaves the message in the inbox, in the place of an older copy (INS-2).
fn requeue(
    context: &PreStepContext<'_>,
    queued: Option<MessageId>,
    message: Option<&Message>,
) -> Option<MessageId> {
    match (queued, message) {
        (Some(id), Some(message)) if context.inbox.replace(id, message.to_context()) => Some(id),
        (_, Some(message)) => Some(context.inbox.push_next_step(message.to_context())),
        (Some(id), None) => {
            context.inbox.remove(id);
            None
        }
        (None, None) => None,
    }
}

/// The batch with the message right after the claimed prompt, in the place of an older copy.
fn folded(
    batch: Vec<UserMessage>,
    queued: Option<MessageId>,
    message: &Message,
) -> Vec<UserMessage> {
    let mut fresh = UserMessage::from(message.to_context());
    let mut folded: Vec<UserMessage> = Vec::with_capacity(batch.len() + 1);
    for own in batch {
        if Some(own.id) == queued {
            fresh.id = own.id;
        } else {
            folded.push(own);
        }
    }
    let after_prompt = folded
        .iter()
        .position(UserMessage::is_prompt)
        .map_or(0, |at| at + 1);
    folded.insert(after_prompt, fresh);
    folded
}
