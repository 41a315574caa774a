//! `report`.

use std::path::{Path, PathBuf};

use dsh_reports::Report;

use crate::artifacts::Artifacts;
use crate::cli::Global;
use crate::exit::Exit;
use crate::forms::{Delivery, Form};
use crate::output::{complain, say};
use crate::shell::{Shell, read_bytes, read_text};

/// The most bytes that a report may have.
const MAX_BYTES: u64 = 256_000_000;

/// Combine and show stored reports
#[derive(Clone, Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  dsh-conform report merge shard-1.json shard-2.json --out whole.json
  dsh-conform report merge shard-*.json --format markdown
  dsh-conform report merge runs/*.json --portable --out published.json
  dsh-conform report render whole.json --format junit --out whole.xml
  dsh-conform report render reports/published/*.json --format html --out page.html
  dsh-conform report trajectory run.jsonl --wire wire.jsonl --out run.html")]
pub(crate) enum Command {
    /// Join the reports of shards into one, with the counts and the conclusion of the whole
    ///
    /// They have to be about one subject and from one version of dsh-conform. Reports of several
    /// servers are put side by side. Where shards are missing, they are named, what there is is
    /// joined, and the exit status is 3.
    Merge {
        /// Reports as --format json writes them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Leave out what belongs to this machine, for publishing: `~` stands for the home folder,
        /// $WORKSPACE for the one a server worked in, and transcripts are not referred to
        #[arg(long)]
        portable: bool,
        #[command(flatten)]
        to: Json,
    },
    /// Show a session of an agent as one HTML page: input, model and tools over time
    ///
    /// The page needs nothing but itself. With a recording of the wire that was made by the same
    /// run, each call of the lsp tool shows its frames.
    Trajectory {
        /// A session as `agent --session` writes it
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// A recording as `agent --wire` writes it
        #[arg(long, value_name = "FILE")]
        wire: Option<PathBuf>,
        /// The page's file, in place of stdout
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show reports in another form
    ///
    /// Several are joined as `report merge` joins them. With --format html alone, they may also be
    /// about different subjects, about mutants, and from different platforms: one page shows all.
    Render {
        /// Reports as --format json writes them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        to: Text,
    },
}

/// Where it goes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Json {
    /// How to report; the first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "json")]
    format: Vec<Form>,
    /// The folder for several forms, or the file of a single one
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Where it goes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Text {
    /// How to report; the first goes to stdout, others into files
    #[arg(long, value_enum, value_name = "F", default_value = "text")]
    format: Vec<Form>,
    /// The folder for several forms, or the file of a single one
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

pub(crate) fn run(shell: &Shell, global: Global, command: &Command) -> Exit {
    let (format, out, report) = match command {
        Command::Merge {
            files,
            portable,
            to,
        } => {
            let joined = merged(shell, files);
            let joined = if *portable {
                joined.and_then(|report| without_machine(shell, &report))
            } else {
                joined
            };
            (&to.format, &to.out, joined)
        }
        Command::Render { files, to } => match &files[..] {
            [file] => (&to.format, &to.out, read(shell, file)),
            _ if to.format == [Form::Html] => return gathered(shell, files, to.out.as_deref()),
            _ => (&to.format, &to.out, merged(shell, files)),
        },
        Command::Trajectory { file, wire, out } => {
            return match page(shell, file, wire.as_deref()) {
                Ok(page) => leave(shell, out.as_deref(), &page),
                Err(message) => {
                    complain(&format!("error: {message}"));
                    Exit::Usage
                }
            };
        }
    };
    let delivered = report.and_then(|report| {
        let delivery = Delivery::planned(format, out.as_deref(), global.color)?
            .into_files(out.is_some() && format.len() == 1);
        Ok((delivery, report))
    });
    match delivered {
        Ok((delivery, report)) => match delivery.deliver(&report) {
            Ok(()) if is_whole(command, &report) => Exit::Fine,
            Ok(()) => Exit::NotCarriedOut,
            Err(exit) => exit,
        },
        Err(message) => {
            complain(&format!("error: {message}"));
            Exit::Usage
        }
    }
}

/// Whether a merged report has every shard; those that are missing are told.
fn is_whole(command: &Command, report: &Report) -> bool {
    if matches!(command, Command::Render { files, .. } if files.len() == 1) {
        return true;
    }
    tell_missing(report)
}

/// Whether no shard is missing; those that are, are told.
fn tell_missing(report: &Report) -> bool {
    let missing = dsh_reports::missing_shards(report);
    for shards in &missing {
        complain(&format!(
            "error: shards are missing: {shards}; run them with --shard, and merge all"
        ));
    }
    missing.is_empty()
}

fn merged(shell: &Shell, files: &[PathBuf]) -> Result<Report, String> {
    dsh_reports::merge(all(shell, files)?).map_err(|error| error.to_string())
}

/// The reports, each with the name of its file.
fn all(shell: &Shell, files: &[PathBuf]) -> Result<Vec<(String, Report)>, String> {
    let named = |file: &PathBuf| Ok((file.display().to_string(), read(shell, file)?));
    files.iter().map(named).collect()
}

/// One page of reports that may be about anything.
fn gathered(shell: &Shell, files: &[PathBuf], out: Option<&Path>) -> Exit {
    let reports = all(shell, files)
        .and_then(|reports| dsh_reports::gather(reports).map_err(|error| error.to_string()));
    let reports = match reports {
        Ok(reports) => reports,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Exit::Usage;
        }
    };
    let page = match dsh_reports::render_page(&reports) {
        Ok(page) => page,
        Err(error) => {
            complain(&format!("error: {error}"));
            return Exit::OurFault;
        }
    };
    // Each is told, so this does not stop at the first.
    let whole: Vec<bool> = reports.iter().map(tell_missing).collect();
    let whole = whole.into_iter().all(|whole| whole);
    let file = out.map(|out| {
        let artifacts = Artifacts::at(Some(out));
        let own = artifacts.file().map(Path::to_path_buf);
        own.unwrap_or_else(|| artifacts.path("report", "html"))
    });
    let exit = leave(shell, file.as_deref(), &page);
    if let (Exit::Fine, Some(file)) = (exit, &file) {
        complain(&format!("report: {}", file.display()));
    }
    match exit {
        Exit::Fine if !whole => Exit::NotCarriedOut,
        exit => exit,
    }
}

/// The report without what belongs to this machine.
fn without_machine(shell: &Shell, report: &Report) -> Result<Report, String> {
    let home = shell.variable("HOME");
    let home = home.ok_or("HOME is not set; set it, or leave out --portable")?;
    dsh_reports::portable(report, home).map_err(|error| error.to_string())
}

fn read(shell: &Shell, file: &Path) -> Result<Report, String> {
    let text = read_text(&shell.absolute(file), MAX_BYTES, "a report")
        .map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    dsh_reports::read(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The page of a session.
fn page(shell: &Shell, file: &Path, wire: Option<&Path>) -> Result<String, String> {
    // A line that was being written when the writer ended may end within a character.
    let bytes = read_bytes(&shell.absolute(file), MAX_BYTES, "a session")
        .map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    let session = dsh_reports::read_session(&bytes)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let recording = match wire {
        None => None,
        Some(wire) => {
            let bytes = read_bytes(&shell.absolute(wire), MAX_BYTES, "a recording")
                .map_err(|why| format!("cannot read {}: {why}", wire.display()))?;
            let events = dsh_transcript::jsonl::read(&bytes[..])
                .map_err(|error| format!("{}: {error}", wire.display()))?;
            Some(events)
        }
    };
    for note in session.notes() {
        complain(&format!("warning: {}: {note}", file.display()));
    }
    dsh_reports::render_trajectory(&session, recording.as_deref())
        .map_err(|error| error.to_string())
}

fn leave(shell: &Shell, out: Option<&Path>, page: &str) -> Exit {
    let Some(file) = out else {
        return match say(page) {
            Ok(()) => Exit::Fine,
            Err(_) => Exit::NotCarriedOut,
        };
    };
    match Artifacts::write(&shell.absolute(file), page.as_bytes()) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            complain(&format!("error: cannot write {}: {error}", file.display()));
            Exit::NotCarriedOut
        }
    }
}
