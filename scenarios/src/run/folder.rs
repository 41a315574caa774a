//! The folder of a run, in which its cases have theirs, or the workspaces of a check.
//!
//! Whoever has it holds a lock on it, which the system lets go of when the process is gone, however
//! it went. So a later run can tell what was left behind by one that was killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// What the names of these folders begin with.
const PREFIX: &str = "dsh-run-";

/// A file in the folder of a run that says that it is to stay.
const KEPT: &str = "kept";

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
#[error(
    "no folder can be made in {}: {reason}; set TMPDIR to a folder that can be written to",
    temp.display()
)]
pub struct FolderError {
    temp: PathBuf,
    reason: String,
}

/// The folder of a run below the one for temporary files. It is removed when dropped, with
/// whatever is still in it, unless something of it was to be kept.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl RunFolder {
    /// Makes one below `temp`, after removing those of runs that are gone.
    pub fn new(temp: &Path) -> Result<Self, FolderError> {
        let failed = |reason: String| FolderError {
            temp: temp.to_owned(),
            reason,
        };
        sweep(temp);
        // Somebody who sweeps may take it for a forgotten one before it is locked.
        for _ in 0..100 {
            let made = make(temp).map_err(|error| failed(error.to_string()))?;
            if let Some(this) = made {
                return Ok(this);
            }
        }
        Err(failed("it is removed again and again".to_owned()))
    }

    /// Has it stay when this is dropped, and when others sweep.
    pub fn keep(&self) -> io::Result<()> {
        keep(&self.path)
    }

    /// Where it is: absolute, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if is_kept(&self.path) {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!("{} stays: {error}", self.path.display());
        }
    }
}

/// Has the folder of a run stay.
pub(crate) fn keep(folder: &Path) -> io::Result<()> {
    fs::write(
        folder.join(KEPT),
        "kept, as --keep asks; remove it when done\n",
    )
}

fn is_kept(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(KEPT)).is_ok()
}

/// None if it was gone before it was locked.
fn make(temp: &Path) -> io::Result<Option<RunFolder>> {
    let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temp)?;
    let Some(lock) = lock(made.path())? else {
        return Ok(None);
    };
    let found = fs::symlink_metadata(made.path());
    if found.is_err() {
        return Ok(None);
    }
    let path = made.path().canonicalize()?;
    // From here on it is ours to remove.
    let _ = made.keep();
    Ok(Some(RunFolder { path, _lock: lock }))
}

/// The lock on a folder; none if another has it, or it is gone.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match open(folder, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the folders of this user's runs that are gone. What cannot be removed stays: it does
/// not keep another run from its work.
fn sweep(temp: &Path) {
    let Ok(entries) = fs::read_dir(temp) else {
        return;
    };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == own);
        if !is_one || is_kept(&entry.path()) {
            continue;
        }
        if let Ok(Some(lock)) = lock(&entry.path()) {
            if let Err(error) = fs::remove_dir_all(entry.path()) {
                tracing::warn!("{} stays: {error}", entry.path().display());
            }
            drop(lock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(temp: &Path) -> Vec<String> {
        let entries = fs::read_dir(temp).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_run_that_is_gone_left_is_removed_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        for name in ["dsh-run-dead", "dsh-run-kept", "dsh-other"] {
            fs::create_dir_all(path(name).join("case/ws")).unwrap();
        }
        keep(&path("dsh-run-kept")).unwrap();
        fs::write(path("dsh-run-file"), "").unwrap();
        std::os::unix::fs::symlink(path("dsh-other"), path("dsh-run-link")).unwrap();
        let alive = RunFolder::new(temp.path()).unwrap();
        fs::create_dir(alive.path().join("case")).unwrap();
        let other = RunFolder::new(temp.path()).unwrap();
        assert!(alive.path().join("case").is_dir());
        assert!(!path("dsh-run-dead").exists());
        drop(alive);
        drop(other);
        let left = ["dsh-other", "dsh-run-file", "dsh-run-kept", "dsh-run-link"];
        assert_eq!(names(temp.path()), left);
        assert!(path("dsh-other/case/ws").is_dir());
    }

    #[test]
    fn a_folder_that_cannot_be_is_named_with_the_way_out() {
        let temp = tempfile::tempdir().unwrap();
        let error = RunFolder::new(&temp.path().join("absent")).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("/absent: "), "{told}");
        assert!(told.contains("set TMPDIR"), "{told}");
    }
}
