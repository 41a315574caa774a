//! What follows from the cases of a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Case, ClauseCoverage};
use crate::verdict::{Level, Verdict};

/// Which of the probes were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of them, and they were carried out.
    All,
    /// Some, by name: what they find is no qualification.
    Some,
    /// The run was interrupted.
    Interrupted,
}

/// The one-line result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Conclusion {
    /// Every MUST holds, the known answers included.
    Qualified {
        /// SHOULDs that do not hold.
        notes: u64,
    },
    /// A MUST does not hold.
    NotQualified {
        /// Those that do not.
        musts: Vec<String>,
    },
    /// Every MUST that could be judged holds, but no answer was judged, since none is known.
    ProtocolOnly {
        /// SHOULDs that do not hold.
        notes: u64,
    },
    /// Nothing can be said.
    Untestable {
        /// Why.
        reason: String,
        /// The MUSTs whose prerequisites were not seen; none if the subject was never started.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        musts: Vec<String>,
    },
    /// Only some probes were asked for; none of them failed.
    Partial {
        /// SHOULDs that do not hold.
        notes: u64,
    },
    /// The run was interrupted before anything failed.
    Interrupted,
    /// The instrument went wrong.
    HarnessError {
        /// How.
        reason: String,
    },
}

impl Conclusion {
    /// Draws the conclusion for a language server. The clauses that carry known answers are those
    /// of `QUA-4`.
    pub(crate) fn of(cases: &[Case], coverage: &[ClauseCoverage], selection: Selection) -> Self {
        if let Some(fault) = cases
            .iter()
            .find(|case| case.verdict == Verdict::HarnessError)
        {
            return Self::HarnessError {
                reason: format!("{}: {}", fault.id, fault.message),
            };
        }
        let musts = |wanted: fn(Verdict) -> bool| -> Vec<String> {
            coverage
                .iter()
                .filter(|clause| clause.level == Level::Must && clause.verdict.is_some_and(wanted))
                .map(|clause| clause.clause.clone())
                .collect()
        };
        let failed = musts(Verdict::is_failure);
        if !failed.is_empty() {
            return Self::NotQualified { musts: failed };
        }
        if selection == Selection::Interrupted {
            return Self::Interrupted;
        }
        let untestable = musts(|verdict| verdict == Verdict::Untestable);
        if !untestable.is_empty() {
            let reason = cases
                .iter()
                .find(|case| case.verdict == Verdict::Untestable && case.level == Level::Must)
                .map(|case| case.message.clone())
                .unwrap_or_default();
            return Self::Untestable {
                reason,
                musts: untestable,
            };
        }
        let notes = coverage
            .iter()
            .filter(|clause| matches!(clause.verdict, Some(Verdict::Note | Verdict::Untestable)))
            .count() as u64;
        if selection == Selection::Some {
            return Self::Partial { notes };
        }
        let answers = cases
            .iter()
            .filter(|case| case.clauses.iter().any(|id| id == "QUA-4"));
        if answers.into_iter().any(|case| case.verdict.is_judged()) {
            Self::Qualified { notes }
        } else {
            Self::ProtocolOnly { notes }
        }
    }

    /// Whether the subject conforms, as far as was asked.
    pub const fn conforms(&self) -> bool {
        matches!(
            self,
            Self::Qualified { .. } | Self::ProtocolOnly { .. } | Self::Partial { .. }
        )
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_notes = |f: &mut fmt::Formatter<'_>, word: &str, notes: u64| match notes {
            0 => f.write_str(word),
            1 => write!(f, "{word}, 1 note"),
            notes => write!(f, "{word}, {notes} notes"),
        };
        match self {
            Self::Qualified { notes } => with_notes(f, "QUALIFIED", *notes),
            Self::NotQualified { musts } => write!(f, "NOT QUALIFIED: {}", musts.join(", ")),
            Self::ProtocolOnly { notes } => with_notes(f, "PROTOCOL ONLY", *notes),
            Self::Untestable { reason, musts } if musts.is_empty() => {
                write!(f, "UNTESTABLE: {reason}")
            }
            Self::Untestable { reason, musts } => {
                write!(f, "UNTESTABLE: {} ({reason})", musts.join(", "))
            }
            Self::Partial { notes } => with_notes(f, "SELECTED PROBES HOLD", *notes),
            Self::Interrupted => f.write_str("INTERRUPTED"),
            Self::HarnessError { reason } => write!(f, "HARNESS ERROR: {reason}"),
        }
    }
}
