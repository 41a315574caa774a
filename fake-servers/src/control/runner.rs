//! The runner's end of the control channel.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_transcript::{Direction, Event, EventBody, Recorder};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::gone::Gone;
use super::{Down, Lines, Role, Up};
use crate::script::Action;

/// Why the runner cannot do what is asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The socket cannot be made.
    #[error("cannot open the control channel: {0}")]
    Bind(#[from] io::Error),
    /// There is no such process, or it is gone.
    #[error("process {0} is not connected: it was not started, or has ended")]
    NotConnected(u32),
}

/// Listens for fake servers, keeps what they report, and releases what they hold.
///
/// Any number of processes connect, and get the numbers 1, 2, … in the order they do. What they
/// report becomes events of a [`Recorder`], with the time at which it happened. Dropping it closes
/// all connections, which ends the servers and their helpers, and removes the socket.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    address: String,
    /// Ends the connections when dropped; declared before the folder, so that they go first.
    _tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Shared {
    recorder: Recorder,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    processes: u32,
    /// The number of releases is the runner's choice, so the queue needs no bound.
    connected: BTreeMap<u32, mpsc::UnboundedSender<Order>>,
    /// What is held, oldest first.
    held: Vec<Held>,
    /// Releases of names that nothing held yet.
    permits: HashMap<String, usize>,
    /// Processes whose end of the channel is closed, and that may not be gone yet.
    ending: Vec<Ending>,
}

/// A process that is about to be gone.
#[derive(Debug)]
struct Ending {
    process: u32,
    gone: Gone,
    /// Code and signal it announced.
    announced: (Option<i32>, Option<i32>),
}

/// What a connection is told.
#[derive(Debug)]
enum Order {
    /// To pass something on to its server.
    Say(Down),
    /// To read whatever has arrived, and then to say so.
    CatchUp(oneshot::Sender<()>),
}

#[derive(Debug)]
struct Held {
    name: String,
    process: u32,
    token: u64,
}

impl Control {
    /// Opens a channel with a recorder of its own. Must be called inside a Tokio runtime.
    pub fn bind() -> Result<Self, ControlError> {
        Self::recording(Recorder::new())
    }

    /// Opens a channel whose events go to `recorder`. Must be called inside a Tokio runtime.
    pub fn recording(recorder: Recorder) -> Result<Self, ControlError> {
        Self::recording_in(recorder, &std::env::temp_dir())
    }

    /// As [`recording`](Self::recording), with the socket's folder made in `temp`, if the path is
    /// not too long for a socket there.
    #[cfg(unix)]
    pub fn recording_in(recorder: Recorder, temp: &Path) -> Result<Self, ControlError> {
        // The path of a socket may have about a hundred bytes.
        let mut folder = tempfile::Builder::new().prefix("dsh").tempdir_in(temp)?;
        if folder.path().as_os_str().len() > 80 {
            folder = tempfile::Builder::new().prefix("dsh").tempdir_in("/tmp")?;
        }
        let path = folder.path().join("c");
        let listener = tokio::net::UnixListener::bind(&path)?;
        let Some(address) = path.to_str().map(str::to_owned) else {
            let reason = format!(
                "{} is not UTF-8; set TMPDIR to a path that is",
                path.display()
            );
            return Err(io::Error::other(reason).into());
        };
        let shared = Arc::new(Shared {
            recorder,
            state: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            _tasks: tasks,
            _folder: folder,
        })
    }

    /// Not on this platform.
    #[cfg(not(unix))]
    pub fn recording_in(_recorder: Recorder, _temp: &Path) -> Result<Self, ControlError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }

    /// What a server is given as `--control`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where the events are.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.shared.recorder.events()
    }

    /// How many processes have connected so far.
    pub fn processes(&self) -> u32 {
        self.state().processes
    }

    /// Lets one `hold` of this name go on: the oldest that waits, or the next to come. Each call
    /// is for one.
    pub fn release(&self, name: &str) {
        let mut state = self.state();
        while let Some(at) = state.held.iter().position(|held| held.name == name) {
            let held = state.held.remove(at);
            let down = Down::Release { token: held.token };
            if state
                .connected
                .get(&held.process)
                .is_some_and(|link| link.send(Order::Say(down)).is_ok())
            {
                return;
            }
        }
        *state.permits.entry(name.to_owned()).or_default() += 1;
    }

    /// Has a process carry out actions now, whatever it is doing. Actions that answer a request
    /// have none to answer here.
    pub fn perform(
        &self,
        process: u32,
        actions: impl IntoIterator<Item = Action>,
    ) -> Result<(), ControlError> {
        let down = Down::Perform {
            actions: actions.into_iter().collect(),
        };
        match self.state().connected.get(&process) {
            Some(link) if link.send(Order::Say(down)).is_ok() => Ok(()),
            _ => Err(ControlError::NotConnected(process)),
        }
    }

    /// Waits for the first event, past ones included, that `predicate` accepts. It waits for ever
    /// if none comes: put a deadline around it.
    pub async fn wait_for(&self, predicate: impl FnMut(&Event) -> bool) -> Event {
        self.shared.recorder.wait_for(predicate).await
    }

    /// Waits until `process` has received a message of this method (full or short name).
    pub async fn wait_received(&self, process: u32, method: &str) -> Event {
        self.wait_for(|event| {
            event.process == Some(process) && event.is_message(Direction::ToServer, method)
        })
        .await
    }

    /// Waits until something is held under this name.
    pub async fn wait_held(&self, name: &str) -> Event {
        self.wait_for(|event| held_name(&event.body).is_some_and(|held| held == name))
            .await
    }

    /// Waits until `process` has ended: its end of the channel is closed, and where the system can
    /// tell (on Linux), all its pipes are, and it can be reaped.
    pub async fn wait_ended(&self, process: u32) -> Event {
        self.wait_for(|event| {
            event.process == Some(process) && matches!(event.body, EventBody::ProcessEnded { .. })
        })
        .await
    }

    /// Waits until everything is recorded that servers had reported when this was called.
    ///
    /// A server reports what it is about to do before it does it. So whoever learns of its
    /// consequences by another way, and calls this before recording them, has cause and effect in
    /// their order.
    pub async fn catch_up(&self) {
        self.shared.catch_up().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn catch_up(&self) {
        let waiting: Vec<oneshot::Receiver<()>> = {
            let state = self.state();
            let links = state.connected.values();
            links
                .filter_map(|link| {
                    let (done, waiting) = oneshot::channel();
                    link.send(Order::CatchUp(done)).ok().map(|()| waiting)
                })
                .collect()
        };
        for one in waiting {
            // A connection that is gone has nothing more to say.
            let _ = one.await;
        }
        self.settle(None);
    }

    /// Records the ends of those that are gone by now, and of `known`, which is known to be.
    fn settle(&self, known: Option<u32>) {
        let mut state = self.state();
        state.ending.retain(|ending| {
            let gone = known == Some(ending.process) || ending.gone.now();
            if gone {
                let (code, signal) = ending.announced;
                let body = EventBody::ProcessEnded { code, signal };
                self.recorder.emit(Some(ending.process), body);
            }
            !gone
        });
    }

    /// A process holds something: it goes on at once if its release came before.
    fn held(&self, name: &str, process: u32, token: u64) {
        let mut state = self.state();
        if let Some(permits) = state.permits.get_mut(name).filter(|permits| **permits > 0) {
            *permits -= 1;
            if let Some(link) = state.connected.get(&process) {
                let _ = link.send(Order::Say(Down::Release { token }));
            }
            return;
        }
        state.held.push(Held {
            name: name.to_owned(),
            process,
            token,
        });
    }
}

fn held_name(body: &EventBody) -> Option<&str> {
    match body {
        EventBody::Note { kind, data, .. } if kind == "held" => data.get("hold")?.as_str(),
        _ => None,
    }
}

#[cfg(unix)]
async fn accept(listener: tokio::net::UnixListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, from its hello to its end.
#[cfg(unix)]
async fn serve(stream: tokio::net::UnixStream, shared: Arc<Shared>) {
    let (mut input, output) = stream.into_split();
    let mut connection = Connection {
        output,
        shared,
        process: None,
        gone: Gone::default(),
        orders: None,
        ending: (None, None),
    };
    // Told only when the end is recorded, if it comes to that.
    let mut unanswered = None;
    let mut lines = Lines::default();
    let mut buffer = vec![0; 65_536];
    loop {
        let mut caught_up = None;
        tokio::select! {
            read = input.read(&mut buffer) => {
                let count = read.unwrap_or(0);
                lines.push(&buffer[..count]);
                if count == 0 || lines.is_too_long() {
                    break;
                }
            }
            Some(order) = connection.next_order() => match order {
                Order::Say(down) => {
                    if connection.say(&down).await.is_err() {
                        break;
                    }
                }
                Order::CatchUp(done) => caught_up = Some(done),
            },
        }
        if caught_up.is_some() && !arrived(&input, &mut buffer, &mut lines) {
            connection.take_all(&mut lines).await;
            unanswered = caught_up;
            break;
        }
        if !connection.take_all(&mut lines).await {
            break;
        }
        if let Some(done) = caught_up {
            // Whoever asked may have gone.
            let _ = done.send(());
        }
    }
    connection.ended(unanswered).await;
}

/// Reads what has arrived, without waiting for more; whether the connection goes on.
#[cfg(unix)]
fn arrived(input: &tokio::net::unix::OwnedReadHalf, buffer: &mut [u8], lines: &mut Lines) -> bool {
    use rustix::net::{RecvFlags, recv};
    let stream: &tokio::net::UnixStream = input.as_ref();
    loop {
        // Asked of the system itself, since the runtime may not have heard of it yet.
        match recv(stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok((count, _)) => {
                lines.push(&buffer[..count]);
                if lines.is_too_long() {
                    return false;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(unix)]
struct Connection {
    output: tokio::net::unix::OwnedWriteHalf,
    shared: Arc<Shared>,
    /// None until the hello, and for helpers.
    process: Option<u32>,
    gone: Gone,
    orders: Option<mpsc::UnboundedReceiver<Order>>,
    /// Code and signal it announced.
    ending: (Option<i32>, Option<i32>),
}

#[cfg(unix)]
impl Connection {
    async fn next_order(&mut self) -> Option<Order> {
        match &mut self.orders {
            Some(orders) => orders.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Takes all whole lines; whether the connection goes on.
    async fn take_all(&mut self, lines: &mut Lines) -> bool {
        while let Some(line) = lines.next() {
            if self.take(&line).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn say(&mut self, message: &Down) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.output.write_all(&line).await
    }

    async fn take(&mut self, line: &[u8]) -> io::Result<()> {
        match serde_json::from_slice(line)? {
            Up::Hello {
                role: Role::Helper, ..
            } => {}
            Up::Hello {
                role: Role::Server,
                pid,
                argv,
                cwd,
            } => {
                // Who starts a process when another is gone has that order in the transcript too.
                self.shared.catch_up().await;
                self.gone = Gone::of(pid);
                let (sender, receiver) = mpsc::unbounded_channel();
                let process = {
                    let mut state = self.shared.state();
                    state.processes += 1;
                    let process = state.processes;
                    state.connected.insert(process, sender);
                    process
                };
                self.process = Some(process);
                self.orders = Some(receiver);
                let body = EventBody::ProcessStarted {
                    pid,
                    argv,
                    cwd: Some(cwd),
                };
                self.shared.recorder.emit(self.process, body);
                self.say(&Down::Welcome { process }).await?;
            }
            Up::Sync { number } => self.say(&Down::Done { number }).await?,
            Up::Event { at_us, body } => self.event(at_us, body),
        }
        Ok(())
    }

    fn event(&mut self, at_us: u64, body: EventBody) {
        let Some(process) = self.process else { return };
        let mut token = None;
        if let EventBody::Note { kind, data, .. } = &body {
            let number = |key: &str| {
                data.get(key)
                    .and_then(Value::as_i64)
                    .and_then(|value| i32::try_from(value).ok())
            };
            match kind.as_str() {
                "ending" => self.ending = (number("code"), number("signal")),
                "held" => token = data.get("token").and_then(Value::as_u64),
                "dropped" => {
                    let gone = data.get("token").and_then(Value::as_u64);
                    let mut state = self.shared.state();
                    state
                        .held
                        .retain(|held| (held.process, Some(held.token)) != (process, gone));
                }
                _ => {}
            }
        }
        let name = held_name(&body).map(str::to_owned);
        self.shared.recorder.emit_at(at_us, self.process, body);
        // Recorded first, so that the release comes after the hold in the transcript.
        if let (Some(name), Some(token)) = (name, token) {
            self.shared.held(&name, process, token);
        }
    }

    /// The channel is closed before the process is gone: its pipes may be open still, and who
    /// learns of its end and writes to them would be heard by nobody.
    async fn ended(mut self, unanswered: Option<oneshot::Sender<()>>) {
        let Some(process) = self.process.take() else {
            return;
        };
        let gone = self.gone.clone();
        {
            let mut state = self.shared.state();
            state.connected.remove(&process);
            state.held.retain(|held| held.process != process);
            state.ending.push(Ending {
                process,
                gone: gone.clone(),
                announced: self.ending,
            });
        }
        self.shared.settle(None);
        drop((unanswered, self.orders.take()));
        gone.wait().await;
        self.shared.settle(Some(process));
    }
}
