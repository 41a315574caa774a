//! The generic host that adapts configured stdio language servers to the seam.

mod config;
#[cfg(test)]
mod testing;

pub use config::{ConfigError, LspStdioConfig, MAX_BUDGET_MS, ServerConfig, Versions};
