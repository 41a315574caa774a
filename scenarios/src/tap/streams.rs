//! Bytes that wait, and streams of others, which must not block and must stay as they are.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, write};

use super::relay::PIECE;

/// What a pipe that has room certainly takes.
const SURE: usize = 4096;

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    at: usize,
}

impl Queue {
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.rest().len() >= PIECE
    }

    pub(super) fn take(&mut self, from: &mut Vec<u8>) {
        if self.is_empty() {
            self.clear();
            std::mem::swap(&mut self.bytes, from);
        } else {
            self.bytes.drain(..self.at);
            self.at = 0;
            self.bytes.append(from);
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn wrote(&mut self, count: usize) {
        self.at += count;
        if self.is_empty() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
        // A flood's memory is not held for good.
        self.bytes.shrink_to(4 * PIECE);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
    /// A file or a terminal.
    Other,
}

/// One of the streams we were started with, on its writing side.
#[derive(Debug)]
pub(super) struct Theirs {
    kind: Kind,
    pub(super) open: bool,
    pub(super) queue: Queue,
}

impl Theirs {
    pub(super) fn new(fd: BorrowedFd<'_>) -> Self {
        let (kind, open) = match fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) => (Kind::Pipe, true),
            Ok(FileType::Socket) => (Kind::Socket, true),
            Ok(_) => (Kind::Other, true),
            Err(_) => (Kind::Other, false),
        };
        Self {
            kind,
            open,
            queue: Queue::default(),
        }
    }

    /// Writes as much as can be without waiting; false if nobody reads it any more.
    pub(super) fn flush(&mut self, fd: BorrowedFd<'_>) -> bool {
        while self.open && !self.queue.is_empty() {
            let rest = self.queue.rest();
            let wrote = match self.kind {
                Kind::Other => write(fd, rest),
                Kind::Socket => {
                    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
                    rustix::net::send(fd, rest, flags)
                }
                Kind::Pipe => match ready(fd, PollFlags::OUT) {
                    Ok(flags) if flags.contains(PollFlags::OUT) => {
                        write(fd, &rest[..rest.len().min(SURE)])
                    }
                    Ok(flags) if flags.intersects(PollFlags::ERR | PollFlags::HUP) => {
                        Err(Errno::PIPE)
                    }
                    Ok(_) => Err(Errno::AGAIN),
                    Err(error) => Err(error),
                },
            };
            match wrote {
                Ok(count) => self.queue.wrote(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.queue.clear();
                    return false;
                }
            }
        }
        true
    }
}

/// What `fd` is ready for now.
fn ready(fd: BorrowedFd<'_>, flags: PollFlags) -> Result<PollFlags, Errno> {
    let mut fds = [PollFd::new(&fd, flags)];
    let none = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&none))?;
    Ok(fds[0].revents())
}
