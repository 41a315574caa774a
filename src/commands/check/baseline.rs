//! Reading, comparing and writing the baseline of a check.

use std::path::{Path, PathBuf};

use dsh_reports::{Baseline, Report, Run};

use super::Args;
use crate::files;
use crate::output::complain;
use crate::shell::{Shell, read_text};

/// The most bytes that a baseline may have.
const MAX_BYTES: u64 = 16_000_000;

/// The baseline of this invocation.
pub(super) struct Kept {
    /// As it was typed.
    name: String,
    path: PathBuf,
    baseline: Baseline,
    update: bool,
    /// Whether all probes were asked for.
    whole: bool,
}

impl Kept {
    /// The baseline that these arguments name; none if they name none.
    pub(super) fn read(shell: &Shell, args: &Args) -> Result<Option<Self>, String> {
        let Some(file) = &args.baseline else {
            return Ok(None);
        };
        let path = shell.absolute(file);
        let name = file.display().to_string();
        if args.update_baseline && !path.exists() {
            writable(&path).map_err(|why| format!("cannot write the baseline {name}: {why}"))?;
            return Ok(Some(Self::of(name, path, Baseline::default(), args)));
        }
        let text = read_text(&path, MAX_BYTES, "a baseline").map_err(|why| {
            let way_out = if path.exists() {
                ""
            } else {
                "; write it with --update-baseline"
            };
            format!("cannot read the baseline {name}: {why}{way_out}")
        })?;
        let baseline = Baseline::read(&text)
            .map_err(|error| format!("cannot read the baseline {name}: {error}"));
        let baseline = match baseline {
            Ok(baseline) => baseline,
            // What is something else altogether is not written over.
            Err(error) if args.update_baseline => {
                return Err(format!("{error}, to another file or without this one"));
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Self::of(name, path, baseline, args)))
    }

    fn of(name: String, path: PathBuf, baseline: Baseline, args: &Args) -> Self {
        Self {
            name,
            path,
            baseline,
            update: args.update_baseline,
            whole: args.only.is_empty(),
        }
    }

    /// Whether the findings are accepted, and not compared.
    pub(super) const fn updates(&self) -> bool {
        self.update
    }

    /// Compares the runs, or accepts them and writes the file. Whether the file could be written.
    pub(super) fn settle(&mut self, report: &mut Report) -> bool {
        let platform = report.platform.clone();
        if !self.update {
            for run in &mut report.runs {
                self.baseline
                    .compare(run, &platform, &self.name, self.whole);
            }
            return true;
        }
        for run in &report.runs {
            if !self.baseline.accept(run, &platform) {
                complain(&format!(
                    "baseline {}: {} is left as it was: {}",
                    self.name, run.subject.name, run.conclusion
                ));
            }
        }
        match self.write() {
            Ok(()) => {
                complain(&format!("baseline: {}", self.name));
                true
            }
            Err(why) => {
                complain(&format!(
                    "error: cannot write the baseline {}: {why}",
                    self.name
                ));
                false
            }
        }
    }

    /// Writes the whole file or nothing of it.
    fn write(&self) -> Result<(), String> {
        let text = self.baseline.render().map_err(|error| error.to_string())?;
        files::write(&self.path, text.as_bytes()).map_err(|error| error.to_string())
    }

    /// Whether a run that was accepted counts as done, whatever it found.
    pub(super) fn accepts(&self, run: &Run) -> bool {
        let mut scratch = Baseline::default();
        let platform = dsh_reports::Platform {
            os: String::new(),
            arch: String::new(),
        };
        self.update && scratch.accept(run, &platform)
    }
}

/// That the file can be written is found out before anything is started.
fn writable(path: &Path) -> Result<(), String> {
    let folder = files::folder(path);
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    tempfile::NamedTempFile::new_in(folder)
        .map(drop)
        .map_err(|error| error.to_string())
}
