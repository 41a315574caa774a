//! Where transcripts and reports are left.

use std::io;
use std::path::{Path, PathBuf};

use crate::files;

/// The folder unless another is named.
const FOLDER: &str = "target/dsh-conform";

/// Where things are left, and what was left there.
#[derive(Clone, Debug)]
pub(crate) struct Artifacts {
    folder: PathBuf,
    file: Option<PathBuf>,
}

impl Artifacts {
    /// For `--out`: a folder, or a file if it has an extension and is no folder. Paths stay as
    /// they were written, relative to the working directory.
    pub(crate) fn at(out: Option<&Path>) -> Self {
        match out {
            None => Self {
                folder: PathBuf::from(FOLDER),
                file: None,
            },
            Some(path) if (path.extension().is_some() || path.exists()) && !path.is_dir() => Self {
                folder: files::folder(path).to_path_buf(),
                file: Some(path.to_path_buf()),
            },
            Some(path) => Self {
                folder: path.to_path_buf(),
                file: None,
            },
        }
    }

    /// The file that was named for the report itself.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The folder of everything that is left.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a subject's file, `pyright.jsonl` for instance.
    pub(crate) fn path(&self, subject: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", plain(subject)))
    }

    /// The path of a case's file, in folders as the case's id has them.
    pub(crate) fn below(&self, id: &str, extension: &str) -> PathBuf {
        let mut path = self.folder.clone();
        let (folders, name) = id.rsplit_once('/').unwrap_or(("", id));
        path.extend(
            folders
                .split('/')
                .filter(|part| !part.is_empty())
                .map(plain),
        );
        path.join(format!("{}.{extension}", plain(name)))
    }

    /// Writes a file, making its folder.
    pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        files::write(path, text)
    }
}

/// A name without anything that a path could trip over.
fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+') {
                c
            } else {
                '-'
            }
        })
        .take(100)
        .collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() {
        "server".to_owned()
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_an_extension_is_a_file_and_transcripts_go_beside_it() {
        let artifacts = Artifacts::at(Some(Path::new("a/out.json")));
        assert_eq!(artifacts.file(), Some(Path::new("a/out.json")));
        assert_eq!(artifacts.path("x", "jsonl"), Path::new("a/x.jsonl"));
        let artifacts = Artifacts::at(Some(Path::new("out.json")));
        assert_eq!(artifacts.path("x", "jsonl"), Path::new("./x.jsonl"));
        let artifacts = Artifacts::at(Some(Path::new("reports")));
        assert_eq!(artifacts.file(), None);
        assert_eq!(artifacts.path("x", "jsonl"), Path::new("reports/x.jsonl"));
        assert_eq!(
            Artifacts::at(None).path("x", "jsonl"),
            Path::new("target/dsh-conform/x.jsonl")
        );
    }

    #[test]
    fn a_case_s_file_lies_in_its_folders_and_never_outside() {
        let artifacts = Artifacts::at(None);
        for (id, path) in [
            ("cancel/a+b", "target/dsh-conform/cancel/a+b.jsonl"),
            ("a", "target/dsh-conform/a.jsonl"),
            ("../../a", "target/dsh-conform/server/server/a.jsonl"),
            ("/etc/a", "target/dsh-conform/etc/a.jsonl"),
        ] {
            assert_eq!(artifacts.below(id, "jsonl"), Path::new(path));
        }
    }

    #[test]
    fn names_become_plain_file_names() {
        assert_eq!(plain("sh -c 'a/../b'"), "sh--c--a-..-b");
        assert_eq!(plain("../.."), "server");
        assert_eq!(plain(""), "server");
    }
}
