//! `list`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dsh_e2e::PROBES;
use dsh_e2e::catalogue::{Catalogue, Entry};
use dsh_e2e::samples::{self, Part as Asked, Sample};
use dsh_reports::clipped;
use dsh_scenarios::Clauses;
use dsh_scenarios::format::Case;
use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::mutate::{self, Mutants};
use dsh_scenarios::suite::{Suite, SuiteError, file_of, fits, nearest_name};
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::exit::Exit;
use crate::lines::{hanging, paragraph};
use crate::output::{complain, say};
use crate::shell::Shell;

/// List what there is
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  dsh-conform list servers
  dsh-conform list scenarios cancel/
  dsh-conform list clauses 'CAN-*'
  dsh-conform list clauses --format json")]
pub(crate) enum Command {
    /// The scenarios of `run`, each with what has to hold
    Scenarios {
        /// Those only: a part of their ids, or a glob over ids
        #[arg(value_name = "FILTER")]
        filter: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// What every transcript is held to
    Monitors(Part),
    /// The mutants of `run --mutants`, each with what it does wrong
    ///
    /// `runtime/` names those of an area, as it does there.
    Mutants(Part),
    /// The clauses: every rule that something is judged by
    Clauses(Part),
    /// The probes of `check`, each with what it does
    Probes(Part),
    /// The servers that are known by name
    Servers(Part),
    /// The sample workspaces of `check`, each with what is asked in it
    ///
    /// Where one lacks a part, the reason is given.
    Samples(Part),
}

/// Which of them, and how to show them.
#[derive(Debug, clap::Args)]
pub(crate) struct Part {
    /// Those only: a part of their names, or a glob over names
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// How to show it.
#[derive(Debug, clap::Args)]
pub(crate) struct Format {
    /// `json` prints the records
    #[arg(long, value_enum, default_value_t)]
    format: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    #[default]
    Text,
    Json,
}

pub(crate) fn run(shell: &Shell, command: &Command) -> Exit {
    let text = match listed(shell, command) {
        Ok(text) => text,
        Err(Unlisted { message, exit }) => {
            complain(&format!("error: {message}"));
            return exit;
        }
    };
    match say(&text) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}

/// What is wanted of a list, in one of its forms.
type Written<T> = fn(&Wanted) -> T;

fn listed(shell: &Shell, command: &Command) -> Result<String, Unlisted> {
    let (args, wanted, text, records): (_, _, Written<String>, Written<Value>) = match command {
        Command::Scenarios { filter, format } => return scenarios(filter, format.format),
        Command::Monitors(args) => {
            let names = MONITORS.iter().map(|monitor| (monitor.name, ""));
            let wanted = Wanted::read("monitors", &args.filter, names)?;
            (args, wanted, monitors, monitor_records)
        }
        Command::Mutants(args) => (args, wanted_mutants(&args.filter)?, mutants, mutant_records),
        Command::Clauses(args) => {
            let names = Clauses::embedded().iter();
            let names = names.map(|clause| (clause.id.as_str(), ""));
            let wanted = Wanted::read("clauses", &args.filter, names)?;
            (args, wanted, clauses, clause_records)
        }
        Command::Probes(args) => {
            let names = PROBES.iter().map(|probe| (probe.clause, probe.summary));
            let wanted = Wanted::read("probes", &args.filter, names)?;
            (args, wanted, probes, probe_records)
        }
        Command::Servers(args) => return known_servers(shell, args),
        Command::Samples(args) => {
            let names = samples::builtin().iter();
            let names = names.map(|sample| (&*sample.name, &*sample.language));
            let wanted = Wanted::read("samples", &args.filter, names)?;
            (args, wanted, sample_list, sample_records)
        }
    };
    Ok(match args.format.format {
        Form::Text => text(&wanted),
        Form::Json => format!("{:#}\n", records(&wanted)),
    })
}

/// The mutants that were asked for. `runtime/` means those that it means to `run --mutants`.
fn wanted_mutants(filters: &[String]) -> Result<Wanted, Unlisted> {
    let (areas, filters): (Vec<String>, Vec<String>) =
        filters.iter().cloned().partition(|f| f.ends_with('/'));
    let mut names = BTreeSet::new();
    for area in &areas {
        let found = mutate::select(std::slice::from_ref(area));
        if found.is_empty() {
            let message = format!(
                "none of the mutants is of {area:?}; `dsh-conform list mutants` shows them all"
            );
            let exit = Exit::NothingSelected;
            return Err(Unlisted { message, exit });
        }
        names.extend(found.into_iter().map(|(_, mutant)| mutant.name));
    }
    if areas.is_empty() || !filters.is_empty() {
        let all = Mutants::embedded().iter();
        let all = all.map(|(file, mutant)| (&*mutant.name, file));
        match Wanted::read("mutants", &filters, all)?.names {
            None => return Ok(Wanted::default()),
            Some(others) => names.extend(others),
        }
    }
    Ok(Wanted { names: Some(names) })
}

/// What of a list was asked for.
#[derive(Debug, Default)]
struct Wanted {
    /// Names; none for all.
    names: Option<BTreeSet<String>>,
}

impl Wanted {
    /// Of what is called so, with what each goes by besides. A filter that is a name means that
    /// alone.
    fn read<'a>(
        what: &str,
        filters: &[String],
        all: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Unlisted> {
        if filters.is_empty() {
            return Ok(Self::default());
        }
        let all: Vec<(&str, &str)> = all.collect();
        let mut names = BTreeSet::new();
        for filter in filters {
            let exact = all
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(filter));
            let meant = |(name, other): &&(&str, &str)| {
                if exact {
                    name.eq_ignore_ascii_case(filter)
                } else {
                    fits(filter, name) || fits(filter, other)
                }
            };
            let found: Vec<&str> = all.iter().filter(meant).map(|(name, _)| *name).collect();
            if found.is_empty() {
                let written = if what == "clauses" {
                    filter.to_uppercase()
                } else {
                    filter.clone()
                };
                let way_out = match nearest_name(&written, all.iter().map(|(name, _)| *name)) {
                    Some(name) => format!("did you mean {name}?"),
                    None => format!("`dsh-conform list {what}` shows them all"),
                };
                return Err(Unlisted {
                    message: format!("none of the {what} fits {filter:?}; {way_out}"),
                    exit: Exit::NothingSelected,
                });
            }
            names.extend(found.into_iter().map(str::to_owned));
        }
        let names = Some(names);
        Ok(Self { names })
    }

    fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }
}

/// Why nothing is listed.
#[derive(Debug)]
struct Unlisted {
    message: String,
    exit: Exit,
}

/// The scenario files that the filters select, a matrix as one. What cannot be read is told.
fn scenarios(filters: &[String], form: Form) -> Result<String, Unlisted> {
    let suite = Suite::embedded()?;
    for broken in suite.errors() {
        complain(&broken.to_string());
    }
    scenarios_of(&suite, filters, form)
}

impl From<SuiteError> for Unlisted {
    fn from(error: SuiteError) -> Self {
        Self {
            message: error.to_string(),
            exit: match error {
                SuiteError::NothingFits { .. } => Exit::NothingSelected,
                _ => Exit::Usage,
            },
        }
    }
}

fn scenarios_of(suite: &Suite, filters: &[String], form: Form) -> Result<String, Unlisted> {
    let mut files: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in suite.select(filters)? {
        let file = file_of(&case.id);
        match files.last_mut() {
            Some((last, cases)) if *last == file => cases.push(case),
            _ => files.push((file, vec![case])),
        }
    }
    Ok(match form {
        Form::Text => scenario_list(&files),
        Form::Json => format!("{:#}\n", scenario_records(&files)),
    })
}

fn scenario_list(files: &[(&str, Vec<&Case>)]) -> String {
    let mut text = String::new();
    let mut area = "";
    for (file, cases) in files {
        let (of, name) = file.rsplit_once('/').unwrap_or(("", file));
        if of != area {
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "{of}/");
            area = of;
        }
        let count = match cases.len() {
            1 => String::new(),
            count => format!(" ({count} cases)"),
        };
        let _ = writeln!(text, "  {name}{count}");
        if let Some(case) = cases.first() {
            paragraph(&mut text, 6, &case.scenario.title);
        }
    }
    text
}

fn scenario_records(files: &[(&str, Vec<&Case>)]) -> Value {
    files
        .iter()
        .filter_map(|(file, cases)| {
            let first = cases.first()?;
            let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
            Some(json!({
                "id": file,
                "title": first.scenario.title,
                "clauses": first.scenario.clauses,
                "profile": first.scenario.profile,
                "file": first.file,
                "cases": ids,
            }))
        })
        .collect()
}

fn mutants(wanted: &Wanted) -> String {
    let mut text = String::new();
    let mut last = "";
    let all = Mutants::embedded().iter();
    for (file, mutant) in all.filter(|(_, mutant)| wanted.has(&mutant.name)) {
        if file != last {
            if !text.is_empty() {
                text.push('\n');
            }
            let area = file.trim_start_matches("mutants/");
            let _ = writeln!(text, "{}", area.trim_end_matches(".yaml"));
            last = file;
        }
        let _ = writeln!(text, "  {}: {}", mutant.name, mutant.breaks.join(", "));
        paragraph(&mut text, 6, &mutant.title);
    }
    text
}

fn mutant_records(wanted: &Wanted) -> Value {
    Mutants::embedded()
        .iter()
        .filter(|(_, mutant)| wanted.has(&mutant.name))
        .map(|(file, mutant)| {
            json!({
                "name": mutant.name,
                "title": mutant.title,
                "breaks": mutant.breaks,
                "file": format!("scenarios/{file}"),
            })
        })
        .collect()
}

fn monitors(wanted: &Wanted) -> String {
    let mut text = String::new();
    for monitor in MONITORS.iter().filter(|monitor| wanted.has(monitor.name)) {
        let clauses = monitor.clauses.join(", ");
        let _ = writeln!(text, "{}: {clauses} ({})", monitor.name, monitor.profile);
        paragraph(&mut text, 6, monitor.statement);
    }
    text
}

fn monitor_records(wanted: &Wanted) -> Value {
    MONITORS
        .iter()
        .filter(|monitor| wanted.has(monitor.name))
        .map(|monitor| {
            json!({
                "name": monitor.name,
                "clauses": monitor.clauses,
                "profile": monitor.profile,
                "statement": monitor.statement,
            })
        })
        .collect()
}

fn clauses(wanted: &Wanted) -> String {
    let mut text = String::new();
    for section in Clauses::embedded().sections() {
        let mut of = section
            .clauses
            .iter()
            .filter(|clause| wanted.has(&clause.id))
            .peekable();
        if of.peek().is_none() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}: {}", section.section, section.title);
        for clause in of {
            let level = clause.level;
            if clause.id.len() > 8 {
                let _ = writeln!(text, "  {} {level}", clause.id);
                paragraph(&mut text, 18, &clause.statement);
            } else {
                let _ = write!(text, "  {:<8} {level:<7}", clause.id);
                hanging(&mut text, 18, &clause.statement);
            }
        }
    }
    text
}

fn clause_records(wanted: &Wanted) -> Value {
    let all = Clauses::embedded().iter();
    let all: Vec<_> = all.filter(|clause| wanted.has(&clause.id)).collect();
    serde_json::to_value(all).unwrap_or_default()
}

fn probes(wanted: &Wanted) -> String {
    let mut text = String::new();
    for probe in PROBES.iter().filter(|probe| wanted.has(probe.clause)) {
        let _ = write!(
            text,
            "{:<8} {:<7} {:<10} ",
            probe.clause,
            probe.level(),
            probe.group
        );
        hanging(&mut text, 28, probe.summary);
    }
    text
}

fn probe_records(wanted: &Wanted) -> Value {
    PROBES
        .iter()
        .filter(|probe| wanted.has(probe.clause))
        .map(|probe| {
            json!({
                "clause": probe.clause,
                "level": probe.level(),
                "group": probe.group,
                "summary": probe.summary,
            })
        })
        .collect()
}

fn wanted_samples(wanted: &Wanted) -> impl Iterator<Item = &'static Sample> {
    samples::builtin()
        .iter()
        .filter(|sample| wanted.has(&sample.name))
}

fn sample_list(wanted: &Wanted) -> String {
    let mut text = String::new();
    for sample in wanted_samples(wanted) {
        let _ = writeln!(text, "{} ({})", sample.name, sample.language);
        paragraph(&mut text, 4, &sample.summary);
        for part in Asked::ALL {
            if let Some(reason) = sample.reason(part) {
                paragraph(&mut text, 4, &format!("without {part}: {reason}"));
            }
        }
    }
    text
}

fn sample_records(wanted: &Wanted) -> Value {
    let records = wanted_samples(wanted).map(|sample| {
        let parts = || Asked::ALL.into_iter();
        let has: Vec<_> = parts().filter(|part| sample.has(*part)).collect();
        let without: BTreeMap<_, _> = parts()
            .filter_map(|part| Some((part, sample.reason(part)?)))
            .collect();
        json!({
            "name": sample.name,
            "language": sample.language,
            "summary": sample.summary,
            "files": sample.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
            "has": has,
            "without": without,
        })
    });
    records.collect()
}

/// The servers of the catalogue, a user's own among them.
fn known_servers(shell: &Shell, args: &Part) -> Result<String, Unlisted> {
    let catalogue = shell.catalogue().map_err(|message| Unlisted {
        message,
        exit: Exit::Usage,
    })?;
    let entries = catalogue.entries().iter();
    let names = entries.map(|entry| (&*entry.name, &*entry.language));
    let wanted = Wanted::read("servers", &args.filter, names)?;
    Ok(match args.format.format {
        Form::Text => servers(&catalogue, &wanted),
        Form::Json => format!("{:#}\n", server_records(&catalogue, &wanted)),
    })
}

fn servers(catalogue: &Catalogue, wanted: &Wanted) -> String {
    let all = catalogue.entries().iter();
    let mut text: String = all
        .filter(|entry| wanted.has(&entry.name))
        .map(|entry| server_row(entry, catalogue.is_own(&entry.name)))
        .collect();
    text.push_str("\nwhat is there of them on this machine: dsh-conform servers doctor\n");
    text
}

fn server_row(entry: &Entry, is_own: bool) -> String {
    let mut text = String::new();
    let extensions: Vec<&str> = entry.extensions.keys().map(String::as_str).collect();
    let mut extensions = extensions.join(" ");
    if is_own {
        extensions.push_str(" (your own)");
    }
    let (name, language) = (&*entry.name, single(&entry.language));
    if name.width() <= 28 && language.width() <= 12 {
        text.push_str(&padded(name, 29));
        text.push_str(&padded(&language, 13));
        hanging(&mut text, 42, &extensions);
    } else {
        // Columns stay where they are: what has no room in its own goes below.
        let _ = writeln!(text, "{name}");
        paragraph(&mut text, 29, &language);
        paragraph(&mut text, 42, &extensions);
    }
    text
}

/// The text with blanks behind it, up to a column.
fn padded(text: &str, column: usize) -> String {
    format!("{text}{}", " ".repeat(column.saturating_sub(text.width())))
}

/// The most columns that one word of a language has.
const WORD: usize = 50;

/// The text in one line, with no word that is wider than a line has room for.
fn single(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        clipped(&word, WORD)
    });
    words.collect::<Vec<_>>().join(" ")
}

fn server_records(catalogue: &Catalogue, wanted: &Wanted) -> Value {
    let all = catalogue.entries().iter();
    let all: Vec<_> = all.filter(|entry| wanted.has(&entry.name)).collect();
    serde_json::to_value(all).unwrap_or_default()
}

/// The name that a value has in data.
pub(super) fn shown<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        other => other.unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_fits_80_columns_and_has_records() {
        let suite = Suite::embedded().unwrap();
        let all = scenarios_of(&suite, &[], Form::Text).unwrap();
        assert!(all.contains("cancel/\n") && all.contains("crash/\n"));
        let every = &Wanted::default();
        let known = Catalogue::builtin();
        let lists = [clauses, probes, monitors, mutants, sample_list];
        let lists = lists.map(|list| list(every)).into_iter();
        for text in lists.chain([all, servers(known, every)]) {
            for line in text.lines() {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line) <= crate::lines::WIDTH,
                    "{line}"
                );
            }
        }
        let mut entry = known.entries()[0].clone();
        for (name, language) in [
            ("a-name-that-is-longer-than-its-column", "C"),
            (
                "b",
                "Structured Query Language of a kind that nobody has heard of so far, ever",
            ),
            (
                "c",
                "日本語日本語日本語日本語 日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
            ),
            ("d", &"x".repeat(200)),
        ] {
            name.clone_into(&mut entry.name);
            language.clone_into(&mut entry.language);
            let row = server_row(&entry, false);
            for line in row.lines() {
                assert!(line.width() <= crate::lines::WIDTH, "{row}");
            }
            let extensions = entry.extensions.keys().next().unwrap();
            let at = row.lines().find_map(|line| line.find(extensions.as_str()));
            assert!(at >= Some(42), "{row}");
        }
        let all = scenarios_of(&suite, &[], Form::Json).unwrap();
        let all = serde_json::from_str(&all).unwrap();
        for records in [
            clause_records(every),
            probe_records(every),
            server_records(known, every),
            monitor_records(every),
            mutant_records(every),
            sample_records(every),
            all,
        ] {
            assert!(records.as_array().is_some_and(|all| !all.is_empty()));
        }
        let bash = Wanted::read(
            "samples",
            &["bash".to_owned()],
            [("bash", "Bash")].into_iter(),
        );
        let bash = sample_list(&bash.unwrap());
        assert!(
            bash.contains("without crlf: a shell takes the CR"),
            "{bash}"
        );
        let nothing = ["cancle/x".to_owned()];
        let refused = scenarios_of(&suite, &nothing, Form::Text).unwrap_err();
        assert_eq!(refused.exit, Exit::NothingSelected);
        assert!(refused.message.contains("cancle/x"), "{}", refused.message);
    }
}
