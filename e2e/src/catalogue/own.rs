//! A user's own entries, from YAML files and from `dsh-conform.toml`.
//!
//! An entry has the keys of the built-in ones, most of them optional. It may extend another one, of
//! which it then keeps every key that it does not set itself. Nothing here reads a file but what is
//! named by its caller.

mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::tree::{At, Located, Node};
use super::Catalogue;
use super::entry::Entry;
use crate::data::{self, DataError};
use crate::samples::{self, Sample};

/// The name of the file that is looked for in the working folder and above it.
pub const CONFIG: &str = "dsh-conform.toml";

/// The most bytes that a file with entries may have.
const MAX_BYTES: u64 = 4 << 20;

/// A file with entries, as it was read.
#[derive(Debug)]
pub struct OwnFile {
    /// The file, as errors name it.
    origin: String,
    /// The folder that relative paths in it are meant from.
    folder: PathBuf,
    entries: Vec<OwnEntry>,
}

#[derive(Clone, Debug)]
struct OwnEntry {
    name: String,
    /// Where the name stands.
    at: At,
    tree: Located,
}

impl OwnFile {
    /// Reads the entries of `path`: of a TOML file those of its table `servers`, of a YAML file the
    /// one or the list of them, of a folder those of all YAML files in it. `shown` is how errors
    /// call it; `open` opens each of them.
    pub fn read(path: &Path, shown: &str, open: &Opener) -> Result<Vec<Self>, DataError> {
        if !path.is_dir() {
            // A pipe that is named by itself is meant.
            let folder = path.parent().unwrap_or(path);
            return Ok(vec![Self::parse(shown, folder, &text(path, shown, open)?)?]);
        }
        let unreadable = |error: &std::io::Error| {
            DataError::whole(shown, format!("the folder cannot be read: {error}"))
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| unreadable(&error))? {
            let name = entry.map_err(|error| unreadable(&error))?.file_name();
            let name = name.to_string_lossy().into_owned();
            if is_yaml(&name) {
                // Nobody named what lies in a folder: no other end is waited for there.
                let shown = format!("{}/{name}", shown.trim_end_matches('/'));
                data::a_file(&path.join(&name), &shown)?;
                names.push(name);
            }
        }
        if names.is_empty() {
            let message = "the folder has no YAML file; put each entry into one, NAME.yaml";
            return Err(DataError::whole(shown, message));
        }
        names.sort();
        let read = |name: &String| {
            let shown = format!("{}/{name}", shown.trim_end_matches('/'));
            Self::parse(&shown, path, &text(&path.join(name), &shown, open)?)
        };
        names.iter().map(read).collect()
    }

    /// Reads a text; the extension of its name says whether it is TOML or YAML.
    pub fn parse(origin: &str, folder: &Path, text: &str) -> Result<Self, DataError> {
        let is_toml = Path::new(origin)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let entries = if is_toml {
            of_toml(origin, text)?
        } else {
            of_yaml(origin, text)?
        };
        Ok(Self {
            origin: origin.to_owned(),
            folder: folder.to_owned(),
            entries,
        })
    }

    fn error(&self, at: At, message: impl Into<String>) -> DataError {
        DataError {
            origin: self.origin.clone(),
            line: at.0,
            column: at.1,
            message: message.into(),
        }
    }
}

fn is_yaml(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|known| known == "yaml" || known == "yml")
}

/// How a file is opened that the user names; it may be a pipe.
pub type Opener = dyn Fn(&Path) -> std::io::Result<Box<dyn std::io::Read>>;

fn text(path: &Path, shown: &str, open: &Opener) -> Result<String, DataError> {
    use std::io::Read as _;
    let unreadable = |error: std::io::Error| {
        let way_out = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "there is no such file; `dsh-conform servers add` writes one".to_owned()
            }
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        DataError::whole(shown, way_out)
    };
    let mut text = String::new();
    let file = open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        let message = format!("it has more than {MAX_BYTES} bytes; divide it into several files");
        return Err(DataError::whole(shown, message));
    }
    Ok(text)
}

fn of_toml(origin: &str, text: &str) -> Result<Vec<OwnEntry>, DataError> {
    let whole = Located::of_toml(origin, text)?;
    let error = |at: At, message: String| DataError {
        origin: origin.to_owned(),
        line: at.0,
        column: at.1,
        message,
    };
    let Node::Map(fields) = &whole.node else {
        return Ok(Vec::new());
    };
    if let Some((key, at, _)) = fields.iter().find(|(key, ..)| key != "servers") {
        let message = format!("unknown key \"{key}\"; servers stand in [servers.NAME]");
        return Err(error(*at, message));
    }
    let Some((at, servers)) = whole.get("servers") else {
        return Ok(Vec::new());
    };
    let Node::Map(servers) = &servers.node else {
        let message = "servers is a table with one table a server: [servers.NAME]".to_owned();
        return Err(error(at, message));
    };
    let mut entries = Vec::new();
    for (name, at, tree) in servers {
        if let Some((at, _)) = tree.get("name") {
            let message =
                format!("the name of this server is its table's, \"{name}\"; leave it out");
            return Err(error(at, message));
        }
        if !matches!(tree.node, Node::Map(_)) {
            let message = format!("a server is a table: [servers.{name}]");
            return Err(error(*at, message));
        }
        entries.push(OwnEntry {
            name: name.clone(),
            at: *at,
            tree: tree.clone(),
        });
    }
    Ok(entries)
}

fn of_yaml(origin: &str, text: &str) -> Result<Vec<OwnEntry>, DataError> {
    let whole = Located::of_yaml(origin, text)?;
    let all = match &whole.node {
        Node::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&whole),
    };
    let mut entries = Vec::new();
    for tree in all {
        let error = |at: At, message: &str| DataError {
            origin: origin.to_owned(),
            line: at.0,
            column: at.1,
            message: message.to_owned(),
        };
        if !matches!(tree.node, Node::Map(_)) {
            let message = "an entry has keys: name, launch, extensions, …; give one, or a list";
            return Err(error(tree.at, message));
        }
        let Some((_, name)) = tree.get("name") else {
            return Err(error(tree.at, "the key \"name\" is missing"));
        };
        let Node::Scalar(Value::String(text)) = &name.node else {
            return Err(error(name.at, "name: give a text, my-server for instance"));
        };
        entries.push(OwnEntry {
            name: text.clone(),
            at: name.at,
            tree: tree.clone(),
        });
    }
    Ok(entries)
}

/// Entries by name, each with the file it is from.
type Own<'a> = BTreeMap<&'a str, (&'a OwnFile, &'a OwnEntry)>;

/// Joins `base` with the entries of files: `layers` from the least to the most important, one that
/// is in two layers being taken from the later, one that is twice in a layer being an error.
pub(super) fn merged(base: &Catalogue, layers: &[Vec<OwnFile>]) -> Result<Catalogue, DataError> {
    let mut own: Own<'_> = BTreeMap::new();
    for layer in layers {
        let mut known: Own<'_> = BTreeMap::new();
        for file in layer {
            for entry in &file.entries {
                if let Some((other, first)) = known.insert(&entry.name, (file, entry)) {
                    let (line, column) = first.at;
                    let message = format!(
                        "a server named \"{}\" is at {}:{line}:{column} already; rename or remove \
                         one",
                        entry.name, other.origin
                    );
                    return Err(file.error(entry.at, message));
                }
            }
        }
        own.extend(known);
    }
    let mut whole = base.clone();
    for (file, entry) in own.values() {
        let (entry, sample) = resolved(base, &own, file, entry)?;
        whole.put(entry, sample);
    }
    Ok(whole)
}

/// One entry with what it extends and what goes without saying.
fn resolved(
    base: &Catalogue,
    own: &Own<'_>,
    file: &OwnFile,
    entry: &OwnEntry,
) -> Result<(Entry, Option<&'static Sample>), DataError> {
    let value = extended(base, own, file, entry)?;
    let read: Entry = serde_path_to_error::deserialize(Value::Object(value)).map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let path: Vec<&str> = path
            .iter()
            .map(|part| part.trim_matches(['[', ']']))
            .collect();
        let (at, message) = unreadable(&entry.tree, &path, &error.inner().to_string());
        file.error(at, message)
    })?;
    if let Some(fault) = read.fault() {
        let (at, _) = entry.tree.follow(fault.path.iter().map(String::as_str));
        let at = if fault.path == ["name"] { entry.at } else { at };
        return Err(file.error(at, fault.message));
    }
    let sample = sample_of(file, entry, &read)?;
    Ok((read, sample))
}

/// The keys of an entry, over those of what it extends.
fn extended(
    base: &Catalogue,
    own: &Own<'_>,
    file: &OwnFile,
    entry: &OwnEntry,
) -> Result<Map<String, Value>, DataError> {
    // From the entry down to what extends nothing.
    let mut chain: Vec<(&OwnFile, &OwnEntry)> = vec![(file, entry)];
    let mut value = loop {
        let Some((file, last)) = chain.last().copied() else {
            break Map::new();
        };
        let Some((_, extends)) = last.tree.get("extends") else {
            break defaults(&last.name);
        };
        let Node::Scalar(Value::String(name)) = &extends.node else {
            let message = "extends: give the name of another server";
            return Err(file.error(extends.at, message));
        };
        // One that bears the name of a built-in one and extends that name means the built-in one.
        let next = own.get(name.as_str()).filter(|_| *name != last.name);
        if let Some((from, next)) = next {
            chain.push((*from, *next));
            let again = chain.iter().filter(|(_, one)| one.name == next.name);
            if again.count() > 1 {
                let names: Vec<&str> = chain.iter().map(|(_, one)| one.name.as_str()).collect();
                let message = format!(
                    "extends: this goes round in a circle, {}; take it out of one of them",
                    names.join(" → ")
                );
                return Err(file.error(extends.at, message));
            }
            continue;
        }
        let known = base.entry(name).map_err(|_| {
            let names = base.entries().iter().map(|entry| entry.name.as_str());
            let names = names.chain(own.keys().copied());
            let way_out = match data::nearest(name, names.filter(|known| *known != last.name)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "see `dsh-conform list servers`".to_owned(),
            };
            let message = format!("extends: no server named \"{name}\"; {way_out}");
            file.error(extends.at, message)
        })?;
        let Ok(Value::Object(known)) = serde_json::to_value(known) else {
            return Err(file.error(extends.at, "extends: this server cannot be extended"));
        };
        break known;
    };
    for (file, link) in chain.iter().rev() {
        if let Value::Object(fields) = link.tree.value() {
            value.extend(fields);
        }
        from_the_folder(&mut value, link, file);
    }
    value.remove("extends");
    value.insert("name".to_owned(), entry.name.clone().into());
    Ok(value)
}

/// What goes without saying.
fn defaults(name: &str) -> Map<String, Value> {
    let defaults = json!({
        "language": name,
        "summary": "",
        "version": {"args": ["--version"], "optional": true},
        "recipes": [{"kind": "path"}],
    });
    match defaults {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    }
}

/// Makes paths that the entry itself gives absolute.
fn from_the_folder(value: &mut Map<String, Value>, entry: &OwnEntry, file: &OwnFile) {
    for key in ["launch", "version"] {
        let Some((_, given)) = entry.tree.get(key) else {
            continue;
        };
        let Some((_, command)) = given.get("command") else {
            continue;
        };
        if let Node::Scalar(Value::String(command)) = &command.node
            && command.contains('/')
        {
            let path = file.folder.join(command);
            value[key]["command"] = path.display().to_string().into();
        }
    }
    if let Some((_, given)) = entry.tree.get("sample")
        && let Node::Scalar(Value::String(name)) = &given.node
        && !name.is_empty()
        && samples::sample(name).is_none()
    {
        let folder = file.folder.join(name).display().to_string();
        value.insert("sample".to_owned(), folder.into());
    }
}

/// The sample of an entry: a built-in one, or a folder of the user's.
fn sample_of(
    file: &OwnFile,
    entry: &OwnEntry,
    read: &Entry,
) -> Result<Option<&'static Sample>, DataError> {
    if read.sample.is_empty() {
        return Ok(None);
    }
    let at = entry.tree.follow(["sample"]).0;
    if let Some(known) = samples::sample(&read.sample) {
        return asked_about(known, read)
            .map(|()| Some(known))
            .map_err(|message| file.error(at, message));
    }
    let folder = Path::new(&read.sample);
    if !folder.is_dir() {
        let names = samples::builtin().iter().map(|sample| sample.name.as_str());
        let given = entry.tree.get("sample").map(|(_, given)| given.value());
        let given = given.as_ref().and_then(Value::as_str);
        let given = given.unwrap_or(&read.sample);
        let near = data::nearest(given, names.clone());
        let way_out = if let Some(near) = near {
            format!("did you mean \"{near}\"?")
        } else {
            let names: Vec<&str> = names.collect();
            format!(
                "give the path of a folder with a sample.yaml, or one of {}",
                names.join(", ")
            )
        };
        let message = format!("sample: there is no \"{given}\"; {way_out}");
        return Err(file.error(at, message));
    }
    let sample =
        samples::kept(folder).map_err(|error| file.error(at, format!("sample: {error}")))?;
    asked_about(sample, read)
        .map(|()| Some(sample))
        .map_err(|message| file.error(at, message))
}

/// Whether the server serves the files that the sample asks about.
fn asked_about(sample: &Sample, entry: &Entry) -> Result<(), String> {
    for question in &sample.questions {
        let extension = question.at.file.rsplit_once('.').map(|(_, ext)| ext);
        let extension = format!(".{}", extension.unwrap_or_default().to_lowercase());
        if !entry.extensions.contains_key(&extension) {
            return Err(format!(
                "sample: \"{}\" asks about {}, and extensions has no {extension}; add it, or \
                 choose another sample",
                sample.name, question.at.file
            ));
        }
    }
    Ok(())
}

/// Where serde's error belongs, and in our words.
fn unreadable(tree: &Located, path: &[&str], said: &str) -> (At, String) {
    let (at, here) = tree.follow(path.iter().copied());
    let quoted = |text: &str| {
        let (_, rest) = text.split_once('`')?;
        rest.split_once('`')
            .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
    };
    for (begin, what) in [("unknown field", "key"), ("unknown variant", "value")] {
        if said.starts_with(begin)
            && let Some((name, rest)) = quoted(said)
        {
            let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            let way_out = match data::nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("known here: {}", known.join(", ")),
            };
            // Of a key, the path may lead to its value already.
            let above = path.strip_suffix(&[name.as_str()]).unwrap_or(path);
            let (_, above) = tree.follow(above.iter().copied());
            let at = found(above, &name).or(found(here, &name)).unwrap_or(at);
            return (at, format!("unknown {what} \"{name}\"; {way_out}"));
        }
    }
    if said.starts_with("missing field")
        && let Some((name, _)) = quoted(said)
    {
        return (at, format!("the key \"{name}\" is missing"));
    }
    let key = path.join(".");
    let gap = if key.is_empty() { "" } else { ": " };
    (at, format!("{key}{gap}{said}"))
}

/// Where a key or a text is, in a value or right below it.
fn found(tree: &Located, name: &str) -> Option<At> {
    match &tree.node {
        Node::Scalar(Value::String(text)) => (text == name).then_some(tree.at),
        Node::Scalar(_) | Node::List(_) => None,
        Node::Map(fields) => fields.iter().find_map(|(key, at, value)| {
            let is_value = matches!(&value.node, Node::Scalar(Value::String(text)) if text == name);
            if key == name {
                Some(*at)
            } else {
                is_value.then_some(value.at)
            }
        }),
    }
}
