//! What a check leaves: the report, in each form, and transcripts.

use std::path::Path;

use dsh_e2e::Checked;
use dsh_reports::{Conclusion, Division, Report, Run, Subject, SubjectKind};

use super::Args;
use super::baseline::Kept;
use super::emit;
use crate::artifacts::Artifacts;
use crate::exit::Exit;
use crate::forms::{self, Delivery, Form};
use crate::output::{Color, complain, say};
use crate::shell::Shell;

/// The runs as they come in, and where they go.
pub(super) struct Outcome {
    names: Vec<String>,
    runs: Vec<Option<Run>>,
    delivery: Delivery,
    keep: bool,
    fault: bool,
    /// Whether a folder was named for the reports.
    into_folder: bool,
    baseline: Option<Kept>,
    printed: Printed,
}

/// What is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    /// The report.
    Report,
    /// The deployment that makes the servers work.
    Deployment,
}

impl Outcome {
    /// Where the report of these arguments goes.
    pub(super) fn planned(shell: &Shell, args: &Args, color: Color) -> Result<Self, String> {
        Ok(Self {
            names: Vec::new(),
            runs: Vec::new(),
            delivery: Delivery::planned(&args.format, args.out.as_deref(), color)?,
            keep: args.keep,
            fault: false,
            into_folder: args.out.is_some(),
            baseline: Kept::read(shell, args)?,
            printed: if args.emit_config {
                Printed::Deployment
            } else {
                Printed::Report
            },
        })
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
            let path = self.delivery.artifacts.path(&self.names[index], "jsonl");
            if let Err(error) = checked.leave_transcript(&path, Artifacts::write) {
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

    /// The folder of everything that is left.
    pub(super) fn folder(&self) -> &Path {
        self.delivery.artifacts.folder()
    }

    /// The run of the server at `index`, where it was taken.
    pub(super) fn run(&self, index: usize) -> Option<&Run> {
        self.runs.get(index)?.as_ref()
    }

    /// The check of the server at `index` ended by a fault of our own.
    pub(super) fn broken(&mut self, index: usize, reason: &str) {
        let reason = reason.to_owned();
        self.runs[index] = Some(empty(
            &self.names[index],
            Conclusion::HarnessError { reason },
        ));
    }

    pub(super) fn fault(&mut self, error: &str) {
        complain(&format!(
            "error: a check ended by a fault of dsh-conform {} itself: {error}; please report it",
            env!("CARGO_PKG_VERSION")
        ));
        self.fault = true;
    }

    /// Writes the report and says how it went.
    pub(super) fn finish(mut self, interrupted: bool, division: Option<Division>) -> Exit {
        let runs = std::mem::take(&mut self.runs)
            .into_iter()
            .zip(&self.names)
            .filter_map(|(run, name)| {
                run.or_else(|| interrupted.then(|| empty(name, Conclusion::Interrupted)))
            })
            .collect();
        let mut report = forms::report(runs, interrupted);
        report.division = division;
        let kept = self.baseline.as_mut();
        let settled = kept.is_none_or(|kept| kept.settle(&mut report));
        let delivered = self.deliver(&report);
        match (self.status(&report), delivered) {
            _ if !settled => Exit::NotCarriedOut,
            (_, Err(Exit::OurFault)) => Exit::OurFault,
            _ if self.fault => Exit::OurFault,
            (Exit::Fine, Err(exit)) | (exit, _) => exit,
        }
    }
}

impl Outcome {
    /// Writes the report, or the deployment in its place.
    fn deliver(&self, report: &Report) -> Result<(), Exit> {
        if self.printed == Printed::Report {
            let delivery = self.delivery.clone();
            if !self.into_folder || delivery.artifacts.file().is_some() {
                return delivery.deliver(report);
            }
            // A folder holds all of it, and what is printed is for people: of one server the
            // report, of several an overview.
            let printed = if report.runs.len() > 1 {
                dsh_reports::render_overview(report)
            } else {
                delivery.in_text(report)?
            };
            delivery.with(Form::Json).into_files(true).deliver(report)?;
            return say(&printed).map_err(|_| Exit::NotCarriedOut);
        }
        match emit::deployment(report) {
            Some(text) => say(&text).map_err(|_| Exit::NotCarriedOut),
            None => Ok(()),
        }
    }

    /// What the report amounts to; what is accepted into a baseline just now is no failure.
    fn status(&self, report: &Report) -> Exit {
        let Some(kept) = self.baseline.as_ref().filter(|kept| kept.updates()) else {
            return Exit::of(report);
        };
        let mut rest = report.clone();
        rest.runs.retain(|run| !kept.accepts(run));
        Exit::of(&rest)
    }
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
