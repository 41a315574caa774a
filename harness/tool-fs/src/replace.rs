//! What an edit makes of a text. Pure, in linear time.
//!
//! The text is bytes: where they are no UTF-8, they are kept all the same. Matching is exact but
//! for line ends: a model does not see which ones a file has, since `read` shows none. So an
//! `old_string` with LF also matches CRLF, and the line feeds of `new_string` become what the line
//! ends at that place are. One that has CRLF itself is first looked for as it is, and then taken
//! and replaced letter by letter.

use std::borrow::Cow;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

/// Most places that are named by their line.
pub(crate) const NAMED: usize = 10;

/// What to replace by what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    /// Not empty.
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Every place, or the only one.
    pub(crate) all: bool,
    /// Most bytes that may come out.
    pub(crate) limit: u64,
}

/// The text after the edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) bytes: Vec<u8>,
    pub(crate) replacements: u64,
    /// On which lines of the new text the first of them begin, one-based.
    pub(crate) lines: Vec<u64>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is nowhere.
    Absent(Hint),
    /// It is in more than one place.
    Ambiguous {
        count: u64,
        /// The lines of the first places, one-based.
        lines: Vec<u64>,
    },
    /// More bytes would come out than may.
    TooLarge,
    /// The places have the new text already, line ends aside.
    NoChange,
}

/// What may be the matter with an `old_string` that is nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Its lines start with numbers, as `read` shows them.
    Numbered,
    /// It has the sign that stands for bytes that are no text.
    Replacement,
    /// Its first line is there with other white space around it, on these lines.
    WhiteSpace(Vec<u64>),
    /// No idea.
    Nothing,
}

/// Makes the edit.
pub(crate) fn apply(text: &[u8], edit: Edit<'_>) -> Result<Edited, Refused> {
    let verbatim = edit.old.contains("\r\n");
    let has_crlf = Finder::new(b"\r\n").find(text).is_some();
    if verbatim {
        let exact = Matching {
            text,
            matched: Cow::Borrowed(text),
            removed: Vec::new(),
            old: edit.old.into(),
        };
        if exact.occurs() {
            let new = NewText {
                with_lf: edit.new.into(),
                with_crlf: edit.new.into(),
            };
            return exact.replace(&new, edit);
        }
    }
    let with_lf = if verbatim {
        edit.new.replace("\r\n", "\n").into()
    } else {
        Cow::Borrowed(edit.new)
    };
    let with_crlf = with_lf.replace("\r\n", "\n").replace('\n', "\r\n").into();
    let old = if verbatim {
        edit.old.replace("\r\n", "\n").into()
    } else {
        Cow::Borrowed(edit.old)
    };
    let (matched, removed) = if has_crlf && old.contains('\n') {
        without_crlf(text)
    } else {
        (Cow::Borrowed(text), Vec::new())
    };
    let matching = Matching {
        text,
        matched,
        removed,
        old,
    };
    matching.replace(&NewText { with_lf, with_crlf }, edit)
}

/// The text with LF for CRLF, and where in the result the carriage returns are missing.
fn without_crlf(text: &[u8]) -> (Cow<'_, [u8]>, Vec<usize>) {
    let mut kept = Vec::with_capacity(text.len());
    let mut removed = Vec::new();
    let mut from = 0;
    for at in Finder::new(b"\r\n").find_iter(text) {
        kept.extend_from_slice(&text[from..at]);
        removed.push(kept.len());
        from = at + 1;
    }
    kept.extend_from_slice(&text[from..]);
    (kept.into(), removed)
}

struct NewText<'a> {
    with_lf: Cow<'a, str>,
    with_crlf: Cow<'a, str>,
}

struct Matching<'a> {
    text: &'a [u8],
    /// What is searched: the text itself, or the one without the carriage returns of its line ends.
    matched: Cow<'a, [u8]>,
    removed: Vec<usize>,
    old: Cow<'a, str>,
}

impl Matching<'_> {
    fn occurs(&self) -> bool {
        Finder::new(self.old.as_bytes())
            .find(&self.matched)
            .is_some()
    }

    fn replace(&self, new: &NewText<'_>, edit: Edit<'_>) -> Result<Edited, Refused> {
        let finder = Finder::new(self.old.as_bytes());
        let count = finder.find_iter(&self.matched).count() as u64;
        let Some(first) = finder.find(&self.matched) else {
            return Err(Refused::Absent(hint(self.text, &self.old)));
        };
        if !edit.all {
            // A second place may overlap with the first.
            let overlapping = || finder.find(&self.matched[first + 1..]);
            if count > 1 {
                return Err(self.ambiguous(count, finder.find_iter(&self.matched).take(NAMED)));
            } else if let Some(at) = overlapping() {
                return Err(self.ambiguous(2, [first, first + 1 + at].into_iter()));
            }
        }
        let longest = new.with_lf.len().max(new.with_crlf.len()) as u64;
        let most = count.saturating_mul(longest);
        // Exact where it matters: what is taken out is at least as long as the matched text.
        let left = self.text.len() as u64 - count * self.old.len() as u64;
        if left.saturating_add(most) > edit.limit {
            return Err(Refused::TooLarge);
        }
        let edited = self.build(&finder, new, count);
        if edited.bytes == self.text {
            return Err(Refused::NoChange);
        }
        Ok(edited)
    }

    fn build(&self, finder: &Finder<'_>, new: &NewText<'_>, count: u64) -> Edited {
        let text = self.text;
        let mut original = Original {
            removed: &self.removed,
            passed: 0,
        };
        let mut ends = LineEnds::new(text);
        let mut bytes = Vec::with_capacity(text.len());
        let (mut from, mut line, mut lines) = (0, 1, Vec::new());
        for at in finder.find_iter(&self.matched) {
            let start = original.position(at);
            let end = original.position(at + self.old.len());
            bytes.extend_from_slice(&text[from..start]);
            let new = if ends.is_crlf_at(start) {
                &new.with_crlf
            } else {
                &new.with_lf
            };
            if lines.len() < NAMED {
                line += line_feeds(&text[from..start]);
                lines.push(line);
                line += line_feeds(new.as_bytes());
            }
            bytes.extend_from_slice(new.as_bytes());
            from = end;
        }
        bytes.extend_from_slice(&text[from..]);
        Edited {
            bytes,
            replacements: count,
            lines,
        }
    }

    fn ambiguous(&self, count: u64, places: impl Iterator<Item = usize>) -> Refused {
        let (mut from, mut line, mut lines) = (0, 1, Vec::new());
        for at in places {
            line += line_feeds(&self.matched[from..at]);
            lines.push(line);
            from = at;
        }
        Refused::Ambiguous { count, lines }
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Leads back from positions in the searched text to those in the original, in rising order.
struct Original<'a> {
    removed: &'a [usize],
    passed: usize,
}

impl Original<'_> {
    fn position(&mut self, matched: usize) -> usize {
        let more = self.removed[self.passed..].iter();
        self.passed += more.take_while(|removed| **removed < matched).count();
        matched + self.passed
    }
}

/// Which line ends a text has, asked for rising positions.
struct LineEnds<'a> {
    text: &'a [u8],
    /// The first line feed at or behind the last position that was asked for.
    next: Option<usize>,
    asked: usize,
    is_last_crlf: bool,
}

impl<'a> LineEnds<'a> {
    fn new(text: &'a [u8]) -> Self {
        let is_crlf = |at: usize| at > 0 && text[at - 1] == b'\r';
        Self {
            text,
            next: memchr(b'\n', text),
            asked: 0,
            is_last_crlf: memrchr(b'\n', text).is_some_and(is_crlf),
        }
    }

    /// Whether the line around a position ends with CRLF; the last line, if it has no end, is taken
    /// for one like the line before it.
    fn is_crlf_at(&mut self, position: usize) -> bool {
        debug_assert!(position >= self.asked, "positions rise");
        self.asked = position;
        if self.next.is_some_and(|next| next < position) {
            let after = memchr(b'\n', &self.text[position..]);
            self.next = after.map(|after| position + after);
        }
        match self.next {
            Some(next) => next > 0 && self.text[next - 1] == b'\r',
            None => self.is_last_crlf,
        }
    }
}

fn hint(text: &[u8], old: &str) -> Hint {
    let mut old_lines = old
        .lines()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    let Some(first) = old_lines.peek().copied() else {
        return Hint::Nothing;
    };
    if old_lines.all(is_numbered) {
        return Hint::Numbered;
    }
    if old.contains('\u{FFFD}') {
        return Hint::Replacement;
    }
    let first = first.trim().as_bytes();
    let alike = text
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| line.trim_ascii() == first)
        .map(|(index, _)| index as u64 + 1)
        .take(NAMED);
    let alike: Vec<_> = alike.collect();
    if alike.is_empty() {
        Hint::Nothing
    } else {
        Hint::WhiteSpace(alike)
    }
}

/// Whether a line begins as `read` shows one: `12: `.
fn is_numbered(line: &str) -> bool {
    line.trim_start()
        .split_once(':')
        .is_some_and(|(number, rest)| {
            !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && (rest.is_empty() || rest.starts_with(' '))
        })
}

#[cfg(test)]
mod tests;
