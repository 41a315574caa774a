//! The matrix: one document for each combination of its axes, with `$(axis)` filled in.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::diagnostic::nearest;
use super::node::{Key, Kind, Node, Place};

/// The most cases one file may stand for.
const MAX_CASES: usize = 10_000;

/// How deep values of the matrix may refer to other axes.
const MAX_DEPTH: usize = 8;

/// Something wrong: place, reason, suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) place: Place,
    pub(super) reason: String,
    pub(super) suggestion: Option<String>,
}

impl Wrong {
    pub(super) fn new(place: Place, reason: impl Into<String>) -> Self {
        Self {
            place,
            reason: reason.into(),
            suggestion: None,
        }
    }

    pub(super) fn or(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }
}

/// One combination: what its id ends in (nothing without a matrix), and the document.
pub(super) struct Expanded {
    pub(super) suffix: Option<String>,
    pub(super) node: Node,
    pub(super) wrong: Vec<Wrong>,
}

/// One axis: its name and its named values.
struct Axis<'a> {
    key: &'a Key,
    values: Vec<(&'a Key, &'a Node)>,
}

/// A choice of each axis.
type Combination<'a> = BTreeMap<&'a str, (&'a Key, &'a Node)>;

/// All combinations, and what is wrong with the matrix itself.
pub(super) fn expand(root: &Node) -> (Vec<Expanded>, Vec<Wrong>) {
    let mut wrong = Vec::new();
    let axes = axes(root, &mut wrong);
    let left_out = left_out(root, &axes, &mut wrong);
    let mut total: usize = 1;
    for axis in &axes {
        total = total.saturating_mul(axis.values.len());
    }
    if total > MAX_CASES {
        let place = root
            .entry("matrix")
            .map_or(root.place, |(key, _)| key.place);
        let reason = format!("the matrix has {total} combinations; {MAX_CASES} is the limit");
        wrong.push(Wrong::new(place, reason));
    }
    if !wrong.is_empty() {
        return (Vec::new(), wrong);
    }
    let used = RefCell::new(BTreeSet::new());
    let mut matched = vec![false; left_out.len()];
    let mut expanded = Vec::new();
    for number in 0..total {
        let combination = combination(&axes, number);
        let mut keep = true;
        for (at, (_, choices)) in left_out.iter().enumerate() {
            let fits = choices.iter().all(|(axis, name)| {
                combination
                    .get(axis)
                    .is_some_and(|(key, _)| key.text == *name)
            });
            matched[at] |= fits && keep;
            keep &= !fits;
        }
        if keep {
            expanded.push(fill_in(root, &axes, &combination, &used));
        }
    }
    for (at, (place, _)) in left_out.iter().enumerate() {
        if !matched[at] {
            wrong.push(Wrong::new(
                *place,
                "this entry leaves out nothing that is not left out already",
            ));
        }
    }
    for axis in &axes {
        if !expanded.is_empty() && !used.borrow().contains(axis.key.text.as_str()) {
            let reason = format!("nothing uses the axis `{0}`: write `$({0})`", axis.key.text);
            wrong.push(Wrong::new(axis.key.place, reason));
        }
    }
    if expanded.is_empty() && wrong.is_empty() {
        wrong.push(Wrong::new(
            root.place,
            "`without` leaves no combination of the matrix",
        ));
    }
    (expanded, wrong)
}

fn fill_in<'a>(
    root: &'a Node,
    axes: &[Axis<'a>],
    combination: &Combination<'a>,
    used: &RefCell<BTreeSet<&'a str>>,
) -> Expanded {
    let filler = Filler {
        combination,
        used,
        wrong: RefCell::new(Vec::new()),
    };
    let members = match &root.kind {
        Kind::Map(members) => members.as_slice(),
        _ => &[],
    };
    let members = members
        .iter()
        .filter(|(key, _)| !matches!(key.text.as_str(), "matrix" | "without"))
        .map(|(key, node)| (filler.key(key), filler.node(node, 0)))
        .collect();
    let names = axes.iter().filter_map(|axis| {
        let (key, _) = combination.get(axis.key.text.as_str())?;
        Some(key.text.as_str())
    });
    let suffix = names.collect::<Vec<_>>().join("-");
    Expanded {
        suffix: (!axes.is_empty()).then_some(suffix),
        node: Node {
            place: root.place,
            kind: Kind::Map(members),
        },
        wrong: filler.wrong.into_inner(),
    }
}

fn axes<'a>(root: &'a Node, wrong: &mut Vec<Wrong>) -> Vec<Axis<'a>> {
    let Some((key, matrix)) = root.entry("matrix") else {
        return Vec::new();
    };
    let Kind::Map(members) = &matrix.kind else {
        let reason = "`matrix` is an object: axis, then name, then value";
        wrong.push(Wrong::new(matrix.place, reason));
        return Vec::new();
    };
    if members.is_empty() {
        wrong.push(Wrong::new(key.place, "`matrix` has no axis; leave it out"));
    }
    let mut axes = Vec::new();
    for (axis, values) in members {
        check_name(axis, wrong);
        let Kind::Map(values) = &values.kind else {
            let reason = format!(
                "the axis `{}` is an object: the name of each choice, then its value",
                axis.text
            );
            wrong.push(Wrong::new(values.place, reason));
            continue;
        };
        if values.is_empty() {
            let reason = format!("the axis `{}` offers no choice", axis.text);
            wrong.push(Wrong::new(axis.place, reason));
        }
        for (name, _) in values {
            check_name(name, wrong);
        }
        axes.push(Axis {
            key: axis,
            values: values.iter().map(|(key, node)| (key, node)).collect(),
        });
    }
    axes
}

/// Names become part of ids, which are typed on command lines and are names of files.
fn check_name(key: &Key, wrong: &mut Vec<Wrong>) {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
    if key.text.is_empty() || !key.text.chars().all(fine) {
        let reason = format!(
            "`{}` cannot be part of a case's id: use ASCII letters, digits, `_`, `-` and `+`",
            key.text
        );
        wrong.push(Wrong::new(key.place, reason));
    }
}

/// Place of an entry of `without`, and its choices: axis and name.
type LeftOut<'a> = (Place, Vec<(&'a str, &'a str)>);

fn left_out<'a>(root: &'a Node, axes: &[Axis<'a>], wrong: &mut Vec<Wrong>) -> Vec<LeftOut<'a>> {
    let Some(without) = root.get("without") else {
        return Vec::new();
    };
    let Kind::List(entries) = &without.kind else {
        let reason = "`without` is a list of objects: axis, then name";
        wrong.push(Wrong::new(without.place, reason));
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let Kind::Map(members) = &entry.kind else {
            let reason = "an entry of `without` is an object: axis, then name";
            wrong.push(Wrong::new(entry.place, reason));
            continue;
        };
        if members.is_empty() {
            let reason = "an empty entry of `without` leaves out everything";
            wrong.push(Wrong::new(entry.place, reason));
        }
        let mut choices = Vec::new();
        for (axis, name) in members {
            let Some(own) = axes.iter().find(|own| own.key.text == axis.text) else {
                let names = axes.iter().map(|own| own.key.text.as_str());
                let reason = format!("`matrix` has no axis `{}`", axis.text);
                wrong.push(Wrong::new(axis.place, reason).or(nearest(&axis.text, names)));
                continue;
            };
            // A name such as `null` or `1` is the same without quotes.
            let written = match &name.kind {
                Kind::Scalar(Value::String(text)) => text.clone(),
                Kind::Scalar(value) => value.to_string(),
                _ => String::new(),
            };
            if let Some((key, _)) = own.values.iter().find(|(key, _)| key.text == written) {
                choices.push((own.key.text.as_str(), key.text.as_str()));
            } else {
                let names = own.values.iter().map(|(key, _)| key.text.as_str());
                let reason = format!("the axis `{}` has no choice `{written}`", axis.text);
                wrong.push(Wrong::new(name.place, reason).or(nearest(&written, names)));
            }
        }
        found.push((entry.place, choices));
    }
    found
}

/// The combination of this number; the last axis counts fastest.
fn combination<'a>(axes: &[Axis<'a>], mut number: usize) -> Combination<'a> {
    let mut choices = BTreeMap::new();
    for axis in axes.iter().rev() {
        let count = axis.values.len();
        choices.insert(axis.key.text.as_str(), axis.values[number % count]);
        number /= count;
    }
    choices
}

struct Filler<'a, 'c> {
    combination: &'c Combination<'a>,
    used: &'c RefCell<BTreeSet<&'a str>>,
    wrong: RefCell<Vec<Wrong>>,
}

/// One part of a text.
enum Part<'t> {
    Text(&'t str),
    Reference(&'t str),
}

impl Filler<'_, '_> {
    fn node(&self, node: &Node, depth: usize) -> Node {
        let kind = match &node.kind {
            Kind::Scalar(Value::String(text)) => return self.text(text, node.place, depth),
            Kind::Scalar(value) => Kind::Scalar(value.clone()),
            Kind::List(items) => {
                let mut filled = Vec::with_capacity(items.len());
                for item in items {
                    match item.as_text().and_then(spread) {
                        Some(reference) => {
                            filled.extend(self.spread(reference, item.place, depth));
                        }
                        None => filled.push(self.node(item, depth)),
                    }
                }
                Kind::List(filled)
            }
            Kind::Map(members) => {
                let member = |(key, node): &(Key, Node)| (self.key(key), self.node(node, depth));
                let members: Vec<(Key, Node)> = members.iter().map(member).collect();
                for (at, (key, _)) in members.iter().enumerate() {
                    if members[..at]
                        .iter()
                        .any(|(other, _)| other.text == key.text)
                    {
                        let reason = format!("the key `{}` is there twice", key.text);
                        self.wrong.borrow_mut().push(Wrong::new(key.place, reason));
                    }
                }
                Kind::Map(members)
            }
        };
        Node {
            place: node.place,
            kind,
        }
    }

    fn key(&self, key: &Key) -> Key {
        if !key.text.contains("$(") {
            return key.clone();
        }
        let node = self.text(&key.text, key.place, 0);
        let text = match node.kind {
            Kind::Scalar(Value::String(text)) => text,
            Kind::Scalar(value) => value.to_string(),
            _ => {
                let reason = format!("`{}` is no text, which a key has to be", key.text);
                self.wrong.borrow_mut().push(Wrong::new(key.place, reason));
                key.text.clone()
            }
        };
        Key {
            text,
            place: key.place,
        }
    }

    /// A text with its references filled in. One that is a reference and nothing else becomes its
    /// value, whatever the type, and stands where the value stands.
    fn text(&self, text: &str, place: Place, depth: usize) -> Node {
        let scalar = |text: String| Node {
            place,
            kind: Kind::Scalar(Value::String(text)),
        };
        if !text.contains("$(") {
            return scalar(text.to_owned());
        }
        let parts = parts(text);
        if let [Part::Reference(reference)] = parts.as_slice() {
            return self
                .value(reference, place, depth)
                .unwrap_or_else(|| scalar(text.to_owned()));
        }
        let mut filled = String::with_capacity(text.len());
        for part in parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Reference(reference) => {
                    let value = self.value(reference, place, depth);
                    match value.map(|node| node.to_value()) {
                        Some(Value::String(text)) => filled.push_str(&text),
                        Some(value) => filled.push_str(&value.to_string()),
                        None => {}
                    }
                }
            }
        }
        scalar(filled)
    }

    fn spread(&self, reference: &str, place: Place, depth: usize) -> Vec<Node> {
        match self.value(reference, place, depth) {
            Some(Node {
                kind: Kind::List(items),
                ..
            }) => items,
            Some(other) => {
                let reason = format!(
                    "`$({reference}...)` puts in the members of a list, and `{reference}` is none"
                );
                self.wrong
                    .borrow_mut()
                    .push(Wrong::new(other.place, reason));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The value of `axis` or `axis.member.member`, in which other axes may be named.
    fn value(&self, reference: &str, place: Place, depth: usize) -> Option<Node> {
        let mut steps = reference.split('.');
        let axis = steps.next().unwrap_or_default();
        let Some((&name, (choice, value))) = self.combination.get_key_value(axis) else {
            let reason = if self.combination.is_empty() {
                format!(
                    "`$({reference})` stands for a value of the matrix, and there is none; a literal `$(` is written `$$(`"
                )
            } else {
                format!("`matrix` has no axis `{axis}`; a literal `$(` is written `$$(`")
            };
            let suggestion = nearest(axis, self.combination.keys().copied());
            self.wrong
                .borrow_mut()
                .push(Wrong::new(place, reason).or(suggestion));
            return None;
        };
        self.used.borrow_mut().insert(name);
        let mut node: &Node = value;
        for step in steps {
            let Some(next) = node.get(step) else {
                let reason = format!(
                    "`$({reference})`: the choice `{}` of `{axis}` has no `{step}`",
                    choice.text
                );
                let names = match &node.kind {
                    Kind::Map(members) => members.as_slice(),
                    _ => &[],
                };
                let suggestion = nearest(step, names.iter().map(|(key, _)| key.text.as_str()));
                self.wrong
                    .borrow_mut()
                    .push(Wrong::new(place, reason).or(suggestion));
                return None;
            };
            node = next;
        }
        if depth >= MAX_DEPTH {
            let reason = format!("`$({reference})` stands for itself, by way of the matrix");
            self.wrong.borrow_mut().push(Wrong::new(place, reason));
            return None;
        }
        Some(self.node(node, depth + 1))
    }
}

/// What `$(axis.member...)` refers to, if that is all a text has.
fn spread(text: &str) -> Option<&str> {
    let reference = text.strip_prefix("$(")?.strip_suffix("...)")?;
    (!reference.contains(['(', ')'])).then_some(reference)
}

/// The parts of a text: `$(x)` is a reference, `$$(` writes `$(`.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("$(") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            parts.push(Part::Text(before));
            parts.push(Part::Text("$("));
            rest = &rest[at + 2..];
            continue;
        }
        let Some(end) = rest[at..].find(')') else {
            break;
        };
        parts.push(Part::Text(&rest[..at]));
        parts.push(Part::Reference(&rest[at + 2..at + end]));
        rest = &rest[at + end + 1..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| !matches!(part, Part::Text("")));
    parts
}
