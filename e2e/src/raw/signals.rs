//! What a server says of its own accord that could mean that it is ready, and whether that was
//! true. Pure.

use std::collections::BTreeMap;

use dsh_reports::Signal;
use serde_json::Value;

/// As many names of signals, and as many open progresses, as are kept.
const MOST: usize = 32;
/// The longest name that is kept, in characters.
const LONGEST: usize = 80;

/// One signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noticed {
    pub(super) name: String,
    /// On the clock of the recording.
    pub(super) at_us: u64,
}

/// First and last of one name.
#[derive(Clone, Copy, Debug)]
struct Times {
    first_us: u64,
    last_us: u64,
    count: u64,
}

/// Everything that was noticed.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    by_name: BTreeMap<String, Times>,
    /// Token → title of what is under way.
    open: BTreeMap<String, String>,
    /// Whether any progress came at all.
    progressed: bool,
}

/// Notifications that LSP itself names; none says that a server is ready. The progress is looked
/// at by its own rule.
const OF_LSP: [&str; 9] = [
    "$/cancelRequest",
    "$/logTrace",
    "$/setTrace",
    "$/progress",
    "telemetry/event",
    "textDocument/publishDiagnostics",
    "window/logMessage",
    "window/showMessage",
    "window/workDoneProgress/cancel",
];

impl Signals {
    /// Takes a notification.
    pub(super) fn notice(&mut self, method: &str, params: &Value, now_us: u64) {
        if method == "$/progress" {
            self.progress(params, now_us);
        } else if !OF_LSP.contains(&method) {
            let name = match state(params) {
                Some(state) => format!("{method} ({state})"),
                None => method.to_owned(),
            };
            self.add(&name, now_us);
        }
    }

    fn progress(&mut self, params: &Value, now_us: u64) {
        self.progressed = true;
        let (token, value) = (params["token"].to_string(), &params["value"]);
        match value["kind"].as_str() {
            Some("begin") if self.open.len() < MOST => {
                let title = value["title"].as_str().unwrap_or_default().to_owned();
                self.open.insert(token, title);
            }
            Some("end") => {
                let title = self.open.remove(&token).unwrap_or_default();
                let name = if title.is_empty() {
                    "$/progress end".to_owned()
                } else {
                    format!("$/progress end ({title})")
                };
                self.add(&name, now_us);
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, now_us: u64) {
        let name: String = name.chars().take(LONGEST).collect();
        if let Some(times) = self.by_name.get_mut(&name) {
            times.last_us = now_us;
            times.count += 1;
        } else if self.by_name.len() < MOST {
            let times = Times {
                first_us: now_us,
                last_us: now_us,
                count: 1,
            };
            self.by_name.insert(name, times);
        }
    }

    /// Whether something that began has not ended.
    pub(super) fn is_under_way(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether progress was reported.
    pub(super) fn progressed(&self) -> bool {
        self.progressed
    }

    /// All of them in the order of their time: of each name the first, and the last where it came
    /// again.
    pub(super) fn all(&self) -> Vec<Noticed> {
        let mut all: Vec<Noticed> = Vec::new();
        for (name, times) in &self.by_name {
            all.push(Noticed {
                name: name.clone(),
                at_us: times.first_us,
            });
            if times.count > 1 {
                all.push(Noticed {
                    name: format!("{name}, last of {}", times.count),
                    at_us: times.last_us,
                });
            }
        }
        all.sort_by_key(|noticed| noticed.at_us);
        all
    }
}

/// The member of a status notification that says which status it is.
fn state(params: &Value) -> Option<String> {
    if let Some(quiescent) = params["quiescent"].as_bool() {
        let state = if quiescent { "quiescent" } else { "busy" };
        return Some(state.to_owned());
    }
    if let Some(text) = params.as_str() {
        return Some(text.to_owned());
    }
    ["type", "status", "state", "kind"]
        .iter()
        .find_map(|member| params[*member].as_str())
        .map(str::to_owned)
}

/// What one question got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// When it was asked, on the clock of the recording.
    pub(super) asked_us: u64,
    pub(super) right: bool,
}

/// The signals of a start at `started_us`, each with what the answers after it say of it.
pub(super) fn judged(noticed: &[Noticed], heard: &[Heard], started_us: u64) -> Vec<Signal> {
    noticed
        .iter()
        .map(|noticed| {
            let mut after = heard
                .iter()
                .filter(|heard| heard.asked_us >= noticed.at_us)
                .peekable();
            let held = after.peek().is_some();
            Signal {
                name: noticed.name.clone(),
                at_us: noticed.at_us.saturating_sub(started_us),
                held: held.then(|| after.all(|heard| heard.right)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn begun(token: &str, title: &str) -> Value {
        json!({"token": token, "value": {"kind": "begin", "title": title}})
    }

    fn ended(token: &str) -> Value {
        json!({"token": token, "value": {"kind": "end"}})
    }

    fn names(signals: &Signals) -> Vec<String> {
        signals.all().into_iter().map(|n| n.name).collect()
    }

    #[test]
    fn the_end_of_a_progress_has_its_title() {
        let mut signals = Signals::default();
        signals.notice("$/progress", &begun("a", "Indexing"), 1);
        assert!(signals.is_under_way() && names(&signals).is_empty());
        signals.notice("$/progress", &ended("a"), 5);
        signals.notice("$/progress", &ended("never begun"), 6);
        assert!(!signals.is_under_way() && signals.progressed());
        assert_eq!(
            names(&signals),
            ["$/progress end (Indexing)", "$/progress end"]
        );
    }

    #[test]
    fn a_status_of_its_own_is_told_with_its_state() {
        let mut signals = Signals::default();
        signals.notice("experimental/serverStatus", &json!({"quiescent": false}), 1);
        signals.notice("experimental/serverStatus", &json!({"quiescent": true}), 2);
        signals.notice("language/status", &json!({"type": "ServiceReady"}), 3);
        signals.notice("x/ready", &Value::Null, 4);
        // What LSP names says nothing.
        signals.notice("window/logMessage", &json!({"message": "ready"}), 5);
        assert_eq!(
            names(&signals),
            [
                "experimental/serverStatus (busy)",
                "experimental/serverStatus (quiescent)",
                "language/status (ServiceReady)",
                "x/ready"
            ]
        );
    }

    #[test]
    fn of_a_signal_that_repeats_first_and_last_are_kept() {
        let mut signals = Signals::default();
        for at in [3, 5, 9] {
            signals.notice("x/ready", &Value::Null, at);
        }
        let all = signals.all();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].name.as_str(), all[0].at_us), ("x/ready", 3));
        assert_eq!(all[1].name, "x/ready, last of 3");
        assert_eq!(all[1].at_us, 9);
    }

    #[test]
    fn a_server_with_ever_new_names_is_bounded() {
        let mut signals = Signals::default();
        for n in 0..1_000 {
            signals.notice(&format!("x/{n}"), &Value::Null, n);
            signals.notice("$/progress", &begun(&n.to_string(), "t"), n);
        }
        assert_eq!(signals.by_name.len(), MOST);
        assert_eq!(signals.open.len(), MOST);
    }

    #[test]
    fn a_signal_is_true_if_every_later_answer_was_right() {
        let at = |name: &str, at_us| Noticed {
            name: name.to_owned(),
            at_us,
        };
        let noticed = [at("early", 10), at("true", 30), at("after all", 60)];
        let heard = [(5, false), (20, false), (40, true), (50, true)]
            .map(|(asked_us, right)| Heard { asked_us, right });
        let judged = judged(&noticed, &heard, 5);
        let held: Vec<Option<bool>> = judged.iter().map(|signal| signal.held).collect();
        assert_eq!(held, [Some(false), Some(true), None]);
        assert_eq!(judged[0].at_us, 5);
    }
}
