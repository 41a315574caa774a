//! The session: a header, a log that is shared, those who listen to it, and where it is kept.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::ThreadId;

use dsh_kernel::lock;

use crate::store::{Store, StoreError};
use crate::{AppendError, Event, EventBody, Log, ModelRequest, SessionHeader, ToolSchema};

/// A conversation. Cloning shares it.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

/// Tells the time, in milliseconds since 1970 (UTC).
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

struct Inner {
    header: SessionHeader,
    clock: Clock,
    log: Mutex<Log>,
    /// Held while an event is appended and told, so that listeners hear events in their order.
    telling: Mutex<()>,
    /// Who holds `telling`.
    teller: Mutex<Option<ThreadId>>,
    /// What was appended and not told yet.
    untold: Mutex<VecDeque<Arc<Event>>>,
    listeners: Mutex<Vec<Arc<Listener>>>,
    store: Arc<tokio::sync::Mutex<Option<Store>>>,
}

struct Listener {
    alive: AtomicBool,
    call: Box<dyn Fn(&Event) + Send + Sync>,
}

/// Why a session was not forked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The log does not go that far.
    #[error("the session cannot be forked after event {up_to}: its last event is {last}")]
    Beyond {
        /// Where it was to be forked.
        up_to: u64,
        /// Its last event.
        last: u64,
    },
    /// What is open there cannot be ended.
    #[error("the session cannot be forked there: {0}; fork it where no call is under way")]
    Open(#[from] AppendError),
}

impl Session {
    /// A session that begins with `header`, kept in memory.
    pub fn new(header: SessionHeader) -> Self {
        Self::with_clock(header, now_ms)
    }

    /// One whose events are dated by a clock of the caller's: milliseconds since 1970 (UTC).
    pub fn with_clock(
        header: SessionHeader,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::from_parts(header, Log::new(), Box::new(clock))
    }

    pub(crate) fn loaded(header: SessionHeader, log: Log) -> Self {
        Self::from_parts(header, log, Box::new(now_ms))
    }

    fn from_parts(header: SessionHeader, log: Log, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            header,
            clock,
            log: Mutex::new(log),
            telling: Mutex::default(),
            teller: Mutex::default(),
            untold: Mutex::default(),
            listeners: Mutex::default(),
            store: Arc::default(),
        }))
    }

    /// What is fixed for its whole life.
    pub fn header(&self) -> &SessionHeader {
        &self.0.header
    }

    /// Logs what happened, and tells the listeners before it returns; to a listener that logs
    /// something itself, after the event it hears at the moment.
    ///
    /// After an error nothing was logged and nothing told.
    pub fn append(&self, body: EventBody) -> Result<Arc<Event>, AppendError> {
        self.append_with(|_| (body, ())).map(|(event, ())| event)
    }

    /// Logs a `step/request` of the open step and returns the request: what the log has visible, with
    /// this system prompt and these tools (RUN-11, RUN-12).
    pub fn append_request(
        &self,
        turn: u64,
        step: u64,
        system: String,
        tools: Vec<ToolSchema>,
    ) -> Result<ModelRequest, AppendError> {
        self.append_with(|log| {
            let (request, body) = log.request(turn, step, system, tools);
            (body, request)
        })
        .map(|(_, request)| request)
    }

    /// Ends what is open in the log: calls without a result get one of code
    /// [`INTERRUPTED`](crate::INTERRUPTED), then the step and the turn end as cancelled. The next
    /// turn may begin then. Nothing is logged if nothing is open.
    pub fn close_open(&self) -> Result<Vec<Arc<Event>>, AppendError> {
        let closing = self.read(Log::closing);
        closing.into_iter().map(|body| self.append(body)).collect()
    }

    fn append_with<T>(
        &self,
        make: impl FnOnce(&mut Log) -> (EventBody, T),
    ) -> Result<(Arc<Event>, T), AppendError> {
        let own = std::thread::current().id();
        if *lock(&self.0.teller) == Some(own) {
            // A listener logs something: whoever tells it of the event before tells of this one too.
            return self.push(make);
        }
        let _telling = lock(&self.0.telling);
        *lock(&self.0.teller) = Some(own);
        let _done = Done(&self.0.teller);
        let pushed = self.push(make);
        while let Some(event) = self.next_untold() {
            self.tell(&event);
        }
        pushed
    }

    fn push<T>(
        &self,
        make: impl FnOnce(&mut Log) -> (EventBody, T),
    ) -> Result<(Arc<Event>, T), AppendError> {
        let at_ms = (self.0.clock)();
        let mut log = lock(&self.0.log);
        let (body, extra) = make(&mut log);
        let event = Arc::clone(log.push(body, at_ms)?);
        lock(&self.0.untold).push_back(Arc::clone(&event));
        Ok((event, extra))
    }

    fn next_untold(&self) -> Option<Arc<Event>> {
        lock(&self.0.untold).pop_front()
    }

    fn tell(&self, event: &Event) {
        // Copied, since a listener may add or remove listeners.
        let listeners = lock(&self.0.listeners).clone();
        for listener in listeners {
            if !listener.alive.load(Ordering::Acquire) {
                continue;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (listener.call)(event))) {
                tracing::error!(
                    event = event.body.kind(),
                    panic = dsh_kernel::panic_message(&*panic),
                    "a listener of the log panicked"
                );
            }
        }
    }

    /// Looks at the log. Nothing is appended meanwhile, so it should not take long.
    pub fn read<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&lock(&self.0.log))
    }

    /// Hears of every event that is logged from now on, in order, until the subscription is dropped.
    ///
    /// Listeners are recorders: they run in the thread that appends, and must neither block nor wait
    /// for another thread. They may read the session, and append to it. One that panics disturbs
    /// nobody.
    #[must_use = "dropping the subscription ends it"]
    pub fn subscribe(&self, listener: impl Fn(&Event) + Send + Sync + 'static) -> LogSubscription {
        let listener = Arc::new(Listener {
            alive: AtomicBool::new(true),
            call: Box::new(listener),
        });
        lock(&self.0.listeners).push(Arc::clone(&listener));
        LogSubscription {
            session: Arc::downgrade(&self.0),
            listener,
        }
    }

    /// A session of its own that begins with the events of this one up to `up_to`, kept in memory.
    /// What is open there is ended, as after a crash ([`Session::close_open`]). 0 takes nothing over.
    pub fn fork(&self, up_to: u64, header: SessionHeader) -> Result<Self, ForkError> {
        let log = self.read(|log| log.prefix(up_to))?;
        let fork = Self::loaded(header, log);
        fork.close_open()?;
        Ok(fork)
    }

    /// Writes what is new to the store, durably; nothing to do for a session that has none. Once it
    /// has returned well, every event appended before the call survives a crash (RUN-11).
    ///
    /// After an error the events are still in memory, and the next call writes them.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let mut slot = Arc::clone(&self.0.store).lock_owned().await;
        let Some(store) = slot.as_ref() else {
            return Ok(());
        };
        let new = self.read(|log| log.events()[store.durable()..].to_vec());
        if new.is_empty() {
            return Ok(());
        }
        blocking(move || match slot.as_mut() {
            Some(store) => store.write(&new),
            None => Ok(()),
        })
        .await
    }

    pub(crate) fn store(&self) -> &Arc<tokio::sync::Mutex<Option<Store>>> {
        &self.0.store
    }
}

/// Does what blocks where it may. Goes on to its end also when the caller no longer waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::Stopped),
        },
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "events are dated by the clock; nothing is decided by it, and with_clock takes another"
)]
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Clears who tells, also when a listener's drop panics.
struct Done<'a>(&'a Mutex<Option<ThreadId>>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("header", &self.0.header)
            .finish_non_exhaustive()
    }
}

/// A listener of a session's log; dropping this removes it.
#[must_use = "dropping the subscription ends it"]
pub struct LogSubscription {
    session: Weak<Inner>,
    listener: Arc<Listener>,
}

impl Drop for LogSubscription {
    fn drop(&mut self) {
        self.listener.alive.store(false, Ordering::Release);
        let Some(session) = self.session.upgrade() else {
            return;
        };
        lock(&session.listeners).retain(|listener| !Arc::ptr_eq(listener, &self.listener));
    }
}

impl fmt::Debug for LogSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSubscription").finish_non_exhaustive()
    }
}
