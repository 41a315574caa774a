//! What a sample asks or has, and the reason where it does not.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::data::{Operation, Sample};

/// What a sample asks or has, by its name in `sample.yaml`: each is there, or the reason why not.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// A question about a definition, answered in another file.
    GoToDefinition,
    /// A question about references, in more than one file.
    FindReferences,
    /// A question about an implementation.
    GoToImplementation,
    /// A question about a hover.
    Hover,
    /// A question behind a character outside the basic plane.
    Columns,
    /// A question in, or answered by, a file whose path has a space and letters outside ASCII.
    Paths,
    /// A question whose answer lies in another file that changes on disk.
    Changed,
    /// A file with CR LF.
    Crlf,
}

impl Part {
    /// All of them, in the order they are listed.
    pub const ALL: [Self; 8] = [
        Self::GoToDefinition,
        Self::FindReferences,
        Self::GoToImplementation,
        Self::Hover,
        Self::Columns,
        Self::Paths,
        Self::Changed,
        Self::Crlf,
    ];

    /// The name in data, e.g. `columns`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoToDefinition => Operation::GoToDefinition.name(),
            Self::FindReferences => Operation::FindReferences.name(),
            Self::GoToImplementation => Operation::GoToImplementation.name(),
            Self::Hover => Operation::Hover.name(),
            Self::Columns => "columns",
            Self::Paths => "paths",
            Self::Changed => "changed",
            Self::Crlf => "crlf",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sample {
    /// Whether there is one of that.
    pub fn has(&self, part: Part) -> bool {
        let asks = |operation| (self.questions.iter()).any(|asked| asked.operation == operation);
        match part {
            Part::GoToDefinition => asks(Operation::GoToDefinition),
            Part::FindReferences => asks(Operation::FindReferences),
            Part::GoToImplementation => asks(Operation::GoToImplementation),
            Part::Hover => asks(Operation::Hover),
            Part::Columns => !self.columns.is_empty(),
            Part::Paths => !self.paths.is_empty(),
            Part::Changed => !self.changed.is_empty(),
            Part::Crlf => self.files.iter().any(|file| file.text.contains("\r\n")),
        }
    }

    /// Why there is none of that, where there is none; also where it would have to reach into
    /// another file, and no name does.
    pub fn reason(&self, part: Part) -> Option<&str> {
        if self.has(part) {
            return None;
        }
        let within = self.within_one_file.as_ref();
        let said = self.without.get(&part);
        said.or_else(|| within.filter(|_| part == Part::Changed))
            .map(String::as_str)
    }
}
