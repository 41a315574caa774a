//! What a check leaves: the report, in each form, and transcripts.

use std::path::PathBuf;

use dsh_e2e::{CheckError, Checked};
use dsh_reports::{
    Conclusion, FORMAT, Platform, Report, Run, Subject, SubjectKind, TextOptions, Tool,
    render_json, render_text,
};

use super::{Args, Format};
use crate::artifacts::Artifacts;
use crate::exit::Exit;
use crate::output::{Color, complain, say};
use crate::shell;

/// The runs as they come in, and where they go.
pub(super) struct Outcome {
    names: Vec<String>,
    runs: Vec<Option<Run>>,
    artifacts: Artifacts,
    formats: Vec<Format>,
    keep: bool,
    color: Color,
    fault: bool,
    not_carried_out: bool,
}

impl Outcome {
    /// Where the report of these arguments goes.
    pub(super) fn planned(args: &Args) -> Result<Self, String> {
        let artifacts = Artifacts::at(args.out.as_deref());
        let mut formats: Vec<Format> = Vec::new();
        for format in &args.format {
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
        if let (Some(file), true) = (artifacts.file(), formats.len() > 1) {
            return Err(format!(
                "--out {} is one file, and there are {} formats; give a folder",
                file.display(),
                formats.len()
            ));
        }
        Ok(Self {
            names: Vec::new(),
            runs: Vec::new(),
            artifacts,
            formats,
            keep: args.keep,
            color: Color::Never,
            fault: false,
            not_carried_out: false,
        })
    }

    pub(super) fn colored(mut self, color: Color) -> Self {
        self.color = color;
        self
    }

    /// Makes room for the run of the next server.
    pub(super) fn expect(&mut self, name: &str) {
        self.names.push(name.to_owned());
        self.runs.push(None);
    }

    /// Takes the run of the server at `index`; a failure leaves its transcript.
    pub(super) fn take(&mut self, index: usize, mut checked: Checked) {
        let wanted =
            self.keep || checked.run.is_red() || checked.run.conclusion == Conclusion::Interrupted;
        if wanted && !checked.events.is_empty() {
            let path = self.artifacts.path(&self.names[index], "jsonl");
            if let Err(error) = checked.leave_transcript(&path) {
                complain(&format!(
                    "warning: cannot write {}: {error}",
                    path.display()
                ));
            }
        }
        if let Some(folder) = &checked.workspace {
            checked
                .run
                .remarks
                .push(format!("workspace kept: {}", folder.display()));
        }
        self.runs[index] = Some(checked.run);
    }

    pub(super) fn not_carried_out(&mut self, index: usize, error: &CheckError) {
        complain(&format!("error: {}: {error}", self.names[index]));
        self.not_carried_out = true;
    }

    pub(super) fn fault(&mut self, error: &str) {
        complain(&format!(
            "error: a check ended by a fault of dsh-conform {} itself: {error}; please report it",
            env!("CARGO_PKG_VERSION")
        ));
        self.fault = true;
    }

    /// Writes the report and says how it went.
    pub(super) fn finish(self, interrupted: bool) -> Exit {
        let report = Report {
            format: FORMAT.to_owned(),
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            platform: Platform {
                os: std::env::consts::OS.to_owned(),
                arch: std::env::consts::ARCH.to_owned(),
            },
            date: shell::date(),
            interrupted,
            runs: self
                .runs
                .into_iter()
                .zip(&self.names)
                .filter_map(|(run, name)| {
                    run.or_else(|| interrupted.then(|| empty(name, Conclusion::Interrupted)))
                })
                .collect(),
        };
        let mut written = true;
        for (index, format) in self.formats.iter().enumerate() {
            let (file, extension) = match format {
                Format::Text => (render_file_text(&report), "txt"),
                Format::Json => (render_json(&report), "json"),
            };
            let Ok(text) = file else {
                complain("error: the report cannot be written as JSON");
                return Exit::OurFault;
            };
            let path: Option<PathBuf> = match (self.artifacts.file(), index) {
                (Some(file), _) => Some(file.to_path_buf()),
                (None, 0) => None,
                (None, _) => Some(self.artifacts.path("report", extension)),
            };
            written &= match path {
                Some(path) => leave(&path, &text),
                None if *format == Format::Text => {
                    let color = self.color.on_stdout();
                    to_stdout(&render_text(
                        &report,
                        TextOptions {
                            color,
                            ..TextOptions::default()
                        },
                    ))
                }
                None => to_stdout(&text),
            };
        }
        if interrupted
            && self.artifacts.file().is_none()
            && let Ok(text) = render_json(&report)
        {
            written &= leave(&self.artifacts.path("report", "json"), &text);
        }
        match Exit::of(&report) {
            _ if self.fault => Exit::OurFault,
            Exit::Fine if !written || self.not_carried_out => Exit::NotCarriedOut,
            exit => exit,
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the other form can fail")]
fn render_file_text(report: &Report) -> Result<String, serde_json::Error> {
    Ok(render_text(report, TextOptions::default()))
}

fn leave(path: &std::path::Path, text: &str) -> bool {
    match Artifacts::write(path, text) {
        Ok(()) => {
            complain(&format!("report: {}", path.display()));
            true
        }
        Err(error) => {
            complain(&format!("error: cannot write {}: {error}", path.display()));
            false
        }
    }
}

fn to_stdout(text: &str) -> bool {
    say(text).is_ok()
}

/// The run of a server that is not there.
pub(super) fn absent(name: &str, reason: &str) -> Checked {
    let conclusion = Conclusion::Untestable {
        reason: reason.to_owned(),
        musts: Vec::new(),
    };
    Checked {
        run: empty(name, conclusion),
        events: Vec::new(),
        workspace: None,
    }
}

/// A run in which nothing was judged.
fn empty(name: &str, conclusion: Conclusion) -> Run {
    let mut run = Run::new(Subject::named(SubjectKind::Server, name));
    run.profiles = vec!["server".to_owned()];
    run.conclusion = conclusion;
    run
}
