//! The outcomes of a case, and the levels of a clause.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one case ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// What the clause demands was seen.
    Pass,
    /// A SHOULD that was not met, or something worth knowing.
    Note,
    /// The clause does not hold.
    Fail,
    /// Something that has to be seen before the clause can be judged was not seen. Red: it is
    /// never counted as held.
    Untestable,
    /// The subject does not claim what the clause is about; the message names it.
    NotApplicable,
    /// The budget ended before the clause could be seen to hold.
    Timeout,
    /// The subject's process died.
    Crash,
    /// A failure that the subject's list of known failures names.
    Known,
    /// The instrument itself went wrong: no statement about the subject.
    HarnessError,
}

impl Verdict {
    /// Every verdict, in the order in which they are counted.
    pub const ALL: [Self; 9] = [
        Self::Pass,
        Self::Note,
        Self::Fail,
        Self::Untestable,
        Self::NotApplicable,
        Self::Timeout,
        Self::Crash,
        Self::Known,
        Self::HarnessError,
    ];

    /// The name in reports, `not-applicable` for instance.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Note => "note",
            Self::Fail => "fail",
            Self::Untestable => "untestable",
            Self::NotApplicable => "not-applicable",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Known => "known",
            Self::HarnessError => "harness-error",
        }
    }

    /// Whether it means that the clause was seen not to hold.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Fail | Self::Timeout | Self::Crash)
    }

    /// Whether it needs somebody's attention: failures, missing prerequisites, our own faults.
    pub const fn is_red(self) -> bool {
        self.is_failure() || matches!(self, Self::Untestable | Self::HarnessError)
    }

    /// Whether it says anything about the clause, so that it is counted.
    pub const fn is_judged(self) -> bool {
        !matches!(self, Self::NotApplicable)
    }

    /// How much it weighs when several cases judge one clause: the heaviest decides.
    pub(crate) const fn weight(self) -> u8 {
        match self {
            Self::NotApplicable => 0,
            Self::Pass => 1,
            Self::Known => 2,
            Self::Note => 3,
            Self::Untestable => 4,
            Self::Timeout => 5,
            Self::Crash => 6,
            Self::Fail => 7,
            Self::HarnessError => 8,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How binding a clause is (RFC 2119).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// It decides.
    Must,
    /// It gives a note.
    Should,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        })
    }
}
