//! Budgets that are too small for all there is to tell (INS-11, INS-12).

use std::path::PathBuf;

use proptest::prelude::*;

use super::world::{Conversation, Files, limits, look, settings};
use crate::layout::Layout;
use crate::round::{Message, Occasion};
use crate::tracker::Tracker;

struct Small {
    files: Files,
    conversation: Conversation,
    tracker: Tracker,
    layout: Layout,
    budget: usize,
}

impl Small {
    fn new(budget: usize) -> Self {
        let settings = settings(&["A", "B"], &[], budget);
        Self {
            files: Files::default(),
            conversation: Conversation::new(),
            tracker: Tracker::default(),
            layout: Layout::new(&settings, "/p/a".as_ref(), "/p".as_ref()),
            budget,
        }
    }

    fn look(&mut self, occasion: Occasion<'_>) -> Option<Message> {
        let message = look(
            &mut self.files,
            &self.conversation.log,
            &mut self.tracker,
            occasion,
            &self.layout,
            limits(self.budget),
        );
        if let Some(message) = &message {
            self.conversation.tell(message);
        }
        message
    }

    fn touch(&mut self, file: &str) -> Option<Message> {
        self.look(Occasion::Touch(&[PathBuf::from(file)]))
    }
}

fn paths(message: &Message) -> Vec<&str> {
    let changes = message.source.changes.iter();
    changes.filter_map(|change| change.path.to_str()).collect()
}

/// INS-12: what the budget left out is not recorded, and comes with a later touch.
#[test]
fn what_was_left_out_stays_eligible() {
    let mut small = Small::new(1200);
    small.files.write("/p/A", &"broad ".repeat(100));
    small.files.write("/p/a/A", &"near ".repeat(100));
    let first = small.look(Occasion::Boundary).unwrap();
    assert_eq!(paths(&first), ["/p/a/A"]);
    assert!(first.text.contains("omitted A.\n"), "{}", first.text);
    let second = small.touch("/p/a/f").unwrap();
    assert_eq!(paths(&second), ["/p/A"]);
    assert!(second.text.contains("Additional instructions from: A\n"));
    assert_eq!(small.touch("/p/a/f"), None);
}

/// INS-11: the cut file is loaded as it is on disk, and told of again only when it changes.
#[test]
fn a_cut_file_counts_as_loaded() {
    let mut small = Small::new(800);
    let content = "é".repeat(400);
    small.files.write("/p/A", &content);
    let cut = small.look(Occasion::Boundary).unwrap();
    assert!(cut.text.contains("truncated A."), "{}", cut.text);
    assert!(cut.text.len() >= 799);
    assert_eq!(small.touch("/p/a/f"), None);
    small.files.write("/p/A", &(content + "!"));
    assert!(small.touch("/p/a/f").is_some());
}

/// INS-6, INS-11: a notice that can say nothing else is said once, until there is another one to say
/// or it can no longer be seen.
#[test]
fn a_notice_alone_is_said_once() {
    let mut small = Small::new(150);
    small.files.write("/p/a/b/A", &"x".repeat(900));
    let notice = small.touch("/p/a/b/f").unwrap();
    assert_eq!(paths(&notice), [""; 0]);
    assert!(notice.text.contains("omitted a/b/A."), "{}", notice.text);
    assert_eq!(small.touch("/p/a/b/f"), None);
    small.files.write("/p/a/b/A", &"y".repeat(900));
    assert!(small.touch("/p/a/b/f").is_some());
    assert_eq!(small.touch("/p/a/b/f"), None);
    small.conversation.compact(u64::MAX);
    assert!(small.touch("/p/a/b/f").is_some());
}

/// INS-11: down to one byte.
#[test]
fn where_nothing_fits_nothing_is_recorded() {
    let mut small = Small::new(1);
    small.files.write("/p/A", "x");
    assert_eq!(small.look(Occasion::Boundary), None);
    assert_eq!(small.touch("/p/a/f"), None);
    small.budget = 10_000;
    let told = small.touch("/p/a/f").unwrap();
    assert_eq!(paths(&told), ["/p/A"]);
}

const PLACES: [&str; 6] = [
    "/h/AGENTS.md",
    "/p/A",
    "/p/a/A",
    "/p/a/B",
    "/p/a/b/A",
    "/p/a/b/B",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(1000),
        ..ProptestConfig::default()
    })]

    /// INS-6, INS-11, INS-12: whatever the budget and the edits: no message is longer, what is
    /// recorded is in the text, what is not there is named, and touches come to rest.
    #[test]
    fn every_budget_is_kept_and_touches_come_to_rest(
        budget in 1_usize..2500,
        edits in prop::collection::vec((0..PLACES.len(), 0_usize..900), 1..12),
    ) {
        let mut small = Small::new(budget);
        for (index, (place, length)) in edits.into_iter().enumerate() {
            let content = format!("{index}{}", "é".repeat(length / 2));
            if length < 60 {
                small.files.remove(PLACES[place]);
            } else {
                small.files.write(PLACES[place], &content);
            }
            if index % 3 == 0 {
                small.tracker = Tracker::default();
                if let Some(message) = small.look(Occasion::Boundary) {
                    check(&message, budget)?;
                }
            }
            let mut rounds = 0;
            while let Some(message) = small.touch("/p/a/b/f") {
                check(&message, budget)?;
                rounds += 1;
                prop_assert!(rounds <= PLACES.len() + 1, "never comes to rest");
            }
        }
    }
}

fn check(message: &Message, budget: usize) -> Result<(), TestCaseError> {
    let Message { text, source } = message;
    prop_assert!(text.len() <= budget, "{} > {budget}", text.len());
    for change in &source.changes {
        let shown = change.scope.strip_prefix("./").unwrap_or(&change.scope);
        let heading = format!("nstructions from: {shown}\n");
        let removed = format!("Instructions removed: {shown}\n");
        prop_assert!(
            text.contains(&heading) || text.contains(&removed),
            "{change:?}"
        );
    }
    let notice = text
        .lines()
        .rev()
        .nth(1)
        .filter(|line| line.starts_with("Workspace instruction budget"));
    for omission in &source.omitted {
        let name = omission
            .path
            .file_name()
            .expect("it has one")
            .to_str()
            .expect("text");
        prop_assert!(notice.is_some_and(|notice| notice.contains(name)), "{text}");
    }
    Ok(())
}
