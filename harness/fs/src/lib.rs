//! The file system service: what the runtime reads, and through whom.
//!
//! Every file access of a plugin goes through [`FileSystem`], so that a remote or sandboxed world
//! can stand behind it (HST-9). The provider for this machine is [`LocalFileSystem`].
//!
//! - `service`: the vocabulary and the trait.
//! - `local`: the async shell of the local provider: one hop to a thread that may block, the
//!   caller's cancellation, ownership of reads that are still running.
//! - `locate`: finds, contains and opens; one module a platform.
//! - `text`: reads and judges the bytes.
//! - `plugin`: provides the service to a kernel.
//! - `uri`: `file:` URIs.

mod local;
mod locate;
mod plugin;
mod service;
mod text;
mod uri;

pub use local::LocalFileSystem;
pub use plugin::FsLocalPlugin;
pub use service::{
    FileSystem, FsError, Source, SourceError, SourceRequest, Workspace, WorkspaceError,
};
pub use uri::file_uri;
