//! The `*.fake` files of a workspace on disk.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::markers::Files;

/// What is read at most: folders deep, files, bytes a file.
const DEPTH: usize = 32;
const FILES: usize = 10_000;
const BYTES: u64 = 1 << 20;

/// Reads the disk each time it is asked. Links are not followed.
#[derive(Debug)]
pub(super) struct Disk;

impl Files for Disk {
    fn texts(&self, root: &[u8]) -> Vec<(Vec<u8>, String)> {
        let mut found = Vec::new();
        let root = Path::new(OsStr::from_bytes(root));
        collect(root, root, DEPTH, &mut found);
        found
    }
}

fn collect(root: &Path, folder: &Path, depth: usize, found: &mut Vec<(Vec<u8>, String)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
            continue;
        };
        if kind.is_dir() && depth > 0 {
            collect(root, &path, depth - 1, found);
        } else if kind.is_file()
            && path.extension() == Some(OsStr::new("fake"))
            && found.len() < FILES
            && entry
                .metadata()
                .is_ok_and(|metadata| metadata.len() <= BYTES)
            && let Ok(text) = fs::read_to_string(&path)
            && let Ok(relative) = path.strip_prefix(root)
        {
            found.push((relative.as_os_str().to_owned().into_vec(), text));
        }
    }
}
