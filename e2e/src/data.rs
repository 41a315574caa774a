//! Reading the crate's YAML data: one error type that says file, line, column and the nearest
//! correct name.

use std::path::Path;

use serde::de::DeserializeOwned;

/// Why a data file was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {message}", position(*.line, *.column))]
pub struct DataError {
    /// The file, as the reader knows it.
    pub origin: String,
    /// One-based line, 0 when no single place is at fault.
    pub line: u64,
    /// One-based column in characters, 0 when no single place is at fault.
    pub column: u64,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl DataError {
    /// An error about the file as a whole.
    pub(crate) fn whole(origin: &str, message: impl Into<String>) -> Self {
        Self {
            origin: origin.to_owned(),
            line: 0,
            column: 0,
            message: message.into(),
        }
    }
}

/// Whether there is a regular file, or a link to one.
pub fn a_file(path: &Path, shown: &str) -> Result<(), DataError> {
    let about = match path.metadata() {
        Ok(about) if about.is_file() => return Ok(()),
        Ok(about) => about.file_type(),
        Err(error) if path.symlink_metadata().is_ok() => {
            let message = format!("it is a link that leads to no file: {error}; remove it");
            return Err(DataError::whole(shown, message));
        }
        Err(error) => {
            return Err(DataError::whole(
                shown,
                format!("it cannot be read: {error}"),
            ));
        }
    };
    #[cfg(unix)]
    let special = {
        use std::os::unix::fs::FileTypeExt as _;
        if about.is_fifo() {
            "a pipe"
        } else if about.is_socket() {
            "a socket"
        } else {
            "a device"
        }
    };
    #[cfg(not(unix))]
    let special = "no file";
    let what = if about.is_dir() { "a folder" } else { special };
    let message = format!("it is {what}, and a file is read here; remove or rename it");
    Err(DataError::whole(shown, message))
}

fn position(line: u64, column: u64) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(":{line}:{column}")
    }
}

/// Reads one YAML document into `T`.
pub(crate) fn parse<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, DataError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location();
        DataError {
            origin: origin.to_owned(),
            line: place.map_or(0, |place| place.line()),
            column: place.map_or(0, |place| place.column()),
            message: message(error.without_snippet()),
        }
    })
}

fn message(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("key", field, expected),
        serde_saphyr::Error::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("value", variant, expected),
        serde_saphyr::Error::SerdeMissingField { field, .. } => {
            format!("the key \"{field}\" is missing")
        }
        other => other.to_string(),
    }
}

fn unknown(what: &str, name: &str, expected: &[&'static str]) -> String {
    match nearest(name, expected.iter().copied()) {
        Some(near) => format!("unknown {what} \"{name}\"; did you mean \"{near}\"?"),
        None => format!(
            "unknown {what} \"{name}\"; known here: {}",
            expected.join(", ")
        ),
    }
}

/// The known name that `typed` was most likely meant to be, if any is near enough.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = typed.to_lowercase();
    known
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, name)| {
            *score > 0.8 || (wanted.len() > 2 && name.to_lowercase().contains(&wanted))
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors are looked at")]
    struct Shape {
        name: String,
        language: String,
    }

    #[track_caller]
    fn rejected(text: &str) -> String {
        parse::<Shape>("shape.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_place_and_the_nearest_one() {
        assert_eq!(
            rejected("name: a\nlangauge: b\n"),
            "shape.yaml:2:1: unknown key \"langauge\"; did you mean \"language\"?"
        );
    }

    #[test]
    fn a_key_like_no_other_lists_the_known_ones() {
        assert_eq!(
            rejected("name: a\nzzz: b\n"),
            "shape.yaml:2:1: unknown key \"zzz\"; known here: name, language"
        );
    }

    #[test]
    fn a_missing_key_is_named() {
        assert!(rejected("name: a\n").contains("the key \"language\" is missing"));
    }

    #[test]
    fn a_duplicate_key_is_an_error_with_its_place() {
        let message = rejected("name: a\nname: b\nlanguage: c\n");
        assert!(message.starts_with("shape.yaml:2:"), "{message}");
    }

    #[test]
    fn nearest_forgives_typing_errors_and_parts_but_not_other_words() {
        let known = [
            "typescript-language-server",
            "pyright",
            "clangd",
            "rust-analyzer",
        ];
        let near = |typed| nearest(typed, known.iter().copied());
        assert_eq!(near("pyrihgt"), Some("pyright"));
        assert_eq!(near("Clangd"), Some("clangd"));
        assert_eq!(near("typescript"), Some("typescript-language-server"));
        assert_eq!(near("analyzer"), Some("rust-analyzer"));
        assert_eq!(near("haskell"), None);
    }
}
