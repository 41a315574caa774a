//! The service's vocabulary and trait.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};

use crate::target::{Expected, FileBytes, FsError, FsStat, FsTarget, FsVersion, TextStream};

/// A workspace in its canonical form (HST-1): the pool key, the child's working directory and the
/// URI that the language server is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workspace {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    /// `file:` URI of `path`, percent-encoded as RFC 3986 has it, without a trailing slash unless
    /// it is the root (HST-8).
    pub uri: String,
}

/// What to read as the source of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRequest {
    /// The workspace as the caller wrote it; absolute.
    pub workspace_root: String,
    /// The file as the caller wrote it: absolute, or relative to the workspace.
    pub file_path: String,
    /// Most bytes the file may have on disk, exact limit accepted.
    pub max_bytes: u64,
}

/// A source that was resolved, found inside its workspace, checked and read, in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The canonical workspace at the time of the read.
    pub workspace: Workspace,
    /// Canonical path of the file.
    pub path: PathBuf,
    /// `file:` URI of `path` (HST-8).
    pub uri: String,
    /// The text: valid UTF-8, line ends as on disk, a leading BOM left out (HST-4).
    pub text: String,
}

/// Why a workspace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The root is not an absolute path.
    #[error("workspace {root:?} is not an absolute path; give the absolute path of a directory")]
    NotAbsolute {
        /// The root as given.
        root: String,
    },
    /// Nothing is there.
    #[error("workspace {root:?} does not exist; give an existing directory")]
    Missing {
        /// The root as given.
        root: String,
    },
    /// Something else than a directory is there.
    #[error("workspace {root:?} is not a directory; give the directory that holds the file")]
    NotDirectory {
        /// The root as given.
        root: String,
    },
    /// The system refused, or a symbolic link loops.
    #[error("workspace {root:?} cannot be used: {reason}")]
    Inaccessible {
        /// The root as given.
        root: String,
        /// What the system said.
        reason: String,
    },
    /// The lookup was cancelled.
    #[error("workspace lookup {0}")]
    Cancelled(CancelReason),
}

/// Why a source was rejected (HST-2, HST-3). Each message names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The workspace itself cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Nothing is there.
    #[error(
        "source file {path:?} does not exist; check the path, relative ones are resolved against the workspace"
    )]
    Missing {
        /// The file as given.
        path: String,
    },
    /// A directory, FIFO, device or socket is there.
    #[error("source file {path:?} is not a regular file ({kind})")]
    NotRegular {
        /// The file as given.
        path: String,
        /// What it is: `directory`, `FIFO`, …
        kind: &'static str,
    },
    /// It resolves to a place outside the workspace.
    #[error(
        "source file {path:?} lies outside the workspace {workspace:?} (it resolves to {resolved:?})"
    )]
    OutsideWorkspace {
        /// The file as given.
        path: String,
        /// The canonical workspace.
        workspace: String,
        /// Where it resolves to.
        resolved: String,
    },
    /// Bytes that are not UTF-8.
    #[error("source file {path:?} is not UTF-8 text (first invalid byte at offset {offset})")]
    NotUtf8 {
        /// The file as given.
        path: String,
        /// Byte offset in the file.
        offset: u64,
    },
    /// A NUL byte: not text (HST-4).
    #[error("source file {path:?} is not text (NUL byte at offset {offset})")]
    NotText {
        /// The file as given.
        path: String,
        /// Byte offset in the file.
        offset: u64,
    },
    /// More bytes than allowed.
    #[error("source file {path:?} is larger than maxDocumentBytes ({limit} bytes)")]
    TooLarge {
        /// The file as given.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system refused, or a symbolic link loops.
    #[error("source file {path:?} cannot be read: {reason}")]
    Inaccessible {
        /// The file as given.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The read was cancelled.
    #[error("source read {0}")]
    Cancelled(CancelReason),
}

/// Files of one execution world.
#[async_trait]
pub trait FileSystem: Send + Sync + 'static {
    /// The world whose files these are.
    fn world(&self) -> &ExecutionWorld;

    /// Resolves a workspace root to its canonical form (HST-1).
    async fn workspace(&self, root: &str, cancel: &Cancel) -> Result<Workspace, WorkspaceError>;

    /// Resolves the workspace and the file, checks containment, kind, size and text, and reads, in
    /// one hop to a thread that may block. Emits no observation (HST-5).
    ///
    /// Cancellation is observed between chunks, and releases the caller at once even while the
    /// system blocks.
    async fn read_source(
        &self,
        request: SourceRequest,
        cancel: &Cancel,
    ) -> Result<Source, SourceError>;

    /// Makes a path absolute and normal by its letters: relative ones are resolved against `base`,
    /// which is absolute. Nothing is looked at, and no link is followed.
    async fn resolve(
        &self,
        base: Option<&str>,
        path: &str,
        cancel: &Cancel,
    ) -> Result<FsTarget, FsError>;

    /// The path that stands for what is at the target, whatever path leads there: two targets of
    /// one file have the same. What does not exist has the path that a write would make.
    ///
    /// A provider without links has nothing to do.
    async fn identity(&self, target: &FsTarget, cancel: &Cancel) -> Result<PathBuf, FsError> {
        cancel.check().map_err(FsError::Cancelled)?;
        Ok(target.path.clone())
    }

    /// What is at the target, behind all links.
    async fn stat(&self, target: &FsTarget, cancel: &Cancel) -> Result<FsStat, FsError>;

    /// What is at each of the absolute `paths`, behind all links, in their order and in one hop to
    /// a thread that may block. One that fails does not keep the others from being looked at.
    async fn probe(
        &self,
        paths: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Vec<Result<FsStat, FsError>>, CancelReason>;

    /// The names in a directory, at most `most` of them, in no order.
    async fn names(
        &self,
        directory: &Path,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Vec<OsString>, FsError>;

    /// The whole content of a regular file of at most `limit` bytes. Never waits for the other end
    /// of a FIFO or for a device.
    async fn read_bytes(
        &self,
        target: &FsTarget,
        limit: u64,
        cancel: &Cancel,
    ) -> Result<FileBytes, FsError>;

    /// The content of a regular file, piece by piece. `cancel` holds for the whole stream. Never
    /// waits for the other end of a FIFO or for a device.
    async fn stream_text(
        &self,
        target: &FsTarget,
        cancel: &Cancel,
    ) -> Result<Box<dyn TextStream>, FsError>;

    /// Puts a file with these bytes at the target in one step: who looks sees the old content or
    /// the new one, whole, and so it is after a crash. A link at the target is followed; the mode
    /// bits of a file that is replaced are kept, its owner where the system permits. Directories on
    /// the way are made. A failed or cancelled write leaves everything as it was, and so it says
    /// where that cannot be (the file is in place, but the disk would not have its name).
    ///
    /// What replaces a file is a new one: other hard links to it keep the old content, and its
    /// access control lists and extended attributes are not carried over.
    ///
    /// Whether the target is as `expected` is looked at last, right before the step. Cancelling
    /// does not release the caller before it is certain whether the file was written.
    async fn write(
        &self,
        target: &FsTarget,
        bytes: Vec<u8>,
        expected: Expected,
        cancel: &Cancel,
    ) -> Result<FsVersion, FsError>;
}
