//! Exit statuses.

use std::fmt::Write as _;

use dsh_reports::{Conclusion, Report, Run};

use crate::lines::hanging;

/// What the process says to whoever started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was checked conforms, or what was asked for was done.
    Fine,
    /// What was checked does not conform, or the answer was an error.
    DoesNotConform,
    /// Wrong usage, or input that cannot be read.
    Usage,
    /// What was asked for could not be carried out: a server missing, an installation failed.
    NotCarriedOut,
    /// A list of known failures names something that does not fail.
    Stale,
    /// Nothing was selected.
    NothingSelected,
    /// Our own fault.
    OurFault,
    /// Ended by Ctrl-C.
    Interrupted,
    /// Ended by SIGTERM.
    Terminated,
    /// Ended since its terminal went away.
    HungUp,
    /// The status of the fake server, which is no statement of this program.
    Own(u8),
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::DoesNotConform => 1,
            Self::Usage => 2,
            Self::NotCarriedOut => 3,
            Self::Stale => 4,
            Self::NothingSelected => 5,
            Self::OurFault => 6,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::Own(code) => code,
        }
    }

    /// What a report amounts to: our own faults before everything, then the lowest that is not
    /// zero.
    pub(crate) fn of(report: &Report) -> Self {
        let all = || report.runs.iter().map(of_run);
        if all().any(|exit| exit == Self::OurFault) {
            return Self::OurFault;
        }
        all()
            .filter(|exit| *exit != Self::Fine)
            .min_by_key(|exit| exit.code())
            .unwrap_or(Self::Fine)
    }
}

/// What a run amounts to; a list that is stale counts where nothing else does.
fn of_run(run: &Run) -> Exit {
    if let Some(exit) = of_baseline(run) {
        return exit;
    }
    match &run.conclusion {
        conclusion if conclusion.conforms() && run.stale.is_empty() => Exit::Fine,
        conclusion if conclusion.conforms() => Exit::Stale,
        Conclusion::Untestable { musts, .. } if musts.is_empty() => Exit::NotCarriedOut,
        Conclusion::NotQualified { .. }
        | Conclusion::DoesNotConform { .. }
        | Conclusion::Unnoticed { .. }
        | Conclusion::Untestable { .. } => Exit::DoesNotConform,
        Conclusion::Interrupted => Exit::Interrupted,
        _ => Exit::OurFault,
    }
}

/// What a run amounts to that was compared with a baseline: what was accepted counts for nothing.
/// None where nothing could be compared.
fn of_baseline(run: &Run) -> Option<Exit> {
    let comparison = run.baseline.as_ref().filter(|known| known.with.is_some())?;
    let judged = match &run.conclusion {
        Conclusion::NotQualified { .. } => true,
        Conclusion::Untestable { musts, .. } => !musts.is_empty(),
        conclusion => conclusion.conforms(),
    };
    let exit = match (comparison.worse.is_empty(), run.stale.is_empty()) {
        (false, _) => Exit::DoesNotConform,
        (true, true) => Exit::Fine,
        (true, false) => Exit::Stale,
    };
    judged.then_some(exit)
}

/// Every status and its meaning, as help and README have them.
const STATUSES: [(&str, &str); 8] = [
    ("0", "conforms, or what was asked for was done"),
    (
        "1",
        "does not conform, is worse than its baseline, or the answer is an error",
    ),
    ("2", "wrong usage, or input that cannot be read"),
    (
        "3",
        "could not be carried out: a server is missing, an installation failed, no case applies to \
         the subject",
    ),
    (
        "4",
        "a list of known failures or a baseline is stale: what it names does not fail any more",
    ),
    ("5", "nothing was selected"),
    ("6", "a fault of dsh-conform itself"),
    (
        "130",
        "interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP, the end of the terminal); servers \
         are ended and a partial report is written",
    ),
];

/// What several statuses come to.
const SEVERAL: &str = "With several it is 6 if there is one, else the lowest of 1, 3 and 4.";

/// The statuses as help shows them.
pub(crate) fn statuses() -> String {
    let mut text = "Exit status:\n".to_owned();
    for (status, meaning) in STATUSES {
        let _ = write!(text, "  {status:<5}");
        hanging(&mut text, 7, meaning);
    }
    text + SEVERAL
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_reports::{Change, Comparison, FORMAT, Platform, Stale, Subject, SubjectKind, Tool};

    fn run(conclusion: Conclusion) -> Run {
        let mut run = Run::new(Subject::named(SubjectKind::Server, "x"));
        run.conclusion = conclusion;
        run
    }

    #[track_caller]
    fn status(conclusions: Vec<Conclusion>, exit: Exit) {
        let report = Report {
            format: FORMAT.to_owned(),
            tool: Tool {
                name: String::new(),
                version: String::new(),
            },
            platform: Platform {
                os: String::new(),
                arch: String::new(),
            },
            date: None,
            interrupted: false,
            division: None,
            runs: conclusions.into_iter().map(run).collect(),
        };
        assert_eq!(Exit::of(&report), exit);
    }

    #[test]
    fn the_lowest_status_that_is_not_zero_counts_and_our_fault_before_all() {
        let fine = Conclusion::Qualified { notes: 1 };
        let bad = Conclusion::NotQualified {
            musts: vec!["QUA-6".to_owned()],
        };
        let absent = Conclusion::Untestable {
            reason: "absent".to_owned(),
            musts: vec![],
        };
        let unseen = Conclusion::Untestable {
            reason: String::new(),
            musts: vec!["QUA-8".to_owned()],
        };
        let fault = Conclusion::HarnessError {
            reason: "x".to_owned(),
        };
        status(vec![fine.clone()], Exit::Fine);
        status(vec![fine.clone(), absent.clone()], Exit::NotCarriedOut);
        status(vec![absent.clone(), bad], Exit::DoesNotConform);
        status(vec![absent, unseen], Exit::DoesNotConform);
        status(vec![fine, fault], Exit::OurFault);
        status(vec![Conclusion::ProtocolOnly { notes: 0 }], Exit::Fine);
    }

    #[test]
    fn what_a_baseline_accepts_counts_for_nothing_and_a_fault_of_ours_still_does() {
        let compared = |conclusion, worse: &[&str], stale: &[&str], with: bool| {
            let mut run = run(conclusion);
            run.baseline = Some(Comparison {
                file: "b.json".to_owned(),
                with: with.then(|| "x 1 on linux-x86_64".to_owned()),
                worse: worse
                    .iter()
                    .map(|case| Change {
                        case: (*case).to_owned(),
                        was: None,
                        is: None,
                    })
                    .collect(),
                accepted: 0,
            });
            run.stale = stale
                .iter()
                .map(|case| Stale {
                    case: (*case).to_owned(),
                    reason: String::new(),
                    source: None,
                })
                .collect();
            of_run(&run)
        };
        let bad = || Conclusion::NotQualified {
            musts: vec!["QUA-8".to_owned()],
        };
        let good = || Conclusion::Qualified { notes: 0 };
        assert_eq!(compared(bad(), &[], &[], true), Exit::Fine);
        assert_eq!(compared(bad(), &[], &[], false), Exit::DoesNotConform);
        assert_eq!(compared(bad(), &[], &["QUA-9"], true), Exit::Stale);
        assert_eq!(
            compared(good(), &["QUA-9"], &["QUA-8"], true),
            Exit::DoesNotConform
        );
        let fault = Conclusion::HarnessError {
            reason: "x".to_owned(),
        };
        assert_eq!(compared(fault, &[], &[], true), Exit::OurFault);
        let absent = Conclusion::Untestable {
            reason: "absent".to_owned(),
            musts: vec![],
        };
        assert_eq!(compared(absent, &[], &[], true), Exit::NotCarriedOut);
    }

    #[test]
    fn the_readme_has_the_same_statuses_as_help() {
        let readme = include_str!("../README.md");
        let (_, section) = readme.split_once("## Exit status\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows: Vec<(&str, &str)> = section
            .lines()
            .filter_map(|line| {
                let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
                row.split_once(" | ")
            })
            .skip(1)
            .collect();
        assert_eq!(rows, STATUSES);
        assert!(section.contains(SEVERAL), "{section}");
        let help = statuses();
        for (status, meaning) in STATUSES {
            let line = format!("  {status:<5}{}", &meaning[..20]);
            assert!(help.contains(&line), "{line}\n{help}");
        }
        assert!(help.lines().all(|line| line.len() <= 80), "{help}");
    }

    #[test]
    fn a_harness_and_mutants_have_the_same_statuses() {
        let holds = Conclusion::Conforms { notes: 0, known: 2 };
        let breaks = Conclusion::DoesNotConform {
            musts: vec!["CAN-4".to_owned()],
        };
        let survivor = Conclusion::Unnoticed {
            survived: vec!["m".to_owned()],
            broken: vec![],
        };
        status(vec![holds.clone()], Exit::Fine);
        status(vec![breaks.clone()], Exit::DoesNotConform);
        status(vec![survivor], Exit::DoesNotConform);
        status(vec![Conclusion::Noticed { mutants: 80 }], Exit::Fine);
        status(vec![Conclusion::Interrupted], Exit::Interrupted);
        let stale = |conclusion| {
            let mut run = run(conclusion);
            run.stale = vec![Stale {
                case: "a/b".to_owned(),
                reason: "r".to_owned(),
                source: None,
            }];
            of_run(&run)
        };
        assert_eq!(stale(holds), Exit::Stale);
        assert_eq!(stale(breaks), Exit::DoesNotConform);
    }
}
