//! The file system service: what the runtime reads, and through whom.
//!
//! Every file access of a plugin goes through [`FileSystem`], so that a remote or sandboxed world
//! can stand behind it (HST-9). The provider for this machine is [`LocalFileSystem`].
//!
//! - `service`: the trait, and the vocabulary of workspaces and sources.
//! - `target`: the vocabulary of the smaller operations: targets, versions, streams, failures.
//! - `observed`: the event that tells what a model has seen.
//! - `local`: the async shell of the local provider: one hop to a thread that may block, the
//!   caller's cancellation, ownership of reads that are still running.
//! - `locate`: finds, contains and opens; one module a platform.
//! - `text`: reads and judges the bytes.
//! - `files`: the smaller operations, on a thread that may block.
//! - `replace`: puts a file in the place of another in one step.
//! - `stream`: a file piece by piece.
//! - `plugin`: provides the service to a kernel.
//! - `uri`: `file:` URIs.

mod files;
mod local;
mod locate;
mod observed;
mod plugin;
mod replace;
mod service;
mod stream;
mod target;
#[cfg(test)]
mod testing;
mod text;
mod uri;

pub use files::normal;
pub use local::LocalFileSystem;
pub use observed::{FsObserved, Observation};
pub use plugin::FsLocalPlugin;
pub use service::{FileSystem, Source, SourceError, SourceRequest, Workspace, WorkspaceError};
pub use target::{
    Expected, FileBytes, FileKind, Found, FsError, FsStat, FsTarget, FsVersion, TextStream,
};
pub use uri::file_uri;
