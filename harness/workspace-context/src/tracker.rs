//! What one session has loaded, what is on its way there, and what is remembered of the files
//! (INS-14, INS-19, INS-21). Pure: it is told of the log and of results.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{Event, EventBody, Log};

use crate::layout::Layout;
use crate::round::{Cache, Limits, Occasion, Outcome, Round};
use crate::source::InstructionSource;
use crate::state::{State, source_of};

/// A context that rides on a result which is not in the log yet.
#[derive(Clone, Debug)]
struct Pending {
    /// The call that the model made.
    owner: u64,
    /// The call on whose result it rides now: the same, or one nested in it.
    call: u64,
    /// The last event when it was staged.
    since: u64,
    source: InstructionSource,
}

/// The tracking of one session. It can be rebuilt from the log at any time; what is lost then is
/// what saves reads.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// The last event that was taken in, which tells this log from another.
    last: Option<Arc<Event>>,
    visible: State,
    /// Files that were ever loaded, also where compaction has hidden it.
    known: HashSet<PathBuf>,
    pending: Vec<Pending>,
    cache: Cache,
}

impl Tracker {
    /// Takes in what the log has new. The end of a step clears what was staged before it and was not
    /// logged, with its shortcut (INS-21); a compaction has everything looked at anew (INS-14).
    pub(crate) fn catch_up(&mut self, log: &Log) {
        let same = |last: &Arc<Event>| {
            let there = log.event(last.seq);
            there.is_some_and(|event| Arc::ptr_eq(event, last))
        };
        if !self.last.as_ref().is_none_or(same) {
            // Another log than before: nothing that is remembered holds.
            *self = Self::default();
        }
        let new = usize::try_from(self.upto()).unwrap_or(usize::MAX);
        let mut hidden = false;
        for event in log.events().get(new..).unwrap_or_default() {
            match &event.body {
                EventBody::UserMessage { .. } => {
                    if let Some(source) = source_of(event) {
                        self.logged(&source);
                    }
                }
                EventBody::StepEnd { .. } => self.step_ended(event.seq),
                EventBody::Compaction { .. } => hidden = true,
                _ => {}
            }
        }
        self.last = log.events().last().cloned();
        if hidden {
            self.visible = State::default();
            for event in log.visible() {
                if let Some(source) = source_of(event) {
                    self.visible.add(&source);
                }
            }
        }
    }

    /// The seq of the last event that was taken in; 0 before the first.
    pub(crate) fn upto(&self) -> u64 {
        self.last.as_ref().map_or(0, |event| event.seq)
    }

    fn logged(&mut self, source: &InstructionSource) {
        self.visible.add(source);
        let paths = source.changes.iter().map(|change| &change.path);
        self.known.extend(paths.cloned());
        let arrived = self.pending.iter().position(|own| own.source == *source);
        if let Some(arrived) = arrived {
            self.pending.remove(arrived);
        }
    }

    fn step_ended(&mut self, seq: u64) {
        let lost = self.pending.extract_if(.., |own| own.since < seq);
        for change in lost.flat_map(|own| own.source.changes) {
            self.cache.remove(&change.path);
        }
    }

    /// What is loaded, with what is on its way (INS-21).
    pub(crate) fn state(&self) -> State {
        let mut state = self.visible.clone();
        for own in &self.pending {
            state.add(&own.source);
        }
        state
    }

    /// What is visible.
    pub(crate) fn visible(&self) -> &State {
        &self.visible
    }

    /// A round over `state`, which is the tracker's.
    pub(crate) fn round<'a>(
        &self,
        occasion: Occasion<'_>,
        layout: &'a Layout,
        state: &'a State,
        limits: Limits,
    ) -> Round<'a> {
        let known = |path: &Path| self.known.contains(path);
        Round::new(occasion, layout, state, known, &self.cache, limits)
    }

    /// Remembers what a round found of the files.
    pub(crate) fn remember(&mut self, outcome: &Outcome) {
        for (path, cached) in &outcome.cache {
            match cached {
                Some(cached) => self.cache.insert(path.clone(), cached.clone()),
                None => self.cache.remove(path),
            };
        }
    }

    /// Counts a context as loaded that rides on the result of `call`, made within `owner` (INS-16,
    /// INS-21).
    pub(crate) fn stage(&mut self, owner: u64, call: u64, source: InstructionSource) {
        let staged = |own: &Pending| own.owner == owner && own.source == source;
        if self.pending.iter().any(staged) {
            return;
        }
        let since = self.upto();
        self.pending.push(Pending {
            owner,
            call,
            since,
            source,
        });
    }

    /// The result of a call is final: of what was staged for it, only what it still carries stays
    /// staged. `outer` is the call that made it, if it is a nested one.
    pub(crate) fn resulted(
        &mut self,
        call: u64,
        outer: Option<u64>,
        carried: Vec<InstructionSource>,
    ) {
        let lost: Vec<_> = self
            .pending
            .extract_if(.., |own| own.call == call || own.owner == call)
            .collect();
        for own in lost {
            if !carried.contains(&own.source) {
                for change in own.source.changes {
                    self.cache.remove(&change.path);
                }
            }
        }
        let owner = outer.unwrap_or(call);
        for source in carried {
            self.stage(owner, owner, source);
        }
    }
}
