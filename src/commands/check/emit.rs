//! The deployment that makes the servers work that were checked.

use dsh_e2e::{TOOL_TIMEOUT_MS, deployment_rows};
use dsh_reports::Report;
use serde_json::{Map, Value};

use crate::output::complain;

/// The rows of a deployment with every server that can be mounted so that it works, as YAML; none
/// where there is no such server. Those that are left out are told on stderr, with the reason.
pub(super) fn deployment(report: &Report) -> Option<String> {
    let mut servers = Map::new();
    let mut timeout_ms = TOOL_TIMEOUT_MS;
    let mut comments = Vec::new();
    for run in &report.runs {
        let name = &run.subject.name;
        let Some(remedy) = &run.remedy else {
            complain(&format!("{name}: {}", run.conclusion));
            continue;
        };
        let version = run.subject.version.as_deref().unwrap_or("of no version");
        comments.push(format!("# {name} {version}: {}", run.conclusion));
        for setting in remedy.needed() {
            comments.push(format!("#   {}, against {}", setting.name, setting.against));
        }
        timeout_ms = timeout_ms.max(remedy.timeout_ms.unwrap_or_default());
        servers.insert(name.clone(), remedy.row.clone());
    }
    if servers.is_empty() {
        return None;
    }
    let rows = deployment_rows(&servers, Some(timeout_ms));
    let mut text = String::new();
    for comment in comments {
        // What a server said may have line ends in it.
        text.push_str(&comment.replace(|c: char| c.is_control(), " "));
        text.push('\n');
    }
    text.push_str(&yaml(&rows));
    Some(text)
}

/// YAML in blocks. Strings are quoted as JSON does, which YAML reads alike, unless they are plain
/// words.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                text.push_str(&margin);
                text.push_str("- ");
                text.push_str(inner.trim_start_matches(' '));
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                text.push_str(&margin);
                text.push_str(&scalar(&Value::from(key.as_str())));
                text.push(':');
                if is_flow(value) {
                    text.push(' ');
                    text.push_str(&scalar(value));
                    text.push('\n');
                } else {
                    text.push('\n');
                    block(value, indent + 2, text);
                }
            }
        }
        other => {
            text.push_str(&margin);
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
}

/// Whether a value stands on the line of its key.
fn is_flow(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_array() && !item.is_object()),
        Value::Object(members) => members.is_empty(),
        _ => true,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// Whether a string needs no quotes in YAML: a word or a path that is no number and no constant.
fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let begins = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '.');
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    let is_word = |word: &str| text.eq_ignore_ascii_case(word);
    let is_constant = [
        "true", "false", "null", "yes", "no", "on", "off", "y", "n", ".inf", ".nan",
    ]
    .into_iter()
    .any(is_word);
    let is_number = text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_digit());
    begins && chars.all(goes_on) && !is_constant && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_read_back_as_they_were() {
        let value = json!([
            {"name": "@deepseek-ai/dsh-lsp"},
            {"name": "x", "config": {"servers": {"a b": {
                "command": "/bin/x y",
                "args": ["--stdio", "no", "1e3", "a: b", "#c"],
                "extensionToLanguage": {".1": "x", ".foo": "foo"},
                "initializationOptions": {"deep": [{"a": [[1], 2.5, null]}, {}], "empty": {}, "list": []},
                "configuration": {},
                "announceConfiguration": true,
                "text": "two\nlines ünd \u{2028} tabs\t",
            }}, "timeoutMs": 60000}},
        ]);
        let text = yaml(&value);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, value, "{text}");
    }

    #[test]
    fn a_row_is_written_as_people_write_it() {
        let text = yaml(&json!([{"name": "@a/b", "config": {"servers": {"x": {
            "command": "/usr/bin/x",
            "args": ["start"],
            "extensionToLanguage": {".x": "x"},
            "announceConfiguration": true,
        }}}}]));
        let expected = "\
- name: \"@a/b\"
  config:
    servers:
      x:
        command: /usr/bin/x
        args: [start]
        extensionToLanguage:
          .x: x
        announceConfiguration: true
";
        assert_eq!(text, expected);
    }
}
