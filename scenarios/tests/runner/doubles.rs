//! Subjects that do what a test wants of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use dsh_scenarios::Profile;
use dsh_scenarios::subject::{CallError, Description, InProcess, PendingCall, Subject};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What a double does with a request.
pub(crate) enum Does {
    Answers(Value),
    Refuses(&'static str),
    /// Sends something that is no answer.
    Babbles,
    Nothing,
    /// Ends before it answers.
    Dies,
    /// Answers, and is gone after that.
    AnswersAndDies(Value),
    Panics,
}

/// A subject without any harness.
pub(crate) struct Double {
    description: Description,
    does: Box<dyn Fn(&str) -> Does + Send + Sync>,
    next: AtomicU64,
    dead: CancellationToken,
    /// Everything it was asked, in order, with the params.
    pub(crate) asked: Mutex<Vec<(String, Value)>>,
}

impl Double {
    pub(crate) fn new(does: impl Fn(&str) -> Does + Send + Sync + 'static) -> Self {
        Self {
            description: Description {
                name: "double".to_owned(),
                version: "1".to_owned(),
                profiles: vec![Profile::LspBase, Profile::Transient],
                controls: Vec::new(),
            },
            does: Box::new(does),
            next: AtomicU64::new(1),
            dead: CancellationToken::new(),
            asked: Mutex::default(),
        }
    }

    /// Does this at a query, and what is right otherwise.
    pub(crate) fn at_query(does: impl Fn() -> Does + Send + Sync + 'static) -> Self {
        Self::new(move |method| match method {
            "query" => does(),
            _ => Does::Answers(json!({})),
        })
    }
}

fn gone() -> CallError {
    let how = "exit status: 9".to_owned();
    CallError::Gone { how }
}

#[async_trait]
impl Subject for Double {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn request(&self, method: &str, params: Value) -> PendingCall {
        let mut asked = self.asked.lock().expect("no panic inside");
        asked.push((method.to_owned(), params));
        drop(asked);
        let outcome = match (self.does)(method) {
            _ if self.dead.is_cancelled() => Err(gone()),
            Does::Answers(value) => Ok(value),
            Does::Refuses(code) => Err(CallError::Refused {
                code: Some(code.to_owned()),
                message: "it will not".to_owned(),
                data: json!({"code": code}),
            }),
            Does::Babbles => Err(CallError::Nonsense {
                reason: "the line \"hello\" is not JSON".to_owned(),
            }),
            Does::Dies => {
                self.dead.cancel();
                Err(gone())
            }
            Does::AnswersAndDies(value) => {
                self.dead.cancel();
                Ok(value)
            }
            Does::Panics => panic!("a subject that panics"),
            Does::Nothing => {
                return PendingCall {
                    id: self.next.fetch_add(1, Ordering::Relaxed),
                    outcome: futures::future::pending().boxed(),
                };
            }
        };
        PendingCall {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            outcome: futures::future::ready(outcome).boxed(),
        }
    }

    async fn cancel(&self, id: u64, reason: &str) {
        let mut asked = self.asked.lock().expect("no panic inside");
        asked.push(("cancel".to_owned(), json!({"id": id, "reason": reason})));
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    async fn gone(&self) -> CallError {
        self.dead.cancelled().await;
        gone()
    }
}

/// The built-in harness, with something done to what it is asked: params that are changed, or an
/// answer in its place.
pub(crate) struct Changed<F> {
    inner: InProcess,
    change: F,
}

impl<F> Changed<F>
where
    F: Fn(&str, &mut Value) -> Option<Result<Value, CallError>> + Send + Sync,
{
    pub(crate) fn new(change: F) -> Self {
        Self {
            inner: InProcess::new(),
            change,
        }
    }
}

#[async_trait]
impl<F> Subject for Changed<F>
where
    F: Fn(&str, &mut Value) -> Option<Result<Value, CallError>> + Send + Sync,
{
    fn description(&self) -> &Description {
        self.inner.description()
    }

    async fn request(&self, method: &str, mut params: Value) -> PendingCall {
        match (self.change)(method, &mut params) {
            Some(outcome) => PendingCall {
                id: 0,
                outcome: futures::future::ready(outcome).boxed(),
            },
            None => self.inner.request(method, params).await,
        }
    }

    async fn cancel(&self, id: u64, reason: &str) {
        self.inner.cancel(id, reason).await;
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    async fn end(&self) {
        self.inner.end().await;
    }
}
