//! The folder a server works in while it is checked.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{CheckError, CheckOptions, Ground};
use crate::found::Found;
use crate::place::{At, first_identifier, first_source};
use crate::samples::{LaidOut, Position, Sample};
use crate::target::Target;

/// The workspace, and where in it to ask.
pub(super) enum Place<'a> {
    /// A copy of a sample.
    Sample {
        folder: TempDir,
        root: String,
        sample: &'static Sample,
        laid_out: LaidOut<'static>,
    },
    /// A folder of the user's.
    Given {
        root: String,
        at: &'a [At],
        somewhere: At,
    },
    /// A folder of the user's, with places that were found in it.
    Found { root: String, found: &'a Found },
    /// A folder with one file.
    Bare {
        folder: TempDir,
        root: String,
        somewhere: At,
        instead_of: Option<String>,
    },
}

impl<'a> Place<'a> {
    pub(super) fn make(
        ground: &'a Ground,
        target: &Target,
        options: &CheckOptions,
    ) -> Result<Self, CheckError> {
        match ground {
            Ground::Sample(sample) => {
                let (folder, path, root) = temporary(options)?;
                let laid_out = sample
                    .lay_out(&path)
                    .map_err(|error| CheckError::Workspace(error.to_string()))?;
                Ok(Self::Sample {
                    folder,
                    root,
                    sample,
                    laid_out,
                })
            }
            Ground::Given { workspace, at } => {
                let root = workspace.display().to_string();
                let extensions = target.extensions.keys().map(String::as_str);
                match first_source(workspace, &extensions) {
                    _ if !at.is_empty() => {
                        let somewhere = at[0].clone();
                        Ok(Self::Given {
                            root,
                            at,
                            somewhere,
                        })
                    }
                    Some(file) => {
                        let text = std::fs::read_to_string(&file).unwrap_or_default();
                        let file = file.display().to_string();
                        let somewhere = At {
                            file,
                            position: first_identifier(&text),
                        };
                        Ok(Self::Given {
                            root,
                            at,
                            somewhere,
                        })
                    }
                    None => bare(target, options, Some(root)),
                }
            }
            Ground::Found { workspace, found } => Ok(Self::Found {
                root: workspace.display().to_string(),
                found,
            }),
            Ground::Bare => bare(target, options, None),
        }
    }

    pub(super) fn root(&self) -> &str {
        match self {
            Self::Sample { root, .. }
            | Self::Given { root, .. }
            | Self::Found { root, .. }
            | Self::Bare { root, .. } => root,
        }
    }

    /// The path inside the workspace that a URI names, in whatever spelling.
    pub(super) fn relative(&self, uri: &str) -> Option<String> {
        match self {
            Self::Sample { laid_out, .. } => laid_out.relative(uri),
            _ => None,
        }
    }

    /// The sample's name.
    pub(super) fn sample(&self) -> Option<String> {
        match self {
            Self::Sample { sample, .. } => Some(sample.name.clone()),
            _ => None,
        }
    }

    /// What to say about it in the report.
    pub(super) fn remark(&self) -> Option<String> {
        match self {
            Self::Bare {
                instead_of: Some(folder),
                ..
            } => Some(format!(
                "{folder} has no file with one of the extensions; an empty one in a temporary \
                 workspace was opened instead"
            )),
            Self::Found { found, .. } => Some(found.told.clone()),
            _ => None,
        }
    }

    /// Removes what is temporary, or keeps it and says where it is. What cannot be removed is
    /// said too: somebody is still writing there.
    pub(super) fn end(self, keep: bool) -> Result<Option<PathBuf>, String> {
        match self {
            Self::Sample { folder, .. } | Self::Bare { folder, .. } if keep => {
                Ok(Some(folder.keep()))
            }
            Self::Sample { folder, .. } | Self::Bare { folder, .. } => {
                let path = folder.path().display().to_string();
                let left =
                    |error| format!("the temporary workspace {path} was not removed: {error}");
                folder.close().map(|()| None).map_err(left)
            }
            Self::Given { .. } | Self::Found { .. } => Ok(None),
        }
    }
}

fn bare<'a>(
    target: &Target,
    options: &CheckOptions,
    instead_of: Option<String>,
) -> Result<Place<'a>, CheckError> {
    let (folder, path, root) = temporary(options)?;
    let extension = target.extensions.keys().next().map_or("", String::as_str);
    let file = format!("empty{extension}");
    std::fs::write(path.join(&file), "\n")
        .map_err(|error| CheckError::Workspace(error.to_string()))?;
    let somewhere = At {
        file,
        position: Position {
            line: 0,
            character: 0,
        },
    };
    Ok(Place::Bare {
        folder,
        root,
        somewhere,
        instead_of,
    })
}

/// A new folder whose path has no symbolic links in it, as a path and as text.
fn temporary(options: &CheckOptions) -> Result<(TempDir, PathBuf, String), CheckError> {
    let made = |parent: &Path| {
        let folder = tempfile::Builder::new()
            .prefix("dsh-check-")
            .tempdir_in(parent)?;
        let path = folder.path().canonicalize()?;
        Ok((folder, path))
    };
    let (folder, path) = made(&options.temporary)
        .map_err(|error: std::io::Error| CheckError::Workspace(error.to_string()))?;
    let Some(root) = path.to_str().map(str::to_owned) else {
        let said = format!("the path {} is not UTF-8", path.display());
        return Err(CheckError::Workspace(said));
    };
    Ok((folder, path, root))
}
