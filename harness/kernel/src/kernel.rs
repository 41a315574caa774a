//! The host of the plugins.
//!
//! What happens next is decided by `plan`; the driver does it, and `state` keeps the phases. The
//! driver task and the starts and stops it runs belong to the [`Kernel`]: they end with
//! [`Kernel::dispose`], or are dropped with it.

mod driver;
mod state;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub(crate) use state::{MountId, Shared};

use crate::{DisposeErrors, DisposeFailure, EventBus, Plugin, PluginError, ServiceKey, lock};

/// A mounted plugin, to ask after and to unmount.
#[derive(Clone)]
pub struct PluginHandle {
    id: MountId,
    name: Arc<str>,
    failures: Arc<Mutex<Vec<DisposeFailure>>>,
}

impl PluginHandle {
    /// The plugin's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for PluginHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PluginHandle({} #{})", self.name, self.id.0)
    }
}

/// Where a plugin stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    /// It does not run. These of its needs are not there; none missing means that its start is due,
    /// or that it is being stopped before it can start again.
    Waiting(Vec<ServiceKey>),
    /// Its start runs.
    Starting,
    /// It runs.
    Started,
    /// Its start failed; everything was undone. It stays so until it is unmounted.
    Failed(PluginError),
    /// It was unmounted, or is about to be.
    Stopped,
}

/// The plugin host (RUN-1, RUN-2).
///
/// Mount and unmount in any order, from any task. [`dispose`](Self::dispose) when done: a kernel
/// that is dropped instead undoes nothing, it only drops what the plugins registered, in the
/// background, so that what they own (processes) dies by its own `Drop` (DIS-6).
pub struct Kernel {
    shared: Arc<Shared>,
    /// The driver, started by the first mount.
    driver: tokio::sync::Mutex<JoinSet<()>>,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel {
    /// A kernel without plugins.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                events: EventBus::new(),
                wake: Notify::new(),
                version: watch::Sender::new(0),
            }),
            driver: tokio::sync::Mutex::new(JoinSet::new()),
        }
    }

    /// Mounts a plugin, and waits until it has started, or until nothing mounted so far can make it
    /// start: then it waits for its needs ([`PluginState::Waiting`]).
    ///
    /// Fails with the start's own error, everything undone and the plugin gone. Dropping the future
    /// unmounts the plugin.
    pub async fn mount(&self, plugin: Arc<dyn Plugin>) -> Result<PluginHandle, PluginError> {
        let handle = self.add(plugin).await?;
        let mut guard = Unmount {
            shared: &self.shared,
            id: handle.id,
            armed: true,
        };
        match self.settled(&handle).await {
            PluginState::Failed(error) => {
                // Nothing is left to undo: the guard takes the record out.
                Err(error)
            }
            PluginState::Stopped => Err(PluginError::with_code(
                "PLUGIN_UNLOADED",
                format!("plugin {} was unloaded before it had started", handle.name),
            )),
            _ => {
                guard.armed = false;
                Ok(handle)
            }
        }
    }

    /// Mounts a plugin without waiting for its start; see [`settled`](Self::settled).
    ///
    /// Fails with `SERVICE_CONFLICT` when a mounted plugin provides the same service, with
    /// `PLUGIN_NEEDS_ITSELF` when it needs what it provides, with `KERNEL_DISPOSED` when the kernel
    /// takes no more plugins.
    pub async fn add(&self, plugin: Arc<dyn Plugin>) -> Result<PluginHandle, PluginError> {
        let id = self.shared.insert(plugin)?;
        let mut driver = self.driver.lock().await;
        if driver.is_empty() {
            driver.spawn(driver::drive(Arc::clone(&self.shared)));
        }
        self.shared.wake.notify_one();
        Ok(id)
    }

    /// Waits until the plugin has started, failed or been unmounted, or until nothing mounted so
    /// far can make it start; returns where it stands then.
    pub async fn settled(&self, handle: &PluginHandle) -> PluginState {
        self.shared.wait(|state| state.settled(handle.id)).await
    }

    /// Where the plugin stands.
    pub fn state(&self, handle: &PluginHandle) -> PluginState {
        lock(&self.shared.state).state_of(handle.id)
    }

    /// Unloads a plugin: first those that need what it provides, which then wait for another
    /// provider, then itself. A start under way is cancelled and awaited (CFG-6). Idempotent, and
    /// concurrent callers wait for the same end.
    ///
    /// Returns what could not be undone of this plugin.
    pub async fn unmount(&self, handle: &PluginHandle) -> Result<(), DisposeErrors> {
        self.shared.unwant(handle.id, true);
        self.shared
            .wait(|state| (!state.mounts.contains_key(&handle.id)).then_some(()))
            .await;
        DisposeErrors::collect(lock(&handle.failures).clone())
    }

    /// Unloads everything, dependents first, and takes no more plugins (DIS-4, DIS-5). Returns when
    /// nothing is left, with all failures together. Idempotent: concurrent and later callers wait
    /// for the same end and get the same result. Goes on when the future is dropped.
    pub async fn dispose(&self) -> Result<(), DisposeErrors> {
        let mut driver = self.driver.lock().await;
        self.shared.close(driver.is_empty());
        while driver.join_next().await.is_some() {}
        drop(driver);
        self.shared.wait(|state| state.end.clone()).await
    }

    /// A service, while a started plugin provides it.
    pub fn service<S: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.shared
            .service(ServiceKey::of::<S>())
            .and_then(|service| service.downcast())
    }

    /// The event bus.
    pub fn events(&self) -> &EventBus {
        &self.shared.events
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        let mounts = state
            .mounts
            .values()
            .map(|mount| (&mount.name, mount.phase));
        f.debug_map().entries(mounts).finish()
    }
}

/// Unmounts, without waiting, a plugin whose mount was given up.
struct Unmount<'a> {
    shared: &'a Shared,
    id: MountId,
    armed: bool,
}

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.unwant(self.id, false);
        }
    }
}
