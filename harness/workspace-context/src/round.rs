//! One look at the instruction files: what to probe, what to read, and what to tell (INS-5, INS-6,
//! INS-9, INS-13, INS-15). It does nothing itself: whoever drives it hands in what was found.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::digest::Digests;
use crate::layout::{Layout, Scope, in_order, shown_of_key};
use crate::reconcile::{Candidate, Delta, Fact, duplicates, reconcile};
use crate::render::{Section, SectionKind, render};
use crate::source::{Action, Change, InstructionSource, Omission};
use crate::state::State;

/// What a probe of one path told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// A regular file: its version, and its size where that is known.
    File { version: String, size: Option<u64> },
    /// Nothing, or no regular file: a confirmed absence.
    Absent,
    /// The provider could not tell.
    Failed,
}

/// What a read of one file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The whole text, and the version from before it was read.
    Text { text: String, version: String },
    /// It is gone, or no regular file any more.
    Absent,
    /// It failed, is too large, or is no text.
    Failed,
}

/// What is remembered of a file between two rounds: never its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cached {
    pub(crate) version: String,
    pub(crate) digests: Digests,
}

/// By path.
pub(crate) type Cache = HashMap<PathBuf, Cached>;

/// Why a round is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion<'a> {
    /// A file tool has touched these files (INS-5).
    Touch(&'a [PathBuf]),
    /// A loop instance begins, or has to compose its baseline again (INS-2, INS-15).
    Boundary,
}

/// Bounds of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of the message.
    pub(crate) max_bytes: usize,
    /// Bytes of a file.
    pub(crate) max_source_bytes: u64,
}

/// What a round comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) source: InstructionSource,
}

/// What comes of a round: something to tell, and what to remember.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) message: Option<Message>,
    /// What to remember of each file, or to forget.
    pub(crate) cache: Vec<(PathBuf, Option<Cached>)>,
}

struct Item {
    scope: Scope,
    loaded: Option<String>,
    fact: Option<Fact>,
    /// The version of what the fact is about.
    version: String,
    remembered: Option<Cached>,
    content: Option<String>,
}

/// One look.
pub(crate) struct Round<'a> {
    layout: &'a Layout,
    state: &'a State,
    limits: Limits,
    boundary: bool,
    items: Vec<Item>,
    /// Loaded files that the layout has no place for any more: path and scope.
    strays: Vec<(PathBuf, String)>,
}

impl<'a> Round<'a> {
    /// A round over the candidates that the occasion asks for. `known` are the files that were ever
    /// loaded, also those that compaction has hidden.
    pub(crate) fn new(
        occasion: Occasion<'_>,
        layout: &'a Layout,
        state: &'a State,
        known: impl Fn(&Path) -> bool,
        cache: &Cache,
        limits: Limits,
    ) -> Self {
        let mut strays = Vec::new();
        let mut scopes: Vec<Scope> = match occasion {
            Occasion::Touch(files) if !files.iter().any(|file| layout.is_inside(file)) => {
                let known = |scope: &&Scope| known(&scope.path);
                layout.chain.iter().filter(known).cloned().collect()
            }
            _ => layout.chain.clone(),
        };
        if let Occasion::Touch(files) = occasion {
            scopes.extend(files.iter().flat_map(|file| layout.below(file)));
        }
        for (path, entry) in state.files() {
            match layout.scope_at(path) {
                Some(scope) => scopes.push(scope),
                None if entry.loaded.is_some() => strays.push((path.clone(), entry.scope.clone())),
                None => {}
            }
        }
        let items = in_order(scopes)
            .into_iter()
            .map(|scope| Item {
                loaded: state.loaded(&scope.path).map(str::to_owned),
                remembered: cache.get(&scope.path).cloned(),
                scope,
                fact: None,
                version: String::new(),
                content: None,
            })
            .collect();
        Self {
            layout,
            state,
            limits,
            boundary: occasion == Occasion::Boundary,
            items,
            strays,
        }
    }

    /// The paths to look at, all at once.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let path = |item: &Item| item.scope.path.clone();
        self.items.iter().map(path).collect()
    }

    /// What is at [`paths`](Self::paths), in their order. A path that is not told of counts as one
    /// that could not be looked at.
    pub(crate) fn probed(&mut self, probes: Vec<Probe>) {
        let mut probes = probes.into_iter();
        for item in &mut self.items {
            let last = item
                .remembered
                .as_ref()
                .map(|cached| cached.digests.clone());
            item.fact = match probes.next().unwrap_or(Probe::Failed) {
                Probe::Absent => Some(Fact::Absent),
                Probe::Failed => Some(Fact::Unavailable(last)),
                Probe::File { size, .. } if size > Some(self.limits.max_source_bytes) => {
                    Some(Fact::Unavailable(last))
                }
                Probe::File { version, .. } => {
                    item.version = version;
                    let cached = item.remembered.as_ref();
                    cached
                        .filter(|cached| cached.version == item.version)
                        .map(|cached| Fact::Present(cached.digests.clone()))
                }
            };
        }
    }

    /// The files to read next; none when everything is known that has to be told of (INS-6). Ask
    /// again when they were read.
    pub(crate) fn wanted(&self) -> Vec<(usize, PathBuf)> {
        let numbered = || self.items.iter().enumerate();
        let path = |(index, item): (usize, &Item)| (index, item.scope.path.clone());
        let unread: Vec<_> = numbered()
            .filter(|(_, item)| item.fact.is_none())
            .map(path)
            .collect();
        if !unread.is_empty() {
            return unread;
        }
        numbered()
            .zip(self.kinds())
            .filter(|((_, item), kind)| shows_content(*kind) && item.content.is_none())
            .map(|(numbered, _)| path(numbered))
            .collect()
    }

    /// What reading a [`wanted`](Self::wanted) file gave.
    pub(crate) fn was_read(&mut self, wanted: usize, read: Read) {
        let item = &mut self.items[wanted];
        item.fact = Some(match read {
            Read::Text { text, version } => {
                let digests = Digests::of(&text);
                item.version = version;
                item.content = Some(text);
                Fact::Present(digests)
            }
            Read::Absent => Fact::Absent,
            Read::Failed => {
                let last = item.remembered.as_ref();
                Fact::Unavailable(last.map(|cached| cached.digests.clone()))
            }
        });
    }

    /// What to tell and to remember.
    pub(crate) fn finish(mut self) -> Outcome {
        let kinds = self.kinds();
        let whole = self.is_whole();
        let mut entries: Vec<Told> = Vec::new();
        for (item, kind) in self.items.iter_mut().zip(&kinds) {
            let Some(kind) = *kind else { continue };
            let digest = match (&item.fact, kind) {
                (Some(Fact::Present(digests)), kind) if kind != SectionKind::Removed => {
                    Some(digests.raw.clone())
                }
                _ => None,
            };
            let content = item.content.take().filter(|_| digest.is_some());
            entries.push(Told {
                section: Section {
                    kind,
                    shown: item.scope.shown.clone(),
                    area: item.scope.area.clone(),
                    content: content.unwrap_or_default(),
                },
                change: Change {
                    action: action(kind),
                    scope: item.scope.key(),
                    path: item.scope.path.clone(),
                    digest,
                },
            });
        }
        if self.boundary {
            entries.extend(
                self.strays
                    .iter()
                    .map(|(path, scope)| Told::stray(path, scope)),
            );
        }
        let message = self.message(whole, entries);
        let told: HashSet<&PathBuf> = message
            .iter()
            .flat_map(|message| &message.source.changes)
            .map(|change| &change.path)
            .collect();
        let cache = self
            .items
            .iter()
            .zip(&kinds)
            .filter_map(|(item, kind)| {
                let remembered = match &item.fact {
                    Some(Fact::Unavailable(_)) | None => return None,
                    Some(Fact::Present(digests))
                        if kind.is_none() || told.contains(&item.scope.path) =>
                    {
                        Some(Cached {
                            version: item.version.clone(),
                            digests: digests.clone(),
                        })
                    }
                    _ => None,
                };
                (remembered != item.remembered).then(|| (item.scope.path.clone(), remembered))
            })
            .collect();
        Outcome { message, cache }
    }

    fn message(&self, whole: bool, entries: Vec<Told>) -> Option<Message> {
        let (sections, changes): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .map(|told| (told.section, told.change))
            .unzip();
        let rendered = render(&sections, whole, self.limits.max_bytes)?;
        let mut source = InstructionSource {
            baseline: whole,
            layout: self.layout.fingerprint.clone(),
            ..InstructionSource::default()
        };
        for (change, shown) in changes.into_iter().zip(rendered.shown) {
            if shown {
                source.changes.push(change);
            } else {
                let Change { path, digest, .. } = change;
                source.omitted.push(Omission { path, digest });
            }
        }
        // What can only be named is named once.
        let repeats =
            !whole && source.changes.is_empty() && self.state.has_announced(&source.omitted);
        (!repeats).then_some(Message {
            text: rendered.text,
            source,
        })
    }

    /// How each item is told of. Facts that are not known yet count as nothing to tell.
    fn kinds(&self) -> Vec<Option<SectionKind>> {
        let whole = self.is_whole();
        let candidates = self.candidates();
        let duplicates = duplicates(&candidates);
        let deltas = reconcile(&candidates);
        self.items
            .iter()
            .zip(deltas)
            .zip(duplicates)
            .map(|((item, delta), duplicate)| {
                let in_chain = whole && self.layout.chain.contains(&item.scope);
                match (delta, &item.fact) {
                    (Delta::Remove, _) => Some(SectionKind::Removed),
                    (_, Some(Fact::Present(_))) if in_chain && !duplicate => {
                        Some(SectionKind::Listed)
                    }
                    (Delta::Add, _) => Some(SectionKind::Added),
                    (Delta::Update, _) => Some(SectionKind::Updated),
                    (Delta::Keep, _) => None,
                }
            })
            .collect()
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        self.items
            .iter()
            .map(|item| Candidate {
                scope: &item.scope,
                loaded: item.loaded.as_deref(),
                fact: item.fact.as_ref().unwrap_or(&Fact::Unavailable(None)),
            })
            .collect()
    }

    /// Whether a whole baseline is due: at a boundary, where none of this layout is visible and what
    /// is visible does not say the same (INS-15, INS-22).
    fn is_whole(&self) -> bool {
        if !self.boundary {
            return false;
        }
        let layout = Some(&self.layout.fingerprint);
        let latest = self.state.layout.as_ref();
        let fresh = latest.is_none();
        if latest == layout && self.state.baseline.as_ref() == layout {
            return false;
        }
        let quiet = self.strays.is_empty()
            && reconcile(&self.candidates())
                .iter()
                .all(|delta| *delta == Delta::Keep);
        !(quiet && (fresh || latest == layout))
    }
}

/// One file of a message, with what is recorded of it.
struct Told {
    section: Section,
    change: Change,
}

impl Told {
    fn stray(path: &Path, scope: &str) -> Self {
        Self {
            section: Section {
                kind: SectionKind::Removed,
                shown: shown_of_key(scope).to_owned(),
                area: String::new(),
                content: String::new(),
            },
            change: Change {
                action: Action::Remove,
                scope: scope.to_owned(),
                path: path.to_path_buf(),
                digest: None,
            },
        }
    }
}

const fn shows_content(kind: Option<SectionKind>) -> bool {
    matches!(
        kind,
        Some(SectionKind::Listed | SectionKind::Added | SectionKind::Updated)
    )
}

const fn action(kind: SectionKind) -> Action {
    match kind {
        SectionKind::Listed | SectionKind::Added => Action::Set,
        SectionKind::Updated => Action::Replace,
        SectionKind::Removed => Action::Remove,
    }
}
