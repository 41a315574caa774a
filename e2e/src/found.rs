//! Places to ask at in a workspace that nothing is known of.
//!
//! The files are only read. A server's own symbols say which names are worth asking about; without
//! them, names that occur more than once are. What a server answers there is not known to be right:
//! it is judged for shape, and [`agreement`] tells whether the answers agree with each other.

pub(crate) mod agreement;
mod names;
mod symbols;

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::Subprocess;
use dsh_transcript::Recorder;

use crate::place::At;
use crate::raw;
use crate::recording::RecordingSubprocess;
use crate::snapshot::Snapshot;
use crate::target::Target;
pub(crate) use names::{Source, Symbol};

/// How many places are asked at.
pub(crate) const PLACES: usize = 4;
/// The most bytes a file may have to be looked at.
const FILE: u64 = 1_000_000;
/// The most bytes that are looked at in all.
const TOTAL: u64 = 8_000_000;
/// The most files that are looked at.
const FILES: usize = 200;
/// The most entries of folders that are looked at.
const ENTRIES: u32 = 20_000;
/// Of how many files the server is asked for symbols.
const LISTED: usize = 8;
/// How deep folders are followed.
const DEPTH: u32 = 12;

/// The sources of a workspace, as far as they were looked at.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) files: Vec<Source>,
    /// Files with the right extension that are too large to be looked at.
    large: u32,
    /// Files with the right extension that are no text, or cannot be read.
    unreadable: u32,
    /// Whether there were more files than are looked at.
    more: bool,
}

/// Where to ask, and what to say about how that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The places; empty where there is no identifier.
    pub at: Vec<At>,
    /// How they were found, or why there are none.
    pub told: String,
    /// The workspace before the server was asked for its symbols, where it was started for that.
    pub(crate) before: Option<Snapshot>,
}

/// Finds places in a workspace: the server is asked for its symbols, in a process of its own whose
/// messages are not part of any check. None where the workspace has no file that it serves.
pub(crate) async fn find(
    workspace: &Path,
    target: &Target,
    subprocess: Arc<dyn Subprocess>,
    cancel: &Cancel,
    budget: Duration,
) -> Option<Found> {
    let workspace = workspace.canonicalize().ok()?;
    let extensions: Vec<&str> = target.extensions.keys().map(String::as_str).collect();
    let sources = Sources::below(&workspace, &extensions);
    if sources.files.is_empty() && sources.left_out().is_empty() {
        return None;
    }
    let listed: Vec<(&str, &str)> = sources
        .files
        .iter()
        .take(LISTED)
        .map(|source| (source.file.as_str(), source.text.as_str()))
        .collect();
    let mut symbols = Vec::new();
    let mut before = None;
    if let Some(root) = workspace.to_str().filter(|_| !listed.is_empty()) {
        before = Some(Snapshot::of(&workspace));
        let recording = Arc::new(RecordingSubprocess::new(subprocess, Recorder::new()));
        let asked = Arc::clone(&recording);
        let answers = raw::symbols(asked, cancel, target, root, &listed, budget).await;
        recording.end_all().await;
        for (file, result) in &answers {
            symbols.extend(symbols::read(file, result));
        }
    }
    let found = sources.places(&symbols);
    Some(Found { before, ..found })
}

impl Sources {
    /// Reads the files below `folder` that have one of the extensions, in the order of their names.
    /// Hidden folders, links, folders of dependencies and of build results are passed over.
    pub(crate) fn below(folder: &Path, extensions: &[&str]) -> Self {
        let mut sources = Self::default();
        let mut walk = Walk {
            extensions,
            entries: ENTRIES,
            bytes: TOTAL,
        };
        walk.folder(folder, "", DEPTH, &mut sources);
        sources
    }

    /// What was left out, in words.
    fn left_out(&self) -> String {
        let mut parts = Vec::new();
        if self.large > 0 {
            parts.push(format!("{} larger than {FILE} bytes", self.large));
        }
        if self.unreadable > 0 {
            parts.push(format!("{} no readable text", self.unreadable));
        }
        if self.more {
            parts.push("more files than are looked at".to_owned());
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!(" (left out: {})", parts.join(", "))
        }
    }

    /// Where to ask. `symbols` are the server's own, where it told any.
    pub(crate) fn places(&self, symbols: &[Symbol]) -> Found {
        let at = names::places(&self.files, symbols, PLACES);
        let files = match self.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let left_out = self.left_out();
        let told = if at.is_empty() {
            format!(
                "There is no identifier in the {files} with one of the extensions{left_out}, so \
                 there was nothing to ask about."
            )
        } else {
            let by = if symbols.is_empty() {
                "names that occur more than once"
            } else {
                "names that the server lists as symbols"
            };
            let all: Vec<String> = at.iter().map(ToString::to_string).collect();
            format!(
                "Asked at {}: {by} in {files}{left_out}. What is right there is not known.",
                all.join(", ")
            )
        };
        Found {
            at,
            told,
            before: None,
        }
    }
}

struct Walk<'a> {
    extensions: &'a [&'a str],
    entries: u32,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, inside: &str, depth: u32, sources: &mut Sources) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        let mut entries: Vec<_> = entries
            .flatten()
            .take(usize::try_from(self.entries).unwrap_or(usize::MAX))
            .collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut folders = Vec::new();
        for entry in entries {
            let Some(left) = self.entries.checked_sub(1) else {
                sources.more = true;
                return;
            };
            self.entries = left;
            // A name that is no UTF-8 cannot be asked about.
            let (Ok(kind), Some(name)) = (
                entry.file_type(),
                entry.file_name().to_str().map(str::to_owned),
            ) else {
                continue;
            };
            if kind.is_dir() && !is_passed_over(&name) {
                folders.push((entry.path(), format!("{inside}{name}/")));
            } else if kind.is_file() && self.is_source(&name) {
                self.file(&entry.path(), format!("{inside}{name}"), sources);
            }
        }
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        for (folder, inside) in folders {
            self.folder(&folder, &inside, depth, sources);
        }
    }

    fn is_source(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.extensions
            .iter()
            .any(|extension| name.ends_with(extension) && name.len() > extension.len())
    }

    fn file(&mut self, path: &Path, name: String, sources: &mut Sources) {
        if sources.files.len() >= FILES || self.bytes == 0 {
            sources.more = true;
            return;
        }
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(path).and_then(|file| file.take(FILE + 1).read_to_end(&mut bytes));
        let Ok(length) = read else {
            sources.unreadable += 1;
            return;
        };
        let length = length as u64;
        self.bytes = self.bytes.saturating_sub(length);
        if length > FILE {
            sources.large += 1;
            return;
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => sources.files.push(Source { file: name, text }),
            _ => sources.unreadable += 1,
        }
    }
}

fn is_passed_over(folder: &str) -> bool {
    folder.starts_with('.')
        || matches!(
            folder,
            "node_modules" | "target" | "vendor" | "build" | "dist" | "out" | "__pycache__"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_in_order_and_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let large = "x".repeat(usize::try_from(FILE).unwrap() + 1);
        for (path, text) in [
            ("b/x.foo", "b"),
            ("A.FOO", "a"),
            ("a/y.foo", "y"),
            ("a/.hidden/z.foo", "z"),
            ("node_modules/n.foo", "n"),
            (".foo", "no name"),
            ("z.txt", "other"),
            ("zero.foo", "\0\0"),
            ("large.foo", &large),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(folder.path().join("latin.foo"), b"\xe9").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        let sources = Sources::below(folder.path(), &[".foo"]);
        let files: Vec<&str> = sources
            .files
            .iter()
            .map(|source| source.file.as_str())
            .collect();
        assert_eq!(files, ["A.FOO", "a/y.foo", "b/x.foo"]);
        assert_eq!((sources.large, sources.unreadable), (1, 2));
        assert_eq!(
            sources.left_out(),
            " (left out: 1 larger than 1000000 bytes, 2 no readable text)"
        );
    }

    #[test]
    fn more_files_than_are_looked_at_are_said() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=FILES {
            std::fs::write(folder.path().join(format!("{number}.foo")), "a").unwrap();
        }
        let sources = Sources::below(folder.path(), &[".foo"]);
        assert_eq!(sources.files.len(), FILES);
        assert!(sources.more);
    }

    #[test]
    fn a_workspace_without_an_identifier_is_said_plainly() {
        let sources = Sources {
            files: vec![Source {
                file: "a.foo".to_owned(),
                text: "1 + 2\n".to_owned(),
            }],
            ..Sources::default()
        };
        assert_eq!(
            sources.places(&[]),
            Found {
                at: vec![],
                told: "There is no identifier in the 1 file with one of the extensions, so there \
                       was nothing to ask about."
                    .to_owned(),
                before: None,
            }
        );
    }
}
