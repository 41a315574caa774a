//! Lines of coloured pieces, aligned and wrapped by display width.
//!
//! Colour is a layer: the same pieces without it are the same text. Text from outside (a server's
//! name, its messages) cannot move the cursor or colour the terminal: control characters are
//! shown escaped.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use crate::outside::visible;

/// The fewest columns that text is broken into.
const LEAST: usize = 8;

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Strong,
    Faint,
    Good,
    Attention,
    Bad,
}

impl Role {
    const fn style(self) -> Style {
        let style = Style::new();
        match self {
            Self::Plain => style,
            Self::Strong => style.bold(),
            Self::Faint => style.dimmed(),
            Self::Good => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green))),
            Self::Attention => style.fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow))),
            Self::Bad => style
                .fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)))
                .bold(),
        }
    }
}

/// One line: pieces in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<(Role, String)>);

impl Line {
    pub(crate) fn push(&mut self, role: Role, text: &str) -> &mut Self {
        self.0.push((role, visible(text)));
        self
    }

    /// Blanks up to display column `column`, at least one if anything is there already.
    pub(crate) fn tab(&mut self, column: usize) -> &mut Self {
        let width = self.width();
        let blanks = column.saturating_sub(width).max(usize::from(width > 0));
        self.0.push((Role::Plain, " ".repeat(blanks)));
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }
}

/// The lines of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page(Vec<Line>);

impl Page {
    pub(crate) fn line(&mut self, line: Line) {
        self.0.push(line);
    }

    pub(crate) fn blank(&mut self) {
        self.0.push(Line::default());
    }

    pub(crate) fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for line in &self.0 {
            let plain: String = line.0.iter().map(|(_, text)| text.as_str()).collect();
            let mut left = plain.trim_end().len();
            for (role, text) in &line.0 {
                // Blanks at a line's end are dropped, also where they are part of a piece.
                let text = &text[..text.len().min(left)];
                left -= text.len();
                let style = role.style();
                if color && *role != Role::Plain && !text.trim().is_empty() {
                    let _ = write!(out, "{style}{text}{style:#}");
                } else {
                    out.push_str(text);
                }
            }
            out.push('\n');
        }
        out
    }
}

/// Breaks `text` into lines of at most `width` columns, at blanks where there are any, inside a
/// word where it alone is too wide. Never gives no line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(LEAST);
    let text = visible(text);
    let pieces = text.split(' ').flat_map(|word| broken(word, width));
    filled(pieces, width, width)
}

/// The same for paths and commands, which are of no use broken: a word that alone is too wide
/// sticks out.
pub(crate) fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    let width = width.max(LEAST);
    filled(visible(text).split(' '), width, width)
}

/// Pieces of text in lines, a blank between two on the same line: the first line has room for `first`
/// columns of the display, the others for `others`. A piece is never broken: one that alone is too wide
/// sticks out. Never gives no line.
pub fn filled<'a>(
    pieces: impl IntoIterator<Item = &'a str>,
    first: usize,
    others: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for (index, piece) in pieces.into_iter().enumerate() {
        let room = if lines.is_empty() { first } else { others };
        let width = piece.width();
        if columns + usize::from(columns > 0) + width > room && columns > 0 {
            lines.push(std::mem::take(&mut line));
            columns = 0;
        } else if index > 0 && columns > 0 {
            line.push(' ');
            columns += 1;
        }
        line.push_str(piece);
        columns += width;
    }
    lines.push(line);
    lines
}

/// A word in pieces that are not too wide.
fn broken(word: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut columns) = (0, 0);
    for (at, c) in word.char_indices() {
        let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if columns + wide > width {
            pieces.push(&word[from..at]);
            (from, columns) = (at, 0);
        }
        columns += wide;
    }
    pieces.push(&word[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_goes_by_display_width() {
        assert_eq!(wrap("定義 定義 定義", 9), ["定義 定義", "定義"]);
        assert_eq!(wrap("aaaaaaaaaaaa b", 8), ["aaaaaaaa", "aaaa b"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("xx 定義定義定 y", 9), ["xx", "定義定義", "定 y"]);
        assert_eq!(filled(["a", "定義", "b"], 6, 4), ["a 定義", "b"]);
        assert_eq!(
            filled(["aaaaaa", "定義", "b"], 6, 4),
            ["aaaaaa", "定義", "b"]
        );
        assert_eq!(filled([], 6, 4), [""]);
        assert_eq!(
            wrap_whole("at /aaaaaaaaaaaa b", 8),
            ["at", "/aaaaaaaaaaaa", "b"]
        );
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        let mut page = Page::default();
        let mut line = Line::default();
        line.push(Role::Bad, "a\u{1b}[31mb\u{202e}\n");
        page.line(line);
        assert_eq!(page.render(false), "a\\u{1b}[31mb\\u{202e}\\n\n");
    }

    #[test]
    fn blanks_at_the_end_of_a_line_are_dropped() {
        let mut page = Page::default();
        let mut line = Line::default();
        line.push(Role::Plain, "x  ").tab(10);
        page.line(line);
        assert_eq!(page.render(true), "x\n");
    }
}
