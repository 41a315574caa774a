//! Resolution by names: canonicalize, look, open without blocking, look again at what was opened.

use std::fs::{FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::{Located, check_inside, source_error, workspace_error};
use crate::files::{Links, open_without_blocking};
use crate::service::{SourceError, SourceRequest, WorkspaceError};

pub(super) fn workspace(root: &str) -> Result<PathBuf, WorkspaceError> {
    let failed = |error: io::Error| workspace_error(root, &error);
    let path = resolve_workspace(root)?;
    // Fails where a server could not list the directory or could not enter it.
    std::fs::read_dir(&path).map_err(failed)?;
    std::fs::metadata(path.join(".")).map_err(failed)?;
    Ok(path)
}

fn resolve_workspace(root: &str) -> Result<PathBuf, WorkspaceError> {
    let failed = |error: io::Error| workspace_error(root, &error);
    let path = canonicalize(Path::new(root)).map_err(failed)?;
    if std::fs::metadata(&path).map_err(failed)?.is_dir() {
        Ok(path)
    } else {
        Err(WorkspaceError::NotDirectory {
            root: root.to_owned(),
        })
    }
}

/// The canonical workspace, and the canonical path of a file that lies inside.
pub(super) fn resolve(request: &SourceRequest) -> Result<(PathBuf, PathBuf), SourceError> {
    let workspace = resolve_workspace(&request.workspace_root)?;
    let given = request.file_path.as_str();
    let path = match canonicalize(&workspace.join(given)) {
        Ok(path) => path,
        Err(error) => {
            // A workspace that cannot be entered is the cause, not the file in it.
            if error.kind() == io::ErrorKind::PermissionDenied {
                self::workspace(&request.workspace_root)?;
            }
            return Err(source_error(given, &error));
        }
    };
    check_inside(&workspace, &path, given)?;
    Ok((workspace, path))
}

/// Opens what was looked at: the kind is checked before, so that a FIFO or device is not opened,
/// and again on the open file, which may have been put in its place.
pub(super) fn open(workspace: PathBuf, path: PathBuf, given: &str) -> Result<Located, SourceError> {
    let failed = |error: io::Error| source_error(given, &error);
    let seen = std::fs::symlink_metadata(&path).map_err(failed)?;
    check_regular(seen.file_type(), given)?;
    let file = open_without_blocking(&path, Links::Refused).map_err(failed)?;
    let opened = file.metadata().map_err(failed)?;
    check_regular(opened.file_type(), given)?;
    if !same_file(&seen, &opened) {
        return Err(SourceError::Inaccessible {
            path: given.to_owned(),
            reason: "it was replaced while it was being opened; ask again".to_owned(),
        });
    }
    Ok(Located {
        workspace,
        path,
        file,
        size: opened.len(),
    })
}

fn check_regular(kind: FileType, given: &str) -> Result<(), SourceError> {
    if kind.is_file() {
        return Ok(());
    }
    Err(SourceError::NotRegular {
        path: given.to_owned(),
        kind: kind_name(kind),
    })
}

#[cfg(unix)]
pub(crate) fn kind_name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_dir() => "directory",
        _ if kind.is_fifo() => "FIFO",
        _ if kind.is_socket() => "socket",
        _ if kind.is_char_device() => "character device",
        _ if kind.is_block_device() => "block device",
        _ if kind.is_symlink() => "symbolic link",
        _ => "special file",
    }
}

#[cfg(not(unix))]
pub(crate) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "directory",
        _ if kind.is_symlink() => "symbolic link",
        _ => "special file",
    }
}

#[cfg(unix)]
fn same_file(seen: &Metadata, opened: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (seen.dev(), seen.ino()) == (opened.dev(), opened.ino())
}

/// There is no stable identity to compare here; the kind was checked twice.
#[cfg(not(unix))]
fn same_file(_seen: &Metadata, _opened: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[cfg(not(unix))]
fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    let verbatim = std::fs::canonicalize(path)?;
    Ok(match verbatim.to_str() {
        Some(path) => super::without_verbatim(path).into_owned().into(),
        None => verbatim,
    })
}
