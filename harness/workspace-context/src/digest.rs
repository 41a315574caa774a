//! SHA-1 of instruction files: of their bytes, and of their trimmed text (INS-6, INS-7).

use sha1::{Digest as _, Sha1};

/// What is kept of a content in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digests {
    /// Of the raw bytes: whether the file has changed.
    pub(crate) raw: String,
    /// Of the trimmed text: whether two candidates of a directory say the same (INS-3).
    pub(crate) trimmed: String,
}

impl Digests {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            raw: sha1_hex(text.as_bytes()),
            trimmed: sha1_hex(trimmed(text).as_bytes()),
        }
    }
}

/// Without white space at both ends; a byte order mark counts as such.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}')
}

pub(crate) fn sha1_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(40);
    for byte in Sha1::digest(bytes) {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-7.
    #[test]
    fn digests_are_those_that_everybody_computes() {
        assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let (plain, padded) = (Digests::of("abc"), Digests::of("\u{FEFF}\r\n abc\t\n"));
        assert_eq!(plain.raw, plain.trimmed);
        assert_ne!(plain.raw, padded.raw);
        assert_eq!(plain.trimmed, padded.trimmed);
    }
}
