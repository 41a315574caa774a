//! The seam's vocabulary (SEAM-1, SEAM-11, SEAM-14). Positions are zero-based UTF-16 code units.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use dsh_kernel::Cancel;
use serde::{Deserialize, Serialize};

use crate::LspError;

/// The closed set of operations (SEAM-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Where the symbol is defined.
    GoToDefinition,
    /// Where it is used, the declaration included (OPN-9).
    FindReferences,
    /// What implements it.
    GoToImplementation,
    /// What it is.
    Hover,
}

impl Operation {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Self; 4] = [
        Self::GoToDefinition,
        Self::FindReferences,
        Self::GoToImplementation,
        Self::Hover,
    ];

    /// The name on the seam and in the tool, `goToDefinition` for instance.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GoToDefinition => "goToDefinition",
            Self::FindReferences => "findReferences",
            Self::GoToImplementation => "goToImplementation",
            Self::Hover => "hover",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str() == name)
            .ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

/// A name that is none of the four operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown operation {0:?}; use goToDefinition, findReferences, goToImplementation or hover")]
pub struct UnknownOperation(pub String);

/// A place in a document: zero-based line, zero-based UTF-16 code unit in it (LSP `Position`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Zero-based line.
    pub line: u64,
    /// Zero-based UTF-16 code unit.
    pub character: u64,
}

/// A half-open stretch of a document (LSP `Range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The first place of it.
    pub start: Position,
    /// The first place behind it.
    pub end: Position,
}

/// A place in some document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The URI as the server gave it (NAV-4).
    pub uri: String,
    /// Where in it.
    pub range: Range,
}

/// What a symbol is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hover {
    /// Markdown or plain text, never empty.
    pub contents: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

/// A question to the seam (SEAM-14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueryRequest {
    /// What is asked.
    pub operation: Operation,
    /// The file: absolute, or relative to the workspace.
    pub file_path: String,
    /// Where in it.
    pub position: Position,
    /// The workspace; absolute.
    pub workspace_root: String,
}

/// What a provider gets: the question and the language id of its own mapping (SEAM-9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderQuery {
    /// What is asked.
    pub operation: Operation,
    /// The file: absolute, or relative to the workspace.
    pub file_path: String,
    /// Where in it.
    pub position: Position,
    /// The workspace; absolute.
    pub workspace_root: String,
    /// The language id that labels the opened document.
    pub language_id: String,
}

/// An answer: a closed union (SEAM-11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum QueryResult {
    /// Of the three navigations.
    #[serde(rename_all = "camelCase")]
    Locations {
        /// In the server's order (NAV-1).
        locations: Vec<Location>,
        /// The provider's canonical `file:` URI of the workspace.
        resolved_workspace_uri: String,
    },
    /// Of `hover`.
    Hover {
        /// Null when the server has nothing to say (HOV-1).
        hover: Option<Hover>,
    },
}

/// Who answers queries for some extensions.
#[async_trait]
pub trait LspProvider: Send + Sync + 'static {
    /// The id it registers under.
    fn id(&self) -> &str;

    /// Extension → language id.
    fn extension_to_language(&self) -> &BTreeMap<String, String>;

    /// Answers one query. The caller's cancellation arrives unchanged (SEAM-10).
    async fn query(&self, query: ProviderQuery, cancel: &Cancel) -> Result<QueryResult, LspError>;
}
