//! Builds the scenario files into programs that are optimized, and the titles of the transcripts of
//! monitors into all.
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
    // Else it is told when the crate is compiled: what this script wrote may be older than a move.
    let shown = if embedded {
        "\"\""
    } else {
        "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/suite\")"
    };
    let mut text =
        format!("/// Where a development build finds the suite.\nconst FOLDER: &str = {shown};\n");
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
    let out = PathBuf::from(variable("OUT_DIR")?);
    fs::write(out.join("suite.rs"), text)?;
    let monitors = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("monitors");
    println!("cargo:rerun-if-changed={}", monitors.display());
    fs::write(out.join("transcripts.rs"), transcripts(&monitors)?)
}

/// The transcripts that monitors are shown to work by: their names and titles.
fn transcripts(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    let mut text = "/// The transcripts by which monitors are shown to work, by path.\n".to_owned();
    text.push_str("pub const TRANSCRIPTS: &[Transcript] = &[\n");
    for file in files {
        let wrong = || io::Error::other(format!("{} has no title", file.display()));
        let path = file.strip_prefix(folder).map_err(io::Error::other)?;
        let clause = literal(path.parent().ok_or_else(wrong)?)?;
        let name = literal(Path::new(path.file_name().ok_or_else(wrong)?))?;
        let whole = fs::read_to_string(&file)?;
        let mut lines = whole.lines();
        let title = lines.find_map(|line| line.strip_prefix("title: "));
        let title = title.ok_or_else(wrong)?.trim_matches(['"', '\'']);
        writeln!(
            text,
            "Transcript {{ clause: {clause}, name: {name}, title: {title:?} }},"
        )
        .map_err(io::Error::other)?;
    }
    text.push_str("];\n");
    Ok(text)
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
