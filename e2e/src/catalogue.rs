//! The catalogue: which real language servers are known, how each is obtained and started, and
//! what it is known to do that surprises a client.
//!
//! Entries are data, one file a server under `servers/`, and are part of the binary. Nothing here
//! looks at the machine: finding and installing is [`crate::install`].

mod entry;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use crate::data::DataError;
pub(crate) use entry::INSTALL;
pub use entry::{
    CargoRecipe, Entry, EntryRemedy, Launch, NpmRecipe, PathRecipe, Platform, PypiRecipe, Recipe,
    RecipeKind, RustupRecipe, Surprise, SystemRecipe, VersionProbe, Versions,
};

/// All servers that are known by name.
#[derive(Debug, Clone)]
pub struct Catalogue {
    entries: Vec<Entry>,
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
        Ok(Self { entries })
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
