//! Which answers are due, and what arrives in their place.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::super::CallError;

type Outcome = Result<Value, CallError>;

/// The answers that are due.
#[derive(Default)]
pub(super) struct Answers(Mutex<State>);

#[derive(Default)]
struct State {
    /// The id given last.
    last: u64,
    due: HashMap<u64, oneshot::Sender<Outcome>>,
    /// Why there will be no more.
    over: Option<CallError>,
    /// Who wants to know when there will be no more.
    watching: Vec<oneshot::Sender<CallError>>,
}

impl Answers {
    /// An id of its own, and its answer when it comes. When there are no more, the answer says so.
    pub(super) fn expect(&self) -> (u64, oneshot::Receiver<Outcome>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state();
        state.last += 1;
        let id = state.last;
        match &state.over {
            // Whoever asked holds the other end.
            Some(over) => drop(answer.send(Err(over.clone()))),
            None => drop(state.due.insert(id, answer)),
        }
        (id, answered)
    }

    /// Passes an answer on, or says what is wrong with the line.
    pub(super) fn take(&self, line: &[u8]) -> Result<(), String> {
        let message = match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => message,
            Ok(_) => return Err(format!("{} is no JSON object", begin(line))),
            Err(error) => return Err(format!("{} is not JSON: {error}", begin(line))),
        };
        let outcome = outcome(&message).map_err(|why| format!("{} {why}", begin(line)))?;
        let id = match message.get("id") {
            Some(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        let Some(id) = id else {
            return Err(format!("{} has no id that was given to it", begin(line)));
        };
        let mut state = self.state();
        let Some(answer) = state.due.remove(&id) else {
            return Err(if (1..=state.last).contains(&id) {
                format!("it answered request {id} a second time")
            } else {
                format!("it answered request {id}, which it was not asked")
            });
        };
        // An answer that nobody waits for any more is as good as taken.
        let _ = answer.send(outcome);
        Ok(())
    }

    /// No more answers come; those that are due fail. The first reason counts.
    pub(super) fn fail(&self, error: &CallError) {
        let (due, watching) = {
            let mut state = self.state();
            state.over.get_or_insert_with(|| error.clone());
            let due = std::mem::take(&mut state.due);
            (due, std::mem::take(&mut state.watching))
        };
        for answer in due.into_values() {
            let _ = answer.send(Err(error.clone()));
        }
        for watcher in watching {
            let _ = watcher.send(error.clone());
        }
    }

    /// Why no more answers come, as soon as that is so.
    pub(super) fn over(&self) -> oneshot::Receiver<CallError> {
        let (sender, over) = oneshot::channel();
        let mut state = self.state();
        state.watching.retain(|watcher| !watcher.is_closed());
        match &state.over {
            // Whoever asked holds the other end.
            Some(reason) => drop(sender.send(reason.clone())),
            None => state.watching.push(sender),
        }
        over
    }

    /// Whether no more answers come.
    pub(super) fn are_over(&self) -> bool {
        self.state().over.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcome(message: &Map<String, Value>) -> Result<Outcome, &'static str> {
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => Ok(Ok(result.clone())),
        (None, Some(error)) => {
            let Some(message) = error.get("message").and_then(Value::as_str) else {
                return Err("is an error without a message");
            };
            let data = error.get("data").cloned().unwrap_or(Value::Null);
            Ok(Err(CallError::Refused {
                code: data.get("code").and_then(Value::as_str).map(str::to_owned),
                message: message.to_owned(),
                data,
            }))
        }
        (Some(_), Some(_)) => Err("has a result and an error"),
        (None, None) => Err("is no answer"),
    }
}

/// The begin of a line, for messages.
pub(super) fn begin(line: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < line.len() {
        format!("the line {shown:?}…")
    } else {
        format!("the line {shown:?}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn wrong(lines: &[&str], told: &str) {
        let answers = Answers::default();
        let (_, first) = answers.expect();
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            answers.take(line.as_bytes()).unwrap();
        }
        let reason = answers.take(last.as_bytes()).unwrap_err();
        assert!(reason.contains(told), "{reason}");
        drop(first);
    }

    #[test]
    fn what_is_no_answer_is_named() {
        wrong(&["hello"], "the line \"hello\" is not JSON");
        wrong(&["[1]"], "is no JSON object");
        wrong(&[r#"{"id":1}"#], "is no answer");
        wrong(
            &[r#"{"id":1,"result":1,"error":{}}"#],
            "a result and an error",
        );
        wrong(
            &[r#"{"id":1,"error":{"code":1}}"#],
            "an error without a message",
        );
        wrong(&[r#"{"id":"1","result":1}"#], "has no id");
        wrong(
            &[r#"{"id":7,"result":1}"#],
            "request 7, which it was not asked",
        );
        let twice = r#"{"id":1,"result":null}"#;
        wrong(&[twice, twice], "request 1 a second time");
    }

    #[test]
    fn a_long_line_is_shown_by_its_begin() {
        let long = "ä".repeat(1000);
        let reason = Answers::default().take(long.as_bytes()).unwrap_err();
        assert!(reason.len() < 300, "{reason}");
    }

    #[test]
    fn answers_find_their_requests_in_any_order() {
        let answers = Answers::default();
        let (a, mut first) = answers.expect();
        let (b, mut second) = answers.expect();
        let line = json!({"id": b, "error": {"code": -1, "message": "no", "data": {"code": "X"}}});
        answers.take(line.to_string().as_bytes()).unwrap();
        let refused = second.try_recv().unwrap().unwrap_err();
        let data = json!({"code": "X"});
        let (code, message) = (Some("X".to_owned()), "no".to_owned());
        assert_eq!(
            refused,
            CallError::Refused {
                code,
                message,
                data
            }
        );
        assert!(first.try_recv().is_err());
        let line = json!({"id": a, "result": null});
        answers.take(line.to_string().as_bytes()).unwrap();
        assert_eq!(first.try_recv().unwrap(), Ok(Value::Null));
    }

    #[test]
    fn when_no_more_come_all_are_told_those_to_come_too() {
        let answers = Answers::default();
        let (_, mut due) = answers.expect();
        let gone = |how: &str| CallError::Gone {
            how: how.to_owned(),
        };
        answers.fail(&gone("first"));
        answers.fail(&gone("second"));
        let (_, mut late) = answers.expect();
        assert_eq!(due.try_recv().unwrap(), Err(gone("first")));
        assert_eq!(late.try_recv().unwrap(), Err(gone("first")));
    }
}
