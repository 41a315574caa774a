//! A YAML document as a tree in which each node knows where it stands in the file.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Spanned};

/// How deep lists and objects may lie in each other. The reader goes down with the document, and its
/// frames without optimization take some 40 kB each, of a stack that may have 2 MB.
const MAX_DEPTH: usize = 32;
/// How many values a file may have: what a scenario of the longest length could well have.
const MAX_VALUES: usize = 250_000;

/// A place in a file, both numbers from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Null, a boolean, a number or a text.
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of an object and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) place: Place,
}

/// One step from a node to one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Where something stands that is told by its path: keys and places in lists.
macro_rules! way {
    ($($segment:expr),* $(,)?) => { [$($crate::format::node::Segment::from($segment)),*] };
}
pub(super) use way;

/// Text that is no YAML.
pub(super) struct Unreadable {
    pub(super) place: Place,
    pub(super) reason: String,
}

impl Node {
    /// Reads a document.
    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        // Only `true` and `false` are booleans, and `1_000` and `007` are texts, as in YAML 1.2.
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            underscored_numbers_as_strings: true,
            leading_zero_numbers_as_strings: true,
            emit_comments: false,
            // A choice of the matrix may be called `null`.
            null_as_string: true,
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                max_nodes: MAX_VALUES,
            },
        };
        let root: Spanned<Raw> =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                let place = error.location().map_or(Place::START, |at| Place {
                    line: at.line().max(1),
                    column: at.column().max(1),
                });
                Unreadable {
                    place,
                    reason: match &error {
                        Error::Budget { breach, .. } => too_much(breach),
                        error => in_our_words(&error.to_string()),
                    },
                }
            })?;
        Ok(root.into())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|(_, node)| node)
    }

    pub(super) fn entry(&self, key: &str) -> Option<&(Key, Self)> {
        match &self.kind {
            Kind::Map(members) => members.iter().find(|(own, _)| own.text == key),
            _ => None,
        }
    }

    pub(super) fn below(&self, segment: &Segment) -> Option<&Self> {
        match (segment, &self.kind) {
            (Segment::Key(key), _) => self.get(key),
            (Segment::Index(index), Kind::List(items)) => items.get(*index),
            (Segment::Index(_), _) => None,
        }
    }

    /// Where the node at `path` stands; if there is none, the last on the way to it.
    pub(super) fn place_of(&self, path: &[Segment]) -> Place {
        let mut node = self;
        for segment in path {
            match node.below(segment) {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place
    }

    /// Where the key at the end of `path` stands; if there is none, the last node on the way.
    pub(super) fn key_of(&self, path: &[Segment]) -> Place {
        let Some((Segment::Key(last), parents)) = path.split_last() else {
            return self.place_of(path);
        };
        let parent = parents
            .iter()
            .try_fold(self, |node, segment| node.below(segment));
        parent
            .and_then(|parent| parent.entry(last))
            .map_or_else(|| self.place_of(path), |(key, _)| key.place)
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The same without places.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Map(members) => {
                let member = |(key, node): &(Key, Self)| (key.text.clone(), node.to_value());
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
        }
    }
}

/// Which limit a file is beyond, and the way out.
fn too_much(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => too_deep(),
        BudgetBreach::Documents { .. } => another_document(),
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. }
        | BudgetBreach::MergeKeys { .. } => {
            "a scenario may not have so many anchors and aliases (`&a`, `*a`): write out what they \
             stand for, or use a matrix"
                .to_owned()
        }
        _ => too_many(),
    }
}

fn too_many() -> String {
    format!(
        "a scenario may have {MAX_VALUES} values, those that aliases stand for included: make \
         several files of it"
    )
}

fn too_deep() -> String {
    format!("lists and objects may lie {MAX_DEPTH} deep in each other, and here it is more")
}

fn another_document() -> String {
    "a file holds one scenario, and here begins another document".to_owned()
}

/// What a reader's message says to somebody who writes scenarios, without the place at its end.
fn in_our_words(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message).trim();
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        return format!("the key `{key}` is there twice");
    }
    if message.starts_with("multiple YAML documents") {
        return another_document();
    }
    // The reader has a bound of its own for `[[[…`, and no kind of error for it.
    if message.contains("recursion limit exceeded") {
        return too_deep();
    }
    // Nor where an alias is what goes beyond a bound.
    if message.contains("budget breached") {
        return too_many();
    }
    if message.contains("alias") && (message.contains("limit") || message.contains("expansion")) {
        return "aliases (`*a`) stand for too much here: write out what is meant, or use a matrix"
            .to_owned();
    }
    match message.strip_prefix("non-finite float ") {
        Some(rest) => {
            let number = rest.split_whitespace().next().unwrap_or(rest);
            format!("{number} is no number that JSON has")
        }
        None => message.to_owned(),
    }
}

/// A node as the reader gives it, before it knows its place.
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl From<Spanned<Raw>> for Node {
    fn from(spanned: Spanned<Raw>) -> Self {
        let kind = match spanned.value {
            Raw::Scalar(value) => Kind::Scalar(value),
            Raw::List(items) => Kind::List(items.into_iter().map(Self::from).collect()),
            Raw::Map(members) => Kind::Map(
                members
                    .into_iter()
                    .map(|(key, value)| {
                        let key = Key {
                            place: place(&key.referenced),
                            text: key.value,
                        };
                        (key, Self::from(value))
                    })
                    .collect(),
            ),
        };
        Self {
            place: place(&spanned.referenced),
            kind,
        }
    }
}

fn place(location: &serde_saphyr::Location) -> Place {
    Place {
        line: location.line().max(1),
        column: location.column().max(1),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Raw, E> {
        match Number::from_i128(value) {
            Some(number) => Ok(Raw::Scalar(number.into())),
            None => Err(E::custom(format!("{value} is larger than 64 bits hold"))),
        }
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Raw, E> {
        match Number::from_u128(value) {
            Some(number) => Ok(Raw::Scalar(number.into())),
            None => Err(E::custom(format!("{value} is larger than 64 bits hold"))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw, E> {
        match Number::from_f64(value) {
            Some(number) => Ok(Raw::Scalar(number.into())),
            None => Err(E::custom(format!("{value} is no number that JSON has"))),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Raw::Map(members))
    }
}
