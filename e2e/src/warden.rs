//! A subprocess service that knows what it started, so that a server's whole life can be measured
//! and ended from outside.
//!
//! It stands in for another provider and hands everything on unchanged. Unlike the recording it
//! judges nothing: it is for whoever runs a check and must not be outlived by it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dsh_harness::kernel::{Cancel, ExecutionWorld};
use dsh_harness::subprocess::{ChildProcess, ResolveError, SpawnError, SpawnSpec, Subprocess};

use crate::memory::{Members, ProcessTable};
use crate::started::Started;

/// Wraps another provider and remembers the processes that were started through it.
pub struct Warden {
    inner: Arc<dyn Subprocess>,
    started: Started,
    /// Why nothing more may be started.
    closed: OnceLock<String>,
    peak: AtomicU64,
    members: Mutex<Members>,
}

impl Warden {
    /// Watches over what is started through `inner`.
    pub fn new(inner: Arc<dyn Subprocess>) -> Self {
        Self {
            inner,
            started: Started::default(),
            closed: OnceLock::new(),
            peak: AtomicU64::new(0),
            members: Mutex::default(),
        }
    }

    /// The resident memory of all trees that were started and whose leader has not ended, in
    /// bytes. With a table the members of the trees are found anew; without one the leaders and
    /// the members that were found last are looked at.
    pub fn resident(&self, table: Option<&ProcessTable>) -> u64 {
        let leaders = self.started.alive();
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if leaders.is_empty() {
            *members = Members::default();
            return 0;
        }
        let resident = members.look(&leaders, table);
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
        self.started.end_all().await;
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
        self.started.remember(&control);
        if let Some(reason) = self.closed.get() {
            control.terminate_tree(Duration::ZERO).await;
            return Err(refused(reason));
        }
        Ok(child)
    }
}
