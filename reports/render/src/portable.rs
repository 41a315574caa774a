//! A report without what belongs to one machine: for publishing.

use serde_json::Value;

use crate::model::Report;

/// The report with `~` in place of the folder `home`, and without references to transcripts, which
/// are not there for others. `home` is an absolute path; nothing is replaced where it is the root.
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
    if !home.is_empty() {
        shorten(&mut value, home);
    }
    serde_json::from_value(value)
}

fn without_transcript(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.remove("transcript");
    }
}

fn shorten(value: &mut Value, home: &str) {
    match value {
        Value::String(text) if text.contains(home) => *text = shortened(text, home),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, home)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| shorten(member, home)),
        _ => {}
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
