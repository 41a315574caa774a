//! What follows from the cases of a run.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measured::Remedy;
use crate::model::{Case, Run, RunKind, SubjectKind};
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
    /// Every MUST holds with settings of the host, and does not without.
    QualifiedWithSettings {
        /// The settings, as they are written.
        settings: Vec<String>,
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
        /// The MUSTs whose prerequisites were not seen; none where nothing was started or applies.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        musts: Vec<String>,
    },
    /// Only some probes were asked for; none of them failed.
    Partial {
        /// SHOULDs that do not hold.
        notes: u64,
    },
    /// Every MUST of the profiles that a harness claims holds, as far as cases judge it.
    Conforms {
        /// SHOULDs that do not hold.
        notes: u64,
        /// Cases that fail and are known to.
        #[serde(default)]
        known: u64,
    },
    /// A harness breaks a MUST.
    DoesNotConform {
        /// Those that it breaks.
        musts: Vec<String>,
    },
    /// Only some cases were run; none of them failed.
    SelectionHolds {
        /// SHOULDs that do not hold.
        notes: u64,
        /// Cases that fail and are known to.
        #[serde(default)]
        known: u64,
    },
    /// Every mutant that was run is noticed.
    Noticed {
        /// How many.
        mutants: u64,
    },
    /// Mutants were not noticed, or did not come to be.
    Unnoticed {
        /// Those that no scenario noticed.
        survived: Vec<String>,
        /// Those that prove nothing, since they did not come to be.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        broken: Vec<String>,
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
    /// Draws the conclusion from the cases and the coverage of a run.
    pub(crate) fn of(run: &Run, selection: Selection) -> Self {
        if let Some(fault) = run
            .cases
            .iter()
            .find(|case| case.verdict == Verdict::HarnessError)
        {
            return Self::HarnessError {
                reason: format!("{}: {}", fault.id, fault.message),
            };
        }
        match (run.kind, run.subject.kind) {
            (RunKind::Power, _) => Self::of_power(run, selection),
            (_, SubjectKind::Harness) => Self::of_harness(run, selection),
            (_, SubjectKind::Server) => Self::of_server(run, selection),
        }
    }

    /// Draws the conclusion for a language server. The clauses that carry known answers are those
    /// of `QUA-4`.
    fn of_server(run: &Run, selection: Selection) -> Self {
        let failed = musts(run, Verdict::is_failure);
        if !failed.is_empty() {
            return Self::NotQualified { musts: failed };
        }
        if selection == Selection::Interrupted {
            return Self::Interrupted;
        }
        if let Some(untestable) = Self::untestable(run) {
            return untestable;
        }
        let notes = notes(run);
        if selection == Selection::Some {
            return Self::Partial { notes };
        }
        let mut answers = run
            .cases
            .iter()
            .filter(|case| case.clauses.iter().any(|id| id == "QUA-4"));
        if answers.any(|case| case.verdict.is_judged()) {
            Self::Qualified { notes }.with_settings(run.remedy.as_ref())
        } else {
            Self::ProtocolOnly { notes }
        }
    }

    /// A server that qualifies with settings that MUSTs hang on qualifies with those only.
    fn with_settings(self, remedy: Option<&Remedy>) -> Self {
        let Self::Qualified { notes } = self else {
            return self;
        };
        let settings: Vec<String> = remedy
            .iter()
            .flat_map(|remedy| remedy.needed())
            .map(|setting| setting.name.clone())
            .collect();
        if settings.is_empty() {
            Self::Qualified { notes }
        } else {
            Self::QualifiedWithSettings { settings, notes }
        }
    }

    /// Draws the conclusion for a harness. A case that fails decides also where the clause it
    /// breaks is none of those that the run was to cover.
    fn of_harness(run: &Run, selection: Selection) -> Self {
        let failed = about(run, Verdict::is_failure);
        if !failed.is_empty() {
            return Self::DoesNotConform { musts: failed };
        }
        if selection == Selection::Interrupted {
            return Self::Interrupted;
        }
        if let Some(untestable) = Self::untestable(run) {
            return untestable;
        }
        if let Some(vacuous) = Self::vacuous(run) {
            return vacuous;
        }
        let count = |wanted| {
            let of = |case: &&Case| case.verdict == wanted;
            run.cases.iter().filter(of).count() as u64
        };
        let (notes, known) = (notes(run), count(Verdict::Known));
        if selection == Selection::Some || run.suite.is_some() || !run.skipped.is_empty() {
            Self::SelectionHolds { notes, known }
        } else {
            Self::Conforms { notes, known }
        }
    }

    fn of_power(run: &Run, selection: Selection) -> Self {
        let ids = |wanted: fn(Verdict) -> bool| -> Vec<String> {
            let of = run.cases.iter().filter(|case| wanted(case.verdict));
            of.map(|case| case.id.clone()).collect()
        };
        let survived = ids(Verdict::is_failure);
        let broken = ids(|verdict| verdict == Verdict::Untestable);
        if !survived.is_empty() || !broken.is_empty() {
            return Self::Unnoticed { survived, broken };
        }
        if selection == Selection::Interrupted {
            return Self::Interrupted;
        }
        let mutants = ids(|verdict| verdict == Verdict::Pass).len() as u64;
        Self::Noticed { mutants }
    }

    /// Where a prerequisite was not seen, nothing can be said: of a server if a MUST hangs on it,
    /// of a harness in any case, since a scenario that shows nothing needs somebody to look.
    fn untestable(run: &Run) -> Option<Self> {
        let untestable = |verdict| verdict == Verdict::Untestable;
        let is_harness = run.subject.kind == SubjectKind::Harness;
        let musts = if is_harness {
            about(run, untestable)
        } else {
            musts(run, untestable)
        };
        let first = run
            .cases
            .iter()
            .find(|case| untestable(case.verdict) && (is_harness || case.level == Level::Must));
        (!musts.is_empty()).then(|| Self::Untestable {
            reason: first.map(|case| case.message.clone()).unwrap_or_default(),
            musts,
        })
    }

    /// Where no case applies, nothing holds either: a subject that refuses everything breaks no
    /// rule, and must not be told that it keeps them.
    fn vacuous(run: &Run) -> Option<Self> {
        let first = run.cases.first()?;
        let judged = run.cases.iter().any(|case| case.verdict.is_judged());
        (!judged).then(|| Self::Untestable {
            reason: match run.cases.len() {
                1 => format!("the case does not apply: {}", first.message),
                count => format!("none of {count} cases applies: {}", first.message),
            },
            musts: Vec::new(),
        })
    }

    /// Whether the subject conforms, as far as was asked.
    pub const fn conforms(&self) -> bool {
        matches!(
            self,
            Self::Qualified { .. }
                | Self::QualifiedWithSettings { .. }
                | Self::ProtocolOnly { .. }
                | Self::Partial { .. }
                | Self::Conforms { .. }
                | Self::SelectionHolds { .. }
                | Self::Noticed { .. }
        )
    }
}

impl Run {
    /// Says how to mount the server so that it works. Where MUSTs hang on settings, the conclusion
    /// names them.
    pub fn advise(&mut self, remedy: Remedy) {
        let conclusion = std::mem::replace(&mut self.conclusion, Conclusion::Interrupted);
        self.conclusion = conclusion.with_settings(Some(&remedy));
        self.remedy = Some(remedy);
    }
}

/// The MUSTs of the coverage with such a verdict.
fn musts(run: &Run, wanted: fn(Verdict) -> bool) -> Vec<String> {
    run.coverage
        .iter()
        .filter(|clause| clause.level == Level::Must && clause.verdict.is_some_and(wanted))
        .map(|clause| clause.clause.clone())
        .collect()
}

/// The clauses that cases with such a verdict are about, in the order of the coverage; what is not
/// in there comes last.
fn about(run: &Run, wanted: fn(Verdict) -> bool) -> Vec<String> {
    let cases = run.cases.iter().filter(|case| wanted(case.verdict));
    let named: BTreeSet<&str> = cases.flat_map(Case::about).map(String::as_str).collect();
    let place = |id: &str| {
        let mut coverage = run.coverage.iter();
        coverage
            .position(|clause| clause.clause == id)
            .unwrap_or(usize::MAX)
    };
    let mut sorted: Vec<(usize, &str)> = named.into_iter().map(|id| (place(id), id)).collect();
    sorted.sort_unstable();
    sorted.into_iter().map(|(_, id)| id.to_owned()).collect()
}

/// SHOULDs that do not hold, or could not be seen to.
fn notes(run: &Run) -> u64 {
    run.coverage
        .iter()
        .filter(|clause| matches!(clause.verdict, Some(Verdict::Note | Verdict::Untestable)))
        .count() as u64
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |f: &mut fmt::Formatter<'_>, count: u64, one: &str| match count {
            0 => Ok(()),
            1 => write!(f, ", 1 {one}"),
            count => write!(f, ", {count} {one}s"),
        };
        let with_notes = |f: &mut fmt::Formatter<'_>, word: &str, notes: u64| {
            f.write_str(word)?;
            counted(f, notes, "note")
        };
        match self {
            Self::Qualified { notes } => with_notes(f, "QUALIFIED", *notes),
            Self::QualifiedWithSettings { settings, notes } => {
                with_notes(f, "QUALIFIED WITH SETTINGS", *notes)?;
                write!(f, ": {}", settings.join(", "))
            }
            Self::NotQualified { musts } => write!(f, "NOT QUALIFIED: {}", musts.join(", ")),
            Self::ProtocolOnly { notes } => with_notes(f, "PROTOCOL ONLY", *notes),
            Self::Untestable { reason, musts } if musts.is_empty() => {
                write!(f, "UNTESTABLE: {reason}")
            }
            Self::Untestable { reason, musts } => {
                write!(f, "UNTESTABLE: {} ({reason})", musts.join(", "))
            }
            Self::Partial { notes } => with_notes(f, "SELECTED PROBES HOLD", *notes),
            Self::Conforms { notes, known } => {
                with_notes(f, "CONFORMS", *notes)?;
                counted(f, *known, "known failure")
            }
            Self::DoesNotConform { musts } => write!(f, "DOES NOT CONFORM: {}", musts.join(", ")),
            Self::SelectionHolds { notes, known } => {
                with_notes(f, "SELECTED CASES HOLD", *notes)?;
                counted(f, *known, "known failure")
            }
            Self::Noticed { mutants: 1 } => f.write_str("NO SURVIVOR, 1 mutant killed"),
            Self::Noticed { mutants } => write!(f, "NO SURVIVOR, {mutants} mutants killed"),
            Self::Unnoticed { survived, broken } => {
                if !survived.is_empty() {
                    write!(f, "SURVIVED: {}", survived.join(", "))?;
                }
                if !broken.is_empty() {
                    let gap = if survived.is_empty() { "" } else { "; " };
                    write!(f, "{gap}BROKEN: {}", broken.join(", "))?;
                }
                Ok(())
            }
            Self::Interrupted => f.write_str("INTERRUPTED"),
            Self::HarnessError { reason } => write!(f, "HARNESS ERROR: {reason}"),
        }
    }
}
