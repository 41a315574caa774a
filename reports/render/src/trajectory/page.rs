//! The page.

mod detail;
mod overview;
mod timeline;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dsh_transcript::Event;
use sha2::{Digest as _, Sha256};

use self::detail::{Detail, Server};
use self::overview::Overview;
use self::timeline::SectionView;
use super::log::{Body, Logged, SessionLog};
use super::run::{Item, Run, run};
use super::text::{Room, count, date, duration, grouped, visible};
use super::wire::{Wire, wire};

const STYLE: &str = include_str!("../../templates/trajectory.css");
const SCRIPT: &str = include_str!("../../templates/trajectory.js");

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be made: {0}")]
pub struct TrajectoryError(#[from] askama::Error);

/// Something short that is told about something.
struct Fact {
    label: &'static str,
    text: String,
    /// The place on the page that it is about.
    href: Option<String>,
}

impl Fact {
    fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self {
            label,
            text: text.into(),
            href: None,
        }
    }

    fn to(mut self, href: String) -> Self {
        self.href = Some(href);
        self
    }
}

#[derive(Template)]
#[template(path = "trajectory.html")]
struct Page {
    title: String,
    policy: String,
    style: &'static str,
    script: &'static str,
    facts: Vec<Fact>,
    notes: Vec<String>,
    overview: Option<Overview>,
    sections: Vec<SectionView>,
    details: Vec<Detail>,
    servers: Vec<Server>,
}

/// What everything on the page is made from.
struct Source<'a> {
    events: &'a [Logged],
    run: &'a Run,
    wire: &'a Wire<'a>,
    /// For each item, the turn and step it is in, in words.
    places: Vec<String>,
}

impl<'a> Source<'a> {
    fn event(&self, item: &Item) -> &'a Logged {
        &self.events[item.event]
    }

    /// The id of an item's details.
    fn id(&self, item: usize) -> String {
        format!("e{}", anchor(self.events, &self.run.items[item]))
    }

    /// Microseconds that it took; none for what took no time or did not end.
    fn took(&self, item: &Item) -> Option<u64> {
        let end = item.end.filter(|end| *end != item.event)?;
        Some(
            self.events[end]
                .at_us
                .saturating_sub(self.events[item.event].at_us),
        )
    }
}

/// The line of an item's event, which no other item has but for the two of a request.
fn anchor(events: &[Logged], item: &Item) -> String {
    let line = events[item.event].line;
    match item.kind {
        super::run::Kind::Prompt => format!("{line}-prompt"),
        _ => line.to_string(),
    }
}

/// Makes one page of a session, which needs nothing but itself: without scripts everything is
/// readable and reachable, with them the details of what is clicked stand beside the time line. The
/// same input gives the same page.
///
/// `recording` is what passed on the wire meanwhile. Its frames stand with the calls that caused
/// them if it has the note of [`clock`](super::clock), and else with the servers.
pub fn render_trajectory(
    session: &SessionLog,
    recording: Option<&[Event]>,
) -> Result<String, TrajectoryError> {
    let run = run(&session.events);
    let wire = recording.map_or_else(Wire::default, |recording| {
        wire(recording, &session.events, &run.items)
    });
    let source = Source {
        events: &session.events,
        run: &run,
        wire: &wire,
        places: timeline::places(&run),
    };
    let mut notes: Vec<String> = session.notes().iter().map(|note| visible(note)).collect();
    if !wire.processes.is_empty() && !wire.aligned {
        notes.push(
            "The recording of the wire does not say when it was made, so that its frames are not \
             shown with the calls that caused them but with the servers at the end."
                .to_owned(),
        );
    }
    let mut room = Room::new();
    let page = Page {
        title: format!("Trajectory of {}", visible(&session.header.id)),
        policy: policy(),
        style: STYLE,
        script: SCRIPT,
        facts: facts(session, &source),
        notes,
        overview: overview::overview(&source),
        sections: timeline::sections(&source),
        details: detail::details(&source, &mut room),
        servers: detail::servers(&source, &mut room),
    };
    Ok(page.render()?)
}

/// Nothing is fetched, and no script runs but the page's own.
fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// What is told of the whole.
fn facts(session: &SessionLog, source: &Source<'_>) -> Vec<Fact> {
    let events = source.events;
    let mut facts = vec![Fact::new("Session", visible(&session.header.id))];
    if let Some(cwd) = &session.header.cwd {
        facts.push(Fact::new("Directory", visible(cwd)));
    }
    let (Some(first), Some(last)) = (events.first(), events.last()) else {
        return facts;
    };
    facts.push(Fact::new("Began", date(first.at_ms)));
    facts.push(Fact::new("Took", duration(last.at_us)));
    let turns = source
        .run
        .sections
        .iter()
        .filter(|section| section.turn.is_some())
        .count();
    let blocks = source
        .run
        .sections
        .iter()
        .flat_map(|section| &section.blocks);
    let steps = blocks.filter(|block| block.step.is_some()).count();
    facts.push(Fact::new(
        "Holds",
        format!(
            "{}, {}, {}",
            count(turns, "turn", "turns"),
            count(steps, "step", "steps"),
            count(events.len(), "event", "events")
        ),
    ));
    let (mut input, mut output) = (0_u64, 0_u64);
    for event in events {
        if let Body::Answer(answer) = &event.body
            && let Some(usage) = answer.usage
        {
            input = input.saturating_add(usage.input_tokens);
            output = output.saturating_add(usage.output_tokens);
        }
    }
    if input > 0 || output > 0 {
        let tokens = format!("{} in, {} out", grouped(input), grouped(output));
        facts.push(Fact::new("Tokens", tokens));
    }
    facts
}
