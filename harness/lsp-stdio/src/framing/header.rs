//! One header section, byte by byte.

use super::{FrameFault, MAX_HEADER_BYTES, MAX_LENGTH};

/// What came of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The section goes on.
    More,
    /// That was its last byte; the body has this many bytes.
    Body(u64),
}

/// The reader of one header section. It keeps positions, not bytes: the section stays in the
/// decoder's buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header {
    /// How many bytes of the section were read.
    pub(super) read: usize,
    /// Where the current line begins, and where its name ends.
    line: usize,
    colon: usize,
    at: At,
    length: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    LineStart,
    Name,
    Value,
    /// Behind the CR of a header line.
    LineCr,
    /// Behind the CR of the blank line.
    BlankCr,
}

impl Header {
    /// Takes the next byte; `section` is everything since the section began, up to that byte.
    pub(super) fn step(&mut self, section: &[u8]) -> Result<Progress, FrameFault> {
        let byte = section[self.read];
        self.read += 1;
        match (self.at, byte) {
            (At::LineStart, b'\r') => self.at = At::BlankCr,
            (At::Name, b':') => {
                self.colon = self.read - 1;
                self.at = At::Value;
            }
            (At::LineStart | At::Name, byte) if is_token(byte) => self.at = At::Name,
            (At::Name | At::LineStart, _) => return Err(FrameFault::NotAHeader),
            (At::Value, b'\r') => self.at = At::LineCr,
            (At::LineCr, b'\n') => {
                self.end_line(&section[self.line..self.read - 2])?;
                self.line = self.read;
                self.at = At::LineStart;
            }
            (At::BlankCr, b'\n') => return self.end().map(Progress::Body),
            (At::Value, b'\n') | (At::LineCr | At::BlankCr, _) => return Err(FrameFault::LineEnd),
            (At::Value, _) => {}
        }
        if self.read >= MAX_HEADER_BYTES {
            return Err(FrameFault::HeaderTooLong);
        }
        Ok(Progress::More)
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), FrameFault> {
        let (name, value) = line.split_at(self.colon - self.line);
        if !name.eq_ignore_ascii_case(b"Content-Length") {
            return Ok(());
        }
        let length = length(trim_blanks(&value[1..]))?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(FrameFault::TwoLengths(other, length)),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<u64, FrameFault> {
        match self.length {
            None => Err(FrameFault::NoLength),
            Some(0) => Err(FrameFault::ZeroLength),
            Some(length) => Ok(length),
        }
    }
}

/// A byte of a header name (RFC 9110, `tchar`).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Without the optional white space around a value: blanks and tabs (FRM-2).
fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

fn length(digits: &[u8]) -> Result<u64, FrameFault> {
    let bad = || FrameFault::BadLength(super::decoder::shown(digits));
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(bad());
    }
    let value = digits.iter().fold(0_u64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    if value > MAX_LENGTH {
        Err(bad())
    } else {
        Ok(value)
    }
}
