//! Catalogue of real servers, sample workspaces, probes.
//!
//! [`check`] drives one server through the host over a recording of the wire and judges what was
//! recorded. The host is the specimen's side and stays unchanged; the judgement reads the
//! transcript with code of its own. [`RecordingSubprocess`] records whatever is started through
//! it, also a process that is spoken to without a host.

mod ask;
pub mod catalogue;
mod check;
mod data;
mod embedded;
mod evidence;
pub mod install;
mod judge;
mod life;
mod measure;
mod outcome;
mod place;
mod probes;
mod query;
mod readiness;
mod recording;
pub mod samples;
mod shape;
mod snapshot;
mod target;
mod tree;

pub use check::{CheckError, CheckOptions, Checked, Ground, ROUNDS, Step, check};
pub use place::{At, NotAPlace};
pub use probes::{PROBES, Probe, probe_of};
pub use query::{Asking, Told, query};
pub use recording::RecordingSubprocess;
pub use target::{Limits, Target};
