//! The message that the model reads, within its budget (INS-4, INS-11). Pure.

use crate::escape::{apart, escape, escape_line};

const OPEN: &str = "<system-reminder>\n";
const CLOSE: &str = "\n</system-reminder>";
/// Between two blocks.
const GAP: &str = "\n\n";
const PREAMBLE: &str = "The following workspace instructions may be relevant to your work. Use them as guidance when applicable. More specific instructions take precedence over broader ones. They do not override system, developer, or direct user instructions.";
const REMOVED: &str = "The previously loaded instructions from this file no longer apply.";
const UPDATED: &str = "This content replaces what was loaded from this file before. Use it as guidance when relevant; it does not override system, developer, or direct user instructions.";

/// One file of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    /// The path as shown.
    pub(crate) shown: String,
    /// The directory as shown.
    pub(crate) area: String,
    /// The content as read; empty for a removal.
    pub(crate) content: String,
}

/// How a file is introduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// As part of a whole baseline.
    Listed,
    Added,
    Updated,
    Removed,
}

/// A message that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// For each section whether it is in the text, whole or cut (INS-12).
    pub(crate) shown: Vec<bool>,
}

/// Renders the sections, broad ones first, in at most `budget` bytes; `whole` with the baseline's
/// opening words.
///
/// What does not fit: whole contents are left out, the broadest first; then the most specific one is
/// cut on a character boundary; then it is left out; then removals are. Whatever is left out or cut
/// is named. None if not even frame and notice fit, or if there is nothing to say.
pub(crate) fn render(sections: &[Section], whole: bool, budget: usize) -> Option<Rendered> {
    if sections.is_empty() {
        return None;
    }
    let mut message = Draft::new(sections, whole, budget);
    if message.fits() {
        return Some(message.finish());
    }
    let with_content = |index: &usize| sections[*index].kind != SectionKind::Removed;
    let contents: Vec<usize> = (0..sections.len()).filter(with_content).collect();
    if let Some((last, broader)) = contents.split_last() {
        for index in broader {
            message.omit(*index);
            if message.fits() {
                return Some(message.finish());
            }
        }
        if message.cut(*last) {
            return Some(message.finish());
        }
        message.omit(*last);
    }
    let removals = (0..sections.len()).filter(|index| !with_content(index));
    for index in removals {
        if message.fits() {
            break;
        }
        message.omit(index);
    }
    message.fits().then(|| message.finish())
}

/// One block of the message, escaped.
struct Block {
    head: String,
    body: String,
    omitted: bool,
    cut: bool,
}

impl Block {
    fn of(section: &Section) -> Self {
        let shown = escape_line(&section.shown);
        let head = match section.kind {
            SectionKind::Listed => format!("Instructions from: {shown}{GAP}"),
            SectionKind::Added => format!(
                "Additional instructions from: {shown}{GAP}These instructions apply to work under `{}`. Use them as guidance when relevant; more specific instructions take precedence. They do not override system, developer, or direct user instructions.{GAP}",
                escape_line(&section.area)
            ),
            SectionKind::Updated => {
                format!("Updated instructions from: {shown}{GAP}{UPDATED}{GAP}")
            }
            SectionKind::Removed => format!("Instructions removed: {shown}{GAP}{REMOVED}"),
        };
        // The last line break of the file is the one that follows it anyway.
        let content = section.content.strip_suffix('\n');
        let body = apart(&head, escape(content.unwrap_or(&section.content)));
        Self {
            head,
            body,
            omitted: false,
            cut: false,
        }
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// A message being fitted. Lengths are kept, so that each step costs the same.
struct Draft<'a> {
    sections: &'a [Section],
    whole: bool,
    budget: usize,
    blocks: Vec<Block>,
    /// Bytes of the blocks that are in, with a gap for each.
    inside: usize,
    /// Bytes of the names of what is out, with a separator for each.
    names: usize,
    omitted: usize,
    cut: Option<usize>,
}

impl<'a> Draft<'a> {
    fn new(sections: &'a [Section], whole: bool, budget: usize) -> Self {
        let blocks: Vec<Block> = sections.iter().map(Block::of).collect();
        let inside = blocks.iter().map(|block| block.len() + GAP.len()).sum();
        Self {
            sections,
            whole,
            budget,
            blocks,
            inside,
            names: 0,
            omitted: 0,
            cut: None,
        }
    }

    fn omit(&mut self, index: usize) {
        let block = &mut self.blocks[index];
        block.omitted = true;
        self.inside -= block.len() + GAP.len();
        self.names += escape_line(&self.sections[index].shown).len() + SEPARATOR.len();
        self.omitted += 1;
    }

    /// Cuts a content so that the message fits; false if nothing of it would be left.
    fn cut(&mut self, index: usize) -> bool {
        self.cut = Some(index);
        let block = &self.blocks[index];
        let over = self.len().saturating_sub(self.budget);
        let room = block.body.len().saturating_sub(over);
        let kept = block.body.floor_char_boundary(room);
        if kept == 0 {
            self.cut = None;
            return false;
        }
        let block = &mut self.blocks[index];
        self.inside -= block.body.len() - kept;
        block.body.truncate(kept);
        block.cut = true;
        true
    }

    fn fits(&self) -> bool {
        self.len() <= self.budget
    }

    /// Bytes of the text as it would be finished now.
    fn len(&self) -> usize {
        let preamble = if self.whole {
            PREAMBLE.len() + GAP.len()
        } else {
            0
        };
        let notice = self.notice_len().map_or(0, |notice| notice + GAP.len());
        // Every block counts with a gap, and the first has none before it.
        OPEN.len() + (preamble + self.inside + notice).saturating_sub(GAP.len()) + CLOSE.len()
    }

    fn notice_len(&self) -> Option<usize> {
        if self.omitted == 0 && self.cut.is_none() {
            return None;
        }
        let mut len = NOTICE.len() + self.budget.to_string().len() + NOTICE_BYTES.len() + 1;
        if self.omitted > 0 {
            len += OMITTED.len() + self.names - SEPARATOR.len();
        }
        if let Some(cut) = self.cut {
            let joint = if self.omitted > 0 { JOINT.len() } else { 0 };
            len += joint + TRUNCATED.len() + escape_line(&self.sections[cut].shown).len();
        }
        Some(len)
    }

    fn notice(&self) -> Option<String> {
        if self.omitted == 0 && self.cut.is_none() {
            return None;
        }
        let mut parts = Vec::new();
        if self.omitted > 0 {
            let names: Vec<_> = self
                .sections
                .iter()
                .zip(&self.blocks)
                .filter(|(_, block)| block.omitted)
                .map(|(section, _)| escape_line(&section.shown))
                .collect();
            parts.push(format!("{OMITTED}{}", names.join(SEPARATOR)));
        }
        if let Some(cut) = self.cut {
            parts.push(format!(
                "{TRUNCATED}{}",
                escape_line(&self.sections[cut].shown)
            ));
        }
        Some(format!(
            "{NOTICE}{}{NOTICE_BYTES}{}.",
            self.budget,
            parts.join(JOINT)
        ))
    }

    fn finish(self) -> Rendered {
        let len = self.len();
        let notice = self.notice();
        let mut blocks: Vec<(&str, &str)> = Vec::with_capacity(self.blocks.len() + 2);
        if self.whole {
            blocks.push((PREAMBLE, ""));
        }
        for block in self.blocks.iter().filter(|block| !block.omitted) {
            blocks.push((&block.head, &block.body));
        }
        if let Some(notice) = &notice {
            blocks.push((notice, ""));
        }
        let mut text = String::with_capacity(len);
        text.push_str(OPEN);
        for (index, (head, body)) in blocks.into_iter().enumerate() {
            if index > 0 {
                text.push_str(GAP);
            }
            text.push_str(head);
            text.push_str(body);
        }
        text.push_str(CLOSE);
        debug_assert_eq!(text.len(), len, "the length was computed before");
        Rendered {
            text,
            shown: self.blocks.iter().map(|block| !block.omitted).collect(),
        }
    }
}

const NOTICE: &str = "Workspace instruction budget of ";
const NOTICE_BYTES: &str = " bytes: ";
const OMITTED: &str = "omitted ";
const TRUNCATED: &str = "truncated ";
const SEPARATOR: &str = ", ";
const JOINT: &str = "; ";

#[cfg(test)]
mod tests;
