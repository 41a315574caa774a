//! Cancellation with a reason.
//!
//! A [`Cancel`] is a [`CancellationToken`] plus the reason it was cancelled for, set once. It is
//! handed down unchanged from the caller to whatever does the work (SEAM-10), so that the outcome
//! can name who gave up: the caller, a deadline, or the disposal of the thing that was working.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Why work was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The caller no longer wants the result.
    Caller,
    /// A deadline of the caller's passed; the budget it had is named (RUN-7).
    Timeout(Duration),
    /// What was doing the work is being disposed (DIS-1).
    Disposed,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str("cancelled by the caller"),
            Self::Timeout(budget) => write!(f, "timed out after {} ms", budget.as_millis()),
            Self::Disposed => f.write_str("disposed"),
        }
    }
}

/// A cancellation that can be observed by many and is given with a reason, once.
///
/// Cloning shares the cancellation; [`Cancel::child`] makes one that also ends with its parent.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Node>);

#[derive(Debug)]
struct Node {
    token: CancellationToken,
    reason: OnceLock<CancelReason>,
    parent: Option<Cancel>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A cancellation of its own, not yet given.
    pub fn new() -> Self {
        Self(Arc::new(Node {
            token: CancellationToken::new(),
            reason: OnceLock::new(),
            parent: None,
        }))
    }

    /// A cancellation that ends with `self`, for `self`'s reason, or by itself before that.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Node {
            token: self.0.token.child_token(),
            reason: OnceLock::new(),
            parent: Some(self.clone()),
        }))
    }

    /// Gives the cancellation. The first reason counts; returns whether this call was the first.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let first = !self.is_cancelled() && self.0.reason.set(reason).is_ok();
        self.0.token.cancel();
        first
    }

    /// Whether it was given, here or on an ancestor.
    pub fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// The reason, once given: this node's own, else the nearest ancestor's.
    pub fn reason(&self) -> Option<CancelReason> {
        if !self.is_cancelled() {
            return None;
        }
        let mut node = Some(self);
        while let Some(Self(inner)) = node {
            if let Some(reason) = inner.reason.get() {
                return Some(*reason);
            }
            node = inner.parent.as_ref();
        }
        Some(CancelReason::Caller)
    }

    /// Ends with the reason when the cancellation is given; never before.
    pub async fn cancelled(&self) -> CancelReason {
        self.0.token.cancelled().await;
        self.reason().unwrap_or(CancelReason::Caller)
    }

    /// `Err(reason)` if already given.
    pub fn check(&self) -> Result<(), CancelReason> {
        self.reason().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts() {
        let cancel = Cancel::new();
        assert_eq!(cancel.reason(), None);
        assert!(cancel.cancel(CancelReason::Disposed));
        assert!(!cancel.cancel(CancelReason::Caller));
        assert_eq!(cancel.reason(), Some(CancelReason::Disposed));
    }

    #[test]
    fn a_child_ends_with_its_parent_and_for_its_reason() {
        let parent = Cancel::new();
        let child = parent.child();
        let grandchild = child.child();
        parent.cancel(CancelReason::Timeout(Duration::from_millis(5)));
        assert_eq!(
            grandchild.reason(),
            Some(CancelReason::Timeout(Duration::from_millis(5)))
        );
        assert_eq!(
            child.check(),
            Err(CancelReason::Timeout(Duration::from_millis(5)))
        );
    }

    #[test]
    fn a_child_ends_alone() {
        let parent = Cancel::new();
        let child = parent.child();
        child.cancel(CancelReason::Caller);
        assert!(!parent.is_cancelled());
        assert_eq!(child.reason(), Some(CancelReason::Caller));
    }
}
