//! Texts from outside, made fit for a page.

use serde_json::Value;

use crate::date::date_of_day;
pub(crate) use crate::outside::{clipped, visible_lines as visible};

/// The most bytes of one text that are shown while there is room.
const MOST: usize = 64 << 10;

/// The most bytes of one text that are shown when there is no room left.
const LEAST: usize = 400;

/// How many bytes of texts a page has room for.
const ROOM: usize = 24 << 20;

/// A text of the page, and what is to be said about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) text: String,
    /// Set where it is not the whole.
    pub(super) note: Option<String>,
}

/// Cuts texts so that neither one nor all of them together make a page unusable.
#[derive(Debug)]
pub(super) struct Room {
    left: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { left: ROOM }
    }

    /// Shows a text of the given line of the file.
    pub(super) fn show(&mut self, text: &str, line: Option<usize>) -> Shown {
        let most = if self.left >= MOST { MOST } else { LEAST };
        let end = text.floor_char_boundary(most.min(text.len()));
        self.left = self.left.saturating_sub(end);
        let note = (end < text.len()).then(|| {
            let rest = match line {
                Some(line) => format!("; the rest is on line {line} of the session's file"),
                None => "; the rest is in the recording".to_owned(),
            };
            format!(
                "Cut: the first {} of {} bytes{rest}.",
                grouped(end as u64),
                grouped(text.len() as u64)
            )
        });
        Shown {
            text: visible(&text[..end]),
            note,
        }
    }

    /// Shows a JSON value, indented.
    pub(super) fn json(&mut self, value: &Value, line: Option<usize>) -> Shown {
        self.show(&pretty(value), line)
    }
}

/// Indented JSON.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// The text of content blocks; what is no text is shown as JSON.
pub(super) fn content(blocks: &[Value]) -> String {
    let texts = blocks.iter().map(|block| match block.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => pretty(block),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The beginning of a text on one line.
pub(super) fn excerpt(text: &str, most: usize) -> String {
    // Only as much is looked at as can be shown.
    let end = text.floor_char_boundary(text.len().min(most * 16));
    let words: Vec<&str> = text[..end].split_whitespace().collect();
    let mut line = clipped(&words.join(" "), most);
    if end < text.len() && !line.ends_with('…') {
        line.push('…');
    }
    visible(&line)
}

/// A duration for people.
pub(super) fn duration(us: u64) -> String {
    let (ms, seconds) = (us / 1000, us / 1_000_000);
    match seconds {
        0 if us == 0 => "under 1 ms".to_owned(),
        0 => format!("{ms} ms"),
        1..60 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", grouped(seconds / 3600), seconds % 3600 / 60),
    }
}

/// A moment since the start of the run, short.
pub(super) fn moment(us: u64) -> String {
    let (ms, seconds) = (us / 1000, us / 1_000_000);
    match seconds {
        0 => format!("{ms} ms"),
        1..100 => format!("{}.{:02} s", seconds, ms % 1000 / 10),
        100..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds % 3600 / 60,
            seconds % 60
        ),
    }
}

/// Milliseconds to the microsecond, as the recording has them.
pub(super) fn fine(us: u64) -> String {
    format!("{}.{:03} ms", grouped(us / 1000), us % 1000)
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `one call`, `3 calls`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(number as u64)),
    }
}

/// Milliseconds since 1970 as a date in UTC.
pub(super) fn date(at_ms: u64) -> String {
    /// The last one of the year 9999.
    const LAST: u64 = 253_402_300_799_999;
    if at_ms > LAST {
        return format!("{at_ms} ms since 1970");
    }
    let (days, of_day) = (at_ms / 86_400_000, at_ms % 86_400_000);
    let (year, month, day) = date_of_day(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03} UTC",
        of_day / 3_600_000,
        of_day / 60_000 % 60,
        of_day / 1000 % 60,
        of_day % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date(0), "1970-01-01 00:00:00.000 UTC");
        assert_eq!(date(951_782_399_999), "2000-02-28 23:59:59.999 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00:00.000 UTC");
        assert_eq!(date(1_796_044_155_893), "2026-11-30 13:09:15.893 UTC");
        assert_eq!(date(u64::MAX), format!("{} ms since 1970", u64::MAX));
    }

    #[test]
    fn what_could_hide_or_reorder_is_made_visible() {
        assert_eq!(visible("a\0b\r\n\tc\x7f"), "a‹U+0000›b‹CR›\n\tc‹U+007F›");
        assert_eq!(visible("x\u{202e}y\u{feff}"), "x‹U+202E›y‹U+FEFF›");
        assert_eq!(visible("ä 漢 🙂"), "ä 漢 🙂");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_it_is_said() {
        let mut room = Room::new();
        let long = "漢".repeat(1 << 20);
        let shown = room.show(&long, Some(7));
        assert!(shown.text.len() <= MOST && shown.text.chars().all(|char| char == '漢'));
        assert!(shown.note.is_some_and(|note| note.contains("line 7")));
        assert_eq!(room.show("short", Some(1)).note, None);
    }

    #[test]
    fn there_is_an_end_to_what_a_page_holds() {
        let mut room = Room::new();
        let text = "x".repeat(MOST);
        let sum: usize = (0..10_000).map(|_| room.show(&text, None).text.len()).sum();
        assert!(sum <= ROOM + 10_000 * LEAST, "{sum}");
    }

    #[test]
    fn excerpts_look_at_a_bounded_part() {
        assert_eq!(excerpt("  a\n b  ", 10), "a b");
        assert_eq!(excerpt(&" ".repeat(1 << 20), 10), "…");
        assert_eq!(excerpt("abcdef", 3), "ab…");
    }

    #[test]
    fn durations_read_well() {
        for (us, words) in [
            (0, "under 1 ms"),
            (5_000, "5 ms"),
            (1_250_000, "1.2 s"),
            (61_000_000, "1 min 1 s"),
            (3_661_000_000, "1 h 1 min"),
        ] {
            assert_eq!(duration(us), words);
        }
    }
}
