//! The life of one child: its exit, its stderr, its tree, and the tasks that follow them.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::input::InputWatch;
use crate::milestone::Milestone;
use crate::service::{ChildExit, MemberInfo, ProcessControl, TerminationReport};
use crate::tail::Tail;
use crate::tree::Tree;

/// Most bytes of stderr taken at once: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// How long the end of stderr is awaited after the tree was ended. Longer only if a process that
/// could not be ended holds it.
const STDERR_AFTER_END: Duration = Duration::from_millis(200);

/// Owns the tasks that follow a child; dropping it ends the tree and them.
pub(crate) struct LocalControl {
    shared: Arc<Shared>,
    input: InputWatch,
    tasks: Mutex<Tasks>,
}

struct Tasks {
    set: JoinSet<()>,
    terminating: bool,
}

/// What the tasks know of the child.
struct Shared {
    tree: Arc<Tree>,
    stderr: Mutex<Tail>,
    stderr_end: CancellationToken,
    /// Given when nobody is to read stderr any more.
    stop_reading: CancellationToken,
    report: Milestone<TerminationReport>,
    watched: CancellationToken,
}

impl LocalControl {
    /// Follows `tree` and drains `stderr`, of which the last `max_stderr_bytes` are kept.
    pub(crate) fn new(
        tree: Tree,
        input: InputWatch,
        stderr: impl AsyncRead + Send + 'static,
        max_stderr_bytes: usize,
    ) -> Self {
        let shared = Arc::new(Shared {
            tree: Arc::new(tree),
            stderr: Mutex::new(Tail::new(max_stderr_bytes)),
            stderr_end: CancellationToken::new(),
            stop_reading: CancellationToken::new(),
            report: Milestone::new(),
            watched: CancellationToken::new(),
        });
        let mut set = JoinSet::new();
        set.spawn(watch(Watching::new(&shared)));
        set.spawn(drain(
            Arc::clone(&shared),
            stderr,
            shared.stderr_end.clone().drop_guard(),
        ));
        Self {
            shared,
            input,
            tasks: Mutex::new(Tasks {
                set,
                terminating: false,
            }),
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LocalControl {
    fn drop(&mut self) {
        self.shared.tree.kill_now();
        self.shared.stop_reading.cancel();
    }
}

#[async_trait]
impl ProcessControl for LocalControl {
    fn pid(&self) -> u32 {
        self.shared.tree.pid()
    }

    async fn wait(&self) -> ChildExit {
        *self.shared.tree.exit().wait().await
    }

    fn exited(&self) -> Option<ChildExit> {
        self.shared.tree.exit().get().copied()
    }

    async fn stdin_closed(&self) {
        self.input.closed().await;
    }

    fn stderr_tail(&self) -> String {
        self.shared.stderr().text()
    }

    async fn stderr_drained(&self, limit: Duration) {
        // Past the limit the tail is what it is.
        let _ = timeout(limit, self.shared.stderr_end.cancelled()).await;
    }

    async fn wait_tree(&self, limit: Duration) -> Vec<MemberInfo> {
        let tree = &self.shared.tree;
        match timeout(limit, tree.emptied().wait()).await {
            Ok(()) => Vec::new(),
            Err(_) => tree.alive().await,
        }
    }

    async fn terminate_tree(&self, grace: Duration) -> TerminationReport {
        {
            let mut tasks = self.tasks();
            if !tasks.terminating {
                tasks.terminating = true;
                tasks
                    .set
                    .spawn(terminate(Terminating::new(&self.shared), grace));
            }
        }
        self.shared.report.wait().await.clone()
    }
}

impl Shared {
    fn stderr(&self) -> MutexGuard<'_, Tail> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the task that watches owes when it ends. Part of its future from the start: a runtime that
/// shuts down drops tasks that never ran, too.
struct Watching {
    shared: Arc<Shared>,
    finished: bool,
}

impl Watching {
    fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            finished: false,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.tree.kill_now();
        }
        self.shared.watched.cancel();
    }
}

async fn watch(mut watching: Watching) {
    watching.shared.tree.watch().await;
    watching.finished = true;
}

/// The same for the task that terminates: whoever waits for its report is released.
struct Terminating {
    shared: Arc<Shared>,
    report: Option<TerminationReport>,
}

impl Terminating {
    fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            report: None,
        }
    }
}

impl Drop for Terminating {
    fn drop(&mut self) {
        let report = self.report.take().unwrap_or_else(|| {
            self.shared.tree.kill_now();
            TerminationReport::default()
        });
        self.shared.report.reach(report);
    }
}

async fn terminate(mut terminating: Terminating, grace: Duration) {
    let shared = Arc::clone(&terminating.shared);
    let report = shared.tree.terminate(grace).await;
    shared.watched.cancelled().await;
    if timeout(STDERR_AFTER_END, shared.stderr_end.cancelled())
        .await
        .is_err()
    {
        shared.stop_reading.cancel();
        shared.stderr_end.cancelled().await;
    }
    terminating.report = Some(report);
}

/// Reads stderr to its end, so that the child never blocks on it (ENV-5).
///
/// `_end` tells of the end, also where this was never run.
async fn drain(shared: Arc<Shared>, stderr: impl AsyncRead, _end: DropGuard) {
    let mut stderr = pin!(stderr);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut chunk) => read,
            () = shared.stop_reading.cancelled() => return,
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(length) => shared.stderr().push(&chunk[..length]),
        }
    }
}
