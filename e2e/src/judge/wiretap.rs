//! Transcripts made by hand: a server's whole life as it should be, and one thing in it changed.

mod second;

use dsh_transcript::{Direction, Event, EventBody, Frame, Malformed, Member, Raw, Termination};
use serde_json::{Value, json};

use super::{Asked, Knowledge, Observed, judge};
use crate::evidence::TERMINATE;
use crate::life::Life;
use crate::probes::{PROBES, Probe, probe_of};
use crate::readiness::{Answer, Reply, Track};
use crate::samples::{Operation, Sample};
use crate::snapshot::Difference;
use dsh_reports::Case;
pub(crate) use second::{GivenUp, SecondStart};

/// The file every question is about.
pub(crate) const FILE: &str = "main.x";

/// How the server ends.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) shutdown_answer: Option<Value>,
    pub(crate) exit_code: Option<i32>,
    /// The order of the end of the process and of the close of its stdin.
    pub(crate) ends_before_stdin: bool,
    pub(crate) alive: Vec<Member>,
    pub(crate) forced: Termination,
    pub(crate) by_itself: bool,
}

/// A server's life. Every field is what a good server does; a test changes one.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that a test changes"
)]
pub(crate) struct Story {
    pub(crate) initialize: Value,
    /// The members of the answer to `initialize`; none if it never came.
    pub(crate) handshake: Option<Value>,
    /// Requests of the server right behind the handshake, by method.
    pub(crate) server_requests: Vec<&'static str>,
    /// (operation, members of the answer)
    pub(crate) answers: Vec<(Operation, Option<Value>)>,
    /// What is asked again about the changed file, and the version it is opened with.
    pub(crate) reopened: Option<(Operation, i64)>,
    /// Bytes on stdout before the first frame.
    pub(crate) noise: Option<&'static str>,
    /// None if the process died before it was asked to shut down.
    pub(crate) ending: Option<Ending>,
    /// Whether a process without an ending was ended by the host.
    pub(crate) ended_by_us: bool,
    pub(crate) stderr: Option<&'static str>,
    /// What each question's known answer came to; three right answers unless changed.
    pub(crate) came: Vec<Answer>,
    pub(crate) came_reopened: Vec<Answer>,
    pub(crate) came_columns: Vec<Answer>,
    pub(crate) came_paths: Vec<Answer>,
    pub(crate) second: SecondStart,
    pub(crate) written: Difference,
    pub(crate) knowledge: Knowledge,
    pub(crate) sample: Option<&'static Sample>,
    pub(crate) configured: bool,
    pub(crate) rising: bool,
    /// Whether it is a trial of settings.
    pub(crate) trial: bool,
}

impl Default for Story {
    fn default() -> Self {
        let place =
            json!({"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}});
        let location = json!({"uri": "file:///w/main.x", "range": place});
        Self {
            initialize: json!({
                "processId": null,
                "rootUri": "file:///w",
                "workspaceFolders": [{"uri": "file:///w", "name": "w"}],
                "capabilities": {
                    "general": {"positionEncodings": ["utf-16"]},
                    "workspace": {"workspaceFolders": true, "configuration": true},
                    "textDocument": {
                        "hover": {"contentFormat": ["markdown", "plaintext"]},
                        "definition": {"linkSupport": true, "dynamicRegistration": false},
                        "implementation": {"linkSupport": true},
                    },
                },
            }),
            handshake: Some(json!({"result": {"capabilities": {
                "textDocumentSync": {"openClose": true, "change": 2},
                "definitionProvider": true,
                "referencesProvider": {"workDoneProgress": true},
                "implementationProvider": true,
                "hoverProvider": true,
            }}})),
            server_requests: vec!["workspace/configuration", "client/registerCapability"],
            answers: vec![
                (Operation::GoToDefinition, Some(json!({"result": location}))),
                (
                    Operation::FindReferences,
                    Some(json!({"result": [location, location]})),
                ),
                (Operation::GoToImplementation, Some(json!({"result": null}))),
                (
                    Operation::Hover,
                    Some(json!({"result": {"contents": "text"}})),
                ),
            ],
            reopened: Some((Operation::GoToDefinition, 1)),
            noise: None,
            ending: Some(Ending {
                shutdown_answer: Some(json!({"result": null})),
                exit_code: Some(0),
                ends_before_stdin: true,
                alive: Vec::new(),
                forced: Termination::default(),
                by_itself: true,
            }),
            ended_by_us: false,
            stderr: None,
            came: vec![Answer::Right; 3],
            came_reopened: vec![Answer::Right; 3],
            came_columns: vec![Answer::Right; 3],
            came_paths: vec![Answer::Right; 3],
            second: SecondStart::default(),
            written: Difference::default(),
            knowledge: Knowledge::Known,
            sample: None,
            configured: false,
            rising: false,
            trial: false,
        }
    }
}

impl Story {
    pub(crate) fn capability(mut self, name: &str, value: Option<Value>) -> Self {
        let members = self.handshake.as_mut().unwrap()["result"]["capabilities"]
            .as_object_mut()
            .unwrap();
        match value {
            Some(value) => members.insert(name.to_owned(), value),
            None => members.remove(name),
        };
        self
    }

    pub(crate) fn ending(mut self, change: impl FnOnce(&mut Ending)) -> Self {
        change(self.ending.as_mut().unwrap());
        self
    }

    /// Judges one clause of this life.
    #[track_caller]
    pub(crate) fn judge(&self, clause: &str) -> Vec<Case> {
        let told = self.told();
        let seen = Observed {
            events: &told.events[..told.first_end],
            whole: &told.events,
            knowledge: self.knowledge,
            sample: self.sample,
            questions: &told.questions,
            reopened: &told.reopened,
            columns: &told.columns,
            paths: &told.paths,
            life: &told.life,
            written: &self.written,
            configured: self.configured,
            rising: self.rising,
            budget_us: 60_000_000,
            trial: self.trial,
            grace_us: 2_000_000,
        };
        judge(probe_of(clause).unwrap(), &seen)
    }

    /// The probe's one case.
    #[track_caller]
    pub(crate) fn one(&self, clause: &str) -> Case {
        let mut cases = self.judge(clause);
        assert_eq!(cases.len(), 1, "{cases:#?}");
        cases.remove(0)
    }

    pub(crate) fn told(&self) -> Told {
        let mut tape = Tape::default();
        let known = self.knowledge == Knowledge::Known;
        let (mut questions, mut reopened) = (Vec::new(), Vec::new());
        let (mut columns, mut paths) = (Vec::new(), Vec::new());
        tape.event(EventBody::ProcessStarted {
            pid: 7,
            argv: vec!["/bin/x".to_owned()],
            cwd: None,
        });
        if let Some(noise) = self.noise {
            tape.stray(noise);
        }
        let id = tape.request(Direction::ToServer, "initialize", &self.initialize);
        if let Some(members) = &self.handshake {
            tape.answer(Direction::ToClient, id, members);
            tape.notify("initialized", &json!({}));
            for method in &self.server_requests {
                let id = tape.request(Direction::ToClient, method, &json!({}));
                tape.answer(Direction::ToServer, id, &json!({"result": null}));
            }
            for (operation, answer) in &self.answers {
                tape.query(*operation, answer.as_ref(), 1);
                questions.push(asked(*operation, None, &self.came, known, &mut tape));
            }
            for (came, told) in [
                (&self.came_columns, &mut columns),
                (&self.came_paths, &mut paths),
            ] {
                if let Some((operation, answer)) = self.answers.first() {
                    tape.query(*operation, answer.as_ref(), 1);
                    told.push(asked(*operation, None, came, known, &mut tape));
                }
            }
            if let Some((operation, version)) = self.reopened {
                tape.event(EventBody::FileChanged {
                    path: FILE.to_owned(),
                    change: "written".to_owned(),
                });
                let answer = self.answers.iter().find(|(asked, _)| *asked == operation);
                tape.query(
                    operation,
                    answer.and_then(|(_, answer)| answer.as_ref()),
                    version,
                );
                reopened.push(asked(
                    operation,
                    Some(FILE),
                    &self.came_reopened,
                    known,
                    &mut tape,
                ));
            }
        }
        self.tell_end(&mut tape);
        let first_end = tape.events.len();
        let life = self.second.tell(self, &mut tape);
        Told {
            events: tape.events,
            first_end,
            questions,
            reopened,
            columns,
            paths,
            life,
        }
    }

    fn tell_end(&self, tape: &mut Tape) {
        let closed = EventBody::Closed {
            direction: Direction::ToServer,
            total: 0,
        };
        let Some(ending) = &self.ending else {
            if self.ended_by_us {
                tape.event(EventBody::note(TERMINATE, "end"));
            }
            tape.event(EventBody::ProcessEnded {
                code: Some(1),
                signal: None,
            });
            if let Some(text) = self.stderr {
                tape.event(EventBody::Stderr {
                    text: Raw::copy(text.as_bytes()),
                });
            }
            return;
        };
        let id = tape.request(Direction::ToServer, "shutdown", &Value::Null);
        if let Some(members) = &ending.shutdown_answer {
            tape.answer(Direction::ToClient, id, members);
            tape.notify("exit", &Value::Null);
        }
        let ended = EventBody::ProcessEnded {
            code: ending.exit_code,
            signal: ending.exit_code.is_none().then_some(15),
        };
        let terminate = EventBody::note(TERMINATE, "end");
        if !ending.by_itself {
            tape.event(closed);
            tape.event(terminate);
            tape.event(ended);
        } else if ending.ends_before_stdin {
            tape.event(ended);
            tape.event(closed);
        } else {
            tape.event(closed);
            tape.event(ended);
        }
        tape.event(EventBody::Termination(Termination {
            alive: ending.alive.clone(),
            ..Termination::default()
        }));
        tape.event(EventBody::Termination(ending.forced.clone()));
    }
}

fn asked(
    operation: Operation,
    reopened: Option<&str>,
    came: &[Answer],
    known: bool,
    tape: &mut Tape,
) -> Asked {
    let track = Track::new(operation.name(), std::time::Duration::from_mins(1));
    let mut track = if known { track } else { track.unknown() };
    let last = tape.events.len() as u64;
    for answer in came {
        let now = last * 1_000 + tape.waited_us;
        if track.end().is_none() {
            let detail = (*answer != Answer::Right).then(|| "main.x:9:9".to_owned());
            let reply = Reply {
                answer: answer.clone(),
                detail,
                latency_us: 900,
                seq: last,
            };
            track.observe(now + 900, reply);
        }
    }
    if track.end().is_none() && came.len() < 3 {
        // Fewer answers than it takes: the budget ended.
        track.stop(crate::readiness::End::Budget);
    }
    tape.event(EventBody::note("asked", "a question was decided"));
    Asked {
        operation,
        label: operation.name().to_owned(),
        place: format!("{FILE}:2:3"),
        expected: format!("{FILE}:2:3"),
        reopened: reopened.map(str::to_owned),
        track,
    }
}

/// A story as it was recorded.
pub(crate) struct Told {
    pub(crate) events: Vec<Event>,
    first_end: usize,
    questions: Vec<Asked>,
    reopened: Vec<Asked>,
    columns: Vec<Asked>,
    paths: Vec<Asked>,
    life: Life,
}

struct Tape {
    events: Vec<Event>,
    ids: u64,
    process: u32,
    /// What passed besides a millisecond an event.
    waited_us: u64,
}

impl Default for Tape {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            ids: 0,
            process: 1,
            waited_us: 0,
        }
    }
}

impl Tape {
    fn event(&mut self, body: EventBody) {
        let seq = self.events.len() as u64;
        self.events.push(Event {
            seq,
            at_us: seq * 1_000 + self.waited_us,
            process: Some(self.process),
            body,
        });
    }

    fn message(&mut self, direction: Direction, message: &Value) {
        let body = message.to_string();
        self.event(EventBody::Frame(Frame::conforming(
            direction,
            0,
            body.as_bytes(),
        )));
    }

    fn request(&mut self, direction: Direction, method: &str, params: &Value) -> u64 {
        self.ids += 1;
        let id = self.ids;
        self.message(
            direction,
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        );
        id
    }

    fn answer(&mut self, direction: Direction, id: u64, members: &Value) {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        message
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        self.message(direction, &message);
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.message(
            Direction::ToServer,
            &json!({"jsonrpc": "2.0", "method": method, "params": params}),
        );
    }

    fn query(&mut self, operation: Operation, answer: Option<&Value>, version: i64) {
        let uri = format!("file:///w/{FILE}");
        self.notify(
            "textDocument/didOpen",
            &json!({"textDocument": {"uri": uri, "version": version, "languageId": "x", "text": ""}}),
        );
        let id = self.request(
            Direction::ToServer,
            super::handshake::method(operation),
            &json!({"textDocument": {"uri": uri}, "position": {"line": 1, "character": 2}}),
        );
        if let Some(members) = answer {
            self.answer(Direction::ToClient, id, members);
        }
        self.notify(
            "textDocument/didClose",
            &json!({"textDocument": {"uri": uri}}),
        );
    }

    fn stray(&mut self, text: &str) {
        let line = text.trim_end().to_owned();
        self.event(EventBody::Stray {
            direction: Direction::ToClient,
            offset: 0,
            bytes: Raw::copy(text.as_bytes()),
            dropped: 0,
            reason: Some(Malformed::NoColon { line }),
        });
    }
}

/// The clause's probe, for messages.
pub(crate) fn clauses() -> impl Iterator<Item = &'static Probe> {
    PROBES.iter()
}
