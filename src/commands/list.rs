//! `list`.

use std::fmt::Write as _;

use dsh_e2e::PROBES;
use dsh_e2e::catalogue::Catalogue;
use dsh_scenarios::Clauses;
use dsh_scenarios::format::Case;
use dsh_scenarios::monitor::MONITORS;
use dsh_scenarios::mutate::Mutants;
use dsh_scenarios::suite::{Suite, SuiteError, file_of};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{complain, say};

/// Columns of the output.
const WIDTH: usize = 80;

/// List what there is
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  dsh-conform list servers
  dsh-conform list scenarios cancel/
  dsh-conform list clauses --format json")]
pub(crate) enum Command {
    /// The scenarios of `run`, each with what has to hold
    Scenarios {
        /// Those only: what ids begin with, or a glob over ids
        #[arg(value_name = "FILTER")]
        filter: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// What every transcript is held to
    Monitors(Format),
    /// The mutants of `run --mutants`, each with what it does wrong
    Mutants(Format),
    /// The clauses: every rule that something is judged by
    Clauses(Format),
    /// The probes of `check`, each with what it does
    Probes(Format),
    /// The servers that are known by name
    Servers(Format),
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

pub(crate) fn run(command: &Command) -> Exit {
    let text = match command {
        Command::Scenarios { filter, format } => match scenarios(filter, format.format) {
            Ok(text) => text,
            Err(Unlisted { message, exit }) => {
                complain(&format!("error: {message}"));
                return exit;
            }
        },
        Command::Monitors(Format { format: Form::Text }) => monitors(),
        Command::Mutants(Format { format: Form::Text }) => mutants(),
        Command::Clauses(Format { format: Form::Text }) => clauses(),
        Command::Probes(Format { format: Form::Text }) => probes(),
        Command::Servers(Format { format: Form::Text }) => servers(),
        Command::Monitors(Format { format: Form::Json }) => format!("{:#}\n", monitor_records()),
        Command::Mutants(Format { format: Form::Json }) => format!("{:#}\n", mutant_records()),
        Command::Clauses(Format { format: Form::Json }) => format!("{:#}\n", clause_records()),
        Command::Probes(Format { format: Form::Json }) => format!("{:#}\n", probe_records()),
        Command::Servers(Format { format: Form::Json }) => format!("{:#}\n", server_records()),
    };
    match say(&text) {
        Ok(()) => Exit::Fine,
        Err(_) => Exit::NotCarriedOut,
    }
}

/// Why scenarios are not listed.
#[derive(Debug)]
struct Unlisted {
    message: String,
    exit: Exit,
}

/// The scenario files that the filters select, a matrix as one. What cannot be read is told.
fn scenarios(filters: &[String], form: Form) -> Result<String, Unlisted> {
    let refused = |error: SuiteError| Unlisted {
        message: error.to_string(),
        exit: match error {
            SuiteError::NothingFits { .. } => Exit::NothingSelected,
            _ => Exit::Usage,
        },
    };
    let suite = Suite::embedded().map_err(refused)?;
    for broken in suite.errors() {
        complain(&broken.to_string());
    }
    let mut files: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in suite.select(filters).map_err(refused)? {
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

fn mutants() -> String {
    let mut text = String::new();
    let mut last = "";
    for (file, mutant) in Mutants::embedded().iter() {
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

fn mutant_records() -> Value {
    Mutants::embedded()
        .iter()
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

fn monitors() -> String {
    let mut text = String::new();
    for monitor in MONITORS {
        let clauses = monitor.clauses.join(", ");
        let _ = writeln!(text, "{}: {clauses} ({})", monitor.name, monitor.profile);
        paragraph(&mut text, 6, monitor.statement);
    }
    text
}

fn monitor_records() -> Value {
    MONITORS
        .iter()
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

fn clauses() -> String {
    let mut text = String::new();
    for section in Clauses::embedded().sections() {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}: {}", section.section, section.title);
        for clause in &section.clauses {
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

fn clause_records() -> Value {
    let all: Vec<_> = Clauses::embedded().iter().collect();
    serde_json::to_value(all).unwrap_or_default()
}

fn probes() -> String {
    let mut text = String::new();
    for probe in &PROBES {
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

fn probe_records() -> Value {
    PROBES
        .iter()
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

fn servers() -> String {
    let mut text = String::new();
    for entry in Catalogue::builtin().entries() {
        let extensions: Vec<&str> = entry.extensions.keys().map(String::as_str).collect();
        let _ = write!(text, "{:<28} {:<12} ", entry.name, entry.language);
        hanging(&mut text, 42, &extensions.join(" "));
    }
    text.push_str("\nwhat is there of them on this machine: dsh-conform servers doctor\n");
    text
}

fn server_records() -> Value {
    serde_json::to_value(Catalogue::builtin().entries()).unwrap_or_default()
}

/// The name that a value has in data.
pub(super) fn shown<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        other => other.unwrap_or_default().to_string(),
    }
}

/// Writes `content` behind what is on the line already, going on at `indent`.
pub(super) fn hanging(text: &mut String, indent: usize, content: &str) {
    let mut column = indent;
    let mut first = true;
    for word in content.split_whitespace() {
        let width = word.chars().count();
        if !first && column + 1 + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
            first = true;
        }
        if !first {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
        first = false;
    }
    text.push('\n');
}

/// Writes a paragraph that is indented as a whole.
pub(super) fn paragraph(text: &mut String, indent: usize, content: &str) {
    text.push_str(&" ".repeat(indent));
    hanging(text, indent, content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_fits_80_columns_and_has_records() {
        let all = scenarios(&[], Form::Text).unwrap();
        for text in [clauses(), probes(), servers(), monitors(), mutants(), all] {
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
        let all = serde_json::from_str(&scenarios(&[], Form::Json).unwrap()).unwrap();
        for records in [
            clause_records(),
            probe_records(),
            server_records(),
            monitor_records(),
            mutant_records(),
            all,
        ] {
            assert!(records.as_array().is_some_and(|all| !all.is_empty()));
        }
    }
}
