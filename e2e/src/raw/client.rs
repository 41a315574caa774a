//! The shell around a [`Dialogue`]: one server process, its pipes, and the clock.
//!
//! There is no task: whoever waits for something moves the bytes meanwhile, both ways, so neither
//! side blocks the other. Every wait ends by a time, by the process's end or by an interruption.
//! Dropping it closes the pipes and kills the tree; [`Client::finish`] does so in order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_harness::kernel::Cancel;
use dsh_harness::subprocess::{ChildExit, ProcessControl, SpawnSpec, Subprocess};
use dsh_transcript::{EventBody, Recorder, monotonic_us};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::dialogue::{Answered, Dialogue};
use super::manner::Manner;
use super::{signal, site::Document};
use crate::RecordingSubprocess;
use crate::evidence::{self, RAW};
use crate::judge::telling_line;
use crate::time::micros;

/// Bytes of stderr that are kept and so can be counted.
const STDERR: usize = 1 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// How long what a dead process still wrote is awaited.
const REST: Duration = Duration::from_millis(100);
/// How long a process that was told to exit may take before its stdin is closed, as the host has
/// it.
const BY_ITSELF: Duration = Duration::from_millis(500);
/// How long the descendants of a process that ended may take to follow it.
const FOLLOW: Duration = Duration::from_millis(500);

/// What every raw process of one server is started from.
pub(super) struct Stable<'a> {
    pub(super) recording: Arc<RecordingSubprocess>,
    pub(super) cancel: &'a Cancel,
    pub(super) target: &'a crate::Target,
    pub(super) executable: PathBuf,
    pub(super) root: &'a str,
    pub(super) root_uri: String,
    /// Between SIGTERM and SIGKILL for what does not end.
    pub(super) grace: Duration,
}

impl Stable<'_> {
    pub(super) fn recorder(&self) -> &Recorder {
        self.recording.recorder()
    }

    /// Microseconds since the recording began.
    pub(super) fn now_us(&self) -> u64 {
        monotonic_us().saturating_sub(self.recorder().origin_us())
    }
}

/// What woke a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Bytes moved, or the process ended.
    Moved,
    Late,
    Cancelled,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Answered(Answered),
    /// The time was over.
    Silent,
    /// The process ended, or its output could not be read on.
    Gone,
    /// It was given up from outside.
    Cancelled,
}

/// How a process left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Departure {
    /// From the first step of the end to the process's end; none if it did not end.
    pub(super) took_us: Option<u64>,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// The error that `shutdown` was refused with.
    pub(super) refused: Option<String>,
    /// Whether `shutdown` got no answer, while the process was there to give it.
    pub(super) unanswered: bool,
    /// Whether it ended only when its stdin was closed behind `exit`.
    pub(super) needed_eof: bool,
    /// Descendants that were still there, by their ids; those too that had left its group.
    pub(super) left: BTreeMap<u32, String>,
}

/// A server process and the conversation with it.
pub(super) struct Client<'a> {
    stable: &'a Stable<'a>,
    pub(super) dialogue: Dialogue,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    control: Arc<dyn ProcessControl>,
    handle: signal::Handle,
    exit: Option<ChildExit>,
    buffer: Vec<u8>,
    /// Its number in the recording.
    pub(super) process: Option<u32>,
    /// When it was started, on the clock of the recording.
    pub(super) started_us: u64,
    /// When the probe it belongs to ends, on the clock of the recording.
    pub(super) deadline_us: u64,
}

impl<'a> Client<'a> {
    /// Starts the server; `label` says in the recording what for. It is to be done with `within`.
    pub(super) async fn start(
        stable: &'a Stable<'a>,
        manner: Manner,
        label: &str,
        within: Duration,
    ) -> Result<Self, String> {
        let target = stable.target;
        let from = stable.recorder().len();
        let spec = SpawnSpec {
            executable: stable.executable.clone(),
            args: target.args.clone(),
            env: target.env.clone(),
            cwd: PathBuf::from(stable.root),
            max_stderr_bytes: STDERR,
        };
        let started_us = stable.now_us();
        let spawned = stable.recording.spawn(spec).await;
        let child = spawned.map_err(|error| error.to_string())?;
        let pid = child.control.pid();
        let events = stable.recorder().events_from(from);
        let process = events.iter().find_map(|event| match &event.body {
            EventBody::ProcessStarted { pid: started, .. } if *started == pid => event.process,
            _ => None,
        });
        let said = format!("the raw driver speaks to it: {label}");
        stable.recorder().emit(
            process,
            EventBody::Note {
                kind: RAW.to_owned(),
                message: said,
                data: json!({"probe": label}),
            },
        );
        Ok(Self {
            stable,
            dialogue: Dialogue::new(manner, &stable.root_uri),
            stdin: Some(child.io.stdin),
            stdout: Some(child.io.stdout),
            handle: signal::Handle::of(child.control.as_ref()),
            control: child.control,
            exit: None,
            buffer: vec![0; CHUNK],
            process,
            started_us,
            deadline_us: started_us.saturating_add(micros(within)),
        })
    }

    pub(super) fn now_us(&self) -> u64 {
        self.stable.now_us()
    }

    /// Whether the probe's time is over.
    pub(super) fn is_late(&self) -> bool {
        self.now_us() >= self.deadline_us
    }

    /// Whether nothing can be asked any more.
    pub(super) fn is_gone(&self) -> bool {
        self.stdout.is_none() || self.exit.is_some() || self.dialogue.lost().is_some()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.stable.cancel.is_cancelled()
    }

    /// Moves bytes until something moved, the process ended or `until_us` came.
    async fn turn(&mut self, until_us: u64) -> Turn {
        if self.is_cancelled() {
            return Turn::Cancelled;
        }
        let left = until_us.saturating_sub(self.now_us());
        if left == 0 {
            return Turn::Late;
        }
        let Self {
            stable,
            dialogue,
            stdin,
            stdout,
            control,
            exit,
            buffer,
            ..
        } = self;
        if stdin.is_none() {
            dialogue.drop_outgoing();
        }
        let write = async {
            match stdin {
                Some(stdin) if !dialogue.outgoing().is_empty() => {
                    stdin.write(dialogue.outgoing()).await
                }
                _ => std::future::pending().await,
            }
        };
        let read = async {
            match stdout {
                Some(stdout) => stdout.read(buffer).await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            if exit.is_some() {
                std::future::pending().await
            } else {
                control.wait().await
            }
        };
        let moved = timeout(Duration::from_micros(left), async {
            tokio::select! {
                biased;
                _ = stable.cancel.cancelled() => Moved::Cancelled,
                count = write => Moved::Wrote(count.unwrap_or(0)),
                count = read => Moved::Read(count.unwrap_or(0)),
                how = ended => Moved::Ended(how),
            }
        })
        .await;
        match moved {
            Err(_) => return Turn::Late,
            Ok(Moved::Cancelled) => return Turn::Cancelled,
            // A pipe that takes nothing any more is broken: the server closed its end.
            Ok(Moved::Wrote(0)) => {
                self.stdin = None;
                self.dialogue.drop_outgoing();
            }
            Ok(Moved::Wrote(count)) => self.dialogue.wrote(count),
            Ok(Moved::Read(0)) => self.stdout = None,
            Ok(Moved::Read(count)) => {
                let now = self.stable.now_us();
                self.dialogue.feed(&self.buffer[..count], now);
            }
            Ok(Moved::Ended(how)) => {
                self.exit = Some(how);
                self.drain().await;
            }
        }
        Turn::Moved
    }

    /// Reads what a process that ended still wrote.
    async fn drain(&mut self) {
        let rest = async {
            while let Some(stdout) = &mut self.stdout {
                match stdout.read(&mut self.buffer).await {
                    Ok(0) | Err(_) => self.stdout = None,
                    Ok(count) => {
                        let now = self.stable.now_us();
                        self.dialogue.feed(&self.buffer[..count], now);
                    }
                }
            }
        };
        // Past the limit somebody else holds the pipe.
        let _ = timeout(REST, rest).await;
    }

    /// Waits for the answer to the request of that id, for at most `budget`.
    pub(super) async fn answer(&mut self, id: u64, budget: Duration) -> Reply {
        let until_us = self.until(budget);
        loop {
            if let Some(answered) = self.dialogue.take(id) {
                return Reply::Answered(answered);
            }
            if self.is_gone() {
                return Reply::Gone;
            }
            match self.turn(until_us).await {
                Turn::Moved => {}
                Turn::Late => return Reply::Silent,
                Turn::Cancelled => return Reply::Cancelled,
            }
        }
    }

    fn until(&self, budget: Duration) -> u64 {
        let until = self.now_us().saturating_add(micros(budget));
        until.min(self.deadline_us)
    }

    /// Asks and waits.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: Option<Value>,
        budget: Duration,
    ) -> Reply {
        let id = self.dialogue.request(method, params);
        let reply = self.answer(id, budget).await;
        if reply == Reply::Silent {
            self.dialogue.give_up(id);
            let cancelled = json!({"id": id});
            self.dialogue.notify("$/cancelRequest", Some(cancelled));
        }
        reply
    }

    /// Opens a document, asks about it, and closes it again.
    pub(super) async fn ask_about(
        &mut self,
        document: &Document,
        method: &str,
        params: Value,
        budget: Duration,
    ) -> Reply {
        self.open(document);
        let reply = self.ask(method, Some(params), budget).await;
        self.close(document);
        reply
    }

    pub(super) fn open(&mut self, document: &Document) {
        let params = json!({"textDocument": {
            "uri": document.uri,
            "languageId": document.language,
            "version": 1,
            "text": document.text,
        }});
        self.dialogue.notify("textDocument/didOpen", Some(params));
    }

    pub(super) fn close(&mut self, document: &Document) {
        let params = json!({"textDocument": {"uri": document.uri}});
        self.dialogue.notify("textDocument/didClose", Some(params));
    }

    /// Asks to initialize, and says that it is so.
    pub(super) async fn initialize(&mut self, budget: Duration) -> Reply {
        let options = &self.stable.target.initialization_options;
        let manner = self.dialogue.manner();
        let params = manner.initialize(&self.stable.root_uri, options);
        let reply = self.ask("initialize", Some(params), budget).await;
        if matches!(reply, Reply::Answered(Answered::Result(_))) {
            self.dialogue.notify("initialized", Some(json!({})));
            if self.dialogue.manner().announce {
                let settings = json!({"settings": self.dialogue.manner().configuration});
                let method = "workspace/didChangeConfiguration";
                self.dialogue.notify(method, Some(settings));
            }
        }
        reply
    }

    /// Lets time pass while bytes move; false if that was given up from outside, or nothing can
    /// come any more.
    pub(super) async fn rest(&mut self, pause: Duration) -> bool {
        let until_us = self.until(pause);
        loop {
            if self.is_gone() {
                return false;
            }
            match self.turn(until_us).await {
                Turn::Moved => {}
                Turn::Late => return true,
                Turn::Cancelled => return false,
            }
        }
    }

    /// Lets time pass until `done` says so, or `limit` is over.
    pub(super) async fn rest_until(&mut self, limit: Duration, done: impl Fn(&Dialogue) -> bool) {
        let until_us = self.until(limit);
        while !done(&self.dialogue) && !self.is_gone() {
            if self.turn(until_us).await != Turn::Moved {
                return;
            }
        }
    }

    /// Asks for the end with `shutdown` and `exit`, and waits for it for `limit` in all.
    pub(super) async fn shut_down(&mut self, limit: Duration) -> Departure {
        self.deadline_us = u64::MAX;
        let began = self.now_us();
        let until_us = self.until(limit);
        let params = self.dialogue.manner().shutdown.value();
        let mut departure = Departure::default();
        match self.ask("shutdown", params.clone(), limit / 2).await {
            Reply::Answered(Answered::Error(code, message)) => {
                departure.refused = Some(format!("error {code}: {message}"));
            }
            Reply::Answered(Answered::Result(_)) => {}
            Reply::Silent | Reply::Cancelled => departure.unanswered = true,
            Reply::Gone => departure.unanswered = self.exited().is_none(),
        }
        self.dialogue.notify("exit", params);
        let by_itself = self.until(BY_ITSELF).min(until_us);
        if !self.exits(by_itself).await {
            self.stdin = None;
            departure.needed_eof = self.exits(until_us).await;
        }
        self.departed(departure, began)
    }

    /// Closes stdin without a word, and waits for the end.
    pub(super) async fn hang_up(&mut self, limit: Duration) -> Departure {
        self.deadline_us = u64::MAX;
        self.flush(limit).await;
        let began = self.now_us();
        self.stdin = None;
        self.exits(self.until(limit)).await;
        self.departed(Departure::default(), began)
    }

    /// Sends SIGTERM to the process alone, and waits for the end.
    pub(super) async fn terminate(&mut self, limit: Duration) -> Departure {
        self.deadline_us = u64::MAX;
        self.flush(limit).await;
        let began = self.now_us();
        self.handle.terminate();
        self.exits(self.until(limit)).await;
        self.departed(Departure::default(), began)
    }

    /// Writes what is still to be written.
    async fn flush(&mut self, limit: Duration) {
        let nothing_left = |dialogue: &Dialogue| dialogue.outgoing().is_empty();
        self.rest_until(limit, nothing_left).await;
    }

    /// Whether the process ends before that time.
    async fn exits(&mut self, until_us: u64) -> bool {
        loop {
            if self.exited().is_some() {
                return true;
            }
            if self.turn(until_us).await != Turn::Moved {
                return self.exited().is_some();
            }
        }
    }

    fn exited(&mut self) -> Option<ChildExit> {
        if self.exit.is_none() {
            self.exit = self.control.exited();
        }
        self.exit
    }

    fn departed(&mut self, departure: Departure, began: u64) -> Departure {
        let exit = self.exited();
        let took_us = exit.map(|_| self.now_us().saturating_sub(began));
        Departure {
            took_us,
            code: match exit {
                Some(ChildExit::Code(code)) => Some(code),
                _ => None,
            },
            signal: match exit {
                Some(ChildExit::Signal(signal)) => Some(signal),
                _ => None,
            },
            ..departure
        }
    }

    /// How the process died, for people; none while it lives.
    pub(super) async fn obituary(&mut self) -> Option<String> {
        if let Some(reason) = self.dialogue.lost() {
            return Some(format!("its output cannot be read on: {reason}"));
        }
        if self.exited().is_none() && self.stdout.is_none() {
            // Its stdout is closed, so the end is near; where it is not, that is all there is.
            self.exits(self.now_us() + micros(REST)).await;
        }
        let how = match self.exited() {
            Some(ChildExit::Code(code)) => evidence::exit(Some(code), None),
            Some(ChildExit::Signal(signal)) => evidence::exit(None, Some(signal)),
            Some(ChildExit::Unknown) => evidence::exit(None, None),
            None if self.stdout.is_none() => "it closed its stdout".to_owned(),
            None => return None,
        };
        self.control.stderr_drained(REST).await;
        let stderr = self.control.stderr_tail();
        Some(match telling_line(&stderr) {
            Some(line) => format!("{how}, stderr: {}", evidence::quote(line)),
            None => how,
        })
    }

    /// Ends what is there and waits until nothing is left; says which descendants a process that
    /// ended by itself had left.
    pub(super) async fn finish(mut self) -> BTreeMap<u32, String> {
        let ended = self.exited().is_some();
        self.stdin = None;
        let by_itself = ended && !self.is_cancelled();
        let mut left = Vec::new();
        if by_itself {
            self.drain().await;
            left = self.control.wait_tree(FOLLOW).await;
        }
        let grace = if self.is_cancelled() {
            Duration::ZERO
        } else {
            self.stable.grace
        };
        let report = self.control.terminate_tree(grace).await;
        if by_itself {
            // What is in a session of its own is looked for at the end alone.
            left.extend(report.escaped);
        }
        left.into_iter().map(|one| (one.pid, one.name)).collect()
    }
}

/// What moved.
enum Moved {
    Cancelled,
    Wrote(usize),
    Read(usize),
    Ended(ChildExit),
}
