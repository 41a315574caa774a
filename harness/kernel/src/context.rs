//! What one start of a plugin may do, and the stack of what it did.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::error::panic_message;
use crate::kernel::{MountId, Shared};
use crate::service::AnyService;
use crate::{Cancel, CancelReason, DisposeFailure, Event, EventBus, PluginError, ServiceKey, lock};

/// What a plugin registers through. One context belongs to one start of one plugin; cloning shares
/// it.
#[derive(Clone)]
pub struct Context(Arc<Run>);

/// One run of one plugin, from the beginning of its start to the end of its undoing.
pub(crate) struct Run {
    pub(crate) mount: MountId,
    plugin: String,
    needs: Vec<ServiceKey>,
    provides: Vec<ServiceKey>,
    cancel: Cancel,
    shared: Arc<Shared>,
    effects: Mutex<Effects>,
}

#[derive(Default)]
struct Effects {
    stack: Vec<Effect>,
    /// Set when everything was undone: what comes later is undone at once.
    closed: bool,
}

/// Something to undo.
pub(crate) struct Effect {
    name: &'static str,
    undo: Undo,
}

type UndoFuture = BoxFuture<'static, Result<(), PluginError>>;

enum Undo {
    Now(Box<dyn FnOnce() + Send>),
    Awaited(Box<dyn FnOnce() -> UndoFuture + Send>),
}

impl Effect {
    /// Undoes it. A panic is a failure like any other.
    async fn undo(self, plugin: &str) -> Result<(), DisposeFailure> {
        let name = self.name;
        let outcome = match self.undo {
            Undo::Now(undo) => catch_unwind(AssertUnwindSafe(undo)).map(Ok),
            Undo::Awaited(undo) => match catch_unwind(AssertUnwindSafe(undo)) {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                Err(panic) => Err(panic),
            },
        };
        let error = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(panic) => PluginError::with_code(
                "PLUGIN_PANICKED",
                format!("it panicked: {}", panic_message(&*panic)),
            ),
        };
        tracing::warn!(plugin, effect = name, %error, "could not be undone");
        Err(DisposeFailure {
            plugin: plugin.to_owned(),
            effect: name,
            error,
        })
    }
}

impl Run {
    pub(crate) fn new(
        mount: MountId,
        plugin: &str,
        needs: Vec<ServiceKey>,
        provides: Vec<ServiceKey>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            mount,
            plugin: plugin.to_owned(),
            needs,
            provides,
            cancel: Cancel::new(),
            shared,
            effects: Mutex::default(),
        }
    }

    /// Tells the plugin that it is being unloaded.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel(CancelReason::Disposed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Undoes everything, the last effect first, also what is registered meanwhile. What fails is
    /// collected and holds up nothing.
    pub(crate) async fn undo(&self) -> Vec<DisposeFailure> {
        self.cancel();
        let mut failures = Vec::new();
        while let Some(effect) = self.next_effect() {
            failures.extend(effect.undo(&self.plugin).await.err());
        }
        failures
    }

    fn next_effect(&self) -> Option<Effect> {
        let mut effects = lock(&self.effects);
        let next = effects.stack.pop();
        effects.closed = next.is_none();
        next
    }

    /// Forgets all effects without undoing them; what they hold is dropped, the last first.
    pub(crate) fn abandon(&self) {
        self.cancel();
        let stack = {
            let mut effects = lock(&self.effects);
            effects.closed = true;
            std::mem::take(&mut effects.stack)
        };
        stack.into_iter().rev().for_each(drop);
    }

    /// The services that were promised and not provided.
    pub(crate) fn unprovided(&self) -> Vec<ServiceKey> {
        let provided = |key: &ServiceKey| self.shared.is_provided_by(*key, self.mount);
        self.provides
            .iter()
            .copied()
            .filter(|key| !provided(key))
            .collect()
    }
}

impl Context {
    pub(crate) fn new(run: Arc<Run>) -> Self {
        Self(run)
    }

    /// The plugin's name.
    pub fn plugin(&self) -> &str {
        &self.0.plugin
    }

    /// A service: one of those that the plugin needs, or one that it provides itself.
    ///
    /// Fails with `SERVICE_UNDECLARED` when the plugin does not name it among its needs (the order
    /// of unloading is computed from them), and with `SERVICE_ABSENT` when the plugin has been
    /// unloaded and the service is gone.
    pub fn service<S: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<S>, PluginError> {
        let Run {
            plugin,
            needs,
            provides,
            mount,
            shared,
            ..
        } = &*self.0;
        let key = ServiceKey::of::<S>();
        let found = if provides.contains(&key) {
            shared.service_of(key, *mount)
        } else if needs.contains(&key) {
            shared.service(key)
        } else {
            return Err(PluginError::with_code(
                "SERVICE_UNDECLARED",
                format!(
                    "plugin {plugin} asks for {key}, which it does not name among its needs; add it to needs()"
                ),
            ));
        };
        found.and_then(|service| service.downcast()).ok_or_else(|| {
            PluginError::with_code(
                "SERVICE_ABSENT",
                format!("plugin {plugin} asks for {key}, which nobody provides at the moment"),
            )
        })
    }

    /// A service that the plugin uses while it is there and does without otherwise (INS-18). It is
    /// none of the plugin's needs: its coming and going neither starts nor stops the plugin.
    pub fn watch<S: ?Sized + Send + Sync + 'static>(&self) -> Watched<S> {
        Watched {
            shared: Arc::clone(&self.0.shared),
            service: PhantomData,
        }
    }

    /// Provides a service until the plugin is unloaded. Others see it once the start has ended
    /// well.
    ///
    /// Fails with `SERVICE_UNDECLARED` when the plugin does not name it among what it provides,
    /// with `SERVICE_CONFLICT` when it is provided already, and with `PLUGIN_UNLOADED` when the
    /// plugin is not being started.
    pub fn provide<S: ?Sized + Send + Sync + 'static>(
        &self,
        service: Arc<S>,
    ) -> Result<(), PluginError> {
        let Run {
            plugin,
            provides,
            mount,
            shared,
            ..
        } = &*self.0;
        let key = ServiceKey::of::<S>();
        if !provides.contains(&key) {
            return Err(PluginError::with_code(
                "SERVICE_UNDECLARED",
                format!(
                    "plugin {plugin} provides {key}, which it does not name; add it to provides()"
                ),
            ));
        }
        shared.publish(key, *mount, plugin, AnyService::new(service))?;
        let (shared, mount) = (Arc::clone(shared), *mount);
        self.effect("service", move || shared.withdraw(key, mount));
        Ok(())
    }

    /// Registers what undoes something that the plugin did (RUN-1). Runs at unload, in reverse
    /// order of registration; at once when the plugin has been unloaded already.
    pub fn effect(&self, name: &'static str, undo: impl FnOnce() + Send + 'static) {
        self.register(Effect {
            name,
            undo: Undo::Now(Box::new(undo)),
        });
    }

    /// Like [`effect`](Self::effect) for an undo step that takes its time and may fail; it is
    /// awaited before the next one runs, and before what the plugin needs is unloaded.
    pub fn effect_async(
        &self,
        name: &'static str,
        undo: impl FnOnce() -> BoxFuture<'static, Result<(), PluginError>> + Send + 'static,
    ) {
        self.register(Effect {
            name,
            undo: Undo::Awaited(Box::new(undo)),
        });
    }

    fn register(&self, effect: Effect) {
        let late = {
            let mut effects = lock(&self.0.effects);
            if effects.closed {
                Some(effect)
            } else {
                effects.stack.push(effect);
                None
            }
        };
        match late {
            None => {}
            Some(Effect {
                name,
                undo: Undo::Now(undo),
            }) => {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(undo)) {
                    let panic = panic_message(&*panic);
                    tracing::error!(
                        plugin = self.plugin(),
                        effect = name,
                        panic,
                        "undo panicked"
                    );
                }
            }
            Some(effect) => {
                let run = Arc::clone(&self.0);
                let undo =
                    async move { effect.undo(&run.plugin).await.err().into_iter().collect() };
                self.0.shared.undo_late(undo.boxed());
            }
        }
    }

    /// Given when the plugin is being unloaded, also while its start still runs (CFG-6).
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Listens to an event until the plugin is unloaded. The listener is a recorder: synchronous,
    /// quick, without influence on what it hears of.
    pub fn on<E: Event>(&self, listener: impl Fn(&E) + Send + Sync + 'static) {
        let subscription = self.events().subscribe(listener);
        self.effect(E::NAME, move || drop(subscription));
    }

    /// Tells every listener of the event.
    pub fn emit<E: Event>(&self, event: &E) {
        self.events().emit(event);
    }

    /// The bus itself, for a service that emits on it after the plugin's start has ended.
    pub fn events(&self) -> &EventBus {
        self.0.shared.events()
    }
}

/// A service that may come and go; see [`Context::watch`].
///
/// The order of unloading knows nothing of who watches: what was taken from here may be closed by
/// its provider at any time, and says so then. Take it anew for each piece of work.
pub struct Watched<S: ?Sized> {
    shared: Arc<Shared>,
    service: PhantomData<fn() -> Arc<S>>,
}

impl<S: ?Sized + Send + Sync + 'static> Watched<S> {
    /// The service, while a started plugin provides it.
    pub fn current(&self) -> Option<Arc<S>> {
        self.shared
            .service(ServiceKey::of::<S>())
            .and_then(|service| service.downcast())
    }
}

impl<S: ?Sized> Clone for Watched<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            service: PhantomData,
        }
    }
}

impl<S: ?Sized + 'static> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched")
            .field(&ServiceKey::of::<S>())
            .finish()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("plugin", &self.0.plugin)
            .finish_non_exhaustive()
    }
}
