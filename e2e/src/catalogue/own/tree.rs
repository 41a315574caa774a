//! A value of YAML or TOML in which every part knows where it stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::data::{self, DataError};

/// A place in a file: line and column from 1, the column in characters.
pub(super) type At = (u64, u64);

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) at: At,
    pub(super) node: Node,
}

/// What stands there.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Null, a truth value, a number or a text.
    Scalar(Value),
    /// A list.
    List(Vec<Located>),
    /// Keys, each with its place, and values.
    Map(Vec<(String, At, Located)>),
}

impl Located {
    /// Reads YAML.
    pub(super) fn of_yaml(origin: &str, text: &str) -> Result<Self, DataError> {
        data::parse::<Spanned<Yaml>>(origin, text).map(|read| of_spanned(read).1)
    }

    /// Reads TOML.
    pub(super) fn of_toml(origin: &str, text: &str) -> Result<Self, DataError> {
        let document = toml_edit::Document::parse(text).map_err(|error| {
            let (line, column) = error.span().map_or((0, 0), |span| place(text, span.start));
            DataError {
                origin: origin.to_owned(),
                line,
                column,
                message: format!("this is not TOML: {}", error.message()),
            }
        })?;
        Ok(of_table(text, (1, 1), document.as_table()))
    }

    /// The value without places.
    pub(super) fn value(&self) -> Value {
        match &self.node {
            Node::Scalar(value) => value.clone(),
            Node::List(items) => items.iter().map(Self::value).collect(),
            Node::Map(fields) => {
                let fields = fields.iter();
                let fields: Map<String, Value> = fields
                    .map(|(key, _, value)| (key.clone(), value.value()))
                    .collect();
                Value::Object(fields)
            }
        }
    }

    /// The value of a key, with the key's place.
    pub(super) fn get(&self, key: &str) -> Option<(At, &Self)> {
        let Node::Map(fields) = &self.node else {
            return None;
        };
        let field = fields.iter().find(|(known, ..)| known == key);
        field.map(|(_, at, value)| (*at, value))
    }

    /// Where the path of keys and indices leads, as far as there is such a way.
    pub(super) fn follow<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> (At, &Self) {
        let mut here = (self.at, self);
        for part in path {
            let next = match &here.1.node {
                Node::Scalar(_) => None,
                Node::List(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index))
                    .map(|item| (item.at, item)),
                Node::Map(_) => here.1.get(part).map(|(at, value)| match value.node {
                    // A scalar is what is wrong; of a list or a map its key is the better place.
                    Node::Scalar(_) => (value.at, value),
                    _ => (at, value),
                }),
            };
            match next {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }
}

/// YAML as serde hands it over, each part with its place.
enum Yaml {
    Scalar(Value),
    List(Vec<Spanned<Yaml>>),
    Map(Vec<(Spanned<String>, Spanned<Yaml>)>),
}

fn of_spanned(read: Spanned<Yaml>) -> (At, Located) {
    let at = (read.referenced.line(), read.referenced.column());
    let node = match read.value {
        Yaml::Scalar(value) => Node::Scalar(value),
        Yaml::List(items) => Node::List(items.into_iter().map(|item| of_spanned(item).1).collect()),
        Yaml::Map(fields) => Node::Map(
            fields
                .into_iter()
                .map(|(key, value)| {
                    let at = (key.referenced.line(), key.referenced.column());
                    (key.value, at, of_spanned(value).1)
                })
                .collect(),
        ),
    };
    (at, Located { at, node })
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(number(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Yaml::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Yaml::Map(fields))
    }
}

/// A number; what JSON has none for is null.
fn number(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn of_table(text: &str, at: At, table: &toml_edit::Table) -> Located {
    let fields = table.iter().filter_map(|(name, item)| {
        let key = table.key(name)?.span();
        let at = key.map_or(at, |span| place(text, span.start));
        Some((name.to_owned(), at, of_item(text, at, item)))
    });
    Located {
        at,
        node: Node::Map(fields.collect()),
    }
}

fn of_item(text: &str, key: At, item: &toml_edit::Item) -> Located {
    match item {
        toml_edit::Item::None => Located {
            at: key,
            node: Node::Scalar(Value::Null),
        },
        toml_edit::Item::Value(value) => of_value(text, key, value),
        toml_edit::Item::Table(table) => of_table(text, key, table),
        toml_edit::Item::ArrayOfTables(tables) => Located {
            at: key,
            node: Node::List(
                tables
                    .iter()
                    .map(|table| {
                        let at = table.span().map_or(key, |span| place(text, span.start));
                        of_table(text, at, table)
                    })
                    .collect(),
            ),
        },
    }
}

fn of_value(text: &str, key: At, value: &toml_edit::Value) -> Located {
    let at = value.span().map_or(key, |span| place(text, span.start));
    let node = match value {
        toml_edit::Value::String(value) => Node::Scalar(value.value().as_str().into()),
        toml_edit::Value::Integer(value) => Node::Scalar((*value.value()).into()),
        toml_edit::Value::Float(value) => Node::Scalar(number(*value.value())),
        toml_edit::Value::Boolean(value) => Node::Scalar((*value.value()).into()),
        toml_edit::Value::Datetime(value) => Node::Scalar(value.value().to_string().into()),
        toml_edit::Value::Array(items) => {
            Node::List(items.iter().map(|item| of_value(text, at, item)).collect())
        }
        toml_edit::Value::InlineTable(table) => Node::Map(
            table
                .iter()
                .filter_map(|(name, value)| {
                    let key = table.key(name)?.span();
                    let at = key.map_or(at, |span| place(text, span.start));
                    Some((name.to_owned(), at, of_value(text, at, value)))
                })
                .collect(),
        ),
    };
    Located { at, node }
}

/// Line and column of a byte.
fn place(text: &str, byte: usize) -> At {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[begin..].chars().count() as u64 + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_notations_give_one_value_and_places() {
        let yaml = "a: 1\nlist:\n  - {x: é, y: [true, 2.5]}\n  - null\n";
        let toml = "a = 1\n[[list]]\nx = 'é'\ny = [true, 2.5]\n";
        let yaml = Located::of_yaml("f.yaml", yaml).unwrap();
        let toml = Located::of_toml("f.toml", toml).unwrap();
        assert_eq!(
            yaml.value(),
            json!({"a": 1, "list": [{"x": "é", "y": [true, 2.5]}, null]})
        );
        assert_eq!(
            toml.value(),
            json!({"a": 1, "list": [{"x": "é", "y": [true, 2.5]}]})
        );
        assert_eq!(yaml.follow(["a"]).0, (1, 4));
        assert_eq!(yaml.follow(["list"]).0, (2, 1));
        assert_eq!(yaml.follow(["list", "0", "x"]).0, (3, 9));
        assert_eq!(yaml.follow(["list", "0", "nope"]).0, (3, 5));
        assert_eq!(toml.follow(["a"]).0, (1, 5));
        assert_eq!(toml.follow(["list", "0", "y", "1"]).0, (4, 12));
    }
}
