//! The server as a process: pipes, clock, signals, files. All that decides is in the engine.
//!
//! One thread. While nothing but stdin can have news, it waits in a plain read, so that a
//! well-behaved, unwatched server costs one read and one write a message; otherwise it polls.

mod files;
mod helper;
mod output;
mod recording;
mod shell;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::script::{Action, Script};

pub(crate) use helper::{HelperOptions, live as live_as_helper};

/// How to run.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) script: Script,
    /// Address of the control channel.
    pub(crate) control: Option<String>,
    /// Where the transcript goes.
    pub(crate) transcript: Option<PathBuf>,
    /// Its number in the run, where no channel says it.
    pub(crate) process: Option<u32>,
    /// A file that counts starts.
    pub(crate) counter: Option<PathBuf>,
    /// Arguments that stand before this program's own, for starting it again.
    pub(crate) prefix: Vec<OsString>,
}

/// Exit code when the control channel was lost.
pub(crate) const LOST: i32 = 70;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(
        "the script holds {name:?}, and nobody could release it: give `--control ADDRESS` \
         (a runner's `Control`), or use `delay_ms` or `ignore` instead of `hold`"
    )]
    HoldWithoutControl { name: String },
    #[error(
        "cannot reach the runner at {address}: {source}; is the address that of a runner that still lives?"
    )]
    Control { address: String, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot set up the process: {0}")]
    Process(#[from] io::Error),
}

/// Serves until the end; returns the exit code.
pub(crate) fn serve(options: Options) -> Result<i32, StartError> {
    if options.control.is_none() {
        let actions = options.script.rules.iter().flat_map(|rule| &rule.r#do);
        for action in actions {
            if let Action::Hold(name) = action {
                return Err(StartError::HoldWithoutControl { name: name.clone() });
            }
        }
    }
    shell::run(options)
}
