use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn edit<'a>(old: &'a str, new: &'a str, all: bool) -> Edit<'a> {
    Edit {
        old,
        new,
        all,
        limit: 1_000_000,
    }
}

#[track_caller]
fn check(text: &str, old: &str, new: &str, expected: &str) {
    let edited = apply(text.as_bytes(), edit(old, new, false)).expect("edited");
    assert_eq!(String::from_utf8(edited.bytes).expect("UTF-8"), expected);
    assert_eq!(edited.replacements, 1);
}

#[track_caller]
fn check_all(text: &str, old: &str, new: &str, expected: &str, lines: &[u64]) {
    let edited = apply(text.as_bytes(), edit(old, new, true)).expect("edited");
    assert_eq!(String::from_utf8(edited.bytes).expect("UTF-8"), expected);
    assert_eq!(edited.lines, lines);
}

#[track_caller]
fn check_refused(text: &str, old: &str, expected: &Refused) {
    let refused = apply(text.as_bytes(), edit(old, "other", false)).expect_err("refused");
    assert_eq!(&refused, expected);
}

/// RUN-9
#[test]
fn the_only_place_is_replaced() {
    check("one two three", "two", "2", "one 2 three");
    check("a\nb\nc\n", "b\n", "", "a\nc\n");
    check("\u{FEFF}a", "a", "b", "\u{FEFF}b");
    check("𝕏é", "é", "中", "𝕏中");
}

/// RUN-9: every place, not overlapping, from the front.
#[test]
fn all_places_are_replaced_on_request() {
    check_all("aaaaa", "aa", "b", "bba", &[1, 1]);
    check_all("x\ny\nx\n", "x", "1\n2", "1\n2\ny\n1\n2\n", &[1, 4]);
}

/// RUN-9: how many and where, also when they overlap; no more lines than help.
#[test]
fn more_than_one_place_is_ambiguous() {
    let ambiguous = |count, lines: &[u64]| Refused::Ambiguous {
        count,
        lines: lines.to_vec(),
    };
    check_refused("x\ny\nx x\n", "x", &ambiguous(3, &[1, 3, 3]));
    check_refused("baaab", "aa", &ambiguous(2, &[1, 1]));
    let many = "x\n".repeat(100);
    check_refused(
        &many,
        "x",
        &ambiguous(100, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    );
}

/// RUN-9: a text that is nowhere, with what may be the matter.
#[test]
fn a_text_that_is_nowhere_comes_with_a_hint() {
    let absent = Refused::Absent;
    check_refused("abc", "x", &absent(Hint::Nothing));
    check_refused("", "x", &absent(Hint::Nothing));
    check_refused("abc", "\n\n", &absent(Hint::Nothing));
    check_refused(
        "fn a() {\n}\n",
        "1: fn a() {\n2: }",
        &absent(Hint::Numbered),
    );
    check_refused("caf", "caf\u{FFFD}", &absent(Hint::Replacement));
    check_refused(
        "x\n\tlet a;\n",
        "    let a;",
        &absent(Hint::WhiteSpace(vec![2])),
    );
}

/// RUN-9: LF in the arguments matches CRLF in the file, which stays CRLF.
#[test]
fn line_ends_of_the_file_are_kept() {
    check("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n");
    check("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n");
    check("a\r\nb", "b", "x\ny", "a\r\nx\r\ny");
    check("a\r\nb\r\n", "\nb", "\nc", "a\r\nc\r\n");
    check("a\r\nb\r\n", "a\n", "", "b\r\n");
    check("a\nb\n", "a\nb", "x\ny", "x\ny\n");
    // Where the file is mixed, the line around the place decides.
    check("a\r\nb\nc\r\n", "b", "x\ny", "a\r\nx\ny\nc\r\n");
    check_all("a\r\na\n", "a", "x\ny", "x\r\ny\r\nx\ny\n", &[1, 3]);
    check_all("a\r\nb\na\nb\n", "a\nb", "c\nd", "c\r\nd\nc\nd\n", &[1, 3]);
}

/// RUN-9: line ends that are written out in `old_string` are taken at their word.
#[test]
fn explicit_line_ends_are_taken_as_they_are() {
    check("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n");
    check("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n");
    check("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n");
    // In a file that has none, they are what the model takes line ends to be.
    check("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n");
    assert_eq!(
        apply(b"a\nb\n", edit("a\r\nb", "a\nb", false)),
        Err(Refused::NoChange)
    );
}

/// RUN-9: what is no UTF-8 is kept.
#[test]
fn bytes_that_are_no_text_are_kept() {
    let edited = apply(b"\xE9\0a\xFF", edit("a", "b", false)).expect("edited");
    assert_eq!(edited.bytes, b"\xE9\0b\xFF");
}

/// RUN-9: the size of the result is known before it is made.
#[test]
fn a_result_beyond_the_limit_is_refused_before_it_is_made() {
    let text = vec![b'a'; 1_000_000];
    let new = "b".repeat(1_000_000);
    let refused = apply(&text, edit("a", &new, true));
    assert_eq!(refused, Err(Refused::TooLarge));
    let exact = Edit {
        limit: 4,
        ..edit("b", "xy", false)
    };
    assert!(apply(b"abc", exact).is_ok());
    assert_eq!(
        apply(b"abc", Edit { limit: 3, ..exact }),
        Err(Refused::TooLarge)
    );
}

/// RUN-9: bad cases for searching take linear time; this ends, or the test does not.
#[test]
fn repetitive_texts_are_searched_in_linear_time() {
    let text = "a".repeat(2_000_000);
    let old = format!("{}b", "a".repeat(1_000_000));
    check_refused(&text, &old, &Refused::Absent(Hint::Nothing));
    let lines = format!("{}\n", "ab".repeat(1_000_000));
    let wide = Edit {
        limit: u64::MAX,
        ..edit("a", "x\ny", true)
    };
    let edited = apply(lines.as_bytes(), wide).expect("edited");
    assert_eq!(edited.replacements, 1_000_000);
}

fn text() -> impl Strategy<Value = String> {
    vec(
        prop_oneof!["[abé]", Just("\n".to_owned()), Just("ab".to_owned())],
        0..30,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// RUN-9: with LF alone an edit is `str::replace`, and `str::replacen` where there is one place.
    #[test]
    fn an_edit_is_a_replacement_of_strings(
        text in text(), old in "[abé\n]{1,3}", new in "[abc\n]{0,3}", all: bool
    ) {
        prop_assume!(old != new);
        let places = (0..text.len())
            .filter(|at| text.as_bytes()[*at..].starts_with(old.as_bytes()))
            .count();
        match apply(text.as_bytes(), edit(&old, &new, all)) {
            Ok(edited) => {
                prop_assert_eq!(places, if all { places.max(1) } else { 1 });
                let lines: Vec<_> = edited.lines.clone();
                prop_assert_eq!(edited.bytes, text.replace(&old, &new).into_bytes());
                prop_assert!(lines.is_sorted());
            }
            Err(Refused::Absent(_)) => prop_assert_eq!(places, 0),
            Err(Refused::Ambiguous { count, lines }) => {
                prop_assert!(places > 1 && count > 1 && count <= places as u64);
                prop_assert_eq!(lines.len() as u64, count.min(NAMED as u64));
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    /// RUN-9: an edit of a CRLF file is the edit of the LF file, with CRLF again.
    #[test]
    fn an_edit_of_crlf_is_an_edit_of_lf(
        text in text(), old in "[ab\n]{1,3}", new in "[abc\n]{0,3}", all: bool
    ) {
        prop_assume!(old != new && text.contains('\n'));
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let on_lf = apply(text.as_bytes(), edit(&old, &new, all));
        let on_crlf = apply(crlf(&text).as_bytes(), edit(&old, &new, all));
        match (on_lf, on_crlf) {
            (Ok(lf), Ok(with_crlf)) => {
                let expected = crlf(std::str::from_utf8(&lf.bytes).expect("UTF-8"));
                prop_assert_eq!(String::from_utf8(with_crlf.bytes).expect("UTF-8"), expected);
                prop_assert_eq!(lf.lines, with_crlf.lines);
            }
            (lf, with_crlf) => prop_assert_eq!(lf, with_crlf),
        }
    }
}
