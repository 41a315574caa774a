//! Asking until the answer is known to be stable.
//!
//! Servers answer before they are ready: with nothing, with a wrong place, with an error, and now
//! and then wrongly again after the first right answer. No message says when that is over, so a
//! question is asked again, with growing pauses, until its known answer came three times running
//! or its budget ends. This module is the rule of that as plain data; who asks and who waits is
//! somebody else's.

use std::time::Duration;

use dsh_reports::{Heard, OperationTimeline};

/// How often the known answer has to come without anything else between.
const RUNNING: u32 = 3;
/// The first pause between two rounds of questions.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two rounds of questions.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A server that died this often on one question without an answer between is not asked again.
const DEATHS: u32 = 3;

/// The pauses between rounds: 20 ms, doubling up to 500 ms.
#[derive(Clone, Debug)]
pub(crate) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// What one question got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The known answer.
    Right,
    /// Something else that the server said, by a short name: `[]`, `null`, `wrong place`,
    /// `partial 3/6`, `error -32801`.
    Other(String),
    /// The server's process ended, or its output could not be read on.
    Died(String),
    /// What the server wrote could not be read on, or is longer than the host takes: how.
    Unread(String),
    /// The budget ended before anything came.
    Silent,
    /// The host refused to ask: what it needs is not advertised.
    Refused(String),
}

impl Answer {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Right => "right".to_owned(),
            Self::Other(name) => name.clone(),
            Self::Died(_) => "the server died".to_owned(),
            Self::Unread(_) => "unreadable".to_owned(),
            Self::Silent => "no answer".to_owned(),
            Self::Refused(_) => "refused".to_owned(),
        }
    }

    /// The same to a question of which the right answer is known, or not: then nothing more can be
    /// said than that there was an answer.
    pub(crate) fn name_where(&self, known: bool) -> String {
        match self {
            Self::Right if !known => "answered".to_owned(),
            _ => self.name(),
        }
    }
}

/// One question's reply, with what is worth telling about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// The place it named, the error's text.
    pub(crate) detail: Option<String>,
    /// Microseconds from the question to its end.
    pub(crate) latency_us: u64,
    /// Position in the transcript of the event that ended it.
    pub(crate) seq: u64,
}

/// Why a question is not asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The known answer is stable.
    Stable,
    /// The budget ended.
    Budget,
    /// The server died again and again, or before it was initialized.
    Died(String),
    /// What it wrote could not be read on, again and again.
    Unread(String),
    /// The host refused to ask.
    Refused(String),
}

/// The life of one question.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    label: String,
    /// Whether the right answer is known.
    known: bool,
    left: Duration,
    began_us: Option<u64>,
    first_asked_us: Option<u64>,
    first_right_us: Option<u64>,
    stable_us: Option<u64>,
    running: u32,
    deaths: u32,
    asked: u64,
    heard: Vec<Heard>,
    last: Option<Reply>,
    end: Option<End>,
}

impl Track {
    pub(crate) fn new(label: impl Into<String>, budget: Duration) -> Self {
        Self {
            label: label.into(),
            known: true,
            left: budget,
            began_us: None,
            first_asked_us: None,
            first_right_us: None,
            stable_us: None,
            running: 0,
            deaths: 0,
            asked: 0,
            heard: Vec::new(),
            last: None,
            end: None,
        }
    }

    /// The same question, to be asked anew.
    pub(crate) fn anew(&self, budget: Duration) -> Self {
        Self {
            known: self.known,
            ..Self::new(self.label.clone(), budget)
        }
    }

    /// The same of a question without a known answer: what counts as right is an answer that does
    /// not change, and none is told to be right.
    pub(crate) fn unknown(mut self) -> Self {
        self.known = false;
        self
    }

    /// Whether the right answer is known.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(crate) fn last(&self) -> Option<&Reply> {
        self.last.as_ref()
    }

    pub(crate) fn first_right_us(&self) -> Option<u64> {
        self.first_right_us
    }

    /// Whether the server died of it once.
    pub(crate) fn died(&self) -> bool {
        let died = Answer::Died(String::new()).name();
        self.heard.iter().any(|heard| heard.answer == died)
    }

    pub(crate) fn stable_us(&self) -> Option<u64> {
        self.stable_us
    }

    /// When the asking began, in microseconds since the recording began.
    pub(crate) fn began_us(&self) -> Option<u64> {
        self.began_us
    }

    /// Gives the question up.
    pub(crate) fn stop(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// How much of the budget is left.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Takes time from the budget: what was waited for an answer to this question, and the pauses
    /// between rounds. The time that other questions take is theirs, so that a server which never
    /// answers one of them does not fail the others.
    pub(crate) fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
        if self.left.is_zero() {
            self.stop(End::Budget);
        }
    }

    /// Says when the asking began, from where all times are counted: for a server that is started
    /// by the first question, this is its cold start, for every operation alike.
    pub(crate) fn begin(&mut self, now_us: u64) {
        self.began_us.get_or_insert(now_us);
    }

    /// Notes a reply that was complete at `now_us`.
    pub(crate) fn observe(&mut self, now_us: u64, reply: Reply) {
        let asked = now_us.saturating_sub(reply.latency_us);
        let first = *self.first_asked_us.get_or_insert(asked);
        let since = now_us.saturating_sub(*self.began_us.get_or_insert(first));
        self.asked += 1;
        self.hear(since, &reply);
        match &reply.answer {
            Answer::Right => {
                self.deaths = 0;
                self.running += 1;
                self.first_right_us.get_or_insert(since);
                if self.running >= RUNNING {
                    self.stable_us = Some(since);
                    self.stop(End::Stable);
                }
            }
            Answer::Other(_) => {
                self.running = 0;
                self.deaths = 0;
            }
            Answer::Died(how) | Answer::Unread(how) => {
                self.running = 0;
                self.deaths += 1;
                if self.deaths >= DEATHS {
                    self.stop(match &reply.answer {
                        Answer::Unread(_) => End::Unread(how.clone()),
                        _ => End::Died(how.clone()),
                    });
                }
            }
            Answer::Silent => self.stop(End::Budget),
            Answer::Refused(why) => self.stop(End::Refused(why.clone())),
        }
        self.last = Some(reply);
    }

    fn hear(&mut self, since: u64, reply: &Reply) {
        let answer = reply.answer.name_where(self.known);
        match self.heard.last_mut() {
            Some(last) if last.answer == answer => {
                last.times += 1;
                last.until_us = since;
            }
            _ => self.heard.push(Heard {
                right: reply.answer == Answer::Right,
                answer,
                times: 1,
                from_us: since,
                until_us: since,
                detail: reply.detail.clone(),
            }),
        }
    }

    /// Everything that came, in a few words: `4 × wrong place, 1 × []`.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self
            .heard
            .iter()
            .map(|heard| format!("{} × {}", heard.times, heard.answer))
            .collect();
        parts.join(", ")
    }

    /// What came first that was not right.
    pub(crate) fn first_wrong(&self) -> Option<&Heard> {
        self.heard.iter().find(|heard| !heard.right)
    }

    /// The track as the report has it; none if it was never asked.
    pub(crate) fn timeline(&self) -> Option<OperationTimeline> {
        let first = self.first_asked_us?;
        (self.asked > 0).then(|| OperationTimeline {
            operation: self.label.clone(),
            asked_us: first.saturating_sub(self.began_us.unwrap_or(first)),
            first_right_us: self.first_right_us,
            stable_us: self.stable_us,
            asked: self.asked,
            latency_us: self.last.as_ref().map(|reply| reply.latency_us),
            heard: self.heard.clone(),
        })
    }
}

/// Time lines for the tests of what is made of them.
#[cfg(test)]
pub(crate) mod fixture {
    use dsh_reports::{Heard, OperationTimeline};

    /// Each answer with the time it came first and last; `right` is right, and stays so until it came
    /// last.
    pub(crate) fn timeline(operation: &str, heard: &[(&str, u64, u64)]) -> OperationTimeline {
        let heard: Vec<Heard> = heard
            .iter()
            .map(|(answer, from_us, until_us)| Heard {
                answer: (*answer).to_owned(),
                right: *answer == "right",
                times: 3,
                from_us: *from_us,
                until_us: *until_us,
                detail: None,
            })
            .collect();
        let first = heard.iter().find(|heard| heard.right);
        OperationTimeline {
            operation: operation.to_owned(),
            asked_us: 0,
            first_right_us: first.map(|heard| heard.from_us),
            stable_us: first.map(|heard| heard.until_us),
            asked: 3,
            latency_us: Some(5),
            heard,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(answer: Answer) -> Reply {
        Reply {
            answer,
            detail: None,
            latency_us: 5,
            seq: 0,
        }
    }

    /// Asks every 100 ms, giving the answers in turn, until the track ends.
    fn drive(budget_ms: u64, answers: &[Answer]) -> Track {
        let mut track = Track::new("hover", Duration::from_millis(budget_ms));
        track.begin(400_000);
        for (index, answer) in answers.iter().enumerate() {
            let now = 1_000_000 + index as u64 * 100_000;
            track.observe(now + 5, reply(answer.clone()));
            track.spend(Duration::from_millis(100));
            if track.end().is_some() {
                break;
            }
        }
        track
    }

    #[test]
    fn three_right_answers_running_are_stable() {
        let track = drive(
            60_000,
            &[Answer::Right, Answer::Right, Answer::Right, Answer::Right],
        );
        assert_eq!(track.end(), Some(&End::Stable));
        let timeline = track.timeline().unwrap();
        assert_eq!((timeline.asked, timeline.asked_us), (3, 600_000));
        assert_eq!(
            (timeline.first_right_us, timeline.stable_us),
            (Some(600_005), Some(800_005))
        );
    }

    #[test]
    fn one_wrong_answer_between_starts_the_count_again() {
        let stale = Answer::Other("error -32801".to_owned());
        let track = drive(
            60_000,
            &[
                Answer::Other("[]".to_owned()),
                Answer::Other("[]".to_owned()),
                Answer::Right,
                Answer::Right,
                stale,
                Answer::Right,
                Answer::Right,
                Answer::Right,
            ],
        );
        assert_eq!(track.end(), Some(&End::Stable));
        let timeline = track.timeline().unwrap();
        assert_eq!(timeline.first_right_us, Some(800_005));
        assert_eq!(timeline.stable_us, Some(1_300_005));
        assert_eq!(
            track.summary(),
            "2 × [], 2 × right, 1 × error -32801, 3 × right"
        );
    }

    #[test]
    fn a_budget_that_ends_is_an_end_of_its_own() {
        let answers = vec![Answer::Other("null".to_owned()); 20];
        let track = drive(450, &answers);
        assert_eq!(track.end(), Some(&End::Budget));
        let timeline = track.timeline().unwrap();
        assert_eq!(
            (timeline.asked, timeline.first_right_us, timeline.stable_us),
            (5, None, None)
        );
    }

    #[test]
    fn silence_ends_it_and_is_not_an_empty_answer() {
        let track = drive(60_000, &[Answer::Silent]);
        assert_eq!(track.end(), Some(&End::Budget));
        assert_eq!(track.summary(), "1 × no answer");
    }

    #[test]
    fn a_server_that_dies_on_every_question_is_not_restarted_for_ever() {
        let died = Answer::Died("exit code 1".to_owned());
        let track = drive(
            60_000,
            &[
                died.clone(),
                died.clone(),
                Answer::Other("[]".to_owned()),
                died.clone(),
                died.clone(),
                died,
            ],
        );
        assert_eq!(track.end(), Some(&End::Died("exit code 1".to_owned())));
        assert_eq!(track.timeline().unwrap().asked, 6);
    }

    #[test]
    fn pauses_double_up_to_half_a_second() {
        let mut pauses = Pauses::default();
        let all: Vec<u128> = (0..7).map(|_| pauses.next().as_millis()).collect();
        assert_eq!(all, [20, 40, 80, 160, 320, 500, 500]);
    }
}
