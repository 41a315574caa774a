//! The probes: which clause each judges, and what has to be done for it.

use dsh_reports::{Case, Level, Verdict};
use dsh_scenarios::Clauses;

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The clause it judges, which is also its name.
    pub clause: &'static str,
    /// The part of the report it is shown in.
    pub group: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// How far a server has to be driven for it.
    pub(crate) reach: Reach,
}

/// How far a server has to be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Until it was initialized.
    Handshake,
    /// Until the questions about the sample as it is are decided.
    Answers,
    /// Until the questions about changed texts are decided too.
    ChangedText,
}

/// Every probe, in the order in which it is shown.
pub const PROBES: [Probe; 11] = [
    Probe {
        clause: "QUA-1",
        group: "start",
        summary: "starts the server in the sample workspace and waits for its answer to initialize",
        reach: Reach::Handshake,
    },
    Probe {
        clause: "QUA-2",
        group: "start",
        summary: "reads the position encoding out of the initialize result",
        reach: Reach::Handshake,
    },
    Probe {
        clause: "QUA-3",
        group: "start",
        summary: "reads the document synchronization out of the initialize result",
        reach: Reach::Handshake,
    },
    Probe {
        clause: "QUA-11",
        group: "start",
        summary: "counts which of the four operations are advertised",
        reach: Reach::Handshake,
    },
    Probe {
        clause: "QUA-4",
        group: "answers",
        summary: "asks each advertised operation the sample's question until its known answer is stable",
        reach: Reach::Answers,
    },
    Probe {
        clause: "QUA-5",
        group: "answers",
        summary: "changes a file on disk, opens it again with version 1 and expects the new answer",
        reach: Reach::ChangedText,
    },
    Probe {
        clause: "QUA-7",
        group: "answers",
        summary: "judges the shape of every answer on the raw JSON",
        reach: Reach::Answers,
    },
    Probe {
        clause: "QUA-6",
        group: "behaviour",
        summary: "reads the whole of stdout with a strict reader",
        reach: Reach::Answers,
    },
    Probe {
        clause: "QUA-17",
        group: "behaviour",
        summary: "looks whether answers are right although configuration is null and registrations are ignored",
        reach: Reach::Answers,
    },
    Probe {
        clause: "QUA-8",
        group: "end",
        summary: "asks for shutdown and exit, waits, and looks for processes left behind",
        reach: Reach::Answers,
    },
    Probe {
        clause: "QUA-9",
        group: "end",
        summary: "reads the exit code after shutdown and exit",
        reach: Reach::Answers,
    },
];

/// The probe of a clause.
pub fn probe_of(clause: &str) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| probe.clause == clause)
}

impl Probe {
    /// The level of its clause, which lives with the clause.
    pub fn level(&self) -> Level {
        // A test holds that every probe has a clause.
        let clause = Clauses::embedded().get(self.clause);
        clause.map_or(Level::Must, |clause| clause.level.into())
    }

    pub(crate) fn case(&self, verdict: Verdict, message: impl Into<String>) -> Case {
        Case::new(self.clause, self.level(), self.group, verdict, message)
    }

    /// A MUST that does not hold fails, a SHOULD gives a note.
    pub(crate) fn missed(&self, message: impl Into<String>, expected: &str) -> Case {
        let verdict = match self.level() {
            Level::Must => Verdict::Fail,
            Level::Should => Verdict::Note,
        };
        let mut case = self.case(verdict, message);
        case.expected = Some(expected.to_owned());
        case
    }
}
