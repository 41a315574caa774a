//! The server's own check of the order of what its client says.
//!
//! It reports, it does not judge: each finding becomes a note of kind `order`. It is meant for
//! whoever looks at a transcript; the project's monitors have rules of their own.

use std::collections::{BTreeMap, HashSet};

use dsh_transcript::{Envelope, Id};
use serde_json::{Value, json};

/// A document the client has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Its text.
    pub(crate) text: String,
}

/// Something that should not have come, or not now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// Stable name of the rule.
    pub(crate) rule: &'static str,
    /// For people.
    pub(crate) message: String,
    /// Method, uri, id, where there are any.
    pub(crate) data: Value,
}

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing came yet.
    New,
    /// `initialize` came and is not answered.
    Initializing,
    /// `initialize` is answered, `initialized` has not come.
    Answered,
    /// In use.
    Ready,
    /// `shutdown` came.
    ShutDown,
    /// `exit` came.
    Exited,
}

/// What the client said so far.
#[derive(Debug)]
pub(crate) struct Order {
    phase: Phase,
    initialize: Option<Id>,
    documents: BTreeMap<String, Document>,
    in_flight: HashSet<Id>,
    used: HashSet<Id>,
}

/// The most ids that are remembered to notice one that is used again.
const MAX_IDS: usize = 1 << 20;

impl Order {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::New,
            initialize: None,
            documents: BTreeMap::new(),
            in_flight: HashSet::new(),
            used: HashSet::new(),
        }
    }

    /// The text of an open document.
    pub(crate) fn text(&self, uri: &str) -> Option<&str> {
        self.documents
            .get(uri)
            .map(|document| document.text.as_str())
    }

    /// All open documents' texts by URI.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let texts = self.documents.iter();
        texts
            .map(|(uri, document)| (uri.clone(), document.text.clone()))
            .collect()
    }

    /// Looks at a message of the client. `params` are those of the body.
    pub(crate) fn received(&mut self, envelope: &Envelope, params: &Value) -> Vec<Finding> {
        let mut found = Findings {
            method: envelope.method(),
            all: Vec::new(),
        };
        match envelope {
            Envelope::Request { id, method } => {
                self.phase(method, true, &mut found);
                self.request(id, method, params, &mut found);
            }
            Envelope::Notification { method } => {
                self.phase(method, false, &mut found);
                self.notification(method, params, &mut found);
            }
            _ => {}
        }
        found.all
    }

    /// Notes that a request of the client was answered.
    pub(crate) fn answered(&mut self, id: &Id) {
        self.in_flight.remove(id);
        if self.phase == Phase::Initializing && self.initialize.as_ref() == Some(id) {
            self.phase = Phase::Answered;
        }
    }

    fn phase(&mut self, method: &str, request: bool, found: &mut Findings<'_>) {
        let exit = method == "exit";
        match self.phase {
            Phase::New if method == "initialize" => self.phase = Phase::Initializing,
            Phase::New if exit => {}
            Phase::New => found.add("initialize-first", "came before `initialize`", json!({})),
            Phase::Initializing if !exit => {
                let what = if method == "initialize" {
                    "came twice"
                } else {
                    "came before the answer to `initialize`"
                };
                found.add("quiet-until-initialized", what, json!({}));
            }
            Phase::Answered if method == "initialized" => self.phase = Phase::Ready,
            Phase::Answered if !exit && method != "shutdown" => {
                found.add("initialized-next", "came before `initialized`", json!({}));
            }
            Phase::Ready if method == "initialize" || method == "initialized" => {
                found.add("initialize-once", "came again", json!({}));
            }
            Phase::ShutDown if !exit => {
                found.add("exit-only", "came after `shutdown`", json!({}));
            }
            Phase::Exited => found.add("nothing-after-exit", "came after `exit`", json!({})),
            _ => {}
        }
        if request && method == "shutdown" && self.phase != Phase::Exited {
            self.phase = Phase::ShutDown;
        }
        if exit {
            self.phase = Phase::Exited;
        }
    }

    fn request(&mut self, id: &Id, method: &str, params: &Value, found: &mut Findings<'_>) {
        if method == "initialize" {
            self.initialize.get_or_insert_with(|| id.clone());
        }
        if !id.is_legal() {
            found.add(
                "id-type",
                "has an id that is no string or integer",
                json!({"id": id}),
            );
        }
        if !self.in_flight.insert(id.clone()) {
            found.add(
                "id-in-flight",
                "has the id of a request in flight",
                json!({"id": id}),
            );
        } else if self.used.contains(id) {
            found.add(
                "id-reused",
                "has an id that was used before",
                json!({"id": id}),
            );
        }
        if self.used.len() < MAX_IDS {
            self.used.insert(id.clone());
        }
        if method.starts_with("textDocument/")
            && let Some(uri) = params.pointer("/textDocument/uri").and_then(Value::as_str)
            && !self.documents.contains_key(uri)
        {
            found.add(
                "open-document",
                "asks about a document that is not open",
                json!({"uri": uri}),
            );
        }
    }

    fn notification(&mut self, method: &str, params: &Value, found: &mut Findings<'_>) {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
        match (method, uri) {
            ("textDocument/didOpen", Some(uri)) => {
                let text = params.pointer("/textDocument/text").and_then(Value::as_str);
                let document = Document {
                    text: text.unwrap_or_default().to_owned(),
                };
                if self.documents.insert(uri.to_owned(), document).is_some() {
                    found.add(
                        "open-once",
                        "opens a document that is open",
                        json!({"uri": uri}),
                    );
                }
            }
            ("textDocument/didClose", Some(uri)) => {
                let open = self.documents.remove(uri);
                if open.is_none() {
                    let what = "closes a document that is not open";
                    found.add("close-open", what, json!({"uri": uri}));
                }
            }
            ("textDocument/didChange", Some(uri)) => self.change(uri, params, found),
            ("$/cancelRequest", _) => {
                let id = Id(params.get("id").cloned().unwrap_or(Value::Null));
                if !self.in_flight.contains(&id) {
                    let what = "names a request that is not in flight";
                    found.add("cancel-in-flight", what, json!({"id": id}));
                }
            }
            _ => {}
        }
    }

    /// Keeps the text of a document that is changed.
    fn change(&mut self, uri: &str, params: &Value, found: &mut Findings<'_>) {
        let Some(document) = self.documents.get_mut(uri) else {
            let what = "changes a document that is not open";
            found.add("change-open", what, json!({"uri": uri}));
            return;
        };
        let changes = params.pointer("/contentChanges").and_then(Value::as_array);
        for change in changes.into_iter().flatten() {
            let text = change
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default();
            match change.get("range") {
                None => text.clone_into(&mut document.text),
                Some(range) => {
                    let place = |end: &str| {
                        let number = |key: &str| range.pointer(&format!("/{end}/{key}"));
                        let line = number("line").and_then(Value::as_u64).unwrap_or(0);
                        let column = number("character").and_then(Value::as_u64).unwrap_or(0);
                        offset(&document.text, line, column)
                    };
                    let (start, end) = (place("start"), place("end"));
                    document
                        .text
                        .replace_range(start.min(end)..start.max(end), text);
                }
            }
        }
    }
}

/// The byte offset of a position; a place past the end of its line, or of the text, is that end.
fn offset(text: &str, line: u64, column: u64) -> usize {
    let mut at = 0;
    for _ in 0..line {
        match text[at..].find(['\n', '\r']) {
            Some(end) if text[at + end..].starts_with("\r\n") => at += end + 2,
            Some(end) => at += end + 1,
            None => return text.len(),
        }
    }
    let rest = &text[at..];
    let rest = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
    let mut units = 0;
    for (place, c) in rest.char_indices() {
        if units >= column {
            return at + place;
        }
        units += c.len_utf16() as u64;
    }
    at + rest.len()
}

struct Findings<'a> {
    method: Option<&'a str>,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, rule: &'static str, what: &str, mut data: Value) {
        let method = self.method.unwrap_or_default();
        data["method"] = method.into();
        data["rule"] = rule.into();
        self.all.push(Finding {
            rule,
            message: format!("`{method}` {what}"),
            data,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says the messages and returns the rules they broke. A text is a notification, a number
    /// before it makes it a request, `=` before a number answers it.
    #[track_caller]
    fn rules(said: &[&str]) -> Vec<&'static str> {
        let mut order = Order::new();
        let mut broken = Vec::new();
        for line in said {
            if let Some(id) = line.strip_prefix('=') {
                order.answered(&Id(serde_json::from_str(id).unwrap()));
                continue;
            }
            let mut words = line.split(' ');
            let mut method = words.next().unwrap();
            let mut id = None;
            if let Ok(number) = serde_json::from_str::<Value>(method) {
                id = Some(Id(number));
                method = words.next().unwrap();
            }
            let params = match words.next() {
                Some(uri) if method == "$/cancelRequest" => {
                    json!({"id": uri.parse::<i64>().unwrap()})
                }
                Some(uri) => json!({"textDocument": {"uri": uri, "text": words.next()}}),
                None => Value::Null,
            };
            let method = method.to_owned();
            let envelope = match id {
                Some(id) => Envelope::Request { id, method },
                None => Envelope::Notification { method },
            };
            broken.extend(
                order
                    .received(&envelope, &params)
                    .iter()
                    .map(|found| found.rule),
            );
        }
        broken
    }

    #[test]
    fn changes_of_a_part_are_followed() {
        let mut order = Order::new();
        let mut tell = |method: &str, params: &Value| {
            let envelope = Envelope::Notification {
                method: format!("textDocument/{method}"),
            };
            order.received(&envelope, params);
            order.text("u").map(str::to_owned)
        };
        let open = json!({"textDocument": {"uri": "u", "text": "a\r\n𝒳bc\n"}});
        tell("didOpen", &open);
        let range = |from: [u64; 2], to: [u64; 2]| {
            let place = |[line, character]: [u64; 2]| json!({"line": line, "character": character});
            json!({"start": place(from), "end": place(to)})
        };
        let change = |range: Value, text: &str| json!({"textDocument": {"uri": "u"}, "contentChanges": [{"range": range, "text": text}]});
        let mut changed = |from, to, text| tell("didChange", &change(range(from, to), text));
        assert_eq!(changed([1, 2], [1, 3], "B").unwrap(), "a\r\n𝒳Bc\n");
        assert_eq!(changed([0, 9], [1, 0], "-").unwrap(), "a-𝒳Bc\n");
        assert_eq!(changed([9, 9], [9, 9], "end").unwrap(), "a-𝒳Bc\nend");
    }

    const READY: [&str; 3] = ["1 initialize", "=1", "initialized"];

    #[track_caller]
    fn ready(said: &[&str]) -> Vec<&'static str> {
        rules(&[&READY, said].concat())
    }

    #[test]
    fn a_transient_open_breaks_no_rule() {
        let said = [
            "textDocument/didOpen u a",
            "2 textDocument/hover u",
            "$/cancelRequest 2",
            "=2",
            "textDocument/didClose u",
            "textDocument/didOpen u b",
            "textDocument/didClose u",
            "3 shutdown",
            "=3",
            "exit",
        ];
        assert_eq!(ready(&said), Vec::<&str>::new());
    }

    #[test]
    fn each_rule_is_noticed() {
        assert_eq!(rules(&["2 textDocument/hover u"])[0], "initialize-first");
        assert_eq!(
            rules(&["1 initialize", "initialized"]),
            ["quiet-until-initialized"]
        );
        assert_eq!(
            rules(&["1 initialize", "2 initialize"]),
            ["quiet-until-initialized"]
        );
        assert_eq!(rules(&["1 initialize", "=1", "x"]), ["initialized-next"]);
        assert_eq!(ready(&["initialized"]), ["initialize-once"]);
        assert_eq!(ready(&["2 shutdown", "x"]), ["exit-only"]);
        assert_eq!(ready(&["2 shutdown", "exit", "x"]), ["nothing-after-exit"]);
        assert_eq!(ready(&["2 textDocument/hover u"]), ["open-document"]);
        assert_eq!(
            ready(&["textDocument/didOpen u", "textDocument/didOpen u"]),
            ["open-once"]
        );
        assert_eq!(ready(&["textDocument/didClose u"]), ["close-open"]);
        assert_eq!(ready(&["textDocument/didChange u"]), ["change-open"]);
        assert_eq!(ready(&["2 a", "2 b"]), ["id-in-flight"]);
        assert_eq!(ready(&["2 a", "=2", "2 b"]), ["id-reused"]);
        assert_eq!(ready(&["null a"]), ["id-type"]);
        assert_eq!(
            ready(&["2 a", "=2", "$/cancelRequest 2"]),
            ["cancel-in-flight"]
        );
    }
}
