//! A check, and what follows where a MUST fails or hangs on settings.
//!
//! A server is checked with what its entry gives it. Where a MUST fails then, settings of the host
//! are tried, and the check is repeated with those that helped. Where none fails, the settings that
//! were given are taken away again, to see which of them a MUST hangs on. Whether settings are
//! needed is thus always seen, and never taken from the entry.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::lsp;
use dsh_harness::subprocess::Subprocess;
use dsh_reports::{Conclusion, Level, Remedy, Run};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::check::{CheckError, CheckOptions, Checked, Ground, Measuring, Step, check};
use crate::found;
use crate::pleas;
use crate::probes::{PROBES, Probe, probe_of};
use crate::remedy;
use crate::setting::Setting;
use crate::target::Target;

/// What a trial may wait for an answer besides twice the time to initialize.
const TRIAL: Duration = Duration::from_secs(15);
/// What a check without a setting may wait besides three times what the answers took with it.
const WITHOUT: Duration = Duration::from_secs(5);
/// All trials of one server together take at most so many budgets of a probe, and [`TRIAL`] for
/// what starts and ends of a server take whatever the budget is.
const TRIALS: u32 = 4;

/// Checks a server, tries settings of the host where a MUST fails, and says how to mount it.
///
/// The arguments are those of [`check`]. The trials need the failed MUSTs only and take four
/// budgets and a quarter of a minute at most. With some probes chosen by name, and where the check was given up, nothing is
/// tried.
pub async fn qualify(
    target: &Target,
    ground: &Ground,
    options: &CheckOptions,
    subprocess: Arc<dyn Subprocess>,
    cancel: &Cancel,
    stop: &CancellationToken,
    watch: &(dyn Fn(Step) + Sync),
) -> Result<Checked, CheckError> {
    let (found, told) = match ground {
        Ground::Given { workspace, at } if at.is_empty() => {
            let subprocess = Arc::clone(&subprocess);
            searched(workspace, target, subprocess, options, cancel, stop).await
        }
        _ => (None, None),
    };
    let attempt = Attempt {
        ground: found.as_ref().unwrap_or(ground),
        options,
        subprocess,
        cancel,
        stop,
        watch,
    };
    let mut checked = attempt.whole(target).await?;
    checked.run.remarks.extend(told);
    let judges_all = options.only.is_empty() && options.measure != Measuring::Only;
    if judges_all && !cancel.is_cancelled() {
        checked = attempt.settle(target, checked).await?;
    }
    pleas::tell(&mut checked.run, &checked.events);
    Ok(checked)
}

/// A workspace nobody named a place in, with the places that were found; else what to say about
/// the search, where there is anything.
async fn searched(
    workspace: &Path,
    target: &Target,
    subprocess: Arc<dyn Subprocess>,
    options: &CheckOptions,
    cancel: &Cancel,
    stop: &CancellationToken,
) -> (Option<Ground>, Option<String>) {
    // What is started is owned by the search, and goes with it.
    let search = found::find(workspace, target, subprocess, cancel, options.budget);
    let found = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        found = search => found,
    };
    match found {
        Some(found) if found.at.is_empty() => (None, Some(found.told)),
        Some(found) => {
            let workspace = workspace.to_owned();
            (Some(Ground::Found { workspace, found }), None)
        }
        None => (None, None),
    }
}

struct Attempt<'a> {
    ground: &'a Ground,
    options: &'a CheckOptions,
    subprocess: Arc<dyn Subprocess>,
    cancel: &'a Cancel,
    stop: &'a CancellationToken,
    watch: &'a (dyn Fn(Step) + Sync),
}

/// Settings that were seen to be needed, with what happens without them.
struct Needed {
    settings: Vec<Setting>,
    against: String,
    clauses: Vec<String>,
}

impl Needed {
    /// What failed in `run` is what `settings` help against.
    fn since(run: &Run, settings: Vec<Setting>) -> Option<Self> {
        let failed = remedy::failed(run);
        let told: Vec<String> = failed
            .iter()
            .map(|(_, case)| match &case.label {
                Some(label) => format!("{} {label}: {}", case.clauses.join(", "), case.message),
                None => format!("{}: {}", case.clauses.join(", "), case.message),
            })
            .collect();
        (!failed.is_empty()).then(|| Self {
            settings,
            against: told.join("; "),
            clauses: failed.into_iter().map(|(clause, _)| clause).collect(),
        })
    }
}

impl Attempt<'_> {
    async fn whole(&self, target: &Target) -> Result<Checked, CheckError> {
        let subprocess = Arc::clone(&self.subprocess);
        check(
            target,
            self.ground,
            self.options,
            subprocess,
            self.cancel,
            self.stop,
            self.watch,
        )
        .await
    }

    /// Looks for settings where a MUST failed, and for what hangs on those that were given.
    async fn settle(&self, given: &Target, checked: Checked) -> Result<Checked, CheckError> {
        let mut target = given.clone();
        let mut needed: Vec<Needed> = Vec::new();
        let mut checked = checked;
        if matches!(checked.run.conclusion, Conclusion::NotQualified { .. }) {
            let found = match self.search(&target, &checked).await {
                Ok(found) => found,
                Err(remark) => {
                    checked.run.remarks.extend(remark);
                    return Ok(checked);
                }
            };
            for setting in &found {
                setting.give(&mut target);
            }
            let again = self.whole(&target).await?;
            if !again.run.conclusion.conforms() {
                let settings = remedy::named(&found);
                let said = format!(
                    "With {settings} what failed was seen to hold, but not the whole: {}.",
                    again.run.conclusion
                );
                checked.run.remarks.push(said);
                return Ok(checked);
            }
            let default = format!("With the host's defaults: {}.", checked.run.conclusion);
            needed.extend(Needed::since(&checked.run, found));
            checked = again;
            checked.run.remarks.push(default);
        }
        if is_usable(&checked.run.conclusion) && !self.cancel.is_cancelled() {
            let own = Setting::of(given);
            needed.extend(self.without(&target, &own, &checked.run).await);
            let remedy = advice(&target, &own, &needed, &checked.run);
            checked.run.advise(remedy);
        }
        Ok(checked)
    }

    /// Settings with which every MUST that failed holds; else what to say about the search, where
    /// anything was tried.
    async fn search(
        &self,
        target: &Target,
        checked: &Checked,
    ) -> Result<Vec<Setting>, Option<String>> {
        let failed = remedy::failed(&checked.run);
        let budget = TRIAL + 2 * remedy::initialized(&checked.events);
        let mut plan = Vec::new();
        for (clause, _) in &failed {
            let trials = remedy::trials(clause, &checked.events, target);
            let trials = remedy::unpromising_last(self.affordable(trials), &checked.run);
            match probe_of(clause).filter(|_| !trials.is_empty()) {
                Some(probe) => plan.push((probe, trials)),
                // Whatever helped the others, this one would still fail.
                None => return Err(None),
            }
        }
        let began = Instant::now();
        let mut found: Vec<Setting> = Vec::new();
        for (probe, trials) in plan {
            let mut vain: Vec<String> = Vec::new();
            let mut helped = None;
            // What helped another clause may help this one.
            let so_far = (!found.is_empty()).then(Vec::new);
            for trial in so_far.into_iter().chain(trials) {
                if self.cancel.is_cancelled() {
                    return Err(None);
                }
                if began.elapsed() > TRIALS * self.options.budget + TRIAL {
                    vain.push("(no time was left for more)".to_owned());
                    break;
                }
                let given: Vec<&Setting> = found.iter().chain(&trial).collect();
                if self.holds_with(target, &given, probe, budget).await {
                    let before = &given[..found.len()];
                    // What holds without it as well was not mended by it.
                    if !trial.is_empty() && self.holds_with(target, before, probe, budget).await {
                        return Err(Some(remedy::unsteady(probe.clause)));
                    }
                    helped = Some(trial);
                    break;
                }
                if !trial.is_empty() {
                    vain.push(remedy::named(&trial));
                }
            }
            let Some(helped) = helped else {
                let vain = vain.join("; ");
                let said = format!("Tried in vain against {}: {vain}.", probe.clause);
                return Err(Some(said));
            };
            found.extend(helped);
        }
        Ok(found)
    }

    /// Whether the clause of a probe holds with these settings.
    async fn holds_with(
        &self,
        target: &Target,
        settings: &[&Setting],
        probe: &'static Probe,
        budget: Duration,
    ) -> bool {
        let mut changed = target.clone();
        for setting in settings {
            setting.give(&mut changed);
        }
        let run = self.trial(&changed, vec![probe], budget).await;
        run.is_some_and(|run| remedy::holds(&run, probe.clause))
    }

    /// What the budget leaves time for: it bounds the shutdown too.
    fn affordable(&self, trials: Vec<Vec<Setting>>) -> Vec<Vec<Setting>> {
        let fits = |setting: &Setting| match setting {
            Setting::ShutdownTimeout(ms) => Duration::from_millis(*ms) <= self.options.budget,
            _ => true,
        };
        trials
            .into_iter()
            .filter(|trial| trial.iter().all(fits))
            .collect()
    }

    /// Which of the settings that were given a MUST hangs on: what fails without.
    async fn without(&self, target: &Target, own: &[Setting], run: &Run) -> Vec<Needed> {
        if own.is_empty() {
            return Vec::new();
        }
        let budget = WITHOUT + 3 * remedy::slowest(run).unwrap_or_default();
        let musts: Vec<&'static Probe> = PROBES
            .iter()
            .filter(|probe| probe.level() == Level::Must)
            .collect();
        let bare = |taken: &[Setting]| {
            let mut bare = target.clone();
            for setting in taken {
                setting.take(&mut bare);
            }
            bare
        };
        let seen = self.trial(&bare(own), musts.clone(), budget).await;
        let Some(all) = seen.and_then(|run| Needed::since(&run, own.to_vec())) else {
            return Vec::new();
        };
        if own.len() == 1 {
            return vec![all];
        }
        let mut needed = Vec::new();
        for setting in own {
            if self.cancel.is_cancelled() {
                break;
            }
            let taken = std::slice::from_ref(setting);
            let seen = self.trial(&bare(taken), musts.clone(), budget).await;
            needed.extend(seen.and_then(|run| Needed::since(&run, taken.to_vec())));
        }
        // Without any of them something fails, and without each of them nothing does: one of
        // several is enough, and which is left to whoever wrote the entry.
        if needed.is_empty() {
            needed.push(all);
        }
        needed
    }

    /// Judges some probes with these settings; none if that took too long or was not possible.
    async fn trial(
        &self,
        target: &Target,
        only: Vec<&'static Probe>,
        budget: Duration,
    ) -> Option<Run> {
        (self.watch)(Step::Trying);
        let end = Duration::from_millis(target.limits.unwrap_or_default().shutdown_ms);
        let options = CheckOptions {
            budget: budget.max(end).min(self.options.budget),
            only,
            keep: false,
            measure: Measuring::No,
            trial: true,
            ..self.options.clone()
        };
        let limit = 2 * options.budget + end + Duration::from_secs(10);
        let subprocess = Arc::clone(&self.subprocess);
        let quiet = |_| ();
        let checked = lsp::deadline(limit, self.cancel, |cancel| async move {
            let (ground, stop) = (self.ground, self.stop);
            check(target, ground, &options, subprocess, &cancel, stop, &quiet).await
        })
        .await;
        checked.ok().map(|checked| checked.run)
    }
}

/// Whether there is a way to mount the server so that it works.
const fn is_usable(conclusion: &Conclusion) -> bool {
    matches!(
        conclusion,
        Conclusion::Qualified { .. } | Conclusion::ProtocolOnly { .. }
    )
}

/// How to mount the server as it was checked.
fn advice(target: &Target, own: &[Setting], needed: &[Needed], run: &Run) -> Remedy {
    let mut settings: Vec<dsh_reports::Setting> = needed
        .iter()
        .flat_map(|needed| {
            needed.settings.iter().map(|setting| dsh_reports::Setting {
                name: setting.name(),
                against: needed.against.clone(),
                clauses: needed.clauses.clone(),
            })
        })
        .collect();
    for setting in own {
        let name = setting.name();
        if !settings.iter().any(|known| known.name == name) {
            let against = "given by the entry; nothing failed here without it".to_owned();
            settings.push(dsh_reports::Setting {
                name,
                against,
                clauses: Vec::new(),
            });
        }
    }
    Remedy {
        row: target.row(),
        settings,
        timeout_ms: remedy::slowest(run).map(remedy::advised_timeout_ms),
    }
}
