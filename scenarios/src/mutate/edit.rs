//! Changes of JSON, as data.
//!
//! Places are JSON pointers. In a pointer `*` stands for every member of an object or array, and
//! `-` as the last part for the place behind an array's last element. What a change does not find,
//! it leaves as it is.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::Messages;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Pointer → the value that is there from then on. The last part may be new.
    Set(IndexMap<String, Value>),
    /// What stands at these pointers goes.
    Remove(Vec<String>),
    /// Pointer → what is added to the number there.
    Add(IndexMap<String, i64>),
    /// Pointer → pointer of which the value is copied there.
    Copy(IndexMap<String, String>),
    /// The values of two pointers are exchanged, below every place `at`.
    Swap(Swap),
    /// Pointer → what stands behind the text there.
    Append(IndexMap<String, String>),
    /// Pointer → what stands before the text there.
    Prepend(IndexMap<String, String>),
    /// Pointer → which part of the text there is another.
    Replace(IndexMap<String, Replacement>),
    /// The arrays there, or the lines of the texts there, in the opposite order.
    Reverse(Vec<String>),
    /// Pointer → how many elements of the array, or UTF-16 code units of the text, are left.
    Keep(IndexMap<String, usize>),
    /// Pointer → how many elements are dropped from the front of the array, or lines of the text.
    Skip(IndexMap<String, usize>),
    /// The first element of the arrays there, a second time at their ends.
    Repeat(Vec<String>),
    /// Pointer → the member's other name.
    Rename(IndexMap<String, String>),
    /// The percent-encoding of the texts there is undone.
    Decode(Vec<String>),
    /// The values there become texts.
    Stringify(Vec<String>),
    /// White space at the ends of the texts there, and of their lines, goes.
    Trim(Vec<String>),
    /// Pointer → pointer of an object whose members are put into the one there.
    Merge(IndexMap<String, String>),
    /// Messages of a turn's requests.
    Messages(Box<Messages>),
}

/// See [`Edit::Swap`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// Below these.
    pub at: String,
    /// One of them.
    pub one: String,
    /// The other.
    pub other: String,
}

/// See [`Edit::Replace`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// What is looked for, everywhere in the text.
    pub from: String,
    /// What is there instead.
    pub to: String,
}

/// Makes all changes in order; says whether the value is another now.
pub(crate) fn apply(edits: &[Edit], value: &mut Value) -> bool {
    let before = value.clone();
    for edit in edits {
        edit.apply(value);
    }
    before != *value
}

impl Edit {
    fn apply(&self, root: &mut Value) {
        match self {
            Self::Set(all) => {
                for (pointer, new) in all {
                    set(root, pointer, new);
                }
            }
            Self::Remove(all) => all.iter().for_each(|pointer| {
                remove(root, pointer);
            }),
            Self::Add(all) => each(root, all, |value, add| {
                if let Some(number) = value.as_i64() {
                    *value = number.saturating_add(*add).into();
                }
            }),
            Self::Copy(all) => {
                for (to, from) in all {
                    if let Some(value) = root.pointer(from).cloned() {
                        set(root, to, &value);
                    }
                }
            }
            Self::Swap(swap) => {
                for place in places(root, &swap.at) {
                    let Some(value) = root.pointer_mut(&place) else {
                        continue;
                    };
                    let one = value.pointer(&swap.one).cloned();
                    let other = value.pointer(&swap.other).cloned();
                    if let (Some(one), Some(other)) = (one, other) {
                        set(value, &swap.one, &other);
                        set(value, &swap.other, &one);
                    }
                }
            }
            Self::Append(all) => texts(root, all, |text, more| text + more),
            Self::Prepend(all) => texts(root, all, |text, more| more.clone() + &text),
            Self::Replace(all) => texts(root, all, |text, by| text.replace(&by.from, &by.to)),
            Self::Reverse(all) => at_all(root, all, reverse),
            Self::Keep(all) => each(root, all, |value, count| keep(value, *count)),
            Self::Skip(all) => each(root, all, |value, count| skip(value, *count)),
            Self::Repeat(all) => at_all(root, all, |value| {
                if let Some(list) = value.as_array_mut()
                    && let Some(first) = list.first().cloned()
                {
                    list.push(first);
                }
            }),
            Self::Rename(all) => {
                for (pointer, name) in all {
                    for place in places(root, pointer) {
                        if let Some(value) = remove(root, &place)
                            && let Some((parent, _)) = place.rsplit_once('/')
                        {
                            set(root, &format!("{parent}/{name}"), &value);
                        }
                    }
                }
            }
            Self::Decode(all) => at_all(root, all, |value| {
                if let Some(text) = value.as_str() {
                    *value = decode(text).into();
                }
            }),
            Self::Stringify(all) => at_all(root, all, |value| {
                if !value.is_string() {
                    *value = value.to_string().into();
                }
            }),
            Self::Trim(all) => at_all(root, all, |value| {
                if let Some(text) = value.as_str() {
                    let lines: Vec<_> = text.lines().map(str::trim).collect();
                    *value = lines.join("\n").trim().into();
                }
            }),
            Self::Messages(messages) => messages.apply(root),
            Self::Merge(all) => {
                for (into, from) in all {
                    merge(root, into, from);
                }
            }
        }
    }
}

fn at_all(root: &mut Value, pointers: &[String], change: impl Fn(&mut Value)) {
    for pointer in pointers {
        for place in places(root, pointer) {
            if let Some(value) = root.pointer_mut(&place) {
                change(value);
            }
        }
    }
}

fn each<T>(root: &mut Value, all: &IndexMap<String, T>, change: impl Fn(&mut Value, &T)) {
    for (pointer, what) in all {
        for place in places(root, pointer) {
            if let Some(value) = root.pointer_mut(&place) {
                change(value, what);
            }
        }
    }
}

fn texts<T>(root: &mut Value, all: &IndexMap<String, T>, change: impl Fn(String, &T) -> String) {
    each(root, all, |value, what| {
        if let Some(text) = value.as_str() {
            *value = change(text.to_owned(), what).into();
        }
    });
}

fn reverse(value: &mut Value) {
    match value {
        Value::Array(list) => list.reverse(),
        Value::String(text) => {
            let lines: Vec<_> = text.lines().rev().collect();
            *value = lines.join("\n").into();
        }
        _ => {}
    }
}

fn keep(value: &mut Value, count: usize) {
    match value {
        Value::Array(list) => list.truncate(count),
        Value::String(text) => {
            let units: Vec<u16> = text.encode_utf16().take(count).collect();
            *value = String::from_utf16_lossy(&units).into();
        }
        _ => {}
    }
}

fn skip(value: &mut Value, count: usize) {
    match value {
        Value::Array(list) => {
            list.drain(..count.min(list.len()));
        }
        Value::String(text) => {
            let lines: Vec<_> = text.lines().skip(count).collect();
            *value = lines.join("\n").into();
        }
        _ => {}
    }
}

fn merge(root: &mut Value, into: &str, from: &str) {
    let Some(Value::Object(more)) = root.pointer(from).cloned() else {
        return;
    };
    // The object may not be there yet; where it would be, is.
    let places = match into.rsplit_once('/') {
        Some((parent, name)) => places(root, parent)
            .into_iter()
            .map(|parent| format!("{parent}/{name}"))
            .collect(),
        None => Vec::new(),
    };
    for place in places {
        if root.pointer(&place).is_none() {
            set(root, &place, &Value::Object(serde_json::Map::new()));
        }
        if let Some(Value::Object(object)) = root.pointer_mut(&place) {
            for (name, value) in &more {
                object.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// All places that a pointer with `*` in it means, as they stand in `root`.
pub(crate) fn places(root: &Value, pointer: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pointer.split('/').skip(1) {
        let mut next = Vec::new();
        for place in found {
            let Some(value) = root.pointer(&place) else {
                continue;
            };
            match (part, value) {
                ("*", Value::Object(object)) => next.extend(object.keys().map(|key| {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    format!("{place}/{key}")
                })),
                ("*", Value::Array(list)) => {
                    next.extend((0..list.len()).map(|at| format!("{place}/{at}")));
                }
                _ => next.push(format!("{place}/{part}")),
            }
        }
        found = next;
    }
    found.retain(|place| root.pointer(place).is_some());
    found
}

/// Puts a value at a place whose parent is there.
pub(crate) fn set(root: &mut Value, pointer: &str, new: &Value) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *root = new.clone();
        return;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    for place in places(root, parent) {
        match root.pointer_mut(&place) {
            Some(Value::Object(object)) if name == "*" => {
                object.values_mut().for_each(|value| *value = new.clone());
            }
            Some(Value::Object(object)) => {
                object.insert(name.clone(), new.clone());
            }
            Some(Value::Array(list)) if name == "-" => list.push(new.clone()),
            Some(Value::Array(list)) if name == "*" => list.fill(new.clone()),
            Some(Value::Array(list)) => {
                if let Ok(at) = name.parse::<usize>()
                    && let Some(value) = list.get_mut(at)
                {
                    *value = new.clone();
                }
            }
            _ => {}
        }
    }
}

fn remove(root: &mut Value, pointer: &str) -> Option<Value> {
    let mut removed = None;
    // From the back, so that the places before stay what they are.
    for place in places(root, pointer).into_iter().rev() {
        let (parent, name) = place.rsplit_once('/')?;
        let name = name.replace("~1", "/").replace("~0", "~");
        removed = match root.pointer_mut(parent) {
            Some(Value::Object(object)) => object.shift_remove(&name),
            Some(Value::Array(list)) => name
                .parse::<usize>()
                .ok()
                .filter(|at| *at < list.len())
                .map(|at| list.remove(at)),
            _ => None,
        };
    }
    removed
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(edit: &Value, before: &Value, after: &Value) {
        let edits: Vec<Edit> = serde_json::from_value(json!([edit])).unwrap();
        let mut value = before.clone();
        let changed = apply(&edits, &mut value);
        assert_eq!(&value, after);
        assert_eq!(changed, before != after);
    }

    #[test]
    fn each_change_does_what_it_says() {
        check(
            &json!({"set": {"/a/b": 1}}),
            &json!({"a": {}}),
            &json!({"a": {"b": 1}}),
        );
        check(
            &json!({"set": {"/a/-": 1}}),
            &json!({"a": []}),
            &json!({"a": [1]}),
        );
        check(
            &json!({"set": {"/x/b": 1}}),
            &json!({"a": {}}),
            &json!({"a": {}}),
        );
        check(
            &json!({"remove": ["/a/*/b"]}),
            &json!({"a": [{"b": 1}, {"b": 2, "c": 3}]}),
            &json!({"a": [{}, {"c": 3}]}),
        );
        check(
            &json!({"remove": ["/a/*"]}),
            &json!({"a": [1, 2, 3]}),
            &json!({"a": []}),
        );
        check(
            &json!({"add": {"/l/*/n": 2}}),
            &json!({"l": [{"n": 1}, {"n": "x"}]}),
            &json!({"l": [{"n": 3}, {"n": "x"}]}),
        );
        check(
            &json!({"copy": {"/a": "/b"}}),
            &json!({"a": 1, "b": 2}),
            &json!({"a": 2, "b": 2}),
        );
        check(
            &json!({"swap": {"at": "/*", "one": "/s", "other": "/e"}}),
            &json!([{"s": 1, "e": 2}, {"s": 3}]),
            &json!([{"s": 2, "e": 1}, {"s": 3}]),
        );
        check(
            &json!({"append": {"/t": "!"}}),
            &json!({"t": "a"}),
            &json!({"t": "a!"}),
        );
        check(
            &json!({"prepend": {"/t": "!"}}),
            &json!({"t": "a"}),
            &json!({"t": "!a"}),
        );
        check(
            &json!({"replace": {"/t": {"from": "a", "to": "b"}}}),
            &json!({"t": "aha"}),
            &json!({"t": "bhb"}),
        );
        check(
            &json!({"reverse": ["/l", "/t"]}),
            &json!({"l": [1, 2], "t": "a\nb"}),
            &json!({"l": [2, 1], "t": "b\na"}),
        );
        check(
            &json!({"keep": {"/l": 1, "/t": 2}}),
            &json!({"l": [1, 2], "t": "a𝕏"}),
            &json!({"l": [1], "t": "a\u{fffd}"}),
        );
        check(
            &json!({"skip": {"/l": 1, "/t": 1}}),
            &json!({"l": [1, 2], "t": "a\nb"}),
            &json!({"l": [2], "t": "b"}),
        );
        check(
            &json!({"repeat": ["/l"]}),
            &json!({"l": [1, 2]}),
            &json!({"l": [1, 2, 1]}),
        );
        check(
            &json!({"rename": {"/a/b": "c"}}),
            &json!({"a": {"b": 1}}),
            &json!({"a": {"c": 1}}),
        );
        check(
            &json!({"decode": ["/u"]}),
            &json!({"u": "a%20b%"}),
            &json!({"u": "a b%"}),
        );
        check(
            &json!({"stringify": ["/id"]}),
            &json!({"id": 1}),
            &json!({"id": "1"}),
        );
        check(
            &json!({"trim": ["/t"]}),
            &json!({"t": " a \n b "}),
            &json!({"t": "a\nb"}),
        );
        check(
            &json!({"merge": {"/s/*/env": "/e"}}),
            &json!({"s": {"x": {}}, "e": {"K": 1}}),
            &json!({"s": {"x": {"env": {"K": 1}}}, "e": {"K": 1}}),
        );
    }
}
