//! The file system service: what the runtime reads, and through whom.
//!
//! Every file access of a plugin goes through [`FileSystem`], so that a remote or sandboxed world
//! can stand behind it (HST-9). The provider for this machine is [`LocalFileSystem`].

mod service;

pub use service::{
    FileSystem, FsError, Source, SourceError, SourceRequest, Workspace, WorkspaceError,
};
