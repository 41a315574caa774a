//! The calls of a script, made one after the other or beside one another (RUN-13), until the script
//! has ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use dsh_kernel::CancelReason;
use dsh_tools::{ExecContext, ToolCall, ToolRegistry, ToolResult};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::engine::{Failure, Reply, Report, Request};

/// How long a script may go on behind its deadline before it is left alone with its thread, and how
/// long calls that were cancelled may take to end.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Ends a script when the call that runs it ends, also when that is dropped.
pub(crate) struct Stop {
    pub(crate) flag: Arc<AtomicBool>,
    pub(crate) replies: Sender<Reply>,
}

impl Stop {
    fn give(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // A script that has ended listens no more.
        let _ = self.replies.send(Reply::Wake);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.give();
    }
}

/// Why there is no report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The interpreter panicked.
    Panicked,
    /// It did not end in time, not even after its deadline.
    Stuck,
}

/// The calls of one script.
pub(crate) struct Schedule<'a> {
    pub(crate) registry: &'a ToolRegistry,
    /// The script's own call; its cancellation ends with the script.
    pub(crate) context: &'a ExecContext,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
    pub(crate) report: oneshot::Receiver<Report>,
    pub(crate) stop: Stop,
    pub(crate) deadline: Instant,
}

type Running<'a> = FuturesUnordered<BoxFuture<'a, Made>>;

/// A call whose turn has not come.
struct Waiting {
    number: u32,
    call: ToolCall,
    /// Whether it may overlap with others.
    safe: bool,
}

/// A call that was made.
struct Made {
    number: u32,
    result: ToolResult,
}

impl Schedule<'_> {
    /// Makes the script's calls until it has ended. When this returns, no call of it is under way.
    pub(crate) async fn run(mut self) -> Result<Report, Lost> {
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        let mut running = Running::new();
        let mut exclusive = false;
        let mut told = false;
        let report = loop {
            while let Some(next) =
                waiting.pop_front_if(|next| running.is_empty() || next.safe && !exclusive)
            {
                exclusive = !next.safe;
                running.push(call(self.registry, self.context, next.number, next.call));
            }
            let last = self.deadline + GRACE;
            tokio::select! {
                biased;
                report = &mut self.report => break report.map_err(|_| Lost::Panicked),
                Some(made) = running.next() => {
                    // The script may have ended meanwhile; then nobody listens.
                    let _ = self.stop.replies.send(reply(made));
                }
                Some(request) = self.requests.recv() => {
                    let number = request.number;
                    let call = tool_call(self.context, request);
                    let safe = self.registry.is_concurrency_safe(&call);
                    waiting.push_back(Waiting { number, call, safe });
                }
                _ = self.context.cancel.cancelled(), if !told => {
                    told = true;
                    self.stop.give();
                }
                () = until(last) => break Err(Lost::Stuck),
            }
        };
        // What the script left behind when it failed; after a success nothing is.
        self.context.cancel.cancel(CancelReason::Caller);
        let ended = async { while running.next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!(
                calls = running.len(),
                "calls of a script do not end and are dropped"
            );
        }
        report
    }
}

/// A moment is waited for only as the last of several things.
async fn until(moment: Instant) {
    let _ = tokio::time::timeout_at(moment, std::future::pending::<()>()).await;
}

fn call<'a>(
    registry: &'a ToolRegistry,
    context: &'a ExecContext,
    number: u32,
    call: ToolCall,
) -> BoxFuture<'a, Made> {
    Box::pin(async move {
        Made {
            number,
            result: registry.call_nested(context, call).await,
        }
    })
}

/// The call as the pipeline sees it: its id is the outer one's with a number behind it.
fn tool_call(context: &ExecContext, request: Request) -> ToolCall {
    ToolCall {
        id: format!("{}/{}", context.call_id, request.number + 1),
        name: request.name,
        arguments: request.arguments,
    }
}

fn reply(made: Made) -> Reply {
    let Made { number, result } = made;
    let outcome = if result.is_error {
        Err(Failure {
            message: result.text(),
            code: result.code.unwrap_or_default(),
        })
    } else {
        Ok(result.value.unwrap_or_default())
    };
    Reply::Settled { number, outcome }
}
