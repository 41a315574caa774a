//! Where events are collected.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::clock::monotonic_us;
use crate::event::{Event, EventBody, Frame};
use crate::jsonl;
use crate::strict::Limits;

/// What a recorder keeps at most. Events are never dropped; what is bounded is their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes kept of one body. A longer one keeps its start, size, hash and kind of message.
    pub body: usize,
    /// Bytes kept of all bodies together; when they are used up, further bodies keep nothing but
    /// size, hash and kind of message.
    pub bodies: usize,
    /// Bytes kept of each stretch of stray bytes of one direction of one process.
    pub stray: usize,
    /// What each reader of the wire holds at most.
    pub reader: Limits,
}

impl Default for Bounds {
    /// 4 MiB a body, 256 MiB in all, 64 KiB stray.
    fn default() -> Self {
        Self {
            body: 4 << 20,
            bodies: 256 << 20,
            stray: 65_536,
            reader: Limits::default(),
        }
    }
}

/// An ordered log that many write to and many wait on. Cloning shares it.
///
/// It knows nothing of who writes: a [`Tap`](crate::Tap) between host and server, a driver that
/// speaks raw bytes to a server itself, the fake server, a runner that logs calls and results.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    origin_us: u64,
    bounds: Bounds,
    log: Mutex<Log>,
    length: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Log {
    events: Vec<Event>,
    kept: usize,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty log that starts now, with the default bounds.
    pub fn new() -> Self {
        Self::with_bounds(Bounds::default())
    }

    /// An empty log that starts now.
    pub fn with_bounds(bounds: Bounds) -> Self {
        Self(Arc::new(Shared {
            origin_us: monotonic_us(),
            bounds,
            log: Mutex::default(),
            length: watch::Sender::new(0),
        }))
    }

    /// What it keeps at most.
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// When it started, on the clock of [`monotonic_us`].
    pub fn origin_us(&self) -> u64 {
        self.0.origin_us
    }

    /// Adds an event that happens now; returns its position.
    pub fn emit(&self, process: Option<u32>, body: EventBody) -> u64 {
        let mut log = self.log();
        // Stamped under the lock, so that time does not run backwards along the positions.
        let at_us = monotonic_us().saturating_sub(self.0.origin_us);
        self.push(&mut log, at_us, process, body)
    }

    /// Adds an event that was stamped elsewhere with [`monotonic_us`]; returns its position.
    pub fn emit_at(&self, stamp_us: u64, process: Option<u32>, body: EventBody) -> u64 {
        let at_us = stamp_us.saturating_sub(self.0.origin_us);
        self.push(&mut self.log(), at_us, process, body)
    }

    fn push(&self, log: &mut Log, at_us: u64, process: Option<u32>, mut body: EventBody) -> u64 {
        if let EventBody::Frame(frame) = &mut body {
            let room = self
                .0
                .bounds
                .bodies
                .saturating_sub(log.kept)
                .min(self.0.bounds.body);
            shorten(frame, room);
            log.kept += frame.body.len();
        }
        let seq = log.events.len() as u64;
        log.events.push(Event {
            seq,
            at_us,
            process,
            body,
        });
        self.0.length.send_replace(log.events.len());
        seq
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic while the lock was held cannot have left half an event.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All events so far. Bodies are shared, not copied.
    pub fn events(&self) -> Vec<Event> {
        self.log().events.clone()
    }

    /// The events from position `from` on.
    pub fn events_from(&self, from: u64) -> Vec<Event> {
        self.look(from, <[Event]>::to_vec)
    }

    /// Looks at the events from position `from` on where they are. Nothing is recorded meanwhile,
    /// so `look` is to be short, and must not use the recorder.
    pub fn look<T>(&self, from: u64, look: impl FnOnce(&[Event]) -> T) -> T {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        look(self.log().events.get(from..).unwrap_or_default())
    }

    /// How many events there are.
    pub fn len(&self) -> u64 {
        self.log().events.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Follows the log from its start: each event once, in order.
    pub fn subscribe(&self) -> Subscription {
        self.subscribe_from(0)
    }

    /// Follows the log from position `from`.
    pub fn subscribe_from(&self, from: u64) -> Subscription {
        Subscription {
            recorder: self.clone(),
            next: from,
            length: self.0.length.subscribe(),
        }
    }

    /// Waits for the first event, past ones included, that `predicate` accepts.
    ///
    /// It waits for ever if none comes: put a deadline around it.
    pub async fn wait_for(&self, predicate: impl FnMut(&Event) -> bool) -> Event {
        self.subscribe().wait_for(predicate).await
    }

    /// Writes the log as JSON Lines.
    pub fn write_jsonl(&self, out: &mut impl Write) -> io::Result<()> {
        jsonl::write(out, &self.events())
    }
}

fn shorten(frame: &mut Frame, room: usize) {
    if frame.body.len() > room {
        if frame.cut.is_none() {
            frame.cut = Some(crate::strict::hash(&frame.body));
        }
        // Copied, since a slice would keep the whole allocation alive.
        frame.body = bytes::Bytes::copy_from_slice(&frame.body[..room]);
    }
}

/// A place in a log, from which events are taken one by one.
#[derive(Debug)]
pub struct Subscription {
    recorder: Recorder,
    next: u64,
    length: watch::Receiver<usize>,
}

impl Subscription {
    /// The next event, once there is one. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Event {
        loop {
            self.length.borrow_and_update();
            if let Some(event) = self.try_next() {
                return event;
            }
            // The sender lives in the recorder this subscription holds.
            let _ = self.length.changed().await;
        }
    }

    /// The next event if it is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        let at = usize::try_from(self.next).ok()?;
        let event = self.recorder.log().events.get(at).cloned()?;
        self.next += 1;
        Some(event)
    }

    /// Takes events until `predicate` accepts one, and returns that.
    pub async fn wait_for(&mut self, mut predicate: impl FnMut(&Event) -> bool) -> Event {
        loop {
            let event = self.next().await;
            if predicate(&event) {
                return event;
            }
        }
    }
}
