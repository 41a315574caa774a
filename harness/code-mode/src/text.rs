//! Text of scripts, bounded and mended. Pure.

use serde_json::Value;

/// What a script printed, as much of it as is kept.
#[derive(Debug)]
pub(crate) struct Console {
    text: String,
    limit: usize,
    dropped: u64,
}

impl Console {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            dropped: 0,
        }
    }

    /// Adds a line; what has no room is counted, and so is everything behind it.
    pub(crate) fn print(&mut self, line: &str) {
        if self.dropped > 0 {
            self.dropped += line.len() as u64 + 1;
            return;
        }
        let kept = cut(line, self.limit - self.text.len());
        self.text.push_str(kept);
        let dropped = line.len() - kept.len();
        if dropped == 0 && self.text.len() < self.limit {
            self.text.push('\n');
        } else {
            self.dropped = dropped as u64 + 1;
        }
    }

    /// What is kept, without the last line's end, and how many bytes are not.
    pub(crate) fn take(&mut self) -> (String, u64) {
        let mut text = std::mem::take(&mut self.text);
        if text.ends_with('\n') {
            text.pop();
        } else if self.dropped == 1 {
            // The end of a line that is whole.
            self.dropped = 0;
        }
        (text, std::mem::take(&mut self.dropped))
    }
}

/// The beginning of `text`, at most `most` bytes of it, and no half characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// JSON text that a script made. Halves of surrogate pairs, which JavaScript's strings may hold and
/// Rust's may not, become U+FFFD.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let mended = mend(text);
        if mended == text {
            Err(error)
        } else {
            serde_json::from_str(&mended)
        }
    })
}

/// Replaces `\uD800` to `\uDFFF` where they form no pair.
fn mend(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(text.len());
    let mut rest = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match unit(at) {
            Some(0xD800..=0xDBFF)
                if unit(at + 6).is_some_and(|low| (0xDC00..=0xDFFF).contains(&low)) =>
            {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&text[rest..at]);
                mended.push_str("\\ufffd");
                at += 6;
                rest = at;
            }
            // An escape of two characters, or of more, which hold no backslash.
            _ => at += 2,
        }
    }
    mended.push_str(&text[rest..]);
    mended
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_console_keeps_the_beginning_and_counts_the_rest() {
        let mut console = Console::new(10);
        console.print("é1");
        console.print("");
        console.print("2345678");
        console.print("9");
        assert_eq!(console.take(), ("é1\n\n23456".to_owned(), 5));
        let mut console = Console::new(2);
        console.print("ab");
        assert_eq!(console.take(), ("ab".to_owned(), 0));
        let mut console = Console::new(0);
        console.print("ab");
        console.print("c");
        assert_eq!(console.take(), (String::new(), 5));
        assert_eq!(Console::new(5).take(), (String::new(), 0));
    }

    #[test]
    fn half_characters_are_mended() {
        assert_eq!(parse(r#""\ud83d\ude00""#).unwrap(), json!("😀"));
        assert_eq!(parse(r#""a\ud83d""#).unwrap(), json!("a\u{fffd}"));
        assert_eq!(
            parse(r#""\ude00\ud83d""#).unwrap(),
            json!("\u{fffd}\u{fffd}")
        );
        assert_eq!(
            parse(r#""\ud83d\ud83d\ude00""#).unwrap(),
            json!("\u{fffd}😀")
        );
        assert_eq!(
            parse(r#""\\ud83d\ud83d""#).unwrap(),
            json!("\\ud83d\u{fffd}")
        );
        assert!(parse("[").is_err());
        assert!(parse(&"[".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn a_console_never_keeps_more_than_it_may(
            lines in proptest::collection::vec("[aé😀]{0,5}", 0..10), limit in 0_usize..20
        ) {
            let mut console = Console::new(limit);
            let mut whole = String::new();
            for line in &lines {
                console.print(line);
                whole.push_str(line);
                whole.push('\n');
            }
            whole.pop();
            let (text, dropped) = console.take();
            prop_assert!(text.len() <= limit);
            prop_assert!(whole.starts_with(&text));
            prop_assert_eq!(dropped == 0, text == whole, "{:?} {:?}", text, whole);
        }

        #[test]
        fn what_needs_no_mending_is_left(text in "[a\\\\u\"d8é😀]{0,12}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mend(&json), json);
        }
    }
}
