//! What waits to be written to stdout.
//!
//! Writes never block: a client that does not read must not keep the server from hearing it, or
//! from hearing that the runner is gone.
//!
//! A piece that is to be seen alone is written when the pipe is empty. A pipe says so by itself: if
//! it has room for one page only, it is writable exactly when that page was taken. Where this
//! cannot be had (a socket, or a pipe whose pages are taken) the server looks every millisecond.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, ioctl_fionread, write};

/// What the head of the queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Nothing: the queue is empty.
    Nothing,
    /// Room in the pipe.
    Room,
    /// An empty pipe, told by its being writable.
    Drained,
    /// An empty pipe, which has to be looked at again soon.
    Look,
}

/// One write, perhaps in pieces.
#[derive(Debug)]
struct Write {
    bytes: Vec<u8>,
    /// Where the pieces end; empty if it need not be seen in pieces.
    ends: Vec<usize>,
    /// Bytes written, and pieces written.
    at: usize,
    piece: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
    /// A file, a terminal: never full, always empty.
    Other,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Output {
    queue: VecDeque<Write>,
    kind: Kind,
    /// The size of the pipe before it was made small.
    size: Option<usize>,
    /// Whether a socket had its pause since the last piece.
    paused: bool,
}

impl Output {
    pub(super) fn new(stdout: BorrowedFd<'_>) -> io::Result<Self> {
        let kind = match FileType::from_raw_mode(fstat(stdout)?.st_mode) {
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            _ => Kind::Other,
        };
        if kind != Kind::Other {
            fcntl_setfl(stdout, fcntl_getfl(stdout)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            queue: VecDeque::new(),
            kind,
            size: None,
            paused: true,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a write; `pieces` are the lengths of its pieces.
    pub(super) fn push(&mut self, bytes: Vec<u8>, pieces: Option<Vec<usize>>) {
        if bytes.is_empty() {
            return;
        }
        let sum = |at: &mut usize, length: usize| {
            *at += length;
            Some(*at)
        };
        let ends = pieces
            .unwrap_or_default()
            .into_iter()
            .scan(0, sum)
            .collect();
        self.queue.push_back(Write {
            bytes,
            ends,
            at: 0,
            piece: 0,
        });
    }

    /// Forgets all that was not written.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Writes as much as can be; `wrote` is told what.
    pub(super) fn advance<E: From<io::Error>>(
        &mut self,
        stdout: BorrowedFd<'_>,
        mut wrote: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Blocked, E> {
        loop {
            let Some(head) = self.queue.front_mut() else {
                self.restore(stdout);
                return Ok(Blocked::Nothing);
            };
            let starts =
                head.at == 0 || head.ends.get(head.piece.wrapping_sub(1)) == Some(&head.at);
            if !head.ends.is_empty() && starts {
                let blocked = self.drained(stdout)?;
                if blocked != Blocked::Nothing {
                    return Ok(blocked);
                }
            }
            let Some(head) = self.queue.front_mut() else {
                continue;
            };
            let end = head
                .ends
                .get(head.piece)
                .copied()
                .unwrap_or(head.bytes.len());
            match write(stdout, &head.bytes[head.at..end]) {
                Ok(count) => {
                    wrote(&head.bytes[head.at..head.at + count])?;
                    head.at += count;
                    self.paused = false;
                    if head.at == end {
                        head.piece += 1;
                    }
                    if head.at == head.bytes.len() {
                        self.queue.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Blocked::Room),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Whether all that was written has been read: `Nothing` if so, else what tells when.
    fn drained(&mut self, stdout: BorrowedFd<'_>) -> io::Result<Blocked> {
        match self.kind {
            Kind::Other => Ok(Blocked::Nothing),
            // Nothing tells whether a socket was read; a pause has to do.
            Kind::Socket if self.paused => Ok(Blocked::Nothing),
            Kind::Socket => {
                self.paused = true;
                Ok(Blocked::Look)
            }
            Kind::Pipe => {
                if ioctl_fionread(stdout)? == 0 {
                    return Ok(Blocked::Nothing);
                }
                let small = self.size.is_some() || self.shrink(stdout);
                Ok(if small {
                    Blocked::Drained
                } else {
                    Blocked::Look
                })
            }
        }
    }

    /// Makes the pipe one page small; false if it cannot be, or not now.
    #[cfg(target_os = "linux")]
    fn shrink(&mut self, stdout: BorrowedFd<'_>) -> bool {
        // Rounded up to one page, where pages are larger.
        let page = 4096;
        let Ok(before) = rustix::pipe::fcntl_getpipe_size(stdout) else {
            return false;
        };
        match rustix::pipe::fcntl_setpipe_size(stdout, page) {
            Ok(_) => {
                self.size = Some(before);
                true
            }
            // More than one page of it is taken.
            Err(_) => false,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn shrink(&mut self, _: BorrowedFd<'_>) -> bool {
        false
    }

    /// Gives the pipe its size back.
    fn restore(&mut self, stdout: BorrowedFd<'_>) {
        if let Some(size) = self.size.take() {
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(stdout, size);
            #[cfg(not(target_os = "linux"))]
            let _ = (size, stdout);
        }
    }
}

/// Puts `/dev/null` in the place of a stream, which closes it for whoever is at its other end.
pub(super) fn close(stream: crate::script::Stream) -> io::Result<()> {
    use crate::script::Stream;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    match stream {
        Stream::Stdin => rustix::stdio::dup2_stdin(null.as_fd())?,
        Stream::Stdout => rustix::stdio::dup2_stdout(null.as_fd())?,
        Stream::Stderr => rustix::stdio::dup2_stderr(null.as_fd())?,
    }
    Ok(())
}
