//! Joining the reports of a run that was divided.

use std::collections::{BTreeMap, BTreeSet};

use crate::conclusion::Selection;
use crate::model::{
    Case, ClauseRef, Division, Origin, Report, Run, RunKind, Shard, SkipReason, Skipped, Watch,
};
use crate::words;

/// Why reports cannot be joined. A report is meant by the name it was given, its file's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is none.
    #[error("there is no report to merge")]
    Nothing,
    /// They were made by different programs, or on different platforms.
    #[error(
        "{first} was made by {one}, {second} by {other}; merge reports of one version of \
         dsh-conform on one platform"
    )]
    OtherTool {
        /// One report.
        first: String,
        /// Another one.
        second: String,
        /// What made the one.
        one: String,
        /// What made the other.
        other: String,
    },
    /// They are about different harnesses, or one about a harness and one about a server.
    #[error("{first} is about {one}, {second} about {other}; merge the shards of one subject")]
    OtherSubject {
        /// One report.
        first: String,
        /// Another one.
        second: String,
        /// Whom the one is about.
        one: String,
        /// Whom the other is about.
        other: String,
    },
    /// Two different servers bear one name.
    #[error(
        "{first} and {second} both have a server called {name}, started with other commands ({one} \
         and {other}); check one of them again with --name, so that each has its own"
    )]
    OtherCommand {
        /// One report.
        first: String,
        /// Another one.
        second: String,
        /// The name.
        name: String,
        /// What starts the one.
        one: String,
        /// What starts the other.
        other: String,
    },
    /// The same run was divided in two ways.
    #[error("{first} is shard {one}, {second} is shard {other}; merge the shards of one division")]
    OtherDivision {
        /// One report.
        first: String,
        /// Another one.
        second: String,
        /// Which part the one is.
        one: Shard,
        /// Which part the other is.
        other: Shard,
    },
    /// Servers were divided in two ways.
    #[error(
        "{first} has shard {one} of the servers, {second} has shard {other}; merge the shards of \
         one division"
    )]
    OtherParts {
        /// One report.
        first: String,
        /// Another one.
        second: String,
        /// Which part the one is.
        one: Shard,
        /// Which part the other is.
        other: Shard,
    },
    /// A case was run twice, and came out differently.
    #[error(
        "the case {case} is in {first} and in {second}, with different outcomes; merge shards \
         that do not overlap"
    )]
    Overlap {
        /// The case.
        case: String,
        /// One report.
        first: String,
        /// Another one.
        second: String,
    },
}

/// Joins reports, each with a name for errors. Runs of one harness become one run, with the counts
/// and the conclusion that follow from all cases; runs of several servers stand side by side.
pub fn merge(reports: Vec<(String, Report)>) -> Result<Report, MergeError> {
    let mut reports = reports.into_iter();
    let (first, mut whole) = reports.next().ok_or(MergeError::Nothing)?;
    let mut origins: Vec<Parts> = Vec::new();
    let mut divisions: Vec<(String, Division)> = Vec::new();
    divisions.extend(
        whole
            .division
            .take()
            .map(|division| (first.clone(), division)),
    );
    for run in std::mem::take(&mut whole.runs) {
        add(&mut origins, &first, run)?;
    }
    for (name, report) in reports {
        let made = |report: &Report| {
            let (tool, platform) = (&report.tool, &report.platform);
            format!(
                "{} {} on {} {}",
                tool.name, tool.version, platform.os, platform.arch
            )
        };
        if (&report.tool, &report.platform) != (&whole.tool, &whole.platform) {
            return Err(MergeError::OtherTool {
                one: made(&whole),
                other: made(&report),
                first,
                second: name,
            });
        }
        whole.interrupted |= report.interrupted;
        whole.date = whole.date.max(report.date);
        divisions.extend(report.division.map(|division| (name.clone(), division)));
        for run in report.runs {
            add(&mut origins, &name, run)?;
        }
    }
    whole.runs = origins
        .into_iter()
        .map(Parts::join)
        .collect::<Result<_, _>>()?;
    if !divisions.is_empty() {
        // As one run has them.
        whole
            .runs
            .sort_by(|a, b| a.subject.name.cmp(&b.subject.name));
    }
    whole.division = undivided(divisions, &whole.runs)?;
    Ok(whole)
}

/// What is left of the division of servers when its parts are put together: nothing if all are
/// there.
fn undivided(
    divisions: Vec<(String, Division)>,
    runs: &[Run],
) -> Result<Option<Division>, MergeError> {
    let mut shards = divisions.iter().flat_map(|(name, division)| {
        let shards = division.shards.iter();
        shards.map(move |shard| (name, *shard))
    });
    if let Some((first, one)) = shards.next()
        && let Some((second, other)) = shards.find(|(_, other)| other.of != one.of)
    {
        return Err(MergeError::OtherParts {
            first: first.clone(),
            second: second.clone(),
            one,
            other,
        });
    }
    let mut shards = BTreeSet::new();
    let mut elsewhere = BTreeSet::new();
    for (_, division) in divisions {
        shards.extend(division.shards);
        elsewhere.extend(division.elsewhere);
    }
    elsewhere.retain(|name| !runs.iter().any(|run| run.subject.name == *name));
    Ok((!elsewhere.is_empty()).then(|| Division {
        shards: shards.into_iter().collect(),
        elsewhere: elsewhere.into_iter().collect(),
    }))
}

/// Puts reports, each with a name for errors, beside each other for one page, one run each. Shards of
/// a harness's run become one run; any other run stands for itself, and one that is there twice
/// stands once. Unlike [`merge`], it takes reports of different subjects, kinds and platforms.
pub fn gather(reports: Vec<(String, Report)>) -> Result<Vec<Report>, MergeError> {
    let mut groups: Vec<Vec<(String, Report)>> = Vec::new();
    for (name, mut report) in reports {
        for run in std::mem::take(&mut report.runs) {
            let one = Report {
                runs: vec![run],
                ..report.clone()
            };
            let known = groups
                .iter_mut()
                .find(|group| belong_together(&group[0].1, &one));
            match known {
                Some(group) if group[0].1.runs == one.runs => {}
                Some(group) => group.push((name.clone(), one)),
                None => groups.push(vec![(name.clone(), one)]),
            }
        }
    }
    let joined = |mut group: Vec<(String, Report)>| match group.len() {
        1 => Ok(group.remove(0).1),
        _ => merge(group),
    };
    groups.into_iter().map(joined).collect()
}

/// Whether two reports of one run each are the same, or parts of one.
fn belong_together(one: &Report, other: &Report) -> bool {
    if (&one.tool, &one.platform) != (&other.tool, &other.platform) {
        return false;
    }
    let (one, other) = (&one.runs[0], &other.runs[0]);
    let is_part = |run: &Run| run.subject.kind.is_harness() && run.shard.is_some();
    let same = one.kind == other.kind
        && one.subject.name == other.subject.name
        && one.subject.version == other.subject.version
        && one.suite == other.suite;
    one == other || same && is_part(one) && is_part(other)
}

/// The runs that become one, each with the report it is from.
struct Parts(Vec<(String, Run)>);

/// Puts a run to those that it belongs to.
fn add(origins: &mut Vec<Parts>, name: &str, run: Run) -> Result<(), MergeError> {
    for parts in origins.iter_mut() {
        let Some((first, known)) = parts.0.first() else {
            continue;
        };
        let is_same = known.kind == run.kind
            && known.subject.kind == run.subject.kind
            && known.subject.name == run.subject.name
            && known.subject.version == run.subject.version
            && known.suite == run.suite;
        // Of a server that was named by nothing but its command, the command is what it is.
        let is_typed = |run: &Run| run.subject.origin == Some(Origin::Command);
        if known.subject.name == run.subject.name
            && (is_typed(known) || is_typed(&run))
            && known.subject.command != run.subject.command
        {
            let typed = |run: &Run| run.subject.command.join(" ");
            return Err(MergeError::OtherCommand {
                one: typed(known),
                other: typed(&run),
                name: run.subject.name,
                first: first.clone(),
                second: name.to_owned(),
            });
        }
        if is_same {
            parts.0.push((name.to_owned(), run));
            return Ok(());
        }
        if known.kind != run.kind
            || known.subject.kind.is_harness()
            || run.subject.kind.is_harness()
        {
            let about = |run: &Run| {
                let of = match run.kind {
                    RunKind::Conformance => "",
                    RunKind::Power => "mutants of ",
                };
                let suite = run
                    .suite
                    .iter()
                    .map(|suite| format!(" by the suite {suite}"));
                let suite: String = suite.collect();
                format!("{of}{}{suite}", words::subject(&run.subject))
            };
            return Err(MergeError::OtherSubject {
                one: about(known),
                other: about(&run),
                first: first.clone(),
                second: name.to_owned(),
            });
        }
    }
    origins.push(Parts(vec![(name.to_owned(), run)]));
    Ok(())
}

impl Parts {
    fn join(self) -> Result<Run, MergeError> {
        let names: Vec<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        let mut runs: Vec<Run> = self.0.into_iter().map(|(_, run)| run).collect();
        let is_part = |run: &Run| {
            run.subject.kind.is_harness() && run.shard.is_some_and(|shard| shard.of > 1)
        };
        if runs.len() == 1 && !is_part(&runs[0]) {
            return Ok(runs.remove(0));
        }
        divided_alike(&names, &runs)?;
        let (clauses, watches) = clauses(&runs);
        let interrupted = runs.iter().any(is_interrupted);
        let shards: BTreeSet<Shard> = runs.iter().filter_map(|run| run.shard).collect();
        let seeds: BTreeSet<Option<u64>> = runs.iter().map(|run| run.seed).collect();
        let cases = cases(&names, &mut runs)?;
        let ran: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        let skipped = skipped(&runs, &ran);
        let mut runs = runs.into_iter();
        let mut whole = runs.next().expect("there is at least one");
        for run in runs {
            whole.duration_us = whole.duration_us.max(run.duration_us);
            extend_new(&mut whole.profiles, run.profiles);
            extend_new(&mut whole.stale, run.stale);
            extend_new(&mut whole.remarks, run.remarks);
            extend_new(&mut whole.operations, run.operations);
        }
        whole.stale.sort_by(|a, b| a.case.cmp(&b.case));
        whole.shard = None;
        if seeds.len() > 1 {
            whole.seed = None;
            whole.remarks.push(
                "The parts were run with different seeds, which stand with the cases.".to_owned(),
            );
        }
        // A shard that had no case at all has left no report, and nothing is missing without it.
        let left = |skipped: &Skipped| skipped.reason == SkipReason::OtherShard;
        if skipped.iter().any(left)
            && let Some(told) = absent(&shards)
        {
            whole.remarks.push(format!("{MISSING}{told}."));
        }
        whole.cases = cases;
        whole.skipped = skipped;
        let selection = if interrupted {
            Selection::Interrupted
        } else {
            Selection::All
        };
        whole.conclude_watched(&clauses, &watches, selection);
        Ok(whole)
    }
}

/// What the remark on shards that are not there begins with.
const MISSING: &str = "Shards that are missing: ";

/// The most shards that are named one by one.
const NAMED: usize = 20;

/// The shards of a division that are not among these, in words.
fn absent(shards: &BTreeSet<Shard>) -> Option<String> {
    let of = shards.first()?.of;
    let count = (of as usize).saturating_sub(shards.len());
    let mut names: Vec<String> = (1..=of)
        .map(|index| Shard { index, of })
        .filter(|shard| !shards.contains(shard))
        .take(NAMED)
        .map(|shard| shard.to_string())
        .collect();
    if count > names.len() {
        names.push(format!("and {} more", count - names.len()));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// What a merged report lacks: of each run whose shards are not all there, which are not.
pub fn missing_shards(report: &Report) -> Vec<String> {
    let of_run = |run: &Run| {
        let told = |remark: &String| {
            let names = remark.strip_prefix(MISSING)?.trim_end_matches('.');
            Some(format!("{} ({})", names, words::subject(&run.subject)))
        };
        run.remarks.iter().find_map(told)
    };
    let of_servers = report.division.iter().map(|division| {
        let shards: BTreeSet<Shard> = division.shards.iter().copied().collect();
        let names = division.elsewhere.join(", ");
        match absent(&shards) {
            Some(shards) => format!("{shards} (servers {names})"),
            None => format!("servers {names}"),
        }
    });
    let of_runs = report.runs.iter().filter_map(of_run);
    of_servers.chain(of_runs).collect()
}

fn is_interrupted(run: &Run) -> bool {
    let mut reasons = run.skipped.iter().map(|skipped| skipped.reason);
    run.conclusion == crate::conclusion::Conclusion::Interrupted
        || reasons.any(|reason| reason == SkipReason::Interrupted)
}

fn extend_new<T: PartialEq>(known: &mut Vec<T>, new: Vec<T>) {
    for item in new {
        if !known.contains(&item) {
            known.push(item);
        }
    }
}

fn divided_alike(names: &[String], runs: &[Run]) -> Result<(), MergeError> {
    let mut parts = names
        .iter()
        .zip(runs)
        .filter_map(|(name, run)| Some((name, run.shard?)));
    let Some((first, one)) = parts.next() else {
        return Ok(());
    };
    match parts.find(|(_, other)| other.of != one.of) {
        None => Ok(()),
        Some((second, other)) => Err(MergeError::OtherDivision {
            first: first.clone(),
            second: second.clone(),
            one,
            other,
        }),
    }
}

/// All cases, those that are the same in several parts once, ordered by area and id as one run has
/// them.
fn cases(names: &[String], runs: &mut [Run]) -> Result<Vec<Case>, MergeError> {
    let is_server = runs.iter().any(|run| !run.subject.kind.is_harness());
    let mut known: BTreeMap<String, (usize, Case)> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (index, run) in runs.iter_mut().enumerate() {
        for case in std::mem::take(&mut run.cases) {
            match known.get(&case.id) {
                None => {
                    order.push(case.id.clone());
                    known.insert(case.id.clone(), (index, case));
                }
                Some((_, same)) if is_same(same, &case) => {}
                Some((first, _)) => {
                    return Err(MergeError::Overlap {
                        case: case.id,
                        first: names[*first].clone(),
                        second: names[index].clone(),
                    });
                }
            }
        }
    }
    if !is_server {
        order.sort();
    }
    Ok(order
        .into_iter()
        .filter_map(|id| known.remove(&id))
        .map(|(_, case)| case)
        .collect())
}

/// Whether two runs of a case came to the same. How long they took, and where what shows it lies,
/// is different each time.
fn is_same(one: &Case, other: &Case) -> bool {
    (&one.verdict, &one.message, &one.broken, &one.clauses)
        == (
            &other.verdict,
            &other.message,
            &other.broken,
            &other.clauses,
        )
}

/// What no part ran. What one part left to another that is not here counts as left out for that.
fn skipped(runs: &[Run], ran: &BTreeSet<&str>) -> Vec<Skipped> {
    let mut reasons: BTreeMap<&str, SkipReason> = BTreeMap::new();
    for run in runs {
        for skipped in &run.skipped {
            for case in &skipped.cases {
                if !ran.contains(case.as_str()) {
                    let reason = reasons.entry(case).or_insert(skipped.reason);
                    // The part that it belonged to knows better why.
                    if *reason == SkipReason::OtherShard {
                        *reason = skipped.reason;
                    }
                }
            }
        }
    }
    let mut by_reason: BTreeMap<SkipReason, Vec<String>> = BTreeMap::new();
    for (case, reason) in reasons {
        by_reason.entry(reason).or_default().push(case.to_owned());
    }
    by_reason
        .into_iter()
        .map(|(reason, cases)| Skipped { reason, cases })
        .collect()
}

/// The clauses of all parts, each with a reason for not being judged that still holds: a reason
/// that all parts give, else what the part says that did not leave it to another.
fn clauses(runs: &[Run]) -> (Vec<ClauseRef>, BTreeMap<String, Watch>) {
    let left = SkipReason::OtherShard.to_string();
    let mut order: Vec<&str> = Vec::new();
    let mut all: BTreeMap<&str, ClauseRef> = BTreeMap::new();
    let mut watches: BTreeMap<String, Watch> = BTreeMap::new();
    for clause in runs.iter().flat_map(|run| &run.coverage) {
        let watch = watches.entry(clause.clause.clone()).or_default();
        extend_new(&mut watch.see, clause.see.clone());
        extend_new(&mut watch.monitors, clause.monitors.clone());
        let reason = clause.not_run.as_deref().unwrap_or(&left);
        let known = all.entry(&clause.clause).or_insert_with(|| {
            order.push(&clause.clause);
            ClauseRef {
                id: clause.clause.clone(),
                level: clause.level,
                profiles: clause.profiles.clone(),
                statement: clause.statement.clone(),
                not_run: reason.to_owned(),
            }
        });
        if known.not_run == left {
            reason.clone_into(&mut known.not_run);
        }
    }
    let clauses = order.into_iter().filter_map(|id| all.remove(id)).collect();
    (clauses, watches)
}
