//! The event bus: typed, synchronous, told to everybody who listens at that moment.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::panic_message;
use crate::lock;

/// Something that happened. Listeners see it by reference and cannot change it.
pub trait Event: Any + Send + Sync {
    /// The event's name for people and logs, `tools/result` for instance.
    const NAME: &'static str;
}

type Call = Arc<dyn Fn(&dyn Any) + Send + Sync>;

#[derive(Clone)]
struct Listener {
    /// Cleared on removal, so that an emission under way skips it too.
    alive: Arc<AtomicBool>,
    call: Call,
}

/// A typed, synchronous bus. Cloning shares it.
///
/// Listeners are recorders: they run in the emitter's thread, in the order in which they were
/// added, and must not block. One that panics is logged and disturbs neither the others nor the
/// emitter.
#[derive(Clone, Default)]
pub struct EventBus(Arc<Mutex<HashMap<TypeId, Vec<Listener>>>>);

impl EventBus {
    /// A bus without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens until the subscription is dropped.
    #[must_use = "dropping the subscription ends it"]
    pub fn subscribe<E: Event>(
        &self,
        listener: impl Fn(&E) + Send + Sync + 'static,
    ) -> Subscription {
        let alive = Arc::new(AtomicBool::new(true));
        let call: Call = Arc::new(move |event| {
            if let Some(event) = event.downcast_ref::<E>() {
                listener(event);
            }
        });
        let entry = Listener {
            alive: Arc::clone(&alive),
            call,
        };
        lock(&self.0)
            .entry(TypeId::of::<E>())
            .or_default()
            .push(entry);
        Subscription {
            bus: self.clone(),
            event: TypeId::of::<E>(),
            alive,
        }
    }

    /// Tells every listener of `E`, and returns when all have run.
    pub fn emit<E: Event>(&self, event: &E) {
        // Copied, since a listener may add or remove listeners.
        let listeners = lock(&self.0)
            .get(&TypeId::of::<E>())
            .cloned()
            .unwrap_or_default();
        for listener in listeners {
            if !listener.alive.load(Ordering::Acquire) {
                continue;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (listener.call)(event))) {
                tracing::error!(
                    event = E::NAME,
                    panic = panic_message(&*panic),
                    "a listener panicked"
                );
            }
        }
    }

    /// Removes all listeners.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").finish_non_exhaustive()
    }
}

/// A listener on the bus; dropping this removes it.
#[must_use = "dropping the subscription ends it"]
pub struct Subscription {
    bus: EventBus,
    event: TypeId,
    alive: Arc<AtomicBool>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.alive.store(false, Ordering::Release);
        let removed = {
            let mut listeners = lock(&self.bus.0);
            let list = listeners.entry(self.event).or_default();
            let at = list
                .iter()
                .position(|listener| Arc::ptr_eq(&listener.alive, &self.alive));
            at.map(|at| list.remove(at))
        };
        // Dropped outside the lock: what a listener holds may itself use the bus when dropped.
        drop(removed);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ping(u32);
    impl Event for Ping {
        const NAME: &'static str = "test/ping";
    }

    struct Pong;
    impl Event for Pong {
        const NAME: &'static str = "test/pong";
    }

    fn recorder() -> (Arc<Mutex<Vec<u32>>>, impl Fn(&Ping) + Send + Sync + 'static) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        (seen, move |ping: &Ping| lock(&sink).push(ping.0))
    }

    #[test]
    fn a_listener_hears_its_own_event_until_its_subscription_is_dropped() {
        let bus = EventBus::new();
        let (seen, listener) = recorder();
        let subscription = bus.subscribe(listener);
        bus.emit(&Ping(1));
        bus.emit(&Pong);
        drop(subscription);
        bus.emit(&Ping(2));
        assert_eq!(*lock(&seen), [1]);
    }

    #[test]
    fn a_panicking_listener_disturbs_nobody() {
        let bus = EventBus::new();
        let (seen, listener) = recorder();
        let _first = bus.subscribe(|_: &Ping| panic!("broken recorder"));
        let _second = bus.subscribe(listener);
        bus.emit(&Ping(7));
        assert_eq!(*lock(&seen), [7]);
    }

    #[test]
    fn a_listener_removed_by_an_earlier_one_is_not_called_any_more() {
        let bus = EventBus::new();
        let (seen, listener) = recorder();
        let second: Arc<Mutex<Option<Subscription>>> = Arc::default();
        let victim = Arc::clone(&second);
        let _first = bus.subscribe(move |_: &Ping| drop(lock(&victim).take()));
        *lock(&second) = Some(bus.subscribe(listener));
        bus.emit(&Ping(1));
        assert!(lock(&seen).is_empty());
    }
}
