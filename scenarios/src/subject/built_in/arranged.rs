//! What stands between the harness and this machine: gates, faults and counters around the file
//! system and the processes, so that a case can stop the harness in the middle of a look-up.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dsh_harness::kernel::{Cancel, CancelReason};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What can be held up, counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Look {
    /// Looking a workspace up.
    Workspace,
    /// Reading a source.
    Source,
    /// Looking an executable up, while the host loads.
    Executable,
    /// Starting a process.
    Spawn,
    /// Resolving a path of the tools for files, or of the instructions.
    Resolve,
    /// Looking what is at such a path; several paths at once are one look.
    Stat,
    /// Reading the content there.
    Read,
    /// Writing it.
    Write,
    /// The model, before it answers.
    Model,
    /// A tool, before it does anything.
    Tool,
    /// A tool, when it has done everything and nobody has seen its result.
    ToolResult,
    /// A step, before it is decided whether it is entered.
    Step,
}

impl Look {
    const ALL: [Self; 12] = [
        Self::Workspace,
        Self::Source,
        Self::Executable,
        Self::Spawn,
        Self::Resolve,
        Self::Stat,
        Self::Read,
        Self::Write,
        Self::Model,
        Self::Tool,
        Self::ToolResult,
        Self::Step,
    ];
}

/// Why an operation fails that was arranged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// Nothing is there.
    Missing,
    /// The system refuses.
    Inaccessible,
}

/// An operation that was arranged to fail.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) what: Look,
    /// What it is about as the harness was given it; none for whatever it is.
    pub(super) path: Option<String>,
    pub(super) kind: FaultKind,
    /// How often it still fails; none for every time.
    pub(super) times: Option<u64>,
}

/// How often the harness looked, what was held up, and what it gave up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Looks {
    counts: BTreeMap<Look, u64>,
    held: BTreeMap<Look, u64>,
    /// Looks that were held up when their caller gave them up.
    cancelled: u64,
}

impl Looks {
    /// How often it was looked.
    pub(super) fn count(&self, what: Look) -> u64 {
        self.counts.get(&what).copied().unwrap_or_default()
    }

    /// How many of them were held up, those that went on included.
    pub(super) fn held(&self, what: Look) -> u64 {
        self.held.get(&what).copied().unwrap_or_default()
    }

    /// How many of them were given up.
    pub(super) const fn given_up(&self) -> u64 {
        self.cancelled
    }

    /// As `file_looks` tells it.
    pub(super) fn told(&self) -> Value {
        let mut told = json!({"cancelled": self.cancelled});
        for look in Look::ALL {
            let name = json!(look);
            told[name.as_str().unwrap_or_default()] = self.count(look).into();
        }
        told
    }
}

/// A gate: those that arrive while it holds wait for the next opening.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    holds: bool,
    /// How many it still holds; none for all that come.
    next: Option<u64>,
}

/// Everything that was arranged for one mount.
#[derive(Default)]
pub(super) struct Arranged {
    gates: Mutex<BTreeMap<Look, Gate>>,
    faults: Mutex<Vec<Fault>>,
    /// How often each gate was opened.
    openings: watch::Sender<BTreeMap<Look, u64>>,
    looks: watch::Sender<Looks>,
    other_world: Mutex<bool>,
    no_files: Mutex<bool>,
}

impl Arranged {
    /// Holds up what comes from now on: all, or only the `next` so many.
    pub(super) fn hold(&self, what: Look, next: Option<u64>) {
        lock(&self.gates).insert(what, Gate { holds: true, next });
    }

    /// Lets everything of a kind go on, or of every kind.
    pub(super) fn release(&self, what: Option<Look>) {
        let opened = what.map_or_else(|| Look::ALL.to_vec(), |what| vec![what]);
        let mut gates = lock(&self.gates);
        for look in &opened {
            gates.remove(look);
        }
        // Under the lock, so that who arrives either sees the open gate or waits for this opening.
        self.openings.send_modify(|openings| {
            for look in opened {
                *openings.entry(look).or_default() += 1;
            }
        });
    }

    /// Makes an operation fail.
    pub(super) fn fail(&self, fault: Fault) {
        lock(&self.faults).push(fault);
    }

    /// Says that the files are of another world than the processes.
    pub(super) fn separate_worlds(&self) {
        *lock(&self.other_world) = true;
    }

    /// Whether the files are of another world than the processes.
    pub(super) fn worlds_differ(&self) -> bool {
        *lock(&self.other_world)
    }

    /// Says whether the next mount has files.
    pub(super) fn without_files(&self, without: bool) {
        *lock(&self.no_files) = without;
    }

    /// Whether the next mount has no files.
    pub(super) fn has_no_files(&self) -> bool {
        *lock(&self.no_files)
    }

    /// How often it was looked so far.
    pub(super) fn looks(&self) -> Looks {
        self.looks.borrow().clone()
    }

    /// Waits until the looks are so.
    pub(super) async fn looked(&self, enough: impl Fn(&Looks) -> bool) -> Looks {
        let mut looks = self.looks.subscribe();
        match looks.wait_for(|looks| enough(looks)).await {
            Ok(looks) => looks.clone(),
            // The sender is `self`.
            Err(_) => self.looks(),
        }
    }

    /// Counts, waits at the gate, and says what to fail with.
    pub(super) async fn pass(
        &self,
        what: Look,
        path: &str,
        cancel: &Cancel,
    ) -> Result<Option<FaultKind>, CancelReason> {
        self.gate(what, cancel).await?;
        Ok(self.fault(what, path))
    }

    /// Counts, and waits at the gate.
    pub(super) async fn gate(&self, what: Look, cancel: &Cancel) -> Result<(), CancelReason> {
        let opening = {
            let mut gates = lock(&self.gates);
            let held = gates.get_mut(&what).is_some_and(Gate::takes);
            held.then(|| {
                let openings = self.openings.subscribe();
                let before = openings.borrow().get(&what).copied().unwrap_or_default();
                (openings, before)
            })
        };
        let held = GivenUp {
            arranged: self,
            armed: opening.is_some(),
        };
        let is_held = held.armed;
        self.looks.send_modify(|looks| {
            *looks.counts.entry(what).or_default() += 1;
            if is_held {
                *looks.held.entry(what).or_default() += 1;
            }
        });
        if let Some((mut openings, before)) = opening {
            let opened = openings
                .wait_for(|openings| openings.get(&what).is_some_and(|count| *count > before));
            tokio::select! {
                biased;
                reason = cancel.cancelled() => return Err(reason),
                _ = opened => {}
            }
        }
        held.disarm();
        Ok(())
    }

    /// What an operation was arranged to fail with; counted.
    pub(super) fn fault(&self, what: Look, path: &str) -> Option<FaultKind> {
        let mut faults = lock(&self.faults);
        let meant = |fault: &Fault| {
            fault.what == what && fault.path.as_deref().is_none_or(|meant| meant == path)
        };
        let at = faults.iter().position(meant)?;
        let kind = faults[at].kind;
        if let Some(times) = &mut faults[at].times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                faults.remove(at);
            }
        }
        Some(kind)
    }
}

impl Gate {
    /// Whether one more is held.
    fn takes(&mut self) -> bool {
        match &mut self.next {
            _ if !self.holds => false,
            None => true,
            Some(0) => false,
            Some(next) => {
                *next -= 1;
                true
            }
        }
    }
}

/// Counts a look that was held up and is no longer waited for, however its caller left it.
struct GivenUp<'a> {
    arranged: &'a Arranged,
    armed: bool,
}

impl GivenUp<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.arranged
                .looks
                .send_modify(|looks| looks.cancelled += 1);
        }
    }
}

/// The lock, also after a panic of another holder: what is guarded here is whole at any moment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
