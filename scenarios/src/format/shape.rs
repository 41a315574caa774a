//! From a document to the types of a scenario, with each error at its place.

use serde_path_to_error::Segment as PathSegment;

use super::Scenario;
use super::diagnostic::nearest;
use super::expand::Wrong;
use super::node::{Key, Kind, Node, Place, Segment};

/// The most errors that one document is searched for.
const MAX_ERRORS: usize = 20;

/// The scenario, or everything that keeps the document from being one.
///
/// The types report their first error only; so what is wrong is taken out, and what is left is
/// read again.
pub(super) fn scenario(root: &Node) -> Result<Scenario, Vec<Wrong>> {
    let mut wrong = Vec::new();
    let mut rest = root.clone();
    loop {
        match serde_path_to_error::deserialize::<_, Scenario>(rest.to_value()) {
            Ok(scenario) if wrong.is_empty() => return Ok(scenario),
            Ok(_) => return Err(wrong),
            Err(error) => {
                let path = segments(&rest, error.path());
                let message = error.inner().to_string();
                wrong.push(describe(&rest, &path, &message));
                if wrong.len() >= MAX_ERRORS || !take_out(&mut rest, &path, &message) {
                    return Err(wrong);
                }
            }
        }
    }
}

/// The way to the faulty node, as far as it can be followed.
fn segments(root: &Node, path: &serde_path_to_error::Path) -> Vec<Segment> {
    let mut node = root;
    let mut segments = Vec::new();
    for segment in path {
        let segment = match segment {
            PathSegment::Seq { index } => Segment::Index(*index),
            PathSegment::Map { key } => Segment::Key(key.clone()),
            PathSegment::Enum { variant } => Segment::Key(variant.clone()),
            PathSegment::Unknown => break,
        };
        let Some(next) = node.below(&segment) else {
            break;
        };
        node = next;
        segments.push(segment);
    }
    segments
}

fn at<'n>(root: &'n Node, path: &[Segment]) -> &'n Node {
    path.iter()
        .try_fold(root, |node, segment| node.below(segment))
        .unwrap_or(root)
}

/// The name in back quotes behind `prefix`.
fn quoted<'m>(message: &'m str, prefix: &str) -> Option<&'m str> {
    message.strip_prefix(prefix)?.split('`').nth(1)
}

fn describe(root: &Node, path: &[Segment], message: &str) -> Wrong {
    let unknown = quoted(message, "unknown field ").or_else(|| quoted(message, "unknown variant "));
    if let Some(written) = unknown {
        let place = place_of_name(root, path, written);
        let offered = offered(message);
        let kind = kind_of_name(path, message);
        let suggestion = nearest(written, offered.iter().copied());
        let mut reason = format!("unknown {kind} `{written}`");
        if suggestion.is_none() && !offered.is_empty() {
            reason.push_str("; there are ");
            reason.push_str(&offered.join(", "));
        }
        return Wrong::new(place, reason).or(suggestion);
    }
    let node = at(root, path);
    if let Some(missing) = quoted(message, "missing field ") {
        let place = if path.is_empty() {
            Place::START
        } else {
            node.place
        };
        return Wrong::new(place, format!("`{missing}` is missing"));
    }
    if let Some(name) = message
        .strip_prefix("data did not match any variant of untagged enum ")
        .map(|name| name.trim_end_matches('.'))
    {
        let (form, keys) = form(name);
        let suggestion = match &node.kind {
            Kind::Map(members) => members.iter().find_map(|(Key { text, .. }, _)| {
                let known = keys.contains(&text.as_str());
                (!known).then(|| nearest(text, keys.iter().copied()))
            }),
            _ => None,
        };
        return Wrong::new(node.place, form).or(suggestion.flatten());
    }
    let single = ["expected map with a single key", "unit variant, expected"];
    if single.iter().any(|part| message.contains(part)) {
        let reason = format!(
            "a {} is an object with exactly one key, which says what it is",
            kind_of_name(path, "unknown variant")
        );
        return Wrong::new(node.place, reason);
    }
    let unquoted = [
        "invalid type: integer",
        "invalid type: floating point",
        "invalid type: boolean",
    ];
    if unquoted.iter().any(|start| message.starts_with(start)) && message.contains("a string") {
        return Wrong::new(node.place, format!("{message}; put it in quotes"));
    }
    let message = message
        .replace("a sequence", "a list")
        .replace("sequence", "list")
        .replace("a map", "an object")
        .replace("invalid type: map", "invalid type: object");
    Wrong::new(node.place, message)
}

/// Where an unknown name stands: the path may end at its object, or at itself.
fn place_of_name(root: &Node, path: &[Segment], written: &str) -> Place {
    let node = at(root, path);
    if node.as_text() == Some(written) {
        return node.place;
    }
    if let Some((key, _)) = node.entry(written) {
        return key.place;
    }
    let parent = path.split_last().map_or(root, |(_, path)| at(root, path));
    parent
        .entry(written)
        .map_or(node.place, |(key, _)| key.place)
}

/// What a name is that stands at the end of `path`.
fn kind_of_name(path: &[Segment], message: &str) -> &'static str {
    if !message.starts_with("unknown variant") {
        return "key";
    }
    let lists = path.iter().rev().find_map(|segment| match segment {
        Segment::Key(key) if key == "steps" => Some("step"),
        Segment::Key(key) if key == "do" => Some("action"),
        Segment::Key(key) if key == "ended" => Some("end"),
        Segment::Key(key) if key == "profile" => Some("profile"),
        _ => None,
    });
    lists.unwrap_or("value")
}

/// The names a message offers in place of an unknown one.
fn offered(message: &str) -> Vec<&str> {
    let Some((_, rest)) = message.split_once(", expected ") else {
        return Vec::new();
    };
    rest.split('`').skip(1).step_by(2).collect()
}

/// What the forms are of a value that is none of them, and the keys of its objects.
fn form(name: &str) -> (&'static str, &'static [&'static str]) {
    match name {
        "FileSpec" => (
            "a file is a text, or an object with one of `base64`, `repeat`, `link`, `directory`, \
             `pipe`, `socket`, `unreadable`",
            &[
                "base64",
                "repeat",
                "link",
                "directory",
                "pipe",
                "socket",
                "unreadable",
            ],
        ),
        "CancelStep" => (
            "`cancel` takes the name of what is given up, or `{name, reason}`",
            &["name", "reason"],
        ),
        "Wire" => (
            "`wire` takes a list of messages for each process, or `{any_of: [list, …]}`",
            &["any_of"],
        ),
        "Count" => ("a count is a number, or `{min, max}`", &["min", "max"]),
        "Payload" => (
            "bytes are a text, `{text, times}` or `{base64}`",
            &["text", "times", "base64"],
        ),
        "Stderr" => (
            "`stderr` takes a text, `{flood: bytes}`, `{text, times}` or `{base64}`",
            &["flood", "text", "times", "base64"],
        ),
        "Length" => ("a length is a number or a text", &[]),
        "Mounted" => ("this takes `true`, `false` or a configuration", &[]),
        "Said" => (
            "a message is `...`, `user`, `assistant`, `tool`, or an object with `role` and what \
             is in it: texts and lists of texts, `calls`, `error`, `source`",
            &[
                "role",
                "text",
                "contains",
                "lacks",
                "once",
                "order",
                "begins",
                "ends",
                "at_most_bytes",
                "calls",
                "error",
                "source",
            ],
        ),
        _ => ("this has none of the forms that are allowed here", &[]),
    }
}

/// Takes out what an error is about: the entry of a list, or the member of the scenario. Returns
/// whether there was something to take out.
fn take_out(root: &mut Node, path: &[Segment], message: &str) -> bool {
    let Kind::Map(members) = &mut root.kind else {
        return false;
    };
    if path.is_empty() {
        if let Some(missing) = quoted(message, "missing field ") {
            return stand_in(members, missing);
        }
        let Some(unknown) = quoted(message, "unknown field ") else {
            return false;
        };
        let before = members.len();
        members.retain(|(key, _)| key.text != unknown);
        return members.len() < before;
    }
    let list = path
        .iter()
        .position(|segment| matches!(segment, Segment::Index(_)));
    let end = list.unwrap_or(0);
    let mut node = root;
    for segment in &path[..end] {
        let next = match (segment, &mut node.kind) {
            (Segment::Key(key), Kind::Map(members)) => {
                members.iter_mut().find(|(own, _)| own.text == *key)
            }
            _ => None,
        };
        match next {
            Some((_, next)) => node = next,
            None => return false,
        }
    }
    match (&path[end], &mut node.kind) {
        (Segment::Index(index), Kind::List(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        (Segment::Key(gone), Kind::Map(members)) => {
            let before = members.len();
            members.retain(|(key, _)| key.text != *gone);
            let taken = members.len() < before;
            if end == 0 {
                stand_in(members, gone);
            }
            taken
        }
        _ => false,
    }
}

/// Something in place of a missing member, so that the rest can be read.
fn stand_in(members: &mut Vec<(Key, Node)>, missing: &str) -> bool {
    let text = |text: &str| Kind::Scalar(serde_json::Value::String(text.to_owned()));
    let kind = match missing {
        "title" => text("none"),
        "clauses" => Kind::List(Vec::new()),
        "profile" => text("transient"),
        _ => return false,
    };
    let key = Key {
        text: missing.to_owned(),
        place: Place::START,
    };
    let place = Place::START;
    members.push((key, Node { place, kind }));
    true
}
