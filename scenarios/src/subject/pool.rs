//! Subjects in processes of their own, used again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use futures::future::join_all;

use super::process::{Launch, Process};
use super::{CallError, Description, Subject, SubjectSource};

/// Starts subjects as they are needed and keeps those that proved sound for the next case.
///
/// [`close`](SubjectSource::close) it when done. One that is dropped kills its idle processes, and
/// the others when their cases drop them.
pub struct Pool {
    launch: Launch,
    description: Description,
    idle: Mutex<Vec<Arc<dyn Subject>>>,
    all: Mutex<Vec<Weak<Process>>>,
    closed: AtomicBool,
}

impl Pool {
    /// Starts the first subject, to hear who they all are.
    pub async fn start(launch: Launch) -> Result<Self, CallError> {
        let first = Arc::new(Process::start(&launch).await?);
        Ok(Self {
            launch,
            description: first.description().clone(),
            all: Mutex::new(vec![Arc::downgrade(&first)]),
            idle: Mutex::new(vec![first]),
            closed: AtomicBool::new(false),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<dyn Subject>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Arc<dyn Subject>> {
        self.idle().pop()
    }

    fn know(&self, started: &Arc<Process>) {
        let mut all = self.all();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(started));
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Process>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SubjectSource for Pool {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn take(&self) -> Result<Arc<dyn Subject>, CallError> {
        while let Some(subject) = self.pop() {
            if !subject.is_over() {
                return Ok(subject);
            }
            subject.end().await;
        }
        let started = Arc::new(Process::start(&self.launch).await?);
        self.know(&started);
        if self.closed.load(Ordering::Acquire) {
            started.end().await;
            let how = "the pool is closed".to_owned();
            return Err(CallError::Gone { how });
        }
        Ok(started)
    }

    async fn give_back(&self, subject: Arc<dyn Subject>, sound: bool) {
        if sound && !subject.is_over() && !self.closed.load(Ordering::Acquire) {
            self.idle().push(subject);
        } else {
            subject.end().await;
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let idle = std::mem::take(&mut *self.idle());
        let all = std::mem::take(&mut *self.all());
        let all: Vec<Arc<Process>> = all.iter().filter_map(Weak::upgrade).collect();
        drop(idle);
        join_all(all.iter().map(|process| process.end())).await;
    }
}
