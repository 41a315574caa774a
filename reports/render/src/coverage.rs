//! Counting the cases of a run, and saying which clauses they judge.

use std::collections::{BTreeMap, BTreeSet};

use crate::conclusion::{Conclusion, Selection};
use crate::model::{Case, ClauseCoverage, ClauseRef, Count, Run, Totals, Watch};
use crate::verdict::{Level, Verdict};

impl Run {
    /// Counts the cases, says which of `clauses` they cover, and draws the conclusion.
    pub fn conclude(&mut self, clauses: &[ClauseRef], selection: Selection) {
        self.conclude_watched(clauses, &BTreeMap::new(), selection);
    }

    /// The same where some of the clauses, by id, are judged by more than the cases that name them.
    pub fn conclude_watched(
        &mut self,
        clauses: &[ClauseRef],
        watches: &BTreeMap<String, Watch>,
        selection: Selection,
    ) {
        self.coverage = coverage(&self.cases, clauses, watches);
        self.totals = totals(&self.cases, &self.coverage);
        self.conclusion = Conclusion::of(self, selection);
    }
}

/// What a case says about a clause, if anything. A case that is red for one of its clauses says
/// nothing about the others: they were not seen to hold, and not seen broken either.
fn says(case: &Case, clause: &str) -> Option<Verdict> {
    case.about()
        .iter()
        .any(|id| id == clause)
        .then_some(case.verdict)
}

fn coverage(
    cases: &[Case],
    clauses: &[ClauseRef],
    watches: &BTreeMap<String, Watch>,
) -> Vec<ClauseCoverage> {
    let mut by_clause: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        let mut seen: Vec<&str> = Vec::new();
        for id in case.clauses.iter().chain(&case.broken) {
            if !seen.contains(&id.as_str()) {
                seen.push(id);
                by_clause.entry(id).or_default().push(case);
            }
        }
    }
    let judged = cases
        .iter()
        .any(|case| case.verdict.is_judged() && case.verdict != Verdict::HarnessError);
    let unwatched = Watch::default();
    let ids_of_clauses: BTreeSet<&str> = clauses.iter().map(|clause| clause.id.as_str()).collect();
    let is_clause = |name: &str| ids_of_clauses.contains(name);
    clauses
        .iter()
        .map(|clause| {
            let watch = watches.get(&clause.id).unwrap_or(&unwatched);
            let names = || std::iter::once(&clause.id).chain(&watch.see);
            let mut touching: Vec<&Case> = Vec::new();
            for name in names() {
                let more = by_clause.get(name.as_str()).into_iter().flatten();
                touching.extend(more);
            }
            let told = |name: &String| {
                let all = touching.iter().filter_map(|case| says(case, name));
                all.max_by_key(|verdict| verdict.weight())
            };
            // Another clause that it refers to says that it holds, and not that it does not: the
            // other may be broken in a part that is none of this one. A rule that is no clause of
            // its own says both.
            let referred: Vec<(&String, Verdict)> = watch
                .see
                .iter()
                .filter_map(|name| Some((name, told(name)?)))
                .collect();
            let broken = referred
                .iter()
                .find(|(name, told)| is_clause(name) && !is_quiet(*told));
            let told_by = |(name, told): &(&String, Verdict)| {
                (!is_clause(name) || is_quiet(*told)).then_some(*told)
            };
            let verdict = told(&clause.id)
                .into_iter()
                .chain(referred.iter().filter_map(told_by))
                .max_by_key(|verdict| verdict.weight());
            let unbroken = (judged && !watch.monitors.is_empty()).then_some(Verdict::Pass);
            let verdict = verdict.or(unbroken);
            let verdict = verdict.filter(|verdict| broken.is_none() || *verdict != Verdict::Pass);
            let not_run = match (verdict, touching.first()) {
                (Some(_), _) => None,
                (None, _) if let Some((name, _)) = broken => {
                    Some(format!("{name} does not hold, which it refers to"))
                }
                (None, None) => Some(clause.not_run.clone()),
                (None, Some(case)) if case.verdict == Verdict::Pass => {
                    Some(format!("{} is noticed for another clause", case.id))
                }
                (None, Some(case)) => Some(format!("{} is red for another reason", case.id)),
            };
            ClauseCoverage {
                clause: clause.id.clone(),
                level: clause.level,
                profiles: clause.profiles.clone(),
                statement: clause.statement.clone(),
                verdict,
                cases: ids(&touching),
                see: watch.see.clone(),
                monitors: watch.monitors.clone(),
                not_run,
            }
        })
        .collect()
}

/// Whether a verdict tells of nothing that is broken or could not be seen.
fn is_quiet(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Pass | Verdict::NotApplicable)
}

/// The ids of cases, each once.
fn ids(cases: &[&Case]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for case in cases {
        if seen.insert(&case.id) {
            ids.push(case.id.clone());
        }
    }
    ids
}

fn totals(cases: &[Case], coverage: &[ClauseCoverage]) -> Totals {
    let mut totals = Totals::default();
    for case in cases {
        *totals.cases.entry(case.verdict).or_default() += 1;
    }
    for clause in coverage {
        // A fault of the instrument says nothing about the clause.
        let judged = clause
            .verdict
            .filter(|verdict| verdict.is_judged() && *verdict != Verdict::HarnessError);
        let count = |count: &mut Count| {
            count.judged += u64::from(judged.is_some());
            count.held += u64::from(judged == Some(Verdict::Pass));
        };
        match clause.level {
            Level::Must => count(&mut totals.must),
            Level::Should => count(&mut totals.should),
        }
        for profile in &clause.profiles {
            let of_profile = totals.profiles.entry(profile.clone()).or_default();
            of_profile.not_judged += u64::from(judged.is_none());
            match clause.level {
                Level::Must => count(&mut of_profile.must),
                Level::Should => count(&mut of_profile.should),
            }
        }
    }
    totals
}
