//! What is wrong with a deployment, and why a runtime could not be mounted.

use std::fmt;

use dsh_kernel::{CancelReason, DisposeErrors, PluginError};

use crate::yaml::Place;

/// What is wrong with a deployment file, where, and how to put it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentError {
    origin: String,
    line: u64,
    column: u64,
    problem: String,
}

impl DeploymentError {
    pub(crate) fn new(origin: &str, at: Place, problem: impl Into<String>) -> Self {
        let (line, column) = (at.line, at.column);
        Self {
            origin: origin.to_owned(),
            line,
            column,
            problem: problem.into(),
        }
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        "DEPLOYMENT_INVALID"
    }

    /// The file, as it was named to [`Deployment::parse`](crate::Deployment::parse).
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// One-based line.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// One-based column, in characters.
    pub const fn column(&self) -> u64 {
        self.column
    }

    /// What is wrong and what to do, without the place.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for DeploymentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            origin,
            line,
            column,
            problem,
        } = self;
        write!(f, "{origin}:{line}:{column}: {problem}")
    }
}

impl std::error::Error for DeploymentError {}

/// One plugin that did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{plugin}: {error}", place(.origin.as_ref()))]
pub struct PluginFailure {
    /// The plugin's name.
    pub plugin: String,
    /// File and line of its row; none for what belongs to the base, or was made in code.
    pub origin: Option<(String, u64)>,
    /// What its start failed with.
    pub error: PluginError,
}

fn place(origin: Option<&(String, u64)>) -> String {
    origin
        .map(|(file, line)| format!("{file}:{line}: "))
        .unwrap_or_default()
}

/// Why a runtime was not mounted. Whatever had been started is gone again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MountError {
    /// Plugins failed to start; never empty.
    Plugins {
        /// Which, in the order of their rows.
        failures: Vec<PluginFailure>,
        /// What could not be undone afterwards.
        undo: Option<DisposeErrors>,
    },
    /// The caller gave up (CFG-6).
    Cancelled {
        /// Why.
        reason: CancelReason,
        /// What could not be undone afterwards.
        undo: Option<DisposeErrors>,
    },
}

impl MountError {
    /// The stable code: that of the first failure, `MOUNT_FAILED` if it has none, or
    /// `MOUNT_CANCELLED`.
    pub fn code(&self) -> &str {
        match self {
            Self::Plugins { failures, .. } => failures
                .first()
                .and_then(|failure| failure.error.code())
                .unwrap_or("MOUNT_FAILED"),
            Self::Cancelled { .. } => "MOUNT_CANCELLED",
        }
    }
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undo = match self {
            Self::Plugins { failures, undo } => {
                for (index, failure) in failures.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{failure}")?;
                }
                undo
            }
            Self::Cancelled { reason, undo } => {
                write!(f, "the runtime was not mounted: {reason}")?;
                undo
            }
        };
        match undo {
            Some(undo) => write!(f, "\nand could not be undone: {undo}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for MountError {}
