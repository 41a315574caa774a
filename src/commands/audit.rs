//! `audit`.

use std::collections::BTreeSet;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use dsh_reports::{Case, Conclusion, Run, Selection, Subject, SubjectKind, TranscriptRef, Verdict};
use dsh_scenarios::Profile;
use dsh_scenarios::format::Who;
use dsh_scenarios::monitor::{Rules, audit, audit_clauses};
use dsh_transcript::{Event, EventBody, View, jsonl};

use crate::cli::Global;
use crate::exit::Exit;
use crate::files;
use crate::forms::{self, Delivery, Form};
use crate::output::complain;
use crate::shell::Shell;

/// The most bytes that a recording may have.
const MAX_BYTES: u64 = 1_000_000_000;

/// Judge recordings of what passed between a client and its language server
///
/// A recording is what `tap` writes. Its client is taken for somebody else's: where a rule is a
/// decision of this project and not of LSP, breaking it is a note. What the recording has nothing
/// about is not judged, and listed as such. Nor are processes that `check` itself spoke to, out of
/// turn on purpose, to measure a server.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dsh-conform tap --log t.jsonl -- typescript-language-server --stdio
  dsh-conform audit t.jsonl
  dsh-conform audit t.jsonl --side both --profile transient
  dsh-conform audit *.jsonl --format json --out audit.json")]
pub(crate) struct Args {
    /// Recordings, JSON Lines of the format dsh-transcript/1
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What the client is held to: `lsp-base`, what LSP demands of every client, or `transient`,
    /// that and opening documents for one question only
    #[arg(long, value_name = "P", default_value = "lsp-base", value_parser = profile)]
    profile: Profile,
    /// Who is judged
    #[arg(long, value_enum, default_value_t)]
    side: Side,
    /// How to report; the first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "text")]
    format: Vec<Form>,
    /// The folder for several forms, or the file of a single one
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Who is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    /// The client
    #[default]
    Client,
    /// The language server
    Server,
    /// Each for itself
    Both,
}

impl Side {
    const fn all(self) -> &'static [Who] {
        match self {
            Self::Client => &[Who::Client],
            Self::Server => &[Who::Server],
            Self::Both => &[Who::Client, Who::Server],
        }
    }
}

fn profile(text: &str) -> Result<Profile, String> {
    match text {
        "lsp-base" => Ok(Profile::LspBase),
        "transient" => Ok(Profile::Transient),
        _ => Err("monitors judge the profiles lsp-base and transient".to_owned()),
    }
}

pub(crate) fn run(shell: &Shell, global: Global, args: &Args) -> Exit {
    let delivery = match Delivery::planned(&args.format, args.out.as_deref(), global.color) {
        Ok(delivery) => delivery,
        Err(message) => return refuse(&message),
    };
    let mut runs = Vec::new();
    let mut silent = Vec::new();
    for file in &args.files {
        let mut events = match read(&shell.absolute(file)) {
            Ok(events) => events,
            Err(problem) => return refuse(&format!("{}: {problem}", file.display())),
        };
        let skipped = leave_out_measuring(&mut events);
        if skipped > 0 {
            let (processes, are) = match skipped {
                1 => ("process", "is"),
                _ => ("processes", "are"),
            };
            complain(&format!(
                "{}: {skipped} {processes} that check measured the server with {are} not judged",
                file.display()
            ));
        }
        if !events.iter().any(is_of_the_wire) {
            silent.push(file);
            continue;
        }
        for side in args.side.all() {
            runs.push(judged(file, &events, args, *side));
        }
    }
    for file in &silent {
        complain(&format!(
            "{}: nothing passed between client and server; there is nothing to judge",
            file.display()
        ));
    }
    if runs.is_empty() {
        return Exit::NothingSelected;
    }
    let report = forms::report(runs, false);
    match delivery.deliver(&report) {
        Ok(()) => Exit::of(&report),
        Err(exit) => exit,
    }
}

fn refuse(message: &str) -> Exit {
    complain(&format!("error: {message}"));
    Exit::Usage
}

fn read(path: &Path) -> Result<Vec<Event>, String> {
    let file = files::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let too_large = || format!("is larger than {MAX_BYTES} bytes; record a shorter session");
    if file.size().is_some_and(|size| size > MAX_BYTES) {
        return Err(too_large());
    }
    // A pipe does not say how much there is.
    let mut file = file.take(MAX_BYTES + 1);
    let events = jsonl::read(BufReader::new(&mut file));
    if file.limit() == 0 {
        return Err(too_large());
    }
    events.map_err(|error| error.to_string())
}

fn is_of_the_wire(event: &Event) -> bool {
    matches!(event.body, EventBody::Frame(_) | EventBody::Stray { .. })
}

/// Takes out what passed with processes that a check spoke to without a client, whose errors are
/// meant, and gives how many they were.
fn leave_out_measuring(events: &mut Vec<Event>) -> usize {
    let raw: BTreeSet<u32> = View(events)
        .notes(dsh_e2e::RAW)
        .filter_map(|event| event.process)
        .collect();
    events.retain(|event| event.process.is_none_or(|process| !raw.contains(&process)));
    raw.len()
}

fn judged(file: &Path, events: &[Event], args: &Args, side: Who) -> Run {
    let path = file.display().to_string();
    let profiles = [args.profile];
    let rules = Rules {
        profiles: &profiles,
        foreign: true,
    };
    let (kind, name) = match side {
        Who::Client => (
            SubjectKind::Harness,
            format!("client of {}", server(events)),
        ),
        Who::Server => (SubjectKind::Server, server(events)),
    };
    let mut run = Run::new(Subject::named(kind, &name));
    run.profiles = vec![args.profile.to_string()];
    run.transcript = Some(path.clone());
    let times = || events.iter().map(|event| event.at_us);
    run.duration_us = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    // What the recording has nothing about was not run; the coverage says so, clause by clause.
    run.cases = audit(events, rules, side)
        .into_iter()
        .filter(|case| case.verdict != Verdict::Untestable)
        .map(|case| traced(case, &path, args, side))
        .collect();
    run.conclude(&audit_clauses(&profiles, side), Selection::All);
    if run.cases.is_empty() {
        run.conclusion = Conclusion::Untestable {
            reason: "nothing of what passed is anything that a rule is about".to_owned(),
            musts: Vec::new(),
        };
    }
    if side == Who::Client && args.side == Side::Client {
        run.remarks.extend(of_server(events, rules));
    }
    run
}

/// The case with its recording, and the command that judges it again.
fn traced(mut case: Case, path: &str, args: &Args, side: Who) -> Case {
    let decisive = case.evidence.iter().find(|event| event.decisive);
    if let Some(seq) = decisive.map(|event| event.seq) {
        case.transcript = Some(TranscriptRef {
            path: path.to_owned(),
            seq: Some(seq),
        });
        let side = match side {
            Who::Client => "client",
            Who::Server => "server",
        };
        let quoted = shlex::try_quote(path).map_or_else(|_| path.to_owned(), Into::into);
        case.reproduce = Some(format!(
            "dsh-conform audit {quoted} --profile {} --side {side}",
            args.profile
        ));
    }
    case
}

/// That the server is wrong too, where only the client was asked about.
fn of_server(events: &[Event], rules: Rules<'_>) -> Option<String> {
    let broken: Vec<String> = audit(events, rules, Who::Server)
        .into_iter()
        .filter(|case| case.verdict == Verdict::Fail)
        .map(|case| case.id)
        .collect();
    (!broken.is_empty()).then(|| {
        format!(
            "the server breaks {}; --side both shows where",
            broken.join(", ")
        )
    })
}

/// The programs that were started as servers.
fn server(events: &[Event]) -> String {
    let programs: BTreeSet<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ProcessStarted { argv, .. } => argv.first(),
            _ => None,
        })
        .map(|program| program.rsplit('/').next().unwrap_or(program))
        .collect();
    if programs.is_empty() {
        "a server without a name".to_owned()
    } else {
        programs.into_iter().collect::<Vec<_>>().join(", ")
    }
}
