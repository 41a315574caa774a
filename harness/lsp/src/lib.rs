//! The language-server seam: what may be asked, who answers, and how that goes wrong.
//!
//! Consumers see [`LspService`] and ask one of four [`Operation`]s about a place in a file; providers
//! implement [`LspProvider`] and register under file extensions. The seam knows no protocol, process
//! or document: there is no way to send anything but the four questions (SEAM-1), and no type of LSP
//! itself appears in it.

mod deadline;
mod error;
mod extension;
mod plugin;
mod registry;
mod service;
mod types;

pub use deadline::deadline;
pub use error::LspError;
pub use extension::{ExtensionError, final_extension, normalize_extension, normalize_extensions};
pub use plugin::LspPlugin;
pub use registry::LspRegistry;
pub use service::{LspService, Registration};
pub use types::{
    Hover, Location, LspProvider, Operation, Position, ProviderQuery, QueryRequest, QueryResult,
    Range, UnknownOperation,
};
