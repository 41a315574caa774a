//! Which check begins next: pure.

use std::collections::{BTreeMap, VecDeque};

/// Checks that wait and checks that run, within a number of places and an amount of memory.
#[derive(Debug)]
pub(super) struct Admission {
    places: usize,
    /// In bytes.
    memory: u64,
    /// Index and need of each.
    waiting: VecDeque<(usize, u64)>,
    /// By index, what each holds: its need, or more where more was seen.
    running: BTreeMap<usize, u64>,
}

impl Admission {
    /// For checks with these needs in bytes, by their index.
    pub(super) fn new(places: usize, memory: u64, needs: impl IntoIterator<Item = u64>) -> Self {
        Self {
            places,
            memory,
            waiting: needs.into_iter().enumerate().collect(),
            running: BTreeMap::new(),
        }
    }

    /// The next to begin, if one fits: the first of those that wait that does. One that needs more
    /// than there is at all begins when nothing else runs.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.running.len() >= self.places {
            return None;
        }
        let held: u64 = self
            .running
            .values()
            .fold(0, |sum, held| sum.saturating_add(*held));
        let alone = self.running.is_empty();
        let fits = |(_, need): &(usize, u64)| alone || held.saturating_add(*need) <= self.memory;
        let at = self.waiting.iter().position(fits)?;
        let (index, need) = self.waiting.remove(at)?;
        self.running.insert(index, need);
        Some(index)
    }

    /// A check that runs was seen to hold so much.
    pub(super) fn seen(&mut self, index: usize, bytes: u64) {
        if let Some(held) = self.running.get_mut(&index) {
            *held = (*held).max(bytes);
        }
    }

    /// A check has ended.
    pub(super) fn ended(&mut self, index: usize) {
        self.running.remove(&index);
    }

    /// Nothing that waits begins any more.
    pub(super) fn close(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(admission: &mut Admission) -> Vec<usize> {
        std::iter::from_fn(|| admission.next()).collect()
    }

    #[test]
    fn as_many_begin_as_there_are_places_and_memory_for() {
        let mut admission = Admission::new(2, 100, [10, 10, 10]);
        assert_eq!(begun(&mut admission), [0, 1]);
        admission.ended(0);
        assert_eq!(begun(&mut admission), [2]);
        let mut admission = Admission::new(9, 100, [60, 60, 30, 50]);
        // The third fits beside the first, the second has to wait for both.
        assert_eq!(begun(&mut admission), [0, 2]);
        admission.ended(0);
        assert_eq!(begun(&mut admission), [1]);
        assert_eq!((admission.running(), admission.waiting()), (2, 1));
    }

    #[test]
    fn one_that_needs_more_than_there_is_runs_alone() {
        let mut admission = Admission::new(4, 100, [500, 10]);
        assert_eq!(begun(&mut admission), [0]);
        admission.ended(0);
        assert_eq!(begun(&mut admission), [1]);
    }

    #[test]
    fn what_is_seen_counts_where_it_is_more_than_was_said() {
        let mut admission = Admission::new(4, 100, [10, 80, 10]);
        assert_eq!(admission.next(), Some(0));
        admission.seen(0, 50);
        admission.seen(0, 20);
        assert_eq!(begun(&mut admission), [2]);
        admission.ended(0);
        assert_eq!(begun(&mut admission), [1]);
    }

    #[test]
    fn nothing_begins_behind_the_close() {
        let mut admission = Admission::new(1, 100, [10, 10]);
        assert_eq!(admission.next(), Some(0));
        admission.close();
        admission.ended(0);
        assert_eq!((admission.next(), admission.waiting()), (None, 0));
    }
}
