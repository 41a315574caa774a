//! The language-server seam: vocabulary, registry, selection, errors.

mod error;
mod types;

pub use error::LspError;
pub use types::{
    Hover, Location, LspProvider, Operation, Position, ProviderQuery, QueryRequest, QueryResult,
    Range, UnknownOperation,
};
