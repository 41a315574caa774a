//! Reads and compiles the shapes.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::{Kind, Member, Method, Shapes, Type};
use crate::format::Who;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    types: IndexMap<String, Value>,
    #[serde(rename = "client requests")]
    client_requests: IndexMap<String, MethodForm>,
    #[serde(rename = "client notifications")]
    client_notifications: IndexMap<String, MethodForm>,
    #[serde(rename = "server requests")]
    server_requests: IndexMap<String, MethodForm>,
    #[serde(rename = "server notifications")]
    server_notifications: IndexMap<String, MethodForm>,
    notifications: IndexMap<String, MethodForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodForm {
    params: String,
    #[serde(default)]
    result: Option<String>,
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShapesError {
    #[error("{0}")]
    Yaml(String),
    #[error("{place}: {problem}")]
    Type { place: String, problem: String },
}

pub(super) fn read(text: &str) -> Result<Shapes, ShapesError> {
    let form: Form =
        serde_saphyr::from_str(text).map_err(|error| ShapesError::Yaml(error.to_string()))?;
    let names: HashMap<&str, usize> = form
        .types
        .keys()
        .enumerate()
        .map(|(place, name)| (name.as_str(), place))
        .collect();
    let mut types = Vec::with_capacity(form.types.len());
    for (name, value) in &form.types {
        types.push(compile(&names, name, value)?);
    }
    let mut methods = HashMap::new();
    for (all, by, kind) in [
        (&form.client_requests, Some(Who::Client), Kind::Request),
        (
            &form.client_notifications,
            Some(Who::Client),
            Kind::Notification,
        ),
        (&form.server_requests, Some(Who::Server), Kind::Request),
        (
            &form.server_notifications,
            Some(Who::Server),
            Kind::Notification,
        ),
        (&form.notifications, None, Kind::Notification),
    ] {
        for (name, method) in all {
            let result = match &method.result {
                Some(result) => Some(parse(&names, name, result)?),
                None => None,
            };
            let method = Method {
                by,
                kind,
                params: parse(&names, name, &method.params)?,
                result,
            };
            methods.insert(name.clone(), method);
        }
    }
    let error = parse(&names, "errors", "ErrorObject")?;
    Ok(Shapes {
        types,
        methods,
        error,
    })
}

fn compile(names: &HashMap<&str, usize>, place: &str, value: &Value) -> Result<Type, ShapesError> {
    match value {
        Value::String(text) => parse(names, place, text),
        Value::Number(number) => parse(names, place, &number.to_string()),
        Value::Null => Ok(Type::Null),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let place = format!("{place}.{name}");
                let (name, optional) = match name.strip_suffix('?') {
                    Some(name) => (name, true),
                    None => (name.as_str(), false),
                };
                Ok(Member {
                    name: name.to_owned(),
                    optional,
                    shape: compile(names, &place, value)?,
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Type::Members),
        other => Err(fault(place, format!("{other} is no type"))),
    }
}

fn fault(place: &str, problem: String) -> ShapesError {
    ShapesError::Type {
        place: place.to_owned(),
        problem,
    }
}

/// Compiles an expression such as `(A | 'b')[] | null`.
fn parse(names: &HashMap<&str, usize>, place: &str, text: &str) -> Result<Type, ShapesError> {
    let mut parser = Parser {
        names,
        rest: text.trim(),
    };
    let parsed = parser.union().map_err(|problem| fault(place, problem))?;
    if parser.rest.is_empty() {
        Ok(parsed)
    } else {
        Err(fault(place, format!("{:?} is left over", parser.rest)))
    }
}

struct Parser<'a> {
    names: &'a HashMap<&'a str, usize>,
    rest: &'a str,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else {
            return false;
        };
        self.rest = rest.trim_start();
        true
    }

    fn union(&mut self) -> Result<Type, String> {
        let mut all = vec![self.postfix()?];
        while self.take("|") {
            all.push(self.postfix()?);
        }
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            Some(last) => {
                all.push(last);
                Type::Union(all)
            }
            None => Type::Any,
        })
    }

    fn postfix(&mut self) -> Result<Type, String> {
        let mut shape = self.atom()?;
        while self.take("[]") {
            shape = Type::Array(Box::new(shape));
        }
        Ok(shape)
    }

    fn atom(&mut self) -> Result<Type, String> {
        if self.take("(") {
            let inner = self.union()?;
            return if self.take(")") {
                Ok(inner)
            } else {
                Err("a parenthesis is not closed".to_owned())
            };
        }
        if let Some(quoted) = self.rest.strip_prefix('\'') {
            let (text, rest) = quoted.split_once('\'').ok_or("a quote is not closed")?;
            self.rest = rest.trim_start();
            return Ok(Type::Text(text.to_owned()));
        }
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if let Ok(number) = word.parse() {
            return Ok(Type::Number(number));
        }
        Ok(match word {
            "any" => Type::Any,
            "null" => Type::Null,
            "none" => Type::None,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "uinteger" => Type::UInteger,
            "decimal" => Type::Decimal,
            "string" => Type::String,
            "uri" => Type::Uri,
            "object" => Type::Object,
            name => match self.names.get(name) {
                Some(place) => Type::Named(*place),
                None => return Err(format!("there is no type {name:?}")),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_shapes_are_read() {
        let shapes = read(include_str!("shapes.yaml")).unwrap();
        assert!(shapes.methods.len() > 40);
    }

    #[track_caller]
    fn refused(types: &str, why: &str) {
        let text = format!(
            "types: {{{types}}}\nclient requests: {{}}\nclient notifications: {{}}\n\
             server requests: {{}}\nserver notifications: {{}}\nnotifications: {{}}\n"
        );
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn what_is_no_type_is_refused_with_its_place() {
        refused("A: {b: C}", "A.b: there is no type \"C\"");
        refused("A: \"string string\"", "A: \"string\" is left over");
        refused("A: \"(string\"", "A: a parenthesis is not closed");
        refused("A: \"'x\"", "A: a quote is not closed");
        refused("A: [string]", "is no type");
    }
}
