//! What tools are called in a script, and how they are told to the model. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dsh_tools::ToolSchema;
use serde::Serialize;
use serde_json::Value;

/// A tool in a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mounted {
    /// As which property of `tools` it is found.
    pub(crate) id: String,
    /// The tool's own name.
    pub(crate) name: String,
}

/// Every tool but `except`, by name. A character that no identifier has is `_`, and so is one put
/// before a digit; of tools that would be called the same, one whose name needs no change keeps it,
/// and the others get a number.
pub(crate) fn mount(tools: &[ToolSchema], except: &str) -> Vec<Mounted> {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.retain(|name| *name != except);
    names.sort_unstable();
    let mut taken: BTreeSet<String> = names
        .iter()
        .filter(|name| identifier(name) == **name)
        .map(|name| (*name).to_owned())
        .collect();
    let mounted = names.into_iter().map(|name| {
        let wanted = identifier(name);
        let mut id = wanted.clone();
        if wanted != name {
            let mut number = 2_u64;
            while !taken.insert(id.clone()) {
                id = format!("{wanted}_{number}");
                number += 1;
            }
        }
        Mounted {
            id,
            name: name.to_owned(),
        }
    });
    mounted.collect()
}

fn identifier(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '_'
        }
    };
    let mut id: String = name.chars().map(plain).collect();
    if id.starts_with(|c: char| c.is_ascii_digit()) {
        id.insert(0, '_');
    }
    id
}

/// How the tool is called, for the model: `tools.read({ file_path: string, limit?: number })`.
pub(crate) fn signature(mounted: &Mounted, tool: &ToolSchema) -> String {
    format!("tools.{}({})", mounted.id, shape(&tool.parameters, 3))
}

/// A schema in the notation of TypeScript, roughly: deeper levels and rare keywords are `any`. The
/// schema itself is in the model's list of tools.
fn shape(schema: &Value, depth: usize) -> String {
    if depth == 0 {
        return "any".to_owned();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join(" | ");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    match schema.get("type") {
        Some(Value::String(name)) => typed(name, schema, depth),
        Some(Value::Array(names)) => {
            let types: Vec<String> = names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| typed(name, schema, depth))
                .collect();
            types.join(" | ")
        }
        _ => "any".to_owned(),
    }
}

fn typed(name: &str, schema: &Value, depth: usize) -> String {
    match name {
        "integer" => "number".to_owned(),
        "array" => {
            let items = schema.get("items");
            let items = items.map_or_else(|| "any".to_owned(), |items| shape(items, depth - 1));
            format!("Array<{items}>")
        }
        "object" => object(schema, depth),
        other => other.to_owned(),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "object".to_owned();
    };
    if properties.is_empty() {
        return "{}".to_owned();
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut text = String::from("{ ");
    for (at, (name, property)) in properties.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let key = if identifier(name) == *name {
            name.clone()
        } else {
            Value::from(name.as_str()).to_string()
        };
        let optional = if required.contains(&name.as_str()) {
            ""
        } else {
            "?"
        };
        let shape = shape(property, depth - 1);
        // A string takes whatever is written.
        let _ = write!(text, "{comma}{key}{optional}: {shape}");
    }
    text.push_str(" }");
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, parameters: Value) -> ToolSchema {
        ToolSchema {
            name: name.to_owned(),
            description: "d".to_owned(),
            parameters,
        }
    }

    fn ids(names: &[&str]) -> Vec<(String, String)> {
        let tools: Vec<_> = names.iter().map(|name| tool(name, json!({}))).collect();
        let mounted = mount(&tools, "run_code").into_iter();
        mounted.map(|mounted| (mounted.name, mounted.id)).collect()
    }

    #[track_caller]
    fn check(names: &[&str], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, id)| ((*name).to_owned(), (*id).to_owned()))
            .collect();
        assert_eq!(ids(names), expected);
    }

    /// RUN-15: every tool but the script's own.
    #[test]
    fn names_become_identifiers_that_differ() {
        check(
            &["read", "run_code", "web-search", "3d"],
            &[
                ("3d", "_3d"),
                ("read", "read"),
                ("web-search", "web_search"),
            ],
        );
        check(
            &["a_b", "a-b", "a_b_2"],
            &[("a-b", "a_b_3"), ("a_b", "a_b"), ("a_b_2", "a_b_2")],
        );
        check(&["-", "--", "_"], &[("-", "__2"), ("--", "__"), ("_", "_")]);
        check(&[], &[]);
    }

    proptest! {
        #[test]
        fn no_two_tools_have_one_identifier(
            names in proptest::collection::btree_set("[a1_-]{1,4}", 0..20)
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = ids(&names);
            let distinct: BTreeSet<_> = found.iter().map(|(_, id)| id).collect();
            prop_assert_eq!(distinct.len(), names.len());
            for (name, id) in &found {
                prop_assert!(identifier(id) == *id, "{}", id);
                prop_assert!(identifier(name) != *name || id == name, "{} {}", name, id);
            }
        }
    }

    #[track_caller]
    fn check_signature(parameters: Value, expected: &str) {
        let tool = tool("t", parameters);
        let mounted = mount(std::slice::from_ref(&tool), "");
        assert_eq!(signature(&mounted[0], &tool), expected);
    }

    #[test]
    fn a_signature_tells_the_arguments() {
        check_signature(
            json!({
                "type": "object",
                "properties": {
                    "file_path": { "type": "string" },
                    "limit": { "type": "integer" },
                    "mode": { "enum": ["a", 1] },
                    "a-b": { "type": ["string", "null"] },
                    "list": { "type": "array", "items": { "type": "object", "properties": {
                        "deep": { "type": "object", "properties": { "x": { "type": "string" } } },
                    } } },
                    "any": {},
                    "k": { "const": true },
                },
                "required": ["file_path"],
            }),
            "tools.t({ file_path: string, limit?: number, mode?: \"a\" | 1, \
             \"a-b\"?: string | null, list?: Array<{ deep?: any }>, any?: any, k?: true })",
        );
        check_signature(json!({ "type": "object" }), "tools.t(object)");
        check_signature(json!({ "type": "object", "properties": {} }), "tools.t({})");
        check_signature(json!({ "type": 5, "enum": 7 }), "tools.t(any)");
    }
}
