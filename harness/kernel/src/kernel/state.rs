//! What the kernel, its contexts and its driver share: the mounts, their phases, the services.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};

use super::{PluginHandle, PluginState};
use crate::context::Run;
use crate::plan::{Node, Phase, prospects};
use crate::service::AnyService;
use crate::{DisposeErrors, DisposeFailure, EventBus, Plugin, PluginError, ServiceKey, lock};

/// Names one mount for good; never used twice, not even by two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MountId(pub(super) u64);

impl MountId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the kernel, its contexts and its tasks share.
pub(crate) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) events: EventBus,
    /// Wakes the driver.
    pub(super) wake: Notify,
    /// Counts changes of state, for those who wait for one.
    pub(super) version: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) mounts: BTreeMap<MountId, Mount>,
    pub(super) services: HashMap<ServiceKey, Provided>,
    /// Undo steps that were registered after their plugin had been unloaded.
    pub(super) late: Vec<LateUndo>,
    pub(super) closed: bool,
    /// What disposal failed with, besides what `unmount` reported.
    pub(super) failures: Vec<DisposeFailure>,
    pub(super) end: Option<Result<(), DisposeErrors>>,
}

pub(super) type LateUndo = BoxFuture<'static, Vec<DisposeFailure>>;

pub(super) struct Mount {
    pub(super) name: Arc<str>,
    pub(super) plugin: Arc<dyn Plugin>,
    pub(super) needs: Vec<ServiceKey>,
    pub(super) provides: Vec<ServiceKey>,
    pub(super) phase: Phase,
    pub(super) wanted: bool,
    /// Whether an `unmount` waits, and reports the failures.
    pub(super) reported: bool,
    pub(super) error: Option<PluginError>,
    pub(super) run: Option<Arc<Run>>,
    pub(super) failures: Arc<Mutex<Vec<DisposeFailure>>>,
}

pub(super) struct Provided {
    by: MountId,
    service: AnyService,
}

impl State {
    pub(super) fn graph(&self) -> BTreeMap<MountId, Node<ServiceKey>> {
        let node = |mount: &Mount| Node {
            needs: mount.needs.clone(),
            provides: mount.provides.clone(),
            phase: mount.phase,
            wanted: mount.wanted,
        };
        self.mounts
            .iter()
            .map(|(id, mount)| (*id, node(mount)))
            .collect()
    }

    pub(super) fn is_live(&self, key: ServiceKey) -> bool {
        self.services.get(&key).is_some_and(|provided| {
            self.mounts
                .get(&provided.by)
                .is_some_and(|mount| mount.phase == Phase::Started)
        })
    }

    pub(super) fn state_of(&self, id: MountId) -> PluginState {
        let Some(mount) = self.mounts.get(&id) else {
            return PluginState::Stopped;
        };
        if !mount.wanted {
            return PluginState::Stopped;
        }
        match mount.phase {
            Phase::Waiting | Phase::Stopping => PluginState::Waiting(
                mount
                    .needs
                    .iter()
                    .copied()
                    .filter(|key| !self.is_live(*key))
                    .collect(),
            ),
            Phase::Starting => PluginState::Starting,
            Phase::Started => PluginState::Started,
            Phase::Failed => PluginState::Failed(mount.error.clone().unwrap_or_else(|| {
                PluginError::new(format!("plugin {} failed to start", mount.name))
            })),
        }
    }

    pub(super) fn settled(&self, id: MountId) -> Option<PluginState> {
        match self.state_of(id) {
            PluginState::Starting => None,
            PluginState::Waiting(_) if prospects(&self.graph()).contains(&id) => None,
            state => Some(state),
        }
    }
}

impl Shared {
    pub(crate) fn events(&self) -> &EventBus {
        &self.events
    }

    /// A service of a started plugin.
    pub(crate) fn service(&self, key: ServiceKey) -> Option<AnyService> {
        let state = lock(&self.state);
        if state.is_live(key) {
            Some(state.services.get(&key)?.service.clone())
        } else {
            None
        }
    }

    /// A service for the plugin that provides it, whatever its phase.
    pub(crate) fn service_of(&self, key: ServiceKey, by: MountId) -> Option<AnyService> {
        let state = lock(&self.state);
        state
            .services
            .get(&key)
            .filter(|provided| provided.by == by)
            .map(|provided| provided.service.clone())
    }

    pub(crate) fn is_provided_by(&self, key: ServiceKey, by: MountId) -> bool {
        lock(&self.state)
            .services
            .get(&key)
            .is_some_and(|provided| provided.by == by)
    }

    pub(crate) fn publish(
        &self,
        key: ServiceKey,
        by: MountId,
        plugin: &str,
        service: AnyService,
    ) -> Result<(), PluginError> {
        let mut state = lock(&self.state);
        if state
            .mounts
            .get(&by)
            .is_none_or(|mount| mount.phase != Phase::Starting)
        {
            return Err(PluginError::with_code(
                "PLUGIN_UNLOADED",
                format!("plugin {plugin} provides {key} outside its start; provide it in start()"),
            ));
        }
        if state.services.contains_key(&key) {
            return Err(PluginError::with_code(
                "SERVICE_CONFLICT",
                format!("plugin {plugin} provides {key} a second time"),
            ));
        }
        state.services.insert(key, Provided { by, service });
        Ok(())
    }

    pub(crate) fn withdraw(&self, key: ServiceKey, by: MountId) {
        let withdrawn = {
            let mut state = lock(&self.state);
            let held = state
                .services
                .get(&key)
                .is_some_and(|provided| provided.by == by);
            if held {
                state.services.remove(&key)
            } else {
                None
            }
        };
        // Outside the lock: the service's own drop may use the kernel.
        drop(withdrawn);
    }

    /// Hands an undo step of a plugin that is gone to the driver.
    pub(crate) fn undo_late(&self, undo: LateUndo) {
        let dropped = {
            let mut state = lock(&self.state);
            if state.end.is_some() {
                Some(undo)
            } else {
                state.late.push(undo);
                None
            }
        };
        if dropped.is_some() {
            tracing::warn!("an effect registered after disposal was dropped without being undone");
        }
        self.wake.notify_one();
    }

    pub(super) fn insert(&self, plugin: Arc<dyn Plugin>) -> Result<PluginHandle, PluginError> {
        // The plugin's own code runs outside the lock: it may panic.
        let (name, needs, provides): (Arc<str>, _, _) =
            (plugin.name().into(), plugin.needs(), plugin.provides());
        let unique: HashSet<_> = provides.iter().collect();
        if unique.len() < provides.len() {
            return Err(PluginError::with_code(
                "SERVICE_CONFLICT",
                format!("plugin {name} names a service twice among what it provides"),
            ));
        }
        if let Some(key) = needs.iter().find(|key| unique.contains(key)) {
            return Err(PluginError::with_code(
                "PLUGIN_NEEDS_ITSELF",
                format!("plugin {name} needs {key}, which it provides itself: it can never start"),
            ));
        }
        let mut state = lock(&self.state);
        if state.closed {
            return Err(PluginError::with_code(
                "KERNEL_DISPOSED",
                format!("plugin {name} cannot be mounted: the kernel has been disposed"),
            ));
        }
        for other in state.mounts.values().filter(|other| other.wanted) {
            if let Some(key) = other.provides.iter().find(|key| unique.contains(key)) {
                return Err(PluginError::with_code(
                    "SERVICE_CONFLICT",
                    format!(
                        "plugin {name} provides {key}, and so does {}; mount only one of them",
                        other.name
                    ),
                ));
            }
        }
        let (id, failures) = (MountId::next(), Arc::default());
        let handle = PluginHandle {
            id,
            name: Arc::clone(&name),
            failures: Arc::clone(&failures),
        };
        state.mounts.insert(
            id,
            Mount {
                name,
                plugin,
                needs,
                provides,
                phase: Phase::Waiting,
                wanted: true,
                reported: false,
                error: None,
                run: None,
                failures,
            },
        );
        Ok(handle)
    }

    pub(super) fn unwant(&self, id: MountId, reported: bool) {
        if let Some(mount) = lock(&self.state).mounts.get_mut(&id) {
            mount.wanted = false;
            mount.reported |= reported;
        }
        self.wake.notify_one();
    }

    pub(super) fn close(&self, without_driver: bool) {
        let mut state = lock(&self.state);
        state.closed = true;
        for mount in state.mounts.values_mut() {
            mount.wanted = false;
        }
        if without_driver && state.end.is_none() {
            state.end = Some(Ok(()));
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Drops everything without undoing it.
    pub(super) fn abandon(&self) {
        let (mounts, services, late) = {
            let mut state = lock(&self.state);
            state.closed = true;
            state.end.get_or_insert(Ok(()));
            (
                std::mem::take(&mut state.mounts),
                std::mem::take(&mut state.services),
                std::mem::take(&mut state.late),
            )
        };
        for mount in mounts.values().rev() {
            if let Some(run) = &mount.run {
                run.abandon();
            }
        }
        drop((mounts, services, late));
        self.events.clear();
    }

    pub(super) async fn wait<T>(&self, ready: impl Fn(&State) -> Option<T>) -> T {
        let mut version = self.version.subscribe();
        loop {
            version.borrow_and_update();
            if let Some(value) = ready(&lock(&self.state)) {
                return value;
            }
            // The sender lives as long as `self`, so this only ends by a change.
            if version.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }
}

impl Mount {
    pub(super) fn begin_start(
        &mut self,
        id: MountId,
        shared: &Arc<Shared>,
    ) -> (Arc<dyn Plugin>, Arc<Run>) {
        self.phase = Phase::Starting;
        let run = Arc::new(Run::new(
            id,
            &self.name,
            self.needs.clone(),
            self.provides.clone(),
            Arc::clone(shared),
        ));
        self.run = Some(Arc::clone(&run));
        (Arc::clone(&self.plugin), run)
    }
}
