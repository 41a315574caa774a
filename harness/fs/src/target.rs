//! What the smaller operations speak of: a target, what is there, and what may be expected there.

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use dsh_kernel::CancelReason;

/// A path that an operation is about, resolved but not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FsTarget {
    /// Absolute, without `.`, `..` and doubled separators. No link is followed: what is there may
    /// be a link, and the operations follow it.
    pub path: PathBuf,
    /// The path for people and models. Bytes that are no text are replaced.
    pub display_path: String,
}

/// What sort of thing is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else, by name: `FIFO`, `socket`, `character device`, …
    Other(&'static str),
}

impl FileKind {
    /// The kind in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "regular file",
            Self::Directory => "directory",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An opaque mark of a file's content, good for comparing with another of the same path: while it
/// is equal, the content is the same. It may change although the content does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FsVersion(String);

impl FsVersion {
    /// A version as a provider words it.
    pub fn new(mark: impl Into<String>) -> Self {
        Self(mark.into())
    }

    /// The provider's word for it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is there, behind all links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsStat {
    /// What sort of thing.
    pub kind: FileKind,
    /// The size of a regular file in bytes, where the provider knows it. A hint: the file may grow,
    /// and some systems tell 0 of files that are not empty.
    pub size: Option<u64>,
    /// The mark of what is there now.
    pub version: FsVersion,
}

/// The whole content of a file that was read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBytes {
    /// As on disk.
    pub bytes: Vec<u8>,
    /// The version from before the first byte was read, so that a change meanwhile shows as another
    /// version later.
    pub version: FsVersion,
}

/// What a write expects to find at its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever there is, or nothing.
    Any,
    /// Nothing.
    Absent,
    /// A file in this version.
    Version(FsVersion),
}

/// The content of a file, piece by piece, in memory bounded by one piece.
///
/// The pieces are the bytes as on disk: where text begins, ends and is none is the reader's to say.
#[async_trait]
pub trait TextStream: Send {
    /// The next piece, which is not empty; none at the end and after an error.
    async fn next(&mut self) -> Option<Result<Bytes, FsError>>;

    /// The version from before the first byte was read.
    fn version(&self) -> &FsVersion;
}

/// A failure of one of the smaller operations. Each message names the path and ends in what to do,
/// where something can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// A relative path, and nothing to resolve it against.
    #[error(
        "{path:?} is a relative path, and there is no working directory to resolve it against; \
         give an absolute path"
    )]
    Relative {
        /// The path as given.
        path: String,
    },
    /// Nothing is there: a confirmed absence.
    #[error("{path:?} does not exist")]
    Missing {
        /// The path.
        path: String,
    },
    /// Something else than a regular file is there: a confirmed absence of a file.
    #[error("{path:?} is not a regular file but a {kind}")]
    NotRegular {
        /// The path.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// More bytes than the caller takes at once.
    #[error("{path:?} is larger than {limit} bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A write found something else than it expected, and changed nothing.
    #[error("{path:?} was not written: {found}")]
    Stale {
        /// The path.
        path: String,
        /// What it found instead.
        found: Found,
    },
    /// The system does not permit it.
    #[error("{path:?} cannot be used: permission denied{detail}")]
    Denied {
        /// The path.
        path: String,
        /// More words about what was not permitted, empty or starting with a separator.
        detail: &'static str,
    },
    /// The file system is mounted read-only.
    #[error("{path:?} was not written: its file system is read-only")]
    ReadOnly {
        /// The path.
        path: String,
    },
    /// The disk, or the user's share of it, is full.
    #[error("{path:?} was not written: no space is left on its file system ({reason})")]
    NoSpace {
        /// The path.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file is a mount of its own, so that it cannot be replaced in one step.
    #[error(
        "{path:?} was not written: it is mounted apart from its directory, and cannot be replaced \
         in one step"
    )]
    OtherDevice {
        /// The path.
        path: String,
    },
    /// The system refused otherwise: nothing is known about the target.
    #[error("{path:?} cannot be used: {reason}")]
    Inaccessible {
        /// The path.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The operation was cancelled. A write that was cancelled changed nothing.
    #[error("file operation {0}")]
    Cancelled(CancelReason),
}

impl FsError {
    /// Whether it is certain that there is no file, as opposed to a provider that could not tell
    /// (INS-9).
    pub const fn confirms_absence(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::NotRegular { .. })
    }
}

/// What a write found that did not fit its expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Something, where nothing was expected.
    Present,
    /// Nothing, where a file was expected.
    Absent,
    /// The file in another version.
    Changed,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "something exists there already",
            Self::Absent => "it does not exist any more",
            Self::Changed => "it has changed meanwhile",
        })
    }
}
