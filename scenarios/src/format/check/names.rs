//! Names of steps: given once, and before they are used.

use std::collections::BTreeMap;

use super::super::node::{Segment, way};
use super::super::{CancelStep, Step};
use super::{Checker, join};
use crate::format::diagnostic::nearest;

/// Step → its number, and whether it can be given up.
type Names<'a> = BTreeMap<&'a str, (usize, bool)>;

/// The name a step has, if it has one, and whether it can be given up.
fn name_of(step: &Step) -> Option<(&str, bool, &'static str)> {
    match step {
        Step::Query(step) => Some((&step.r#as, true, "query")),
        Step::Tool(step) => Some((&step.r#as, true, "tool")),
        Step::Turn(step) => Some((&step.r#as, true, "turn")),
        Step::Dispose(step) => Some((step.r#as.as_deref()?, false, "dispose")),
        Step::Mount(step) => Some((step.r#as.as_deref()?, false, "mount")),
        Step::Register(step) => Some((step.r#as.as_deref()?, false, "register")),
        Step::Control(step) => Some((step.r#as.as_deref()?, false, "control")),
        _ => None,
    }
}

impl Checker<'_> {
    pub(super) fn names(&mut self) {
        let scenario = self.scenario;
        let mut names = Names::new();
        for (at, step) in scenario.steps.iter().enumerate() {
            if let Some((name, cancellable, key)) = name_of(step) {
                let way = way!["steps", at, key, "as"];
                if name.trim().is_empty() {
                    self.error(&way, "the name of a step is empty");
                } else if let Some((first, _)) = names.get(name) {
                    let line = self.root.place_of(&way!["steps", *first]).line;
                    let reason = format!("the step in line {line} is called `{name}` already");
                    self.error(&way, reason);
                } else {
                    names.insert(name, (at, cancellable));
                }
            }
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            match step {
                Step::Cancel(cancel) => {
                    let (name, way) = match cancel {
                        CancelStep::Name(name) => (name, way!["steps", at, "cancel"].to_vec()),
                        CancelStep::Reason(cancel) => {
                            self.reason(&way!["steps", at, "cancel", "reason"], &cancel.reason);
                            let way = way!["steps", at, "cancel", "name"];
                            (&cancel.name, way.to_vec())
                        }
                    };
                    if self.named(&way, name, &names, Some(at), false)
                        && names.get(name.as_str()).is_some_and(|(_, can)| !can)
                    {
                        let reason = format!(
                            "`{name}` has no caller that could give it up; `query`, `tool` and \
                             `turn` have"
                        );
                        self.error(&way, reason);
                    }
                }
                Step::Expect(outcomes) => {
                    if outcomes.is_empty() {
                        self.error(&way!["steps", at, "expect"], "nothing is expected");
                    }
                    for name in outcomes.keys() {
                        let way = way!["steps", at, "expect", name.as_str()];
                        self.named(&way, name, &names, Some(at), true);
                    }
                }
                _ => {}
            }
        }
        self.each_outcome(&mut |checker, way, outcome| {
            if let Some(name) = &outcome.same_as {
                let step = way.iter().find_map(|segment| match segment {
                    Segment::Index(at) => Some(*at),
                    Segment::Key(_) => None,
                });
                checker.named(&join(way, &way!["same_as"]), name, &names, step, false);
            }
        });
        self.each_pattern(&mut |checker, way, pattern, step| {
            for (key, name) in [("called", &pattern.called), ("settled", &pattern.settled)] {
                if let Some(name) = name {
                    checker.named(&join(way, &way![key]), name, &names, step, false);
                }
            }
        });
    }

    fn reason(&mut self, way: &[Segment], reason: &str) {
        let known = ["caller", "timeout"];
        if !known.contains(&reason) {
            let near = nearest(reason, known);
            let reason = format!("`{reason}` is no reason: write `caller` or `timeout`");
            self.suggest(way, reason, near);
        }
    }

    /// Whether there is a step of this name, before the step it is used in if it is used in one.
    fn named(
        &mut self,
        way: &[Segment],
        name: &str,
        names: &Names<'_>,
        used: Option<usize>,
        is_key: bool,
    ) -> bool {
        let (reason, near) = match (names.get(name), used) {
            (Some((defined, _)), Some(used)) if *defined > used => {
                let line = self.root.place_of(&way!["steps", *defined]).line;
                let reason = format!("`{name}` begins in line {line} only, after this step");
                (reason, None)
            }
            (Some(_), _) => return true,
            (None, _) => (
                format!("no step is called `{name}`"),
                nearest(name, names.keys().copied()),
            ),
        };
        if is_key {
            self.at_key(way, reason, near);
        } else {
            self.suggest(way, reason, near);
        }
        false
    }
}
