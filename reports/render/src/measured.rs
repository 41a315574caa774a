//! What was measured of a server beside the clauses: how soon it tells the truth, what many
//! questions do to it, how it ends, what it needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Heard, OperationTimeline, Run};

/// What was measured of a server. Times are in microseconds, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Measured {
    /// How soon it gave true answers, one entry a start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Start>,
    /// Many rounds of opening, asking and closing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Cycles>,
    /// How it took each way a client may behave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub personas: Vec<Persona>,
    /// Which text it answers from while a document is open, and after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Overlay>,
    /// What came on stdout and stderr, one entry a start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<Output>,
    /// How it ended, by each way to end it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Ending>,
    /// What it answered to odd requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// What it did to the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<Written>,
}

impl Measured {
    /// Whether there is more than what judging a server took: something that only a driver without
    /// the host finds out.
    pub(crate) fn goes_beyond(&self) -> bool {
        self.starts.len() > 1
            || !self.personas.is_empty()
            || self.overlay.is_some()
            || !self.output.is_empty()
            || !self.edges.is_empty()
    }
}

/// Since when the answers were right and stayed so, where they did: the right answer that none but
/// right ones came behind.
pub(crate) fn steady_us(timeline: &OperationTimeline) -> Option<u64> {
    timeline.stable_us?;
    let last = timeline.heard.last().filter(|heard| heard.right)?;
    Some(last.from_us)
}

/// How soon a server is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready<'a> {
    /// So long after a cold start, in microseconds, every question is answered rightly, and goes on
    /// to be.
    After(u64),
    /// This operation was never answered rightly for good.
    Never(&'a str),
    /// Nothing was asked, or what is right is not known.
    Unknown,
}

impl<'a> Ready<'a> {
    /// From a cold start that was followed; from what the host was answered where none was.
    pub(crate) fn of(run: &'a Run) -> Self {
        if !run.knows_answers() {
            return Self::Unknown;
        }
        let starts = run.measured.iter().flat_map(|measured| &measured.starts);
        let cold = starts.clone().find(|start| start.kind == StartKind::Cold);
        let operations = cold.map_or(run.operations.as_slice(), |start| &start.operations);
        let mut last = None;
        for operation in operations.iter().filter(|operation| operation.asked > 0) {
            match steady_us(operation) {
                Some(at) => last = last.max(Some(at)),
                None => return Self::Never(&operation.operation),
            }
        }
        last.map_or(Self::Unknown, Self::After)
    }
}

/// The most memory that was seen of the whole process tree.
pub(crate) fn most_memory(run: &Run) -> Option<u64> {
    let cycles = run.measured.iter().flat_map(|measured| &measured.cycles);
    let after = cycles.filter_map(|cycles| cycles.memory_before.max(cycles.memory_after));
    after.chain(run.peak_memory).max()
}

/// One start of the server, followed until its answers held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// Whether anything was there from a start before.
    pub kind: StartKind,
    /// From the start of the process to the answer to `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialized_us: Option<u64>,
    /// Each operation's answers from the first moment on. Times count from the start of the
    /// process.
    pub operations: Vec<OperationTimeline>,
    /// What it sent that could mean that it is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// What an author of a client has to know, in a sentence.
    pub summary: String,
}

/// What a start found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartKind {
    /// A new workspace and an empty folder for caches.
    Cold,
    /// The workspace and the caches that an earlier start left.
    Warm,
}

/// Something a server sent that could mean that it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signal {
    /// What: `$/progress end (Indexing)`, the method of a notification of its own.
    pub name: String,
    /// When, from the start of the process.
    pub at_us: u64,
    /// Whether every answer after it was right; absent where nothing was asked after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
}

/// Many rounds of open, question, close, on one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cycles {
    /// What was opened.
    pub kind: CyclesKind,
    /// The question.
    pub operation: String,
    /// How many rounds were made.
    pub rounds: u64,
    /// How many of them were answered otherwise than the question's known answer, or not at all. Of
    /// copies that are no part of the program, where no answer is known, only the latter count.
    pub wrong: u64,
    /// What came instead, equal neighbours counted together; times count from the first round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
    /// Half of the rounds took no longer.
    pub p50_us: u64,
    /// Nineteen in twenty took no longer.
    pub p95_us: u64,
    /// The longest round.
    pub max_us: u64,
    /// Each round in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_us: Vec<u64>,
    /// Resident memory of the whole process tree before the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before: Option<u64>,
    /// The same behind the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after: Option<u64>,
    /// Documents that were opened and not closed.
    #[serde(default)]
    pub left_open: u64,
}

/// What the rounds opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CyclesKind {
    /// One file, the same text.
    SameText,
    /// One file, another text every time.
    ChangedText,
    /// A hundred files.
    ManyFiles,
}

/// How [`Persona::detail`] begins to say that a way is called fine although questions were not answered
/// rightly in it, since they are not in the usual way either.
pub const NO_WORSE: &str = "no worse than the usual way";

/// A way for a client to behave, and what the server made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Persona {
    /// The client's way: `requests-refused`, `configuration-empty`, `shutdown-params-null`, …
    pub name: String,
    /// What the client does, in a sentence.
    pub summary: String,
    /// What came of it.
    pub outcome: PersonaOutcome,
    /// More about it: the answer, the exit, the line of stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// From the start of the process to the first right answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_right_us: Option<u64>,
}

/// What a server made of a client's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PersonaOutcome {
    /// Its answers are right, and it ends in order.
    Fine,
    /// It answers, and not rightly.
    Wrong,
    /// It does not answer.
    Silent,
    /// It dies.
    Dead,
    /// It answers rightly, and does not end in order.
    DoesNotEnd,
    /// It asked for nothing of the kind, so there was nothing to see.
    NotAsked,
}

/// Which text a server answers from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overlay {
    /// While a document is open whose text differs from the disk.
    pub open: TextSource,
    /// After it was closed again.
    pub closed: TextSource,
}

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TextSource {
    /// The text of `didOpen`.
    Opened,
    /// The file.
    Disk,
    /// Neither answer came.
    Neither,
}

/// What came out of one start, from the first byte to the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// Which start.
    pub kind: StartKind,
    /// Whole frames on stdout.
    pub frames: u64,
    /// Bytes on stdout.
    pub stdout_bytes: u64,
    /// Bytes on stdout that belong to no frame.
    pub stray_bytes: u64,
    /// Bytes on stderr.
    pub stderr_bytes: u64,
}

/// One way to end a server, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ending {
    /// The way: `shutdown`, `stdin-closed`, `sigterm`, `sigkill`.
    pub way: String,
    /// How long the process took to end; absent where it had to be killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Processes it had started that were still there behind its end.
    #[serde(default)]
    pub left: u64,
    /// What those are called, each name once: also of those that had gone into a session of their
    /// own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_names: Vec<String>,
    /// From the kill to the next right answer, of a replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_us: Option<u64>,
}

/// An odd request, and what came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edge {
    /// What was asked: `position-past-end-of-line`, `unknown-request`, …
    pub name: String,
    /// What came: `null`, `[]`, `error -32601`, `no answer`, `the server died`.
    pub answer: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether a usual question was answered behind it as it was before: rightly, where that came at
    /// all.
    pub alive: bool,
}

/// A change in the workspace that the server made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Written {
    /// The file or folder, relative to the workspace.
    pub path: String,
    /// What was done to it: `added`, `changed`, `removed`.
    pub change: String,
}

/// How to mount the server so that it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Remedy {
    /// The row of a deployment: what stands under the server's name in `servers`.
    pub row: serde_json::Value,
    /// The settings of it that a MUST or a SHOULD hangs on, with what they help against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// `timeoutMs` for the tool, from the measured readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Remedy {
    /// The settings that were seen to be needed.
    pub fn needed(&self) -> impl Iterator<Item = &Setting> {
        let needed = |setting: &&Setting| !setting.clauses.is_empty();
        self.settings.iter().filter(needed)
    }
}

/// A setting of the host that changes what a server does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setting {
    /// As it is written: `configuration: {}`.
    pub name: String,
    /// What it helps against.
    pub against: String,
    /// The clauses that hold with it and do not without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
}
