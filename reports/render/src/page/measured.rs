//! What was measured of a server beside readiness and rounds, as tables.

use super::readiness::kind;
use super::text::shown;
use crate::measured::{Ending, Measured, NO_WORSE, Persona, PersonaOutcome, TextSource};
use crate::size::bytes;
use crate::text::duration;
use crate::trajectory::text::grouped;
use crate::ways;

/// The most rows of one table.
const MOST: usize = 500;

/// A cell, or more of them in a row: what it is, looked at as good or bad.
pub(super) struct Finding {
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    pub(super) text: String,
    /// What helps against it.
    pub(super) helps: Option<&'static str>,
}

impl Finding {
    fn new(look: (&'static str, &'static str), text: impl Into<String>) -> Self {
        Self {
            class: look.0,
            mark: look.1,
            text: text.into(),
            helps: None,
        }
    }
}

const GOOD: (&str, &str) = ("good", "✓");
const NOTE: (&str, &str) = ("note", "!");
const BAD: (&str, &str) = ("bad", "✗");
const NONE: (&str, &str) = ("none", "–");
const PLAIN: (&str, &str) = ("plain", "");

/// A table: a heading, the columns' heads, rows of which the first cell is the head.
pub(super) struct Table {
    pub(super) heading: &'static str,
    /// What it is about, in a sentence.
    pub(super) about: &'static str,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
    /// How many rows were left out.
    pub(super) more: usize,
    /// Whether it is read better over the whole width than beside another.
    pub(super) wide: bool,
}

pub(super) struct Row {
    pub(super) head: String,
    /// More about it.
    pub(super) about: String,
    pub(super) cells: Vec<Finding>,
}

impl Row {
    fn new(head: &str, cells: Vec<Finding>) -> Self {
        Self {
            head: shown(head),
            about: String::new(),
            cells,
        }
    }
}

/// The tables that have anything in them.
pub(super) fn tables(measured: &Measured, known: bool) -> Vec<Table> {
    let mut tables = vec![
        personas(measured, known),
        ends(measured),
        edges(measured),
        overlay(measured),
        output(measured),
        written(measured),
    ];
    tables.retain(|table| !table.rows.is_empty());
    for table in &mut tables {
        table.more = table.rows.len().saturating_sub(MOST);
        table.rows.truncate(MOST);
    }
    tables
}

/// The usual way, then those that go wrong.
fn by_interest(personas: &[Persona]) -> Vec<&Persona> {
    let mut all: Vec<&Persona> = personas.iter().collect();
    all.sort_by_key(|persona| match persona.name.as_str() {
        ways::USUAL => 0,
        _ if ways::is_bad(persona.outcome) => 1,
        _ => 2,
    });
    all
}

fn personas(measured: &Measured, known: bool) -> Table {
    let first = if known {
        "First right answer"
    } else {
        "First answer"
    };
    Table {
        heading: "Ways for a client to behave",
        about: "The same questions, asked by clients that differ in one thing; where one fails, what a \
                client has to do.",
        heads: vec!["The client", "What came of it", first],
        more: 0,
        wide: true,
        rows: by_interest(&measured.personas)
            .into_iter()
            .map(|persona| {
                let (look, outcome) = match persona.outcome {
                    PersonaOutcome::Fine => (GOOD, "fine"),
                    PersonaOutcome::Wrong if known => (BAD, "answers wrongly"),
                    PersonaOutcome::Wrong => (BAD, "does not answer everything"),
                    PersonaOutcome::Silent => (BAD, "silent"),
                    PersonaOutcome::Dead => (BAD, "dies"),
                    PersonaOutcome::DoesNotEnd => (NOTE, "does not end in order"),
                    PersonaOutcome::NotAsked => (NONE, "nothing of the kind was asked"),
                };
                let detail = persona.detail.as_deref();
                let outcome = shown(&match detail {
                    Some(detail) => format!("{outcome}: {detail}"),
                    None => outcome.to_owned(),
                });
                // Nothing is wrong with such a way, and nothing is right in it.
                let (look, outcome) = match detail.filter(|of| of.contains(NO_WORSE)) {
                    Some(detail) => (NONE, shown(detail)),
                    None => (look, outcome),
                };
                let right = persona
                    .first_right_us
                    .map_or_else(|| "–".to_owned(), duration);
                let mut came = Finding::new(look, outcome);
                came.helps = ways::advice(persona, &measured.personas);
                let cells = vec![came, Finding::new(PLAIN, right)];
                Row {
                    about: shown(&persona.summary),
                    ..Row::new(&persona.name, cells)
                }
            })
            .collect(),
    }
}

fn ends(measured: &Measured) -> Table {
    let ended = |end: &Ending| match (end.code, end.signal, end.took_us) {
        (_, _, None) => Finding::new(BAD, "did not end, and was killed"),
        (Some(0), _, Some(_)) => Finding::new(GOOD, "exit code 0"),
        (Some(code), _, Some(_)) => Finding::new(PLAIN, format!("exit code {code}")),
        (None, Some(signal), Some(_)) => Finding::new(PLAIN, format!("signal {signal}")),
        (None, None, Some(_)) => Finding::new(PLAIN, "ended"),
    };
    Table {
        heading: "Ends",
        about: "Each way to end the server, and what came of it.",
        heads: vec!["Way", "Ended", "After", "Processes left", "Replaced after"],
        more: 0,
        wide: false,
        rows: measured
            .ends
            .iter()
            .map(|end| {
                let left = if end.left == 0 { GOOD } else { BAD };
                let processes = match end.left_names.as_slice() {
                    [] => grouped(end.left),
                    names => format!("{}: {}", grouped(end.left), names.join(", ")),
                };
                let time = |us: Option<u64>| {
                    Finding::new(PLAIN, us.map_or_else(|| "–".to_owned(), duration))
                };
                let cells = vec![
                    ended(end),
                    time(end.took_us),
                    Finding::new(left, processes),
                    time(end.replaced_us),
                ];
                Row::new(&end.way, cells)
            })
            .collect(),
    }
}

fn edges(measured: &Measured) -> Table {
    Table {
        heading: "Edges",
        about: "Odd requests, what came, and whether a usual question was still answered.",
        heads: vec!["Asked", "Answer", "After it"],
        more: 0,
        wide: false,
        rows: measured
            .edges
            .iter()
            .map(|edge| {
                let detail = edge.detail.as_ref().map(|of| format!(" ({of})"));
                let answer = shown(&format!("{}{}", edge.answer, detail.unwrap_or_default()));
                let alive = if edge.alive {
                    Finding::new(GOOD, "answers as before")
                } else {
                    Finding::new(BAD, "does not answer as before")
                };
                Row::new(&edge.name, vec![Finding::new(PLAIN, answer), alive])
            })
            .collect(),
    }
}

fn overlay(measured: &Measured) -> Table {
    let source = |source: TextSource, wanted: TextSource| {
        let look = match source {
            _ if source == wanted => GOOD,
            TextSource::Neither => NOTE,
            _ => BAD,
        };
        let text = match source {
            TextSource::Opened => "the opened text",
            TextSource::Disk => "the file on disk",
            TextSource::Neither => "neither answer came",
        };
        vec![Finding::new(look, text)]
    };
    let rows = measured.overlay.iter().flat_map(|overlay| {
        let (open, closed) = (overlay.open, overlay.closed);
        let open = source(open, TextSource::Opened);
        let closed = source(closed, TextSource::Disk);
        [("while open", open), ("after close", closed)]
    });
    Table {
        heading: "Text that differs from the disk",
        about: "A document is opened with another text than its file has.",
        heads: vec!["When", "Answers come from"],
        more: 0,
        wide: false,
        rows: rows.map(|(head, cells)| Row::new(head, cells)).collect(),
    }
}

fn output(measured: &Measured) -> Table {
    Table {
        heading: "Output",
        about: "All that came from one start, from the first byte to the last.",
        heads: vec!["Start", "Frames", "Stdout", "Outside of frames", "Stderr"],
        more: 0,
        wide: false,
        rows: measured
            .output
            .iter()
            .map(|output| {
                let stray = if output.stray_bytes == 0 { GOOD } else { BAD };
                let cells = vec![
                    Finding::new(PLAIN, grouped(output.frames)),
                    Finding::new(PLAIN, bytes(output.stdout_bytes)),
                    Finding::new(stray, bytes(output.stray_bytes)),
                    Finding::new(PLAIN, bytes(output.stderr_bytes)),
                ];
                Row::new(kind(output.kind), cells)
            })
            .collect(),
    }
}

fn written(measured: &Measured) -> Table {
    Table {
        heading: "Written into the workspace",
        about: "What was different there when the server had ended.",
        heads: vec!["Path", "Change"],
        more: 0,
        wide: false,
        rows: measured
            .written
            .iter()
            .map(|written| {
                let change = Finding::new(NOTE, shown(&written.change));
                Row::new(&written.path, vec![change])
            })
            .collect(),
    }
}
