//! The second start of a server: in a workspace of its own, for everything that would disturb what
//! is judged of an orderly life.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::lsp::{LspService, QueryResult};
use dsh_transcript::{Direction, EventBody, Recorder};

use super::{Check, Findings, Step, cycles, disturb, is_settled, questions};
use crate::ask::{self, Question, Seam};
use crate::judge::Asked;
use crate::probes::Phase;
use crate::readiness::End;
use crate::samples::{LaidOut, Operation, Sample};
use crate::snapshot::Snapshot;

use super::workspace::Place;

/// The operation that is asked over and over: the first that works. Definitions are what every
/// server knows, references and implementations may grow with the workspace.
const PREFERRED: [Operation; 4] = [
    Operation::GoToDefinition,
    Operation::Hover,
    Operation::FindReferences,
    Operation::GoToImplementation,
];

/// How long the close of the last document of many may be on its way.
const CLOSING: Duration = Duration::from_secs(1);

/// What the stretches of a second start share.
pub(super) struct Second<'a> {
    pub(super) lsp: &'a dyn LspService,
    pub(super) recorder: &'a Recorder,
    pub(super) root: &'a str,
    pub(super) cancel: &'a Cancel,
    pub(super) relative: &'a (dyn Fn(&str) -> Option<String> + Sync),
    pub(super) watch: &'a (dyn Fn(Step) + Sync),
    pub(super) budget: Duration,
    /// `killGraceMs`.
    pub(super) grace: Duration,
    pub(super) rounds: usize,
    /// The operations that had no right answer in the first start.
    pub(super) doubtful: Vec<Operation>,
    /// The first event of this start.
    pub(super) from: u64,
    /// Of the files that the host opens for the server.
    pub(super) extensions: &'a BTreeMap<String, String>,
}

/// A question that the server is known to answer.
pub(super) struct Subject<'a> {
    asked: Asked,
    put: Question<'a>,
    /// What it answered steadily: what it has to answer again, where no answer is known.
    reference: Option<QueryResult>,
}

impl<'a> Subject<'a> {
    pub(super) fn question(&self) -> Question<'a> {
        self.put.clone()
    }

    pub(super) fn reference(&self) -> Option<QueryResult> {
        self.reference.clone()
    }

    pub(super) fn place(&self) -> String {
        self.asked.place.clone()
    }

    /// The question, not yet asked.
    pub(super) fn anew(&self, budget: Duration) -> Asked {
        let mut asked = self.asked.clone();
        asked.track = asked.track.anew(budget);
        asked
    }
}

impl Second<'_> {
    /// Whether the host opens that file for the server.
    pub(super) fn opens(&self, file: &str) -> bool {
        Path::new(file)
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|extension| {
                let extension = format!(".{}", extension.to_lowercase());
                self.extensions.contains_key(&extension)
            })
    }

    /// The seam, to be asked without a word to whoever watches.
    pub(super) fn seam(&self) -> Seam<'_> {
        Seam {
            lsp: self.lsp,
            recorder: self.recorder,
            root: self.root,
            cancel: self.cancel,
            relative: self.relative,
            questions: Vec::new(),
            last: Vec::new(),
            reference: None,
            initialized: None,
            watch: &|_| (),
        }
    }

    /// The process that runs now, by its number and by its id.
    pub(super) fn leader(&self) -> Option<(u32, u32)> {
        self.recorder.look(self.from, |events| {
            // What began it stands in front of what ended it, so one look from behind is enough.
            let mut ended = BTreeSet::new();
            events
                .iter()
                .rev()
                .find_map(|event| match event.body {
                    EventBody::ProcessEnded { .. } => {
                        ended.extend(event.process);
                        None
                    }
                    EventBody::ProcessStarted { pid, .. } => Some((event.process?, pid)),
                    _ => None,
                })
                .filter(|(process, _)| !ended.contains(process))
        })
    }

    /// Records that a file of the workspace was changed by us.
    pub(super) fn wrote(&self, file: &str, change: &str) {
        let (path, change) = (file.to_owned(), change.to_owned());
        self.recorder
            .emit(None, EventBody::FileChanged { path, change });
    }

    /// Asks one question until it is decided.
    pub(super) async fn decide(&self, seam: &mut Seam<'_>, asked: &mut Asked) {
        let mut tracks = [(asked.operation, &mut asked.track)];
        ask::rounds(seam, &mut tracks).await;
    }

    /// Waits for the close of the document that was opened last; gives the end of the stretch that
    /// began at `seqs.start`.
    pub(super) async fn closed(&self, seqs: &std::ops::Range<u64>) -> u64 {
        let mut news = self.recorder.subscribe_from(seqs.start);
        let mut open = 0_i64;
        let balanced = async {
            loop {
                while let Some(event) = news.try_next() {
                    open += i64::from(event.is_message(Direction::ToServer, "didOpen"));
                    open -= i64::from(event.is_message(Direction::ToServer, "didClose"));
                }
                if open <= 0 {
                    return;
                }
                let event = news.next().await;
                open += i64::from(event.is_message(Direction::ToServer, "didOpen"));
                open -= i64::from(event.is_message(Direction::ToServer, "didClose"));
            }
        };
        // A document that is never closed is what is looked for, so that this may not come.
        let _never_closed = tokio::time::timeout(CLOSING, balanced).await;
        self.recorder.len()
    }
}

impl Check<'_> {
    /// Starts the server again in `place`, and does what would disturb an orderly life.
    pub(super) async fn second(
        &self,
        lsp: &dyn LspService,
        place: &Place<'_>,
        allowed: &mut Snapshot,
        findings: &mut Findings,
    ) {
        let relative = |uri: &str| place.relative(uri);
        let second = Second {
            lsp,
            recorder: &self.recorder,
            root: place.root(),
            cancel: self.cancel,
            relative: &relative,
            watch: self.watch,
            budget: self.options.budget,
            grace: Duration::from_millis(self.limits().kill_grace_ms),
            rounds: self.options.rounds,
            doubtful: Operation::ALL
                .into_iter()
                .filter(|operation| {
                    self.phases.answers() && !is_settled(&findings.questions, *operation)
                })
                .collect(),
            from: self.recorder.len(),
            extensions: &self.target.extensions,
        };
        let subjects = self.subjects(place, findings);
        let subject = match self.warm(&second, subjects, place).await {
            Ok(subject) => subject,
            Err(reason) => {
                findings.life.absent = Some(reason);
                return;
            }
        };
        let sample = match place {
            Place::Sample {
                sample, laid_out, ..
            } => Some((*sample, laid_out)),
            _ => None,
        };
        if let Err(error) = self
            .disturb(&second, &subject, sample, allowed, findings)
            .await
        {
            let said = format!("the second workspace could not be changed: {error}");
            findings.remarks.push(said);
        }
    }

    async fn disturb(
        &self,
        second: &Second<'_>,
        subject: &Subject<'_>,
        sample: Option<(&'static Sample, &LaidOut<'static>)>,
        allowed: &mut Snapshot,
        findings: &mut Findings,
    ) -> Result<(), std::io::Error> {
        let has = |phase| self.phases.has(phase) && !self.cancel.is_cancelled();
        let life = &mut findings.life;
        if has(Phase::Cycles) {
            life.rounds.push(cycles::same_text(second, subject).await);
        }
        if has(Phase::Cycles) && sample.is_some() {
            let rounds = cycles::changed_text(second, subject, allowed).await?;
            life.rounds.push(rounds);
        }
        if has(Phase::Cancellation) {
            (self.watch)(Step::GivingUp);
            disturb::give_up(second, subject).await;
        }
        if has(Phase::ChangedOnDisk)
            && let Some((sample, laid_out)) = sample
        {
            disturb::change(second, sample, laid_out, allowed, life).await?;
        }
        if has(Phase::Cycles) && sample.is_some() {
            let rounds = cycles::many_files(second, subject, allowed).await?;
            life.rounds.push(rounds);
        }
        if has(Phase::Kill) {
            (self.watch)(Step::Killing);
            disturb::kill(second, subject, life).await;
        }
        Ok(())
    }

    /// The questions that may be asked over and over, the preferred one first. Where the first
    /// start has shown which are answered, only those.
    fn subjects<'b>(&self, place: &'b Place<'_>, findings: &Findings) -> Vec<Subject<'b>> {
        let budget = self.options.budget;
        let (asked, put) = match place {
            Place::Sample { sample, .. } => questions::all_of(&sample.questions, budget),
            Place::Given { at, .. } => questions::at_all(at, budget),
            Place::Found { found, .. } => {
                questions::at_all(found.at.get(..1).unwrap_or_default(), budget)
            }
            Place::Bare { .. } => return Vec::new(),
        };
        let stable = |asked: &Asked| {
            !self.phases.answers()
                || findings.questions.iter().any(|decided| {
                    decided.label == asked.label && decided.track.end() == Some(&End::Stable)
                })
        };
        let mut subjects: Vec<Subject<'b>> = asked
            .into_iter()
            .zip(put)
            .map(|(asked, put)| Subject {
                asked,
                put,
                reference: None,
            })
            .filter(|subject| stable(&subject.asked))
            .collect();
        subjects.sort_by_key(|subject| {
            PREFERRED
                .iter()
                .position(|operation| *operation == subject.asked.operation)
        });
        subjects
    }

    /// Asks until one of the questions is answered steadily.
    async fn warm<'b>(
        &self,
        second: &Second<'_>,
        subjects: Vec<Subject<'b>>,
        place: &Place<'_>,
    ) -> Result<Subject<'b>, String> {
        for mut subject in subjects {
            (self.watch)(Step::StartingAgain(subject.asked.operation));
            let mut asked = subject.anew(self.options.budget);
            let mut seam = second.seam();
            seam.take(vec![subject.question()]);
            second.decide(&mut seam, &mut asked).await;
            if asked.track.end() == Some(&End::Stable) {
                subject.reference.clone_from(&seam.last[0]);
                return Ok(subject);
            }
            if self.cancel.is_cancelled() || seam.initialized.is_none() {
                break;
            }
        }
        Err(super::none_to_go_on_with(place).to_owned())
    }
}

/// Ends when so much time has passed.
pub(super) fn in_time(limit: Duration) -> tokio::time::Sleep {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bound is what a person chose to wait"
    )]
    tokio::time::sleep(limit)
}
