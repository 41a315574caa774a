//! The subprocess service: every process of the runtime is started, watched and ended through it.

mod service;

pub use service::{
    ChildExit, ChildIo, ChildProcess, MemberInfo, ProcessControl, ResolveError, SpawnError,
    SpawnSpec, Subprocess, TerminationReport,
};
