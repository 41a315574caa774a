//! One process from its start to its end, and what was seen of it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::asking::{Asker, Waits};
use super::client::{Client, Reply, Stable};
use super::dialogue::Answered;
use super::manner::Manner;
use super::persona::{Handshake, Seen, Sent};
use super::signals;
use super::site::{Query, Site};
use crate::ask;
use crate::evidence::quote;
use crate::judge::{advertised, sync_is_compatible};
use crate::readiness::Track;
use crate::samples::Operation;

/// The longest wait for the answer to `initialize`.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long what was begun may go on behind stable answers, to see whether its end is true.
const UNDER_WAY: Duration = Duration::from_secs(4);

/// How the questions are asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan<'p> {
    /// All of them, over and over, until each is stable; then what is under way is awaited, and
    /// they are asked once more.
    UntilStable,
    /// The first of each operation until it is right, or until those that can be right are.
    UntilRight {
        /// Those that come right in the usual way.
        enough: &'p BTreeSet<Operation>,
        /// Whether this way may be answered rightly where the usual one is never: only then such an
        /// answer is waited for.
        may_help: bool,
    },
    /// The first question once, whatever comes.
    Once,
}

/// How the process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Shutdown,
    StdinClosed,
    Sigterm,
}

/// Bounds of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// For everything before the end.
    pub(super) within: Duration,
    /// For a single question.
    pub(super) budget: Duration,
    /// For the end.
    pub(super) end: Duration,
}

/// Starts a process, asks, ends it; why, where it could not be started.
pub(super) async fn run(
    stable: &Stable<'_>,
    site: &Site<'_>,
    manner: Manner,
    label: &str,
    plan: Plan<'_>,
    way: Way,
    bounds: Bounds,
) -> Result<Seen, String> {
    let mut client = Client::start(stable, manner, label, bounds.within).await?;
    let (initialized, handshake) = shake_hands(&mut client, bounds).await;
    let mut seen = Seen::new(handshake);
    seen.process = client.process;
    seen.known = site.is_known();
    if let Some(initialized) = &initialized {
        seen.initialized_us = Some(client.now_us().saturating_sub(client.started_us));
        ask_all(&mut client, site, initialized, plan, bounds, &mut seen).await;
    }
    seen.waited_us = client.now_us().saturating_sub(client.started_us);
    seen.interrupted = client.is_cancelled();
    if client.is_gone() {
        seen.died = client.obituary().await;
    } else if initialized.is_some() && !seen.interrupted {
        seen.departure = Some(match way {
            Way::Shutdown => client.shut_down(bounds.end).await,
            Way::StdinClosed => client.hang_up(bounds.end).await,
            Way::Sigterm => client.terminate(bounds.end).await,
        });
        seen.interrupted = client.is_cancelled();
    }
    let dialogue = &client.dialogue;
    seen.sent = Sent {
        request: dialogue.was_asked(None),
        configuration: dialogue.was_asked(Some("workspace/configuration")),
        progress: dialogue.signals.progressed(),
    };
    let left = client.finish().await;
    if let Some(departure) = &mut seen.departure {
        departure.left = left;
    }
    Ok(seen)
}

/// The result of `initialize`, and what came of it.
pub(super) async fn shake_hands(
    client: &mut Client<'_>,
    bounds: Bounds,
) -> (Option<Value>, Handshake) {
    let reply = client.initialize(bounds.budget.min(HANDSHAKE)).await;
    match reply {
        Reply::Answered(Answered::Result(result)) => (Some(result), Handshake::Initialized),
        Reply::Answered(Answered::Error(code, message)) => {
            let said = format!("error {code}: {}", quote(&message));
            (None, Handshake::Refused(said))
        }
        Reply::Silent => (None, Handshake::Silent),
        Reply::Cancelled => (None, Handshake::Cancelled),
        Reply::Gone => {
            let how = client.obituary().await;
            let how = how.unwrap_or_else(|| "it is gone".to_owned());
            (None, Handshake::Died(how))
        }
    }
}

async fn ask_all(
    client: &mut Client<'_>,
    site: &Site<'_>,
    initialized: &Value,
    plan: Plan<'_>,
    bounds: Bounds,
    seen: &mut Seen,
) {
    let askable = |query: &&Query<'_>| {
        sync_is_compatible(initialized) && advertised(initialized, query.operation)
    };
    let queries: Vec<&Query<'_>> = match plan {
        Plan::UntilStable => site.queries.iter().filter(askable).collect(),
        Plan::UntilRight { .. } => site.first_of_each().into_iter().filter(askable).collect(),
        Plan::Once => site.queries.iter().filter(askable).take(1).collect(),
    };
    let started_us = client.started_us;
    let mut tracks: Vec<(Operation, Track)> = queries
        .iter()
        .map(|query| {
            let track = Track::new(query.label.clone(), bounds.budget);
            let mut track = match query.known {
                Some(_) => track,
                None => track.unknown(),
            };
            track.begin(started_us);
            (query.operation, track)
        })
        .collect();
    let waits = queries.iter().map(|query| match plan {
        Plan::UntilStable => bounds.within / 3,
        Plan::UntilRight { enough, may_help }
            if (enough.is_empty() && may_help) || enough.contains(&query.operation) =>
        {
            bounds.within / 2
        }
        Plan::UntilRight { .. } => bounds.within / 8,
        Plan::Once => bounds.within / 2,
    });
    let waits = Waits::new(waits);
    let mut asker = Asker {
        client,
        site,
        queries,
        initialized,
        heard: Vec::new(),
        answered: false,
        waits,
    };
    match plan {
        Plan::UntilStable => {
            let mut borrowed: Vec<(Operation, &mut Track)> = tracks
                .iter_mut()
                .map(|(operation, track)| (*operation, track))
                .collect();
            ask::rounds(&mut asker, &mut borrowed).await;
            once_more(&mut asker, bounds.budget).await;
        }
        Plan::UntilRight { enough, may_help } => {
            asker.until_right(&mut tracks, enough, may_help).await;
        }
        Plan::Once => {
            if let Some((_, track)) = tracks.first_mut()
                && let Some(reply) = ask::Field::ask(&mut asker, 0, bounds.budget).await
            {
                let now = asker.client.now_us();
                track.observe(now, reply);
            }
        }
    }
    seen.answered = asker.answered;
    let noticed = asker.client.dialogue.noticed();
    seen.signals = signals::judged(&noticed, &asker.heard, started_us);
    seen.tracks = tracks;
}

/// Waits for the end of what is under way, and asks again what is to be right behind it.
async fn once_more(asker: &mut Asker<'_, '_>, budget: Duration) {
    let client = &mut *asker.client;
    client
        .rest_until(UNDER_WAY, |dialogue| !dialogue.signals.is_under_way())
        .await;
    if client.dialogue.noticed().is_empty() {
        return;
    }
    for index in 0..asker.queries.len() {
        if ask::Field::ask(asker, index, budget).await.is_none() {
            return;
        }
    }
}
