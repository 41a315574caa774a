//! Finding the servers of the catalogue on this machine, and installing them into a cache folder
//! of the user.
//!
//! A server is a program on PATH, or one that was installed into the cache by a recipe of its
//! entry. A program counts as present only when it tells its version: a launcher without the
//! server behind it is absent, and the reason is kept.
//!
//! Everything ambient (variables, the cache folder, whether this is a CI) is passed in. Every
//! program that is started is waited for, and ended with its process group on cancellation.

mod cache;
mod cause;
mod doctor;
mod home;
mod locate;
mod packaged;
mod process;
mod recipes;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use cause::Cause;
pub use doctor::{Advice, Diagnosis, Tool};
pub use recipes::RecipeError;

use self::cache::{Lock, LockError, Slot};
use self::recipes::Cook;
use crate::catalogue::{Entry, EntryRemedy, Platform, Recipe, RecipeKind};

/// What the outer shell knows about this machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The environment: given to every child process; its `PATH` is where programs are looked for.
    pub variables: BTreeMap<OsString, OsString>,
    /// Which recipes hold here.
    pub platform: Platform,
    /// Whether this process may install packages of the system.
    pub privileged: bool,
}

impl Machine {
    /// This machine, with these variables.
    pub fn new(variables: BTreeMap<OsString, OsString>) -> Self {
        #[cfg(unix)]
        let privileged = rustix::process::geteuid().is_root();
        #[cfg(not(unix))]
        let privileged = false;
        Self {
            variables,
            platform: Platform::current(),
            privileged,
        }
    }
}

/// Finds and installs servers.
#[derive(Debug, Clone)]
pub struct Installer {
    machine: Machine,
    cache: PathBuf,
    probe_limit: Duration,
}

/// A server that was found, and how it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The entry's name.
    pub server: String,
    /// The program, an absolute path.
    pub command: PathBuf,
    /// All its arguments.
    pub args: Vec<String>,
    /// `initializationOptions` it is given; null for none.
    pub initialization_options: Value,
    /// The answer to every `workspace/configuration` item; null for none.
    pub configuration: Value,
    /// Settings that are tried where a MUST fails without them.
    pub remedies: Vec<EntryRemedy>,
    /// The version it told, or `unknown` if it told none.
    pub version: String,
    /// Why it told none, where that is not what it is held to.
    pub untold: Option<String>,
    /// Where it came from.
    pub origin: Origin,
    /// What was looked at first and did not count.
    pub rejected: Vec<Rejected>,
    /// Others of its name on PATH, which come later.
    pub later: Vec<Candidate>,
}

impl Located {
    /// What else was found, and why it is not the one that is used, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let rejected = self.rejected.iter();
        let mut remarks: Vec<String> = rejected
            .map(|rejected| format!("passed over: {rejected}"))
            .collect();
        remarks.extend(self.untold.as_deref().map(without_version));
        for other in &self.later {
            let version = match &other.version {
                Ok(version) => version.clone(),
                Err(reason) => format!("which does not count: {reason}"),
            };
            remarks.push(format!(
                "not used: {} {version}; {} {} comes first on PATH",
                other.path.display(),
                self.command.display(),
                self.version
            ));
        }
        remarks
    }
}

/// Where a server came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A program on PATH.
    Path,
    /// The cache.
    Cache {
        /// The recipe that put it there.
        recipe: RecipeKind,
        /// The folder of the installation.
        folder: PathBuf,
        /// The packages that were asked for: name and exact version.
        packages: Vec<(String, String)>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("PATH"),
            Self::Cache {
                recipe, packages, ..
            } => {
                write!(f, "cache, from {}", recipe.name())?;
                for (package, version) in packages {
                    write!(f, " {package} {version}")?;
                }
                Ok(())
            }
        }
    }
}

/// A program of the right name that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The program.
    pub path: PathBuf,
    /// Why it counts as absent.
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// A program of the right name, and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The program.
    pub path: PathBuf,
    /// Where it came from.
    pub origin: Origin,
    /// Its version, or why it counts as absent.
    pub version: Result<String, String>,
    /// Why it told no version, where it counts all the same.
    pub untold: Option<String>,
}

/// That a server counts though it does not tell its version, with what keeps it from being asked.
pub fn without_version(reason: &str) -> String {
    format!(
        "its version is not known: {reason}; `version = {{optional = true}}` in its entry keeps it \
         from being asked"
    )
}

/// Why a server was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocateError {
    /// It is not here.
    #[error(
        "{server} is not here{}\n{}",
        listed(rejected),
        way_to(server, by_hand.as_deref())
    )]
    Absent {
        /// The entry's name.
        server: String,
        /// Programs of its name that do not count.
        rejected: Vec<Rejected>,
        /// What to do where none of its recipes installs anything here.
        by_hand: Option<String>,
    },
    /// The caller gave up.
    #[error("interrupted")]
    Cancelled,
}

fn way_to(server: &str, by_hand: Option<&str>) -> String {
    match by_hand {
        Some(by_hand) => by_hand.to_owned(),
        None => format!("to install it: dsh-conform servers install {server}"),
    }
}

/// What to do about a server that is not there, or does not count, and that no recipe installs.
/// `found` is whether there is a program of its name.
fn by_hand(entry: &Entry, platform: Platform, found: bool) -> Option<String> {
    if entry
        .recipes_on(platform)
        .any(|recipe| recipe.kind() != RecipeKind::Path)
    {
        return None;
    }
    let command = &entry.launch.command;
    let first = match (found, Path::new(command).is_absolute()) {
        (true, _) => format!("make {command} work"),
        (false, true) => format!("put its program at {command}"),
        (false, false) => format!("put {command} on PATH"),
    };
    Some(format!(
        "{first}, or give its entry a recipe that installs it here: it has none"
    ))
}

fn listed(rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return ": there is no program of its name on PATH or in the cache".to_owned();
    }
    let lines = rejected.iter().map(|rejected| format!("\n  {rejected}"));
    format!(
        "; what was found does not count:{}",
        lines.collect::<String>()
    )
}

/// What an installation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstallOptions {
    /// Run recipes of the system's package manager; otherwise they are only printed.
    pub system: bool,
    /// Start builds that take long. The outer shell sets this unless it runs in a CI and was not
    /// asked for it.
    pub long_builds: bool,
}

/// What happens while a server is being installed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Another process installs the same server.
    Waiting {
        /// The entry's name.
        server: &'a str,
    },
    /// What is in the cache does not start any more and is installed again.
    Renewing(&'a Rejected),
    /// A build that takes long begins.
    LongBuild {
        /// About how long it takes on two cores.
        minutes: u32,
    },
    /// A program was started.
    Running {
        /// The command as it would be typed.
        command: &'a str,
    },
    /// It printed a line.
    Output {
        /// The line.
        line: &'a str,
    },
    /// A recipe did not give the server; the next is tried.
    Failed(&'a Attempt),
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { server } => {
                write!(f, "waiting for another installation of {server} to end")
            }
            Self::Renewing(rejected) => write!(f, "installing again: {rejected}"),
            Self::LongBuild { minutes } => write!(
                f,
                "building from source, about {minutes} minutes on two cores; an interrupted build \
                 goes on where it stopped, and the result stays in the cache"
            ),
            Self::Running { command } => write!(f, "$ {command}"),
            Self::Output { line } => write!(f, "  {line}"),
            Self::Failed(attempt) => write!(f, "{attempt}"),
        }
    }
}

/// Gets the progress of an installation.
#[derive(Clone, Copy)]
pub struct Reporter<'a>(&'a (dyn Fn(&Progress<'_>) + Send + Sync));

impl<'a> Reporter<'a> {
    /// Calls `report` for everything that happens.
    pub fn new(report: &'a (dyn Fn(&Progress<'_>) + Send + Sync)) -> Self {
        Self(report)
    }

    /// Says nothing.
    pub fn silent() -> Self {
        Self(&|_| ())
    }

    fn report(self, progress: &Progress<'_>) {
        (self.0)(progress);
    }
}

/// A recipe that did not give the server.
#[derive(Debug)]
pub struct Attempt {
    /// Which.
    pub recipe: RecipeKind,
    /// Why.
    pub error: RecipeError,
    /// Programs it would have given that do not count.
    pub rejected: Vec<Rejected>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.recipe.name(), self.error)?;
        for line in self.error.tail() {
            write!(f, "\n  | {line}")?;
        }
        for rejected in &self.rejected {
            write!(f, "\n  {rejected}")?;
        }
        Ok(())
    }
}

/// Why a server was not installed, or not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// No recipe gave it.
    #[error(
        "{server} could not be installed\n{}",
        attempted(server, attempts, by_hand.as_deref())
    )]
    NothingWorked {
        /// The entry's name.
        server: String,
        /// What was tried, in order.
        attempts: Vec<Attempt>,
        /// What to do where none of its recipes installs anything here.
        by_hand: Option<String>,
    },
    /// A file or folder of the cache could not be read, written or removed.
    #[error("cannot use the cache: {}: {source}; {}", path.display(), Cause::remedy_of_io(source))]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The caller gave up.
    #[error("interrupted; what was begun is cleared away, run the same command to begin again")]
    Cancelled,
}

fn attempted(server: &str, attempts: &[Attempt], by_hand: Option<&str>) -> String {
    let lines = attempts
        .iter()
        .map(|attempt| format!("  {attempt}").replace('\n', "\n  "));
    let way_out = match by_hand {
        Some(by_hand) => by_hand.to_owned(),
        None => format!("what is missing here: dsh-conform servers doctor {server}"),
    };
    let lines: Vec<_> = lines.chain([way_out]).collect();
    lines.join("\n")
}

impl From<LocateError> for InstallError {
    fn from(error: LocateError) -> Self {
        match error {
            LocateError::Cancelled => Self::Cancelled,
            LocateError::Absent {
                server, by_hand, ..
            } => Self::NothingWorked {
                server,
                attempts: Vec::new(),
                by_hand,
            },
        }
    }
}

/// Where servers are installed when nothing else is said: `dsh-conform` in the user's folder for
/// caches (`$XDG_CACHE_HOME`, or what the platform has instead). Reads the environment: for the
/// outer shell.
pub fn default_cache() -> Result<PathBuf, etcetera::HomeDirError> {
    Ok(etcetera::choose_base_strategy()?
        .cache_dir()
        .join("dsh-conform"))
}

impl Installer {
    /// Works on `machine`, with installations in the folder `cache`, an absolute path that need
    /// not exist yet.
    pub fn new(machine: Machine, cache: impl Into<PathBuf>) -> Self {
        Self {
            machine,
            cache: cache.into(),
            probe_limit: locate::PROBE_LIMIT,
        }
    }

    /// The folder of the installations.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Makes the server present by the first of its recipes that works, and says where it is. One
    /// that is in the cache already, pinned and working, is taken as it is.
    pub async fn install(
        &self,
        entry: &Entry,
        options: InstallOptions,
        progress: Reporter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Located, InstallError> {
        if let Some(located) = self.present_already(entry, cancel).await? {
            return Ok(located);
        }
        let cook = Cook {
            installer: self,
            options,
            progress,
            cancel,
        };
        let mut attempts: Vec<Attempt> = Vec::new();
        for recipe in entry.recipes_on(self.machine.platform) {
            let attempted = match Slot::of(&self.cache, entry, recipe) {
                Some(slot) => self.install_into(entry, recipe, &slot, &cook).await?,
                None => self.install_outside(entry, recipe, &cook).await?,
            };
            match attempted {
                Ok(mut located) => {
                    let earlier = attempts.into_iter().flat_map(|attempt| attempt.rejected);
                    let rejected = without_repetition(earlier.chain(located.rejected));
                    // A recipe can make the very program work that did not before.
                    let still = |one: &Rejected| one.path != located.command;
                    located.rejected = rejected.into_iter().filter(still).collect();
                    return Ok(located);
                }
                Err(Attempt {
                    error: RecipeError::Cancelled,
                    ..
                }) => {
                    return Err(InstallError::Cancelled);
                }
                Err(attempt) => {
                    progress.report(&Progress::Failed(&attempt));
                    attempts.push(attempt);
                }
            }
        }
        let found = attempts.iter().any(|attempt| !attempt.rejected.is_empty());
        Err(InstallError::NothingWorked {
            server: entry.name.clone(),
            attempts,
            by_hand: by_hand(entry, self.machine.platform, found),
        })
    }

    /// Takes every installation of the server out of the cache, and says which there were.
    pub async fn remove(
        &self,
        entry: &Entry,
        progress: Reporter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Vec<PathBuf>, InstallError> {
        let server = entry.name.as_str();
        let folder = self.cache.join(server);
        let failed = |source| InstallError::Cache {
            path: folder.clone(),
            source,
        };
        if cache::installations(&self.cache, server)
            .map_err(failed)?
            .is_empty()
        {
            return Ok(Vec::new());
        }
        let _lock = self.lock(server, progress, cancel).await?;
        let folders = cache::installations(&self.cache, server).map_err(failed)?;
        for folder in &folders {
            let failed = |source| InstallError::Cache {
                path: folder.clone(),
                source,
            };
            in_background(folder, |folder| cache::remove(&folder))
                .await
                .map_err(failed)?;
        }
        Ok(folders)
    }

    async fn lock(
        &self,
        server: &str,
        progress: Reporter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Lock, InstallError> {
        let on_wait = || progress.report(&Progress::Waiting { server });
        Lock::acquire(&self.cache, server, on_wait, cancel)
            .await
            .map_err(|error| match error {
                LockError::Cancelled => InstallError::Cancelled,
                LockError::Io(path, source) => InstallError::Cache { path, source },
            })
    }

    /// What no recipe has to be carried out for: a program on PATH where that is preferred to
    /// installing one, else what is in the cache.
    async fn present_already(
        &self,
        entry: &Entry,
        cancel: &CancellationToken,
    ) -> Result<Option<Located>, InstallError> {
        let mut rejected = Vec::new();
        let mut path_is_preferred = true;
        for recipe in entry.recipes_on(self.machine.platform) {
            let located = match Slot::of(&self.cache, entry, recipe) {
                Some(slot) if slot.is_finished() => {
                    self.locate_in(entry, recipe, &slot, cancel).await
                }
                None if path_is_preferred && recipe.kind() == RecipeKind::Path => {
                    self.locate_on_path(entry, cancel).await
                }
                _ => {
                    path_is_preferred = false;
                    continue;
                }
            };
            match located {
                Ok(mut located) => {
                    rejected.append(&mut located.rejected);
                    located.rejected = without_repetition(rejected.into_iter());
                    return Ok(Some(located));
                }
                Err(LocateError::Cancelled) => return Err(InstallError::Cancelled),
                Err(LocateError::Absent { rejected: more, .. }) => rejected.extend(more),
            }
        }
        Ok(None)
    }

    /// A recipe that installs into the cache.
    async fn install_into(
        &self,
        entry: &Entry,
        recipe: &Recipe,
        slot: &Slot,
        cook: &Cook<'_>,
    ) -> Result<Result<Located, Attempt>, InstallError> {
        let attempt = |error| Attempt {
            recipe: recipe.kind(),
            error,
            rejected: Vec::new(),
        };
        if let Err(error) = cook.admit(recipe) {
            return Ok(Err(attempt(error)));
        }
        let failed = |source| InstallError::Cache {
            path: slot.folder.clone(),
            source,
        };
        let _lock = self.lock(&entry.name, cook.progress, cook.cancel).await?;
        // Another process may have been faster.
        if slot.is_finished() {
            match self.present(entry, recipe, slot, cook.cancel).await? {
                Ok(located) => return Ok(Ok(located)),
                Err(rejected) => cook.progress.report(&Progress::Renewing(&rejected)),
            }
        }
        in_background(slot, |slot| slot.begin())
            .await
            .map_err(failed)?;
        let filled = self.fill(entry, recipe, slot, cook).await?;
        if filled.is_err() {
            in_background(slot, |slot| slot.abandon())
                .await
                .map_err(failed)?;
        }
        Ok(filled.map_err(attempt))
    }

    async fn fill(
        &self,
        entry: &Entry,
        recipe: &Recipe,
        slot: &Slot,
        cook: &Cook<'_>,
    ) -> Result<Result<Located, RecipeError>, InstallError> {
        if let Err(error) = cook.fill(recipe, slot).await {
            return Ok(Err(error));
        }
        let located = match self.locate_in(entry, recipe, slot, cook.cancel).await {
            Ok(located) => located,
            Err(LocateError::Cancelled) => return Ok(Err(RecipeError::Cancelled)),
            Err(LocateError::Absent { rejected, .. }) => {
                let reason = rejected.into_iter().map(|one| one.to_string());
                let reason = reason.collect::<Vec<_>>().join("; ");
                return Ok(Err(RecipeError::DoesNotWork { reason }));
            }
        };
        let finished = slot.finish(entry, recipe, &located.version);
        Ok(match finished {
            Ok(()) => Ok(located),
            Err(source) => Err(RecipeError::Write {
                path: slot.folder.clone(),
                source,
            }),
        })
    }

    /// What is in a finished slot, or why it does not count.
    async fn present(
        &self,
        entry: &Entry,
        recipe: &Recipe,
        slot: &Slot,
        cancel: &CancellationToken,
    ) -> Result<Result<Located, Rejected>, InstallError> {
        match self.locate_in(entry, recipe, slot, cancel).await {
            Ok(located) => Ok(Ok(located)),
            Err(LocateError::Cancelled) => Err(InstallError::Cancelled),
            Err(LocateError::Absent { rejected, .. }) => {
                let unknown = || Rejected {
                    path: slot.folder.clone(),
                    reason: "empty".to_owned(),
                };
                Ok(Err(rejected.into_iter().next().unwrap_or_else(unknown)))
            }
        }
    }

    /// A recipe that makes the server present on PATH.
    async fn install_outside(
        &self,
        entry: &Entry,
        recipe: &Recipe,
        cook: &Cook<'_>,
    ) -> Result<Result<Located, Attempt>, InstallError> {
        let done = match recipe {
            Recipe::RustupComponent(recipe) => cook.rustup(recipe).await,
            Recipe::SystemPackage(recipe) => cook.system(recipe).await,
            Recipe::Path(_) | Recipe::Npm(_) | Recipe::Pypi(_) | Recipe::Cargo(_) => Ok(()),
        };
        let attempt = |error, rejected| Attempt {
            recipe: recipe.kind(),
            error,
            rejected,
        };
        if let Err(error) = done {
            return Ok(Err(attempt(error, Vec::new())));
        }
        match self.locate_on_path(entry, cook.cancel).await {
            Ok(located) => Ok(Ok(located)),
            Err(LocateError::Cancelled) => Err(InstallError::Cancelled),
            Err(LocateError::Absent { rejected, .. }) => {
                Ok(Err(attempt(RecipeError::NotOnPath, rejected)))
            }
        }
    }
}

fn without_repetition(all: impl Iterator<Item = Rejected>) -> Vec<Rejected> {
    let mut once: Vec<Rejected> = Vec::new();
    for rejected in all {
        if !once.contains(&rejected) {
            once.push(rejected);
        }
    }
    once
}

/// Does work on files outside the threads that serve events.
async fn in_background<T: ToOwned + ?Sized>(
    what: &T,
    work: impl FnOnce(T::Owned) -> std::io::Result<()> + Send + 'static,
) -> std::io::Result<()>
where
    T::Owned: Send + 'static,
{
    let what = what.to_owned();
    tokio::task::spawn_blocking(move || work(what))
        .await
        .map_err(std::io::Error::other)?
}
