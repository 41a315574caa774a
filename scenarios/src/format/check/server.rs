//! The script of the fake server: what it cannot carry out, rules that never match, and what the
//! steps have to do with it.

use std::collections::BTreeSet;

use dsh_fake_lsp::{Action, Rule, Script, ScriptError};
use serde_json::Value;

use super::super::node::{Segment, way};
use super::super::{End, Step};
use super::{CLIENT_METHODS, Checker, join, most_processes};
use crate::format::diagnostic::nearest;

/// Events of a script that are no methods.
const OTHER_EVENTS: [&str; 4] = ["start", "response", "eof", "SIGTERM"];

/// Names that scripts give.
#[derive(Default)]
struct Given {
    holds: BTreeSet<String>,
    notes: BTreeSet<String>,
    sets: BTreeSet<String>,
    /// Whether some action ends the process.
    ends: bool,
}

impl Given {
    fn add(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Hold(name) => {
                    self.holds.insert(name.clone());
                }
                Action::Note(note) => {
                    self.notes.insert(note.message.clone());
                }
                Action::Set(name) => {
                    self.sets.insert(name.clone());
                }
                Action::Exit(_) | Action::Kill(_) => self.ends = true,
                _ => {}
            }
        }
    }
}

impl Checker<'_> {
    pub(super) fn servers(&mut self) {
        let scenario = self.scenario;
        let mut given = Given::default();
        for (_, script) in self.scripts() {
            for rule in &script.rules {
                given.add(&rule.r#do);
            }
        }
        for step in &scenario.steps {
            if let Step::Perform(perform) = step {
                given.add(&perform.r#do);
            }
        }
        for (way, script) in self.scripts() {
            self.script(&way, script, &given);
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            if let Step::Perform(perform) = step {
                self.process(&way!["steps", at, "perform", "process"], perform.process);
                let rule = Rule {
                    on: "start".to_owned(),
                    r#do: perform.r#do.clone(),
                    ..Rule::default()
                };
                let script = Script {
                    rules: vec![rule],
                    ..Script::default()
                };
                if let Some(reason) = refused(&script) {
                    let reason = reason.replace(
                        "`start` asks for no answer",
                        "there is nothing to answer here",
                    );
                    self.error(&way!["steps", at, "perform", "do"], reason);
                }
            }
        }
        self.holds(&given);
        self.told(&given);
    }

    fn script(&mut self, way: &[Segment], script: &Script, given: &Given) {
        // A script is a list of rules, or an object that has one.
        let rules = if self.root.place_of(&join(way, &way!["rules"])) == self.root.place_of(way) {
            way.to_vec()
        } else {
            join(way, &way!["rules"])
        };
        let head = Script {
            rules: Vec::new(),
            ..script.clone()
        };
        if let Some(reason) = refused(&head) {
            self.error(way, reason);
        }
        for (at, rule) in script.rules.iter().enumerate() {
            let way = join(&rules, &way![at]);
            let alone = Script {
                rules: vec![rule.clone()],
                ..Script::default()
            };
            if let Some(reason) = refused(&alone) {
                self.error(&way, reason);
            }
            self.never_matches(&way, rule, &script.rules[..at], given);
        }
    }

    /// Rules that no event comes to.
    fn never_matches(&mut self, way: &[Segment], rule: &Rule, earlier: &[Rule], given: &Given) {
        let shadow = earlier.iter().position(|other| covers(other, rule));
        if let Some(shadow) = shadow {
            let line = match way.split_last() {
                Some((_, rules)) => self.root.place_of(&join(rules, &way![shadow])).line,
                None => 1,
            };
            let reason =
                format!("this rule never matches: the one in line {line} takes all its events");
            return self.warn(way, reason, None);
        }
        if rule.times == Some(0) {
            let reason = "this rule never matches: `times` is 0";
            return self.warn(&join(way, &way!["times"]), reason, None);
        }
        if let Some(set) = &rule.set
            && !given.sets.contains(set)
        {
            let near = nearest(set, given.sets.iter().map(String::as_str));
            let reason = format!("this rule never matches: no action `set` makes `{set}` current");
            return self.warn(&join(way, &way!["set"]), reason, near);
        }
        let most = most_processes(self.scenario);
        if let (Some(process), Some(most)) = (rule.process, most)
            && u64::from(process) > most
        {
            let reason = format!(
                "this rule never matches: it is for process {process}, and `processes` says that \
                 there are {most}"
            );
            return self.warn(&join(way, &way!["process"]), reason, None);
        }
        let known = match rule.on.strip_suffix('*') {
            Some(start) => CLIENT_METHODS
                .iter()
                .any(|method| method.starts_with(start)),
            None => CLIENT_METHODS
                .iter()
                .chain(&OTHER_EVENTS)
                .any(|event| *event == rule.on),
        };
        if !known && !rule.on.trim().is_empty() {
            let full = |prefix: &str| {
                let mut methods = CLIENT_METHODS.iter();
                let fits = |method: &&&str| **method == format!("{prefix}{}", rule.on);
                methods.find(fits).map(|method| (*method).to_owned())
            };
            let full = ["textDocument/", "workspace/", "$/"]
                .into_iter()
                .find_map(full);
            let events = CLIENT_METHODS.iter().chain(&OTHER_EVENTS);
            let near = full.or_else(|| nearest(&rule.on, events.copied()));
            let reason = format!(
                "this rule never matches: `{}` is no message that clients send, nor `start`, \
                 `response`, `eof` or `SIGTERM`",
                rule.on
            );
            self.warn(&join(way, &way!["on"]), reason, near);
        }
    }

    /// Each hold is released, unless the case is about a process or caller that does not wait for
    /// it; and what is released is held.
    fn holds(&mut self, given: &Given) {
        let scenario = self.scenario;
        let mut released = BTreeSet::new();
        let mut given_up = given.ends
            || scenario.tool.contains_key("timeoutMs")
            || scenario
                .ends
                .values()
                .any(|end| !matches!(end, End::Exit(_)));
        for (at, step) in scenario.steps.iter().enumerate() {
            match step {
                Step::Release(name) => {
                    released.insert(name.as_str());
                    if !given.holds.contains(name) {
                        let near = nearest(name, given.holds.iter().map(String::as_str));
                        let reason = format!("the server's script has no `hold: {name}`");
                        self.suggest(&way!["steps", at, "release"], reason, near);
                    }
                }
                Step::Cancel(_) | Step::Dispose(_) => given_up = true,
                _ => {}
            }
        }
        self.each_pattern(&mut |_, _, pattern, _| given_up |= pattern.ended);
        self.each_outcome(&mut |_, _, outcome| given_up |= outcome.pending);
        if given_up {
            return;
        }
        let scripts: Vec<Vec<Segment>> = self.scripts().into_iter().map(|(way, _)| way).collect();
        for name in given.holds.iter().filter(|name| !name.is_empty()) {
            if !released.contains(name.as_str()) {
                let place = scripts
                    .iter()
                    .find_map(|way| self.hold_below(way, name))
                    .unwrap_or_else(|| way!["steps"].to_vec());
                let reason = format!(
                    "nothing releases the hold `{name}`: add `- release: {name}`, or have the \
                     process end (`ends`, `wait: {{ended: true}}`) or the caller give up \
                     (`cancel`, `dispose`)"
                );
                self.error(&place, reason);
            }
        }
    }

    /// The way to the action that holds under this name.
    fn hold_below(&self, way: &[Segment], name: &str) -> Option<Vec<Segment>> {
        let mut open = vec![way.to_vec()];
        while let Some(way) = open.pop() {
            let node = way
                .iter()
                .try_fold(self.root, |node, segment| node.below(segment))?;
            match &node.kind {
                super::super::node::Kind::List(items) => {
                    open.extend((0..items.len()).map(|at| join(&way, &way![at])));
                }
                super::super::node::Kind::Map(members) => {
                    for (key, member) in members {
                        let way = join(&way, &way![key.text.as_str()]);
                        if key.text == "hold" && member.as_text() == Some(name) {
                            return Some(way);
                        }
                        open.push(way);
                    }
                }
                super::super::node::Kind::Scalar(_) => {}
            }
        }
        None
    }

    /// What patterns say about holds and notes is in the scripts.
    fn told(&mut self, given: &Given) {
        let open_ended = given.notes.iter().any(|note| note.contains("${"));
        self.each_pattern(&mut |checker, way, pattern, _| {
            if let Some(name) = &pattern.held
                && !given.holds.contains(name)
            {
                let near = nearest(name, given.holds.iter().map(String::as_str));
                let reason = format!("the server's script has no `hold: {name}`");
                checker.suggest(&join(way, &way!["held"]), reason, near);
            }
            if let Some(name) = &pattern.note
                && !given.notes.contains(name)
                && !open_ended
            {
                let near = nearest(name, given.notes.iter().map(String::as_str));
                let reason = format!("the server's script makes no note `{name}`");
                checker.suggest(&join(way, &way!["note"]), reason, near);
            }
        });
    }
}

/// Whether every event that matches `rule` matches `other`, always.
fn covers(other: &Rule, rule: &Rule) -> bool {
    let named = match other.on.strip_suffix('*') {
        Some(start) => rule.on.starts_with(start) && !OTHER_EVENTS.contains(&rule.on.as_str()),
        None => other.on == rule.on,
    };
    named
        && other.times.is_none()
        && (other.process.is_none() || other.process == rule.process)
        && (other.set.is_none() || other.set == rule.set)
        && (other.when.is_none() || other.when == rule.when)
        && (other.nth.is_none()
            || other.nth == rule.nth
                && other.on == rule.on
                && other.process == rule.process
                && other.set == rule.set
                && other.when == rule.when)
}

/// Why the fake server would refuse a script, with what the runner fills in.
fn refused(script: &Script) -> Option<String> {
    let refused = |script: &Script| match script.check() {
        Ok(()) => None,
        Err(ScriptError::Invalid { reason, .. }) => Some(reason),
        Err(other) => Some(other.to_string()),
    };
    let reason = refused(script)?;
    // Most scripts are right as they are; only what is not is copied and looked at again.
    let mut value = serde_json::to_value(script).ok()?;
    with_runners_templates(&mut value);
    serde_json::from_value(value).map_or(Some(reason), |filled| refused(&filled))
}

/// Puts something in place of `${root}` and `${seed}`, which the runner fills in before a server
/// sees them.
fn with_runners_templates(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("${") => {
            *text = text.replace("${root}", "/folder").replace("${seed}", "1");
        }
        Value::Array(items) => items.iter_mut().for_each(with_runners_templates),
        Value::Object(members) => members.values_mut().for_each(with_runners_templates),
        _ => {}
    }
}
