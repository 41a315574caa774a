//! A process tree: the leader that was started, its group, and what descends from it.
//!
//! `linux` does what the contract asks for. `other` serves the platforms that are intended but
//! untested, and says what it does not do.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod pin;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
pub(crate) use linux::Tree;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::Tree;

use std::process::ExitStatus;
use std::time::Duration;

use crate::service::ChildExit;

/// Pause between looks where the system has no event to wait for.
const PAUSE: Duration = Duration::from_millis(10);

fn exit_of(status: ExitStatus) -> ChildExit {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ChildExit::Signal(signal);
    }
    status.code().map_or(ChildExit::Unknown, ChildExit::Code)
}
