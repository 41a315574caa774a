//! `servers`.

mod add;

use std::fmt::Write as _;

use dsh_e2e::catalogue::{Catalogue, Entry};
use dsh_e2e::install::{
    Diagnosis, InstallError, InstallOptions, Installer, LocateError, Origin, Reporter,
    without_version,
};

use super::subject::tell;
use crate::cli::Global;
use crate::exit::Exit;
use crate::lines::{hanging, paragraph};
use crate::output::{complain, say};
use crate::progress::Progress;
use crate::shell::Shell;
use crate::signals::{Interruption, interruptible};

/// Install the catalogue's servers into a cache folder, and look after them
#[derive(Clone, Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  dsh-conform servers doctor
  dsh-conform servers install pyright clangd
  dsh-conform servers path pyright
  dsh-conform servers add my-server --command 'my-server --stdio' --ext .foo=foo
  dsh-conform servers remove pyright")]
pub(crate) enum Command {
    /// Install servers, pinned; all of the catalogue if none is named
    ///
    /// Safe to interrupt, and to run twice at once.
    Install {
        /// The servers
        names: Vec<String>,
        /// Also run recipes of the system's package manager, which are printed otherwise
        #[arg(long)]
        system: bool,
        /// Also in a CI, start builds that take long
        #[arg(long)]
        long_builds: bool,
    },
    /// Print where servers are; all that are there if none is named
    ///
    /// Ends with 3 where a server that was named is not here.
    Path {
        /// The servers
        names: Vec<String>,
    },
    /// Say what there is, what is missing and what to do; changes nothing
    ///
    /// Ends with 3 where a server that was named is not here. Without a name it is an account of
    /// all, and nothing in it is a failure.
    Doctor {
        /// The servers; all of the catalogue if none is named
        names: Vec<String>,
    },
    /// Write a server of your own into dsh-conform.toml, or into the TOML file of --catalogue
    Add(add::Server),
    /// Remove servers from the cache
    Remove {
        /// The servers
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// The entries of these names; all if none is named.
fn named<'a>(catalogue: &'a Catalogue, names: &[String]) -> Result<Vec<&'a Entry>, String> {
    if names.is_empty() {
        return Ok(catalogue.entries().iter().collect());
    }
    let entries = names.iter().map(|name| catalogue.entry(name));
    entries
        .map(|entry| entry.map_err(|unknown| unknown.to_string()))
        .collect()
}

pub(crate) fn run(shell: &Shell, global: Global, command: &Command) -> Exit {
    let names = match command {
        Command::Install { names, .. }
        | Command::Path { names }
        | Command::Doctor { names }
        | Command::Remove { names } => names,
        Command::Add(server) => return add::run(shell, server),
    };
    let catalogue = match shell.catalogue() {
        Ok(catalogue) => catalogue,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Exit::Usage;
        }
    };
    let (entries, installer) = match (named(&catalogue, names), shell.installer()) {
        (Ok(entries), Ok(installer)) => (entries, installer),
        (Err(message), _) => {
            complain(&format!("error: {message}"));
            return Exit::Usage;
        }
        (_, Err(message)) => {
            complain(&format!("error: {message}"));
            return Exit::NotCarriedOut;
        }
    };
    interruptible(|interruption| async move {
        let keeper = Keeper {
            installer,
            progress: Progress::new(shell.stderr_is_terminal, global.quiet),
            interruption,
        };
        match command {
            Command::Install {
                system,
                long_builds,
                ..
            } => {
                let long_builds = *long_builds || !shell.is_ci();
                let options = InstallOptions {
                    system: *system,
                    long_builds,
                };
                keeper.install(&entries, options).await
            }
            Command::Path { names } => keeper.path(&entries, !names.is_empty()).await,
            Command::Doctor { names } => keeper.doctor(&entries, !names.is_empty()).await,
            // One that adds was done before.
            Command::Remove { .. } | Command::Add(_) => keeper.remove(&entries).await,
        }
    })
}

struct Keeper {
    installer: Installer,
    progress: Progress,
    interruption: Interruption,
}

impl Keeper {
    async fn install(&self, entries: &[&Entry], options: InstallOptions) -> Exit {
        let mut exit = Exit::Fine;
        for entry in entries {
            let line = self.progress.line(&entry.name);
            line.say("installing");
            let report = |progress: &dsh_e2e::install::Progress<'_>| tell(&line, progress);
            let token = &self.interruption.token;
            match self
                .installer
                .install(entry, options, Reporter::new(&report), token)
                .await
            {
                Ok(located) => {
                    let (version, command) = (&located.version, located.command.display());
                    let mut text = format!("{} {version}\n  {command}\n", entry.name);
                    paragraph(&mut text, 2, &format!("from {}", located.origin));
                    if let Some(reason) = &located.untold {
                        paragraph(&mut text, 2, &without_version(reason));
                    }
                    if say(&text).is_err() {
                        exit = Exit::NotCarriedOut;
                    }
                }
                Err(InstallError::Cancelled) => return Exit::Interrupted,
                Err(error) => {
                    line.announce(&format!("error: {error}"));
                    exit = Exit::NotCarriedOut;
                }
            }
        }
        exit
    }

    async fn path(&self, entries: &[&Entry], all_have_to_be_there: bool) -> Exit {
        let mut exit = Exit::Fine;
        for entry in entries {
            match self.installer.locate(entry, &self.interruption.token).await {
                Ok(located) => {
                    if say(&format!("{}\n", located.command.display())).is_err() {
                        exit = Exit::NotCarriedOut;
                    }
                }
                Err(LocateError::Cancelled) => return Exit::Interrupted,
                Err(error) if all_have_to_be_there => {
                    complain(&format!("error: {error}"));
                    exit = Exit::NotCarriedOut;
                }
                Err(_) => {}
            }
        }
        exit
    }

    async fn doctor(&self, entries: &[&Entry], all_have_to_be_there: bool) -> Exit {
        let mut exit = Exit::Fine;
        for entry in entries {
            let line = self.progress.line(&entry.name);
            line.say("looking");
            let diagnosis = match self.installer.doctor(entry, &self.interruption.token).await {
                Ok(diagnosis) => diagnosis,
                Err(LocateError::Cancelled) => return Exit::Interrupted,
                Err(error) => {
                    line.announce(&format!("error: {error}"));
                    exit = Exit::NotCarriedOut;
                    continue;
                }
            };
            if all_have_to_be_there && diagnosis.in_use().is_none() {
                exit = Exit::NotCarriedOut;
            }
            drop(line);
            if say(&told(&diagnosis)).is_err() {
                return Exit::NotCarriedOut;
            }
        }
        exit
    }

    async fn remove(&self, entries: &[&Entry]) -> Exit {
        for entry in entries {
            let line = self.progress.line(&entry.name);
            let report = |progress: &dsh_e2e::install::Progress<'_>| tell(&line, progress);
            let token = &self.interruption.token;
            match self
                .installer
                .remove(entry, Reporter::new(&report), token)
                .await
            {
                Ok(folders) => {
                    let text = if folders.is_empty() {
                        format!("{}: nothing in the cache\n", entry.name)
                    } else {
                        folders.iter().fold(String::new(), |mut text, folder| {
                            let _ = writeln!(text, "removed {}", folder.display());
                            text
                        })
                    };
                    if say(&text).is_err() {
                        return Exit::NotCarriedOut;
                    }
                }
                Err(InstallError::Cancelled) => return Exit::Interrupted,
                Err(error) => {
                    complain(&format!("error: {error}"));
                    return Exit::NotCarriedOut;
                }
            }
        }
        Exit::Fine
    }
}

fn told(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    match diagnosis.in_use() {
        Some(candidate) => {
            let version = candidate.version.as_deref().unwrap_or_default();
            let _ = writeln!(text, "✓ {} {version}", diagnosis.server);
            let usable = diagnosis.candidates.iter();
            if usable.filter(|other| other.version.is_ok()).count() > 1 {
                let said = "used is the first that tells its version; PATH counts before the cache";
                paragraph(&mut text, 4, said);
            }
        }
        None => {
            let _ = writeln!(text, "✗ {} is not here", diagnosis.server);
        }
    }
    for candidate in &diagnosis.candidates {
        // A path is copied, and so never broken.
        let _ = writeln!(text, "    {}", candidate.path.display());
        let said = match &candidate.version {
            Ok(version) => {
                let other = diagnosis.pinned.as_ref();
                let other =
                    other.filter(|pinned| candidate.origin == Origin::Path && *pinned != version);
                let other = other.map(|pinned| format!("; a recipe would install {pinned}"));
                format!(
                    "{version}, from {}{}",
                    candidate.origin,
                    other.unwrap_or_default()
                )
            }
            Err(reason) => format!("does not count: {reason}"),
        };
        paragraph(&mut text, 6, &said);
        if let Some(reason) = &candidate.untold {
            paragraph(&mut text, 6, &without_version(reason));
        }
    }
    for tool in &diagnosis.tools {
        let (recipe, name) = (tool.recipe.name(), tool.name);
        let said = match (&tool.state, tool.oldest) {
            (Ok(here), Some(oldest)) => {
                format!("recipe {recipe} needs {name} {oldest} or newer; here is {here}")
            }
            (Ok(here), None) => format!("recipe {recipe} needs {name}; here is {here}"),
            (Err(why), _) => format!("recipe {recipe} needs {name}: {why}"),
        };
        text.push_str("    ");
        hanging(&mut text, 6, &said);
    }
    for leftover in &diagnosis.leftovers {
        let _ = writeln!(text, "    left over:\n      {}", leftover.display());
    }
    if let Some(advice) = &diagnosis.advice {
        text.push_str("    ");
        hanging(&mut text, 6, &format!("next{}:", advice.before()));
        let _ = writeln!(text, "      {}", advice.command);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dsh_e2e::catalogue::RecipeKind;
    use dsh_e2e::install::{Advice, Candidate, Tool};

    use super::*;

    #[test]
    fn a_diagnosis_fits_80_columns_with_what_is_copied_whole() {
        let long = "it has no version to tell: it ended with status 1, and what it wrote was a \
                    message about a module that is not there";
        let folder = PathBuf::from(format!("/home/you/{}/bin", "deep/".repeat(20)));
        let diagnosis = Diagnosis {
            server: "some-language-server-of-a-long-name".to_owned(),
            pinned: Some("1.2.3".to_owned()),
            candidates: [Err(long.to_owned()), Ok("1.2.0".to_owned())]
                .map(|version| Candidate {
                    path: folder.join("server"),
                    origin: Origin::Path,
                    untold: version.is_ok().then(|| long.to_owned()),
                    version,
                })
                .to_vec(),
            leftovers: vec![folder.clone()],
            tools: [Err(long.to_owned()), Ok("20.1.0".to_owned())]
                .map(|state| Tool {
                    name: "python3 venv",
                    recipe: RecipeKind::Npm,
                    oldest: Some(18),
                    state,
                })
                .to_vec(),
            advice: Some(Advice {
                first: Some(format!("install one of: {}", "node, npm, ".repeat(12))),
                purpose: None,
                command: "dsh-conform servers install some-language-server-of-a-long-name"
                    .to_owned(),
            }),
        };
        let text = told(&diagnosis);
        let path = folder.display().to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80 || line.contains(&path), "{line}");
        }
        let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // What is here is not what is asked for.
        for said in [
            "needs python3 venv 18 or newer; here is 20.1.0",
            "1.2.0, from PATH; a recipe would install 1.2.3",
            "`version = {optional = true}` in its entry",
        ] {
            assert!(unbroken.contains(said), "{said}\n{text}");
        }
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let command = diagnosis.advice.unwrap().command;
        for whole in [&path, &format!("{path}/server"), &command] {
            assert!(lines.contains(&whole.as_str()), "{whole}\n{text}");
        }
    }
}
