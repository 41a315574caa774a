//! Which clauses a run of a harness is about, and why some of them are not judged.

use std::collections::{BTreeMap, BTreeSet};

use dsh_reports::{ClauseRef, SkipReason, Skipped, Watch};
use dsh_scenarios::format::Case;
use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::{Clause, Clauses, Evidence, Judged, Level, Profile, Side};

/// Every clause, each with the reason that holds if no case judges it.
pub(super) fn clauses<'a>(
    subject: &str,
    claimed: &[Profile],
    all: impl IntoIterator<Item = &'a Case>,
    skipped: &[Skipped],
) -> Vec<ClauseRef> {
    let left_out: BTreeMap<&str, SkipReason> = skipped
        .iter()
        .flat_map(|skipped| {
            let ids = skipped.cases.iter();
            ids.map(|id| (id.as_str(), skipped.reason))
        })
        .collect();
    // Of several cases of a clause, the one that another shard runs says most.
    let mut by_clause: BTreeMap<&str, Option<SkipReason>> = BTreeMap::new();
    for case in all {
        let reason = left_out.get(case.id.as_str()).copied();
        for clause in &case.scenario.clauses {
            let known = by_clause.entry(clause).or_insert(reason);
            *known = (*known).max(reason);
        }
    }
    let of_servers = Clauses::embedded()
        .iter()
        .filter(|clause| !binds_a_harness(clause))
        .map(|clause| {
            let told = "it binds language servers; `dsh-conform check` judges those";
            reference(clause, told.to_owned())
        });
    of_a_harness()
        .map(|clause| {
            let cases = by_clause.get(clause.id.as_str());
            reference(clause, reason(clause, subject, claimed, cases))
        })
        .chain(of_servers)
        .collect()
}

/// The clauses that bind a harness.
pub(super) fn of_a_harness() -> impl Iterator<Item = &'static Clause> {
    Clauses::embedded()
        .iter()
        .filter(|clause| binds_a_harness(clause))
}

fn binds_a_harness(clause: &Clause) -> bool {
    clause.sides != [Side::Server] && clause.profiles != [Profile::Server]
}

/// A clause as a report has it, with the reason that holds if nothing judges it.
pub(super) fn reference(clause: &Clause, not_run: String) -> ClauseRef {
    let profiles = clause.profiles.iter();
    ClauseRef {
        id: clause.id.clone(),
        level: clause.level.into(),
        profiles: profiles
            .filter(|profile| **profile != Profile::Server)
            .map(ToString::to_string)
            .collect(),
        statement: clause.statement.clone(),
        not_run,
    }
}

/// What judges clauses besides the scenarios that name them: clauses that say the same, and the
/// monitors that look at every transcript, those of what is claimed.
///
/// `watched` are the clauses whose subject matter occurred in any case: a monitor that had nothing to
/// look at has judged nothing.
pub(super) fn watches(
    claimed: &[Profile],
    watched: &BTreeSet<&'static str>,
) -> BTreeMap<String, Watch> {
    let looking = |names: &[&str]| -> Vec<String> {
        MONITORS
            .iter()
            .filter(|monitor| {
                let looked = monitor
                    .clauses
                    .iter()
                    .any(|clause| names.contains(clause) && watched.contains(clause));
                looked
                    && (monitor.profile == Profile::LspBase || claimed.contains(&monitor.profile))
            })
            .map(|monitor| monitor.name.to_owned())
            .collect()
    };
    of_a_harness()
        .map(|clause| {
            let see = clause.see.iter().map(String::as_str);
            let names: Vec<&str> = std::iter::once(clause.id.as_str()).chain(see).collect();
            let watch = Watch {
                see: clause.see.clone(),
                monitors: looking(&names),
            };
            (clause.id.clone(), watch)
        })
        .collect()
}

/// Why no case judges a clause.
fn reason(
    clause: &Clause,
    subject: &str,
    claimed: &[Profile],
    cases: Option<&Option<SkipReason>>,
) -> String {
    if !clause
        .profiles
        .iter()
        .any(|profile| claimed.contains(profile))
    {
        let profiles: Vec<String> = clause.profiles.iter().map(ToString::to_string).collect();
        return format!(
            "{subject} does not claim the profile {}",
            profiles.join(" or ")
        );
    }
    if let Some(reason) = &clause.excluded {
        return reason.trim_end_matches('.').to_owned();
    }
    match cases {
        Some(Some(reason)) => reason.to_string(),
        Some(None) => "its cases came to no verdict".to_owned(),
        None if by_tests_only(clause) => {
            "judged by tests of this project, not by scenarios".to_owned()
        }
        None => match Evidence::embedded().of(&clause.id).first() {
            Some(witness) => format!("no scenario is for it; {witness} looks for it"),
            None => "no scenario is for it".to_owned(),
        },
    }
}

fn by_tests_only(clause: &Clause) -> bool {
    let tests = |judged: &Judged| matches!(judged, Judged::Unit | Judged::Source);
    clause.judged.iter().all(tests)
}

/// The level of the bindingest of these clauses; what is no clause, as the shape of messages, binds.
pub(super) fn level_of(ids: &[String]) -> dsh_reports::Level {
    let should = |id: &String| {
        let clause = Clauses::embedded().get(id);
        clause.is_some_and(|clause| clause.level == Level::Should)
    };
    if !ids.is_empty() && ids.iter().all(should) {
        dsh_reports::Level::Should
    } else {
        dsh_reports::Level::Must
    }
}
