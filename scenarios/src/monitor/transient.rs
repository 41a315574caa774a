//! What the transient-open contract demands of a client, beyond LSP.

use std::borrow::Cow;

use serde_json::Value;

use super::session::{Message, Phase, Session, Step, is_question};
use super::{Sink, brief, broken};
use crate::format::Who;

/// WIRE-2, HST-8, OPN-1, OPN-3, OPN-4.
pub(super) fn open(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let known = session.in_order() && !session.documents_unknown;
    let Some((method, id)) = step.client_says().filter(|_| known) else {
        return;
    };
    let Some(uri) = step.uri() else {
        return;
    };
    match (method, id) {
        ("textDocument/didOpen", None) => opens(session, step, uri, sink),
        ("textDocument/didClose", None) => closes(session, uri, sink),
        (_, Some(_)) if method.starts_with("textDocument/") => {
            asks(session, step, method, uri, sink);
        }
        _ => {}
    }
}

fn opens(session: &Session, step: &Step<'_>, uri: &str, sink: &mut Sink<'_>) {
    sink.saw("OPN-1");
    // What was opened has to be closed: whether a close comes is not waited for, since a process that
    // is torn down in the middle of something gets none.
    sink.saw("OPN-4");
    let times = session.opens.get(uri).copied().unwrap_or_default() + 1;
    if let Some(version) = step.at("/params/textDocument/version")
        && *version != 1
        && *version != times
    {
        let message = "a version that is neither 1 nor the count of the document's opens";
        let expected = "version 1, or one more at each open of the document";
        let got = brief(&version.to_string());
        sink.broken("OPN-1", Who::Client, broken(message, expected, got));
    }
    let early = session.too_early.get(uri).and_then(|id| {
        let asked = session.asked.get(id).filter(|asked| asked.open > 0)?;
        Some((id, asked))
    });
    if let Some((id, asked)) = early.filter(|_| !session.documents.contains_key(uri)) {
        let message = format!("{} (id {id}) was sent before didOpen", asked.method);
        let expected = "the request behind the whole didOpen";
        sink.broken("OPN-3", Who::Client, broken(message, expected, "didOpen"));
    }
    let other = session.last_opened.as_deref().filter(|last| *last != uri);
    let Some((other, document)) =
        other.and_then(|other| Some((other, session.documents.get(other)?)))
    else {
        return;
    };
    if session.is_settled(document) {
        let message = format!("{} is still open, and its request settled", brief(other));
        let expected = "a close once the request is settled";
        sink.broken("OPN-4", Who::Client, broken(message, expected, "didOpen"));
    }
}

fn closes(session: &Session, uri: &str, sink: &mut Sink<'_>) {
    let document = session.documents.get(uri);
    let Some(asked) = document.and_then(|document| session.question(document)) else {
        return;
    };
    if asked.open > 0 && asked.cancelled.is_none() {
        let message = format!(
            "the document is closed while {} about it has no answer",
            asked.method
        );
        let expected = "the close after the answer, or after a cancellation";
        sink.broken("OPN-4", Who::Client, broken(message, expected, "didClose"));
    }
}

fn asks(session: &Session, step: &Step<'_>, method: &str, uri: &str, sink: &mut Sink<'_>) {
    const OPEN: &str = "a document that is open";
    sink.saw("WIRE-2");
    sink.saw("HST-8");
    sink.saw("OPN-3");
    let Some(document) = session.documents.get(uri) else {
        let same = session
            .last_opened
            .as_deref()
            .filter(|last| session.documents.contains_key(*last) && decoded(last) == decoded(uri));
        if let Some(same) = same {
            let message = "the document is named in another spelling than in didOpen";
            let expected = "the same bytes as in didOpen";
            let got = format!("{} for {}", brief(uri), brief(same));
            sink.broken("HST-8", Who::Client, broken(message, expected, got));
        } else {
            let message = format!("{method} about a document that is not open");
            sink.broken("WIRE-2", Who::Client, broken(message, OPEN, brief(uri)));
        }
        return;
    };
    if !is_question(method) {
        return;
    }
    sink.saw("OPN-1");
    let Some(before) = session.question(document) else {
        return;
    };
    let stale = before
        .answer
        .is_some_and(|answer| matches!(answer.code, Some(-32801 | -32802)));
    let same = before.method == method && before.params.as_ref() == step.params();
    if !(stale && same && before.open == 0) {
        let message = format!("{method} is a further request about the open document");
        let expected = "one request for each open, or its repetition after -32801 or -32802";
        let got = format!("{} before it", before.method);
        sink.broken("OPN-1", Who::Client, broken(message, expected, got));
    }
}

/// The URI with its escapes undone, to compare spellings.
fn decoded(uri: &str) -> Cow<'_, [u8]> {
    if !uri.contains('%') {
        return Cow::Borrowed(uri.as_bytes());
    }
    let bytes = uri.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    Cow::Owned(plain)
}

/// WIRE-8, CAN-4.
pub(super) fn one_at_a_time(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((method, id)) = step.client_says().filter(|_| session.in_order()) else {
        return;
    };
    let opens = method == "textDocument/didOpen";
    let asks = id.is_some() && !matches!(method, "initialize" | "shutdown");
    if !opens && !asks {
        return;
    }
    sink.saw("WIRE-8");
    if opens && !session.documents_unknown {
        let others = session.documents.len()
            - usize::from(
                step.uri()
                    .is_some_and(|uri| session.documents.contains_key(uri)),
            );
        if others > 0 {
            let expected = "at most one document open";
            let got = format!("{others} open besides");
            let message = "a document is opened while another is open";
            sink.broken("WIRE-8", Who::Client, broken(message, expected, got));
        }
    }
    if asks && !session.in_flight.is_empty() {
        let message = format!("{method} while another request is in flight");
        let expected = "at most one request in flight";
        let got = format!("{} in flight besides", session.in_flight.len());
        sink.broken("WIRE-8", Who::Client, broken(message, expected, got));
    }
    if session.has_cancelled {
        sink.saw("CAN-4");
    }
    if !session.cancelled.is_empty() {
        let message = format!("{method} while a cancelled request has no answer");
        let expected = "the answer to the cancelled request, or another process";
        sink.broken("CAN-4", Who::Client, broken(message, expected, method));
    }
}

/// OPN-8.
pub(super) fn vocabulary(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((method, id)) = step.client_says() else {
        return;
    };
    sink.saw("OPN-8");
    let named = match id {
        Some(_) => matches!(method, "initialize" | "shutdown") || is_question(method),
        None => matches!(
            method,
            "initialized"
                | "textDocument/didOpen"
                | "textDocument/didClose"
                | "$/cancelRequest"
                | "exit"
        ),
    };
    let announces = method == "workspace/didChangeConfiguration"
        && session.last.as_deref() == Some("initialized");
    if !named && !announces {
        let what = if id.is_some() {
            "request"
        } else {
            "notification"
        };
        let message = format!("the {what} {method} is none that a transient open needs");
        let expected = "initialize, initialized, didOpen, one of the four questions, \
                        $/cancelRequest, didClose, shutdown, exit";
        sink.broken("OPN-8", Who::Client, broken(message, expected, method));
    }
}

/// OPN-9, OPN-13.
pub(super) fn questions(_: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((Who::Client, Message::Request(_, method))) = step.message() else {
        return;
    };
    if !is_question(method) {
        return;
    }
    let Some(Value::Object(params)) = step.params() else {
        return;
    };
    sink.saw("OPN-9");
    sink.saw("OPN-13");
    let context = params.get("context");
    if method == "textDocument/references" {
        let included = context.and_then(|context| context.get("includeDeclaration"));
        if included != Some(&Value::Bool(true)) {
            let got = context.map_or_else(|| "no context".to_owned(), ToString::to_string);
            let message = "references are not asked with their declaration";
            let expected = "context.includeDeclaration true";
            sink.broken("OPN-9", Who::Client, broken(message, expected, brief(&got)));
        }
    } else if let Some(context) = context {
        let message = format!("{method} has a context");
        let expected = "context for references only";
        let got = brief(&context.to_string());
        sink.broken("OPN-9", Who::Client, broken(message, expected, got));
    }
    let has = |pointer| step.at(pointer).is_some();
    for member in ["/params/textDocument/uri", "/params/position"] {
        if !has(member) {
            let message = format!("{method} has no {}", member[1..].replace('/', "."));
            let expected = "params of textDocument.uri and position";
            let got = brief(&Value::Object(params.clone()).to_string());
            sink.broken("OPN-13", Who::Client, broken(message, expected, got));
        }
    }
    let known = |key: &str| matches!(key, "textDocument" | "position" | "context");
    if let Some(extra) = params.keys().find(|key| !known(key)) {
        let message = format!("{method} has a further member {}", brief(extra));
        let expected = "params of textDocument.uri and position, and context for references";
        let said = broken(message, expected, brief(extra)).by_policy(true);
        sink.broken("OPN-13", Who::Client, said);
    }
}

/// CAN-3.
pub(super) fn named_cancellation(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    if !matches!(step.client_says(), Some(("$/cancelRequest", None))) || !session.in_order() {
        return;
    }
    sink.saw("CAN-3");
    let Some(id) = step.cancelled() else {
        return;
    };
    if !session.asked.contains_key(&id) {
        let message = format!("nothing was asked with id {id}");
        let expected = "the id of a request that was sent, of the same type";
        let got = brief(&id.to_string());
        sink.broken("CAN-3", Who::Client, broken(message, expected, got));
    }
}

/// How soon after `shutdown` no budget for its answer is over, in microseconds.
const NO_BUDGET_US: u64 = 20_000;

/// DIS-2.
///
/// How long the client lets the server answer is its own affair, so `exit` without an answer is
/// wrong only where it follows so soon that no budget can have passed, and nothing was cancelled
/// that may have used it up.
pub(super) fn graceful_end(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((method, _)) = step.client_says().filter(|_| session.in_order()) else {
        return;
    };
    if !matches!(method, "shutdown" | "exit") {
        return;
    }
    sink.saw("DIS-2");
    if let Some(params) = step.params() {
        let message = format!("{method} has params");
        let expected = "no member params";
        let got = brief(&params.to_string());
        let said = broken(message, expected, got).by_policy(true);
        sink.broken("DIS-2", Who::Client, said);
    }
    if method != "exit" {
        return;
    }
    match (&session.shutdown, session.phase) {
        (None, Phase::Ready) => {
            let message = "exit without shutdown before it";
            let expected = "shutdown, its answer, exit";
            sink.broken("DIS-2", Who::Client, broken(message, expected, "exit"));
        }
        (Some((at_us, _)), Phase::ShutDown) if session.farewell().is_none() => {
            let after = step.event.at_us.saturating_sub(*at_us);
            if after < NO_BUDGET_US && session.cancelled.is_empty() {
                let message = "exit does not wait for the answer to shutdown";
                let expected = "exit after the answer, or when the budget for it is over";
                let got = format!("exit {after} µs after shutdown");
                sink.broken("DIS-2", Who::Client, broken(message, expected, got));
            }
        }
        _ => {}
    }
}
