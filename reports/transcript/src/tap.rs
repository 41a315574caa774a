//! Turns the bytes of one direction into events.

use crate::event::{Direction, EventBody, Frame};
use crate::raw::Raw;
use crate::recorder::{Bounds, Recorder};
use crate::strict::{Item, StrictReader};

/// Watches one direction of one process's pipes.
///
/// It is given the bytes as they pass, in pieces of any size, and records a frame when its last
/// byte passed. It never changes, delays or holds back anything; who moves the bytes is not its
/// business.
#[derive(Debug)]
pub struct Tap {
    recorder: Recorder,
    process: Option<u32>,
    splitter: Splitter,
}

impl Tap {
    /// A tap at the start of the stream that goes in `direction` of process `process` (from 1).
    pub fn new(recorder: Recorder, process: impl Into<Option<u32>>, direction: Direction) -> Self {
        let splitter = Splitter::new(direction, recorder.bounds());
        Self {
            recorder,
            process: process.into(),
            splitter,
        }
    }

    /// Records what passed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (recorder, process) = (&self.recorder, self.process);
        self.splitter.bytes(bytes, |body| {
            recorder.emit(process, body);
        });
    }

    /// Records that the stream ended; further calls record nothing.
    pub fn end(&mut self) {
        let (recorder, process) = (&self.recorder, self.process);
        self.splitter.end(|body| {
            recorder.emit(process, body);
        });
    }
}

/// A [`Tap`] without a recorder: bytes in, events out.
#[derive(Debug)]
pub struct Splitter {
    direction: Direction,
    bounds: Bounds,
    reader: StrictReader,
    /// Stray bytes kept so far, and those that were not.
    stray: usize,
    dropped: u64,
    ended: bool,
}

impl Splitter {
    /// At the start of the stream that goes in `direction`.
    pub fn new(direction: Direction, bounds: Bounds) -> Self {
        let reader = StrictReader::new(bounds.reader);
        Self {
            direction,
            bounds,
            reader,
            stray: 0,
            dropped: 0,
            ended: false,
        }
    }

    /// Gives the events of what passed to `sink`.
    pub fn bytes(&mut self, bytes: &[u8], mut sink: impl FnMut(EventBody)) {
        let (direction, bounds) = (self.direction, self.bounds);
        let (stray, dropped) = (&mut self.stray, &mut self.dropped);
        self.reader.feed(bytes, |item| match item {
            Item::Frame(frame) => {
                sink(EventBody::Frame(Frame::capture(
                    direction,
                    &frame,
                    bounds.body,
                )));
            }
            Item::Violation { .. } => sink(violation(direction, &item, bounds.stray)),
            Item::Stray { offset, bytes } => {
                let kept = bytes.len().min(bounds.stray - *stray);
                *stray += kept;
                *dropped += (bytes.len() - kept) as u64;
                if kept > 0 {
                    let bytes = Raw::copy(&bytes[..kept]);
                    sink(EventBody::Stray {
                        direction,
                        offset,
                        bytes,
                        dropped: 0,
                        reason: None,
                    });
                }
            }
        });
    }

    /// Gives the events of the stream's end to `sink`; further calls give none.
    pub fn end(&mut self, mut sink: impl FnMut(EventBody)) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (direction, total) = (self.direction, self.reader.taken());
        if let Some(item) = self.reader.end() {
            sink(violation(direction, &item, self.bounds.stray));
        }
        if self.dropped > 0 {
            let (offset, bytes) = (total - self.dropped, Raw::default());
            let dropped = self.dropped;
            sink(EventBody::Stray {
                direction,
                offset,
                bytes,
                dropped,
                reason: None,
            });
        }
        sink(EventBody::Closed { direction, total });
    }
}

/// The event of bytes that are no frame, with at most `limit` of them.
pub fn violation(direction: Direction, item: &Item<'_>, limit: usize) -> EventBody {
    let (offset, reason, header, body) = match item {
        Item::Violation {
            offset,
            reason,
            header,
            body,
        } => (*offset, Some(reason.clone()), *header, *body),
        Item::Stray { offset, bytes } => (*offset, None, *bytes, &[][..]),
        Item::Frame(frame) => (frame.offset, None, frame.header, &[][..]),
    };
    let mut bytes = header[..header.len().min(limit)].to_vec();
    bytes.extend_from_slice(&body[..body.len().min(limit - bytes.len())]);
    let dropped = (header.len() + body.len() - bytes.len()) as u64;
    let bytes = Raw(bytes.into());
    EventBody::Stray {
        direction,
        offset,
        bytes,
        dropped,
        reason,
    }
}
