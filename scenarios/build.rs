//! Builds the scenario files into programs that are optimized.
//!
//! Development builds read them from where they lie, so that changing one compiles nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| given(name).ok_or_else(|| io::Error::other(name.to_owned()));
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("suite");
    let embedded = variable("PROFILE")? == "release";
    // What is installed names no place of the machine it was built on.
    let shown = if embedded { Path::new("") } else { &folder };
    let mut text = format!(
        "/// Where a development build finds the suite.\nconst FOLDER: &str = {};\n",
        literal(shown)?
    );
    text.push_str("/// The files of the suite, path and bytes; none in a development build.\n");
    text.push_str("const EMBEDDED: Option<&[(&str, &[u8])]> = ");
    if embedded {
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        find(&folder, &mut files)?;
        files.sort();
        text.push_str("Some(&[\n");
        for file in files {
            let name = file.strip_prefix(&folder).map_err(io::Error::other)?;
            let name = literal(name)?.replace("\\\\", "/");
            let file = literal(&file)?;
            writeln!(text, "({name}, include_bytes!({file})),").map_err(io::Error::other)?;
        }
        text.push_str("]);\n");
    } else {
        text.push_str("None;\n");
    }
    fs::write(Path::new(&variable("OUT_DIR")?).join("suite.rs"), text)
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo hands a build script everything in its environment"
)]
fn given(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name)
}

/// A text of Rust that is this path.
fn literal(path: &Path) -> io::Result<String> {
    let text = path.to_str();
    let text = text.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))?;
    Ok(format!("{text:?}"))
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
