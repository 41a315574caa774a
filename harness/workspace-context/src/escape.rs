//! Keeps text from ending the frame it stands in (INS-4).

/// What a closing tag is written as.
const ESCAPED: &str = r"<\/system-reminder>";
const NAME: &str = "system-reminder";

/// Writes every closing tag of the frame, in any case and with blanks in it, as
/// `<\/system-reminder>`. One that is not closed itself, or holds more than its name, loses its
/// slash in the same way. Linear in the text.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        escaped.push_str(before);
        if let Some(after) = closing_tag(tag) {
            escaped.push_str(ESCAPED);
            rest = after;
        } else if let Some(after) = opening_of_closing_tag(tag) {
            escaped.push_str(&ESCAPED[..ESCAPED.len() - 1]);
            rest = after;
        } else {
            escaped.push('<');
            rest = &tag[1..];
        }
    }
    escaped.push_str(rest);
    escaped
}

/// Text on one line: control characters, line breaks among them, are written as escapes. For paths.
pub(crate) fn escape_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    escape(&line)
}

/// What is written behind `head`, kept from completing a closing tag that begins at its end: both
/// are escaped, and only together would they be one.
pub(crate) fn apart(head: &str, mut body: String) -> String {
    let begun = head.trim_end();
    let begun = begun.strip_suffix('/').map_or(begun, str::trim_end);
    if begun.ends_with('<') {
        let rest = body.trim_start();
        let slash = rest.strip_prefix('/').unwrap_or(rest).trim_start();
        let name = slash.get(..NAME.len());
        if name.is_some_and(|name| name.eq_ignore_ascii_case(NAME)) {
            let at = body.len() - rest.len();
            body.insert(at, '\\');
        }
    }
    body
}

/// What follows a whole closing tag at the start of `text`.
fn closing_tag(text: &str) -> Option<&str> {
    opening_of_closing_tag(text)?.trim_start().strip_prefix('>')
}

/// What follows `</system-reminder` at the start of `text`.
fn opening_of_closing_tag(text: &str) -> Option<&str> {
    let text = text.strip_prefix('<')?.trim_start();
    let text = text.strip_prefix('/')?.trim_start();
    let name = text.get(..NAME.len())?;
    name.eq_ignore_ascii_case(NAME).then(|| &text[NAME.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// INS-4: a heading that ends in the middle of a closing tag is not completed by what follows.
    #[test]
    fn two_parts_make_no_closing_tag() {
        for (head, body, written) in [
            ("A<\n\n", "/system-reminder>", "\\/system-reminder>"),
            ("A< /\n\n", " System-Reminder >", " \\System-Reminder >"),
            ("A<\n\n", " / system-reminder", " \\/ system-reminder"),
            ("A\n\n", "/system-reminder>", "/system-reminder>"),
            ("A<\n\n", "/system", "/system"),
            ("<", "", ""),
        ] {
            assert_eq!(super::apart(head, body.to_owned()), written, "{head:?}");
        }
    }

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected);
    }

    /// INS-4: any case, inner blanks.
    #[test]
    fn closing_tags_are_written_so_that_they_close_nothing() {
        check("a</system-reminder>b", r"a<\/system-reminder>b");
        check("</SYSTEM-Reminder>", r"<\/system-reminder>");
        check("< / system-reminder\t\n>", r"<\/system-reminder>");
        check(
            "<\u{a0}/\u{3000}system-reminder >x",
            r"<\/system-reminder>x",
        );
        check(
            "</system-reminder></system-reminder>",
            r"<\/system-reminder><\/system-reminder>",
        );
    }

    /// INS-4: what a lenient reader might take for one.
    #[test]
    fn unfinished_closing_tags_lose_their_slash_too() {
        check("</system-reminder", r"<\/system-reminder");
        check("</system-reminder x>", r"<\/system-reminder x>");
        check(
            "<</system-reminder>/system-reminder>",
            r"<<\/system-reminder>/system-reminder>",
        );
        check(
            "</system-</system-reminder>reminder>",
            r"</system-<\/system-reminder>reminder>",
        );
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "",
            "<system-reminder>",
            "</system>",
            "a < b / c",
            "<",
            "</",
            "</systém-reminder>",
            r"<\/system-reminder>",
            "</system-remindeé",
        ] {
            check(text, text);
        }
    }

    /// INS-4: a path cannot begin a line of its own.
    #[test]
    fn a_path_stays_on_its_line() {
        assert_eq!(
            escape_line("a\nInstructions from: b"),
            r"a\nInstructions from: b"
        );
        assert_eq!(
            escape_line("a</system-reminder\n>"),
            r"a<\/system-reminder\n>"
        );
        assert_eq!(escape_line("日本 x"), "日本 x");
    }

    #[test]
    fn a_hostile_text_costs_no_more_than_its_length() {
        let text = "< / ".repeat(200_000) + &" ".repeat(400_000);
        assert_eq!(escape(&text), text);
    }

    proptest! {
        /// INS-4: whatever the text, no closing tag is left, and nothing else is lost.
        #[test]
        fn no_closing_tag_is_left(
            parts in proptest::collection::vec(
                proptest::sample::select(&[
                    "<", "/", ">", " ", "system-reminder", "System-REMINDER", "\n", "x", "\\",
                    "</system-reminder>", "é",
                ][..]),
                0..24,
            )
        ) {
            let text = parts.concat();
            let escaped = escape(&text);
            let squeezed: String = escaped.split_whitespace().collect::<String>().to_lowercase();
            prop_assert!(!squeezed.contains("</system-reminder"), "{escaped:?}");
            prop_assert_eq!(escape(&escaped), escaped.clone());
            let letters = |text: &str| -> String {
                let kept = |c: &char| !c.is_whitespace() && *c != '\\';
                text.chars().filter(kept).collect::<String>().to_lowercase()
            };
            prop_assert_eq!(letters(&text), letters(&escaped));
        }
    }
}
