//! A folder as it was at one moment, and what is different later.
//!
//! Of a file up to a limit the content is compared, of a larger one size and time of change. What
//! is looked at is bounded, since the folder may be anybody's: entries are taken in the order of
//! their paths, and where the limit cut one of the two moments short, only what lies before the cut
//! in both is compared.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dsh_reports::Written;

/// The most entries that are looked at.
const ENTRIES: usize = 20_000;
/// The largest file whose content is compared.
const CONTENT: u64 = 1 << 20;
/// The most bytes of content that are read for one snapshot.
const CONTENTS: u64 = 64 << 20;

/// A folder at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    root: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
    /// The last path looked at, where there were more.
    cut: Option<PathBuf>,
    content_left: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    /// What it leads to.
    Link(Option<PathBuf>),
    File {
        size: u64,
        changed: Option<SystemTime>,
        content: Option<u64>,
    },
    Other,
}

impl Entry {
    fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File {
                    content: Some(before),
                    ..
                },
                Self::File {
                    content: Some(after),
                    ..
                },
            ) => before != after,
            (
                Self::File {
                    size: size_before,
                    changed: before,
                    ..
                },
                Self::File {
                    size: size_after,
                    changed: after,
                    ..
                },
            ) => size_before != size_after || before != after,
            _ => self != other,
        }
    }
}

/// What differs between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Paths relative to the folder; those of folders end in `/`, and stand for what is in them.
    pub(crate) written: Vec<Written>,
    /// Whether there was more in the folder than was looked at.
    pub(crate) in_part: bool,
}

impl Snapshot {
    /// Looks at everything below `root`.
    pub(crate) fn of(root: &Path) -> Self {
        Self::bounded(root, ENTRIES)
    }

    fn bounded(root: &Path, limit: usize) -> Self {
        let mut snapshot = Self {
            root: root.to_owned(),
            content_left: CONTENTS,
            ..Self::default()
        };
        // Folders are gone through in the order of paths: the last of the list is the next.
        let mut left: Vec<PathBuf> = children(root);
        while let Some(path) = left.pop() {
            if snapshot.entries.len() == limit {
                snapshot.cut = snapshot.entries.keys().next_back().cloned();
                break;
            }
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let entry = snapshot.entry(&path, &metadata);
            if entry == Entry::Folder {
                left.extend(children(&path));
            }
            snapshot.entries.insert(relative.to_owned(), entry);
        }
        snapshot
    }

    fn entry(&mut self, path: &Path, metadata: &Metadata) -> Entry {
        let kind = metadata.file_type();
        if kind.is_dir() {
            Entry::Folder
        } else if kind.is_symlink() {
            Entry::Link(fs::read_link(path).ok())
        } else if kind.is_file() {
            let size = metadata.len();
            let readable = size <= CONTENT && size <= self.content_left;
            let content = if readable { fs::read(path).ok() } else { None };
            let content = content.map(|bytes| {
                self.content_left = self.content_left.saturating_sub(size);
                let mut hasher = DefaultHasher::new();
                bytes.hash(&mut hasher);
                hasher.finish()
            });
            Entry::File {
                size,
                changed: metadata.modified().ok(),
                content,
            }
        } else {
            Entry::Other
        }
    }

    /// Takes what is at `relative` now for what was there: it has just been written, or removed, by
    /// us.
    pub(crate) fn allow(&mut self, relative: &str) {
        let relative = PathBuf::from(relative);
        let path = self.root.join(&relative);
        match fs::symlink_metadata(&path) {
            Ok(metadata) => {
                let entry = self.entry(&path, &metadata);
                self.entries.insert(relative, entry);
            }
            Err(_) => {
                self.entries.remove(&relative);
            }
        }
    }

    /// What is different in `later`.
    pub(crate) fn compare(&self, later: &Self) -> Difference {
        let cut = [&self.cut, &later.cut].into_iter().flatten().min();
        let covered = |path: &Path| cut.is_none_or(|cut| path <= cut.as_path());
        let mut written = Vec::new();
        let paths: std::collections::BTreeSet<&PathBuf> =
            self.entries.keys().chain(later.entries.keys()).collect();
        // The folder whose being there, or not, says it all of what is in it.
        let mut whole: Option<&Path> = None;
        for path in paths.into_iter().filter(|path| covered(path)) {
            if whole.is_some_and(|whole| path.starts_with(whole)) {
                continue;
            }
            let (before, after) = (self.entries.get(path), later.entries.get(path));
            let change = match (before, after) {
                (None, Some(_)) => "added",
                (Some(_), None) => "removed",
                (Some(before), Some(after)) if before.differs(after) => "changed",
                _ => continue,
            };
            let only = before.or(after).filter(|_| change != "changed");
            let folder = only == Some(&Entry::Folder);
            if folder {
                whole = Some(path);
            }
            written.push(Written {
                path: shown(path, folder),
                change: change.to_owned(),
            });
        }
        Difference {
            written,
            in_part: cut.is_some(),
        }
    }
}

impl Difference {
    /// Adds what another copy of the same workspace showed.
    pub(crate) fn join(&mut self, other: Self) {
        for written in other.written {
            if !self.written.contains(&written) {
                self.written.push(written);
            }
        }
        self.in_part |= other.in_part;
    }
}

/// What is in a folder, the last in order first; nothing where it cannot be read.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

fn shown(path: &Path, folder: bool) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let mut text = parts.join("/");
    if folder {
        text.push('/');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(&folder, path, text);
        }
        folder
    }

    fn write(folder: &tempfile::TempDir, path: &str, text: &str) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn told(difference: &Difference) -> Vec<String> {
        difference
            .written
            .iter()
            .map(|written| format!("{} {}", written.change, written.path))
            .collect()
    }

    #[test]
    fn what_is_the_same_differs_in_nothing() {
        let folder = folder(&[("a", "1"), ("b/c", "2")]);
        let before = Snapshot::of(folder.path());
        // The same text again: another time of change, no other content.
        write(&folder, "a", "1");
        let difference = before.compare(&Snapshot::of(folder.path()));
        assert_eq!(difference, Difference::default());
    }

    #[test]
    fn additions_changes_and_removals_are_told_and_a_folder_stands_for_its_content() {
        let folder = folder(&[("a", "1"), ("b/c", "2"), ("b/d", "3"), ("gone/x/y", "4")]);
        let before = Snapshot::of(folder.path());
        write(&folder, "a", "one");
        write(&folder, "b/e", "5");
        write(&folder, "target/deep/file", "6");
        fs::remove_file(folder.path().join("b/d")).unwrap();
        fs::remove_dir_all(folder.path().join("gone")).unwrap();
        let difference = before.compare(&Snapshot::of(folder.path()));
        assert_eq!(
            told(&difference),
            [
                "changed a",
                "removed b/d",
                "added b/e",
                "removed gone/",
                "added target/"
            ]
        );
        assert!(!difference.in_part);
    }

    #[test]
    fn what_we_write_ourselves_is_allowed_and_what_is_done_to_it_then_is_not() {
        let folder = folder(&[("a", "1"), ("b", "2")]);
        let mut before = Snapshot::of(folder.path());
        write(&folder, "a", "ours");
        before.allow("a");
        fs::remove_file(folder.path().join("b")).unwrap();
        before.allow("b");
        assert_eq!(told(&before.compare(&Snapshot::of(folder.path()))), [""; 0]);
        write(&folder, "a", "theirs");
        assert_eq!(
            told(&before.compare(&Snapshot::of(folder.path()))),
            ["changed a"]
        );
    }

    #[test]
    fn beyond_the_limit_nothing_is_said() {
        let files: Vec<(String, &str)> = (0..20).map(|n| (format!("f{n:02}"), "x")).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        let folder = folder(&files);
        let before = Snapshot::bounded(folder.path(), 10);
        write(&folder, "f03", "y");
        write(&folder, "f03a", "new");
        write(&folder, "f19", "y");
        let difference = before.compare(&Snapshot::bounded(folder.path(), 10));
        // The new file pushed f09 over the edge, which is no removal.
        assert_eq!(told(&difference), ["changed f03", "added f03a"]);
        assert!(difference.in_part);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let folder = folder(&[("a", "1")]);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let before = Snapshot::of(folder.path());
        assert_eq!(before.entries.len(), 2);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let difference = before.compare(&Snapshot::of(folder.path()));
        assert_eq!(told(&difference), ["changed link"]);
    }
}
