//! Lines of bounded length from a stream, and what is told of them.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The most bytes that a line from a client may have, its end not counted.
pub(crate) const LONGEST: usize = 16 << 20;

/// How long a client that was interrupted along with us may take to read the rest.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The most characters of an error that may quote what a client sent.
const BRIEF: usize = 300;

/// Words that may quote what a client sent, in a length that is fit for an answer.
pub(crate) fn brief(words: &str) -> String {
    match words.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.to_owned(),
    }
}

/// A line, or what stands in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The bytes of a line, without its end.
    Whole(Vec<u8>),
    /// A line of more bytes than allowed; its rest is skipped.
    TooLong,
    /// The stream ended; what had no line end by then is dropped, being no whole message.
    End,
}

/// Reads lines. Its memory is bounded by the limit, whatever comes.
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    begun: Vec<u8>,
    /// Whether the rest of the line under way is skipped.
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            begun: Vec::new(),
            skipping: false,
        }
    }

    /// The next line. May be dropped and called again without a loss.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(Line::End);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let used = part.len() + usize::from(end.is_some());
            let overflows = !self.skipping && self.begun.len() + part.len() > self.limit;
            if overflows {
                self.begun = Vec::new();
            } else if !self.skipping {
                self.begun.extend_from_slice(part);
            }
            let skipped = self.skipping;
            self.skipping = (skipped || overflows) && end.is_none();
            self.reader.consume(used);
            if overflows {
                return Ok(Line::TooLong);
            }
            if end.is_some() && !skipped {
                return Ok(Line::Whole(std::mem::take(&mut self.begun)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::io::BufReader;

    use super::*;

    fn lines(bytes: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, bytes), limit);
        let mut all = Vec::new();
        loop {
            let line = lines.next().now_or_never().unwrap().unwrap();
            let ended = line == Line::End;
            all.push(line);
            if ended {
                return all;
            }
        }
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        let bytes = b"12345\n\nlonger than that\ncd\r\nrest";
        for buffer in 1..=bytes.len() {
            let expected = [
                Line::Whole(b"12345".to_vec()),
                Line::Whole(Vec::new()),
                Line::TooLong,
                Line::Whole(b"cd\r".to_vec()),
                Line::End,
            ];
            assert_eq!(lines(bytes, 5, buffer), expected, "buffer of {buffer}");
        }
    }
}
