//! Extensions as keys of selection (SEAM-3, SEAM-5, SEAM-7).

use std::collections::BTreeMap;

/// Why an extension → language id mapping was refused (SEAM-3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// Nothing would ever be selected.
    #[error("has no extension; give at least one, such as \".ts\": \"typescript\"")]
    None,
    /// `""`, `"."`, or only blanks.
    #[error("has the empty extension {0:?}; give one such as \".ts\"")]
    Empty(String),
    /// Selection looks at the final extension only, so that this one would never match.
    #[error(
        "has the extension {0:?} with a further dot; selection sees only the final one, give that"
    )]
    InnerDot(String),
    /// `/` or `\`.
    #[error("has the extension {0:?} with a path separator; give one such as \".ts\"")]
    Separator(String),
    /// The opened document could not be labelled.
    #[error("maps the extension {0:?} to a blank language id; give the id that LSP lists for it")]
    BlankLanguage(String),
    /// `TS` and `.ts` are one key.
    #[error("has the extension {0:?} twice, once letter case and the leading dot are made alike")]
    Twice(String),
}

/// The normal form of one extension: lowercase, with a leading dot (SEAM-5).
pub fn normalize_extension(extension: &str) -> Result<String, ExtensionError> {
    let bare = extension.strip_prefix('.').unwrap_or(extension);
    if bare.trim().is_empty() {
        return Err(ExtensionError::Empty(extension.to_owned()));
    }
    if bare.contains('.') {
        return Err(ExtensionError::InnerDot(extension.to_owned()));
    }
    if bare.contains(['/', '\\']) {
        return Err(ExtensionError::Separator(extension.to_owned()));
    }
    Ok(format!(".{}", bare.to_lowercase()))
}

/// A whole mapping in its normal form, or the first thing that is wrong with it (SEAM-3).
pub fn normalize_extensions(
    extension_to_language: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ExtensionError> {
    if extension_to_language.is_empty() {
        return Err(ExtensionError::None);
    }
    let mut normal = BTreeMap::new();
    for (extension, language) in extension_to_language {
        let key = normalize_extension(extension)?;
        if language.trim().is_empty() {
            return Err(ExtensionError::BlankLanguage(extension.clone()));
        }
        if normal.insert(key.clone(), language.clone()).is_some() {
            return Err(ExtensionError::Twice(key));
        }
    }
    Ok(normal)
}

/// The final extension of a path, in normal form: `.ts` for `src/Foo.d.TS`, none for `Makefile`,
/// `.bashrc` and `dir.d/README` (SEAM-7). Both `/` and `\` separate segments, whatever the host's
/// own rule is.
pub fn final_extension(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| format!(".{}", extension.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEAM-5.
    #[test]
    fn three_spellings_are_one_key() {
        for spelling in ["TS", ".TS", ".ts", "ts", ".Ts"] {
            assert_eq!(normalize_extension(spelling).as_deref(), Ok(".ts"));
        }
        assert_eq!(normalize_extension(".Ñ").as_deref(), Ok(".ñ"));
    }

    #[track_caller]
    fn refused(mapping: &[(&str, &str)]) -> ExtensionError {
        let mapping = mapping
            .iter()
            .map(|&(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        normalize_extensions(&mapping).expect_err("the mapping breaks a rule")
    }

    /// SEAM-3.
    #[test]
    fn what_could_never_be_selected_is_refused() {
        use ExtensionError as E;
        assert_eq!(refused(&[]), E::None);
        for empty in ["", ".", " ", ". "] {
            assert_eq!(refused(&[(empty, "x")]), E::Empty(empty.to_owned()));
        }
        for inner in [".d.ts", "..", "d.ts", "..ts", ".ts."] {
            assert_eq!(refused(&[(inner, "x")]), E::InnerDot(inner.to_owned()));
        }
        for separator in ["a/b", ".a\\b", "/"] {
            assert_eq!(
                refused(&[(separator, "x")]),
                E::Separator(separator.to_owned())
            );
        }
        assert_eq!(refused(&[("ts", "\t")]), E::BlankLanguage("ts".to_owned()));
        assert_eq!(
            refused(&[("TS", "x"), (".ts", "x")]),
            E::Twice(".ts".to_owned())
        );
    }

    /// SEAM-7.
    #[test]
    fn the_final_extension_selects() {
        for (path, expected) in [
            ("Foo.TS", Some(".ts")),
            ("foo.d.ts", Some(".ts")),
            ("/a/b.c/foo.py", Some(".py")),
            ("C:\\a.b\\foo.Py", Some(".py")),
            ("a/b\\c/d.rs", Some(".rs")),
            (".bashrc", None),
            ("a/.bashrc", None),
            ("a\\.bashrc", None),
            (".bashrc.sh", Some(".sh")),
            ("Makefile", None),
            ("dir.d/README", None),
            ("dir.d\\README", None),
            ("foo.", None),
            ("foo.ts/", None),
            ("..", None),
            ("", None),
            ("a/..", None),
        ] {
            assert_eq!(final_extension(path).as_deref(), expected, "{path:?}");
        }
    }

    mod properties {
        use proptest::prelude::*;

        use super::super::*;

        proptest! {
            /// SEAM-5, SEAM-7: a file that ends in an accepted extension is found under its key,
            /// and normalizing twice changes nothing.
            #[test]
            fn an_accepted_extension_is_found_again(extension in "\\PC{0,6}", stem in "[a-z]{1,5}") {
                if let Ok(key) = normalize_extension(&extension) {
                    prop_assert_eq!(normalize_extension(&key), Ok(key.clone()));
                    let bare = extension.strip_prefix('.').unwrap_or(&extension);
                    prop_assert_eq!(final_extension(&format!("x/{stem}.{bare}")), Some(key));
                }
            }

            /// SEAM-7: no path makes selection fail.
            #[test]
            fn any_path_has_an_extension_or_none(path in "(\\PC|[./\\\\]){0,12}") {
                if let Some(extension) = final_extension(&path) {
                    prop_assert!(extension.len() > 1);
                    prop_assert!(!extension[1..].contains(['.', '/', '\\']));
                }
            }
        }
    }
}
