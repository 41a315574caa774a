//! Templates of a scenario: `${workspace}`, `${workspaceUri}`, `${uri:FILE}`, `${root}`, `${fake}`,
//! `${seed}`.
//!
//! What stands in the script of a fake server is filled in by that server, except for `${root}` and
//! `${seed}`, which it does not know. A name that is none of these stays as it is, since files of a workspace
//! may well have such texts in them. `$${` is a literal `${`.

use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Map, Value};

use crate::format::Scenario;

/// What the templates of one case stand for.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The folder of the case, canonical.
    pub(crate) root: PathBuf,
    /// The workspace below it.
    pub(crate) workspace: PathBuf,
    /// The program that contains the fake server.
    pub(crate) fake: PathBuf,
    /// The seed of the run.
    pub(crate) seed: u64,
}

impl Places {
    /// The absolute path of something that is named relative to the workspace; `..` is resolved by
    /// the text alone.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let mut path = PathBuf::new();
        for component in self.workspace.join(name).components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                component => path.push(component),
            }
        }
        path
    }

    /// What a scenario calls the file of a URI: by its way from the workspace. None outside of the
    /// folder of the case.
    pub(crate) fn named(&self, uri: &str) -> Option<String> {
        let path = url::Url::parse(uri).ok()?.to_file_path().ok()?;
        let (below, up) = match path.strip_prefix(&self.workspace) {
            Ok(below) => (below, ""),
            Err(_) => (path.strip_prefix(&self.root).ok()?, "../"),
        };
        Some(format!("{up}{}", below.to_str()?))
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "workspace" => Some(text(&self.workspace)),
            "workspaceUri" => Some(uri_of(&self.workspace)),
            "root" => Some(text(&self.root)),
            "fake" => Some(text(&self.fake)),
            "seed" => Some(self.seed.to_string()),
            _ => {
                let file = name.strip_prefix("uri:")?;
                Some(uri_of(&self.path(file)))
            }
        }
    }

    /// A text with its templates filled in.
    #[cfg(test)]
    fn text(&self, text: &str) -> String {
        fill_text(text, &|name| self.value(name), true)
    }

    /// A scenario with its templates filled in.
    pub(crate) fn fill(&self, scenario: &Scenario) -> Result<Scenario, serde_json::Error> {
        let mut whole = match serde_json::to_value(scenario)? {
            Value::Object(whole) => whole,
            other => return serde_json::from_value(other),
        };
        // What the fake server fills in by itself is set aside.
        let mut scripts = Vec::new();
        set_aside(&mut whole, &mut scripts);
        let mut whole = fill(&Value::Object(whole), &|name| self.value(name), true);
        let ours = |name: &str| matches!(name, "root" | "seed").then(|| self.value(name))?;
        for (pointer, script) in scripts {
            if let Some(place) = whole.pointer_mut(&pointer) {
                *place = fill(&script, &ours, false);
            }
        }
        serde_json::from_value(whole)
    }
}

/// Takes the scripts out, leaving null; each with the JSON pointer of its place.
fn set_aside(whole: &mut Map<String, Value>, scripts: &mut Vec<(String, Value)>) {
    let mut take = |pointer: String, value: Option<&mut Value>| {
        if let Some(value) = value {
            scripts.push((pointer, value.take()));
        }
    };
    take("/server".to_owned(), whole.get_mut("server"));
    if let Some(Value::Object(servers)) = whole.get_mut("servers") {
        for (id, server) in servers.iter_mut() {
            let id = id.replace('~', "~0").replace('/', "~1");
            take(format!("/servers/{id}/server"), server.get_mut("server"));
        }
    }
    if let Some(Value::Array(steps)) = whole.get_mut("steps") {
        for (at, step) in steps.iter_mut().enumerate() {
            let script = step.get_mut("perform").and_then(|step| step.get_mut("do"));
            take(format!("/steps/{at}/perform/do"), script);
        }
    }
}

type Names<'a> = &'a dyn Fn(&str) -> Option<String>;

fn fill(value: &Value, names: Names<'_>, unescape: bool) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, names, unescape)),
        Value::Array(items) => items
            .iter()
            .map(|item| fill(item, names, unescape))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                (
                    fill_text(name, names, unescape),
                    fill(value, names, unescape),
                )
            })
            .collect::<Map<_, _>>()
            .into(),
        _ => value.clone(),
    }
}

fn fill_text(text: &str, names: Names<'_>, unescape: bool) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            filled.push_str(before);
            filled.push_str(if unescape { "${" } else { "$${" });
            rest = &from[2..];
            continue;
        }
        filled.push_str(before);
        let end = from.find('}');
        if let Some((end, value)) = end.and_then(|end| Some((end, names(&from[2..end])?))) {
            filled.push_str(&value);
            rest = &from[end + 1..];
        } else {
            filled.push_str("${");
            rest = &from[2..];
        }
    }
    filled.push_str(rest);
    filled
}

/// A path as text; temp folders have been found to be UTF-8.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What stands in a URI as it is: unreserved characters, and slashes.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The `file:` URI of an absolute path: everything but unreserved characters and slashes is
/// percent-encoded.
pub(crate) fn uri_of(path: &Path) -> String {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), ESCAPED);
    format!("file://{path}")
}

/// Whether two URIs name one file, however they are encoded.
pub(crate) fn same_uri(one: &str, other: &str) -> bool {
    let decoded = |uri: &str| {
        let url = url::Url::parse(uri).ok()?;
        url.to_file_path().ok()
    };
    one == other || decoded(one).is_some_and(|path| decoded(other) == Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            root: "/r".into(),
            workspace: "/r/ws".into(),
            fake: "/bin/fake".into(),
            seed: 7,
        }
    }

    #[test]
    fn templates_are_filled_and_others_stay() {
        for (text, filled) in [
            ("${workspace}/a", "/r/ws/a"),
            ("${workspaceUri}", "file:///r/ws"),
            ("${uri:a b#.ts}", "file:///r/ws/a%20b%23.ts"),
            ("${uri:../x.ts}", "file:///r/x.ts"),
            ("${uri:é%-._~.ts}", "file:///r/ws/%C3%A9%25-._~.ts"),
            ("${root}${fake}", "/r/bin/fake"),
            ("seed ${seed}", "seed 7"),
            ("$${workspace} ${x} ${root", "${workspace} ${x} ${root"),
        ] {
            assert_eq!(places().text(text), filled, "{text}");
        }
    }

    #[test]
    fn scripts_keep_their_templates_but_for_the_root() {
        let scenario: Scenario = serde_json::from_value(serde_json::json!({
            "title": "t",
            "clauses": ["INI-1"],
            "profile": "transient",
            "server": [{"on": "start", "do": [{"note": {"message": "${workspace} ${root} ${seed} $${x"}}]}],
            "steps": [
                {"perform": {"process": 1, "do": [{"note": {"message": "${uri:a.ts}${root}"}}]}},
                {"wait": {"received": "hover", "params": {"u": "${uri:a.ts}"}}},
            ],
        }))
        .unwrap();
        let filled = serde_json::to_value(places().fill(&scenario).unwrap()).unwrap();
        let note = |pointer: &str| filled.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(
            note("/server/rules/0/do/0/note/message"),
            "${workspace} /r 7 $${x"
        );
        assert_eq!(note("/steps/0/perform/do/0/note/message"), "${uri:a.ts}/r");
        assert_eq!(note("/steps/1/wait/params/u"), "file:///r/ws/a.ts");
    }

    #[test]
    fn uris_are_one_where_they_name_one_file() {
        assert!(same_uri("file:///a%20b", "file:///a%20b"));
        assert!(same_uri("file:///a+b", "file:///a%2Bb"));
        assert!(!same_uri("file:///a", "file:///b"));
        assert!(!same_uri("untitled:a", "untitled:b"));
    }
}
