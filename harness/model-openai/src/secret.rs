//! A key that cannot be printed.

use std::fmt;
use std::sync::Arc;

/// Text that is sent to the model's server and shown to nobody: neither `Debug` nor `Display` tells
/// it, and it cannot be serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// What stands in messages and logs where a secret would.
pub(crate) const HIDDEN: &str = "[secret]";

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
}
