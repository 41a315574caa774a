use super::*;

const LIMIT: u64 = LIMIT_BYTES as u64;
const LIMIT_BYTES: usize = 1_000;

fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, body.len(), |out| out.extend_from_slice(body));
    out
}

/// Feeds the pieces and collects whole bodies after each.
fn decode<'a>(
    decoder: &mut FrameDecoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut bodies = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(body)) => bodies.push(body.to_vec()),
                Ok(None) => break,
                Err(fault) => return Err(decoder.explain(fault)),
            }
        }
    }
    Ok(bodies)
}

fn decode_all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
    decode(&mut FrameDecoder::new(LIMIT), [bytes])
}

/// The same fault in one piece and byte by byte, and for ever after.
#[track_caller]
fn fault(bytes: &[u8]) -> FrameFault {
    let whole = decode_all(bytes).expect_err("the bytes are no frame").fault;
    let mut decoder = FrameDecoder::new(LIMIT);
    let single = decode(&mut decoder, bytes.chunks(1))
        .expect_err("in single bytes neither")
        .fault;
    assert_eq!(whole, single);
    decoder.feed(&frame(b"{}"));
    assert_eq!(decoder.next_frame(), Err(single));
    whole
}

#[track_caller]
fn accepted(header: &str) {
    let bytes = [header.as_bytes(), b"[1]"].concat();
    for size in [1, 2, 7, bytes.len()] {
        let bodies = decode(&mut FrameDecoder::new(LIMIT), bytes.chunks(size));
        assert_eq!(bodies.as_deref(), Ok(&[b"[1]".to_vec()][..]), "{header:?}");
    }
}

/// FRM-1: exactly this header, in this spelling, with the byte count of the body.
#[test]
fn written_frames_are_exact() {
    assert_eq!(
        frame("{\"é\":\"🦀\"}".as_bytes()),
        "Content-Length: 13\r\n\r\n{\"é\":\"🦀\"}".as_bytes()
    );
}

/// FRM-1: a wrong guess of the size changes nothing on the wire, also behind other frames.
#[test]
fn the_guess_of_the_size_does_not_show() {
    for expected in [0, 9, 10, 11, 99, 100, 12_345] {
        let mut out = b"before".to_vec();
        write_frame(&mut out, expected, |out| {
            out.extend_from_slice(b"[\"0123456\"]");
        });
        assert_eq!(out, b"beforeContent-Length: 11\r\n\r\n[\"0123456\"]");
    }
}

/// FRM-2: letter case, white space around the value, other headers, any order.
#[test]
fn lenient_reading() {
    accepted("Content-Length: 3\r\n\r\n");
    accepted("content-length:3\r\n\r\n");
    accepted("CONTENT-LENGTH: \t 3 \t\r\n\r\n");
    accepted("Content-Length: 0003\r\n\r\n");
    accepted(
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 3\r\n\r\n",
    );
    accepted("Content-Length: 3\r\nContent-Type: a:b\r\nX-Other:\r\n\r\n");
    accepted("X!#$%&'*+-.^_`|~9: \u{fc}\r\nContent-Length: 3\r\n\r\n");
    accepted("Content-Length: 3\r\ncontent-length: 03\r\n\r\n");
}

/// FRM-4: what is no frame is fatal.
#[test]
fn what_is_no_frame_is_fatal() {
    use FrameFault as F;
    assert_eq!(fault(b"\r\n[1]"), F::NoLength);
    assert_eq!(fault(b"Content-Type: x\r\n\r\n[1]"), F::NoLength);
    for value in [
        "-1", "+5", "1.5", "0x10", "1e3", "", "  ", "5 5", "5,5", "\u{663}", "5\u{b}",
    ] {
        let bytes = format!("Content-Length: {value}\r\n\r\n");
        let shown = value.trim_matches(' ').to_owned();
        assert_eq!(fault(bytes.as_bytes()), F::BadLength(shown));
    }
    for value in ["9007199254740993", &"9".repeat(400)] {
        let bytes = format!("Content-Length: {value}\r\n\r\n");
        assert!(matches!(fault(bytes.as_bytes()), F::BadLength(_)));
    }
    let two = b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n[1]";
    assert_eq!(fault(two), F::TwoLengths(3, 4));
    assert_eq!(fault(b"Content-Length: 0\r\n\r\n"), F::ZeroLength);
    assert_eq!(fault(b"Content-Length: 3\n\n[1]"), F::LineEnd);
    assert_eq!(fault(b"Content-Length: 3\r\r\n[1]"), F::LineEnd);
    assert_eq!(fault(b"Content-Length: 3\r\n\r[1]"), F::LineEnd);
    assert_eq!(fault(b"Content-Length: 3\rX: y\r\n\r\n"), F::LineEnd);
    for text in [
        "hello world\n",
        "Content-Length : 3\r\n\r\n",
        "\u{feff}Content-Length: 3\r\n\r\n",
        " Content-Length: 3\r\n\r\n",
        "Content-Length\r\n\r\n",
        ": 3\r\n\r\n",
        "\u{1b}[2JContent-Length: 3\r\n\r\n",
        "\nContent-Length: 3\r\n\r\n",
        "{\"jsonrpc\":\"2.0\"}",
    ] {
        assert_eq!(fault(text.as_bytes()), F::NotAHeader, "{text:?}");
    }
}

/// FRM-4: the largest length there is passes as a length; the limit of the body then speaks.
#[test]
fn the_largest_length_is_a_length() {
    let bytes = format!("Content-Length: {MAX_LENGTH}\r\n\r\n");
    assert_eq!(
        fault(bytes.as_bytes()),
        FrameFault::BodyTooLong {
            declared: MAX_LENGTH,
            limit: LIMIT
        }
    );
}

/// FRM-5: the header section's limit is exact, with a terminator and without.
#[test]
fn the_header_section_is_bounded() {
    let ending = "\r\nContent-Length: 3\r\n\r\n";
    let padding = "x".repeat(MAX_HEADER_BYTES - "X: ".len() - ending.len());
    let longest = format!("X: {padding}{ending}");
    assert_eq!(longest.len(), MAX_HEADER_BYTES);
    accepted(&longest);
    assert_eq!(
        fault(format!("X: x{padding}{ending}").as_bytes()),
        FrameFault::HeaderTooLong
    );
    assert_eq!(
        fault(&b"a".repeat(MAX_HEADER_BYTES)),
        FrameFault::HeaderTooLong
    );
    let endless = b"X: y\r\n".repeat(MAX_HEADER_BYTES);
    assert_eq!(fault(&endless), FrameFault::HeaderTooLong);
}

/// FRM-5: the body's limit is exact, and seen before a byte of the body.
#[test]
fn the_body_is_bounded_by_its_announcement() {
    let longest = b"[".repeat(1_000);
    assert_eq!(
        decode_all(&frame(&longest)).map(|bodies| bodies.len()),
        Ok(1)
    );
    assert_eq!(
        fault(b"Content-Length: 1001\r\n\r\n"),
        FrameFault::BodyTooLong {
            declared: 1_001,
            limit: LIMIT
        }
    );
}

/// FRM-5, FRM-9: an announcement alone takes no memory.
#[test]
fn memory_grows_with_what_arrives() {
    let mut decoder = FrameDecoder::new(1 << 40);
    decoder.feed(b"Content-Length: 1073741824\r\n\r\n");
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.room();
    assert!(decoder.held() < 300_000, "{}", decoder.held());
    for _ in 0..32 {
        decoder.room().extend_from_slice(&b" ".repeat(32_768));
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    assert!(decoder.held() < 3 * 32 * 32_768, "{}", decoder.held());
}

/// FRM-9: a large message is held once, and its buffer given back.
#[test]
fn a_large_buffer_is_given_back() {
    let body = vec![b' '; 5_000_000];
    let mut decoder = FrameDecoder::new(16_000_000);
    let bodies = decode(&mut decoder, frame(&body).chunks(60_000)).unwrap();
    assert_eq!(bodies, [body]);
    assert!(
        decoder.held() >= 5_000_000 && decoder.held() < 5_200_000,
        "{}",
        decoder.held()
    );
    decoder.feed(b"C");
    assert!(decoder.held() < 300_000, "{}", decoder.held());
}

/// Reads `stream` as a process's output is read, never more than the room there is, `step` bytes
/// at a time; gives the bodies, and the most memory the decoder held meanwhile.
fn pump(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, usize) {
    let mut decoder = FrameDecoder::new(16_000_000);
    let (mut rest, mut bodies, mut most) = (stream, Vec::new(), 0);
    while !rest.is_empty() {
        let room = decoder.room();
        let spare = room.capacity() - room.len();
        assert!(spare > 0, "asked to read into no room");
        let (now, later) = rest.split_at(rest.len().min(step).min(spare));
        room.extend_from_slice(now);
        rest = later;
        while let Some(body) = decoder.next_frame().expect("frames") {
            bodies.push(body.to_vec());
        }
        most = most.max(decoder.held());
    }
    (bodies, most)
}

/// FRM-3, FRM-9: frames that begin at one end of the buffer and end at the other are moved whole,
/// and one buffer does for any number of them.
#[test]
fn one_buffer_does_for_a_long_stream() {
    let body = |number: usize| {
        let fill = char::from(b'a' + u8::try_from(number % 26).unwrap());
        format!("{number}{}", String::from(fill).repeat(10_000)).into_bytes()
    };
    let sent: Vec<_> = (0..100).map(body).collect();
    let stream: Vec<_> = sent.iter().flat_map(|body| frame(body)).collect();
    for step in [100, 9_999, 65_536, usize::MAX] {
        let (bodies, most) = pump(&stream, step);
        assert!(bodies == sent, "steps of {step} changed a body");
        assert_eq!(most, 65_536, "steps of {step}");
    }
}

/// FRM-9: a body that fits only just, after another one, costs the room it needs and no more.
#[test]
fn a_large_body_behind_a_small_one_is_held_once() {
    let large = vec![b'l'; 1_000_000];
    let stream = [frame(&b"s".repeat(40_000)), frame(&large)].concat();
    let (bodies, most) = pump(&stream, usize::MAX);
    assert_eq!(bodies[1], large);
    assert!(most < 1_300_000, "{most}");
}

/// FRM-9: a header is read into room that is worth a read, however little is left of the buffer.
#[test]
fn a_header_is_not_read_in_crumbs() {
    for left in [1, 10, 1_500, 4_095, 4_096, 5_000] {
        let mut decoder = FrameDecoder::new(1_000_000);
        decoder.feed(&frame(&vec![b'x'; 65_536 - left - 30]));
        decoder.next_frame().expect("a frame").expect("a whole one");
        decoder.room().extend_from_slice(b"Con");
        let held = decoder.held();
        let room = decoder.room();
        assert!(room.capacity() - room.len() >= 4_096, "{left} left");
        assert_eq!(decoder.held(), held, "{left} left: moved, not grown");
    }
}

/// FRM-9: a buffer of ordinary size is kept for what comes next.
#[test]
fn a_buffer_of_ordinary_size_is_kept() {
    let mut decoder = FrameDecoder::new(1_000_000);
    decode(&mut decoder, frame(&vec![b' '; 200_000]).chunks(60_000)).unwrap();
    let held = decoder.held();
    assert!(held >= 200_000, "{held}");
    decoder.room();
    assert_eq!(decoder.held(), held);
}

/// FRM-10: the error shows what came, and says where logs belong.
#[test]
fn the_error_shows_what_came() {
    let error = decode_all(b"hello\nworld, this is \xff your server").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("stdout is not a frame stream"), "{text}");
    assert!(text.contains(r#"got "hello\nworld, this is "#), "{text}");
    assert!(text.contains("before the first message"), "{text}");
    assert!(
        text.ends_with("language servers must log to stderr"),
        "{text}"
    );

    let late = decode_all(&[frame(b"[]"), b"oops again".to_vec()].concat()).unwrap_err();
    assert_eq!(
        (late.first_bytes.as_str(), late.frames_before),
        ("oops again", 1)
    );

    let whole = decode_all(&[b"x y".to_vec(), b"z".repeat(197)].concat()).unwrap_err();
    assert!(whole.first_bytes.ends_with("zz"));
    let long = decode_all(&[b"x y".to_vec(), b"z".repeat(1_000)].concat()).unwrap_err();
    assert!(long.first_bytes.len() < 210 && long.first_bytes.ends_with('…'));

    let large = decode_all(b"Content-Length: 5000\r\n\r\n")
        .unwrap_err()
        .to_string();
    assert!(
        large.contains("5000 bytes") && large.contains("maxMessageBytes (1000)"),
        "{large}"
    );
}

/// CRS-1: at the end of the stream it is known how much of a frame had come.
#[test]
fn what_is_left_at_the_end_is_known() {
    let mut decoder = FrameDecoder::new(LIMIT);
    assert_eq!(decoder.partial(), Partial::Nothing);
    decode(&mut decoder, [&frame(b"[1]")[..]]).unwrap();
    assert_eq!(decoder.partial(), Partial::Nothing);
    decode(&mut decoder, [&b"Content"[..]]).unwrap();
    assert_eq!(decoder.partial(), Partial::Header { received: 7 });
    decode(&mut decoder, [&b"-Length: 9\r\n\r\n12"[..]]).unwrap();
    assert_eq!(
        decoder.partial(),
        Partial::Body {
            received: 2,
            announced: 9
        }
    );
}

/// Bytes in one, two and three pieces, cut at every place and at every pair of places. Empty pieces
/// are among them, as a read may give nothing.
fn every_cutting(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 3]> {
    (0..=bytes.len()).flat_map(move |first| {
        (first..=bytes.len())
            .map(move |second| [&bytes[..first], &bytes[first..second], &bytes[second..]])
    })
}

/// FRM-3: a short exchange, in several spellings, cut at every place and at every two places.
#[test]
fn every_two_cuts_of_an_exchange_give_the_same_bodies() {
    let bodies = [
        "{\"id\":1,\"result\":\"aé数😀\"}",
        "[]",
        "\"\r\n\r\nContent-Length: 2\r\n\r\n\"",
    ];
    let headers = [
        "Content-Length: {N}\r\n\r\n",
        "content-type: x\r\nCONTENT-LENGTH:\t00{N} \r\n\r\n",
        "Content-Length: {N}\r\nContent-Length: {N}\r\nX:\r\n\r\n",
    ];
    let exchange: String = headers
        .iter()
        .zip(bodies)
        .map(|(header, body)| header.replace("{N}", &body.len().to_string()) + body)
        .collect();
    let expected: Vec<Vec<u8>> = bodies.iter().map(|body| body.as_bytes().to_vec()).collect();
    let mut cuttings = 0;
    for pieces in every_cutting(exchange.as_bytes()) {
        let mut decoder = FrameDecoder::new(LIMIT);
        let read = decode(&mut decoder, pieces);
        assert_eq!(
            read.as_ref(),
            Ok(&expected),
            "{:?}",
            pieces.map(<[u8]>::len)
        );
        assert_eq!(decoder.partial(), Partial::Nothing);
        cuttings += 1;
    }
    let places = exchange.len() + 1;
    assert_eq!(cuttings, places * (places + 1) / 2);
}

/// FRM-3, FRM-4: what is wrong is wrong in the same way, behind the same whole message, wherever
/// it is cut.
#[test]
fn every_two_cuts_of_a_broken_stream_give_the_same_fault() {
    for broken in [
        "Content-Length: 2\n\n{}",
        "Content-Length: 2\r{}",
        "Content-Length: 2\r\n\r{}",
        "Content-Type: x\r\n\r\n{}",
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 1001\r\n\r\n",
        "Content-Length: -1\r\n\r\n{}",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "\u{feff}Content-Length: 2\r\n\r\n{}",
        "INFO ready\n",
    ] {
        let stream = [&frame(b"[1]"), broken.as_bytes()].concat();
        let mut whole = FrameDecoder::new(LIMIT);
        let expected = decode(&mut whole, [&stream[..]]).expect_err("it is broken");
        assert_eq!(expected.frames_before, 1, "{broken:?}");
        for pieces in every_cutting(&stream) {
            let mut decoder = FrameDecoder::new(LIMIT);
            let error = decode(&mut decoder, pieces).expect_err("it is broken");
            let cut = pieces.map(<[u8]>::len);
            assert_eq!(error.fault, expected.fault, "{broken:?} in {cut:?}");
            assert_eq!(error.frames_before, 1, "{broken:?} in {cut:?}");
        }
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// A frame in one of the many spellings that are allowed, and its body.
    fn any_frame() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let body = prop_oneof![
            prop::collection::vec(any::<u8>(), 1..40),
            prop::collection::vec(any::<u8>(), 900..1_000),
            "\\PC{1,40}".prop_map(String::into_bytes),
            Just(b"Content-Length: 2\r\n\r\n{}".to_vec()),
        ];
        let name = prop_oneof![
            Just("Content-Length"),
            Just("content-length"),
            Just("cONTENT-lENGTH")
        ];
        let other = prop_oneof![
            Just(""),
            Just("Content-Type: application/vscode-jsonrpc; charset=utf8\r\n"),
            Just("X: \r\n"),
        ];
        (
            body,
            name,
            "[ \t]{0,2}",
            "0{0,2}",
            "[ \t]{0,2}",
            other.clone(),
            other,
        )
            .prop_map(|(body, name, before, zeros, after, first, last)| {
                let length = body.len();
                let header = format!("{first}{name}:{before}{zeros}{length}{after}\r\n{last}\r\n");
                ([header.as_bytes(), &body].concat(), body)
            })
    }

    fn pieces(bytes: &[u8], mut cuts: Vec<prop::sample::Index>) -> Vec<&[u8]> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let mut places: Vec<usize> = cuts.drain(..).map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places
            .windows(2)
            .map(|pair| &bytes[pair[0]..pair[1]])
            .collect()
    }

    proptest! {
        /// FRM-2, FRM-3: any chunking of any valid stream gives exactly its bodies.
        #[test]
        fn any_chunking_gives_the_same_bodies(
            frames in prop::collection::vec(any_frame(), 0..8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let (wire, bodies): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
            let wire = wire.concat();
            let read = decode(&mut FrameDecoder::new(LIMIT), pieces(&wire, cuts));
            prop_assert_eq!(read.as_ref(), Ok(&bodies));
            let read = decode(&mut FrameDecoder::new(LIMIT), wire.chunks(1));
            prop_assert_eq!(read.as_ref(), Ok(&bodies));
        }

        /// FRM-3, FRM-9: whatever the bytes, decoding never panics, never hands out what was not
        /// received, gives the same in any chunking, and holds no more than one message and one
        /// read buffer beside the piece that was fed.
        #[test]
        fn any_bytes_are_bounded(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "(Content-Length: [0-9]{1,4}(\r\n|\n)|[a-zA-Z: ]|\r\n|\r|\\{\\}){0,30}"
                    .prop_map(String::into_bytes),
            ],
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let mut decoder = FrameDecoder::new(LIMIT);
            let mut bodies = Vec::new();
            let mut failed = false;
            for piece in pieces(&bytes, cuts) {
                decoder.feed(piece);
                while let Ok(Some(body)) = decoder.next_frame() {
                    prop_assert!(body.len() as u64 <= LIMIT);
                    bodies.push(body.to_vec());
                }
                failed = decoder.next_frame().is_err();
                if failed {
                    break;
                }
                let bound = LIMIT_BYTES + MAX_HEADER_BYTES + 2 * 64 * 1024;
                prop_assert!(decoder.held() <= bound);
            }
            let received: usize = bodies.iter().map(Vec::len).sum();
            prop_assert!(received <= bytes.len());
            let mut whole = FrameDecoder::new(LIMIT);
            whole.feed(&bytes);
            let mut again = Vec::new();
            while let Ok(Some(body)) = whole.next_frame() {
                again.push(body.to_vec());
            }
            prop_assert_eq!(again, bodies);
            prop_assert_eq!(whole.next_frame().is_err(), failed);
        }

        /// FRM-1: what is written reads back as what was meant.
        #[test]
        fn what_is_written_reads_back(body in prop::collection::vec(any::<u8>(), 1..500), guess in 0..2_000_usize) {
            let mut wire = Vec::new();
            write_frame(&mut wire, guess, |out| out.extend_from_slice(&body));
            let expected = [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
            prop_assert_eq!(&wire, &expected);
            prop_assert_eq!(decode_all(&wire), Ok(vec![body]));
        }
    }
}
