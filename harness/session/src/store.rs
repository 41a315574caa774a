//! The store: a session as a file of JSON Lines (RUN-11).
//!
//! The first line names the format and holds the header, each further one is an event. A line is
//! whole once its line feed is there; what a crash left behind the last one was never promised to
//! anybody and is cut off.

pub(crate) mod decode;
pub(crate) mod disk;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::session::blocking;
use crate::{Event, MAX_LINE, Session, SessionHeader};
use disk::Disk;

/// The format that is written, and the only one that is read.
pub const FORMAT: &str = "dsh-session/1";

/// The first line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    header: SessionHeader,
}

/// Why a session cannot be created, opened or written. Each message names the file and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused something.
    #[error("{}: could not be {doing}: {source}. {}", .path.display(), way_out(.doing, .source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was to be done with it.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A new session must not overwrite anything.
    #[error(
        "{}: is there already. Resume it to go on with that session, or choose another name", .path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Two writers would spoil each other's lines.
    #[error(
        "{}: the session is open already, here or in another process. Close it there first, or \
         go on with a copy of the file", .path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A folder, a pipe or a device.
    #[error("{}: is no regular file. Name the file that a session was written to", .path.display())]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// The first line is none of ours, or no whole one.
    #[error("{}:1: {problem}", .path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// Written by another version.
    #[error(
        "{}:1: the session has format {found:?}, and this version reads {FORMAT:?} only. Open it \
         with the version that wrote it", .path.display()
    )]
    ForeignVersion {
        /// The file.
        path: PathBuf,
        /// The format that it names.
        found: String,
    },
    /// A line that is whole and wrong.
    #[error(
        "{}:{line}: {problem}. Mend it from a copy; or go on from before it, with the first {} \
         lines in a new file", .path.display(), .line - 1
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// One-based.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// The session is kept in a file already.
    #[error("{}: the session is kept here already; fork it to keep it elsewhere too", .path.display())]
    Attached {
        /// The file.
        path: PathBuf,
    },
    /// The program is ending.
    #[error("the session was not written: the runtime is shutting down")]
    Stopped,
}

fn way_out(doing: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::InvalidFilename => "Choose a shorter name",
        io::ErrorKind::NotADirectory => "A part of the path is no folder; choose another place",
        io::ErrorKind::IsADirectory => "It is a folder; name a file",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free some space; what is missing is written with the next step"
        }
        io::ErrorKind::NotFound => "Check the path; the folder must exist",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose a place that may be written to"
        }
        _ if matches!(doing, "created" | "opened" | "locked" | "read") => {
            "Check the disk and the path, or choose another place"
        }
        _ => "Check the disk; what is missing is written with the next step",
    }
}

/// An open file that a session is kept in. The lock on it ends with it.
pub(crate) struct Store {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// How many events are on the disk for certain.
    durable: usize,
    /// How many bytes the file has with these.
    length: u64,
    /// Whether something beyond them may be in the file.
    dirty: bool,
}

impl Store {
    /// A file that holds `durable` events, and `length` bytes with these.
    pub(crate) fn new(path: PathBuf, disk: Box<dyn Disk>, durable: usize, length: u64) -> Self {
        Self {
            path,
            disk,
            durable,
            length,
            dirty: false,
        }
    }

    /// How many events are on the disk for certain.
    pub(crate) fn durable(&self) -> usize {
        self.durable
    }

    /// Writes the events that follow those that are durable, all or none of them.
    pub(crate) fn write(&mut self, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, &**event)
                .expect("strings and JSON values are always written");
            lines.push(b'\n');
        }
        self.write_lines(&lines)?;
        self.durable += events.len();
        Ok(())
    }

    fn write_lines(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        // A failed write has left a part, and what a failed sync has lost is not known: begin anew
        // behind what is durable.
        if self.dirty {
            let cut = self.disk.cut(self.length);
            self.told("mended after a failed write", cut)?;
        }
        self.dirty = true;
        let appended = self.disk.append(lines);
        self.told("written", appended)?;
        let synced = self.disk.sync();
        self.told("written to the disk", synced)?;
        self.dirty = false;
        self.length += lines.len() as u64;
        Ok(())
    }

    fn told(&self, doing: &'static str, result: io::Result<()>) -> Result<(), StoreError> {
        result.map_err(|source| StoreError::Io {
            path: self.path.clone(),
            doing,
            source,
        })
    }
}

/// Keeps sessions in files, one each.
///
/// A file that is open is locked: whoever opens it a second time, in whichever process, is refused.
/// The session holds the file until the last of its clones is dropped.
#[derive(Debug)]
pub struct SessionStore;

impl SessionStore {
    /// A new session that is kept in a new file. The folder must exist.
    pub async fn create(
        path: impl Into<PathBuf>,
        header: SessionHeader,
    ) -> Result<Session, StoreError> {
        let session = Session::new(header);
        Self::attach(path, &session).await?;
        Ok(session)
    }

    /// Keeps a session, a fork for instance, in a new file from now on; what it has is written at
    /// once. The folder must exist.
    pub async fn attach(path: impl Into<PathBuf>, session: &Session) -> Result<(), StoreError> {
        let path = path.into();
        let mut slot = Arc::clone(session.store()).lock_owned().await;
        if let Some(store) = slot.as_ref() {
            let path = store.path.clone();
            return Err(StoreError::Attached { path });
        }
        let header = session.header().clone();
        let events = session.read(|log| log.events().to_vec());
        blocking(move || {
            *slot = Some(create(&path, header, &events)?);
            Ok(())
        })
        .await
    }

    /// Opens a file and goes on with its session. What a crash has left is put in order: a torn last
    /// line is cut off, and what was open is ended ([`Session::close_open`]), which is on the disk
    /// when this returns.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Session, StoreError> {
        let path = path.into();
        let opened = path.clone();
        let session = blocking(move || open(opened)).await?;
        session.close_open().map_err(|error| StoreError::Line {
            path,
            line: error.seq + 1,
            problem: error.to_string(),
        })?;
        session.sync().await?;
        Ok(session)
    }
}

fn create(path: &Path, header: SessionHeader, events: &[Arc<Event>]) -> Result<Store, StoreError> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)
        .map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists {
                path: path.to_owned(),
            },
            _ => StoreError::Io {
                path: path.to_owned(),
                doing: "created",
                source,
            },
        })?;
    let begin = || {
        lock(path, &file)?;
        let mut line = serde_json::to_vec(&Head {
            format: FORMAT.to_owned(),
            header,
        })
        .expect("strings are always written");
        line.push(b'\n');
        let mut store = Store::new(path.to_owned(), Box::new(file), 0, 0);
        store.write_lines(&line)?;
        store.write(events)?;
        let entered = sync_folder(path);
        store.told("entered in its folder", entered)?;
        Ok(store)
    };
    begin().inspect_err(|_| {
        // What was begun holds nothing; left there it would only be in the way.
        let _ = std::fs::remove_file(path);
    })
}

/// Makes the name of a new file as durable as its bytes.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn lock(path: &Path, file: &File) -> Result<(), StoreError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::Locked {
            path: path.to_owned(),
        },
        TryLockError::Error(source) => StoreError::Io {
            path: path.to_owned(),
            doing: "locked",
            source,
        },
    })
}

fn open(path: PathBuf) -> Result<Session, StoreError> {
    let io = |doing| {
        let path = path.clone();
        move |source| StoreError::Io {
            path,
            doing,
            source,
        }
    };
    // A pipe would be waited for when opened.
    let kind = std::fs::metadata(&path).map_err(io("opened"))?;
    if !kind.is_file() {
        return Err(StoreError::NotAFile { path });
    }
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .open(&path)
        .map_err(io("opened"))?;
    lock(&path, &file)?;
    let loaded = decode::read(&path, &mut BufReader::with_capacity(1 << 16, &file))?;
    let events = loaded.log.events().len();
    let mut store = Store::new(path.clone(), Box::new(file), events, loaded.length);
    if loaded.torn > 0 {
        tracing::warn!(path = %path.display(), bytes = loaded.torn, "a torn last line was cut off");
        let cut = store
            .disk
            .cut(store.length)
            .and_then(|()| store.disk.sync());
        store.told("mended", cut)?;
    }
    let session = Session::loaded(loaded.header, loaded.log);
    *session
        .store()
        .try_lock()
        .expect("nobody else has the session yet") = Some(store);
    Ok(session)
}
