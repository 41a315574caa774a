//! Finding a server: the programs of its name, each asked for its version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::cache::Slot;
use super::home;
use super::packaged;
use super::process::{self, Invocation, RunError};
use super::version::{major, read_version, telling_line};
use super::{Candidate, Installer, LocateError, Located, Origin, Rejected, by_hand};
use crate::catalogue::{Entry, EntryRemedy, INSTALL, Recipe};

/// How long a program has to tell its version.
pub(super) const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// What a program that counts says of its version.
struct Told {
    version: String,
    /// Why it says nothing, where it need not.
    untold: Option<String>,
}

impl Told {
    fn version(version: String) -> Self {
        Self {
            version,
            untold: None,
        }
    }

    fn unknown(untold: Option<String>) -> Self {
        Self {
            version: "unknown".to_owned(),
            untold,
        }
    }
}

impl Candidate {
    fn of(suspect: Suspect, told: Result<Told, String>) -> Self {
        let (version, untold) = match told {
            Ok(Told { version, untold }) => (Ok(version), untold),
            Err(reason) => (Err(reason), None),
        };
        Self {
            path: suspect.program,
            origin: suspect.origin,
            version,
            untold,
        }
    }
}

/// A program that may be the server.
#[derive(Debug, Clone)]
struct Suspect {
    program: PathBuf,
    origin: Origin,
    /// The oldest major version of Java that it needs.
    java: Option<u32>,
}

impl Installer {
    /// Finds the server: the first program on PATH that tells its version, else one in the cache.
    pub async fn locate(
        &self,
        entry: &Entry,
        cancel: &CancellationToken,
    ) -> Result<Located, LocateError> {
        let mut suspects = self.suspects_on_path(entry);
        suspects.extend(self.suspects_in_cache(entry));
        self.first_of(entry, suspects, cancel).await
    }

    /// Every program that may be the server, in the order of [`Self::locate`], with what it says.
    pub async fn candidates(
        &self,
        entry: &Entry,
        cancel: &CancellationToken,
    ) -> Result<Vec<Candidate>, LocateError> {
        let mut candidates = Vec::new();
        let in_cache = self.suspects_in_cache(entry);
        for suspect in self.suspects_on_path(entry).into_iter().chain(in_cache) {
            let told = self.examine(entry, &suspect, cancel).await?;
            candidates.push(Candidate::of(suspect, told));
        }
        Ok(candidates)
    }

    pub(super) async fn locate_on_path(
        &self,
        entry: &Entry,
        cancel: &CancellationToken,
    ) -> Result<Located, LocateError> {
        self.first_of(entry, self.suspects_on_path(entry), cancel)
            .await
    }

    pub(super) async fn locate_in(
        &self,
        entry: &Entry,
        recipe: &Recipe,
        slot: &Slot,
        cancel: &CancellationToken,
    ) -> Result<Located, LocateError> {
        self.first_of(entry, vec![suspect_in(entry, recipe, slot)], cancel)
            .await
    }

    async fn first_of(
        &self,
        entry: &Entry,
        suspects: Vec<Suspect>,
        cancel: &CancellationToken,
    ) -> Result<Located, LocateError> {
        let mut rejected = Vec::new();
        let mut suspects = suspects.into_iter();
        while let Some(suspect) = suspects.next() {
            let probed = self.examine(entry, &suspect, cancel).await?;
            let Suspect {
                program, origin, ..
            } = suspect;
            match probed.and_then(|told| Ok((told, settings(entry, &program, &origin)?))) {
                Ok((told, settings)) => {
                    let later = match origin {
                        Origin::Path => self.later(entry, suspects, cancel).await?,
                        Origin::Cache { .. } => Vec::new(),
                    };
                    return Ok(Located {
                        server: entry.name.clone(),
                        command: program,
                        args: settings.args,
                        initialization_options: settings.initialization_options,
                        configuration: settings.configuration,
                        remedies: settings.remedies,
                        version: told.version,
                        untold: told.untold,
                        origin,
                        rejected,
                        later,
                    });
                }
                Err(reason) => rejected.push(Rejected {
                    path: program,
                    reason,
                }),
            }
        }
        Err(LocateError::Absent {
            server: entry.name.clone(),
            by_hand: by_hand(entry, self.machine.platform, !rejected.is_empty()),
            rejected,
        })
    }

    /// What else is on PATH, with what it says.
    async fn later(
        &self,
        entry: &Entry,
        suspects: impl Iterator<Item = Suspect> + Send,
        cancel: &CancellationToken,
    ) -> Result<Vec<Candidate>, LocateError> {
        let mut later = Vec::new();
        for suspect in suspects.filter(|suspect| suspect.origin == Origin::Path) {
            let told = self.examine(entry, &suspect, cancel).await?;
            later.push(Candidate::of(suspect, told));
        }
        Ok(later)
    }

    fn suspects_on_path(&self, entry: &Entry) -> Vec<Suspect> {
        process::on_path(&entry.launch.command, &self.machine.variables)
            .into_iter()
            .map(|program| Suspect {
                program,
                origin: Origin::Path,
                java: None,
            })
            .collect()
    }

    fn suspects_in_cache(&self, entry: &Entry) -> Vec<Suspect> {
        entry
            .recipes_on(self.machine.platform)
            .filter_map(|recipe| Some((recipe, Slot::of(&self.cache, entry, recipe)?)))
            .filter(|(_, slot)| slot.is_finished())
            .map(|(recipe, slot)| suspect_in(entry, recipe, &slot))
            .collect()
    }

    /// Asks `suspect` for its version, once what it needs is there. The inner error is the reason
    /// why it does not count.
    async fn examine(
        &self,
        entry: &Entry,
        suspect: &Suspect,
        cancel: &CancellationToken,
    ) -> Result<Result<Told, String>, LocateError> {
        if let Some(needed) = suspect.java {
            let needs = format!("it needs Java {needed} or newer");
            let here = match self.ask("java", &["-version"], cancel).await? {
                Ok(version) if major(&version).is_some_and(|major| major < needed) => {
                    Err(format!("{needs}, and this is Java {version}"))
                }
                Ok(_) => Ok(()),
                Err(reason) => Err(format!("{needs}, and java is {reason}")),
            };
            if let Err(reason) = here {
                return Ok(Err(reason));
            }
        }
        self.probe(entry, &suspect.program, cancel).await
    }

    /// Asks `program` for its version. The inner error is the reason why it does not count.
    async fn probe(
        &self,
        entry: &Entry,
        program: &Path,
        cancel: &CancellationToken,
    ) -> Result<Result<Told, String>, LocateError> {
        let asked = match &entry.version.command {
            Some(name) => program.with_file_name(name),
            None => program.to_owned(),
        };
        if !process::is_program(&asked) {
            return Ok(Err(format!("there is no program {}", asked.display())));
        }
        if let Some(package) = &entry.version.package {
            return Ok(match home::package_version(program, package) {
                Ok(version) => Ok(Told::version(version)),
                Err(reason) if entry.version.optional => Ok(Told::unknown(Some(reason))),
                Err(reason) => Err(reason),
            });
        }
        if entry.version.is_empty() {
            return Ok(Ok(Told::unknown(None)));
        }
        let folder = program.ancestors().last().unwrap_or(program);
        let invocation = Invocation::new(&asked, &entry.version.args, folder);
        let variables = &self.machine.variables;
        let run = process::run(
            &invocation,
            variables,
            Some(self.probe_limit),
            &|_| (),
            cancel,
        );
        let typed = invocation.typed();
        // What does not start at all is no server, whatever else it need not do.
        let silent = |reason: String| {
            if entry.version.optional {
                Ok(Told::unknown(Some(reason)))
            } else {
                Err(reason)
            }
        };
        Ok(match run.await {
            Ok(finished) if finished.status.success() => {
                // A proxy without its component can pass on to the next program of its name on
                // PATH: that one is found by itself, with its own path to report.
                if let Some(said) = passes_on(&finished.stderr)
                    && let Some(component) = proxy_component(entry, &asked)
                {
                    return Ok(Err(without_component(component, said)));
                }
                let output = format!("{}{}", finished.stdout, finished.stderr);
                let mut version = read_version(&entry.version, &output);
                if version.is_none() {
                    let limit = self.probe_limit;
                    let asked = packaged::version(&self.machine, program, limit, cancel);
                    version = Box::pin(asked).await?;
                }
                Ok(version.map_or_else(|| Told::unknown(None), Told::version))
            }
            Ok(finished) => {
                let said =
                    telling_line(&finished.stderr).or_else(|| telling_line(&finished.stdout));
                let said = said.unwrap_or("without a word");
                match proxy_component(entry, &asked) {
                    Some(component) => Err(without_component(component, said)),
                    None => silent(format!("`{typed}` failed ({}): {said}", finished.status)),
                }
            }
            Err(RunError::Cancelled) => return Err(LocateError::Cancelled),
            Err(RunError::TimedOut(limit)) => silent(format!(
                "`{typed}` gave no answer within {} s",
                limit.as_secs()
            )),
            Err(RunError::Start(error)) => Err(format!("`{typed}` does not start: {error}")),
        })
    }
}

/// What a server is given, with the folder of its installation filled in.
struct Settings {
    args: Vec<String>,
    initialization_options: Value,
    configuration: Value,
    remedies: Vec<EntryRemedy>,
}

/// The settings of `entry` for the server at `program`, or why they cannot be given.
fn settings(entry: &Entry, program: &Path, origin: &Origin) -> Result<Settings, String> {
    let mut settings = Settings {
        args: entry.launch.args.clone(),
        initialization_options: entry.initialization_options.clone(),
        configuration: entry.configuration.clone(),
        remedies: entry.remedies.clone(),
    };
    if !entry.names_install() {
        return Ok(settings);
    }
    let folder = match origin {
        Origin::Cache { folder, .. } => Some(folder.clone()),
        Origin::Path => home::folder_of_modules(program),
    };
    let Some(folder) = folder else {
        return Err(format!(
            "its settings name files below {INSTALL}, the folder whose node_modules it is in, and \
             it is in none"
        ));
    };
    let folder = folder.display().to_string();
    let tried = settings.remedies.iter_mut();
    let tried = tried.flat_map(|remedy| {
        for arg in &mut remedy.args {
            *arg = arg.replace(INSTALL, &folder);
        }
        [
            &mut remedy.initialization_options,
            &mut remedy.configuration,
        ]
    });
    let given = [
        &mut settings.initialization_options,
        &mut settings.configuration,
    ];
    for value in given.into_iter().chain(tried) {
        *value = home::filled(value, &folder);
    }
    for arg in &mut settings.args {
        *arg = arg.replace(INSTALL, &folder);
    }
    Ok(settings)
}

fn without_component(component: &str, said: &str) -> String {
    format!(
        "it is rustup's proxy, and the {component} component is not installed (it says: {said})"
    )
}

/// The line in which rustup's proxy says that it runs another program in place of its component.
fn passes_on(stderr: &str) -> Option<&str> {
    stderr
        .lines()
        .map(str::trim)
        .find(|line| line.contains("falling back to"))
}

fn suspect_in(entry: &Entry, recipe: &Recipe, slot: &Slot) -> Suspect {
    let name = &entry.launch.command;
    let programs = slot.programs();
    let plain = programs.join(name);
    let spelled = |suffix: &str| programs.join(format!("{name}{suffix}"));
    let program = if cfg!(windows) {
        [spelled(".cmd"), spelled(".exe")]
            .into_iter()
            .find(|path| path.is_file())
            .unwrap_or(plain)
    } else {
        plain
    };
    let origin = Origin::Cache {
        recipe: recipe.kind(),
        folder: slot.folder.clone(),
        packages: recipe
            .pins()
            .into_iter()
            .map(|(package, version)| (package.to_owned(), version.to_owned()))
            .collect(),
    };
    let java = match recipe {
        Recipe::Pypi(pypi) => pypi.java,
        _ => None,
    };
    Suspect {
        program,
        origin,
        java,
    }
}

/// The component behind `program` if it is rustup's proxy: rustup installs itself under the names
/// of the tools, as a link or as a copy beside it.
fn proxy_component<'a>(entry: &'a Entry, program: &Path) -> Option<&'a str> {
    let name = if cfg!(windows) {
        "rustup.exe"
    } else {
        "rustup"
    };
    let is_link = program
        .canonicalize()
        .is_ok_and(|target| target.ends_with(name));
    let length = |path: &Path| path.metadata().map(|metadata| metadata.len()).ok();
    let beside = length(&program.with_file_name(name));
    let is_copy = beside.is_some() && length(program) == beside;
    (is_link || is_copy).then(|| {
        let component = entry.recipes.iter().find_map(|recipe| match recipe {
            Recipe::RustupComponent(recipe) => Some(recipe.component.as_str()),
            _ => None,
        });
        component.unwrap_or(&entry.launch.command)
    })
}
