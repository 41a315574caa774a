//! Which call is made under which (RUN-15).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_session::ContextMessage;

/// Names one call. No other call of the process has the same one, also not a call whose id the
/// model repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecToken(u64);

impl ExecToken {
    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ExecToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The tools that a call is made under, itself included, and what the calls that it makes leave for
/// its result. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Nest(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tool: String,
    /// The id of the model's own call that all of this is made under.
    call: String,
    outer: Option<Nest>,
    deferred: Mutex<Deferred>,
}

#[derive(Default)]
struct Deferred {
    contexts: Vec<ContextMessage>,
    closed: bool,
}

impl Nest {
    /// Of a call that the model makes.
    pub(crate) fn top(tool: &str, call: &str) -> Self {
        Self::new(tool, call, None)
    }

    /// Of a call that this one makes.
    pub(crate) fn under(&self, tool: &str) -> Self {
        Self::new(tool, &self.0.call, Some(self.clone()))
    }

    /// The id of the model's own call that this one is, or is made under.
    pub(crate) fn call(&self) -> &str {
        &self.0.call
    }

    fn new(tool: &str, call: &str, outer: Option<Self>) -> Self {
        Self(Arc::new(Inner {
            tool: tool.to_owned(),
            call: call.to_owned(),
            outer,
            deferred: Mutex::default(),
        }))
    }

    /// Whether a call of that tool is under way here or further out.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        let mut nest = Some(self);
        while let Some(Self(inner)) = nest {
            if inner.tool == tool {
                return true;
            }
            nest = inner.outer.as_ref();
        }
        false
    }

    /// Keeps contexts for the result; drops them if that has been made.
    pub(crate) fn defer(&self, contexts: &[ContextMessage]) {
        let mut deferred = self.deferred();
        if !deferred.closed {
            deferred.contexts.extend_from_slice(contexts);
        }
    }

    /// Takes what was kept, and keeps no more.
    pub(crate) fn close(&self) -> Vec<ContextMessage> {
        let mut deferred = self.deferred();
        deferred.closed = true;
        std::mem::take(&mut deferred.contexts)
    }

    fn deferred(&self) -> MutexGuard<'_, Deferred> {
        // No change spans two critical sections, so the state is whole after any panic.
        let lock = self.0.deferred.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Nest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nest").field(&self.0.tool).finish()
    }
}
