//! QUA-4 where no right answer is known: whether questions are answered at all, whether any answer
//! says anything, whether the server lives through them.

use dsh_reports::{Case, Verdict};
use dsh_scenarios::monitor::is_question;
use dsh_transcript::{Direction, Event, EventBody, Exchange, Frame, View};
use serde_json::Value;

use super::answers::labelled;
use super::handshake::{advertised, method};
use super::{Observed, counted, obituary};
use crate::evidence::{KILLED, TERMINATE, UNREAD};
use crate::probes::Probe;
use crate::samples::Operation;

/// The cases of what can be seen to fail without a known answer: each operation that is advertised
/// and was asked and never answered.
pub(super) fn unanswered(probe: &Probe, seen: &Observed<'_>, result: &Value) -> Vec<Case> {
    let silent = |operation: Operation| {
        let asked: Vec<Exchange<'_>> = questions(seen)
            .filter(|exchange| exchange.method() == method(operation))
            .filter(|exchange| !died_of(seen, exchange))
            .collect();
        let last = asked.last()?;
        if asked.iter().any(|exchange| answered(seen, exchange)) {
            return None;
        }
        let said = format!("not answered, {} ended", seen.budget());
        let mut case = probe.case(Verdict::Timeout, said);
        case.expected = Some("an answer, whatever it says".to_owned());
        case.got = Some(format!("{}, no answer", counted(asked.len(), "question")));
        case.evidence = seen.around(last.request.seq);
        Some(labelled(case, operation.name()))
    };
    Operation::ALL
        .into_iter()
        .filter(|operation| advertised(result, *operation))
        .filter_map(silent)
        .collect()
}

/// The case of a process that ended by itself while it was to answer questions; none if none did.
/// The next question gets another process, and may be answered: that mends nothing.
pub(super) fn crashed(probe: &Probe, seen: &Observed<'_>) -> Option<Case> {
    let view = seen.view();
    let processes = view.processes();
    let crashes: Vec<(u32, &Event)> = processes
        .into_iter()
        .filter_map(|process| Some((process, end_by_itself(view, process)?)))
        .collect();
    let (process, end) = *crashes.first()?;
    let how = obituary(seen.events, process).map_or_else(|| "stdout ended".to_owned(), |o| o.1);
    let said = match crashes.len() {
        1 => format!("the server died while it was asked: {how}"),
        count => format!("the server died {count} times while it was asked, first: {how}"),
    };
    let mut case = probe.case(Verdict::Crash, said);
    case.expected = Some("a process that lives until it is asked to shut down".to_owned());
    case.evidence = seen.around(end.seq);
    Some(labelled(case, "process"))
}

/// Whether anything that was answered to a question says more than null, an empty list or an empty
/// text.
pub(crate) fn said_something(events: &[Event]) -> bool {
    let view = View(events);
    view.processes()
        .into_iter()
        .flat_map(|process| view.exchanges(process, Direction::ToServer))
        .filter(|exchange| is_question(exchange.method()))
        .any(|exchange| match exchange.result() {
            Some(result) => !is_nothing(&result),
            // Too long to be kept.
            None => exchange
                .answer
                .and_then(Event::frame)
                .is_some_and(|frame| frame.cut.is_some()),
        })
}

fn is_nothing(result: &Value) -> bool {
    match result {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.iter().all(is_nothing),
        Value::Object(members) => ["contents", "value"]
            .iter()
            .find_map(|member| members.get(*member))
            .is_some_and(is_nothing),
        _ => false,
    }
}

fn questions<'a>(seen: &Observed<'a>) -> impl Iterator<Item = Exchange<'a>> {
    let view = seen.view();
    view.processes()
        .into_iter()
        .flat_map(move |process| view.exchanges(process, Direction::ToServer))
        .filter(|exchange| is_question(exchange.method()))
}

/// Whether an answer came before the question was given up.
fn answered(seen: &Observed<'_>, exchange: &Exchange<'_>) -> bool {
    let Some(answer) = exchange.answer else {
        return false;
    };
    let id = exchange.request.frame().and_then(Frame::id);
    !seen
        .events
        .iter()
        .filter(|event| event.process == exchange.request.process)
        .filter(|event| (exchange.request.seq..answer.seq).contains(&event.seq))
        .filter(|event| event.is_message(Direction::ToServer, "$/cancelRequest"))
        .filter_map(|event| event.frame()?.at("/params/id"))
        .any(|cancelled| id.is_some_and(|id| id.0 == cancelled))
}

/// Whether it was the process's death that left the question without an answer.
fn died_of(seen: &Observed<'_>, exchange: &Exchange<'_>) -> bool {
    exchange.answer.is_none()
        && exchange
            .request
            .process
            .is_some_and(|process| end_by_itself(seen.view(), process).is_some())
}

/// Where an initialized process ended, or closed its stdout, with nothing done to end it.
fn end_by_itself(view: View<'_>, process: u32) -> Option<&Event> {
    let initialized = view
        .exchanges(process, Direction::ToServer)
        .into_iter()
        .any(|exchange| exchange.method() == "initialize" && exchange.result().is_some());
    let to_be_ended = |event: &&Event| match &event.body {
        EventBody::Note { kind, .. } => [TERMINATE, KILLED, UNREAD].contains(&kind.as_str()),
        EventBody::Frame(_) => event.is_message(Direction::ToServer, "shutdown"),
        _ => false,
    };
    let is_end = |event: &&Event| {
        let body = &event.body;
        matches!(
            body,
            EventBody::ProcessEnded { .. }
                | EventBody::Closed {
                    direction: Direction::ToClient,
                    ..
                }
        )
    };
    let mut before = view.of(process).take_while(|event| !to_be_ended(event));
    before.find(is_end).filter(|_| initialized)
}
