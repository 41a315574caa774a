//! Running mutants, and what is found out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_reports::{Case as Reported, Place, Verdict};
use serde_json::Value;
use tokio::task::JoinSet;

use super::form::{Mutant, Spec};
use super::load::Mutants;
use super::result::{Mutation, stands_between, through};
use crate::format::{Case, Count};
use crate::run::{CaseResult, Observer, Setup, Tampering, run_case};
use crate::subject::{CallError, SubjectSource};
use crate::{Clauses, Profile};

/// A case that hangs on account of a mutant gets so many times what it takes without, and this
/// besides.
const PATIENCE: u32 = 3;
const BESIDES: Duration = Duration::from_secs(3);

/// After so many cases that hang, or cannot judge, no other reason is looked for.
const ENOUGH: usize = 2;

/// How many further cases are run for each clause that a mutant breaks and that was not named when
/// it was noticed.
const FURTHER: usize = 4;

/// How many cases that name none of its clauses a mutant is tried on at most, when those that do
/// have not noticed it.
const OTHERS: usize = 30;

/// What became of one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A case noticed it.
    Killed {
        /// The case.
        case: String,
        /// The clause it named, one of those the mutant breaks where possible.
        clause: String,
        /// How the case ended.
        verdict: Verdict,
        /// What it said.
        message: String,
    },
    /// It was there, and no case noticed.
    Survived {
        /// The cases in which it did something and that passed all the same.
        unnoticed: Vec<String>,
    },
    /// It did not come to be, which proves nothing.
    Broken {
        /// Why.
        reason: String,
    },
}

/// One mutant, and what became of it.
#[derive(Clone, Debug)]
pub struct MutantResult {
    /// Its file.
    pub file: String,
    /// The mutant.
    pub mutant: Mutant,
    /// What became of it.
    pub fate: Fate,
    /// The clauses it breaks that were named by cases that noticed it.
    pub named: Vec<String>,
    /// How many cases were run with it.
    pub tried: usize,
    /// How long that took.
    pub duration: Duration,
}

impl MutantResult {
    /// As the case of a report: a mutant passes when it was noticed.
    pub fn reported(&self) -> Reported {
        let mutant = &self.mutant;
        let name = &mutant.name;
        let group = self.file.trim_start_matches("mutants/");
        let (verdict, message, broken) = match &self.fate {
            Fate::Killed {
                case,
                clause,
                verdict,
                ..
            } => {
                let how = match verdict {
                    Verdict::Fail => String::new(),
                    other => format!(", {other}"),
                };
                let message = format!("killed by {case} ({clause}{how})");
                let mut named = vec![clause.clone()];
                named.extend(self.named.iter().filter(|other| *other != clause).cloned());
                (Verdict::Pass, message, named)
            }
            Fate::Survived { unnoticed } => {
                let message = match unnoticed.split_first() {
                    Some((first, [])) => format!("survived: {first} passes all the same"),
                    Some((first, rest)) => format!(
                        "survived: {first} and {} more pass all the same",
                        rest.len()
                    ),
                    None => "survived".to_owned(),
                };
                (Verdict::Fail, message, mutant.breaks.clone())
            }
            Fate::Broken { reason } => (
                Verdict::Untestable,
                format!("proves nothing: {reason}"),
                mutant.breaks.clone(),
            ),
        };
        let red = verdict != Verdict::Pass;
        Reported {
            id: name.clone(),
            group: group.trim_end_matches(".yaml").to_owned(),
            clauses: mutant.breaks.clone(),
            broken,
            title: Some(mutant.title.clone()),
            source: Some(Place {
                file: format!("scenarios/{}", self.file),
                line: None,
            }),
            level: dsh_reports::Level::Must,
            timed: false,
            verdict,
            label: None,
            message,
            duration_us: u64::try_from(self.duration.as_micros()).ok(),
            expected: red.then(|| "a scenario that fails".to_owned()),
            got: red.then(|| format!("{} cases were run", self.tried)),
            evidence: Vec::new(),
            transcript: None,
            reproduce: red.then(|| format!("dsh-conform run --mutants {name}")),
        }
    }
}

/// What a run of mutants found.
#[derive(Clone, Debug)]
pub struct Power {
    /// In the order of the files.
    pub results: Vec<MutantResult>,
    /// Cases that do not pass without any mutant, and so notice nothing.
    pub unfit: Vec<String>,
    /// Cases that do not pass either when a process stands between harness and server and does
    /// nothing; mutants for which one does are not tried on them.
    pub opaque: Vec<String>,
    /// Whether it was interrupted, so that some have no result.
    pub interrupted: bool,
}

impl Power {
    /// How many were killed, survived, and are broken.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |of: fn(&Fate) -> bool| self.results.iter().filter(|r| of(&r.fate)).count();
        (
            count(|fate| matches!(fate, Fate::Killed { .. })),
            count(|fate| matches!(fate, Fate::Survived { .. })),
            count(|fate| matches!(fate, Fate::Broken { .. })),
        )
    }
}

/// Runs mutants on cases, `jobs` at a time. `heard` gets each result as it comes.
///
/// A mutant is tried on the cases that name a clause it breaks, cheapest first, until one fails
/// for such a clause; then on others of the same profiles. Cases that do not pass without it are
/// left out. The source is not closed.
pub async fn run(
    mutants: Vec<(String, Mutant)>,
    cases: Vec<Arc<Case>>,
    source: Arc<dyn SubjectSource>,
    setup: Setup,
    jobs: usize,
    heard: &mut (dyn FnMut(&MutantResult) + Send),
) -> Power {
    let fit = baseline(&cases, Arc::clone(&source), &setup, jobs, None).await;
    // What stands between must not be noticed by itself.
    let between: Vec<&Mutant> = mutants
        .iter()
        .map(|(_, mutant)| mutant)
        .filter(|mutant| stands_between(mutant))
        .collect();
    let passing: Vec<_> = cases
        .iter()
        .filter(|case| fit.contains_key(&case.id))
        .cloned()
        .collect();
    let passing = needed(between, &passing);
    let through = if passing.is_empty() {
        HashMap::new()
    } else {
        let nothing: Arc<dyn Tampering> = Arc::new(Nothing {
            executable: setup.executable.clone(),
        });
        let source = Arc::clone(&source);
        baseline(&passing, source, &setup, jobs, Some(nothing)).await
    };
    let opaque: HashSet<String> = passing
        .iter()
        .filter(|case| !through.contains_key(&case.id))
        .map(|case| case.id.clone())
        .collect();
    let unfit = cases
        .iter()
        .filter(|case| !fit.contains_key(&case.id))
        .map(|case| case.id.clone())
        .collect();
    let mut cases: Vec<Arc<Case>> = cases;
    cases.retain(|case| fit.contains_key(&case.id));
    cases.sort_by_key(|case| (fit[&case.id], case.id.clone()));
    let shared = Arc::new(Shared {
        cases,
        fit,
        opaque,
        source,
        setup,
    });
    let mut waiting = mutants.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut results: Vec<(usize, MutantResult)> = Vec::new();
    loop {
        while running.len() < jobs.max(1) && !shared.setup.cancel.is_cancelled() {
            let Some((at, (file, mutant))) = waiting.next() else {
                break;
            };
            let shared = Arc::clone(&shared);
            running.spawn(async move { (at, Box::pin(shared.try_out(file, mutant)).await) });
        }
        let Some(joined) = running.join_next().await else {
            break;
        };
        if let Ok((at, Some(result))) = joined {
            heard(&result);
            results.push((at, result));
        }
    }
    results.sort_by_key(|(at, _)| *at);
    let mut opaque: Vec<String> = shared.opaque.iter().cloned().collect();
    opaque.sort();
    Power {
        opaque,
        results: results.into_iter().map(|(_, result)| result).collect(),
        unfit,
        interrupted: shared.setup.cancel.is_cancelled(),
    }
}

/// Stands between and does nothing.
#[derive(Debug)]
struct Nothing {
    executable: PathBuf,
}

impl Tampering for Nothing {
    fn command(&self, argv: Vec<String>) -> Vec<String> {
        through(&self.executable, &Spec::default(), argv)
    }

    fn request(&self, _: &str, params: Value) -> Option<Value> {
        Some(params)
    }

    fn outcome(
        &self,
        _: &str,
        _: &Value,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        outcome
    }

    fn cancels(&self) -> bool {
        true
    }
}

/// What the cases that pass take. One that does not pass beside others gets a second chance alone: a
/// machine that is busy takes from a case the time it has, and which one that hits is chance.
async fn baseline(
    cases: &[Arc<Case>],
    source: Arc<dyn SubjectSource>,
    setup: &Setup,
    jobs: usize,
    tampering: Option<Arc<dyn Tampering>>,
) -> HashMap<String, Duration> {
    struct Passing(HashMap<String, Duration>);
    impl Observer for Passing {
        fn ended(&mut self, result: CaseResult) {
            if matches!(result.verdict, Verdict::Pass | Verdict::Note) {
                self.0.insert(result.id, result.duration);
            }
        }
    }
    let mut passing = Passing(HashMap::new());
    let setup = Arc::new(setup.clone());
    for jobs in [jobs, 1] {
        let left: Vec<_> = cases
            .iter()
            .filter(|case| !passing.0.contains_key(&case.id))
            .cloned()
            .collect();
        let (source, setup) = (Arc::clone(&source), Arc::clone(&setup));
        crate::run::run(left, source, setup, tampering.clone(), jobs, &mut passing).await;
    }
    passing.0
}

/// The cases that these mutants are tried on, in their order: those that should notice one of them,
/// and others that might.
pub fn needed<'a>(
    mutants: impl IntoIterator<Item = &'a Mutant>,
    cases: &[Arc<Case>],
) -> Vec<Arc<Case>> {
    let mut ids = HashSet::new();
    for mutant in mutants {
        let (naming, others) = candidates(cases, mutant);
        ids.extend(naming.into_iter().chain(others).map(|case| case.id.clone()));
    }
    let is_needed = |case: &&Arc<Case>| ids.contains(&case.id);
    cases.iter().filter(is_needed).cloned().collect()
}

/// The cases for a mutant: those that should notice, and others that might.
fn candidates(cases: &[Arc<Case>], mutant: &Mutant) -> (Vec<Arc<Case>>, Vec<Arc<Case>>) {
    if !mutant.scenarios.is_empty() {
        let patterns = mutant.scenarios.iter();
        let patterns: Vec<_> = patterns
            .filter_map(|p| glob::Pattern::new(p).ok())
            .collect();
        let fits = |case: &&Arc<Case>| patterns.iter().any(|pattern| pattern.matches(&case.id));
        return (cases.iter().filter(fits).cloned().collect(), Vec::new());
    }
    let names = |case: &Arc<Case>| {
        let clauses = &case.scenario.clauses;
        clauses.iter().any(|clause| mutant.breaks.contains(clause))
    };
    let (naming, rest): (Vec<_>, Vec<_>) = cases.iter().cloned().partition(names);
    // A clause that no case names is judged by a monitor, in any case of its profiles.
    let clauses = mutant.breaks.iter();
    let profiles: BTreeSet<Profile> = clauses
        .filter_map(|clause| Clauses::embedded().find(clause).ok())
        .flat_map(|clause| clause.profiles.iter().copied())
        .collect();
    let rest = rest
        .into_iter()
        .filter(|case| profiles.contains(&case.scenario.profile));
    // Where no server is started there are no messages to tamper with.
    let (with, without): (Vec<_>, Vec<_>) =
        rest.partition(|case| case.scenario.processes != Some(Count::Exactly(0)));
    let rest = with.into_iter().chain(without).take(OTHERS).collect();
    (naming, rest)
}

struct Shared {
    /// Those that pass, cheapest first.
    cases: Vec<Arc<Case>>,
    fit: HashMap<String, Duration>,
    /// Those that do not pass with a process between that does nothing.
    opaque: HashSet<String>,
    source: Arc<dyn SubjectSource>,
    setup: Setup,
}

/// What one case said of a mutant.
enum Said {
    /// Nothing: the mutant did nothing in it, or the run of it failed.
    Nothing(Option<String>),
    /// It passed though the mutant was there.
    Unnoticed,
    /// It failed.
    Noticed(Box<CaseResult>),
}

impl Shared {
    /// The cases for a mutant, without those that notice a process between by itself.
    fn candidates(&self, mutant: &Mutant) -> (Vec<Arc<Case>>, Vec<Arc<Case>>) {
        let between = stands_between(mutant);
        let usable = |case: &&Arc<Case>| !between || !self.opaque.contains(&case.id);
        let cases: Vec<Arc<Case>> = self.cases.iter().filter(usable).cloned().collect();
        candidates(&cases, mutant)
    }

    /// None if the run was ended before anything was found out.
    async fn try_out(&self, file: String, mutant: Mutant) -> Option<MutantResult> {
        let began = Instant::now();
        let (naming, others) = self.candidates(&mutant);
        let mut tried = 0;
        let mut unnoticed = Vec::new();
        let mut other_clause: Option<CaseResult> = None;
        let mut noticed = 0;
        let mut trouble = None;
        let mut killed = None;
        let count = naming.len();
        let mut tried_on = BTreeSet::new();
        for (at, case) in naming.iter().cloned().chain(others).enumerate() {
            // What noticed for another reason counts before cases that are not about it.
            if self.setup.cancel.is_cancelled() || (at >= count && other_clause.is_some()) {
                break;
            }
            tried += 1;
            tried_on.insert(case.id.clone());
            match self.one(&mutant, &case).await {
                Said::Nothing(why) => trouble = trouble.or(why),
                Said::Unnoticed => unnoticed.push(case.id.clone()),
                Said::Noticed(result) => {
                    let exact = result.verdict == Verdict::Fail
                        && result
                            .clauses
                            .iter()
                            .any(|clause| mutant.breaks.contains(clause));
                    if exact {
                        killed = Some(*result);
                        break;
                    }
                    other_clause.get_or_insert(*result);
                    noticed += 1;
                    if noticed == ENOUGH {
                        break;
                    }
                }
            }
        }
        let noticed = killed.or(other_clause);
        let mut named = Vec::new();
        if let Some(result) = &noticed {
            named.clone_from(&result.clauses);
            let untried: Vec<_> = naming
                .into_iter()
                .filter(|case| !tried_on.contains(&case.id))
                .collect();
            tried += self.further(&mutant, untried, &mut named).await;
        }
        named.retain(|clause| mutant.breaks.contains(clause));
        let fate = match noticed {
            Some(result) => fate_of(&mutant, result),
            None if self.setup.cancel.is_cancelled() => return None,
            None if !unnoticed.is_empty() => Fate::Survived { unnoticed },
            None if tried == 0 => Fate::Broken {
                reason: "no case that passes without it names one of its clauses".to_owned(),
            },
            None => Fate::Broken {
                reason: trouble.unwrap_or_else(|| {
                    format!("nothing was tampered with in the {tried} cases that were run")
                }),
            },
        };
        Some(MutantResult {
            file,
            mutant,
            fate,
            named,
            tried,
            duration: began.elapsed(),
        })
    }

    /// Looks for cases that notice the mutant for the clauses that were not named yet; says how
    /// many were run.
    async fn further(
        &self,
        mutant: &Mutant,
        cases: Vec<Arc<Case>>,
        named: &mut Vec<String>,
    ) -> usize {
        let mut tried = 0;
        for clause in &mutant.breaks {
            let about = cases
                .iter()
                .filter(|case| case.scenario.clauses.contains(clause))
                .take(FURTHER);
            for case in about {
                if named.contains(clause) || self.setup.cancel.is_cancelled() {
                    break;
                }
                tried += 1;
                if let Said::Noticed(result) = self.one(mutant, case).await {
                    named.extend(result.clauses);
                }
            }
        }
        tried
    }

    async fn one(&self, mutant: &Mutant, case: &Case) -> Said {
        let folder = tempfile::Builder::new()
            .prefix("mutant")
            .tempdir_in(&self.setup.temp);
        let folder = match folder {
            Ok(folder) => folder,
            Err(error) => return Said::Nothing(Some(format!("no folder: {error}"))),
        };
        let subject = match self.source.take().await {
            Ok(subject) => subject,
            Err(error) => return Said::Nothing(Some(format!("no subject: {error}"))),
        };
        let mutation = Mutation::new(mutant, &self.setup.executable, folder.path());
        let mut setup = self.setup.clone();
        let usual = self.fit.get(&case.id).copied().unwrap_or_default();
        setup.budget.most = Some(usual * PATIENCE + BESIDES);
        let ran = run_case(case, &*subject, &setup, Some(&mutation)).await;
        self.source.give_back(subject, ran.sound).await;
        let applied = mutation.applied();
        drop(mutation);
        if ran.interrupted || !applied {
            return Said::Nothing(None);
        }
        match ran.result.verdict {
            Verdict::Fail | Verdict::Timeout | Verdict::Untestable => {
                Said::Noticed(Box::new(ran.result))
            }
            Verdict::Pass | Verdict::Note | Verdict::NotApplicable => Said::Unnoticed,
            other => Said::Nothing(Some(format!(
                "{} ended with {other}: {}",
                case.id, ran.result.message
            ))),
        }
    }
}

fn fate_of(mutant: &Mutant, result: CaseResult) -> Fate {
    let own = result
        .clauses
        .iter()
        .find(|clause| mutant.breaks.contains(clause));
    let clause = own.or(result.clauses.first()).cloned();
    Fate::Killed {
        clause: clause.unwrap_or_default(),
        case: result.id,
        verdict: result.verdict,
        message: result.message,
    }
}

/// The mutants whose names, or files, begin with one of `filters`; all of them without any.
pub fn select(filters: &[String]) -> Vec<(String, Mutant)> {
    Mutants::embedded()
        .iter()
        .filter(|(file, mutant)| {
            let file = file.trim_start_matches("mutants/");
            filters.is_empty()
                || filters
                    .iter()
                    // As a folder of the suite is named.
                    .map(|filter| filter.trim_end_matches('/'))
                    .any(|filter| mutant.name.starts_with(filter) || file.starts_with(filter))
        })
        .map(|(file, mutant)| (file.to_owned(), mutant.clone()))
        .collect()
}
