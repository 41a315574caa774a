//! Deployment file to mounted runtime, and the facade every other crate uses.
//!
//! A [`Deployment`] is read from its YAML form or put together in code; a [`Runtime`] mounts the
//! base and the deployment's rows on a kernel and hands out the services. The crates whose types
//! appear on the way are re-exported.

mod deployment;
mod error;
mod reference;
mod row;
mod runtime;
mod yaml;

#[cfg(test)]
mod tests;

pub use deployment::{Deployment, Row};
pub use error::{DeploymentError, MountError, PluginFailure};
pub use reference::config_reference;
pub use row::{PluginName, RowConfig};
pub use runtime::{Runtime, RuntimeBuilder, Waiting};

pub use dsh_agent as agent;
pub use dsh_code_mode as code_mode;
pub use dsh_fs as fs;
pub use dsh_kernel as kernel;
pub use dsh_lsp as lsp;
pub use dsh_lsp_stdio as lsp_stdio;
pub use dsh_session as session;
pub use dsh_subprocess as subprocess;
pub use dsh_tool_fs as tool_fs;
pub use dsh_tool_lsp as tool_lsp;
pub use dsh_tools as tools;
pub use dsh_workspace_context as workspace_context;
