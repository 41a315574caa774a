//! Files that the user names, which may be pipes or devices.
//!
//! A pipe without anybody at its other end blocks whoever opens it, and keeps a signal from being
//! acted upon. So none is opened or read here in a way that blocks.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write as _};
use std::path::Path;

/// Opens a file to be read. A pipe is waited for as long as its writer likes, until this program is
/// asked to end.
pub(crate) fn open(path: &Path) -> io::Result<Input> {
    let file = imp::reading(path)?;
    let waits = !file.metadata()?.is_file();
    Ok(Input { file, waits })
}

/// Writes a file anew, the whole of it or nothing: what stood there stays where something fails.
/// What is no ordinary file is written as it is; a pipe that nobody reads is an error, and nothing
/// that is waited for.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match path.metadata() {
        Ok(about) if !about.is_file() => imp::write(&path, bytes),
        Ok(about) => replace(&path, bytes, Some(about.permissions())),
        Err(_) => replace(&path, bytes, None),
    }
}

/// The folder of a file; that of a bare name is the working directory.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Puts a new file in the place of `path`. In a folder that takes no new file, the old one is
/// written.
fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dsh-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // What the user's mask leaves of it, as for any new file.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut file = match builder.tempfile_in(folder(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && permissions.is_some() => {
            return imp::write(path, bytes);
        }
        Err(error) => return Err(error),
    };
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    /// Whether there may be nothing yet.
    waits: bool,
}

impl Input {
    /// Its size where that is known beforehand.
    pub(crate) fn size(&self) -> Option<u64> {
        let about = self.file.metadata().ok()?;
        about.is_file().then_some(about.len())
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.read(into);
        }
        loop {
            imp::readable(&self.file)?;
            match self.file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(unix)]
mod imp {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;

    use rustix::event::PollFlags;
    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use crate::{output, signals};

    /// Neither waits for the other end of a pipe, nor becomes the program of a terminal.
    fn flags() -> i32 {
        (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
    }

    pub(super) fn reading(path: &Path) -> io::Result<File> {
        File::options().read(true).custom_flags(flags()).open(path)
    }

    pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let opened = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags())
            .open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::NXIO.raw_os_error() => {
                io::Error::other("nobody reads this pipe; start its reader first, or name a file")
            }
            _ => error,
        })?;
        output::write(&file, bytes)
    }

    /// Waits until a read gives something, or that there is no more.
    pub(super) fn readable(file: &File) -> io::Result<()> {
        loop {
            if output::look(file, PollFlags::IN)? {
                return Ok(());
            }
            if signals::asked().is_some() {
                // Not the kind `Interrupted`, at which the standard library reads on.
                return Err(io::Error::other("given up while nothing was written to it"));
            }
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn reading(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::write(path, bytes)
    }

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it waits")]
    pub(super) fn readable(_file: &File) -> io::Result<()> {
        Ok(())
    }
}
