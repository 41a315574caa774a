//! Takes a round to the file system and back (INS-9, INS-13, INS-20).

use std::path::{Path, PathBuf};

use dsh_fs::{FileKind, FileSystem, FsError, FsStat, FsTarget};
use dsh_kernel::{Cancel, CancelReason};

use crate::config::Settings;
use crate::layout::{Layout, Marker, laid_out, marker_paths};
use crate::passed_over::{self, PassedOver, Teller};
use crate::round::{Limits, Outcome, Probe, Read, Round};

/// Looks for the project's root and lays the candidates out (INS-1). `logged` is the fingerprint of
/// what is loaded.
pub(crate) async fn lay_out(
    files: &dyn FileSystem,
    settings: &Settings,
    cwd: &Path,
    logged: Option<&str>,
    cancel: &Cancel,
) -> Result<Layout, CancelReason> {
    let paths = marker_paths(settings, cwd);
    let mut markers = Vec::with_capacity(paths.len());
    if !paths.is_empty() {
        for stat in files.probe(&paths, cancel).await? {
            markers.push(match stat {
                Ok(FsStat {
                    kind: FileKind::File | FileKind::Directory,
                    ..
                }) => Marker::Found,
                Ok(_) => Marker::NotThere,
                Err(FsError::Cancelled(reason)) => return Err(reason),
                Err(error) if error.confirms_absence() => Marker::NotThere,
                Err(_) => Marker::Unknown,
            });
        }
    }
    Ok(laid_out(settings, cwd, &markers, logged))
}

/// Drives a round to its end: one batch of probes, then the reads that it wants. A cancellation ends
/// it with nothing to tell and nothing to remember.
pub(crate) async fn drive(
    files: &dyn FileSystem,
    mut round: Round<'_>,
    limits: Limits,
    teller: &Teller,
    cancel: &Cancel,
) -> Result<Outcome, CancelReason> {
    let paths = round.paths();
    if !paths.is_empty() {
        let mut probes = Vec::with_capacity(paths.len());
        for (path, stat) in paths.iter().zip(files.probe(&paths, cancel).await?) {
            probes.push(match stat {
                Ok(FsStat {
                    kind: FileKind::File,
                    size,
                    version,
                }) => {
                    if size > Some(limits.max_source_bytes) {
                        let limit = limits.max_source_bytes;
                        teller.tell(path, PassedOver::TooLarge { limit });
                    }
                    Probe::File {
                        version: version.as_str().to_owned(),
                        size,
                    }
                }
                Ok(FsStat { kind, .. }) => {
                    teller.tell(path, PassedOver::NotAFile(kind.name()));
                    Probe::Absent
                }
                Err(FsError::Cancelled(reason)) => return Err(reason),
                Err(error) if error.confirms_absence() => Probe::Absent,
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "instructions not looked at");
                    teller.tell(path, passed_over::reason(&error));
                    Probe::Failed
                }
            });
        }
        round.probed(probes);
    }
    loop {
        let wanted = round.wanted();
        if wanted.is_empty() {
            cancel.check()?;
            return Ok(round.finish());
        }
        for (item, path) in wanted {
            let read = read(files, path, limits.max_source_bytes, teller, cancel).await?;
            round.was_read(item, read);
        }
    }
}

/// Reads one file, and stops where it turns out to be too large (INS-13).
async fn read(
    files: &dyn FileSystem,
    path: PathBuf,
    most: u64,
    teller: &Teller,
    cancel: &Cancel,
) -> Result<Read, CancelReason> {
    let target = FsTarget {
        display_path: path.to_string_lossy().into_owned(),
        path,
    };
    match read_text(files, &target, most, teller, cancel).await {
        Ok(read) => Ok(read),
        Err(FsError::Cancelled(reason)) => Err(reason),
        Err(error) if error.confirms_absence() => Ok(Read::Absent),
        Err(error) => {
            tracing::warn!(path = %target.display_path, %error, "instructions not read");
            teller.tell(&target.path, passed_over::reason(&error));
            Ok(Read::Failed)
        }
    }
}

/// Whether a text looks like what a version control system writes in the place of a link where there
/// are none. It is used as it is all the same (INS-24).
fn names_another_file(text: &str) -> bool {
    let name = text.trim();
    let is_document = Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "md");
    is_document && name.len() < 256 && !name.contains(char::is_whitespace)
}

async fn read_text(
    files: &dyn FileSystem,
    target: &FsTarget,
    most: u64,
    teller: &Teller,
    cancel: &Cancel,
) -> Result<Read, FsError> {
    let mut stream = files.stream_text(target, cancel).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece?;
        if (bytes.len() as u64).saturating_add(piece.len() as u64) > most {
            return Err(FsError::TooLarge {
                path: target.display_path.clone(),
                limit: most,
            });
        }
        bytes.extend_from_slice(&piece);
    }
    let Ok(text) = String::from_utf8(bytes) else {
        tracing::warn!(path = %target.display_path, "instructions are not UTF-8, and are not used");
        teller.tell(&target.path, PassedOver::NotUtf8);
        return Ok(Read::Failed);
    };
    // What has NUL bytes is no text that somebody wrote. A link may lead to what the system tells of
    // this process, its environment with whatever keys are in it.
    if text.contains('\0') {
        tracing::warn!(path = %target.display_path, "instructions are binary, and are not used");
        teller.tell(&target.path, PassedOver::Binary);
        return Ok(Read::Failed);
    }
    if names_another_file(&text) {
        tracing::warn!(
            path = %target.display_path,
            text = text.trim(),
            "instructions hold nothing but the name of a file: a link that was checked out as text?"
        );
    }
    Ok(Read::Text {
        text,
        version: stream.version().as_str().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_became_text_is_noticed() {
        for name in ["CLAUDE.md", "../docs/AGENTS.md\n"] {
            assert!(names_another_file(name), "{name}");
        }
        for text in ["", "read CLAUDE.md", "# Rules\n", ".md", "a.txt"] {
            assert!(!names_another_file(text), "{text}");
        }
    }
}
