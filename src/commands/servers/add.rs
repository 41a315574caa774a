//! `servers add`.

use std::path::{Path, PathBuf};

use dsh_e2e::catalogue::{CONFIG, Catalogue, OwnFile, a_file};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::artifacts::Artifacts;
use crate::commands::subject::{Extension, a_program};
use crate::exit::Exit;
use crate::lines::wrapped;
use crate::output::{complain, say};
use crate::shell::{Shell, read_text};

/// The most bytes that a file with servers may have.
const MAX_BYTES: u64 = 4 << 20;

/// The oldest Node.js that is asked for where a recipe of npm is given in short.
const NODE: i64 = 18;

/// What is written.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Server {
    /// The name typed after --server: lowercase letters, digits and "-"
    name: String,
    /// Its program and arguments, split as a shell would
    #[arg(long, value_name = "CMD")]
    command: String,
    /// Extension and language id of what it serves; may be given several times
    #[arg(long, value_name = ".EXT=LANGUAGE", required = true)]
    ext: Vec<Extension>,
    /// The language, as people write it; the name without this
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// The sample workspace it is asked about: a built-in one, or a folder with a sample.yaml;
    /// without this only the protocol is judged
    #[arg(long, value_name = "NAME|DIR")]
    sample: Option<String>,
    /// A way to obtain it: npm:PACKAGE@VERSION, pypi:PACKAGE@VERSION, cargo:PACKAGE@VERSION,
    /// apt:PACKAGE, rustup:COMPONENT or path; may be given several times, tried in that order
    #[arg(long, value_name = "KIND:PACKAGE")]
    recipe: Vec<Recipe>,
    /// It does not tell its version: nothing is started to ask for it. Without this --version is
    /// tried, and its version is unknown where that tells none
    #[arg(long)]
    no_version: bool,
    /// How much memory a check needs, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(i64).range(1..=1_048_576))]
    memory: Option<i64>,
}

/// A way to obtain a server, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Recipe {
    Path,
    Pinned {
        kind: &'static str,
        package: String,
        version: String,
    },
    Apt(String),
    Rustup(String),
}

impl std::str::FromStr for Recipe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "path" {
            return Ok(Self::Path);
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()) else {
            return Err("write KIND:PACKAGE, npm:my-server@1.2.3 for instance, or path".to_owned());
        };
        let pinned = |kind| {
            // The scope of an npm package begins with the same sign.
            let at = rest.rfind('@').filter(|at| *at > 0);
            let (package, version) = at.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
            if version.is_empty() {
                return Err(format!("pin it to one version: {kind}:{rest}@1.2.3"));
            }
            Ok(Self::Pinned {
                kind,
                package: package.to_owned(),
                version: version.to_owned(),
            })
        };
        match kind {
            "npm" => pinned("npm"),
            "pypi" => pinned("pypi"),
            "cargo" => pinned("cargo"),
            "apt" | "system-package" => Ok(Self::Apt(rest.to_owned())),
            "rustup" | "rustup-component" => Ok(Self::Rustup(rest.to_owned())),
            other => Err(format!(
                "there is no recipe {other:?}; known are npm, pypi, cargo, apt, rustup and path"
            )),
        }
    }
}

impl Recipe {
    fn table(&self) -> Table {
        let mut table = Table::new();
        let mut put = |key: &str, item: Value| table.insert(key, value(item));
        match self {
            Self::Path => {
                put("kind", "path".into());
            }
            Self::Pinned {
                kind,
                package,
                version,
            } => {
                put("kind", (*kind).into());
                put("package", package.into());
                put("version", version.into());
                match *kind {
                    "npm" => put("node", NODE.into()),
                    "cargo" => put("minutes", 10.into()),
                    _ => None,
                };
            }
            Self::Apt(package) => {
                put("kind", "system-package".into());
                put("platforms", Array::from_iter(["linux"]).into());
                put("apt", Array::from_iter([package]).into());
            }
            Self::Rustup(component) => {
                put("kind", "rustup-component".into());
                put("component", component.into());
            }
        }
        table
    }
}

pub(super) fn run(shell: &Shell, server: &Server) -> Exit {
    match add(shell, server) {
        Ok(told) => match say(&told) {
            Ok(()) => Exit::Fine,
            Err(_) => Exit::NotCarriedOut,
        },
        Err((message, exit)) => {
            complain(&format!("error: {message}"));
            exit
        }
    }
}

fn add(shell: &Shell, server: &Server) -> Result<String, (String, Exit)> {
    let usage = |message: String| (message, Exit::Usage);
    let (file, shown) = file_of(shell).map_err(usage)?;
    let before = if file.symlink_metadata().is_ok() {
        a_file(&file, &shown).map_err(|error| usage(error.to_string()))?;
        let told = |why| usage(format!("cannot read {shown}: {why}"));
        read_text(&file, MAX_BYTES, "a file with servers").map_err(told)?
    } else {
        String::new()
    };
    let folder = file.parent().unwrap_or(&file);
    // A path was typed from the working folder, and is read from that of the file.
    let meant = |path: &str| {
        if folder == shell.directory {
            path.to_owned()
        } else {
            shell.absolute(Path::new(path)).display().to_string()
        }
    };
    let after = with_server(&before, server, &shown, &meant).map_err(usage)?;
    // What is written has to be read again, so that nothing wrong is left behind.
    let read = OwnFile::parse(&shown, folder, &after)
        .and_then(|own| Catalogue::builtin().with(&[vec![own]]))
        .map_err(|error| usage(format!("nothing is written: {error}")))?;
    Artifacts::write(&file, after.as_bytes()).map_err(|error| {
        let message = format!("cannot write {shown}: {error}");
        (message, Exit::NotCarriedOut)
    })?;
    let name = &server.name;
    let replaces = if Catalogue::builtin().entry(name).is_ok() {
        " It counts in place of the built-in one."
    } else {
        ""
    };
    let option = match shell.catalogues.first() {
        Some(path) => format!(" --catalogue {}", path.display()),
        None => String::new(),
    };
    let judged = match read
        .entry(name)
        .ok()
        .and_then(|entry| read.sample_of(entry))
    {
        Some(sample) => format!("It is asked about the sample {}.", sample.name),
        None => "It has no sample: the protocol alone is judged. A sample has known answers; \
                 give --sample, or write one."
            .to_owned(),
    };
    let told = wrapped(&format!("{name} is in {shown}.{replaces}\n{judged}"));
    Ok(format!(
        "{told}\nnext:\n  dsh-conform servers doctor {name}{option}\n  dsh-conform check --server \
         {name}{option}\n"
    ))
}

/// The file to write into, and how it is shown.
fn file_of(shell: &Shell) -> Result<(PathBuf, String), String> {
    let file = match shell.catalogues.as_slice() {
        [] => shell
            .config()
            .unwrap_or_else(|| shell.absolute(Path::new(CONFIG))),
        [file] => shell.absolute(file),
        _ => return Err("--catalogue names several files; name the one to write into".to_owned()),
    };
    let shown = file.strip_prefix(&shell.directory).unwrap_or(&file);
    let shown = shown.display().to_string();
    let is_toml = file
        .extension()
        .is_some_and(|extension| extension == "toml");
    if is_toml {
        Ok((file, shown))
    } else {
        Err(format!(
            "servers are written into TOML files, and {shown} has no such name; name a .toml file, \
             or write the entry there by hand"
        ))
    }
}

/// The text with the server, everything else in it left as it was.
fn with_server(
    text: &str,
    server: &Server,
    shown: &str,
    meant: &dyn Fn(&str) -> String,
) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| format!("{shown} is no TOML, put it right first: {error}"))?;
    let servers = document.entry("servers").or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let Some(servers) = servers.as_table_mut() else {
        return Err(format!(
            "{shown}: servers is no table; write [servers.NAME]"
        ));
    };
    if servers.contains_key(&server.name) {
        return Err(format!(
            "{shown} has a server {:?} already; change it there, or choose another name",
            server.name
        ));
    }
    servers.insert(&server.name, Item::Table(table_of(server, meant)?));
    Ok(document.to_string())
}

fn table_of(server: &Server, meant: &dyn Fn(&str) -> String) -> Result<Table, String> {
    let words = shlex::split(&server.command).ok_or_else(|| {
        format!(
            "--command {:?} has a quote that is not closed; it is read as a shell would split it",
            server.command
        )
    })?;
    let Some((program, args)) = words.split_first() else {
        return Err("--command names no program; give the program and its arguments".to_owned());
    };
    a_program(program)?;
    let mut table = Table::new();
    if let Some(language) = &server.language {
        table.insert("language", value(language));
    }
    let mut launch = InlineTable::new();
    let program = if program.contains('/') {
        meant(program)
    } else {
        program.clone()
    };
    launch.insert("command", program.into());
    if !args.is_empty() {
        launch.insert("args", Array::from_iter(args).into());
    }
    table.insert("launch", value(launch));
    if server.no_version {
        let version = InlineTable::from_iter([("optional", true)]);
        table.insert("version", value(version));
    }
    let mut extensions = InlineTable::new();
    for known in &server.ext {
        let (extension, language) = known.parts();
        extensions.insert(extension, language.into());
    }
    table.insert("extensions", value(extensions));
    if let Some(sample) = &server.sample {
        let is_known = dsh_e2e::samples::sample(sample).is_some();
        let sample = if is_known {
            sample.clone()
        } else {
            meant(sample)
        };
        table.insert("sample", value(sample));
    }
    if let Some(memory) = server.memory {
        table.insert("memoryMb", value(memory));
    }
    if !server.recipe.is_empty() {
        let recipes: ArrayOfTables = server.recipe.iter().map(Recipe::table).collect();
        table.insert("recipes", Item::ArrayOfTables(recipes));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_in_short_and_need_a_pin() {
        let read = |text: &str| text.parse::<Recipe>();
        let pinned = |kind, package: &str, version: &str| Recipe::Pinned {
            kind,
            package: package.to_owned(),
            version: version.to_owned(),
        };
        assert_eq!(read("npm:@a/b@1.2.3"), Ok(pinned("npm", "@a/b", "1.2.3")));
        assert_eq!(read("pypi:x@2"), Ok(pinned("pypi", "x", "2")));
        assert_eq!(read("path"), Ok(Recipe::Path));
        for (text, told) in [
            ("npm:@a/b", "npm:@a/b@1.2.3"),
            ("npm:x", "npm:x@1.2.3"),
            ("npm:", "KIND:PACKAGE"),
            ("gem:x@1", "known are npm"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
