//! Questions given up, files that change behind the server's back, and its death.

use std::pin::pin;
use std::time::Duration;

use dsh_harness::kernel::CancelReason;
use dsh_harness::lsp;
use dsh_transcript::{Direction, Event, EventBody};
use serde_json::json;

use super::second::{Second, Subject, in_time};
use super::{DOUBTFUL, Step, questions};
use crate::ask::{self, Field as _, Question};
use crate::evidence::KILLED;
use crate::judge::{Asked, method};
use crate::life::{ChangedOnDisk, GIVEN_UP, Killed, Life};
use crate::place::first_identifier;
use crate::readiness::{Answer, End};
use crate::samples::{Changed, LaidOut, Operation, Sample};
use crate::snapshot::Snapshot;
use crate::tree::Stopped;

/// So many questions are given up while they are pending …
const CAUGHT: usize = 3;
/// … out of so many that are tried at most, since a server may be done before.
const TRIED: usize = 12;
/// How long a change on disk may take to be seen: a watcher of the file system tells within a
/// second, one that looks itself every few. The budget bounds it.
const SEEN: Duration = Duration::from_secs(5);
/// How long a question to a server that stands still may take to be written.
const WRITTEN: Duration = Duration::from_secs(2);

fn is_request(event: &Event, operation: Operation) -> bool {
    event.is_message(Direction::ToServer, method(operation))
}

/// Gives questions up as soon as they are on their way, with the judgement left to the transcript.
pub(super) async fn give_up(second: &Second<'_>, subject: &Subject<'_>) {
    let question = subject.question();
    let mut caught = 0;
    for _ in 0..TRIED {
        let before = second.recorder.len();
        if !give_up_once(second, &question).await {
            return;
        }
        // Its turn comes when the one before is over, answered or not.
        let mut seam = second.seam();
        seam.take(vec![question.clone()]);
        if seam.ask(0, second.budget).await.is_none() {
            return;
        }
        let events = second.recorder.events_from(before);
        let cancelled = events
            .iter()
            .any(|event| event.is_message(Direction::ToServer, "$/cancelRequest"));
        let ended = events
            .iter()
            .any(|event| matches!(event.body, EventBody::ProcessEnded { .. }));
        caught += usize::from(cancelled);
        if caught == CAUGHT || ended {
            return;
        }
    }
}

/// False where there is no use in another try.
async fn give_up_once(second: &Second<'_>, question: &Question<'_>) -> bool {
    let cancel = second.cancel.child();
    let mut news = second.recorder.subscribe_from(second.recorder.len());
    let mut query = pin!(
        second
            .lsp
            .query(ask::request(question, second.root), &cancel)
    );
    let on_its_way = tokio::select! {
        biased;
        _ = &mut query => None,
        event = news.wait_for(|event| is_request(event, question.operation)) => Some(event),
        () = in_time(second.budget) => {
            cancel.cancel(CancelReason::Timeout(second.budget));
            let _told_on_the_wire = query.await;
            return false;
        }
    };
    let Some(event) = on_its_way else {
        return !second.cancel.is_cancelled();
    };
    second.recorder.emit(
        event.process,
        EventBody::note(GIVEN_UP, "the question is given up"),
    );
    cancel.cancel(CancelReason::Caller);
    let _told_on_the_wire = query.await;
    true
}

/// Changes files on disk between two questions, one after the other.
pub(super) async fn change(
    second: &Second<'_>,
    sample: &'static Sample,
    laid_out: &LaidOut<'static>,
    allowed: &mut Snapshot,
    life: &mut Life,
) -> Result<(), std::io::Error> {
    for changed in &sample.changed {
        if second.cancel.is_cancelled() {
            break;
        }
        (second.watch)(Step::ChangingOnDisk(changed.question.operation));
        let seen = change_one(second, sample, laid_out, changed).await?;
        life.changed.push(seen);
        laid_out.restore().map_err(std::io::Error::other)?;
        second.wrote(&changed.file, "written");
    }
    for file in &sample.files {
        allowed.allow(&file.path);
    }
    Ok(())
}

async fn change_one(
    second: &Second<'_>,
    sample: &'static Sample,
    laid_out: &LaidOut<'static>,
    changed: &'static Changed,
) -> Result<ChangedOnDisk, std::io::Error> {
    let operation = changed.question.operation;
    let limit = SEEN.min(second.budget);
    let asked = |budget| {
        let label = operation.name().to_owned();
        questions::followed(&changed.question, label, Some(&changed.file), budget)
    };
    let mut seen = ChangedOnDisk {
        file: changed.file.clone(),
        before: None,
        asked: asked(limit),
        opened: None,
        limit,
    };
    // What it does not know for want of time is not what it missed.
    if !knows(second, sample, operation).await {
        return Ok(seen);
    }
    let mut seam = second.seam();
    seam.take(vec![questions::of_sample(&changed.question)]);
    seen.before = seam.ask(0, second.budget).await;
    if seen.before.is_none() {
        return Ok(seen);
    }
    laid_out
        .write_changed(changed)
        .map_err(std::io::Error::other)?;
    second.wrote(&changed.file, "written");
    second.decide(&mut seam, &mut seen.asked).await;
    let missed = matches!(seen.asked.track.end(), Some(End::Budget))
        && seen
            .asked
            .track
            .last()
            .is_none_or(|last| last.answer != Answer::Right);
    if missed && second.opens(&changed.file) {
        // Opened with its new text and closed again, by a question whose answer does not matter.
        let mut opener = second.seam();
        opener.take(vec![Question {
            operation,
            file: changed.file.clone(),
            position: first_identifier(&changed.text),
            known: None,
        }]);
        if opener.ask(0, second.budget).await.is_some() {
            let mut again = asked(limit);
            second.decide(&mut seam, &mut again).await;
            seen.opened = Some(again);
        }
    }
    Ok(seen)
}

/// Whether the sample's own question of this operation is answered steadily.
async fn knows(second: &Second<'_>, sample: &'static Sample, operation: Operation) -> bool {
    let mut of_operation = sample
        .questions
        .iter()
        .filter(|question| question.operation == operation);
    let Some(question) = of_operation.next() else {
        return true;
    };
    let budget = if second.doubtful.contains(&operation) {
        second.budget / DOUBTFUL
    } else {
        second.budget
    };
    let mut asked = questions::followed(question, operation.name().to_owned(), None, budget);
    let mut seam = second.seam();
    seam.take(vec![questions::of_sample(question)]);
    second.decide(&mut seam, &mut asked).await;
    asked.track.end() == Some(&End::Stable)
}

/// Kills the server while a question is pending, and asks its replacement.
pub(super) async fn kill(second: &Second<'_>, subject: &Subject<'_>, life: &mut Life) {
    let question = subject.question();
    let mut seam = second.seam();
    seam.take(vec![question.clone()]);
    // What the replacement has to say as well, where no answer is known.
    seam.reference = subject.reference();
    let Some((process, pid)) = second.leader() else {
        life.not_killed = Some("no process was there to be killed".to_owned());
        return;
    };
    // It stands still first, so that it cannot be done with the question before it is killed.
    let Some(stopped) = Stopped::stop(pid) else {
        life.not_killed = Some("it could not be stopped, so not killed in a question".to_owned());
        return;
    };
    let mut news = second.recorder.subscribe_from(second.recorder.len());
    let request = ask::request(&question, second.root);
    let mut query = pin!(lsp::deadline(
        second.budget,
        second.cancel,
        |cancel| async move { second.lsp.query(request, &cancel).await }
    ));
    let over = tokio::select! {
        biased;
        _ = &mut query => true,
        _ = news.wait_for(|event| is_request(event, question.operation)) => false,
        () = in_time(WRITTEN) => false,
    };
    let seq = second.recorder.emit(
        Some(process),
        EventBody::Note {
            kind: KILLED.to_owned(),
            message: "SIGKILL is sent to the server".to_owned(),
            data: json!({"pid": pid}),
        },
    );
    if !stopped.kill_leader() {
        life.not_killed = Some("it could not be killed".to_owned());
    }
    if !over {
        let _told_on_the_wire = query.await;
    }
    // What is left of the old tree has its grace before anything new is started.
    let mut asked: Asked = subject.anew(second.budget + second.grace);
    second.decide(&mut seam, &mut asked).await;
    if life.not_killed.is_none() {
        life.killed = Some(Killed {
            process,
            seq,
            asked,
        });
    }
}
