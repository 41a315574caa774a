//! The matrix of servers and clauses, and what the clauses state.

use std::collections::BTreeMap;

use super::ids::Ids;
use super::server::Server;
use super::text::shown;
use super::{Badge, Source, look};
use crate::conclusion::Conclusion;
use crate::model::{Case, ClauseCoverage, Run};
use crate::trajectory::text::clipped;
use crate::verdict::{Level, Verdict};
use crate::words;

/// The section of the clauses that a server is qualified by.
const SECTION: &str = "QUA-";

/// The most characters of a name or a version in a row.
const NAME: usize = 60;

/// The most characters of a clause's section and number at the head of its column.
const HEAD: usize = 12;

/// The most characters of what was found, or of a reason, in a row.
const WHY: usize = 300;

/// A clause that has a column.
pub(super) struct Column {
    /// The id of its row among the clauses.
    pub(super) id: String,
    pub(super) clause: String,
    /// Its section and its number.
    pub(super) section: String,
    pub(super) number: String,
    pub(super) level: Level,
    statement: String,
}

pub(super) struct Matrix {
    /// How many columns of each level there are.
    pub(super) levels: Vec<LevelHead>,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Row>,
    /// What can be chosen: name and how it is shown.
    pub(super) verdicts: Vec<(&'static str, &'static str)>,
    pub(super) languages: Vec<String>,
    /// Whether there are signs that a reader seldom meets.
    pub(super) rare: bool,
    /// Whether servers were judged on more than one platform.
    pub(super) platforms: bool,
}

/// What stands over the clauses of one level.
pub(super) struct LevelHead {
    pub(super) level: String,
    pub(super) columns: usize,
    /// The clauses, as a range.
    pub(super) clauses: String,
}

pub(super) struct Head {
    pub(super) id: String,
    pub(super) clause: String,
    /// What the clause asks for, in two or three words.
    pub(super) title: &'static str,
    pub(super) statement: String,
    /// The section, where it is not the one of the column before and the level has several.
    pub(super) section: Option<String>,
    pub(super) number: String,
    /// Whether it begins a level.
    pub(super) first: bool,
}

pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) platform: String,
    pub(super) language: String,
    pub(super) badge: Badge,
    pub(super) find: String,
    pub(super) ready: String,
    pub(super) ready_key: u64,
    pub(super) memory: String,
    pub(super) memory_key: u64,
    pub(super) cells: Vec<Cell>,
    /// Why there is none, where nothing could be judged.
    pub(super) why: Option<String>,
}

/// What a server makes of a clause.
pub(super) struct Cell {
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    /// Server, clause and verdict, for those who do not see where it stands.
    pub(super) label: String,
    /// What was found, where the clause does not just hold.
    pub(super) title: Option<String>,
    /// The case that says so.
    pub(super) href: Option<String>,
    pub(super) first: bool,
}

/// A clause with what it states and how many servers keep it.
pub(super) struct ClauseRow {
    pub(super) id: String,
    pub(super) clause: String,
    pub(super) title: &'static str,
    pub(super) level: String,
    pub(super) statement: String,
    pub(super) held: usize,
    pub(super) judged: usize,
}

/// The clauses of all servers, MUST before SHOULD, by section and number.
pub(super) fn columns(servers: &[Source<'_>], ids: &mut Ids) -> Vec<Column> {
    let mut known: BTreeMap<&str, &ClauseCoverage> = BTreeMap::new();
    for coverage in servers.iter().flat_map(|source| &source.run.coverage) {
        known.entry(&coverage.clause).or_insert(coverage);
    }
    if known.keys().any(|clause| clause.starts_with(SECTION)) {
        known.retain(|clause, _| clause.starts_with(SECTION));
    }
    let mut all: Vec<(Level, &str, u64, &ClauseCoverage)> = known
        .into_values()
        .map(|of| {
            let (section, number) = parts(&of.clause);
            (of.level, section, number.parse().unwrap_or(u64::MAX), of)
        })
        .collect();
    all.sort_by(|a, b| (a.0, a.1, a.2, &a.3.clause).cmp(&(b.0, b.1, b.2, &b.3.clause)));
    all.into_iter()
        .map(|(level, section, _, of)| Column {
            id: ids.take("clause", &of.clause),
            clause: of.clause.clone(),
            section: clipped(&shown(section), HEAD),
            number: clipped(&shown(parts(&of.clause).1), HEAD),
            level,
            statement: of.statement.clone(),
        })
        .collect()
}

/// `QUA-4` as `QUA-` and `4`.
fn parts(clause: &str) -> (&str, &str) {
    match clause.rfind(['-', '/']) {
        Some(at) => clause.split_at(at + 1),
        None => ("", clause),
    }
}

/// The matrix, where there are servers.
pub(super) fn matrix(
    columns: &[Column],
    servers: &[Source<'_>],
    parts: &[Server],
) -> Option<Matrix> {
    if servers.is_empty() {
        return None;
    }
    let (levels, heads) = heads(columns);
    let rows: Vec<Row> = servers
        .iter()
        .zip(parts)
        .map(|(source, part)| Row {
            id: part.id.clone(),
            name: clipped(&part.name, NAME),
            version: part
                .version
                .as_deref()
                .map(|version| clipped(version, NAME)),
            platform: shown(&super::platform(source.report)),
            language: clipped(&part.language, NAME),
            badge: part.badge.clone(),
            find: part.find(),
            ready: clipped(&part.ready.0, NAME),
            ready_key: part.ready.1,
            memory: part.memory_text(),
            memory_key: part.memory_key(),
            why: why(source.run),
            cells: cells(columns, &heads, source.run, part),
        })
        .collect();
    let mut verdicts: Vec<(u8, &'static str, &'static str)> = rows
        .iter()
        .map(|row| (row.badge.rank, row.badge.key, row.badge.word))
        .collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let mut languages: Vec<String> = rows.iter().map(|row| row.language.clone()).collect();
    languages.sort_by_key(|language| language.to_lowercase());
    languages.dedup();
    let platforms = rows.iter().any(|row| row.platform != rows[0].platform);
    let rare = |cell: &Cell| matches!(cell.mark, "~" | "#");
    let rare = rows.iter().flat_map(|row| &row.cells).any(rare);
    Some(Matrix {
        rare,
        levels,
        heads,
        rows,
        verdicts: verdicts
            .into_iter()
            .map(|(_, key, word)| (key, word))
            .collect(),
        languages,
        platforms,
    })
}

fn heads(columns: &[Column]) -> (Vec<LevelHead>, Vec<Head>) {
    let mut levels: Vec<LevelHead> = Vec::new();
    let mut heads: Vec<Head> = Vec::new();
    for of_level in columns.chunk_by(|a, b| a.level == b.level) {
        let ids: Vec<&str> = of_level.iter().map(|column| &*column.clause).collect();
        levels.push(LevelHead {
            level: of_level[0].level.to_string(),
            columns: of_level.len(),
            clauses: clipped(&shown(&words::clauses(&ids)), NAME),
        });
        let several = of_level.iter().any(|of| of.section != of_level[0].section);
        let mut before = None;
        for (index, column) in of_level.iter().enumerate() {
            let new = before.replace(&column.section) != Some(&column.section);
            heads.push(Head {
                id: column.id.clone(),
                clause: shown(&column.clause),
                title: words::clause_title(&column.clause).unwrap_or_default(),
                statement: shown(&column.statement),
                section: (several && new).then(|| column.section.clone()),
                number: column.number.clone(),
                first: index == 0,
            });
        }
    }
    (levels, heads)
}

/// Why nothing could be judged at all, the whole of it on one line.
fn why(run: &Run) -> Option<String> {
    let Conclusion::Untestable { reason, .. } = &run.conclusion else {
        return None;
    };
    let none = run.coverage.iter().all(|of| of.verdict.is_none());
    let lines: Vec<&str> = reason.lines().map(str::trim).collect();
    none.then(|| clipped(&shown(&lines.join(" · ")), WHY))
}

fn cells(columns: &[Column], heads: &[Head], run: &Run, part: &Server) -> Vec<Cell> {
    let coverage: BTreeMap<&str, &ClauseCoverage> = run
        .coverage
        .iter()
        .map(|of| (of.clause.as_str(), of))
        .collect();
    let cases: BTreeMap<&str, &Case> = run.cases.iter().map(|of| (of.id.as_str(), of)).collect();
    let cell = |(column, head): (&Column, &Head)| {
        let of = coverage.get(column.clause.as_str());
        let verdict = of.and_then(|of| of.verdict);
        let (class, mark) = verdict.map_or(("none", "·"), look);
        let mut words = match verdict {
            Some(verdict) => words::verdict(run.kind, verdict).to_owned(),
            None => "not judged".to_owned(),
        };
        // The case that came to it, of several the first.
        let case = of.and_then(|of| {
            let mut all = of.cases.iter().filter_map(|id| cases.get(id.as_str()));
            let of_verdict = all.clone().find(|case| Some(case.verdict) == verdict);
            of_verdict.or_else(|| all.next())
        });
        if let Some(of) = of
            && of.cases.len() > 1
        {
            words = format!("{words}, {} cases", of.cases.len());
        }
        let found = case.filter(|_| verdict != Some(Verdict::Pass)).map(|case| {
            let label = case.label.as_deref().map(|label| format!(" {label}"));
            let (label, message) = (label.unwrap_or_default(), &case.message);
            clipped(&shown(&format!("{words}:{label} {message}")), WHY)
        });
        Cell {
            class,
            mark,
            label: format!("{} {}: {words}", clipped(&part.name, NAME), head.clause),
            title: found.map(|found| format!("{}, {found}", head.clause)),
            href: case.and_then(|case| part.anchors.get(&case.id).cloned()),
            first: head.first,
        }
    };
    columns.iter().zip(heads).map(cell).collect()
}

/// What the clauses state, and how many servers keep each.
pub(super) fn rows(columns: &[Column], servers: &[Source<'_>]) -> Vec<ClauseRow> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for of in servers.iter().flat_map(|source| &source.run.coverage) {
        // What could not be judged says nothing of whether the clause is kept.
        let judged = |verdict: &Verdict| {
            verdict.is_judged() && !matches!(verdict, Verdict::Untestable | Verdict::HarnessError)
        };
        if let Some(verdict) = of.verdict.filter(judged) {
            let (held, judged) = counts.entry(&of.clause).or_default();
            *held += usize::from(verdict == Verdict::Pass);
            *judged += 1;
        }
    }
    columns
        .iter()
        .map(|column| {
            let (held, judged) = counts
                .get(column.clause.as_str())
                .copied()
                .unwrap_or((0, 0));
            ClauseRow {
                id: column.id.clone(),
                clause: shown(&column.clause),
                title: words::clause_title(&column.clause).unwrap_or_default(),
                level: column.level.to_string(),
                statement: shown(&column.statement),
                held,
                judged,
            }
        })
        .collect()
}
