//! Reading a session's file.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::text::clipped;

/// What the first line names.
pub const SESSION_FORMAT: &str = "dsh-session/1";

/// The types of events.
const KNOWN: [&str; 10] = [
    "turn/start",
    "turn/end",
    "step/start",
    "step/request",
    "step/end",
    "user/message",
    "assistant/message",
    "tool/call",
    "tool/result",
    "compaction",
];

/// The most notes that are kept word for word.
const MOST_NOTES: usize = 20;

/// Why a file is not shown. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionReadError {
    /// There is nothing in it.
    #[error("the file is empty; name the file that `agent --session` wrote")]
    Empty,
    /// The first line does not say that it is a session.
    #[error(
        "line 1 is no header of a session ({why}); it should be \
         {{\"format\":\"{SESSION_FORMAT}\",\"header\":{{…}}}}: name the file that \
         `agent --session` wrote"
    )]
    NotASession {
        /// What is wrong with it.
        why: String,
    },
    /// It is a session of another version.
    #[error(
        "the session has the format {found:?}, this program reads {SESSION_FORMAT:?}; use the \
         version of dsh-conform that wrote it, or a newer one"
    )]
    OtherVersion {
        /// What it says.
        found: String,
    },
    /// A line that is no event of any version.
    #[error("line {line} is no event: {why}; mend it from a copy, or remove it and what follows")]
    Line {
        /// Which.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// A session as its file has it.
#[derive(Clone, Debug)]
pub struct SessionLog {
    pub(super) header: Header,
    pub(super) events: Vec<Logged>,
    notes: Vec<String>,
    more_notes: usize,
}

impl SessionLog {
    /// What is odd about the file, for people; empty for a file that is whole and known.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.more_notes > 0 {
            notes.push(format!(
                "{} more lines are odd in such ways.",
                self.more_notes
            ));
        }
        notes
    }

    fn note(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(note());
        } else {
            self.more_notes += 1;
        }
    }
}

/// What is fixed for a session.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Header {
    pub(super) id: String,
    #[serde(default)]
    pub(super) cwd: Option<String>,
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    /// The line it stands on, from 1. Unique, whatever the file says.
    pub(super) line: usize,
    pub(super) seq: u64,
    /// As the file has it.
    pub(super) at_ms: u64,
    /// Microseconds since the first event; never less than that of the event before.
    pub(super) at_us: u64,
    pub(super) body: Body,
}

/// What happened.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub(super) enum Body {
    #[serde(rename = "turn/start")]
    TurnStart { turn: u64 },
    #[serde(rename = "turn/end")]
    TurnEnd { outcome: Outcome },
    #[serde(rename = "step/start")]
    StepStart { step: u64 },
    #[serde(rename = "step/request")]
    StepRequest {
        #[serde(default)]
        system: Option<String>,
        #[serde(default)]
        tools: Option<Vec<Schema>>,
        sha1: String,
    },
    #[serde(rename = "step/end")]
    StepEnd { outcome: Outcome },
    #[serde(rename = "user/message")]
    UserMessage {
        source: Map<String, Value>,
        content: Vec<Value>,
    },
    #[serde(rename = "assistant/message")]
    Answer(Answer),
    #[serde(rename = "tool/call")]
    Call {
        call: Call,
        #[serde(default)]
        parent: Option<String>,
    },
    #[serde(rename = "tool/result")]
    Result(Outcoming),
    #[serde(rename = "compaction")]
    Compaction {
        from: u64,
        to: u64,
        summary: Vec<Value>,
    },
    /// Something that this version does not know.
    #[serde(skip)]
    Unknown { kind: String, json: Value },
}

/// How a turn or a step ended.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) status: String,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) message: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) reasoning: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Vec<Call>,
    #[serde(default)]
    pub(super) usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Schema {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) parameters: Value,
}

/// What came of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcoming {
    pub(super) call_id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) is_error: bool,
    #[serde(default)]
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) value: Option<Value>,
    #[serde(default)]
    pub(super) content: Vec<Value>,
    #[serde(default)]
    pub(super) parent: Option<String>,
}

/// Reads the bytes of a session's file.
///
/// A last line without an end is left out, an event of an unknown type is kept as it is, and both
/// are among the [notes](SessionLog::notes).
pub fn read_session(bytes: &[u8]) -> Result<SessionLog, SessionReadError> {
    if bytes.is_empty() {
        return Err(SessionReadError::Empty);
    }
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let first = lines.next().map_or(&[][..], |(_, line)| line);
    let mut log = SessionLog {
        header: header(first)?,
        events: Vec::new(),
        notes: Vec::new(),
        more_notes: 0,
    };
    for (index, bytes) in lines {
        let line = index + 1;
        if !bytes.ends_with(b"\n") {
            log.note(|| {
                format!(
                    "Line {line} has no end: whoever wrote the file was interrupted. Its {} bytes \
                     are left out.",
                    bytes.len()
                )
            });
            break;
        }
        add(&mut log, line, bytes)?;
    }
    Ok(log)
}

fn header(line: &[u8]) -> Result<Header, SessionReadError> {
    #[derive(Deserialize)]
    struct Version {
        format: String,
    }
    #[derive(Deserialize)]
    struct Head {
        header: Header,
    }
    let none = |error: serde_json::Error| SessionReadError::NotASession { why: place(&error) };
    let version: Version = serde_json::from_slice(line).map_err(none)?;
    if version.format != SESSION_FORMAT {
        return Err(SessionReadError::OtherVersion {
            found: clipped(&version.format, 100),
        });
    }
    let head: Head = serde_json::from_slice(line).map_err(none)?;
    Ok(head.header)
}

fn add(log: &mut SessionLog, line: usize, bytes: &[u8]) -> Result<(), SessionReadError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Stamp {
        seq: u64,
        at_ms: u64,
        #[serde(rename = "type")]
        kind: String,
    }
    let wrong = |error: serde_json::Error| SessionReadError::Line {
        line,
        why: place(&error),
    };
    let stamp: Stamp = serde_json::from_slice(bytes).map_err(wrong)?;
    let body = match serde_json::from_slice(bytes) {
        Ok(body) => body,
        Err(error) => {
            let kind = clipped(&stamp.kind, 60);
            log.note(|| {
                if KNOWN.contains(&stamp.kind.as_str()) {
                    let why = place(&error);
                    format!("Line {line}: this event of the type {kind:?} has another form than this version knows ({why}); it is shown as it is.")
                } else {
                    format!("Line {line}: this version does not know events of the type {kind:?}; it is shown as it is.")
                }
            });
            Body::Unknown {
                kind: stamp.kind,
                json: serde_json::from_slice(bytes).map_err(wrong)?,
            }
        }
    };
    let expected = log
        .events
        .last()
        .map_or(1, |last| last.seq.saturating_add(1));
    if stamp.seq != expected {
        log.note(|| {
            format!(
                "Line {line}: event {} stands where event {expected} should; lines are missing, \
                 doubled or in another order.",
                stamp.seq
            )
        });
    }
    let origin = log.events.first().map_or(stamp.at_ms, |first| first.at_ms);
    let before = log.events.last().map_or(0, |last| last.at_us);
    let at_us = stamp.at_ms.saturating_sub(origin).saturating_mul(1000);
    if log
        .events
        .last()
        .is_some_and(|last| stamp.at_ms < last.at_ms)
    {
        log.note(|| format!("Line {line}: the writer's clock went back here."));
    }
    log.events.push(Logged {
        line,
        seq: stamp.seq,
        at_ms: stamp.at_ms,
        at_us: at_us.max(before),
        body,
    });
    Ok(())
}

/// What the reader of JSON says, with the byte of the line it says it of.
fn place(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let words = clipped(whole.strip_suffix(&place).unwrap_or(&whole), 300);
    if error.line() == 0 {
        return words;
    }
    format!("{words}, at byte {}", error.column())
}
