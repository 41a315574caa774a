//! INI-2 to INI-6: what client and server tell each other of themselves.

use serde_json::{Map, Value, json};

use super::session::{Message, Session, Step};
use super::{Sink, brief, broken};
use crate::format::Who;

/// INI-2, INI-3, INI-4.
pub(super) fn announcement(_: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    let Some((Who::Client, Message::Request(_, "initialize"))) = step.message() else {
        return;
    };
    let Some(Value::Object(params)) = step.params() else {
        return;
    };
    for clause in ["INI-2", "INI-3", "INI-4"] {
        sink.saw(clause);
    }
    workspace(params, sink);
    capabilities(params, sink);
    if params.get("initializationOptions") == Some(&Value::Null) {
        let message = "initializationOptions is null";
        let expected = "no such member where nothing is configured";
        let said = broken(message, expected, "null").by_policy(true);
        sink.broken("INI-4", Who::Client, said);
    }
}

fn workspace(params: &Map<String, Value>, sink: &mut Sink<'_>) {
    let mut found = |message: &str, expected, got: Option<&Value>| {
        let got = got.map_or_else(|| "no such member".to_owned(), ToString::to_string);
        sink.broken("INI-2", Who::Client, broken(message, expected, brief(&got)));
    };
    let process = params.get("processId");
    if process != Some(&Value::Null) {
        found("processId is not null", "processId null", process);
    }
    let root = params.get("rootUri");
    let is_file = root
        .and_then(Value::as_str)
        .is_some_and(|uri| uri.starts_with("file:///"));
    if !is_file {
        found(
            "rootUri is no URI of a folder",
            "rootUri is the workspace's file: URI",
            root,
        );
        return;
    }
    let folders = params.get("workspaceFolders");
    let only = folders
        .and_then(Value::as_array)
        .filter(|all| all.len() == 1);
    if only.and_then(|all| all[0].get("uri")) != root {
        found(
            "workspaceFolders is not the one folder that rootUri names",
            "one entry, whose uri is rootUri",
            folders,
        );
    }
}

fn capabilities(params: &Map<String, Value>, sink: &mut Sink<'_>) {
    let claimed = params.get("capabilities").cloned().unwrap_or_default();
    let claimed = without_denials(&claimed).unwrap_or_else(|| json!({}));
    let wanted = json!({
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {"workspaceFolders": true, "configuration": true},
        "textDocument": {
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "definition": {"linkSupport": true},
            "implementation": {"linkSupport": true},
        },
    });
    let mut differences = Vec::new();
    differ("", &wanted, &claimed, &mut differences);
    for (place, got) in differences {
        let message = format!("capabilities{place} is not what a transient client claims");
        let expected = "positionEncodings [utf-16], workspaceFolders, configuration, hover formats \
                        [markdown, plaintext], linkSupport of definition and implementation, and \
                        nothing else";
        sink.broken("INI-3", Who::Client, broken(message, expected, brief(&got)));
    }
}

/// The value without members that say no: false, null, and objects with nothing else in them.
fn without_denials(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Object(members) => {
            let kept: Map<String, Value> = members
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), without_denials(value)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other.clone()),
    }
}

/// The places where `got` is not `wanted`, in order, and what is there.
fn differ(place: &str, wanted: &Value, got: &Value, all: &mut Vec<(String, String)>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (key, value) in wanted {
                let place = format!("{place}.{key}");
                match got.get(key) {
                    Some(other) => differ(&place, value, other, all),
                    None => all.push((place, "no such member".to_owned())),
                }
            }
            for (key, value) in got.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                all.push((format!("{place}.{}", brief(key)), value.to_string()));
            }
        }
        _ if wanted == got => {}
        _ => all.push((place.to_owned(), got.to_string())),
    }
}

/// INI-5, INI-6.
pub(super) fn servers_word(session: &Session, step: &Step<'_>, sink: &mut Sink<'_>) {
    if !session.in_order() {
        return;
    }
    if step
        .answers
        .as_ref()
        .is_some_and(|(m, _)| m == "initialize")
        && let Some((Who::Server, _)) = step.message()
    {
        sink.saw("INI-5");
        if let Some(encoding) = step.at("/result/capabilities/positionEncoding")
            && is_foreign_encoding(encoding)
        {
            let message = "the server counts positions in another encoding than was offered";
            let expected = "positionEncoding utf-16, or none";
            let got = brief(&encoding.to_string());
            sink.broken("INI-5", Who::Server, broken(message, expected, got));
        }
        return;
    }
    let Some((method, id)) = step.client_says() else {
        return;
    };
    if method == "textDocument/didOpen"
        && let Some(encoding) = session.offer.capabilities.get("positionEncoding")
        && is_foreign_encoding(encoding)
    {
        let message = "didOpen to a server that does not count in UTF-16";
        let expected = "the end of the process";
        let got = brief(&encoding.to_string());
        sink.broken("INI-5", Who::Client, broken(message, expected, got));
    }
    if let Some(provider) = provider(method).filter(|_| id.is_some() && session.offer.known) {
        sink.saw("INI-6");
        let offered = session.offer.capabilities.get(provider);
        if !matches!(offered, Some(Value::Bool(true) | Value::Object(_))) {
            let message = format!("{method} to a server that does not offer it");
            let expected = "only what the initialize result offers";
            let got = offered.map_or_else(|| format!("no {provider}"), ToString::to_string);
            sink.broken("INI-6", Who::Client, broken(message, expected, brief(&got)));
        }
    }
}

fn is_foreign_encoding(encoding: &Value) -> bool {
    !encoding.is_null() && encoding != "utf-16"
}

fn provider(method: &str) -> Option<&'static str> {
    Some(match method {
        "textDocument/definition" => "definitionProvider",
        "textDocument/references" => "referencesProvider",
        "textDocument/implementation" => "implementationProvider",
        "textDocument/hover" => "hoverProvider",
        _ => return None,
    })
}
