//! Which lines of a file are shown: bytes in, piece by piece, lines out. No I/O, and memory for
//! what is shown and no more.
//!
//! A line ends with LF or CRLF; neither is part of it. A carriage return elsewhere is a character
//! like any other, as it is to compilers, `grep` and `git`, so that line numbers agree with theirs.
//! A line end at the end of the file ends the last line and begins no new one. A leading BOM is
//! not part of the first line. Bytes that are not UTF-8, and NUL, are shown as U+FFFD.
//!
//! A file with a NUL byte near its beginning, or with the mark of UTF-16, is no text.

use std::fmt::Write as _;

use memchr::{memchr, memchr_iter};

use crate::args::Range;
use crate::config::ToolFsConfig;
use crate::render::Line;

/// How far from the beginning a NUL byte tells a binary file, as `git` has it.
const LOOKED_AT: usize = 8000;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Why a file is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotText {
    /// A NUL byte, at this offset.
    Nul(usize),
    /// The byte order mark of UTF-16.
    Utf16,
}

/// The lines that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) lines: Vec<Line>,
    pub(crate) total_lines: u64,
}

/// A window that the file is moved past.
pub(crate) struct Window {
    range: Range,
    max_line: usize,
    max_bytes: usize,
    /// The bytes that decide whether it is text, as far as they have come.
    head: Vec<u8>,
    /// How many bytes of a BOM the file began with so far; none once that is decided.
    bom: Option<usize>,
    /// Lines whose end was seen.
    ended: u64,
    /// Whether something came after the last line end.
    open: bool,
    /// The beginning of the line that is being taken: enough to know what to show.
    line: Vec<u8>,
    /// Whether the line is longer than what was kept.
    longer: bool,
    lines: Vec<Line>,
    /// Bytes that the lines take when shown.
    used: usize,
    /// Whether a line was left out because of `max_bytes`.
    capped: bool,
}

impl Window {
    pub(crate) fn new(range: Range, config: &ToolFsConfig) -> Self {
        let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            range,
            max_line: size(config.max_line_length),
            max_bytes: size(config.max_bytes),
            head: Vec::new(),
            bom: Some(0),
            ended: 0,
            open: false,
            line: Vec::new(),
            longer: false,
            lines: Vec::new(),
            used: 0,
            capped: false,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), NotText> {
        self.judge(piece)?;
        let mut rest = piece;
        while let Some(matched) = self.bom
            && let Some((first, after)) = rest.split_first()
        {
            if *first == BOM[matched] {
                rest = after;
                self.bom = (matched + 1 < BOM.len()).then_some(matched + 1);
            } else {
                self.bom = None;
                self.take(&BOM[..matched]);
            }
        }
        self.take(rest);
        Ok(())
    }

    /// The lines, once the file has ended.
    pub(crate) fn finish(mut self) -> Shown {
        if let Some(matched) = self.bom {
            self.take(&BOM[..matched]);
        }
        if self.open {
            if self.takes() {
                self.end_line(false);
            } else {
                self.ended += 1;
            }
        }
        Shown {
            lines: self.lines,
            total_lines: self.ended,
        }
    }

    fn judge(&mut self, piece: &[u8]) -> Result<(), NotText> {
        let seen = self.head.len();
        if seen == LOOKED_AT {
            return Ok(());
        }
        let looked_at = &piece[..piece.len().min(LOOKED_AT - seen)];
        self.head.extend_from_slice(looked_at);
        if self.head.starts_with(b"\xFF\xFE") || self.head.starts_with(b"\xFE\xFF") {
            return Err(NotText::Utf16);
        }
        match memchr(0, looked_at) {
            Some(at) => Err(NotText::Nul(seen + at)),
            None => Ok(()),
        }
    }

    /// Whether the line that is being taken is one to show.
    fn takes(&self) -> bool {
        self.ended + 1 >= self.range.offset
            && (self.lines.len() as u64) < self.range.limit
            && !self.capped
    }

    fn take(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            if self.takes() {
                let end = memchr(b'\n', rest);
                self.keep(&rest[..end.unwrap_or(rest.len())]);
                match end {
                    Some(at) => {
                        self.end_line(true);
                        rest = &rest[at + 1..];
                    }
                    None => return,
                }
            } else {
                rest = self.skip(rest);
            }
        }
    }

    /// Counts lines that are not shown, and returns what follows them in the piece.
    fn skip<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let count = memchr_iter(b'\n', piece).count() as u64;
        let before = (self.range.offset - 1).saturating_sub(self.ended);
        if 0 < before && before <= count {
            let at =
                memchr_iter(b'\n', piece).nth(usize::try_from(before - 1).unwrap_or(usize::MAX));
            if let Some(at) = at {
                self.ended += before;
                self.open = false;
                return &piece[at + 1..];
            }
        }
        self.ended += count;
        self.open = piece.last() != Some(&b'\n');
        &[]
    }

    fn keep(&mut self, bytes: &[u8]) {
        // No character has more than four bytes, so that this holds one character more than are
        // shown, or the whole line.
        let most = self.max_line.saturating_add(1).saturating_mul(4);
        let room = most - self.line.len();
        self.longer |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.open = true;
    }

    fn end_line(&mut self, by_line_end: bool) {
        self.ended += 1;
        self.open = false;
        let mut bytes = self.line.as_slice();
        if by_line_end && !self.longer {
            bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        }
        let text = String::from_utf8_lossy(bytes).replace('\0', "\u{FFFD}");
        let text = cut(text, self.max_line);
        self.line.clear();
        self.longer = false;
        self.push(text);
    }

    fn push(&mut self, text: String) {
        let number = self.ended;
        // `N: `, the text, and a line end.
        let frame = number.to_string().len() + 3;
        let room = self.max_bytes.saturating_sub(self.used);
        if frame + text.len() <= room {
            self.used += frame + text.len();
            self.lines.push(Line { number, text });
            return;
        }
        self.capped = true;
        if self.lines.is_empty() {
            // A window that shows nothing would never get further.
            let end = text.floor_char_boundary(room.saturating_sub(frame));
            let characters = text[..end].chars().count();
            let text = cut(text, characters);
            self.lines.push(Line { number, text });
        }
    }
}

/// At most `most` characters of a line; a sign says so where some are left out.
fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        // Writing to a string cannot fail.
        let _ = write!(text, "… (line cut after {most} characters)");
    }
    text
}

#[cfg(test)]
mod tests;
