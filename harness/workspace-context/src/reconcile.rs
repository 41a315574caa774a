//! What has to be told: a pure function of what is loaded and what is there (INS-3, INS-5, INS-6,
//! INS-8, INS-9).

use std::collections::HashMap;
use std::path::Path;

use crate::digest::Digests;
use crate::layout::Scope;

/// What is known about a candidate now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A regular file with this content.
    Present(Digests),
    /// Certainly no file.
    Absent,
    /// The provider could not tell, or the content is not to be used. What was read of it last is
    /// told where it is remembered.
    Unavailable(Option<Digests>),
}

/// One candidate, as the reconciler sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) scope: &'a Scope,
    /// The digest that the model has of it.
    pub(crate) loaded: Option<&'a str>,
    pub(crate) fact: &'a Fact,
}

/// What has to be told of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Nothing.
    Keep,
    /// It is new.
    Add,
    /// It has changed.
    Update,
    /// It is gone, or says what an earlier candidate of its directory says.
    Remove,
}

/// What has to be told of each candidate. They are in order, the earlier ones of a
/// directory first.
pub(crate) fn reconcile(candidates: &[Candidate<'_>]) -> Vec<Delta> {
    let duplicates = duplicates(candidates);
    candidates
        .iter()
        .zip(duplicates)
        .map(
            |(candidate, duplicate)| match (candidate.fact, candidate.loaded) {
                (Fact::Unavailable(_), _) | (Fact::Absent, None) => Delta::Keep,
                (Fact::Absent, Some(_)) => Delta::Remove,
                (Fact::Present(_), Some(_)) if duplicate => Delta::Remove,
                (Fact::Present(_), None) if duplicate => Delta::Keep,
                (Fact::Present(_), None) => Delta::Add,
                (Fact::Present(digests), Some(loaded)) if digests.raw == loaded => Delta::Keep,
                (Fact::Present(_), Some(_)) => Delta::Update,
            },
        )
        .collect()
}

/// Which candidates say what an earlier one of their directory says (INS-3).
///
/// A loaded file that cannot be read at the moment still counts with what it said; by the digest of
/// its bytes alone if nothing else is remembered.
pub(crate) fn duplicates(candidates: &[Candidate<'_>]) -> Vec<bool> {
    let mut said: HashMap<&Path, Said<'_>> = HashMap::new();
    let mut found = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let Said { trimmed, raw } = said.entry(candidate.scope.dir()).or_default();
        let duplicate = match (candidate.fact, candidate.loaded) {
            (Fact::Present(digests), _) => {
                let duplicate = trimmed.contains(&digests.trimmed.as_str())
                    || raw.contains(&digests.raw.as_str());
                trimmed.push(&digests.trimmed);
                duplicate
            }
            (Fact::Unavailable(last), Some(loaded)) => {
                match last.as_ref().filter(|last| last.raw == loaded) {
                    Some(last) => trimmed.push(&last.trimmed),
                    None => raw.push(loaded),
                }
                false
            }
            _ => false,
        };
        found.push(duplicate);
    }
    found
}

/// What the candidates of one directory say.
#[derive(Default)]
struct Said<'a> {
    trimmed: Vec<&'a str>,
    raw: Vec<&'a str>,
}

#[cfg(test)]
mod tests;
