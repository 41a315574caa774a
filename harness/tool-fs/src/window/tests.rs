use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn config() -> ToolFsConfig {
    ToolFsConfig::default()
}

fn shown_in(
    bytes: &[u8],
    piece: usize,
    (offset, limit): (u64, u64),
    config: &ToolFsConfig,
) -> Result<Shown, NotText> {
    let mut window = Window::new(Range { offset, limit }, config);
    for piece in bytes.chunks(piece) {
        window.feed(piece)?;
    }
    Ok(window.finish())
}

fn shown(bytes: &[u8], range: (u64, u64)) -> Shown {
    let whole = shown_in(bytes, usize::MAX, range, &config()).expect("text");
    for piece in [1, 2, 3, 7] {
        assert_eq!(shown_in(bytes, piece, range, &config()), Ok(whole.clone()));
    }
    whole
}

#[track_caller]
fn check(bytes: &[u8], range: (u64, u64), lines: &[(u64, &str)], total: u64) {
    let shown = shown(bytes, range);
    let found: Vec<_> = shown
        .lines
        .iter()
        .map(|line| (line.number, line.text.as_str()))
        .collect();
    assert_eq!((found.as_slice(), shown.total_lines), (lines, total));
}

/// RUN-8: an empty file has no line; a line end ends a line and begins none.
#[test]
fn lines_are_counted_as_editors_count_them() {
    check(b"", (1, 10), &[], 0);
    check(b"\n", (1, 10), &[(1, "")], 1);
    check(b"a", (1, 10), &[(1, "a")], 1);
    check(b"a\n", (1, 10), &[(1, "a")], 1);
    check(b"a\n\nb", (1, 10), &[(1, "a"), (2, ""), (3, "b")], 3);
    check(b"a\n\n", (1, 10), &[(1, "a"), (2, "")], 2);
}

/// RUN-8
#[test]
fn the_window_shows_its_lines_and_counts_all() {
    let text = b"1\n2\n3\n4\n5\n";
    check(text, (1, 2), &[(1, "1"), (2, "2")], 5);
    check(text, (3, 2), &[(3, "3"), (4, "4")], 5);
    check(text, (5, 2), &[(5, "5")], 5);
    check(text, (6, 2), &[], 5);
    check(text, (u64::MAX, 2), &[], 5);
    check(b"1\n2\n3", (3, 1), &[(3, "3")], 3);
    check(b"1\n2\n3", (1, 1), &[(1, "1")], 3);
}

/// RUN-8: CRLF ends a line and is no part of it; a carriage return elsewhere is a character.
#[test]
fn carriage_returns_end_lines_only_before_line_feeds() {
    check(b"a\r\nb\r\n", (1, 10), &[(1, "a"), (2, "b")], 2);
    check(b"a\rb\r\r\nc\r", (1, 10), &[(1, "a\rb\r"), (2, "c\r")], 2);
    check(b"\r\n", (1, 10), &[(1, "")], 1);
    check(b"a\rb\rc", (1, 10), &[(1, "a\rb\rc")], 1);
}

/// RUN-8: a leading BOM is not part of the first line, and a file of nothing else is empty.
#[test]
fn a_leading_bom_is_left_out() {
    check(b"\xEF\xBB\xBFa\n", (1, 10), &[(1, "a")], 1);
    check(b"\xEF\xBB\xBF", (1, 10), &[], 0);
    check(b"\xEF\xBB\xBF\n", (1, 10), &[(1, "")], 1);
    check(
        b"a\n\xEF\xBB\xBFb",
        (1, 10),
        &[(1, "a"), (2, "\u{FEFF}b")],
        2,
    );
    check(b"\xEF\xBB", (1, 10), &[(1, "\u{FFFD}")], 1);
    check(b"\xEF\xBBx", (1, 10), &[(1, "\u{FFFD}x")], 1);
}

/// RUN-8: bytes that are no UTF-8 are shown as U+FFFD, and a valid U+FFFD as itself.
#[test]
fn bytes_that_are_no_text_are_replaced() {
    check("caf\u{FFFD}".as_bytes(), (1, 10), &[(1, "caf\u{FFFD}")], 1);
    check(b"caf\xE9\nx\n", (1, 10), &[(1, "caf\u{FFFD}"), (2, "x")], 2);
}

/// RUN-8: a NUL byte near the beginning tells a binary file; one far behind is shown replaced.
#[test]
fn binary_files_are_told_by_a_nul_near_the_beginning() {
    let nul_at = |at: usize| {
        let mut bytes = vec![b'x'; at];
        bytes.extend_from_slice(b"\0\nend\n");
        bytes
    };
    for piece in [1, 3, 100_000] {
        let read = |bytes: &[u8]| shown_in(bytes, piece, (2, 5), &config());
        assert_eq!(read(&nul_at(0)), Err(NotText::Nul(0)));
        assert_eq!(read(&nul_at(7999)), Err(NotText::Nul(7999)));
        assert!(read(&nul_at(8000)).is_ok());
        assert_eq!(read(b"\xFF\xFEa\0"), Err(NotText::Utf16));
        assert_eq!(read(b"\xFE\xFF\x4E\x2D"), Err(NotText::Utf16));
        assert!(read(b"\xFFx").is_ok());
    }
    let late = shown_in(&nul_at(8000), 4096, (1, 1), &config()).expect("text");
    assert!(
        late.lines[0]
            .text
            .ends_with("(line cut after 2000 characters)")
    );
    let mut bytes = b"x\n".repeat(5000);
    bytes.extend_from_slice(b"a\0b\n");
    check(&bytes, (5001, 1), &[(5001, "a\u{FFFD}b")], 5001);
}

/// RUN-8: a line of exactly the limit is whole; a longer one is cut between characters and says so.
#[test]
fn long_lines_are_cut_between_characters() {
    for char in ["a", "é", "中", "𝕏"] {
        let exact = char.repeat(2000);
        check(exact.as_bytes(), (1, 1), &[(1, &exact)], 1);
        let crlf = format!("{exact}\r\nb");
        check(crlf.as_bytes(), (1, 1), &[(1, &exact)], 2);
        for more in [1, 2, 5000] {
            let long = format!("{exact}{}\nb\n", char.repeat(more));
            let cut = format!("{exact}… (line cut after 2000 characters)");
            check(long.as_bytes(), (1, 2), &[(1, &cut), (2, "b")], 2);
        }
    }
}

/// RUN-8: output over the byte limit ends with the last line that fits, its number counted in.
#[test]
fn output_is_capped_between_lines() {
    let config = ToolFsConfig {
        max_bytes: 20,
        ..config()
    };
    // `1: aaaa` and a line end are 8 bytes each.
    let shown = shown_in(b"aaaa\naaaa\naaaa\n", 100, (1, 10), &config).expect("text");
    assert_eq!((shown.lines.len(), shown.total_lines), (2, 3));
    let exact = shown_in(b"aaaa\naaaa\na\nb\n", 100, (1, 10), &config).expect("text");
    assert_eq!((exact.lines.len(), exact.total_lines), (2, 4));
    let whole = shown_in(b"aaaa\naaaa\n\n", 100, (1, 10), &config).expect("text");
    assert_eq!((whole.lines.len(), whole.total_lines), (3, 3));
}

/// RUN-8: a window always shows its first line, if only a part, so that one can go on.
#[test]
fn a_first_line_that_does_not_fit_is_cut() {
    for max_bytes in [1, 3, 4, 8] {
        let config = ToolFsConfig {
            max_bytes,
            ..config()
        };
        let shown = shown_in("ééééé\nb\n".as_bytes(), 2, (1, 10), &config).expect("text");
        let fits = usize::try_from(max_bytes.saturating_sub(4) / 2).expect("small");
        let text = format!("{}… (line cut after {fits} characters)", "é".repeat(fits));
        assert_eq!(shown.lines, [Line { number: 1, text }]);
        assert_eq!(shown.total_lines, 2);
    }
}

/// RUN-8: a line of any length takes memory for what is shown of it.
#[test]
fn memory_is_bounded_by_what_is_shown() {
    let piece = vec![b'x'; 100_000];
    let range = Range {
        offset: 1,
        limit: 2000,
    };
    let mut window = Window::new(range, &config());
    for _ in 0..100 {
        window.feed(&piece).expect("text");
    }
    assert!(
        window.line.capacity() <= 4 * 8004,
        "{}",
        window.line.capacity()
    );
    assert!(window.head.capacity() <= 4 * LOOKED_AT);
    assert_eq!(window.finish().total_lines, 1);
}

/// What is shown, said plainly: the whole text in memory, split and cut.
fn reference(text: &str, (offset, limit): (u64, u64), config: &ToolFsConfig) -> Shown {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut all: Vec<&str> = text.split('\n').collect();
    let last = all.pop().expect("a split has one part");
    let mut all: Vec<&str> = all
        .into_iter()
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    if !last.is_empty() {
        all.push(last);
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut used = 0;
    for (index, line) in all.iter().enumerate() {
        let number = index as u64 + 1;
        if number < offset || lines.len() as u64 == limit {
            continue;
        }
        let text = if (line.chars().count() as u64) > config.max_line_length {
            let most = usize::try_from(config.max_line_length).expect("small");
            let kept: String = line.chars().take(most).collect();
            format!("{kept}… (line cut after {most} characters)")
        } else {
            (*line).to_owned()
        };
        used += format!("{number}: {text}\n").len() as u64;
        if used > config.max_bytes {
            break;
        }
        lines.push(Line { number, text });
    }
    Shown {
        lines,
        total_lines: all.len() as u64,
    }
}

/// RUN-8: an empty line has a number and a line end, which count too.
#[test]
fn an_empty_line_that_does_not_fit_is_left_out() {
    let config = ToolFsConfig {
        max_bytes: 202,
        ..config()
    };
    let text = format!("{}\n\n\n", "x".repeat(194));
    let shown = shown_in(text.as_bytes(), 100, (1, 10), &config).unwrap();
    assert_eq!((shown.lines.len(), shown.total_lines), (2, 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// RUN-8: any window over any text, in any pieces, is that of a plain reference.
    #[test]
    fn a_window_shows_what_a_plain_reader_would(
        parts in vec(prop_oneof![
            Just("\n".to_owned()), Just("\r\n".to_owned()), Just("\r".to_owned()),
            Just("\u{FEFF}".to_owned()), "[aé中𝕏]{0,12}", "[ -~]{0,6}",
        ], 0..40),
        offset in 1_u64..20,
        limit in 1_u64..12,
        piece in 1_usize..30,
        max_line_length in 1_u64..15,
        max_bytes in 200_u64..400,
    ) {
        let config = ToolFsConfig { max_line_length, max_bytes, ..config() };
        let text = parts.concat();
        let shown = shown_in(text.as_bytes(), piece, (offset, limit), &config);
        prop_assert_eq!(shown, Ok(reference(&text, (offset, limit), &config)));
    }

    /// RUN-8: any bytes are shown or refused; the numbers rise by one from the offset.
    #[test]
    fn any_bytes_are_shown_in_order_or_refused(
        bytes in vec(any::<u8>(), 0..200), offset in 1_u64..10, piece in 1_usize..50
    ) {
        if let Ok(shown) = shown_in(&bytes, piece, (offset, 5), &config()) {
            for (index, line) in shown.lines.iter().enumerate() {
                prop_assert_eq!(line.number, offset + index as u64);
            }
            prop_assert!(shown.lines.last().is_none_or(|line| line.number <= shown.total_lines));
        }
    }
}
