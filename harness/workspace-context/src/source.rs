//! The typed source of a message of instructions: where the state lives (INS-7).
//!
//! What a message has loaded and removed is told here, beside the text that the model reads and
//! never in it, so that no text can imitate it.

use std::path::PathBuf;

use dsh_session::MessageSource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of the source (INS-7).
pub const KIND: &str = "workspace-instructions";

/// What a message of instructions changes about what is loaded (INS-7).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionSource {
    /// In the order in which the message has them. Only what was really rendered (INS-12).
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Whether it is a whole baseline.
    #[serde(default, skip_serializing_if = "is_false")]
    pub baseline: bool,
    /// A sum of what the chain of directories followed from: working directory, root, home,
    /// candidates and budget. Another one asks for a whole baseline (INS-15).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub layout: String,
    /// What the budget left out and the message names, so that it is named once (INS-11). It is not
    /// loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// One file that a message loads, replaces or removes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happens to it.
    pub action: Action,
    /// Directory and candidate name, `packages/app/AGENTS.md` or `./AGENTS.md`; the directory is
    /// relative to the project's root, or the user's own.
    pub scope: String,
    /// The absolute path before the final link: the identity of the file (INS-3).
    pub path: PathBuf,
    /// SHA-1 of the raw bytes that are loaded now, in hexadecimal; none after a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is loaded.
    Set,
    /// What was loaded of it is replaced.
    Replace,
    /// What was loaded of it no longer applies (INS-8).
    Remove,
}

/// A file that the budget left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Omission {
    /// The file.
    pub path: PathBuf,
    /// What would have been loaded; none if a removal was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl InstructionSource {
    /// The source as the log keeps it.
    pub fn to_source(&self) -> MessageSource {
        let data = match serde_json::to_value(self) {
            Ok(Value::Object(data)) => data,
            // A struct of lists and strings is an object; a path that is no text has no JSON form,
            // and then nothing is recorded.
            _ => serde_json::Map::new(),
        };
        MessageSource::new(KIND, data)
    }

    /// What a message's source says; none if it is of another kind, or is not understood.
    pub fn of(source: &MessageSource) -> Option<Self> {
        if source.kind != KIND {
            return None;
        }
        serde_json::from_value(Value::Object(source.data.clone())).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// INS-7: the form in the log.
    #[test]
    fn the_source_is_typed() {
        let source = InstructionSource {
            changes: vec![
                Change {
                    action: Action::Set,
                    scope: "./AGENTS.md".to_owned(),
                    path: "/p/AGENTS.md".into(),
                    digest: Some("00ff".to_owned()),
                },
                Change {
                    action: Action::Remove,
                    scope: "a/CLAUDE.md".to_owned(),
                    path: "/p/a/CLAUDE.md".into(),
                    digest: None,
                },
            ],
            baseline: true,
            ..InstructionSource::default()
        };
        let logged = source.to_source();
        assert_eq!(
            serde_json::to_value(&logged).unwrap(),
            json!({
                "kind": "workspace-instructions",
                "changes": [
                    {"action": "set", "scope": "./AGENTS.md", "path": "/p/AGENTS.md", "digest": "00ff"},
                    {"action": "remove", "scope": "a/CLAUDE.md", "path": "/p/a/CLAUDE.md"},
                ],
                "baseline": true,
            })
        );
        assert_eq!(InstructionSource::of(&logged), Some(source));
    }

    /// INS-7: another kind says nothing, whatever else it holds.
    #[test]
    fn another_kind_is_no_state() {
        let mut source = InstructionSource::default().to_source();
        source.kind = "prompt".to_owned();
        assert_eq!(InstructionSource::of(&source), None);
        let broken = MessageSource::new(KIND, serde_json::from_str(r#"{"changes": 3}"#).unwrap());
        assert_eq!(InstructionSource::of(&broken), None);
    }
}
