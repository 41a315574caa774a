//! The smaller operations on this machine's files, as blocking code.

use std::ffi::OsString;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::locate;
use crate::target::{FileKind, FsError, FsStat, FsTarget, FsVersion};

/// Makes a path absolute and normal, by its letters.
pub(crate) fn resolve(base: Option<&str>, given: &str) -> Result<FsTarget, FsError> {
    let bad = |reason: &str| {
        Err(FsError::Inaccessible {
            path: given.to_owned(),
            reason: reason.to_owned(),
        })
    };
    if given.is_empty() {
        return bad("the path is empty; name a file");
    }
    if given.contains('\0') {
        return bad("the path holds a NUL byte");
    }
    let path = Path::new(given);
    let path = if path.is_absolute() {
        normal(path)
    } else {
        let base = base.map(Path::new).filter(|base| base.is_absolute());
        let base = base.ok_or_else(|| FsError::Relative {
            path: given.to_owned(),
        })?;
        normal(&base.join(path))
    };
    Ok(target(path))
}

pub(crate) fn target(path: PathBuf) -> FsTarget {
    FsTarget {
        display_path: path.to_string_lossy().into_owned(),
        path,
    }
}

/// A path without `.`, `..` and doubled separators, by its letters: no link is looked at.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // At the root there is nothing to pop, and nothing above it.
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// What is there, behind all links.
pub(crate) fn stat(path: &Path) -> Result<FsStat, FsError> {
    std::fs::metadata(path)
        .map(|metadata| stat_of(&metadata))
        .map_err(|error| failed(path, &error))
}

pub(crate) fn stat_of(metadata: &Metadata) -> FsStat {
    let kind = kind_of(metadata.file_type());
    FsStat {
        kind,
        size: (kind == FileKind::File).then_some(metadata.len()),
        version: version_of(metadata),
    }
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        _ if kind.is_file() => FileKind::File,
        _ if kind.is_dir() => FileKind::Directory,
        _ => FileKind::Other(locate::kind_name(kind)),
    }
}

/// Which file, how large, and when its content and its inode changed last. The time of the last
/// change cannot be set by programs, so that a copied time stamp hides no change.
///
/// A system whose clock for files is coarse (Linux before 6.13: up to 10 ms) hides a change that
/// keeps the size, if it comes within one tick of the one before.
#[cfg(unix)]
pub(crate) fn version_of(metadata: &Metadata) -> FsVersion {
    use std::os::unix::fs::MetadataExt;
    FsVersion::new(format!(
        "{:x}.{:x}.{:x}.{:x}.{:x}.{:x}.{:x}",
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ))
}

/// How large, and when it was written last, created too.
#[cfg(not(unix))]
pub(crate) fn version_of(metadata: &Metadata) -> FsVersion {
    FsVersion::new(format!(
        "{:x}.{:?}.{:?}",
        metadata.len(),
        metadata.modified().ok(),
        metadata.created().ok()
    ))
}

/// Most links that are followed one after the other, as the system has it.
const MAX_LINKS: usize = 40;

/// The one path of what is at the path: behind all links that are there. What does not exist yet is
/// where a write would make it.
pub(crate) fn identity(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(whole) = path.canonicalize() {
            return whole;
        }
        let mut ancestors = path.ancestors().skip(1);
        let found = ancestors.find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
        let whole = match found {
            Some((folder, real)) => match path.strip_prefix(folder) {
                Ok(rest) => real.join(rest),
                Err(_) => return path,
            },
            None => return path,
        };
        // A link to what is not there is written through.
        let link = std::fs::read_link(&whole);
        match link.ok().zip(whole.parent()) {
            Some((link, folder)) => path = normal(&folder.join(link)),
            None => return whole,
        }
    }
    path
}

/// The names in a directory, at most `most` of them.
pub(crate) fn names(directory: &Path, most: usize) -> Result<Vec<OsString>, FsError> {
    let failed = |error: io::Error| failed(directory, &error);
    std::fs::read_dir(directory)
        .map_err(failed)?
        .take(most)
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(failed))
        .collect()
}

/// Opens a regular file for reading. The kind is looked at before, so that a FIFO or device is not
/// opened, and again on the open file, which may have been put in its place.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), FsError> {
    let failed = |error: io::Error| failed(path, &error);
    check_regular(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = open_without_blocking(path, Links::Followed).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_regular(path, &metadata)?;
    Ok((file, metadata))
}

pub(crate) fn check_regular(path: &Path, metadata: &Metadata) -> Result<(), FsError> {
    match kind_of(metadata.file_type()) {
        FileKind::File => Ok(()),
        kind => Err(FsError::NotRegular {
            path: shown(path),
            kind,
        }),
    }
}

/// What becomes of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// What it leads to is opened.
    Followed,
    /// It is not opened.
    Refused,
}

/// Opens for reading what may turn out to be a FIFO or a terminal: neither is waited for, and none
/// becomes this process's own. The environment of a process is not read, by whatever path: keys are
/// in there, this process's own too.
#[cfg(unix)]
pub(crate) fn open_without_blocking(path: &Path, links: Links) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    // The standard library adds O_CLOEXEC.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if is_environment(&file) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

/// Whether the file is the environment of a process, as Linux shows it below `/proc`.
#[cfg(unix)]
fn is_environment(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Elsewhere there is no such link, and no such file.
    std::fs::read_link(link)
        .is_ok_and(|path| path.starts_with("/proc") && path.ends_with("environ"))
}

#[cfg(not(unix))]
pub(crate) fn open_without_blocking(path: &Path, _links: Links) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

/// A path in a message.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What the system said about a path, as a failure with a reason to go by.
pub(crate) fn failed(path: &Path, error: &io::Error) -> FsError {
    let path = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FsError::Missing { path },
        io::ErrorKind::PermissionDenied => FsError::Denied { path, detail: "" },
        io::ErrorKind::ReadOnlyFilesystem => FsError::ReadOnly { path },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FsError::NoSpace {
            path,
            reason: error.to_string(),
        },
        io::ErrorKind::CrossesDevices => FsError::OtherDevice { path },
        _ => FsError::Inaccessible {
            path,
            reason: locate::reason(error),
        },
    }
}

#[cfg(all(test, unix))]
mod tests;
