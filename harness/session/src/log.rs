//! The log: append-only, and the one place that what the model sees is made from (RUN-11).

use std::sync::Arc;

use crate::limit;
use crate::order::Order;
use crate::view::{Events, View};
use crate::{
    ContentBlock, Ending, Event, EventBody, ForkError, LoggedResult, Message, ModelRequest,
    ToolCall, ToolSchema,
};

/// The code of the result that a call gets which was running when the program ended.
pub const INTERRUPTED: &str = "TOOL_INTERRUPTED";

/// The events of a session, and what follows from them. Pure.
#[derive(Clone, Debug, Default)]
pub struct Log {
    events: Vec<Arc<Event>>,
    order: Order,
    view: View,
}

/// Why an event cannot be appended, or a log not be loaded: it would not follow from what came
/// before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) does not fit: {problem}")]
pub struct AppendError {
    /// The seq that the event has, or would have had.
    pub seq: u64,
    /// Its type.
    pub kind: &'static str,
    /// What is wrong.
    pub problem: String,
}

impl From<AppendError> for dsh_kernel::PluginError {
    fn from(error: AppendError) -> Self {
        Self::with_code("SESSION_ORDER", error)
    }
}

/// Why a request cannot be made again from the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// There is no such request.
    #[error("event {seq} is no step/request, so there is no request to rebuild")]
    NoRequest {
        /// The seq that was asked for.
        seq: u64,
    },
    /// The request that follows from the log is not the one that was sent.
    #[error(
        "the request of event {seq} cannot be rebuilt: its SHA-1 is logged as {logged}, and what \
         follows from the log has {rebuilt}; the log was changed, or the request was made from \
         something else"
    )]
    Differs {
        /// The seq of the request.
        seq: u64,
        /// The logged sum.
        logged: String,
        /// The sum of the rebuilt request.
        rebuilt: String,
    },
}

impl Log {
    /// A log without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an event that follows from those before: turns and steps nest and are counted, the
    /// model answers a request, each call is one of its message or of a running call, results come
    /// in the model's order (RUN-13), and nothing stands between a message that calls and its
    /// results.
    ///
    /// After an error the log is as it was.
    pub fn push(&mut self, body: EventBody, at_ms: u64) -> Result<&Arc<Event>, AppendError> {
        let seq = self.last_seq() + 1;
        self.add(Arc::new(Event { seq, at_ms, body }))?;
        Ok(self.events.last().expect("one was pushed"))
    }

    /// All events, by seq: the one of seq N is at N - 1.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The event of a seq.
    pub fn event(&self, seq: u64) -> Option<&Arc<Event>> {
        Events(&self.events).get(seq)
    }

    /// The seq of the last event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.events.len() as u64
    }

    /// What the model sees, in its order: messages, results of its own calls, and for what
    /// compaction has hidden the compaction itself, whose summary stands where the hidden began
    /// (RUN-16).
    pub fn visible(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.view.seqs().filter_map(|seq| self.event(seq))
    }

    /// The messages that follow from what is visible.
    pub fn messages(&self) -> Vec<Message> {
        self.view.messages(Events(&self.events))
    }

    /// The open turn.
    pub fn open_turn(&self) -> Option<u64> {
        self.order.turn()
    }

    /// The open step of the open turn.
    pub fn open_step(&self) -> Option<u64> {
        self.order.step()
    }

    /// The number that the next turn has.
    pub fn next_turn(&self) -> u64 {
        self.order.next_turn()
    }

    /// The calls of the model's last message that have no result yet, in its order.
    pub fn unanswered(&self) -> Vec<ToolCall> {
        self.order.owed().map(|(call, _)| call.clone()).collect()
    }

    /// What ends everything that is open: calls without a result get one that says so, then the step
    /// and the turn end as cancelled.
    pub fn closing(&self) -> Vec<EventBody> {
        let mut closing = Vec::new();
        for (call, called) in self.order.owed() {
            if !called {
                closing.push(EventBody::ToolCall {
                    call: call.clone(),
                    parent: None,
                });
            }
            closing.push(EventBody::ToolResult(LoggedResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                is_error: true,
                code: Some(INTERRUPTED.to_owned()),
                value: None,
                content: vec![ContentBlock::text(
                    "the call was interrupted before its result was logged. It may have been executed \
                     in whole, in part or not at all: look before you make it again.",
                )],
                parent: None,
            }));
        }
        let interrupted = || Ending::Cancelled {
            reason: "interrupted".to_owned(),
        };
        if let Some(turn) = self.open_turn() {
            if let Some(step) = self.open_step() {
                closing.push(EventBody::StepEnd {
                    turn,
                    step,
                    outcome: interrupted(),
                });
            }
            closing.push(EventBody::TurnEnd {
                turn,
                outcome: interrupted(),
            });
        }
        closing
    }

    /// The log as it was after event `up_to`.
    pub(crate) fn prefix(&self, up_to: u64) -> Result<Self, ForkError> {
        let last = self.last_seq();
        let count = usize::try_from(up_to).unwrap_or(usize::MAX);
        let events = self.events.get(..count);
        let events = events.ok_or(ForkError::Beyond { up_to, last })?;
        let mut log = Self::new();
        for event in events {
            log.add(Arc::clone(event))
                .expect("what follows in the whole log follows in its beginning");
        }
        Ok(log)
    }

    /// Appends an event that has its seq already.
    pub(crate) fn add(&mut self, event: Arc<Event>) -> Result<(), AppendError> {
        let Event { seq, body, .. } = &*event;
        let seq = *seq;
        let refuse = |problem| AppendError {
            seq,
            kind: body.kind(),
            problem,
        };
        let due = self.last_seq() + 1;
        if seq > due {
            return Err(refuse(format!("{due} is due: what is between is missing")));
        }
        if seq < due {
            return Err(refuse(format!("{due} is due: that seq is there already")));
        }
        limit::check(&event).map_err(refuse)?;
        if let EventBody::Compaction { from, to, .. } = body {
            let fits = self.view.may_hide(Events(&self.events), *from, *to);
            fits.map_err(refuse)?;
        }
        self.order.advance(body).map_err(refuse)?;
        self.view.add(seq, body);
        self.events.push(event);
        Ok(())
    }

    /// The request that a step sends now, and the event that logs it.
    pub fn request(
        &mut self,
        turn: u64,
        step: u64,
        system: String,
        tools: Vec<ToolSchema>,
    ) -> (ModelRequest, EventBody) {
        let events = Events(&self.events);
        let same_system = self.view.system(events) == Some(system.as_str());
        let same_tools = self.view.tools(events) == Some(tools.as_slice());
        let body = EventBody::StepRequest {
            turn,
            step,
            system: (!same_system).then(|| system.clone()),
            tools: (!same_tools).then(|| tools.clone()),
            sha1: self.view.sum(events, &system, &tools),
        };
        let request = ModelRequest {
            system,
            messages: self.view.messages(events),
            tools,
        };
        (request, body)
    }

    /// The request of a `step/request`, made again from the log up to there and nothing else
    /// (RUN-11). It has the logged sum, or it is an error. Time in the length of the log.
    pub fn rebuild(&self, seq: u64) -> Result<ModelRequest, RebuildError> {
        let Some(EventBody::StepRequest { sha1, .. }) = self.event(seq).map(|event| &event.body)
        else {
            return Err(RebuildError::NoRequest { seq });
        };
        let mut view = View::default();
        for event in self.events.iter().take_while(|event| event.seq <= seq) {
            view.add(event.seq, &event.body);
        }
        let events = Events(&self.events);
        let request = ModelRequest {
            system: view.system(events).unwrap_or_default().to_owned(),
            messages: view.messages(events),
            tools: view.tools(events).unwrap_or_default().to_vec(),
        };
        same_sum(seq, sha1, request.sha1())?;
        Ok(request)
    }

    /// Checks that every logged request can be rebuilt ([`Log::rebuild`]); the first that cannot is
    /// the error. Returns how many there are. Time in the length of the log, and for each compaction
    /// in what it left visible.
    pub fn verify(&self) -> Result<u64, RebuildError> {
        let events = Events(&self.events);
        let mut view = View::default();
        let mut requests = 0;
        for event in &self.events {
            view.add(event.seq, &event.body);
            if let EventBody::StepRequest { sha1, .. } = &event.body {
                let system = view.system(events).unwrap_or_default();
                let tools = view.tools(events).unwrap_or_default();
                same_sum(event.seq, sha1, view.sum(events, system, tools))?;
                requests += 1;
            }
        }
        Ok(requests)
    }
}

fn same_sum(seq: u64, logged: &str, rebuilt: String) -> Result<(), RebuildError> {
    if rebuilt == logged {
        return Ok(());
    }
    Err(RebuildError::Differs {
        seq,
        logged: logged.to_owned(),
        rebuilt,
    })
}
