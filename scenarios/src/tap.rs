//! Standing between a client and its language server, as if one were the server.
//!
//! The client starts this in the server's place. Bytes pass unchanged and at once in both
//! directions, stderr as well; whoever is slow slows down the other through this as he would
//! without it. The end of stdin reaches the server as the end of its stdin, the end of its stdout
//! the client; a client that does not read any more, and a server that does not, are seen by the
//! other side when it writes. Signals are passed on, and the end is the server's: the same code,
//! or death by the same signal. A child of the server that holds its stdout when it has ended is
//! heard until it closes that, the client does not read any more, or a signal comes.
//!
//! What passes is recorded before it is passed on ([`Options::log`]), by the strict reader of
//! `dsh_transcript`, so that monitors can judge it.
//!
//! What differs from being alone with the server: the two pipes more hold 64 KiB each; a signal
//! sent to the whole process group reaches the server twice; one who watches for the end of the
//! process sees it after the server's last output was taken. On Linux the server dies with this
//! process even if that is killed; elsewhere it then finds its pipes closed, as after any client's
//! death. Processes that the server itself started are its own business in both cases.

mod between;
mod log;
mod relay;
mod signals;
mod streams;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use dsh_transcript::{Bounds, Direction, EventBody, Raw, Splitter};

pub(crate) use between::{Between, OnSignal, Out};
use log::Log;
pub use log::LogError;
pub(crate) use relay::Relay;

/// How a server that was stood in for ended, and so how this process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// Why there is nothing to stand between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The recording cannot be begun; the server was not started.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A pipe, a signal or the process cannot be had.
    #[error("the server cannot be stood in for: {0}")]
    System(#[from] io::Error),
}

/// What a tap does.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program and the arguments before those of [`exec`], by which it starts itself to
    /// become the server.
    pub trampoline: Vec<OsString>,
    /// The server: program first.
    pub command: Vec<OsString>,
    /// Where the recording goes; `%p` in it is this process's id. A recording that is there is
    /// gone on with, as its next process.
    pub log: PathBuf,
    /// The working directory, which is the server's, for the recording.
    pub directory: Option<PathBuf>,
}

/// How [`exec`] starts a server.
#[derive(Clone, Debug, Default)]
pub struct Exec {
    /// The process whose death is the server's.
    pub under: Option<u32>,
    /// In a session of its own, as a child of nobody, with nothing of the environment but `PATH`
    /// and `TMPDIR`: where nothing finds it.
    pub adrift: bool,
    /// The working directory, where it is not ours.
    pub directory: Option<PathBuf>,
}

impl Exec {
    /// The arguments by which a command line says the same.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        if let Some(parent) = self.under {
            arguments.push(format!("--exec-under={parent}").into());
        }
        if self.adrift {
            arguments.push("--adrift".into());
        }
        if let Some(directory) = &self.directory {
            arguments.push("--in".into());
            arguments.push(directory.clone().into());
        }
        arguments
    }
}

/// Bodies of the usual limit for messages are kept whole.
const BOUNDS: Bounds = Bounds {
    body: 16 << 20,
    bodies: usize::MAX,
    stray: 65_536,
    reader: dsh_transcript::Limits {
        header: 65_536,
        body: 64 << 20,
        prefix: 65_536,
    },
};

/// Bytes of stderr that are recorded; all of them pass.
const STDERR: usize = 1 << 20;

/// Stands between until the server has ended. Takes the process's stdin, stdout, stderr and
/// signals for itself, and has to be called on the first thread.
pub fn run(options: Options) -> Result<Ending, StartError> {
    let log = Log::open(&numbered(options.log.clone()))?;
    let mut recording = Recording {
        options,
        log,
        to_server: Splitter::new(Direction::ToServer, BOUNDS),
        to_client: Splitter::new(Direction::ToClient, BOUNDS),
        stderr: 0,
    };
    Relay::start(&mut recording)?.run()
}

/// `%p` becomes the process's id.
fn numbered(path: PathBuf) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains("%p") => {
            text.replace("%p", &std::process::id().to_string()).into()
        }
        _ => path,
    }
}

/// Becomes the server. Comes back only where that fails, with the exit code shells give that.
pub fn exec(how: &Exec, command: &[OsString]) -> i32 {
    let Some((program, arguments)) = command.split_first() else {
        complain("dsh-conform tap: no command is given");
        return 2;
    };
    if let Err(error) = prepare(how) {
        complain(&format!(
            "dsh-conform tap: cannot become the server: {error}"
        ));
        return 126;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(directory) = &how.directory {
        command.current_dir(directory);
    }
    let error = if how.adrift {
        // Left behind on purpose; it has our streams, and ends when they do.
        match command.spawn() {
            Ok(_) => return 0,
            Err(error) => error,
        }
    } else {
        command.exec()
    };
    let (code, advice) = match error.kind() {
        io::ErrorKind::NotFound => (127, "; is it installed, and on PATH?"),
        io::ErrorKind::PermissionDenied => (126, "; is it a program?"),
        _ => (126, ""),
    };
    complain(&format!(
        "dsh-conform tap: cannot start {}: {error}{advice}",
        program.display()
    ));
    code
}

fn prepare(how: &Exec) -> io::Result<()> {
    if how.adrift {
        rustix::process::setsid()?;
    }
    let Some(parent) = how.under else {
        return Ok(());
    };
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if now.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        // It died before it could be bound to us.
        return Err(io::Error::other("who started it is gone"));
    }
    Ok(())
}

/// Ends this process as the server ended. Comes back with an exit code where it has one.
pub fn end(ending: Ending) -> i32 {
    let signal = match ending {
        Ending::Exit(code) => return code,
        Ending::Signal(signal) => signal,
    };
    // The core file, if one was wanted, is the server's.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal
}

pub(crate) fn complain(line: &str) {
    // Where that is not possible there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Starts `command` by way of [`exec`], its streams being pipes.
pub(crate) fn spawn(
    trampoline: &[OsString],
    how: &Exec,
    command: &[OsString],
) -> io::Result<Child> {
    let Some((program, arguments)) = trampoline.split_first() else {
        return Err(io::Error::other("no program is named"));
    };
    let mut process = Command::new(program);
    process.args(arguments).args(how.arguments()).arg("--");
    process.args(command);
    if how.adrift {
        let kept = ["PATH", "TMPDIR"].map(|name| (name, variable(name)));
        process.env_clear();
        for (name, value) in kept {
            process.envs(value.map(|value| (name, value)));
        }
    }
    process.stdin(Stdio::piped());
    process.stdout(Stdio::piped());
    process.stderr(Stdio::piped());
    process.spawn()
}

#[expect(clippy::disallowed_methods, reason = "the outer shell of the process")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

struct Recording {
    options: Options,
    log: Log,
    to_server: Splitter,
    to_client: Splitter,
    /// Bytes of stderr recorded so far.
    stderr: usize,
}

impl Recording {
    /// The log, and what makes frames of the bytes of one direction.
    fn of(&mut self, direction: Direction) -> (&mut Log, &mut Splitter) {
        let splitter = match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        };
        (&mut self.log, splitter)
    }

    fn record(&mut self, body: EventBody) {
        add(&mut self.log, body);
    }
}

fn add(log: &mut Log, body: EventBody) {
    if let Some(complaint) = log.add(body) {
        complain(&complaint);
    }
}

impl Between for Recording {
    fn start(&mut self) -> Result<Child, StartError> {
        let options = &self.options;
        let how = Exec {
            under: Some(std::process::id()),
            ..Exec::default()
        };
        let child = spawn(&options.trampoline, &how, &options.command)?;
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        let started = EventBody::ProcessStarted {
            pid: child.id(),
            argv: options.command.iter().map(text).collect(),
            cwd: options
                .directory
                .as_ref()
                .map(|path| path.display().to_string()),
        };
        self.record(started);
        Ok(child)
    }

    fn bytes(&mut self, direction: Direction, bytes: &[u8], out: &mut Out) {
        let (log, splitter) = self.of(direction);
        splitter.bytes(bytes, |body| add(log, body));
        out.write(direction, bytes);
    }

    fn closed(&mut self, direction: Direction, _: &mut Out) {
        let (log, splitter) = self.of(direction);
        splitter.end(|body| add(log, body));
    }

    fn lingers(&self) -> bool {
        true
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let room = STDERR - self.stderr;
        if room == 0 {
            return;
        }
        let kept = &bytes[..bytes.len().min(room)];
        self.stderr += kept.len();
        self.record(EventBody::Stderr {
            text: Raw::copy(kept),
        });
        if self.stderr == STDERR {
            let message = "what else the server writes to stderr is passed on and not recorded";
            self.record(EventBody::note("stderr", message));
        }
    }

    fn signal(&mut self, signal: i32) -> OnSignal {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        self.record(EventBody::Note {
            kind: "signal".to_owned(),
            message: format!("{name} came and is passed on"),
            data: serde_json::json!({"signal": signal}),
        });
        OnSignal::Pass
    }

    fn ended(&mut self, status: ExitStatus, _: &mut Out) {
        use std::os::unix::process::ExitStatusExt as _;
        self.record(EventBody::ProcessEnded {
            code: status.code(),
            signal: status.signal(),
        });
    }
}
