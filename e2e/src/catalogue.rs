//! The catalogue: which real language servers are known, how each is obtained and started, and
//! what it is known to do that surprises a client.
//!
//! Entries are data, one file a server under `servers/`, and are part of the binary. Nothing here
//! looks at the machine: finding and installing is [`crate::install`].

mod entry;
mod own;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use crate::data::{DataError, a_file};
use crate::samples::Sample;
pub(crate) use entry::INSTALL;
pub use entry::{
    CargoRecipe, Entry, EntryRemedy, Launch, NpmRecipe, PathRecipe, Platform, PypiRecipe, Recipe,
    RecipeKind, RustupRecipe, SystemRecipe, VersionProbe, Versions,
};
pub use own::{CONFIG, Opener, OwnFile};

/// All servers that are known by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Vec<Entry>,
    /// The samples of entries that are not part of this binary, by the entry's name.
    own: BTreeMap<String, Option<&'static Sample>>,
}

/// A name that is in no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no server named \"{name}\" in the catalogue; {hint}")]
pub struct UnknownServer {
    /// The name as typed.
    pub name: String,
    /// The nearest known name, if one is near.
    pub suggestion: Option<String>,
    hint: String,
}

impl Catalogue {
    /// The entries that are part of this binary.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Catalogue> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            Self::own().expect("a test reads every entry that is part of the binary")
        })
    }

    fn own() -> Result<Self, DataError> {
        let files = crate::embedded::SERVERS.all()?;
        let entries = files.iter().filter(|(path, _)| path.ends_with(".yaml"));
        Self::parse(entries.map(|(path, text)| (path.as_ref(), text.as_ref())))
    }

    /// Reads entries from (file name, text) pairs and checks them against each other.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DataError> {
        let mut entries: Vec<Entry> = Vec::new();
        for (origin, text) in files {
            let entry = Entry::parse(origin, text)?;
            if entries.iter().any(|known| known.name == entry.name) {
                let message = format!("a server named \"{}\" is there already", entry.name);
                return Err(DataError::whole(origin, message));
            }
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let own = BTreeMap::new();
        Ok(Self { entries, own })
    }

    /// The same with a user's own entries, which count more than those of their names: `layers`
    /// from the least to the most important, one for `dsh-conform.toml` and one for the files that
    /// were named, for instance. A name that is twice in one layer is an error.
    pub fn with(&self, layers: &[Vec<OwnFile>]) -> Result<Self, DataError> {
        own::merged(self, layers)
    }

    fn put(&mut self, entry: Entry, sample: Option<&'static Sample>) {
        self.own.insert(entry.name.clone(), sample);
        self.entries.retain(|known| known.name != entry.name);
        self.entries.push(entry);
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// The sample workspace that `entry`, one of this catalogue's, is asked about.
    pub fn sample_of(&self, entry: &Entry) -> Option<&'static Sample> {
        match self.own.get(&entry.name) {
            Some(sample) => *sample,
            None => crate::samples::sample(&entry.sample),
        }
    }

    /// Whether the entry of that name is a user's own.
    pub fn is_own(&self, name: &str) -> bool {
        self.own.contains_key(name)
    }

    /// All entries, by name.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that name; the error suggests the nearest one.
    pub fn entry(&self, name: &str) -> Result<&Entry, UnknownServer> {
        self.entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| {
                let names = self.entries.iter().map(|entry| entry.name.as_str());
                let suggestion = crate::data::nearest(name, names).map(str::to_owned);
                let hint = match &suggestion {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "see `dsh-conform list servers`".to_owned(),
                };
                UnknownServer {
                    name: name.to_owned(),
                    suggestion,
                    hint,
                }
            })
    }
}

/// The JSON Schema of an entry's file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Entry).to_value()
}
