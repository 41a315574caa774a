//! Half surrogate pairs in JSON escapes.

/// The text with every `\uD800`…`\uDFFF` that is not part of a pair written `\ufffd`, or `None` if
/// there is no such escape. In JSON a backslash only ever begins an escape.
pub(super) fn mend(text: &str) -> Option<String> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = text[at..].find('\\') {
        let escape = at + offset;
        at = match unit(text, escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(text, escape + 6), Some(0xDC00..=0xDFFF)) => {
                escape + 12
            }
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&text[copied..escape]);
                mended.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            Some(_) => escape + 6,
            None => next_boundary(text, escape + 1),
        };
    }
    if copied == 0 {
        return None;
    }
    mended.push_str(&text[copied..]);
    Some(mended)
}

/// The code unit that the escape at `at` stands for, if it is one of `\uXXXX`.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at.checked_add(6)?)?.strip_prefix("\\u")?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

/// Behind the character that begins at `at`.
fn next_boundary(text: &str, at: usize) -> usize {
    text[at..]
        .chars()
        .next()
        .map_or(text.len(), |c| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_half_pairs_are_replaced() {
        for (text, expected) in [
            (r#""plain""#, None),
            (r#""\ud83e\udd80""#, None),
            (r#""\\ud800""#, None),
            (r#""\u0041\n""#, None),
            (r#""\ud8""#, None),
            (r#""x\u0041\ud800""#, Some(r#""x\u0041\ufffd""#)),
            (r#""\ud800""#, Some(r#""\ufffd""#)),
            (r#""\udc00x""#, Some(r#""\ufffdx""#)),
            (r#""\uD800\uD800\uDC00""#, Some(r#""\ufffd\uD800\uDC00""#)),
            (r#""\ud800\n\\\udfff é""#, Some(r#""\ufffd\n\\\ufffd é""#)),
            ("\\", None),
            ("\\é\\ud800", Some("\\é\\ufffd")),
        ] {
            assert_eq!(mend(text).as_deref(), expected, "{text}");
        }
    }
}
