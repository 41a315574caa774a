//! Plugin host: contexts, services by trait type, effects, events, cancellation.
//!
//! A [`Plugin`] names the services it needs and provides and registers everything it does through
//! its [`Context`]; the [`Kernel`] starts it when its needs are there, stops it before they go, and
//! undoes what it registered. The kernel knows no plugin and no service by name.

mod cancel;
mod context;
mod error;
mod event;
mod kernel;
mod plan;
mod plugin;
mod service;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use cancel::{Cancel, CancelReason};
pub use context::{Context, Watched};
pub use error::{DisposeErrors, DisposeFailure, PluginError, panic_message};
pub use event::{Event, EventBus, Subscription};
pub use kernel::{Kernel, PluginHandle, PluginState};
pub use plugin::Plugin;
pub use service::ServiceKey;
pub use world::ExecutionWorld;

/// The lock, also after a panic of another holder.
///
/// For state that is whole between two critical sections, as all state is that this crate guards:
/// what a panic leaves behind there is what was there, or what was to be.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
