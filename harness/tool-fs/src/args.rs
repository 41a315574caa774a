//! The arguments, which have passed the tools' schemas when they arrive here.

use serde_json::{Map, Value};

use crate::config::ToolFsConfig;

/// The description of `file_path`, the same for all tools.
pub(crate) const FILE_PATH: &str =
    "The file: an absolute path, or one relative to the session's working directory.";

/// A string argument; empty where there is none, which the schemas do not let pass.
pub(crate) fn text<'a>(arguments: &'a Value, key: &str) -> &'a str {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The path that any of the tools was given.
pub(crate) fn file_path(arguments: &Value) -> Option<&str> {
    arguments.get("file_path")?.as_str()
}

/// The last line that can be asked for: beyond it numbers of JSON are no longer exact, and no file
/// has so many lines.
const LAST: u64 = (1 << 53) - 1;

/// Whether a `read`'s `offset` is a line that a file can have; else, what is wrong with it. What is
/// no positive integer is the schema's to refuse.
pub(crate) fn check_offset(arguments: &Value) -> Result<(), String> {
    match arguments.get("offset") {
        Some(Value::Number(number)) if integer(&Value::Number(number.clone())) > Some(LAST) => {
            Err(format!(
                "\"offset\" must be at most {LAST}, not {number}; the last line of each read says \
                 how many lines the file has"
            ))
        }
        _ => Ok(()),
    }
}

/// Which lines a `read` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// One-based.
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

impl Range {
    /// What the arguments say, or the defaults.
    pub(crate) fn of(arguments: &Value, config: &ToolFsConfig) -> Self {
        let number = |key| arguments.get(key).and_then(integer);
        Self {
            offset: number("offset").unwrap_or(1).max(1),
            limit: number("limit")
                .unwrap_or(config.limit)
                .clamp(1, config.limit),
        }
    }
}

/// `10.0` is the same number as `10` in JSON. One beyond 64 bits is the greatest of these.
pub(crate) fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| *number >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the number is not negative"
        )]
        let integer = number as u64;
        Some(integer)
    })
}

/// The JSON Schema of an object that has these properties and no others.
pub(crate) fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    Value::Object(schema)
}
