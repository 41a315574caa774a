//! The mark that a child and what it starts carry in their environment, so that a process that left
//! the tree can still be told to be of it (ENV-6).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Name of the variable. Harnesses may be nested, so its value is a list: the marks of the outer
/// trees are kept in front, separated by colons.
const NAME: &str = "_CONFORM_TREE";

/// The mark of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker(String);

impl Marker {
    /// A mark that no other tree has. It is a name and no secret: it must not be equal by chance,
    /// so the seeds of the standard library's hash maps, which the system's generator gives, do.
    pub(crate) fn fresh() -> Self {
        let half = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", half(), half()))
    }

    /// Puts the mark into a child's environment, behind those that are there.
    pub(crate) fn put_into(&self, environment: &mut BTreeMap<OsString, OsString>) {
        let value = environment.entry(NAME.into()).or_default();
        if !value.is_empty() {
            value.push(":");
        }
        value.push(&self.0);
    }

    /// Whether the environment block of a process (entries that end in NUL) carries the mark.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn is_in(&self, block: &[u8]) -> bool {
        block
            .split(|byte| *byte == 0)
            .filter_map(|entry| entry.strip_prefix(NAME.as_bytes())?.strip_prefix(b"="))
            .any(|value| {
                value
                    .split(|byte| *byte == b':')
                    .any(|mark| mark == self.0.as_bytes())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(environment: &BTreeMap<OsString, OsString>) -> Vec<u8> {
        let mut block = b"A=1\0".to_vec();
        for (name, value) in environment {
            block.extend(name.as_encoded_bytes());
            block.push(b'=');
            block.extend(value.as_encoded_bytes());
            block.push(0);
        }
        block
    }

    #[test]
    fn marks_of_nested_trees_are_all_found() {
        let (outer, inner, other) = (Marker::fresh(), Marker::fresh(), Marker::fresh());
        let mut environment = BTreeMap::new();
        outer.put_into(&mut environment);
        assert!(outer.is_in(&block(&environment)));
        inner.put_into(&mut environment);
        assert!(outer.is_in(&block(&environment)));
        assert!(inner.is_in(&block(&environment)));
        assert!(!other.is_in(&block(&environment)));
    }

    #[test]
    fn a_mark_elsewhere_is_none() {
        let marker = Marker::fresh();
        for text in [
            format!("X_CONFORM_TREE={}", marker.0),
            format!("A=_CONFORM_TREE={}", marker.0),
            format!("_CONFORM_TREE={}0", marker.0),
            format!("_CONFORM_TREE{}", marker.0),
            String::new(),
        ] {
            assert!(!marker.is_in(text.as_bytes()), "{text}");
        }
    }
}
