//! The files of the catalogue and of the samples: part of the binary where it is optimized, read
//! from their folders in a development build.

use std::borrow::Cow;
use std::path::Path;

use crate::data::DataError;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A folder of data.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "a build is made with one of the two")]
pub(crate) enum Files {
    /// Part of the binary: (path below the folder with `/`, text).
    Embedded(&'static [(&'static str, &'static str)]),
    /// Where the folder lies.
    In(&'static str),
}

/// (path below the folder with `/`, text)
pub(crate) type File = (Cow<'static, str>, Cow<'static, str>);

impl Files {
    /// All files, by path.
    pub(crate) fn all(self) -> Result<Vec<File>, DataError> {
        match self {
            Self::Embedded(files) => Ok(files
                .iter()
                .map(|(path, text)| (Cow::Borrowed(*path), Cow::Borrowed(*text)))
                .collect()),
            Self::In(folder) => read_folder(Path::new(folder)),
        }
    }
}

/// The text files below a folder, by path; links are followed to files only, so that no circle of
/// links is walked.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<File>, DataError> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        let unreadable = |error: std::io::Error| unreadable(&next, &error);
        for entry in std::fs::read_dir(&next).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                open.push(path);
            } else {
                files.push(read(folder, &path)?);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(folder: &Path, path: &Path) -> Result<File, DataError> {
    crate::data::a_file(path, &path.display().to_string())?;
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    let parts = parts.ok_or_else(|| {
        DataError::whole(
            &path.display().to_string(),
            "its name is not UTF-8; rename it",
        )
    })?;
    Ok((Cow::Owned(parts.join("/")), Cow::Owned(text)))
}

fn unreadable(path: &Path, error: &std::io::Error) -> DataError {
    DataError::whole(
        &path.display().to_string(),
        format!("cannot be read: {error}"),
    )
}
