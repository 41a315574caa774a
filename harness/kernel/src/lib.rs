//! Plugin host: contexts, services by trait type, effects, cancellation.

mod cancel;
mod world;

pub use cancel::{Cancel, CancelReason};
pub use world::ExecutionWorld;
