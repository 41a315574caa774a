//! Finds the workspace and the file, holds the file inside the workspace, and opens it.
//!
//! `paths` resolves by names, works everywhere and explains what went wrong. On Linux `beneath`
//! comes first: it opens without following links, which is all the common case needs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::service::{SourceError, SourceRequest, WorkspaceError};

#[cfg(target_os = "linux")]
mod beneath;
mod paths;

pub(crate) use paths::kind_name;

/// A source that was found inside its workspace and is open for reading.
#[derive(Debug)]
pub(crate) struct Located {
    /// The canonical workspace.
    pub(crate) workspace: PathBuf,
    /// The canonical path of the file.
    pub(crate) path: PathBuf,
    /// A regular file.
    pub(crate) file: File,
    /// What the system says its size is, in bytes.
    pub(crate) size: u64,
}

/// Resolves a workspace to the canonical path of a directory that can be listed and entered
/// (HST-1).
pub(crate) fn workspace(root: &str) -> Result<PathBuf, WorkspaceError> {
    check_absolute(root)?;
    paths::workspace(root)
}

/// Resolves the workspace and the file, checks containment and kind, and opens (HST-2, HST-3).
pub(crate) fn source(request: &SourceRequest) -> Result<Located, SourceError> {
    check_absolute(&request.workspace_root)?;
    if request.file_path.is_empty() {
        return Err(SourceError::Inaccessible {
            path: String::new(),
            reason: "the path is empty; name a file".to_owned(),
        });
    }
    #[cfg(target_os = "linux")]
    if let Some(located) = beneath::open(
        Path::new(&request.workspace_root),
        Path::new(&request.file_path),
    ) {
        return Ok(located);
    }
    let (workspace, path) = paths::resolve(request)?;
    // The names are canonical now; opened this way they cannot have become links meanwhile.
    #[cfg(target_os = "linux")]
    if let Some(located) = beneath::open(&workspace, &path) {
        return Ok(located);
    }
    paths::open(workspace, path, &request.file_path)
}

fn check_absolute(root: &str) -> Result<(), WorkspaceError> {
    if Path::new(root).is_absolute() {
        Ok(())
    } else {
        Err(WorkspaceError::NotAbsolute {
            root: root.to_owned(),
        })
    }
}

/// Containment by whole components of canonical paths: `/ws2` is not inside `/ws`.
fn check_inside(workspace: &Path, path: &Path, given: &str) -> Result<(), SourceError> {
    if path.starts_with(workspace) {
        return Ok(());
    }
    Err(SourceError::OutsideWorkspace {
        path: given.to_owned(),
        workspace: workspace.to_string_lossy().into_owned(),
        resolved: path.to_string_lossy().into_owned(),
    })
}

fn workspace_error(root: &str, error: &io::Error) -> WorkspaceError {
    let root = root.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => WorkspaceError::Missing { root },
        io::ErrorKind::NotADirectory => WorkspaceError::NotDirectory { root },
        _ => WorkspaceError::Inaccessible {
            root,
            reason: reason(error),
        },
    }
}

pub(crate) fn source_error(path: &str, error: &io::Error) -> SourceError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SourceError::Missing { path },
        _ => SourceError::Inaccessible {
            path,
            reason: reason(error),
        },
    }
}

/// What the system said, for people.
pub(crate) fn reason(error: &io::Error) -> String {
    #[cfg(unix)]
    if rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP) {
        return "its symbolic links form a loop".to_owned();
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidInput => "the path holds a NUL byte".to_owned(),
        _ => error.to_string(),
    }
}

/// A Windows path without the verbatim prefix that canonical paths carry there: most programs do
/// not take `\\?\C:\x`, and a URI has no place for it.
#[cfg(any(not(unix), test))]
pub(crate) fn without_verbatim(path: &str) -> std::borrow::Cow<'_, str> {
    if let Some(share) = path.strip_prefix(r"\\?\UNC\") {
        return format!(r"\\{share}").into();
    }
    path.strip_prefix(r"\\?\").unwrap_or(path).into()
}

#[cfg(test)]
mod tests;
