//! The forms a report is written in, and where each of them goes.

use std::path::{Path, PathBuf};

use dsh_reports::{
    FORMAT, Platform, Report, Run, TextOptions, Tool, render_badge, render_github, render_json,
    render_junit, render_markdown, render_page, render_text,
};

use crate::artifacts::Artifacts;
use crate::exit::Exit;
use crate::output::{Color, complain, say};
use crate::shell;

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// dsh-conform-report/1
    Json,
    /// `JUnit` XML
    Junit,
    /// For a comment or the summary of a job
    Markdown,
    /// One page that needs nothing but itself
    Html,
    /// Annotations of GitHub Actions
    Github,
    /// The endpoint of a badge
    Badge,
}

impl Form {
    fn render(self, report: &Report, color: bool) -> Result<String, String> {
        Ok(match self {
            Self::Text => {
                let options = TextOptions::default();
                render_text(report, TextOptions { color, ..options })
            }
            Self::Json => render_json(report).map_err(|error| error.to_string())?,
            Self::Junit => render_junit(report).map_err(|error| error.to_string())?,
            Self::Markdown => render_markdown(report),
            Self::Html => {
                render_page(std::slice::from_ref(report)).map_err(|error| error.to_string())?
            }
            Self::Github => render_github(report),
            Self::Badge => render_badge(report),
        })
    }

    /// Name and extension of the file it is put into in a folder.
    const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("report", "txt"),
            Self::Json => ("report", "json"),
            Self::Junit => ("report", "xml"),
            Self::Markdown => ("report", "md"),
            Self::Html => ("report", "html"),
            Self::Github => ("annotations", "txt"),
            Self::Badge => ("badge", "json"),
        }
    }
}

/// Which forms are wanted, and where they go: the first to stdout, or into the file that was named;
/// further ones into files of the folder.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) artifacts: Artifacts,
    forms: Vec<Form>,
    color: Color,
    badge: Option<PathBuf>,
    /// Whether the first form goes to stdout where no file was named for it.
    prints: bool,
}

impl Delivery {
    /// For these options; a reason if they do not fit together.
    pub(crate) fn planned(
        forms: &[Form],
        out: Option<&Path>,
        color: Color,
    ) -> Result<Self, String> {
        let artifacts = Artifacts::at(out);
        let mut wanted: Vec<Form> = Vec::new();
        for form in forms {
            if !wanted.contains(form) {
                wanted.push(*form);
            }
        }
        if let (Some(file), true) = (artifacts.file(), wanted.len() > 1) {
            return Err(format!(
                "--out {} is one file, and there are {} formats; give a folder",
                file.display(),
                wanted.len()
            ));
        }
        Ok(Self {
            artifacts,
            forms: wanted,
            color,
            badge: None,
            prints: true,
        })
    }

    /// How many forms there are.
    pub(crate) const fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Puts the first form into the folder that was named, too, where one was.
    pub(crate) fn into_files(mut self, named: bool) -> Self {
        self.prints = !named;
        self
    }

    /// Writes this form too.
    pub(crate) fn with(mut self, form: Form) -> Self {
        if !self.forms.contains(&form) {
            self.forms.push(form);
        }
        self
    }

    /// The report as text for stdout.
    pub(crate) fn in_text(&self, report: &Report) -> Result<String, Exit> {
        rendered(Form::Text, report, self.color.on_stdout())
    }

    /// Where a badge goes besides.
    pub(crate) fn with_badge(mut self, badge: Option<PathBuf>) -> Self {
        self.badge = badge;
        self
    }

    /// Writes the report in each form. What cannot be written is told, and gives the status.
    pub(crate) fn deliver(&self, report: &Report) -> Result<(), Exit> {
        let mut written = true;
        for (index, form) in self.forms.iter().enumerate() {
            let (name, extension) = form.file();
            written &= match (self.artifacts.file(), index) {
                (Some(file), _) => leave(file, *form, report)?,
                (None, 0) if self.prints => {
                    say(&rendered(*form, report, self.color.on_stdout())?).is_ok()
                }
                (None, _) => leave(&self.artifacts.path(name, extension), *form, report)?,
            };
        }
        if let Some(badge) = &self.badge {
            written &= leave(badge, Form::Badge, report)?;
        }
        // Who interrupts a run may not look at what it prints.
        let (name, extension) = Form::Json.file();
        let path = self.artifacts.path(name, extension);
        let mut left = self.forms.iter().skip(usize::from(self.prints));
        let left = left.any(|form| *form == Form::Json);
        if report.interrupted && self.artifacts.file().is_none() && !left {
            written &= leave(&path, Form::Json, report)?;
        }
        if written {
            Ok(())
        } else {
            Err(Exit::NotCarriedOut)
        }
    }
}

fn rendered(form: Form, report: &Report, color: bool) -> Result<String, Exit> {
    form.render(report, color).map_err(|error| {
        complain(&format!("error: the report cannot be written: {error}"));
        Exit::OurFault
    })
}

fn leave(path: &Path, form: Form, report: &Report) -> Result<bool, Exit> {
    let text = rendered(form, report, false)?;
    Ok(match Artifacts::write(path, text.as_bytes()) {
        Ok(()) => {
            complain(&format!("report: {}", path.display()));
            true
        }
        Err(error) => {
            complain(&format!("error: cannot write {}: {error}", path.display()));
            false
        }
    })
}

/// A report of this program, made here and now.
pub(crate) fn report(runs: Vec<Run>, interrupted: bool) -> Report {
    Report {
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
        division: None,
        runs,
    }
}
