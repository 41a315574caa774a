//! A report without what belongs to one machine: for publishing.

use serde_json::Value;

use crate::model::Report;

/// The report with `~` in place of the folder `home`, `$WORKSPACE` in place of the temporary folder
/// that a server worked in, and without references to transcripts, which are not there for others.
/// `home` is an absolute path; nothing is replaced where it is the root.
///
/// # Errors
/// None in practice: what was a report before is one afterwards.
pub fn portable(report: &Report, home: &str) -> Result<Report, serde_json::Error> {
    let mut value = serde_json::to_value(report)?;
    let home = home.trim_end_matches('/');
    if let Some(runs) = value.get_mut("runs").and_then(Value::as_array_mut) {
        for run in runs {
            without_transcript(run);
            let cases = run.get_mut("cases").and_then(Value::as_array_mut);
            cases.into_iter().flatten().for_each(without_transcript);
        }
    }
    shorten(&mut value, &|text| unnamed(text));
    if !home.is_empty() {
        shorten(&mut value, &|text| shortened(text, home));
    }
    serde_json::from_value(value)
}

fn without_transcript(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.remove("transcript");
    }
}

fn shorten(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, change)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| shorten(member, change)),
        _ => {}
    }
}

/// How the name of a temporary workspace begins, and how many letters and digits follow, another
/// sequence each time.
const WORKSPACE: &str = "/dsh-check-";
const RANDOM: usize = 6;

/// The text with `$WORKSPACE` for each absolute path of a temporary workspace.
fn unnamed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WORKSPACE) {
        let (before, named) = (&rest[..at], &rest[at + WORKSPACE.len()..]);
        let random = named.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if random == RANDOM {
            out.push_str(without_folder(before));
            out.push_str("$WORKSPACE");
            rest = &named[random..];
        } else {
            out.push_str(before);
            out.push_str(WORKSPACE);
            rest = named;
        }
    }
    out.push_str(rest);
    out
}

/// The text without the absolute path that it ends with, but with what stands before one in a URI.
fn without_folder(text: &str) -> &str {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '%');
    let path = text.trim_end_matches(part);
    let from = text[path.len()..].find('/').map(|slash| path.len() + slash);
    match from {
        Some(from) if text[from..].starts_with("//") => &text[..from + 2],
        Some(from) => &text[..from],
        None => text,
    }
}

/// The text with `~` for `home` where that is a whole path or the beginning of one.
fn shortened(text: &str, home: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        let (before, behind) = (&rest[..at], &rest[at + home.len()..]);
        short.push_str(before);
        let inside = behind.starts_with(part) || before.ends_with(|c| part(c) || c == '~');
        short.push_str(if inside { home } else { "~" });
        rest = behind;
    }
    short.push_str(rest);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_no_name() {
        for (text, short) in [
            ("/tmp/dsh-check-aB3dE9/src/a.ts", "$WORKSPACE/src/a.ts"),
            ("file:///var/tmp/dsh-check-aB3dE9", "file://$WORKSPACE"),
            (
                "at '/tmp/dsh-check-aB3dE9': in /tmp/dsh-check-zzzzzz.",
                "at '$WORKSPACE': in $WORKSPACE.",
            ),
            ("/dsh-check-aB3dE9/x", "$WORKSPACE/x"),
            ("/tmp/dsh-check-another-name", "/tmp/dsh-check-another-name"),
            ("/tmp/dsh-check-", "/tmp/dsh-check-"),
        ] {
            assert_eq!(unnamed(text), short);
        }
    }

    #[test]
    fn only_the_folder_itself_is_shortened() {
        for (text, short) in [
            ("/home/me/.cache/x --at /home/me", "~/.cache/x --at ~"),
            ("file:///home/me/a", "file://~/a"),
            ("/home/me2/x", "/home/me2/x"),
            ("/srv/home/me/x", "/srv/home/me/x"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(shortened(text, "/home/me"), short);
        }
    }
}
