//! Transcripts as they are written by hand, line by line; see `monitors/README.md`.

use dsh_scenarios::format::Who;
use dsh_transcript::{Direction, Event, EventBody, Frame, Malformed, Raw, Splitter};
use serde_json::{Value, json};

/// A finding that a line announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) seq: u64,
    pub(crate) by: Who,
    pub(crate) note: bool,
    pub(crate) clause: String,
}

/// The events, and what has to be found in them.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    pub(crate) events: Vec<Event>,
    pub(crate) expected: Vec<Expected>,
    now: u64,
}

pub(crate) fn event(seq: u64, body: EventBody) -> Event {
    Event {
        seq,
        at_us: seq,
        process: Some(1),
        body,
    }
}

/// Reads the lines.
pub(crate) fn speak(text: &str) -> Result<Spoken, String> {
    let mut spoken = Spoken::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (said, expected) = match line.rsplit_once(" ! ") {
            Some((said, expected)) => (said.trim(), Some(expected)),
            None => (line, None),
        };
        let fault = |problem: String| format!("line {}: {problem}: {line}", number + 1);
        spoken.line(said).map_err(fault)?;
        for one in expected.into_iter().flat_map(|all| all.split(',')) {
            let one = expectation(one).map_err(fault)?;
            let seq = spoken.events.len() as u64 - 1;
            spoken.expected.push(Expected { seq, ..one });
        }
    }
    Ok(spoken)
}

/// `client WIRE-1`, `server note shape`.
fn expectation(text: &str) -> Result<Expected, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (by, note, clause) = match words[..] {
        [by, "note", clause] => (by, true, clause),
        [by, clause] => (by, false, clause),
        _ => return Err(format!("{text:?} is no finding")),
    };
    let by = match by {
        "client" => Who::Client,
        "server" => Who::Server,
        other => return Err(format!("{other:?} is neither client nor server")),
    };
    Ok(Expected {
        seq: 0,
        by,
        note,
        clause: clause.to_owned(),
    })
}

fn uri(file: &str) -> String {
    if file.contains(':') {
        file.to_owned()
    } else {
        format!("file:///w/{file}")
    }
}

fn value(text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Some(value))
}

/// The first word and the rest.
fn word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    (first, rest.trim())
}

/// What a transient client says first.
pub(crate) fn announcement() -> Value {
    json!({
        "processId": null,
        "rootUri": "file:///w",
        "workspaceFolders": [{"uri": "file:///w", "name": "w"}],
        "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {"workspaceFolders": true, "configuration": true},
            "textDocument": {
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "definition": {"linkSupport": true, "dynamicRegistration": false},
                "implementation": {"linkSupport": true},
            },
        },
    })
}

/// What a server that can do everything answers.
pub(crate) fn offer() -> Value {
    json!({"capabilities": {
        "textDocumentSync": {"openClose": true, "change": 2},
        "definitionProvider": true,
        "referencesProvider": {},
        "implementationProvider": true,
        "hoverProvider": true,
    }})
}

/// `whole` with the members of `part` in it; null takes one out.
fn merged(mut whole: Value, part: &Value) -> Value {
    if let (Value::Object(whole), Value::Object(part)) = (&mut whole, part) {
        for (key, value) in part {
            if value.is_null() {
                whole.remove(key);
            } else {
                let before = whole.remove(key).unwrap_or_default();
                whole.insert(key.clone(), merged(before, value));
            }
        }
        return Value::Object(std::mem::take(whole));
    }
    part.clone()
}

impl Spoken {
    fn push(&mut self, body: EventBody) {
        let seq = self.events.len() as u64;
        self.now += 1;
        self.events.push(Event {
            at_us: self.now,
            ..event(seq, body)
        });
    }

    fn message(&mut self, direction: Direction, body: &Value) {
        let body = EventBody::Frame(Frame::conforming(direction, 0, body.to_string().as_bytes()));
        self.push(body);
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (first, rest) = word(line);
        match first {
            ">" => self.said(Direction::ToServer, rest),
            "<" => self.said(Direction::ToClient, rest),
            "ready" => {
                let part = value(rest)?.unwrap_or_else(|| json!({}));
                self.started();
                let client = part.get("client").cloned().unwrap_or_else(|| json!({}));
                let server = part.get("server").cloned().unwrap_or_else(|| json!({}));
                let params = merged(announcement(), &client);
                self.message(
                    Direction::ToServer,
                    &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
                );
                let result = merged(offer(), &json!({"capabilities": server}));
                self.message(
                    Direction::ToClient,
                    &json!({"jsonrpc": "2.0", "id": 1, "result": result}),
                );
                self.line("> initialized {}")
            }
            "started" => {
                self.started();
                Ok(())
            }
            "goodbye" => {
                self.line(&format!("> {rest} shutdown"))?;
                self.line(&format!("< ={rest} null"))?;
                self.line("> exit")?;
                self.line("ended 0")
            }
            "ended" => {
                let code = rest.parse().map_err(|_| "an exit code is missing")?;
                self.closed(Direction::ToClient);
                self.push(EventBody::ProcessEnded {
                    code: Some(code),
                    signal: None,
                });
                Ok(())
            }
            "killed" => {
                self.push(EventBody::ProcessEnded {
                    code: None,
                    signal: Some(9),
                });
                Ok(())
            }
            "closed" => {
                self.closed(Direction::ToClient);
                Ok(())
            }
            "eof" => {
                self.closed(Direction::ToServer);
                Ok(())
            }
            "signal" => {
                self.push(EventBody::note("signal", "SIGTERM"));
                Ok(())
            }
            "pass" => {
                let ms: u64 = rest.parse().map_err(|_| "milliseconds are missing")?;
                self.now += ms * 1000;
                Ok(())
            }
            other => Err(format!("{other:?} is nothing that can happen")),
        }
    }

    fn started(&mut self) {
        self.push(EventBody::ProcessStarted {
            pid: 7,
            argv: vec!["server".to_owned()],
            cwd: None,
        });
    }

    fn closed(&mut self, direction: Direction) {
        self.push(EventBody::Closed {
            direction,
            total: 0,
        });
    }

    fn said(&mut self, direction: Direction, text: &str) -> Result<(), String> {
        let (first, rest) = word(text);
        if self.said_in_bytes(direction, first, rest)?
            || self.said_in_short(direction, first, rest)?
        {
            return Ok(());
        }
        if let Some(id) = first.strip_prefix('=') {
            let mut body = json!({"jsonrpc": "2.0", "id": value(id)?});
            if let Some(result) = value(rest)? {
                body["result"] = result;
            }
            self.message(direction, &body);
        } else if let Some(id) = first.strip_prefix('!') {
            let (code, message) = word(rest);
            let error = json!({"code": value(code)?, "message": message});
            let body = json!({"jsonrpc": "2.0", "id": value(id)?, "error": error});
            self.message(direction, &body);
        } else if let Ok(id) = serde_json::from_str::<Value>(first) {
            let body = request(&id, rest)?;
            self.message(direction, &body);
        } else {
            self.notify(direction, first, value(rest)?);
        }
        Ok(())
    }

    /// What is written as it goes over the wire; whether it was that.
    fn said_in_bytes(
        &mut self,
        direction: Direction,
        first: &str,
        rest: &str,
    ) -> Result<bool, String> {
        match first {
            "body" => {
                let frame = Frame::conforming(direction, 0, rest.as_bytes());
                self.push(EventBody::Frame(frame));
            }
            "header" => {
                // The header as written, in front of a small notification.
                let header: String = serde_json::from_str(rest).map_err(|e| e.to_string())?;
                let params = json!({"token": 1, "value": {}});
                let body =
                    json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}).to_string();
                let header = header.replace("LEN", &body.len().to_string());
                let mut splitter = Splitter::new(direction, dsh_transcript::Bounds::default());
                let mut events = Vec::new();
                splitter.bytes((header + &body).as_bytes(), |event| events.push(event));
                for event in events {
                    self.push(event);
                }
            }
            "bytes" => {
                let line = rest.to_owned();
                self.stray(direction, rest, Some(Malformed::NoColon { line }));
            }
            "begun" => {
                let have = rest.len() as u64;
                self.stray(direction, rest, Some(Malformed::EndInHeader { have }));
            }
            "torn" => {
                let reason = Some(Malformed::EndInBody { have: 3, want: 30 });
                self.stray(direction, "{\"a", reason);
            }
            "long" => {
                // A body of which only the start was kept, too long to be read at all.
                let mut frame = Frame::conforming(direction, 0, b"[]");
                frame.cut = Some(1);
                frame.size = 1 << 30;
                self.push(EventBody::Frame(frame));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The usual notifications; whether it was one.
    fn said_in_short(
        &mut self,
        direction: Direction,
        first: &str,
        rest: &str,
    ) -> Result<bool, String> {
        let (method, params) = match first {
            "open" => {
                let (file, version) = word(rest);
                let version: i64 = version.parse().unwrap_or(1);
                let document =
                    json!({"uri": uri(file), "languageId": "ts", "version": version, "text": "x"});
                ("textDocument/didOpen", json!({"textDocument": document}))
            }
            "close" => {
                let document = json!({"uri": uri(rest)});
                ("textDocument/didClose", json!({"textDocument": document}))
            }
            "cancel" => ("$/cancelRequest", json!({"id": value(rest)?})),
            _ => return Ok(false),
        };
        self.notify(direction, method, Some(params));
        Ok(true)
    }

    fn notify(&mut self, direction: Direction, method: &str, params: Option<Value>) {
        let mut body = json!({"jsonrpc": "2.0", "method": method});
        if let Some(params) = params {
            body["params"] = params;
        }
        self.message(direction, &body);
    }

    fn stray(&mut self, direction: Direction, text: &str, reason: Option<Malformed>) {
        self.push(EventBody::Stray {
            direction,
            offset: 0,
            bytes: Raw::copy(text.as_bytes()),
            dropped: 0,
            reason,
        });
    }
}

/// A request: `METHOD PARAMS`, `ask hover FILE {…}`, `initialize`, `initialize + {…}`.
fn request(id: &Value, text: &str) -> Result<Value, String> {
    let (method, rest) = word(text);
    if method == "ask" {
        let (operation, rest) = word(rest);
        let (file, more) = word(rest);
        let mut params = json!({
            "textDocument": {"uri": uri(file)},
            "position": {"line": 0, "character": 6},
        });
        if operation == "references" {
            params["context"] = json!({"includeDeclaration": true});
        }
        if let Some(more) = value(more)? {
            params = merged(params, &more);
        }
        let method = format!("textDocument/{operation}");
        return Ok(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }
    let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method});
    let params = match (method, rest.strip_prefix("+ ")) {
        ("initialize", Some(part)) => {
            Some(merged(announcement(), &value(part)?.unwrap_or_default()))
        }
        ("initialize", None) if rest.is_empty() => Some(announcement()),
        _ => value(rest)?,
    };
    if let Some(params) = params {
        body["params"] = params;
    }
    Ok(body)
}
