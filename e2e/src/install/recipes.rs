//! Carrying out one recipe.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use tokio_util::sync::CancellationToken;

use super::cache::{self, Slot};
use super::cause::Cause;
use super::process::{self, Finished, Invocation, RunError};
use super::version::{first_version, major};
use super::{InstallOptions, Installer, Progress, Reporter};
use crate::catalogue::{CargoRecipe, NpmRecipe, PypiRecipe, Recipe, RustupRecipe, SystemRecipe};

/// Why a recipe did not give the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// No program on PATH counts.
    #[error("no program on PATH that works")]
    NotOnPath,
    /// A program that the recipe needs is not there.
    #[error("{tool} is not on PATH: {remedy}")]
    ToolMissing {
        /// Its name.
        tool: &'static str,
        /// Where to get it.
        remedy: String,
    },
    /// A program that the recipe needs is too old.
    #[error("this is {tool} {version}, and {tool} {needed} or newer is needed: install that")]
    ToolTooOld {
        /// Its name.
        tool: &'static str,
        /// What is there.
        version: String,
        /// What is needed.
        needed: u32,
    },
    /// Python cannot make virtual environments.
    #[error(
        "this python3 cannot make virtual environments with pip in them: \
         install its venv module (on Debian: apt-get install python3-venv)"
    )]
    NoVenv,
    /// The installer failed.
    #[error("`{command}` failed ({status}): {cause}; {}", .cause.remedy())]
    Failed {
        /// What was run.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Why, as far as its output says.
        cause: Cause,
        /// The last lines of its output.
        tail: Vec<String>,
    },
    /// The installer could not be started.
    #[error("`{command}` does not start: {source}")]
    Start {
        /// What was run.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// What was installed does not work.
    #[error("it is installed and does not work: {reason}")]
    DoesNotWork {
        /// What it says.
        reason: String,
    },
    /// A recipe of the system's package manager is run only when asked for.
    #[error("run `{command}`, or try again with --system")]
    OnlyPrinted {
        /// The command.
        command: String,
    },
    /// The system's package manager needs rights that this process has not.
    #[error("only root may do that: run `{command}`")]
    NotPrivileged {
        /// The command.
        command: String,
    },
    /// A long build is not started here unasked.
    #[error("building it takes about {minutes} minutes, which is not done unasked in a CI")]
    LongBuild {
        /// About how long it takes on two cores.
        minutes: u32,
    },
    /// A file of the cache could not be written.
    #[error("cannot write {}: {source}; {}", path.display(), Cause::remedy_of_io(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The caller gave up.
    #[error("interrupted")]
    Cancelled,
}

impl RecipeError {
    /// The last lines of output that belong to it.
    pub fn tail(&self) -> &[String] {
        match self {
            Self::Failed { tail, .. } => tail,
            _ => &[],
        }
    }
}

/// How many lines of a failed installer's output are kept.
const TAIL_LINES: usize = 12;

/// One recipe being carried out.
pub(super) struct Cook<'a> {
    pub(super) installer: &'a Installer,
    pub(super) options: InstallOptions,
    pub(super) progress: Reporter<'a>,
    pub(super) cancel: &'a CancellationToken,
}

impl Cook<'_> {
    /// Fills the slot of a recipe that installs into the cache.
    pub(super) async fn fill(&self, recipe: &Recipe, slot: &Slot) -> Result<(), RecipeError> {
        match recipe {
            Recipe::Npm(npm) => self.npm(npm, &recipe.pins(), slot).await,
            Recipe::Pypi(pypi) => self.pypi(pypi, &recipe.pins(), slot).await,
            Recipe::Cargo(cargo) => self.cargo(cargo, slot).await,
            Recipe::Path(_) | Recipe::RustupComponent(_) | Recipe::SystemPackage(_) => Ok(()),
        }
    }

    /// Refuses a recipe that has no chance, before anything is touched.
    pub(super) fn admit(&self, recipe: &Recipe) -> Result<(), RecipeError> {
        match recipe {
            Recipe::Cargo(recipe) if recipe.long && !self.options.long_builds => {
                Err(RecipeError::LongBuild {
                    minutes: recipe.minutes,
                })
            }
            _ => Ok(()),
        }
    }

    async fn npm(
        &self,
        recipe: &NpmRecipe,
        pins: &[(&str, &str)],
        slot: &Slot,
    ) -> Result<(), RecipeError> {
        let get = || format!("install Node.js {} or newer", recipe.node);
        let node = self.tool("node", get)?;
        let npm = self.tool("npm", get)?;
        let version = self
            .run(&Invocation::new(&node, ["--version"], &slot.folder))
            .await?
            .stdout;
        if major(&version).is_some_and(|major| major < recipe.node) {
            let version = version.trim().trim_start_matches('v').to_owned();
            return Err(RecipeError::ToolTooOld {
                tool: "Node.js",
                version,
                needed: recipe.node,
            });
        }
        // A manifest of our own, so that npm looks for none in the folders above.
        let mut manifest = serde_json::json!({"private": true});
        if !recipe.overrides.is_empty() {
            manifest["overrides"] = serde_json::json!(recipe.overrides);
        }
        write(slot, "package.json", &format!("{manifest}\n"))?;
        let mut args = vec![
            "install",
            "--save-exact",
            "--no-audit",
            "--no-fund",
            "--no-progress",
        ];
        if !recipe.scripts {
            args.push("--ignore-scripts");
        }
        let mut args: Vec<OsString> = args.into_iter().map(OsString::from).collect();
        args.extend(["--prefix".into(), slot.folder.clone().into_os_string()]);
        args.extend(
            pins.iter()
                .map(|(name, version)| format!("{name}@{version}").into()),
        );
        self.run(&Invocation::new(npm, args, &slot.folder))
            .await
            .map(drop)
    }

    async fn pypi(
        &self,
        recipe: &PypiRecipe,
        pins: &[(&str, &str)],
        slot: &Slot,
    ) -> Result<(), RecipeError> {
        if let Some(needed) = recipe.java {
            self.java(needed, slot).await?;
        }
        let program = self.tool("python3", || "install Python 3".to_owned())?;
        let python = |args: &[&str]| Invocation::new(&program, args.iter().copied(), &slot.folder);
        let bundled = self.run(&python(&["-m", "venv", "venv"])).await;
        let pip = if bundled.as_ref().is_err_and(lacks_ensurepip) {
            // Debian keeps the pip for new environments in a package of its own; a pip of the
            // system can do the same from outside.
            let bare = ["-m", "venv", "--clear", "--without-pip", "venv"];
            self.run(&python(&bare)).await.map_err(no_venv)?;
            self.run(&python(&["-m", "pip", "--version"]))
                .await
                .map_err(no_venv)?;
            let inside = slot.programs().join("python").into_os_string();
            let outside: [OsString; 4] = ["-m".into(), "pip".into(), "--python".into(), inside];
            Invocation::new(&program, outside, &slot.folder)
        } else {
            bundled?;
            Invocation::new(slot.programs().join("python"), ["-m", "pip"], &slot.folder)
        };
        let options = ["install", "--no-input", "--progress-bar", "off"];
        let pins = pins.iter();
        let pip = pip
            .args(options)
            .args(pins.map(|(name, version)| format!("{name}=={version}")));
        self.run(&pip.with("PIP_DISABLE_PIP_VERSION_CHECK", "1"))
            .await
            .map(drop)
    }

    /// Refuses a Java that is missing, or older than `needed`.
    async fn java(&self, needed: u32, slot: &Slot) -> Result<(), RecipeError> {
        let get = || format!("install a JDK of version {needed} or newer, and put it on PATH");
        let java = self.tool("java", get)?;
        let said = self
            .run(&Invocation::new(java, ["-version"], &slot.folder))
            .await?;
        let version = first_version(&format!("{}{}", said.stdout, said.stderr));
        match version {
            Some(version) if major(&version).is_some_and(|major| major < needed) => {
                Err(RecipeError::ToolTooOld {
                    tool: "Java",
                    version,
                    needed,
                })
            }
            _ => Ok(()),
        }
    }

    async fn cargo(&self, recipe: &CargoRecipe, slot: &Slot) -> Result<(), RecipeError> {
        let cargo = self.tool("cargo", || "install Rust".to_owned())?;
        if recipe.long {
            self.progress.report(&Progress::LongBuild {
                minutes: recipe.minutes,
            });
        }
        let mut args: Vec<OsString> = ["install", "--locked", "--root"].map(Into::into).into();
        args.push(slot.folder.clone().into_os_string());
        if !recipe.features.is_empty() {
            args.extend(["--features".into(), recipe.features.join(",").into()]);
        }
        args.push(format!("{}@{}", recipe.package, recipe.version).into());
        // The build goes on where an interrupted one stopped.
        let build = slot.folder.join(cache::BUILD);
        let mut invocation = Invocation::new(cargo, args, &slot.folder);
        for (name, value) in &recipe.variables {
            invocation = invocation.with(name, value);
        }
        self.run(&invocation.with("CARGO_TARGET_DIR", build.clone()))
            .await?;
        std::fs::remove_dir_all(&build).or_else(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(RecipeError::Write {
                path: build,
                source,
            }),
        })
    }

    /// Adds the component to the user's toolchain.
    pub(super) async fn rustup(&self, recipe: &RustupRecipe) -> Result<(), RecipeError> {
        let rustup = self.tool("rustup", || "install Rust with rustup".to_owned())?;
        let args = ["component", "add", &recipe.component];
        self.run(&Invocation::new(rustup, args, root()))
            .await
            .map(drop)
    }

    /// Installs packages of the system, if that was asked for.
    pub(super) async fn system(&self, recipe: &SystemRecipe) -> Result<(), RecipeError> {
        let packages = recipe.apt.join(" ");
        let apt = self.tool("apt-get", || {
            format!("install {packages}, or what your system calls it, by hand")
        })?;
        let command = format!("apt-get install {packages}");
        if !self.options.system {
            return Err(RecipeError::OnlyPrinted { command });
        }
        if !self.installer.machine.privileged {
            return Err(RecipeError::NotPrivileged {
                command: format!("sudo {command}"),
            });
        }
        let silent = |invocation: Invocation| invocation.with("DEBIAN_FRONTEND", "noninteractive");
        self.run(&silent(Invocation::new(
            &apt,
            ["update", "--quiet"],
            root(),
        )))
        .await?;
        let options = ["install", "--yes", "--quiet", "--no-install-recommends"];
        self.run(&silent(
            Invocation::new(&apt, options, root()).args(&recipe.apt),
        ))
        .await
        .map(drop)
    }

    fn tool(
        &self,
        tool: &'static str,
        remedy: impl FnOnce() -> String,
    ) -> Result<PathBuf, RecipeError> {
        let mut found = process::on_path(tool, &self.installer.machine.variables).into_iter();
        found.next().ok_or_else(|| RecipeError::ToolMissing {
            tool,
            remedy: remedy(),
        })
    }

    async fn run(&self, invocation: &Invocation) -> Result<Finished, RecipeError> {
        let command = invocation.typed();
        self.progress
            .report(&Progress::Running { command: &command });
        let on_line = |line: &str| self.progress.report(&Progress::Output { line });
        let variables = &self.installer.machine.variables;
        match process::run(invocation, variables, None, &on_line, self.cancel).await {
            Ok(finished) if finished.status.success() => Ok(finished),
            Ok(finished) => Err(failed(command, &finished)),
            Err(RunError::Start(source)) => Err(RecipeError::Start { command, source }),
            Err(RunError::Cancelled | RunError::TimedOut(_)) => Err(RecipeError::Cancelled),
        }
    }
}

fn write(slot: &Slot, name: &str, text: &str) -> Result<(), RecipeError> {
    let path = slot.folder.join(name);
    std::fs::write(&path, text).map_err(|source| RecipeError::Write { path, source })
}

fn failed(command: String, finished: &Finished) -> RecipeError {
    let output = format!("{}\n{}", finished.stdout, finished.stderr);
    let lines: Vec<_> = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    RecipeError::Failed {
        command,
        status: finished.status,
        cause: Cause::of(&output),
        tail: tail.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn lacks_ensurepip(error: &RecipeError) -> bool {
    error.tail().iter().any(|line| line.contains("ensurepip"))
}

fn no_venv(error: RecipeError) -> RecipeError {
    match error {
        RecipeError::Failed { .. } => RecipeError::NoVenv,
        other => other,
    }
}

/// A folder that is always there, and has no settings of a project in it.
fn root() -> PathBuf {
    PathBuf::from(if cfg!(windows) { "C:\\" } else { "/" })
}
