//! The strict reader of the wire.
//!
//! It cuts a byte stream into LSP frames and keeps every byte it saw: the header as it was written
//! and the body as it was written. Exactly `Content-Length: N`, CRLF CRLF and N bytes conform;
//! every other spelling that can still be read is a [`Deviation`] on the frame, so that whoever
//! judges decides what it means (FRM-1, FRM-2). What cannot be read (FRM-4, FRM-5) is a
//! [`Malformed`] with its offset and its bytes; from there on the stream has no frames any more and
//! the rest is given out as stray bytes.
//!
//! The reader is pure: bytes in, items out. It takes time linear in the bytes, however they are
//! cut, and holds at most one header section and [`Limits::body`] bytes of one body. A frame that
//! lies whole in the bytes given is handed out without being copied.
//!
//! It does not look into bodies; [`Envelope`](crate::Envelope) does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the reader holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a header section, its final blank line included. One byte more is malformed
    /// (FRM-5).
    pub header: usize,
    /// Bytes of a body that is kept whole. A longer one is read to its end, but only
    /// [`Limits::prefix`] bytes, its size and a hash are kept.
    pub body: usize,
    /// Bytes kept from a body that is too long to be kept whole.
    pub prefix: usize,
}

impl Default for Limits {
    /// 64 KiB of header, 64 MiB of body, 64 KiB of a longer body.
    fn default() -> Self {
        Self {
            header: 65_536,
            body: 64 << 20,
            prefix: 65_536,
        }
    }
}

/// The largest length a header may declare: 2^53, the largest integer every JSON peer can hold.
pub const MAX_LENGTH: u64 = 1 << 53;

/// A way to write a frame that can be read but is not exactly `Content-Length: N`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Deviation {
    /// A known header name in another letter case.
    NameCase,
    /// Not exactly one space between the colon and the value, or white space after the value.
    Whitespace,
    /// A `Content-Type` field.
    ContentType,
    /// A field LSP does not know.
    UnknownField,
    /// A field before `Content-Length`.
    Order,
    /// `Content-Length` given again with the same value.
    RepeatedLength,
    /// A length with leading zeros.
    LeadingZeros,
    /// A byte outside printable ASCII in a value.
    NotAscii,
    /// A length of zero: the body is no JSON text.
    EmptyBody,
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Malformed {
    /// The header section ended without a length.
    #[error("no Content-Length in the header section")]
    NoContentLength,
    /// The length has a byte that is no ASCII digit, or no byte at all.
    #[error("Content-Length {value:?} is not a row of ASCII digits")]
    LengthNotDigits {
        /// What stood there.
        value: String,
    },
    /// The length is above 2^53.
    #[error("Content-Length {value} is above 2^53")]
    LengthTooLarge {
        /// What stood there, at most 64 digits of it.
        value: String,
    },
    /// Two lengths that differ.
    #[error("Content-Length is given as {first} and as {second}")]
    LengthsDiffer {
        /// The first.
        first: u64,
        /// The other.
        second: u64,
    },
    /// A header line without a colon, such as log text.
    #[error("header line {line:?} has no colon")]
    NoColon {
        /// The line, at most 200 bytes of it.
        line: String,
    },
    /// A field name that is no HTTP token, such as one after a byte order mark.
    #[error("header name {name:?} is not a token")]
    NameNotToken {
        /// The name, at most 200 bytes of it.
        name: String,
    },
    /// A line ended by LF without CR.
    #[error("header line {line:?} ends with a bare LF")]
    BareLineFeed {
        /// The line, at most 200 bytes of it.
        line: String,
    },
    /// A CR that is not followed by LF.
    #[error("header line {line:?} has a bare CR in it")]
    BareCarriageReturn {
        /// The line, at most 200 bytes of it.
        line: String,
    },
    /// The header section does not end within the limit.
    #[error("header section longer than {limit} bytes")]
    HeaderTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The stream ended inside a header section.
    #[error("the stream ended {have} bytes into a header section")]
    EndInHeader {
        /// Bytes of the section that came.
        have: u64,
    },
    /// The stream ended inside a body.
    #[error("the stream ended {have} bytes into a body of {want}")]
    EndInBody {
        /// Bytes of the body that came.
        have: u64,
        /// Bytes the header declared.
        want: u64,
    },
}

/// The body of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// The start of one that is longer than [`Limits::body`].
    Cut {
        /// Its declared size in bytes, all of which came.
        size: u64,
        /// Its first bytes, [`Limits::prefix`] of them.
        prefix: &'a [u8],
        /// FNV-1a (64 bit) over all of it.
        hash: u64,
    },
}

/// One frame, borrowed from the reader or from the bytes given to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame<'a> {
    /// Where its first byte stood in the stream.
    pub offset: u64,
    /// The header section as written, final blank line included.
    pub header: &'a [u8],
    /// The body as written.
    pub body: Body<'a>,
    /// How it departs from `Content-Length: N`, each way once, in the order of [`Deviation`].
    pub deviations: &'a [Deviation],
}

/// What the reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A frame.
    Frame(WireFrame<'a>),
    /// The stream cannot be read on. `bytes` are those from the start of the broken frame that
    /// were held, at most the header section and the kept part of the body.
    Violation {
        /// Where the broken frame's first byte stood in the stream.
        offset: u64,
        /// What is wrong with it.
        reason: Malformed,
        /// The header section so far, as written.
        header: &'a [u8],
        /// What came of the body.
        body: &'a [u8],
    },
    /// Bytes after a violation.
    Stray {
        /// Where the first of them stood in the stream.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
}

/// See the [module](self).
#[derive(Debug)]
pub struct StrictReader {
    limits: Limits,
    /// Bytes taken from the stream so far.
    taken: u64,
    /// Offset of the frame being read.
    start: u64,
    head: Vec<u8>,
    scan: HeaderScan,
    body: Vec<u8>,
    hash: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reading a header section; `head` holds what came of it in earlier calls.
    Header,
    /// Reading a body of `size` bytes, `have` of which came.
    Body { size: u64, have: u64 },
    /// The item lent out by the last call is to be dropped before going on.
    Lent,
    /// After a violation.
    Lost,
}

impl Default for StrictReader {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl StrictReader {
    /// A reader at the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            taken: 0,
            start: 0,
            head: Vec::new(),
            scan: HeaderScan::default(),
            body: Vec::new(),
            hash: FNV_START,
            state: State::Header,
        }
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether a violation was met, after which there are only stray bytes.
    pub fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// Takes bytes from `chunk` until one item is complete or none are left.
    ///
    /// Returns how many were taken, and the item if there is one. Call it again with the rest
    /// until it returns no item; it then has taken everything.
    pub fn next<'a>(&'a mut self, chunk: &'a [u8]) -> (usize, Option<Item<'a>>) {
        if self.state == State::Lent {
            self.reset();
        }
        match self.state {
            State::Lost => self.stray(chunk),
            State::Body { size, have } => self.on_body(chunk, 0, size, have),
            State::Header | State::Lent => self.on_header(chunk),
        }
    }

    /// Feeds all of `chunk`, giving each item to `sink`.
    pub fn feed(&mut self, chunk: &[u8], mut sink: impl FnMut(Item<'_>)) {
        let mut rest = chunk;
        loop {
            let (taken, item) = self.next(rest);
            let done = item.is_none();
            if let Some(item) = item {
                sink(item);
            }
            rest = &rest[taken..];
            if done {
                return;
            }
        }
    }

    /// Says that the stream ended; gives a violation if it ended inside a frame.
    pub fn end(&mut self) -> Option<Item<'_>> {
        if self.state == State::Lent {
            self.reset();
        }
        let reason = match self.state {
            State::Lost | State::Lent => return None,
            State::Header if self.head.is_empty() => return None,
            State::Header => Malformed::EndInHeader {
                have: self.head.len() as u64,
            },
            State::Body { size, have } => Malformed::EndInBody { have, want: size },
        };
        self.state = State::Lost;
        Some(Item::Violation {
            offset: self.start,
            reason,
            header: &self.head,
            body: &self.body,
        })
    }

    fn reset(&mut self) {
        self.head.clear();
        self.body.clear();
        // A large body's memory is not held for the rest of the stream.
        self.body.shrink_to(1 << 20);
        self.scan = HeaderScan::default();
        self.hash = FNV_START;
        self.start = self.taken;
        self.state = State::Header;
    }

    fn stray<'a>(&mut self, chunk: &'a [u8]) -> (usize, Option<Item<'a>>) {
        if chunk.is_empty() {
            return (0, None);
        }
        let offset = self.taken;
        self.taken += chunk.len() as u64;
        (
            chunk.len(),
            Some(Item::Stray {
                offset,
                bytes: chunk,
            }),
        )
    }

    fn on_header<'a>(&'a mut self, chunk: &'a [u8]) -> (usize, Option<Item<'a>>) {
        if self.head.is_empty() {
            // Nothing held: the section is looked for in the chunk itself.
            return match self.scan.advance(chunk, self.limits.header) {
                Step::More => {
                    self.head.extend_from_slice(chunk);
                    self.taken += chunk.len() as u64;
                    (chunk.len(), None)
                }
                Step::Bad(reason) => self.lose(chunk, reason),
                Step::Done { end, size } => {
                    let whole = usize::try_from(size)
                        .ok()
                        .filter(|n| *n <= self.limits.body);
                    if let Some(size) = whole
                        && let Some(body) = chunk[end..].get(..size)
                    {
                        let offset = self.start;
                        self.taken += (end + size) as u64;
                        self.state = State::Lent;
                        let frame = WireFrame {
                            offset,
                            header: &chunk[..end],
                            body: Body::Whole(body),
                            deviations: &self.scan.deviations,
                        };
                        return (end + size, Some(Item::Frame(frame)));
                    }
                    self.head.extend_from_slice(&chunk[..end]);
                    self.taken += end as u64;
                    self.on_body(chunk, end, size, 0)
                }
            };
        }
        // Part of the section is held: no more than it may still grow is copied to it.
        let held = self.head.len();
        let room = (self.limits.header + 1)
            .saturating_sub(held)
            .min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        match self.scan.advance(&self.head, self.limits.header) {
            Step::More => {
                self.taken += room as u64;
                (room, None)
            }
            Step::Bad(reason) => {
                self.head.truncate(held);
                self.lose(chunk, reason)
            }
            Step::Done { end, size } => {
                self.head.truncate(end);
                let used = end - held;
                self.taken += used as u64;
                self.on_body(chunk, used, size, 0)
            }
        }
    }

    /// Takes what of the body is in `chunk` from `at` on; the bytes before are taken already.
    fn on_body<'a>(
        &'a mut self,
        chunk: &'a [u8],
        at: usize,
        size: u64,
        have: u64,
    ) -> (usize, Option<Item<'a>>) {
        let missing = usize::try_from(size - have).unwrap_or(usize::MAX);
        let piece = &chunk[at..][..missing.min(chunk.len() - at)];
        let cut = size > self.limits.body as u64;
        let keep = if cut { self.limits.prefix as u64 } else { size };
        let room = usize::try_from(keep.saturating_sub(have)).unwrap_or(usize::MAX);
        if self.body.is_empty() && !piece.is_empty() {
            // Grown once, but never on the word of the header alone beyond 1 MiB.
            let expected = usize::try_from(keep).unwrap_or(usize::MAX);
            self.body.reserve(expected.min((1 << 20).max(piece.len())));
        }
        self.body.extend_from_slice(&piece[..room.min(piece.len())]);
        if cut {
            self.hash = fnv(self.hash, piece);
        }
        self.taken += piece.len() as u64;
        let have = have + piece.len() as u64;
        let used = at + piece.len();
        if have < size {
            self.state = State::Body { size, have };
            return (used, None);
        }
        self.state = State::Lent;
        let body = if cut {
            Body::Cut {
                size,
                prefix: &self.body,
                hash: self.hash,
            }
        } else {
            Body::Whole(&self.body)
        };
        let frame = WireFrame {
            offset: self.start,
            header: &self.head,
            body,
            deviations: &self.scan.deviations,
        };
        (used, Some(Item::Frame(frame)))
    }

    /// Ends in a violation whose bytes are those held and as much of `chunk` as a header may have.
    fn lose<'a>(&'a mut self, chunk: &[u8], reason: Malformed) -> (usize, Option<Item<'a>>) {
        let room = (self.limits.header + 1)
            .saturating_sub(self.head.len())
            .min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        self.taken += room as u64;
        self.state = State::Lost;
        let offset = self.start;
        (
            room,
            Some(Item::Violation {
                offset,
                reason,
                header: &self.head,
                body: &[],
            }),
        )
    }
}

/// The progress through one header section; positions are within that section.
#[derive(Debug, Default)]
struct HeaderScan {
    line_start: usize,
    scanned: usize,
    fields: usize,
    length: Option<u64>,
    deviations: Vec<Deviation>,
}

enum Step {
    More,
    Done { end: usize, size: u64 },
    Bad(Malformed),
}

impl HeaderScan {
    /// Looks at what is new in `section`, which starts where the header section starts.
    fn advance(&mut self, section: &[u8], limit: usize) -> Step {
        let window = &section[..section.len().min(limit)];
        while let Some(found) = memchr::memchr(b'\n', &window[self.scanned..]) {
            let end = self.scanned + found + 1;
            let line = &window[self.line_start..end - 1];
            self.scanned = end;
            self.line_start = end;
            let Some(line) = line.strip_suffix(b"\r") else {
                return Step::Bad(Malformed::BareLineFeed { line: shown(line) });
            };
            if line.is_empty() {
                return match self.length {
                    None => Step::Bad(Malformed::NoContentLength),
                    Some(size) => {
                        if size == 0 {
                            self.note(Deviation::EmptyBody);
                        }
                        Step::Done { end, size }
                    }
                };
            }
            if let Err(reason) = self.field(line) {
                return Step::Bad(reason);
            }
        }
        self.scanned = window.len();
        if section.len() >= limit {
            return Step::Bad(Malformed::HeaderTooLong { limit });
        }
        Step::More
    }

    fn field(&mut self, line: &[u8]) -> Result<(), Malformed> {
        // The usual line, without a look at its parts.
        if let Some(digits) = line.strip_prefix(b"Content-Length: ")
            && self.fields == 0
            && digits
                .first()
                .is_some_and(|first| matches!(first, b'1'..=b'9'))
            && digits.len() <= 15
            && digits.iter().all(u8::is_ascii_digit)
        {
            self.fields += 1;
            self.length = Some(number(digits));
            return Ok(());
        }
        if line.contains(&b'\r') {
            return Err(Malformed::BareCarriageReturn { line: shown(line) });
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            return Err(Malformed::NoColon { line: shown(line) });
        };
        let (name, rest) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return Err(Malformed::NameNotToken { name: shown(name) });
        }
        let value = trim(rest);
        if !value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
            self.note(Deviation::NotAscii);
        }
        if !(rest.first() == Some(&b' ') && rest[1..] == *value) {
            self.note(Deviation::Whitespace);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            if name != b"Content-Length" {
                self.note(Deviation::NameCase);
            }
            self.length(value)?;
        } else if name.eq_ignore_ascii_case(b"content-type") {
            if name != b"Content-Type" {
                self.note(Deviation::NameCase);
            }
            self.note(Deviation::ContentType);
        } else {
            self.note(Deviation::UnknownField);
        }
        self.fields += 1;
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(Malformed::LengthNotDigits {
                value: shown(value),
            });
        }
        let significant = &value[value.iter().take_while(|digit| **digit == b'0').count()..];
        if significant.len() > 16 || number(significant) > MAX_LENGTH {
            let value = shown(&significant[..significant.len().min(64)]);
            return Err(Malformed::LengthTooLarge { value });
        }
        if significant.len() < value.len() && value != b"0" {
            self.note(Deviation::LeadingZeros);
        }
        let size = number(significant);
        match self.length {
            None if self.fields > 0 => self.note(Deviation::Order),
            Some(first) if first == size => self.note(Deviation::RepeatedLength),
            Some(first) => {
                return Err(Malformed::LengthsDiffer {
                    first,
                    second: size,
                });
            }
            None => {}
        }
        self.length = Some(size);
        Ok(())
    }

    fn note(&mut self, deviation: Deviation) {
        if let Err(at) = self.deviations.binary_search(&deviation) {
            self.deviations.insert(at, deviation);
        }
    }
}

/// The value of at most 16 ASCII digits.
fn number(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().take_while(|byte| blank(byte)).count();
    let value = &value[start..];
    let end = value.len() - value.iter().rev().take_while(|byte| blank(byte)).count();
    &value[..end]
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// FNV-1a (64 bit), the hash that stands for a body that was not kept.
pub fn hash(bytes: &[u8]) -> u64 {
    fnv(FNV_START, bytes)
}
