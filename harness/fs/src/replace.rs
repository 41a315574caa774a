//! Puts a file in the place of another in one step.
//!
//! The bytes go to a temporary file in the same directory, which gets the mode and the owner of the
//! file it is to replace, is written through to the disk, and then takes its name. Whatever fails
//! before that leaves the old file as it was, and the temporary one is removed.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use dsh_kernel::CancelReason;
use tempfile::NamedTempFile;

use crate::files;
use crate::target::{Expected, Found, FsError, FsVersion};

/// Most bytes written between two looks at the cancellation.
const CHUNK: usize = 1024 * 1024;

/// Most links that are followed from the target, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// What comes next. Tests let it fail there, or change the file under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    MakeDirectories,
    CreateTemporary,
    Write,
    KeepMode,
    SyncFile,
    Check,
    Rename,
    SyncDirectory,
}

/// One write.
pub(crate) struct Replacement<'a> {
    pub(crate) target: &'a Path,
    pub(crate) bytes: &'a [u8],
    pub(crate) expected: &'a Expected,
    /// Asked between the steps.
    pub(crate) stop: &'a dyn Fn() -> Result<(), CancelReason>,
    /// Told before each step; an error is the step's failure.
    pub(crate) before: &'a dyn Fn(Step) -> io::Result<()>,
}

impl Replacement<'_> {
    /// Writes, and gives the version of what was written.
    pub(crate) fn run(&self) -> Result<FsVersion, FsError> {
        let (path, linked) = follow(self.target).map_err(|error| self.failed(&error))?;
        let old = self.old(&path)?;
        self.check(old.as_ref())?;
        let directory = path.parent().unwrap_or(&path);
        let mut made = Made::default();
        if old.is_none() && !linked {
            self.step(Step::MakeDirectories, || made.directories(directory))?;
        }
        let mut new = self.temporary(directory, old.as_ref())?;
        self.fill(&mut new)?;
        if let Some(old) = &old {
            self.step(Step::KeepMode, || keep_owner_and_mode(new.as_file(), old))?;
        }
        self.step(Step::SyncFile, || new.as_file().sync_all())?;
        (self.stop)().map_err(FsError::Cancelled)?;
        let file = self.put(new, &path)?;
        made.keep();
        let written = file.metadata().map_err(|error| self.failed(&error))?;
        (self.before)(Step::SyncDirectory)
            .and_then(|()| sync_directories(directory, &made))
            .map_err(|error| FsError::Inaccessible {
                path: files::shown(self.target),
                reason: format!("it was written, but may not outlast a crash ({error})"),
            })?;
        Ok(files::version_of(&written))
    }

    fn failed(&self, error: &io::Error) -> FsError {
        files::failed(self.target, error)
    }

    fn step<T>(&self, step: Step, run: impl FnOnce() -> io::Result<T>) -> Result<T, FsError> {
        (self.before)(step)
            .and_then(|()| run())
            .map_err(|error| self.failed(&error))
    }

    /// The file that is to be replaced, which must be one that may be written.
    fn old(&self, path: &Path) -> Result<Option<Metadata>, FsError> {
        let old = match std::fs::symlink_metadata(path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        files::check_regular(self.target, &old)?;
        may_write(path).map_err(|error| self.failed(&error))?;
        Ok(Some(old))
    }

    fn check(&self, now: Option<&Metadata>) -> Result<(), FsError> {
        let found = match (self.expected, now) {
            (Expected::Any, _) | (Expected::Absent, None) => return Ok(()),
            (Expected::Version(version), Some(now)) if *version == files::version_of(now) => {
                return Ok(());
            }
            (Expected::Absent, Some(_)) => Found::Present,
            (Expected::Version(_), Some(_)) => Found::Changed,
            (Expected::Version(_), None) => Found::Absent,
        };
        Err(self.stale(found))
    }

    fn stale(&self, found: Found) -> FsError {
        FsError::Stale {
            path: files::shown(self.target),
            found,
        }
    }

    fn temporary(
        &self,
        directory: &Path,
        old: Option<&Metadata>,
    ) -> Result<NamedTempFile, FsError> {
        let made = (self.before)(Step::CreateTemporary).and_then(|()| temporary(directory, old));
        made.map_err(|error| match self.failed(&error) {
            FsError::Denied { path, .. } => FsError::Denied {
                path,
                detail: "; to write it takes permission to create files in its directory",
            },
            other => other,
        })
    }

    fn fill(&self, new: &mut NamedTempFile) -> Result<(), FsError> {
        let file = new.as_file_mut();
        for chunk in self.bytes.chunks(CHUNK) {
            (self.stop)().map_err(FsError::Cancelled)?;
            self.step(Step::Write, || file.write_all(chunk))?;
        }
        Ok(())
    }

    /// The last look, and the step itself.
    fn put(&self, new: NamedTempFile, path: &Path) -> Result<File, FsError> {
        if *self.expected == Expected::Absent {
            (self.before)(Step::Rename).map_err(|error| self.failed(&error))?;
            return new.persist_noclobber(path).map_err(|error| {
                if error.error.kind() == io::ErrorKind::AlreadyExists {
                    self.stale(Found::Present)
                } else {
                    self.failed(&error.error)
                }
            });
        }
        (self.before)(Step::Rename).map_err(|error| self.failed(&error))?;
        (self.before)(Step::Check).map_err(|error| self.failed(&error))?;
        match std::fs::symlink_metadata(path) {
            Ok(now) => {
                files::check_regular(self.target, &now)?;
                self.check(Some(&now))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.check(None)?,
            Err(error) => return Err(self.failed(&error)),
        }
        new.persist(path).map_err(|error| self.failed(&error.error))
    }
}

/// Where the links from `path` lead, and whether there were any. What is there need not exist.
fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut at = path.to_owned();
    for links in 0..=MAX_LINKS {
        match std::fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                let to = std::fs::read_link(&at)?;
                at = at.parent().unwrap_or(Path::new("")).join(to);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return Ok((at, links > 0)),
        }
    }
    Err(io::Error::other("its symbolic links form a loop"))
}

/// A new file has the mode that any new file gets. One that replaces another is nobody else's to
/// read until it has got that one's mode.
fn temporary(directory: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dsh-").suffix(".tmp").rand_bytes(12);
    #[cfg(unix)]
    if old.is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        return builder
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(directory);
    }
    #[cfg(not(unix))]
    let _ = old;
    builder.tempfile_in(directory)
}

#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
fn may_write(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

#[cfg(unix)]
fn keep_owner_and_mode(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let mine = new.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
        let owner = rustix::fs::Uid::from_raw(old.uid());
        let group = rustix::fs::Gid::from_raw(old.gid());
        let kept = rustix::fs::fchown(new, Some(owner), Some(group))
            .or_else(|_| rustix::fs::fchown(new, None, Some(group)));
        let now = new.metadata()?;
        // Only root can give files away. Then the bits that lend the owner's rights must not come
        // to lend somebody else's.
        if now.uid() != old.uid() {
            mode &= !0o4000;
        }
        if kept.is_err() || now.gid() != old.gid() {
            mode &= !0o2000;
        }
    }
    new.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep_owner_and_mode(_new: &File, _old: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Directories that were made on the way, removed again unless the write came to its end.
#[derive(Default)]
struct Made {
    /// Outermost first.
    directories: Vec<PathBuf>,
    kept: bool,
}

impl Made {
    fn directories(&mut self, directory: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut at = directory;
        while !at.as_os_str().is_empty() && !at.try_exists()? {
            missing.push(at.to_owned());
            match at.parent() {
                Some(parent) => at = parent,
                None => break,
            }
        }
        while let Some(next) = missing.pop() {
            match std::fs::create_dir(&next) {
                Ok(()) => self.directories.push(next),
                // Somebody else made it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && next.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for directory in self.directories.iter().rev() {
            // One that somebody else has put something into stays.
            if std::fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

/// Writes the new name through to the disk, and those of new directories.
#[cfg(unix)]
fn sync_directories(directory: &Path, made: &Made) -> io::Result<()> {
    sync_directory(directory)?;
    for made in &made.directories {
        if let Some(parent) = made.parent() {
            sync_directory(parent)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems cannot, and some directories may be written but not listed.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// A directory cannot be opened for this here.
#[cfg(not(unix))]
fn sync_directories(_directory: &Path, _made: &Made) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
