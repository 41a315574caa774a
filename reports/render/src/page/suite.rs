//! The part of a harness, or of the mutants of one: too many cases to show each in full.

use std::collections::BTreeMap;

use super::case::{CaseView, Cases, wants_attention};
use super::ids::Ids;
use super::server::{not_judged, skipped};
use super::text::shown;
use super::{Badge, Fact, Source, badge, look, made_by, moment, platform};
use crate::model::{Case, Count, Run, RunKind};
use crate::text::duration;
use crate::verdict::Verdict;
use crate::words;

/// The most cases that are shown in full.
const FULL: usize = 200;

pub(super) struct Suite {
    pub(super) id: String,
    pub(super) heading: String,
    pub(super) badge: Badge,
    pub(super) conclusion: String,
    pub(super) counts: String,
    pub(super) facts: Vec<Fact>,
    /// What a case is called.
    pub(super) what: &'static str,
    pub(super) profiles: Vec<Profile>,
    /// The profiles that have a column, and areas by profile.
    pub(super) columns: Vec<String>,
    pub(super) areas: Vec<Area>,
    /// The cases that somebody has to look at.
    pub(super) full: Vec<CaseView>,
    /// How many more of them there are.
    pub(super) more: usize,
    pub(super) verdicts: Vec<&'static str>,
    pub(super) stale: Vec<String>,
    pub(super) remarks: Vec<String>,
    pub(super) not_judged: Vec<(String, String)>,
    pub(super) skipped: Vec<String>,
}

/// How many clauses of a profile hold.
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) must: String,
    pub(super) should: String,
    pub(super) not_judged: u64,
}

/// The cases of one area.
pub(super) struct Area {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) tally: String,
    /// By profile.
    pub(super) cells: Vec<AreaCell>,
    pub(super) cases: Vec<CaseView>,
}

/// How the cases of an area that judge clauses of a profile came out.
pub(super) struct AreaCell {
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    /// `12` or `11/12`: those that hold of those that were judged.
    pub(super) count: String,
    pub(super) words: String,
}

pub(super) fn suite(source: Source<'_>, ids: &mut Ids) -> Suite {
    let run = source.run;
    let what = match run.kind {
        RunKind::Conformance => "cases",
        RunKind::Power => "mutants",
    };
    let heading = subject(run);
    let id = ids.take("", &heading);
    let cases = Cases::of(run, &id);
    let wanted: Vec<&Case> = run
        .cases
        .iter()
        .filter(|case| wants_attention(case.verdict))
        .collect();
    let full: Vec<CaseView> = wanted
        .iter()
        .take(FULL)
        .map(|case| cases.full(case, ids))
        .collect();
    // Of those that stand above, the row below refers to them.
    let above: BTreeMap<&str, String> = wanted
        .iter()
        .zip(&full)
        .map(|(case, view)| (case.id.as_str(), view.id.clone()))
        .collect();
    let profiles = Profiles::of(run);
    let mut verdicts: Vec<&'static str> = Verdict::ALL
        .into_iter()
        .filter(|verdict| run.cases.iter().any(|case| case.verdict == *verdict))
        .map(|verdict| words::verdict(run.kind, verdict))
        .collect();
    verdicts.dedup();
    Suite {
        heading: shown(&heading),
        badge: badge(&run.conclusion),
        conclusion: shown(&run.conclusion.to_string()),
        counts: words::counts(run),
        facts: facts(source),
        what,
        profiles: totals(run),
        columns: profiles.names.iter().map(|name| shown(name)).collect(),
        areas: areas(run, &cases, &profiles, &above, ids),
        more: wanted.len() - full.len(),
        full,
        verdicts,
        stale: run
            .stale
            .iter()
            .map(|of| shown(&words::stale(of)))
            .collect(),
        remarks: run.remarks.iter().map(|of| shown(of)).collect(),
        not_judged: not_judged(run),
        skipped: skipped(run),
        id,
    }
}

/// What the part is about.
pub(super) fn subject(run: &Run) -> String {
    let subject = words::subject(&run.subject);
    match run.kind {
        RunKind::Conformance => subject,
        RunKind::Power => format!("Mutants of {subject}"),
    }
}

fn facts(source: Source<'_>) -> Vec<Fact> {
    let (run, report) = (source.run, source.report);
    let tally = words::tally(run.kind, run.cases.iter().map(|case| case.verdict));
    let cases = match run.kind {
        RunKind::Conformance => "Cases",
        RunKind::Power => "Mutants",
    };
    let mut facts = vec![
        Fact::new(cases, &format!("{} · {tally}", run.cases.len())),
        Fact::new("Profiles", &run.profiles.join(", ")),
        Fact::new("Took", &duration(run.duration_us)),
    ];
    if let Some(suite) = &run.suite {
        facts.push(Fact::code("Suite", suite));
    }
    if let Some(seed) = run.seed {
        facts.push(Fact::new("Seed", &seed.to_string()));
    }
    if let Some(shard) = run.shard {
        facts.push(Fact::new("Shard", &shard.to_string()));
    }
    if !run.subject.command.is_empty() {
        facts.push(Fact::code("Started as", &run.subject.command.join(" ")));
    }
    facts.push(Fact::new("Platform", &platform(report)));
    facts.push(Fact::new("Judged by", &made_by(report)));
    if let Some(date) = &report.date {
        facts.push(Fact::new("Date", &moment(date)));
    }
    facts.retain(|fact| !fact.text.is_empty());
    facts
}

fn totals(run: &Run) -> Vec<Profile> {
    let of = |count: Count| match count.judged {
        0 => "–".to_owned(),
        judged => format!("{}/{judged}", count.held),
    };
    run.totals
        .profiles
        .iter()
        .map(|(name, totals)| Profile {
            name: shown(name),
            must: of(totals.must),
            should: of(totals.should),
            not_judged: totals.not_judged,
        })
        .collect()
}

/// Which clause is part of which profiles.
struct Profiles<'a> {
    names: Vec<&'a str>,
    /// Clause → places in `names`.
    of: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Profiles<'a> {
    fn of(run: &'a Run) -> Self {
        // In the order in which the run names them; coverage may know more.
        let covered = |name: &&str| {
            let mut profiles = run.coverage.iter().flat_map(|clause| &clause.profiles);
            profiles.any(|profile| profile == name)
        };
        let mut names: Vec<&str> = run
            .profiles
            .iter()
            .map(String::as_str)
            .filter(covered)
            .collect();
        let mut of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for clause in &run.coverage {
            for profile in &clause.profiles {
                let place = names.iter().position(|name| name == profile);
                let place = place.unwrap_or_else(|| {
                    names.push(profile);
                    names.len() - 1
                });
                of.entry(&clause.clause).or_default().push(place);
            }
        }
        Self { names, of }
    }

    /// The profiles that a case says something about.
    fn touched(&self, case: &Case) -> Vec<usize> {
        let clauses = case.clauses.iter().chain(&case.broken);
        let places = clauses.filter_map(|id| self.of.get(id.as_str()));
        let mut places: Vec<usize> = places.flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

fn areas(
    run: &Run,
    cases: &Cases<'_>,
    profiles: &Profiles<'_>,
    above: &BTreeMap<&str, String>,
    ids: &mut Ids,
) -> Vec<Area> {
    let mut order: Vec<&str> = Vec::new();
    let mut by_area: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &run.cases {
        let of_area = by_area.entry(&case.group).or_default();
        if of_area.is_empty() {
            order.push(&case.group);
        }
        of_area.push(case);
    }
    let mut areas = Vec::with_capacity(order.len());
    for name in order {
        let of_area = by_area.remove(name).unwrap_or_default();
        let mut verdicts: Vec<Vec<Verdict>> = vec![Vec::new(); profiles.names.len()];
        for case in &of_area {
            for place in profiles.touched(case) {
                verdicts[place].push(case.verdict);
            }
        }
        areas.push(Area {
            id: cases.area(name, ids),
            name: shown(name),
            tally: words::tally(run.kind, of_area.iter().map(|case| case.verdict)),
            cells: verdicts.iter().map(|of| area_cell(run.kind, of)).collect(),
            cases: of_area
                .iter()
                .map(|case| match above.get(case.id.as_str()) {
                    Some(id) => cases.refer(case, id),
                    None => cases.short(case, ids),
                })
                .collect(),
        });
    }
    areas
}

fn area_cell(kind: RunKind, verdicts: &[Verdict]) -> AreaCell {
    let judged = verdicts
        .iter()
        .filter(|verdict| verdict.is_judged())
        .count();
    let held = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Pass)
        .count();
    let heaviest = verdicts
        .iter()
        .copied()
        .max_by_key(|verdict| verdict.weight());
    let (class, mark) = heaviest.map_or(("none", "·"), look);
    AreaCell {
        class,
        mark,
        count: match (judged, held) {
            (0, _) => String::new(),
            _ if judged == held => held.to_string(),
            _ => format!("{held}/{judged}"),
        },
        words: match verdicts {
            [] => "no case".to_owned(),
            _ => words::tally(kind, verdicts.iter().copied()),
        },
    }
}
