//! How frames are put into bytes, rightly and wrongly.

use crate::script::template::{Source, fill_text};
use crate::script::{Case, Chunk, Length, Order, RandomCuts, Spelling};

/// A frame as LSP has it, whose body is these parts.
pub(crate) fn plain(body: &[&[u8]], out: &mut Vec<u8>) {
    use std::io::Write as _;
    let length: usize = body.iter().map(|part| part.len()).sum();
    out.reserve(length + 32);
    // Writing to a vector cannot fail.
    let _ = write!(out, "Content-Length: {length}\r\n\r\n");
    for part in body {
        out.extend_from_slice(part);
    }
}

struct TrueLength<'a>(usize, &'a dyn Source);

impl Source for TrueLength<'_> {
    fn value(&self, name: &str) -> Option<serde_json::Value> {
        if name == "length" {
            Some(self.0.into())
        } else {
            self.1.value(name)
        }
    }
}

/// A frame spelled as `spelling` says.
pub(crate) fn spelled(body: &[u8], spelling: &Spelling, source: &dyn Source, out: &mut Vec<u8>) {
    let start = out.len();
    let end = if spelling.lf_only { "\n" } else { "\r\n" };
    let source = TrueLength(body.len(), source);
    let value = |length: &Length| match length {
        Length::Number(number) => number.to_string(),
        Length::Text(text) => fill_text(text, &source).into_owned(),
    };
    let true_length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    let first = match &spelling.length {
        _ if spelling.no_length => None,
        Some(length) => Some(value(length)),
        None => Some((true_length + spelling.length_by.unwrap_or(0)).to_string()),
    };
    let separator = spelling.separator.as_deref().unwrap_or(": ");
    let field = |value: String| {
        let name = cased("Content-Length", spelling.case);
        format!("{name}{separator}{value}{}", spelling.after)
    };
    let lengths = first
        .into_iter()
        .chain(spelling.second_length.as_ref().map(value))
        .map(field);
    let extra = spelling
        .extra
        .iter()
        .map(|line| match line.split_once(':') {
            Some((name, rest)) => format!("{}:{rest}", cased(name, spelling.case)),
            None => line.clone(),
        });
    let lines: Vec<String> = match spelling.order {
        Some(Order::LengthLast) => extra.chain(lengths).collect(),
        _ => lengths.chain(extra).collect(),
    };
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(end.as_bytes());
    }
    out.extend_from_slice(end.as_bytes());
    out.extend_from_slice(body);
    if let Some(only) = spelling.only {
        out.truncate(start + place(only, out.len() - start));
    }
}

fn cased(name: &str, case: Option<Case>) -> String {
    match case {
        None => name.to_owned(),
        Some(Case::Lower) => name.to_ascii_lowercase(),
        Some(Case::Upper) => name.to_ascii_uppercase(),
        Some(Case::Mixed) => name
            .chars()
            .enumerate()
            .map(|(at, c)| {
                if at % 2 == 0 {
                    c.to_ascii_lowercase()
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect(),
    }
}

/// A place counted from the start, or from the end if negative, kept inside `len`.
fn place(at: i64, len: usize) -> usize {
    let distance = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    if at < 0 {
        len.saturating_sub(distance)
    } else {
        distance.min(len)
    }
}

/// The lengths of the pieces a write of `len` bytes is cut into; none is zero.
pub(crate) fn pieces(chunk: &Chunk, len: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = match chunk {
        Chunk::EachByte => (1..=len).collect(),
        Chunk::Sizes(sizes) => sizes
            .iter()
            .scan(0_usize, |at, size| {
                *at = at.saturating_add(*size as usize);
                Some((*at).min(len))
            })
            .collect(),
        Chunk::At(places) => places.iter().map(|at| place(*at, len)).collect(),
        Chunk::EachPlace => vec![len.min(1)],
        Chunk::Random(random) => drawn(random, len),
    };
    ends.push(len);
    ends.sort_unstable();
    ends.dedup();
    let mut from = 0;
    let sizes = ends
        .into_iter()
        .map(|end| end - std::mem::replace(&mut from, end));
    sizes.filter(|size| *size > 0).collect()
}

/// Places inside `len` bytes that follow from the seed alone: its hash (FNV-1a) begins a sequence
/// of numbers (splitmix64).
fn drawn(random: &RandomCuts, len: usize) -> Vec<usize> {
    let mut state = random
        .seed
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let Ok(places @ 1..) = u64::try_from(len.saturating_sub(1)) else {
        return Vec::new();
    };
    (0..random.cuts)
        .filter_map(|_| usize::try_from(next() % places + 1).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;
    impl Source for Nothing {
        fn value(&self, _: &str) -> Option<serde_json::Value> {
            None
        }
    }

    #[track_caller]
    fn check(yaml: &str, expected: &str) {
        let spelling: Spelling = serde_saphyr::from_str(yaml).unwrap();
        let mut out = Vec::new();
        spelled(b"{}", &spelling, &Nothing, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn spellings_are_what_they_say() {
        check("{}", "Content-Length: 2\r\n\r\n{}");
        check("case: lower", "content-length: 2\r\n\r\n{}");
        check("case: upper", "CONTENT-LENGTH: 2\r\n\r\n{}");
        check("case: mixed", "cOnTeNt-lEnGtH: 2\r\n\r\n{}");
        check(
            "{separator: \":\", after: \" \"}",
            "Content-Length:2 \r\n\r\n{}",
        );
        check("extra: ['A: b']", "Content-Length: 2\r\nA: b\r\n\r\n{}");
        check(
            "{extra: ['A: b'], order: length_last, case: lower}",
            "a: b\r\ncontent-length: 2\r\n\r\n{}",
        );
        check("length: -1", "Content-Length: -1\r\n\r\n{}");
        check("length: '0x${length}'", "Content-Length: 0x2\r\n\r\n{}");
        check("length_by: 5", "Content-Length: 7\r\n\r\n{}");
        check(
            "second_length: 3",
            "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        );
        check("lf_only: true", "Content-Length: 2\n\n{}");
        check("{no_length: true, extra: ['A: b']}", "A: b\r\n\r\n{}");
        check("only: 5", "Conte");
        check("only: -1", "Content-Length: 2\r\n\r\n{");
    }

    #[test]
    fn pieces_cover_the_write() {
        assert_eq!(pieces(&Chunk::EachByte, 3), [1, 1, 1]);
        assert_eq!(pieces(&Chunk::Sizes(vec![2, 3]), 10), [2, 3, 5]);
        assert_eq!(pieces(&Chunk::Sizes(vec![2, 30]), 10), [2, 8]);
        assert_eq!(pieces(&Chunk::At(vec![-1, 4, 4, 0, 99]), 10), [4, 5, 1]);
        assert_eq!(pieces(&Chunk::At(vec![]), 10), [10]);
        assert!(pieces(&Chunk::EachByte, 0).is_empty());
        assert_eq!(pieces(&Chunk::EachPlace, 3), [1, 2]);
    }

    #[test]
    fn the_nth_frame_is_cut_at_its_nth_place() {
        let cut = |chunk: &Chunk, n| chunk.of(n).map(|chunk| pieces(&chunk, 4));
        assert_eq!(cut(&Chunk::EachPlace, 0), Some(vec![1, 3]));
        assert_eq!(cut(&Chunk::EachPlace, 2), Some(vec![3, 1]));
        assert_eq!(cut(&Chunk::EachPlace, 3), Some(vec![4]));
        assert_eq!(cut(&Chunk::At(vec![2]), 0), Some(vec![2, 2]));
        assert_eq!(cut(&Chunk::At(vec![2]), 1), None);
    }

    #[test]
    fn random_cuts_follow_from_their_seed() {
        let cut = |seed: &str, n, len| {
            let seed = seed.to_owned();
            let random = Chunk::Random(RandomCuts { cuts: 2, seed });
            pieces(&random.of(n).unwrap(), len)
        };
        assert_eq!(cut("7", 0, 100), cut("7", 0, 100));
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..500 {
            let pieces = cut("7", n, 100);
            assert!(matches!(pieces.len(), 2 | 3), "{pieces:?}");
            assert_eq!(pieces.iter().sum::<usize>(), 100);
            seen.insert(pieces[0]);
        }
        assert!(seen.len() > 60, "first cuts at {seen:?}");
        assert_ne!(cut("7", 0, 100_000), cut("8", 0, 100_000));
        assert_eq!(cut("7", 0, 1), [1]);
        assert!(cut("7", 0, 0).is_empty());
    }
}
