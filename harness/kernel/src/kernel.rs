//! The host of the plugins: mounts, and the one task that starts and stops them.
//!
//! What happens next is decided by [`plan`]; here it is done, and the phases are kept. The driver
//! task and the starts and stops it runs belong to the [`Kernel`]: they end with
//! [`Kernel::dispose`], or are dropped with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::context::Run;
use crate::error::panic_message;
use crate::plan::{Node, Phase, Step, plan, prospects};
use crate::service::AnyService;
use crate::{
    Context, DisposeErrors, DisposeFailure, EventBus, Plugin, PluginError, ServiceKey, lock,
};

/// Names one mount for good; never used twice, not even by two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MountId(u64);

impl MountId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

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
            driver.spawn(drive(Arc::clone(&self.shared)));
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

/// What the kernel, its contexts and its tasks share.
pub(crate) struct Shared {
    state: Mutex<State>,
    events: EventBus,
    /// Wakes the driver.
    wake: Notify,
    /// Counts changes of state, for those who wait for one.
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    mounts: BTreeMap<MountId, Mount>,
    services: HashMap<ServiceKey, Provided>,
    /// Undo steps that were registered after their plugin had been unloaded.
    late: Vec<LateUndo>,
    closed: bool,
    /// What disposal failed with, besides what `unmount` reported.
    failures: Vec<DisposeFailure>,
    end: Option<Result<(), DisposeErrors>>,
}

type LateUndo = BoxFuture<'static, Vec<DisposeFailure>>;

struct Mount {
    name: Arc<str>,
    plugin: Arc<dyn Plugin>,
    needs: Vec<ServiceKey>,
    provides: Vec<ServiceKey>,
    phase: Phase,
    wanted: bool,
    /// Whether an `unmount` waits, and reports the failures.
    reported: bool,
    error: Option<PluginError>,
    run: Option<Arc<Run>>,
    failures: Arc<Mutex<Vec<DisposeFailure>>>,
}

struct Provided {
    by: MountId,
    service: AnyService,
}

impl State {
    fn graph(&self) -> BTreeMap<MountId, Node<ServiceKey>> {
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

    fn is_live(&self, key: ServiceKey) -> bool {
        self.services.get(&key).is_some_and(|provided| {
            self.mounts
                .get(&provided.by)
                .is_some_and(|mount| mount.phase == Phase::Started)
        })
    }

    fn state_of(&self, id: MountId) -> PluginState {
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

    fn settled(&self, id: MountId) -> Option<PluginState> {
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

    fn insert(&self, plugin: Arc<dyn Plugin>) -> Result<PluginHandle, PluginError> {
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

    fn unwant(&self, id: MountId, reported: bool) {
        if let Some(mount) = lock(&self.state).mounts.get_mut(&id) {
            mount.wanted = false;
            mount.reported |= reported;
        }
        self.wake.notify_one();
    }

    fn close(&self, without_driver: bool) {
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
    fn abandon(&self) {
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

    async fn wait<T>(&self, ready: impl Fn(&State) -> Option<T>) -> T {
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

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Takes out what is gone, and begins what the plan says.
    fn begin(self: &Arc<Self>, work: &mut JoinSet<Done>) {
        let gone = self.begin_locked(&mut lock(&self.state), work);
        // Outside the lock: a plugin's own drop may use the kernel.
        drop(gone);
    }

    fn begin_locked(self: &Arc<Self>, state: &mut State, work: &mut JoinSet<Done>) -> Vec<Mount> {
        let mut gone = Vec::new();
        for (_, mount) in state.mounts.extract_if(.., |_, mount| {
            !mount.wanted && matches!(mount.phase, Phase::Waiting | Phase::Failed)
        }) {
            if !mount.reported {
                state.failures.append(&mut lock(&mount.failures));
            }
            gone.push(mount);
        }
        for undo in state.late.drain(..) {
            work.spawn(undo.map(Done::Late));
        }
        for step in plan(&state.graph()) {
            match step {
                Step::Start(id) => {
                    if let Some(mount) = state.mounts.get_mut(&id) {
                        work.spawn(start(mount.begin_start(id, self)));
                    }
                }
                Step::CancelStart(id) => {
                    if let Some(run) = state.mounts.get(&id).and_then(|mount| mount.run.as_ref()) {
                        run.cancel();
                    }
                }
                Step::Stop(id) => {
                    if let Some(mount) = state.mounts.get_mut(&id) {
                        mount.phase = Phase::Stopping;
                        if let Some(run) = mount.run.clone() {
                            work.spawn(stop(run));
                        }
                    }
                }
            }
        }
        gone
    }

    fn apply(&self, done: Done) {
        let mut state = lock(&self.state);
        let (id, outcome) = match done {
            Done::Late(mut failures) => {
                state.failures.append(&mut failures);
                return;
            }
            Done::Start(id, outcome) => (id, outcome),
            Done::Stop(id, failures) => (
                id,
                Outcome::Undone {
                    failures,
                    error: None,
                },
            ),
        };
        let Some(mount) = state.mounts.get_mut(&id) else {
            return;
        };
        match outcome {
            Outcome::Started => mount.phase = Phase::Started,
            Outcome::Undone {
                mut failures,
                error,
            } => {
                mount.phase = if error.is_some() {
                    Phase::Failed
                } else {
                    Phase::Waiting
                };
                mount.error = error;
                mount.run = None;
                lock(&mount.failures).append(&mut failures);
            }
        }
    }

    /// Records the end of the kernel, if it has come.
    fn finish(&self) -> bool {
        let mut state = lock(&self.state);
        if !(state.closed && state.mounts.is_empty() && state.late.is_empty()) {
            return false;
        }
        let failures = std::mem::take(&mut state.failures);
        state
            .end
            .get_or_insert_with(|| DisposeErrors::collect(failures));
        true
    }
}

impl Mount {
    fn begin_start(&mut self, id: MountId, shared: &Arc<Shared>) -> (Arc<dyn Plugin>, Arc<Run>) {
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

/// What a task of the driver ended with.
enum Done {
    Start(MountId, Outcome),
    Stop(MountId, Vec<DisposeFailure>),
    Late(Vec<DisposeFailure>),
}

enum Outcome {
    Started,
    /// Everything was undone; with an error if the start failed by itself.
    Undone {
        failures: Vec<DisposeFailure>,
        error: Option<PluginError>,
    },
}

async fn drive(shared: Arc<Shared>) {
    let mut work = JoinSet::new();
    loop {
        shared.begin(&mut work);
        let ended = work.is_empty() && shared.finish();
        shared.changed();
        if ended {
            return;
        }
        tokio::select! {
            Some(done) = work.join_next() => match done {
                Ok(done) => shared.apply(done),
                // Neither starts nor stops unwind, and they are aborted only with this task.
                Err(error) => tracing::error!(%error, "a task of the kernel was lost"),
            },
            () = shared.wake.notified() => {}
        }
    }
}

async fn start((plugin, run): (Arc<dyn Plugin>, Arc<Run>)) -> Done {
    let context = Context::new(Arc::clone(&run));
    tracing::debug!(plugin = context.plugin(), "starting");
    let result = match AssertUnwindSafe(plugin.start(&context))
        .catch_unwind()
        .await
    {
        Ok(Ok(())) => match run.unprovided().as_slice() {
            [] => Ok(()),
            missing => Err(PluginError::with_code(
                "SERVICE_NOT_PROVIDED",
                format!(
                    "plugin {} promises {missing:?} and did not provide it in its start",
                    context.plugin()
                ),
            )),
        },
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(PluginError::with_code(
            "PLUGIN_PANICKED",
            format!(
                "plugin {} panicked in its start: {}",
                context.plugin(),
                panic_message(&*panic)
            ),
        )),
    };
    let outcome = match result {
        Ok(()) if !run.is_cancelled() => Outcome::Started,
        // What a start that was told to stop ends with is no failure of the plugin.
        Err(error) if run.is_cancelled() => {
            tracing::debug!(plugin = context.plugin(), %error, "start given up");
            Outcome::Undone {
                failures: run.undo().await,
                error: None,
            }
        }
        result => Outcome::Undone {
            failures: run.undo().await,
            error: result.err(),
        },
    };
    Done::Start(run.mount, outcome)
}

async fn stop(run: Arc<Run>) -> Done {
    Done::Stop(run.mount, run.undo().await)
}

#[cfg(test)]
mod tests;
