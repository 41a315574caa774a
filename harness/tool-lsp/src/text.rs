//! Lengths and cuts of text, in the tool's unit: UTF-16 code units.

/// How many UTF-16 code units `text` has.
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// The longest prefix of `text` that has at most `most` UTF-16 code units. A character that needs
/// two of them is taken whole or left out (TOOL-7). Costs what it returns, not what it is given.
pub(crate) fn prefix(text: &str, most: usize) -> &str {
    let mut taken = 0;
    for (at, character) in text.char_indices() {
        taken += character.len_utf16();
        if taken > most {
            return &text[..at];
        }
    }
    text
}

/// The text, cut to `most` UTF-16 code units with a last line that says so. Where even that line is
/// too long, it is cut itself (TOOL-7).
pub(crate) fn bounded(text: &str, most: usize) -> String {
    let total = units(text);
    if total <= most {
        return text.to_owned();
    }
    let marker = format!("\n[cut: the text has {total} characters, the limit is {most}]");
    match most.checked_sub(units(&marker)) {
        Some(room) if room > 0 => format!("{}{marker}", prefix(text, room)),
        _ => prefix(marker.trim_start(), most).to_owned(),
    }
}

/// A stranger's text as a message may show it: short, and on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    let start = prefix(text, MOST);
    let mut shown: String = start.chars().flat_map(escaped).collect();
    if start.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = breaks_lines(character).then(|| character.escape_default());
    let plain = escape.is_none().then_some(character);
    escape.into_iter().flatten().chain(plain)
}

/// Whether a character would end a line, or steer a terminal, where one line is promised.
pub(crate) fn breaks_lines(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// TOOL-7: where the note of a cut leaves no room for text, it stands alone, on its first line.
    #[test]
    fn a_note_without_room_for_text_stands_alone() {
        let text = "x".repeat(100);
        for most in 1..=60 {
            let cut = bounded(&text, most);
            assert!(units(&cut) <= most, "{cut:?} at {most}");
            assert!(!cut.starts_with('\n'), "{cut:?} at {most}");
            assert!(cut.starts_with(['[', 'x']), "{cut:?} at {most}");
        }
    }

    /// TOOL-7: the unit is the UTF-16 code unit.
    #[test]
    fn units_are_utf16_code_units() {
        assert_eq!(units("abc"), 3);
        assert_eq!(units("é"), 1);
        assert_eq!(units("😀"), 2);
    }

    /// TOOL-7: a cut in the middle of a surrogate pair leaves the character out.
    #[test]
    fn a_pair_is_never_split() {
        assert_eq!(prefix("a😀b", 1), "a");
        assert_eq!(prefix("a😀b", 2), "a");
        assert_eq!(prefix("a😀b", 3), "a😀");
        assert_eq!(prefix("a😀b", 4), "a😀b");
        assert_eq!(prefix("a😀b", 9), "a😀b");
        assert_eq!(prefix("😀", 0), "");
    }

    #[test]
    fn an_excerpt_is_short_and_on_one_line() {
        assert_eq!(excerpt("a\r\nb\u{2028}"), "a\\r\\nb\\u{2028}");
        let long = excerpt(&"x".repeat(500));
        assert_eq!(units(&long), 61);
    }

    proptest! {
        /// TOOL-7: a prefix keeps the bound, and one more character would break it.
        #[test]
        fn a_prefix_is_the_longest_that_fits(text in any::<String>(), most in 0_usize..40) {
            let cut = prefix(&text, most);
            prop_assert!(text.starts_with(cut));
            prop_assert_eq!(units(cut), cut.encode_utf16().count());
            prop_assert!(units(cut) <= most);
            if let Some(next) = text[cut.len()..].chars().next() {
                prop_assert!(units(cut) + next.len_utf16() > most);
            }
        }
    }
}
