use proptest::prelude::*;

use crate::strict::{Body, Deviation, Item, Limits, Malformed, StrictReader, WireFrame, hash};

/// An item with its bytes copied.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Frame {
        offset: u64,
        header: Vec<u8>,
        body: Vec<u8>,
        deviations: Vec<Deviation>,
    },
    Cut {
        size: u64,
        prefix: Vec<u8>,
        hash: u64,
    },
    Violation {
        offset: u64,
        reason: Malformed,
        bytes: Vec<u8>,
    },
    Stray {
        offset: u64,
        bytes: Vec<u8>,
    },
}

fn seen(item: &Item<'_>) -> Seen {
    match item {
        Item::Frame(WireFrame {
            offset,
            header,
            body: Body::Whole(body),
            deviations,
        }) => Seen::Frame {
            offset: *offset,
            header: header.to_vec(),
            body: body.to_vec(),
            deviations: deviations.to_vec(),
        },
        Item::Frame(WireFrame {
            body: Body::Cut { size, prefix, hash },
            ..
        }) => Seen::Cut {
            size: *size,
            prefix: prefix.to_vec(),
            hash: *hash,
        },
        Item::Violation {
            offset,
            reason,
            header,
            body,
        } => Seen::Violation {
            offset: *offset,
            reason: reason.clone(),
            bytes: [*header, *body].concat(),
        },
        Item::Stray { offset, bytes } => Seen::Stray {
            offset: *offset,
            bytes: bytes.to_vec(),
        },
    }
}

/// Reads `chunks` and then the end. Neighbouring bytes after a violation are joined to it, since
/// where they are cut depends on the chunks.
fn read_with(limits: Limits, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut reader = StrictReader::new(limits);
    let mut items: Vec<Seen> = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, |item| {
            let item = seen(&item);
            match (items.last_mut(), item) {
                (Some(Seen::Violation { bytes, .. }), Seen::Stray { bytes: more, .. }) => {
                    bytes.extend(more);
                }
                (_, item) => items.push(item),
            }
        });
    }
    items.extend(reader.end().as_ref().map(seen));
    items
}

fn read(bytes: &[u8]) -> Vec<Seen> {
    read_with(Limits::default(), &[bytes])
}

#[track_caller]
fn violation(bytes: &[u8]) -> Malformed {
    let items = read(bytes);
    match items.last() {
        Some(Seen::Violation {
            reason,
            bytes: kept,
            ..
        }) => {
            assert_eq!(kept, bytes, "a violation keeps its bytes");
            reason.clone()
        }
        other => panic!(
            "no violation in {:?}: {other:?}",
            String::from_utf8_lossy(bytes)
        ),
    }
}

#[track_caller]
fn deviations(bytes: &[u8]) -> Vec<Deviation> {
    match read(bytes).as_slice() {
        [
            Seen::Frame {
                header,
                body,
                deviations,
                ..
            },
        ] => {
            assert_eq!(
                [header.as_slice(), body].concat(),
                bytes,
                "a frame keeps its bytes"
            );
            deviations.clone()
        }
        other => panic!("not one frame: {other:?}"),
    }
}

#[test]
fn a_conforming_frame_has_no_deviation() {
    assert_eq!(deviations(b"Content-Length: 2\r\n\r\n{}"), []);
}

#[test]
fn every_readable_spelling_is_noted_and_kept() {
    use Deviation::*;
    let cases: [(&[u8], &[Deviation]); 12] = [
        (b"content-length: 2\r\n\r\n{}", &[NameCase]),
        (b"Content-Length:2\r\n\r\n{}", &[Whitespace]),
        (b"Content-Length:  2\r\n\r\n{}", &[Whitespace]),
        (b"Content-Length: 2 \r\n\r\n{}", &[Whitespace]),
        (b"Content-Length:\t2\r\n\r\n{}", &[Whitespace]),
        (
            b"Content-Length: 2\r\nContent-Type: x\r\n\r\n{}",
            &[ContentType],
        ),
        (
            b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}",
            &[ContentType, Order],
        ),
        (b"Content-Length: 2\r\nX-Y: 1\r\n\r\n{}", &[UnknownField]),
        (
            b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            &[RepeatedLength],
        ),
        (b"Content-Length: 02\r\n\r\n{}", &[LeadingZeros]),
        (
            b"Content-Length: 2\r\nX: \xc3\xa9\r\n\r\n{}",
            &[UnknownField, NotAscii],
        ),
        (b"Content-Length: 0\r\n\r\n", &[EmptyBody]),
    ];
    for (bytes, expected) in cases {
        assert_eq!(deviations(bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let cases: [(&[u8], &str); 17] = [
        (b"X: 1\r\n\r\n", "no Content-Length"),
        (b"Content-Length: -1\r\n\r\n", "\"-1\" is not a row"),
        (b"Content-Length: +5\r\n\r\n", "\"+5\" is not a row"),
        (b"Content-Length: 1.5\r\n\r\n", "\"1.5\" is not a row"),
        (b"Content-Length: 0x10\r\n\r\n", "\"0x10\" is not a row"),
        (b"Content-Length: 1e3\r\n\r\n", "\"1e3\" is not a row"),
        (b"Content-Length: \r\n\r\n", "\"\" is not a row"),
        (b"Content-Length: 9007199254740993\r\n\r\n", "above 2^53"),
        (
            b"Content-Length: 99999999999999999999999\r\n\r\n",
            "above 2^53",
        ),
        (
            b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
            "given as 2 and as 3",
        ),
        (b"hello\r\n", "\"hello\" has no colon"),
        (b"hello\n", "\"hello\" ends with a bare LF"),
        (
            b"Content-Length : 2\r\n",
            "\"Content-Length \" is not a token",
        ),
        (b"\xef\xbb\xbfContent-Length: 2\r\n", "is not a token"),
        (b"Content-Length: 2\rX: 3\r\n", "bare CR"),
        (b"Content-Length: 5", "17 bytes into a header"),
        (b"Content-Length: 5\r\n\r\n{}", "2 bytes into a body of 5"),
    ];
    for (bytes, expected) in cases {
        let reason = violation(bytes).to_string();
        assert!(
            reason.contains(expected),
            "{} gives {reason}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn the_largest_length_is_two_to_the_53() {
    let reason = violation(b"Content-Length: 9007199254740992\r\n\r\n");
    assert_eq!(
        reason,
        Malformed::EndInBody {
            have: 0,
            want: 1 << 53
        }
    );
}

#[test]
fn after_a_violation_there_are_only_stray_bytes() {
    let mut reader = StrictReader::default();
    let mut items = Vec::new();
    reader.feed(b"hello\nContent-Length: 2\r\n\r\n{}", |item| {
        items.push(seen(&item));
    });
    reader.feed(b"Content-Length: 2\r\n\r\n{}", |item| {
        items.push(seen(&item));
    });
    assert!(reader.is_lost());
    let rest = b"Content-Length: 2\r\n\r\n{}".to_vec();
    assert!(matches!(&items[0], Seen::Violation { offset: 0, .. }));
    assert_eq!(
        items[1],
        Seen::Stray {
            offset: 29,
            bytes: rest
        }
    );
    assert_eq!(items.len(), 2);
    assert_eq!(reader.end(), None);
}

#[test]
fn a_header_section_may_fill_its_limit_and_no_more() {
    let section = |len: usize| {
        let fixed = b"X: \r\nContent-Length: 2\r\n\r\n".len();
        format!(
            "X: {}\r\nContent-Length: 2\r\n\r\n",
            "x".repeat(len - fixed)
        )
        .into_bytes()
    };
    let limits = Limits {
        header: 100,
        ..Limits::default()
    };
    for cut in [1, 50, 100] {
        let fits = [section(100), b"{}".to_vec()].concat();
        let chunks: Vec<&[u8]> = fits.chunks(cut).collect();
        assert!(
            matches!(read_with(limits, &chunks)[..], [Seen::Frame { .. }]),
            "{cut}"
        );
        let long = section(101);
        let chunks: Vec<&[u8]> = long.chunks(cut).collect();
        let items = read_with(limits, &chunks);
        let [Seen::Violation { reason, .. }] = &items[..] else {
            panic!("{items:?}")
        };
        assert_eq!(*reason, Malformed::HeaderTooLong { limit: 100 });
    }
}

#[test]
fn a_header_without_an_end_is_not_held_beyond_its_limit() {
    let mut reader = StrictReader::default();
    let mut violations = 0;
    for _ in 0..100 {
        reader.feed(&[b'x'; 10_000], |item| {
            if let Item::Violation { header, .. } = item {
                assert!(header.len() <= 65_537, "{}", header.len());
                violations += 1;
            }
        });
    }
    assert_eq!(violations, 1);
    assert_eq!(reader.taken(), 1_000_000);
}

#[test]
fn a_body_over_its_cap_keeps_its_start_its_size_and_its_hash() {
    let limits = Limits {
        body: 10,
        prefix: 4,
        ..Limits::default()
    };
    let stream = b"Content-Length: 12\r\n\r\n\"0123456789\"Content-Length: 2\r\n\r\n{}";
    for cut in [1, 3, 25, 1000] {
        let chunks: Vec<&[u8]> = stream.chunks(cut).collect();
        let items = read_with(limits, &chunks);
        let expected = Seen::Cut {
            size: 12,
            prefix: b"\"012".to_vec(),
            hash: hash(b"\"0123456789\""),
        };
        assert_eq!(items[0], expected);
        assert!(
            matches!(&items[1], Seen::Frame { offset: 34, .. }),
            "{items:?}"
        );
    }
}

#[test]
fn a_declared_gigabyte_takes_no_memory_of_itself() {
    let mut reader = StrictReader::default();
    reader.feed(b"Content-Length: 1000000000\r\n\r\n{", |item| {
        panic!("{item:?}")
    });
    let end = reader.end().as_ref().map(seen);
    let Some(Seen::Violation { reason, bytes, .. }) = end else {
        panic!("{end:?}")
    };
    assert_eq!(
        reason,
        Malformed::EndInBody {
            have: 1,
            want: 1_000_000_000
        }
    );
    assert_eq!(bytes, b"Content-Length: 1000000000\r\n\r\n{");
}

/// A frame as some peer may write it.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just("Content-Length"),
        Just("content-length"),
        Just("CONTENT-LENGTH")
    ];
    let space = prop_oneof![Just(" "), Just(""), Just(" \t ")];
    let extra = prop_oneof![
        Just(""),
        Just("Content-Type: a/b; charset=utf-8\r\n"),
        Just("A: b\r\n")
    ];
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    (name, space, extra, any::<bool>(), body).prop_map(|(name, space, extra, first, body)| {
        let length = format!("{name}:{space}{}\r\n", body.len());
        let header = if first {
            format!("{extra}{length}\r\n")
        } else {
            format!("{length}{extra}\r\n")
        };
        [header.into_bytes(), body].concat()
    })
}

/// `bytes` cut at `places`, taken modulo the length.
fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|at| at % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut chunks = Vec::new();
    let mut from = 0;
    for at in places.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[from..at]);
        from = at;
    }
    chunks
}

proptest! {
    /// FRM-3: any cut of any readable stream gives the same frames, and their bytes are the stream.
    #[test]
    fn cuts_do_not_matter(
        frames in proptest::collection::vec(any_frame(), 0..6),
        places in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let stream = frames.concat();
        let whole = read(&stream);
        prop_assert_eq!(whole.len(), frames.len());
        for (item, bytes) in whole.iter().zip(&frames) {
            let Seen::Frame { header, body, .. } = item else { panic!("{item:?}") };
            prop_assert_eq!(&[header.as_slice(), body].concat(), bytes);
        }
        prop_assert_eq!(&read_with(Limits::default(), &cut(&stream, &places)), &whole);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&read_with(Limits::default(), &single), &whole);
    }

    /// Arbitrary bytes never panic, none is lost, and the cut does not matter.
    #[test]
    fn arbitrary_bytes_are_all_accounted_for(
        start in any_frame(),
        junk in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'0')], 0..300),
        places in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let stream = [start, junk].concat();
        let items = read(&stream);
        let bytes: Vec<u8> = items.iter().flat_map(|item| match item {
            Seen::Frame { header, body, .. } => [header.as_slice(), body].concat(),
            Seen::Violation { bytes, .. } | Seen::Stray { bytes, .. } => bytes.clone(),
            Seen::Cut { .. } => unreachable!("no body is that long"),
        }).collect();
        prop_assert_eq!(&bytes, &stream);
        prop_assert_eq!(&read_with(Limits::default(), &cut(&stream, &places)), &items);
    }
}
