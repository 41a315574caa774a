//! Prints who witnesses which clause: what `evidence.json` has to hold. Takes the project's root.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use dsh_scenarios::{Clauses, Evidence};

fn main() -> io::Result<()> {
    let root = env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let mut evidence = Evidence::default();
    for folder in [
        "harness",
        "fake-servers",
        "scenarios",
        "e2e",
        "reports",
        "tests",
    ] {
        add(&root, &root.join(folder), &mut evidence)?;
    }
    write!(io::stdout(), "{}", evidence.to_json(Clauses::embedded()))
}

fn add(root: &Path, folder: &Path, evidence: &mut Evidence) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add(root, &path, evidence)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).map_err(io::Error::other)?;
            let name = name.to_string_lossy().replace('\\', "/");
            evidence.add(&name, &fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
