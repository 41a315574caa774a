//! The calls of one message: their ids, which of them overlap, and which are not made. Pure.

use std::collections::HashSet;
use std::ops::Range;

use dsh_session::{EventBody, Log, MAX_DEPTH, is_shallow};
use serde_json::Value;

/// The most bytes of a call's id that are kept.
const MAX_ID_BYTES: usize = 256;

/// The ids of the calls of a session. A result is found by its call's id, so no two calls have the
/// same.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallIds {
    used: HashSet<String>,
    next: u64,
    /// How many events of the log are known.
    known: usize,
}

impl CallIds {
    /// Takes note of the calls that were logged since the last time.
    pub(crate) fn catch_up(&mut self, log: &Log) {
        for event in &log.events()[self.known..] {
            if let EventBody::ToolCall { call, .. } = &event.body {
                self.used.insert(call.id.clone());
            }
        }
        self.known = log.events().len();
    }

    /// The id itself, or another one where it is blank, too long, or used before.
    pub(crate) fn claim(&mut self, id: String) -> String {
        let mut id = id;
        while id.trim().is_empty() || id.len() > MAX_ID_BYTES || self.used.contains(&id) {
            self.next += 1;
            id = format!("call-{}", self.next);
        }
        self.used.insert(id.clone());
        id
    }
}

/// The calls that run together, in the model's order (RUN-13): neighbours that may overlap, and each
/// exclusive one alone.
pub(crate) fn groups(overlap: &[bool]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, may) in overlap.iter().enumerate() {
        match groups.last_mut() {
            Some(last) if *may && overlap[last.start] => last.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Why arguments cannot be what the tool wants, if they arrived as text that is no JSON, or were
/// made text because they nest too deeply.
pub(crate) fn unfit(tool: &str, arguments: &Value) -> Option<String> {
    let text = arguments.as_str()?;
    let problem = match serde_json::from_str::<Value>(text) {
        Err(error) => format!("are no JSON: {error}"),
        Ok(value) if !is_shallow(&value) => format!("nest deeper than {MAX_DEPTH} levels"),
        Ok(_) => return None,
    };
    Some(format!(
        "the arguments of this call of tool {tool:?} {problem}. It was not executed. Send the \
         arguments as one JSON object, as the tool's parameters have it."
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_kept_unless_it_is_blank_or_huge_or_used() {
        let mut ids = CallIds {
            used: HashSet::from(["old".to_owned(), "call-2".to_owned()]),
            ..CallIds::default()
        };
        let mut claim = |id: &str| ids.claim(id.to_owned());
        assert_eq!(claim("a"), "a");
        assert_eq!(claim("a"), "call-1");
        assert_eq!(claim("old"), "call-3");
        assert_eq!(claim(""), "call-4");
        assert_eq!(claim(&"x".repeat(257)), "call-5");
        assert_eq!(claim(&"x".repeat(256)), "x".repeat(256));
        assert_eq!(claim("call-5"), "call-6");
    }

    /// RUN-13.
    #[test]
    fn neighbours_overlap_and_an_exclusive_call_is_alone() {
        assert!(groups(&[]).is_empty());
        assert_eq!(
            groups(&[true, true, false, false, true]),
            [0..2, 2..3, 3..4, 4..5]
        );
    }

    #[test]
    fn text_is_unfit_if_it_is_no_json_or_nests_too_deeply() {
        assert_eq!(unfit("t", &json!({})), None);
        assert_eq!(unfit("t", &json!("{}")), None);
        assert_eq!(
            unfit("t", &json!("{\"a\":")).unwrap(),
            "the arguments of this call of tool \"t\" are no JSON: EOF while parsing a value at \
             line 1 column 5. It was not executed. Send the arguments as one JSON object, as the \
             tool's parameters have it."
        );
        let nested = |levels| json!("[".repeat(levels) + &"]".repeat(levels));
        assert_eq!(unfit("t", &nested(MAX_DEPTH)), None);
        for levels in [MAX_DEPTH + 1, 127, 128, 100_000] {
            let problem = unfit("t", &nested(levels)).unwrap();
            let says = problem.contains("nest deeper than 64 levels")
                || problem.contains("recursion limit exceeded");
            assert!(says, "{problem}");
        }
    }

    proptest! {
        /// RUN-13: every call once and in order; no group mixes.
        #[test]
        fn groups_cover_the_calls_in_order(overlap in prop::collection::vec(any::<bool>(), 0..40)) {
            let groups = groups(&overlap);
            let covered: Vec<usize> = groups.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..overlap.len()).collect::<Vec<_>>());
            for group in groups {
                prop_assert!(group.len() == 1 || overlap[group].iter().all(|may| *may));
            }
        }

        /// No two ids are the same, whatever the model sends.
        #[test]
        fn ids_are_unique(sent in prop::collection::vec("(call-)?[0-9]{0,1}", 0..60)) {
            let mut ids = CallIds::default();
            let claimed: HashSet<_> = sent.iter().map(|id| ids.claim(id.clone())).collect();
            prop_assert_eq!(claimed.len(), sent.len());
        }
    }
}
