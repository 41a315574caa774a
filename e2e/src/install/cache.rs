//! The cache folder: `CACHE/NAME/VERSION-HASH/`, one installation each.
//!
//! An installation counts when its stamp is there. The stamp is written last, in one step, and
//! taken away first; what has no stamp was interrupted and is cleared away by the next
//! installation. (Building elsewhere and renaming would not do: a virtual environment and an npm
//! prefix have the path of their folder in their files.) Writers hold the lock of the server.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Entry, Recipe, RecipeKind};

/// What a finished installation is told by. Written as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stamp {
    server: String,
    version: String,
    recipe: Recipe,
}

const STAMP: &str = "installed.json";
/// Half of what identifies a recipe's result: changes when the way of installing changes.
const LAYOUT: u64 = 1;
/// How often a lock that someone else holds is tried again. Files have no event for it.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);
/// What an interrupted build leaves for the next one to go on from.
pub(super) const BUILD: &str = "build";

/// The folder of one installation, finished or not.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) folder: PathBuf,
    kind: RecipeKind,
}

impl Slot {
    /// Where `recipe` installs; `None` for recipes that install elsewhere.
    pub(super) fn of(cache: &Path, entry: &Entry, recipe: &Recipe) -> Option<Self> {
        let name = format!("{}-{:08x}", recipe.version()?, fingerprint(recipe));
        Some(Self {
            folder: cache.join(&entry.name).join(name),
            kind: recipe.kind(),
        })
    }

    /// Where the programs of a finished installation are.
    pub(super) fn programs(&self) -> PathBuf {
        match self.kind {
            RecipeKind::Npm => self.folder.join("node_modules").join(".bin"),
            RecipeKind::Pypi if cfg!(windows) => self.folder.join("venv").join("Scripts"),
            RecipeKind::Pypi => self.folder.join("venv").join("bin"),
            _ => self.folder.join("bin"),
        }
    }

    /// Whether the installation came to its end.
    pub(super) fn is_finished(&self) -> bool {
        self.folder.join(STAMP).is_file()
    }

    /// Makes an empty folder for a new installation; an interrupted build is kept.
    pub(super) fn begin(&self) -> io::Result<()> {
        self.clear(&[BUILD])?;
        std::fs::create_dir_all(&self.folder)
    }

    /// Marks the installation as finished.
    pub(super) fn finish(&self, entry: &Entry, recipe: &Recipe, version: &str) -> io::Result<()> {
        let stamp = Stamp {
            server: entry.name.clone(),
            version: version.to_owned(),
            recipe: recipe.clone(),
        };
        let text = serde_json::to_string_pretty(&stamp).map_err(io::Error::other)?;
        let unfinished = self.folder.join("installed.json.new");
        std::fs::write(&unfinished, text)?;
        std::fs::rename(unfinished, self.folder.join(STAMP))
    }

    /// Takes away what an installation that failed has left, but for an interrupted build.
    pub(super) fn abandon(&self) -> io::Result<()> {
        self.clear(&[BUILD])?;
        match std::fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            other => absent_is_fine(other),
        }
    }

    fn clear(&self, keep: &[&str]) -> io::Result<()> {
        absent_is_fine(std::fs::remove_file(self.folder.join(STAMP)))?;
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            if !keep.iter().any(|kept| entry.file_name() == *kept) {
                remove_any(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Takes the installation in `folder` away, its stamp first, so that it never counts half-gone.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    absent_is_fine(std::fs::remove_file(folder.join(STAMP)))?;
    absent_is_fine(std::fs::remove_dir_all(folder))
}

/// Every installation of `server`, finished or not, of whatever version.
pub(super) fn installations(cache: &Path, server: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(cache.join(server)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut folders = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    folders.sort();
    Ok(folders)
}

fn remove_any(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A number that is the same for the same recipe in every run (FNV-1a, folded).
fn fingerprint(recipe: &Recipe) -> u32 {
    let text = serde_json::to_string(recipe).expect("a recipe has string keys only");
    let start = 0xcbf2_9ce4_8422_2325 ^ LAYOUT;
    let hash = text.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u32::try_from((hash >> 32) ^ (hash & u64::from(u32::MAX))).unwrap_or_default()
}

/// The right to change the installations of one server; given back when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum LockError {
    Cancelled,
    Io(PathBuf, io::Error),
}

impl Lock {
    /// Waits for the lock of `server`; `on_wait` is called once when someone else holds it.
    pub(super) async fn acquire(
        cache: &Path,
        server: &str,
        on_wait: impl FnOnce(),
        cancel: &CancellationToken,
    ) -> Result<Self, LockError> {
        let folder = cache.join(".locks");
        let path = folder.join(server);
        let failed = |error| LockError::Io(path.clone(), error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed)?;
        let mut on_wait = Some(on_wait);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {
                    if let Some(on_wait) = on_wait.take() {
                        on_wait();
                    }
                }
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a file lock gives no event to wait for"
            )]
            let interval = tokio::time::sleep(LOCK_INTERVAL);
            tokio::select! {
                () = cancel.cancelled() => return Err(LockError::Cancelled),
                () = interval => {}
            }
        }
    }
    /// Whether someone is changing the installations of `server` right now.
    pub(super) fn is_held(cache: &Path, server: &str) -> bool {
        File::options()
            .append(true)
            .open(cache.join(".locks").join(server))
            .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}
