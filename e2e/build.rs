//! Builds the catalogue and the samples into programs that are optimized.
//!
//! Development builds read them from where they lie, so that changing one compiles nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let embedded = variable("PROFILE")? == "release";
    let mut text = String::new();
    for (name, folder) in [("SERVERS", "servers"), ("SAMPLES", "samples")] {
        let folder = root.join(folder);
        // What is installed names no place of the machine it was built on.
        let files = if embedded {
            println!("cargo:rerun-if-changed={}", folder.display());
            format!("Files::Embedded(&[\n{}])", embedding(&folder)?)
        } else {
            // Told when the crate is compiled: what this script wrote may be older than a move.
            format!(
                "Files::In(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{name}\"))",
                name = name.to_lowercase()
            )
        };
        writeln!(text, "/// The files of `{name}`.").map_err(io::Error::other)?;
        writeln!(text, "pub(crate) const {name}: Files = {files};").map_err(io::Error::other)?;
    }
    fs::write(PathBuf::from(variable("OUT_DIR")?).join("files.rs"), text)
}

/// The files below a folder as pairs of path and text.
fn embedding(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let name = file.strip_prefix(folder).map_err(io::Error::other)?;
        let name = literal(name)?.replace("\\\\", "/");
        let file = literal(&file)?;
        writeln!(text, "({name}, include_str!({file})),").map_err(io::Error::other)?;
    }
    Ok(text)
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo hands a build script everything in its environment"
)]
fn variable(name: &str) -> io::Result<std::ffi::OsString> {
    env::var_os(name).ok_or_else(|| io::Error::other(name.to_owned()))
}

/// A text of Rust that is this path.
fn literal(path: &Path) -> io::Result<String> {
    let text = path.to_str();
    let text = text.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))?;
    Ok(format!("{text:?}"))
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
