//! Writing a sample into a folder.

use std::io;
use std::path::{Path, PathBuf};

use super::data::{Changed, Reopened, Sample};

/// Stands for the absolute path of the workspace in a sample's files.
pub(super) const WORKSPACE: &str = "${workspace}";

/// A sample that was written into a folder.
#[derive(Debug, Clone)]
pub struct LaidOut<'a> {
    sample: &'a Sample,
    root: PathBuf,
}

/// Why a sample could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder's path cannot stand in a text file.
    #[error(
        "the path of the folder {} is not UTF-8, and the sample has to name it; \
         choose another folder for temporary files (TMPDIR)",
        .0.display()
    )]
    NotText(PathBuf),
}

impl Sample {
    /// Writes the workspace into `root`, an existing empty folder whose symlinks are resolved.
    pub fn lay_out(&self, root: &Path) -> Result<LaidOut<'_>, LayoutError> {
        let laid_out = LaidOut {
            sample: self,
            root: root.to_owned(),
        };
        for file in &self.files {
            laid_out.write(&file.path, &file.text)?;
        }
        Ok(laid_out)
    }
}

impl LaidOut<'_> {
    /// The sample.
    pub fn sample(&self) -> &Sample {
        self.sample
    }

    /// The workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute path of a file of the sample.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// The path relative to the workspace, with `/`, of a `file:` URI in whatever spelling;
    /// `None` for anything outside.
    pub fn relative(&self, uri: &str) -> Option<String> {
        let path = url::Url::parse(uri).ok()?.to_file_path().ok()?;
        let relative = path.strip_prefix(&self.root).ok()?;
        let parts: Option<Vec<_>> = relative.iter().map(|part| part.to_str()).collect();
        Some(parts?.join("/"))
    }

    /// Writes the changed text of `reopened` over the file it is about.
    pub fn write_reopened(&self, reopened: &Reopened) -> Result<(), LayoutError> {
        self.write(&reopened.file, &reopened.text)
    }

    /// Writes the changed text of `changed` over the file it is about.
    pub fn write_changed(&self, changed: &Changed) -> Result<(), LayoutError> {
        self.write(&changed.file, &changed.text)
    }

    /// Writes the original text of every file again.
    pub fn restore(&self) -> Result<(), LayoutError> {
        self.sample
            .files
            .iter()
            .try_for_each(|file| self.write(&file.path, &file.text))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), LayoutError> {
        let path = self.path(file);
        let failed = |source| LayoutError::Write {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(&path, self.filled_in(file, text)?).map_err(failed)
    }

    /// `text` with the workspace's path in it, escaped where `file` is JSON.
    fn filled_in(&self, file: &str, text: &str) -> Result<String, LayoutError> {
        if !text.contains(WORKSPACE) {
            return Ok(text.to_owned());
        }
        let root = self
            .root
            .to_str()
            .ok_or_else(|| LayoutError::NotText(self.root.clone()))?;
        let is_json = Path::new(file)
            .extension()
            .is_some_and(|extension| extension == "json");
        if is_json {
            let quoted = serde_json::Value::from(root).to_string();
            Ok(text.replace(WORKSPACE, &quoted[1..quoted.len() - 1]))
        } else {
            Ok(text.replace(WORKSPACE, root))
        }
    }
}
