//! Moves bytes between a client and its server, as one process that stands in the server's place.
//!
//! One thread and one `poll`: nothing is read that could not be handed on, so whoever is slow slows
//! down only the one who writes to it. No flag of a stream that came from the client is changed,
//! since others may share it; what would block is found out before.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use dsh_transcript::Direction;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};
use rustix::process::{Pid, Signal, kill_process};

use super::between::{Between, OnSignal, Out};
use super::signals::Signals;
use super::streams::{Queue, Theirs};
use super::{Ending, StartError};

/// What is read at once, and what may wait to be written before reading stops.
pub(super) const PIECE: usize = 65_536;

/// A server that runs, and our ends of its pipes.
struct Server {
    child: Child,
    pid: Pid,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    queue: Queue,
}

impl Server {
    fn of(mut child: Child) -> io::Result<Self> {
        let stdin = child.stdin.take().map(OwnedFd::from);
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        // These ends are ours alone.
        for fd in [&stdin, &stdout, &stderr].into_iter().flatten() {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without an id"))?;
        Ok(Self {
            child,
            pid,
            stdin,
            stdout,
            stderr,
            queue: Queue::default(),
        })
    }

    /// Writes as much as can be; false if the server does not read any more.
    fn flush(&mut self) -> bool {
        let Some(stdin) = &self.stdin else {
            self.queue.clear();
            return true;
        };
        while !self.queue.is_empty() {
            match write(stdin, self.queue.rest()) {
                Ok(count) => self.queue.wrote(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.queue.clear();
                    return false;
                }
            }
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whatever ends the relay ends the server; one that was waited for is not touched again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is closed when everything is written to it.
#[derive(Clone, Copy, Debug, Default)]
struct Closing {
    server: bool,
    client: bool,
}

/// See the [module](self).
pub(crate) struct Relay<'a, B> {
    between: &'a mut B,
    signals: Signals,
    server: Server,
    /// Whether the client's stream to us is open.
    reading: bool,
    client: Theirs,
    errors: Theirs,
    closing: Closing,
    end: Option<Ending>,
    /// How the process that was started ended.
    status: Option<ExitStatus>,
    /// Whether a signal came when it had ended.
    hurry: bool,
    buffer: Box<[u8]>,
}

/// What `poll` said of each stream.
#[derive(Clone, Copy, Debug)]
struct News {
    stdin: PollFlags,
    stdout: PollFlags,
    stderr: PollFlags,
    server_in: PollFlags,
    server_out: PollFlags,
    server_err: PollFlags,
    signals: PollFlags,
}

impl News {
    const NONE: Self = Self {
        stdin: PollFlags::empty(),
        stdout: PollFlags::empty(),
        stderr: PollFlags::empty(),
        server_in: PollFlags::empty(),
        server_out: PollFlags::empty(),
        server_err: PollFlags::empty(),
        signals: PollFlags::empty(),
    };
}

/// The other end is gone.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

/// There is something to read, the end included.
const READABLE: PollFlags = PollFlags::IN
    .union(PollFlags::HUP)
    .union(PollFlags::ERR)
    .union(PollFlags::NVAL);

impl<'a, B: Between> Relay<'a, B> {
    /// Starts the server.
    pub(crate) fn start(between: &'a mut B) -> Result<Self, StartError> {
        // Before the server is there, so that no signal ends us and leaves it.
        let signals = Signals::catch()?;
        let server = Server::of(between.start()?)?;
        let mut relay = Self {
            between,
            signals,
            server,
            reading: true,
            client: Theirs::new(io::stdout().as_fd()),
            errors: Theirs::new(io::stderr().as_fd()),
            closing: Closing::default(),
            end: None,
            status: None,
            hurry: false,
            buffer: vec![0; PIECE].into(),
        };
        relay.begin();
        Ok(relay)
    }

    fn begin(&mut self) {
        let mut out = Out::default();
        self.between.first(&mut out);
        self.act(out);
    }

    /// Moves bytes until the server has ended; says how.
    pub(crate) fn run(mut self) -> Result<Ending, StartError> {
        let ending = self.serve();
        if let (Some(stdin), Some(stdout)) = (self.server.stdin.take(), self.server.stdout.take()) {
            self.between.left(stdin, stdout);
        }
        ending
    }

    fn serve(&mut self) -> Result<Ending, StartError> {
        loop {
            self.flush();
            if let Some(ending) = self.end {
                return Ok(ending);
            }
            if let Some(status) = self.status
                && !(self.between.adrift() && self.server.stdout.is_some())
                && !self.lingers(status)
                && let Some(ending) = self.over(status)?
            {
                return Ok(ending);
            }
            let news = self.wait()?;
            if news.signals.intersects(READABLE) {
                self.signalled()?;
                self.status = self.server.child.try_wait()?;
            }
            self.look(news);
        }
    }

    /// Whether somebody else may still write to the stdout of a server that has ended. One that
    /// was killed while it waited for room is not waited for either.
    fn lingers(&self, status: ExitStatus) -> bool {
        let heard = self.server.stdout.is_some() && self.client.open;
        self.between.lingers() && status.signal().is_none() && heard && !self.hurry
    }

    fn wait(&self) -> Result<News, StartError> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let server = &self.server;
        let wants = |queue: &Queue| {
            if queue.is_empty() {
                // Only whether the other end is still there.
                PollFlags::empty()
            } else {
                PollFlags::OUT
            }
        };
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(7);
        let mut places: Vec<fn(&mut News) -> &mut PollFlags> = Vec::with_capacity(7);
        fds.push(PollFd::new(self.signals.stream(), PollFlags::IN));
        places.push(|news| &mut news.signals);
        if self.reading && (!server.queue.is_full() || self.between.takes_everything()) {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
            places.push(|news| &mut news.stdin);
        }
        if self.client.open {
            fds.push(PollFd::new(&stdout, wants(&self.client.queue)));
            places.push(|news| &mut news.stdout);
        }
        if self.errors.open {
            fds.push(PollFd::new(&stderr, wants(&self.errors.queue)));
            places.push(|news| &mut news.stderr);
        }
        if let Some(fd) = &server.stdin {
            fds.push(PollFd::new(fd, wants(&server.queue)));
            places.push(|news| &mut news.server_in);
        }
        if let Some(fd) = &server.stdout
            && !self.client.queue.is_full()
        {
            fds.push(PollFd::new(fd, PollFlags::IN));
            places.push(|news| &mut news.server_out);
        }
        if let Some(fd) = &server.stderr
            && !self.errors.queue.is_full()
            && self.between.drains()
        {
            fds.push(PollFd::new(fd, PollFlags::IN));
            places.push(|news| &mut news.server_err);
        }
        let mut news = News::NONE;
        match poll(&mut fds, None) {
            Ok(_) => {
                for (fd, place) in fds.iter().zip(places) {
                    *place(&mut news) = fd.revents();
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        Ok(news)
    }

    /// Acts on what became readable, and on who is gone.
    fn look(&mut self, news: News) {
        if news.stdout.intersects(GONE) && self.client.open {
            self.client_gone();
        }
        if news.stderr.intersects(GONE) && self.errors.open {
            self.errors_gone();
        }
        if news.server_in.intersects(GONE) {
            self.server_deaf();
        }
        if news.server_out.intersects(READABLE) {
            self.read_server();
        }
        if news.server_err.intersects(READABLE) {
            self.read_stderr();
        }
        if news.stdin.intersects(READABLE) && self.reading {
            self.read_client();
        }
    }

    fn read_client(&mut self) {
        match read(io::stdin(), &mut self.buffer[..]) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => {
                self.reading = false;
                let mut out = Out {
                    close_server: true,
                    ..Out::default()
                };
                self.between.closed(Direction::ToServer, &mut out);
                self.act(out);
            }
            Ok(count) => {
                let mut out = Out::default();
                let bytes = &self.buffer[..count];
                self.between.bytes(Direction::ToServer, bytes, &mut out);
                self.act(out);
            }
        }
    }

    /// Reads once; false if there is nothing to be read now, or ever.
    fn read_server(&mut self) -> bool {
        let Some(fd) = &self.server.stdout else {
            return false;
        };
        match read(fd, &mut self.buffer[..]) {
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                self.server.stdout = None;
                let mut out = Out {
                    close_client: !self.between.outlives(),
                    ..Out::default()
                };
                self.between.closed(Direction::ToClient, &mut out);
                self.act(out);
                false
            }
            Ok(count) => {
                let mut out = Out::default();
                let bytes = &self.buffer[..count];
                self.between.bytes(Direction::ToClient, bytes, &mut out);
                self.act(out);
                true
            }
        }
    }

    /// As [`read_server`](Self::read_server), of its stderr.
    fn read_stderr(&mut self) -> bool {
        let Some(fd) = &self.server.stderr else {
            return false;
        };
        match read(fd, &mut self.buffer[..]) {
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            Ok(0) | Err(_) => {
                self.server.stderr = None;
                false
            }
            Ok(count) => {
                let bytes = &self.buffer[..count];
                self.between.stderr(bytes);
                if self.errors.open {
                    self.errors.queue.push(bytes);
                }
                true
            }
        }
    }

    /// Does what is wanted, as far as it can be done now.
    fn act(&mut self, mut out: Out) {
        self.server.queue.take(&mut out.to_server);
        if self.client.open {
            self.client.queue.take(&mut out.to_client);
        }
        self.closing.server |= out.close_server;
        self.closing.client |= out.close_client;
        self.end = self.end.or(out.end);
        if let Some(signal) = out.kill {
            self.kill(signal);
        }
        self.flush();
    }

    fn flush(&mut self) {
        if !self.server.flush() {
            self.server_deaf();
        }
        if self.closing.server && self.server.queue.is_empty() {
            self.closing.server = false;
            self.server.stdin = None;
        }
        if !self.client.flush(io::stdout().as_fd()) {
            self.client_gone();
        }
        if self.closing.client && self.client.queue.is_empty() {
            self.closing.client = false;
            if std::mem::replace(&mut self.client.open, false) {
                let _ = null().and_then(|null| Ok(rustix::stdio::dup2_stdout(null)?));
            }
        }
        if !self.errors.flush(io::stderr().as_fd()) {
            self.errors_gone();
        }
    }

    /// The server does not read its stdin any more: nobody reads what the client writes.
    fn server_deaf(&mut self) {
        self.server.queue.clear();
        if self.server.stdin.take().is_some() && self.reading && !self.between.outlives() {
            self.reading = false;
            let mut out = Out::default();
            self.between.closed(Direction::ToServer, &mut out);
            let _ = null().and_then(|null| Ok(rustix::stdio::dup2_stdin(null)?));
            self.act(out);
        }
    }

    /// The client does not read any more: the server is to see that when it writes.
    fn client_gone(&mut self) {
        self.client.open = false;
        self.client.queue.clear();
        let _ = null().and_then(|null| Ok(rustix::stdio::dup2_stdout(null)?));
        if self.server.stdout.take().is_some() {
            let mut out = Out::default();
            self.between.closed(Direction::ToClient, &mut out);
            self.act(out);
        }
    }

    fn errors_gone(&mut self) {
        self.errors.open = false;
        self.errors.queue.clear();
        self.server.stderr = None;
        let _ = null().and_then(|null| Ok(rustix::stdio::dup2_stderr(null)?));
    }

    fn kill(&self, signal: Signal) {
        // It is not waited for yet, so its id is its own. One that is gone needs no signal.
        let _ = kill_process(self.server.pid, signal);
    }

    fn signalled(&mut self) -> Result<(), StartError> {
        for number in self.signals.take() {
            match self.between.signal(number) {
                OnSignal::Ignore => {}
                OnSignal::Die => self.end = Some(Ending::Signal(number)),
                OnSignal::Pass => {
                    self.hurry |= self.status.is_some();
                    if let Some(signal) = Signal::from_named_raw(number)
                        && self.server.child.try_wait()?.is_none()
                    {
                        self.kill(signal);
                    }
                }
            }
        }
        Ok(())
    }

    /// The server is gone: hands over what it left in its pipes. None where it is started again.
    fn over(&mut self, status: ExitStatus) -> Result<Option<Ending>, StartError> {
        // One that was killed while it waited for room has no more to say than what fits.
        let patient = status.signal().is_none();
        loop {
            let more =
                self.server.stdout.is_some() && self.has_room(patient)? && { self.read_server() };
            if !more {
                break;
            }
        }
        while self.read_stderr() {
            self.flush();
        }
        let mut out = Out::default();
        self.between.ended(status, &mut out);
        let restart = out.restart;
        self.act(out);
        if restart {
            let server = Server::of(self.between.start()?)?;
            self.server = server;
            self.status = None;
            self.begin();
            return Ok(None);
        }
        while patient && self.client.open && !self.client.queue.is_empty() {
            if !self.room()? {
                break;
            }
        }
        let own = match (status.code(), status.signal()) {
            (_, Some(signal)) => Ending::Signal(signal),
            (code, None) => Ending::Exit(code.unwrap_or(1)),
        };
        Ok(Some(self.end.unwrap_or(own)))
    }

    /// Whether more can be handed to the client; waits for room where that is allowed.
    fn has_room(&mut self, patient: bool) -> Result<bool, StartError> {
        self.flush();
        while self.client.open && self.client.queue.is_full() {
            if !patient || !self.room()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until the client takes something; false if we are told to end meanwhile.
    fn room(&mut self) -> Result<bool, StartError> {
        let stdout = io::stdout();
        let mut fds = [
            PollFd::new(&stdout, PollFlags::OUT),
            PollFd::new(self.signals.stream(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let told = fds[1].revents().intersects(READABLE);
        // A server that has ended cannot be told to end: we are.
        if told && let Some(signal) = self.signals.take().into_iter().next() {
            self.client.queue.clear();
            self.end = Some(Ending::Signal(signal));
            return Ok(false);
        }
        self.flush();
        Ok(true)
    }
}

fn null() -> io::Result<std::fs::File> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
}
