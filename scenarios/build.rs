//! Builds the scenario files into programs that are optimized.
//!
//! Development builds read them from where they lie, so that changing one compiles nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| env::var_os(name).ok_or_else(|| io::Error::other(name.to_owned()));
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("suite");
    let mut text =
        format!("/// Where the suite lies in the sources.\nconst FOLDER: &str = {folder:?};\n");
    text.push_str("/// The files of the suite, path and bytes; none in a development build.\n");
    text.push_str("const EMBEDDED: Option<&[(&str, &[u8])]> = ");
    if variable("PROFILE")? == "release" {
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        find(&folder, &mut files)?;
        files.sort();
        text.push_str("Some(&[\n");
        for file in files {
            let name = file.strip_prefix(&folder).map_err(io::Error::other)?;
            let name = name.to_string_lossy().replace('\\', "/");
            writeln!(text, "({name:?}, include_bytes!({file:?})),").map_err(io::Error::other)?;
        }
        text.push_str("]);\n");
    } else {
        text.push_str("None;\n");
    }
    fs::write(Path::new(&variable("OUT_DIR")?).join("suite.rs"), text)
}

/// The files of the suite below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| {
            extension == "yaml" || extension == "yml" || extension == "snap"
        }) {
            files.push(path);
        }
    }
    Ok(())
}
