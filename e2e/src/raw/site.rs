//! Where a raw client asks: the workspace, the questions, the documents.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::judge::method;
use crate::samples::{self, Operation, Position, Reopened};

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) operation: Operation,
    /// The operation, numbered where it is asked at several places.
    pub(crate) label: String,
    /// Relative to the workspace, or absolute.
    pub(crate) file: String,
    pub(crate) position: Position,
    /// The known answer; without one, whatever is no error and of legal shape is right.
    pub(crate) known: Option<&'a samples::Answer>,
}

/// The workspace and what is asked in it.
pub(crate) struct Site<'a> {
    /// The workspace, without symbolic links.
    pub(crate) root: &'a str,
    /// A URI's path inside the workspace.
    pub(crate) relative: &'a (dyn Fn(&str) -> Option<String> + Sync),
    pub(crate) queries: Vec<Query<'a>>,
    /// A text that differs from the disk, and a question about it.
    pub(crate) reopened: Option<&'a Reopened>,
    /// Extension → language id.
    pub(crate) languages: &'a BTreeMap<String, String>,
    /// A folder outside the workspace that may be written into.
    pub(crate) outside: &'a Path,
    /// Whether the workspace is a copy, so that a file may be put there.
    pub(crate) own: bool,
}

/// A document as it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) uri: String,
    pub(super) language: String,
    pub(super) text: String,
}

impl Site<'_> {
    /// The first question of each operation.
    pub(super) fn first_of_each(&self) -> Vec<&Query<'_>> {
        Operation::ALL
            .iter()
            .filter_map(|operation| {
                self.queries
                    .iter()
                    .find(|query| query.operation == *operation)
            })
            .collect()
    }

    /// Whether the right answers are known.
    pub(super) fn is_known(&self) -> bool {
        self.queries.iter().all(|query| query.known.is_some())
    }

    /// A file with the text it has on disk now.
    pub(super) fn document(&self, file: &str) -> Result<Document, String> {
        let path = Path::new(self.root).join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
        self.document_with(&path, text)
    }

    /// A file with another text than on disk.
    pub(super) fn document_with(&self, path: &Path, text: String) -> Result<Document, String> {
        let path = Path::new(self.root).join(path);
        let uri = url::Url::from_file_path(&path)
            .map_err(|()| format!("{} is no absolute path", path.display()))?;
        Ok(Document {
            uri: uri.into(),
            language: self.language(&path),
            text,
        })
    }

    fn language(&self, path: &Path) -> String {
        let extension = path.extension().unwrap_or_default();
        let extension = format!(".{}", extension.to_string_lossy().to_lowercase());
        let known = self.languages.get(&extension);
        known.cloned().unwrap_or_else(|| "plaintext".to_owned())
    }
}

/// The params of a question about a document at a place.
pub(super) fn params(operation: Operation, uri: &str, position: Position) -> Value {
    let mut params = json!({
        "textDocument": {"uri": uri},
        "position": {"line": position.line, "character": position.character},
    });
    if operation == Operation::FindReferences {
        params["context"] = json!({"includeDeclaration": true});
    }
    params
}

impl Query<'_> {
    pub(super) fn method(&self) -> &'static str {
        method(self.operation)
    }

    pub(super) fn params(&self, uri: &str) -> Value {
        params(self.operation, uri, self.position)
    }
}

/// A place with no symbol: the first blank line that is followed by nothing but white space, or
/// the end of the text.
pub(super) fn off_symbol(text: &str) -> Position {
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let blank = text.lines().position(|line| line.trim().is_empty());
    let line = blank.and_then(|line| u32::try_from(line).ok());
    Position {
        line: line.unwrap_or(lines),
        character: 0,
    }
}

/// Far behind the end of the line of `position`.
pub(super) fn past_line(text: &str, position: Position) -> Position {
    let line = usize::try_from(position.line).unwrap_or(usize::MAX);
    let length = text
        .lines()
        .nth(line)
        .map_or(0, |line| line.chars().map(char::len_utf16).sum::<usize>());
    Position {
        line: position.line,
        character: u32::try_from(length)
            .unwrap_or(u32::MAX)
            .saturating_add(100),
    }
}

/// Far behind the end of the text.
pub(super) fn past_file(text: &str) -> Position {
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    Position {
        line: lines.saturating_add(100),
        character: 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn odd_places_are_where_they_say() {
        let text = "one 😀\n\ntwo\n";
        assert_eq!(off_symbol(text), at(1, 0));
        assert_eq!(off_symbol("a\nb"), at(2, 0));
        assert_eq!(past_line(text, at(0, 2)), at(0, 106));
        assert_eq!(past_line(text, at(9, 2)), at(9, 100));
        assert_eq!(past_file(text), at(103, 3));
    }

    #[test]
    fn a_document_has_the_language_of_its_extension_and_a_uri() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        let languages = BTreeMap::from([(".x".to_owned(), "ex".to_owned())]);
        let relative = |_: &str| None;
        let site = Site {
            root,
            relative: &relative,
            queries: Vec::new(),
            reopened: None,
            languages: &languages,
            outside: folder.path(),
            own: true,
        };
        std::fs::write(folder.path().join("a b.X"), "text").unwrap();
        let document = site.document("a b.X").unwrap();
        assert!(document.uri.starts_with("file:///") && document.uri.ends_with("/a%20b.X"));
        assert_eq!(
            (document.language.as_str(), document.text.as_str()),
            ("ex", "text")
        );
        assert!(
            site.document("missing.x")
                .unwrap_err()
                .starts_with("missing.x: ")
        );
    }

    #[test]
    fn only_references_have_a_context() {
        let references = params(Operation::FindReferences, "file:///a", at(1, 2));
        assert_eq!(references["context"]["includeDeclaration"], true);
        let hover = params(Operation::Hover, "file:///a", at(1, 2));
        assert!(hover.get("context").is_none());
        assert_eq!(hover["position"], json!({"line": 1, "character": 2}));
    }
}
