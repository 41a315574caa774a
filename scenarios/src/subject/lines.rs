//! Lines of bounded length from a stream.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The most bytes a line may have, its end not counted.
pub(super) const LONGEST: usize = 64 << 20;

/// A line, or what stands in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The bytes of a line, without its end.
    Whole(Vec<u8>),
    /// A line of more bytes than allowed; told as soon as that is known. The rest is skipped.
    TooLong,
    /// The stream ended, after so many bytes that are no whole line.
    End(Vec<u8>),
}

/// Reads lines. Its memory is bounded by the limit, whatever comes.
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
    /// What has been read of the line that is under way, so that a read that is given up loses
    /// nothing.
    begun: Vec<u8>,
    /// Whether the line under way was told to be too long.
    too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            begun: Vec::new(),
            too_long: false,
        }
    }

    /// The next line. May be dropped and called again.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                let rest = std::mem::take(&mut self.begun);
                return Ok(Line::End(rest));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let skipped = self.too_long;
            if !skipped && self.begun.len() + part.len() > self.limit {
                self.too_long = true;
                self.begun = Vec::new();
            } else if !skipped {
                self.begun.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            let too_long = self.too_long;
            if end.is_some() {
                self.too_long = false;
            }
            if too_long && !skipped {
                return Ok(Line::TooLong);
            }
            if end.is_some() && !too_long {
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

    /// All lines, read through a buffer of so many bytes.
    fn lines(bytes: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, bytes), limit);
        let mut all = Vec::new();
        loop {
            let line = lines.next().now_or_never().unwrap().unwrap();
            let end = matches!(line, Line::End(_));
            all.push(line);
            if end {
                return all;
            }
        }
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        let bytes = b"ab\n\nlonger than that\ncd\r\nrest";
        for buffer in 1..=bytes.len() {
            let expected = [
                Line::Whole(b"ab".to_vec()),
                Line::Whole(Vec::new()),
                Line::TooLong,
                Line::Whole(b"cd\r".to_vec()),
                Line::End(b"rest".to_vec()),
            ];
            assert_eq!(lines(bytes, 5, buffer), expected, "buffer of {buffer}");
        }
    }

    #[test]
    fn the_limit_itself_is_allowed_and_a_line_that_never_ends_is_told_at_once() {
        let whole = [Line::Whole(b"12345".to_vec()), Line::End(Vec::new())];
        assert_eq!(lines(b"12345\n", 5, 2), whole);
        let told = [Line::TooLong, Line::End(Vec::new())];
        assert_eq!(lines(b"123456", 5, 2), told);
    }
}
