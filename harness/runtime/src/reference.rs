//! The reference of all rows and keys, generated from the types that read them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::row::{PluginName, resolve};

/// Every row and key of a deployment file, as Markdown. Committed as `CONFIG.md`; a test holds it
/// current.
pub fn config_reference() -> String {
    let mut text = String::from(INTRODUCTION);
    for plugin in PluginName::ALL {
        let _ = write!(text, "\n## `{plugin}`\n\n{}\n", plugin.about());
        match plugin.config_schema() {
            None => text.push_str("\nNo configuration.\n"),
            Some(schema) => {
                text.push_str("\n| key | type | default | meaning |\n|---|---|---|---|\n");
                keys(&mut text, &schema, &schema, "");
            }
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Deployment file: rows and keys

Generated from the types in the code by

    cargo run -p dsh-harness --example config-reference > harness/runtime/CONFIG.md

A deployment is a YAML list of rows. Each row has the key `name`, and may have `config` (the keys
below) and `id` (unique in the file). A plugin is named in any of three ways: `dsh-lsp`,
`deepseek-ai/dsh-lsp`, or `\"@deepseek-ai/dsh-lsp\"`, which YAML wants in quotes. Tools, the system
prompt, sessions and the timeout policy belong to the base and need no row. Keys that are not listed
here are an error.
";

/// One line for each key, tables below their own.
fn keys(text: &mut String, root: &Value, schema: &Value, prefix: &str) {
    let schema = resolve(root, schema);
    let required = |key: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == key))
    };
    for (key, of) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        let default = match of.get("default") {
            Some(default) => format!("`{default}`"),
            None if required(key) => "required".to_owned(),
            None => String::new(),
        };
        let target = resolve(root, of);
        let about = of.get("description").or_else(|| target.get("description"));
        let about = about
            .and_then(Value::as_str)
            .map(one_line)
            .unwrap_or_default();
        let kind = kind(root, of);
        let _ = writeln!(text, "| `{path}` | {kind} | {default} | {about} |");
        keys(text, root, of, &format!("{path}."));
        if let Some(each) = target
            .get("additionalProperties")
            .filter(|each| each.is_object())
        {
            keys(text, root, each, &format!("{path}.<id>."));
        }
    }
}

/// The type of a value in words.
pub(crate) fn kind(root: &Value, schema: &Value) -> String {
    let schema = resolve(root, schema);
    if let Some(all) = choices(schema) {
        return all.join(" or ");
    }
    let range = range(schema);
    match schema["type"].as_str() {
        Some("array") => format!("list of {}s", kind(root, &schema["items"])),
        Some("object") => match schema.get("additionalProperties") {
            Some(each) if each.is_object() => match resolve(root, each)["type"].as_str() {
                Some("string") => "table of strings".to_owned(),
                _ => "table of tables".to_owned(),
            },
            _ => "table".to_owned(),
        },
        Some(name) => format!("{name}{range}"),
        None => "any".to_owned(),
    }
}

/// The values of an enumeration.
fn choices(schema: &Value) -> Option<Vec<String>> {
    let shown = |value: &Value| format!("`{}`", value.as_str().unwrap_or_default());
    if let Some(all) = schema["enum"].as_array() {
        return Some(all.iter().map(shown).collect());
    }
    let all = schema["oneOf"].as_array()?;
    all.iter().map(|one| one.get("const").map(shown)).collect()
}

fn range(schema: &Value) -> String {
    match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) => format!(", at least {min}"),
        (None, Some(max)) => format!(", at most {max}"),
        (None, None) => String::new(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}
