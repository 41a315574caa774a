//! One workspace of one provider: a task that serves its queries one after the other (OPN-7), owns
//! its process, and ends it.
//!
//! Everything that belongs to a workspace happens in this task: reading the source at the query's
//! turn (HST-6), starting the process (CFG-8), the query, the grace of a cancelled one (CAN-8), and
//! teardown. A caller that gives up is gone at once; the slot notices by the closed reply.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dsh_fs::{Source, SourceError, SourceRequest, Workspace};
use dsh_kernel::{Cancel, CancelReason};
use dsh_lsp::{LspError, QueryResult};
use dsh_subprocess::{SpawnSpec, TerminationReport};
use tokio::sync::Notify;

use crate::instance::Instance;
use crate::machine::{Ask, Policy};
use crate::outgoing::{Folder, initialize_params};
use crate::pool::{Job, Next, Pool, workspace_error};
use crate::provider::TeardownFailure;
use crate::teardown::Bounds;

pub(crate) struct Slot {
    pool: Arc<Pool>,
    workspace: Workspace,
    added: Arc<Notify>,
    instance: Option<Instance>,
    /// Cancels the read of a query whose caller gave up; renewed after use.
    reading: Cancel,
}

/// Why the slot stops waiting.
enum Event {
    Job(Job),
    /// The process is of no further use.
    Failed,
    Disposed,
    /// There is neither work nor a process: the slot was removed.
    Gone,
}

/// How a query that was begun at an instance went on.
enum Asked {
    Settled(Result<QueryResult, LspError>),
    Failed,
    GivenUp,
}

impl Slot {
    pub(crate) fn new(pool: Arc<Pool>, workspace: Workspace, added: Arc<Notify>) -> Self {
        let reading = pool.disposed.child();
        Self {
            pool,
            workspace,
            added,
            instance: None,
            reading,
        }
    }

    /// The life of the slot: until it has neither work nor a process, or the provider is disposed.
    pub(crate) async fn run(mut self) {
        loop {
            match self.next().await {
                Event::Job(job) => self.serve(job).await,
                Event::Failed => self.discard().await,
                Event::Disposed => break self.leave().await,
                Event::Gone => break,
            }
        }
    }

    /// Waits for something to do. Meanwhile the process is kept talking: a cancelled request may
    /// still be settled, and the server may ask things (SRQ-1).
    async fn next(&mut self) -> Event {
        loop {
            if self.pool.disposed.is_cancelled() {
                return Event::Disposed;
            }
            if self
                .instance
                .as_ref()
                .is_some_and(|instance| instance.machine.failure().is_some())
            {
                return Event::Failed;
            }
            // A query waits for the one before it to be over on the wire, and for a dying process
            // to be dead and replaced.
            let ready = self
                .instance
                .as_ref()
                .is_none_or(|instance| instance.machine.is_free() && !instance.machine.is_dying());
            if ready {
                match self
                    .pool
                    .next(&self.workspace.path, &self.added, self.instance.is_none())
                {
                    Next::Job(job) => return Event::Job(job),
                    Next::Removed => return Event::Gone,
                    Next::Nothing => {}
                }
            }
            self.wait(ready).await;
        }
    }

    /// Until a job was added, the process became ready or failed, or the provider is disposed.
    async fn wait(&mut self, ready: bool) {
        let mut added = pin!(self.added.notified());
        let mut disposed = pin!(self.pool.disposed.cancelled());
        let instance = &mut self.instance;
        poll_fn(|cx| {
            if let Some(instance) = instance {
                instance.poll(cx);
                let machine = &instance.machine;
                let turned = machine.is_free() && !machine.is_dying();
                if machine.failure().is_some() || turned != ready {
                    return Poll::Ready(());
                }
            }
            if disposed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            added.as_mut().poll(cx)
        })
        .await;
    }

    /// One query from its source to its answer. It starts at most one process (CRS-3), and another
    /// try is made only where nothing of it had reached the one before (CRS-2).
    async fn serve(&mut self, mut job: Job) {
        let mut started = false;
        loop {
            let source = match self.read_source(&mut job).await {
                None => return,
                Some(Ok(source)) => source,
                Some(Err(error)) => return job.settle(Err(error)),
            };
            if source.workspace.path != self.workspace.path {
                return self
                    .pool
                    .relocate(&self.workspace.path, job, source.workspace);
            }
            self.replace_dead().await;
            if job.reply.is_closed() || self.pool.disposed.is_cancelled() {
                return;
            }
            if self.instance.is_none() {
                started = true;
                if let Err(error) = self.start().await {
                    return job.settle(Err(error));
                }
            }
            match self.ask(&mut job, source).await {
                Asked::Settled(outcome) => return job.settle(outcome),
                Asked::GivenUp => return,
                Asked::Failed if !started && self.is_unserved() => self.discard().await,
                Asked::Failed => {
                    let error = self.autopsy(&job).await;
                    return job.settle(Err(error));
                }
            }
        }
    }

    /// Reads the source of the query whose turn it is, in one hop (HST-6); `None` if the caller gave
    /// up. The process is kept talking.
    async fn read_source(&mut self, job: &mut Job) -> Option<Result<Source, LspError>> {
        let request = SourceRequest {
            workspace_root: job.query.workspace_root.clone(),
            file_path: job.query.file_path.clone(),
            max_bytes: self.pool.config.max_document_bytes,
        };
        let mut read = self.pool.files.read_source(request, &self.reading);
        let instance = &mut self.instance;
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(outcome) = read.as_mut().poll(cx) {
                return Poll::Ready(Some(outcome));
            }
            if job.reply.poll_closed(cx).is_ready() {
                return Poll::Ready(None);
            }
            if let Some(instance) = instance {
                instance.poll(cx);
            }
            Poll::Pending
        })
        .await;
        if outcome.is_none() {
            self.reading.cancel(CancelReason::Caller);
            let _ = read.await;
            self.reading = self.pool.disposed.child();
        }
        outcome.map(|outcome| outcome.map_err(source_error))
    }

    /// A process that died idle is noticed before the query is given to it (CRS-2).
    async fn replace_dead(&mut self) {
        let Some(instance) = &mut self.instance else {
            return;
        };
        instance.turn().await;
        if instance.machine.is_dying() {
            instance
                .until(|machine, _| machine.failure().map(drop))
                .await;
        }
        if instance.machine.failure().is_some() {
            self.discard().await;
        }
    }

    async fn start(&mut self) -> Result<(), LspError> {
        let Pool {
            id,
            config,
            executable,
            processes,
            ..
        } = &*self.pool;
        let policy = Arc::new(self.policy()?);
        let spec = SpawnSpec {
            executable: executable.clone(),
            args: config.args.clone(),
            env: config.env.clone(),
            cwd: self.workspace.path.clone(),
            max_stderr_bytes: usize::try_from(config.max_stderr_bytes).unwrap_or(usize::MAX),
        };
        let process = processes.spawn(spec).await.map_err(|error| {
            LspError::ServerExited(format!(
                "language server {id:?} could not be started: {error}"
            ))
        })?;
        tracing::debug!(server = %id, pid = process.control.pid(), workspace = %self.workspace.uri, "started");
        self.instance = Some(Instance::new(process, policy));
        Ok(())
    }

    fn policy(&self) -> Result<Policy, LspError> {
        let Pool { id, config, .. } = &*self.pool;
        let Workspace { path, uri } = &self.workspace;
        let name = path
            .file_name()
            .map_or_else(|| uri.clone(), |name| name.to_string_lossy().into());
        let folder = Folder {
            uri: uri.clone(),
            name,
        };
        let initialize =
            initialize_params(&folder, &config.initialization_options).ok_or_else(|| {
                let path = path.display();
                LspError::SourceRejected(format!("workspace {path} has no valid URI ({uri:?})"))
            })?;
        Ok(Policy {
            id: id.clone(),
            folder,
            initialize,
            configuration: config.configuration.to_string(),
            announce_configuration: config.announce_configuration,
            versions: config.versions,
            retry_stale: config.retry_stale,
            max_message_bytes: config.max_message_bytes,
            kill_grace: Duration::from_millis(config.kill_grace_ms),
        })
    }

    /// Gives the query to the instance and waits for what comes first: the outcome, a failure, or
    /// the caller giving up.
    async fn ask(&mut self, job: &mut Job, source: Source) -> Asked {
        let Some(instance) = &mut self.instance else {
            return Asked::Failed;
        };
        instance.machine.begin(Ask {
            operation: job.query.operation,
            position: job.query.position,
            uri: source.uri,
            language_id: job.query.language_id.clone(),
            text: source.text,
        });
        // A disposal releases the callers itself; one that is not polled must not hold it up.
        let mut disposed = pin!(self.pool.disposed.cancelled());
        let asked = instance
            .until(|machine, cx| {
                if let Some(outcome) = machine.take_settled() {
                    return Some(Asked::Settled(outcome));
                }
                if machine.failure().is_some() {
                    return Some(Asked::Failed);
                }
                let given_up =
                    job.reply.poll_closed(cx).is_ready() || disposed.as_mut().poll(cx).is_ready();
                given_up.then_some(Asked::GivenUp)
            })
            .await;
        if let Asked::GivenUp = asked {
            // What has arrived already is read first: an answered request is not cancelled (CAN-7).
            // Yielding lets the runtime look at the pipes.
            tokio::task::yield_now().await;
            instance.turn().await;
            instance.machine.take_settled();
            instance.machine.cancel();
            instance.turn().await;
        }
        asked
    }

    fn is_unserved(&self) -> bool {
        self.instance
            .as_ref()
            .is_some_and(|instance| instance.machine.is_unserved())
    }

    async fn autopsy(&mut self, job: &Job) -> LspError {
        let Pool {
            id,
            config,
            executable,
            ..
        } = &*self.pool;
        let mut command = executable.display().to_string();
        for argument in &config.args {
            command.push(' ');
            command.push_str(argument);
        }
        match &mut self.instance {
            Some(instance) => instance.autopsy(id, &command, job.query.operation).await,
            None => LspError::ServerExited(format!("language server {id:?} is not running")),
        }
    }

    fn bounds(&self) -> Bounds {
        let config = &self.pool.config;
        Bounds {
            shutdown: Duration::from_millis(config.shutdown_timeout_ms),
            grace: Duration::from_millis(config.kill_grace_ms),
        }
    }

    /// Ends a process that is of no further use. The slot waits for its end (CRS-4, CRS-5).
    async fn discard(&mut self) {
        if let Some(instance) = self.instance.take() {
            let failure = instance.machine.failure().cloned();
            tracing::debug!(server = %self.pool.id, ?failure, "discarded");
            let report = instance.discard(self.bounds()).await;
            self.examine(&report);
        }
    }

    /// Ends the process because the provider is disposed (DIS-2).
    async fn leave(&mut self) {
        if let Some(instance) = self.instance.take() {
            let report = instance.leave(self.bounds()).await;
            tracing::debug!(server = %self.pool.id, ?report, "ended");
            self.examine(&report);
        }
    }

    /// What escaped is reported by the disposal, whenever it happened (ENV-6, DIS-5).
    fn examine(&self, report: &TerminationReport) {
        if !report.escaped.is_empty() {
            tracing::warn!(server = %self.pool.id, escaped = ?report.escaped, "processes escaped");
            self.pool.report(TeardownFailure {
                workspace: self.workspace.path.clone(),
                escaped: report.escaped.clone(),
            });
        }
    }
}

impl Drop for Slot {
    /// However the task ended, by a panic too: nobody waits at a slot that has none.
    fn drop(&mut self) {
        self.pool.remove(&self.workspace.path, &self.added);
    }
}

/// A read's failure as the query's (HST-2, HST-3).
fn source_error(error: SourceError) -> LspError {
    match error {
        SourceError::Cancelled(reason) => reason.into(),
        SourceError::Workspace(error) => workspace_error(error),
        error => LspError::SourceRejected(error.to_string()),
    }
}
