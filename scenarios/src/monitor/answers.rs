//! SRQ-2 to SRQ-5, SRQ-7: what the client answers.

use dsh_transcript::Envelope;
use serde_json::Value;

use super::session::{Message, Session, Step};
use super::{Sink, brief, broken};
use crate::format::Who;

/// What the client answered to which request.
struct Answered<'a> {
    method: &'a str,
    params: Option<&'a Value>,
    result: Option<&'a Value>,
    /// The error's code, 0 if it has none.
    error: Option<i64>,
}

impl<'a> Answered<'a> {
    fn of(step: &'a Step<'_>) -> Option<Self> {
        let (Who::Client, Message::Response(_)) = step.message()? else {
            return None;
        };
        let (method, params) = step.answers.as_ref()?;
        let (_, frame) = step.frame()?;
        let Envelope::Response { error, .. } = &frame.envelope else {
            return None;
        };
        step.json.as_ref()?;
        Some(Self {
            method,
            params: params.as_ref(),
            result: step.at("/result"),
            error: error.map(Option::unwrap_or_default),
        })
    }

    fn got(&self) -> String {
        match (self.error, self.result) {
            (Some(code), _) => format!("{}: error {code}", self.method),
            (None, Some(result)) => brief(&format!("{}: {result}", self.method)),
            (None, None) => format!("{}: neither result nor error", self.method),
        }
    }
}

/// SRQ-5, the part that LSP demands of everybody.
pub(super) fn reserved(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    if sink.transient() || !session.in_order() {
        return;
    }
    if let Some(answered) = Answered::of(step)
        && answered.method.starts_with("$/")
    {
        refused(&answered, sink);
    }
}

fn refused(answered: &Answered<'_>, sink: &mut Sink<'_>) {
    sink.saw("SRQ-5");
    if answered.error != Some(-32601) {
        let message = format!("{} is not refused as unknown", brief(answered.method));
        let said = broken(message, "error -32601", answered.got());
        sink.broken("SRQ-5", Who::Client, said);
    }
}

/// SRQ-2, SRQ-3, SRQ-4, SRQ-5, SRQ-7.
pub(super) fn transient(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some(answered) = Answered::of(step).filter(|_| session.in_order()) else {
        return;
    };
    match answered.method {
        "workspace/configuration" => configuration(&answered, sink),
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create" => {
            sink.saw("SRQ-3");
            if answered.result != Some(&Value::Null) {
                let message = format!("{} is not answered with null", answered.method);
                let said = broken(message, "result null", answered.got());
                sink.broken("SRQ-3", Who::Client, said);
            }
        }
        "workspace/applyEdit" => edit(&answered, sink),
        "workspace/workspaceFolders" => folders(session, &answered, sink),
        _ => refused(&answered, sink),
    }
}

/// SRQ-2: the same value for each item.
fn configuration(answered: &Answered<'_>, sink: &mut Sink<'_>) {
    let items = answered
        .params
        .and_then(|params| params.get("items")?.as_array())
        .map(Vec::len);
    // What a request without a list of items deserves, LSP does not say.
    let Some(items) = items else { return };
    sink.saw("SRQ-2");
    let values = answered.result.and_then(Value::as_array);
    let fits = values.is_some_and(|values| {
        items == values.len() && values.windows(2).all(|pair| pair[0] == pair[1])
    });
    if !fits {
        let message = "workspace/configuration is not answered once for each item";
        let expected = "the configured value once for each item";
        let said = broken(message, expected, answered.got());
        sink.broken("SRQ-2", Who::Client, said);
    }
}

/// SRQ-4: refused; another harness may do so with an error.
fn edit(answered: &Answered<'_>, sink: &mut Sink<'_>) {
    sink.saw("SRQ-4");
    let refused = answered.result.is_some_and(|result| {
        result.get("applied") == Some(&Value::Bool(false))
            && result.get("failureReason").is_some_and(Value::is_string)
    });
    if !refused {
        let message = "workspace/applyEdit is not refused as it should be";
        let expected = "applied false and a failureReason";
        let said = broken(message, expected, answered.got()).by_policy(answered.error.is_some());
        sink.broken("SRQ-4", Who::Client, said);
    }
}

/// SRQ-7: the folder that `initialize` named.
fn folders(session: &Session, answered: &Answered<'_>, sink: &mut Sink<'_>) {
    sink.saw("SRQ-7");
    let named = answered
        .result
        .and_then(Value::as_array)
        .filter(|all| all.len() == 1)
        .and_then(|all| all[0].get("uri"));
    let root = session.announced.get("rootUri");
    if named.is_none() || root.is_some() && named != root {
        let message = "workspace/workspaceFolders is not answered with the one folder";
        let said = broken(message, "the one workspace folder", answered.got());
        sink.broken("SRQ-7", Who::Client, said);
    }
}
