//! Where a clause comes from.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Where a clause comes from. Written as one string each: `S1`, `S2`, `S3`, `LSP 3.17: ` with the
/// section's heading, `host policy`, or `host policy: ` with the part that is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Source {
    /// S1: the published description of `DeepSeek` Harness's language-server seam, host and tool.
    Seam,
    /// S2: the published description of its workspace instructions.
    Instructions,
    /// S3: the published description of its plugins and its read tool.
    Plugins,
    /// The Language Server Protocol 3.17.
    Lsp {
        /// The heading it stands under.
        section: String,
    },
    /// A decision of this project, where the others are silent.
    Policy {
        /// The part of the clause that was decided; none where it is the whole clause.
        part: Option<String>,
    },
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no source: write S1, S2, S3, `LSP 3.17: ` with a heading, or `host policy`, alone or \
     with a colon and the part that is ours"
)]
pub struct SourceError(String);

const LSP: &str = "LSP 3.17";
const POLICY: &str = "host policy";

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        match text {
            "S1" => return Ok(Self::Seam),
            "S2" => return Ok(Self::Instructions),
            "S3" => return Ok(Self::Plugins),
            POLICY => return Ok(Self::Policy { part: None }),
            _ => {}
        }
        match text.split_once(": ") {
            Some((LSP, section)) if !section.trim().is_empty() => Ok(Self::Lsp {
                section: section.to_owned(),
            }),
            Some((POLICY, part)) if !part.trim().is_empty() => Ok(Self::Policy {
                part: Some(part.to_owned()),
            }),
            _ => Err(SourceError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Source {
    type Error = SourceError;

    fn try_from(text: String) -> Result<Self, SourceError> {
        text.parse()
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seam => f.write_str("S1"),
            Self::Instructions => f.write_str("S2"),
            Self::Plugins => f.write_str("S3"),
            Self::Lsp { section } => write!(f, "{LSP}: {section}"),
            Self::Policy { part: None } => f.write_str(POLICY),
            Self::Policy { part: Some(part) } => write!(f, "{POLICY}: {part}"),
        }
    }
}

impl Source {
    /// What the short form stands for, in a few words for people.
    pub const fn title(&self) -> &'static str {
        match self {
            Self::Seam => "DeepSeek Harness, the language-server seam",
            Self::Instructions => "DeepSeek Harness, workspace instructions",
            Self::Plugins => "DeepSeek Harness, plugins and the read tool",
            Self::Lsp { .. } => "Language Server Protocol 3.17",
            Self::Policy { .. } => "decided by this project where the others are silent",
        }
    }
}

impl JsonSchema for Source {
    fn schema_name() -> Cow<'static, str> {
        "Source".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Where a clause comes from. S1, S2 and S3 are the published \
                descriptions of DeepSeek Harness: its language-server seam, its workspace \
                instructions, and its plugins with the read tool.",
            "type": "string",
            "pattern": r"^(S[123]|LSP 3\.17: .+|host policy(: .+)?)$",
        })
    }
}
