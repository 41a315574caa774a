//! What the model reads (RUN-8, RUN-9).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// One-based.
    pub number: u64,
    /// Without its line end.
    pub text: String,
}

/// The canonical value of a `read` (RUN-8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadValue {
    /// The file, absolute.
    pub path: String,
    /// The first line that was asked for, one-based.
    pub offset: u64,
    /// The lines that are shown, in order and without gaps.
    pub lines: Vec<Line>,
    /// How many lines the file has.
    pub total_lines: u64,
}

/// The canonical value of a `write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteValue {
    pub(crate) path: String,
    /// How many were written.
    pub(crate) bytes: u64,
    /// Whether there was no file before.
    pub(crate) created: bool,
}

/// The canonical value of an `edit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditValue {
    pub(crate) path: String,
    /// How many places were replaced.
    pub(crate) replacements: u64,
    /// The lines on which the first of them begin now, one-based.
    pub(crate) lines: Vec<u64>,
}

/// The envelope of a `read` that was asked for at most `limit` lines.
pub(crate) fn read(value: &ReadValue, limit: u64) -> String {
    let path = shown(&value.path);
    let mut text = format!("<path>{path}</path>\n<type>file</type>\n<content>\n");
    for Line { number, text: line } in &value.lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number}: {line}");
    }
    let _ = write!(text, "\n{}\n</content>", footer(value, limit));
    text
}

fn footer(value: &ReadValue, limit: u64) -> String {
    let total = value.total_lines;
    let Some((first, last)) = value.lines.first().zip(value.lines.last()) else {
        return format!("(End of file. Total lines: {total}.)");
    };
    let (first, last) = (first.number, last.number);
    if last >= total {
        return format!("(End of file. Total lines: {total}.)");
    }
    let next = last.saturating_add(1);
    let shown = format!("Showing lines {first}-{last} of {total}. Use offset={next} to continue.");
    if (value.lines.len() as u64) < limit {
        format!("(Output capped by its size. {shown})")
    } else {
        format!("({shown})")
    }
}

/// A path as it stands in an answer: on one line, and closing no tag of the envelope. Only a name that
/// holds such things is written in another way than it is.
fn shown(path: &str) -> String {
    let mut shown = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            shown.extend(c.escape_default());
        } else if c == '/' && shown.trim_end().ends_with('<') && names_a_tag(&path[at + 1..]) {
            shown.push_str(r"\/");
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether what follows `</` is a tag of the envelope, in any case and with blanks in it.
fn names_a_tag(rest: &str) -> bool {
    let rest = rest.trim_start();
    ["path", "type", "content"].into_iter().any(|tag| {
        rest.get(..tag.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(tag))
    })
}

pub(crate) fn write(value: &WriteValue) -> String {
    let WriteValue {
        path,
        bytes,
        created,
    } = value;
    let path = shown(path);
    let count = counted(*bytes, "byte", "bytes");
    if *created {
        format!("Created {path} with {count}.")
    } else {
        format!("Replaced {path}; it has {count} now.")
    }
}

pub(crate) fn edit(value: &EditValue) -> String {
    let count = counted(value.replacements, "place", "places");
    let lines = listed(&value.lines, value.replacements);
    format!("Edited {} in {count}, now at {lines}.", shown(&value.path))
}

/// `line 3`, or `lines 3, 7 and 12 more`: the first places, of `count` in all.
pub(crate) fn listed(lines: &[u64], count: u64) -> String {
    let mut text = if count == 1 { "line " } else { "lines " }.to_owned();
    for (index, line) in lines.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{line}");
    }
    let more = count.saturating_sub(lines.len() as u64);
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(numbers: std::ops::RangeInclusive<u64>, total_lines: u64) -> ReadValue {
        ReadValue {
            path: "/w/README.md".to_owned(),
            offset: *numbers.start(),
            lines: numbers
                .map(|number| Line {
                    number,
                    text: if number % 2 == 0 { "" } else { "text" }.to_owned(),
                })
                .collect(),
            total_lines,
        }
    }

    /// RUN-8: the envelope, letter by letter; an empty line keeps its colon and blank.
    #[test]
    fn the_envelope_has_the_lines_an_empty_line_and_the_footer() {
        assert_eq!(
            read(&value(1..=2, 75), 2),
            "<path>/w/README.md</path>\n<type>file</type>\n<content>\n1: text\n2: \n\n\
             (Showing lines 1-2 of 75. Use offset=3 to continue.)\n</content>"
        );
    }

    /// RUN-8: a name cannot end the envelope, nor begin a line in it.
    #[test]
    fn a_path_stays_on_its_line_and_in_its_tag() {
        for (path, expected) in [
            ("/w/é 日 <a>.txt", "/w/é 日 <a>.txt"),
            ("/w/a<b/c", "/w/a<b/c"),
            ("/w/a\nb\r\tc", r"/w/a\nb\r\tc"),
            (
                "/w/\u{1b}[31m\u{2028}\u{85}",
                r"/w/\u{1b}[31m\u{2028}\u{85}",
            ),
            ("/w/x</path>", r"/w/x<\/path>"),
            ("/w/x< / PaTh >", r"/w/x< \/ PaTh >"),
            ("/w/x</content></type>", r"/w/x<\/content><\/type>"),
            ("/w/a<\n/path>", r"/w/a<\n/path>"),
            ("/w/a</pa", "/w/a</pa"),
            ("<", "<"),
            ("/w/<///path>", r"/w/<///path>"),
        ] {
            let value = ReadValue {
                path: path.to_owned(),
                ..value(1..=1, 1)
            };
            let text = read(&value, 1);
            assert_eq!(
                text.lines().next(),
                Some(&*format!("<path>{expected}</path>"))
            );
            assert_eq!(
                text.matches("</").count(),
                3 + expected.matches("</").count()
            );
            let edited = edit(&EditValue {
                path: path.to_owned(),
                replacements: 1,
                lines: vec![1],
            });
            assert_eq!(
                edited,
                format!("Edited {expected} in 1 place, now at line 1.")
            );
            let written = WriteValue {
                path: path.to_owned(),
                bytes: 1,
                created: true,
            };
            assert_eq!(write(&written), format!("Created {expected} with 1 byte."));
        }
    }

    /// RUN-8
    #[test]
    fn the_footer_says_why_the_lines_end() {
        for (value, limit, expected) in [
            (
                value(1..=10, 75),
                10,
                "(Showing lines 1-10 of 75. Use offset=11 to continue.)",
            ),
            (
                value(1..=10, 75),
                2000,
                "(Output capped by its size. Showing lines 1-10 of 75. Use offset=11 to continue.)",
            ),
            (value(70..=75, 75), 6, "(End of file. Total lines: 75.)"),
            (value(70..=75, 75), 2000, "(End of file. Total lines: 75.)"),
            (
                ReadValue {
                    lines: Vec::new(),
                    ..value(1..=1, 0)
                },
                2000,
                "(End of file. Total lines: 0.)",
            ),
        ] {
            assert_eq!(footer(&value, limit), expected);
        }
    }

    /// RUN-9
    #[test]
    fn what_was_written_is_said_in_one_line() {
        let written = |bytes, created| {
            write(&WriteValue {
                path: "/w/a".to_owned(),
                bytes,
                created,
            })
        };
        assert_eq!(written(1, true), "Created /w/a with 1 byte.");
        assert_eq!(written(20, false), "Replaced /w/a; it has 20 bytes now.");
        let edited = |replacements, lines: &[u64]| {
            edit(&EditValue {
                path: "/w/a".to_owned(),
                replacements,
                lines: lines.to_vec(),
            })
        };
        assert_eq!(edited(1, &[3]), "Edited /w/a in 1 place, now at line 3.");
        assert_eq!(
            edited(14, &[3, 7]),
            "Edited /w/a in 14 places, now at lines 3, 7 and 12 more."
        );
    }
}
