//! The built-in harness as a subject.
//!
//! [`Server`] takes requests and gives answers, whoever carries them: [`InProcess`] hands them over
//! directly, [`serve`] reads and writes them as lines. All that a case can see and steer goes
//! through here, so both ways give the same verdicts.
//!
//! [`InProcess`]: super::InProcess

mod arranged;
mod control;
mod files;
mod looped;
mod mounted;
mod params;
mod plugins;
mod rows;
mod serve;
mod stubs;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Instant;

use dsh_harness::kernel::{Cancel, CancelReason, panic_message};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{CallError, Description, UNSUPPORTED};
use crate::Profile;
use arranged::lock;
use mounted::Harness;
pub use serve::{ServeError, serve};

/// `data.code` of an error about the request itself.
const INVALID_PARAMS: &str = "INVALID_PARAMS";
/// `data.code` where nothing was mounted yet.
const NOT_MOUNTED: &str = "NOT_MOUNTED";

type Outcome = Result<Value, CallError>;

/// The built-in harness behind the protocol: one mount at a time, any number of requests.
///
/// It runs on the tokio runtime that calls it. [`close`](Self::close) it when done; one that is
/// dropped stops what it does at once, too, and waits for nothing.
#[derive(Default)]
pub struct Server {
    harness: Arc<Harness>,
    running: Arc<Mutex<HashMap<String, Running>>>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

/// A request that has no answer yet.
struct Running {
    cancel: Cancel,
    since: Instant,
}

impl Server {
    /// A server with nothing mounted.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the built-in harness is and claims.
    pub fn description() -> Description {
        Description {
            name: "dsh-harness".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profiles: vec![
                Profile::LspBase,
                Profile::Transient,
                Profile::Tool,
                Profile::Runtime,
                Profile::Instructions,
            ],
            controls: control::NAMES
                .iter()
                .chain(&looped::NAMES)
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }

    /// Begins a request: when this returns, the harness has got it. `id` is what
    /// [`cancel`](Self::cancel) means it by, as JSON.
    pub async fn request(
        &self,
        id: &str,
        method: &str,
        params: Value,
    ) -> BoxFuture<'static, Outcome> {
        let cancel = Cancel::new();
        match lock(&self.running).entry(id.to_owned()) {
            Entry::Occupied(_) => {
                let told = format!("the request {id} is still under way; give each its own id");
                return std::future::ready(Err(refused("DUPLICATE_ID", told))).boxed();
            }
            Entry::Vacant(entry) => {
                entry.insert(Running {
                    cancel: cancel.clone(),
                    since: Instant::now(),
                });
            }
        }
        let over = Over {
            running: Arc::clone(&self.running),
            id: id.to_owned(),
        };
        let work = dispatch(Arc::clone(&self.harness), method, params, cancel);
        let mut work = AssertUnwindSafe(work)
            .catch_unwind()
            .map(move |outcome| {
                drop(over);
                outcome.unwrap_or_else(|panic| {
                    let told = panic_message(&*panic);
                    Err(refused("PANICKED", format!("the harness panicked: {told}")))
                })
            })
            .boxed();
        // The first step is taken here and not by a task of its own, so that queries reach the seam
        // in the order in which they come.
        if let Some(outcome) = poll_fn(|cx| Poll::Ready(step(&mut work, cx))).await {
            return std::future::ready(outcome).boxed();
        }
        let (answer, answered) = oneshot::channel();
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            if let Some(outcome) = ended.run_until_cancelled(work).await {
                // Whoever does not want it any more has dropped the other end.
                let _ = answer.send(outcome);
            }
        });
        answered
            .map(|answer| {
                answer.unwrap_or_else(|_| {
                    let how = "it was closed".to_owned();
                    Err(CallError::Gone { how })
                })
            })
            .boxed()
    }

    /// Has the caller of a request give up, with the reason `caller` or `timeout`. One that was
    /// answered already, or never made, is left alone.
    pub fn cancel(&self, id: &str, reason: &str) {
        let running = lock(&self.running);
        let Some(Running { cancel, since }) = running.get(id) else {
            return;
        };
        cancel.cancel(match reason {
            "timeout" => CancelReason::Timeout(since.elapsed()),
            _ => CancelReason::Caller,
        });
    }

    /// How many requests have no answer yet.
    pub fn under_way(&self) -> usize {
        lock(&self.running).len()
    }

    /// Stops everything: drops what is mounted, without disposal, and what runs. Language servers
    /// are killed.
    pub async fn close(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.harness.abandon().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

fn step(
    work: &mut BoxFuture<'static, Outcome>,
    cx: &mut std::task::Context<'_>,
) -> Option<Outcome> {
    match work.as_mut().poll(cx) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// Forgets a request that has its answer, or is dropped.
struct Over {
    running: Arc<Mutex<HashMap<String, Running>>>,
    id: String,
}

impl Drop for Over {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.id);
    }
}

fn dispatch(
    harness: Arc<Harness>,
    method: &str,
    params: Value,
    cancel: Cancel,
) -> BoxFuture<'static, Outcome> {
    match method {
        "describe" => {
            let described = serde_json::to_value(Server::description());
            let outcome = described.map_err(|error| refused("PANICKED", error.to_string()));
            std::future::ready(outcome).boxed()
        }
        "mount" => async move { harness.mount(params, cancel).await }.boxed(),
        "query" => async move { harness.query(params, cancel).await }.boxed(),
        "tool" => async move { harness.tool(params, cancel).await }.boxed(),
        "turn" => async move { harness.turn(params, cancel).await }.boxed(),
        "control" => async move { control::control(&harness, params, cancel).await }.boxed(),
        "unmount" => async move { harness.unmount().await }.boxed(),
        other => {
            let told = format!("this harness has no {other:?}");
            std::future::ready(Err(refused(UNSUPPORTED, told))).boxed()
        }
    }
}

/// An error with a stable code.
fn refused(code: &str, message: impl Into<String>) -> CallError {
    CallError::Refused {
        code: Some(code.to_owned()),
        message: message.into(),
        data: json!({"code": code}),
    }
}

/// What a request with nothing in it succeeds with.
fn nothing() -> Value {
    json!({})
}
