//! A run of many cases: by area, with what needs no word folded into counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Sheet, mark};
use crate::layout::{Line, Role, wrap};
use crate::model::{Case, Run, RunKind};
use crate::verdict::Verdict;
use crate::words;

/// Where an area's counts stand.
const COUNTS: usize = 18;
/// Where the mark of a case stands, below its area.
const CASE: usize = 4;
/// The most cases that are named for one reason.
const NAMED: usize = 10;
/// Where the text of a case stands.
const TEXT: usize = 6;

impl Sheet<'_> {
    /// Each area with its counts, and below it the cases that are worth a word. A mutant is always
    /// worth one: what noticed it is what one wants to know.
    pub(super) fn areas(&mut self, run: &Run) {
        for (area, cases) in areas(run) {
            let heaviest = cases
                .iter()
                .map(|case| case.verdict)
                .max_by_key(|verdict| verdict.weight())
                .unwrap_or(Verdict::Pass);
            let (mark, role) = mark(heaviest);
            let mut line = Line::default();
            line.push(role, mark).push(Role::Plain, " ");
            line.push(Role::Plain, area).tab(COUNTS);
            let tally = words::tally(run.kind, cases.iter().map(|case| case.verdict));
            line.push(Role::Plain, &tally);
            self.page.line(line);
            for case in cases {
                if run.kind == RunKind::Power || is_worth_a_word(case.verdict) {
                    self.in_short(case);
                }
            }
        }
        self.profiles(run);
    }

    fn in_short(&mut self, case: &Case) {
        let (mark, role) = mark(case.verdict);
        let about = words::clauses(case.about());
        let text = match case.message.as_str() {
            "" => about,
            message => format!("{about}: {message}"),
        };
        let mut line = Line::default();
        line.tab(CASE).push(role, mark).push(Role::Plain, " ");
        line.push(role, &case.id);
        let beside = line.width() + 2;
        // Beside its id where that leaves room to read, else below it.
        let fits = self.width.saturating_sub(beside) >= 44;
        let indent = if fits { beside } else { TEXT };
        let mut texts = wrap(&text, self.width.saturating_sub(indent)).into_iter();
        if fits && let Some(first) = texts.next() {
            line.tab(indent).push(Role::Plain, &first);
        }
        self.page.line(line);
        for text in texts {
            let mut line = Line::default();
            line.tab(indent).push(Role::Plain, &text);
            self.page.line(line);
        }
    }

    /// How many clauses of each profile hold.
    fn profiles(&mut self, run: &Run) {
        if run.totals.profiles.is_empty() {
            return;
        }
        let what = match run.kind {
            RunKind::Conformance => "clauses that hold",
            RunKind::Power => "clauses watched",
        };
        self.page.blank();
        let cell = |line: &mut Line, column: usize, text: &str| {
            let text = format!("{text:>10}");
            line.tab(column).push(Role::Plain, &text);
        };
        let mut head = Line::default();
        head.push(Role::Faint, what);
        for (column, title) in [(20, "MUST"), (31, "SHOULD"), (42, "not judged")] {
            cell(&mut head, column, title);
        }
        self.page.line(head);
        for (profile, totals) in &run.totals.profiles {
            let mut line = Line::default();
            line.push(Role::Plain, "  ").push(Role::Plain, profile);
            for (column, count) in [(20, totals.must), (31, totals.should)] {
                let text = match count.judged {
                    0 => "-".to_owned(),
                    judged => format!("{}/{judged}", count.held),
                };
                cell(&mut line, column, &text);
            }
            cell(&mut line, 42, &totals.not_judged.to_string());
            self.page.line(line);
        }
    }

    /// The cases that do not concern the subject, by what it lacks.
    pub(super) fn not_applicable(&mut self, run: &Run) {
        if !super::is_suite(run) {
            return;
        }
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for case in &run.cases {
            if case.verdict == Verdict::NotApplicable {
                by_reason.entry(&case.message).or_default().push(&case.id);
            }
        }
        if !by_reason.is_empty() {
            self.page.blank();
        }
        for (reason, cases) in by_reason {
            let count = words::cases(run.kind, cases.len());
            let text = format!("not applicable: {count}: {reason}");
            self.paragraph(0, Role::Faint, &text);
            let mut names = cases[..cases.len().min(NAMED)].join(", ");
            if cases.len() > NAMED {
                let _ = write!(names, " and {} more", cases.len() - NAMED);
            }
            self.paragraph(CASE, Role::Faint, &names);
        }
    }

    /// What was left out, and what is in the list of known failures without failing.
    pub(super) fn not_run(&mut self, run: &Run) {
        if !run.skipped.is_empty() {
            self.page.blank();
        }
        for skipped in &run.skipped {
            let text = format!("not run: {}", words::skipped(run.kind, skipped));
            self.paragraph(0, Role::Faint, &text);
        }
        if !run.stale.is_empty() {
            self.page.blank();
        }
        for stale in &run.stale {
            self.paragraph(0, Role::Bad, &format!("stale: {}", words::stale(stale)));
        }
    }
}

/// The cases by area, areas in the order in which they come first.
fn areas(run: &Run) -> Vec<(&str, Vec<&Case>)> {
    let mut areas: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in &run.cases {
        match areas.iter_mut().find(|(area, _)| *area == case.group) {
            Some((_, cases)) => cases.push(case),
            None => areas.push((&case.group, vec![case])),
        }
    }
    areas
}

/// What held, and what does not concern the subject, is in the counts.
const fn is_worth_a_word(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Pass | Verdict::NotApplicable)
}
