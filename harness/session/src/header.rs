//! What is fixed for a session's whole life.

use serde::{Deserialize, Serialize};

/// What is fixed for a session's whole life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionHeader {
    /// Unique within a runtime.
    pub id: String,
    /// The working directory: an absolute path, and the workspace of tools that need one. A session
    /// without one has no workspace, and nothing stands in for it (TOOL-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}
