//! One provider's workspaces: which query waits where (HST-1, OPN-7, OPN-11, CFG-8).
//!
//! A query is queued at the slot of its canonical workspace. Where the canonical form of its
//! `workspaceRoot` is not known yet it waits, in order, for the one lookup of that root; where it is
//! known from before, it is queued at once, and the read at its turn shows whether that still holds.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use dsh_fs::{FileSystem, Workspace, WorkspaceError};
use dsh_kernel::{Cancel, CancelReason, lock};
use dsh_lsp::{LspError, ProviderQuery, QueryResult};
use dsh_subprocess::Subprocess;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ServerConfig;
use crate::provider::TeardownFailure;
use crate::slot::Slot;

/// How often one query may be moved because its workspace turned out to be another one.
const MOST_MOVES: u8 = 8;

/// What the parts of one provider share.
pub(crate) struct Pool {
    /// The provider id.
    pub(crate) id: String,
    pub(crate) config: ServerConfig,
    pub(crate) executable: PathBuf,
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) processes: Arc<dyn Subprocess>,
    /// Given when the provider is disposed (DIS-1).
    pub(crate) disposed: Cancel,
    /// Given when the provider is dropped without having been disposed: every task ends where it
    /// is, and the processes with them (DIS-6).
    pub(crate) abandoned: CancellationToken,
    pub(crate) tasks: TaskTracker,
    state: Mutex<State>,
    failures: Mutex<Vec<TeardownFailure>>,
}

#[derive(Default)]
struct State {
    /// `workspaceRoot` as callers wrote it.
    roots: HashMap<String, Root>,
    /// By canonical path. Each has a task of its own, which removes it.
    slots: HashMap<PathBuf, Queue>,
    closed: bool,
}

enum Root {
    /// Its lookup is under way.
    Sought {
        waiting: VecDeque<Job>,
        changed: Arc<Notify>,
    },
    /// The canonical path; there is a slot of it.
    Known(PathBuf),
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Told when a job was added.
    added: Arc<Notify>,
}

/// One query on its way.
pub(crate) struct Job {
    pub(crate) query: ProviderQuery,
    /// Closed when the caller gave up: that is how the work learns of it.
    pub(crate) reply: oneshot::Sender<Result<QueryResult, LspError>>,
    moves: u8,
}

impl Job {
    pub(crate) fn new(
        query: ProviderQuery,
        reply: oneshot::Sender<Result<QueryResult, LspError>>,
    ) -> Self {
        Self {
            query,
            reply,
            moves: 0,
        }
    }

    /// Ends the query; a caller that is gone is no error.
    pub(crate) fn settle(self, outcome: Result<QueryResult, LspError>) {
        let _ = self.reply.send(outcome);
    }
}

/// What a slot finds when it asks for its next job.
pub(crate) enum Next {
    Job(Job),
    /// The queue is empty; the slot stays.
    Nothing,
    /// The queue is empty and the slot was removed, as it asked for in that case.
    Removed,
}

impl Pool {
    pub(crate) fn new(
        id: String,
        config: ServerConfig,
        executable: PathBuf,
        files: Arc<dyn FileSystem>,
        processes: Arc<dyn Subprocess>,
    ) -> Self {
        Self {
            id,
            config,
            executable,
            files,
            processes,
            disposed: Cancel::new(),
            abandoned: CancellationToken::new(),
            tasks: TaskTracker::new(),
            state: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Queues a job, behind every other one of the same `workspaceRoot` (OPN-11).
    pub(crate) fn enqueue(self: &Arc<Self>, job: Job) -> Result<(), LspError> {
        let mut state = self.state();
        if state.closed {
            return Err(self.disposed_error());
        }
        let State { roots, slots, .. } = &mut *state;
        match roots.get_mut(&job.query.workspace_root) {
            Some(Root::Known(path)) => match slots.get_mut(path) {
                Some(queue) => queue.add(job),
                None => unreachable_root(job),
            },
            Some(Root::Sought { waiting, changed }) => {
                waiting.push_back(job);
                changed.notify_one();
            }
            None => {
                let root = job.query.workspace_root.clone();
                let changed = Arc::new(Notify::new());
                let sought = Root::Sought {
                    waiting: VecDeque::from([job]),
                    changed: Arc::clone(&changed),
                };
                roots.insert(root.clone(), sought);
                drop(state);
                self.spawn(Arc::clone(self).seek(root, changed));
            }
        }
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            abandoned.run_until_cancelled(task).await;
        });
    }

    /// Looks a root up for everybody who waits for it, or until nobody does (CAN-2).
    async fn seek(self: Arc<Self>, root: String, changed: Arc<Notify>) {
        let _forget = ForgetSought {
            pool: &self,
            root: &root,
            changed: &changed,
        };
        let cancel = self.disposed.child();
        let mut lookup = self.files.workspace(&root, &cancel);
        tokio::select! {
            biased;
            outcome = &mut lookup => return self.found(&root, outcome),
            () = self.all_gave_up(&root, &changed) => cancel.cancel(CancelReason::Caller),
        };
        // It was told to stop; it is awaited, so that nothing of it is left.
        let _ = lookup.await;
    }

    /// Ends when no caller of the sought root is left, having forgotten the root.
    async fn all_gave_up(&self, root: &str, changed: &Notify) {
        loop {
            let mut added = std::pin::pin!(changed.notified());
            let empty = poll_fn(|cx| {
                let mut state = self.state();
                let Some(Root::Sought { waiting, .. }) = state.roots.get_mut(root) else {
                    return Poll::Ready(true);
                };
                waiting.retain_mut(|job| job.reply.poll_closed(cx).is_pending());
                if waiting.is_empty() {
                    state.roots.remove(root);
                    return Poll::Ready(true);
                }
                added.as_mut().poll(cx).map(|()| false)
            });
            if empty.await {
                return;
            }
        }
    }

    fn found(self: &Arc<Self>, root: &str, outcome: Result<Workspace, WorkspaceError>) {
        let mut state = self.state();
        let Some(Root::Sought { waiting, .. }) = state.roots.remove(root) else {
            return;
        };
        if state.closed {
            return;
        }
        match outcome {
            Ok(workspace) => self.place(state, root, workspace, waiting),
            Err(error) => {
                let error = workspace_error(error);
                for job in waiting {
                    job.settle(Err(error.clone()));
                }
            }
        }
    }

    /// Queues jobs of one root at the slot of its workspace, which is made if there is none.
    fn place(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        root: &str,
        workspace: Workspace,
        jobs: VecDeque<Job>,
    ) {
        state
            .roots
            .insert(root.to_owned(), Root::Known(workspace.path.clone()));
        if let Some(queue) = state.slots.get_mut(&workspace.path) {
            return jobs.into_iter().for_each(|job| queue.add(job));
        }
        let added = Arc::new(Notify::new());
        let queue = Queue {
            jobs,
            added: Arc::clone(&added),
        };
        state.slots.insert(workspace.path.clone(), queue);
        // A runtime that is going down drops the task at once, and the slot then wants the state.
        drop(state);
        self.spawn(Slot::new(Arc::clone(self), workspace, added).run());
    }

    /// Moves a job, and all behind it that came by the same root, to where its workspace is now.
    pub(crate) fn relocate(self: &Arc<Self>, from: &Path, mut job: Job, workspace: Workspace) {
        job.moves += 1;
        if job.moves > MOST_MOVES {
            let root = &job.query.workspace_root;
            let error = format!("workspace {root:?} keeps changing what it resolves to");
            return job.settle(Err(LspError::SourceRejected(error)));
        }
        let root = job.query.workspace_root.clone();
        let mut state = self.state();
        if state.closed {
            return;
        }
        let mut jobs = VecDeque::from([job]);
        if let Some(queue) = state.slots.get_mut(from) {
            let (same, others) = std::mem::take(&mut queue.jobs)
                .into_iter()
                .partition::<VecDeque<Job>, _>(|other| other.query.workspace_root == root);
            queue.jobs = others;
            jobs.extend(same);
        }
        self.place(state, &root, workspace, jobs);
    }

    /// The next job of a slot whose caller still waits. `leave` removes the slot if there is none.
    pub(crate) fn next(&self, path: &Path, added: &Arc<Notify>, leave: bool) -> Next {
        let mut state = self.state();
        if let Some(queue) = state.slots.get_mut(path) {
            while let Some(job) = queue.jobs.pop_front() {
                if !job.reply.is_closed() {
                    return Next::Job(job);
                }
            }
        }
        if !leave {
            return Next::Nothing;
        }
        state.remove(path, added);
        Next::Removed
    }

    /// Forgets a slot, known by its `added`; what is queued there is dropped.
    pub(crate) fn remove(&self, path: &Path, added: &Arc<Notify>) {
        self.state().remove(path, added);
    }

    /// Stops new work and releases everybody who waits (DIS-1).
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.disposed.cancel(CancelReason::Disposed);
        self.tasks.close();
    }

    /// Records what could not be ended.
    pub(crate) fn report(&self, failure: TeardownFailure) {
        lock(&self.failures).push(failure);
    }

    /// What could not be ended, so far.
    pub(crate) fn failures(&self) -> Vec<TeardownFailure> {
        lock(&self.failures).clone()
    }

    /// How many slots there are.
    pub(crate) fn workspaces(&self) -> usize {
        self.state().slots.len()
    }

    pub(crate) fn disposed_error(&self) -> LspError {
        LspError::Disposed(format!("language server {:?} was disposed", self.id))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// A slot of the same workspace that was made later is another one.
    fn remove(&mut self, path: &Path, added: &Arc<Notify>) {
        if !self
            .slots
            .get(path)
            .is_some_and(|queue| Arc::ptr_eq(&queue.added, added))
        {
            return;
        }
        self.slots.remove(path);
        self.roots
            .retain(|_, root| !matches!(root, Root::Known(known) if known == path));
    }
}

impl Queue {
    fn add(&mut self, job: Job) {
        self.jobs.push_back(job);
        self.added.notify_one();
    }
}

/// However a lookup ends, by a panic too: nobody waits for one that is not under way.
struct ForgetSought<'a> {
    pool: &'a Pool,
    root: &'a str,
    changed: &'a Arc<Notify>,
}

impl Drop for ForgetSought<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let own = |root: &mut Root| matches!(root, Root::Sought { changed, .. } if Arc::ptr_eq(changed, self.changed));
        if state.roots.get_mut(self.root).is_some_and(own) {
            state.roots.remove(self.root);
        }
    }
}

/// A root is known only as long as its slot is there.
fn unreachable_root(job: Job) {
    let root = job.query.workspace_root.clone();
    debug_assert!(false, "the slot of {root:?} is gone");
    job.settle(Err(LspError::SourceRejected(format!(
        "workspace {root:?} is no longer known; ask again"
    ))));
}

/// A lookup's failure as the query's (HST-1).
pub(crate) fn workspace_error(error: WorkspaceError) -> LspError {
    match error {
        WorkspaceError::Cancelled(reason) => reason.into(),
        error => LspError::SourceRejected(error.to_string()),
    }
}
