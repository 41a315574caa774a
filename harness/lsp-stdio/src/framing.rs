//! The base protocol: `Content-Length` frames (FRM-1…5, FRM-9, FRM-10).
//!
//! Writing is strict, since real servers die on other spellings; reading is as lenient as LSP lets a
//! peer be and not more. Pure: bytes in, bodies out. What a body says is somebody else's business.

mod decoder;
mod header;

use std::fmt;

pub use decoder::{FrameDecoder, Partial};

/// Most bytes a header section may have, its blank line included (FRM-5).
pub(crate) const MAX_HEADER_BYTES: usize = 65_536;

/// The largest length that is taken for one (FRM-4): integers above are not exact in JSON's world.
pub(crate) const MAX_LENGTH: u64 = 1 << 53;

/// How many of the first bytes an error shows.
const SHOWN_BYTES: usize = 200;

/// Appends one frame to `out`: the header of FRM-1, then whatever `body` appends.
///
/// `expected` is a guess of the body's size. Where it has as many digits as the real one, nothing
/// is moved.
pub fn write_frame(out: &mut Vec<u8>, expected: usize, body: impl FnOnce(&mut Vec<u8>)) {
    const NAME: &[u8] = b"Content-Length: ";
    let guess = expected.to_string();
    out.reserve(NAME.len() + guess.len() + 4 + expected);
    out.extend_from_slice(NAME);
    let digits = out.len()..out.len() + guess.len();
    out.extend_from_slice(guess.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    let begin = out.len();
    body(out);
    let length = out.len() - begin;
    if length != expected {
        out.splice(digits, length.to_string().into_bytes());
    }
}

/// Why the bytes from a server are no frame. Every one of these ends the process (FRM-7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// A header line that is not `Name: value` with a token for a name: log text, a BOM.
    #[error("a header line is not \"Name: value\"")]
    NotAHeader,
    /// A line that does not end in CR LF.
    #[error("a header line does not end in CR LF")]
    LineEnd,
    /// No `Content-Length` among the headers.
    #[error("the header section has no Content-Length")]
    NoLength,
    /// A `Content-Length` that is not a plain decimal number of at most 2^53.
    #[error("the Content-Length {0:?} is not a decimal number of at most 2^53")]
    BadLength(String),
    /// Two that differ.
    #[error("two Content-Length headers differ: {0} and {1}")]
    TwoLengths(u64, u64),
    /// A length of zero, which no JSON has.
    #[error("the Content-Length is 0, which no JSON text has")]
    ZeroLength,
    /// A header section beyond 65536 bytes, the blank line included (FRM-5).
    #[error("the header section is longer than {MAX_HEADER_BYTES} bytes")]
    HeaderTooLong,
    /// A body beyond `maxMessageBytes`.
    #[error("a message of {declared} bytes was announced")]
    BodyTooLong {
        /// What the header said, in bytes.
        declared: u64,
        /// The limit, in bytes.
        limit: u64,
    },
}

/// A fault, and what was received where a frame was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// What is wrong.
    pub fault: FrameFault,
    /// The first bytes of what is not a frame, invalid UTF-8 replaced.
    pub first_bytes: String,
    /// How many whole frames came before.
    pub frames_before: u64,
}

impl std::error::Error for FrameError {}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FrameFault::BodyTooLong { limit, .. } = self.fault {
            return write!(
                f,
                "{}, more than maxMessageBytes ({limit}); raise it if such answers are expected",
                self.fault
            );
        }
        write!(
            f,
            "stdout is not a frame stream ({}): got {:?} ",
            self.fault, self.first_bytes
        )?;
        match self.frames_before {
            0 => f.write_str("before the first message")?,
            1 => f.write_str("after 1 message")?,
            n => write!(f, "after {n} messages")?,
        }
        f.write_str("; language servers must log to stderr")
    }
}

#[cfg(test)]
mod tests;
