//! A key that cannot be printed.

use std::fmt;
use std::sync::Arc;

/// Text that is sent to the model's server and shown to nobody: neither `Debug` nor `Display` tells
/// it, and it cannot be serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// What stands in messages and logs where a secret would.
pub(crate) const HIDDEN: &str = "[secret]";

/// The fewest bytes of a key that is looked for in what a model says.
const SHORTEST: usize = 12;

impl Secret {
    /// Keeps `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// `text` without the secret, wherever it stands in there: servers quote what they refuse.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        text.replace(&*self.0, HIDDEN)
    }

    /// Whether it is one at all: servers that want none are given short words for it, which may stand
    /// in any text.
    pub(crate) fn is_worth_hiding(&self) -> bool {
        self.0.len() >= SHORTEST
    }

    /// How many bytes at the end of `text` the secret may begin with.
    pub(crate) fn begun_at_the_end_of(&self, text: &str) -> usize {
        let most = text.len().min(self.0.len().saturating_sub(1));
        let begins = |length: &usize| {
            let at = text.len() - length;
            text.is_char_boundary(at) && self.0.starts_with(&text[at..])
        };
        (1..=most).rev().find(begins).unwrap_or(0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENV-1 in spirit: what is passed on by printing is passed on.
    #[test]
    fn a_secret_is_not_printed_in_any_form() {
        let secret = Secret::new("sk-1234");
        for shown in [
            format!("{secret}"),
            format!("{secret:?}"),
            format!("{secret:#?}"),
            format!("{:?}", Some(&secret)),
        ] {
            assert!(!shown.contains("1234"), "{shown}");
        }
    }

    #[test]
    fn a_secret_is_taken_out_of_what_others_say() {
        let secret = Secret::new("sk-1234");
        assert_eq!(
            secret.hide_in("bad key sk-1234, sk-1234!"),
            "bad key [secret], [secret]!"
        );
        assert_eq!(Secret::new("").hide_in("text"), "text");
    }

    #[test]
    fn a_placeholder_is_no_secret() {
        assert!(!Secret::new("none").is_worth_hiding());
        assert!(Secret::new("sk-123456789").is_worth_hiding());
    }

    #[test]
    fn what_may_be_its_beginning_is_known() {
        let secret = Secret::new("ababc");
        for (text, begun) in [
            ("", 0),
            ("x", 0),
            ("xab", 2),
            ("abab", 4),
            ("ababab", 4),
            ("éa", 1),
        ] {
            assert_eq!(secret.begun_at_the_end_of(text), begun, "{text}");
        }
    }
}
