//! Running scenarios against subjects.
//!
//! [`run_case`] carries out one case: it prepares a folder, opens a control channel, has the
//! subject mount, takes the steps, collects what was started, and judges. [`run`] does so for many
//! at a time. Nothing here waits for time to pass; a budget for each case turns a hang into a
//! verdict.

mod checks;
mod drive;
mod fill;
mod folder;
mod judge;
mod known;
mod left;
mod many;
mod mount;
mod outcome;
pub(crate) mod place;
mod redact;
mod requests;
mod stage;
mod trace;

use std::path::PathBuf;
use std::time::Duration;

use dsh_reports::Verdict;
use dsh_transcript::Event;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Profile;
use crate::subject::CallError;

pub use drive::run_case;
pub use folder::{FolderError, RunFolder};
pub use known::{Known, KnownError, Stale, Staleness, SubjectFile};
pub use many::{Observer, Summary, run};

/// What became of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case: `cancel/ignored`, or `results/shapes#link-hover` of a matrix.
    pub id: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Why, in one line; empty where it passed.
    pub message: String,
    /// What had to be.
    pub expected: Option<String>,
    /// What was.
    pub got: Option<String>,
    /// The clauses that were seen broken, or that could not be judged.
    pub clauses: Vec<String>,
    /// The clauses of monitors whose subject matter occurred in the transcript.
    pub watched: Vec<&'static str>,
    /// The position in the transcript of the event the verdict rests on.
    pub decisive: Option<u64>,
    /// How long it took.
    pub duration: Duration,
    /// The transcript; kept where the verdict is red, or where it was asked for.
    pub transcript: Vec<Event>,
    /// Rendered texts by the name of their step, for snapshots.
    pub snapshots: Vec<(String, String)>,
    /// Its folder with the workspace, where it was kept.
    pub folder: Option<PathBuf>,
}

impl CaseResult {
    /// A result without anything seen: no evidence, no transcript, no time.
    pub fn bare(id: impl Into<String>, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            verdict,
            message: message.into(),
            expected: None,
            got: None,
            clauses: Vec::new(),
            watched: Vec::new(),
            decisive: None,
            duration: Duration::ZERO,
            transcript: Vec::new(),
            snapshots: Vec::new(),
            folder: None,
        }
    }
}

/// A case that was carried out.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What became of it.
    pub result: CaseResult,
    /// Whether the subject can be used again: nothing of the case is left in it.
    pub sound: bool,
    /// Whether the run was ended before the case was, so that the result says nothing.
    pub interrupted: bool,
}

/// What all cases of a run share.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A program that is the fake server when it is started with [`Setup::subcommand`].
    pub executable: PathBuf,
    /// The argument that makes it one.
    pub subcommand: String,
    /// `PATH` of the harness under test.
    pub path: String,
    /// Where the folders of cases are made.
    pub temp: PathBuf,
    /// Whether the harness is somebody else's: rules of the project's own policy are then no more
    /// than notes.
    pub foreign: bool,
    /// The profiles the subject is held to; none for all it says it keeps.
    pub profiles: Option<Vec<Profile>>,
    /// How long a case may take.
    pub budget: Budget,
    /// What scenarios draw at random follows from it: `${seed}`.
    pub seed: u64,
    /// Whether transcripts of cases that are not red are kept too.
    pub keep_transcripts: bool,
    /// Whether the folders of cases that are red are kept, and with them [`Setup::temp`] if it is
    /// the folder of a run.
    pub keep_folders: bool,
    /// Ends the run: cases that have begun are cut short and cleaned up.
    pub cancel: CancellationToken,
}

impl Setup {
    /// The usual one: the own harness, the usual budgets, transcripts of red cases only.
    pub fn new(executable: impl Into<PathBuf>, temp: impl Into<PathBuf>) -> Self {
        Self {
            executable: executable.into(),
            subcommand: "fake-lsp".to_owned(),
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            temp: temp.into(),
            foreign: false,
            profiles: None,
            budget: Budget::default(),
            seed: 0,
            keep_transcripts: false,
            keep_folders: false,
            cancel: CancellationToken::new(),
        }
    }
}

/// How long a case may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Where the scenario says nothing.
    pub usual: Duration,
    /// No case gets more than this, where not everything is worth waiting for.
    pub most: Option<Duration>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            usual: Duration::from_secs(10),
            most: None,
        }
    }
}

impl Budget {
    /// The budget of a case that asks for so many milliseconds, or for nothing.
    fn of(&self, asked_ms: Option<u64>) -> Duration {
        let asked = asked_ms.map_or(self.usual, Duration::from_millis);
        self.most.map_or(asked, |most| asked.min(most))
    }
}

/// Something that tampers with a run, to see whether anybody notices.
pub trait Tampering: Send + Sync {
    /// The command by which a server is started, program first, in place of `argv`.
    fn command(&self, argv: Vec<String>) -> Vec<String>;

    /// The params of a request to the subject; none swallows the request, and the answer is then
    /// an empty success.
    fn request(&self, method: &str, params: Value) -> Option<Value>;

    /// The answer to a request to the subject.
    fn outcome(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError>;

    /// Whether a cancellation is passed on.
    fn cancels(&self) -> bool;
}
