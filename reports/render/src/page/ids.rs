//! Names for places on the page, each given once.

use std::collections::{BTreeMap, BTreeSet};

/// The most characters of one name that stand in an id.
const MOST: usize = 60;

/// The ids that the template itself gives.
const GIVEN: [&str; 10] = [
    "answer",
    "matrix",
    "matrix-words",
    "clauses",
    "servers",
    "suites",
    "told",
    "patterns",
    "main",
    "signs",
];

/// The ids that were given.
pub(super) struct Ids {
    given: BTreeSet<String>,
    /// How often each was asked for.
    asked: BTreeMap<String, usize>,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self {
            given: GIVEN.map(str::to_owned).into(),
            asked: BTreeMap::new(),
        }
    }

    /// An id below another one, or of its own, that nobody has yet and that reads like the name.
    pub(super) fn take(&mut self, below: &str, name: &str) -> String {
        let wanted = match below {
            "" => slug(name),
            _ => format!("{below}.{}", slug(name)),
        };
        loop {
            let asked = self.asked.entry(wanted.clone()).or_default();
            *asked += 1;
            let id = match asked {
                1 => wanted.clone(),
                _ => format!("{wanted}-{asked}"),
            };
            if self.given.insert(id.clone()) {
                return id;
            }
        }
    }
}

fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars().take(MOST) {
        if char.is_ascii_alphanumeric() {
            slug.push(char);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "x".to_owned()
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_twice_and_all_are_plain() {
        let mut ids = Ids::new();
        assert_eq!(ids.take("", "gopls"), "gopls");
        assert_eq!(
            ids.take("gopls", "QUA-4/goToDefinition"),
            "gopls.QUA-4-goToDefinition"
        );
        assert_eq!(ids.take("", "gopls"), "gopls-2");
        assert_eq!(ids.take("", "gopls-3"), "gopls-3");
        assert_eq!(ids.take("", "gopls"), "gopls-4");
        assert_eq!(ids.take("", "matrix"), "matrix-2");
        assert_eq!(ids.take("", "\"><ü"), "x");
        assert_eq!(ids.take("", "定義"), "x-2");
        assert_eq!(ids.take("", &"y".repeat(500)).len(), MOST);
    }
}
