//! What LSP demands of the order of messages, of any client and any server.

use dsh_transcript::{Envelope, Id};
use serde_json::Value;

use super::session::{Message, Phase, Session, Step};
use super::{Sink, brief, broken};
use crate::format::Who;

/// INI-1.
pub(super) fn handshake(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    const FIRST: &str = "initialize first and once";
    const QUIET: &str = "nothing but answers between initialize and its answer";
    const NEXT: &str = "initialized after the answer to initialize, once, before anything else";
    let Some((method, _)) = step.client_says().filter(|_| session.in_order()) else {
        return;
    };
    if method == "initialize" || method == "initialized" {
        sink.saw("INI-1");
    }
    let mut found = |message: String, expected, policy: bool| {
        let said = broken(message, expected, method).by_policy(policy);
        sink.broken("INI-1", Who::Client, said);
    };
    match (session.phase, method) {
        (Phase::New, "initialize" | "exit")
        | (Phase::Answered, "initialized" | "exit")
        | (Phase::Refused, "exit") => {}
        (Phase::New | Phase::Answered, _) if session.disordered => {}
        (Phase::New, _) => found(format!("{method} came before initialize"), FIRST, false),
        (Phase::Initializing, "initialize") => {
            found("initialize came again".to_owned(), FIRST, false);
        }
        (Phase::Initializing, _) => {
            let gives_up = matches!(method, "$/cancelRequest" | "exit");
            let message = format!("{method} came before the answer to initialize");
            found(message, QUIET, gives_up);
        }
        (Phase::Refused, _) => {
            let policy = matches!(
                method,
                "initialize" | "shutdown" | "$/cancelRequest" | "textDocument/didClose"
            );
            let message = format!("{method} came after initialize was refused");
            found(
                message,
                "nothing more of a session that did not come to be",
                policy,
            );
        }
        (Phase::Answered, _) => {
            let gives_up = matches!(method, "$/cancelRequest" | "shutdown");
            found(format!("{method} came before initialized"), NEXT, gives_up);
        }
        (Phase::Ready, "initialize") => found("initialize came again".to_owned(), FIRST, false),
        (Phase::Ready, "initialized") => found("initialized came again".to_owned(), NEXT, false),
        _ => {}
    }
}

/// WIRE-1.
pub(super) fn ids(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((by, Message::Request(id, method))) = step.message() else {
        return;
    };
    sink.saw("WIRE-1");
    if !session.in_order() {
        return;
    }
    let known = match by {
        Who::Client => session.asked.get(id),
        Who::Server => session.demanded.get(id),
    };
    let Some(known) = known else {
        return;
    };
    let got = format!("{method} with id {id}, as {} before it", known.method);
    if known.open > 0 {
        let expected = "an id that no request in flight has";
        let message = format!("id {id} is that of a request in flight");
        sink.broken("WIRE-1", by, broken(message, expected, got));
    } else if by == Who::Client {
        let expected = "an id that the client did not use before";
        let message = format!("id {id} was used before");
        let said = broken(message, expected, got).by_policy(true);
        sink.broken("WIRE-1", by, said);
    }
}

/// WIRE-5, SRQ-1.
pub(super) fn responses(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    match step.message().filter(|_| session.in_order()) {
        Some((by, Message::Response(id))) => response(session, step, by, id, sink),
        Some((Who::Server, Message::Request(..))) => sink.saw("SRQ-1"),
        Some((Who::Client, Message::Notification("exit"))) => owed(session, sink),
        _ => {}
    }
}

fn response(session: &Session, step: &Step<'_>, by: Who, id: &Id, sink: &mut Sink<'_>) {
    const ONE: &str = "a response to a request of the other side that has none yet";
    sink.saw("WIRE-5");
    let all = match by {
        Who::Client => &session.demanded,
        Who::Server => &session.asked,
    };
    let known = all.get(id);
    if known.is_some_and(|known| known.open > 0) || is_about_nothing(step, id) {
        return;
    }
    let (message, again) = match known {
        Some(known) => {
            let method = &known.method;
            (format!("{method} (id {id}) is answered again"), true)
        }
        None => match other_type(id).filter(|other| all.contains_key(other)) {
            Some(other) => {
                let message = format!("id {id} is of another type than that of the request");
                let got = format!("{id} in place of {other}");
                if by == Who::Client {
                    let expected = "the request's id, string or number as it was";
                    let said = broken(message.clone(), expected, got.clone());
                    sink.broken("SRQ-1", by, said);
                }
                sink.broken("WIRE-5", by, broken(message, ONE, got));
                return;
            }
            None => (format!("nobody asked with id {id}"), false),
        },
    };
    let got = step.json.as_ref().map(|json| brief(&json.to_string()));
    let got = got.unwrap_or_default();
    if again && by == Who::Client {
        let said = broken(message.clone(), "exactly one response", got.clone());
        sink.broken("SRQ-1", by, said);
    }
    sink.broken("WIRE-5", by, broken(message, ONE, got));
}

/// An error about a request that could not be read, which has no id to name.
fn is_about_nothing(step: &Step<'_>, id: &Id) -> bool {
    let code = match step.frame().map(|(_, frame)| &frame.envelope) {
        Some(Envelope::Response { error, .. }) => error.flatten(),
        _ => None,
    };
    id.0.is_null() && matches!(code, Some(-32700 | -32600))
}

/// `"7"` for `7`, and the other way round.
fn other_type(id: &Id) -> Option<Id> {
    match &id.0 {
        Value::String(text) => text.parse::<i64>().ok().map(Id::from),
        Value::Number(number) => Some(Id::from(number.to_string().as_str())),
        _ => None,
    }
}

/// SRQ-1: a client that says `exit` after the answer to `shutdown` has read that answer, and so
/// every request that the server wrote before it.
fn owed(session: &Session, sink: &mut Sink<'_>) {
    let Some(farewell) = session.farewell() else {
        return;
    };
    let mut left: Vec<_> = session
        .owed
        .iter()
        .filter_map(|id| Some((session.demanded.get(id)?, id)))
        .filter(|(asked, id)| asked.seq < farewell.seq && id.is_legal())
        .map(|(asked, id)| (asked.seq, format!("{} (id {id})", asked.method)))
        .collect();
    left.sort_unstable();
    for (_, request) in left {
        let message = format!("{request} was never answered");
        let expected = "exactly one response to each request of the server";
        sink.broken("SRQ-1", Who::Client, broken(message, expected, "exit"));
    }
}

/// WIRE-3, OPN-2.
pub(super) fn documents(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    const BALANCE: &str = "each open with its close, each close with its open";
    let Some((method, id)) = step.client_says().filter(|_| session.in_order()) else {
        return;
    };
    let open = |uri| session.documents.contains_key(uri);
    match (method, step.uri()) {
        ("textDocument/didOpen", uri) => {
            sink.saw("WIRE-3");
            sink.saw("OPN-2");
            fits(session, sink);
            let Some(uri) = uri.filter(|_| !session.documents_unknown) else {
                return;
            };
            if open(uri) {
                let message = format!("{} is open already", brief(uri));
                let said = broken(message.clone(), BALANCE, "didOpen");
                sink.broken("WIRE-3", Who::Client, said);
                if sink.transient() {
                    let expected = "no second open of an open document";
                    let said = broken(message, expected, "didOpen");
                    sink.broken("OPN-1", Who::Client, said);
                }
            }
        }
        ("textDocument/didClose", Some(uri)) if !session.documents_unknown => {
            sink.saw("WIRE-3");
            if !open(uri) {
                let message = format!("{} is not open", brief(uri));
                sink.broken("WIRE-3", Who::Client, broken(message, BALANCE, "didClose"));
            }
        }
        ("shutdown", _) if id.is_some() && session.phase == Phase::Ready => {
            left_open(session, sink);
        }
        _ => {}
    }
}

/// WIRE-3, OPN-4: a process that is asked to shut down while nothing is in flight was not torn
/// down in the middle of something. What was asked about and answered, and is open still, was
/// forgotten.
fn left_open(session: &Session, sink: &mut Sink<'_>) {
    if !session.in_flight.is_empty() || session.documents_unknown {
        return;
    }
    let mut left: Vec<&str> = session
        .documents
        .iter()
        .filter(|(_, document)| session.is_settled(document))
        .map(|(uri, _)| uri.as_str())
        .collect();
    left.sort_unstable();
    for uri in left {
        let message = format!("{} is still open", brief(uri));
        let expected = "a close for each open";
        let said = broken(message.clone(), expected, "shutdown");
        sink.broken("WIRE-3", Who::Client, said);
        if sink.transient() {
            let expected = "a close once the request is settled";
            sink.broken("OPN-4", Who::Client, broken(message, expected, "shutdown"));
        }
    }
}

/// OPN-2: whether the server wants to be told of documents.
fn fits(session: &Session, sink: &mut Sink<'_>) {
    if !session.offer.known || session.registered.contains("textDocument/didOpen") {
        return;
    }
    let sync = session.offer.capabilities.get("textDocumentSync");
    let fits = match sync {
        Some(Value::Number(number)) => matches!(number.as_f64(), Some(1.0 | 2.0)),
        Some(Value::Object(members)) => members.get("openClose") == Some(&Value::Bool(true)),
        _ => false,
    };
    if !fits {
        let message = "didOpen to a server whose textDocumentSync does not want it";
        let expected = "no didOpen unless textDocumentSync is 1, 2 or has openClose true";
        let got = sync.map_or_else(|| "no textDocumentSync".to_owned(), ToString::to_string);
        sink.broken("OPN-2", Who::Client, broken(message, expected, brief(&got)));
    }
}

/// CAN-7, WIRE-6.
pub(super) fn cancellation(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    if !session.in_order() {
        return;
    }
    if step.ends_by_itself() && !session.over && !session.being_ended {
        never_answered(session, sink);
    }
    if !matches!(step.client_says(), Some(("$/cancelRequest", None))) {
        return;
    }
    sink.saw("CAN-7");
    let Some(id) = step.cancelled() else {
        return;
    };
    let Some(asked) = session.asked.get(&id) else {
        return;
    };
    if asked.open > 0 {
        sink.saw("WIRE-6");
        return;
    }
    let read = if sink.transient() {
        session.client_read.max(session.transient_read)
    } else {
        session.client_read
    };
    let Some(answer) = asked.answer.filter(|answer| read >= Some(answer.seq)) else {
        return;
    };
    let message = format!("{} (id {id}) is cancelled after its answer", asked.method);
    let expected = "no $/cancelRequest for a request whose answer the client has read";
    let got = format!("its answer is event {}", answer.seq);
    sink.broken("CAN-7", Who::Client, broken(message, expected, got));
}

/// WIRE-6: a server that had a cancellation, answered `shutdown` behind it and went after `exit`
/// has had its time.
fn never_answered(session: &Session, sink: &mut Sink<'_>) {
    let Some(farewell) = session.farewell() else {
        return;
    };
    if session.phase != Phase::Exited {
        return;
    }
    let mut left: Vec<_> = session
        .cancelled
        .iter()
        .filter_map(|id| Some((session.asked.get(id)?, id)))
        .filter(|(asked, _)| asked.cancelled.is_some_and(|at| at < farewell.seq))
        .map(|(asked, id)| (asked.seq, format!("{} (id {id})", asked.method)))
        .collect();
    left.sort_unstable();
    for (_, request) in left {
        let message = format!("{request} was cancelled and never answered");
        let expected = "an answer to a request that was cancelled, as to any other";
        sink.broken("WIRE-6", Who::Server, broken(message, expected, "the end"));
    }
}

/// WIRE-4.
pub(super) fn farewell(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((Who::Client, message)) = step.message() else {
        return;
    };
    let name = match message {
        Message::Request(_, method) | Message::Notification(method) => method,
        Message::Response(_) => "a response",
    };
    if matches!(name, "shutdown" | "exit") {
        sink.saw("WIRE-4");
    }
    let response = matches!(message, Message::Response(_));
    match session.phase {
        Phase::ShutDown if !response && name != "exit" => {
            let said = broken(
                format!("{name} came after shutdown"),
                "exit and nothing else after shutdown",
                name,
            );
            sink.broken("WIRE-4", Who::Client, said);
        }
        Phase::Exited => {
            let said = broken(
                format!("{name} came after exit"),
                "nothing after exit",
                name,
            );
            sink.broken("WIRE-4", Who::Client, said);
        }
        _ => {}
    }
}
