//! Finding the servers of the catalogue on this machine, and installing them into a cache folder
//! of the user.
//!
//! A server is a program on PATH, or one that was installed into the cache by one of the recipes
//! of its entry. A program counts as present only when it tells its version: a launcher without
//! the server behind it is absent, and the reason is kept.
//!
//! Everything ambient (variables, the cache folder, whether this is a CI) is passed in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::catalogue::{Entry, Platform, RecipeKind};

/// What the outer shell knows about this machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The environment: given to every child process; its `PATH` is where programs are looked for.
    pub variables: BTreeMap<OsString, OsString>,
    /// Which recipes hold here.
    pub platform: Platform,
    /// Whether this process may install system packages.
    pub privileged: bool,
}

/// Finds and installs servers.
#[derive(Debug, Clone)]
pub struct Installer {
    machine: Machine,
    cache: PathBuf,
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
    /// The version it told.
    pub version: String,
    /// Where it came from.
    pub origin: Origin,
    /// What was looked at first and did not count.
    pub rejected: Vec<Rejected>,
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
    },
}

/// A program of the right name that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The program.
    pub path: PathBuf,
    /// Why it counts as absent.
    pub reason: String,
}

/// What `install` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstallOptions {
    /// Run recipes of the system's package manager; otherwise they are only printed.
    pub system: bool,
    /// Start builds that take long. The outer shell sets this unless it runs in a CI and was not
    /// asked for it.
    pub long_builds: bool,
}
