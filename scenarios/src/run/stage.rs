//! The folder of a case and what lies in it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use indexmap::IndexMap;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::fill::Places;
use super::place::{self, Markers};
use crate::format::{FileSpec, SpecialFile};
use crate::scarce::advised;

/// The most bytes of one file that a scenario may ask for.
const MAX_FILE: u64 = 1 << 30;

/// Why something cannot be put where it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// The system refuses.
    #[error("{path}: {}", advised(error))]
    Io { path: String, error: io::Error },
    /// The scenario asks for what cannot be.
    #[error("{path}: {reason}")]
    Wrong { path: String, reason: String },
    /// This machine cannot have such a thing.
    #[error("{path}: {reason}")]
    Impossible { path: String, reason: String },
}

/// A temp folder with `ws` and `tmp`, removed when dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: Option<tempfile::TempDir>,
    pub(crate) places: Places,
    pub(crate) markers: Markers,
}

impl Stage {
    /// Makes the folders below `temp`.
    pub(crate) fn new(temp: &Path, fake: &Path, seed: u64) -> Result<Self, StageError> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error| StageError::Io { path, error }
        };
        let folder = tempfile::Builder::new()
            .prefix("dsh-case")
            .tempdir_in(temp)
            .map_err(failed(temp))?;
        let root = folder.path().canonicalize().map_err(failed(temp))?;
        if root.to_str().is_none() {
            return Err(StageError::Wrong {
                path: root.display().to_string(),
                reason: "is not UTF-8; set TMPDIR to a folder that is".to_owned(),
            });
        }
        let workspace = root.join("ws");
        for path in [&workspace, &root.join("tmp")] {
            fs::create_dir(path).map_err(failed(path))?;
        }
        let fake = fake.to_owned();
        Ok(Self {
            folder: Some(folder),
            places: Places {
                root,
                workspace,
                fake,
                seed,
            },
            markers: Markers::new(),
        })
    }

    /// Where the harness and its servers put temporary files.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.places.root.join("tmp")
    }

    /// Puts files where they belong.
    pub(crate) fn write(&mut self, files: &IndexMap<String, FileSpec>) -> Result<(), StageError> {
        files
            .iter()
            .try_for_each(|(name, spec)| self.put(name, spec))
    }

    /// Puts one file where it belongs, in place of what is there.
    fn put(&mut self, name: &str, spec: &FileSpec) -> Result<(), StageError> {
        let path = self.path(name)?;
        let failed = |error| StageError::Io {
            path: name.to_owned(),
            error,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        self.markers.remove(name);
        let regular = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let text = matches!(spec, FileSpec::Text(_));
        // A regular file that stays one keeps its identity, as when an editor saves in place.
        if !(regular && text) {
            clear(&path).map_err(failed)?;
        }
        match spec {
            FileSpec::Text(text) => {
                let (plain, markers) = place::unmark(text);
                self.markers.insert(name.to_owned(), markers);
                fs::write(&path, plain).map_err(failed)
            }
            FileSpec::Special(special) => self.special(name, &path, special),
        }
    }

    fn special(
        &mut self,
        name: &str,
        path: &Path,
        special: &SpecialFile,
    ) -> Result<(), StageError> {
        let failed = |error| StageError::Io {
            path: name.to_owned(),
            error,
        };
        let wrong = |reason: String| StageError::Wrong {
            path: name.to_owned(),
            reason,
        };
        match special {
            SpecialFile::Base64(text) => {
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .map_err(|error| wrong(format!("is no base64: {error}")))?;
                fs::write(path, bytes).map_err(failed)
            }
            SpecialFile::Repeat { text, times } => {
                let size = (text.len() as u64).checked_mul(*times);
                if size.is_none_or(|size| size > MAX_FILE) {
                    return Err(wrong(format!("would have more than {MAX_FILE} bytes")));
                }
                let times = usize::try_from(*times).unwrap_or(usize::MAX);
                fs::write(path, text.repeat(times)).map_err(failed)
            }
            SpecialFile::Link(target) => symlink(target, path).map_err(failed),
            SpecialFile::Directory {} => fs::create_dir(path).map_err(failed),
            SpecialFile::Pipe {} => node(path, FileType::Fifo).map_err(failed),
            SpecialFile::Socket {} => node(path, FileType::Socket).map_err(failed),
            SpecialFile::Unreadable(text) => {
                let (plain, markers) = place::unmark(text);
                self.markers.insert(name.to_owned(), markers);
                fs::write(path, plain).map_err(failed)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o000)).map_err(failed)?;
                match fs::File::open(path) {
                    Err(_) => Ok(()),
                    Ok(_) => Err(StageError::Impossible {
                        path: name.to_owned(),
                        reason: "a file that cannot be read needs a user who is not root"
                            .to_owned(),
                    }),
                }
            }
        }
    }

    /// Removes a file, link or empty directory.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), StageError> {
        let path = self.path(name)?;
        self.markers.remove(name);
        let failed = |error| StageError::Io {
            path: name.to_owned(),
            error,
        };
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        if found.is_dir() {
            fs::remove_dir(&path).map_err(failed)
        } else {
            fs::remove_file(&path).map_err(failed)
        }
    }

    /// Renames.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), StageError> {
        let (old, new) = (self.path(from)?, self.path(to)?);
        if let Some(markers) = self.markers.remove(from) {
            self.markers.insert(to.to_owned(), markers);
        }
        fs::rename(old, new).map_err(|error| StageError::Io {
            path: from.to_owned(),
            error,
        })
    }

    /// The path of something a scenario names; nothing outside the case's folder is ever touched.
    fn path(&self, name: &str) -> Result<PathBuf, StageError> {
        let path = self.places.path(name);
        let root = &self.places.root;
        if path.starts_with(root) && path != *root {
            // A link on the way may lead anywhere, whatever the path looks like.
            let mut above = path.ancestors().skip(1);
            let real = above.find_map(|folder| folder.canonicalize().ok());
            if real.is_some_and(|folder| folder.starts_with(root)) {
                return Ok(path);
            }
            return Err(StageError::Wrong {
                path: name.to_owned(),
                reason: "lies behind a link that leads outside the folder of the case; name the \
                         place itself"
                    .to_owned(),
            });
        }
        Err(StageError::Wrong {
            path: name.to_owned(),
            reason: "lies outside the folder of the case; one `../` at most".to_owned(),
        })
    }

    /// Leaves everything where it is, which is told.
    pub(crate) fn keep(mut self) -> PathBuf {
        if let Some(folder) = self.folder.take() {
            let _ = folder.keep();
        }
        self.places.root.clone()
    }

    /// Removes everything; an error says what stayed.
    pub(crate) fn close(mut self) -> io::Result<()> {
        match self.folder.take() {
            Some(folder) => folder.close(),
            None => Ok(()),
        }
    }
}

/// Removes whatever is at a path, but no directory with something in it.
fn clear(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn node(path: &Path, kind: FileType) -> io::Result<()> {
    Ok(mknodat(CWD, path, kind, Mode::RUSR | Mode::WUSR, 0)?)
}
