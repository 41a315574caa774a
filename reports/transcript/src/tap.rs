//! Turns the bytes of one direction into events.

use crate::event::{Direction, EventBody, Frame};
use crate::raw::Raw;
use crate::recorder::Recorder;
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
    direction: Direction,
    reader: StrictReader,
    /// Stray bytes kept so far, and those that were not.
    stray: usize,
    dropped: u64,
    ended: bool,
}

impl Tap {
    /// A tap at the start of the stream that goes in `direction` of process `process` (from 1).
    pub fn new(recorder: Recorder, process: impl Into<Option<u32>>, direction: Direction) -> Self {
        let reader = StrictReader::new(recorder.bounds().reader);
        let process = process.into();
        Self {
            recorder,
            process,
            direction,
            reader,
            stray: 0,
            dropped: 0,
            ended: false,
        }
    }

    /// Records what passed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (direction, process) = (self.direction, self.process);
        let bounds = self.recorder.bounds();
        let (recorder, stray, dropped) = (&self.recorder, &mut self.stray, &mut self.dropped);
        self.reader.feed(bytes, |item| match item {
            Item::Frame(frame) => {
                let frame = Frame::capture(direction, &frame, bounds.body);
                recorder.emit(process, EventBody::Frame(frame));
            }
            Item::Violation { .. } => {
                recorder.emit(process, violation(direction, &item, bounds.stray));
            }
            Item::Stray { offset, bytes } => {
                let kept = bytes.len().min(bounds.stray - (*stray).min(bounds.stray));
                *stray += kept;
                *dropped += (bytes.len() - kept) as u64;
                if kept > 0 {
                    let bytes = Raw::copy(&bytes[..kept]);
                    let body = EventBody::Stray {
                        direction,
                        offset,
                        bytes,
                        dropped: 0,
                        reason: None,
                    };
                    recorder.emit(process, body);
                }
            }
        });
    }

    /// Records that the stream ended; further calls record nothing.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (direction, total) = (self.direction, self.reader.taken());
        let limit = self.recorder.bounds().stray;
        if let Some(item) = self.reader.end() {
            self.recorder
                .emit(self.process, violation(direction, &item, limit));
        }
        if self.dropped > 0 {
            let (offset, bytes) = (total - self.dropped, Raw::default());
            let dropped = self.dropped;
            let body = EventBody::Stray {
                direction,
                offset,
                bytes,
                dropped,
                reason: None,
            };
            self.recorder.emit(self.process, body);
        }
        self.recorder
            .emit(self.process, EventBody::Closed { direction, total });
    }
}

/// The event of a violation, with at most `limit` of its bytes.
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
