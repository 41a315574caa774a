//! What waits to enter a conversation: prompts of the user, and contexts of plugins.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_session::{ContentBlock, ContextMessage, MessageSource};

/// Identifies a message from the moment it is made until it is logged; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(u64);

impl MessageId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}", self.0)
    }
}

/// A message that may enter the conversation in the user's role.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// Its identity, which it keeps when its content is replaced.
    pub id: MessageId,
    /// Where it comes from.
    pub source: MessageSource,
    /// What the model reads.
    pub content: Vec<ContentBlock>,
}

impl UserMessage {
    /// A message with an identity of its own.
    pub fn new(source: MessageSource, content: Vec<ContentBlock>) -> Self {
        Self {
            id: MessageId::next(),
            source,
            content,
        }
    }

    /// Whether the user sent it, as opposed to a plugin.
    pub fn is_prompt(&self) -> bool {
        self.source.kind == MessageSource::PROMPT
    }
}

impl From<ContextMessage> for UserMessage {
    fn from(ContextMessage { source, content }: ContextMessage) -> Self {
        Self::new(source, content)
    }
}

/// The queue of one agent: prompts, one of which is claimed for each turn, and next-step contexts,
/// all of which are claimed for each step. Cloning shares it.
///
/// What a step has claimed is no longer [`pending`](Self::pending), and can still be replaced and
/// removed by its id. If the step enters, what it claimed is spent, whether or not the pre-step
/// stages let it in. If it is rejected, lets nothing in at a turn's first step, fails or is cancelled
/// before that, the contexts go back to the head of the queue, as replaced and without those removed;
/// the prompt is spent (INS-2).
#[derive(Clone, Default)]
pub struct Inbox(Arc<Mutex<Queues>>);

#[derive(Default)]
struct Queues {
    prompts: VecDeque<UserMessage>,
    contexts: VecDeque<UserMessage>,
    /// The contexts of the step that is deciding.
    claimed: Vec<UserMessage>,
}

impl Inbox {
    /// An empty inbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues a prompt; each turn claims one, in order.
    pub fn push_prompt(&self, text: impl Into<String>) -> MessageId {
        self.push_prompt_blocks(vec![ContentBlock::text(text)])
    }

    /// Queues a prompt of several blocks.
    pub fn push_prompt_blocks(&self, content: Vec<ContentBlock>) -> MessageId {
        let message = UserMessage::new(MessageSource::prompt(), content);
        let id = message.id;
        self.queues().prompts.push_back(message);
        id
    }

    /// Queues a context, to enter with the next step. It starts no turn by itself.
    pub fn push_next_step(&self, context: ContextMessage) -> MessageId {
        let message = UserMessage::from(context);
        let id = message.id;
        self.queues().contexts.push_back(message);
        id
    }

    /// Puts a context in the place of a queued or claimed message, whose id it takes over. False if
    /// there is none of that id any more.
    pub fn replace(&self, id: MessageId, context: ContextMessage) -> bool {
        let mut queues = self.queues();
        let Some(message) = queues.find(id) else {
            return false;
        };
        message.source = context.source;
        message.content = context.content;
        true
    }

    /// Removes a queued or claimed message. False if there is none of that id any more.
    pub fn remove(&self, id: MessageId) -> bool {
        let mut queues = self.queues();
        let before = queues.len();
        queues.prompts.retain(|message| message.id != id);
        queues.contexts.retain(|message| message.id != id);
        queues.claimed.retain(|message| message.id != id);
        queues.len() < before
    }

    /// What is queued and not claimed: the prompts, then the contexts, each in order.
    pub fn pending(&self) -> Vec<UserMessage> {
        let queues = self.queues();
        queues
            .prompts
            .iter()
            .chain(&queues.contexts)
            .cloned()
            .collect()
    }

    /// How many prompts wait for a turn.
    pub fn queued_prompts(&self) -> usize {
        self.queues().prompts.len()
    }

    /// Takes the first prompt, or the one of that id, out of the queue.
    pub(crate) fn claim_prompt(&self, id: Option<MessageId>) -> Option<UserMessage> {
        let mut queues = self.queues();
        match id {
            None => queues.prompts.pop_front(),
            Some(id) => {
                let at = queues.prompts.iter().position(|message| message.id == id)?;
                queues.prompts.remove(at)
            }
        }
    }

    /// Claims all contexts for a step, until the claim is spent or dropped.
    pub(crate) fn claim_contexts(&self) -> Claim {
        let mut queues = self.queues();
        let contexts: Vec<_> = queues.contexts.drain(..).collect();
        queues.claimed.clone_from(&contexts);
        drop(queues);
        Claim {
            inbox: self.clone(),
            contexts,
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // No change spans two critical sections, so the queues are whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn find(&mut self, id: MessageId) -> Option<&mut UserMessage> {
        self.prompts
            .iter_mut()
            .chain(&mut self.contexts)
            .chain(&mut self.claimed)
            .find(|message| message.id == id)
    }

    fn len(&self) -> usize {
        self.prompts.len() + self.contexts.len() + self.claimed.len()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues = self.queues();
        f.debug_struct("Inbox")
            .field("prompts", &queues.prompts.len())
            .field("contexts", &queues.contexts.len())
            .field("claimed", &queues.claimed.len())
            .finish()
    }
}

/// The contexts of the step that is deciding. Dropped, it puts them back at the head of the queue.
pub(crate) struct Claim {
    inbox: Inbox,
    contexts: Vec<UserMessage>,
}

impl Claim {
    /// The contexts, as claimed.
    pub(crate) fn contexts(&self) -> &[UserMessage] {
        &self.contexts
    }

    /// Spends what was claimed: the step enters.
    pub(crate) fn spend(self) {
        self.inbox.queues().claimed.clear();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut queues = self.inbox.queues();
        let claimed = std::mem::take(&mut queues.claimed);
        for message in claimed.into_iter().rev() {
            queues.contexts.push_front(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(text: &str) -> ContextMessage {
        ContextMessage {
            source: MessageSource::new("test", serde_json::Map::new()),
            content: vec![ContentBlock::text(text)],
        }
    }

    fn texts(messages: &[UserMessage]) -> Vec<&str> {
        messages
            .iter()
            .flat_map(|message| message.content.iter().map(ContentBlock::as_text))
            .collect()
    }

    /// RUN-12: prompts and contexts are queues of their own.
    #[test]
    fn prompts_are_claimed_one_by_one_and_contexts_together() {
        let inbox = Inbox::new();
        inbox.push_prompt("p1");
        inbox.push_next_step(context("c1"));
        let second = inbox.push_prompt("p2");
        inbox.push_prompt("p3");
        inbox.push_next_step(context("c2"));
        assert_eq!(texts(&inbox.pending()), ["p1", "p2", "p3", "c1", "c2"]);
        assert_eq!(texts(&[inbox.claim_prompt(Some(second)).unwrap()]), ["p2"]);
        assert_eq!(inbox.claim_prompt(Some(second)), None);
        assert_eq!(texts(&[inbox.claim_prompt(None).unwrap()]), ["p1"]);
        assert_eq!(texts(&[inbox.claim_prompt(None).unwrap()]), ["p3"]);
        assert_eq!(inbox.claim_prompt(None), None);
        let claim = inbox.claim_contexts();
        assert_eq!(texts(claim.contexts()), ["c1", "c2"]);
        assert!(inbox.pending().is_empty());
        claim.spend();
        assert!(inbox.pending().is_empty());
    }

    /// INS-2: a queued copy is replaced in its place, never duplicated.
    #[test]
    fn a_queued_message_is_replaced_exactly() {
        let inbox = Inbox::new();
        inbox.push_next_step(context("a"));
        let b = inbox.push_next_step(context("b"));
        inbox.push_next_step(context("c"));
        assert!(inbox.replace(b, context("B")));
        assert_eq!(texts(&inbox.pending()), ["a", "B", "c"]);
        assert_eq!(inbox.pending()[1].id, b);
        assert!(inbox.remove(b));
        assert!(!inbox.remove(b));
        assert!(!inbox.replace(b, context("again")));
        assert_eq!(texts(&inbox.pending()), ["a", "c"]);
    }

    /// INS-2: what an unentered step had claimed is queued as it was, before what came later, and
    /// replaced or removed where somebody asked for it meanwhile.
    #[test]
    fn a_claim_that_is_not_spent_goes_back_to_the_head() {
        let inbox = Inbox::new();
        let a = inbox.push_next_step(context("a"));
        let b = inbox.push_next_step(context("b"));
        inbox.push_next_step(context("c"));
        let claim = inbox.claim_contexts();
        inbox.push_next_step(context("later"));
        assert!(inbox.replace(a, context("A")));
        assert!(inbox.remove(b));
        assert_eq!(texts(&inbox.pending()), ["later"]);
        drop(claim);
        assert_eq!(texts(&inbox.pending()), ["A", "c", "later"]);
        assert_eq!(inbox.pending()[0].id, a);
    }
}
