//! The one task that starts and stops plugins as the plan says.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::task::JoinSet;

use super::state::{Mount, MountId, Shared, State};
use crate::context::Run;
use crate::error::panic_message;
use crate::plan::{Phase, Step, plan};
use crate::{Context, DisposeErrors, DisposeFailure, Plugin, PluginError, lock};

impl Shared {
    /// Takes out what is gone, and begins what the plan says.
    fn begin(self: &Arc<Self>, work: &mut JoinSet<Done>) {
        let gone = self.begin_locked(&mut lock(&self.state), work);
        // Outside the lock: a plugin's own drop may use the kernel.
        drop(gone);
    }

    fn begin_locked(self: &Arc<Self>, state: &mut State, work: &mut JoinSet<Done>) -> Vec<Mount> {
        let mut gone = Vec::new();
        for (_, mount) in state.mounts.extract_if(.., |_, mount| {
            !mount.wanted && matches!(mount.phase, Phase::Waiting | Phase::Failed)
        }) {
            if !mount.reported {
                state.failures.append(&mut lock(&mount.failures));
            }
            gone.push(mount);
        }
        for undo in state.late.drain(..) {
            work.spawn(undo.map(Done::Late));
        }
        for step in plan(&state.graph()) {
            match step {
                Step::Start(id) => {
                    if let Some(mount) = state.mounts.get_mut(&id) {
                        work.spawn(start(mount.begin_start(id, self)));
                    }
                }
                Step::CancelStart(id) => {
                    if let Some(run) = state.mounts.get(&id).and_then(|mount| mount.run.as_ref()) {
                        run.cancel();
                    }
                }
                Step::Stop(id) => {
                    if let Some(mount) = state.mounts.get_mut(&id) {
                        mount.phase = Phase::Stopping;
                        if let Some(run) = mount.run.clone() {
                            work.spawn(stop(run));
                        }
                    }
                }
            }
        }
        gone
    }

    fn apply(&self, done: Done) {
        let mut state = lock(&self.state);
        let (id, outcome) = match done {
            Done::Late(mut failures) => {
                state.failures.append(&mut failures);
                return;
            }
            Done::Start(id, outcome) => (id, outcome),
            Done::Stop(id, failures) => (
                id,
                Outcome::Undone {
                    failures,
                    error: None,
                },
            ),
        };
        let Some(mount) = state.mounts.get_mut(&id) else {
            return;
        };
        match outcome {
            Outcome::Started => mount.phase = Phase::Started,
            Outcome::Undone {
                mut failures,
                error,
            } => {
                mount.phase = if error.is_some() {
                    Phase::Failed
                } else {
                    Phase::Waiting
                };
                mount.error = error;
                mount.run = None;
                lock(&mount.failures).append(&mut failures);
            }
        }
    }

    /// Records the end of the kernel, if it has come.
    fn finish(&self) -> bool {
        let mut state = lock(&self.state);
        if !(state.closed && state.mounts.is_empty() && state.late.is_empty()) {
            return false;
        }
        let failures = std::mem::take(&mut state.failures);
        state
            .end
            .get_or_insert_with(|| DisposeErrors::collect(failures));
        true
    }
}

/// What a task of the driver ended with.
enum Done {
    Start(MountId, Outcome),
    Stop(MountId, Vec<DisposeFailure>),
    Late(Vec<DisposeFailure>),
}

enum Outcome {
    Started,
    /// Everything was undone; with an error if the start failed by itself.
    Undone {
        failures: Vec<DisposeFailure>,
        error: Option<PluginError>,
    },
}

pub(super) async fn drive(shared: Arc<Shared>) {
    let mut work = JoinSet::new();
    loop {
        shared.begin(&mut work);
        let ended = work.is_empty() && shared.finish();
        shared.changed();
        if ended {
            return;
        }
        tokio::select! {
            Some(done) = work.join_next() => match done {
                Ok(done) => shared.apply(done),
                // Neither starts nor stops unwind, and they are aborted only with this task.
                Err(error) => tracing::error!(%error, "a task of the kernel was lost"),
            },
            () = shared.wake.notified() => {}
        }
    }
}

async fn start((plugin, run): (Arc<dyn Plugin>, Arc<Run>)) -> Done {
    let context = Context::new(Arc::clone(&run));
    tracing::debug!(plugin = context.plugin(), "starting");
    let result = match AssertUnwindSafe(plugin.start(&context))
        .catch_unwind()
        .await
    {
        Ok(Ok(())) => match run.unprovided().as_slice() {
            [] => Ok(()),
            missing => Err(PluginError::with_code(
                "SERVICE_NOT_PROVIDED",
                format!(
                    "plugin {} promises {missing:?} and did not provide it in its start",
                    context.plugin()
                ),
            )),
        },
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(PluginError::with_code(
            "PLUGIN_PANICKED",
            format!(
                "plugin {} panicked in its start: {}",
                context.plugin(),
                panic_message(&*panic)
            ),
        )),
    };
    let outcome = match result {
        Ok(()) if !run.is_cancelled() => Outcome::Started,
        // What a start that was told to stop ends with is no failure of the plugin.
        Err(error) if run.is_cancelled() => {
            tracing::debug!(plugin = context.plugin(), %error, "start given up");
            Outcome::Undone {
                failures: run.undo().await,
                error: None,
            }
        }
        result => Outcome::Undone {
            failures: run.undo().await,
            error: result.err(),
        },
    };
    Done::Start(run.mount, outcome)
}

async fn stop(run: Arc<Run>) -> Done {
    Done::Stop(run.mount, run.undo().await)
}
