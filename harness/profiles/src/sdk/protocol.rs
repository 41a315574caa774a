//! The messages of the `sdk` profiles: JSON-RPC 2.0, one message a line. Pure: text in, text out.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lines::brief;

/// The methods that a client may call.
pub const METHODS: [&str; 5] = ["open", "prompt", "cancel", "events", "close"];

/// Error codes of JSON-RPC 2.0, and the one for everything that only this protocol knows; its
/// stable code is in `data.code`.
mod number {
    pub(super) const PARSE: i64 = -32700;
    pub(super) const INVALID_REQUEST: i64 = -32600;
    pub(super) const METHOD_NOT_FOUND: i64 = -32601;
    pub(super) const INVALID_PARAMS: i64 = -32602;
    pub(super) const OWN: i64 = -32000;
}

/// The id of a request, given back with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Text(String),
    Number(serde_json::Number),
    /// For an answer to what cannot be told.
    Null,
}

impl Id {
    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Null => Value::Null,
        }
    }
}

/// What a client says in one line.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// It wants something. Without an id it wants no answer.
    Request { id: Option<Id>, request: Request },
    /// It answers a question of ours.
    Answer { id: String, answer: Approved },
    /// It says nothing that can be acted on.
    Wrong { id: Id, fault: Fault },
    /// The line is blank, or a notification that cannot be acted on and has no answer.
    Nothing,
}

/// What is wanted.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Open(Open),
    Prompt(Prompt),
    Cancel(Named),
    Events(Events),
    Close(Named),
}

/// `open`: begins a session, or goes on with one.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Open {
    /// The working directory, absolute.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// The id of a stored session to go on with.
    #[serde(default)]
    pub(super) resume: Option<String>,
    /// Whether to send what the model says while it is saying it.
    #[serde(default)]
    pub(super) deltas: bool,
    /// Whether to ask the client where a call needs an approval.
    #[serde(default)]
    pub(super) approvals: bool,
}

/// `prompt`: one turn.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Prompt {
    pub(super) session: String,
    pub(super) text: String,
}

/// `cancel` and `close`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Named {
    pub(super) session: String,
}

/// `events`: the log, from the event behind `after`.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Events {
    pub(super) session: String,
    #[serde(default)]
    pub(super) after: u64,
}

/// A client's answer to an `approve` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Approved {
    pub(super) granted: bool,
    pub(super) reason: Option<String>,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    number: i64,
    code: &'static str,
    message: String,
}

impl Fault {
    /// A fault that only this protocol knows.
    pub(super) fn own(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            number: number::OWN,
            code,
            message: message.into(),
        }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self {
            number: number::INVALID_PARAMS,
            code: "INVALID_PARAMS",
            message: message.into(),
        }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self {
            number: number::INVALID_REQUEST,
            code: "INVALID_REQUEST",
            message: message.into(),
        }
    }

    /// A line that is longer than the longest.
    pub(super) fn too_long(limit: usize) -> Self {
        Self::invalid(format!(
            "the line has more than {limit} bytes, the most that is read; send less at once"
        ))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Reads one line.
pub(super) fn read(line: &[u8]) -> Incoming {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Nothing;
    }
    let wrong = |id, fault| Incoming::Wrong { id, fault };
    let mut message: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => {
            let fault = Fault::invalid("batches are not taken; send one message a line");
            return wrong(Id::Null, fault);
        }
        Ok(_) => {
            let fault = Fault::invalid("the line is no JSON object; send one message a line");
            return wrong(Id::Null, fault);
        }
        Err(error) => {
            let fault = Fault {
                number: number::PARSE,
                code: "PARSE_ERROR",
                message: format!("the line is not JSON: {error}"),
            };
            return wrong(Id::Null, fault);
        }
    };
    let id = match message.remove("id") {
        None => None,
        Some(Value::String(text)) => Some(Id::Text(text)),
        Some(Value::Number(number)) => Some(Id::Number(number)),
        Some(_) => {
            let fault = Fault::invalid("`id` must be a string or a number");
            return wrong(Id::Null, fault);
        }
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let fault = Fault::invalid("`jsonrpc` must be \"2.0\"");
        return wrong(id.unwrap_or(Id::Null), fault);
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None => return answer(id, &message),
        Some(_) => {
            let fault = Fault::invalid("`method` must be a string");
            return wrong(id.unwrap_or(Id::Null), fault);
        }
    };
    let params = message.remove("params").unwrap_or_else(|| json!({}));
    match (request(&method, params), id) {
        (Ok(request), id) => Incoming::Request { id, request },
        (Err(fault), Some(id)) => wrong(id, fault),
        (Err(fault), None) => {
            tracing::warn!("a notification was ignored: {fault}");
            Incoming::Nothing
        }
    }
}

fn answer(id: Option<Id>, message: &Map<String, Value>) -> Incoming {
    let refused = |reason: String| Approved {
        granted: false,
        reason: Some(reason),
    };
    let id = match (id, message.get("result"), message.get("error")) {
        (Some(Id::Text(id)), Some(result), None) => {
            let answer = match result.get("granted").and_then(Value::as_bool) {
                Some(granted) => Approved {
                    granted,
                    reason: result["reason"].as_str().map(str::to_owned),
                },
                None => refused("the client's answer has no `granted`".to_owned()),
            };
            return Incoming::Answer { id, answer };
        }
        (Some(Id::Text(id)), None, Some(error)) => {
            let told = error["message"].as_str().unwrap_or("no reason given");
            let answer = refused(format!("the client could not ask: {told}"));
            return Incoming::Answer { id, answer };
        }
        (id, _, _) => id,
    };
    let fault = Fault::invalid(format!(
        "there is no `method`; the methods are {}",
        METHODS.join(", ")
    ));
    Incoming::Wrong {
        id: id.unwrap_or(Id::Null),
        fault,
    }
}

fn request(method: &str, params: Value) -> Result<Request, Fault> {
    Ok(match method {
        "open" => Request::Open(of(method, params)?),
        "prompt" => Request::Prompt(of(method, params)?),
        "cancel" => Request::Cancel(of(method, params)?),
        "events" => Request::Events(of(method, params)?),
        "close" => Request::Close(of(method, params)?),
        _ => {
            let shown: String = method.chars().take(80).collect();
            return Err(Fault {
                number: number::METHOD_NOT_FOUND,
                code: "METHOD_NOT_FOUND",
                message: format!(
                    "there is no method {shown:?}; the methods are {}",
                    METHODS.join(", ")
                ),
            });
        }
    })
}

fn of<T: serde::de::DeserializeOwned>(method: &str, params: Value) -> Result<T, Fault> {
    if !params.is_object() {
        return Err(Fault::params(format!(
            "the params of {method} must be an object"
        )));
    }
    serde_json::from_value(params).map_err(|error| {
        let told = brief(&error.to_string());
        Fault::params(format!("the params of {method}: {told}"))
    })
}

/// An answer.
pub(super) fn result(id: &Id, result: impl Serialize) -> String {
    line(&json!({"jsonrpc": "2.0", "id": id.to_value(), "result": result}))
}

/// An answer that says why not.
pub(super) fn error(id: &Id, fault: &Fault) -> String {
    let error = json!({
        "code": fault.number,
        "message": fault.message,
        "data": {"code": fault.code},
    });
    line(&json!({"jsonrpc": "2.0", "id": id.to_value(), "error": error}))
}

/// Something that the client did not ask for.
pub(super) fn notification(method: &str, params: impl Serialize) -> String {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// A question to the client.
pub(super) fn question(id: &str, method: &str, params: impl Serialize) -> String {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn wrong(line: &str, id: &Id, number: i64, words: &str) {
        let Incoming::Wrong { id: told, fault } = read(line.as_bytes()) else {
            panic!("{line} is wrong")
        };
        assert_eq!((&told, fault.number), (id, number), "{fault}");
        assert!(fault.message.contains(words), "{words:?} not in: {fault}");
    }

    #[test]
    fn a_request_is_read_with_its_defaults() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"open","params":{"cwd":"/w"}}"#;
        let open = Open {
            cwd: Some("/w".to_owned()),
            ..Open::default()
        };
        let expected = Incoming::Request {
            id: Some(Id::Number(1.into())),
            request: Request::Open(open),
        };
        assert_eq!(read(line), expected);
        let line = br#"{"jsonrpc":"2.0","method":"cancel","params":{"session":"s"}}"#;
        let named = Named {
            session: "s".to_owned(),
        };
        let expected = Incoming::Request {
            id: None,
            request: Request::Cancel(named),
        };
        assert_eq!(read(line), expected);
        assert_eq!(read(b" \r"), Incoming::Nothing);
    }

    #[test]
    fn what_is_no_request_is_told_with_the_way_out() {
        let one = Id::Number(1.into());
        wrong("{", &Id::Null, -32700, "not JSON");
        wrong("\u{0}", &Id::Null, -32700, "not JSON");
        wrong("3", &Id::Null, -32600, "one message a line");
        wrong("[]", &Id::Null, -32600, "batches");
        wrong(r#"{"id":1,"method":"open"}"#, &one, -32600, "\"2.0\"");
        wrong(
            r#"{"jsonrpc":"2.0","id":[],"method":"open"}"#,
            &Id::Null,
            -32600,
            "`id`",
        );
        wrong(
            r#"{"jsonrpc":"2.0","id":1,"method":3}"#,
            &one,
            -32600,
            "`method`",
        );
        wrong(r#"{"jsonrpc":"2.0","id":1}"#, &one, -32600, "open, prompt");
        wrong(
            r#"{"jsonrpc":"2.0","id":1,"method":"promt"}"#,
            &one,
            -32601,
            "open, prompt",
        );
        wrong(
            r#"{"jsonrpc":"2.0","id":1,"method":"prompt","params":[]}"#,
            &one,
            -32602,
            "must be an object",
        );
        wrong(
            r#"{"jsonrpc":"2.0","id":1,"method":"prompt","params":{"session":"s"}}"#,
            &one,
            -32602,
            "`text`",
        );
        wrong(
            r#"{"jsonrpc":"2.0","id":1,"method":"open","params":{"cwdd":"/"}}"#,
            &one,
            -32602,
            "`cwdd`",
        );
    }

    /// A notification has no answer, not even to say that it is wrong.
    #[test]
    fn a_notification_that_is_wrong_is_not_answered() {
        assert_eq!(
            read(br#"{"jsonrpc":"2.0","method":"nonsense"}"#),
            Incoming::Nothing
        );
    }

    #[test]
    fn answers_to_questions_grant_only_where_they_say_so() {
        let read = |rest: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":"approve-1",{rest}}}"#);
            match read(line.as_bytes()) {
                Incoming::Answer { id, answer } => {
                    assert_eq!(id, "approve-1");
                    answer
                }
                other => panic!("{other:?}"),
            }
        };
        assert!(read(r#""result":{"granted":true}"#).granted);
        let refused = read(r#""result":{"granted":false,"reason":"no"}"#);
        assert_eq!(
            (refused.granted, refused.reason.as_deref()),
            (false, Some("no"))
        );
        assert!(!read(r#""result":{"granted":"yes"}"#).granted);
        assert!(!read(r#""error":{"code":1,"message":"m"}"#).granted);
    }

    #[test]
    fn what_was_sent_is_not_sent_back_in_full() {
        let long = "x".repeat(1 << 20);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{long}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"open","params":{{"{long}":1}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"open","params":{{"deltas":"{long}"}}}}"#),
            format!("{long} is no JSON"),
        ] {
            let Incoming::Wrong { id, fault } = read(line.as_bytes()) else {
                panic!("it is wrong")
            };
            assert!(error(&id, &fault).len() < 1000, "{fault}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = "[".repeat(100_000);
        wrong(&deep, &Id::Null, -32700, "recursion");
    }
}
