//! The time line: turns, steps, and the three lanes.

use std::fmt::Write as _;

use super::Source;
use crate::trajectory::lanes::{Grid, MOST_COLUMNS, grid};
use crate::trajectory::log::{Body, Call, Outcome};
use crate::trajectory::run::{Block, Item, Kind, Run, Section};
use crate::trajectory::text::{
    clipped, content, count, duration, excerpt, grouped, moment, visible,
};

/// Microseconds between two steps or turns that are worth a line.
const WAIT: u64 = 5000;

pub(super) struct SectionView {
    pub(super) id: String,
    pub(super) heading: String,
    /// What the turn was begun for.
    pub(super) excerpt: String,
    pub(super) when: String,
    pub(super) ending: Option<Ending>,
    /// What is between it and what stands before it.
    pub(super) before: Option<String>,
    pub(super) blocks: Vec<BlockView>,
}

pub(super) struct BlockView {
    pub(super) id: String,
    pub(super) heading: String,
    pub(super) when: String,
    pub(super) ending: Option<Ending>,
    pub(super) before: Option<String>,
    pub(super) style: String,
    pub(super) moments: Vec<Placed>,
    pub(super) waits: Vec<Placed>,
    pub(super) cells: Vec<CellView>,
    /// Calls that share the last column, where there are more at once than columns.
    pub(super) more: Option<More>,
}

pub(super) struct Ending {
    pub(super) class: &'static str,
    pub(super) text: String,
}

pub(super) struct Placed {
    pub(super) style: String,
    pub(super) text: String,
}

pub(super) struct More {
    pub(super) style: String,
    pub(super) cells: Vec<CellView>,
}

pub(super) struct CellView {
    /// Of the details; the cell's own has `at-` before it.
    pub(super) id: String,
    pub(super) style: String,
    pub(super) lane: &'static str,
    pub(super) class: String,
    pub(super) title: String,
    pub(super) excerpt: String,
    pub(super) meta: String,
}

/// Where each item is, in words.
pub(super) fn places(run: &Run) -> Vec<String> {
    let mut places = Vec::with_capacity(run.items.len());
    let mut items = run.items.iter().peekable();
    for section in &run.sections {
        for block in &section.blocks {
            while items.next_if(|item| item.event < block.to).is_some() {
                let turn = section.turn.map(|turn| format!("turn {turn}"));
                let step = block.step.map(|step| format!("step {step}"));
                places.push(match (turn, step) {
                    (Some(turn), Some(step)) => format!("{turn}, {step}"),
                    (Some(turn), None) => format!("{turn}, between steps"),
                    (None, Some(step)) => format!("{step}, outside of turns"),
                    (None, None) => "between turns".to_owned(),
                });
            }
        }
    }
    places.resize(run.items.len(), String::new());
    places
}

pub(super) fn sections(source: &Source<'_>) -> Vec<SectionView> {
    let mut views: Vec<SectionView> = Vec::new();
    let mut next = 0;
    let mut last: Option<&Section> = None;
    for section in &source.run.sections {
        let blocks = blocks(source, section, &mut next);
        if blocks.is_empty() && section.turn.is_none() {
            continue;
        }
        let (from, to) = (&source.events[section.from], &source.events[section.to - 1]);
        let before = last.and_then(|last| {
            let resumed = section.turn.is_some() && last.turn.is_some() && last.was_left_open();
            let gap = from.at_us - source.events[last.to - 1].at_us;
            match (resumed, gap >= WAIT) {
                (true, _) => Some(format!(
                    "Here the session was gone on with: what an earlier run had left open was \
                     ended first, {} after its last sign of life.",
                    duration(silence(source, last))
                )),
                (false, true) => Some(format!("{} until the next", duration(gap))),
                (false, false) => None,
            }
        });
        views.push(SectionView {
            id: format!("line-{}", from.line),
            heading: match section.turn {
                Some(turn) => format!("Turn {turn}"),
                None => "Outside of turns".to_owned(),
            },
            excerpt: prompt(source, section),
            when: when(from.at_us, to.at_us),
            ending: section
                .turn
                .map(|_| ending(section.outcome.as_ref(), "turn")),
            before,
            blocks,
        });
        last = Some(section);
    }
    views
}

impl Section {
    /// Whether what ended it is a run that came later.
    fn was_left_open(&self) -> bool {
        match &self.outcome {
            None => true,
            Some(outcome) => outcome.reason.as_deref() == Some("interrupted"),
        }
    }
}

/// The longest time within a section in which nothing was logged.
fn silence(source: &Source<'_>, section: &Section) -> u64 {
    let events = &source.events[section.from..section.to];
    let pauses = events.windows(2).map(|pair| pair[1].at_us - pair[0].at_us);
    pauses.max().unwrap_or(0)
}

/// The beginning of a turn's prompt.
fn prompt(source: &Source<'_>, section: &Section) -> String {
    let events = &source.events[section.from..section.to];
    let prompt = events.iter().find_map(|event| match &event.body {
        Body::UserMessage { source, content } if kind_of(source) == "prompt" => Some(content),
        _ => None,
    });
    prompt.map_or_else(String::new, |blocks| excerpt(&content(blocks), 120))
}

pub(super) fn kind_of(source: &serde_json::Map<String, serde_json::Value>) -> &str {
    source
        .get("kind")
        .and_then(serde_json::Value::as_str)
        .unwrap_or("unknown source")
}

fn when(from: u64, to: u64) -> String {
    format!("at {}, took {}", moment(from), duration(to - from))
}

fn ending(outcome: Option<&Outcome>, what: &str) -> Ending {
    let Some(outcome) = outcome else {
        return Ending {
            class: "stopped",
            text: format!("the log does not see this {what} end"),
        };
    };
    let class = match outcome.status.as_str() {
        "completed" => "good",
        "cancelled" => "stopped",
        _ => "bad",
    };
    let mut text = clipped(&outcome.status, 40);
    let parts = [&outcome.code, &outcome.reason, &outcome.message];
    for part in parts.into_iter().flatten() {
        let _ = write!(text, ": {}", clipped(part, 400));
    }
    Ending {
        class,
        text: visible(&text),
    }
}

fn blocks(source: &Source<'_>, section: &Section, next: &mut usize) -> Vec<BlockView> {
    let mut views = Vec::new();
    let mut last: Option<&Block> = None;
    for block in &section.blocks {
        let first = *next;
        let items = &source.run.items[first..];
        let length = items.partition_point(|item| item.event < block.to);
        *next += length;
        if length == 0 && block.step.is_none() {
            continue;
        }
        let before = last.map_or(section.from, |last| last.to - 1);
        let gap = source.events[block.from].at_us - source.events[before].at_us;
        let (from, to) = (&source.events[block.from], &source.events[block.to - 1]);
        let grid = grid(source.events, block, &items[..length], first);
        let mut view = BlockView {
            id: format!("line-{}-step", from.line),
            heading: match block.step {
                Some(step) => format!("Step {step}"),
                None => "Between steps".to_owned(),
            },
            when: when(from.at_us, to.at_us),
            ending: block.step.map(|_| ending(block.outcome.as_ref(), "step")),
            before: (gap >= WAIT).then(|| duration(gap)),
            style: style(&grid),
            moments: Vec::new(),
            waits: Vec::new(),
            cells: Vec::new(),
            more: None,
        };
        place(source, &grid, &mut view);
        views.push(view);
        last = Some(block);
    }
    views
}

/// The tracks of a grid.
fn style(grid: &Grid) -> String {
    let mut style = String::from("grid-template-rows:");
    for row in &grid.rows {
        let _ = write!(style, "minmax({}.{:02}rem,auto) ", row / 100, row % 100);
    }
    // The calls' columns share what their lane has: 1.4 times another lane.
    let _ = write!(
        style,
        ";grid-template-columns:var(--gutter) minmax(0,840fr) minmax(0,840fr) \
         repeat({0},minmax(0,{1}fr))",
        grid.columns,
        1176 / grid.columns
    );
    style
}

fn place(source: &Source<'_>, grid: &Grid, view: &mut BlockView) {
    for (row, event) in &grid.moments {
        view.moments.push(Placed {
            style: format!("grid-area:{0}/1/{1}/2", row + 1, row + 2),
            text: moment(source.events[*event].at_us),
        });
    }
    for wait in &grid.waits {
        view.waits.push(Placed {
            style: format!("grid-area:{0}/2/{1}/-1", wait.row + 1, wait.row + 2),
            text: duration(wait.us),
        });
    }
    let (mut from, mut to) = (usize::MAX, 0);
    let mut more = Vec::new();
    for cell in &grid.cells {
        let item = &source.run.items[cell.item];
        let column = match item.lane {
            crate::trajectory::run::Lane::Input => 2,
            crate::trajectory::run::Lane::Model => 3,
            crate::trajectory::run::Lane::Tools => 4 + cell.column,
        };
        let shared = cell.column == MOST_COLUMNS;
        let style = if shared {
            (from, to) = (from.min(cell.from), to.max(cell.to));
            String::new()
        } else {
            format!(
                "grid-area:{}/{column}/{}/{}",
                cell.from + 1,
                cell.to + 1,
                column + 1
            )
        };
        let cells = if shared { &mut more } else { &mut view.cells };
        cells.push(cell_view(source, cell.item, style));
    }
    if !more.is_empty() {
        let column = 4 + MOST_COLUMNS;
        view.more = Some(More {
            style: format!("grid-area:{}/{column}/{}/{}", from + 1, to + 1, column + 1),
            cells: more,
        });
    }
}

fn cell_view(source: &Source<'_>, at: usize, style: String) -> CellView {
    let item = &source.run.items[at];
    let mut class = String::from(item.lane.name());
    for (applies, name) in [
        (source.is_bad(item), " bad"),
        (source.is_stopped(item), " stopped"),
        (item.parent.is_some(), " nested"),
        (item.hidden_by.is_some(), " gone"),
        (item.end != Some(item.event), " lasts"),
    ] {
        if applies {
            class.push_str(name);
        }
    }
    CellView {
        id: source.id(at),
        style,
        lane: item.lane.name(),
        class,
        title: source.title(item),
        excerpt: source.excerpt(item),
        meta: source.meta(item),
    }
}

/// What is told of an item in its cell, and at the head of its details.
impl Source<'_> {
    pub(super) fn title(&self, item: &Item) -> String {
        let title = match &self.event(item).body {
            Body::UserMessage { source, .. } => clipped(kind_of(source), 60),
            Body::StepRequest { system, tools, .. } if item.kind == Kind::Prompt => {
                let tools = tools
                    .as_ref()
                    .map(|tools| count(tools.len(), "tool", "tools"));
                match (system, tools) {
                    (Some(_), Some(tools)) => format!("system prompt, {tools}"),
                    (None, Some(tools)) => tools,
                    _ => "system prompt".to_owned(),
                }
            }
            Body::StepRequest { .. } | Body::Answer(_) => "model".to_owned(),
            Body::Call { call, .. } => clipped(&call.name, 60),
            Body::Result(result) => clipped(&result.name, 60),
            Body::Compaction { .. } => "compaction".to_owned(),
            Body::Unknown { kind, .. } => clipped(kind, 60),
            _ => String::new(),
        };
        visible(&title)
    }

    pub(super) fn excerpt(&self, item: &Item) -> String {
        match &self.event(item).body {
            Body::UserMessage {
                content: blocks, ..
            } => excerpt(&content(blocks), 100),
            Body::StepRequest { system, .. } if item.kind == Kind::Prompt => {
                excerpt(system.as_deref().unwrap_or_default(), 60)
            }
            Body::StepRequest { .. } => self.said(item),
            Body::Answer(answer) => excerpt(&answer.text, 100),
            Body::Call { call, .. } => arguments(call),
            Body::Compaction { from, to, .. } => format!("hides events {from} to {to}"),
            _ => String::new(),
        }
    }

    /// What the model answered, short.
    fn said(&self, item: &Item) -> String {
        let Kind::Model { answer: Some(at) } = item.kind else {
            return String::new();
        };
        let Body::Answer(answer) = &self.events[at].body else {
            return String::new();
        };
        let calls = match answer.tool_calls.len() {
            0 => String::new(),
            calls => count(calls, "call", "calls"),
        };
        let text = excerpt(&answer.text, 100);
        match (text.is_empty(), calls.is_empty()) {
            (false, false) => format!("{text} ({calls})"),
            (true, _) => calls,
            _ => text,
        }
    }

    /// What became of a request without an answer.
    fn unanswered(&self, item: &Item) -> &'static str {
        match item.end.map(|end| &self.events[end].body) {
            Some(Body::StepRequest { .. }) => "no answer, asked again",
            _ => "no answer",
        }
    }

    /// How long it took, and how it ended where that is not as it should.
    pub(super) fn meta(&self, item: &Item) -> String {
        let mut parts = Vec::new();
        match item.kind {
            Kind::Model { answer: None } => parts.push(self.unanswered(item).to_owned()),
            Kind::Call { result: None } => parts.push("no result".to_owned()),
            Kind::Call { result: Some(at) } => {
                if let Body::Result(result) = &self.events[at].body {
                    match (&result.code, result.is_error) {
                        (Some(code), _) => parts.push(visible(&clipped(code, 60))),
                        (None, true) => parts.push("failed".to_owned()),
                        (None, false) => {}
                    }
                }
            }
            Kind::StrayAnswer => parts.push("nothing was asked".to_owned()),
            Kind::StrayResult => parts.push("no such call".to_owned()),
            Kind::Unknown => parts.push("unknown event".to_owned()),
            _ => {}
        }
        if let Some(took) = self.took(item) {
            parts.push(duration(took));
        }
        if let Kind::Model { answer: Some(at) } = item.kind
            && let Body::Answer(answer) = &self.events[at].body
            && let Some(usage) = answer.usage
        {
            let (input, output) = (grouped(usage.input_tokens), grouped(usage.output_tokens));
            parts.push(format!("{input} → {output} tokens"));
        }
        if let Some(parent) = item.parent {
            parts.push(format!("within {}", self.title(&self.run.items[parent])));
        }
        if item.hidden_by.is_some() {
            parts.push("compacted away".to_owned());
        }
        parts.join(" · ")
    }

    pub(super) fn is_bad(&self, item: &Item) -> bool {
        match item.kind {
            Kind::Call { result: Some(at) } => match &self.events[at].body {
                Body::Result(result) => result.is_error && !self.is_stopped(item),
                _ => false,
            },
            Kind::StrayAnswer | Kind::StrayResult | Kind::Unknown => true,
            _ => false,
        }
    }

    pub(super) fn is_stopped(&self, item: &Item) -> bool {
        match item.kind {
            Kind::Model { answer: None } | Kind::Call { result: None } => true,
            Kind::Call { result: Some(at) } => match &self.events[at].body {
                Body::Result(result) => matches!(
                    result.code.as_deref(),
                    Some("TOOL_CANCELLED" | "TOOL_INTERRUPTED")
                ),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The arguments of a call that fit on a line.
fn arguments(call: &Call) -> String {
    let words: Vec<String> = match &call.arguments {
        serde_json::Value::Object(members) => members
            .values()
            .take(6)
            .filter_map(|value| match value {
                serde_json::Value::String(text) => Some(excerpt(text, 60)),
                serde_json::Value::Number(number) => Some(number.to_string()),
                serde_json::Value::Bool(flag) => Some(flag.to_string()),
                _ => None,
            })
            .collect(),
        serde_json::Value::String(text) => vec![excerpt(text, 60)],
        _ => Vec::new(),
    };
    clipped(&words.join(" "), 100)
}
