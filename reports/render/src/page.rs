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
use self::text::shown;
use crate::conclusion::Conclusion;
use crate::model::{Report, Run, RunKind};
use crate::outside;
use crate::trajectory::text::count;
use crate::verdict::Verdict;
use crate::words;

const STYLE: &str = include_str!("../templates/page.css");
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
    tally: Vec<Tally>,
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

/// How many servers came to the same.
struct Tally {
    badge: Badge,
    servers: usize,
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
        tally: tally(&parts),
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
        (Some(first), Some(last)) if first == last => facts.push(Fact::new("Date", first)),
        (Some(first), Some(last)) => {
            facts.push(Fact::new("Dates", &format!("{first} to {last}")));
        }
        _ => {}
    }
    facts
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

fn tally(servers: &[Server]) -> Vec<Tally> {
    let mut tally: Vec<Tally> = Vec::new();
    for server in servers {
        match tally.iter_mut().find(|of| of.badge.key == server.badge.key) {
            Some(of) => of.servers += 1,
            None => tally.push(Tally {
                badge: server.badge.clone(),
                servers: 1,
            }),
        }
    }
    tally.sort_by_key(|of| of.badge.rank);
    tally
}

/// Settings in a few words: of one with a long value the name, since the whole stands with the
/// server itself.
fn named(settings: &[String]) -> String {
    const LONG: usize = 40;
    let short = |setting: &String| match setting.split_once(':') {
        Some((name, _)) if setting.chars().count() > LONG => format!("{name}: …"),
        _ => setting.clone(),
    };
    settings.iter().map(short).collect::<Vec<_>>().join(", ")
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
            shown(&named(settings)),
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
        Conclusion::Untestable { musts, .. } => ("untestable", 6, "bad", "untestable", all(musts)),
        Conclusion::Interrupted => ("interrupted", 7, "none", "interrupted", String::new()),
        Conclusion::HarnessError { .. } => ("fault", 8, "bad", "harness error", String::new()),
    };
    Badge {
        key,
        rank,
        class,
        mark: match class {
            "good" => "✓",
            "note" => "!",
            "bad" => "✗",
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
        Verdict::Untestable => ("bad", "?"),
        Verdict::NotApplicable => ("none", "–"),
        Verdict::Known => ("note", "~"),
        Verdict::HarnessError => ("bad", "#"),
    }
}
