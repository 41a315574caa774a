//! Where events go: the control channel, a file, both, or nowhere.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use dsh_transcript::{Bounds, Direction, Event, EventBody, Splitter, jsonl, monotonic_us};

use super::StartError;
use crate::control::link::Link;

/// The control channel is lost.
#[derive(Debug)]
pub(super) struct Lost;

/// See the [module](self). Each event of the file is one write, so that a server that is killed
/// leaves all that happened before.
#[derive(Debug)]
pub(super) struct Recording {
    link: Option<Link>,
    file: Option<Transcript>,
    /// What was written to stdout, read back by the strict reader.
    written: Splitter,
}

#[derive(Debug)]
struct Transcript {
    file: File,
    start_us: u64,
    next: u64,
    process: u32,
}

impl Recording {
    pub(super) fn new(
        link: Option<Link>,
        path: Option<&PathBuf>,
        process: u32,
        started: &EventBody,
    ) -> Result<Self, StartError> {
        let open = |path: &PathBuf| -> io::Result<Transcript> {
            let mut file = File::create(path)?;
            jsonl::write_header(&mut file)?;
            let start_us = monotonic_us();
            // A runner at the other end of a channel notes this by itself.
            let first = Event {
                seq: 0,
                at_us: 0,
                process: Some(process),
                body: started.clone(),
            };
            jsonl::write_event(&mut file, &first)?;
            Ok(Transcript {
                file,
                start_us,
                next: 1,
                process,
            })
        };
        let file = match path {
            None => None,
            Some(path) => Some(open(path).map_err(|source| StartError::File {
                path: path.clone(),
                source,
            })?),
        };
        let written = Splitter::new(Direction::ToClient, Bounds::default());
        Ok(Self {
            link,
            file,
            written,
        })
    }

    /// Whether anybody listens.
    pub(super) fn is_on(&self) -> bool {
        self.link.is_some() || self.file.is_some()
    }

    pub(super) fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// Records something that happens now.
    pub(super) fn record(&mut self, body: EventBody) -> Result<(), Lost> {
        let at_us = monotonic_us();
        if let Some(transcript) = &mut self.file {
            let event = Event {
                seq: transcript.next,
                at_us: at_us.saturating_sub(transcript.start_us),
                process: Some(transcript.process),
                body,
            };
            transcript.next += 1;
            if let Err(error) = jsonl::write_event(&mut transcript.file, &event) {
                // The transcript is a by-product: the server goes on, and says so.
                let _ = writeln!(
                    io::stderr(),
                    "dsh-fake-lsp: the transcript ends here: {error}"
                );
                self.file = None;
            }
            return match &mut self.link {
                Some(link) => link.event(at_us, event.body).map_err(|_| Lost),
                None => Ok(()),
            };
        }
        match &mut self.link {
            Some(link) => link.event(at_us, body).map_err(|_| Lost),
            None => Ok(()),
        }
    }

    /// Records what went to stdout.
    pub(super) fn wrote(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        if !self.is_on() {
            return Ok(());
        }
        let mut events = Vec::new();
        self.written.bytes(bytes, |event| events.push(event));
        events.into_iter().try_for_each(|event| self.record(event))
    }

    /// Records that stdout is closed.
    pub(super) fn closed(&mut self) -> Result<(), Lost> {
        if !self.is_on() {
            return Ok(());
        }
        let mut events = Vec::new();
        self.written.end(|event| events.push(event));
        events.into_iter().try_for_each(|event| self.record(event))
    }

    /// Makes sure that all that was recorded is kept.
    pub(super) fn sync(&mut self) -> Result<(), Lost> {
        match &mut self.link {
            Some(link) => link.sync().map_err(|_| Lost),
            None => Ok(()),
        }
    }
}
