//! The last bytes of a stream, in bounded memory and linear time (ENV-5).

use std::collections::VecDeque;

/// Keeps the last `limit` bytes of what is pushed.
#[derive(Debug)]
pub(crate) struct Tail {
    limit: usize,
    bytes: VecDeque<u8>,
    /// Whether bytes were dropped, so that the first one kept may be inside a character.
    cut: bool,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: VecDeque::new(),
            cut: false,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let kept = &chunk[chunk.len().saturating_sub(self.limit)..];
        let overflow = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.cut |= overflow > 0 || kept.len() < chunk.len();
        self.bytes.drain(..overflow);
        self.bytes.extend(kept);
    }

    /// The text of what is kept: whole characters at both ends, at most `limit` bytes; bytes that
    /// are not UTF-8 show as U+FFFD.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        let start = if self.cut {
            continuation_bytes(&bytes)
        } else {
            0
        };
        let whole = whole_characters(&bytes[start..]);
        let text = String::from_utf8_lossy(whole);
        // A replacement character is longer than the byte it stands for.
        let mut from = text.len().saturating_sub(self.limit);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text[from..].to_owned()
    }
}

/// How many bytes at the start continue a character that was cut off: at most three.
fn continuation_bytes(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count()
}

/// Without a last character of which bytes may still come.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let start = bytes.len() - back;
        if bytes[start] < 0x80 {
            break;
        }
        if bytes[start] >= 0xC0 {
            let unfinished =
                std::str::from_utf8(&bytes[start..]).is_err_and(|e| e.error_len().is_none());
            return if unfinished { &bytes[..start] } else { bytes };
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(limit: usize, chunks: &[&[u8]], expected: &str) {
        let mut tail = Tail::new(limit);
        for chunk in chunks {
            tail.push(chunk);
        }
        assert_eq!(tail.text(), expected);
    }

    /// ENV-5
    #[test]
    fn the_last_bytes_are_kept() {
        check(5, &[], "");
        check(5, &[b"abc"], "abc");
        check(5, &[b"abc", b"defg"], "cdefg");
        check(5, &[b"abcdefghij"], "fghij");
        check(0, &[b"abc"], "");
    }

    /// ENV-5
    #[test]
    fn the_cut_is_on_a_character_boundary() {
        check(4, &["aé€".as_bytes()], "€");
        check(3, &["𝕏b".as_bytes()], "b");
        check(5, &["𝕏b".as_bytes()], "𝕏b");
        check(2, &["𝕏".as_bytes()], "");
    }

    /// ENV-5: what a process writes in pieces is not shown broken.
    #[test]
    fn a_character_that_is_not_complete_yet_is_left_out() {
        check(10, &[b"a\xE2\x82"], "a");
        check(10, &[b"a\xE2\x82", b"\xAC"], "a€");
        check(10, &[b"a\xF0"], "a");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_within_the_limit() {
        check(10, &[b"a\xFFb\x80"], "a\u{FFFD}b\u{FFFD}");
        check(4, &[b"\xFF\xFF\xFF\xFF"], "\u{FFFD}");
        check(4, &[b"ab\x80\x80\x80\x80"], "\u{FFFD}");
    }

    proptest! {
        /// ENV-5
        #[test]
        fn the_tail_is_the_longest_suffix_of_whole_characters(
            text in ".{0,60}", limit in 0_usize..80, piece in 1_usize..20
        ) {
            let mut tail = Tail::new(limit);
            for chunk in text.as_bytes().chunks(piece) {
                tail.push(chunk);
                prop_assert!(tail.bytes.len() <= limit);
            }
            let mut from = text.len().saturating_sub(limit);
            while !text.is_char_boundary(from) {
                from += 1;
            }
            prop_assert_eq!(tail.text(), &text[from..]);
        }

        /// ENV-5
        #[test]
        fn arbitrary_bytes_stay_within_the_limit(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 0..8),
            limit in 0_usize..40
        ) {
            let mut tail = Tail::new(limit);
            for chunk in &chunks {
                tail.push(chunk);
            }
            prop_assert!(tail.text().len() <= limit);
        }
    }
}
