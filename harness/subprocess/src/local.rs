//! The provider for this machine's processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use dsh_kernel::{Cancel, CancelReason, ExecutionWorld};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::control::LocalControl;
use crate::environment::child_environment;
use crate::explain;
use crate::input::InputWatch;
use crate::marker::Marker;
use crate::resolve::resolve;
use crate::service::{ChildIo, ChildProcess, ResolveError, SpawnError, SpawnSpec, Subprocess};
use crate::tree::Tree;

/// Processes of this machine.
#[derive(Debug)]
pub struct LocalSubprocess {
    world: ExecutionWorld,
    ambient: BTreeMap<OsString, OsString>,
}

impl LocalSubprocess {
    /// A provider whose children get `ambient`, scrubbed, under their own configured environment
    /// (ENV-1, ENV-2).
    pub fn new(ambient: BTreeMap<OsString, OsString>) -> Self {
        Self {
            world: ExecutionWorld::local(),
            ambient,
        }
    }

    /// A provider with the environment of this process, as it is now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the ambient environment enters"
    )]
    pub fn from_environment() -> Self {
        Self::new(std::env::vars_os().collect())
    }

    fn start(&self, spec: &SpawnSpec) -> Result<ChildProcess, Failure> {
        check(spec).map_err(Failure::Said)?;
        let marker = Marker::fresh();
        let mut environment = child_environment(&self.ambient, &spec.env);
        marker.put_into(&mut environment);
        let mut command = Command::new(&spec.executable);
        command
            .args(&spec.args)
            .env_clear()
            .envs(environment)
            .current_dir(&spec.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        lead_a_group(&mut command);
        let mut child = command.spawn().map_err(Failure::System)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let tree = Tree::new(child, marker).map_err(Failure::Said)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Failure::Said("it has no pipes".to_owned()));
        };
        // A tree that is dropped on the way out is ended.
        let input = InputWatch::new(&stdin).map_err(Failure::System)?;
        let stdin = ChildStdin::from_std(stdin).map_err(Failure::System)?;
        let stdout = ChildStdout::from_std(stdout).map_err(Failure::System)?;
        let stderr = ChildStderr::from_std(stderr).map_err(Failure::System)?;
        let control = LocalControl::new(tree, input, stderr, spec.max_stderr_bytes);
        Ok(ChildProcess {
            io: ChildIo {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
            },
            control: Arc::new(control),
        })
    }
}

enum Failure {
    /// What the system said; it still has to be put into words.
    System(std::io::Error),
    Said(String),
}

/// What the system would take without a word and understand differently.
fn check(spec: &SpawnSpec) -> Result<(), String> {
    if !spec.executable.is_absolute() {
        return Err("the executable is not an absolute path; resolve it first".to_owned());
    }
    match spec
        .env
        .keys()
        .find(|name| name.is_empty() || name.contains(['=', '\0']))
    {
        Some(name) => Err(format!(
            "{name:?} cannot be the name of a variable; names are not empty and hold neither = \
             nor NUL"
        )),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn lead_a_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(windows)]
fn lead_a_group(command: &mut Command) {
    use std::os::windows::process::CommandExt;
    /// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C of our console is not theirs.
    const NEW_GROUP: u32 = 0x0000_0200;
    command.creation_flags(NEW_GROUP);
}

#[async_trait]
impl Subprocess for LocalSubprocess {
    fn world(&self) -> &ExecutionWorld {
        &self.world
    }

    /// Returns only when the thread that looks has ended, so that whoever cancels and waits knows
    /// that no lookup is running (CFG-6).
    async fn resolve_executable(
        &self,
        command: &str,
        env: &BTreeMap<String, String>,
        cancel: &Cancel,
    ) -> Result<PathBuf, ResolveError> {
        let cancelled = || ResolveError::Cancelled {
            command: command.to_owned(),
        };
        let environment = child_environment(&self.ambient, env);
        // A caller that is dropped instead of waiting stops the thread before its next look.
        let stop = cancel.child();
        let _stop = CancelOnDrop(stop.clone());
        let name = command.to_owned();
        let lookup = tokio::task::spawn_blocking(move || resolve(&name, &environment, &stop));
        match lookup.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(outcome) => outcome,
            Err(Ok(payload)) => panic::resume_unwind(payload),
            Err(Err(_)) => Err(cancelled()),
        }
    }

    async fn spawn(&self, spec: SpawnSpec) -> Result<ChildProcess, SpawnError> {
        let reason = match self.start(&spec) {
            Ok(child) => return Ok(child),
            Err(Failure::Said(reason)) => reason,
            Err(Failure::System(error)) => {
                let (executable, cwd) = (spec.executable.clone(), spec.cwd.clone());
                let said = error.to_string();
                tokio::task::spawn_blocking(move || explain::spawn(&executable, &cwd, &error))
                    .await
                    .unwrap_or(said)
            }
        };
        Err(SpawnError {
            executable: spec.executable,
            cwd: spec.cwd,
            reason,
        })
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(CancelReason::Disposed);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
