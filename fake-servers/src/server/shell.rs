//! The loop of the process.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use dsh_transcript::strict::{Body, Item};
use dsh_transcript::{Bounds, Direction, Envelope, EventBody, Frame, Raw, StrictReader, violation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::json;
use signal_hook::consts::SIGTERM;

use super::output::{Blocked, Output, close};
use super::recording::{Lost, Recording};
use super::{LOST, Options, StartError, files, helper};
use crate::control::Down;
use crate::control::link::Link;
use crate::engine::{Effect, Engine, Input, Key, StderrBytes, Surroundings, script_uses};
use crate::script::{Signal, Stream};

/// How long a server that does not obey lives on after its client is gone.
const ORPHAN_LIFE: Duration = Duration::from_mins(1);

/// How soon a pipe that cannot tell is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What a flood consists of.
const FLOOD_LINE: &[u8; 64] = b"dsh-fake-lsp floods its stderr with lines such as this one here\n";

/// Why the loop ends.
#[derive(Debug)]
enum End {
    /// With this code, by the script or by default.
    Exit(i32),
    /// The control channel is lost.
    Lost,
    /// The client closed stdout, or another pipe failed.
    Io(io::Error),
}

impl From<Lost> for End {
    fn from(_: Lost) -> Self {
        Self::Lost
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for End {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Stdin and what was read from it.
struct Inbound {
    reader: StrictReader,
    buffer: Box<[u8]>,
    /// The part of the buffer that was not looked at.
    start: usize,
    end: usize,
    /// Whether the script lets it read.
    reading: bool,
    /// Whether it ended, or was closed here.
    ended: bool,
    /// Whether the client's end was seen to be gone.
    hung_up: bool,
}

/// Stderr and what waits for it.
struct Errors {
    queue: VecDeque<(StderrBytes, usize, Key)>,
}

struct Shell {
    engine: Engine,
    effects: Vec<Effect>,
    /// Sequences whose wait is over.
    resumed: VecDeque<Key>,
    inbound: Inbound,
    output: Output,
    blocked: Blocked,
    /// Sequences that wait until everything is written.
    after_output: Vec<Key>,
    errors: Errors,
    timers: Vec<(Instant, Key)>,
    recording: Recording,
    signals: Option<UnixStream>,
    trapped: bool,
    /// When a server that does not obey ends for want of a client.
    orphaned: Option<Instant>,
    /// Helpers that are children; they are not waited for, that is what they are for.
    helpers: Vec<Child>,
    control: Option<String>,
    prefix: Vec<std::ffi::OsString>,
}

/// Runs a server until its end; returns its exit code.
pub(super) fn run(options: Options) -> Result<i32, StartError> {
    let mut shell = start(options)?;
    let end = match shell.serve() {
        Ok(never) => match never {},
        Err(end) => end,
    };
    let code = match &end {
        End::Exit(code) => *code,
        End::Lost => {
            let _ = writeln!(io::stderr(), "dsh-fake-lsp: the control channel is lost");
            return Ok(LOST);
        }
        End::Io(error) => {
            let message = format!("stdout or another pipe failed: {error}");
            let _ = shell.recording.record(EventBody::note("broken", message));
            1
        }
    };
    // All of it is reported before the process is gone.
    let _ = shell.announce(json!({"code": code}));
    Ok(code)
}

fn start(options: Options) -> Result<Shell, StartError> {
    let argv: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let cwd = working_directory();
    let link = match &options.control {
        None => None,
        Some(address) => Some(Link::server(address, argv.clone(), cwd.clone()).map_err(
            |source| StartError::Control {
                address: address.clone(),
                source,
            },
        )?),
    };
    let process = match (&link, &options.counter) {
        (Some(link), _) => link.process,
        (None, Some(path)) => count_start(path).map_err(|source| StartError::File {
            path: path.clone(),
            source,
        })?,
        (None, None) => options.process.unwrap_or(1),
    };
    let started = EventBody::ProcessStarted {
        pid: std::process::id(),
        argv: argv.clone(),
        cwd: Some(cwd.clone()),
    };
    let recording = Recording::new(link, options.transcript.as_ref(), process, &started)?;
    let uses_env = script_uses(&options.script, &|name| name.starts_with("env"));
    let surroundings = Surroundings {
        pid: std::process::id(),
        process,
        argv,
        cwd,
        env: if uses_env {
            environment()
        } else {
            BTreeMap::new()
        },
        files: Box::new(files::Disk),
    };
    let watched = recording.is_on();
    let engine = Engine::new(options.script, surroundings, watched);
    let signals = if engine.minds_sigterm() {
        Some(listen()?)
    } else {
        None
    };
    let inbound = Inbound {
        reader: StrictReader::default(),
        buffer: vec![0; 65_536].into(),
        start: 0,
        end: 0,
        reading: true,
        ended: false,
        hung_up: false,
    };
    Ok(Shell {
        engine,
        effects: Vec::new(),
        resumed: VecDeque::new(),
        inbound,
        output: Output::new(io::stdout().as_fd())?,
        blocked: Blocked::Nothing,
        after_output: Vec::new(),
        errors: Errors {
            queue: VecDeque::new(),
        },
        timers: Vec::new(),
        recording,
        signals,
        trapped: false,
        orphaned: None,
        helpers: Vec::new(),
        control: options.control,
        prefix: options.prefix,
    })
}

#[expect(clippy::disallowed_methods, reason = "the outer shell of the process")]
fn working_directory() -> String {
    std::env::current_dir().map_or_else(|_| "/".to_owned(), |path| path.to_string_lossy().into())
}

#[expect(clippy::disallowed_methods, reason = "the outer shell of the process")]
fn environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// Adds a byte to a file; its length then is the number of this start.
fn count_start(path: &std::path::Path) -> io::Result<u32> {
    use std::io::Seek as _;
    let mut file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path)?;
    file.write_all(b".")?;
    // After an append the position is the end of what was appended, whoever else appends.
    u32::try_from(file.stream_position()?).map_err(io::Error::other)
}

/// A stream that becomes readable at each SIGTERM.
fn listen() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGTERM, writer)?;
    Ok(reader)
}

impl Shell {
    /// Serves; it comes back only with an end.
    fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        self.give(Input::Start)?;
        loop {
            self.obey()?;
            while let Some(key) = self.resumed.pop_front() {
                self.give(Input::Resume(key))?;
            }
            self.write()?;
            if !self.resumed.is_empty() {
                continue;
            }
            if self.inbound.reading && self.inbound.start < self.inbound.end {
                self.take_item()?;
                continue;
            }
            self.wait()?;
        }
    }

    /// Gives the engine an event and does what it says.
    fn give(&mut self, input: Input<'_>) -> Result<(), End> {
        self.engine.handle(input, &mut self.effects);
        self.apply()
    }

    fn apply(&mut self) -> Result<(), End> {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            self.effect(effect)?;
        }
        // Its memory is used again.
        self.effects = effects;
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> Result<(), End> {
        match effect {
            Effect::Write { bytes, pieces } => {
                self.output.push(bytes, pieces);
                self.write()?;
            }
            Effect::Written { key } => self.after_output.push(key),
            Effect::Stderr { bytes, key } => {
                if let (StderrBytes::Bytes(bytes), true) = (&bytes, self.recording.is_on()) {
                    let text = Raw::copy(&bytes[..bytes.len().min(65_536)]);
                    self.recording.record(EventBody::Stderr { text })?;
                }
                self.errors.queue.push_back((bytes, 0, key));
            }
            Effect::Timer { ms, key } => {
                self.timers
                    .push((Instant::now() + Duration::from_millis(ms), key));
            }
            Effect::Hold { name, key } => {
                let data = json!({"hold": name, "token": key});
                self.note("held", format!("holds {name:?}"), data)?;
            }
            Effect::Read(reading) => self.inbound.reading = reading,
            Effect::Trap => {
                self.trapped = true;
                if self.signals.is_none() {
                    self.signals = Some(listen()?);
                }
            }
            Effect::Record(body) => {
                if let (EventBody::Note { kind, message, .. }, false) =
                    (&body, self.recording.is_on())
                    && kind == "script"
                {
                    let _ = writeln!(io::stderr(), "dsh-fake-lsp: {message}");
                }
                self.recording.record(body)?;
            }
            Effect::Spawn { helper, key } => self.spawn(&helper, key)?,
            Effect::Close(stream) => self.close(stream)?,
            Effect::Exit(code) => return Err(End::Exit(code)),
            Effect::Kill(signal) => self.kill(signal)?,
            Effect::Die if self.trapped => {}
            Effect::Die => self.die(SIGTERM)?,
        }
        Ok(())
    }

    fn note(&mut self, kind: &str, message: String, data: serde_json::Value) -> Result<(), End> {
        let kind = kind.to_owned();
        Ok(self.recording.record(EventBody::Note {
            kind,
            message,
            data,
        })?)
    }

    /// Reports how the process is about to end.
    fn announce(&mut self, data: serde_json::Value) -> Result<(), End> {
        if self.recording.is_on() {
            self.recording.closed()?;
            self.note("ending", format!("ends with {data}"), data)?;
            self.recording.sync()?;
        }
        Ok(())
    }

    fn spawn(&mut self, helper: &crate::script::Helper, key: Key) -> Result<(), End> {
        let (message, data) = match helper::start(helper, &self.prefix, self.control.as_deref()) {
            Ok((pid, child)) => {
                self.helpers.extend(child);
                (
                    format!("helper {pid} runs"),
                    json!({"pid": pid, "deaf": helper.deaf}),
                )
            }
            Err(error) => {
                let message = format!("the helper did not start: {error}");
                let _ = writeln!(io::stderr(), "dsh-fake-lsp: {message}");
                (message, json!({}))
            }
        };
        self.resumed.push_back(key);
        self.note("helper", message, data)
    }

    fn close(&mut self, stream: Stream) -> Result<(), End> {
        if self.recording.is_on() {
            match stream {
                Stream::Stdin => {
                    let (direction, total) = (Direction::ToServer, self.inbound.reader.taken());
                    self.recording
                        .record(EventBody::Closed { direction, total })?;
                }
                Stream::Stdout => self.recording.closed()?,
                Stream::Stderr => self.note("closed", "stderr is closed".into(), json!({}))?,
            }
            self.recording.sync()?;
        }
        if stream == Stream::Stdin {
            self.inbound.ended = true;
            self.inbound.start = self.inbound.end;
            // From here on the client's end cannot be seen.
            self.orphaned
                .get_or_insert_with(|| Instant::now() + ORPHAN_LIFE);
        }
        Ok(close(stream)?)
    }

    fn kill(&mut self, signal: Signal) -> Result<(), End> {
        let (number, named) = match signal {
            Signal::SIGABRT => (signal_hook::consts::SIGABRT, rustix::process::Signal::ABORT),
            Signal::SIGBUS => (signal_hook::consts::SIGBUS, rustix::process::Signal::BUS),
            Signal::SIGFPE => (signal_hook::consts::SIGFPE, rustix::process::Signal::FPE),
            Signal::SIGHUP => (signal_hook::consts::SIGHUP, rustix::process::Signal::HUP),
            Signal::SIGILL => (signal_hook::consts::SIGILL, rustix::process::Signal::ILL),
            Signal::SIGINT => (signal_hook::consts::SIGINT, rustix::process::Signal::INT),
            Signal::SIGKILL => (signal_hook::consts::SIGKILL, rustix::process::Signal::KILL),
            Signal::SIGPIPE => (signal_hook::consts::SIGPIPE, rustix::process::Signal::PIPE),
            Signal::SIGQUIT => (signal_hook::consts::SIGQUIT, rustix::process::Signal::QUIT),
            Signal::SIGSEGV => (signal_hook::consts::SIGSEGV, rustix::process::Signal::SEGV),
            Signal::SIGSTOP => (signal_hook::consts::SIGSTOP, rustix::process::Signal::STOP),
            Signal::SIGTERM => (SIGTERM, rustix::process::Signal::TERM),
        };
        if signal == Signal::SIGSTOP {
            self.note("stopped", "stops itself".into(), json!({"signal": number}))?;
            self.recording.sync()?;
        } else {
            self.announce(json!({"signal": number}))?;
        }
        if matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            rustix::process::kill_process(rustix::process::getpid(), named)?;
            return Ok(());
        }
        Self::die_now(number)
    }

    /// Dies of a signal that came.
    fn die(&mut self, number: i32) -> Result<(), End> {
        self.announce(json!({"signal": number}))?;
        Self::die_now(number)
    }

    fn die_now(number: i32) -> Result<(), End> {
        // No core file is left in anybody's workspace.
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
        // The runtime's own handlers (of SIGSEGV, say) are put aside first.
        signal_hook::low_level::emulate_default_handler(number)?;
        Err(End::Exit(128 + number))
    }

    /// Writes what can be written; sequences that waited for it go on.
    fn write(&mut self) -> Result<(), End> {
        if !self.output.is_empty() || self.blocked != Blocked::Nothing {
            let recording = &mut self.recording;
            let wrote = |bytes: &[u8]| recording.wrote(bytes).map_err(End::from);
            match self.output.advance(io::stdout().as_fd(), wrote) {
                Ok(blocked) => self.blocked = blocked,
                Err(end) => {
                    self.output.clear();
                    return Err(end);
                }
            }
        }
        if self.output.is_empty() {
            self.resumed.extend(self.after_output.drain(..));
        }
        Ok(())
    }

    /// Takes the next frame from what was read.
    fn take_item(&mut self) -> Result<(), End> {
        let Self {
            engine,
            effects,
            recording,
            inbound,
            ..
        } = self;
        let Inbound {
            reader,
            buffer,
            start,
            end,
            ..
        } = inbound;
        let (taken, item) = reader.next(&buffer[*start..*end]);
        *start += taken;
        match item {
            None => {}
            Some(Item::Frame(frame)) => {
                let envelope = match frame.body {
                    Body::Whole(body) => Envelope::of(body),
                    Body::Cut { .. } => Envelope::NotJson {
                        error: "too long to be read".into(),
                    },
                };
                if recording.is_on() {
                    let kept = Bounds::default().body;
                    let frame = Frame::capture(Direction::ToServer, &frame, kept);
                    recording.record(EventBody::Frame(frame))?;
                }
                let body = match frame.body {
                    Body::Whole(body) => body,
                    Body::Cut { prefix, .. } => prefix,
                };
                engine.handle(Input::Message { envelope, body }, effects);
            }
            Some(item) => {
                let bounds = Bounds::default();
                let reason = match &item {
                    Item::Violation { reason, .. } => Some(reason.to_string()),
                    _ => None,
                };
                recording.record(violation(Direction::ToServer, &item, bounds.stray))?;
                if let Some(reason) = reason {
                    engine.handle(Input::Unreadable(reason), effects);
                }
            }
        }
        self.apply()
    }

    /// Waits for news.
    fn wait(&mut self) -> Result<(), End> {
        let only_stdin = self.inbound.reading
            && !self.inbound.ended
            && self.blocked == Blocked::Nothing
            && self.errors.queue.is_empty()
            && self.timers.is_empty()
            && self.signals.is_none()
            && self.control.is_none()
            && self.orphaned.is_none();
        if only_stdin { self.read() } else { self.poll() }
    }

    fn read(&mut self) -> Result<(), End> {
        let count = match rustix::io::read(io::stdin(), &mut self.inbound.buffer[..]) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            // A terminal or socket whose other end is gone.
            Err(Errno::IO | Errno::CONNRESET) => 0,
            Err(error) => return Err(error.into()),
        };
        (self.inbound.start, self.inbound.end) = (0, count);
        if count > 0 {
            return Ok(());
        }
        self.inbound.ended = true;
        self.orphaned = Some(Instant::now() + ORPHAN_LIFE);
        if self.recording.is_on() {
            let (direction, total) = (Direction::ToServer, self.inbound.reader.taken());
            if let Some(item) = self.inbound.reader.end() {
                let limit = Bounds::default().stray;
                self.recording.record(violation(direction, &item, limit))?;
            }
            self.recording
                .record(EventBody::Closed { direction, total })?;
        }
        self.give(Input::Eof)
    }

    fn poll(&mut self) -> Result<(), End> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(5);
        let mut places = [None; 5];
        if !self.inbound.ended && !self.inbound.hung_up {
            // Without reading, only the client's end is of interest.
            let flags = if self.inbound.reading {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            places[0] = Some(fds.len());
            fds.push(PollFd::new(&stdin, flags));
        }
        if matches!(self.blocked, Blocked::Room | Blocked::Drained) {
            places[1] = Some(fds.len());
            fds.push(PollFd::new(&stdout, PollFlags::OUT));
        }
        if !self.errors.queue.is_empty() {
            places[2] = Some(fds.len());
            fds.push(PollFd::new(&stderr, PollFlags::OUT));
        }
        if let Some(signals) = &self.signals {
            places[3] = Some(fds.len());
            fds.push(PollFd::new(signals, PollFlags::IN));
        }
        if let Some(link) = self.recording.link() {
            places[4] = Some(fds.len());
            fds.push(PollFd::from_borrowed_fd(
                link.stream().as_fd(),
                PollFlags::IN,
            ));
        }
        let now = Instant::now();
        let soonest = self
            .timers
            .iter()
            .map(|(at, _)| *at)
            .chain(self.orphaned)
            .min();
        let mut timeout = soonest.map(|at| at.saturating_duration_since(now));
        if self.blocked == Blocked::Look {
            timeout = Some(timeout.map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN)));
        }
        let timeout = timeout
            .map(Timespec::try_from)
            .transpose()
            .map_err(io::Error::other)?;
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let found = places.map(|place| place.map_or(PollFlags::empty(), |at| fds[at].revents()));
        drop(fds);
        self.news(found)
    }

    /// Looks at what a poll found: stdin, stdout, stderr, signals, control.
    fn news(&mut self, [stdin, _, stderr, signals, control]: [PollFlags; 5]) -> Result<(), End> {
        if !control.is_empty() {
            self.hear()?;
        }
        if !signals.is_empty() {
            self.signalled()?;
        }
        self.due()?;
        if !stderr.is_empty() {
            self.write_errors();
        }
        if self.inbound.reading {
            // What was read before is used up, otherwise this would not wait.
            if !stdin.is_empty() && self.inbound.start == self.inbound.end {
                return self.read();
            }
        } else if stdin.intersects(PollFlags::HUP | PollFlags::ERR) {
            self.inbound.hung_up = true;
            self.orphaned
                .get_or_insert_with(|| Instant::now() + ORPHAN_LIFE);
        }
        Ok(())
    }

    /// Resumes what was waiting for this time.
    fn due(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if self.orphaned.is_some_and(|at| at <= now) {
            let message = "the client is gone, and nothing has ended this server".to_owned();
            self.note("orphaned", message, json!({}))?;
            return Err(End::Exit(1));
        }
        // Soonest first; equal times in the order they were set.
        self.timers.sort_by_key(|(at, _)| *at);
        let due = self.timers.partition_point(|(at, _)| *at <= now);
        self.resumed
            .extend(self.timers.drain(..due).map(|(_, key)| key));
        Ok(())
    }

    fn signalled(&mut self) -> Result<(), End> {
        let mut buffer = [0; 64];
        if let Some(mut signals) = self.signals.as_ref() {
            // It is only emptied; several signals at once count as one.
            while io::Read::read(&mut signals, &mut buffer).is_ok_and(|count| count > 0) {}
        }
        self.note("signal", "SIGTERM came".into(), json!({"signal": SIGTERM}))?;
        self.give(Input::Sigterm)
    }

    fn hear(&mut self) -> Result<(), End> {
        if let Some(link) = self.recording.link() {
            link.fill().map_err(|_| Lost)?;
        }
        self.obey()
    }

    /// Does what the runner said.
    fn obey(&mut self) -> Result<(), End> {
        while let Some(down) = self.recording.link().and_then(Link::next) {
            match down {
                Down::Release { token } => {
                    self.note("released", "is released".into(), json!({"token": token}))?;
                    self.give(Input::Resume(token))?;
                }
                Down::Perform { actions } => self.give(Input::Perform(actions))?,
                Down::Welcome { .. } | Down::Done { .. } => {}
            }
        }
        Ok(())
    }

    /// Writes to stderr what a pipe that has room certainly takes.
    fn write_errors(&mut self) {
        const SURE: usize = 4096;
        let Some((bytes, at, key)) = self.errors.queue.front_mut() else {
            return;
        };
        let line = FLOOD_LINE.repeat(SURE / FLOOD_LINE.len());
        let (piece, total): (&[u8], usize) = match bytes {
            StderrBytes::Bytes(bytes) => {
                (&bytes[*at..][..SURE.min(bytes.len() - *at)], bytes.len())
            }
            StderrBytes::Flood(total) => {
                let total = usize::try_from(*total).unwrap_or(usize::MAX);
                (&line[..SURE.min(total - *at)], total)
            }
        };
        match rustix::io::write(io::stderr(), piece) {
            Ok(count) => *at += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Nobody reads it: the rest is lost, as it is with any program.
            Err(_) => *at = total,
        }
        if *at >= total {
            let key = *key;
            self.errors.queue.pop_front();
            self.resumed.push_back(key);
        }
    }
}
