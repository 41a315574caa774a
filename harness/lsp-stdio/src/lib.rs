//! The generic host that adapts configured stdio language servers to the seam.

mod config;
mod framing;
mod json;
mod machine;
mod message;
mod outbox;
mod outgoing;
#[cfg(test)]
mod testing;
mod translate;

pub use config::{ConfigError, LspStdioConfig, MAX_BUDGET_MS, ServerConfig, Versions};
pub use framing::{FrameDecoder, FrameError, FrameFault, Partial, write_frame};
