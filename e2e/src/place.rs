//! Places a person names, and a place to ask about where nobody named one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::samples::Position;

/// `FILE:LINE:COL`, one-based, columns in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The file as it was written.
    pub file: String,
    /// Where in it, zero-based.
    pub position: Position,
}

/// A text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no place: {problem}; write FILE:LINE:COL, one-based, columns in UTF-16 code units, \
     src/main.rs:12:7 for instance"
)]
pub struct NotAPlace {
    text: String,
    problem: String,
}

impl FromStr for At {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let fault = |problem: String| NotAPlace {
            text: text.to_owned(),
            problem,
        };
        let mut parts = text.rsplitn(3, ':');
        let (column, line, file) = (parts.next(), parts.next(), parts.next());
        let (Some(column), Some(line), Some(file)) = (column, line, file) else {
            return Err(fault("it has fewer than two colons".to_owned()));
        };
        if file.is_empty() {
            return Err(fault("it names no file".to_owned()));
        }
        let count = |what: &str, digits: &str| {
            digits
                .parse::<u32>()
                .ok()
                .and_then(|count| count.checked_sub(1))
                .ok_or_else(|| {
                    fault(format!(
                        "the {what} {digits:?} is no whole number from 1 to {}",
                        u32::MAX
                    ))
                })
        };
        let position = Position {
            line: count("line", line)?,
            character: count("column", column)?,
        };
        Ok(Self {
            file: file.to_owned(),
            position,
        })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// The first word that could be a name, or the start of the text.
pub(crate) fn first_identifier(text: &str) -> Position {
    for (line, content) in text.lines().enumerate().take(10_000) {
        let mut before = None;
        let mut units = 0;
        for c in content.chars() {
            let starts = (c.is_alphabetic() || c == '_')
                && before.is_none_or(|b: char| !b.is_alphanumeric() && b != '_');
            if starts {
                return Position {
                    line: u32::try_from(line).unwrap_or(0),
                    character: units,
                };
            }
            before = Some(c);
            units += u32::try_from(c.len_utf16()).unwrap_or(1);
        }
    }
    Position {
        line: 0,
        character: 0,
    }
}

/// The first file below `folder`, in the order of its name, whose extension is one of
/// `extensions`. Hidden folders, links and what is deeper than eight levels are passed over, and
/// the search ends after a few thousand entries.
pub(crate) fn first_source<'a>(
    folder: &Path,
    extensions: &(impl Iterator<Item = &'a str> + Clone),
) -> Option<PathBuf> {
    let mut left = 5_000_u32;
    search(folder, extensions, 8, &mut left)
}

fn search<'a>(
    folder: &Path,
    extensions: &(impl Iterator<Item = &'a str> + Clone),
    depth: u32,
    left: &mut u32,
) -> Option<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut folders = Vec::new();
    for entry in entries {
        *left = left.checked_sub(1)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_file()
            && extensions
                .clone()
                .any(|extension| name.ends_with(extension))
        {
            return Some(entry.path());
        }
        if kind.is_dir() && !name.starts_with('.') && name != "node_modules" && name != "target" {
            folders.push(entry.path());
        }
    }
    let depth = depth.checked_sub(1)?;
    folders
        .into_iter()
        .find_map(|folder| search(&folder, extensions, depth, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_based_outside_and_zero_based_inside() {
        let at: At = "a:b/c.rs:12:7".parse().unwrap();
        assert_eq!(
            (at.file.as_str(), at.position.line, at.position.character),
            ("a:b/c.rs", 11, 6)
        );
        assert_eq!(at.to_string(), "a:b/c.rs:12:7");
    }

    #[test]
    fn what_is_no_place_says_why() {
        for (text, problem) in [
            ("main.rs", "fewer than two colons"),
            ("main.rs:4", "fewer than two colons"),
            ("main.rs:0:1", "the line \"0\""),
            ("main.rs:1:x", "the column \"x\""),
            ("main.rs:1:-1", "the column \"-1\""),
            (":1:1", "no file"),
        ] {
            let error = text.parse::<At>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn the_first_name_is_found_in_utf_16() {
        let found = first_identifier("\n // 🦀 name\n");
        assert_eq!((found.line, found.character), (1, 7));
        assert_eq!(
            first_identifier("12 + 3"),
            Position {
                line: 0,
                character: 0
            }
        );
    }

    #[test]
    fn the_first_source_is_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["b/x.foo", "a/y.foo", "a/.hidden/z.foo", "z.txt"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = first_source(folder.path(), &[".foo"].into_iter());
        assert_eq!(found, Some(folder.path().join("a/y.foo")));
        assert_eq!(first_source(folder.path(), &[".bar"].into_iter()), None);
    }
}
