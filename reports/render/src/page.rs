//! The page of reports: everything that is known of each subject in one HTML file that needs
//! nothing but itself.
//!
//! Servers stand in a matrix by clause and each in a part of its own; harnesses and mutants, which
//! have too many cases for that, by area. Without scripts all of it is there to read; with them it
//! can be filtered and sorted. Nothing is judged here.

mod case;
mod cycles;
mod ids;
mod matrix;
mod measured;
mod readiness;
mod sequence;
mod server;
mod suite;
mod text;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use self::ids::Ids;
use self::matrix::{ClauseRow, Matrix};
use self::server::Server;
use self::suite::Suite;
use self::text::{percent, shown};
use crate::conclusion::Conclusion;
use crate::model::{Report, Run, RunKind};
use crate::outside;
use crate::trajectory::text::{clipped, count};
use crate::verdict::Verdict;
use crate::words;

const STYLE: &str = include_str!("../templates/page.css");
/// The most characters of a reason that stand beside a verdict.
const REASON: usize = 80;

const SCRIPT: &str = include_str!("../templates/page.js");

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct PageError(#[from] askama::Error);

#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    title: String,
    policy: String,
    style: &'static str,
    script: &'static str,
    facts: Vec<Fact>,
    answer: Option<Answer>,
    notes: Vec<String>,
    matrix: Option<Matrix>,
    clauses: Vec<ClauseRow>,
    servers: Vec<Server>,
    suites: Vec<Suite>,
}

/// Something short that is told about something.
struct Fact {
    label: &'static str,
    text: String,
    /// Whether it is a path or a command.
    code: bool,
}

impl Fact {
    fn new(label: &'static str, text: &str) -> Self {
        Self {
            label,
            text: shown(text),
            code: false,
        }
    }

    fn code(label: &'static str, text: &str) -> Self {
        Self {
            code: true,
            ..Self::new(label, text)
        }
    }
}

/// What a run came to, in short.
#[derive(Clone)]
struct Badge {
    /// The name by which it is filtered.
    key: &'static str,
    /// The place in an order from good to bad.
    rank: u8,
    class: &'static str,
    mark: &'static str,
    word: &'static str,
    /// What it hangs on: how many notes, which settings, which clauses.
    more: String,
}

/// What the whole comes to, told before anything else.
struct Answer {
    /// How many servers qualify.
    held: usize,
    of: usize,
    /// How many of those that do need settings for it.
    with_settings: usize,
    verdicts: Vec<Group>,
}

/// The servers that came to the same.
struct Group {
    badge: Badge,
    /// Their part of all servers, in per cent.
    share: String,
    servers: Vec<Named>,
}

/// A server by its name, with what its verdict hangs on.
struct Named {
    id: String,
    name: String,
    more: String,
}

/// A run with the report that it is from.
#[derive(Clone, Copy)]
struct Source<'a> {
    report: &'a Report,
    run: &'a Run,
}

/// Makes one page of reports. The same reports give the same page, in whatever order servers come.
///
/// # Errors
/// None in practice: the template writes into memory.
pub fn render_page(reports: &[Report]) -> Result<String, PageError> {
    let reports: Vec<Report> = reports.iter().map(outside::fit).collect();
    let mut sources: Vec<Source<'_>> = reports
        .iter()
        .flat_map(|report| report.runs.iter().map(move |run| Source { report, run }))
        .collect();
    sources.sort_by_cached_key(|source| {
        let (run, platform) = (source.run, &source.report.platform);
        (
            is_suite(run),
            run.kind == RunKind::Power,
            run.subject.name.to_lowercase(),
            run.subject.version.clone(),
            platform.os.clone(),
            platform.arch.clone(),
            source.report.date.clone(),
        )
    });
    let (suites, servers): (Vec<Source<'_>>, Vec<Source<'_>>) =
        sources.iter().partition(|source| is_suite(source.run));
    let mut ids = Ids::new();
    let columns = matrix::columns(&servers, &mut ids);
    let parts: Vec<Server> = servers
        .iter()
        .map(|source| server::server(*source, &mut ids))
        .collect();
    let page = Page {
        title: title(&sources),
        policy: policy(),
        style: STYLE,
        script: SCRIPT,
        facts: facts(&sources),
        answer: answer(&parts),
        notes: notes(&sources),
        matrix: matrix::matrix(&columns, &servers, &parts),
        clauses: matrix::rows(&columns, &servers),
        suites: suites
            .iter()
            .map(|source| suite::suite(*source, &mut ids))
            .collect(),
        servers: parts,
    };
    Ok(page.render()?)
}

/// Whether there are too many cases to give each a column.
fn is_suite(run: &Run) -> bool {
    run.kind == RunKind::Power || run.subject.kind.is_harness()
}

/// Nothing is fetched, and no script runs but the page's own.
fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'"
    )
}

fn title(sources: &[Source<'_>]) -> String {
    let servers = sources
        .iter()
        .filter(|source| !is_suite(source.run))
        .count();
    match (sources, servers) {
        ([], _) => "A report without a run".to_owned(),
        ([one], _) => shown(&suite::subject(one.run)),
        (_, 0) => "Harnesses and mutants".to_owned(),
        (_, 1) => "A language server, judged".to_owned(),
        (_, servers) => format!("{servers} language servers, judged"),
    }
}

/// Who made it, where and when, as far as the reports agree; what they do not agree on stands with
/// each part.
fn facts(sources: &[Source<'_>]) -> Vec<Fact> {
    let mut facts = Vec::new();
    let listed = |label: &'static str, of: &dyn Fn(&Report) -> String| {
        let mut all: Vec<String> = sources.iter().map(|source| of(source.report)).collect();
        all.sort();
        all.dedup();
        Fact::new(label, &all.join(", "))
    };
    if sources.is_empty() {
        return facts;
    }
    facts.push(listed("Made by", &made_by));
    facts.push(listed("On", &platform));
    let mut dates: Vec<&str> = sources
        .iter()
        .filter_map(|source| source.report.date.as_deref())
        .collect();
    dates.sort_unstable();
    match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first == last => facts.push(Fact::new("Date", &moment(first))),
        (Some(first), Some(last)) => {
            facts.push(Fact::new(
                "Dates",
                &format!("{} to {}", moment(first), moment(last)),
            ));
        }
        _ => {}
    }
    facts
}

/// A moment as people write it: `2026-11-30T20:59:21Z` to the minute; anything else as it is.
fn moment(date: &str) -> String {
    let bare = date.strip_suffix('Z').and_then(|date| date.split_once('T'));
    match bare.map(|(day, time)| (day, time.rsplit_once(':'))) {
        Some((day, Some((time, _)))) => format!("{day} {time} UTC"),
        _ => date.to_owned(),
    }
}

fn made_by(report: &Report) -> String {
    format!("{} {}", report.tool.name, report.tool.version)
}

fn platform(report: &Report) -> String {
    format!("{} {}", report.platform.os, report.platform.arch)
}

fn notes(sources: &[Source<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    if sources.is_empty() {
        notes.push(words::NO_RUNS.to_owned());
    }
    if sources.iter().any(|source| source.report.interrupted) {
        notes.push(
            "Interrupted: this report is partial. What was not judged says nothing.".to_owned(),
        );
    }
    notes
}

/// What many servers come to; of one, its own part says it.
fn answer(servers: &[Server]) -> Option<Answer> {
    if servers.len() < 2 {
        return None;
    }
    let mut verdicts: Vec<Group> = Vec::new();
    for server in servers {
        let badge = &server.badge;
        let named = Named {
            id: server.id.clone(),
            name: clipped(&server.name, 40),
            more: match badge.key {
                "settings" | "not" => badge.more.clone(),
                _ => String::new(),
            },
        };
        match verdicts.iter_mut().find(|of| of.badge.key == badge.key) {
            Some(of) => of.servers.push(named),
            None => verdicts.push(Group {
                badge: badge.clone(),
                share: String::new(),
                servers: vec![named],
            }),
        }
    }
    verdicts.sort_by_key(|of| of.badge.rank);
    for of in &mut verdicts {
        of.share = percent(of.servers.len() as u64, servers.len() as u64);
    }
    let count = |keys: &[&str]| {
        let of = servers.iter();
        of.filter(|server| keys.contains(&server.badge.key)).count()
    };
    Some(Answer {
        held: count(&["qualified", "notes", "settings"]),
        of: servers.len(),
        with_settings: count(&["settings"]),
        verdicts,
    })
}

/// A conclusion in short.
fn badge(conclusion: &Conclusion) -> Badge {
    let noted = |notes: u64| match notes {
        0 => String::new(),
        _ => count(
            usize::try_from(notes).unwrap_or(usize::MAX),
            "note",
            "notes",
        ),
    };
    let all = |ids: &[String]| shown(&words::clauses(ids));
    let (key, rank, class, word, more) = match conclusion {
        Conclusion::Qualified { notes: 0 } => ("qualified", 0, "good", "qualified", String::new()),
        Conclusion::Qualified { notes } => {
            ("notes", 1, "good", "qualified with notes", noted(*notes))
        }
        Conclusion::QualifiedWithSettings { settings, .. } => (
            "settings",
            2,
            "note",
            "qualified with settings",
            shown(
                &settings
                    .iter()
                    .map(|setting| words::setting(setting))
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
        ),
        Conclusion::ProtocolOnly { notes } => {
            ("protocol", 3, "note", "protocol only", noted(*notes))
        }
        Conclusion::Partial { notes } => {
            ("partial", 4, "good", "selected probes hold", noted(*notes))
        }
        Conclusion::Conforms { notes, .. } => ("conforms", 0, "good", "conforms", noted(*notes)),
        Conclusion::SelectionHolds { notes, .. } => {
            ("holds", 4, "good", "selected cases hold", noted(*notes))
        }
        Conclusion::Noticed { .. } => ("noticed", 0, "good", "no survivor", String::new()),
        Conclusion::NotQualified { musts } => ("not", 5, "bad", "not qualified", all(musts)),
        Conclusion::DoesNotConform { musts } => {
            ("breaks", 5, "bad", "does not conform", all(musts))
        }
        Conclusion::Unnoticed { .. } => {
            ("unnoticed", 5, "bad", "mutants not killed", String::new())
        }
        Conclusion::Untestable { reason, musts } => (
            "untestable",
            6,
            "unknown",
            "untestable",
            match musts.as_slice() {
                [] => clipped(&shown(reason.lines().next().unwrap_or_default()), REASON),
                _ => all(musts),
            },
        ),
        Conclusion::Interrupted => ("interrupted", 7, "none", "interrupted", String::new()),
        Conclusion::HarnessError { .. } => ("fault", 8, "bad", "harness error", String::new()),
    };
    Badge {
        key,
        rank,
        class,
        mark: match class {
            _ if key == "fault" => "#",
            "good" => "✓",
            "note" => "!",
            "bad" => "✗",
            "unknown" => "?",
            _ => "–",
        },
        word,
        more,
    }
}

/// How a verdict looks: a class and a sign, which words stand beside in any case.
const fn look(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("good", "✓"),
        Verdict::Note => ("note", "!"),
        Verdict::Fail | Verdict::Timeout | Verdict::Crash => ("bad", "✗"),
        Verdict::Untestable => ("unknown", "?"),
        Verdict::NotApplicable => ("none", "–"),
        Verdict::Known => ("note", "~"),
        Verdict::HarnessError => ("bad", "#"),
    }
}
