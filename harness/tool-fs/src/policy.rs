//! The read-before-write policy (RUN-10).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_fs::{FsObserved, Observation};
use dsh_kernel::{Context, Plugin, PluginError, ServiceKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::guard::{Known, WriteGuard};

/// Most observations that are remembered. When there are more, the older half is forgotten, and
/// those files have to be read again.
const MAX_REMEMBERED: usize = 65_536;

/// The policy's row has no keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadBeforeWriteConfig {}

/// Lets a session write a file only if it has read it and it has not changed since; what it wrote
/// itself counts as read, and a file that does not exist may be made.
///
/// It remembers what `fs/observed` tells, for each session apart and by the file's identity: one that
/// was read through a link is known under its own name, and the other way round. A window of a file
/// that was read counts as the file, also for `write`: a model that replaces a whole file of which it
/// saw a part has been shown how much there is. Calls without a session share what they know. Nothing
/// is kept over a restart.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadBeforeWritePlugin;

impl ReadBeforeWritePlugin {
    /// The policy.
    pub fn new(_config: ReadBeforeWriteConfig) -> Self {
        Self
    }
}

#[async_trait]
impl Plugin for ReadBeforeWritePlugin {
    fn name(&self) -> &'static str {
        "dsh-read-before-write-policy"
    }

    fn provides(&self) -> Vec<ServiceKey> {
        vec![ServiceKey::of::<dyn WriteGuard>()]
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        let ledger = Arc::new(Ledger::default());
        let recorder = Arc::clone(&ledger);
        ctx.on::<FsObserved>(move |observed| recorder.record(observed));
        ctx.provide::<dyn WriteGuard>(ledger)
    }
}

#[derive(Default)]
struct Ledger(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    /// How many observations were made so far.
    count: u64,
    sessions: HashMap<Option<String>, HashMap<PathBuf, (u64, Known)>>,
    remembered: usize,
}

impl Ledger {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Each entry is whole at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, observed: &FsObserved) {
        let known = match &observed.observation {
            Observation::Present { version } => Known::Version(version.clone()),
            Observation::Absent => Known::Absent,
        };
        self.memory()
            .record(observed.session.clone(), observed.identity.clone(), known);
    }
}

impl Memory {
    fn record(&mut self, session: Option<String>, path: PathBuf, known: Known) {
        self.count += 1;
        let files = self.sessions.entry(session).or_default();
        if files.insert(path, (self.count, known)).is_none() {
            self.remembered += 1;
        }
        if self.remembered > MAX_REMEMBERED {
            self.forget_the_older_half();
        }
    }

    fn forget_the_older_half(&mut self) {
        let mut ages: Vec<u64> = self
            .sessions
            .values()
            .flat_map(|files| files.values().map(|(age, _)| *age))
            .collect();
        let middle = ages.len() / 2;
        let (_, oldest_kept, _) = ages.select_nth_unstable(middle);
        let oldest_kept = *oldest_kept;
        self.sessions.retain(|_, files| {
            files.retain(|_, (age, _)| *age >= oldest_kept);
            !files.is_empty()
        });
        self.remembered = self.sessions.values().map(HashMap::len).sum();
    }
}

impl WriteGuard for Ledger {
    fn known(&self, session: Option<&str>, identity: &Path) -> Known {
        let memory = self.memory();
        let files = memory.sessions.get(&session.map(str::to_owned));
        files
            .and_then(|files| files.get(identity))
            .map_or(Known::Nothing, |(_, known)| known.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_fs::FsVersion;

    /// RUN-10: two sessions know apart, and the last observation counts.
    #[test]
    fn sessions_know_apart() {
        let ledger = Ledger::default();
        let version = Known::Version(FsVersion::new("1"));
        let session = |name: &str| Some(name.to_owned());
        ledger
            .memory()
            .record(session("a"), "/f".into(), Known::Absent);
        ledger
            .memory()
            .record(session("a"), "/f".into(), version.clone());
        ledger.memory().record(None, "/g".into(), Known::Absent);
        assert_eq!(ledger.known(Some("a"), Path::new("/f")), version);
        assert_eq!(ledger.known(Some("b"), Path::new("/f")), Known::Nothing);
        assert_eq!(ledger.known(None, Path::new("/f")), Known::Nothing);
        assert_eq!(ledger.known(None, Path::new("/g")), Known::Absent);
    }

    /// RUN-10: memory is bounded, and what is forgotten counts as not read.
    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut memory = Memory::default();
        for number in 0..=MAX_REMEMBERED {
            memory.record(None, format!("/{number}").into(), Known::Absent);
        }
        assert!(memory.remembered <= MAX_REMEMBERED / 2 + 1);
        let ledger = Ledger(Mutex::new(memory));
        assert_eq!(ledger.known(None, Path::new("/0")), Known::Nothing);
        let last = format!("/{MAX_REMEMBERED}");
        assert_eq!(ledger.known(None, Path::new(&last)), Known::Absent);
    }
}
