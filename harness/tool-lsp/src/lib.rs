//! The model-facing `lsp` tool: arguments, rendering, presentation.
//!
//! One tool over the seam of `dsh-lsp`, for a model that thinks in one-based positions and paths.
//! It knows no provider, no process and no protocol, and it does no I/O of its own: what it asks
//! it asks the seam, and what it shows it renders from the seam's answer alone.

mod args;
mod config;
mod failure;
mod plugin;
mod present;
mod prompt;
mod render;
mod text;
mod tool;
mod uri;

pub use args::{Arguments, CONVENTION, InvalidArguments, Reason, parameters_schema};
pub use config::{InvalidConfig, Key, MAX_TIMEOUT_MS, ToolLspConfig};
pub use plugin::ToolLspPlugin;
pub use present::present;
pub use prompt::{DESCRIPTION, NAME, SECTION, SECTION_ORDER};
pub use render::{Caps, NO_HOVER, NO_LOCATIONS, render};
pub use tool::LspTool;
