//! Who stands between: sees the bytes as they pass, and may do more than let them pass.

use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use dsh_transcript::Direction;
use rustix::process::Signal;

use super::{Ending, StartError};

/// Who sees the bytes as they pass, and may do more than let them pass.
pub(crate) trait Between {
    /// The server is about to be started again, or for the first time.
    fn start(&mut self) -> Result<Child, StartError>;

    /// Bytes came that go in `direction`. What is to be written has to be put to `out`.
    fn bytes(&mut self, direction: Direction, bytes: &[u8], out: &mut Out);

    /// The stream that goes in `direction` ended, or whoever reads it is gone.
    fn closed(&mut self, direction: Direction, out: &mut Out);

    /// The server wrote this to its stderr; it is passed on in any case.
    fn stderr(&mut self, bytes: &[u8]);

    /// A signal came.
    fn signal(&mut self, signal: i32) -> OnSignal;

    /// The server is gone. Everything it wrote has been handed over before.
    fn ended(&mut self, status: ExitStatus, out: &mut Out);

    /// The server was started, and nothing else is done yet. What `out` has is written first.
    fn first(&mut self, out: &mut Out) {
        let _ = out;
    }

    /// Whether the server's stderr is read.
    fn drains(&self) -> bool {
        true
    }

    /// Whether the server is not the process that was started, and ends with its stdout.
    fn adrift(&self) -> bool {
        false
    }

    /// Whether what children of a server that has ended still write to its stdout is passed on.
    fn lingers(&self) -> bool {
        false
    }

    /// Whether the client sees nothing of the server's death, since another one takes its place.
    fn outlives(&self) -> bool {
        false
    }

    /// Whether reading from the client goes on however much waits for the server.
    fn takes_everything(&self) -> bool {
        false
    }

    /// This process ends. Pipes of a server that was not seen to end are handed over.
    fn left(&mut self, stdin: OwnedFd, stdout: OwnedFd) {
        drop((stdin, stdout));
    }
}

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// The server gets it.
    Pass,
    /// Nobody gets it.
    Ignore,
    /// This process dies of it, and the server does not.
    Die,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    /// Close the server's stdin, or the client's end of its stdout, once everything is written.
    pub(crate) close_server: bool,
    pub(crate) close_client: bool,
    /// Send the server this signal.
    pub(crate) kill: Option<Signal>,
    /// Where the server is gone: start it again.
    pub(crate) restart: bool,
    /// End with this, whatever the server does.
    pub(crate) end: Option<Ending>,
}

impl Out {
    /// Writes in a direction.
    pub(crate) fn write(&mut self, direction: Direction, bytes: &[u8]) {
        match direction {
            Direction::ToServer => self.to_server.extend_from_slice(bytes),
            Direction::ToClient => self.to_client.extend_from_slice(bytes),
        }
    }
}
