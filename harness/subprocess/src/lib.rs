//! The subprocess service: every process of the runtime is started, watched and ended through it.
//!
//! - `service`: the vocabulary and the traits.
//! - `local`: the provider for this machine. `environment`, `resolve` and `explain` say what a
//!   child gets, where its executable is, and why a start failed.
//! - `control`: the life of one child: exit, stdin (`input`), stderr (`tail`), termination.
//! - `plugin`: provides the service to a kernel.
//! - `tree`: the process tree below it; one module a platform. `marker` finds what left it.

mod control;
mod environment;
mod explain;
mod input;
mod local;
mod marker;
mod milestone;
mod plugin;
mod resolve;
mod service;
mod tail;
mod tree;

pub use local::LocalSubprocess;
pub use plugin::SubprocessLocalPlugin;
pub use service::{
    ChildExit, ChildIo, ChildProcess, MemberInfo, ProcessControl, ResolveError, SpawnError,
    SpawnSpec, Subprocess, TerminationReport,
};
