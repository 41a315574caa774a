//! Turns, what the model says in them, and what is demanded of its requests.

use std::collections::BTreeMap;

use super::super::node::{Segment, way};
use super::super::{
    Count, MessageSaid, Outcome, Reply, RequestCheck, Requests, Role, Said, Step, TextCheck,
};
use super::{Checker, join};
use crate::format::diagnostic::nearest;

/// The session of the scenario, as turns call it.
pub(crate) const MAIN: &str = "main";

/// What may stand for messages in a list of them.
const STANDING: [&str; 4] = ["...", "user", "assistant", "tool"];

impl Checker<'_> {
    pub(super) fn turns(&mut self) {
        let scenario = self.scenario;
        if scenario.sessions.contains_key(MAIN) {
            let reason = format!("`{MAIN}` is the session that `session` describes");
            self.at_key(&way!["sessions", MAIN], reason, None);
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            let Step::Turn(turn) = step else { continue };
            let way = way!["steps", at, "turn"];
            if let Some(session) = turn.session.as_deref()
                && session != MAIN
                && !scenario.sessions.contains_key(session)
            {
                let names = scenario.sessions.keys().map(String::as_str);
                let near = nearest(session, names.chain([MAIN]));
                let reason = format!("there is no session `{session}` in `sessions`");
                self.suggest(&join(&way, &way!["session"]), reason, near);
            }
            if turn.replies.is_empty() {
                let reason = "a model that says nothing cannot be asked: give at least one reply";
                self.error(&join(&way, &way!["replies"]), reason);
            }
            for (number, reply) in turn.replies.iter().enumerate() {
                self.reply(&join(&way, &way!["replies", number]), reply);
            }
        }
        let kinds = self.kinds_of_steps();
        self.each_outcome(&mut |checker, way, outcome| {
            checker.of_turn(way, outcome, &kinds);
            if let Some(requests) = &outcome.requests {
                checker.requests(&join(way, &way!["requests"]), requests);
            }
        });
    }

    fn reply(&mut self, way: &[Segment], reply: &Reply) {
        let says = reply.text.is_some()
            || reply.reasoning.is_some()
            || !reply.tool_calls.is_empty()
            || reply.error.is_some()
            || reply.cut
            || reply.hang;
        if !says {
            let reason = "the model says nothing: give `text`, `reasoning`, `tool_calls`, `error`, \
                          `cut` or `hang`";
            self.error(way, reason);
        }
        for (at, call) in reply.tool_calls.iter().enumerate() {
            let way = join(way, &way!["tool_calls", at]);
            match (&call.arguments, &call.arguments_raw) {
                (Some(_), Some(_)) => {
                    let reason = "`arguments_raw` takes the place of `arguments`";
                    self.at_key(&join(&way, &way!["arguments_raw"]), reason, None);
                }
                (None, None) => {
                    let reason = "a call has `arguments`, or `arguments_raw`";
                    self.error(&way, reason);
                }
                _ => {}
            }
        }
    }

    /// What each named step is: `turn`, the operation of a `control`, or nothing of interest.
    fn kinds_of_steps(&self) -> BTreeMap<String, String> {
        let steps = self.scenario.steps.iter();
        steps
            .filter_map(|step| {
                Some(match step {
                    Step::Turn(step) => (step.r#as.clone(), "turn".to_owned()),
                    Step::Control(step) => (step.r#as.clone()?, step.op.clone()),
                    Step::Query(step) => (step.r#as.clone(), String::new()),
                    Step::Tool(step) => (step.r#as.clone(), String::new()),
                    _ => return None,
                })
            })
            .collect()
    }

    /// Demands on turns are made of turns, and those on events of logs.
    fn of_turn(&mut self, way: &[Segment], outcome: &Outcome, kinds: &BTreeMap<String, String>) {
        let step = way
            .iter()
            .zip(way.iter().skip(1))
            .find_map(|two| match two {
                (Segment::Key(expect), Segment::Key(name)) if expect == "expect" => Some(name),
                _ => None,
            });
        let kind = step.and_then(|step| kinds.get(step)).map(String::as_str);
        let demands = [
            ("requests", outcome.requests.is_some(), "turn", "a turn"),
            ("ended", outcome.ended.is_some(), "turn", "a turn"),
            (
                "events",
                outcome.events.is_some(),
                "log",
                "`control: {op: log}`",
            ),
        ];
        for (demand, given, wanted, shown) in demands {
            if given && kind != Some(wanted) {
                let reason = format!("`{demand}` is about {shown}, which this is not");
                self.at_key(&join(way, &way![demand]), reason, None);
            }
        }
    }

    fn requests(&mut self, way: &[Segment], requests: &Requests) {
        let nothing = requests.count.is_none()
            && requests.nth.is_empty()
            && requests.last.is_none()
            && requests.each.is_none()
            && requests.extending.is_none();
        if nothing {
            let reason = "nothing is demanded of the requests: give `count`, `nth`, `last`, `each` \
                          or `extending`";
            self.error(way, reason);
        }
        if let Some(count) = &requests.count {
            self.count(&join(way, &way!["count"]), count);
        }
        for (number, check) in &requests.nth {
            let way = join(way, &way!["nth", number.to_string().as_str()]);
            let most = match &requests.count {
                Some(Count::Exactly(count)) => Some(*count),
                Some(Count::Between(bounds)) => bounds.max,
                None => None,
            };
            if *number == 0 {
                self.at_key(&way, "requests are counted from 1", None);
            } else if let Some(most) = most.filter(|most| u64::from(*number) > *most) {
                let reason =
                    format!("there is no request {number}: `count` says that there are {most}");
                self.at_key(&way, reason, None);
            }
            self.request(&way, check);
        }
        for (key, check) in [("last", &requests.last), ("each", &requests.each)] {
            if let Some(check) = check {
                self.request(&join(way, &way![key]), check);
            }
        }
    }

    fn request(&mut self, way: &[Segment], check: &RequestCheck) {
        if *check == RequestCheck::default() {
            let reason = "nothing is demanded of this request: give `messages`, `new`, \
                          `contains`, `lacks`, `once`, `times`, `order`, `system` or `tools`";
            self.error(way, reason);
        }
        for (key, list) in [("messages", &check.messages), ("new", &check.new)] {
            for (at, said) in list.iter().flatten().enumerate() {
                self.said(&join(way, &way![key, at]), said);
            }
        }
        if check.system.as_ref() == Some(&TextCheck::default()) {
            let reason = "nothing is demanded of the system prompt: give `text`, `contains`, \
                          `lacks` or `order`";
            self.error(&join(way, &way!["system"]), reason);
        }
        let texts = [
            ("contains", &check.contains),
            ("lacks", &check.lacks),
            ("once", &check.once),
            ("order", &check.order),
        ];
        for (key, texts) in texts {
            self.texts(&join(way, &way![key]), texts);
        }
        for text in check.times.keys().filter(|text| text.is_empty()) {
            let way = join(way, &way!["times", text.as_str()]);
            self.at_key(&way, "an empty text is everywhere", None);
        }
    }

    fn said(&mut self, way: &[Segment], said: &Said) {
        let message: &MessageSaid = match said {
            Said::Any(standing) => {
                if !STANDING.contains(&standing.as_str()) {
                    let near = nearest(standing, STANDING);
                    let reason = format!(
                        "`{standing}` stands for no message; there are {}, and objects with `role`",
                        STANDING.join(", ")
                    );
                    self.suggest(way, reason, near);
                }
                return;
            }
            Said::Message(message) => message,
        };
        let of = [
            ("calls", message.calls.is_some(), Role::Assistant),
            ("error", message.error.is_some(), Role::Tool),
            ("source", message.source.is_some(), Role::User),
        ];
        for (key, given, role) in of {
            if given && message.role != role {
                let reason = format!(
                    "`{key}` says nothing about `{}`; it goes with `{}`",
                    message.role.name(),
                    role.name()
                );
                self.at_key(&join(way, &way![key]), reason, None);
            }
        }
        let texts = [
            ("contains", &message.contains),
            ("lacks", &message.lacks),
            ("once", &message.once),
            ("order", &message.order),
        ];
        for (key, texts) in texts {
            self.texts(&join(way, &way![key]), texts);
        }
    }

    /// An empty text is in everything, so that nothing is demanded, or nothing can be right.
    fn texts(&mut self, way: &[Segment], texts: &[String]) {
        for (at, _) in texts.iter().enumerate().filter(|(_, text)| text.is_empty()) {
            self.error(&join(way, &way![at]), "an empty text is everywhere");
        }
    }
}
