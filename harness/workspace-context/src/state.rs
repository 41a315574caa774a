//! What is loaded, as the visible events of the log say it (INS-7, INS-14).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dsh_session::{Event, EventBody};

use crate::source::{Action, InstructionSource, Omission};

/// What the model can see of instructions. Made from typed sources alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    files: BTreeMap<PathBuf, Entry>,
    /// The layout of the last whole baseline that is visible.
    pub(crate) baseline: Option<String>,
    /// The layout of the last visible message.
    pub(crate) layout: Option<String>,
    /// What was named as left out.
    announced: BTreeSet<Omission>,
}

/// What is known of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The scope as logged.
    pub(crate) scope: String,
    /// SHA-1 of what is loaded; none for a tombstone (INS-8).
    pub(crate) loaded: Option<String>,
}

impl State {
    /// The state that a message leads to.
    pub(crate) fn add(&mut self, source: &InstructionSource) {
        for change in &source.changes {
            let loaded = match change.action {
                Action::Set | Action::Replace => Some(change.digest.clone().unwrap_or_default()),
                Action::Remove => None,
            };
            let entry = Entry {
                scope: change.scope.clone(),
                loaded,
            };
            self.files.insert(change.path.clone(), entry);
        }
        if !source.layout.is_empty() {
            self.layout = Some(source.layout.clone());
        }
        if source.baseline {
            self.baseline = Some(source.layout.clone());
        }
        self.announced.extend(source.omitted.iter().cloned());
    }

    /// The digest that is loaded of a file.
    pub(crate) fn loaded(&self, path: &Path) -> Option<&str> {
        self.files.get(path)?.loaded.as_deref()
    }

    /// Every file that a visible message speaks of.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&PathBuf, &Entry)> {
        self.files.iter()
    }

    /// Whether all of these were named as left out.
    pub(crate) fn has_announced(&self, omitted: &[Omission]) -> bool {
        omitted
            .iter()
            .all(|omission| self.announced.contains(omission))
    }
}

/// What an event says about instructions.
pub(crate) fn source_of(event: &Event) -> Option<InstructionSource> {
    match &event.body {
        EventBody::UserMessage { source, .. } => InstructionSource::of(source),
        _ => None,
    }
}
