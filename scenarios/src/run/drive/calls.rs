//! What is asked of the subject, and what comes of it.

use dsh_transcript::{Event, EventBody};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{Answer, Called, Driver, Shown, nonsense, over, unknown};
use crate::Profile;
use crate::run::checks::Failure;
use crate::run::judge::Stop;
use crate::run::outcome::Settled;
use crate::run::{redact, requests};
use crate::subject::{CallError, UNSUPPORTED};

impl Driver<'_> {
    /// Hands a request to the subject.
    pub(super) async fn call(
        &mut self,
        name: &str,
        method: &'static str,
        what: &str,
        params: Value,
    ) {
        // A name that is used again means the later call.
        self.settled.remove(name);
        let body = EventBody::Call {
            call: name.to_owned(),
            name: what.to_owned(),
            arguments: params.clone(),
        };
        self.recorder.emit(None, body);
        let passed = match self.tampering {
            Some(tampering) => tampering.request(method, params.clone()),
            None => Some(params.clone()),
        };
        let key = name.to_owned();
        let id = if let Some(passed) = passed {
            let call = self.subject.request(method, passed).await;
            let outcome = call.outcome;
            self.pending
                .push(Box::pin(async move { (key, outcome.await) }));
            Some(call.id)
        } else {
            self.pending
                .push(Box::pin(async move { (key, Ok(json!({}))) }));
            None
        };
        let called = Called {
            id,
            method,
            params,
            seq: None,
        };
        self.calls.insert(name.to_owned(), called);
    }

    pub(super) async fn until_settled(&mut self, name: &str) -> Result<(), Stop> {
        if !self.calls.contains_key(name) {
            return Err(unknown(name));
        }
        while !self.settled.contains_key(name) {
            self.waiting = format!("the outcome of {name}");
            self.more().await?;
        }
        Ok(())
    }

    /// Waits for one piece of news: an event, an answer, or the subject's end.
    pub(super) async fn more(&mut self) -> Result<(), Stop> {
        enum News {
            Event(Box<Event>),
            Answer(Answer),
            Gone(CallError),
        }
        let news = {
            let pending = &mut self.pending;
            let answer = async {
                match pending.next().await {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = self.news.next() => News::Event(Box::new(event)),
                answer = answer => News::Answer(answer),
                error = &mut self.gone => News::Gone(error),
            }
        };
        match news {
            News::Event(event) => {
                self.trace.push(*event);
                Ok(())
            }
            News::Answer((name, settled)) => {
                // What the servers did to bring it about comes first in the transcript.
                self.control.catch_up().await;
                self.catch_up();
                self.settle(name, settled)
            }
            News::Gone(error) => Err(over(error)),
        }
    }

    /// Takes the events that are there.
    pub(super) fn catch_up(&mut self) {
        while let Some(event) = self.news.try_next() {
            self.trace.push(event);
        }
    }

    fn settle(&mut self, name: String, settled: Settled) -> Result<(), Stop> {
        let Some(called) = self.calls.get_mut(&name) else {
            return Ok(());
        };
        let settled = match self.tampering {
            Some(tampering) => tampering.outcome(called.method, &called.params, settled),
            None => settled,
        };
        let (ok, value) = match &settled {
            Ok(value) => (true, value.clone()),
            Err(CallError::Refused {
                code,
                message,
                data,
            }) => {
                let mut value = json!({"message": message});
                if let Some(code) = code {
                    value["code"] = code.clone().into();
                }
                if !data.is_null() {
                    value["data"] = data.clone();
                }
                (false, value)
            }
            Err(other) => (false, json!({"message": other.to_string()})),
        };
        let body = EventBody::Result {
            call: name.clone(),
            ok,
            value,
        };
        called.seq = Some(self.recorder.emit(None, body));
        let stop = match &settled {
            Err(CallError::Nonsense { reason }) => Some(Stop::Failed(Failure {
                seq: called.seq,
                ..nonsense(&format!("{name}: "), reason)
            })),
            Err(CallError::Refused {
                code: Some(code),
                message,
                ..
            }) if code == UNSUPPORTED => Some(if claimed(called.method, self.scenario.profile) {
                refused_though_claimed(called.method, self.scenario.profile, message, called.seq)
            } else {
                Stop::NotApplicable(format!(
                    "the subject does not have `{}`: {message}",
                    called.method
                ))
            }),
            Err(CallError::Refused { .. }) | Ok(_) => None,
            Err(error) => Some(over(error.clone())),
        };
        self.snapshot(&name, &settled);
        self.settled.insert(name, settled);
        stop.map_or(Ok(()), Err)
    }

    /// Keeps what a model would see, where the scenario asks for it.
    fn snapshot(&mut self, name: &str, settled: &Settled) {
        let Ok(value) = settled else { return };
        let text = match self.shown.get(name) {
            Some(Shown::Text) => value["text"].as_str().unwrap_or_default().to_owned(),
            Some(Shown::Requests) => requests::shown(value, self.before(name).as_ref()),
            None => return,
        };
        let started = self.trace.events().iter();
        let mut pids: Vec<u32> = started
            .filter_map(|event| match event.body {
                EventBody::ProcessStarted { pid, .. } => Some(pid),
                _ => None,
            })
            .collect();
        pids.extend(self.subject.pid());
        let varying = redact::Varying {
            places: &self.stage.places,
            home: self.scenario.environment.get("HOME").map(String::as_str),
            pids: &pids,
        };
        let text = redact::redact(&text, varying);
        self.snapshots.push((name.to_owned(), text));
        // Whichever came first: they stand in the order of the steps.
        let calls = &self.calls;
        let place = |(name, _): &(String, String)| calls.get_index_of(name.as_str());
        self.snapshots.sort_by_key(place);
    }
}

/// Whether a subject that claims a profile has to have this method. What a case asks of a profile
/// that is not claimed is never run.
fn claimed(method: &str, profile: Profile) -> bool {
    match method {
        "mount" | "unmount" => true,
        "query" => matches!(profile, Profile::LspBase | Profile::Transient),
        "tool" => profile == Profile::Tool,
        "turn" => matches!(profile, Profile::Runtime | Profile::Instructions),
        _ => false,
    }
}

/// A subject cannot leave out, case by case, what it says it keeps.
fn refused_though_claimed(method: &str, profile: Profile, message: &str, seq: Option<u64>) -> Stop {
    Stop::Failed(Failure {
        message: format!("the subject claims {profile} and does not have `{method}`: {message}"),
        expected: format!("`{method}` carried out, or failed with a code of its own"),
        got: format!("{UNSUPPORTED}: {message}"),
        seq,
        ..Failure::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_claims_a_profile_mounts() {
        for profile in [Profile::LspBase, Profile::Tool, Profile::Instructions] {
            assert!(claimed("mount", profile), "{profile}");
            assert!(claimed("unmount", profile), "{profile}");
        }
        assert!(claimed("query", Profile::Transient));
        assert!(!claimed("query", Profile::Tool));
        assert!(claimed("turn", Profile::Runtime));
        assert!(!claimed("turn", Profile::Tool));
    }
}
