//! Running a program of the machine: owned from start to end, ended with its whole group when it
//! is cancelled or takes too long, with the last of its output kept. Where this program is killed and
//! can end nothing any more, a shell that waits for that does.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// How long a group has to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How much is read at once.
const READ_BYTES: usize = 8 * 1024;
/// How much of each stream is kept.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest line that is passed on; the rest of a longer one is left out.
const LINE_BYTES: usize = 2 * 1024;

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    folder: PathBuf,
    set: Vec<(OsString, OsString)>,
}

impl Invocation {
    pub(super) fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
        folder: impl Into<PathBuf>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self {
            program: program.into(),
            args,
            folder: folder.into(),
            set: Vec::new(),
        }
    }

    /// Adds arguments.
    pub(super) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for this program only.
    pub(super) fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// The command as it would be typed, with the bare name of the program.
    pub(super) fn typed(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        let words = std::iter::once(name).chain(self.args.iter().map(OsString::as_os_str));
        let words: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }
}

/// A program that came to its end.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    /// The end of its standard output.
    pub(super) stdout: String,
    /// The end of its standard error.
    pub(super) stderr: String,
}

/// Why a program did not come to its end.
#[derive(Debug)]
pub(super) enum RunError {
    /// It could not be started.
    Start(io::Error),
    /// It was ended because the caller gave up.
    Cancelled,
    /// It was ended because it took longer than this.
    TimedOut(Duration),
}

/// Runs a program with exactly `variables` and what the invocation sets. `on_line` gets each line
/// of either stream as it comes.
pub(super) async fn run(
    invocation: &Invocation,
    variables: &BTreeMap<OsString, OsString>,
    limit: Option<Duration>,
    on_line: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<Finished, RunError> {
    if cancel.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    let mut group = Group::start(invocation, variables).map_err(RunError::Start)?;
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(RunError::Cancelled),
        error = overdue(limit) => Err(error),
        ended = group.end_of_its_own(on_line) => Ok(ended),
    };
    match ended {
        Ok(status) => Ok(Finished {
            status: status.map_err(RunError::Start)?,
            stdout: group.stdout.kept(),
            stderr: group.stderr.kept(),
        }),
        Err(error) => {
            group.end().await;
            Err(error)
        }
    }
}

async fn overdue(limit: Option<Duration>) -> RunError {
    match limit {
        Some(limit) => {
            #[expect(clippy::disallowed_methods, reason = "the limit itself is the rule")]
            tokio::time::sleep(limit).await;
            RunError::TimedOut(limit)
        }
        None => std::future::pending().await,
    }
}

/// A started program with everything in its process group.
struct Group {
    child: Child,
    stdout: Stream<tokio::process::ChildStdout>,
    stderr: Stream<tokio::process::ChildStderr>,
    /// The number of the group, until its leader was waited for: from then on it may be another's.
    number: Option<u32>,
    #[cfg(unix)]
    heir: Heir,
}

/// A shell that does nothing until this program is gone, which its stdin tells by its end, however
/// that came about; then it kills the group. It is killed itself when there is nothing left to
/// watch over.
#[cfg(unix)]
struct Heir(Child);

#[cfg(unix)]
impl Heir {
    fn of(group: u32) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "read -r _; kill -s KILL -- \"-$1\"", "sh"])
            .arg(group.to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What a terminal sends to us it is not to hear: it would be gone before us.
            .process_group(0)
            .kill_on_drop(true);
        shell.spawn().map(Self)
    }

    async fn dismiss(&mut self) {
        // It is killed before its stdin is closed.
        let _ = self.0.kill().await;
    }
}

impl Group {
    fn start(
        invocation: &Invocation,
        variables: &BTreeMap<OsString, OsString>,
    ) -> io::Result<Self> {
        let mut command = Command::new(&invocation.program);
        command
            .args(&invocation.args)
            .current_dir(&invocation.folder)
            .env_clear()
            .envs(variables)
            .envs(invocation.set.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let stdout = Stream::new(child.stdout.take());
        let stderr = Stream::new(child.stderr.take());
        let number = child.id();
        #[cfg(unix)]
        let heir = match Heir::of(number.unwrap_or_default()) {
            Ok(heir) => heir,
            Err(error) => {
                if let Some(number) = number {
                    signal_group(number, Signal::Kill, &mut child);
                }
                return Err(error);
            }
        };
        Ok(Self {
            child,
            stdout,
            stderr,
            number,
            #[cfg(unix)]
            heir,
        })
    }

    /// Passes output on until both streams end, then waits for the leader. Until this is done the
    /// leader has not been waited for, so that its number still is the group's.
    async fn end_of_its_own(
        &mut self,
        on_line: &(dyn Fn(&str) + Send + Sync),
    ) -> io::Result<ExitStatus> {
        self.drain(on_line).await;
        let status = self.child.wait().await;
        self.number = None;
        #[cfg(unix)]
        self.heir.dismiss().await;
        status
    }

    async fn drain(&mut self, on_line: &(dyn Fn(&str) + Send + Sync)) {
        while self.stdout.is_open() || self.stderr.is_open() {
            tokio::select! {
                () = self.stdout.advance(on_line), if self.stdout.is_open() => {}
                () = self.stderr.advance(on_line), if self.stderr.is_open() => {}
            }
        }
    }

    /// Asks the group to end, gives it the grace, and kills what is left.
    async fn end(&mut self) {
        self.signal(Signal::Terminate);
        // The streams end when the last of the group that holds them has ended.
        let _ = tokio::time::timeout(GRACE, self.drain(&|_| ())).await;
        self.signal(Signal::Kill);
        let _ = self.child.wait().await;
        self.number = None;
        #[cfg(unix)]
        self.heir.dismiss().await;
        let _ = tokio::time::timeout(GRACE, self.drain(&|_| ())).await;
    }

    fn signal(&mut self, signal: Signal) {
        if let Some(number) = self.number {
            signal_group(number, signal, &mut self.child);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
    }
}

#[derive(Debug, Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

/// An error means that nobody is left to hear it.
#[cfg(unix)]
fn signal_group(number: u32, signal: Signal, _leader: &mut Child) {
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    let group = i32::try_from(number)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn signal_group(_number: u32, _signal: Signal, leader: &mut Child) {
    let _ = leader.start_kill();
}

/// One output stream: the end of it, and the line that is coming.
struct Stream<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
    kept: VecDeque<u8>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(reader: Option<R>) -> Self {
        Self {
            reader,
            buffer: vec![0; READ_BYTES],
            kept: VecDeque::new(),
            line: Vec::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Takes what comes next, or notices the end.
    async fn advance(&mut self, on_line: &(dyn Fn(&str) + Send + Sync)) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        match reader.read(&mut self.buffer).await {
            Ok(0) | Err(_) => {
                self.reader = None;
                self.pass_line(on_line);
            }
            Ok(count) => self.take(count, on_line),
        }
    }

    /// Takes the first `count` bytes of the buffer.
    fn take(&mut self, count: usize, on_line: &(dyn Fn(&str) + Send + Sync)) {
        self.kept.extend(&self.buffer[..count]);
        let surplus = self.kept.len().saturating_sub(KEPT_BYTES);
        self.kept.drain(..surplus);
        for at in 0..count {
            let byte = self.buffer[at];
            // A carriage return redraws a line of progress.
            if matches!(byte, b'\n' | b'\r') {
                self.pass_line(on_line);
            } else if self.line.len() < LINE_BYTES {
                self.line.push(byte);
            }
        }
    }

    fn pass_line(&mut self, on_line: &(dyn Fn(&str) + Send + Sync)) {
        let line = String::from_utf8_lossy(&self.line);
        if !line.trim().is_empty() {
            on_line(line.trim_end());
        }
        self.line.clear();
    }

    fn kept(&mut self) -> String {
        String::from_utf8_lossy(self.kept.make_contiguous()).into_owned()
    }
}

/// Every program called `name` on the `PATH` of `variables`, in order, each file once.
pub(super) fn on_path(name: &str, variables: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let Some(path) = variables.get(&OsString::from("PATH")) else {
        return Vec::new();
    };
    let mut seen = Vec::new();
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| spellings(name).map(move |spelling| folder.join(spelling)))
        .filter(|program| is_program(program))
        // /bin and /usr/bin are often one folder. Links of one name to one file are one program,
        // but only by folder: what a launcher does can depend on the name it is called by.
        .filter(|program| {
            let folder = program
                .parent()
                .and_then(|folder| folder.canonicalize().ok());
            let is_new = !seen.contains(&folder);
            seen.push(folder);
            is_new
        })
        .collect()
}

fn spellings(name: &str) -> impl Iterator<Item = String> + use<> {
    let suffixes: &[&str] = if cfg!(windows) {
        &[".exe", ".cmd"]
    } else {
        &[""]
    };
    let name = name.to_owned();
    suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
}

/// Whether `path` is a file that may be executed.
pub(super) fn is_program(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    #[cfg(unix)]
    let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let executable = true;
    metadata.is_file() && executable
}
