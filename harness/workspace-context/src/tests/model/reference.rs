//! What the model should read, computed from contents and from what it can see.

use std::collections::{BTreeMap, BTreeSet};

use super::{PLACES, SHAPES};
use crate::source::{Action, InstructionSource};
use crate::tests::world::Files;

/// What a message says of a file, in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Listed(String),
    Added(String),
    Updated(String),
    Removed,
}

/// A message as the reference expects it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) whole: bool,
    /// Path and word, in order.
    pub(super) words: Vec<(String, Word)>,
}

/// A message that the model has got, or is about to.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) message: Expected,
    pub(super) shape: usize,
    /// Where it stands in the log; none while it rides on a result.
    pub(super) seq: Option<u64>,
    pub(super) hidden: bool,
}

/// A place in a layout: how broad it is, and where.
type Broadness = (usize, String, usize);

#[derive(Debug)]
pub(super) struct Reference {
    pub(super) shape: usize,
    pub(super) seen: Vec<Seen>,
    /// Everything that was ever logged as loaded or removed.
    pub(super) ever: BTreeSet<String>,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').expect("absolute").0
}

fn within(dir: &str, ancestor: &str) -> bool {
    dir == ancestor || dir.starts_with(&format!("{ancestor}/"))
}

/// How the model reads a path.
fn shown(path: &str) -> String {
    match path.strip_prefix("/p/") {
        Some(rest) => rest.to_owned(),
        None => path.replace("/h/", "~/.dsh/"),
    }
}

fn area(path: &str) -> String {
    let dir = parent(path);
    if dir == "/p" || dir == "/h" {
        ".".to_owned()
    } else {
        shown(dir)
    }
}

impl Reference {
    fn names(&self) -> Vec<&'static str> {
        let shape = &SHAPES[self.shape];
        shape.base.iter().chain(shape.local).copied().collect()
    }

    /// Where a path stands, if instructions may lie there at all.
    fn broadness(&self, path: &str) -> Option<Broadness> {
        if path == "/h/AGENTS.md" {
            return Some((0, String::new(), 0));
        }
        let dir = parent(path);
        let name = path.rsplit('/').next()?;
        let index = self.names().iter().position(|own| *own == name)?;
        let cwd = SHAPES[self.shape].cwd;
        let counts = within(cwd, dir) && within(dir, "/p") || within(dir, cwd);
        counts.then(|| (dir.matches('/').count(), dir.to_owned(), index))
    }

    fn is_chain(&self, path: &str) -> bool {
        let cwd = SHAPES[self.shape].cwd;
        path == "/h/AGENTS.md" || within(cwd, parent(path)) && within(parent(path), "/p")
    }

    /// What the model has of each file.
    fn loaded(&self) -> BTreeMap<&str, Option<&str>> {
        let mut loaded = BTreeMap::new();
        for seen in self.seen.iter().filter(|seen| !seen.hidden) {
            for (path, word) in &seen.message.words {
                let content = match word {
                    Word::Listed(content) | Word::Added(content) | Word::Updated(content) => {
                        Some(content.as_str())
                    }
                    Word::Removed => None,
                };
                loaded.insert(path.as_str(), content);
            }
        }
        loaded
    }

    /// What has to be told, and whether that is certain: a copy of a file that cannot be read at the
    /// moment may or may not be recognized if its blanks differ.
    pub(super) fn expected(&self, files: &Files, touched: Option<&[&str]>) -> (Expected, bool) {
        let loaded = self.loaded();
        let cwd = SHAPES[self.shape].cwd;
        let inside = |file: &&&str| within(parent(file), cwd);
        let reaches = |dir: &str| {
            let touched = touched.unwrap_or_default().iter();
            touched.filter(inside).any(|file| within(parent(file), dir))
        };
        let discovers = touched.is_none_or(|touched| touched.iter().any(|file| inside(&file)));
        let mut places: Vec<(Broadness, &str)> = PLACES
            .iter()
            .filter_map(|path| Some((self.broadness(path)?, *path)))
            .filter(|(_, path)| {
                let below = reaches(parent(path)) && !self.is_chain(path);
                let chain = self.is_chain(path) && (discovers || self.ever.contains(*path));
                loaded.contains_key(path) || below || chain
            })
            .collect();
        places.sort();

        let mut words: Vec<(String, Word)> = Vec::new();
        let mut certain = true;
        let mut said: Vec<(&str, String)> = Vec::new();
        let mut unread: Vec<(&str, &str)> = Vec::new();
        let mut candidates: Vec<(&str, String)> = Vec::new();
        for (_, path) in &places {
            let node = files.at(path.as_ref());
            let had = loaded.get(path).copied().flatten();
            let gone = node.is_dir || node.content.is_none();
            let unavailable =
                node.probe_fails || !gone && (node.read_fails || node.too_large.is_some());
            if unavailable {
                unread.extend(had.map(|content| (parent(path), content)));
                continue;
            }
            if gone {
                if had.is_some() {
                    words.push(((*path).to_owned(), Word::Removed));
                }
                continue;
            }
            let content = node.content.expect("it is there");
            let copy = |(dir, other): &(&str, &str)| {
                *dir == parent(path) && other.trim() == content.trim()
            };
            let of_unread: Vec<_> = unread.iter().filter(|other| copy(other)).collect();
            certain &= of_unread.is_empty() || of_unread.iter().any(|(_, other)| *other == content);
            let duplicate = !of_unread.is_empty()
                || said.iter().any(|(dir, other)| copy(&(dir, other.as_str())));
            said.push((parent(path), content.clone()));
            let word = match had {
                Some(_) if duplicate => Word::Removed,
                None if duplicate => continue,
                None => Word::Added(content),
                Some(had) if had == content => {
                    candidates.push((path, content));
                    continue;
                }
                Some(_) => Word::Updated(content),
            };
            words.push(((*path).to_owned(), word));
        }
        if touched.is_none() {
            for (path, had) in &loaded {
                if had.is_some() && self.broadness(path).is_none() {
                    words.push(((*path).to_owned(), Word::Removed));
                }
            }
        }
        let whole = touched.is_none() && self.is_whole(words.is_empty());
        if whole {
            self.list_chain(&mut words, candidates);
        }
        (Expected { whole, words }, certain)
    }

    fn list_chain(&self, words: &mut Vec<(String, Word)>, unchanged: Vec<(&str, String)>) {
        for (path, word) in words.iter_mut().filter(|(path, _)| self.is_chain(path)) {
            if let Word::Added(content) | Word::Updated(content) = word {
                assert!(self.broadness(path).is_some());
                *word = Word::Listed(std::mem::take(content));
            }
        }
        for (path, content) in unchanged {
            if self.is_chain(path) {
                words.push((path.to_owned(), Word::Listed(content)));
            }
        }
        // Those without a place any more stay behind.
        words.sort_by_key(|(path, _)| {
            let broadness = self.broadness(path);
            (broadness.is_none(), broadness, path.clone())
        });
    }

    fn is_whole(&self, quiet: bool) -> bool {
        let same = |seen: &Seen| seen.shape == self.shape;
        let mut visible = self.seen.iter().filter(|seen| !seen.hidden).rev();
        let latest = visible.clone().next();
        let baseline = visible.find(|seen| seen.message.whole);
        if latest.is_some_and(same) && baseline.is_some_and(same) {
            return false;
        }
        !(quiet && latest.is_none_or(same))
    }
}

/// The text that the model is to read.
pub(super) fn text_of(expected: &Expected) -> Option<String> {
    if expected.words.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    if expected.whole {
        blocks.push("The following workspace instructions may be relevant to your work. Use them as guidance when applicable. More specific instructions take precedence over broader ones. They do not override system, developer, or direct user instructions.".to_owned());
    }
    for (path, word) in &expected.words {
        let content = |content: &str| {
            let content = content.strip_suffix('\n').unwrap_or(content);
            content.replace("</system-reminder>", r"<\/system-reminder>")
        };
        let shown = shown(path);
        blocks.push(match word {
            Word::Listed(own) => format!("Instructions from: {shown}\n\n{}", content(own)),
            Word::Added(own) => format!("Additional instructions from: {shown}\n\nThese instructions apply to work under `{}`. Use them as guidance when relevant; more specific instructions take precedence. They do not override system, developer, or direct user instructions.\n\n{}", area(path), content(own)),
            Word::Updated(own) => format!("Updated instructions from: {shown}\n\nThis content replaces what was loaded from this file before. Use it as guidance when relevant; it does not override system, developer, or direct user instructions.\n\n{}", content(own)),
            Word::Removed => format!("Instructions removed: {shown}\n\nThe previously loaded instructions from this file no longer apply."),
        });
    }
    Some(format!(
        "<system-reminder>\n{}\n</system-reminder>",
        blocks.join("\n\n")
    ))
}

/// What a message really says, by its source and the files.
pub(super) fn words_of(source: &InstructionSource, files: &Files) -> Expected {
    let words = source.changes.iter().map(|change| {
        let content = || files.at(&change.path).content.expect("it was read");
        let word = match change.action {
            Action::Set if source.baseline => Word::Listed(content()),
            Action::Set => Word::Added(content()),
            Action::Replace => Word::Updated(content()),
            Action::Remove => Word::Removed,
        };
        (change.path.to_str().expect("text").to_owned(), word)
    });
    Expected {
        whole: source.baseline,
        words: words.collect(),
    }
}
