//! Asking a site's questions on one process: as a field of the rounds of the check, and more
//! briefly for one way of a client.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::client::{self, Client};
use super::signals::Heard;
use super::site::{Query, Site};
use super::value::valued;
use crate::ask::Field;
use crate::judge::{advertised, sync_is_compatible};
use crate::readiness::{Answer, Pauses, Reply, Track};
use crate::samples::Operation;

/// The least that a question may take.
const LEAST: Duration = Duration::from_millis(100);
/// How often a question is asked again that the usual way does not get right either.
const ONCE_MORE: u64 = 3;

/// Questions put to one process.
pub(super) struct Asker<'c, 'a> {
    pub(super) client: &'c mut Client<'a>,
    pub(super) site: &'c Site<'c>,
    pub(super) queries: Vec<&'c Query<'c>>,
    /// The result of `initialize`.
    pub(super) initialized: &'c Value,
    /// What every question got, in order.
    pub(super) heard: Vec<Heard>,
    /// Whether any question was answered, with whatever.
    pub(super) answered: bool,
    pub(super) waits: Waits,
}

/// How long each question may take, so that one that is never answered leaves the others time: half
/// as long each time that it was not.
#[derive(Clone, Debug)]
pub(super) struct Waits(Vec<Duration>);

impl Waits {
    /// Each may take so long at first.
    pub(super) fn new(first: impl IntoIterator<Item = Duration>) -> Self {
        Self(first.into_iter().collect())
    }

    fn of(&self, index: usize) -> Duration {
        self.0.get(index).copied().unwrap_or(Duration::ZERO)
    }

    fn was_silent(&mut self, index: usize) {
        if let Some(wait) = self.0.get_mut(index) {
            *wait = (*wait / 2).max(LEAST);
        }
    }
}

#[async_trait]
impl Field for Asker<'_, '_> {
    fn now_us(&self) -> u64 {
        self.client.now_us()
    }

    fn can_ask(&mut self, operation: Operation) -> Option<bool> {
        let result = self.initialized;
        Some(sync_is_compatible(result) && advertised(result, operation))
    }

    async fn ask(&mut self, index: usize, budget: Duration) -> Option<Reply> {
        if self.client.is_late() {
            return None;
        }
        let query = self.queries[index];
        let asked_us = self.client.now_us();
        let document = match self.site.document(&query.file) {
            Ok(document) => document,
            Err(why) => {
                return Some(Reply {
                    answer: Answer::Refused(why.clone()),
                    detail: Some(why),
                    latency_us: 0,
                    seq: 0,
                });
            }
        };
        let params = query.params(&document.uri);
        let reply = self
            .client
            .ask_about(
                &document,
                query.method(),
                params,
                budget.min(self.waits.of(index)),
            )
            .await;
        let latency_us = self.client.now_us().saturating_sub(asked_us);
        let died = match reply {
            client::Reply::Gone => self.client.obituary().await,
            _ => None,
        };
        self.answered |= matches!(reply, client::Reply::Answered(_));
        let (answer, detail) = valued(
            query.operation,
            &reply,
            query.known,
            self.site.relative,
            died,
        )?;
        // The probe goes on, and so may the question.
        let answer = match answer {
            Answer::Silent => {
                self.waits.was_silent(index);
                Answer::Other("no answer".to_owned())
            }
            other => other,
        };
        self.heard.push(Heard {
            asked_us,
            right: answer == Answer::Right,
        });
        Some(Reply {
            answer,
            detail,
            latency_us,
            seq: 0,
        })
    }

    async fn pause(&mut self, pause: Duration) -> bool {
        self.client.rest(pause).await && !self.client.is_late()
    }
}

impl Asker<'_, '_> {
    /// Asks each question until it was right once. Those that are not among `enough` are given up
    /// when all that are were right, after a few rounds; all of them where none is, unless this way
    /// `may_help`.
    pub(super) async fn until_right(
        &mut self,
        tracks: &mut [(Operation, Track)],
        enough: &BTreeSet<Operation>,
        may_help: bool,
    ) {
        let mut pauses = Pauses::default();
        let mut rounds = 0;
        loop {
            rounds += 1;
            for (index, (operation, track)) in tracks.iter_mut().enumerate() {
                if track.first_right_us().is_some() || self.can_ask(*operation) != Some(true) {
                    continue;
                }
                let Some(reply) = self.ask(index, track.left()).await else {
                    return;
                };
                let over = matches!(reply.answer, Answer::Died(_) | Answer::Refused(_));
                let now = self.client.now_us();
                track.observe(now, reply);
                if over {
                    return;
                }
            }
            let is_right = |(_, track): &&(Operation, Track)| track.first_right_us().is_some();
            let open = tracks.iter().filter(|entry| !is_right(entry));
            let open: BTreeSet<Operation> = open
                .map(|(operation, _)| *operation)
                .filter(|operation| advertised(self.initialized, *operation))
                .collect();
            let needed = (enough.is_empty() && may_help) || !open.is_disjoint(enough);
            let decided = open.is_empty() || (!needed && rounds >= ONCE_MORE);
            if decided || !self.pause(pauses.next()).await {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_is_not_answered_is_waited_for_less_and_less() {
        let second = Duration::from_secs(1);
        let mut waits = Waits::new([second, second * 2]);
        for expected in [500, 250, 125, 100, 100] {
            waits.was_silent(0);
            assert_eq!(waits.of(0).as_millis(), expected);
        }
        assert_eq!(waits.of(1), second * 2);
        assert_eq!(waits.of(2), Duration::ZERO);
    }
}
