//! `run --mutants`: whether the suite notices a harness that breaks clauses.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dsh_reports::{Run, RunKind, SkipReason, Skipped, Watch};
use dsh_scenarios::format::Case;
use dsh_scenarios::mutate::{self, Mutant, Mutants};
use dsh_scenarios::subject::{Description, SubjectSource};
use dsh_scenarios::suite::Shard;
use dsh_scenarios::{Clause, Judged, Level};

use super::clauses::{of_a_harness, reference};
use super::selection::{Refused, nearest};
use super::{Ended, Plan, default_jobs};
use crate::signals::Interruption;

/// Mutants to run, each with its file, and those that are not.
#[derive(Debug)]
pub(super) struct Mutated {
    mutants: Vec<(String, Mutant)>,
    skipped: Vec<Skipped>,
}

impl Mutated {
    /// The mutants whose names, or whose files, begin with one of the filters.
    pub(super) fn read(filters: &[String], shard: Option<Shard>) -> Result<Self, Refused> {
        for filter in filters {
            if mutate::select(std::slice::from_ref(filter)).is_empty() {
                let names = Mutants::embedded().iter().map(|(_, mutant)| &*mutant.name);
                let nearest = nearest(filter, names);
                return Err(Refused::nothing(format!(
                    "no mutant begins with {filter:?}; did you mean {nearest}?"
                )));
            }
        }
        let selected = mutate::select(filters);
        let is_mine = |mutant: &Mutant| shard.is_none_or(|shard| shard.has(&mutant.name));
        let (mine, others): (Vec<_>, Vec<_>) = selected
            .into_iter()
            .partition(|(_, mutant)| is_mine(mutant));
        if mine.is_empty() {
            return Err(Refused::nothing(format!(
                "nothing is selected: the shard has none of {} mutants; take fewer shards",
                others.len()
            )));
        }
        let name = |(_, mutant): &(String, Mutant)| mutant.name.clone();
        let others: Vec<String> = others.iter().map(name).collect();
        let known: Vec<String> = mine
            .iter()
            .map(name)
            .chain(others.iter().cloned())
            .collect();
        let rest = Mutants::embedded()
            .iter()
            .map(|(_, mutant)| mutant.name.clone());
        let rest: Vec<String> = rest.filter(|name| !known.contains(name)).collect();
        let skipped = [
            (SkipReason::NotSelected, rest),
            (SkipReason::OtherShard, others),
        ];
        Ok(Self {
            mutants: mine,
            skipped: skipped
                .into_iter()
                .filter(|(_, cases)| !cases.is_empty())
                .map(|(reason, cases)| Skipped { reason, cases })
                .collect(),
        })
    }

    /// Leaves of the cases those that one of the mutants is tried on: for a few mutants it is not
    /// worth running all of them first.
    fn narrow(&self, cases: &mut Vec<Arc<Case>>) {
        let mutants = self.mutants.iter().map(|(_, mutant)| mutant);
        *cases = mutate::needed(mutants, cases);
    }
}

impl Plan {
    /// Runs the mutants on the cases of what the subject claims.
    pub(super) async fn power(
        &self,
        mutated: &Mutated,
        source: Arc<dyn SubjectSource>,
        folder: &Path,
        interruption: &Interruption,
    ) -> (Run, Ended) {
        let description = self.judged_as(source.description());
        let mut cases = self.chosen.cases.clone();
        cases.retain(|case| description.profiles.contains(&case.scenario.profile));
        if !self.args.filter.is_empty() {
            mutated.narrow(&mut cases);
        }
        let line = self.progress.line("mutants");
        line.say("running the scenarios without any");
        let (mut done, mut survived, all) = (0_u64, 0_u64, mutated.mutants.len());
        let mut heard = |result: &mutate::MutantResult| {
            done += 1;
            survived += u64::from(!matches!(result.fate, mutate::Fate::Killed { .. }));
            line.say(&format!("{done} of {all}, {survived} not killed"));
        };
        let jobs = usize::from(self.args.jobs.unwrap_or_else(default_jobs));
        let setup = self.setup(folder, interruption);
        let mutants = mutated.mutants.clone();
        let began = std::time::Instant::now();
        let power = mutate::run(mutants, cases, source, setup, jobs, &mut heard).await;
        let mut run = self.blank();
        run.kind = RunKind::Power;
        run.cases = power
            .results
            .iter()
            .map(mutate::MutantResult::reported)
            .collect();
        run.skipped.clone_from(&mutated.skipped);
        let ran = |name: &str| {
            power
                .results
                .iter()
                .any(|result| result.mutant.name == name)
        };
        let names = mutated
            .mutants
            .iter()
            .map(|(_, mutant)| mutant.name.clone());
        let missing: Vec<String> = names.filter(|name| !ran(name)).collect();
        if !missing.is_empty() {
            run.skipped.push(Skipped {
                reason: SkipReason::Interrupted,
                cases: missing,
            });
        }
        if !power.unfit.is_empty() {
            run.remarks.push(format!(
                "Cases that do not pass without any mutant, not alone either, and so notice none: {}.",
                power.unfit.join(", ")
            ));
        }
        if !power.opaque.is_empty() {
            run.remarks.push(format!(
                "Cases that do not pass, not alone either, when what tampers does nothing, and so \
                 notice no mutant of the wire or of processes: {}.",
                power.opaque.join(", ")
            ));
        }
        let ended = Ended {
            interrupted: power.interrupted,
            duration: began.elapsed(),
        };
        let clauses = watched(&description, &run.skipped);
        self.conclude(&mut run, &ended, &description, (&clauses, &references()));
        (run, ended)
    }
}

/// The clauses that mutants can break, each with the reason that holds if none that was run does.
fn watched(description: &Description, skipped: &[Skipped]) -> Vec<dsh_reports::ClauseRef> {
    of_a_harness()
        .filter(|clause| {
            let mut profiles = clause.profiles.iter();
            profiles.any(|profile| description.profiles.contains(profile))
        })
        .map(|clause| reference(clause, unwatched(clause, skipped)))
        .collect()
}

/// A clause that another one says is watched where that one is.
fn references() -> BTreeMap<String, Watch> {
    of_a_harness()
        .map(|clause| {
            let (see, monitors) = (clause.see.clone(), Vec::new());
            (clause.id.clone(), Watch { see, monitors })
        })
        .collect()
}

fn unwatched(clause: &Clause, skipped: &[Skipped]) -> String {
    if let Some(reason) = &clause.excluded {
        return reason.trim_end_matches('.').to_owned();
    }
    let tests = |judged: &Judged| matches!(judged, Judged::Unit | Judged::Source);
    let names = std::iter::once(&clause.id).chain(&clause.see);
    let mutants: Vec<&str> = names
        .flat_map(|name| Mutants::embedded().of(name))
        .map(|mutant| mutant.name.as_str())
        .collect();
    let left_out = |mutant: &&str| {
        let mut reasons = skipped.iter();
        let found = reasons.find(|skipped| skipped.cases.iter().any(|case| case == mutant));
        found.map(|skipped| skipped.reason)
    };
    let reasons: Option<Vec<SkipReason>> = mutants.iter().map(left_out).collect();
    match reasons {
        // Of several mutants, the one that another shard runs says most.
        Some(reasons) if !reasons.is_empty() => {
            let reason = reasons.iter().max().map(ToString::to_string);
            reason.unwrap_or_default()
        }
        None => "the mutants that break it are noticed for other clauses".to_owned(),
        _ if clause.judged.iter().all(tests) => {
            "judged by tests of this project, not by scenarios".to_owned()
        }
        _ if clause.level == Level::Should => "no mutant breaks it, and none has to".to_owned(),
        _ => "no mutant breaks it".to_owned(),
    }
}
