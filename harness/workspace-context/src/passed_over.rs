//! Instruction files that are there and are not used: what is told of them to people.

use std::collections::HashSet;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dsh_fs::FsError;
use dsh_kernel::{Event, EventBus};

/// The most that is told in the life of a plugin: a tree may hold any number of such files.
const MOST: usize = 256;

/// `instructions/passed-over`: a file stands where instructions are looked for and is not used
/// (INS-9, INS-10, INS-13). The model is not told; whoever wrote the file should be. Told once of
/// each file and reason while the plugin is mounted. [`Display`](fmt::Display) gives one line that
/// names the file and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionsPassedOver {
    /// The file.
    pub path: PathBuf,
    /// Why it is not used.
    pub reason: PassedOver,
}

/// Why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassedOver {
    /// It has more bytes than `maxSourceBytes`.
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It is not UTF-8.
    NotUtf8,
    /// It holds NUL bytes.
    Binary,
    /// It is no regular file but something else, by name: `directory`, `FIFO`, …
    NotAFile(&'static str),
    /// It could not be looked at or read.
    Unreadable(String),
}

impl Event for InstructionsPassedOver {
    const NAME: &'static str = "instructions/passed-over";
}

impl fmt::Display for InstructionsPassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quoted, so that no name moves a cursor.
        let path = self.path.to_string_lossy();
        write!(f, "instructions {path:?} are passed over: ")?;
        match &self.reason {
            PassedOver::TooLarge { limit } => write!(
                f,
                "more than {limit} bytes; shorten the file, or raise maxSourceBytes of \
                 dsh-workspace-context"
            ),
            PassedOver::NotUtf8 => f.write_str("not UTF-8 text; save the file as UTF-8"),
            PassedOver::Binary => f.write_str("NUL bytes in it; write text into the file"),
            PassedOver::NotAFile(kind) => {
                write!(f, "a {kind} and no regular file; put a file in its place")
            }
            PassedOver::Unreadable(why) => write!(
                f,
                "it cannot be read ({why}); look at its permissions and those above it"
            ),
        }
    }
}

/// Tells of each file once.
pub(crate) struct Teller {
    events: EventBus,
    told: Mutex<HashSet<(PathBuf, Discriminant<PassedOver>)>>,
}

impl Teller {
    pub(crate) fn new(events: EventBus) -> Self {
        Self {
            events,
            told: Mutex::default(),
        }
    }

    pub(crate) fn tell(&self, path: &Path, reason: PassedOver) {
        {
            // An insertion is whole or was not made.
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let new = told.len() < MOST && told.insert((path.to_owned(), discriminant(&reason)));
            if !new {
                return;
            }
        }
        let path = path.to_owned();
        self.events.emit(&InstructionsPassedOver { path, reason });
    }
}

/// What a failure is to people; the way out of too large a file is this plugin's own.
pub(crate) fn reason(error: &FsError) -> PassedOver {
    match error {
        FsError::TooLarge { limit, .. } => PassedOver::TooLarge { limit: *limit },
        error => PassedOver::Unreadable(error.to_string()),
    }
}
