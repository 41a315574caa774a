//! Reads a source and judges its bytes: size, text, encoding (HST-3, HST-4).

use std::io;
#[cfg(not(unix))]
use std::io::Read;

use dsh_kernel::CancelReason;
use memchr::memchr;

/// Most bytes the buffer grows by, hence most bytes of one read; cancellation is observed in
/// between. Large, since the caller is released without waiting for it.
const CHUNK: u64 = 1024 * 1024;

/// Least room to start with, for files whose size the system does not tell.
const ROOM: u64 = 512;

const BOM: char = '\u{FEFF}';

/// Why the bytes were not taken.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// More than the limit.
    TooLarge,
    /// The first byte that is not UTF-8, as an offset in the file.
    NotUtf8(u64),
    /// The first NUL, as an offset in the file.
    Nul(u64),
    /// The read failed.
    Io(io::Error),
    /// Asked to stop.
    Cancelled(CancelReason),
}

/// Something that appends what it reads to a vector's spare room, without touching the rest.
pub(crate) trait Fill {
    /// Reads at most the spare capacity of `buffer`, which is not zero; 0 is the end.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize>;
}

#[cfg(unix)]
impl Fill for std::fs::File {
    fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        Ok(rustix::io::read(
            &*self,
            rustix::buffer::spare_capacity(buffer),
        )?)
    }
}

#[cfg(not(unix))]
impl Fill for std::fs::File {
    fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let room = buffer.capacity() - buffer.len();
        self.by_ref().take(room as u64).read_to_end(buffer)
    }
}

/// Reads `input` to its end and returns its text without a leading BOM.
///
/// `expected` is what the system says the size is. It only sizes the buffer: `limit`, in bytes, is
/// counted on what is really read, so that a file that grows meanwhile is caught. `stop` is asked
/// before each read. One buffer is filled and becomes the text; nothing is copied.
pub(crate) fn read_text(
    input: &mut impl Fill,
    expected: u64,
    limit: u64,
    stop: &impl Fn() -> Result<(), CancelReason>,
) -> Result<String, Rejected> {
    into_text(read_bounded(input, expected, limit, stop)?)
}

/// Reads `input` to its end, as [`read_text`] does, and judges nothing but the size.
pub(crate) fn read_bounded(
    input: &mut impl Fill,
    expected: u64,
    limit: u64,
    stop: &impl Fn() -> Result<(), CancelReason>,
) -> Result<Vec<u8>, Rejected> {
    if expected > limit {
        return Err(Rejected::TooLarge);
    }
    // One byte more than expected, so that the end is seen without growing.
    let mut bytes = Vec::with_capacity(room(expected.saturating_add(1)));
    loop {
        stop().map_err(Rejected::Cancelled)?;
        if bytes.len() == bytes.capacity() {
            let left = limit.saturating_sub(bytes.len() as u64).saturating_add(1);
            bytes.reserve_exact(room(left.min(bytes.len() as u64)));
        }
        match input.fill(&mut bytes) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() as u64 > limit => return Err(Rejected::TooLarge),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Rejected::Io(error)),
        }
    }
}

fn room(wanted: u64) -> usize {
    usize::try_from(wanted.clamp(ROOM, CHUNK)).expect("a chunk fits in memory")
}

/// The text of the bytes, or the first byte that is not text.
fn into_text(bytes: Vec<u8>) -> Result<String, Rejected> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        match memchr(0, &error.as_bytes()[..valid]) {
            Some(nul) => Rejected::Nul(nul as u64),
            None => Rejected::NotUtf8(valid as u64),
        }
    })?;
    if let Some(nul) = memchr(0, text.as_bytes()) {
        return Err(Rejected::Nul(nul as u64));
    }
    if text.starts_with(BOM) {
        text.drain(..BOM.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces of `piece` at most, and goes on for ever if told to.
    struct Pieces<'a> {
        bytes: &'a [u8],
        piece: usize,
        endless: bool,
        /// The largest buffer it was handed.
        largest: usize,
    }

    fn pieces(bytes: &[u8], piece: usize) -> Pieces<'_> {
        Pieces {
            bytes,
            piece,
            endless: false,
            largest: 0,
        }
    }

    impl Fill for Pieces<'_> {
        fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
            let room = buffer.capacity() - buffer.len();
            assert!(room > 0, "asked to fill no room");
            self.largest = self.largest.max(buffer.capacity());
            let taken = self.bytes.len().min(self.piece).min(room);
            let (head, tail) = self.bytes.split_at(taken);
            buffer.extend_from_slice(head);
            if !self.endless {
                self.bytes = tail;
            }
            Ok(taken)
        }
    }

    fn read(bytes: &[u8], limit: u64) -> Result<String, Rejected> {
        let mut input = pieces(bytes, 7);
        read_text(&mut input, 0, limit, &|| Ok(()))
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(read(bytes, 1000).expect("text"), expected);
    }

    #[track_caller]
    fn check_rejected(bytes: &[u8], limit: u64, expected: &str) {
        assert_eq!(
            format!("{:?}", read(bytes, limit).expect_err("rejected")),
            expected
        );
    }

    /// HST-4
    #[test]
    fn text_is_kept_as_it_is_on_disk() {
        check(b"", "");
        check(b"a\r\nb\rc\n", "a\r\nb\rc\n");
        check("x\u{FFFD}y 𝕏".as_bytes(), "x\u{FFFD}y 𝕏");
    }

    /// HST-4
    #[test]
    fn a_leading_bom_is_not_part_of_the_text() {
        check(b"\xEF\xBB\xBFfn", "fn");
        check(b"\xEF\xBB\xBF", "");
        check(b"\xEF\xBB\xBF\xEF\xBB\xBFx", "\u{FEFF}x");
        check(b"x\xEF\xBB\xBF", "x\u{FEFF}");
    }

    /// HST-3, HST-4
    #[test]
    fn the_first_byte_that_is_not_text_is_named() {
        check_rejected(b"ab\xFFc", 1000, "NotUtf8(2)");
        check_rejected(b"\xEF\xBB\xBFab\xC3", 1000, "NotUtf8(5)");
        check_rejected(b"ab\0c", 1000, "Nul(2)");
        check_rejected(b"\0ab\xFF", 1000, "Nul(0)");
        check_rejected(b"\xFF\0", 1000, "NotUtf8(0)");
        check_rejected(b"\xEF\xBB\xBF\0", 1000, "Nul(3)");
    }

    /// HST-3: a BOM counts, since the limit is on the bytes on disk.
    #[test]
    fn the_exact_limit_is_accepted_and_one_more_byte_is_not() {
        assert_eq!(read(b"12345678", 8).expect("text"), "12345678");
        check_rejected(b"123456789", 8, "TooLarge");
        assert_eq!(read(b"\xEF\xBB\xBF12345", 8).expect("text"), "12345");
        check_rejected(b"\xEF\xBB\xBF123456", 8, "TooLarge");
        assert_eq!(read(b"", 0).expect("text"), "");
        check_rejected(b"1", 0, "TooLarge");
    }

    /// HST-3: the size that the system told first does not count.
    #[test]
    fn a_file_that_grows_while_it_is_read_is_caught() {
        let mut input = Pieces {
            endless: true,
            ..pieces(b"grow", 4)
        };
        let result = read_text(&mut input, 4, 1_000_000, &|| Ok(()));
        assert!(matches!(result, Err(Rejected::TooLarge)), "{result:?}");
    }

    #[test]
    fn a_file_that_is_known_to_be_too_large_is_not_read() {
        let mut input = pieces(b"", 1);
        let result = read_text(&mut input, 11, 10, &|| panic!("asked, hence about to read"));
        assert!(matches!(result, Err(Rejected::TooLarge)), "{result:?}");
    }

    /// CAN-2
    #[test]
    fn cancellation_is_observed_between_reads() {
        let reads = Cell::new(0);
        let mut input = Pieces {
            endless: true,
            ..pieces(b"text", 4)
        };
        let result = read_text(&mut input, 0, u64::MAX, &|| {
            reads.set(reads.get() + 1);
            if reads.get() > 3 {
                Err(CancelReason::Disposed)
            } else {
                Ok(())
            }
        });
        assert!(
            matches!(result, Err(Rejected::Cancelled(CancelReason::Disposed))),
            "{result:?}"
        );
    }

    #[test]
    fn memory_stays_near_the_limit() {
        let big = vec![b'x'; 10_000];
        let mut input = Pieces {
            endless: true,
            ..pieces(&big, usize::MAX)
        };
        let limit = 3_000_000;
        let result = read_text(&mut input, 0, limit, &|| Ok(()));
        assert!(matches!(result, Err(Rejected::TooLarge)), "{result:?}");
        assert!(input.largest as u64 <= limit + ROOM, "{}", input.largest);
    }

    proptest! {
        /// HST-3, HST-4
        #[test]
        fn any_text_within_the_limit_is_returned_whole(
            text in "[^\0\u{FEFF}][^\0]{0,40}", piece in 1_usize..20, expected in 0_u64..100
        ) {
            let mut input = pieces(text.as_bytes(), piece);
            let limit = text.len() as u64;
            let read = read_text(&mut input, expected.min(limit), limit, &|| Ok(()));
            prop_assert_eq!(read.expect("text"), text);
        }

        #[test]
        fn arbitrary_bytes_are_text_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
            let text = text.map(|text| text.strip_prefix(BOM).unwrap_or(text));
            let read = read(&bytes, 64).ok();
            prop_assert_eq!(read.as_deref(), text);
        }
    }
}
