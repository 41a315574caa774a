//! The tracking of each session, kept apart (INS-19).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use dsh_agent::{AgentId, MessageId};
use dsh_kernel::lock;
use dsh_session::{ContentBlock, ContextMessage, Session};

use crate::layout::Layout;
use crate::round::Message;
use crate::source::InstructionSource;
use crate::tracker::Tracker;

/// How many sessions are tracked at once. The one that was not used for the longest time gives way;
/// its tracking is made again from its log.
const MOST: usize = 256;

/// All of them. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    used: u64,
    by_address: HashMap<usize, (u64, Arc<Tracked>)>,
}

/// One session.
#[derive(Default)]
pub(crate) struct Tracked {
    /// Held while files are looked at, so that two calls of a step do not find the same news.
    pub(crate) turn: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
}

/// What is kept of one session.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) tracker: Tracker,
    pub(crate) layout: Option<Arc<Layout>>,
    pub(crate) loops: HashMap<AgentId, Boundary>,
}

/// Where a loop instance stands with its baseline (INS-2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundary {
    /// It has entered, or there was none to enter.
    pub(crate) settled: bool,
    /// The copy in the inbox.
    pub(crate) queued: Option<MessageId>,
    /// What was put into a step, and the last event then. In the log, it is settled.
    pub(crate) entering: Option<(u64, InstructionSource)>,
}

impl Sessions {
    /// The tracking of a session, if there is any.
    pub(crate) fn find(&self, session: &Session) -> Option<Arc<Tracked>> {
        let known = lock(&self.0);
        let (_, tracked) = known.by_address.get(&address(session))?;
        Some(Arc::clone(tracked))
    }

    /// The tracking of a session. An address may be that of a session which is gone; the tracker
    /// notices by the log.
    pub(crate) fn of(&self, session: &Session) -> Arc<Tracked> {
        let mut known = lock(&self.0);
        known.used += 1;
        let used = known.used;
        let (last, tracked) = known.by_address.entry(address(session)).or_default();
        *last = used;
        let tracked = Arc::clone(tracked);
        if known.by_address.len() > MOST {
            let oldest = known.by_address.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                known.by_address.remove(&oldest);
            }
        }
        tracked
    }
}

/// A session's clones share its header.
fn address(session: &Session) -> usize {
    std::ptr::from_ref(session.header()).addr()
}

impl Tracked {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Takes in what the session's log has new.
    pub(crate) fn catch_up(&self, session: &Session, cwd: &Path) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        session.read(|log| inner.tracker.catch_up(log));
        if inner
            .layout
            .as_ref()
            .is_some_and(|layout| layout.cwd() != cwd)
        {
            inner.layout = None;
        }
        inner
    }
}

impl Message {
    pub(crate) fn to_context(&self) -> ContextMessage {
        ContextMessage {
            source: self.source.to_source(),
            content: vec![ContentBlock::text(self.text.as_str())],
        }
    }
}
