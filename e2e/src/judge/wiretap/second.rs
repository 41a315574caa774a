//! A server's second start, made by hand like the first.

use std::time::Duration;

use dsh_reports::CyclesKind;
use dsh_transcript::{Direction, EventBody, Member, Termination};
use serde_json::{Value, json};

use super::{FILE, Story, Tape, asked};
use crate::evidence::KILLED;
use crate::judge::{Knowledge, method};
use crate::life::{ChangedOnDisk, GIVEN_UP, Killed, Life, Memory, Round, Rounds};
use crate::readiness::{Answer, Reply};
use crate::samples::Operation;

/// What came of a question that was given up.
#[derive(Clone, Debug)]
pub(crate) struct GivenUp {
    /// Whether the cancellation went out before the answer came.
    pub(crate) cancelled: bool,
    /// The answer's members, and how long it took from the cancellation.
    pub(crate) answer: Option<(u64, Value)>,
}

/// A second start. Every field is what a good server does; a test changes one.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an event that may be missing, by itself"
)]
pub(crate) struct SecondStart {
    pub(crate) absent: Option<&'static str>,
    /// Each round's answer and latency.
    pub(crate) rounds: Vec<(Answer, u64)>,
    /// Memory in MiB, each ten rounds.
    pub(crate) memory: Vec<u64>,
    pub(crate) bound: Duration,
    pub(crate) interrupted: bool,
    pub(crate) given_up: Vec<GivenUp>,
    pub(crate) before_change: Option<Answer>,
    pub(crate) came_changed: Vec<Answer>,
    pub(crate) came_opened: Option<Vec<Answer>>,
    /// None where it was not killed.
    pub(crate) killed: bool,
    pub(crate) not_killed: Option<&'static str>,
    pub(crate) pending: bool,
    pub(crate) dies: bool,
    pub(crate) replaced: bool,
    pub(crate) came_replaced: Vec<Answer>,
}

impl Default for SecondStart {
    fn default() -> Self {
        let error = json!({"error": {"code": -32800, "message": "cancelled"}});
        Self {
            absent: None,
            rounds: vec![(Answer::Right, 4_000); 60],
            memory: vec![100; 7],
            bound: crate::life::BOUND,
            interrupted: false,
            given_up: vec![
                GivenUp {
                    cancelled: false,
                    answer: Some((0, json!({"result": null}))),
                },
                GivenUp {
                    cancelled: true,
                    answer: Some((3_000, error)),
                },
            ],
            before_change: Some(Answer::Other("wrong place".to_owned())),
            came_changed: vec![Answer::Right; 3],
            came_opened: None,
            killed: true,
            not_killed: None,
            pending: true,
            dies: true,
            replaced: true,
            came_replaced: vec![Answer::Right; 3],
        }
    }
}

impl SecondStart {
    pub(super) fn tell(&self, story: &Story, tape: &mut Tape) -> Life {
        let mut life = Life {
            absent: self.absent.map(str::to_owned),
            ..Life::default()
        };
        let (Some(handshake), None) = (&story.handshake, self.absent) else {
            return life;
        };
        Self::start(2, story, handshake, tape);
        let known = story.knowledge == Knowledge::Known;
        life.rounds.push(self.tell_rounds(known, tape));
        for given_up in &self.given_up {
            Self::give_up(given_up, tape);
        }
        life.changed.push(self.change(tape));
        life.not_killed = self.not_killed.map(str::to_owned);
        if self.killed {
            life.killed = Some(self.kill(story, handshake, tape));
        }
        life
    }

    fn start(process: u32, story: &Story, handshake: &Value, tape: &mut Tape) {
        tape.process = process;
        tape.event(EventBody::ProcessStarted {
            pid: 7 + process,
            argv: vec!["/bin/x".to_owned()],
            cwd: None,
        });
        let id = tape.request(Direction::ToServer, "initialize", &story.initialize);
        tape.answer(Direction::ToClient, id, handshake);
        tape.notify("initialized", &json!({}));
    }

    fn tell_rounds(&self, known: bool, tape: &mut Tape) -> Rounds {
        let from = tape.events.len() as u64;
        let mut at_us = 0;
        let made = self
            .rounds
            .iter()
            .map(|(answer, latency_us)| {
                let empty = json!({"result": null});
                tape.query(Operation::GoToDefinition, Some(&empty), 1);
                at_us += latency_us;
                let reply = Reply {
                    answer: answer.clone(),
                    detail: (*answer != Answer::Right).then(|| "main.x:9:9".to_owned()),
                    latency_us: *latency_us,
                    seq: tape.events.len() as u64 - 1,
                };
                Round { at_us, reply }
            })
            .collect();
        let memory = self.memory.iter().enumerate();
        Rounds {
            kind: CyclesKind::SameText,
            operation: Operation::GoToDefinition,
            place: format!("{FILE}:2:3"),
            known,
            planned: 200,
            bound: self.bound,
            made,
            memory: memory
                .map(|(index, megabytes)| Memory {
                    rounds: index * 10,
                    bytes: megabytes << 20,
                })
                .collect(),
            seqs: from..tape.events.len() as u64,
            interrupted: self.interrupted,
        }
    }

    fn give_up(given_up: &GivenUp, tape: &mut Tape) {
        let document = json!({"textDocument": {"uri": format!("file:///w/{FILE}")}});
        tape.notify("textDocument/didOpen", &document);
        let method = method(Operation::GoToDefinition);
        let id = tape.request(Direction::ToServer, method, &document);
        tape.event(EventBody::note(GIVEN_UP, "the question is given up"));
        if given_up.cancelled {
            tape.notify("$/cancelRequest", &json!({"id": id}));
        }
        if let Some((took, members)) = &given_up.answer {
            tape.waited_us += took;
            tape.answer(Direction::ToClient, id, members);
        }
        tape.notify("textDocument/didClose", &document);
    }

    fn change(&self, tape: &mut Tape) -> ChangedOnDisk {
        let before = self.before_change.clone().map(|answer| Reply {
            answer,
            detail: None,
            latency_us: 5,
            seq: 0,
        });
        let mut told = |came: &[Answer]| {
            tape.query(Operation::GoToDefinition, Some(&json!({"result": null})), 1);
            asked(Operation::GoToDefinition, Some("lib.x"), came, true, tape)
        };
        ChangedOnDisk {
            file: "lib.x".to_owned(),
            before,
            asked: told(&self.came_changed),
            opened: self.came_opened.as_deref().map(told),
            limit: Duration::from_secs(5),
        }
    }

    fn kill(&self, story: &Story, handshake: &Value, tape: &mut Tape) -> Killed {
        let method = method(Operation::GoToDefinition);
        if self.pending {
            tape.request(Direction::ToServer, method, &json!({}));
        }
        let seq = tape.events.len() as u64;
        tape.event(EventBody::note(KILLED, "SIGKILL is sent to the server"));
        if self.dies {
            tape.event(EventBody::ProcessEnded {
                code: None,
                signal: Some(9),
            });
            tape.event(EventBody::Termination(Termination {
                killed: vec![Member {
                    pid: 99,
                    name: "helper".to_owned(),
                }],
                ..Termination::default()
            }));
        }
        if self.replaced {
            Self::start(3, story, handshake, tape);
        }
        tape.waited_us += 200_000;
        Killed {
            process: 2,
            seq,
            asked: asked(
                Operation::GoToDefinition,
                None,
                &self.came_replaced,
                story.knowledge == Knowledge::Known,
                tape,
            ),
        }
    }
}
