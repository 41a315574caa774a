//! The session: its header, and the event log that grows from it.
//!
//! So far a session is its header: what a tool call must know of the conversation it belongs to.

use std::sync::Arc;

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

/// A conversation. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Session(Arc<SessionHeader>);

impl Session {
    /// A session that begins with `header`.
    pub fn new(header: SessionHeader) -> Self {
        Self(Arc::new(header))
    }

    /// What is fixed for its whole life.
    pub fn header(&self) -> &SessionHeader {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-3.
    #[test]
    fn a_header_without_a_directory_keeps_it_absent() {
        let header = SessionHeader {
            id: "s1".to_owned(),
            cwd: None,
        };
        let text = serde_json::to_string(&header).unwrap();
        assert_eq!(text, r#"{"id":"s1"}"#);
        assert_eq!(
            serde_json::from_str::<SessionHeader>(&text).unwrap(),
            header
        );
    }

    #[test]
    fn clones_are_the_same_session() {
        let session = Session::new(SessionHeader {
            id: "s1".to_owned(),
            cwd: Some("/w".to_owned()),
        });
        assert!(std::ptr::eq(session.header(), session.clone().header()));
    }
}
