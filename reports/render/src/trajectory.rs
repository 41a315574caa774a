//! The trajectory of an agent's run as one page: what went in, what the model said and what the
//! tools did, over time.
//!
//! [`read_session`] reads a session's file (`dsh-session/1`) with a reader of its own, which shows
//! what it does not know where a harness would refuse it; [`render_trajectory`] makes a page of it
//! that needs nothing but itself. A recording of the wire (`dsh-transcript/1`) adds the frames of
//! each `lsp` call. Nothing is judged here.

mod lanes;
mod log;
mod page;
mod run;
pub(crate) mod text;
mod wire;

pub use log::{SESSION_FORMAT, SessionLog, SessionReadError, read_session};
pub use page::{TrajectoryError, render_trajectory};
pub use wire::{CLOCK, clock};
