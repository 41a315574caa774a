//! What is to be written to a server, with the boundaries of its frames (OPN-3, OPN-5, SRQ-1). Pure.
//!
//! Frames go out in the order in which they were pushed, in one stream, so that several may be given
//! to the kernel in one write. How far each has got is known: a frame of which nothing was written
//! can still be taken back, one of which something was written must be finished.

use std::collections::VecDeque;

use crate::framing::write_frame;

/// A buffer above this size is given back once it is empty.
const KEPT_BUFFER: usize = 256 * 1024;

/// Written bytes in front of the buffer beyond which they are removed.
const MOST_WRITTEN: usize = 64 * 1024;

/// Names one frame of one outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameId(u64);

/// How far a frame has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing of it was written.
    Untouched,
    /// Something of it was written.
    Partial,
    /// All of it was written.
    Written,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    buffer: Vec<u8>,
    /// How many bytes at the front of `buffer` were written.
    written: usize,
    /// The frames that are not wholly written, in order.
    frames: VecDeque<Frame>,
    /// How many bytes of the first of them were written.
    begun: usize,
    next: u64,
    answer_bytes: usize,
}

#[derive(Debug)]
struct Frame {
    id: FrameId,
    length: usize,
    /// To a request of the server.
    answer: bool,
}

impl Outbox {
    /// Appends a message of our own. `expected` is a guess of the body's size.
    pub(crate) fn push(&mut self, expected: usize, body: impl FnOnce(&mut Vec<u8>)) -> FrameId {
        self.append(false, expected, body)
    }

    /// Appends an answer to a request of the server.
    pub(crate) fn push_answer(&mut self, body: impl FnOnce(&mut Vec<u8>)) {
        self.append(true, 100, body);
    }

    fn append(
        &mut self,
        answer: bool,
        expected: usize,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> FrameId {
        let before = self.buffer.len();
        write_frame(&mut self.buffer, expected, body);
        let length = self.buffer.len() - before;
        if answer {
            self.answer_bytes += length;
            // Nobody asks for a single answer, so that a flood of them is one entry.
            if let Some(last) = self.frames.back_mut().filter(|last| last.answer) {
                last.length += length;
                return last.id;
            }
        }
        let id = FrameId(self.next);
        self.next += 1;
        self.frames.push_back(Frame { id, length, answer });
        id
    }

    /// What is to be written next.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// How many bytes of answers wait to be written, those of a half-written one included.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Records that the first `count` pending bytes were written.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.written += count;
        self.begun += count;
        while let Some(first) = self.frames.front() {
            if self.begun < first.length {
                break;
            }
            self.begun -= first.length;
            if first.answer {
                self.answer_bytes -= first.length;
            }
            self.frames.pop_front();
        }
        self.drop_written();
    }

    fn drop_written(&mut self) {
        if self.written == self.buffer.len() {
            self.buffer.clear();
            self.written = 0;
            if self.buffer.capacity() > KEPT_BUFFER {
                self.buffer = Vec::new();
            }
        } else if self.written > MOST_WRITTEN && self.written > self.buffer.len() / 2 {
            self.buffer.drain(..self.written);
            self.written = 0;
        }
    }

    /// How far the frame has got. A frame that was taken back counts as written.
    pub(crate) fn status(&self, id: FrameId) -> Status {
        match self.frames.iter().position(|frame| frame.id == id) {
            None => Status::Written,
            Some(0) if self.begun > 0 => Status::Partial,
            Some(_) => Status::Untouched,
        }
    }

    /// Takes a frame back if nothing of it was written; returns whether it was.
    pub(crate) fn retract(&mut self, id: FrameId) -> bool {
        if self.status(id) != Status::Untouched {
            return false;
        }
        let mut begin = self.written - self.begun;
        for (index, frame) in self.frames.iter().enumerate() {
            if frame.id == id {
                self.buffer.drain(begin..begin + frame.length);
                self.frames.remove(index);
                return true;
            }
            begin += frame.length;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(outbox: &mut Outbox, body: &str) -> FrameId {
        outbox.push(body.len(), |out| out.extend_from_slice(body.as_bytes()))
    }

    /// OPN-3, OPN-5: it is known how far each frame has got.
    #[test]
    fn the_state_of_each_frame_is_known() {
        let mut outbox = Outbox::default();
        let first = push(&mut outbox, "1");
        let second = push(&mut outbox, "2");
        let length = outbox.pending().len() / 2;
        let states = |outbox: &Outbox| (outbox.status(first), outbox.status(second));
        assert_eq!(states(&outbox), (Status::Untouched, Status::Untouched));
        outbox.wrote(1);
        assert_eq!(states(&outbox), (Status::Partial, Status::Untouched));
        outbox.wrote(length - 1);
        assert_eq!(states(&outbox), (Status::Written, Status::Untouched));
        outbox.wrote(length - 1);
        assert_eq!(states(&outbox), (Status::Written, Status::Partial));
        outbox.wrote(1);
        assert_eq!(states(&outbox), (Status::Written, Status::Written));
        assert!(outbox.pending().is_empty());
    }

    /// OPN-5: only what was not begun is taken back, and what is behind it closes up.
    #[test]
    fn only_an_untouched_frame_is_taken_back() {
        let mut outbox = Outbox::default();
        let first = push(&mut outbox, "1");
        let second = push(&mut outbox, "2");
        outbox.push_answer(|out| out.extend_from_slice(b"3"));
        outbox.wrote(3);
        assert!(!outbox.retract(first));
        assert!(outbox.retract(second));
        assert!(!outbox.retract(second));
        let rest = String::from_utf8(outbox.pending().to_vec()).unwrap();
        assert_eq!(rest, "tent-Length: 1\r\n\r\n1Content-Length: 1\r\n\r\n3");
        outbox.wrote(rest.len());
        assert_eq!(outbox.answer_bytes(), 0);
    }

    /// SRQ-1: a flood of answers is counted, and costs no entry each.
    #[test]
    fn answers_are_counted() {
        let mut outbox = Outbox::default();
        for _ in 0..10_000 {
            outbox.push_answer(|out| out.extend_from_slice(b"{}"));
        }
        assert_eq!(outbox.frames.len(), 1);
        assert_eq!(outbox.answer_bytes(), outbox.pending().len());
        let all = outbox.pending().len();
        outbox.wrote(all - 1);
        assert_eq!(outbox.answer_bytes(), all);
        assert!(
            outbox.buffer.len() < MOST_WRITTEN,
            "written bytes are not kept"
        );
        outbox.wrote(1);
        assert_eq!((outbox.answer_bytes(), outbox.buffer.len()), (0, 0));
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut outbox = Outbox::default();
        push(&mut outbox, &"x".repeat(1_000_000));
        outbox.wrote(outbox.pending().len());
        assert_eq!(outbox.buffer.capacity(), 0);
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        #[derive(Clone, Debug)]
        enum Step {
            Push(usize),
            Answer(usize),
            Write(usize),
            Retract(usize),
        }

        fn any_step() -> impl Strategy<Value = Step> {
            prop_oneof![
                (0..30_usize).prop_map(Step::Push),
                (0..30_usize).prop_map(Step::Answer),
                (0..90_usize).prop_map(Step::Write),
                (0..5_usize).prop_map(Step::Retract),
            ]
        }

        proptest! {
            /// FRM-1, OPN-5, SRQ-1: however frames are pushed, written and taken back, what goes
            /// out is a sequence of whole frames in the order of pushing.
            #[test]
            fn what_goes_out_is_whole_frames(steps in prop::collection::vec(any_step(), 0..60)) {
                let mut outbox = Outbox::default();
                let mut wire = Vec::new();
                let mut ids = Vec::new();
                let mut expected: Vec<(Option<FrameId>, Vec<u8>)> = Vec::new();
                for (number, step) in steps.into_iter().enumerate() {
                    match step {
                        Step::Push(length) | Step::Answer(length) => {
                            let body = format!("{number}{}", "x".repeat(length));
                            let id = if matches!(step, Step::Push(_)) {
                                let id = push(&mut outbox, &body);
                                ids.push(id);
                                Some(id)
                            } else {
                                outbox.push_answer(|out| out.extend_from_slice(body.as_bytes()));
                                None
                            };
                            expected.push((id, body.into_bytes()));
                        }
                        Step::Write(count) => {
                            let count = count.min(outbox.pending().len());
                            wire.extend_from_slice(&outbox.pending()[..count]);
                            outbox.wrote(count);
                        }
                        Step::Retract(back) => {
                            let Some(&id) = ids.iter().rev().nth(back) else { continue };
                            if outbox.retract(id) {
                                expected.retain(|(other, _)| *other != Some(id));
                            }
                        }
                    }
                }
                wire.extend_from_slice(outbox.pending());
                let mut decoder = crate::framing::FrameDecoder::new(1_000);
                decoder.feed(&wire);
                for (_, body) in expected {
                    let read = decoder.next_frame().map(|frame| frame.map(<[u8]>::to_vec));
                    prop_assert_eq!(read, Ok(Some(body)));
                }
                prop_assert_eq!(decoder.partial(), crate::framing::Partial::Nothing);
            }
        }
    }
}
