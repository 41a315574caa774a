//! The report as a person reads it in a terminal: 80 columns, plain text with colour on top.
//!
//! A server's run is shown probe by probe. A harness's run has too many cases for that: see
//! [`suite`].

mod suite;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::conclusion::Conclusion;
use crate::findings;
use crate::layout::{Line, Page, Role, wrap, wrap_whole};
use crate::model::{
    Case, Evidence, OperationTimeline, Origin, Report, Run, RunKind, SkipReason, Subject,
    SubjectKind,
};
use crate::outside;
use crate::summary;
use crate::verdict::Verdict;
use crate::words;

/// Where the mark stands, behind the group's name.
const MARK: usize = 10;
/// Where the clause id stands.
const CLAUSE: usize = 12;
/// Where the message stands.
const MESSAGE: usize = 20;
/// Room for the column at the right: a duration or a level.
const RIGHT: usize = 10;
/// Where the text of a detail stands, behind its name.
const DETAIL: usize = 14;

/// How to render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns to fill, at least 60.
    pub width: usize,
    /// Whether to colour. The text is the same without.
    pub color: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            width: 80,
            color: false,
        }
    }
}

/// Renders a report as text.
pub fn render_text(report: &Report, options: TextOptions) -> String {
    let report = &outside::fit(report);
    let mut page = Page::default();
    let width = options.width.max(60);
    if report.runs.is_empty() {
        Sheet {
            page: &mut page,
            width,
        }
        .paragraph(0, Role::Attention, words::NO_RUNS);
    }
    for (index, run) in report.runs.iter().enumerate() {
        if index > 0 {
            page.blank();
        }
        Sheet {
            page: &mut page,
            width,
        }
        .run(run);
    }
    if report.runs.len() > 1 {
        page.blank();
        Sheet {
            page: &mut page,
            width,
        }
        .summary(report);
    }
    if report.interrupted {
        page.blank();
        Sheet {
            page: &mut page,
            width,
        }
        .paragraph(
            0,
            Role::Attention,
            "Interrupted: this report is partial. What was not judged says nothing.",
        );
    }
    page.render(options.color)
}

/// A duration in microseconds as people read it: `740 µs`, `412 ms`, `3.1 s`, `60 s`, `2 min 5 s`.
pub fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", (micros + 500) / 1_000),
        1_000_000..10_000_000 => {
            let tenths = micros / 100_000;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        10_000_000..120_000_000 => format!("{} s", micros / 1_000_000),
        _ => {
            let seconds = micros / 1_000_000;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

/// The page that is being filled.
struct Sheet<'a> {
    page: &'a mut Page,
    width: usize,
}

impl Sheet<'_> {
    fn run(&mut self, run: &Run) {
        self.heading(run);
        if is_suite(run) {
            self.areas(run);
        } else {
            self.probes(run);
        }
        for case in run.cases.iter().filter(|case| needs_detail(case)) {
            self.page.blank();
            self.detail(run, case);
        }
        self.measured(run);
        self.not_applicable(run);
        self.not_judged(run);
        self.not_run(run);
        for remark in &run.remarks {
            self.page.blank();
            self.paragraph(0, Role::Plain, remark);
        }
        self.compared(run);
        self.page.blank();
        self.conclusion(run);
    }

    /// How it compares with what was accepted before.
    fn compared(&mut self, run: &Run) {
        let baseline = words::baseline(run);
        if baseline.is_empty() {
            return;
        }
        self.page.blank();
        for line in baseline {
            self.paragraph(0, Role::Plain, &line);
        }
    }

    /// What was measured beside the clauses, and what helps.
    fn measured(&mut self, run: &Run) {
        let known = run.knows_answers();
        let measured = run.measured.as_ref();
        let measured = measured.map(|measured| findings::of(measured, known));
        let measured = measured.unwrap_or_default();
        let remedy = run
            .remedy
            .as_ref()
            .map(findings::remedy)
            .unwrap_or_default();
        let surprises = findings::surprises(&run.surprises);
        for (title, found) in [
            ("measured", measured),
            ("remedy", remedy),
            ("known of it", surprises),
        ] {
            if found.is_empty() {
                continue;
            }
            self.page.blank();
            let mut line = Line::default();
            line.push(Role::Strong, title);
            self.page.line(line);
            for (name, text) in found {
                self.named(name, Role::Plain, &text);
            }
        }
    }

    fn probes(&mut self, run: &Run) {
        let mut group = "";
        for case in &run.cases {
            let shown = if case.group == group {
                ""
            } else {
                case.group.as_str()
            };
            group = &case.group;
            self.case(shown, case);
            if let Some(timeline) = timeline_of(run, case) {
                self.timeline(timeline, run.knows_answers());
            }
        }
    }

    fn heading(&mut self, run: &Run) {
        let mut line = Line::default();
        line.push(Role::Strong, &run.subject.name);
        if let Some(version) = &run.subject.version {
            line.push(Role::Strong, " ").push(Role::Strong, version);
        }
        if let Some(sample) = &run.sample {
            line.push(Role::Plain, " · sample: ")
                .push(Role::Plain, sample);
        }
        if let Some(suite) = &run.suite {
            line.push(Role::Plain, " · suite: ")
                .push(Role::Plain, suite);
        }
        if is_suite(run) {
            line.push(Role::Plain, &format!(" · {}", words::how_many(run)));
        }
        if !run.cases.is_empty() {
            line.push(Role::Plain, " · ")
                .push(Role::Plain, &duration(run.duration_us));
        }
        if let Some(seed) = run.seed {
            line.push(Role::Plain, &format!(" · seed {seed}"));
        }
        if let Some(shard) = run.shard {
            line.push(Role::Plain, &format!(" · shard {shard}"));
        }
        self.page.line(line);
        if let Some(whence) = whence(&run.subject) {
            for text in wrap_whole(&whence, self.width) {
                let mut line = Line::default();
                line.push(Role::Faint, &text);
                self.page.line(line);
            }
        }
        if !run.cases.is_empty() {
            self.page.blank();
        }
    }

    fn case(&mut self, group: &str, case: &Case) {
        let (mark, role) = mark(case.verdict);
        let text = match &case.label {
            Some(label) => format!("{label:<19} {}", case.message),
            None => case.message.clone(),
        };
        let right = match (case.verdict, case.duration_us) {
            (Verdict::Note, _) => case.level.to_string(),
            (_, Some(micros)) => duration(micros),
            (_, None) => String::new(),
        };
        let right_width = unicode_width::UnicodeWidthStr::width(right.as_str());
        let taken = if right_width == 0 {
            2
        } else {
            right_width.max(RIGHT) + 1
        };
        let room = self.width.saturating_sub(MESSAGE + taken);
        let id = case
            .clauses
            .first()
            .map_or(case.id.as_str(), String::as_str);
        for (index, text) in wrap(&text, room).iter().enumerate() {
            let mut line = Line::default();
            if index == 0 {
                line.push(Role::Plain, group).tab(MARK);
                line.push(role, mark).tab(CLAUSE);
                line.push(role, id).tab(MESSAGE);
                line.push(Role::Plain, text);
                if right_width > 0 {
                    line.tab(self.width.saturating_sub(right_width + 2));
                    line.push(Role::Faint, &right);
                }
            } else {
                // The text of a labelled case goes on below its text, not below its label.
                let indent = if case.label.is_some() {
                    MESSAGE + 2
                } else {
                    MESSAGE
                };
                line.tab(indent).push(Role::Plain, text);
            }
            self.page.line(line);
        }
    }

    fn timeline(&mut self, timeline: &OperationTimeline, known: bool) {
        for text in wrap(
            &readiness(timeline, known),
            self.width.saturating_sub(MESSAGE + 2),
        ) {
            let mut line = Line::default();
            line.tab(MESSAGE + 2).push(Role::Faint, &text);
            self.page.line(line);
        }
    }

    fn detail(&mut self, run: &Run, case: &Case) {
        let (mark, role) = mark(case.verdict);
        let mut line = Line::default();
        line.push(role, mark)
            .push(role, " ")
            .push(role, &case.id)
            .push(Role::Plain, " ");
        line.push(Role::Strong, words::verdict(run.kind, case.verdict));
        line.push(Role::Plain, &format!(" ({})", case.level));
        self.page.line(line);
        if let Some(title) = &case.title {
            self.named("shows", Role::Plain, title);
        }
        for clause in run.coverage.iter().filter(|clause| {
            // A fault of ours says nothing about any clause.
            case.verdict != Verdict::HarnessError && case.about().contains(&clause.clause)
        }) {
            self.named(
                "clause",
                Role::Plain,
                &format!("{}: {}", clause.clause, clause.statement),
            );
        }
        if let Some(expected) = &case.expected {
            self.named("expected", Role::Plain, expected);
        }
        self.named(
            "got",
            Role::Plain,
            case.got.as_deref().unwrap_or(&case.message),
        );
        let moments = words::moments(&case.evidence);
        for (index, (evidence, at)) in case.evidence.iter().zip(moments).enumerate() {
            self.evidence(index == 0, evidence, &at, role);
        }
        if let Some(transcript) = &case.transcript {
            self.whole("transcript", &transcript.path);
        }
        if let Some(source) = &case.source {
            self.whole("file", &words::place(source));
        }
        if let Some(reproduce) = &case.reproduce {
            self.whole("repeat", reproduce);
        }
    }

    /// One event, its text going on below its text.
    fn evidence(&mut self, first: bool, evidence: &Evidence, at: &str, role: Role) {
        const TEXT: usize = DETAIL + 18;
        let mark = if evidence.decisive { ">" } else { " " };
        let role = if evidence.decisive { role } else { Role::Plain };
        for (index, text) in wrap(&evidence.text, self.width.saturating_sub(TEXT))
            .iter()
            .enumerate()
        {
            let mut line = Line::default();
            if index == 0 {
                line.push(Role::Plain, "  ");
                line.push(Role::Faint, if first { "frames" } else { "" })
                    .tab(DETAIL);
                line.push(role, mark)
                    .push(Role::Plain, " ")
                    .push(Role::Faint, at);
            }
            line.tab(TEXT).push(role, text);
            self.page.line(line);
        }
    }

    fn named(&mut self, name: &str, role: Role, text: &str) {
        self.lines(name, role, &wrap(text, self.width.saturating_sub(DETAIL)));
    }

    /// A path or a command.
    fn whole(&mut self, name: &str, text: &str) {
        self.lines(
            name,
            Role::Plain,
            &wrap_whole(text, self.width.saturating_sub(DETAIL)),
        );
    }

    fn lines(&mut self, name: &str, role: Role, lines: &[String]) {
        for (index, text) in lines.iter().enumerate() {
            let mut line = Line::default();
            line.push(Role::Plain, "  ");
            line.push(Role::Faint, if index == 0 { name } else { "" })
                .tab(DETAIL);
            line.push(role, text);
            self.page.line(line);
        }
    }

    fn not_judged(&mut self, run: &Run) {
        if run.cases.is_empty() {
            return;
        }
        let by_reason = words::not_judged(run);
        if by_reason.is_empty() {
            return;
        }
        self.page.blank();
        if run
            .skipped
            .iter()
            .any(|skipped| skipped.reason == SkipReason::NotSelected)
        {
            // The profiles count those that bind a harness, one of two profiles in both.
            let left: BTreeSet<&str> = by_reason.into_iter().flat_map(|(_, ids)| ids).collect();
            let left = run.coverage.iter().filter(|c| left.contains(&*c.clause));
            let (own, of_servers): (Vec<_>, Vec<_>) = left.partition(|c| !c.profiles.is_empty());
            let twice = own.iter().filter(|c| c.profiles.len() > 1).count();
            let mut told = format!(
                "not judged: {} clauses, for which no selected case is",
                own.len()
            );
            if twice > 0 {
                told = format!("{told} ({twice} of them belong to two profiles)");
            }
            if !of_servers.is_empty() {
                let servers = of_servers.len();
                told = format!(
                    "{told}, and {servers} that bind language servers, which `dsh-conform check` \
                     judges"
                );
            }
            told.push_str("; the JSON report names each with its reason");
            self.paragraph(0, Role::Faint, &told);
            return;
        }
        for (reason, clauses) in by_reason {
            let clauses = words::clauses(&clauses);
            self.paragraph(0, Role::Faint, &format!("not judged: {clauses} ({reason})"));
        }
    }

    fn conclusion(&mut self, run: &Run) {
        let role = conclusion_role(&run.conclusion);
        let text = run.conclusion.to_string();
        let counts = words::counts(run);
        // A reason may have lines of its own, the way out for instance.
        let mut lines: Vec<String> = text
            .lines()
            .flat_map(|line| wrap(line, self.width))
            .collect();
        let last = lines.pop().unwrap_or_default();
        for text in lines {
            let mut line = Line::default();
            line.push(role, &text);
            self.page.line(line);
        }
        let mut line = Line::default();
        line.push(role, &last);
        let room = self.width.saturating_sub(line.width() + 2);
        let counts_width = unicode_width::UnicodeWidthStr::width(counts.as_str());
        if counts_width > room {
            self.page.line(std::mem::take(&mut line));
        }
        if !counts.is_empty() {
            line.tab(self.width.saturating_sub(counts_width + 2))
                .push(Role::Plain, &counts);
            self.page.line(line);
        } else if line.width() > 0 {
            self.page.line(line);
        }
    }

    fn summary(&mut self, report: &Report) {
        let widest = report
            .runs
            .iter()
            .map(|run| unicode_width::UnicodeWidthStr::width(words::subject(&run.subject).as_str()))
            .max()
            .unwrap_or(0);
        let column = widest.min(self.width / 2) + 2;
        for run in &report.runs {
            let mut line = Line::default();
            line.push(Role::Strong, &words::subject(&run.subject));
            let came = words::brief(&run.conclusion);
            for text in wrap(&came, self.width.saturating_sub(column)) {
                line.tab(column);
                line.push(conclusion_role(&run.conclusion), &text);
                self.page.line(std::mem::take(&mut line));
            }
        }
        if summary::is_about_servers(report) {
            self.page.blank();
            self.paragraph(0, Role::Strong, &format!("{}.", summary::qualified(report)));
        }
    }

    fn paragraph(&mut self, indent: usize, role: Role, text: &str) {
        for text in wrap(text, self.width.saturating_sub(indent)) {
            let mut line = Line::default();
            if indent > 0 {
                line.tab(indent);
            }
            line.push(role, &text);
            self.page.line(line);
        }
    }
}

/// Whether there are too many cases to show each of them.
fn is_suite(run: &Run) -> bool {
    run.kind == RunKind::Power || run.subject.kind == SubjectKind::Harness
}

/// Where the executable is, how it came to be chosen, and that its version is not known.
fn whence(subject: &Subject) -> Option<String> {
    let path = subject.path.as_ref()?;
    let from = subject.origin.map(|origin| match origin {
        Origin::Path => "from PATH",
        Origin::Cache => "from the cache, pinned",
        Origin::BuiltIn => "built in",
        Origin::Command => "as given",
    });
    let untold = subject.version.is_none().then_some("it tells no version");
    let about: Vec<&str> = from.into_iter().chain(untold).collect();
    Some(if about.is_empty() {
        path.clone()
    } else {
        format!("{path} ({})", about.join("; "))
    })
}

const fn mark(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        Verdict::Pass => ("✓", Role::Good),
        Verdict::Note => ("!", Role::Attention),
        Verdict::Fail | Verdict::Timeout | Verdict::Crash => ("✗", Role::Bad),
        Verdict::Untestable => ("?", Role::Bad),
        Verdict::NotApplicable => ("-", Role::Faint),
        Verdict::Known => ("~", Role::Attention),
        Verdict::HarnessError => ("#", Role::Bad),
    }
}

const fn conclusion_role(conclusion: &Conclusion) -> Role {
    match conclusion {
        Conclusion::Qualified { .. }
        | Conclusion::QualifiedWithSettings { .. }
        | Conclusion::Partial { .. }
        | Conclusion::Conforms { known: 0, .. }
        | Conclusion::SelectionHolds { known: 0, .. }
        | Conclusion::Noticed { .. } => Role::Good,
        Conclusion::ProtocolOnly { .. }
        | Conclusion::Conforms { .. }
        | Conclusion::SelectionHolds { .. }
        | Conclusion::Interrupted => Role::Attention,
        Conclusion::NotQualified { .. }
        | Conclusion::DoesNotConform { .. }
        | Conclusion::Unnoticed { .. }
        | Conclusion::Untestable { .. }
        | Conclusion::HarnessError { .. } => Role::Bad,
    }
}

/// Whether there is more to say than the line of the case says. What could not be judged since
/// something else failed is explained there.
fn needs_detail(case: &Case) -> bool {
    match case.verdict {
        Verdict::Note | Verdict::Untestable => case.expected.is_some(),
        verdict => verdict.is_red(),
    }
}

/// The timeline that belongs below a case: its operation's, where the first answer was not right.
fn timeline_of<'a>(run: &'a Run, case: &Case) -> Option<&'a OperationTimeline> {
    let label = case.label.as_ref()?;
    let timeline = run
        .operations
        .iter()
        .find(|timeline| timeline.operation == *label)?;
    let answers = case.clauses.iter().any(|id| id == "QUA-4");
    let settled_at_once = timeline.heard.len() == 1 && timeline.heard[0].right;
    (answers && !settled_at_once && !timeline.heard.is_empty()).then_some(timeline)
}

/// `right after 1.2 s, stable after 1.3 s; before: 12 × wrong place, 3 × []`; where no right answer is
/// known, that it was answered, and whether the answers stayed the same.
fn readiness(timeline: &OperationTimeline, known: bool) -> String {
    let mut text = words::readiness(timeline, known, " after");
    let wrong: Vec<String> = timeline
        .heard
        .iter()
        .take_while(|heard| !heard.right)
        .map(|heard| format!("{} × {}", heard.times, heard.answer))
        .collect();
    if !wrong.is_empty() {
        let word = if timeline.first_right_us.is_some() {
            "before"
        } else {
            "came"
        };
        let _ = write!(text, "; {word}: {}", wrong.join(", "));
    }
    let later: Vec<String> = timeline
        .heard
        .iter()
        .skip_while(|heard| !heard.right)
        .filter(|heard| !heard.right)
        .map(|heard| format!("{} × {}", heard.times, heard.answer))
        .collect();
    if !later.is_empty() {
        let right = if known { "right " } else { "" };
        let _ = write!(text, "; between {right}answers: {}", later.join(", "));
    }
    text
}
