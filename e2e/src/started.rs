//! The processes that were started and may still run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dsh_harness::subprocess::ProcessControl;

/// Whom to end. What nobody holds any more has ended.
#[derive(Default)]
pub(crate) struct Started(Mutex<Vec<Weak<dyn ProcessControl>>>);

impl Started {
    pub(crate) fn remember(&self, control: &Arc<dyn ProcessControl>) {
        let mut started = self.list();
        started.retain(|control| control.strong_count() > 0);
        started.push(Arc::downgrade(control));
    }

    /// The numbers of those that have not ended.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mut started = self.list();
        started.retain(|control| {
            let control = control.upgrade();
            control.is_some_and(|control| control.exited().is_none())
        });
        let controls = started.iter().filter_map(Weak::upgrade);
        controls.map(|control| control.pid()).collect()
    }

    /// Kills every process tree that is still there, without a grace, and waits until they are
    /// gone.
    pub(crate) async fn end_all(&self) {
        let started: Vec<Arc<dyn ProcessControl>> = {
            let mut started = self.list();
            started
                .drain(..)
                .filter_map(|control| control.upgrade())
                .collect()
        };
        let ends = started
            .iter()
            .map(|control| control.terminate_tree(Duration::ZERO));
        futures::future::join_all(ends).await;
    }

    fn list(&self) -> MutexGuard<'_, Vec<Weak<dyn ProcessControl>>> {
        // A list is whole after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
