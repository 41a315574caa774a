//! All scenario files: those built into the program, or those of a folder.

mod snapshots;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::format::diagnostic::nearest;
use crate::format::load::MAX_FILE;
use crate::format::{Case, Diagnostic, Severity, load};

pub use snapshots::{SnapshotMismatch, Snapshots, snapshot_file, snapshot_text};

include!(concat!(env!("OUT_DIR"), "/suite.rs"));

/// A set of scenario files, read.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    cases: Vec<Case>,
    diagnostics: Vec<Diagnostic>,
    files: Vec<String>,
    snapshots: Snapshots,
}

/// One file of a suite: its path below the suite's folder, with slashes, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteFile {
    /// `cancel/ignored.yaml`.
    pub path: String,
    /// How it is named to people; below the folder that was given.
    pub shown: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Why there is no suite, or no part of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A folder has no scenario in it.
    #[error("{}: no scenario files here; they end in .yaml", path.display())]
    NoFiles {
        /// Which.
        path: PathBuf,
    },
    /// A filter that no case's id fits.
    #[error(
        "no scenario fits {filter:?}{}",
        nearest.as_ref().map_or_else(
            || "; `dsh-conform list scenarios` shows them all".to_owned(),
            |id| format!("; did you mean {id}?")
        )
    )]
    NothingFits {
        /// The filter.
        filter: String,
        /// The nearest id.
        nearest: Option<String>,
    },
    /// A filter that is no glob.
    #[error("{filter:?} is no pattern: {reason}")]
    MalformedGlob {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Suite {
    /// The suite of this project.
    ///
    /// A program built with optimization has it built in. A development build reads it from where
    /// it was built, so that a scenario can be changed without compiling.
    pub fn embedded() -> Result<Self, SuiteError> {
        if let Some(files) = EMBEDDED {
            let files = files.iter().map(|(path, text)| SuiteFile {
                path: (*path).to_owned(),
                shown: format!("scenarios/suite/{path}"),
                bytes: text.to_vec(),
            });
            return Ok(Self::from_files(files));
        }
        let (files, odd) = read_folder(Path::new(FOLDER), "scenarios/suite")?;
        Ok(Self::from_files(files).with(odd))
    }

    /// The scenarios of a folder, or of one file.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let unreadable = |error| SuiteError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let kind = fs::metadata(path).map_err(unreadable)?;
        let (files, odd) = if kind.is_dir() {
            read_folder(path, &path.display().to_string())?
        } else if kind.is_file() {
            (read_one(path)?, Vec::new())
        } else {
            let reason = "it is neither a file nor a folder";
            return Err(unreadable(io::Error::other(reason)));
        };
        let suite = Self::from_files(files).with(odd);
        if suite.files.is_empty() && suite.diagnostics.is_empty() {
            return Err(SuiteError::NoFiles {
                path: path.to_owned(),
            });
        }
        Ok(suite)
    }

    /// Only the file with this id of a suite's folder, with its snapshots.
    pub fn read_file_of(folder: &Path, id: &str) -> Result<Self, SuiteError> {
        let path = folder.join(format!("{id}.yaml"));
        let mut files = read_one(&path)?;
        let below = id
            .rsplit_once('/')
            .map_or(String::new(), |(below, _)| format!("{below}/"));
        for file in &mut files {
            file.path.insert_str(0, &below);
        }
        Ok(Self::from_files(files))
    }

    /// The scenarios of these files, in any order.
    pub fn from_files(files: impl IntoIterator<Item = SuiteFile>) -> Self {
        let mut files: Vec<SuiteFile> = files.into_iter().collect();
        files.sort_by(|a, b| id_of(&a.path).cmp(id_of(&b.path)).then(a.path.cmp(&b.path)));
        let mut this = Self::default();
        let mut ids = BTreeSet::new();
        for file in files {
            if let Some(case) = file.path.strip_suffix(".snap") {
                let text = String::from_utf8_lossy(&file.bytes).into_owned();
                this.snapshots.0.insert(case.to_owned(), text);
                continue;
            }
            let id = match file.path.rsplit_once('.') {
                Some((id, "yaml")) => id.to_owned(),
                Some((id, "yml")) => {
                    this.refuse(&file, format!("name it {id}.yaml, as all others are"));
                    continue;
                }
                _ => continue,
            };
            if !ids.insert(id.clone()) {
                this.refuse(&file, format!("there are two scenario files `{id}`"));
                continue;
            }
            let loaded = load(&id, &file.shown, &file.bytes);
            this.files.push(id);
            this.cases.extend(loaded.cases);
            this.diagnostics.extend(loaded.diagnostics);
        }
        this
    }

    fn with(mut self, diagnostics: Vec<Diagnostic>) -> Self {
        self.diagnostics.extend(diagnostics);
        self
    }

    fn refuse(&mut self, file: &SuiteFile, reason: String) {
        self.diagnostics.push(Diagnostic {
            file: file.shown.clone(),
            line: 1,
            column: 1,
            severity: Severity::Error,
            reason,
            suggestion: None,
            case: None,
        });
    }

    /// All cases, by file and then by the order of the matrix. Files with an error have none.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// What is wrong with the files: errors and warnings.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What makes files unusable.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        let errors = self.diagnostics.iter();
        errors.filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The ids of the files: what the ids of their cases begin with.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The cases that any of the filters selects, in their order; all of them without a filter.
    ///
    /// A filter with `*`, `?` or `[` is a glob over whole ids, in which `*` stands for slashes
    /// too. One that is a case's id, or a file's, selects that and nothing else. Any other selects
    /// the ids that have it in them. The path of a scenario file will do for its id.
    pub fn select(&self, filters: &[String]) -> Result<Vec<&Case>, SuiteError> {
        if filters.is_empty() {
            return Ok(self.cases.iter().collect());
        }
        let mut chosen = BTreeSet::new();
        for filter in filters {
            let mut hits = 0_usize;
            let mut choose = |fits: &dyn Fn(&Case) -> bool| {
                let fitting = self.cases.iter().enumerate();
                let fitting = fitting.filter(|(_, case)| fits(case)).map(|(at, _)| at);
                let fitting: Vec<usize> = fitting.collect();
                hits = fitting.len();
                chosen.extend(fitting);
            };
            let id = plain(filter);
            if id.contains(['*', '?', '[']) {
                let pattern =
                    glob::Pattern::new(id).map_err(|error| SuiteError::MalformedGlob {
                        filter: filter.clone(),
                        reason: error.to_string(),
                    })?;
                choose(&|case| pattern.matches(&case.id));
            } else if self
                .cases
                .iter()
                .any(|case| case.id == id || file_of(&case.id) == id)
            {
                choose(&|case| case.id == id || file_of(&case.id) == id);
            } else {
                choose(&|case| case.id.contains(id));
            }
            if hits == 0 {
                let names = self.cases.iter().map(|case| case.id.as_str());
                let files = self.files.iter().map(String::as_str);
                let folders = self.files.iter().flat_map(|file| {
                    let ends = file.match_indices('/');
                    ends.map(|(at, _)| &file[..=at])
                });
                return Err(SuiteError::NothingFits {
                    filter: filter.clone(),
                    nearest: nearest(id, folders.chain(files).chain(names)),
                });
            }
        }
        Ok(chosen.into_iter().map(|at| &self.cases[at]).collect())
    }
}

/// A filter as an id: the path of a scenario file of this project stands for its id.
fn plain(filter: &str) -> &str {
    let filter = filter.trim().trim_start_matches("./");
    let filter = filter.strip_prefix("scenarios/").unwrap_or(filter);
    let filter = filter.strip_prefix("suite/").unwrap_or(filter);
    filter.strip_suffix(".yaml").unwrap_or(filter)
}

/// Whether a name is meant by a filter: a glob over the whole of it, or a part of it. Letter case
/// does not matter.
pub fn fits(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    if filter.contains(['*', '?', '[']) {
        glob::Pattern::new(&filter).is_ok_and(|pattern| pattern.matches(&name))
    } else {
        name.contains(&filter)
    }
}

/// The nearest of `names` to what was written, if it is near enough to have been meant.
pub fn nearest_name<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, names)
}

/// The file's part of a case's id.
pub fn file_of(id: &str) -> &str {
    id.split('#').next().unwrap_or(id)
}

/// The path of a file without its extension.
fn id_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(id, _)| id)
}

/// One part of several, so that a suite can be run on several machines.
///
/// Which part a case belongs to follows from its id alone: it stays the same whatever other cases
/// there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

/// A text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no shard: write I/N with I from 1 to N, for instance 2/4")]
pub struct ShardError(String);

impl Shard {
    /// Which part, from 1.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Of how many.
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Whether a case with this id belongs to it.
    pub fn has(self, id: &str) -> bool {
        // The low bits of the hash alone would not spread ids that differ in one character.
        let hash = fnv1a(id.as_bytes());
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl std::str::FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| digits)
        };
        let parsed = text
            .split_once('/')
            .and_then(|(i, n)| Some((number(i)?, number(n)?)));
        match parsed {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { number, of }),
            _ => Err(ShardError(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// FNV-1a in 64 bits: the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A file, and the snapshots of its cases beside it.
fn read_one(path: &Path) -> Result<Vec<SuiteFile>, SuiteError> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut files = vec![SuiteFile {
        path: format!("{stem}.yaml"),
        shown: path.display().to_string(),
        bytes: read_bytes(path)?,
    }];
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let unreadable = |error| SuiteError::Unreadable {
        path: folder.to_owned(),
        error,
    };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let case = name.strip_suffix(".snap");
        let own = case.is_some_and(|case| file_of(case) == stem);
        if own && entry.file_type().map_err(unreadable)?.is_file() {
            files.push(SuiteFile {
                path: name,
                shown: entry.path().display().to_string(),
                bytes: read_bytes(&entry.path())?,
            });
        }
    }
    Ok(files)
}

/// All files below a folder, those behind links too, and a warning for each thing that is passed
/// over though it may have been meant.
fn read_folder(
    folder: &Path,
    shown: &str,
) -> Result<(Vec<SuiteFile>, Vec<Diagnostic>), SuiteError> {
    let mut files = Vec::new();
    let mut odd = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, below)) = folders.pop() {
        let unreadable = |error| SuiteError::Unreadable {
            path: folder.clone(),
            error,
        };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{below}{name}");
            // Files are told by what they are, so that a named pipe is never opened.
            let kind = entry.file_type().map_err(unreadable)?;
            let ends = [".yaml", ".yml", ".snap"];
            let meant = ends.iter().any(|end| name.ends_with(end));
            let behind = fs::metadata(entry.path());
            let shown = format!("{}/{path}", shown.trim_end_matches('/'));
            if kind.is_dir() {
                folders.push((entry.path(), format!("{path}/")));
            } else if meant && behind.as_ref().is_ok_and(fs::Metadata::is_file) {
                let bytes = read_bytes(&entry.path())?;
                files.push(SuiteFile { path, shown, bytes });
            } else if let Some(reason) = passed_over(meant, kind, behind) {
                odd.push(Diagnostic {
                    file: shown,
                    line: 1,
                    column: 1,
                    severity: Severity::Warning,
                    reason,
                    suggestion: None,
                    case: None,
                });
            }
        }
    }
    Ok((files, odd))
}

/// Why something in a folder of scenarios is passed over, if it may have been meant.
fn passed_over(
    meant: bool,
    kind: fs::FileType,
    behind: io::Result<fs::Metadata>,
) -> Option<String> {
    let what = match behind {
        Ok(behind) if kind.is_symlink() && behind.is_dir() => {
            "a link to a folder, which might lead round in circles".to_owned()
        }
        Err(error) if kind.is_symlink() && meant => format!("a link that leads nowhere ({error})"),
        _ if meant => "no file".to_owned(),
        _ => return None,
    };
    Some(format!(
        "this is {what}, and is passed over; put a file or a link to a file here"
    ))
}

/// The bytes of a file; of one that is longer than a scenario may be, one more than may be.
fn read_bytes(path: &Path) -> Result<Vec<u8>, SuiteError> {
    let unreadable = |error| SuiteError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}
