//! Which servers and which probes were asked for.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use dsh_e2e::catalogue::{Catalogue, Entry};
use dsh_e2e::samples::{self, Sample};
use dsh_e2e::{At, Ground, Probe, Target, probe_of};
use dsh_reports::{Division, Surprise};
use dsh_scenarios::Clauses;

use super::Args;
use crate::commands::subject;
use crate::exit::Exit;
use crate::shell::Shell;

/// The longest document that a host opens by default (`maxDocumentBytes`).
const LONGEST_DOCUMENT: u64 = 4_000_000;

/// A server to check.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// How it is started is known.
    Ready(Box<Target>, Ground),
    /// It has to be found first.
    Listed { entry: Arc<Entry>, ground: Ground },
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) servers: Vec<Server>,
    pub(super) only: Vec<&'static Probe>,
    /// What of the servers other machines check.
    pub(super) division: Option<Division>,
}

/// Why nothing is checked.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) exit: Exit,
}

impl Refused {
    fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit: Exit::Usage,
        }
    }
}

impl Chosen {
    pub(super) fn read(shell: &Shell, args: &Args) -> Result<Self, Refused> {
        let only = probes(&args.only)?;
        if args.measure == super::Measure::Only && !only.is_empty() {
            let message = "--measure only judges nothing, and --only chooses what is judged: \
                           leave one of them out";
            return Err(Refused::usage(message));
        }
        let mut servers = if let Some(command) = &args.command {
            vec![any(shell, args, command)?]
        } else if args.all {
            let catalogue = shell.catalogue().map_err(Refused::usage)?;
            let entries = catalogue.entries().iter();
            entries
                .map(|entry| listed(&catalogue, entry))
                .collect::<Result<_, _>>()?
        } else if args.server.is_empty() {
            let ground = Ground::Sample(sample("fake")?);
            vec![Server::Ready(Box::new(subject::built_in(shell)), ground)]
        } else {
            let catalogue = shell.catalogue().map_err(Refused::usage)?;
            let mut servers = Vec::new();
            for (index, name) in args.server.iter().enumerate() {
                let twice = args.server[..index].contains(name);
                if name == subject::BUILT_IN && catalogue.entry(name).is_err() {
                    if !twice {
                        let ground = Ground::Sample(sample("fake")?);
                        servers.push(Server::Ready(Box::new(subject::built_in(shell)), ground));
                    }
                    continue;
                }
                let entry = catalogue
                    .entry(name)
                    .map_err(|unknown| Refused::usage(unknown.to_string()))?;
                if !twice {
                    servers.push(listed(&catalogue, entry)?);
                }
            }
            servers
        };
        if servers.is_empty() {
            let message = "the catalogue has no server".to_owned();
            return Err(Refused {
                message,
                exit: Exit::NothingSelected,
            });
        }
        let division = args.scale.divide(&mut servers)?;
        Ok(Self {
            servers,
            only,
            division,
        })
    }
}

/// The probes of `--only`.
fn probes(only: &[String]) -> Result<Vec<&'static Probe>, Refused> {
    let mut probes: Vec<&'static Probe> = Vec::new();
    let mut without = Vec::new();
    for id in only {
        let clause = Clauses::embedded()
            .find(id)
            .map_err(|unknown| Refused::usage(format!("--only: {unknown}")))?;
        match probe_of(&clause.id) {
            Some(probe) if !probes.contains(&probe) => probes.push(probe),
            Some(_) => {}
            None => without.push(clause.id.as_str()),
        }
    }
    if probes.is_empty() && !without.is_empty() {
        let message = format!(
            "nothing is selected: no probe judges {}; see dsh-conform list probes",
            without.join(", ")
        );
        return Err(Refused {
            message,
            exit: Exit::NothingSelected,
        });
    }
    Ok(probes)
}

fn listed(catalogue: &Catalogue, entry: &Entry) -> Result<Server, Refused> {
    let ground = match catalogue.sample_of(entry) {
        Some(sample) => Ground::Sample(sample),
        // Only a user's own entry may have none.
        None if catalogue.is_own(&entry.name) => Ground::Bare,
        None => Ground::Sample(sample(&entry.sample)?),
    };
    Ok(Server::Listed {
        entry: Arc::new(entry.clone()),
        ground,
    })
}

fn sample(name: &str) -> Result<&'static Sample, Refused> {
    samples::sample(name).ok_or_else(|| Refused {
        message: format!("the sample workspace {name:?} is not part of this program"),
        exit: Exit::OurFault,
    })
}

/// The server of `--command`.
fn any(shell: &Shell, args: &Args, command: &str) -> Result<Server, Refused> {
    let target = subject::of_command(shell, command, &args.ext).map_err(Refused::usage)?;
    let mut target = Box::new(target);
    if let Some(name) = &args.name {
        target.name.clone_from(name);
    }
    let Some(folder) = &args.workspace else {
        if !args.at.is_empty() {
            let message = "--at needs --workspace: the folder the server is to work in";
            return Err(Refused::usage(message));
        }
        return Ok(Server::Ready(target, Ground::Bare));
    };
    let workspace = shell.absolute(folder);
    if let Err(error) = std::fs::read_dir(&workspace) {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            io::ErrorKind::NotADirectory => "is no folder".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        let message = format!(
            "--workspace {} {what}; give an existing folder",
            folder.display()
        );
        return Err(Refused::usage(message));
    }
    for at in &args.at {
        askable(&workspace, at, &target)
            .map_err(|why| Refused::usage(format!("--at {at}: {why}")))?;
    }
    Ok(Server::Ready(
        target,
        Ground::Given {
            workspace,
            at: args.at.clone(),
        },
    ))
}

/// Whether the server can be asked there at all: a readable file inside the workspace, with one of
/// the extensions. The same is asked of every file again when it is opened.
fn askable(workspace: &Path, at: &At, target: &Target) -> Result<(), String> {
    let (file, path) = (&at.file, workspace.join(&at.file));
    let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no file {file} in {}; give a file below it",
            workspace.display()
        ),
        _ => format!("{file} cannot be read: {error}"),
    })?;
    if !metadata.is_file() {
        return Err(format!("{file} is no regular file"));
    }
    let unreadable = |error: io::Error| format!("{file} cannot be read: {error}");
    let (root, real) = (
        workspace.canonicalize().map_err(unreadable)?,
        path.canonicalize().map_err(unreadable)?,
    );
    if !real.starts_with(&root) {
        return Err(format!(
            "{file} lies outside the workspace {}",
            workspace.display()
        ));
    }
    let name = file.to_lowercase();
    if !target
        .extensions
        .keys()
        .any(|extension| name.ends_with(&extension.to_lowercase()))
    {
        let served: Vec<&str> = target.extensions.keys().map(String::as_str).collect();
        return Err(format!(
            "{file} has another extension than those of --ext, {}",
            served.join(" and ")
        ));
    }
    let opened = std::fs::File::open(&path).map_err(unreadable)?;
    // What cannot be opened as a document is told when it is to be, with the limit.
    let mut text = String::new();
    let outcome = opened.take(LONGEST_DOCUMENT + 1).read_to_string(&mut text);
    match outcome {
        Ok(size) if size as u64 <= LONGEST_DOCUMENT => there_is(&text, at),
        _ => Ok(()),
    }
}

/// Whether a text has the place: its very end is one, and the end of each line.
fn there_is(text: &str, at: &At) -> Result<(), String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.split('\n').collect();
    let units = |line: &str| line.encode_utf16().count();
    let line = usize::try_from(at.position.line).unwrap_or(usize::MAX);
    let character = usize::try_from(at.position.character).unwrap_or(usize::MAX);
    let file = &at.file;
    let last = lines.len();
    let Some(found) = lines.get(line) else {
        let end = units(lines[last - 1]) + 1;
        return Err(format!(
            "there is no line {} in {file}, which ends at {last}:{end}; give a place up to there",
            line + 1
        ));
    };
    let length = units(found);
    if character > length {
        return Err(format!(
            "line {} of {file} has {length} UTF-16 code units; give a column from 1 to {}",
            line + 1,
            length + 1
        ));
    }
    Ok(())
}

impl Server {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Ready(target, _) => &target.name,
            Self::Listed { entry, .. } => &entry.name,
        }
    }

    /// The language it serves, where that is known.
    pub(super) fn language(&self) -> Option<String> {
        match self {
            Self::Ready(target, _) => target.language.clone(),
            Self::Listed { entry, .. } => Some(entry.language.clone()),
        }
    }

    /// What its check needs, in MiB, where its entry says so.
    pub(super) fn need(&self) -> Option<u64> {
        match self {
            Self::Ready(..) => None,
            Self::Listed { entry, .. } => entry.memory_mb,
        }
    }

    /// What the catalogue knows of it.
    pub(super) fn surprises(&self) -> Vec<Surprise> {
        match self {
            Self::Listed { entry, .. } => entry.surprises.clone(),
            Self::Ready(..) => Vec::new(),
        }
    }

    /// The command that checks this server alone, in the same way: with what decides where the
    /// server is from, what it is asked and how long it may take, and nothing else. Which clauses
    /// are judged is left to be added.
    pub(super) fn reproduce(&self, shell: &Shell, args: &Args) -> String {
        joined(&self.words(shell, args))
    }

    /// The same with the clauses that were chosen, and with what was measured.
    pub(super) fn reproduce_whole(&self, shell: &Shell, args: &Args) -> String {
        let mut words = self.words(shell, args);
        if args.measure == super::Measure::Only {
            words.extend(["--measure".to_owned(), "only".to_owned()]);
        }
        if !args.only.is_empty() {
            words.extend(["--only".to_owned(), args.only.join(",")]);
        }
        joined(&words)
    }

    fn words(&self, shell: &Shell, args: &Args) -> Vec<String> {
        let mut words: Vec<String> = vec!["dsh-conform".to_owned(), "check".to_owned()];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        match self {
            Self::Listed { entry, .. } => {
                add("--server", entry.name.clone());
                for file in &shell.catalogues {
                    add("--catalogue", file.display().to_string());
                }
            }
            Self::Ready(..) => {
                if let Some(command) = &args.command {
                    add("--command", command.clone());
                }
                if let Some(name) = &args.name {
                    add("--name", name.clone());
                }
                for extension in &args.ext {
                    add("--ext", extension.to_string());
                }
                if let Some(workspace) = &args.workspace {
                    add("--workspace", workspace.display().to_string());
                }
                for at in &args.at {
                    add("--at", at.to_string());
                }
            }
        }
        if args.budget.as_secs() != 60 {
            add("--budget", args.budget.as_secs_f64().to_string());
        }
        if args.measure == super::Measure::No {
            add("--measure", "no".to_owned());
        }
        for (option, value) in args.scale.bounds() {
            add(option, value);
        }
        if args.install && matches!(self, Self::Listed { .. }) {
            words.push("--install".to_owned());
            if args.system {
                words.push("--system".to_owned());
            }
        }
        words
    }
}

fn joined(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
