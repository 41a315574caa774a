//! A subprocess service that knows what it started, so that a server's whole life can be measured
//! and ended from outside.
//!
//! It stands in for another provider and hands everything on unchanged. Unlike the recording it
//! judges nothing: it is for whoever runs a check and must not be outlived by it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dsh_harness::kernel::{Cancel, ExecutionWorld};
use dsh_harness::subprocess::{
    ChildProcess, ProcessControl, ResolveError, SpawnError, SpawnSpec, Subprocess,
};

use crate::memory::ProcessTable;

/// Wraps another provider and remembers the processes that were started through it.
pub struct Warden {
    inner: Arc<dyn Subprocess>,
    started: Mutex<Vec<Weak<dyn ProcessControl>>>,
    /// Why nothing more may be started.
    closed: OnceLock<String>,
    peak: AtomicU64,
}

impl Warden {
    /// Watches over what is started through `inner`.
    pub fn new(inner: Arc<dyn Subprocess>) -> Self {
        Self {
            inner,
            started: Mutex::default(),
            closed: OnceLock::new(),
            peak: AtomicU64::new(0),
        }
    }

    /// The resident memory of all trees that were started and whose leader has not ended, in
    /// bytes.
    pub fn resident(&self, table: &ProcessTable) -> u64 {
        let alive = |control: &Arc<dyn ProcessControl>| control.exited().is_none();
        let leaders: Vec<u32> = {
            let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
            started.retain(|control| control.upgrade().as_ref().is_some_and(alive));
            let controls = started.iter().filter_map(Weak::upgrade);
            controls.map(|control| control.pid()).collect()
        };
        if leaders.is_empty() {
            return 0;
        }
        let resident = table.resident(&leaders);
        self.peak.fetch_max(resident, Ordering::Relaxed);
        resident
    }

    /// The most that [`Self::resident`] has seen, in bytes; none if it has seen nothing.
    pub fn peak(&self) -> Option<u64> {
        let peak = self.peak.load(Ordering::Relaxed);
        (peak > 0).then_some(peak)
    }

    /// Lets nothing more be started, with the reason that is told instead, and kills what is
    /// there, each with its whole tree; ends when it is gone.
    pub async fn close(&self, reason: &str) {
        let _ = self.closed.set(reason.to_owned());
        let started: Vec<Arc<dyn ProcessControl>> = {
            let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
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
}

#[async_trait]
impl Subprocess for Warden {
    fn world(&self) -> &ExecutionWorld {
        self.inner.world()
    }

    async fn resolve_executable(
        &self,
        command: &str,
        env: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        self.inner.resolve_executable(command, env, cancel).await
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let refused = |reason: &String| SpawnError {
            executable: spec.executable.clone(),
            cwd: spec.cwd.clone(),
            reason: reason.clone(),
        };
        if let Some(reason) = self.closed.get() {
            return Err(refused(reason));
        }
        let child = self.inner.spawn(spec.clone()).await?;
        // Whoever closes looks at the list behind this, or is seen here.
        let control = Arc::clone(&child.control);
        self.started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&control));
        if let Some(reason) = self.closed.get() {
            control.terminate_tree(Duration::ZERO).await;
            return Err(refused(reason));
        }
        Ok(child)
    }
}
