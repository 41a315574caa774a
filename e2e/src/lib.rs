//! Catalogue of real servers, sample workspaces, probes.
//!
//! [`check`] drives one server through the host over a recording of the wire and judges what was
//! recorded. The host is the specimen's side and stays unchanged; the judgement reads the
//! transcript with code of its own. [`RecordingSubprocess`] records whatever is started through
//! it, also a process that is spoken to without a host: what the host never says is said by a raw
//! driver of its own, and measured.

mod ask;
pub mod catalogue;
mod check;
mod data;
mod embedded;
mod evidence;
mod found;
pub mod install;
mod judge;
mod life;
mod measure;
pub mod memory;
mod outcome;
mod place;
mod pleas;
mod probes;
mod qualify;
mod query;
mod raw;
mod readiness;
mod recording;
mod remedy;
pub mod samples;
mod sentence;
mod setting;
mod shape;
mod snapshot;
mod started;
mod target;
mod time;
mod tree;
mod warden;
mod work;

pub use check::{CheckError, CheckOptions, Checked, Ground, Measuring, ROUNDS, Step, check};
pub use evidence::RAW;
pub use found::Found;
pub use place::{At, NotAPlace};
pub use probes::{PROBES, Probe, probe_of};
pub use qualify::qualify;
pub use query::{Asking, Told, query};
pub use recording::RecordingSubprocess;
pub use remedy::TOOL_TIMEOUT_MS;
pub use setting::{Setting, Suggested};
pub use target::{Limits, Target, deployment_rows};
pub use warden::Warden;
pub use work::{Spent, measured};
