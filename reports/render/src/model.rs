//! The report as data. Field names are the JSON's, in camel case.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::baseline::Comparison;
use crate::conclusion::Conclusion;
use crate::measured::{Measured, Remedy};
use crate::verdict::{Level, Verdict};

/// The format's name and version, the value of [`Report::format`].
pub const FORMAT: &str = "dsh-conform-report/1";

/// What one invocation found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// Always [`FORMAT`]; a reader refuses anything else.
    pub format: String,
    /// What made the report.
    pub tool: Tool,
    /// Where it was made.
    pub platform: Platform,
    /// When, in RFC 3339 and UTC. Left out where the caller wants equal bytes for equal findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Whether the invocation was interrupted, so that the report is partial.
    #[serde(default)]
    pub interrupted: bool,
    /// Which part of the servers it is about, where they were divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
    /// One entry for each subject.
    pub runs: Vec<Run>,
}

/// The part of several servers that a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Division {
    /// The parts that are in the report.
    pub shards: Vec<Shard>,
    /// The servers that are in other parts.
    pub elsewhere: Vec<String>,
}

/// The program that made a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The machine, as far as results depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Platform {
    /// Operating system, `linux` for instance.
    pub os: String,
    /// Processor architecture, `x86_64` for instance.
    pub arch: String,
}

/// What was found about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// What the run was to find out.
    #[serde(default, skip_serializing_if = "RunKind::is_conformance")]
    pub kind: RunKind,
    /// Who was judged.
    pub subject: Subject,
    /// The profiles it was judged by.
    pub profiles: Vec<String>,
    /// The sample workspace that was asked about; absent where none has known answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The folder whose scenarios were run; absent where they were this program's own. What holds
    /// for others says nothing about the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The seed of what was random; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Which part of the cases was taken; absent where they were not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// How long each probe was allowed to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ms: Option<u64>,
    /// Wall time of the whole run, in microseconds.
    pub duration_us: u64,
    /// How much of a check was this program's own work and no waiting, in microseconds: laying out
    /// the workspace, driving, recording, judging. Taken around the whole check, from the
    /// workspace to the judged run: the processor time of all of this program meanwhile, system
    /// calls included, without that of the server. Where servers are checked side by side, work
    /// that they share counts for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_us: Option<u64>,
    /// The most resident memory of the server's process tree that was seen, in bytes: looked at
    /// four times a second, every two seconds for new processes. Pages that its processes share
    /// count for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// What follows from the cases.
    pub conclusion: Conclusion,
    /// What was judged, in the order in which it is shown.
    pub cases: Vec<Case>,
    /// How soon each operation gave true answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationTimeline>,
    /// What was measured of a server beside the clauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// How to mount the server so that it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// How it compares with what was accepted before; absent where it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Comparison>,
    /// The counts.
    pub totals: Totals,
    /// Every clause that belongs to such a run: judged by what, or not judged and why.
    pub coverage: Vec<ClauseCoverage>,
    /// Cases that were not run, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Entries of the subject's list of known failures, or of its baseline, that hold no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
    /// The transcript of the run, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The command that makes the run again, with every option that decides what it finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
    /// Things to know that no clause is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What the catalogue knows the server to do that surprises a client, whether or not this run
    /// saw it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surprises: Vec<Surprise>,
}

/// Something a client should expect of this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Surprise {
    /// What happens.
    pub what: String,
    /// What helps, where something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What a run is to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunKind {
    /// Whether the subject keeps the clauses.
    #[default]
    Conformance,
    /// Whether the scenarios notice a subject that breaks them. A case is a mutant: it passes when
    /// a scenario notices it, fails when none does, and is untestable when it did not come to be.
    Power,
}

impl RunKind {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature serde asks for"
    )]
    fn is_conformance(&self) -> bool {
        *self == Self::Conformance
    }
}

/// One part of a run that is divided into several.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shard {
    /// Which one, from 1.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Cases that were not run, all for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Skipped {
    /// Why.
    pub reason: SkipReason,
    /// Their ids.
    pub cases: Vec<String>,
}

/// Why a case was not run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipReason {
    /// It was not asked for: a filter, or a profile that was not chosen.
    NotSelected,
    /// It belongs to another part of a divided run.
    OtherShard,
    /// The run was interrupted before.
    Interrupted,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSelected => "not selected",
            Self::OtherShard => "in another shard",
            Self::Interrupted => "interrupted before",
        })
    }
}

/// An entry of a list of known failures that should be taken out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stale {
    /// The case, or the pattern that names cases.
    pub case: String,
    /// Why it should, and the way out.
    pub reason: String,
    /// Where it is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
}

/// Who was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// What kind of thing it is.
    pub kind: SubjectKind,
    /// The name it was asked for by.
    pub name: String,
    /// What it says its version is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The language that a server serves, as people write it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where the executable was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The command as it was started, program first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// What kind of subject was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SubjectKind {
    /// A language server.
    Server,
    /// A harness: the client side.
    Harness,
}

impl SubjectKind {
    /// Whether it is the client side that was judged.
    pub const fn is_harness(self) -> bool {
        matches!(self, Self::Harness)
    }
}

/// Where a server's executable was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// The first usable one on PATH.
    Path,
    /// The pinned one in the cache folder.
    Cache,
    /// Part of this program.
    BuiltIn,
    /// The command that the user gave.
    Command,
}

/// One thing that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Unique in its run. Of a probe: the clause, and what of it where several cases judge one
    /// clause. Of a scenario: its path in the suite, with the combination of its matrix. Of a
    /// mutant: its name.
    pub id: String,
    /// The part of the report it is shown in.
    pub group: String,
    /// What it judges.
    pub clauses: Vec<String>,
    /// The clauses its verdict is about, where it is not about all of them: those that were seen
    /// broken, or that could not be judged. May name a clause that no case is written for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// What has to hold, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
    /// The level of what it judges.
    pub level: Level,
    /// How it ended.
    pub verdict: Verdict,
    /// Whether it also hangs on how busy the machine is, so that a note may come and go with nothing
    /// changed. A baseline does not hold a note against such a case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// What of the clause is meant, an operation for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What was seen, in a few words.
    pub message: String,
    /// How long what was judged took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// What would have held; given with everything that is red, and with notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// The frames and events that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Where in which transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptRef>,
    /// The command that repeats exactly this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// A place in a file of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    /// The file, relative to where the run was started if it lies below.
    pub file: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// One event of a transcript, as it is quoted in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Evidence {
    /// The event's number in the transcript.
    pub seq: u64,
    /// Microseconds since the recording began.
    pub at_us: u64,
    /// The event in one line.
    pub text: String,
    /// Whether it is the event that the verdict rests on, and not one around it.
    #[serde(default)]
    pub decisive: bool,
}

/// A place in a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TranscriptRef {
    /// The file.
    pub path: String,
    /// The number of the event that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// How soon one operation gave true answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationTimeline {
    /// The operation's name.
    pub operation: String,
    /// When it was asked first. All times are in microseconds since the asking began; where the
    /// first question starts the server, its cold start is in them, for each operation alike.
    pub asked_us: u64,
    /// When the first right answer came; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_right_us: Option<u64>,
    /// When an answer was right for the third time running; absent if the budget ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_us: Option<u64>,
    /// How often it was asked.
    pub asked: u64,
    /// How long the last answer took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// Everything that came, in order, equal neighbours counted together.
    pub heard: Vec<Heard>,
}

/// A stretch of equal answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Heard {
    /// What it was: `right`, `[]`, `null`, `wrong place`, `partial 3/6`, `error -32801`, …
    pub answer: String,
    /// Whether it is the known answer.
    #[serde(default)]
    pub right: bool,
    /// How many times running.
    pub times: u64,
    /// When the first answer of the stretch came, in microseconds since the asking began.
    pub from_us: u64,
    /// When the last answer of the stretch came, in microseconds since the asking began.
    pub until_us: u64,
    /// More about the first of them: the place it named, or the error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The counts of a run. Clauses are counted once, however many cases judge them; those that are
/// not applicable are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Totals {
    /// Clauses of level MUST.
    pub must: Count,
    /// Clauses of level SHOULD.
    pub should: Count,
    /// The same by profile; a clause of several profiles counts in each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, ProfileTotals>,
    /// Cases by verdict, those that occur.
    pub cases: BTreeMap<Verdict, u64>,
}

/// The counts of one profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileTotals {
    /// Clauses of level MUST.
    pub must: Count,
    /// Clauses of level SHOULD.
    pub should: Count,
    /// Clauses that nothing judged.
    pub not_judged: u64,
}

/// How many of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Count {
    /// Clauses that hold.
    pub held: u64,
    /// Clauses that were judged.
    pub judged: u64,
}

/// A clause that belongs to what a subject is judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClauseRef {
    /// Its id.
    pub id: String,
    /// Its level.
    pub level: Level,
    /// The profiles it is part of.
    pub profiles: Vec<String>,
    /// What it states.
    pub statement: String,
    /// Why no case judges it in this run, if none does.
    pub not_run: String,
}

/// What judges a clause besides the cases that name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Clauses and rules that say the same or more: what is seen of them is seen of this one.
    pub see: Vec<String>,
    /// Monitors that look at every transcript: where a case was judged and they found nothing, the
    /// clause holds.
    pub monitors: Vec<String>,
}

/// What judged a clause, or why nothing did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClauseCoverage {
    /// The clause's id.
    pub clause: String,
    /// Its level.
    pub level: Level,
    /// The profiles it is part of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// What it states.
    pub statement: String,
    /// The heaviest verdict of the cases that judge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The cases that judge it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Clauses and rules that say the same or more, and by which it is judged too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see: Vec<String>,
    /// The monitors that look for it in every transcript.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<String>,
    /// Why none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
}

impl Case {
    /// A case without evidence yet.
    pub fn new(
        clause: &str,
        level: Level,
        group: &str,
        verdict: Verdict,
        message: impl Into<String>,
    ) -> Self {
        Self {
            id: clause.to_owned(),
            group: group.to_owned(),
            clauses: vec![clause.to_owned()],
            broken: Vec::new(),
            title: None,
            source: None,
            level,
            verdict,
            timed: false,
            label: None,
            message: message.into(),
            duration_us: None,
            expected: None,
            got: None,
            evidence: Vec::new(),
            transcript: None,
            reproduce: None,
        }
    }

    /// The clauses that its verdict is about.
    pub fn about(&self) -> &[String] {
        if self.broken.is_empty() {
            &self.clauses
        } else {
            &self.broken
        }
    }
}

impl Subject {
    /// A subject of which no more is known than its name.
    pub fn named(kind: SubjectKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            version: None,
            language: None,
            path: None,
            origin: None,
            command: Vec::new(),
        }
    }
}

impl Run {
    /// Whether the right answers to a server's questions are known: those of a sample are. Else it
    /// can only be told what was answered, and nothing that it was right.
    pub const fn knows_answers(&self) -> bool {
        self.sample.is_some()
    }

    /// A run in which nothing was judged yet.
    pub fn new(subject: Subject) -> Self {
        Self {
            kind: RunKind::Conformance,
            subject,
            profiles: Vec::new(),
            sample: None,
            suite: None,
            seed: None,
            shard: None,
            budget_ms: None,
            duration_us: 0,
            overhead_us: None,
            peak_memory: None,
            conclusion: Conclusion::Interrupted,
            cases: Vec::new(),
            operations: Vec::new(),
            measured: None,
            remedy: None,
            baseline: None,
            totals: Totals::default(),
            coverage: Vec::new(),
            skipped: Vec::new(),
            stale: Vec::new(),
            transcript: None,
            reproduce: None,
            remarks: Vec::new(),
            surprises: Vec::new(),
        }
    }

    /// Whether any case asks for somebody's attention.
    pub fn is_red(&self) -> bool {
        self.cases.iter().any(|case| case.verdict.is_red())
    }
}
