//! What the types of a scenario do not say.

use super::Scenario;
use super::diagnostic::Severity;
use super::expand::Wrong;
use super::node::Node;

/// Everything wrong with a case; `root` is the document it was read from, matrix filled in.
pub(super) fn check(_scenario: &Scenario, _root: &Node) -> Vec<(Severity, Wrong)> {
    Vec::new()
}
