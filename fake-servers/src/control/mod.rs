//! The control channel: events out of the server, releases in.
//!
//! A local socket whose address the server is given as an argument. The server connects, says who
//! it is, and gets its process number; then it sends each event as it happens, stamped with the
//! system's monotonic clock, and waits for an acknowledgement before it ends or closes something,
//! so that nothing it reported is lost. When the channel is lost, the server ends.

mod gone;
pub(crate) mod link;
mod runner;

use dsh_transcript::EventBody;
use serde::{Deserialize, Serialize};

pub use runner::{Control, ControlError};

use crate::script::Action;

/// The longest line of the channel, in bytes.
pub(crate) const MAX_LINE: usize = 128 << 20;

/// What a server says. One JSON text a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Up {
    /// Who connects; always first.
    Hello {
        role: Role,
        pid: u32,
        argv: Vec<String>,
        cwd: String,
    },
    /// Something happened, at this microsecond of the monotonic clock.
    Event { at_us: u64, body: EventBody },
    /// Asks for `Done` of this number, when all before it is kept.
    Sync { number: u64 },
}

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// A server; it gets a process number.
    Server,
    /// A process a server left behind; it only waits for the channel's end.
    Helper,
}

/// What the runner says. One JSON text a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Down {
    /// Answers `Hello` of a server.
    Welcome { process: u32 },
    /// What was held under this token may go on.
    Release { token: u64 },
    /// Answers `Sync`.
    Done { number: u64 },
    /// Do this now.
    Perform { actions: Vec<Action> },
}

/// Cuts a stream of bytes into lines, in linear time.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line starts, and up to where no line end was found.
    start: usize,
    scanned: usize,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let Some(found) = self.buffer[self.scanned..]
            .iter()
            .position(|byte| *byte == b'\n')
        else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + found;
        let line = self.buffer[self.start..end].to_vec();
        self.start = end + 1;
        self.scanned = end + 1;
        Some(line)
    }

    /// Whether more is held than a line may have.
    pub(crate) fn is_too_long(&self) -> bool {
        self.buffer.len() - self.start > MAX_LINE
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        for cut in 1..8 {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for piece in b"one\n\nthree\nfo".chunks(cut) {
                lines.push(piece);
                while let Some(line) = lines.next() {
                    seen.push(String::from_utf8(line).unwrap());
                }
            }
            assert_eq!(seen, ["one", "", "three"], "{cut}");
        }
    }
}
