//! Opening with the kernel's word for it that no symbolic link was followed.
//!
//! Where neither the workspace nor the file is named through a link or `..`, their names are
//! canonical already. `openat2` refuses everything else, so that what it opens lies inside, whatever
//! is renamed meanwhile, in a number of system calls that does not grow with the depth of the path.
//!
//! `None` means that this way does not lead there: a link, `..`, a kernel or sandbox without
//! `openat2`, or an error, which the other way finds again and explains.

use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, openat2};

use super::Located;

pub(super) fn open(root: &Path, file: &Path) -> Option<Located> {
    let workspace = plain(root)?;
    let file = plain(file)?;
    let relative = if file.is_absolute() {
        file.strip_prefix(&workspace).ok()?
    } else {
        &file
    };
    if relative.as_os_str().is_empty() {
        return None;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(
        CWD,
        &workspace,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
    .ok()?;
    // Looked at before it is opened: opening a device may have effects.
    let seen = rustix::fs::statat(&folder, relative, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    regular_size(&seen)?;
    // Looked at again once open; a FIFO put in its place would not have blocked.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = openat2(&folder, relative, flags, Mode::empty(), resolve).ok()?;
    let size = regular_size(&rustix::fs::fstat(&file).ok()?)?;
    let path = workspace.join(relative);
    Some(Located {
        workspace,
        path,
        file: file.into(),
        size,
    })
}

/// The path without empty and `.` components, if it has no `..` and does not ask for a directory.
fn plain(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let asks_for_directory = bytes.len() > 1 && (bytes.ends_with(b"/") || bytes.ends_with(b"/."));
    if asks_for_directory || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    Some(
        path.components()
            .filter(|part| *part != Component::CurDir)
            .collect(),
    )
}

fn regular_size(stat: &Stat) -> Option<u64> {
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    regular.then(|| u64::try_from(stat.st_size).unwrap_or(0))
}
