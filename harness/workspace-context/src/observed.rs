//! Which files a running call has touched (INS-5).

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many touches are kept. A call that is dropped before its result leaves its own behind; they
/// give way to later ones.
const MOST: usize = 4096;

/// Touches by the number of the call's token. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Touched(Arc<Mutex<VecDeque<(u64, PathBuf)>>>);

impl Touched {
    pub(crate) fn add(&self, token: u64, path: PathBuf) {
        let mut touches = self.touches();
        if touches.len() == MOST {
            touches.pop_front();
        }
        touches.push_back((token, path));
    }

    /// What a call has touched; nothing the second time.
    pub(crate) fn take(&self, token: u64) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        self.touches().retain_mut(|(own, path)| {
            let keep = *own != token;
            if !keep {
                paths.push(std::mem::take(path));
            }
            keep
        });
        paths
    }

    fn touches(&self) -> MutexGuard<'_, VecDeque<(u64, PathBuf)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-5.
    #[test]
    fn touches_are_kept_by_call_and_taken_once() {
        let touched = Touched::default();
        touched.add(1, "/a".into());
        touched.add(2, "/b".into());
        touched.add(1, "/c".into());
        assert_eq!(touched.take(1), [PathBuf::from("/a"), "/c".into()]);
        assert!(touched.take(1).is_empty());
        assert_eq!(touched.take(2), [PathBuf::from("/b")]);
    }

    #[test]
    fn what_dropped_calls_leave_behind_is_bounded() {
        let touched = Touched::default();
        for token in 0..2 * MOST as u64 {
            touched.add(token, "/a".into());
        }
        assert_eq!(touched.touches().len(), MOST);
        assert!(touched.take(0).is_empty());
        assert_eq!(touched.take(2 * MOST as u64 - 1).len(), 1);
    }
}
