//! Carrying out many cases at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_reports::Verdict;
use tokio::task::{Id, JoinSet};

use super::{CaseResult, Setup, Tampering, run_case};
use crate::format::Case;
use crate::subject::{CallError, SubjectSource};

/// Hears of results as they come.
pub trait Observer: Send {
    /// A case begins.
    fn began(&mut self, id: &str) {
        let _ = id;
    }

    /// A case is over. Results come in the order in which the cases end.
    fn ended(&mut self, result: CaseResult);
}

/// What a run was like as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Cases whose results were handed to the observer.
    pub ended: u64,
    /// Whether it was interrupted, so that some have none.
    pub interrupted: bool,
    /// How long it took.
    pub duration: Duration,
}

/// Carries out cases, `jobs` at a time (at least one), each with a subject of `source`.
///
/// More jobs than processors are well: most cases wait most of the time. Results are handed on as
/// they come and not kept, so that memory does not grow with the number of cases. When
/// [`Setup::cancel`] is cancelled, cases under way are cut short, cleaned up, and have no result.
/// The source is not closed.
pub async fn run(
    cases: impl IntoIterator<Item = Arc<Case>>,
    source: Arc<dyn SubjectSource>,
    setup: Arc<Setup>,
    tampering: Option<Arc<dyn Tampering>>,
    jobs: usize,
    observer: &mut dyn Observer,
) -> Summary {
    let began = Instant::now();
    let mut summary = Summary {
        ended: 0,
        interrupted: false,
        duration: Duration::ZERO,
    };
    let mut cases = cases.into_iter();
    let mut running: JoinSet<Option<CaseResult>> = JoinSet::new();
    let mut names: HashMap<Id, String> = HashMap::new();
    loop {
        while running.len() < jobs.max(1) && !setup.cancel.is_cancelled() {
            let Some(case) = cases.next() else { break };
            observer.began(&case.id);
            let id = case.id.clone();
            let one = one(
                case,
                Arc::clone(&source),
                Arc::clone(&setup),
                tampering.clone(),
            );
            names.insert(running.spawn(one).id(), id);
        }
        let Some(joined) = running.join_next_with_id().await else {
            break;
        };
        let result = match joined {
            Ok((task, result)) => {
                names.remove(&task);
                result
            }
            Err(error) => {
                let id = names.remove(&error.id()).unwrap_or_default();
                let message = format!("the runner failed: {error}");
                Some(CaseResult::bare(id, Verdict::HarnessError, message))
            }
        };
        if let Some(result) = result {
            summary.ended += 1;
            observer.ended(result);
        }
    }
    summary.interrupted = setup.cancel.is_cancelled();
    summary.duration = began.elapsed();
    summary
}

/// One case with a subject of its own; none if the run was ended before the case was.
async fn one(
    case: Arc<Case>,
    source: Arc<dyn SubjectSource>,
    setup: Arc<Setup>,
    tampering: Option<Arc<dyn Tampering>>,
) -> Option<CaseResult> {
    let subject = tokio::select! {
        biased;
        () = setup.cancel.cancelled() => return None,
        subject = source.take() => subject,
    };
    let subject = match subject {
        Ok(subject) => subject,
        Err(error) => {
            let message = format!("no subject to be had: {error}");
            let mut result = CaseResult::bare(&*case.id, Verdict::HarnessError, message);
            if matches!(error, CallError::Gone { .. } | CallError::Nonsense { .. }) {
                result.verdict = Verdict::Crash;
                result.clauses.clone_from(&case.scenario.clauses);
            }
            return Some(result);
        }
    };
    let ran = run_case(&case, &*subject, &setup, tampering.as_deref()).await;
    source.give_back(subject, ran.sound).await;
    (!ran.interrupted).then_some(ran.result)
}
