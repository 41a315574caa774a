//! What is going on, on a terminal's stderr and nowhere else.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Shows lines that come and go; silent where nobody looks.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    all: Option<MultiProgress>,
    quiet: bool,
}

impl Progress {
    /// Shows on a terminal, unless asked to be quiet.
    pub(crate) fn new(stderr_is_terminal: bool, quiet: bool) -> Self {
        Self {
            all: (stderr_is_terminal && !quiet).then(MultiProgress::new),
            quiet,
        }
    }

    /// A line for one thing that is being done; it goes with the handle.
    pub(crate) fn line(&self, name: &str) -> Line {
        let bar = self.all.as_ref().map(|all| {
            let style = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = all.add(ProgressBar::new_spinner().with_style(style));
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Line {
            bar,
            quiet: self.quiet,
        }
    }
}

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Line {
    /// Says what is being done now.
    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.chars().take(60).collect::<String>());
        }
    }

    /// Writes a line that stays, above the ones that come and go.
    pub(crate) fn keep(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.println(line);
        }
    }

    /// Writes a line where there is no terminal: what one would show.
    pub(crate) fn plain(&self, line: &str) {
        if self.bar.is_none() && !self.quiet {
            crate::output::complain(line);
        }
    }

    /// Writes a line that matters without a terminal too.
    pub(crate) fn announce(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(crate::lines::wrapped(line)),
            None if self.quiet => {}
            None => crate::output::complain(line),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
