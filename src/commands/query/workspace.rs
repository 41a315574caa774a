//! The workspace of a file that was named without one.

use std::path::{Path, PathBuf};

/// What a project's folder holds, in the order in which it is looked for.
const MARKERS: [&str; 10] = [
    ".git",
    "Cargo.toml",
    "package.json",
    "tsconfig.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "compile_commands.json",
    "pom.xml",
    ".hg",
];

/// The nearest folder above `file` that holds a marker, or the file's own, and why.
pub(super) fn above(file: &Path) -> (PathBuf, String) {
    for folder in file.ancestors().skip(1) {
        if let Some(marker) = MARKERS.iter().find(|marker| folder.join(marker).exists()) {
            return (
                folder.to_path_buf(),
                format!("nearest folder with {marker}"),
            );
        }
    }
    let folder = file
        .parent()
        .map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    (
        folder,
        "the file's own folder; no project was found above it".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_project_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(root.path().join("go.mod"), "").unwrap();
        let (folder, why) = above(&inner.join("x.go"));
        assert_eq!(
            (folder, why.as_str()),
            (root.path().to_path_buf(), "nearest folder with go.mod")
        );
        std::fs::write(root.path().join("a/package.json"), "").unwrap();
        assert_eq!(above(&inner.join("x.go")).0, root.path().join("a"));
    }
}
