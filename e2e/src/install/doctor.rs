//! What a person needs to know to get a server to work here.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::process::{self, Invocation};
use super::version::{first_version, major, telling_line};
use super::{Candidate, Installer, LocateError, by_hand, cache};
use crate::catalogue::{Entry, Recipe, RecipeKind};

/// The state of one server on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The entry's name.
    pub server: String,
    /// The version that the catalogue would install here, where it names one. Nobody demands it of
    /// a program that is on PATH.
    pub pinned: Option<String>,
    /// Every program of its name, in the order in which they are considered; the first that tells
    /// its version is the one in use.
    pub candidates: Vec<Candidate>,
    /// Installations that were interrupted, or are of another version than the catalogue's.
    pub leftovers: Vec<PathBuf>,
    /// What its recipes need.
    pub tools: Vec<Tool>,
    /// What to do next; `None` when there is nothing to do.
    pub advice: Option<Advice>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What has to be done before, in words.
    pub first: Option<String>,
    /// What the command is for, where that does not go without saying.
    pub purpose: Option<&'static str>,
    /// The command to run.
    pub command: String,
}

impl Advice {
    /// What stands before the command: `, to clear what is left over`; empty where it speaks for
    /// itself.
    pub fn before(&self) -> String {
        match (&self.first, self.purpose) {
            (Some(first), _) => format!(", {first}; then"),
            (None, Some(purpose)) => format!(", {purpose}"),
            (None, None) => String::new(),
        }
    }

    fn run(command: String) -> Self {
        Self {
            first: None,
            purpose: None,
            command,
        }
    }
}

impl Diagnosis {
    /// The program in use.
    pub fn in_use(&self) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.version.is_ok())
    }
}

/// A program that a recipe needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// The recipe that needs it.
    pub recipe: RecipeKind,
    /// The oldest major version that does, where not every one does.
    pub oldest: Option<u32>,
    /// Its version, or why it does not do.
    pub state: Result<String, String>,
}

/// A tool by its name, the program to ask, and how it is asked for its version.
type Asked = (&'static str, &'static str, &'static [&'static str]);

const PYTHON: Asked = ("python3", "python3", &["--version"]);
const VENV: Asked = (
    "python3 venv",
    "python3",
    &["-c", "import venv, ensurepip; print(ensurepip.version())"],
);
const JAVA: Asked = ("java", "java", &["-version"]);

impl Installer {
    /// Looks at everything that has to do with the server, and changes nothing.
    pub async fn doctor(
        &self,
        entry: &Entry,
        cancel: &CancellationToken,
    ) -> Result<Diagnosis, LocateError> {
        let candidates = self.candidates(entry, cancel).await?;
        let mut tools: Vec<Tool> = Vec::new();
        for recipe in entry.recipes_on(self.machine.platform) {
            self.look_at_tools(recipe, &mut tools, cancel).await?;
        }
        let leftovers = self.leftovers(entry);
        let advice = self.advice(entry, &candidates, &tools, &leftovers);
        let mut recipes = entry.recipes_on(self.machine.platform);
        let pinned = recipes.find_map(|recipe| recipe.version().map(str::to_owned));
        Ok(Diagnosis {
            server: entry.name.clone(),
            pinned,
            candidates,
            leftovers,
            tools,
            advice,
        })
    }

    /// Empty while an installation is going on: what is there is not left over then.
    fn leftovers(&self, entry: &Entry) -> Vec<PathBuf> {
        if cache::Lock::is_held(&self.cache, &entry.name) {
            return Vec::new();
        }
        let current: Vec<_> = entry
            .recipes_on(self.machine.platform)
            .filter_map(|recipe| cache::Slot::of(&self.cache, entry, recipe))
            .filter(cache::Slot::is_finished)
            .map(|slot| slot.folder)
            .collect();
        let installations = cache::installations(&self.cache, &entry.name).unwrap_or_default();
        installations
            .into_iter()
            .filter(|folder| !current.contains(folder))
            .collect()
    }

    fn advice(
        &self,
        entry: &Entry,
        candidates: &[Candidate],
        tools: &[Tool],
        leftovers: &[PathBuf],
    ) -> Option<Advice> {
        let name = &entry.name;
        if candidates.iter().any(|candidate| candidate.version.is_ok()) {
            let clear = Advice {
                purpose: Some("to clear what is left over"),
                ..Advice::run(format!("dsh-conform servers remove {name}"))
            };
            return (!leftovers.is_empty()).then_some(clear);
        }
        if let Some(first) = by_hand(entry, self.machine.platform, !candidates.is_empty()) {
            return Some(Advice {
                first: Some(first),
                ..Advice::run(format!("dsh-conform servers doctor {name}"))
            });
        }
        let fails = |kind| {
            tools
                .iter()
                .any(|tool| tool.recipe == kind && tool.state.is_err())
        };
        let mut recipes = entry
            .recipes_on(self.machine.platform)
            .map(Recipe::kind)
            .filter(|kind| *kind != RecipeKind::Path && !fails(*kind));
        Some(match recipes.next() {
            Some(RecipeKind::SystemPackage) if recipes.next().is_none() => {
                Advice::run(format!("dsh-conform servers install {name} --system"))
            }
            Some(_) => Advice::run(format!("dsh-conform servers install {name}")),
            None => {
                let mut missing: Vec<_> = tools
                    .iter()
                    .filter(|tool| tool.state.is_err())
                    .map(|tool| tool.name)
                    .collect();
                missing.dedup();
                Advice {
                    first: Some(format!("install one of: {}", missing.join(", "))),
                    ..Advice::run(format!("dsh-conform servers install {name}"))
                }
            }
        })
    }

    async fn look_at_tools(
        &self,
        recipe: &Recipe,
        tools: &mut Vec<Tool>,
        cancel: &CancellationToken,
    ) -> Result<(), LocateError> {
        let kind = recipe.kind();
        let needed: &[Asked] = match recipe {
            Recipe::Path(_) => &[],
            Recipe::Npm(_) => &[
                ("node", "node", &["--version"]),
                ("npm", "npm", &["--version"]),
            ],
            Recipe::Pypi(pypi) if pypi.java.is_some() => &[PYTHON, VENV, JAVA],
            Recipe::Pypi(_) => &[PYTHON, VENV],
            Recipe::RustupComponent(_) => &[("rustup", "rustup", &["--version"])],
            Recipe::SystemPackage(_) => &[("apt-get", "apt-get", &["--version"])],
            Recipe::Cargo(_) => &[("cargo", "cargo", &["--version"])],
        };
        for (name, program, args) in needed {
            let state = self.ask(program, args, cancel).await?;
            let oldest = match (recipe, *name) {
                (Recipe::Npm(npm), "node") => Some(npm.node),
                (Recipe::Pypi(pypi), "java") => pypi.java,
                _ => None,
            };
            let state = state.and_then(|version| match (oldest, major(&version)) {
                (Some(oldest), Some(major)) if major < oldest => Err(format!(
                    "version {version} is too old: {oldest} or newer is needed"
                )),
                _ => Ok(version),
            });
            tools.push(Tool {
                name,
                recipe: kind,
                oldest,
                state,
            });
        }
        Ok(())
    }

    /// The version of the first `program` on PATH, or why it has none.
    pub(super) async fn ask(
        &self,
        program: &str,
        args: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Result<String, String>, LocateError> {
        let variables = &self.machine.variables;
        let Some(path) = process::on_path(program, variables).into_iter().next() else {
            return Ok(Err("not on PATH".to_owned()));
        };
        let folder = path.ancestors().last().unwrap_or(&path).to_owned();
        let invocation = Invocation::new(&path, args.iter().copied(), folder);
        let run = process::run(
            &invocation,
            variables,
            Some(self.probe_limit),
            &|_| (),
            cancel,
        );
        Ok(match run.await {
            Ok(finished) if finished.status.success() => {
                // Java tells it on stderr.
                let output = format!("{}{}", finished.stdout, finished.stderr);
                Ok(first_version(&output).unwrap_or_else(|| "unknown".to_owned()))
            }
            Ok(finished) => {
                let said = telling_line(&finished.stderr).unwrap_or("it failed");
                Err(said.to_owned())
            }
            Err(process::RunError::Cancelled) => return Err(LocateError::Cancelled),
            Err(process::RunError::TimedOut(limit)) => {
                Err(format!("no answer within {} s", limit.as_secs()))
            }
            Err(process::RunError::Start(error)) => Err(format!("does not start: {error}")),
        })
    }
}
