//! Text for people, in lines that a terminal has room for.

use dsh_reports::filled;
use unicode_width::UnicodeWidthStr as _;

/// The columns that a line may have.
pub(crate) const WIDTH: usize = 80;

/// Writes `content` behind what is on the line already, going on at `indent`.
pub(crate) fn hanging(text: &mut String, indent: usize, content: &str) {
    let room = WIDTH.saturating_sub(indent);
    let lines = filled(content.split_whitespace(), room, room);
    text.push_str(&lines.join(&format!("\n{}", " ".repeat(indent))));
    text.push('\n');
}

/// Writes a paragraph that is indented as a whole.
pub(crate) fn paragraph(text: &mut String, indent: usize, content: &str) {
    text.push_str(&" ".repeat(indent));
    hanging(text, indent, content);
}

/// The longest text in quotation marks that is kept in one piece.
const QUOTED: usize = 60;

/// Breaks lines that are too long at blanks, going on at two columns. What is copied stays whole,
/// also where that makes a line too long: a command of this program, what stands in backticks or in
/// quotation marks, a path. Lines that are indented already are left alone.
pub(crate) fn wrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if line.starts_with(' ') || line.width() <= WIDTH {
            out.push_str(line);
        } else {
            out.push_str(&filled(units(line), WIDTH, WIDTH - 2).join("\n  "));
        }
    }
    out
}

/// The line in pieces that are not broken, as they stand between its blanks.
fn units(line: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let word = rest.find(' ').unwrap_or(rest.len());
        let whole = unit_length(rest, word);
        units.push(&rest[..whole]);
        rest = rest[whole..].trim_start();
    }
    units
}

/// How long the piece is that begins with a word of `word` bytes.
fn unit_length(text: &str, word: usize) -> usize {
    let first = &text[..word];
    let blank_after = |at: usize| text[at..].find(' ').map_or(text.len(), |blank| at + blank);
    for mark in ['`', '"'] {
        let opened = first.matches(mark).count() % 2 == 1;
        if let (true, Some(closed)) = (opened, text[word..].find(mark)) {
            let length = blank_after(word + closed);
            if mark == '`' || length <= QUOTED {
                return length;
            }
        }
    }
    if first != "dsh-conform" {
        return word;
    }
    // The command goes on up to the end of its sentence or the part of it.
    let mut end = word;
    while end < text.len() && !text[..end].ends_with([',', ';', ':', '.', ')']) {
        end = blank_after(end + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_and_what_is_indented_is_left_alone() {
        let text = "error: short\n    an excerpt of a file that is longer than a line may be, and \
                    shown as it stands there";
        assert_eq!(wrapped(text), text);
        assert_eq!(wrapped("a\n\n"), "a\n\n");
    }

    #[test]
    fn long_lines_are_broken_at_blanks_and_nothing_is_lost() {
        let text = "error: one two three four five six seven eight nine ten eleven twelve thirteen \
                    fourteen fifteen";
        let broken = wrapped(text);
        assert!(broken.lines().all(|line| line.len() <= WIDTH), "{broken}");
        assert_eq!(broken.replace("\n  ", " "), text);
        let path = format!("report: /{}", "x".repeat(90));
        assert_eq!(wrapped(&path), path.replace(' ', "\n  "));
    }

    #[test]
    fn what_is_copied_stays_in_one_piece() {
        let text = "error: what was asked for is not here, and so nothing is selected; see \
                    dsh-conform list probes --format json, or `dsh-conform explain QUA-1`, or \
                    \"a file.txt\" there";
        let broken = wrapped(text);
        for whole in [
            "dsh-conform list probes --format json,",
            "`dsh-conform explain QUA-1`,",
            "\"a file.txt\"",
        ] {
            assert!(broken.contains(whole), "{broken}");
        }
        assert!(broken.lines().all(|line| line.len() <= WIDTH), "{broken}");
        // A character may take two columns.
        let wide = wrapped(&format!("error: {}", "定義 ".repeat(40)));
        assert!(wide.lines().all(|line| line.width() <= WIDTH), "{wide}");
        // A mark that is never closed keeps nothing together.
        let open = format!("error: \" {}", "word ".repeat(30));
        assert!(wrapped(&open).lines().all(|line| line.len() <= WIDTH));
    }
}
