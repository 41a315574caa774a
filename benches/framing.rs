//! What reading frames costs, against the floor.
//!
//! The floor is a copy of the same bytes into a buffer, piece by piece, by the same loop. A stream of
//! large messages shows the throughput, a stream that comes one byte at a time shows that the cost of
//! a byte does not depend on the size of the message (FRM-9).
//!
//! ```text
//! cargo bench --bench framing
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use dsh_lsp_stdio::FrameDecoder;

const LIMIT: u64 = 64 << 20;
const ROUNDS: usize = 15;

fn main() {
    // `cargo test --benches` runs this with `--test`: nothing is measured then.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    println!(
        "{:<34} {:>10} {:>10} {:>7}  wanted",
        "", "copy", "decoder", "ratio"
    );
    for (name, size, count) in [
        ("16 MB messages, 64 KiB pieces", 16_000_000, 4),
        ("1 MB messages, 64 KiB pieces", 1_000_000, 64),
        ("1 kB messages, 64 KiB pieces", 1_000, 64_000),
    ] {
        let stream = messages(size, count);
        let copied = best(|| copy(&stream, 64 << 10));
        let decoded = best(|| decode(&stream, 64 << 10, count));
        let wanted = if size >= 1_000_000 { "1 GB/s" } else { "" };
        println!(
            "{name:<34} {:>10} {:>10} {:>6.2}x  {wanted}",
            rate(stream.len(), copied),
            rate(stream.len(), decoded),
            decoded.as_secs_f64() / copied.as_secs_f64(),
        );
    }
    let mut first = None;
    for size in [1_000, 64_000, 1_000_000, 16_000_000] {
        let stream = messages(size, 16_000_000 / size);
        let copied = best(|| copy(&stream, 1));
        let decoded = best(|| decode(&stream, 1, 16_000_000 / size));
        let per_byte = decoded.as_secs_f64() / lossy(stream.len());
        let first = *first.get_or_insert(per_byte);
        println!(
            "{:<34} {:>10} {:>10} {:>6.2}x  {:.2}x the first",
            format!("one byte at a time, {size} bytes"),
            rate(stream.len(), copied),
            rate(stream.len(), decoded),
            decoded.as_secs_f64() / copied.as_secs_f64(),
            per_byte / first,
        );
    }
}

/// `count` frames with bodies of `size` bytes.
fn messages(size: usize, count: usize) -> Vec<u8> {
    let mut frame = format!("Content-Length: {size}\r\n\r\n").into_bytes();
    frame.resize(frame.len() + size, b'x');
    frame.repeat(count)
}

fn copy(stream: &[u8], piece: usize) {
    let mut buffer = Vec::new();
    for bytes in stream.chunks(piece) {
        buffer.extend_from_slice(black_box(bytes));
        if buffer.len() >= 16_000_000 {
            buffer.clear();
        }
    }
    black_box(&buffer);
}

fn decode(stream: &[u8], piece: usize, count: usize) {
    let mut decoder = FrameDecoder::new(LIMIT);
    let mut seen = 0;
    for bytes in stream.chunks(piece) {
        decoder.feed(black_box(bytes));
        while let Some(body) = decoder.next_frame().expect("a valid stream") {
            black_box(body);
            seen += 1;
        }
    }
    assert_eq!(seen, count, "every frame comes out");
}

/// The fastest of some rounds: what is left is the work, without what else the machine was doing.
fn best(work: impl Fn()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("there are rounds")
}

fn rate(bytes: usize, time: Duration) -> String {
    format!("{:.2} GB/s", lossy(bytes) / time.as_secs_f64() / 1e9)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn lossy(count: usize) -> f64 {
    count as f64
}
