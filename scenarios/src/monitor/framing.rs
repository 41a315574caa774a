//! FRM-1, WIRE-7, and the server's frames: bytes and envelopes.

use dsh_transcript::{Deviation, Direction, Envelope, EventBody, Frame, Malformed};

use super::session::{Phase, Session, Step, sender};
use super::{Sink, brief, broken};
use crate::format::Who;

const EXACT: &str = "`Content-Length: N`, CRLF CRLF, N bytes of JSON in UTF-8, and nothing else";

pub(super) fn frames(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    match &step.event.body {
        EventBody::Frame(frame) if frame.direction == Direction::ToServer => {
            sink.saw("FRM-1");
            spelling(frame, sink);
        }
        EventBody::Frame(frame) => {
            sink.saw("framing");
            if let Envelope::NotJson { error } = &frame.envelope {
                let said = broken("a body that is not JSON", EXACT, shown(frame, error));
                sink.broken("framing", Who::Server, said);
            } else if frame.deviations.contains(&Deviation::NotAscii) {
                let said = broken("a header that is not ASCII", EXACT, header(frame));
                sink.broken("framing", Who::Server, said);
            }
        }
        EventBody::Stray {
            direction,
            bytes,
            reason: Some(reason),
            ..
        } => {
            let by = sender(*direction);
            let got = format!("{reason}: {:?}", brief(&bytes.lossy()));
            let begun = begins_a_frame(&bytes.0);
            stray(session, by, reason, begun, got, sink);
        }
        _ => {}
    }
}

/// FRM-1: the one spelling. What LSP permits besides is a note for a foreign client.
fn spelling(frame: &Frame, sink: &mut Sink<'_>) {
    if let Envelope::NotJson { error } = &frame.envelope {
        let said = broken("a body that is not JSON", EXACT, shown(frame, error));
        sink.broken("FRM-1", Who::Client, said);
        return;
    }
    if frame.deviations.is_empty() {
        return;
    }
    let legal = !frame.deviations.contains(&Deviation::NotAscii);
    let message = "a header that is not spelled exactly as it should be";
    let said = broken(message, EXACT, header(frame)).by_policy(legal);
    sink.broken("FRM-1", Who::Client, said);
}

/// Bytes that are no frame. What is only cut off by the end of the stream says that somebody gave
/// up, which is a violation where nothing may follow, or where nobody was giving up.
fn stray(
    session: &Session,
    by: Who,
    reason: &Malformed,
    begun: bool,
    got: String,
    sink: &mut Sink<'_>,
) {
    let cut = match reason {
        Malformed::EndInHeader { .. } => begun,
        Malformed::EndInBody { .. } => true,
        _ => false,
    };
    match by {
        Who::Client if cut && session.phase == Phase::Exited => {
            let expected = "nothing after exit";
            let said = broken("bytes after exit", expected, got);
            sink.broken("WIRE-4", Who::Client, said);
        }
        Who::Client if cut => {}
        Who::Client => {
            let said = broken("bytes on stdin that are no frame", EXACT, got);
            sink.broken("FRM-1", Who::Client, said);
        }
        Who::Server if cut && (session.being_ended || session.phase == Phase::Exited) => {}
        Who::Server => {
            let said = broken("bytes on stdout that are no frame", EXACT, got);
            sink.broken("framing", Who::Server, said);
        }
    }
}

/// Whether bytes could have become a frame, had they gone on: up to its colon a header is the
/// characters of a token. What could not is a violation however soon the stream ends after it.
fn begins_a_frame(bytes: &[u8]) -> bool {
    let name = bytes.split(|byte| *byte == b':').next();
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    name.is_none_or(|name| name.iter().all(token))
}

fn header(frame: &Frame) -> String {
    format!("{:?}", brief(&frame.header.lossy()))
}

fn shown(frame: &Frame, error: &str) -> String {
    let body = String::from_utf8_lossy(&frame.body);
    format!("{error}: {:?}", brief(&body))
}

/// WIRE-7.
pub(super) fn messages(_: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((by, frame)) = step.frame() else {
        return;
    };
    if frame.cut.is_none() && frame.envelope == Envelope::Other {
        let got = brief(&String::from_utf8_lossy(&frame.body));
        let expected = "one request, notification or response";
        let message = "a body that is no message";
        sink.saw("WIRE-7");
        sink.broken("WIRE-7", by, broken(message, expected, got));
        return;
    }
    if step.message().is_none() {
        return;
    }
    sink.saw("WIRE-7");
    if let Some(json) = &step.json {
        let version = json.get("jsonrpc");
        if version.is_none_or(|version| version != "2.0") {
            let got = version.map_or_else(|| "no such member".to_owned(), ToString::to_string);
            let message = "a message that does not say jsonrpc 2.0";
            let said = broken(message, "`\"jsonrpc\": \"2.0\"`", brief(&got));
            sink.broken("WIRE-7", by, said);
        }
    }
    if let Envelope::Response { result, error, .. } = &frame.envelope
        && *result == error.is_some()
    {
        let got = if *result { "both" } else { "neither" };
        let message = "a response without exactly one of result and error";
        sink.broken("WIRE-7", by, broken(message, "result or error", got));
    }
}
