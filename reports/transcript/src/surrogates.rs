//! Halves of surrogate pairs in JSON escapes: JSON's grammar has them, Rust's strings do not.

/// The text with each half that stands alone written `\ufffd`; none where there is no such half, so
/// that the text is as readable as it will be.
pub(crate) fn replaced(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    let mut changed = false;
    let mut rest = body;
    while let Some(escape) = memchr::memchr(b'\\', rest) {
        let (plain, escaped) = rest.split_at(escape);
        out.extend_from_slice(plain);
        let taken = match unit(escaped) {
            Some(0xD800..=0xDBFF)
                if matches!(escaped.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            Some(0xD800..=0xDFFF) => {
                changed = true;
                out.extend_from_slice(b"\\ufffd");
                rest = &escaped[6..];
                continue;
            }
            Some(_) => 6,
            // Whatever is escaped is no backslash that begins another escape.
            None => escaped.len().min(2),
        };
        out.extend_from_slice(&escaped[..taken]);
        rest = &escaped[taken..];
    }
    out.extend_from_slice(rest);
    changed.then_some(out)
}

/// The code unit of an escape `\uXXXX` at the beginning.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.get(..6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit: u16, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_are_kept() {
        for (text, expected) in [
            (r#"{"a":"x\ud83d y"}"#, Some(r#"{"a":"x\ufffd y"}"#)),
            (r#""\uDC00\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\n""#, Some(r#""\ufffd\n""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d é""#, None),
            (r#""\ud8"#, None),
            ("\\", None),
            ("", None),
        ] {
            let mended = replaced(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(mended.as_deref(), expected, "{text}");
        }
    }
}
