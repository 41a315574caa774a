//! The server: reads lines, holds the sessions, and ends everything when its input ends.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_harness::kernel::{Cancel, CancelReason, DisposeErrors};
use dsh_harness::session::Event;
use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};

use super::approve::{AskClient, Questions};
use super::conversation::Conversation;
use super::protocol::{self, Events, Fault, Id, Incoming, Named, Open, Prompt, Request};
use crate::lines::{LAST_WORDS, LONGEST, Line, Lines};
use crate::{Host, Profile};

/// What a client may ask for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a line. Default 16777216.
    pub line_bytes: usize,
    /// The most sessions that are open. Default 64.
    pub sessions: usize,
    /// The most prompts of one session that have no answer yet. Default 16.
    pub prompts: usize,
    /// While more bytes than this wait for the client to read them, no further line is taken.
    /// Default 67108864.
    pub unread_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: LONGEST,
            sessions: 64,
            prompts: 16,
            unread_bytes: 64 << 20,
        }
    }
}

/// Why serving did not end well. Everything is disposed all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The input cannot be read.
    #[error("stdin cannot be read: {0}")]
    Input(#[source] io::Error),
    /// The output cannot be written.
    #[error("stdout cannot be written: {0}")]
    Output(#[source] io::Error),
    /// Something could not be ended in order.
    #[error("not everything ended in order: {0}")]
    Dispose(#[from] DisposeErrors),
    /// A fault of our own.
    #[error("the task of a session ended with {0}; this is a fault of dsh-conform itself")]
    Fault(#[source] JoinError),
}

/// What waits for the client to read it.
#[derive(Clone)]
pub(super) struct Outbox {
    lines: mpsc::UnboundedSender<String>,
    unread: Arc<Unread>,
}

#[derive(Default)]
struct Unread {
    bytes: AtomicUsize,
    less: Notify,
}

impl Outbox {
    /// Queues a line. A client that is gone is noticed by the writer.
    pub(super) fn send(&self, line: String) {
        self.unread.bytes.fetch_add(line.len(), Ordering::AcqRel);
        let _ = self.lines.send(line);
    }

    /// Waits until at most so many bytes are unread.
    async fn room(&self, most: usize) {
        loop {
            let less = self.unread.less.notified();
            if self.unread.bytes.load(Ordering::Acquire) <= most {
                return;
            }
            less.await;
        }
    }
}

async fn write(
    mut lines: mpsc::UnboundedReceiver<String>,
    unread: Arc<Unread>,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    while let Some(line) = lines.recv().await {
        output.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            output.flush().await?;
        }
        unread.bytes.fetch_sub(line.len(), Ordering::AcqRel);
        unread.less.notify_one();
    }
    output.flush().await
}

/// Serves one client until its input ends, its output is closed, or the cancellation is given; then
/// every prompt is cancelled, every session closed, and the host disposed, whatever the client still
/// reads.
///
/// A line that is no request is answered with an error and changes nothing.
pub async fn serve(
    host: Arc<Host>,
    input: impl AsyncBufRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    limits: Limits,
    cancel: &Cancel,
) -> Result<(), ServeError> {
    let (sender, queue) = mpsc::unbounded_channel();
    let unread = Arc::new(Unread::default());
    let mut writer = JoinSet::new();
    writer.spawn(write(queue, Arc::clone(&unread), output));
    let mut server = Server {
        host,
        limits,
        outbox: Outbox {
            lines: sender,
            unread,
        },
        questions: Arc::default(),
        sessions: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let mut lines = Lines::new(input, limits.line_bytes);
    let mut writing = true;
    let ended = loop {
        let outbox = server.outbox.clone();
        let line = tokio::select! {
            biased;
            _ = cancel.cancelled() => break Ok(()),
            written = writer.join_next() => {
                writing = false;
                break broken(written);
            }
            Some(done) = server.tasks.join_next() => match done {
                Ok(()) => continue,
                Err(error) => break Err(ServeError::Fault(error)),
            },
            line = async {
                outbox.room(limits.unread_bytes).await;
                lines.next().await
            } => line,
        };
        match line {
            Err(error) => break Err(ServeError::Input(error)),
            Ok(Line::End) => break Ok(()),
            Ok(Line::TooLong) => {
                let fault = Fault::too_long(limits.line_bytes);
                server.outbox.send(protocol::error(&Id::Null, &fault));
            }
            Ok(Line::Whole(line)) => {
                let take = server.take(&line);
                tokio::select! {
                    biased;
                    _ = cancel.cancelled() => break Ok(()),
                    () = take => {}
                }
            }
        }
    };
    let closed = server.end().await;
    if writing {
        let written = if cancel.is_cancelled() {
            let last = tokio::time::timeout(LAST_WORDS, writer.join_next());
            last.await.unwrap_or_default()
        } else {
            writer.join_next().await
        };
        ended.and(broken(written)).and(closed)
    } else {
        ended.and(closed)
    }
}

/// What became of the writer, which ends by itself only when it cannot go on.
fn broken(written: Option<Result<io::Result<()>, JoinError>>) -> Result<(), ServeError> {
    match written {
        None | Some(Ok(Ok(()))) => Ok(()),
        // A reader that is gone wants no more.
        Some(Ok(Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Some(Ok(Err(error))) => Err(ServeError::Output(error)),
        Some(Err(error)) => Err(ServeError::Fault(error)),
    }
}

struct Server {
    host: Arc<Host>,
    limits: Limits,
    outbox: Outbox,
    questions: Arc<Questions>,
    sessions: HashMap<String, Conversation>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Acts on one line.
    async fn take(&mut self, line: &[u8]) {
        match protocol::read(line) {
            Incoming::Nothing => {}
            Incoming::Wrong { id, fault } => self.outbox.send(protocol::error(&id, &fault)),
            Incoming::Answer { id, answer } => {
                if !self.questions.answered(&id, answer) {
                    tracing::debug!(
                        id,
                        "an answer came for a question that nobody asks any more"
                    );
                }
            }
            Incoming::Request { id, request } => {
                let done = self.act(id.as_ref(), request).await;
                match (done, id) {
                    (Err(fault), Some(id)) => self.outbox.send(protocol::error(&id, &fault)),
                    (Err(fault), None) => tracing::warn!("a notification was ignored: {fault}"),
                    (Ok(()), _) => {}
                }
            }
        }
    }

    /// Does what is wanted, and answers it or sees to it that it is answered.
    async fn act(&mut self, id: Option<&Id>, request: Request) -> Result<(), Fault> {
        match request {
            Request::Open(open) => self.open(id, open).await,
            Request::Prompt(Prompt { session, text }) => {
                let most = self.limits.prompts;
                let conversation = self.find(&session)?;
                if conversation.prompt(id.cloned(), text) {
                    return Ok(());
                }
                Err(Fault::own(
                    "TOO_MANY_PROMPTS",
                    format!(
                        "{most} prompts of session {session:?} wait for an answer, the most at \
                         once; wait for one of them, or cancel"
                    ),
                ))
            }
            Request::Cancel(Named { session }) => {
                let cancelled = self.find(&session)?.cancel(CancelReason::Caller);
                self.answer(id, json!({"cancelled": cancelled}));
                Ok(())
            }
            Request::Events(Events { session, after }) => {
                let skipped = usize::try_from(after).unwrap_or(usize::MAX);
                let session = self.find(&session)?.agent().session();
                let events: Vec<Arc<Event>> =
                    session.read(|log| log.events().iter().skip(skipped).cloned().collect());
                self.answer(id, json!({"events": events}));
                Ok(())
            }
            Request::Close(Named { session }) => {
                self.find(&session)?;
                if let Some(conversation) = self.sessions.remove(&session) {
                    conversation.close(id.cloned());
                }
                Ok(())
            }
        }
    }

    async fn open(&mut self, id: Option<&Id>, open: Open) -> Result<(), Fault> {
        let most = self.limits.sessions;
        if self.tasks.len() >= most {
            return Err(Fault::own(
                "TOO_MANY_SESSIONS",
                format!("{most} sessions are open, the most at once; close one of them"),
            ));
        }
        let agent = match (&open.resume, &open.cwd) {
            (Some(_), Some(_)) => {
                return Err(Fault::params(
                    "the params of open: a session that is gone on with has its `cwd` already; \
                     leave it out",
                ));
            }
            (Some(id), None) => self.host.resume(id).await,
            (None, cwd) => self.host.open(cwd.as_deref()).await,
        };
        let agent = agent.map_err(|error| Fault::own(error.code(), error.to_string()))?;
        let header = agent.session().header().clone();
        if self.sessions.contains_key(&header.id) {
            return Err(Fault::own(
                "SESSION_OPEN",
                format!("session {:?} is open already; use it", header.id),
            ));
        }
        if open.approvals && self.host.profile() != Profile::SdkMinimal {
            let approver = AskClient {
                session: header.id.clone(),
                questions: Arc::clone(&self.questions),
                outbox: self.outbox.clone(),
            };
            self.host
                .approvers()
                .answer_for(&header.id, Arc::new(approver));
        }
        let events = agent.session().read(|log| log.events().len());
        self.answer(
            id,
            json!({
                "session": header.id,
                "cwd": header.cwd,
                "resumed": open.resume.is_some(),
                "events": events,
            }),
        );
        let (conversation, work) = Conversation::new(agent, self.limits.prompts);
        self.tasks
            .spawn(work.run(Arc::clone(&self.host), open.deltas, self.outbox.clone()));
        self.sessions.insert(header.id, conversation);
        Ok(())
    }

    fn find(&mut self, session: &str) -> Result<&mut Conversation, Fault> {
        self.sessions.get_mut(session).ok_or_else(|| {
            let shown: String = session.chars().take(80).collect();
            Fault::own(
                "SESSION_UNKNOWN",
                format!("no session {shown:?} is open; open one first"),
            )
        })
    }

    fn answer(&self, id: Option<&Id>, result: serde_json::Value) {
        if let Some(id) = id {
            self.outbox.send(protocol::result(id, result));
        }
    }

    /// Cancels what runs, closes the sessions, waits for both, and disposes the host.
    async fn end(mut self) -> Result<(), ServeError> {
        for (_, mut conversation) in self.sessions.drain() {
            conversation.cancel(CancelReason::Disposed);
        }
        let mut ended = Ok(());
        while let Some(done) = self.tasks.join_next().await {
            if let Err(error) = done {
                ended = Err(ServeError::Fault(error));
            }
        }
        let disposed = self.host.dispose().await;
        ended.and(disposed.map_err(ServeError::from))
    }
}
