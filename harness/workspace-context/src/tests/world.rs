//! Files in memory and a log, and the way of a round between them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dsh_session::{Ending, EventBody, Log};

use crate::config::{Home, Settings};
use crate::layout::Layout;
use crate::round::{Limits, Message, Occasion, Probe, Read};
use crate::tracker::Tracker;

/// What is at a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) content: Option<String>,
    /// A directory is there.
    pub(super) is_dir: bool,
    /// The provider cannot look at it.
    pub(super) probe_fails: bool,
    /// It can be looked at and not read.
    pub(super) read_fails: bool,
    /// It is larger than a file may be, and its size is told, or found out while reading.
    pub(super) too_large: Option<bool>,
    version: u64,
}

/// Files by path. Nothing is where nothing was put.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    nodes: BTreeMap<PathBuf, Node>,
    changes: u64,
    pub(super) reads: usize,
}

impl Files {
    /// Changes what is at a path; its version changes with it.
    pub(super) fn change(&mut self, path: impl Into<PathBuf>, change: impl FnOnce(&mut Node)) {
        self.changes += 1;
        let node = self.nodes.entry(path.into()).or_default();
        change(node);
        node.version = self.changes;
    }

    pub(super) fn write(&mut self, path: impl Into<PathBuf>, content: &str) {
        self.change(path, |node| {
            *node = Node {
                content: Some(content.to_owned()),
                ..Node::default()
            };
        });
    }

    pub(super) fn remove(&mut self, path: impl Into<PathBuf>) {
        self.change(path, |node| *node = Node::default());
    }

    pub(super) fn at(&self, path: &Path) -> Node {
        self.nodes.get(path).cloned().unwrap_or_default()
    }

    fn probe(&self, path: &Path, most: u64) -> Probe {
        let node = self.at(path);
        match node.content {
            _ if node.probe_fails => Probe::Failed,
            Some(content) if !node.is_dir => Probe::File {
                version: node.version.to_string(),
                size: match node.too_large {
                    Some(true) => Some(most + 1),
                    Some(false) => None,
                    None => Some(content.len() as u64),
                },
            },
            _ => Probe::Absent,
        }
    }

    fn read(&mut self, path: &Path) -> Read {
        self.reads += 1;
        let node = self.at(path);
        if node.read_fails || node.too_large.is_some() {
            return Read::Failed;
        }
        match node.content {
            Some(text) if !node.is_dir => Read::Text {
                text,
                version: node.version.to_string(),
            },
            _ => Read::Absent,
        }
    }
}

pub(super) fn limits(max_bytes: usize) -> Limits {
    Limits {
        max_bytes,
        max_source_bytes: 1000,
    }
}

/// One look, as the shell does it.
pub(super) fn look(
    files: &mut Files,
    log: &Log,
    tracker: &mut Tracker,
    occasion: Occasion<'_>,
    layout: &Layout,
    limits: Limits,
) -> Option<Message> {
    tracker.catch_up(log);
    let state = tracker.state();
    let mut round = tracker.round(occasion, layout, &state, limits);
    let probes = round
        .paths()
        .iter()
        .map(|path| files.probe(path, limits.max_source_bytes))
        .collect();
    round.probed(probes);
    loop {
        let wanted = round.wanted();
        if wanted.is_empty() {
            break;
        }
        for (item, path) in wanted {
            round.was_read(item, files.read(&path));
        }
    }
    let outcome = round.finish();
    tracker.remember(&outcome);
    outcome.message
}

/// The configuration that the tests vary: `/p` is the root, `/h` the user's own directory.
pub(super) fn settings(base: &[&str], local: &[&str], max_bytes: usize) -> Settings {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Settings {
        home: Some(Home {
            dir: "/h".into(),
            shown: "~/.dsh",
        }),
        markers: vec![".git".to_owned()],
        base: names(base),
        local: names(local),
        max_bytes: Some(max_bytes),
        max_source_bytes: 1000,
    }
}

/// A log with a step open at all times.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) log: Log,
    turn: u64,
}

impl Conversation {
    pub(super) fn new() -> Self {
        let mut conversation = Self {
            log: Log::new(),
            turn: 0,
        };
        conversation.begin();
        conversation
    }

    fn push(&mut self, body: EventBody) {
        self.log.push(body, 0).expect("it follows");
    }

    fn begin(&mut self) {
        self.turn += 1;
        let turn = self.turn;
        self.push(EventBody::TurnStart { turn });
        self.push(EventBody::StepStart { turn, step: 1 });
    }

    pub(super) fn tell(&mut self, message: &Message) {
        let context = message.to_context();
        self.push(EventBody::UserMessage {
            source: context.source,
            content: context.content,
        });
    }

    fn end(&mut self) {
        let (turn, outcome) = (self.turn, Ending::Completed);
        let step = EventBody::StepEnd {
            turn,
            step: 1,
            outcome: outcome.clone(),
        };
        self.push(step);
        self.push(EventBody::TurnEnd { turn, outcome });
    }

    /// Ends the step, and its turn with it, and begins the next ones.
    pub(super) fn next_step(&mut self) {
        self.end();
        self.begin();
    }

    /// Ends the step, hides all up to the event `to`, and begins the next step. Gives the last event
    /// that was hidden.
    pub(super) fn compact(&mut self, to: u64) -> u64 {
        self.end();
        let to = to.clamp(1, self.log.last_seq());
        // Only whole turns are hidden.
        let starts = |seq: &u64| {
            let next = self.log.event(seq + 1);
            next.is_none_or(|event| matches!(event.body, EventBody::TurnStart { .. }))
        };
        let to = (to..=self.log.last_seq())
            .find(starts)
            .expect("the last one");
        self.push(EventBody::Compaction {
            from: 1,
            to,
            summary: vec![dsh_session::ContentBlock::text("so far")],
        });
        self.begin();
        to
    }
}
