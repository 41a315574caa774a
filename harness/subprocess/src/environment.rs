//! The environment of a child: the ambient one, scrubbed, under the configured entries.
//!
//! Pure: the ambient environment is handed in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// A name that contains one of these, in any letter case, is taken for a secret (ENV-1).
const SECRET: [&[u8]; 4] = [b"KEY", b"PASSWORD", b"SECRET", b"TOKEN"];

/// Names that begin so belong to the harness (ENV-1).
const OWN: &[u8] = b"DSH_";

/// What a child gets: `ambient` without secrets and the harness's own variables (ENV-1), and
/// `configured` over that, unfiltered, so that a deliberate secret arrives (ENV-2).
pub(crate) fn child_environment(
    ambient: &BTreeMap<OsString, OsString>,
    configured: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = ambient
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in configured {
        if cfg!(windows) {
            environment.retain(|other, _| !same_name(other, name));
        }
        environment.insert(name.into(), value.into());
    }
    environment
}

/// Whether an ambient variable of this name is passed on (ENV-1).
///
/// The words count anywhere and in any letter case, as the clause says; names need not be UTF-8.
/// `DSH_` counts as it is written, since names differ by case where it matters; on Windows they do
/// not, and any case counts.
fn passes(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let secret = SECRET.iter().any(|word| {
        name.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
    });
    let own = name.get(..OWN.len()).is_some_and(|start| {
        if cfg!(windows) {
            start.eq_ignore_ascii_case(OWN)
        } else {
            start == OWN
        }
    });
    !secret && !own
}

/// The value of a variable, by the platform's rule of when names are equal.
pub(crate) fn value<'a>(
    environment: &'a BTreeMap<OsString, OsString>,
    name: &str,
) -> Option<&'a OsStr> {
    environment
        .iter()
        .find(|(other, _)| same_name(other, name))
        .map(|(_, value)| value.as_os_str())
}

fn same_name(one: &OsStr, other: &str) -> bool {
    if cfg!(windows) {
        one.eq_ignore_ascii_case(other)
    } else {
        one == other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(ambient: &[&str], configured: &[&str], expected: &[&str]) {
        let ambient = ambient
            .iter()
            .map(|name| (OsString::from(name), OsString::from("ambient")))
            .collect();
        let configured = configured
            .iter()
            .map(|name| ((*name).to_owned(), "configured".to_owned()))
            .collect();
        let environment: Vec<String> = child_environment(&ambient, &configured)
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(environment, expected);
    }

    /// ENV-1
    #[test]
    fn names_that_look_secret_are_dropped_in_any_case() {
        check(
            &[
                "API_KEY",
                "apikey",
                "MonKeyS",
                "PASSWORD",
                "my_Password_1",
                "SECRET",
                "secrets",
                "TOKEN",
                "GITHUB_token",
                "PATH",
                "HOME",
                "PASS",
                "SSH_AUTH_SOCK",
                "TOKE",
            ],
            &[],
            &[
                "HOME=ambient",
                "PASS=ambient",
                "PATH=ambient",
                "SSH_AUTH_SOCK=ambient",
                "TOKE=ambient",
            ],
        );
    }

    /// ENV-1
    #[cfg(unix)]
    #[test]
    fn the_harness_own_variables_are_dropped() {
        check(
            &["DSH_LOG", "DSH_", "DSH", "dsh_log", "XDSH_LOG"],
            &[],
            &["DSH=ambient", "XDSH_LOG=ambient", "dsh_log=ambient"],
        );
    }

    /// ENV-2
    #[test]
    fn configured_entries_are_merged_after_the_scrub() {
        check(
            &["API_KEY", "DSH_HOME", "LANG", "PATH"],
            &["API_KEY", "DSH_MODE", "PATH"],
            &[
                "API_KEY=configured",
                "DSH_MODE=configured",
                "LANG=ambient",
                "PATH=configured",
            ],
        );
    }

    /// ENV-1
    #[cfg(unix)]
    #[test]
    fn names_that_are_not_utf8_are_judged_too() {
        use std::os::unix::ffi::OsStringExt;
        let name = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let ambient = [
            (name(b"\xFFtoken"), name(b"x")),
            (name(b"\xFFok"), name(b"\xFE")),
        ]
        .into();
        let environment = child_environment(&ambient, &BTreeMap::new());
        assert_eq!(environment, [(name(b"\xFFok"), name(b"\xFE"))].into());
    }

    proptest! {
        /// ENV-1
        #[test]
        fn no_ambient_secret_passes_and_nothing_else_is_lost(
            names in proptest::collection::btree_set("[A-Z_]{0,3}(KEY|key|Token|SECRET|pass|DSH_|PATH)[a-z_]{0,3}", 0..8)
        ) {
            let ambient = names.iter().map(|name| (name.into(), "v".into())).collect();
            let left = child_environment(&ambient, &BTreeMap::new());
            for name in &names {
                let upper = name.to_uppercase();
                let dropped = ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|w| upper.contains(w))
                    || name.starts_with("DSH_");
                prop_assert_eq!(left.contains_key(OsStr::new(name)), !dropped, "{}", name);
            }
        }
    }
}
