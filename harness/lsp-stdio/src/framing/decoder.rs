//! The reading side: a buffer that bytes are read into and bodies are read out of, in place.

use super::header::{Header, Progress};
use super::{FrameError, FrameFault, SHOWN_BYTES};

/// How much is read at a time while nothing larger is known to come: what a pipe holds.
const READ_BUFFER: usize = 64 * 1024;

/// The room below which the next header is not read into what is left of the buffer.
const LEAST_ROOM: usize = 4 * 1024;

/// A buffer above this size is given back once its message is done with.
const KEPT_BUFFER: usize = 256 * 1024;

/// Splits a byte stream into message bodies (FRM-2…5).
///
/// Bytes go in by [`feed`](Self::feed), or by reading into [`room`](Self::room); whole bodies come
/// out of [`next_frame`](Self::next_frame). Any chunking gives the same bodies. Each byte is looked
/// at once and moved a bounded number of times, and the decoder holds at most one message and one
/// read buffer (FRM-9): memory grows with what arrives, never with what is only announced.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Where the current frame begins in `buffer`.
    start: usize,
    state: State,
    failed: Option<FrameFault>,
    max_body: u64,
    frames: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header(Header),
    Body {
        begin: usize,
        end: usize,
    },
    /// The body up to `end` was handed out; the next call forgets it.
    Done {
        end: usize,
    },
}

/// What of a frame had arrived when the stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// Nothing: the stream ended between two frames.
    Nothing,
    /// Part of a header section.
    Header {
        /// Bytes received.
        received: usize,
    },
    /// A header section and part of the body.
    Body {
        /// Bytes of the body that were received.
        received: usize,
        /// Bytes that were announced.
        announced: usize,
    },
}

impl Partial {
    const fn of_header(received: usize) -> Self {
        match received {
            0 => Self::Nothing,
            received => Self::Header { received },
        }
    }
}

impl FrameDecoder {
    /// A decoder that takes bodies of up to `max_body` bytes.
    pub fn new(max_body: u64) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            state: State::Header(Header::default()),
            failed: None,
            max_body,
            frames: 0,
        }
    }

    /// Appends bytes that were received.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.room();
            // Only a caller that leaves whole frames inside finds no room: then it is made as needed.
            let fits = if self.spare() == 0 {
                bytes.len()
            } else {
                self.spare().min(bytes.len())
            };
            let (now, later) = bytes.split_at(fits);
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
    }

    /// The buffer, with spare capacity to read the next bytes into; append only.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.forget();
        self.make_room();
        &mut self.buffer
    }

    /// The body of the next whole frame, if there is one. An error is final: every later call fails
    /// the same way.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameFault> {
        self.forget();
        if let Some(fault) = &self.failed {
            return Err(fault.clone());
        }
        if let State::Header(header) = self.state {
            self.state = self.read_header(header).inspect_err(|fault| {
                self.failed = Some(fault.clone());
            })?;
        }
        match self.state {
            State::Body { begin, end } if end <= self.buffer.len() => {
                self.state = State::Done { end };
                self.frames += 1;
                Ok(Some(&self.buffer[begin..end]))
            }
            _ => Ok(None),
        }
    }

    /// `fault` together with what was received in place of a frame (FRM-10).
    pub fn explain(&self, fault: FrameFault) -> FrameError {
        FrameError {
            fault,
            first_bytes: shown(&self.buffer[self.start..]),
            frames_before: self.frames,
        }
    }

    /// What of a frame has arrived and not come out.
    pub fn partial(&self) -> Partial {
        match self.state {
            State::Body { begin, end } => Partial::Body {
                received: self.buffer.len() - begin,
                announced: end - begin,
            },
            State::Done { end } => Partial::of_header(self.buffer.len() - end),
            State::Header(_) => Partial::of_header(self.buffer.len() - self.start),
        }
    }

    /// How much memory the decoder holds, in bytes.
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Forgets the frame that was handed out last.
    fn forget(&mut self) {
        if let State::Done { end } = self.state {
            self.start = end;
            self.state = State::Header(Header::default());
        }
    }

    fn read_header(&self, mut header: Header) -> Result<State, FrameFault> {
        let section = &self.buffer[self.start..];
        while header.read < section.len() {
            if let Progress::Body(length) = header.step(section)? {
                return self.body(self.start + header.read, length);
            }
        }
        Ok(State::Header(header))
    }

    fn body(&self, begin: usize, length: u64) -> Result<State, FrameFault> {
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| begin.checked_add(length));
        match end {
            Some(end) if length <= self.max_body => Ok(State::Body { begin, end }),
            _ => Err(FrameFault::BodyTooLong {
                declared: length,
                limit: self.max_body,
            }),
        }
    }

    fn make_room(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > KEPT_BUFFER {
                self.buffer = Vec::new();
            }
        }
        let wanted = self.wanted();
        if self.spare() >= wanted.min(LEAST_ROOM) {
            return;
        }
        self.compact();
        if self.spare() < wanted.min(LEAST_ROOM) {
            self.buffer.reserve_exact(wanted);
        }
    }

    fn spare(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    /// How much room is worth having. For a body it doubles with what has arrived of it, and ends
    /// where the body does: an announcement alone costs no memory.
    fn wanted(&self) -> usize {
        match self.state {
            State::Body { end, .. } => {
                let arrived = self.buffer.len() - self.start;
                end.saturating_sub(self.buffer.len())
                    .min(arrived.max(READ_BUFFER))
            }
            _ => READ_BUFFER,
        }
    }

    /// Moves the current, unfinished frame to the front. It happens to a frame at most once, since
    /// frames in front of it must have been taken out in between.
    fn compact(&mut self) {
        if self.start == 0 {
            return;
        }
        self.buffer.copy_within(self.start.., 0);
        self.buffer.truncate(self.buffer.len() - self.start);
        if let State::Body { begin, end } = &mut self.state {
            *begin -= self.start;
            *end -= self.start;
        }
        self.start = 0;
    }
}

/// The first bytes as text, with a mark where there are more.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    if bytes.len() > SHOWN_BYTES {
        text.push('…');
    }
    text
}
