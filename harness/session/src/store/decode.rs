//! Reading a file of events, line by line, in memory bounded by what is kept.

use std::io::{BufRead, Read as _};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::{FORMAT, Head, MAX_LINE, StoreError};
use crate::{Event, Log, SessionHeader};

/// What a file holds.
pub(crate) struct Loaded {
    pub(crate) header: SessionHeader,
    pub(crate) log: Log,
    /// How many bytes the whole lines have.
    pub(crate) length: u64,
    /// How many bytes are behind them.
    pub(crate) torn: u64,
}

/// Reads a file to its end.
pub(crate) fn read(path: &Path, reader: &mut impl BufRead) -> Result<Loaded, StoreError> {
    let mut lines = Lines {
        path,
        reader,
        buffer: Vec::new(),
        number: 0,
        length: 0,
        torn: 0,
    };
    let header = head(&mut lines)?;
    let mut log = Log::new();
    while lines.next()? {
        let event = event(lines.text()?).map_err(|problem| lines.wrong(problem))?;
        log.add(Arc::new(event))
            .map_err(|error| lines.wrong(error.to_string()))?;
    }
    Ok(Loaded {
        header,
        log,
        length: lines.length,
        torn: lines.torn,
    })
}

/// The lines of a file, one at a time.
struct Lines<'a, R> {
    path: &'a Path,
    reader: &'a mut R,
    /// The current line, without its end.
    buffer: Vec<u8>,
    number: u64,
    length: u64,
    torn: u64,
}

impl<R: BufRead> Lines<'_, R> {
    /// Goes on to the next whole line; false if there is none.
    fn next(&mut self) -> Result<bool, StoreError> {
        self.buffer.clear();
        let most = MAX_LINE as u64 + 1;
        let mut piece = self.reader.by_ref().take(most);
        piece
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| StoreError::Io {
                path: self.path.to_owned(),
                doing: "read",
                source,
            })?;
        let read = self.buffer.len() as u64;
        if self.buffer.pop_if(|last| *last == b'\n').is_some() {
            self.number += 1;
            self.length += read;
            return Ok(true);
        }
        if read == most {
            self.number += 1;
            return Err(self.wrong(format!(
                "the line is longer than {MAX_LINE} bytes, which no event is"
            )));
        }
        self.torn = read;
        Ok(false)
    }

    fn text(&self) -> Result<&str, StoreError> {
        std::str::from_utf8(&self.buffer).map_err(|error| {
            self.wrong(format!(
                "byte {} of the line is not UTF-8",
                error.valid_up_to() + 1
            ))
        })
    }

    fn wrong(&self, problem: String) -> StoreError {
        StoreError::Line {
            path: self.path.to_owned(),
            line: self.number,
            problem,
        }
    }
}

/// The header, from the first line.
fn head<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<SessionHeader, StoreError> {
    /// What every version of the format says.
    #[derive(Deserialize)]
    struct Version {
        format: String,
    }
    let path = lines.path;
    let none = |problem: &str| StoreError::NotASession {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let foreign = "this is no session: its first line does not name a format. Name the file that a \
                   session was written to";
    match lines.next() {
        Ok(true) => {}
        Ok(false) if lines.torn == 0 => {
            return Err(none(
                "the file is empty: no session was begun. Delete it and create the session anew",
            ));
        }
        // A header that is torn has the beginning that every header has.
        Ok(false) if is_torn_head(&lines.buffer) => {
            return Err(none(
                "the header is torn: the session was being created and nothing was promised. Delete \
                 the file and create the session anew",
            ));
        }
        Err(error @ StoreError::Io { .. }) => return Err(error),
        Ok(false) | Err(_) => return Err(none(foreign)),
    }
    let text = std::str::from_utf8(&lines.buffer).map_err(|_| none(foreign))?;
    let version: Version = serde_json::from_str(text).map_err(|_| none(foreign))?;
    if version.format != FORMAT {
        if !version.format.starts_with("dsh-session/") {
            return Err(none(foreign));
        }
        let found = clip(&version.format);
        let path = path.to_owned();
        return Err(StoreError::ForeignVersion { path, found });
    }
    let head: Head = serde_json::from_str(text).map_err(|error| {
        let error = clip(&error.to_string());
        none(&format!(
            "the header is wrong: {error}. Mend it from a copy of the file"
        ))
    })?;
    Ok(head.header)
}

fn is_torn_head(bytes: &[u8]) -> bool {
    let begin = br#"{"format":"dsh-session/"#;
    let both = bytes.len().min(begin.len());
    bytes[..both] == begin[..both]
}

fn event(text: &str) -> Result<Event, String> {
    serde_json::from_str(text).map_err(|error| {
        let whole = error.to_string();
        // The reader counts lines from where it began, which is this line.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = whole.strip_suffix(&place).unwrap_or(&whole);
        format!("{}, at byte {}", clip(problem), error.column())
    })
}

/// A message whose length does not depend on what is in the file.
fn clip(text: &str) -> String {
    match text.char_indices().nth(300) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
