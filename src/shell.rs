//! The environment this process runs in, read once and passed on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use dsh_e2e::catalogue::{CONFIG, Catalogue, OwnFile, a_file};
use dsh_e2e::install::{Installer, Machine, default_cache};

use crate::exit::Exit;
use crate::files;

/// What the outside is like.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// All variables.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// Files with servers that `--catalogue` names.
    pub(crate) catalogues: Vec<PathBuf>,
    /// Where temporary folders are made.
    pub(crate) temporary: PathBuf,
    /// This program.
    pub(crate) program: PathBuf,
    /// Whether a person reads stderr as it comes.
    pub(crate) stderr_is_terminal: bool,
}

impl Shell {
    #[expect(clippy::disallowed_methods, reason = "this is the outer shell")]
    pub(crate) fn read() -> Result<Self, String> {
        let directory = std::env::current_dir()
            .map_err(|error| format!("the working directory cannot be used: {error}"))?;
        let program = std::env::current_exe()
            .map_err(|error| format!("the path of this program is not known: {error}"))?;
        Ok(Self {
            variables: std::env::vars_os().collect(),
            directory,
            catalogues: Vec::new(),
            temporary: std::env::temp_dir(),
            program,
            stderr_is_terminal: std::io::stderr().is_terminal(),
        })
    }

    /// The value of a variable; an empty one counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(std::ffi::OsStr::new(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Whether this is a machine of a CI, where nothing long is begun unasked.
    pub(crate) fn is_ci(&self) -> bool {
        self.variable("CI")
            .is_some_and(|value| value != "false" && value != "0")
    }

    /// `path` as seen from the working directory.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }

    /// The `dsh-conform.toml` of the working folder, or of the nearest one above that has one.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        let mut folders = self.directory.ancestors();
        // Also what is no file, so that nobody takes it for one that is read.
        let there = |file: &PathBuf| file.symlink_metadata().is_ok();
        folders.find_map(|folder| Some(folder.join(CONFIG)).filter(there))
    }

    /// The servers that are known by name: the built-in ones, over them those of
    /// `dsh-conform.toml`, over these the ones of `--catalogue`.
    pub(crate) fn catalogue(&self) -> Result<Catalogue, String> {
        let shown = |path: &Path| {
            let relative = path.strip_prefix(&self.directory).unwrap_or(path);
            relative.display().to_string()
        };
        let read = |path: &Path, shown: &str| {
            OwnFile::read(path, shown, &|path| Ok(Box::new(files::open(path)?)))
                .map_err(|error| error.to_string())
        };
        let config = match self.config() {
            Some(path) => {
                let shown = shown(&path);
                a_file(&path, &shown).map_err(|error| error.to_string())?;
                read(&path, &shown)?
            }
            None => Vec::new(),
        };
        let mut named = Vec::new();
        for path in &self.catalogues {
            named.extend(read(&self.absolute(path), &path.display().to_string())?);
        }
        Catalogue::builtin()
            .with(&[config, named])
            .map_err(|error| error.to_string())
    }

    /// Finds and installs servers, in the folder `DSH_CONFORM_CACHE` names, else in the user's
    /// cache folder.
    pub(crate) fn installer(&self) -> Result<Installer, String> {
        let named = self
            .variables
            .get(std::ffi::OsStr::new("DSH_CONFORM_CACHE"));
        let cache = match named.filter(|folder| !folder.is_empty()) {
            Some(folder) => self.absolute(Path::new(folder)),
            None => default_cache().map_err(|error| {
                format!("there is no folder for caches: {error}; set HOME or DSH_CONFORM_CACHE")
            })?,
        };
        Ok(Installer::new(Machine::new(self.variables.clone()), cache))
    }
}

/// Now, in RFC 3339 and UTC.
#[expect(clippy::disallowed_methods, reason = "this is the outer shell")]
pub(crate) fn date() -> Option<String> {
    let since = std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()?;
    Some(rfc3339(since.as_secs()))
}

/// Now, in UTC and without anything that a file name could trip over.
pub(crate) fn compact_date() -> String {
    date().unwrap_or_default().replace(['-', ':'], "")
}

/// A seed that is another one each time, short enough to be typed.
#[expect(clippy::disallowed_methods, reason = "this is the outer shell")]
pub(crate) fn seed() -> u64 {
    std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| u64::from(since.subsec_micros()))
}

/// Now, in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the outer shell")]
pub(crate) fn unix_us() -> u64 {
    std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        })
}

/// Seconds since 1970 as `2026-07-15T12:34:56Z`.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = dsh_reports::date_of_day(days);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The text of a file that has at most `most` bytes, also where it is a device or a pipe that never
/// ends. `what` the file is to be is named where it is larger.
pub(crate) fn read_text(path: &Path, most: u64, what: &str) -> Result<String, String> {
    String::from_utf8(read_bytes(path, most, what)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 text (first invalid byte at offset {at})")
    })
}

/// The same, of a file that need not be text.
pub(crate) fn read_bytes(path: &Path, most: u64, what: &str) -> Result<Vec<u8>, String> {
    let file = files::open(path).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > most {
        return Err(format!(
            "it is larger than {most} bytes, the most that {what} may have"
        ));
    }
    Ok(text)
}

/// Runs `work`; a panic is told as what it is, a fault of this program. What `work` owned is gone
/// by then, processes included.
pub(crate) fn guarded(work: impl FnOnce() -> Exit) -> Exit {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        crate::output::complain(&format!(
            "this is a fault of dsh-conform {} itself, not of what was checked. Please report it \
             with the lines above and the command. Processes that were started are ended.",
            env!("CARGO_PKG_VERSION")
        ));
        Exit::OurFault
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days_and_ends_of_years() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_784_118_896, "2026-07-15T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }

    #[test]
    fn a_panic_is_our_fault() {
        assert_eq!(guarded(|| panic!("on purpose")), Exit::OurFault);
        assert_eq!(guarded(|| Exit::Fine), Exit::Fine);
    }
}
