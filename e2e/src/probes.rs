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
    /// What the server has to be driven through for it.
    pub(crate) phase: Phase,
}

/// A stretch of a check. A server is started twice: what is judged of an orderly life is seen in
/// the first start, and what would disturb that is done in the second, in a workspace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Until it was initialized.
    Handshake,
    /// Until the questions about the sample as it is are decided.
    Answers,
    /// Questions behind characters outside the basic plane.
    Columns,
    /// Questions in files with odd paths.
    Paths,
    /// Questions about changed texts.
    ChangedText,
    /// Many rounds of open, question and close; the first stretch of the second start.
    Cycles,
    /// A question is given up while the server works on it.
    Cancellation,
    /// Another file changes on disk.
    ChangedOnDisk,
    /// The server is killed.
    Kill,
}

impl Phase {
    /// Whether it belongs to the second start.
    pub(crate) const fn is_second(self) -> bool {
        matches!(
            self,
            Self::Cycles | Self::Cancellation | Self::ChangedOnDisk | Self::Kill
        )
    }
}

/// The phases that the chosen probes need.
#[derive(Clone, Debug)]
pub(crate) struct Phases(Vec<Phase>);

impl Phases {
    /// Those of `chosen`, or all if nothing was chosen.
    pub(crate) fn of(chosen: &[&'static Probe]) -> Self {
        if chosen.is_empty() {
            Self(PROBES.iter().map(|probe| probe.phase).collect())
        } else {
            Self(chosen.iter().map(|probe| probe.phase).collect())
        }
    }

    /// Whether this one has to be gone through.
    pub(crate) fn has(&self, phase: Phase) -> bool {
        self.0.contains(&phase)
    }

    /// Whether the server has to be started in order.
    pub(crate) fn first_start(&self) -> bool {
        self.0.iter().any(|phase| !phase.is_second())
    }

    /// Whether more of it is needed than its handshake.
    pub(crate) fn answers(&self) -> bool {
        let more = |phase: &&Phase| !phase.is_second() && **phase != Phase::Handshake;
        self.0.iter().any(|phase| more(&phase))
    }

    /// Whether it has to be started a second time.
    pub(crate) fn second_start(&self) -> bool {
        self.0.iter().any(|phase| phase.is_second())
    }
}

/// Every probe, in the order in which it is shown.
pub const PROBES: [Probe; 19] = [
    Probe {
        clause: "QUA-1",
        group: "start",
        summary: "starts the server in the sample workspace and waits for its answer to initialize",
        phase: Phase::Handshake,
    },
    Probe {
        clause: "QUA-2",
        group: "start",
        summary: "reads the position encoding out of the initialize result",
        phase: Phase::Handshake,
    },
    Probe {
        clause: "QUA-3",
        group: "start",
        summary: "reads the document synchronization out of the initialize result",
        phase: Phase::Handshake,
    },
    Probe {
        clause: "QUA-11",
        group: "start",
        summary: "counts which of the four operations are advertised",
        phase: Phase::Handshake,
    },
    Probe {
        clause: "QUA-4",
        group: "answers",
        summary: "asks each advertised operation the sample's question until its known answer is stable",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-5",
        group: "answers",
        summary: "changes a file on disk, opens it again with version 1 and expects the new answer",
        phase: Phase::ChangedText,
    },
    Probe {
        clause: "QUA-7",
        group: "answers",
        summary: "judges the shape of every answer on the raw JSON",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-12",
        group: "answers",
        summary: "asks behind characters outside the basic plane on the same line",
        phase: Phase::Columns,
    },
    Probe {
        clause: "QUA-13",
        group: "answers",
        summary: "asks in and about files whose path has a space and letters outside ASCII",
        phase: Phase::Paths,
    },
    Probe {
        clause: "QUA-14",
        group: "answers",
        summary: "looks whether the first answer to references was complete, else how long that took",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-6",
        group: "behaviour",
        summary: "reads the whole of stdout with a strict reader",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-17",
        group: "behaviour",
        summary: "looks whether answers are right although configuration is null and registrations are ignored",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-10",
        group: "behaviour",
        summary: "gives questions up while the server works on them and waits for its answer",
        phase: Phase::Cancellation,
    },
    Probe {
        clause: "QUA-15",
        group: "behaviour",
        summary: "opens, asks and closes over and over, and looks at errors, latency and memory",
        phase: Phase::Cycles,
    },
    Probe {
        clause: "QUA-18",
        group: "behaviour",
        summary: "changes another file on disk between two questions",
        phase: Phase::ChangedOnDisk,
    },
    Probe {
        clause: "QUA-19",
        group: "behaviour",
        summary: "compares the workspace before and after",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-8",
        group: "end",
        summary: "asks for shutdown and exit, waits, and looks for processes left behind",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-9",
        group: "end",
        summary: "reads the exit code after shutdown and exit",
        phase: Phase::Answers,
    },
    Probe {
        clause: "QUA-16",
        group: "end",
        summary: "kills the server in the middle of a question and asks its replacement",
        phase: Phase::Kill,
    },
];

/// What is judged by the time it takes, or by memory that a collector frees when it likes: how soon
/// every reference is there, how latency and memory grow, how soon a change on disk is seen.
const TIMED: [&str; 3] = ["QUA-14", "QUA-15", "QUA-18"];

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
        let mut case = Case::new(self.clause, self.level(), self.group, verdict, message);
        case.timed = TIMED.contains(&self.clause);
        case
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
