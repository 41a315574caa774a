//! The event that tells what a model has seen of a file.

use std::path::PathBuf;

use dsh_kernel::Event;

use crate::target::{FsTarget, FsVersion};

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A file, in this version.
    Present {
        /// The version that was read, or that was written.
        version: FsVersion,
    },
    /// That there is no file.
    Absent,
}

/// `fs/observed`: a file tool has read or written a file for a model, or has seen that it is
/// missing (RUN-10).
///
/// Emitted by the first-party file tools alone, before their call ends. Whoever else reads files
/// does it for itself and makes no observation (HST-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsObserved {
    /// The file, by the path that the tool was given.
    pub target: FsTarget,
    /// The path that stands for it, whatever path led there: behind all links.
    pub identity: PathBuf,
    /// What was seen.
    pub observation: Observation,
    /// Whether the tool wrote it.
    pub write: bool,
    /// The tool: `read`, `write` or `edit`.
    pub tool: String,
    /// The id of the call, as the model gave it.
    pub call_id: String,
    /// The number of the call's execution token: unique in the process, shared by no two calls.
    pub token: u64,
    /// The id of the session that the call belongs to.
    pub session: Option<String>,
}

impl Event for FsObserved {
    const NAME: &'static str = "fs/observed";
}
