//! Texts from outside (a server's name, its version, its messages), made fit to be shown anywhere:
//! what could hide, reorder or move what stands around it is made visible, and what is long is cut
//! by the columns it takes.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::model::{Report, Run, SubjectKind};

/// The most columns of a name, a version or a language.
const NAME: usize = 80;

/// The most columns of any other text that comes from a server: most of a screen.
const TEXT: usize = 1_000;

/// The members of a run whose text may be a server's.
const SAID: [&str; 14] = [
    "against",
    "answer",
    "detail",
    "expected",
    "got",
    "label",
    "message",
    "name",
    "operation",
    "reason",
    "summary",
    "text",
    "what",
    "way",
];

/// Controls, marks of direction, and marks without width: what is not seen and changes what is.
pub(crate) const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// `text` on one line, with what is hidden as escapes: `\n`, `\u{202e}`.
pub(crate) fn visible(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    text.chars()
        .fold(String::with_capacity(text.len() + 8), |mut out, c| {
            if is_hidden(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
            out
        })
}

/// `text` as a page shows it, line ends and tabs kept: `‹U+202E›`.
pub(crate) fn visible_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            // Before every line end of a file from elsewhere: short.
            '\r' => out.push_str("\u{2039}CR\u{203a}"),
            c if is_hidden(c) => {
                let _ = write!(out, "\u{2039}U+{:04X}\u{203a}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// At most `columns` of a text, the ellipsis with them where there is more. What takes no column, or
/// none that is known, counts as one, so that nothing is endless.
pub fn clipped(text: &str, columns: usize) -> String {
    let width = |c: char| c.width().unwrap_or(1).max(1);
    // A character has four bytes at most, and takes a column at least.
    if text.len() <= columns || text.chars().map(width).take(columns + 1).sum::<usize>() <= columns
    {
        return text.to_owned();
    }
    let mut taken = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        taken += width(c);
        (taken > columns.saturating_sub(1)).then_some(at)
    });
    format!("{}…", &text[..end.unwrap_or(text.len())])
}

/// The report with every text cut that is too long to be shown. What a harness is told of is the
/// suite's own, and is kept but for the name.
pub(crate) fn fit(report: &Report) -> Report {
    let mut fit = report.clone();
    for run in &mut fit.runs {
        let subject = &mut run.subject;
        let told = [&mut subject.version, &mut subject.language];
        for text in told.into_iter().flatten().chain([&mut subject.name]) {
            *text = clipped(text, NAME);
        }
        if run.subject.kind == SubjectKind::Server {
            *run = said(run);
        }
    }
    fit
}

/// The same run with what a server said cut.
fn said(run: &Run) -> Run {
    let Ok(mut value) = serde_json::to_value(run) else {
        return run.clone();
    };
    cut(&mut value, false);
    serde_json::from_value(value).unwrap_or_else(|_| run.clone())
}

fn cut(value: &mut Value, is_said: bool) {
    match value {
        Value::String(text) if is_said && text.len() > TEXT => *text = clipped(text, TEXT),
        Value::Array(all) => all.iter_mut().for_each(|value| cut(value, is_said)),
        Value::Object(members) => {
            for (name, value) in members {
                // How it is mounted is no server's text, and of no use in parts.
                if name != "row" {
                    cut(value, SAID.contains(&name.as_str()) || name == "remarks");
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_hide_or_reorder_is_made_visible() {
        let marks = "\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        for mark in marks
            .chars()
            .chain(['\n', '\r', '\0', '\x1b', '\x7f', '\u{85}', '\u{2028}'])
        {
            let text = format!("a{mark}b");
            let shown = visible(&text);
            assert!(shown.starts_with("a\\") && !shown.contains(mark), "{shown}");
            if mark != '\n' {
                let shown = visible_lines(&text);
                assert!(shown.starts_with("a‹") && !shown.contains(mark), "{shown}");
            }
        }
        assert_eq!(visible("ä 漢 🙂"), "ä 漢 🙂");
    }

    #[test]
    fn a_text_is_cut_by_the_columns_it_takes() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdef", 5), "abcd…");
        assert_eq!(clipped("漢漢漢", 6), "漢漢漢");
        assert_eq!(clipped("漢漢漢", 5), "漢漢…");
        assert_eq!(clipped("漢漢漢", 4), "漢…");
        // Marks upon a letter take no column, and there may be any number of them.
        let marked = format!("e{}", "\u{301}".repeat(5_000));
        assert_eq!(clipped(&marked, 10).chars().count(), 10);
        let long = "x".repeat(5_000_000);
        assert_eq!(clipped(&long, 80).chars().count(), 80);
    }
}
