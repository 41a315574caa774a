//! The judgement of the probes: pure functions of what was recorded.
//!
//! Each clause has a function that reads the transcript (and, for the known answers, the tracks of
//! the questions) and gives cases. Nothing here waits, asks or touches a process, so every clause
//! is tested on transcripts that must pass and on transcripts that must fail.

mod answers;
mod cycles;
mod end;
mod further;
mod handshake;
mod second;
#[cfg(test)]
mod tests;
mod unknown;
mod wire;
#[cfg(test)]
pub(crate) mod wiretap;
mod written;

use dsh_reports::{Case, Verdict};
use dsh_transcript::{Event, EventBody, View};
use serde_json::Value;

use crate::evidence;
use crate::life::Life;
use crate::probes::Probe;
use crate::readiness::Track;
use crate::samples::{Operation, Part, Sample};
use crate::snapshot::Difference;

pub(crate) use second::replaced_us;
pub(crate) use unknown::said_something;

pub(crate) use handshake::{Handshake, advertised, method, sync_is_compatible};

/// What is known about the right answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The sample workspace has known answers.
    Known,
    /// Positions were given, their answers are not known: judged for shape.
    Shape,
    /// Positions were found, their answers are not known: only their shape is judged.
    Found,
    /// Nothing is known.
    Nothing,
}

/// One question and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    /// The operation, numbered where it is asked at several places.
    pub(crate) label: String,
    /// Where it was asked: `file:line:column`.
    pub(crate) place: String,
    /// The known answer, for people.
    pub(crate) expected: String,
    /// The changed file, where the question is about a changed text.
    pub(crate) reopened: Option<String>,
    pub(crate) track: Track,
}

/// Everything a judgement may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// The first start.
    pub(crate) events: &'a [Event],
    /// Everything, the second start too.
    pub(crate) whole: &'a [Event],
    pub(crate) knowledge: Knowledge,
    /// The sample, which gives the reason for what it does not ask.
    pub(crate) sample: Option<&'a Sample>,
    /// The questions about the sample as it is.
    pub(crate) questions: &'a [Asked],
    /// The questions about changed texts.
    pub(crate) reopened: &'a [Asked],
    /// The questions behind characters outside the basic plane.
    pub(crate) columns: &'a [Asked],
    /// The questions in and about odd paths.
    pub(crate) paths: &'a [Asked],
    /// The second start.
    pub(crate) life: &'a Life,
    /// What the server did to its workspaces.
    pub(crate) written: &'a Difference,
    /// Whether the server is given settings, so that null is never its answer.
    pub(crate) configured: bool,
    /// Whether a document that is opened again has the next version, and not 1.
    pub(crate) rising: bool,
    /// How long a probe may wait, in microseconds.
    pub(crate) budget_us: u64,
    /// Whether it is a trial of settings, with a budget of its own.
    pub(crate) trial: bool,
    /// `killGraceMs`, in microseconds.
    pub(crate) grace_us: u64,
}

impl<'a> Observed<'a> {
    pub(crate) fn view(&self) -> View<'a> {
        View(self.events)
    }

    /// The time that a probe has, as it is told that it ended.
    fn budget(&self) -> String {
        let time = dsh_reports::duration(self.budget_us);
        if self.trial {
            format!("the {time} of a trial")
        } else {
            format!("the budget of {time}")
        }
    }

    /// The same, as it is told that something did not come within it.
    fn limit(&self) -> String {
        let time = dsh_reports::duration(self.budget_us);
        if self.trial {
            format!("the {time} of a trial")
        } else {
            time
        }
    }

    /// The first process's handshake; none if no process was started or nothing was asked of it.
    fn handshake(&self) -> Option<Handshake<'a>> {
        handshake::first(View(self.whole))
    }

    /// The result of `initialize`, or the case that says that there is none to read.
    fn initialized(&self, probe: &Probe) -> Result<Value, Box<Case>> {
        let untestable = |said| Err(Box::new(probe.case(Verdict::Untestable, said)));
        match self.handshake().and_then(|handshake| handshake.result) {
            Some(result) if result["capabilities"].is_object() => Ok(result),
            Some(_) => untestable("the initialize result has no capabilities"),
            None => match self.too_long() {
                Some(said) => Err(Box::new(probe.case(Verdict::Untestable, said))),
                None => untestable("initialize was not answered"),
            },
        }
    }

    /// What to say of an answer to `initialize` that came and was not kept whole: a bound of ours.
    fn too_long(&self) -> Option<String> {
        let answer = self.handshake()?.answer?.frame()?;
        answer.cut.as_ref()?;
        Some(format!(
            "the answer to initialize has {} bytes, and of one message {} are kept: a bound of this \
             instrument, so that it was not judged",
            answer.size,
            crate::check::KEPT
        ))
    }

    /// What the second start was seen doing, or the case that says that there is nothing to see.
    fn second(&self, probe: &Probe) -> Result<&'a Life, Box<Case>> {
        self.initialized(probe)?;
        if let Some(reason) = &self.life.absent {
            let verdict = if self.knowledge == Knowledge::Nothing {
                Verdict::NotApplicable
            } else {
                Verdict::Untestable
            };
            return Err(Box::new(probe.case(verdict, reason.as_str())));
        }
        Ok(self.life)
    }

    /// What is missing in the sample, with the reason that the sample gives.
    fn lacking(&self, part: Part, said: &str) -> String {
        match self.sample.and_then(|sample| sample.reason(part)) {
            Some(reason) => format!("{said}: {}", reason.trim_end_matches('.')),
            None => said.to_owned(),
        }
    }

    /// The host's own words on the first question that failed.
    fn first_failure(&self) -> Option<String> {
        first_failure(self.events)
    }

    fn around(&self, seq: u64) -> Vec<dsh_reports::Evidence> {
        evidence::around(self.whole, seq)
    }
}

/// The host's own words on the first question that failed.
pub(crate) fn first_failure(events: &[Event]) -> Option<String> {
    events.iter().find_map(|event| match &event.body {
        EventBody::Result {
            ok: false, value, ..
        } => value["message"].as_str().map(str::to_owned),
        _ => None,
    })
}

/// Judges one probe; several cases where the clause has several parts.
pub(crate) fn judge(probe: &Probe, seen: &Observed<'_>) -> Vec<Case> {
    match probe.clause {
        "QUA-1" => vec![handshake::answered(probe, seen)],
        "QUA-2" => vec![handshake::encoding(probe, seen)],
        "QUA-3" => vec![handshake::synchronization(probe, seen)],
        "QUA-11" => vec![handshake::operations(probe, seen)],
        "QUA-4" => answers::known(probe, seen),
        "QUA-5" => answers::reopened(probe, seen),
        "QUA-6" => vec![wire::purity(probe, seen)],
        "QUA-7" => vec![wire::shapes(probe, seen)],
        "QUA-17" => vec![wire::unconfigured(probe, seen)],
        "QUA-8" => vec![end::leaves(probe, seen)],
        "QUA-9" => vec![end::exit_code(probe, seen)],
        "QUA-10" => second::given_up(probe, seen),
        "QUA-12" => further::columns(probe, seen),
        "QUA-13" => further::paths(probe, seen),
        "QUA-14" => further::complete(probe, seen),
        "QUA-15" => cycles::lasting(probe, seen),
        "QUA-16" => second::replaced(probe, seen),
        "QUA-18" => second::changed(probe, seen),
        "QUA-19" => vec![written::left_alone(probe, seen)],
        other => vec![probe.case(Verdict::HarnessError, format!("{other} has no judgement"))],
    }
}

/// `1 frame`, `2 frames`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// How a process ended, with the end of what it wrote to stderr.
fn obituary(events: &[Event], process: u32) -> Option<(u64, String)> {
    let own = || {
        events
            .iter()
            .filter(move |event| event.process == Some(process))
    };
    let (seq, mut text) = own().find_map(|event| match &event.body {
        EventBody::ProcessEnded { code, signal } => {
            Some((event.seq, evidence::exit(*code, *signal)))
        }
        _ => None,
    })?;
    let stderr = own().find_map(|event| match &event.body {
        EventBody::Stderr { text } => Some(text.lossy().into_owned()),
        _ => None,
    });
    let last = stderr.as_deref().and_then(telling_line);
    if let Some(last) = last {
        text.push_str(", stderr: ");
        text.push_str(&evidence::quote(last));
    }
    Some((seq, text))
}

/// The line of a stderr tail that tells most: the last that speaks of an error, else the last.
pub(crate) fn telling_line(stderr: &str) -> Option<&str> {
    let lines = || {
        stderr
            .lines()
            .rev()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    lines()
        .find(|line| line.to_lowercase().contains("error"))
        .or_else(|| lines().next())
}
