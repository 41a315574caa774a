//! `deployment`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dsh_harness::kernel::Cancel;
use dsh_harness::{Deployment, MountError, Runtime};

use crate::exit::Exit;
use crate::output::{complain, say};
use crate::shell::{Shell, read_text};
use crate::signals::interruptible;

/// The most bytes that a deployment file may have.
const MAX_BYTES: u64 = 4_000_000;

/// Read and mount deployment files (cordis.yml): what a host consists of, its servers included
#[derive(Clone, Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  dsh-conform deployment check cordis.yml
  dsh-conform deployment reference")]
pub(crate) enum Command {
    /// Mount a deployment, list what is mounted, and dispose it again
    ///
    /// Executables are resolved as they would be in use; no server is started.
    Check {
        /// The deployment file
        file: PathBuf,
    },
    /// Print every row and key that a deployment may have
    Reference,
}

pub(crate) fn run(shell: &Shell, command: &Command) -> Exit {
    match command {
        Command::Reference => match say(&dsh_harness::config_reference()) {
            Ok(()) => Exit::Fine,
            Err(_) => Exit::NotCarriedOut,
        },
        Command::Check { file } => {
            let deployment = match read(shell, file) {
                Ok(deployment) => deployment,
                Err(message) => {
                    complain(&format!("error: {message}"));
                    return Exit::Usage;
                }
            };
            interruptible(|interruption| check(deployment, interruption.cancel))
        }
    }
}

/// Reads a deployment file.
pub(super) fn read(shell: &Shell, file: &Path) -> Result<Deployment, String> {
    let text = read_text(&shell.absolute(file), MAX_BYTES, "a deployment")
        .map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    Deployment::parse(&text, &file.display().to_string()).map_err(|error| error.to_string())
}

/// Mounts a deployment, or says why that is not possible.
pub(super) async fn mount(deployment: Deployment, cancel: &Cancel) -> Result<Runtime, Exit> {
    match Runtime::builder()
        .deployment(deployment)
        .mount(cancel)
        .await
    {
        Ok(runtime) => Ok(runtime),
        Err(MountError::Cancelled { .. }) => Err(Exit::Interrupted),
        Err(error) => {
            complain(&format!("error: {error}"));
            Err(Exit::NotCarriedOut)
        }
    }
}

async fn check(deployment: Deployment, cancel: Cancel) -> Exit {
    let listed = list(&deployment);
    let runtime = match mount(deployment, &cancel).await {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let mut text = format!("mounted\n{listed}");
    let mut exit = Exit::Fine;
    for tool in runtime.tools().list() {
        let _ = writeln!(text, "tool {}", tool.name);
    }
    for waiting in runtime.waiting() {
        let _ = writeln!(text, "not started: {waiting}");
        exit = Exit::DoesNotConform;
    }
    match runtime.dispose().await {
        Ok(()) => text.push_str("disposed\n"),
        Err(error) => {
            complain(&format!("error: {error}"));
            exit = Exit::DoesNotConform;
        }
    }
    if say(&text).is_err() {
        Exit::NotCarriedOut
    } else {
        exit
    }
}

fn list(deployment: &Deployment) -> String {
    let mut text = String::new();
    for row in deployment.rows() {
        let name = row.config().plugin().as_str();
        let _ = match row.origin() {
            Some((file, line)) => writeln!(text, "  {name} ({file}:{line})"),
            None => writeln!(text, "  {name}"),
        };
        if let dsh_harness::RowConfig::LspStdio(config) = row.config() {
            for (id, server) in &config.servers {
                let extensions: Vec<&str> = server
                    .extension_to_language
                    .keys()
                    .map(String::as_str)
                    .collect();
                let _ = writeln!(
                    text,
                    "    {id}: {} for {}",
                    server.command,
                    extensions.join(" ")
                );
            }
        }
    }
    text
}
