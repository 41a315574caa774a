//! The one query that a process serves at a time (OPN-1…7, CAN-3, CAN-4, CAN-7, ERR-4).

use dsh_lsp::{LspError, Operation, Position, QueryResult};

use super::{Ask, Core, Failure, Phase, Sent};
use crate::config::Versions;
use crate::message::Reply;
use crate::outbox::{FrameId, Status};
use crate::outgoing;
use crate::translate::{Answer, Handshake, capability};

/// Where the query is.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is none.
    Free,
    /// It waits for the handshake.
    Waiting(Box<Ask>),
    /// Its document is being opened or open, and its request under way.
    Asking(Asking),
    /// It is settled or was given up; its `didClose` is being written.
    Closing(FrameId),
}

#[derive(Debug)]
pub(super) struct Asking {
    pub(super) operation: Operation,
    position: Position,
    uri: String,
    open: FrameId,
    pub(super) request: Sent,
    /// How often it may still be asked again.
    retries: u32,
    /// The `$/cancelRequest`, once the caller gave up.
    pub(super) cancelled: Option<FrameId>,
}

impl Core {
    /// Goes on where something that was waited for has happened.
    pub(super) fn advance(&mut self) {
        if let Turn::Closing(close) = self.turn
            && self.outbox.status(close) == Status::Written
        {
            self.turn = Turn::Free;
        }
        if self.failure.is_some() || !matches!(self.turn, Turn::Waiting(_)) {
            return;
        }
        let Phase::Serving(handshake) = &self.phase else {
            return;
        };
        let Turn::Waiting(ask) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        match self.unsupported(handshake, ask.operation) {
            Some(error) => self.settled = Some(Err(error)),
            None => self.open(*ask),
        }
    }

    /// Why the server cannot be asked at all (INI-6, OPN-2).
    fn unsupported(&self, handshake: &Handshake, operation: Operation) -> Option<LspError> {
        let id = &self.policy.id;
        if !handshake.advertises(operation) {
            let capability = capability(operation);
            return Some(LspError::UnsupportedOperation(format!(
                "language server {id:?} does not support {operation}: it does not advertise {capability}"
            )));
        }
        (!handshake.transient_open).then(|| {
            LspError::UnsupportedOperation(format!(
                "language server {id:?} cannot be asked about a file: its textDocumentSync does not let a client open and close documents"
            ))
        })
    }

    /// Both messages are handed over together: the pipe keeps their order, so that the request
    /// reaches the server behind the whole `didOpen` (OPN-3).
    fn open(&mut self, ask: Ask) {
        let Ask {
            operation,
            position,
            uri,
            language_id,
            text,
        } = ask;
        let version = self.version(&uri);
        let expected = text.len() + text.len() / 16 + uri.len() + 150;
        let open = self.outbox.push(expected, |out| {
            outgoing::did_open(out, &uri, &language_id, version, &text);
        });
        let request = self.request(operation, &uri, position);
        let retries = self.policy.retry_stale;
        let asking = Asking {
            operation,
            position,
            uri,
            open,
            request,
            retries,
            cancelled: None,
        };
        self.turn = Turn::Asking(asking);
    }

    fn version(&mut self, uri: &str) -> u64 {
        match self.policy.versions {
            Versions::Fixed => 1,
            Versions::Rising => {
                let version = self.versions.entry(uri.to_owned()).or_default();
                *version += 1;
                *version
            }
        }
    }

    fn request(&mut self, operation: Operation, uri: &str, position: Position) -> Sent {
        let id = self.take_id();
        let frame = self.outbox.push(uri.len() + 150, |out| {
            outgoing::request(out, id, operation, uri, position);
        });
        Sent { id, frame }
    }

    /// The request was answered.
    pub(super) fn answered(&mut self, reply: Reply) {
        let Turn::Asking(mut asking) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        if let Some(cancel) = asking.cancelled {
            // A cancel that never left would now name an answered request (CAN-7).
            self.outbox.retract(cancel);
            return self.close(&asking.uri);
        }
        match reply {
            Reply::Error(error) if error.is_stale() && asking.retries > 0 => {
                asking.retries -= 1;
                asking.request = self.request(asking.operation, &asking.uri, asking.position);
                self.turn = Turn::Asking(asking);
            }
            reply => {
                self.settled = Some(self.outcome(asking.operation, reply));
                self.close(&asking.uri);
            }
        }
    }

    fn outcome(&self, operation: Operation, reply: Reply) -> Result<QueryResult, LspError> {
        let malformed = |what: &str| {
            Err(LspError::MalformedResponse(format!(
                "language server {:?} answered {operation} with a malformed result: {what}",
                self.policy.id
            )))
        };
        match reply {
            Reply::Answer(Ok(Answer::Locations(locations))) => Ok(QueryResult::Locations {
                locations,
                resolved_workspace_uri: self.policy.folder.uri.clone(),
            }),
            Reply::Answer(Ok(Answer::Hover(hover))) => Ok(QueryResult::Hover { hover }),
            Reply::Answer(Err(what)) => malformed(&what.0),
            Reply::Error(error) => Err(error.into_error()),
            Reply::Missing | Reply::Anything | Reply::Handshake(_) => malformed("it is missing"),
        }
    }

    /// Closes the document of a cancelled request whose answer is no longer waited for.
    pub(super) fn leave_unanswered(&mut self) {
        if let Turn::Asking(asking) = std::mem::replace(&mut self.turn, Turn::Free) {
            self.close(&asking.uri);
        }
    }

    fn close(&mut self, uri: &str) {
        let frame = self
            .outbox
            .push(uri.len() + 100, |out| outgoing::did_close(out, uri));
        self.turn = Turn::Closing(frame);
    }

    /// The caller gave up. What that means depends on how much of the query is on the wire.
    pub(super) fn cancel(&mut self) {
        let asking = match &mut self.turn {
            Turn::Free | Turn::Closing(_) => return,
            Turn::Waiting(_) => return self.fail(Failure::HandshakeGivenUp),
            Turn::Asking(asking) if asking.cancelled.is_some() => return,
            Turn::Asking(asking) => asking,
        };
        if self.outbox.status(asking.open) != Status::Written {
            self.fail(Failure::OpenGivenUp);
        } else if self.outbox.retract(asking.request.frame) {
            let uri = std::mem::take(&mut asking.uri);
            self.close(&uri);
        } else {
            let id = asking.request.id;
            let cancel = self
                .outbox
                .push(70, |out| outgoing::cancel_request(out, id));
            asking.cancelled = Some(cancel);
        }
    }

    pub(super) fn is_unserved(&self) -> bool {
        match &self.turn {
            Turn::Asking(asking) => self.outbox.status(asking.open) == Status::Untouched,
            _ => false,
        }
    }
}
