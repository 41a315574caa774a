//! Texts from outside and numbers, made fit for the page.

use crate::trajectory::text::{grouped, visible};

/// The most bytes of one text that are shown.
const MOST: usize = 6_000;

/// A text with everything visible that could hide or reorder, cut where it is very long.
pub(super) fn shown(text: &str) -> String {
    if text.len() <= MOST {
        return visible(text);
    }
    let end = text.floor_char_boundary(MOST);
    format!(
        "{}… (cut: the first {} of {} bytes; the report has the rest)",
        visible(&text[..end]),
        grouped(end as u64),
        grouped(text.len() as u64)
    )
}

/// A part of a whole in per cent, as CSS and SVG take it.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part.min(whole)) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_anything_have_a_place() {
        assert_eq!(percent(1, 3), "33.33");
        assert_eq!(percent(5, 0), "0.00");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.00");
    }

    #[test]
    fn a_text_is_cut_between_characters_and_it_is_said() {
        let text = shown(&"漢".repeat(4_000));
        assert!(
            text.starts_with('漢') && text.contains("of 12\u{202f}000 bytes"),
            "{text}"
        );
    }
}
