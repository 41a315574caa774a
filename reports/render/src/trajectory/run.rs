//! The run as a person sees it: turns, their steps, and what was going on in them.

use std::collections::HashMap;

use super::log::{Body, Logged, Outcome};

/// Where something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Input,
    Model,
    Tools,
}

impl Lane {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Model => "model",
            Self::Tools => "tools",
        }
    }
}

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message that the model reads as the user's.
    Message,
    /// A system prompt or tools that the model had not been shown before.
    Prompt,
    /// A request, and the answer to it where there is one.
    Model {
        answer: Option<usize>,
    },
    /// A call, and its result where there is one.
    Call {
        result: Option<usize>,
    },
    /// An answer that nothing was asked for.
    StrayAnswer,
    /// A result of a call that was not made.
    StrayResult,
    Compaction,
    Unknown,
}

/// Something that was going on. Events are named by their place in the log.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) lane: Lane,
    /// The event it begins with.
    pub(super) event: usize,
    /// The event it ends with; the one it begins with for what takes no time, and none for what the
    /// log does not see end.
    pub(super) end: Option<usize>,
    /// The item of the call that makes this one.
    pub(super) parent: Option<usize>,
    /// The compaction that hides it from the model.
    pub(super) hidden_by: Option<usize>,
}

/// A step, or what stands between steps.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) step: Option<u64>,
    /// Its events.
    pub(super) from: usize,
    /// The first event behind them.
    pub(super) to: usize,
    pub(super) outcome: Option<Outcome>,
}

/// A turn, or what stands between turns.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) turn: Option<u64>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) outcome: Option<Outcome>,
    pub(super) blocks: Vec<Block>,
}

/// The whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) sections: Vec<Section>,
    /// In the order they begin.
    pub(super) items: Vec<Item>,
}

/// Reads the run out of the events. Time is linear in them.
pub(super) fn run(events: &[Logged]) -> Run {
    let mut reading = Reading {
        run: Run::default(),
        asked: None,
        open: HashMap::new(),
        hidden: Vec::new(),
    };
    for (at, event) in events.iter().enumerate() {
        reading.place(at, &event.body);
        reading.item(at, &event.body);
    }
    let Reading {
        mut run, hidden, ..
    } = reading;
    hide(&mut run.items, events, &hidden);
    run
}

struct Reading {
    run: Run,
    /// The item of the request that is not answered yet.
    asked: Option<usize>,
    /// The items of the calls that have no result yet, by the call's id.
    open: HashMap<String, usize>,
    /// Compactions: event, and the positions they hide.
    hidden: Vec<(usize, u64, u64)>,
}

impl Reading {
    /// Puts an event into its turn and step.
    fn place(&mut self, at: usize, body: &Body) {
        let sections = &mut self.run.sections;
        let ended = |section: &Section| section.outcome.is_some() && section.turn.is_some();
        match body {
            Body::TurnStart { turn } => sections.push(Section::new(Some(*turn), at)),
            _ if sections.last().is_none_or(ended) => sections.push(Section::new(None, at)),
            _ => {}
        }
        let Some(section) = sections.last_mut() else {
            return;
        };
        section.to = at + 1;
        let ended = |block: &Block| block.step.is_some() && block.outcome.is_some();
        match body {
            Body::StepStart { step } => section.blocks.push(Block::new(Some(*step), at)),
            // What is behind the end of a turn or step that was left open belongs to neither.
            Body::TurnEnd { outcome } => {
                section.outcome = Some(outcome.clone());
                return;
            }
            _ if section.blocks.last().is_none_or(ended) => {
                section.blocks.push(Block::new(None, at));
            }
            _ => {}
        }
        let Some(block) = section.blocks.last_mut() else {
            return;
        };
        block.to = at + 1;
        if let Body::StepEnd { outcome } = body {
            block.outcome = Some(outcome.clone());
        }
    }

    fn item(&mut self, at: usize, body: &Body) {
        match body {
            Body::UserMessage { .. } => self.point(Kind::Message, Lane::Input, at),
            Body::StepRequest { system, tools, .. } => {
                if system.is_some() || tools.is_some() {
                    self.point(Kind::Prompt, Lane::Input, at);
                }
                self.end_request(at);
                self.asked = Some(self.run.items.len());
                self.point(Kind::Model { answer: None }, Lane::Model, at);
                self.last_is_open();
            }
            Body::Answer(_) => match self.asked.take() {
                Some(asked) => {
                    let item = &mut self.run.items[asked];
                    item.kind = Kind::Model { answer: Some(at) };
                    item.end = Some(at);
                }
                None => self.point(Kind::StrayAnswer, Lane::Model, at),
            },
            Body::Call { call, parent } => {
                let parent = parent.as_ref().and_then(|id| self.open.get(id)).copied();
                self.open.insert(call.id.clone(), self.run.items.len());
                self.point(Kind::Call { result: None }, Lane::Tools, at);
                self.last_is_open();
                if let Some(item) = self.run.items.last_mut() {
                    item.parent = parent;
                }
            }
            Body::Result(result) => match self.open.remove(&result.call_id) {
                Some(open) => {
                    let item = &mut self.run.items[open];
                    item.kind = Kind::Call { result: Some(at) };
                    item.end = Some(at);
                }
                None => self.point(Kind::StrayResult, Lane::Tools, at),
            },
            Body::Compaction { from, to, .. } => {
                self.hidden.push((at, *from, *to));
                self.point(Kind::Compaction, Lane::Input, at);
            }
            Body::StepEnd { .. } | Body::TurnEnd { .. } => self.end_all(at),
            Body::Unknown { .. } => self.point(Kind::Unknown, Lane::Input, at),
            Body::TurnStart { .. } | Body::StepStart { .. } => {}
        }
    }

    fn point(&mut self, kind: Kind, lane: Lane, event: usize) {
        self.run.items.push(Item {
            kind,
            lane,
            event,
            end: Some(event),
            parent: None,
            hidden_by: None,
        });
    }

    fn last_is_open(&mut self) {
        if let Some(item) = self.run.items.last_mut() {
            item.end = None;
        }
    }

    /// A request that is not answered is over when the next thing is asked.
    fn end_request(&mut self, at: usize) {
        if let Some(asked) = self.asked.take() {
            self.run.items[asked].end = Some(at);
        }
    }

    /// What has not ended by the end of its step never does.
    fn end_all(&mut self, at: usize) {
        self.end_request(at);
        for (_, open) in self.open.drain() {
            self.run.items[open].end = Some(at);
        }
    }
}

impl Section {
    fn new(turn: Option<u64>, at: usize) -> Self {
        Self {
            turn,
            from: at,
            to: at + 1,
            outcome: None,
            blocks: Vec::new(),
        }
    }
}

impl Block {
    fn new(step: Option<u64>, at: usize) -> Self {
        Self {
            step,
            from: at,
            to: at + 1,
            outcome: None,
        }
    }
}

/// Marks what compactions hide: each by the first compaction that covers it.
fn hide(items: &mut [Item], events: &[Logged], compactions: &[(usize, u64, u64)]) {
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    if !seqs.is_sorted() {
        return;
    }
    let mut by: Vec<Option<usize>> = vec![None; seqs.len()];
    // For each place one at or behind it that may still be free, so that ranges which overlap cost
    // no more than the places they are the first to cover.
    let mut free: Vec<usize> = (0..=seqs.len()).collect();
    for (at, from, to) in compactions {
        let first = seqs.partition_point(|seq| seq < from);
        let last = seqs.partition_point(|seq| seq <= to).min(*at);
        let mut place = next_free(&mut free, first);
        while place < last {
            by[place] = Some(*at);
            free[place] = place + 1;
            place = next_free(&mut free, place);
        }
    }
    for item in items {
        let read = match item.kind {
            Kind::Model { answer } => answer,
            Kind::Call { result } => result,
            Kind::Message | Kind::Compaction => Some(item.event),
            _ => None,
        };
        item.hidden_by = read.and_then(|read| by[read]);
    }
}

fn next_free(free: &mut [usize], from: usize) -> usize {
    let mut place = from;
    while free[place] != place {
        free[place] = free[free[place]];
        place = free[place];
    }
    place
}
