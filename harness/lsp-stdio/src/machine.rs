//! One server process and the query it serves, as a state machine without I/O, clock or randomness.
//!
//! Bytes that were read go in through [`Machine::room`] and [`Machine::received`], bytes to write
//! come out of [`Machine::pending`]; what else happens to the process is told by the methods named
//! after it. What the machine wants is read off it: the settled answer, the one timer it may need,
//! and whether it has failed. Who moves the bytes and owns the process is somebody else
//! ([`crate::instance`]).
//!
//! ```text
//! Handshake ──answer──► Serving ──shutdown()──► Ending ──answer──► Ended
//!     └───────────┬────────┘ turn: Free → Waiting → Asking → Closing → Free
//!              failure (for good)
//! ```

mod answers;
mod turn;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dsh_lsp::{LspError, Operation, Position, QueryResult};
use lsp_types::InitializeParams;

use crate::config::Versions;
use crate::framing::{FrameDecoder, Partial};
use crate::message::{self, Expected, Incoming, Reply};
use crate::outbox::{FrameId, Outbox, Status};
use crate::outgoing::{self, Folder};
use crate::translate::Handshake;
use turn::Turn;

/// While more bytes of answers than this wait for a server that does not read, nothing more is read
/// from it: a server that asks without listening is made to wait, not remembered without bound. Our
/// own messages do not count, so that no handshake and no document can bring this about.
const MOST_ANSWER_BYTES: usize = 1024 * 1024;

/// How long a process of which one sign of death was seen may take to show the others, so that its
/// last answer is read and its exit status known.
const LAST_SIGNS: Duration = Duration::from_millis(250);

/// What one machine goes by.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// The provider id, for messages.
    pub(crate) id: String,
    pub(crate) folder: Folder,
    pub(crate) initialize: InitializeParams,
    /// The answer to a configuration item, as JSON.
    pub(crate) configuration: String,
    pub(crate) announce_configuration: bool,
    pub(crate) versions: Versions,
    pub(crate) retry_stale: u32,
    pub(crate) max_message_bytes: u64,
    pub(crate) kill_grace: Duration,
}

/// A query whose source has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) operation: Operation,
    pub(crate) position: Position,
    pub(crate) uri: String,
    pub(crate) language_id: String,
    pub(crate) text: String,
}

/// Why an instance is of no further use. All of these end the process (FRM-7, CRS-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server broke the protocol.
    Protocol(String),
    /// The server answered `initialize` with an error.
    Refused(LspError),
    /// The process ended.
    Died,
    /// The process closed its stdout and lives on.
    OutputClosed,
    /// The process closed its stdin and lives on; what writing said, if it was that.
    InputClosed(Option<String>),
    /// A cancelled request was not settled within the grace (CAN-4).
    Unresponsive,
    /// `didClose` could not be written within the grace (OPN-6).
    NotReading,
    /// The query was cancelled during the handshake (INI-8).
    HandshakeGivenUp,
    /// The query was cancelled while its `didOpen` was being written (OPN-5).
    OpenGivenUp,
}

/// The timer that a machine wants, all there is at a time. It is to be started when it first shows
/// and stopped when it no longer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) reason: TimerReason,
    pub(crate) after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerReason {
    /// For the cancelled request with this id to be settled.
    Cancelled(u64),
    /// For this `didClose` to be written.
    Closing(FrameId),
    /// For the other signs of a death.
    Dying,
}

pub(crate) struct Machine {
    decoder: FrameDecoder,
    core: Core,
}

/// Everything but the bytes that come in, so that a body can be read in place.
struct Core {
    policy: Arc<Policy>,
    outbox: Outbox,
    phase: Phase,
    turn: Turn,
    next_id: u64,
    /// Document → the version it was last opened with, where versions rise (OPN-12).
    versions: HashMap<String, u64>,
    settled: Option<Result<QueryResult, LspError>>,
    failure: Option<Failure>,
    signs: Signs,
    /// Set by the disposal: how long it lets one step before `shutdown` take.
    patience: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    /// `initialize` was sent.
    Handshake(Sent),
    Serving(Handshake),
    /// `shutdown` was sent.
    Ending(Sent),
    /// `exit` was sent.
    Ended,
}

/// A request of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    id: u64,
    frame: FrameId,
}

/// The signs of a process's death.
#[derive(Debug, Default)]
struct Signs {
    output_closed: bool,
    exited: bool,
    input_closed: bool,
    write_error: Option<String>,
}

impl Machine {
    /// The machine of a process that was just started: `initialize` is its first message (INI-1).
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        let mut outbox = Outbox::default();
        let id = 1;
        let frame = outbox.push(1_000, |out| {
            outgoing::initialize(out, id, &policy.initialize);
        });
        Self {
            decoder: FrameDecoder::new(policy.max_message_bytes),
            core: Core {
                policy,
                outbox,
                phase: Phase::Handshake(Sent { id, frame }),
                turn: Turn::Free,
                next_id: id + 1,
                versions: HashMap::new(),
                settled: None,
                failure: None,
                signs: Signs::default(),
                patience: None,
            },
        }
    }

    /// Begins a query. The machine must be free.
    pub(crate) fn begin(&mut self, ask: Ask) {
        debug_assert!(
            self.is_free(),
            "lifecycles of one process never overlap (OPN-7)"
        );
        self.core.turn = Turn::Waiting(Box::new(ask));
        self.core.advance();
    }

    /// The query's outcome, once. It may be there before the machine is free again.
    pub(crate) fn take_settled(&mut self) -> Option<Result<QueryResult, LspError>> {
        self.core.settled.take()
    }

    /// The caller gave the query up.
    pub(crate) fn cancel(&mut self) {
        if self.failure().is_none() {
            self.core.cancel();
        }
    }

    /// Whether a query can be begun: none is under way, and the last document is closed on the wire.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.core.turn, Turn::Free)
    }

    /// Whether the server has been initialized and may be asked, or shut down.
    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.core.phase, Phase::Serving(_)) && self.failure().is_none()
    }

    /// Whether the handshake ever succeeded.
    pub(crate) fn was_initialized(&self) -> bool {
        !matches!(self.core.phase, Phase::Handshake(_))
    }

    /// Whether nothing of the current query's `didOpen` was written, so that it can be served by
    /// another process as if this one had died before it came (CRS-2).
    pub(crate) fn is_unserved(&self) -> bool {
        self.core.is_unserved()
    }

    /// Whether a query is under way whose caller still waits.
    #[cfg(test)]
    pub(crate) fn is_asking(&self) -> bool {
        matches!(&self.core.turn, Turn::Waiting(_))
            || matches!(&self.core.turn, Turn::Asking(asking) if asking.cancelled.is_none())
    }

    /// Why the instance is of no further use, once it is.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.core.failure.as_ref()
    }

    /// The timer that is wanted now.
    pub(crate) fn timer(&self) -> Option<Timer> {
        self.core.timer()
    }

    /// The wanted timer ran out.
    pub(crate) fn timer_fired(&mut self) {
        let failure = match self.core.timer().map(|timer| timer.reason) {
            None => return,
            Some(TimerReason::Cancelled(_)) if self.core.patience.is_some() => {
                return self.core.leave_unanswered();
            }
            Some(TimerReason::Cancelled(_)) => Failure::Unresponsive,
            Some(TimerReason::Closing(_)) => Failure::NotReading,
            Some(TimerReason::Dying) => self.core.signs.failure(),
        };
        self.core.fail(failure);
    }

    /// The bytes to write next; empty when there is nothing to write, or no longer any use.
    pub(crate) fn pending(&self) -> &[u8] {
        if self.failure().is_some() || self.core.signs.input_closed {
            return &[];
        }
        self.core.outbox.pending()
    }

    /// The first `count` bytes of [`pending`](Self::pending) were written.
    pub(crate) fn wrote(&mut self, count: usize) {
        self.core.outbox.wrote(count);
        self.core.advance();
    }

    /// Whether reading is of use now.
    pub(crate) fn wants_input(&self) -> bool {
        self.failure().is_none()
            && !self.core.signs.output_closed
            && self.core.outbox.answer_bytes() <= MOST_ANSWER_BYTES
    }

    /// Where to append the bytes that are read next.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.decoder.room()
    }

    /// Bytes were appended to [`room`](Self::room).
    pub(crate) fn received(&mut self) {
        while self.failure().is_none() {
            match self.decoder.next_frame() {
                Ok(Some(body)) => self.core.body(body),
                Ok(None) => break,
                Err(fault) => {
                    let error = self.decoder.explain(fault);
                    self.core.fail(Failure::Protocol(error.to_string()));
                }
            }
        }
    }

    /// The process closed its stdout. In place of the answer to `shutdown` that is an answer too.
    pub(crate) fn output_closed(&mut self) {
        self.core.signs.output_closed = true;
        self.shutdown_expired();
        self.core.conclude();
    }

    /// The process ended.
    pub(crate) fn exited(&mut self) {
        self.core.signs.exited = true;
        self.core.conclude();
    }

    /// The process closed its stdin; `error` is what writing said, if it was writing that told.
    pub(crate) fn input_closed(&mut self, error: Option<String>) {
        self.core.signs.input_closed = true;
        self.core.signs.write_error = self.core.signs.write_error.take().or(error);
        self.core.conclude();
    }

    /// Whether any sign of death was seen: such a process is not given another query.
    pub(crate) fn is_dying(&self) -> bool {
        self.core.signs.any()
    }

    /// What of a message had come when the output ended.
    pub(crate) fn partial(&self) -> Partial {
        self.decoder.partial()
    }

    /// Whether the process was said to have ended.
    pub(crate) fn has_exited(&self) -> bool {
        self.core.signs.exited
    }

    /// Prepares the graceful end: a query under way is cancelled, and no step before `shutdown` may
    /// take longer than `patience`. A server that does not settle the cancelled request within it
    /// is not at fault, LSP lets it: its document is closed without the answer.
    pub(crate) fn leave(&mut self, patience: Duration) {
        self.core.patience = Some(patience.min(self.core.policy.kill_grace));
        self.cancel();
    }

    /// Begins the graceful end of a machine that is serving and free (DIS-2).
    pub(crate) fn shutdown(&mut self) {
        debug_assert!(
            self.is_free() && self.is_serving(),
            "only an idle server is shut down"
        );
        let id = self.core.take_id();
        let frame = self.core.outbox.push(60, |out| outgoing::shutdown(out, id));
        self.core.phase = Phase::Ending(Sent { id, frame });
    }

    /// The budget for the answer to `shutdown` is over: `exit` goes out without it.
    pub(crate) fn shutdown_expired(&mut self) {
        if matches!(self.core.phase, Phase::Ending(_)) {
            self.core.exit();
        }
    }

    /// Whether `exit` is wholly written, or can no longer be.
    pub(crate) fn has_said_exit(&self) -> bool {
        let signs = &self.core.signs;
        let over = self.failure().is_some() || signs.exited || signs.input_closed;
        over || matches!(self.core.phase, Phase::Ended) && self.pending().is_empty()
    }
}

impl Core {
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn timer(&self) -> Option<Timer> {
        if self.failure.is_some() {
            return None;
        }
        if self.signs.any() && !self.is_leaving() {
            return Some(Timer {
                reason: TimerReason::Dying,
                after: LAST_SIGNS,
            });
        }
        let reason = match &self.turn {
            Turn::Asking(asking) if asking.cancelled.is_some() => {
                TimerReason::Cancelled(asking.request.id)
            }
            Turn::Closing(frame) => TimerReason::Closing(*frame),
            _ => return None,
        };
        Some(Timer {
            reason,
            after: self.patience.unwrap_or(self.policy.kill_grace),
        })
    }

    /// Whether the end was asked for, so that the signs of death are no failure.
    fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Ending(_) | Phase::Ended)
    }

    /// A process that has ended and whose output was read to its end is dead.
    fn conclude(&mut self) {
        if self.signs.exited && self.signs.output_closed && !self.is_leaving() {
            self.fail(Failure::Died);
        }
    }

    /// What the pending request, if any, wants of a result.
    fn expected(&self) -> Expected {
        match (&self.phase, &self.turn) {
            (Phase::Handshake(_), _) => Expected::Handshake,
            (Phase::Serving(_), Turn::Asking(asking)) if asking.cancelled.is_none() => {
                match asking.operation {
                    Operation::Hover => Expected::Hover,
                    _ => Expected::Locations,
                }
            }
            _ => Expected::Anything,
        }
    }

    fn body(&mut self, body: &[u8]) {
        let mut scratch = String::new();
        match message::read(body, self.expected(), &mut scratch) {
            Ok(Incoming::Request { id, method, params }) => self.answer(id, &method, params),
            Ok(Incoming::Response { id, reply }) => self.response(id, reply),
            Ok(Incoming::Notification | Incoming::Other) => {}
            Err(error) => self.fail(Failure::Protocol(error.to_string())),
        }
    }

    /// A response counts if it answers the one request that was wholly sent and is not answered yet.
    fn response(&mut self, id: u64, reply: Reply) {
        let pending = match (&self.phase, &self.turn) {
            (Phase::Handshake(sent) | Phase::Ending(sent), _) => *sent,
            (Phase::Serving(_), Turn::Asking(asking)) => asking.request,
            _ => return,
        };
        if pending.id != id || self.outbox.status(pending.frame) != Status::Written {
            return;
        }
        match self.phase {
            Phase::Handshake(_) => self.handshake(reply),
            Phase::Serving(_) => self.answered(reply),
            Phase::Ending(_) => self.exit(),
            Phase::Ended => {}
        }
    }

    fn handshake(&mut self, reply: Reply) {
        let handshake = match reply {
            Reply::Handshake(Ok(handshake)) => handshake,
            Reply::Handshake(Err(malformed)) => {
                return self.fail(Failure::Protocol(format!(
                    "its answer to initialize is malformed: {}",
                    malformed.0
                )));
            }
            Reply::Error(error) => return self.fail(Failure::Refused(error.into_error())),
            Reply::Missing | Reply::Anything | Reply::Answer(_) => {
                let what = "its answer to initialize has neither a result nor an error";
                return self.fail(Failure::Protocol(what.to_owned()));
            }
        };
        if let Err(chosen) = handshake.check_encoding() {
            return self.fail(Failure::Protocol(format!(
                "it chose {chosen} as its position encoding, where only utf-16 was offered"
            )));
        }
        self.outbox.push(60, outgoing::initialized);
        if self.policy.announce_configuration {
            let settings = &self.policy.configuration;
            self.outbox.push(settings.len() + 100, |out| {
                outgoing::did_change_configuration(out, settings);
            });
        }
        self.phase = Phase::Serving(handshake);
        self.advance();
    }

    fn exit(&mut self) {
        self.outbox.push(40, outgoing::exit);
        self.phase = Phase::Ended;
    }
}

impl Signs {
    fn any(&self) -> bool {
        self.output_closed || self.exited || self.input_closed
    }

    fn failure(&self) -> Failure {
        if self.exited {
            Failure::Died
        } else if self.output_closed {
            Failure::OutputClosed
        } else {
            Failure::InputClosed(self.write_error.clone())
        }
    }
}

#[cfg(test)]
mod tests;
