//! `${…}` where the runner fills it in.

use super::super::node::{Kind, Node, Segment};
use super::Checker;
use crate::format::diagnostic::nearest;

/// Templates that stand alone.
const NAMES: [&str; 5] = ["workspace", "workspaceUri", "root", "fake", "seed"];

impl Checker<'_> {
    pub(super) fn templates(&mut self) {
        let root = self.root;
        self.templates_below(root, &mut Vec::new());
    }

    fn templates_below(&mut self, node: &Node, way: &mut Vec<Segment>) {
        if is_text_of_its_own(way) {
            return;
        }
        match &node.kind {
            Kind::Scalar(value) => {
                if let Some(text) = value.as_str() {
                    self.template(way, text);
                }
            }
            Kind::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    way.push(Segment::Index(at));
                    self.templates_below(item, way);
                    way.pop();
                }
            }
            Kind::Map(members) => {
                for (key, member) in members {
                    way.push(Segment::Key(key.text.clone()));
                    self.template(way, &key.text);
                    self.templates_below(member, way);
                    way.pop();
                }
            }
        }
    }

    fn template(&mut self, way: &[Segment], text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let escaped = rest[..at].ends_with('$');
            rest = &rest[at + 2..];
            if escaped {
                continue;
            }
            let Some(end) = rest.find('}') else {
                let reason = "a `${` is never closed; a literal one is written `$${`";
                return self.error(way, reason);
            };
            let name = &rest[..end];
            if !NAMES.contains(&name) && !name.starts_with("uri:") {
                let near = nearest(name, NAMES).map(|name| format!("${{{name}}}"));
                let reason = format!(
                    "there is no template `${{{name}}}` here; there are {}, uri:PATH; a literal \
                     `${{` is written `$${{`",
                    NAMES.join(", ")
                );
                self.suggest(way, reason, near);
            }
        }
    }
}

/// Whether what stands here is a text in which `${x}` may be meant as it is, or has templates of
/// its own: for people, files, scripts of the fake server, what a model says.
fn is_text_of_its_own(way: &[Segment]) -> bool {
    let keys: Vec<&str> = way
        .iter()
        .filter_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        })
        .collect();
    // Of files the values, not the paths.
    matches!(
        keys.as_slice(),
        ["title" | "about" | "server", ..]
            | ["servers", _, "server", ..]
            | ["workspace", _, ..]
            | ["steps", "write", _, ..]
            | ["steps", "perform", "do", ..]
            | ["steps", "turn", "prompt", ..]
    )
}
