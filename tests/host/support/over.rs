//! What can be asked when a test is over and everything was recorded.

use std::path::PathBuf;

use dsh_subprocess::{ChildExit, TerminationReport};
use dsh_transcript::{Direction, Event, EventBody, View};
use serde_json::Value;

use super::processes::Spawned;
use super::{is_note, uri_of};

/// A test that has run. Processes are numbered from 1, in the order in which they reported.
pub(crate) struct Over {
    pub(super) events: Vec<Event>,
    pub(super) spawned: Vec<Spawned>,
    pub(super) workspace: PathBuf,
}

impl Over {
    fn view(&self) -> View<'_> {
        View(&self.events)
    }

    /// So many processes were started, one of them after the other or side by side.
    #[track_caller]
    pub(crate) fn processes(&self, count: usize) -> &Self {
        assert_eq!(self.spawned.len(), count, "processes that were started");
        self
    }

    /// What the host asked and told a process, by short names with blanks between them, answers
    /// aside.
    #[track_caller]
    pub(crate) fn wire(&self, process: u32, expected: &str) -> &Self {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(
            self.view().wire(process),
            expected,
            "on the wire of process {process}"
        );
        self
    }

    /// Whole bodies that a process has read, of messages with this method.
    pub(crate) fn bodies(&self, process: u32, method: &str) -> Vec<Value> {
        self.view()
            .sent(process, Direction::ToServer)
            .filter(|(event, _)| event.is_message(Direction::ToServer, method))
            .map(|(_, frame)| frame.json().expect("the host writes JSON"))
            .collect()
    }

    /// The member `params` of the only message of this method that a process has read.
    #[track_caller]
    pub(crate) fn params(&self, process: u32, method: &str) -> Value {
        let mut bodies = self.bodies(process, method);
        assert_eq!(bodies.len(), 1, "messages of {method}");
        bodies[0]["params"].take()
    }

    /// The answers of the host to requests of the server, whole, in order.
    pub(crate) fn answers(&self, process: u32) -> Vec<Value> {
        self.view()
            .sent(process, Direction::ToServer)
            .filter(|(_, frame)| frame.is_response())
            .map(|(_, frame)| frame.json().expect("the host writes JSON"))
            .collect()
    }

    /// The same as text, byte for byte.
    pub(crate) fn raw_answers(&self, process: u32) -> Vec<String> {
        self.view()
            .sent(process, Direction::ToServer)
            .filter(|(_, frame)| frame.is_response())
            .map(|(_, frame)| String::from_utf8(frame.body.to_vec()).expect("JSON is UTF-8"))
            .collect()
    }

    /// Notes of a kind, in order: process, message, data.
    pub(crate) fn notes(&self, kind: &str) -> Vec<(Option<u32>, String, Value)> {
        let note = |event: &Event| match &event.body {
            EventBody::Note { message, data, .. } => (event.process, message.clone(), data.clone()),
            _ => unreachable!("only notes are asked for"),
        };
        self.view().notes(kind).map(note).collect()
    }

    /// The process that reported under this number.
    #[track_caller]
    pub(crate) fn spawned(&self, process: u32) -> &Spawned {
        let pid = self.view().of(process).find_map(|event| match event.body {
            EventBody::ProcessStarted { pid, .. } => Some(pid),
            _ => None,
        });
        let found = self.spawned.iter().find(|spawned| Some(spawned.pid) == pid);
        found.unwrap_or_else(|| panic!("process {process} did not report"))
    }

    /// How a process ended.
    #[track_caller]
    pub(crate) fn exit(&self, process: u32) -> ChildExit {
        self.spawned(process).exit.expect("it has ended")
    }

    /// What ending a process's tree took.
    #[track_caller]
    pub(crate) fn report(&self, process: u32) -> &TerminationReport {
        self.spawned(process)
            .report
            .as_ref()
            .expect("its tree was ended")
    }

    /// A process, and all it started, ended without a signal, and with code 0.
    #[track_caller]
    pub(crate) fn ended_by_itself(&self, process: u32) -> &Self {
        assert_eq!(
            *self.report(process),
            TerminationReport::default(),
            "signals sent"
        );
        assert_eq!(
            self.exit(process),
            ChildExit::Code(0),
            "how process {process} ended"
        );
        self
    }

    /// A process was sent SIGTERM, and ended for it or before the next signal.
    #[track_caller]
    pub(crate) fn terminated(&self, process: u32) -> &Self {
        let report = self.report(process);
        assert!(
            !report.terminated.is_empty() && report.killed.is_empty(),
            "{report:?}"
        );
        self
    }

    /// A process was sent SIGTERM and then SIGKILL, of which it died.
    #[track_caller]
    pub(crate) fn killed(&self, process: u32) -> &Self {
        let report = self.report(process);
        assert!(
            !report.terminated.is_empty() && !report.killed.is_empty(),
            "{report:?}"
        );
        self
    }

    /// The positions in the transcript of the events that `wanted` accepts.
    pub(crate) fn when(&self, wanted: impl Fn(&Event) -> bool) -> Vec<u64> {
        self.events
            .iter()
            .filter(|event| wanted(event))
            .map(|event| event.seq)
            .collect()
    }

    /// The positions in the transcript of the notes of a kind.
    pub(crate) fn when_noted(&self, kind: &str) -> Vec<u64> {
        self.when(|event| is_note(event, kind))
    }

    /// How many processes were started.
    pub(crate) fn spawned_so_many(&self) -> usize {
        self.spawned.len()
    }

    /// The process that was started at this place, from 0; for those that do not report.
    #[track_caller]
    pub(crate) fn spawned_at(&self, place: usize) -> &Spawned {
        &self.spawned[place]
    }

    /// The URI of a file of the workspace, or of the workspace itself for "".
    pub(crate) fn uri(&self, name: &str) -> String {
        let path = if name.is_empty() {
            self.workspace.clone()
        } else {
            self.workspace.join(name)
        };
        uri_of(&path)
    }
}
