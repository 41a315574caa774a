//! The form of a transcript in a file: JSON Lines, versioned.
//!
//! The first line is `{"format":"dsh-transcript/1"}`; each further line is one [`Event`].

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// What the first line names.
pub const FORMAT: &str = "dsh-transcript/1";

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 256 << 20;

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
}

/// Why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    #[error("line {line}: {source}")]
    Io {
        /// From 1.
        line: u64,
        /// What the source said.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("an empty file is no transcript; its first line should be {{\"format\":\"{FORMAT}\"}}")]
    Empty,
    /// The first line does not name the format.
    #[error("line 1 is no transcript header; it should be {{\"format\":\"{FORMAT}\"}}")]
    NoHeader,
    /// Another version, or something else.
    #[error(
        "the file says it is {found:?}; this program reads {FORMAT}: use the version of \
             dsh-conform that wrote it, or a newer one"
    )]
    Version {
        /// What the first line names.
        found: String,
    },
    /// A line that is no event.
    #[error("line {line}, column {column}: {reason}")]
    Event {
        /// From 1.
        line: u64,
        /// From 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// The last line has no line end: whoever wrote it was interrupted.
    #[error(
        "line {line} is cut off: whoever wrote the file was interrupted; remove that line to \
             read the rest"
    )]
    CutOff {
        /// From 1.
        line: u64,
    },
    /// A line over [`MAX_LINE`].
    #[error("line {line} is longer than {MAX_LINE} bytes")]
    LineTooLong {
        /// From 1.
        line: u64,
    },
    /// The positions do not count from 0 without gaps.
    #[error(
        "line {line}: event {found} where event {expected} should be; lines are missing, \
             doubled or in another order"
    )]
    Sequence {
        /// From 1.
        line: u64,
        /// The position that should come.
        expected: u64,
        /// The position that is there.
        found: u64,
    },
}

/// Writes events as JSON Lines, header first.
pub fn write<'a>(
    out: &mut impl Write,
    events: impl IntoIterator<Item = &'a Event>,
) -> io::Result<()> {
    write_header(out)?;
    for event in events {
        write_event(out, event)?;
    }
    out.flush()
}

/// Writes the first line.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    write_line(
        out,
        &Header {
            format: FORMAT.to_owned(),
        },
    )
}

/// Writes the line of one event.
pub fn write_event(out: &mut impl Write, event: &Event) -> io::Result<()> {
    write_line(out, event)
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Reads a whole transcript.
pub fn read(source: impl BufRead) -> Result<Vec<Event>, ReadError> {
    Reader::new(source)?.collect()
}

/// Reads a transcript event by event, holding one line at a time.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    line: u64,
    expected: u64,
    buffer: Vec<u8>,
    failed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads and checks the first line.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut reader = Self {
            source,
            line: 0,
            expected: 0,
            buffer: Vec::new(),
            failed: false,
        };
        let complete = match reader.next_line() {
            Ok(None) => return Err(ReadError::Empty),
            Ok(Some(())) => true,
            Err(ReadError::CutOff { .. }) => false,
            Err(error) => return Err(error),
        };
        let header: Header =
            serde_json::from_slice(&reader.buffer).map_err(|_| ReadError::NoHeader)?;
        if header.format != FORMAT {
            return Err(ReadError::Version {
                found: header.format,
            });
        }
        if !complete {
            return Err(ReadError::CutOff { line: 1 });
        }
        Ok(reader)
    }

    /// Reads a line into the buffer, without its end.
    fn next_line(&mut self) -> Result<Option<()>, ReadError> {
        self.buffer.clear();
        self.line += 1;
        let line = self.line;
        // One byte more than allowed, so that a longer line is told from one that just fits.
        let mut limited = io::Read::take(&mut self.source, MAX_LINE as u64 + 1);
        limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| ReadError::Io { line, source })?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        if self.buffer.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(()));
        }
        if self.buffer.len() > MAX_LINE {
            return Err(ReadError::LineTooLong { line });
        }
        Err(ReadError::CutOff { line })
    }

    fn read_event(&mut self) -> Result<Option<Event>, ReadError> {
        if self.next_line()?.is_none() {
            return Ok(None);
        }
        let line = self.line;
        let event: Event = serde_json::from_slice(&self.buffer).map_err(|error| {
            let reason = error.to_string();
            // The position is named by line and column of the file, not of the line.
            let reason = reason
                .rsplit_once(" at line ")
                .map_or(reason.as_str(), |(text, _)| text);
            ReadError::Event {
                line,
                column: error.column(),
                reason: reason.to_owned(),
            }
        })?;
        if event.seq != self.expected {
            let (expected, found) = (self.expected, event.seq);
            return Err(ReadError::Sequence {
                line,
                expected,
                found,
            });
        }
        self.expected += 1;
        Ok(Some(event))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.read_event().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
