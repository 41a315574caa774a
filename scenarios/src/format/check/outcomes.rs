//! Outcomes, patterns and checks of messages: each of exactly one kind, with what belongs to it.

use serde_json::Value;

use super::super::node::{Segment, way};
use super::super::{Outcome, Pattern};
use super::{Checker, join};
use crate::format::diagnostic::nearest;

/// What kinds of outcome an expectation names.
fn kinds(outcome: &Outcome) -> Vec<&'static str> {
    [
        ("ok", outcome.ok.is_some()),
        ("pending", outcome.pending),
        ("locations", outcome.locations.is_some()),
        ("hover", outcome.hover.is_some()),
        ("error", outcome.error.is_some()),
        ("any_of", !outcome.any_of.is_empty()),
    ]
    .into_iter()
    .filter_map(|(kind, given)| given.then_some(kind))
    .collect()
}

/// Demands that stand beside a kind, or alone.
fn demands(outcome: &Outcome) -> Vec<&'static str> {
    [
        ("count", outcome.count.is_some()),
        (
            "resolved_workspace_uri",
            outcome.resolved_workspace_uri.is_some(),
        ),
        ("ended", outcome.ended.is_some()),
        ("requests", outcome.requests.is_some()),
        ("events", outcome.events.is_some()),
        ("text", outcome.text.is_some()),
        ("contains", !outcome.contains.is_empty()),
        ("lacks", !outcome.lacks.is_empty()),
        ("at_most", outcome.at_most.is_some()),
        ("value", outcome.value.is_some()),
        ("keys", !outcome.keys.is_empty()),
        ("same_as", outcome.same_as.is_some()),
    ]
    .into_iter()
    .filter_map(|(demand, given)| given.then_some(demand))
    .collect()
}

/// What kinds of event a pattern names.
fn events(pattern: &Pattern) -> Vec<&'static str> {
    [
        ("received", pattern.received.is_some()),
        ("answered", pattern.answered.is_some()),
        ("sent", pattern.sent.is_some()),
        ("replied", pattern.replied.is_some()),
        ("held", pattern.held.is_some()),
        ("started", pattern.started),
        ("ended", pattern.ended),
        ("closed", pattern.closed.is_some()),
        ("signal", pattern.signal.is_some()),
        ("note", pattern.note.is_some()),
        ("called", pattern.called.is_some()),
        ("settled", pattern.settled.is_some()),
        ("stderr", pattern.stderr.is_some()),
    ]
    .into_iter()
    .filter_map(|(kind, given)| given.then_some(kind))
    .collect()
}

/// Keys that narrow a pattern down, and the kinds they go with.
const NARROWING: [(&str, &[&str]); 5] = [
    ("params", &["received", "sent", "note"]),
    ("result", &["answered", "replied"]),
    ("error", &["answered", "replied"]),
    ("id", &["received", "answered", "sent", "replied"]),
    (
        "process",
        &[
            "received", "answered", "sent", "replied", "held", "started", "ended", "closed",
            "signal", "note", "stderr",
        ],
    ),
];

/// What of a hover can be compared.
const HOVER: [&str; 2] = ["contents", "range"];

const MESSAGES: [&str; 4] = ["received", "answered", "sent", "replied"];

impl Checker<'_> {
    pub(super) fn outcomes(&mut self) {
        self.each_outcome(&mut |checker, way, outcome| checker.outcome(way, outcome));
    }

    fn outcome(&mut self, way: &[Segment], outcome: &Outcome) {
        let kinds = kinds(outcome);
        let demands = demands(outcome);
        if let Some(hover) = &outcome.hover {
            self.hover(way, hover);
        }
        match kinds.as_slice() {
            [] if demands.is_empty() => {
                let reason = "nothing is demanded of this outcome: give one of `ok`, `pending`, \
                              `locations`, `hover`, `error`, `ended`, `requests`, `events`, \
                              `text`, `contains`, `lacks`, `at_most`, `value`, `same_as`, `any_of`";
                self.error(way, reason);
            }
            [] | [_] => {}
            [first, second, ..] => {
                let reason = format!(
                    "an outcome is of one kind; `{first}` and `{second}` are two (`any_of` takes \
                     alternatives)"
                );
                self.at_key(&join(way, &way![*second]), reason, None);
            }
        }
        if let ([kind @ ("pending" | "any_of")], [demand, ..]) =
            (kinds.as_slice(), demands.as_slice())
        {
            let reason = format!("`{kind}` leaves nothing for `{demand}` to be about");
            self.at_key(&join(way, &way![*demand]), reason, None);
        }
        for demand in ["count", "resolved_workspace_uri"] {
            let others = kinds
                .iter()
                .find(|kind| !matches!(**kind, "locations" | "ok"));
            if let (true, Some(kind)) = (demands.contains(&demand), others) {
                let reason = format!("`{demand}` is about locations, not about `{kind}`");
                self.at_key(&join(way, &way![demand]), reason, None);
            }
        }
    }

    /// A hover is read freely, so what is not compared has to be told: it would never fail.
    fn hover(&mut self, way: &[Segment], hover: &Value) {
        let way = join(way, &way!["hover"]);
        match hover {
            Value::Null | Value::String(_) => {}
            Value::Object(members) => {
                for name in members
                    .keys()
                    .filter(|name| !HOVER.contains(&name.as_str()))
                {
                    let reason = format!(
                        "a hover has no `{name}` to compare; there are {} (`contains` and `lacks` \
                         stand beside `hover`)",
                        HOVER.join(", ")
                    );
                    let meant = nearest(name, HOVER);
                    self.at_key(&join(&way, &way![name.as_str()]), reason, meant);
                }
                if members.is_empty() {
                    let reason = "nothing is demanded of this hover: give `contents` or `range`";
                    self.error(&way, reason);
                }
            }
            _ => self.error(&way, "a hover is null, its text, or {contents, range}"),
        }
    }

    pub(super) fn patterns(&mut self) {
        self.each_pattern(&mut |checker, way, pattern, _| checker.pattern(way, pattern));
        for (at, message) in self.scenario.messages.iter().enumerate() {
            if let [kind] = events(&message.of).as_slice()
                && !MESSAGES.contains(kind)
            {
                let reason = format!(
                    "`{kind}` is no message; `of` takes `received`, `answered`, `sent` or \
                     `replied`"
                );
                self.at_key(&way!["messages", at, "of", *kind], reason, None);
            }
            if let Some(count) = &message.count {
                self.count(&way!["messages", at, "count"], count);
            }
            let pointers = message.at.keys().chain(&message.absent);
            for pointer in pointers.filter(|pointer| !pointer.starts_with('/')) {
                let way = way!["messages", at, "at", pointer.as_str()];
                let reason = format!(
                    "`{pointer}` is no JSON pointer: it begins with a slash, for instance \
                     /params/position"
                );
                self.at_key(&way, reason, None);
            }
        }
    }

    fn pattern(&mut self, way: &[Segment], pattern: &Pattern) {
        let kinds = events(pattern);
        match kinds.as_slice() {
            [] => {
                let reason = "the pattern names no event: give one of `received`, `answered`, \
                              `sent`, `replied`, `held`, `started`, `ended`, `closed`, `signal`, \
                              `note`, `called`, `settled`, `stderr`";
                self.error(way, reason);
            }
            [kind] => self.narrowing(way, pattern, kind),
            [first, second, ..] => {
                let reason = format!("an event is of one kind; `{first}` and `{second}` are two");
                self.at_key(&join(way, &way![*second]), reason, None);
            }
        }
        if let Some(process) = pattern.process {
            self.process(&join(way, &way!["process"]), process);
        }
        if pattern.nth == Some(0) {
            self.error(&join(way, &way!["nth"]), "`nth` counts from 1");
        }
        for (key, given, known) in [
            ("closed", &pattern.closed, &["stdin", "stdout"][..]),
            // A process can tell of no other signal.
            ("signal", &pattern.signal, &["SIGTERM"][..]),
        ] {
            if let Some(given) = given.as_deref().filter(|given| !known.contains(given)) {
                let reason = format!("`{key}` takes {}, not `{given}`", known.join(" or "));
                let near = nearest(given, known.iter().copied());
                self.suggest(&join(way, &way![key]), reason, near);
            }
        }
        for (key, method) in [
            ("received", &pattern.received),
            ("replied", &pattern.replied),
        ] {
            if let Some(method) = method {
                self.received(&join(way, &way![key]), method);
            }
        }
    }

    /// A method that the client may send, short or not.
    fn received(&mut self, way: &[Segment], method: &str) {
        let short = dsh_transcript::short_name;
        let known = |own: &&str| *own == method || short(own) == method;
        if method == "*" || super::CLIENT_METHODS.iter().any(known) {
            return;
        }
        let names = super::CLIENT_METHODS.iter();
        let names = names.flat_map(|own| [*own, short(own)]);
        let near = nearest(method, names);
        let reason = format!("no client sends `{method}`, so the pattern never fits");
        self.warn(way, reason, near);
    }

    fn narrowing(&mut self, way: &[Segment], pattern: &Pattern, kind: &str) {
        for (key, kinds) in NARROWING {
            let given = match key {
                "params" => pattern.params.is_some(),
                "result" => pattern.result.is_some(),
                "error" => pattern.error.is_some(),
                "id" => pattern.id.is_some(),
                _ => pattern.process.is_some(),
            };
            if given && !kinds.contains(&kind) {
                let reason = format!(
                    "`{key}` says nothing about `{kind}`; it goes with {}",
                    kinds.join(", ")
                );
                self.at_key(&join(way, &way![key]), reason, None);
            }
        }
    }
}
