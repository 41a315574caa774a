//! The generic host that adapts configured stdio language servers to the seam.
//!
//! It names no language server and knows none: a table of commands and extensions is all it goes by
//! (CFG-9). Files are read through the [`FileSystem`](dsh_fs::FileSystem) service, processes run
//! through the [`Subprocess`](dsh_subprocess::Subprocess) service (HST-9).
//!
//! From the outside in:
//!
//! - `plugin`: registers a [`StdioProvider`] for each entry of the [`LspStdioConfig`].
//! - `provider`, `pool`: which query waits where; one slot for each canonical workspace.
//! - `slot`: the task of one workspace: source, process, query, grace, teardown, in that order.
//! - `instance`, `teardown`, `failure`: one process: bytes, its end, and that in words.
//! - `machine`, `outbox`, `message`, `translate`, `outgoing`, `json`: what is said, by pure code.
//! - [`FrameDecoder`], [`write_frame`]: the base protocol, pure too.
//!
//! A warm query costs its task two wake-ups besides the hop that reads the file: one when it is
//! queued and one when the answer arrives.

mod config;
mod failure;
mod framing;
mod instance;
mod json;
mod machine;
mod message;
mod outbox;
mod outgoing;
mod plugin;
mod pool;
mod provider;
mod slot;
mod teardown;
#[cfg(test)]
mod testing;
mod translate;

pub use config::{ConfigError, LspStdioConfig, MAX_BUDGET_MS, ServerConfig, Versions};
pub use framing::{FrameDecoder, FrameError, FrameFault, Partial, write_frame};
pub use plugin::LspStdioPlugin;
pub use provider::{DisposeError, StdioProvider, TeardownFailure};
