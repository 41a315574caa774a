//! Questions judges ask of a transcript.

use std::collections::HashMap;

use crate::envelope::{Envelope, Id};
use crate::event::{Direction, Event, EventBody, Frame};

/// A request and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The frame of the request.
    pub request: &'a Event,
    /// The first response to it after it, from the other side.
    pub answer: Option<&'a Event>,
}

impl<'a> Exchange<'a> {
    /// The request's method.
    pub fn method(&self) -> &'a str {
        self.request
            .frame()
            .and_then(Frame::method)
            .unwrap_or_default()
    }

    /// Microseconds from request to answer.
    pub fn latency_us(&self) -> Option<u64> {
        Some(self.answer?.at_us.saturating_sub(self.request.at_us))
    }

    /// The member `result` of the answer.
    pub fn result(&self) -> Option<serde_json::Value> {
        self.answer?.frame()?.at("/result")
    }

    /// The member `error` of the answer.
    pub fn error(&self) -> Option<serde_json::Value> {
        self.answer?.frame()?.at("/error")
    }
}

/// Views over a slice of events. It copies nothing.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub &'a [Event]);

impl<'a> View<'a> {
    /// The processes that occur, ascending.
    pub fn processes(self) -> Vec<u32> {
        let mut all: Vec<u32> = self.0.iter().filter_map(|event| event.process).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// All events of one process, in order.
    pub fn of(self, process: u32) -> impl Iterator<Item = &'a Event> + use<'a> {
        self.0
            .iter()
            .filter(move |event| event.process == Some(process))
    }

    /// The frames of one process, both directions, in order, with their events.
    pub fn frames(self, process: u32) -> impl Iterator<Item = (&'a Event, &'a Frame)> + use<'a> {
        self.of(process)
            .filter_map(|event| Some((event, event.frame()?)))
    }

    /// The frames of one process in one direction, in order, with their events.
    pub fn sent(
        self,
        process: u32,
        direction: Direction,
    ) -> impl Iterator<Item = (&'a Event, &'a Frame)> + use<'a> {
        self.frames(process)
            .filter(move |(_, frame)| frame.direction == direction)
    }

    /// The short names of what the client asked and told one process, in order: `initialize`,
    /// `initialized`, `didOpen`, `definition`, … Answers are not in it.
    pub fn wire(self, process: u32) -> Vec<&'a str> {
        self.sent(process, Direction::ToServer)
            .filter_map(|(_, frame)| frame.short_name())
            .collect()
    }

    /// The requests of one process sent in `direction`, each with its answer. Time is linear in
    /// the events.
    pub fn exchanges(self, process: u32, direction: Direction) -> Vec<Exchange<'a>> {
        let mut exchanges: Vec<Exchange<'a>> = Vec::new();
        let mut open: HashMap<&Id, usize> = HashMap::new();
        for (event, frame) in self.frames(process) {
            match &frame.envelope {
                Envelope::Request { id, .. } if frame.direction == direction => {
                    open.insert(id, exchanges.len());
                    exchanges.push(Exchange {
                        request: event,
                        answer: None,
                    });
                }
                Envelope::Response { id, .. } if frame.direction != direction => {
                    if let Some(at) = open.remove(id) {
                        exchanges[at].answer = Some(event);
                    }
                }
                _ => {}
            }
        }
        exchanges
    }

    /// The bytes of one process and direction that were not part of a frame.
    pub fn stray(self, process: u32, direction: Direction) -> impl Iterator<Item = &'a Event> {
        self.of(process).filter(move |event| {
            matches!(&event.body, EventBody::Stray { direction: d, .. } if *d == direction)
        })
    }

    /// The notes of one kind.
    pub fn notes(self, kind: &str) -> impl Iterator<Item = &'a Event> {
        self.0.iter().filter(
            move |event| matches!(&event.body, EventBody::Note { kind: k, .. } if k == kind),
        )
    }
}
