//! Templates in the values of a script: `${…}`.
//!
//! A text that is one template and nothing else becomes the template's value, whatever its type;
//! inside a longer text the value's text stands (a string as it is, anything else as JSON).
//! `$${` writes `${`. An array member `{"$times": N, "$value": V}` becomes N members, `${n}`
//! counting from 0.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The most bytes one value may grow to.
pub(crate) const MAX_VALUE: usize = 256 << 20;

/// Where the values of templates come from.
pub(crate) trait Source {
    /// The value of a name that was found valid by [`check_name`].
    fn value(&self, name: &str) -> Option<Value>;
}

/// One part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a text into its parts; an error is the rest from an opening that is never closed.
fn parts(text: &str) -> Result<Vec<Part<'_>>, &str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            parts.push(Part::Text(before));
            parts.push(Part::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        let Some(end) = rest[at..].find('}') else {
            return Err(&rest[at..]);
        };
        parts.push(Part::Text(&rest[..at]));
        parts.push(Part::Name(&rest[at + 2..at + end]));
        rest = &rest[at + end + 1..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    Ok(parts)
}

/// Names that stand alone.
const NAMES: [&str; 12] = [
    "id",
    "method",
    "params",
    "workspace",
    "workspaceUri",
    "text",
    "n",
    "pid",
    "process",
    "argv",
    "cwd",
    "env",
];

/// Says what is wrong with a template's name.
fn check_name(name: &str) -> Result<(), String> {
    if name == "length" || NAMES.contains(&name) {
        return Ok(());
    }
    if name.starts_with("params.") || name.starts_with("uri:") || name.starts_with("env:") {
        return Ok(());
    }
    if let Some(rest) = name.strip_prefix("repeat:") {
        let Some((times, text)) = rest.split_once(':') else {
            return Err(format!("`${{{name}}}` should be `${{repeat:TIMES:TEXT}}`"));
        };
        return match times.parse::<usize>() {
            Ok(times) if times.saturating_mul(text.len()) <= MAX_VALUE => Ok(()),
            Ok(_) => Err(format!(
                "`${{repeat:{times}:…}}` is more than {MAX_VALUE} bytes"
            )),
            Err(_) => Err(format!("`{times}` in `${{repeat:…}}` is not a number")),
        };
    }
    let nearest = NAMES
        .iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, name));
    let hint = nearest.map_or(String::new(), |known| {
        format!("; did you mean `${{{known}}}`?")
    });
    Err(format!(
        "unknown template `${{{name}}}`{hint} (known: {}, params.…, uri:PATH, env:NAME, \
         repeat:TIMES:TEXT; a literal `${{` is written `$${{`)",
        NAMES.join(", ")
    ))
}

/// Checks all templates of a text.
pub(crate) fn check_text(text: &str) -> Result<(), String> {
    let parts = parts(text).map_err(|rest| {
        format!(
            "`{}` has no closing brace",
            rest.chars().take(40).collect::<String>()
        )
    })?;
    parts.iter().try_for_each(|part| match part {
        Part::Text(_) => Ok(()),
        Part::Name(name) => check_name(name),
    })
}

/// Checks all templates of a value.
pub(crate) fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => check_text(text),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(members) => {
            if let Some((times, value)) = repetition(members) {
                if times.is_none() {
                    return Err("`$times` should be a number from 0 to 1000000".to_owned());
                }
                return check_value(value);
            }
            members.values().try_for_each(check_value)
        }
        _ => Ok(()),
    }
}

/// Whether any text of a value has a template whose name `wanted` accepts.
pub(crate) fn uses(value: &Value, wanted: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => text_uses(text, wanted),
        Value::Array(items) => items.iter().any(|item| uses(item, wanted)),
        Value::Object(members) => members.values().any(|member| uses(member, wanted)),
        _ => false,
    }
}

/// Whether a text has a template whose name `wanted` accepts.
pub(crate) fn text_uses(text: &str, wanted: &dyn Fn(&str) -> bool) -> bool {
    text.contains("${")
        && parts(text).is_ok_and(|parts| {
            parts
                .iter()
                .any(|part| matches!(part, Part::Name(n) if wanted(n)))
        })
}

/// `{"$times": N, "$value": V}`.
fn repetition(members: &Map<String, Value>) -> Option<(Option<u64>, &Value)> {
    let (times, value) = (members.get("$times")?, members.get("$value")?);
    Some((times.as_u64().filter(|times| *times <= 1_000_000), value))
}

/// A text with its templates filled in.
pub(crate) fn fill_text<'a>(text: &'a str, source: &dyn Source) -> Cow<'a, str> {
    if !text.contains("${") {
        return Cow::Borrowed(text);
    }
    let Ok(parts) = parts(text) else {
        return Cow::Borrowed(text);
    };
    let mut filled = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Name(name) => match value_of(name, source) {
                Value::String(text) => filled.push_str(&text),
                value => filled.push_str(&value.to_string()),
            },
        }
    }
    Cow::Owned(filled)
}

/// A value with its templates filled in.
pub(crate) fn fill(value: &Value, source: &dyn Source) -> Value {
    match value {
        Value::String(text) => match parts(text).as_deref() {
            Ok([Part::Name(name)]) => value_of(name, source),
            _ => Value::String(fill_text(text, source).into_owned()),
        },
        Value::Array(items) => {
            let mut filled = Vec::with_capacity(items.len());
            for item in items {
                match item.as_object().and_then(repetition) {
                    Some((Some(times), value)) => {
                        filled.extend((0..times).map(|n| fill(value, &Counted { source, n })));
                    }
                    _ => filled.push(fill(item, source)),
                }
            }
            Value::Array(filled)
        }
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (fill_text(name, source).into_owned(), fill(value, source)))
                .collect(),
        ),
        _ => value.clone(),
    }
}

fn value_of(name: &str, source: &dyn Source) -> Value {
    if let Some((times, text)) = name
        .strip_prefix("repeat:")
        .and_then(|rest| rest.split_once(':'))
    {
        return Value::String(text.repeat(times.parse().unwrap_or(0)));
    }
    source.value(name).unwrap_or(Value::Null)
}

/// A source in which `${n}` has a value.
pub(crate) struct Counted<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) n: u64,
}

impl Source for Counted<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        if name == "n" {
            Some(self.n.into())
        } else {
            self.source.value(name)
        }
    }
}

/// The member of `value` at a dotted path, array places as numbers.
pub(crate) fn member<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    })
}

/// Whether `value` contains `wanted`, as [`Rule::when`](super::Rule::when) means it: members of
/// objects are compared where they are wanted, arrays member by member, anything else whole.
pub fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| value.get(name).is_some_and(|value| contains(value, wanted))),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len() && value.iter().zip(wanted).all(|(v, w)| contains(v, w))
        }
        _ => value == wanted,
    }
}

/// Merges `patch` over `target`: objects member by member, null removes, anything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (name, patch) in patch {
        if patch.is_null() {
            target.shift_remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), patch);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Fixed;

    impl Source for Fixed {
        fn value(&self, name: &str) -> Option<Value> {
            match name {
                "id" => Some(json!(7)),
                "workspace" => Some(json!("/w")),
                "params" => Some(json!({"a": [1, 2]})),
                _ => None,
            }
        }
    }

    #[test]
    fn a_lone_template_keeps_its_type_and_a_text_takes_its_text() {
        let value = json!({"a": "${id}", "b": "id ${id} in ${workspace}!", "c": ["${params}"]});
        let filled = json!({"a": 7, "b": "id 7 in /w!", "c": [{"a": [1, 2]}]});
        assert_eq!(fill(&value, &Fixed), filled);
        assert_eq!(fill(&json!("$${id} ${gone}"), &Fixed), json!("${id} null"));
    }

    #[test]
    fn repetitions_count_up() {
        let value = json!([{"$times": 3, "$value": {"n": "${n}", "s": "x${n}"}}, "${repeat:3:ab}"]);
        let n = |n: u64| json!({"n": n, "s": format!("x{n}")});
        assert_eq!(fill(&value, &Fixed), json!([n(0), n(1), n(2), "ababab"]));
    }

    #[test]
    fn wrong_templates_are_named() {
        for (text, expected) in [
            ("${workspce}", "did you mean `${workspace}`"),
            ("${id", "no closing brace"),
            ("${repeat:x:a}", "not a number"),
            ("${repeat:3}", "should be"),
            ("${repeat:999999999:aaaa}", "more than"),
        ] {
            let error = check_text(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(check_value(&json!([{"$times": -1, "$value": 1}])).is_err());
        assert_eq!(
            check_value(&json!({"a": ["${uri:a b.ts}", "$${x"]})),
            Ok(())
        );
    }

    #[test]
    fn a_subset_is_found_in_objects_and_arrays() {
        let value = json!({"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}]});
        assert!(contains(&value, &json!({"a": {"b": 1}})));
        assert!(contains(&value, &json!({"d": [{"e": 1}]})));
        assert!(!contains(&value, &json!({"d": []})));
        assert!(!contains(&value, &json!({"a": {"b": null}})));
        assert!(!contains(&value, &json!({"a": {"x": 1}})));
    }

    #[test]
    fn merging_removes_with_null() {
        let mut value = json!({"a": {"b": 1}, "c": true});
        merge(
            &mut value,
            &json!({"a": {"d": false}, "c": null, "e": {"f": null}}),
        );
        assert_eq!(value, json!({"a": {"b": 1, "d": false}, "e": {}}));
    }
}
