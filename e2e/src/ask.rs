//! Asking the questions through the seam, one after the other, until each is decided.

use std::time::Duration;

use async_trait::async_trait;
use dsh_harness::kernel::Cancel;
use dsh_harness::lsp::{self, LspError, LspService, QueryRequest, QueryResult};
use dsh_transcript::{Direction, EventBody, Recorder, View, monotonic_us};
use serde_json::{Value, json};

use crate::judge::{advertised, sync_is_compatible};
use crate::outcome;
use crate::readiness::{Pauses, Reply, Track};
use crate::samples::{Answer, Operation, Position};

/// What the rounds of questions need from outside: somebody to ask, a clock, and a way to wait.
#[async_trait]
pub(crate) trait Field: Send {
    /// Microseconds since the recording began.
    fn now_us(&self) -> u64;
    /// Whether the operation can be asked; none while that is not known.
    fn can_ask(&mut self, operation: Operation) -> Option<bool>;
    /// Asks the question at `index` for at most `budget`; none if it was given up from outside.
    async fn ask(&mut self, index: usize, budget: Duration) -> Option<Reply>;
    /// Waits; false if the wait was given up from outside.
    async fn pause(&mut self, pause: Duration) -> bool;
}

/// Asks all questions in turn, with a growing pause behind each round, until every track has
/// ended. Gives up at once when asked to from outside, and where no process can be initialized.
pub(crate) async fn rounds(field: &mut dyn Field, tracks: &mut [(Operation, &mut Track)]) {
    let mut pauses = Pauses::default();
    let began = field.now_us();
    for (_, track) in tracks.iter_mut() {
        track.begin(began);
    }
    loop {
        let mut open = false;
        for (index, (operation, track)) in tracks.iter_mut().enumerate() {
            if track.end().is_some() || field.can_ask(*operation) == Some(false) {
                continue;
            }
            let Some(reply) = field.ask(index, track.left()).await else {
                return;
            };
            match field.can_ask(*operation) {
                // The handshake failed, and would fail again: what was recorded tells why.
                None => return,
                // What the first answer of all brought to light.
                Some(false) => continue,
                Some(true) => {}
            }
            let took = Duration::from_micros(reply.latency_us);
            track.observe(field.now_us(), reply);
            track.spend(took);
            open |= track.end().is_none();
        }
        let pause = pauses.next();
        if !open || !field.pause(pause).await {
            return;
        }
        for (_, track) in tracks.iter_mut().filter(|(_, track)| track.end().is_none()) {
            track.spend(pause);
        }
    }
}

/// A question as it is put to the seam.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) operation: Operation,
    /// Relative to the workspace, or absolute.
    pub(crate) file: String,
    pub(crate) position: Position,
    /// The known answer; without one, the same answer again is taken for right.
    pub(crate) known: Option<&'a Answer>,
}

/// The seam, recorded.
pub(crate) struct Seam<'a> {
    pub(crate) lsp: &'a dyn LspService,
    pub(crate) recorder: &'a Recorder,
    pub(crate) root: &'a str,
    pub(crate) cancel: &'a Cancel,
    /// A URI's path inside the workspace.
    pub(crate) relative: &'a (dyn Fn(&str) -> Option<String> + Sync),
    pub(crate) questions: Vec<Question<'a>>,
    /// The last answer to each question.
    pub(crate) last: Vec<Option<QueryResult>>,
    /// What an answer has to equal where none is known; the one before it, without this.
    pub(crate) reference: Option<QueryResult>,
    /// The result of `initialize`, once it is there.
    pub(crate) initialized: Option<Value>,
    pub(crate) watch: &'a (dyn Fn(Operation) + Sync),
}

impl<'a> Seam<'a> {
    /// Puts `questions` in the place of those before.
    pub(crate) fn take(&mut self, questions: Vec<Question<'a>>) {
        self.last = questions.iter().map(|_| None).collect();
        self.questions = questions;
    }

    async fn query(
        &self,
        question: &Question<'_>,
        budget: Duration,
    ) -> Result<QueryResult, LspError> {
        let request = request(question, self.root);
        lsp::deadline(budget, self.cancel, |cancel| async move {
            self.lsp.query(request, &cancel).await
        })
        .await
    }

    /// The last answer on the wire to a request of this kind, from position `from` on.
    fn raw_result(&self, from: u64, operation: Operation) -> Option<Value> {
        let events = self.recorder.events_from(from);
        let view = View(&events);
        view.processes()
            .into_iter()
            .flat_map(|process| view.exchanges(process, Direction::ToServer))
            .filter(|exchange| exchange.method() == crate::judge::method(operation))
            .last()
            .and_then(|exchange| exchange.result())
    }

    fn look_for_initialize(&mut self) {
        if self.initialized.is_none() {
            // The exchange stands among the first events: the rest is not copied for it.
            self.initialized = self.recorder.look(0, |events| {
                let view = View(events);
                view.processes()
                    .into_iter()
                    .flat_map(|process| view.exchanges(process, Direction::ToServer))
                    .filter(|exchange| exchange.method() == "initialize")
                    .find_map(|exchange| exchange.result())
            });
        }
    }
}

#[async_trait]
impl Field for Seam<'_> {
    fn now_us(&self) -> u64 {
        monotonic_us().saturating_sub(self.recorder.origin_us())
    }

    fn can_ask(&mut self, operation: Operation) -> Option<bool> {
        self.look_for_initialize();
        let result = self.initialized.as_ref()?;
        Some(sync_is_compatible(result) && advertised(result, operation))
    }

    async fn ask(&mut self, index: usize, budget: Duration) -> Option<Reply> {
        let question = self.questions[index].clone();
        (self.watch)(question.operation);
        let call = format!("q{}", self.recorder.len());
        let from = self.recorder.emit(
            None,
            EventBody::Call {
                call: call.clone(),
                name: question.operation.name().to_owned(),
                arguments: json!({
                    "filePath": question.file,
                    "position": {
                        "line": question.position.line,
                        "character": question.position.character,
                    },
                }),
            },
        );
        let asked = self.now_us();
        let outcome = self.query(&question, budget).await;
        let latency_us = self.now_us().saturating_sub(asked);
        let value = match &outcome {
            Ok(result) => serde_json::to_value(result).unwrap_or_default(),
            Err(error) => json!({"code": error.code(), "message": error.to_string()}),
        };
        let seq = self.recorder.emit(
            None,
            EventBody::Result {
                call,
                ok: outcome.is_ok(),
                value,
            },
        );
        let valued = if let Some(known) = question.known {
            let raw = self.raw_result(from, question.operation);
            outcome::against_known(&outcome, known, self.relative, raw.as_ref())
        } else {
            let same = self.reference.as_ref().or(self.last[index].as_ref());
            outcome::against_last(&outcome, same)
        };
        self.last[index] = outcome.ok();
        let (answer, detail) = valued?;
        Some(Reply {
            answer,
            detail,
            latency_us,
            seq,
        })
    }

    async fn pause(&mut self, pause: Duration) -> bool {
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing tells when a server is ready, so questions are asked again after a pause"
        )]
        let over = tokio::time::sleep(pause);
        tokio::select! {
            () = over => true,
            _ = self.cancel.cancelled() => false,
        }
    }
}

/// The question as the seam takes it.
pub(crate) fn request(question: &Question<'_>, root: &str) -> QueryRequest {
    QueryRequest {
        operation: seam_operation(question.operation),
        file_path: question.file.clone(),
        position: lsp::Position {
            line: question.position.line.into(),
            character: question.position.character.into(),
        },
        workspace_root: root.to_owned(),
    }
}

const fn seam_operation(operation: Operation) -> lsp::Operation {
    match operation {
        Operation::GoToDefinition => lsp::Operation::GoToDefinition,
        Operation::FindReferences => lsp::Operation::FindReferences,
        Operation::GoToImplementation => lsp::Operation::GoToImplementation,
        Operation::Hover => lsp::Operation::Hover,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::{Answer as Heard, End};

    /// Answers from a list, on a clock that only moves when somebody waits or asks.
    struct Scripted {
        now_us: u64,
        answers: Vec<Vec<Heard>>,
        advertised: Option<Vec<Operation>>,
        initializes: bool,
        asked: Vec<usize>,
        pauses: Vec<u64>,
        give_up_after: Option<usize>,
    }

    impl Scripted {
        fn new(answers: Vec<Vec<Heard>>) -> Self {
            Self {
                now_us: 0,
                answers,
                advertised: None,
                initializes: true,
                asked: Vec::new(),
                pauses: Vec::new(),
                give_up_after: None,
            }
        }
    }

    #[async_trait]
    impl Field for Scripted {
        fn now_us(&self) -> u64 {
            self.now_us
        }

        fn can_ask(&mut self, operation: Operation) -> Option<bool> {
            let known = !self.asked.is_empty() && self.initializes;
            known.then(|| {
                self.advertised
                    .as_ref()
                    .is_none_or(|all| all.contains(&operation))
            })
        }

        async fn ask(&mut self, index: usize, budget: Duration) -> Option<Reply> {
            self.asked.push(index);
            if self.give_up_after == Some(self.asked.len()) {
                return None;
            }
            let answer = if self.answers[index].len() > 1 {
                self.answers[index].remove(0)
            } else {
                self.answers[index][0].clone()
            };
            let latency_us = if answer == Heard::Silent {
                u64::try_from(budget.as_micros()).unwrap()
            } else {
                1_000
            };
            self.now_us += latency_us;
            Some(Reply {
                answer,
                detail: None,
                latency_us,
                seq: 0,
            })
        }

        async fn pause(&mut self, pause: Duration) -> bool {
            self.pauses.push(u64::try_from(pause.as_millis()).unwrap());
            self.now_us += u64::try_from(pause.as_micros()).unwrap();
            true
        }
    }

    const BUDGET: Duration = Duration::from_secs(2);

    async fn run(field: &mut Scripted, operations: &[Operation]) -> Vec<Track> {
        let mut tracks: Vec<Track> = operations
            .iter()
            .map(|operation| Track::new(operation.name(), BUDGET))
            .collect();
        let mut pairs: Vec<(Operation, &mut Track)> =
            operations.iter().copied().zip(tracks.iter_mut()).collect();
        rounds(field, &mut pairs).await;
        tracks
    }

    #[tokio::test]
    async fn questions_are_asked_in_turn_until_each_is_stable() {
        let empty = Heard::Other("[]".to_owned());
        let mut field = Scripted::new(vec![
            vec![empty.clone(), empty, Heard::Right],
            vec![Heard::Right],
        ]);
        let tracks = run(&mut field, &[Operation::GoToDefinition, Operation::Hover]).await;
        assert_eq!(field.asked, [0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(field.pauses, [20, 40, 80, 160]);
        assert!(tracks.iter().all(|track| track.end() == Some(&End::Stable)));
    }

    #[tokio::test]
    async fn the_budget_of_each_question_ends_by_itself() {
        let mut field = Scripted::new(vec![
            vec![Heard::Silent],
            vec![Heard::Other("null".to_owned())],
        ]);
        let tracks = run(&mut field, &[Operation::GoToDefinition, Operation::Hover]).await;
        assert_eq!(tracks[0].end(), Some(&End::Budget));
        assert_eq!(tracks[0].summary(), "1 × no answer");
        assert_eq!(tracks[1].end(), Some(&End::Budget));
        // 1 ms an answer, pauses of 20, 40, 80, 160, 320, 500, 500 ms, then 380 ms are left.
        assert_eq!(tracks[1].summary(), "8 × null");
    }

    #[tokio::test]
    async fn what_is_not_advertised_is_not_asked() {
        let mut field = Scripted::new(vec![vec![Heard::Right], vec![Heard::Right]]);
        field.advertised = Some(vec![Operation::GoToDefinition]);
        let tracks = run(&mut field, &[Operation::GoToDefinition, Operation::Hover]).await;
        assert_eq!(field.asked, [0, 0, 0]);
        assert_eq!(tracks[1].end(), None);
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_initialized_is_asked_once() {
        let mut field = Scripted::new(vec![vec![Heard::Died("exit code 1".to_owned())]; 2]);
        field.initializes = false;
        run(&mut field, &[Operation::GoToDefinition, Operation::Hover]).await;
        assert_eq!(field.asked, [0]);
    }

    #[tokio::test]
    async fn giving_up_from_outside_ends_at_once_and_decides_nothing() {
        let mut field = Scripted::new(vec![vec![Heard::Right], vec![Heard::Right]]);
        field.give_up_after = Some(2);
        let tracks = run(&mut field, &[Operation::GoToDefinition, Operation::Hover]).await;
        assert_eq!(field.asked, [0, 1]);
        assert!(tracks.iter().all(|track| track.end().is_none()));
    }
}
